//! DCQCN, the sender's half: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section
//! 3.
//!
//! ```text
//!      CNP: cut                F increases
//!   ┌────────────► FastRecovery ─────────► AdditiveIncrease
//!   │                ▲    ▲   ▲ CNP: cut      │      │ more than F increases,
//!   │                └────┘   ├───────────────┘      ▼ by timer and by octets
//!   │                CNP: cut └──────────────── HyperIncrease
//!   │                                CNP: cut
//!   │ at line rate again, if it is then released
//! Unlimited ◄─────── FastRecovery, AdditiveIncrease, HyperIncrease
//! ```
//!
//! A rate that the congested switch notifies (D240) cuts as well, to that rate, and is the target.
//!
//! A cut stores the current rate as the target and reduces the current one by α/2. From then on, each expiry of a timer
//! and each so many octets sent are an *increase*: during the first F of either the current rate goes halfway to the
//! target; then the target is raised first, by a small step, and by a large one when both have counted more than F. α
//! grows with CNPs and decays without: [`AlphaUpdate`].
//!
//! DCQCN+ ([`IncastScale`], D284): CNPs tell how many flows of the receiver are congested, and how often each gets a
//! CNP; steps are divided by the number, and periods are as much longer as the one of CNPs is.
//!
//! The state follows from the two counts of increases. Timers are evaluated lazily, in their order, so that a queue
//! pair without packets to send needs no tick. If timers and another event are due in the same nanosecond, the timers
//! are first, α's before the increase.

mod parameters;
#[cfg(test)]
mod tests;

pub use parameters::{AlphaUpdate, DcqcnParameters, IncastScale, TargetUpdate};

use super::{Event, Origin, RateControl, RateError};
use srdma_wire::Instant;

/// Below this α no longer changes any rate by a bit per second, and counts as zero.
const ALPHA_IS_ZERO: f64 = 1e-12;

/// Rates this close to the target have reached it.
const CLOSE_BITS_PER_S: f64 = 1.0;

/// State of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No CNP has come yet: as fast as the port can.
    Unlimited,
    /// Back to where it was before the cut.
    FastRecovery,
    /// Beyond it, in small steps.
    AdditiveIncrease,
    /// In large steps.
    HyperIncrease,
}

/// Input of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Input {
    /// A CNP, of any kind.
    Cnp,
    /// A rate that the congested switch computed, in bits per second (D240).
    Rate(f64),
    /// α's period is over.
    AlphaTimer,
    /// The increase timer has run out.
    IncreaseTimer,
    /// So many octets have been sent.
    OctetsSent,
}

/// The sender's half of DCQCN.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    parameters: DcqcnParameters,
    state: State,
    alpha: f64,
    cnp_in_period: bool,
    target_bits_per_s: f64,
    current_bits_per_s: f64,
    /// Increases by timer, and by octets, since the last cut.
    timer_increases: u32,
    octet_increases: u32,
    octets_since: u64,
    alpha_due: Instant,
    increase_due: Instant,
    no_cut_before: Instant,
    /// Congested flows of the receiver, and the factor of its period of CNPs in thousandths; with DCQCN+.
    flows: u64,
    stretch_thousandths: u64,
}

impl Dcqcn {
    /// A sender that has not met congestion.
    ///
    /// # Errors
    ///
    /// The first parameter that is out of its range.
    pub fn new(parameters: DcqcnParameters) -> Result<Self, RateError> {
        parameters.validate()?;
        let line = parameters.line_rate_bits_per_s as f64;
        Ok(Dcqcn {
            state: State::Unlimited,
            alpha: parameters.initial_alpha,
            cnp_in_period: false,
            target_bits_per_s: line,
            current_bits_per_s: line,
            timer_increases: 0,
            octet_increases: 0,
            octets_since: 0,
            alpha_due: Instant::ZERO,
            increase_due: Instant::ZERO,
            no_cut_before: Instant::ZERO,
            flows: 1,
            stretch_thousandths: 1000,
            parameters,
        })
    }

    /// α as of the last call.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The target rate as of the last call, in bits per second.
    pub fn target_bits_per_s(&self) -> f64 {
        self.target_bits_per_s
    }

    /// The current rate as of the last call, in bits per second; the line rate when nothing limits it.
    pub fn current_bits_per_s(&self) -> f64 {
        self.current_bits_per_s
    }

    /// What the receiver tells counts from the CNP on that brings it (D284).
    fn on_incast(&mut self, flows: u16, period_ns: u64) {
        if let Some(scale) = self.parameters.incast {
            self.flows = u64::from(flows).max(1);
            self.stretch_thousandths = (period_ns.saturating_mul(1000) / scale.period_ns).clamp(1000, 1_000_000);
        }
    }

    fn alpha_interval_ns(&self) -> u64 {
        self.stretched(self.parameters.alpha_interval_ns)
    }

    fn increase_timer_ns(&self) -> u64 {
        self.stretched(self.parameters.increase_timer_ns)
    }

    fn stretched(&self, ns: u64) -> u64 {
        if self.stretch_thousandths == 1000 { ns } else { ns.saturating_mul(self.stretch_thousandths) / 1000 }
    }

    fn handle(&mut self, now: Instant, input: Input) {
        match (self.state, input) {
            (State::Unlimited | State::FastRecovery | State::AdditiveIncrease | State::HyperIncrease, Input::Cnp) => {
                self.on_cnp(now);
            }
            (
                State::Unlimited | State::FastRecovery | State::AdditiveIncrease | State::HyperIncrease,
                Input::Rate(bits_per_s),
            ) => self.on_rate(now, bits_per_s),
            // Nothing runs before the first cut.
            (State::Unlimited, Input::AlphaTimer | Input::IncreaseTimer | Input::OctetsSent) => {}
            (State::FastRecovery | State::AdditiveIncrease | State::HyperIncrease, Input::AlphaTimer) => {
                self.on_alpha_timer();
            }
            (State::FastRecovery | State::AdditiveIncrease | State::HyperIncrease, Input::IncreaseTimer) => {
                self.increase();
                self.timer_increases = self.timer_increases.saturating_add(1);
                self.increase_due = self.increase_due.after_ns(self.increase_timer_ns());
                self.state = self.after_increase();
            }
            (State::FastRecovery | State::AdditiveIncrease | State::HyperIncrease, Input::OctetsSent) => {
                self.increase();
                self.octet_increases = self.octet_increases.saturating_add(1);
                self.state = self.after_increase();
            }
        }
    }

    fn on_cnp(&mut self, now: Instant) {
        let is_first = self.state == State::Unlimited;
        if is_first {
            self.alpha = self.parameters.initial_alpha;
            self.cnp_in_period = false;
            self.no_cut_before = now;
            self.alpha_due = now.after_ns(self.alpha_interval_ns());
        } else {
            self.cnp_in_period = true;
        }
        if now < self.no_cut_before {
            return;
        }
        let remembers = match self.parameters.target_update {
            TargetUpdate::EveryCut => true,
            TargetUpdate::AfterTimerIncrease => is_first || self.timer_increases > 0,
        };
        if remembers {
            self.target_bits_per_s = self.current_bits_per_s;
        }
        let least = self.parameters.min_rate_bits_per_s as f64;
        self.current_bits_per_s = (self.current_bits_per_s * (1.0 - self.alpha / 2.0)).max(least);
        self.target_bits_per_s = self.target_bits_per_s.max(self.current_bits_per_s);
        if self.parameters.alpha_update == AlphaUpdate::AtCuts {
            self.alpha = (1.0 - self.parameters.g) * self.alpha + self.parameters.g;
            self.alpha_due = now.after_ns(self.alpha_interval_ns());
        }
        self.restart_increases(now);
    }

    /// A rate below the current one is a cut to it, and the target from which increases begin: it is what the queue's
    /// flows may send, so there is nothing to return to. Any other rate leaves the sender as it is.
    fn on_rate(&mut self, now: Instant, bits_per_s: f64) {
        let notified = bits_per_s.max(self.parameters.min_rate_bits_per_s as f64);
        if notified >= self.current_bits_per_s {
            return;
        }
        if self.state == State::Unlimited {
            self.alpha = self.parameters.initial_alpha;
            self.alpha_due = now.after_ns(self.alpha_interval_ns());
            self.cnp_in_period = false;
        }
        (self.current_bits_per_s, self.target_bits_per_s) = (notified, notified);
        self.restart_increases(now);
    }

    /// Increases begin anew, and CNPs cut again after a while.
    fn restart_increases(&mut self, now: Instant) {
        (self.timer_increases, self.octet_increases, self.octets_since) = (0, 0, 0);
        self.increase_due = now.after_ns(self.increase_timer_ns());
        self.no_cut_before = now.after_ns(self.parameters.decrease_interval_ns);
        self.state = self.phase();
    }

    fn on_alpha_timer(&mut self) {
        self.alpha_due = self.alpha_due.after_ns(self.alpha_interval_ns());
        let grows = match self.parameters.alpha_update {
            AlphaUpdate::AtCuts => false,
            AlphaUpdate::EveryPeriod => self.cnp_in_period,
        };
        self.cnp_in_period = false;
        self.alpha *= 1.0 - self.parameters.g;
        if grows {
            self.alpha += self.parameters.g;
        } else if self.alpha < ALPHA_IS_ZERO {
            self.alpha = 0.0;
        }
    }

    /// The paper's three phases. Either counter may be switched off; then the other decides alone.
    fn phase(&self) -> State {
        let threshold = self.parameters.fast_recovery_increases;
        let (most, least) = match self.parameters.octets_per_increase {
            Some(_) => (self.timer_increases.max(self.octet_increases), self.timer_increases.min(self.octet_increases)),
            None => (self.timer_increases, self.timer_increases),
        };
        if most < threshold {
            State::FastRecovery
        } else if least > threshold {
            State::HyperIncrease
        } else {
            State::AdditiveIncrease
        }
    }

    fn after_increase(&self) -> State {
        let is_released = self.parameters.released_at_line_rate && self.is_at_line_rate();
        if is_released { State::Unlimited } else { self.phase() }
    }

    fn increase(&mut self) {
        let step = match self.state {
            State::Unlimited | State::FastRecovery => 0,
            State::AdditiveIncrease => self.parameters.additive_increase_bits_per_s,
            State::HyperIncrease => self.parameters.hyper_increase_bits_per_s,
        };
        let line = self.parameters.line_rate_bits_per_s as f64;
        self.target_bits_per_s = (self.target_bits_per_s + step as f64 / self.flows as f64).min(line);
        self.current_bits_per_s = f64::midpoint(self.target_bits_per_s, self.current_bits_per_s);
        if self.target_bits_per_s - self.current_bits_per_s < CLOSE_BITS_PER_S {
            self.current_bits_per_s = self.target_bits_per_s;
        }
    }

    /// Does what the timers would have done up to `now`.
    fn catch_up(&mut self, now: Instant) {
        while self.state != State::Unlimited && self.alpha_due.min(self.increase_due) <= now {
            if self.alpha_due <= self.increase_due {
                if self.alpha == 0.0 && !self.cnp_in_period {
                    self.alpha_due = skip(self.alpha_due, self.alpha_interval_ns(), now).0;
                } else {
                    self.handle(self.alpha_due, Input::AlphaTimer);
                }
            } else if self.is_at_line_rate() {
                let (due, expiries) = skip(self.increase_due, self.increase_timer_ns(), now);
                self.increase_due = due;
                self.timer_increases = self.timer_increases.saturating_add(expiries);
                self.state = self.phase();
            } else {
                self.handle(self.increase_due, Input::IncreaseTimer);
            }
        }
    }

    fn is_at_line_rate(&self) -> bool {
        self.current_bits_per_s >= self.parameters.line_rate_bits_per_s as f64
    }

    fn on_sent(&mut self, now: Instant, octets: u32) {
        let (State::FastRecovery | State::AdditiveIncrease | State::HyperIncrease, Some(per_increase)) =
            (self.state, self.parameters.octets_per_increase)
        else {
            return;
        };
        self.octets_since += u64::from(octets);
        while self.octets_since >= per_increase && self.state != State::Unlimited {
            self.octets_since -= per_increase;
            self.handle(now, Input::OctetsSent);
        }
    }
}

/// The first expiry after `now` of a timer that expires at `due` and then every `interval_ns`, and how many there are
/// before.
fn skip(due: Instant, interval_ns: u64, now: Instant) -> (Instant, u32) {
    let expiries = (now.as_ns() - due.as_ns()) / interval_ns + 1;
    (due.after_ns(expiries * interval_ns), u32::try_from(expiries).unwrap_or(u32::MAX))
}

impl RateControl for Dcqcn {
    fn on(&mut self, now: Instant, event: Event<'_>) {
        self.catch_up(now);
        match event {
            Event::Sent { octets } => self.on_sent(now, octets),
            Event::Incast { flows, period_ns } => self.on_incast(flows, period_ns),
            Event::FastCnp { origin: Origin::Switch(_), trace: _, rate_bits_per_s: Some(bits_per_s) } => {
                self.handle(now, Input::Rate(bits_per_s as f64));
            }
            Event::Cnp
            | Event::FastCnp { origin: Origin::Switch(_), trace: Some(_) | None, rate_bits_per_s: None }
            | Event::FastCnp { origin: Origin::Receiver, trace: None, .. } => self.handle(now, Input::Cnp),
            // A trace returned by the receiver does not indicate congestion by itself.
            Event::FastCnp { origin: Origin::Receiver, trace: Some(_), .. } => {}
            // The paper's networks lose nothing.
            Event::Acknowledged { .. } | Event::RoundTrip { .. } | Event::Lost | Event::Timer => {}
        }
    }

    fn rate_bits_per_s(&self) -> Option<u64> {
        // A rate is a float of at least 1 and at most the line rate.
        (!self.is_at_line_rate()).then_some(self.current_bits_per_s as u64)
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Unlimited => None,
            State::FastRecovery | State::AdditiveIncrease | State::HyperIncrease => {
                (!self.is_at_line_rate()).then_some(self.increase_due)
            }
        }
    }
}
