//! Failures: links that are cut and joined again, and routes that follow some time later.

use super::build::{route, routes};
use super::run::{Run, RunError};
use super::scenario::FabricScenario;
use srdma_dataplane::{Command, TableId};
use srdma_fabric::{LinkId, NextHops, SwitchId, Topology};
use srdma_wire::Prefix;
use srdma_wire::units::NS_PER_US;
use std::collections::BTreeMap;

/// Action happens to links, in the order of time.
#[derive(Debug)]
pub(super) struct FailureSchedule {
    coming: std::vec::IntoIter<Change>,
    /// For each link how many failures it has now.
    failures: Vec<u32>,
    /// Action routing goes by since it converged last.
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
    /// Links carry nothing from now on.
    Fail,
    /// They do again.
    Repair,
    /// Routing has found out what works and what does not.
    Converge,
}

impl FailureSchedule {
    /// Action a scenario says.
    pub(super) fn new(scenario: &FabricScenario) -> Self {
        let reconvergence_ns = scenario.switches.reconvergence_us.get() * NS_PER_US;
        let mut coming = Vec::new();
        for failure in &scenario.failures {
            let until = failure.until_ns.map(|until_ns| (until_ns, Action::Repair));
            for (at_ns, what) in [(failure.at_ns, Action::Fail)].into_iter().chain(until) {
                coming.push(Change { at_ns, what, links: failure.links.clone() });
                coming.push(Change { at_ns: at_ns + reconvergence_ns, what: Action::Converge, links: Vec::new() });
            }
        }
        coming.sort();
        FailureSchedule {
            coming: coming.into_iter(),
            failures: vec![0; scenario.topology.links().len()],
            routing: None,
        }
    }

    /// Lets happen what comes next, and says what it is.
    pub(super) fn take(&mut self) -> Option<(Action, Vec<LinkId>)> {
        let Change { what, links, .. } = self.coming.next()?;
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

    /// Whether a link carries nothing now.
    pub(super) fn is_cut(&self, link: LinkId) -> bool {
        self.failures[link.index()] > 0
    }

    /// A fabric's shortest paths along what works; `None` where hosts are cut off from each other.
    pub(super) fn working(&self, topology: &Topology) -> Option<NextHops> {
        let cut: Vec<LinkId> = topology.link_ids().filter(|link| self.is_cut(*link)).collect();
        Some(NextHops::new(&topology.clone().without(&cut).ok()?))
    }

    /// When the next one is, in nanoseconds.
    pub(super) fn next_ns(&self) -> u64 {
        self.coming.as_slice().first().map_or(u64::MAX, |turn| turn.at_ns)
    }
}

impl Run<'_> {
    /// Does what happens to links next.
    pub(super) fn apply_failure(&mut self) -> Result<(), RunError> {
        match self.failure_schedule.take() {
            None => {}
            Some((Action::Converge, _)) => return self.converge(),
            Some((Action::Fail | Action::Repair, links)) => {
                for link in links {
                    self.fabric.cut(&self.scenario.topology, link, self.failure_schedule.is_cut(link));
                }
            }
        }
        Ok(())
    }

    /// Gives the switches routes along what works.
    fn converge(&mut self) -> Result<(), RunError> {
        let topology = &self.scenario.topology;
        // Where hosts are cut off from each other, routing leaves everything as it is.
        let Some(after) = self.failure_schedule.working(topology) else { return Ok(()) };
        let before = self.failure_schedule.routing.replace(after);
        let before = before.as_ref().unwrap_or(&self.next_hops);
        let Some(after) = &self.failure_schedule.routing else { return Ok(()) };
        for switch in topology.switch_ids() {
            for command in changes(topology, switch, before, after) {
                self.fabric.with_switch(switch, |node| node.control(command)).transpose()?;
            }
        }
        Ok(())
    }
}

/// Action a switch is told when its shortest paths change.
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
