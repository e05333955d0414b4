//! What may be forwarded without the element: entries whose packets need no state of it, and what prevents that.
//!
//! Everything that is not certain is [`FastPathEntry::Element`]: a packet that ends as a drop or an ICMPv6 error, that
//! is replicated, or whose port has more to do than to send it.

use crate::behavior::Flavors;
use crate::config::{HmacPolicy, SidBehavior, TableId};
use crate::node::Node;
use crate::tables::{Adjacency, Sid, Target};
use srdma_frame::PortId;
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::fmt;

/// What a program in front of the element may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastPath {
    /// What prevents it at the whole node; there are no entries then.
    pub obstacle: Option<FastPathObstacle>,
    /// What prevents it at each port, in the order of their numbers.
    pub ports: Vec<Option<FastPathObstacle>>,
    /// The sources whose packets may go to a SID; `None`: any (RFC 8754 section 5.1).
    pub sources: Option<Vec<Prefix>>,
    /// The salt of the choice among equal paths.
    pub salt: u32,
    /// What happens to packets to each prefix that the node has.
    pub entries: BTreeMap<(TableId, Prefix), FastPathEntry>,
}

/// What happens to packets to a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FastPathEntry {
    /// The element processes them.
    Element,
    /// They are forwarded to one of these neighbours, which the hash of the flow chooses.
    Via(Vec<FastPathHop>),
    /// End and uN: the next segment is looked up.
    End(Flavors),
    /// End.X and uA.
    EndX(Flavors, FastPathHop),
    /// End.DT6 with this table.
    EndDt6(TableId),
    /// They are encapsulated in these headers, the outer IPv6 header first.
    Encaps(Vec<u8>),
}

/// A neighbour whose MAC address is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FastPathHop {
    pub port: PortId,
    /// Destination and source MAC address.
    pub addresses: [u8; 12],
    /// The longest IPv6 packet, in octets.
    pub link_mtu: u16,
}

/// Why packets go through the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPathObstacle {
    /// Fast CNP: packets of connections are noted, and congestion is notified.
    FastCnp,
    /// Steering over placed paths: signals are taken from packets that pass.
    Steering,
    /// IOAM: traces are written to.
    Ioam,
    /// The port is a border: sources and destinations are checked.
    Border,
    /// The frames of the port are cross-connected.
    CrossConnect,
    /// The port is that of a VLAN: its frames have tags.
    Vlan,
    /// The port has a class with PFC.
    Pfc,
    /// The port has traffic classes.
    Classes,
}

impl fmt::Display for FastPathObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FastPathObstacle::FastCnp => "Fast CNP is on",
            FastPathObstacle::Steering => "steering is on",
            FastPathObstacle::Ioam => "IOAM is on",
            FastPathObstacle::Border => "border port",
            FastPathObstacle::CrossConnect => "cross-connect",
            FastPathObstacle::Vlan => "VLAN",
            FastPathObstacle::Pfc => "PFC",
            FastPathObstacle::Classes => "traffic classes",
        })
    }
}

impl Node {
    /// What may be forwarded without the element, out of ports of which `is_open` holds. It changes when
    /// [`Node::generation`] does.
    pub fn fast_path(&self, is_open: impl Fn(PortId) -> bool) -> FastPath {
        let (config, tables, security, ports) = self.fast_path_parts();
        let obstacle_at = |port: PortId| {
            if security.is_border(port) {
                return Some(FastPathObstacle::Border);
            }
            if self.is_cross_connected(port) {
                return Some(FastPathObstacle::CrossConnect);
            }
            if ports.vlans.carrier(port).1.is_some() {
                return Some(FastPathObstacle::Vlan);
            }
            let classes = ports.egress.config(port)?;
            let has_pfc = classes.classes.iter().any(|class| class.pfc.is_some());
            Some(if has_pfc { FastPathObstacle::Pfc } else { FastPathObstacle::Classes })
        };
        let obstacles: Vec<_> = (0..config.ports.len()).map(|index| obstacle_at(PortId(index as u16))).collect();
        let plan = Planner {
            node: self,
            is_open: |port: PortId| obstacles.get(port.index()).is_some_and(Option::is_none) && is_open(port),
        };
        let obstacle = self.fast_path_obstacle();
        let entries = match obstacle {
            Some(_) => BTreeMap::new(),
            None => tables.targets().map(|(table, prefix, target)| ((table, prefix), plan.entry(target))).collect(),
        };
        FastPath {
            obstacle,
            sources: security.sid_sources().map(<[Prefix]>::to_vec),
            salt: tables.ecmp_salt(),
            entries,
            ports: obstacles,
        }
    }
}

/// Translates targets of the tables.
struct Planner<'n, F> {
    node: &'n Node,
    is_open: F,
}

impl<F: Fn(PortId) -> bool> Planner<'_, F> {
    fn entry(&self, target: Target) -> FastPathEntry {
        let (config, tables, ..) = self.node.fast_path_parts();
        let entry = match target {
            Target::Adjacency(adjacency) => {
                self.hop(tables.adjacency(adjacency)).map(|hop| FastPathEntry::Via(vec![hop]))
            }
            Target::Ecmp(set) => {
                let members = tables.equal_paths(set);
                let hops = members.and_then(|members| {
                    members.iter().map(|member| self.hop(tables.adjacency(*member))).collect::<Option<Vec<_>>>()
                });
                hops.map(FastPathEntry::Via)
            }
            Target::Sid(sid) if config.hmac == HmacPolicy::Ignored => self.sid(tables.sid(sid)),
            Target::Encaps(policy) => {
                let policy = tables.encaps(policy);
                policy.key_id().is_none().then(|| FastPathEntry::Encaps(policy.headers().to_vec()))
            }
            Target::Sid(_)
            | Target::Group(_)
            | Target::Policy(_)
            | Target::Placed(_)
            | Target::Local
            | Target::Blackhole
            | Target::ToPeer => None,
        };
        entry.unwrap_or(FastPathEntry::Element)
    }

    fn sid(&self, sid: &Sid) -> Option<FastPathEntry> {
        let (_, tables, ..) = self.node.fast_path_parts();
        match sid.behavior {
            SidBehavior::End(flavors) => Some(FastPathEntry::End(flavors)),
            SidBehavior::EndX(flavors, _) => {
                Some(FastPathEntry::EndX(flavors, self.hop(tables.adjacency(sid.adjacency?))?))
            }
            SidBehavior::EndDt6(table) => Some(FastPathEntry::EndDt6(table)),
            SidBehavior::EndDt4(_)
            | SidBehavior::EndDt46(_)
            | SidBehavior::EndDx4 { .. }
            | SidBehavior::EndDx6 { .. }
            | SidBehavior::EndDx2(_)
            | SidBehavior::EndB6Encaps { .. }
            | SidBehavior::EndC
            | SidBehavior::EndE(_)
            | SidBehavior::EndReplicate(_)
            | SidBehavior::EndMt { .. } => None,
        }
    }

    fn hop(&self, adjacency: &Adjacency) -> Option<FastPathHop> {
        let is_usable =
            adjacency.resolved && !adjacency.is_border && !adjacency.is_avoided && (self.is_open)(adjacency.port);
        let addresses = *adjacency.ethernet.first_chunk()?;
        is_usable.then_some(FastPathHop { port: adjacency.port, addresses, link_mtu: adjacency.link_mtu })
    }
}

#[cfg(test)]
mod tests;
