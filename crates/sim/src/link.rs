//! A link: its effects on frames, in each of its two directions.

use srdma_random::{Probability, Stream};
use srdma_wire::Instant;
use srdma_wire::units::PS_PER_NS;

/// Octets that a frame occupies on an Ethernet beside its own: preamble, FCS and gap.
pub const FRAMING_OCTETS: u64 = 8 + 4 + 12;

/// The shortest frame, without FCS. Shorter ones are padded by the sending hardware.
const MIN_FRAME_OCTETS: u64 = 60;

/// Longest delay of a reordered frame, in transmission times of its own.
const MAX_FRAMES_BEHIND: u64 = 8;

/// Model of a link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkModel {
    /// Bits per second, more than 0.
    pub rate_bits_per_s: u64,
    /// Propagation delay in nanoseconds.
    pub delay_ns: u64,
    /// Probability that a frame does not arrive.
    pub loss: Probability,
    /// Probability that a frame arrives twice.
    pub duplicate: Probability,
    /// Probability that a frame arrives late, so that others overtake it.
    pub reorder: Probability,
}

impl LinkModel {
    /// A link without faults.
    pub fn perfect(rate_bits_per_s: u64, delay_ns: u64) -> Self {
        let never = Probability::ZERO;
        LinkModel { rate_bits_per_s, delay_ns, loss: never, duplicate: never, reorder: never }
    }

    /// Picoseconds for which a frame of `octets` (without FCS) occupies the link.
    pub fn transmission_ps(&self, octets: usize) -> u64 {
        transmission_ps(octets, self.rate_bits_per_s)
    }
}

/// Picoseconds for which a frame of `octets` (without FCS) occupies a link of this rate.
#[inline]
pub fn transmission_ps(octets: usize, rate_bits_per_s: u64) -> u64 {
    let bits = (MIN_FRAME_OCTETS.max(octets as u64) + FRAMING_OCTETS) * 8;
    // 64 bits hold a million octets.
    bits * 1_000_000_000_000 / rate_bits_per_s
}

/// Fault of one direction of a link for a time, besides those of its model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Nothing arrives.
    pub is_cut: bool,
    /// Probability that one bit of a frame arrives changed.
    pub corrupt: Probability,
    /// Probability that a frame is held back for `spike_ns`, and all behind it with it.
    pub spike: Probability,
    /// See `spike`.
    pub spike_ns: u64,
    /// Nothing arrives before this time; then all of it.
    pub held_until: Instant,
    /// Time that the element at the other end takes for each frame.
    pub per_frame_ns: u64,
    /// Frames arrive marked as having met congestion.
    pub marks_congestion: bool,
}

/// Counters of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames sent, lost ones included.
    pub frames: u64,
    /// Their octets, without FCS.
    pub octets: u64,
    /// Frames that did not arrive.
    pub lost: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames that arrived late.
    pub reordered: u64,
    /// Frames that did not arrive because the link was cut.
    pub cut: u64,
    /// Frames that arrived with a bit changed.
    pub corrupted: u64,
    /// Frames that held back all behind them.
    pub spiked: u64,
    /// Frames that waited for what is at the other end.
    pub waited: u64,
    /// Frames that arrived marked as having met congestion.
    pub marked: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) model: LinkModel,
    pub(crate) trouble: Trouble,
    chance: Stream,
    free_at_ps: u64,
    /// No frame arrives before one that was held back.
    not_before_ps: u64,
    pub(crate) counters: Counters,
}

/// Result of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// Time at which the transmitter can take the next frame.
    pub(crate) free_at: Instant,
    /// Arrival of the frame; `None` when it is lost.
    pub(crate) arrival: Option<Instant>,
    /// Second arrival.
    pub(crate) again: Option<Instant>,
    /// The bit that arrives changed: any number, to be taken modulo those that may change.
    pub(crate) changed_bit: Option<u64>,
    /// Whether it arrives marked as having met congestion.
    pub(crate) is_marked: bool,
}

impl Wire {
    pub(crate) fn new(model: LinkModel, chance: Stream) -> Self {
        let (trouble, counters) = (Trouble::default(), Counters::default());
        Wire { model, trouble, chance, free_at_ps: 0, not_before_ps: 0, counters }
    }

    /// Until when frames that were held back keep others from arriving.
    pub(crate) fn held_back_until(&self) -> Instant {
        instant(self.not_before_ps)
    }

    /// Sends a frame of `octets` (without FCS) on a transmitter that is free.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, octets: usize) -> Fate {
        let now_ps = now.as_ns() * PS_PER_NS;
        // Events happen at whole nanoseconds. A transmitter that became free within the last one goes on from where it
        // was, or the rate would lose a fraction of a nanosecond with each frame.
        let start_ps = if now_ps < self.free_at_ps + PS_PER_NS { self.free_at_ps } else { now_ps };
        let transmission_ps = self.model.transmission_ps(octets);
        self.free_at_ps = start_ps + transmission_ps;
        self.counters.frames += 1;
        self.counters.octets += octets as u64;
        let in_order_ps = self.free_at_ps + self.model.delay_ns * PS_PER_NS;
        let arrival_ps = self.draw_arrival(in_order_ps, transmission_ps).map(|at_ps| self.hold_back(at_ps));
        let changed_bit =
            (arrival_ps.is_some() && self.chance.happens(self.trouble.corrupt)).then(|| self.chance.below(u64::MAX));
        let is_marked = arrival_ps.is_some() && self.trouble.marks_congestion;
        self.counters.corrupted += u64::from(changed_bit.is_some());
        self.counters.marked += u64::from(is_marked);
        let again = arrival_ps.is_some() && self.chance.happens(self.model.duplicate);
        self.counters.duplicated += u64::from(again);
        Fate {
            free_at: instant(self.free_at_ps),
            arrival: arrival_ps.map(instant),
            again: arrival_ps.filter(|_| again).map(|arrival_ps| instant(arrival_ps + transmission_ps)),
            changed_bit,
            is_marked,
        }
    }

    /// Arrival of a frame that would arrive at `at_ps`, if nothing held it back.
    #[inline]
    fn hold_back(&mut self, at_ps: u64) -> u64 {
        let trouble = &self.trouble;
        let mut arrival_ps = at_ps.max(self.not_before_ps).max(trouble.held_until.as_ns() * PS_PER_NS);
        self.counters.waited += u64::from(arrival_ps > at_ps || trouble.per_frame_ns > 0);
        if trouble.per_frame_ns > 0 {
            arrival_ps += trouble.per_frame_ns * PS_PER_NS;
            self.not_before_ps = arrival_ps;
        }
        if self.chance.happens(trouble.spike) {
            arrival_ps += trouble.spike_ns * PS_PER_NS;
            self.not_before_ps = arrival_ps;
            self.counters.spiked += 1;
        }
        arrival_ps
    }

    fn draw_arrival(&mut self, in_order_ps: u64, transmission_ps: u64) -> Option<u64> {
        if self.trouble.is_cut {
            self.counters.cut += 1;
            return None;
        }
        if self.chance.happens(self.model.loss) {
            self.counters.lost += 1;
            return None;
        }
        if !self.chance.happens(self.model.reorder) {
            return Some(in_order_ps);
        }
        self.counters.reordered += 1;
        // Half a transmission time more than whole ones, so that a frame of the same length really overtakes.
        let behind = 1 + self.chance.below(MAX_FRAMES_BEHIND);
        Some(in_order_ps + transmission_ps * behind + transmission_ps / 2)
    }
}

/// The first nanosecond that is not before `ps`.
fn instant(ps: u64) -> Instant {
    Instant::from_ns(ps.div_ceil(PS_PER_NS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_wire::units::GBIT_PER_S;

    fn wire(model: LinkModel) -> Wire {
        Wire::new(model, Stream::new(1, "test"))
    }

    #[test]
    fn a_frame_arrives_after_its_transmission_and_the_delay() {
        // 1,476 + 24 octets are 12,000 bits: 12 µs at 1 Gbit/s, 120 ns at 100 Gbit/s.
        let fate = wire(LinkModel::perfect(GBIT_PER_S, 5_000)).send(Instant::from_ns(100), 1476);
        assert_eq!((fate.free_at.as_ns(), fate.arrival), (12_100, Some(Instant::from_ns(17_100))));
        let fate = wire(LinkModel::perfect(100 * GBIT_PER_S, 0)).send(Instant::ZERO, 1476);
        assert_eq!(fate.arrival, Some(Instant::from_ns(120)));
    }

    #[test]
    fn a_short_frame_occupies_the_link_like_the_shortest() {
        let model = LinkModel::perfect(GBIT_PER_S, 0);
        assert_eq!(model.transmission_ps(1), 84 * 8 * 1000);
        assert_eq!(model.transmission_ps(60), 84 * 8 * 1000);
        assert_eq!(model.transmission_ps(61), 85 * 8 * 1000);
    }

    #[test]
    fn back_to_back_frames_keep_the_rate_to_the_picosecond() {
        // 101 + 24 octets at 300 Gbit/s are 3,333.3 ps.
        let mut wire = wire(LinkModel::perfect(300 * GBIT_PER_S, 0));
        let mut now = Instant::ZERO;
        for _ in 0..3000 {
            now = wire.send(now, 101).free_at;
        }
        assert_eq!(now.as_ns(), (3000_u64 * 3333).div_ceil(1000));
    }

    #[test]
    fn an_idle_transmitter_begins_at_once() {
        let mut wire = wire(LinkModel::perfect(GBIT_PER_S, 0));
        assert_eq!(wire.send(Instant::ZERO, 101).free_at.as_ns(), 1000);
        assert_eq!(wire.send(Instant::from_ns(5000), 101).free_at.as_ns(), 6000);
    }

    #[test]
    fn a_late_frame_is_overtaken_by_the_next() {
        let model = LinkModel { reorder: Probability::new(1.0).unwrap(), ..LinkModel::perfect(GBIT_PER_S, 0) };
        let mut wire = wire(model);
        for _ in 0..200 {
            let sent = wire.free_at_ps / PS_PER_NS;
            let behind = wire.send(Instant::from_ns(sent), 101).arrival.unwrap().as_ns() - (sent + 1000);
            assert!((1500..=8500).contains(&behind) && behind % 1000 == 500, "{behind} ns behind");
        }
        assert_eq!(wire.counters.reordered, 200);
    }

    #[test]
    fn faults_are_counted() {
        let always = Probability::new(1.0).unwrap();
        let mut lossy = wire(LinkModel { loss: always, duplicate: always, ..LinkModel::perfect(GBIT_PER_S, 0) });
        let fate = lossy.send(Instant::ZERO, 101);
        assert_eq!((fate.arrival, fate.again), (None, None));
        assert_eq!(lossy.counters, Counters { frames: 1, octets: 101, lost: 1, ..Counters::default() });
        let mut doubling = wire(LinkModel { duplicate: always, ..LinkModel::perfect(GBIT_PER_S, 0) });
        let fate = doubling.send(Instant::ZERO, 101);
        assert_eq!((fate.arrival, fate.again), (Some(Instant::from_ns(1000)), Some(Instant::from_ns(2000))));
        assert_eq!(doubling.counters.duplicated, 1);
    }
}
