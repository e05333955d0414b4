//! Intervals of a session: those advertised, those in use until the peer has confirmed a change, and what follows
//! from them and the peer's (RFC 5880 sections 6.8.1 to 6.8.4).

use crate::config::{Config, LEAST_INTERVAL_US, SLOW_INTERVAL_US};
use crate::poll_sequence::{PollEvent, PollSequence};
use srdma_random::Stream;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_US;
use std::num::NonZeroU8;
use std::time::Duration;

/// The time by which one Final of a peer like us may be later than another.
const FINAL_GAP: Duration = Duration::from_micros(LEAST_INTERVAL_US as u64);

/// The least intervals of one direction each, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intervals {
    pub(crate) tx_us: u32,
    pub(crate) rx_us: u32,
}

impl Intervals {
    fn of(config: &Config, is_up: bool) -> Self {
        let least = if is_up { 0 } else { SLOW_INTERVAL_US };
        Intervals { tx_us: config.desired_min_tx_us().max(least), rx_us: config.required_min_rx_us() }
    }
}

/// The intervals, and the Poll Sequence that makes them known.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    config: Config,
    advertised: Intervals,
    in_use: Intervals,
    sequence: PollSequence,
    polls: Option<Polls>,
}

/// Times of the first and the last Poll of the present or the last sequence.
#[derive(Clone, Copy, Debug)]
struct Polls {
    first: Instant,
    last: Instant,
    /// When the answer to the last has come, if it takes no longer than that to the first.
    settled: Instant,
}

impl Timers {
    /// Those of a session that is not Up.
    pub(crate) fn new(config: Config) -> Self {
        let intervals = Intervals::of(&config, false);
        Timers { config, advertised: intervals, in_use: intervals, sequence: PollSequence::Idle, polls: None }
    }

    pub(crate) fn config(&self) -> Config {
        self.config
    }

    /// The values for packets.
    pub(crate) fn advertised(&self) -> Intervals {
        self.advertised
    }

    /// The values by which the session sends and detects.
    pub(crate) fn in_use(&self) -> Intervals {
        self.in_use
    }

    pub(crate) fn is_polling(&self) -> bool {
        self.sequence == PollSequence::Polling
    }

    /// Another configuration. While the session is Up, its intervals wait for the end of a Poll Sequence: each sequence
    /// is about one change.
    pub(crate) fn configure(&mut self, config: Config, is_up: bool) {
        self.config = config;
        if !is_up || self.sequence == PollSequence::Idle {
            self.advertise(is_up);
        }
    }

    /// The session's state is another.
    pub(crate) fn state_changed(&mut self, is_up: bool) {
        self.advertise(is_up);
    }

    /// A packet with the Poll bit is sent.
    pub(crate) fn polled(&mut self, now: Instant) {
        let first = self.polls.map_or(now, |polls| polls.first);
        self.polls = Some(Polls { first, last: now, settled: Instant::NEVER });
    }

    /// A packet was received.
    pub(crate) fn received(&mut self, is_final: bool, is_up: bool, now: Instant) {
        let Some(polls) = &mut self.polls else { return };
        let event = if is_final {
            PollEvent::Final
        } else if polls.settled <= now {
            PollEvent::Settled
        } else {
            return;
        };
        let before = self.sequence;
        self.sequence = before.next(event);
        match (before, self.sequence) {
            (PollSequence::Polling, PollSequence::Settling) => {
                self.in_use = self.advertised;
                polls.settled = polls.last + now.since(polls.first) + FINAL_GAP;
            }
            (PollSequence::Settling, PollSequence::Idle) => self.advertise(is_up),
            (PollSequence::Idle | PollSequence::Polling | PollSequence::Settling, _) => {}
        }
    }

    /// Advertises the configuration. In a session that is Up, a longer interval between our packets, and a shorter one
    /// between the peer's, is used once the peer knows it: before, the peer would miss packets, or we would.
    fn advertise(&mut self, is_up: bool) {
        let target = Intervals::of(&self.config, is_up);
        self.in_use = if is_up {
            Intervals { tx_us: self.in_use.tx_us.min(target.tx_us), rx_us: self.in_use.rx_us.max(target.rx_us) }
        } else {
            target
        };
        if target != self.advertised {
            self.advertised = target;
            self.sequence = self.sequence.next(PollEvent::Changed);
            self.polls = None;
        }
    }
}

/// Interval between our periodic packets, in nanoseconds; `None` when the peer wants none.
pub(crate) fn transmission_interval_ns(tx_us: u32, peer_rx_us: u32) -> Option<u64> {
    (peer_rx_us != 0).then(|| u64::from(tx_us.max(peer_rx_us)) * NS_PER_US)
}

/// Time without a packet of the peer after which it is not received any more, in nanoseconds.
pub(crate) fn detection_time_ns(rx_us: u32, peer_tx_us: u32, peer_detect_mult: NonZeroU8) -> u64 {
    u64::from(peer_detect_mult.get()) * u64::from(rx_us.max(peer_tx_us)) * NS_PER_US
}

/// The part by which an interval is shortened, in 2^−16, so that systems do not send in step (RFC 5880 section 6.8.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jitter(u16);

impl Jitter {
    /// A quarter.
    const MOST: u64 = 1 << 14;
    /// A tenth, rounded up: with a multiplier of 1 a packet that is in time must not be too late.
    const LEAST_OF_ONE: u64 = 6554;

    /// Up to a quarter; from a tenth on if the peer detects a failure after one packet.
    pub(crate) fn draw(random: &mut Stream, detect_mult: NonZeroU8) -> Self {
        let least = if detect_mult == NonZeroU8::MIN { Self::LEAST_OF_ONE } else { 0 };
        Jitter((least + random.below(Self::MOST - least + 1)) as u16)
    }

    /// An interval of at most 2^48 ns, shortened.
    pub(crate) fn shorten(self, interval_ns: u64) -> u64 {
        interval_ns - ((interval_ns * u64::from(self.0)) >> 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Intervals = Intervals { tx_us: 50_000, rx_us: 50_000 };

    fn config(tx_us: u32, rx_us: u32) -> Config {
        Config::new(tx_us, rx_us, 3).unwrap()
    }

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    /// A Poll, its Final at once, and a packet that is no Final.
    fn confirm(timers: &mut Timers, ms: u64) {
        timers.polled(at(ms));
        timers.received(true, true, at(ms));
        timers.received(false, true, at(ms + 10));
    }

    fn up() -> Timers {
        let mut timers = Timers::new(Config::default());
        timers.state_changed(true);
        confirm(&mut timers, 0);
        assert_eq!((timers.advertised, timers.in_use, timers.sequence), (FAST, FAST, PollSequence::Idle));
        timers
    }

    #[test]
    fn a_session_that_is_not_up_sends_once_a_second_at_most() {
        let mut timers = Timers::new(Config::default());
        let slow = Intervals { tx_us: 1_000_000, rx_us: 50_000 };
        assert_eq!((timers.advertised, timers.in_use, timers.is_polling()), (slow, slow, false));
        timers.state_changed(true);
        assert_eq!((timers.advertised, timers.in_use, timers.is_polling()), (FAST, FAST, true));
        confirm(&mut timers, 0);
        assert!(!timers.is_polling());
        timers.state_changed(false);
        assert_eq!((timers.advertised, timers.in_use, timers.is_polling()), (slow, slow, true));
        let slower = Timers::new(config(3_000_000, 50_000));
        assert_eq!(slower.advertised.tx_us, 3_000_000);
    }

    #[test]
    fn a_longer_interval_of_ours_waits_for_the_final() {
        let mut timers = up();
        timers.configure(config(200_000, 50_000), true);
        assert_eq!((timers.advertised.tx_us, timers.in_use.tx_us, timers.is_polling()), (200_000, 50_000, true));
        timers.received(false, true, at(100));
        assert_eq!(timers.in_use.tx_us, 50_000);
        timers.received(true, true, at(110));
        assert_eq!((timers.in_use.tx_us, timers.is_polling()), (50_000, true), "no Poll was sent that it could answer");
        confirm(&mut timers, 120);
        assert_eq!((timers.in_use.tx_us, timers.is_polling()), (200_000, false));
    }

    #[test]
    fn a_shorter_interval_of_ours_is_used_at_once() {
        let mut timers = up();
        timers.configure(config(20_000, 50_000), true);
        assert_eq!((timers.advertised.tx_us, timers.in_use.tx_us, timers.is_polling()), (20_000, 20_000, true));
    }

    #[test]
    fn a_shorter_interval_of_the_peer_waits_for_the_final_and_a_longer_one_does_not() {
        let mut timers = up();
        timers.configure(config(50_000, 20_000), true);
        assert_eq!((timers.advertised.rx_us, timers.in_use.rx_us), (20_000, 50_000));
        confirm(&mut timers, 100);
        assert_eq!(timers.in_use.rx_us, 20_000);
        timers.configure(config(50_000, 70_000), true);
        assert_eq!((timers.advertised.rx_us, timers.in_use.rx_us, timers.is_polling()), (70_000, 70_000, true));
    }

    #[test]
    fn a_second_change_waits_for_the_end_of_the_first() {
        let mut timers = up();
        timers.configure(config(200_000, 50_000), true);
        timers.configure(config(300_000, 50_000), true);
        assert_eq!(timers.advertised.tx_us, 200_000);
        // Polls at 100 and 150 ms, the first answered at 170 ms: the second is by 230 ms.
        timers.polled(at(100));
        timers.polled(at(150));
        timers.received(true, true, at(170));
        assert_eq!((timers.in_use.tx_us, timers.is_polling()), (200_000, false));
        timers.received(false, true, at(180));
        timers.received(true, true, at(220));
        timers.received(false, true, at(229));
        assert_eq!((timers.advertised.tx_us, timers.is_polling()), (200_000, false));
        timers.received(false, true, at(230));
        assert_eq!((timers.advertised.tx_us, timers.in_use.tx_us, timers.is_polling()), (300_000, 200_000, true));
    }

    #[test]
    fn a_session_that_goes_down_waits_for_no_final() {
        let mut timers = up();
        timers.configure(config(2_000_000, 20_000), true);
        timers.state_changed(false);
        assert_eq!(timers.in_use, Intervals { tx_us: 2_000_000, rx_us: 20_000 });
    }

    #[test]
    fn the_slower_side_decides() {
        assert_eq!(transmission_interval_ns(50_000, 1), Some(50_000_000));
        assert_eq!(transmission_interval_ns(50_000, 70_000), Some(70_000_000));
        assert_eq!(transmission_interval_ns(50_000, 0), None);
        let mult = |mult| NonZeroU8::new(mult).unwrap();
        assert_eq!(detection_time_ns(50_000, 0, mult(3)), 150_000_000);
        assert_eq!(detection_time_ns(50_000, 70_000, mult(4)), 280_000_000);
        assert_eq!(detection_time_ns(u32::MAX, u32::MAX, mult(255)), 255 * 1_000 * u64::from(u32::MAX));
    }

    #[test]
    fn jitter_is_up_to_a_quarter_and_from_a_tenth_on_with_a_multiplier_of_one() {
        let mut random = Stream::new(1, "jitter");
        for (mult, bounds) in [(3, 75_000..=100_000), (1, 75_000..=90_000)] {
            let mult = NonZeroU8::new(mult).unwrap();
            let drawn: Vec<u64> =
                (0..10_000).map(|_| Jitter::draw(&mut random, mult).shorten(100_000_000) / 1_000).collect();
            assert!(drawn.iter().all(|us| bounds.contains(us)));
            let width = bounds.end() - bounds.start();
            assert!(drawn.iter().min().unwrap() - bounds.start() < width / 100);
            assert!(bounds.end() - drawn.iter().max().unwrap() < width / 100);
        }
        assert_eq!(Jitter(Jitter::MOST as u16).shorten(u64::from(u32::MAX) * 1_000), 3_221_225_471_250);
    }
}
