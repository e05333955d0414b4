//! Indexes of the routes of the kernel's layer, counted as routes come and go.

use super::ON_LINK;
use super::fixed::Fixed;
use srdma_dataplane::{RouteAction, TableId};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Counts over the routes of the kernel's layer.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// Next hops of the routes, and how many routes use each.
    pub(super) gateways: BTreeMap<(u16, Ipv6Addr), usize>,
    /// Number of routes of the main table with a prefix of each length.
    lengths: BTreeMap<u8, usize>,
}

impl Index {
    /// Sets or removes a route.
    pub(super) fn set_route(
        &mut self,
        routes: &mut BTreeMap<(TableId, Prefix), RouteAction>,
        key: (TableId, Prefix),
        action: Option<RouteAction>,
    ) {
        let is_there = action.is_some();
        for gateway in gateways(action.as_ref()) {
            *self.gateways.entry(gateway).or_default() += 1;
        }
        let before = match action {
            Some(action) => routes.insert(key, action),
            None => routes.remove(&key),
        };
        for gateway in gateways(before.as_ref()) {
            count_down(&mut self.gateways, &gateway);
        }
        if key.0 != TableId(0) {
            return;
        }
        match (before.is_some(), is_there) {
            (false, true) => *self.lengths.entry(key.1.prefix_len()).or_default() += 1,
            (true, false) => count_down(&mut self.lengths, &key.1.prefix_len()),
            (false, false) | (true, true) => {}
        }
    }

    /// The lengths of the main table's prefixes, the longest first.
    pub(super) fn lengths(&self, fixed: &Fixed) -> impl Iterator<Item = u8> {
        let fixed = fixed.prefixes.iter().filter(|(table, _)| *table == TableId(0));
        let lengths: BTreeSet<u8> =
            self.lengths.keys().copied().chain(fixed.map(|(_, prefix)| prefix.prefix_len())).collect();
        lengths.into_iter().rev()
    }
}

fn gateways(action: Option<&RouteAction>) -> impl Iterator<Item = (u16, Ipv6Addr)> {
    let next_hops = match action {
        Some(RouteAction::Via(next_hops)) => next_hops.as_slice(),
        Some(
            RouteAction::Encaps { .. }
            | RouteAction::Policy { .. }
            | RouteAction::Placed(_)
            | RouteAction::Blackhole
            | RouteAction::ToPeer,
        )
        | None => &[],
    };
    next_hops.iter().filter(|hop| hop.address != ON_LINK).map(|hop| (hop.port.0, hop.address))
}

fn count_down<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
