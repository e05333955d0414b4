//! Packet formats and checksums of RoCEv2 over SRv6.
//!
//! Each format has a **view** (`Ipv6View`), the octets as they lie in a packet, with accessors that cannot panic, and
//! a **value** (`Ipv6`), the fields as plain Rust, with `parse` and `emit`. A view keeps reserved bits when it is
//! edited in place; a value writes them as zero.
//!
//! Nothing here allocates, reads a clock or can panic on any octets. [`rocev2`] finds all of a RoCEv2 packet at once;
//! the other modules are one format each, figure on top.
//!
//! The feature `std`, on by default, is for the dependency that computes whole CRCs: with it that crate detects the
//! processor for its instructions at run time. This crate itself never uses the standard library.
#![no_std]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(test)]
extern crate std;

pub mod bth;
pub mod checksum;
pub mod cm;
pub mod codepoints;
pub mod entropy;
pub mod ethernet;
pub mod extension;
pub mod fast_cnp;
pub mod icmpv4;
pub mod icmpv6;
pub mod icrc;
pub mod ioam;
pub mod ipv4;
pub mod ipv6;
pub mod notification;
pub mod opcode;
pub mod options;
pub mod path_mtu;
pub mod pfc;
pub mod prefix;
pub mod probe;
pub mod psn;
pub mod rocev2;
pub mod srh;
pub mod time;
pub mod tlv;
pub mod translation;
pub mod transport;
pub mod udp;
pub mod units;
pub mod view;
pub mod vlan;

pub use bth::{Bth, BthView, Opcode};
pub use entropy::Entropy;
pub use ethernet::{EtherType, Ethernet, EthernetView, MacAddress};
pub use icrc::Icrc;
pub use ipv4::{Ipv4, Ipv4View};
pub use ipv6::{Ipv6, Ipv6View, NextHeader};
pub use path_mtu::PathMtu;
pub use pfc::Pfc;
pub use prefix::{Prefix, PrefixError, host_address};
pub use probe::{Probe, ProbePacket, ProbeView};
pub use psn::{Psn, Qpn};
pub use srh::{Srh, SrhValue, SrhView};
pub use time::Instant;
pub use transport::{
    Aeth, AethView, AtomicAckEthView, AtomicEth, AtomicEthView, CnpView, IethView, ImmDtView, Reth, RethView, Syndrome,
};
pub use udp::{Udp, UdpView};
pub use view::{Truncated, View};
