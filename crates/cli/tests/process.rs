//! `srdma process` over the golden captures: what scapy and the Linux kernel made of the same packets.

#[path = "process/common.rs"]
mod common;
#[path = "process/kernel.rs"]
mod kernel;
#[path = "process/multicast.rs"]
mod multicast;
#[path = "process/run.rs"]
mod run;
