//! PFC pauses received from a neighbour, applied by class, no longer than the watchdog's limit (CN-4.1-3).
//!
//! ```text
//!            PAUSE                        bound passed
//!  Free ──────────────────▶ Paused ──────────────────────▶ Storm ──┐ PAUSE: ignored,
//!   ▲ ◀──────────────────    │  ▲ PAUSE: lasts longer       │  ▲───┘ the quiet time begins anew
//!   │   RESUME, time over    └──┘                           │
//!   └───────────────────────────────────────────────────────┘ quiet time over
//! ```

use super::config::{CLASSES, Watchdog};
use srdma_wire::Instant;
use srdma_wire::pfc::{Pfc, QUANTUM_BITS};
use srdma_wire::units::NS_PER_S;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its frames may go.
    Free,
    /// Paused: since when, and until when unless refreshed.
    Paused { since: Instant, until: Instant },
    /// It has been paused for too long. Pauses are ignored until none has been received before `quiet_at`.
    Storm { quiet_at: Instant },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A pause came that lasts until then.
    Pause {
        until: Instant,
    },
    /// A pause of no length came.
    Resume,
    TimeOver,
    /// The class has been paused for as long as the watchdog bears.
    BoundPassed,
    /// No pause has come for the quiet time.
    Quiet,
}

impl State {
    fn after(self, event: Event, now: Instant, quiet_ns: u64) -> Self {
        let storm = State::Storm { quiet_at: now.after_ns(quiet_ns) };
        match (self, event) {
            (State::Free, Event::Pause { until }) => State::Paused { since: now, until },
            (State::Free, Event::Resume | Event::TimeOver | Event::BoundPassed | Event::Quiet) => State::Free,
            (State::Paused { since, .. }, Event::Pause { until }) => State::Paused { since, until },
            (State::Paused { .. }, Event::Resume | Event::TimeOver) => State::Free,
            (State::Paused { .. }, Event::BoundPassed) => storm,
            (State::Paused { .. }, Event::Quiet) => self,
            (State::Storm { .. }, Event::Pause { .. }) => storm,
            (State::Storm { .. }, Event::Resume | Event::TimeOver | Event::BoundPassed) => self,
            (State::Storm { .. }, Event::Quiet) => State::Free,
        }
    }

    /// The next event by time.
    fn next(self, watchdog: Option<Watchdog>) -> Option<(Instant, Event)> {
        match self {
            State::Free => None,
            State::Paused { since, until } => match watchdog.map(|watchdog| since.after_ns(watchdog.bound_ns)) {
                Some(bound) if bound < until => Some((bound, Event::BoundPassed)),
                Some(_) | None => Some((until, Event::TimeOver)),
            },
            State::Storm { quiet_at } => Some((quiet_at, Event::Quiet)),
        }
    }
}

/// Counters of the pauses that a class received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseCounters {
    /// Pauses received.
    pub pauses: u64,
    /// Those of them that were ignored, in a storm.
    pub ignored: u64,
    /// Resumes received.
    pub resumes: u64,
    /// Storms.
    pub storms: u64,
    /// Time paused so far in nanoseconds, without a pause that still lasts.
    pub paused_ns: u64,
}

/// Received pauses of a port, of a node or a host. [`Pauses::paused`] is called before a frame is sent; its
/// result changes by itself at [`Pauses::next_deadline`].
///
/// The fields that are read for every frame come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Pauses {
    next: Option<Instant>,
    paused: u8,
    storming: u8,
    /// The classes with PFC: bit n is class n.
    enabled: u8,
    rate_bits_per_s: u64,
    watchdog: Option<Watchdog>,
    states: [State; CLASSES],
    counters: [PauseCounters; CLASSES],
}

impl Pauses {
    /// For a link of this rate; `enabled` are the classes that may be paused, bit n being class n.
    pub fn new(rate_bits_per_s: u64, enabled: u8, watchdog: Option<Watchdog>) -> Self {
        Pauses {
            states: [State::Free; CLASSES],
            counters: [PauseCounters::default(); CLASSES],
            rate_bits_per_s,
            watchdog,
            enabled,
            paused: 0,
            storming: 0,
            next: None,
        }
    }

    /// The same with other settings. Classes without PFC are free.
    pub(crate) fn set(&mut self, rate_bits_per_s: u64, enabled: u8, watchdog: Option<Watchdog>) {
        (self.rate_bits_per_s, self.enabled, self.watchdog) = (rate_bits_per_s, enabled, watchdog);
        for (class, state) in self.states.iter_mut().enumerate() {
            if enabled >> class & 1 == 0 {
                *state = State::Free;
            }
        }
        self.review();
    }

    /// Applies a received PFC frame. Classes without PFC are skipped.
    pub fn receive(&mut self, now: Instant, pfc: &Pfc) {
        self.advance(now);
        for (class, quanta) in pfc.quanta.into_iter().enumerate() {
            let Some(quanta) = quanta.filter(|_| self.enabled >> class & 1 == 1) else {
                continue;
            };
            let counters = &mut self.counters[class];
            let event = if quanta == 0 {
                counters.resumes += 1;
                Event::Resume
            } else {
                counters.pauses += 1;
                counters.ignored += u64::from(self.storming >> class & 1);
                Event::Pause { until: now.after_ns(quanta_ns(quanta, self.rate_bits_per_s)) }
            };
            self.happen(class, event, now);
        }
        self.review();
    }

    /// The classes that are paused by now, bit n being class n.
    #[inline]
    pub fn paused(&mut self, now: Instant) -> u8 {
        if self.next.is_some_and(|next| next <= now) {
            self.advance(now);
        }
        self.paused
    }

    /// The classes that were paused when time was last looked at, bit n being class n.
    pub fn classes(&self) -> u8 {
        self.paused
    }

    /// The classes in a storm, bit n being class n.
    pub fn storming(&self) -> u8 {
        self.storming
    }

    /// When [`Pauses::paused`] changes of itself.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Counters of the pauses that a class received.
    pub fn counters(&self, class: usize) -> Option<PauseCounters> {
        self.counters.get(class).copied()
    }

    /// Forgets all pauses: the link is gone, or new. The time of one that lasted is not counted.
    pub fn forget(&mut self) {
        self.states = [State::Free; CLASSES];
        self.review();
    }

    fn advance(&mut self, now: Instant) {
        for class in 0..CLASSES {
            while let Some((at, event)) = self.states[class].next(self.watchdog).filter(|(at, _)| *at <= now) {
                self.happen(class, event, at);
            }
        }
        self.review();
    }

    fn happen(&mut self, class: usize, event: Event, now: Instant) {
        let quiet_ns = self.watchdog.map_or(0, |watchdog| watchdog.quiet_ns);
        self.enter(class, self.states[class].after(event, now, quiet_ns), now);
    }

    fn enter(&mut self, class: usize, state: State, now: Instant) {
        let counters = &mut self.counters[class];
        let before = std::mem::replace(&mut self.states[class], state);
        if let (State::Paused { since, .. }, State::Free | State::Storm { .. }) = (before, state) {
            counters.paused_ns += now.as_ns().saturating_sub(since.as_ns());
        }
        if let (State::Paused { .. }, State::Storm { .. }) = (before, state) {
            counters.storms += 1;
        }
    }

    /// Sums up the states.
    fn review(&mut self) {
        (self.paused, self.storming, self.next) = (0, 0, None);
        for (class, state) in self.states.iter().enumerate() {
            match state {
                State::Free => {}
                State::Paused { .. } => self.paused |= 1 << class,
                State::Storm { .. } => self.storming |= 1 << class,
            }
            let next = state.next(self.watchdog).map(|(at, _)| at);
            self.next = [self.next, next].into_iter().flatten().min();
        }
    }
}

/// How long so many quanta last at a rate, in nanoseconds: at least one.
pub(crate) fn quanta_ns(quanta: u16, rate_bits_per_s: u64) -> u64 {
    (u64::from(quanta) * QUANTUM_BITS * NS_PER_S / rate_bits_per_s.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::config::StormAction;
    use super::*;
    use std::fmt::Write;

    const RATE: u64 = 100_000_000_000;
    const WATCHDOG: Watchdog = Watchdog { bound_ns: 1_000_000, quiet_ns: 500_000, action: StormAction::Forward };

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn every_state_meets_every_event() {
        let states = [State::Free, State::Paused { since: at(10), until: at(90) }, State::Storm { quiet_at: at(200) }];
        let events =
            [Event::Pause { until: at(150) }, Event::Resume, Event::TimeOver, Event::BoundPassed, Event::Quiet];
        let text = |state: State| match state {
            State::Free => "Free".to_owned(),
            State::Paused { since, until } => format!("Paused {}-{}", since.as_ns(), until.as_ns()),
            State::Storm { quiet_at } => format!("Storm -{}", quiet_at.as_ns()),
        };
        let mut table = String::new();
        for state in states {
            for event in events {
                let name = format!("{event:?}");
                let name = name.split(' ').next().unwrap_or_default();
                let after = text(state.after(event, at(100), 1000));
                writeln!(table, "{:<13} {name:<11} {after}", text(state)).unwrap();
            }
        }
        insta::assert_snapshot!(table, @r"
        Free          Pause       Paused 100-150
        Free          Resume      Free
        Free          TimeOver    Free
        Free          BoundPassed Free
        Free          Quiet       Free
        Paused 10-90  Pause       Paused 10-150
        Paused 10-90  Resume      Free
        Paused 10-90  TimeOver    Free
        Paused 10-90  BoundPassed Storm -1100
        Paused 10-90  Quiet       Paused 10-90
        Storm -200    Pause       Storm -1100
        Storm -200    Resume      Storm -200
        Storm -200    TimeOver    Storm -200
        Storm -200    BoundPassed Storm -200
        Storm -200    Quiet       Free
        ");
    }

    /// 65,535 quanta of 512 bit times at 100 Gbit/s are 335.5 µs.
    #[test]
    fn pauses_end_by_time_or_by_a_resume() {
        let mut pauses = Pauses::new(RATE, 0b0000_1000, None);
        pauses.receive(at(0), &Pfc::of_class(3, 0xFFFF));
        assert_eq!((pauses.paused(at(335_538)), pauses.next_deadline()), (0b1000, Some(at(335_539))));
        assert_eq!((pauses.paused(at(335_539)), pauses.next_deadline()), (0, None));
        pauses.receive(at(400_000), &Pfc::of_class(3, 0xFFFF));
        pauses.receive(at(400_700), &Pfc::of_class(3, 0));
        assert_eq!(pauses.paused(at(400_700)), 0);
        let counters = pauses.counters(3).unwrap();
        assert_eq!((counters.pauses, counters.resumes, counters.paused_ns), (2, 1, 335_539 + 700));
        pauses.receive(at(500_000), &Pfc::of_class(4, 0xFFFF));
        assert_eq!((pauses.paused(at(500_000)), pauses.counters(4)), (0, Some(PauseCounters::default())));
    }

    #[test]
    fn pauses_are_ignored_during_a_storm() {
        let mut pauses = Pauses::new(RATE, 0xFF, Some(WATCHDOG));
        let pause = Pfc::of_class(0, 0xFFFF);
        for ns in (0..1_200_000).step_by(100_000) {
            pauses.receive(at(ns), &pause);
            assert_eq!(pauses.paused(at(ns)), u8::from(ns < 1_000_000), "after {ns} ns");
        }
        assert_eq!((pauses.storming(), pauses.next_deadline()), (1, Some(at(1_600_000))));
        assert_eq!((pauses.paused(at(1_600_000)), pauses.storming()), (0, 0));
        pauses.receive(at(1_700_000), &pause);
        assert_eq!(pauses.paused(at(1_700_000)), 1, "pauses count again");
        let counters = pauses.counters(0).unwrap();
        assert_eq!((counters.pauses, counters.ignored, counters.storms), (13, 2, 1));
        assert_eq!(counters.paused_ns, 1_000_000);
    }

    /// A late call handles all deadlines that passed before it.
    #[test]
    fn a_late_call_handles_all_deadlines() {
        let slow = Watchdog { bound_ns: 100_000, ..WATCHDOG };
        let mut pauses = Pauses::new(RATE, 0xFF, Some(slow));
        pauses.receive(at(0), &Pfc::of_class(7, 0xFFFF));
        pauses.receive(at(10_000_000), &Pfc::of_class(7, 0xFFFF));
        let counters = pauses.counters(7).unwrap();
        assert_eq!((counters.storms, counters.ignored, counters.paused_ns), (1, 0, 100_000));
        assert_eq!(pauses.paused(at(10_000_000)), 0x80);
        pauses.forget();
        assert_eq!((pauses.paused(at(10_000_500)), pauses.next_deadline()), (0, None));
    }
}
