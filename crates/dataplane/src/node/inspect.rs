//! What a node tells about itself, for those who watch it.

use super::Node;
use super::state::Target;
use crate::config::SidBehavior;
use crate::counters::Traffic;
use crate::entropy;
use crate::headers::ipv6;
use srdma_frame::PortId;
use srdma_group::{GroupEntry, GroupId};
use srdma_wire::Prefix;

impl Node {
    /// The SIDs, what each does, and the packets that it took.
    pub fn sids(&self) -> impl Iterator<Item = (Prefix, SidBehavior, Traffic)> {
        self.sids.iter().map(|sid| (sid.prefix, sid.behavior, sid.traffic))
    }

    /// The node's entry of a group.
    pub fn group_entry(&self, id: GroupId) -> Option<&GroupEntry> {
        self.group(id).map(|group| &group.entry)
    }

    /// Whether the node takes part in any group.
    pub fn has_groups(&self) -> bool {
        self.groups.iter().any(Option::is_some)
    }

    /// Whether Fast CNP is on (FC-5-4).
    pub fn uses_fast_cnp(&self) -> bool {
        self.fast_cnp.is_some()
    }

    /// How many prefixes the tables hold: routes, and what is looked up like one: SIDs, Proxy Addresses, neighbours and
    /// the node's own addresses.
    pub fn prefix_count(&self) -> usize {
        self.main.len() + self.tables.values().map(|table| table.len()).sum::<usize>()
    }

    /// How many neighbours' MAC addresses are known.
    pub fn neighbour_count(&self) -> usize {
        self.adjacencies.values().filter(|adjacency| adjacency.resolved && adjacency.address[0] != 0xff).count()
    }

    /// The port by which a packet with these headers, the Ethernet header first, leaves by the main table: of equal
    /// paths the one that its flow takes. `None` when something else than plain forwarding becomes of it.
    pub fn port_toward(&self, head: &[u8]) -> Option<PortId> {
        let adjacency = match self.main.lookup(ipv6(head).ok()?.destination_octets())? {
            Target::Adjacency(adjacency) => adjacency,
            Target::Ecmp(set) => self.ecmp[set as usize].choose(entropy::of_packet(head), self.ecmp_salt),
            Target::Sid(_)
            | Target::Group(_)
            | Target::Encaps(_)
            | Target::Placed(_)
            | Target::Local
            | Target::Blackhole => return None,
        };
        Some(self.adjacencies[adjacency as usize].port)
    }
}
