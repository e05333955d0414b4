//! The fast path: forwarding in the XDP program, of packets that need no state of the node.
//!
//! ```text
//! frame ─→ an entry that the program has? ─→ anything unusual? ─→ rewrite ─→ redirect
//!              │ no                             │ yes
//!              └────────────→ as without it, frame unchanged
//! ```
//!
//! The program decides before it changes anything: whatever would end as a drop or an ICMPv6 error, and whatever it is
//! not certain about, goes to the element with the frame as it came in.

mod arrival;
mod hash;
mod image;
mod leave;
mod program;
mod sid;
mod test_program;

pub use image::Key;
pub(in crate::bpf) use program::FastProgram;
pub use test_program::TestProgram;

use super::{Map, MapKind, possible_cpus};
use crate::interest::Match;
use image::{
    HopValue, Image, MAX_HOPS, MAX_POLICIES, MAX_SETS, MAX_SIDS, PolicyValue, RouteKey, RouteValue, SetValue, Write,
};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Ports that the maps have room for.
pub const MAX_PORTS: u16 = 256;

/// Entries that the maps have room for.
pub const MAX_ENTRIES: usize = 1 << 16;

/// Prefixes of sources that the program compares packets to SIDs with, one after the other.
pub const MAX_SOURCES: usize = 8;

/// What happens to packets to a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// They go to the element.
    Element,
    /// They are forwarded to one of these neighbours, by the hash of their flow.
    Via(Vec<Hop>),
    /// They are for a SID of the node.
    Sid(Sid),
    /// They are encapsulated in these headers, the outer IPv6 header first, and looked up in table 0.
    Encapsulate(Vec<u8>),
}

/// A neighbour at a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// Number of the port.
    pub port: u16,
    /// Destination and source MAC address.
    pub addresses: [u8; 12],
    /// The longest IPv6 packet, in octets.
    pub link_mtu: u16,
}

/// A SID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of RFC 8986 section 4.16")]
pub struct Sid {
    pub action: SidAction,
    pub psp: bool,
    pub usd: bool,
    /// Bits of block and compressed SID, together at most 64 (RFC 9800 section 4.1).
    pub next_csid: Option<(u8, u8)>,
}

/// What follows the processing of a SID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SidAction {
    /// A look-up in table 0: End.
    Next,
    /// A neighbour: End.X.
    Via(Hop),
    /// Decapsulation, and a look-up in a table: End.DT6.
    Decapsulate {
        /// Number of the table.
        table: u16,
    },
}

/// Frames and octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Counted {
    pub frames: u64,
    pub octets: u64,
}

/// A port at which a program with the fast path runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u16,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Only packets of these sources are processed by a SID, all others go to the element; `None`: any source.
    pub sources: Option<Vec<Prefix>>,
    /// The salt of the node's choice among equal paths.
    pub salt: u32,
}

/// The maps that the programs of a node's ports share. The memory is the kernel's, until the last program is gone.
#[derive(Debug)]
pub struct Maps {
    image: Image,
    routes: Map<RouteKey, RouteValue>,
    hops: Map<u32, HopValue>,
    sets: Map<u32, SetValue>,
    policies: Map<u32, PolicyValue>,
    /// Interfaces, by the number of their port.
    interfaces: Map<u32, u32>,
    /// Of each port the frames received and sent, then of each SID those processed.
    counters: Map<u32, [u64; 2]>,
    cpus: usize,
}

/// Where the counters of SIDs begin.
const SID_COUNTERS: u32 = 2 * MAX_PORTS as u32;

impl Maps {
    /// Empty maps: all packets go to the element.
    ///
    /// # Errors
    ///
    /// If the kernel refuses a map, as it does without `CAP_BPF`.
    pub fn new() -> io::Result<Self> {
        Ok(Maps {
            image: Image::new(),
            routes: Map::new(MapKind::LpmTrie, MAX_ENTRIES as u32, c"srdma_routes")?,
            hops: Map::new(MapKind::Array, MAX_HOPS, c"srdma_hops")?,
            sets: Map::new(MapKind::Array, MAX_SETS, c"srdma_sets")?,
            policies: Map::new(MapKind::Array, MAX_POLICIES, c"srdma_policies")?,
            interfaces: Map::new(MapKind::DevMap, MAX_PORTS.into(), c"srdma_ports")?,
            counters: Map::new(MapKind::PerCpuArray, SID_COUNTERS + MAX_SIDS, c"srdma_counters")?,
            cpus: possible_cpus()?,
        })
    }

    /// Makes these the entries: numbers of tables and prefixes, with what happens to packets there. Entries that stay
    /// are not touched. The counters of `sids`, those that the node has, stay as well. Of packets that come in the
    /// entries forward only those that the `interest` of the ports takes whatever they carry.
    ///
    /// # Errors
    ///
    /// If the kernel refuses a write; the maps are of no use then.
    pub fn set_entries(
        &mut self,
        entries: &BTreeMap<Key, Entry>,
        sids: &BTreeSet<Prefix>,
        interest: &[(Prefix, Match)],
    ) -> io::Result<()> {
        for write in self.image.change(entries, sids, interest) {
            match write {
                Write::Hop(slot, value) => self.hops.set(slot, value)?,
                Write::Set(slot, value) => self.sets.set(slot, value)?,
                Write::Policy(slot, value) => self.policies.set(slot, *value)?,
                Write::Counters(slot) => {
                    self.counters.set_of_each_cpu(SID_COUNTERS + slot, &vec![[0; 2]; self.cpus])?;
                }
                Write::Route(key, value) => self.routes.set(key, value)?,
                Write::NoRoute(key) => self.routes.remove(key)?,
            }
        }
        Ok(())
    }

    /// Lets frames leave by the interface of a port, or no longer. The caller has no entries that lead to a port
    /// without interface.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn set_interface(&self, port: u16, interface_index: Option<u32>) -> io::Result<()> {
        match interface_index {
            Some(index) => self.interfaces.set(port.into(), index),
            None => match self.interfaces.remove(port.into()) {
                Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// Frames that the programs have forwarded, by the port that they were received at.
    ///
    /// # Errors
    ///
    /// If the kernel refuses to read.
    pub fn received(&self, port: u16) -> io::Result<Counted> {
        self.counted(2 * u32::from(port))
    }

    /// Frames that the programs have forwarded, by the port that they left by.
    ///
    /// # Errors
    ///
    /// If the kernel refuses to read.
    pub fn sent(&self, port: u16) -> io::Result<Counted> {
        self.counted(2 * u32::from(port) + 1)
    }

    /// Packets that the programs have processed by a SID; zero for one that they do not have.
    ///
    /// # Errors
    ///
    /// If the kernel refuses to read.
    pub fn processed(&self, sid: Prefix) -> io::Result<Counted> {
        self.image.counters_of(sid).map_or(Ok(Counted::default()), |slot| self.counted(SID_COUNTERS + slot))
    }

    fn counted(&self, slot: u32) -> io::Result<Counted> {
        let values = self.counters.of_each_cpu(slot, self.cpus)?;
        let sum = |all: Counted, value: &[u64; 2]| Counted {
            frames: all.frames.wrapping_add(value[0]),
            octets: all.octets.wrapping_add(value[1]),
        };
        Ok(values.iter().fold(Counted::default(), sum))
    }
}
