//! Failures at flow level: flows over failed links are blocked until they are rerouted.
//!
//! Octets that have left their source arrive; the others continue on the next path of the flow. So nothing is lost,
//! and no time passes until a loss is noticed: only until the failure is.

use super::paths::paths;
use super::wire::Delay;
use super::{Event, FlowLevelRun, FlowState, NS_PER_US, PS_PER_NS, positions};
use crate::failure_schedule::Action;
use crate::max_min::FlowId;
use crate::route::Leg;
use crate::scenario::Paths;

/// Probes that a path must leave unanswered before its NIC takes it for broken (D85).
const PROBES: u64 = 3;

impl FlowLevelRun<'_> {
    /// Does what happens to links next.
    pub(super) fn turn(&mut self) {
        match self.failure_schedule.take() {
            None => {}
            Some((Action::Fail, _)) => self.fail(),
            // Flows resume on the path that they have, original or rerouted.
            Some((Action::Repair, _)) => self.reroute_if(|run, flow| Some(run.states[flow].path)),
            Some((Action::Converge, _)) if self.variant.paths == Paths::Ecmp => self.converge(),
            // Programs determine paths; routes do not matter to them.
            Some((Action::Converge, _)) => {}
        }
    }

    fn fail(&mut self) {
        for flow in 0..self.states.len() {
            let state = &self.states[flow];
            if self.is_down(&state.paths[state.path]) {
                self.flows.block(self.now_ps, FlowId(flow as u32));
            }
        }
        if self.variant.steering {
            let wait_ps = PROBES * self.variant.probe_interval_us.get() * NS_PER_US * PS_PER_NS;
            let there_and_back = |state: &FlowState| 2 * state.delay.ps(self.wire.ack_octets());
            let longest_ps = self.states.iter().map(there_and_back).max().unwrap_or(0);
            self.plan(self.now_ps + wait_ps + longest_ps, Event::FailureDetected);
        }
    }

    /// NICs leave paths that are broken for others that are not.
    pub(super) fn failure_detected(&mut self) {
        self.reroute_if(|run, flow| run.states[flow].paths.iter().position(|path| !run.is_down(path)));
    }

    /// Switches go by what works: every queue pair may get other links.
    fn converge(&mut self) {
        let Some(next_hops) = self.failure_schedule.working(&self.scenario.topology) else { return };
        let Ok(paths) = paths(self.scenario, self.variant, &next_hops, self.seed, &self.jobs.channels) else { return };
        for (flow, paths) in paths.into_iter().enumerate() {
            if self.states[flow].paths != paths {
                self.reroute(flow, paths, 0);
            }
        }
    }

    /// Reroutes each blocked flow along the chosen path, if that path works.
    fn reroute_if(&mut self, path: impl Fn(&Self, usize) -> Option<usize>) {
        for flow in 0..self.states.len() {
            let path = path(self, flow).filter(|path| !self.is_down(&self.states[flow].paths[*path]));
            if let Some(path) = path.filter(|_| self.flows.is_blocked(FlowId(flow as u32))) {
                let paths = std::mem::take(&mut self.states[flow].paths);
                self.reroute(flow, paths, path);
            }
        }
    }

    fn reroute(&mut self, flow: usize, paths: Vec<Vec<Leg>>, path: usize) {
        self.count(FlowId(flow as u32));
        let state = &mut self.states[flow];
        state.delay = Delay::along(&self.scenario.topology, &paths[path]);
        self.flows.reroute(self.now_ps, FlowId(flow as u32), &positions(&paths[path]));
        (state.paths, state.path) = (paths, path);
        if self.is_down(&self.states[flow].paths[path]) {
            self.flows.block(self.now_ps, FlowId(flow as u32));
        }
    }

    fn is_down(&self, legs: &[Leg]) -> bool {
        legs.iter().any(|leg| self.failure_schedule.is_down(leg.link))
    }
}
