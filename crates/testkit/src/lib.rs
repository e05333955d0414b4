//! Slow reference models for the tests and the conformance tester, written from the RFCs and the drafts without using
//! the code that they judge: octets in vectors, one bit or one octet at a time, no table, no cleverness. And what tests
//! over many seeds share.

pub mod built;
pub mod checksums;
pub mod dcqcn;
pub mod forwarding;
pub mod hpcc;
pub mod ipv4_groups;
pub mod multicast;
pub mod packets;
pub mod random;
pub mod seeds;
pub mod table;
