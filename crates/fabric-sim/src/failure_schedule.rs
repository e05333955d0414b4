//! Failures and repairs of links, and the convergence of routes after them.

use super::build::{route, routes};
use super::engine::NEVER_NS;
use super::run::{Run, RunError};
use super::scenario::{FabricScenario, Variant};
use srdma_dataplane::{Command, TableId};
use srdma_fabric::{LinkId, NextHops, SwitchId, Topology};
use srdma_random::Stream;
use srdma_wire::Prefix;
use srdma_wire::units::NS_PER_US;
use std::collections::BTreeMap;

/// Failures, repairs and convergences of a run, in order of time.
#[derive(Debug)]
pub(super) struct FailureSchedule {
    arrivals: std::vec::IntoIter<Change>,
    /// Active failures of each link.
    failures: Vec<u32>,
    /// Next hops since the last convergence.
    routing: Option<NextHops>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at_ns: u64,
    what: Action,
    links: Vec<LinkId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    /// Links fail.
    Fail,
    /// Links are repaired.
    Repair,
    /// Routes change to the working links.
    Converge,
}

impl FailureSchedule {
    /// The schedule of a run: how long routes take depends on the variant and the seed.
    pub(super) fn new(scenario: &FabricScenario, variant: &Variant, seed: u64) -> Self {
        let mut random = Stream::new(seed, "reconvergence");
        let mut arrivals = Vec::new();
        for failure in &scenario.failures {
            let until = failure.until_ns.map(|until_ns| (until_ns, Action::Repair));
            for (at_ns, what) in [(failure.at_ns, Action::Fail)].into_iter().chain(until) {
                let reconvergence_ns = match &variant.reconvergence {
                    Some(reconvergence) => reconvergence.draw_ns(&mut random, failure.links.len()),
                    None => scenario.switches.reconvergence_us.get() * NS_PER_US,
                };
                arrivals.push(Change { at_ns, what, links: failure.links.clone() });
                arrivals.push(Change { at_ns: at_ns + reconvergence_ns, what: Action::Converge, links: Vec::new() });
            }
        }
        arrivals.sort();
        FailureSchedule {
            arrivals: arrivals.into_iter(),
            failures: vec![0; scenario.topology.links().len()],
            routing: None,
        }
    }

    /// Takes the next change and updates the counts of failures.
    pub(super) fn take(&mut self) -> Option<(Action, Vec<LinkId>)> {
        let Change { what, links, .. } = self.arrivals.next()?;
        let change = match what {
            Action::Fail => 1,
            Action::Repair => -1,
            Action::Converge => 0,
        };
        for link in &links {
            let failures = &mut self.failures[link.index()];
            *failures = failures.saturating_add_signed(change);
        }
        Some((what, links))
    }

    /// True if the link has failed.
    pub(super) fn is_down(&self, link: LinkId) -> bool {
        self.failures[link.index()] > 0
    }

    /// Shortest paths along working links; `None` if the fabric is partitioned.
    pub(super) fn working(&self, topology: &Topology) -> Option<NextHops> {
        let failed: Vec<LinkId> = topology.link_ids().filter(|link| self.is_down(*link)).collect();
        Some(NextHops::new(&topology.clone().without(&failed).ok()?))
    }

    /// Time of the next change, in nanoseconds; [`NEVER_NS`] after the last.
    pub(super) fn next_ns(&self) -> u64 {
        self.arrivals.as_slice().first().map_or(NEVER_NS, |turn| turn.at_ns)
    }
}

impl Run<'_> {
    /// Applies the next change.
    pub(super) fn apply_failure(&mut self) -> Result<(), RunError> {
        match self.failure_schedule.take() {
            None => {}
            Some((Action::Converge, _)) => return self.converge(),
            Some((Action::Fail | Action::Repair, links)) => {
                for link in links {
                    self.fabric.set_link_down(&self.scenario.topology, link, self.failure_schedule.is_down(link));
                }
            }
        }
        Ok(())
    }

    /// Installs routes along the working links.
    fn converge(&mut self) -> Result<(), RunError> {
        let topology = &self.scenario.topology;
        // Routing does not change while the fabric is partitioned.
        let Some(after) = self.failure_schedule.working(topology) else { return Ok(()) };
        let before = self.failure_schedule.routing.replace(after);
        let before = before.as_ref().unwrap_or(&self.next_hops);
        let Some(after) = &self.failure_schedule.routing else { return Ok(()) };
        for switch in topology.switch_ids() {
            for command in changes(topology, switch, before, after) {
                self.fabric.with_switch(switch, |node| node.apply(command)).transpose()?;
            }
        }
        Ok(())
    }
}

/// Commands that update the routes of a switch.
fn changes(topology: &Topology, switch: SwitchId, before: &NextHops, after: &NextHops) -> Vec<Command> {
    let table = TableId(0);
    let before: BTreeMap<Prefix, Vec<u16>> = routes(topology, before, switch).into_iter().collect();
    let after: BTreeMap<Prefix, Vec<u16>> = routes(topology, after, switch).into_iter().collect();
    let is_gone = |prefix: &&Prefix| !after.contains_key(prefix);
    let gone = before.keys().filter(is_gone).map(|prefix| Command::RemoveRoute { table, prefix: *prefix });
    let is_new = |(prefix, ports): &(&Prefix, &Vec<u16>)| before.get(prefix) != Some(ports);
    let new = after.iter().filter(is_new);
    gone.chain(new.map(|(prefix, ports)| route(topology, switch, *prefix, ports))).collect()
}
