//! HPCC++: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 4 and algorithm 1;
//! draft-miao-ccwg-hpcc. A window computed from the load of links in IOAM traces.
//!
//! ```text
//!           trace, notice           no trace for a while
//!   Fresh ────────────────► Steered ────────────────────► Recovering ──┐ no trace for
//!     ▲                        ▲        trace, notice         │  ▲     │ another while
//!     │                        └──────────────────────────────┤  └─────┘
//!     └───────────────────────────────────────────────────────┘ as large as it can be
//! ```
//!
//! U is the utilisation of the fullest link: the octets that it has sent since the previous trace, and those in its
//! queue, as parts of its capacity. When U reaches η, or stayed below η for `max_stage` round trips, the window is
//! scaled by η / U; otherwise it grows by a small step. Both start from a reference window, which is replaced only once
//! in a round trip, so that traces of the same congestion do not count twice.
//!
//! Differences from the paper, because traces come by Fast CNP and not with every ACK:
//!
//! * A trace does not identify its packet. The reference window is replaced when a round trip has passed since
//!   the last time, queues that the trace has met included.
//! * Links are identified by node and egress interface, not by their place in the trace: a switch's Fast CNP has only
//!   the way up to it.
//! * The trace in a switch's Fast CNP does not have the congested link itself. Its notice counts as a utilisation of
//!   at least `notified_utilisation`; so does a CNP.
//! * When no trace comes, the window grows by a step for each [`Recovery::interval_ns`].

mod links;
mod parameters;
#[cfg(test)]
mod tests;

pub use parameters::{HpccParameters, Recovery};

use super::{Event, Origin, RateControl, RateError};
use links::{Links, Measured};
use srdma_wire::Instant;
use srdma_wire::ioam::Trace;

/// State of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not limited: the window is at its maximum.
    Fresh,
    /// By traces.
    Steered,
    /// No trace has come for a while: the window grows by itself.
    Recovering,
}

/// Input of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Input {
    /// A trace with the utilisation of the most loaded link, and its interval.
    Sample { utilisation: f64, over_ns: u64, queueing_ns: u64 },
    /// Congestion at a link that is in no trace.
    Notice,
    /// A rate that the congested switch computed, in bits per second (D240).
    Rate(u64),
    /// No trace for another while.
    Quiet,
}

/// HPCC++ of one sender.
#[derive(Clone, Debug)]
pub struct Hpcc {
    parameters: HpccParameters,
    state: State,
    links: Links,
    /// U.
    utilisation: f64,
    /// W, in octets on the link.
    window: f64,
    /// W_c.
    reference: f64,
    /// incStage.
    stage: u32,
    reference_due: Instant,
    quiet_at: Instant,
}

impl Hpcc {
    /// A sender that has seen no trace: a window of line rate times round trip.
    ///
    /// # Errors
    ///
    /// The first parameter that is out of its range.
    pub fn new(parameters: HpccParameters) -> Result<Self, RateError> {
        parameters.validate()?;
        let window = parameters.max_window_octets();
        Ok(Hpcc {
            state: State::Fresh,
            links: Links::default(),
            utilisation: 1.0,
            window,
            reference: window,
            stage: 0,
            reference_due: Instant::ZERO,
            quiet_at: Instant::ZERO,
            parameters,
        })
    }

    /// U as of the last call.
    pub fn utilisation(&self) -> f64 {
        self.utilisation
    }

    /// The window as of the last call, in octets on the link, with its fraction.
    pub fn window(&self) -> f64 {
        self.window
    }

    fn handle(&mut self, now: Instant, input: Input) {
        match (self.state, input) {
            (
                State::Fresh | State::Steered | State::Recovering,
                Input::Sample { utilisation, over_ns, queueing_ns },
            ) => {
                // The average over a round trip.
                let round_trip_ns = self.parameters.base_rtt_ns;
                let part = over_ns.min(round_trip_ns) as f64 / round_trip_ns as f64;
                self.utilisation = (1.0 - part) * self.utilisation + part * utilisation;
                self.steer(now, queueing_ns);
            }
            (State::Fresh | State::Steered | State::Recovering, Input::Notice) => {
                self.utilisation = self.utilisation.max(self.parameters.notified_utilisation);
                self.steer(now, 0);
            }
            (State::Fresh | State::Steered | State::Recovering, Input::Rate(bits_per_s)) => {
                self.limit(now, bits_per_s);
            }
            // There is nothing to recover.
            (State::Fresh, Input::Quiet) => {}
            (State::Steered | State::Recovering, Input::Quiet) => self.recover(),
        }
    }

    /// ComputeWind of algorithm 1.
    fn steer(&mut self, now: Instant, queueing_ns: u64) {
        let is_scaled = self.utilisation >= self.parameters.eta || self.stage >= self.parameters.max_stage;
        let step = self.parameters.additive_increase_octets as f64;
        let scale = if is_scaled { self.parameters.eta / self.utilisation } else { 1.0 };
        self.window = self.within_bounds(self.reference * scale + step);
        if now >= self.reference_due {
            self.reference = self.window;
            self.stage = if is_scaled { 0 } else { self.stage + 1 };
            self.reference_due = now.after_ns(self.parameters.base_rtt_ns.saturating_add(queueing_ns));
        }
        self.state = State::Steered;
    }

    /// A window beyond this rate is reduced to it, and is the reference of the next traces.
    fn limit(&mut self, now: Instant, bits_per_s: u64) {
        let round_trip_ns = self.parameters.base_rtt_ns;
        let window = self.within_bounds(bits_per_s as f64 * round_trip_ns as f64 / 8e9);
        if window < self.window {
            (self.window, self.reference, self.stage) = (window, window, 0);
            self.reference_due = now.after_ns(round_trip_ns);
            self.state = State::Steered;
        }
    }

    fn recover(&mut self) {
        let Some(recovery) = &self.parameters.recovery else { return };
        self.window = self.within_bounds(self.window + recovery.step_octets as f64);
        self.reference = self.window;
        self.stage = 0;
        self.quiet_at = self.quiet_at.after_ns(recovery.interval_ns);
        self.state = if self.is_at_most() { State::Fresh } else { State::Recovering };
    }

    fn within_bounds(&self, window: f64) -> f64 {
        window.min(self.parameters.max_window_octets()).max(self.parameters.min_window_octets())
    }

    fn is_at_most(&self) -> bool {
        self.window >= self.parameters.max_window_octets()
    }

    /// Does what the timer would have done up to `now`.
    fn catch_up(&mut self, now: Instant) {
        while self.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.handle(self.quiet_at, Input::Quiet);
        }
    }

    fn on_trace(&mut self, now: Instant, trace: &Trace<'_>) -> Measured {
        let measured = if trace.header.namespace_id() == self.parameters.namespace_id {
            self.links.measure(now, trace, self.parameters.base_rtt_ns)
        } else {
            Measured::default()
        };
        if let Some((utilisation, over_ns)) = measured.fullest {
            self.handle(now, Input::Sample { utilisation, over_ns, queueing_ns: measured.queueing_ns });
        }
        measured
    }

    fn on_feedback(&mut self, now: Instant) {
        if let Some(recovery) = &self.parameters.recovery {
            self.quiet_at = now.after_ns(recovery.interval_ns);
        }
    }
}

impl RateControl for Hpcc {
    fn on(&mut self, now: Instant, event: Event<'_>) {
        self.catch_up(now);
        match event {
            Event::FastCnp { origin: Origin::Switch(_), trace, rate_bits_per_s: Some(bits_per_s) } => {
                trace.map(|trace| self.on_trace(now, &trace));
                self.handle(now, Input::Rate(bits_per_s));
                self.on_feedback(now);
            }
            Event::FastCnp { origin: Origin::Receiver, trace: Some(trace), .. } => {
                self.on_trace(now, &trace);
                self.on_feedback(now);
            }
            Event::FastCnp { origin: Origin::Switch(_), trace: Some(trace), rate_bits_per_s: None } => {
                self.on_trace(now, &trace);
                self.handle(now, Input::Notice);
                self.on_feedback(now);
            }
            Event::Cnp | Event::FastCnp { origin: Origin::Switch(_) | Origin::Receiver, trace: None, .. } => {
                self.handle(now, Input::Notice);
                self.on_feedback(now);
            }
            Event::Sent { .. }
            | Event::Acknowledged { .. }
            | Event::RoundTrip { .. }
            | Event::Incast { .. }
            | Event::Lost
            | Event::Timer => {}
        }
    }

    fn rate_bits_per_s(&self) -> Option<u64> {
        // R = W / T, at least the least rate and below the line rate.
        let bits_per_s = self.window * 8e9 / self.parameters.base_rtt_ns as f64;
        (!self.is_at_most()).then_some((bits_per_s as u64).max(self.parameters.min_rate_bits_per_s))
    }

    fn window_octets(&self) -> Option<u64> {
        Some(self.window as u64)
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Fresh => None,
            State::Steered | State::Recovering => {
                self.parameters.recovery.as_ref().filter(|_| !self.is_at_most()).map(|_| self.quiet_at)
            }
        }
    }
}
