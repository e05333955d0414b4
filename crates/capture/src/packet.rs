//! A packet of a capture.

use pcap_file::DataLink;
use std::fmt;
use std::sync::Arc;

/// A link-layer header type, as the registry of capture formats numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// Ethernet, without preamble and frame check sequence.
    pub const ETHERNET: LinkType = LinkType(1);
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DataLink::from(self.0) {
            DataLink::Unknown(number) => write!(f, "link type {number}"),
            named => write!(f, "link type {} ({named:?})", self.0),
        }
    }
}

/// The interface of captured packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Position in the file, from 0, counted across the sections of a pcapng file.
    pub index: usize,
    /// Its name (`if_name`); pcap has none.
    pub name: Option<String>,
    /// Link type of its packets.
    pub link_type: LinkType,
}

/// One packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Position in the file, from 1; a damaged packet has its number too.
    pub frame: u64,
    /// Offset of the packet's record from the start of the file, in octets.
    pub offset: u64,
    /// Nanoseconds since 1970. A pcapng Simple Packet Block has no time: it gets that of the packet before it.
    pub time_ns: u64,
    /// The interface that captured it.
    pub interface: Arc<Interface>,
    /// The octets that were captured.
    pub octets: Vec<u8>,
    /// The packet's length on the wire, which is more than `octets.len()` when it was cut off.
    pub original_len: u32,
}
