//! Configuration of a speaker.

use crate::id::RouterId;
use crate::lsa::PrefixEntry;
use crate::srv6::Locator;
use srdma_isis::tlv::{CapabilityFlags, EndXSid};
use std::net::Ipv6Addr;

/// A router.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its id, unlike any other's, and not 0.
    pub router: RouterId,
    /// Its name, at most 255 octets (RFC 5642).
    pub hostname: String,
    /// Whether paths must not lead through it: the R-bit of its options is clear.
    pub is_overloaded: bool,
    /// Its SRv6 capabilities, if it announces them.
    pub srv6: Option<CapabilityFlags>,
    /// Its locators and their SIDs.
    pub locators: Vec<Locator>,
    pub prefixes: Vec<PrefixEntry>,
    /// Timers of the speaker.
    pub timers: Timers,
    /// Maximum number of stored LSAs of other routers: further ones are dropped (D278).
    pub limit_lsas: usize,
}

impl Config {
    /// A router without locators and prefixes.
    pub fn new(router: RouterId, hostname: &str) -> Self {
        Config {
            router,
            hostname: hostname.to_owned(),
            is_overloaded: false,
            srv6: None,
            locators: Vec::new(),
            prefixes: Vec::new(),
            timers: Timers::default(),
            limit_lsas: 65_536,
        }
    }
}

/// Intervals. The first two are the same at both ends of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// HelloInterval, in seconds.
    pub hello_s: u16,
    /// RouterDeadInterval, in seconds.
    pub dead_s: u16,
    /// RxmtInterval, in seconds.
    pub retransmit_s: u64,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { hello_s: 10, dead_s: 40, retransmit_s: 5 }
    }
}

/// A point-to-point circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitConfig {
    /// Metric of the link.
    pub metric: u16,
    /// The interface's link-local address, the source of all packets.
    pub address: Ipv6Addr,
    /// The longest IPv6 packet of the link, in octets. The neighbour's must not be longer.
    pub mtu: u16,
    /// SIDs of packets that are to leave by it.
    pub end_x: Vec<EndXSid>,
}

impl CircuitConfig {
    /// A circuit of metric 10, with packets of 1,500 octets.
    pub fn new(address: Ipv6Addr) -> Self {
        CircuitConfig { metric: 10, address, mtu: 1500, end_x: Vec::new() }
    }
}
