//! Link model: rate, delay and faults, for each direction.

use srdma_random::{Probability, Stream};
use srdma_wire::Instant;
use srdma_wire::units::PS_PER_NS;

/// Ethernet overhead of a frame, in octets: preamble, FCS and inter-frame gap.
pub const FRAMING_OCTETS: u64 = 8 + 4 + 12;

/// Minimum length of a frame, without FCS. Shorter ones are padded.
const MIN_FRAME_OCTETS: u64 = 60;

/// Maximum delay of a reordered frame, in transmission times of its own.
const MAX_FRAMES_BEHIND: u64 = 8;

/// Model of a link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkModel {
    /// Bits per second, more than 0.
    pub rate_bits_per_s: u64,
    /// Propagation delay in nanoseconds.
    pub delay_ns: u64,
    /// Probability that a frame is lost.
    pub loss: Probability,
    /// Probability that a frame is duplicated.
    pub duplicate: Probability,
    /// Probability that a frame is delayed, so that others overtake it.
    pub reorder: Probability,
}

impl LinkModel {
    /// A link without faults.
    pub fn perfect(rate_bits_per_s: u64, delay_ns: u64) -> Self {
        let never = Probability::ZERO;
        LinkModel { rate_bits_per_s, delay_ns, loss: never, duplicate: never, reorder: never }
    }

    /// Transmission time of a frame of `octets` (without FCS), in picoseconds.
    pub fn transmission_ps(&self, octets: usize) -> u64 {
        transmission_ps(octets, self.rate_bits_per_s)
    }
}

/// Transmission time of a frame of `octets` (without FCS) at this rate, in picoseconds.
#[inline]
pub fn transmission_ps(octets: usize, rate_bits_per_s: u64) -> u64 {
    let bits = (MIN_FRAME_OCTETS.max(octets as u64) + FRAMING_OCTETS) * 8;
    // 64 bits hold a million octets.
    bits * 1_000_000_000_000 / rate_bits_per_s
}

/// Temporary faults of one direction of a link, in addition to those of its model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFaults {
    /// All frames are lost.
    pub is_down: bool,
    /// Probability that a bit of a frame is flipped.
    pub corrupt: Probability,
    /// Probability that a frame, and all behind it, is delayed by `spike_ns`.
    pub spike: Probability,
    /// See `spike`.
    pub spike_ns: u64,
    /// No frame arrives before this time.
    pub held_until: Instant,
    /// Additional processing time of the receiving element for each frame.
    pub per_frame_ns: u64,
    /// Frames arrive with CE.
    pub marks_congestion: bool,
}

/// Counters of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames sent, lost ones included.
    pub frames: u64,
    /// Their octets, without FCS.
    pub octets: u64,
    /// Lost frames, without `lost_link_down`.
    pub lost: u64,
    /// Duplicated frames.
    pub duplicated: u64,
    /// Reordered frames.
    pub reordered: u64,
    /// Frames lost while the link was down.
    pub lost_link_down: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
    /// Frames with a delay spike.
    pub spiked: u64,
    /// Frames delayed by earlier ones or by the receiving element.
    pub delayed: u64,
    /// Frames marked with CE.
    pub marked: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) model: LinkModel,
    pub(crate) faults: LinkFaults,
    rng: Stream,
    free_at_ps: u64,
    /// Earliest arrival of the next frame, after one that was delayed.
    not_before_ps: u64,
    pub(crate) counters: Counters,
}

/// Effect of the link on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    /// Time at which the transmitter becomes free.
    pub(crate) free_at: Instant,
    /// Arrival of the frame; `None` if it is lost.
    pub(crate) arrival: Option<Instant>,
    /// Arrival of its duplicate.
    pub(crate) duplicate_arrival: Option<Instant>,
    /// The flipped bit: any number, to be taken modulo the number of bits that may be flipped.
    pub(crate) flipped_bit: Option<u64>,
    /// Whether it arrives with CE.
    pub(crate) is_marked: bool,
}

impl Wire {
    pub(crate) fn new(model: LinkModel, rng: Stream) -> Self {
        let (faults, counters) = (LinkFaults::default(), Counters::default());
        Wire { model, faults, rng, free_at_ps: 0, not_before_ps: 0, counters }
    }

    /// Time before which delayed frames keep others from arriving.
    pub(crate) fn delayed_until(&self) -> Instant {
        instant(self.not_before_ps)
    }

    /// Sends a frame of `octets` (without FCS); the transmitter must be free.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, octets: usize) -> Transmission {
        let now_ps = now.as_ns() * PS_PER_NS;
        // Events have whole nanoseconds. A transmitter that became free within the last one continues from the exact
        // time, otherwise each frame would cost a fraction of a nanosecond.
        let start_ps = if now_ps < self.free_at_ps + PS_PER_NS { self.free_at_ps } else { now_ps };
        let transmission_ps = self.model.transmission_ps(octets);
        self.free_at_ps = start_ps + transmission_ps;
        self.counters.frames += 1;
        self.counters.octets += octets as u64;
        let in_order_ps = self.free_at_ps + self.model.delay_ns * PS_PER_NS;
        let arrival_ps = self.draw_arrival(in_order_ps, transmission_ps).map(|at_ps| self.delay(at_ps));
        let flipped_bit =
            (arrival_ps.is_some() && self.rng.happens(self.faults.corrupt)).then(|| self.rng.below(u64::MAX));
        let is_marked = arrival_ps.is_some() && self.faults.marks_congestion;
        self.counters.corrupted += u64::from(flipped_bit.is_some());
        self.counters.marked += u64::from(is_marked);
        let is_duplicated = arrival_ps.is_some() && self.rng.happens(self.model.duplicate);
        self.counters.duplicated += u64::from(is_duplicated);
        Transmission {
            free_at: instant(self.free_at_ps),
            arrival: arrival_ps.map(instant),
            duplicate_arrival: arrival_ps
                .filter(|_| is_duplicated)
                .map(|arrival_ps| instant(arrival_ps + transmission_ps)),
            flipped_bit,
            is_marked,
        }
    }

    /// Arrival of a frame that would arrive at `at_ps` without faults.
    #[inline]
    fn delay(&mut self, at_ps: u64) -> u64 {
        let faults = &self.faults;
        let mut arrival_ps = at_ps.max(self.not_before_ps).max(faults.held_until.as_ns() * PS_PER_NS);
        self.counters.delayed += u64::from(arrival_ps > at_ps || faults.per_frame_ns > 0);
        if faults.per_frame_ns > 0 {
            arrival_ps += faults.per_frame_ns * PS_PER_NS;
            self.not_before_ps = arrival_ps;
        }
        if self.rng.happens(faults.spike) {
            arrival_ps += faults.spike_ns * PS_PER_NS;
            self.not_before_ps = arrival_ps;
            self.counters.spiked += 1;
        }
        arrival_ps
    }

    fn draw_arrival(&mut self, in_order_ps: u64, transmission_ps: u64) -> Option<u64> {
        if self.faults.is_down {
            self.counters.lost_link_down += 1;
            return None;
        }
        if self.rng.happens(self.model.loss) {
            self.counters.lost += 1;
            return None;
        }
        if !self.rng.happens(self.model.reorder) {
            return Some(in_order_ps);
        }
        self.counters.reordered += 1;
        // Half a transmission time is added, so that frames of the same length are overtaken.
        let behind = 1 + self.rng.below(MAX_FRAMES_BEHIND);
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
        let transmission = wire(LinkModel::perfect(GBIT_PER_S, 5_000)).send(Instant::from_ns(100), 1476);
        assert_eq!((transmission.free_at.as_ns(), transmission.arrival), (12_100, Some(Instant::from_ns(17_100))));
        let transmission = wire(LinkModel::perfect(100 * GBIT_PER_S, 0)).send(Instant::ZERO, 1476);
        assert_eq!(transmission.arrival, Some(Instant::from_ns(120)));
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
    fn an_idle_transmitter_starts_at_once() {
        let mut wire = wire(LinkModel::perfect(GBIT_PER_S, 0));
        assert_eq!(wire.send(Instant::ZERO, 101).free_at.as_ns(), 1000);
        assert_eq!(wire.send(Instant::from_ns(5000), 101).free_at.as_ns(), 6000);
    }

    #[test]
    fn a_reordered_frame_is_overtaken() {
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
        let transmission = lossy.send(Instant::ZERO, 101);
        assert_eq!((transmission.arrival, transmission.duplicate_arrival), (None, None));
        assert_eq!(lossy.counters, Counters { frames: 1, octets: 101, lost: 1, ..Counters::default() });
        let mut doubling = wire(LinkModel { duplicate: always, ..LinkModel::perfect(GBIT_PER_S, 0) });
        let transmission = doubling.send(Instant::ZERO, 101);
        assert_eq!(
            (transmission.arrival, transmission.duplicate_arrival),
            (Some(Instant::from_ns(1000)), Some(Instant::from_ns(2000)))
        );
        assert_eq!(doubling.counters.duplicated, 1);
    }
}
