//! Failures: links that are cut and joined again, and routes that follow some time later.

use super::build::{route, routes};
use super::run::{Run, RunError};
use super::scenario::FabricScenario;
use srdma_dataplane::{Command, TableId};
use srdma_fabric::{LinkId, NextHops, SwitchId, Topology};
use srdma_wire::Prefix;
use srdma_wire::units::NS_PER_US;
use std::collections::BTreeMap;

/// What happens to links, in the order of time.
#[derive(Debug)]
pub(super) struct Turns {
    coming: std::vec::IntoIter<Turn>,
    /// For each link how many failures it has now.
    failures: Vec<u32>,
    /// What routing goes by since it converged last.
    routing: Option<NextHops>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    at_ns: u64,
    what: What,
    links: Vec<LinkId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// Links carry nothing from now on.
    Fails,
    /// They do again.
    Works,
    /// Routing has found out what works and what does not.
    Converges,
}

impl Turns {
    /// What a scenario says.
    pub(super) fn new(scenario: &FabricScenario) -> Self {
        let reconvergence_ns = scenario.switches.reconvergence_us.get() * NS_PER_US;
        let mut coming = Vec::new();
        for failure in &scenario.failures {
            let until = failure.until_ns.map(|until_ns| (until_ns, What::Works));
            for (at_ns, what) in [(failure.at_ns, What::Fails)].into_iter().chain(until) {
                coming.push(Turn { at_ns, what, links: failure.links.clone() });
                coming.push(Turn { at_ns: at_ns + reconvergence_ns, what: What::Converges, links: Vec::new() });
            }
        }
        coming.sort();
        Turns { coming: coming.into_iter(), failures: vec![0; scenario.topology.links().len()], routing: None }
    }

    /// Lets happen what comes next, and says what it is.
    pub(super) fn take(&mut self) -> Option<(What, Vec<LinkId>)> {
        let Turn { what, links, .. } = self.coming.next()?;
        let change = match what {
            What::Fails => 1,
            What::Works => -1,
            What::Converges => 0,
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
    pub(super) fn take_turn(&mut self) -> Result<(), RunError> {
        match self.turns.take() {
            None => {}
            Some((What::Converges, _)) => return self.converge(),
            Some((What::Fails | What::Works, links)) => {
                for link in links {
                    self.fabric.cut(&self.scenario.topology, link, self.turns.is_cut(link));
                }
            }
        }
        Ok(())
    }

    /// Gives the switches routes along what works.
    fn converge(&mut self) -> Result<(), RunError> {
        let topology = &self.scenario.topology;
        // Where hosts are cut off from each other, routing leaves everything as it is.
        let Some(after) = self.turns.working(topology) else { return Ok(()) };
        let before = self.turns.routing.replace(after);
        let before = before.as_ref().unwrap_or(&self.next_hops);
        let Some(after) = &self.turns.routing else { return Ok(()) };
        for switch in topology.switch_ids() {
            for command in changes(topology, switch, before, after) {
                self.fabric.with_switch(switch, |node| node.control(command)).transpose()?;
            }
        }
        Ok(())
    }
}

/// What a switch is told when its shortest paths change.
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
