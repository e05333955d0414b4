//! `srdma process` over the golden captures: what scapy and the Linux kernel made of the same packets.

mod common;
mod kernel;
mod multicast;
mod run;
