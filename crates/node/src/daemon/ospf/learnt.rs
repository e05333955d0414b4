//! Results of what was learnt: routes, and the destinations of notifications.

use super::Plan;
use super::circuit::Circuit;
use crate::daemon::isis::{Learnt, is_silent};
use srdma_io::netlink::KernelNextHop;
use srdma_isis::{LearnedNode, NotificationSids};
use srdma_ospf::{Paths, RouterId, Speaker};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};

/// Results of the last change of the database.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Known {
    /// Announcements of all routers, this one among them.
    pub(in crate::daemon) nodes: BTreeMap<RouterId, LearnedNode>,
    pub(in crate::daemon) paths: Paths,
}

impl Known {
    /// Content of a speaker's database.
    pub(super) fn of(speaker: &Speaker) -> Self {
        Known { nodes: speaker.learned(), paths: speaker.paths() }
    }

    /// Host name of a router, if its LSA has one.
    pub(in crate::daemon) fn hostname(&self, router: RouterId) -> Option<&str> {
        self.nodes.get(&router)?.hostname.as_deref()
    }
}

/// Results of the present content of the database.
pub(super) fn learnt(known: &Known, speaker: &Speaker, plan: &Plan, circuits: &[Circuit]) -> Learnt {
    let own = plan.settings.router.router;
    let behaviors = plan.settings.behaviors;
    // The LSAs of a router that is gone stay in the database until their time is over.
    let is_there = |router: &RouterId| *router != own && known.paths.router(*router).is_some();
    let nodes = || known.nodes.iter().filter(|(router, _)| is_there(router));
    let silent = nodes().filter(|(_, node)| is_silent(node, behaviors));
    let name = |(router, node): (&RouterId, &LearnedNode)| node.hostname.clone().unwrap_or_else(|| router.to_string());
    Learnt {
        routes: routes(speaker, plan, circuits, &known.paths),
        sids: NotificationSids::new(nodes().map(|(_, node)| node), behaviors),
        silent: silent.map(name).collect(),
        ..Learnt::default()
    }
}

/// A prefix that this router announces itself is no route of its own.
fn routes(speaker: &Speaker, plan: &Plan, circuits: &[Circuit], paths: &Paths) -> BTreeMap<Prefix, Vec<KernelNextHop>> {
    let router = &plan.settings.router;
    let of_prefixes = router.prefixes.iter().map(|entry| entry.prefix);
    let own: BTreeSet<Prefix> = of_prefixes.chain(router.locators.iter().map(|locator| locator.prefix)).collect();
    let reached = paths.prefixes.iter().filter(|(prefix, _)| !own.contains(prefix));
    let routes = reached.map(|(prefix, reached)| {
        let hops = reached.first_hops.iter().flat_map(|hop| next_hops(speaker, circuits, *hop));
        (*prefix, hops.collect::<Vec<_>>())
    });
    routes.filter(|(_, hops)| !hops.is_empty()).collect()
}

/// The neighbour's address on each of the cheapest circuits that lead there.
fn next_hops(speaker: &Speaker, circuits: &[Circuit], neighbour: RouterId) -> Vec<KernelNextHop> {
    let there = || {
        let all = speaker.circuits_to(neighbour);
        all.filter_map(|(id, neighbour)| Some((circuits.get(id.0)?, neighbour)))
    };
    let least = there().map(|(circuit, _)| circuit.metric).min();
    there()
        .filter(|(circuit, _)| Some(circuit.metric) == least)
        .filter_map(|(circuit, neighbour)| {
            let (index, _) = circuit.end()?;
            Some(KernelNextHop { index, gateway: Some(neighbour.address) })
        })
        .collect()
}
