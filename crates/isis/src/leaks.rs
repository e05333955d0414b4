//! What a system at both levels announces of each in the other (RFC 5302, RFC 5308, RFC 9352; D263): of level 1 all in
//! level 2, of level 2 what is wanted in level 1; and whether it leads out of its area.
//!
//! ```text
//!   level 2   own, level 1 up │ routes │
//!             ▲               │        ▼ within `leak_down`, with the up/down bit
//!   level 1   │ routes but    │  own, level 2 down, attached bit
//!             │ those that came down
//! ```

use crate::config::Config;
use crate::database::Database;
use crate::id::{LspId, NodeId};
use crate::pdu::areas_of;
use crate::shortest_paths::{Route, RouteKind, ShortestPaths};
use crate::tlv::{EndSid, GREATEST_PATH_METRIC, Leak, Locator, Reachability};
use srdma_wire::{Instant, Prefix};
use std::collections::{BTreeMap, BTreeSet};

/// What one level announces of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaks {
    pub(crate) prefixes: Vec<Reachability>,
    /// Those of the prefixes that are locators, with their SIDs.
    pub(crate) locators: Vec<Locator>,
}

impl Leaks {
    /// What level 2 announces of level 1, whose paths are `one`.
    pub(crate) fn up(config: &Config, database: &Database, one: &ShortestPaths, now: Instant) -> Self {
        Leaks::of(config, database, one, Leak::Up, |_, route| route.kind == RouteKind::Up, now)
    }

    /// What level 1, whose paths are `one`, announces of level 2. Routes of level 1 that have not come down are
    /// preferred (RFC 5308 section 5), and are no routes of level 2.
    pub(crate) fn down(
        config: &Config,
        database: &Database,
        one: &ShortestPaths,
        two: &ShortestPaths,
        now: Instant,
    ) -> Self {
        let is_wanted = |prefix: &Prefix, _: &Route| {
            let is_inside =
                |outer: &Prefix| outer.prefix_len() <= prefix.prefix_len() && outer.contains(prefix.address());
            let is_of_one = one.prefixes.get(prefix).is_some_and(|route| route.kind == RouteKind::Up);
            !is_of_one && config.leak_down.iter().any(is_inside)
        };
        Leaks::of(config, database, two, Leak::Down, is_wanted, now)
    }

    fn of(
        config: &Config,
        database: &Database,
        paths: &ShortestPaths,
        leak: Leak,
        is_wanted: impl Fn(&Prefix, &Route) -> bool,
        now: Instant,
    ) -> Self {
        let own: BTreeSet<Prefix> = own_prefixes(config).collect();
        let wanted = paths.prefixes.iter().filter(|(prefix, route)| !own.contains(*prefix) && is_wanted(prefix, route));
        let prefixes: Vec<Reachability> = wanted
            .filter_map(|(prefix, route)| {
                let metric = u32::try_from(route.distance).ok().filter(|metric| *metric <= GREATEST_PATH_METRIC)?;
                Some(Reachability { metric, leak, is_external: route.is_external, prefix: *prefix })
            })
            .collect();
        let metrics: BTreeMap<Prefix, u32> =
            prefixes.iter().map(|reachable| (reachable.prefix, reachable.metric)).collect();
        let mut sids: BTreeMap<Prefix, Vec<EndSid>> = BTreeMap::new();
        for (id, lsp) in database.valid(now).filter(|(id, _)| id.node.pseudonode == 0) {
            let Some(at) = paths.nodes.get(&id.node).filter(|_| id.node.system != config.system) else { continue };
            for locator in Locator::of_topology(lsp.tlvs(), config.topology) {
                let metric = metrics.get(&locator.prefix).copied();
                if metric.map(u64::from) == Some(at.distance + u64::from(locator.metric)) {
                    sids.entry(locator.prefix).or_default().extend(locator.sids);
                }
            }
        }
        let locators = sids.into_iter().filter_map(|(prefix, sids)| {
            let (topology, metric) = (config.topology, *metrics.get(&prefix)?);
            Some(Locator { topology, metric, leak, algorithm: 0, prefix, sids })
        });
        Leaks { locators: locators.collect(), prefixes }
    }
}

/// The prefixes and locators of a system itself.
pub(crate) fn own_prefixes(config: &Config) -> impl Iterator<Item = Prefix> {
    let locators = config.locators.iter().map(|locator| locator.prefix);
    config.prefixes.iter().map(|reachable| reachable.prefix).chain(locators)
}

/// Whether level 2 leads to a system of another area (ISO 10589 section 7.2.9.2: the system is attached).
pub(crate) fn is_attached(config: &Config, database: &Database, two: &ShortestPaths, now: Instant) -> bool {
    let is_elsewhere = |node: &NodeId| {
        let first = database.get(LspId { node: *node, fragment: 0 });
        first.filter(|stored| stored.lifetime_s(now) > 0).is_some_and(|stored| {
            let areas: Vec<Vec<u8>> = areas_of(stored.lsp().tlvs());
            !areas.is_empty() && !areas.iter().any(|area| config.areas.contains(area))
        })
    };
    two.nodes.keys().any(is_elsewhere)
}
