//! Ways around neighbours (TI-LFA, D265, D266), as backups of the node.

use super::Plan;
use super::circuit::Circuit;
use super::learnt::Known;
use srdma_dataplane::{BackupRoute, NextHop};
use srdma_isis::{Level, NodeId, Repair, Speaker};
use srdma_wire::units::NS_PER_S;
use srdma_wire::{Instant, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Time for which backups outlive their neighbour, in nanoseconds: routes are withdrawn later than they are computed.
/// BFD sessions, whose state leads to backups, stay as long (D110).
const LINGER_NS: u64 = 10 * NS_PER_S;

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

/// The backups of each neighbour, for the routes that lead to it alone.
pub(super) fn backups(known: &Known, speaker: &Speaker, plan: &Plan, circuits: &[Circuit], now: Instant) -> Backups {
    let own: BTreeSet<Prefix> = plan.settings.system.prefixes.iter().map(|reachable| reachable.prefix).collect();
    let mut backups = Backups::new();
    for level in speaker.levels().as_slice() {
        for (neighbour, repairs) in speaker.repairs(*level, now) {
            let is_used = |prefix: &Prefix| {
                !own.contains(prefix) && known.paths.prefixes.get(prefix).is_some_and(|route| route.level == *level)
            };
            let route = |(prefix, repair): (Prefix, Repair)| {
                let next_hop = neighbour_by(speaker, circuits, *level, repair.first)?;
                Some(BackupRoute { prefix, next_hop, segments: repair.segments })
            };
            let used = repairs.into_iter().filter(|(prefix, _)| is_used(prefix));
            let routes: Vec<BackupRoute> = used.filter_map(route).collect();
            if let Some(next_hop) = neighbour_by(speaker, circuits, *level, neighbour).filter(|_| !routes.is_empty()) {
                backups.entry(next_hop).or_default().extend(routes);
            }
        }
    }
    backups
}

/// A neighbour by the cheapest circuit that leads there.
fn neighbour_by(speaker: &Speaker, circuits: &[Circuit], level: Level, neighbour: NodeId) -> Option<NextHop> {
    let there = speaker.circuits_to(level, neighbour.system);
    let found = there.filter_map(|(id, adjacency)| {
        let circuit = circuits.get(id.0)?;
        let address = adjacency.addresses.iter().copied().find(Ipv6Addr::is_unicast_link_local)?;
        Some((circuit.metric, NextHop { port: circuit.link.id, address }))
    });
    found.min_by_key(|(metric, _)| *metric).map(|(_, next_hop)| next_hop)
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
