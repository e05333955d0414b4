//! The tests of `srdma-io`.

mod af_packet;
mod af_xdp;
mod llc;
mod nd;
mod netlink;
mod udp;
