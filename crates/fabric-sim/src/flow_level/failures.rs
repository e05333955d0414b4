//! What fails at flow level: pipes are shut that lead over cut links, until somebody lays them elsewhere.
//!
//! What had left its source arrives all the same; what had not goes on where the pipe is laid next. So nothing is lost,
//! and no time passes until a loss is noticed: only until the failure is.

use super::ways::ways;
use super::wire::Delay;
use super::{Event, FluidRun, NS_PER_US, PS_PER_NS, PipeState, positions};
use crate::failing::What;
use crate::max_min::PipeId;
use crate::route::Leg;
use crate::scenario::Paths;

/// Probes that a path must leave unanswered before its NIC takes it for broken (D85).
const PROBES: u64 = 3;

impl FluidRun<'_> {
    /// Does what happens to links next.
    pub(super) fn turn(&mut self) {
        match self.turns.take() {
            None => {}
            Some((What::Fails, _)) => self.fail(),
            // Everybody is where he was, unless he went elsewhere.
            Some((What::Works, _)) => self.lay_if(|run, pipe| Some(run.states[pipe].way)),
            Some((What::Converges, _)) if self.variant.paths == Paths::Ecmp => self.converge(),
            // Programs say where to go; routes do not matter to them.
            Some((What::Converges, _)) => {}
        }
    }

    fn fail(&mut self) {
        for pipe in 0..self.states.len() {
            let state = &self.states[pipe];
            if self.is_cut(&state.ways[state.way]) {
                self.pipes.shut(self.now_ps, PipeId(pipe as u32));
            }
        }
        if self.variant.steering {
            let wait_ps = PROBES * self.variant.probe_interval_us.get() * NS_PER_US * PS_PER_NS;
            let there_and_back = |state: &PipeState| 2 * state.delay.ps(self.wire.ack_octets());
            let longest_ps = self.states.iter().map(there_and_back).max().unwrap_or(0);
            self.plan(self.now_ps + wait_ps + longest_ps, Event::Noticed);
        }
    }

    /// NICs leave paths that are broken for others that are not.
    pub(super) fn noticed(&mut self) {
        self.lay_if(|run, pipe| run.states[pipe].ways.iter().position(|way| !run.is_cut(way)));
    }

    /// Switches go by what works: every queue pair may get other links.
    fn converge(&mut self) {
        let Some(next_hops) = self.turns.working(&self.scenario.topology) else { return };
        let Ok(ways) = ways(self.scenario, self.variant, &next_hops, self.seed, &self.jobs.channels) else { return };
        for (pipe, ways) in ways.into_iter().enumerate() {
            if self.states[pipe].ways != ways {
                self.lay(pipe, ways, 0);
            }
        }
    }

    /// Lays each pipe that is shut along the way that is said, if that works.
    fn lay_if(&mut self, way: impl Fn(&Self, usize) -> Option<usize>) {
        for pipe in 0..self.states.len() {
            let way = way(self, pipe).filter(|way| !self.is_cut(&self.states[pipe].ways[*way]));
            if let Some(way) = way.filter(|_| self.pipes.is_shut(PipeId(pipe as u32))) {
                let ways = std::mem::take(&mut self.states[pipe].ways);
                self.lay(pipe, ways, way);
            }
        }
    }

    fn lay(&mut self, pipe: usize, ways: Vec<Vec<Leg>>, way: usize) {
        self.count(PipeId(pipe as u32));
        let state = &mut self.states[pipe];
        state.delay = Delay::along(&self.scenario.topology, &ways[way]);
        self.pipes.lay(self.now_ps, PipeId(pipe as u32), &positions(&ways[way]));
        (state.ways, state.way) = (ways, way);
        if self.is_cut(&self.states[pipe].ways[way]) {
            self.pipes.shut(self.now_ps, PipeId(pipe as u32));
        }
    }

    fn is_cut(&self, legs: &[Leg]) -> bool {
        legs.iter().any(|leg| self.turns.is_cut(leg.link))
    }
}
