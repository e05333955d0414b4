//! The tests of `srdma-io`.

mod af_packet;
mod af_xdp;
mod af_xdp_queues;
mod fast_path;
mod llc;
mod nd;
mod netlink;
mod udp;
