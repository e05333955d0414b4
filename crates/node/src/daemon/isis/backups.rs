//! Ways around neighbours (TI-LFA, D265, D266, D286, D287), as backups of the node.

use super::Plan;
use super::circuit::Circuit;
use super::learnt::Known;
use srdma_dataplane::{BackupRoute, NextHop};
use srdma_isis::{CircuitId, Level, NodeId, Protection, Repair, Speaker};
use srdma_wire::units::NS_PER_S;
use srdma_wire::{Instant, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Time for which backups outlive their neighbour, in nanoseconds: routes are withdrawn later than they are computed.
/// BFD sessions, whose state leads to backups, stay as long (D110).
const LINGER_NS: u64 = 10 * NS_PER_S;

/// A way around a neighbour to a prefix.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct Around {
    pub(in crate::daemon) level: Level,
    /// The neighbour that the prefix is reached by.
    pub(in crate::daemon) neighbour: NodeId,
    /// The neighbour that packets are sent to instead.
    pub(in crate::daemon) first: NodeId,
    pub(in crate::daemon) route: BackupRoute,
    pub(in crate::daemon) protection: Protection,
    /// Where the neighbour is: by each of the cheapest circuits.
    protected: Vec<NextHop>,
}

/// The backups of each neighbour.
pub(super) type Backups = BTreeMap<NextHop, Vec<BackupRoute>>;

/// The neighbours that are lost and whose backups are still there, with the end of that.
#[derive(Debug, Default)]
pub(super) struct Lingering(BTreeMap<NextHop, Instant>);

impl Lingering {
    /// Adds the earlier backups of neighbours that have none now, while their time lasts.
    pub(super) fn keep(&mut self, now: Instant, before: &Backups, present: &mut Backups) {
        let lost = before.iter().filter(|(next_hop, _)| !present.contains_key(next_hop));
        let lost: Vec<_> = lost.map(|(next_hop, routes)| (*next_hop, routes.clone())).collect();
        self.0.retain(|next_hop, _| lost.iter().any(|(of, _)| of == next_hop));
        for (next_hop, routes) in lost {
            let until = *self.0.entry(next_hop).or_insert(now.after_ns(LINGER_NS));
            if now < until {
                present.insert(next_hop, routes);
            } else {
                self.0.remove(&next_hop);
            }
        }
    }

    /// Time of the next end.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.0.values().copied().min()
    }
}

/// The ways around each neighbour, for the routes that lead to it alone.
pub(super) fn ways_around(
    known: &Known,
    speaker: &Speaker,
    plan: &Plan,
    circuits: &[Circuit],
    now: Instant,
) -> Vec<Around> {
    let own: BTreeSet<Prefix> = plan.settings.system.prefixes.iter().map(|reachable| reachable.prefix).collect();
    let mut all = Vec::new();
    for level in speaker.levels().as_slice() {
        let is_used = |prefix: &Prefix| {
            !own.contains(prefix) && known.paths.prefixes.get(prefix).is_some_and(|route| route.level == *level)
        };
        for (neighbour, repairs) in speaker.repairs(*level, plan.settings.node_protection, now) {
            let protected = next_hops(speaker, circuits, *level, neighbour, |_| true);
            let way = |(prefix, repair): (Prefix, Repair)| {
                let Repair { first, segments, path, protection } = repair;
                // The path begins with a LAN, or by a link with the neighbour itself.
                let lan = path.first().copied().filter(|begin| *begin != first);
                let is_there = |id| speaker.designated(*level, id) == lan;
                let next_hop = next_hops(speaker, circuits, *level, first, is_there).first().copied()?;
                let route = BackupRoute { prefix, next_hop, segments };
                Some(Around { level: *level, neighbour, first, route, protection, protected: protected.clone() })
            };
            all.extend(repairs.into_iter().filter(|(prefix, _)| is_used(prefix)).filter_map(way));
        }
    }
    all
}

/// The same, as the node takes them.
pub(super) fn backups(ways: &[Around]) -> Backups {
    let mut backups = Backups::new();
    for way in ways {
        for next_hop in &way.protected {
            backups.entry(*next_hop).or_default().push(way.route.clone());
        }
    }
    backups
}

/// A neighbour by the cheapest circuits that lead there, of those that count.
fn next_hops(
    speaker: &Speaker,
    circuits: &[Circuit],
    level: Level,
    neighbour: NodeId,
    counts: impl Fn(CircuitId) -> bool,
) -> Vec<NextHop> {
    let there = speaker.circuits_to(level, neighbour.system).filter(|(id, _)| counts(*id));
    let found = there.filter_map(|(id, adjacency)| {
        let circuit = circuits.get(id.0)?;
        let address = adjacency.addresses.iter().copied().find(Ipv6Addr::is_unicast_link_local)?;
        Some((circuit.metric, NextHop { port: circuit.link.id, address }))
    });
    let found: Vec<_> = found.collect();
    let least = found.iter().map(|(metric, _)| *metric).min();
    found.into_iter().filter(|(metric, _)| Some(*metric) == least).map(|(_, next_hop)| next_hop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_frame::PortId;

    /// D285: a lost neighbour keeps its backups for ten seconds, one that is back has its present ones.
    #[test]
    fn backups_outlive_their_neighbour() {
        let hop = |port| NextHop { port: PortId(port), address: Ipv6Addr::LOCALHOST };
        let prefix = Prefix::new(Ipv6Addr::UNSPECIFIED, 0).expect("a prefix");
        let by = |port| vec![BackupRoute { prefix, next_hop: hop(port), segments: Vec::new() }];
        let at = |s: u64| Instant::from_ns(s * NS_PER_S);
        let mut lingering = Lingering::default();
        let mut shown = Backups::from([(hop(1), by(2)), (hop(2), by(1))]);
        let mut compute = |now, computed: Backups, lingering: &mut Lingering| {
            let mut present = computed;
            lingering.keep(now, &shown, &mut present);
            shown.clone_from(&present);
            present
        };
        let of_two = || Backups::from([(hop(2), by(3))]);
        let both = Backups::from([(hop(1), by(2)), (hop(2), by(3))]);
        assert_eq!(compute(at(5), of_two(), &mut lingering), both);
        assert_eq!(lingering.next_deadline(), Some(at(15)));
        assert_eq!(compute(at(14), of_two(), &mut lingering), both);
        let back = Backups::from([(hop(1), by(3)), (hop(2), by(3))]);
        assert_eq!(compute(at(14), back.clone(), &mut lingering), back);
        assert_eq!(lingering.next_deadline(), None);
        assert_eq!(compute(at(20), of_two(), &mut lingering), back, "its time begins anew");
        assert_eq!(compute(at(30), of_two(), &mut lingering), of_two());
        assert_eq!(lingering.next_deadline(), None);
    }
}
