//! The tests of `srdma-io`, one binary: linking is most of what building tests costs.

mod af_packet;
mod af_xdp;
mod llc;
mod nd;
mod netlink;
