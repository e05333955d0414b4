//! `srdma process` over the golden captures: the output of scapy and the Linux kernel for the same packets.

mod common;
mod kernel;
mod multicast;
mod run;
