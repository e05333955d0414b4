//! NSCC, Network Signal-based Congestion Control: the sender's window of Ultra Ethernet Specification 1.0 and of the
//! transports that follow it, as the consortium's simulator has it (D283). Mark and round trip of a packet come with
//! its ACK:
//!
//! ```text
//!                 delay below the target                        delay at the target or above
//!           ┌──────────────────────────────────────┬─────────────────────────────────────────────┐
//!  no mark  │ proportional increase, by the rest   │ fair increase: the same for every sender    │
//!           │ up to the target; a fast one after a │                                             │
//!           │ window without delay                 │                                             │
//!           ├──────────────────────────────────────┼─────────────────────────────────────────────┤
//!  mark     │ nothing: the queue has begun to grow │ decrease by the excess of the average delay,│
//!           │                                      │ once in a round trip                        │
//!           └──────────────────────────────────────┴─────────────────────────────────────────────┘
//! ```
//!
//! Quick adaptation: after a period of a round trip and the target delay, in which a packet was lost or the delay was
//! several times the target, and little was acknowledged, the window becomes what was acknowledged. Marks of what was
//! in flight then do not count.
//!
//! Differences from the simulator: a flow has one path, so a mark does not change it; the base round trip is that of
//! the network, and not lowered to that of the flow; a loss is one packet, since RC does not tell how many there
//! were; a CNP, which a group's source gets, counts as a mark of the next ACK.

mod parameters;
#[cfg(test)]
mod tests;

pub use parameters::NsccParameters;

use super::{Event, Origin, RateControl, RateError};
use srdma_wire::Instant;

/// What an ACK tells about its packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// Beyond the base round trip.
    delay_ns: f64,
    is_marked: bool,
}

/// Where a sample lies in the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quadrant {
    Proportional,
    Fair,
    Begins,
    Decrease,
}

/// NSCC of one sender. Octets are those on the link.
#[derive(Clone, Debug)]
pub struct Nscc {
    parameters: NsccParameters,
    window: f64,
    average_delay_ns: f64,
    /// Of the ACK whose octets come next.
    sample: Option<Sample>,
    /// A CNP has come since the last sample.
    is_noticed: bool,
    /// Octets to add, multiplied by the window.
    additions: f64,
    octets_since_adjustment: u64,
    adjusted_at: Instant,
    decreased_at: Option<Instant>,
    octets_without_delay: u64,
    is_fast: bool,
    /// End of the period of the quick adaptation; `None` before the first ACK.
    period_ends: Option<Instant>,
    octets_in_period: u64,
    has_lost: bool,
    /// Octets whose marks do not count any more.
    octets_to_ignore: f64,
}

impl Nscc {
    /// A sender that has seen no ACK: its window is the largest one.
    ///
    /// # Errors
    ///
    /// The first parameter that is out of its range.
    pub fn new(parameters: NsccParameters) -> Result<Self, RateError> {
        parameters.validate()?;
        Ok(Nscc {
            window: parameters.max_window_octets(),
            average_delay_ns: 0.0,
            sample: None,
            is_noticed: false,
            additions: 0.0,
            octets_since_adjustment: 0,
            adjusted_at: Instant::ZERO,
            decreased_at: None,
            octets_without_delay: 0,
            is_fast: false,
            period_ends: None,
            octets_in_period: 0,
            has_lost: false,
            octets_to_ignore: 0.0,
            parameters,
        })
    }

    /// The window as of the last call, with its fraction.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// The average delay in queues, in nanoseconds.
    pub fn average_delay_ns(&self) -> f64 {
        self.average_delay_ns
    }

    fn quadrant(&self, sample: Sample) -> Quadrant {
        let is_late = sample.delay_ns >= self.parameters.target_delay_ns as f64;
        match (sample.is_marked, is_late) {
            (false, false) => Quadrant::Proportional,
            (false, true) => Quadrant::Fair,
            (true, false) => Quadrant::Begins,
            (true, true) => Quadrant::Decrease,
        }
    }

    fn on_round_trip(&mut self, ns: u64, is_marked: bool) {
        let is_marked = core::mem::take(&mut self.is_noticed) || is_marked;
        let sample = Sample { delay_ns: ns.saturating_sub(self.parameters.base_rtt_ns) as f64, is_marked };
        // A delay above the target without a mark is that of a queue which has begun to drain.
        let counted_ns = match self.quadrant(sample) {
            Quadrant::Fair => self.parameters.base_rtt_ns as f64 / 4.0,
            Quadrant::Proportional | Quadrant::Begins | Quadrant::Decrease => sample.delay_ns,
        };
        self.average(counted_ns);
        self.sample = Some(sample);
    }

    fn average(&mut self, delay_ns: f64) {
        let weight = self.parameters.delay_weight;
        self.average_delay_ns = weight * delay_ns + (1.0 - weight) * self.average_delay_ns;
    }

    fn on_acknowledged(&mut self, now: Instant, octets: u64) {
        self.octets_in_period += octets;
        self.octets_since_adjustment += octets;
        self.octets_to_ignore = (self.octets_to_ignore - octets as f64).max(0.0);
        // Packets that were sent twice are not measured.
        let Some(sample) = self.sample.take() else { return };
        if self.adapts(now, sample) {
            return;
        }
        match self.quadrant(sample) {
            Quadrant::Proportional => self.increase_proportionally(octets, sample.delay_ns),
            Quadrant::Fair => self.additions += self.parameters.fair_octets * octets as f64,
            Quadrant::Begins => {}
            Quadrant::Decrease => self.decrease(now),
        }
        self.keep_bounds();
        self.adjust(now);
    }

    fn increase_proportionally(&mut self, octets: u64, delay_ns: f64) {
        if delay_ns < self.parameters.no_delay_ns as f64 {
            self.octets_without_delay += octets;
            self.is_fast |= self.octets_without_delay as f64 > self.window;
        } else {
            self.octets_without_delay = 0;
            self.is_fast = false;
        }
        if self.is_fast {
            self.window += octets as f64 * self.parameters.fast_share;
        } else {
            let rest = 1.0 - delay_ns / self.parameters.target_delay_ns as f64;
            self.additions += self.parameters.proportional_octets * octets as f64 * rest;
        }
    }

    fn decrease(&mut self, now: Instant) {
        self.is_fast = false;
        self.octets_without_delay = 0;
        let excess_ns = self.average_delay_ns - self.parameters.target_delay_ns as f64;
        let may_again = self.decreased_at.map(|at| at.after_ns(self.parameters.base_rtt_ns));
        if excess_ns > 0.0 && may_again.is_none_or(|at| now > at) {
            let part = self.parameters.gamma * excess_ns / self.average_delay_ns;
            self.window *= 1.0 - part.min(self.parameters.max_decrease);
            self.decreased_at = Some(now);
        }
    }

    /// Adds what the ACKs have gathered, when it is time.
    fn adjust(&mut self, now: Instant) {
        let due = self.adjusted_at.after_ns(self.parameters.base_rtt_ns);
        if self.octets_since_adjustment <= self.parameters.adjust_octets && now <= due {
            return;
        }
        self.window += core::mem::take(&mut self.additions) / self.window;
        if now >= due {
            self.window += self.parameters.additive_octets;
            self.adjusted_at = now;
        }
        self.octets_since_adjustment = 0;
        self.keep_bounds();
    }

    /// Quick adaptation: whether it leaves nothing to do for this sample.
    fn adapts(&mut self, now: Instant, sample: Sample) -> bool {
        let is_ignored = sample.is_marked && self.octets_to_ignore > 0.0;
        let is_done = !is_ignored && self.end_period(now, sample.delay_ns);
        if is_ignored || is_done {
            self.additions = 0.0;
            self.octets_since_adjustment = 0;
        }
        is_ignored || is_done
    }

    /// Ends the period if its time has come: whether the window was adapted.
    fn end_period(&mut self, now: Instant, delay_ns: f64) -> bool {
        if self.period_ends.is_some_and(|end| now <= end) {
            return false;
        }
        let limit_ns = self.parameters.target_delay_ns as f64 * self.parameters.adapt_targets as f64;
        let little = self.parameters.max_window_octets() * self.parameters.adapt_share;
        let achieved = core::mem::take(&mut self.octets_in_period) as f64;
        let adapts = self.period_ends.is_some() && (self.has_lost || delay_ns > limit_ns) && achieved < little;
        if adapts {
            self.octets_to_ignore = self.window;
            self.window = achieved;
            self.keep_bounds();
            self.has_lost = false;
        }
        let period_ns = self.parameters.base_rtt_ns.saturating_add(self.parameters.target_delay_ns);
        self.period_ends = Some(now.after_ns(period_ns));
        adapts
    }

    fn on_lost(&mut self, now: Instant) {
        self.sample = None;
        // As long as it takes to fill the queue of a network without trimming.
        self.average(self.parameters.base_rtt_ns as f64);
        self.has_lost = true;
        if self.octets_to_ignore > 0.0 || self.adapts(now, Sample { delay_ns: 0.0, is_marked: true }) {
            return;
        }
        self.window -= self.parameters.packet_octets as f64;
        self.keep_bounds();
    }

    fn keep_bounds(&mut self) {
        self.window = self.window.min(self.parameters.max_window_octets()).max(self.parameters.min_window_octets());
    }
}

impl RateControl for Nscc {
    fn on(&mut self, now: Instant, event: Event<'_>) {
        match event {
            Event::RoundTrip { ns, is_marked } => self.on_round_trip(ns, is_marked),
            Event::Acknowledged { octets } => self.on_acknowledged(now, octets),
            Event::Lost => self.on_lost(now),
            Event::Cnp
            | Event::FastCnp { origin: Origin::Switch(_), .. }
            | Event::FastCnp { origin: Origin::Receiver, trace: None, .. } => self.is_noticed = true,
            Event::FastCnp { origin: Origin::Receiver, trace: Some(_), .. }
            | Event::Incast { .. }
            | Event::Sent { .. }
            | Event::Timer => {}
        }
    }

    /// ACKs set the pace.
    fn rate_bits_per_s(&self) -> Option<u64> {
        None
    }

    fn window_octets(&self) -> Option<u64> {
        Some(self.window as u64)
    }

    fn takes_round_trips(&self) -> bool {
        true
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}
