//! The probes of all paths, and the deny list.
//!
//! ```text
//!           due                    free                     returns
//!   waiting ────► in the queue ──────────► on its way ────────────────► waiting for an interval
//!      ▲                                       │ does not in time
//!      └── at once, or for longer when denied ─┘
//! ```

use crate::config::{Config, MapperError};
use crate::counters::Counters;
use crate::packet::{self, MAX_SEGMENTS};
use crate::paths::Paths;
use crate::state::{Event, History, State};
use srdma_random::Stream;
use srdma_wire::{Entropy, Instant, Probe, ProbePacket};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv6Addr;

/// Probes of a path that are recognised when they return.
const REMEMBERED: usize = 8;

/// A change of the deny list.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path, by its place in [`Paths`].
    pub path: usize,
    pub is_denied: bool,
    pub at: Instant,
}

/// A path, for status.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathReport {
    pub state: State,
    pub sent: u64,
    pub returned: u64,
    /// Time there and back of the last probe, in nanoseconds.
    pub round_trip_ns: Option<u64>,
}

/// The probes of a path.
#[derive(Debug)]
struct Session {
    segments: Vec<Ipv6Addr>,
    entropy: Entropy,
    state: State,
    history: History,
    /// The number of the probe on its way, and its timeout.
    awaited: Option<(u32, Instant)>,
    sequence: u32,
    /// Times at which the last probes were sent, by number.
    sent: [Option<Instant>; REMEMBERED],
    sent_count: u64,
    returned_count: u64,
    round_trip_ns: Option<u64>,
}

/// Probes the paths of a NIC.
#[derive(Debug)]
pub struct Mapper {
    config: Config,
    sessions: Vec<Session>,
    /// When each session times out or becomes due; each has at most one entry.
    timers: BTreeSet<(Instant, u16)>,
    /// Sessions that may send.
    ready: VecDeque<u16>,
    /// When the next probe may be sent.
    free_at: Instant,
    random: Stream,
    counters: Counters,
}

impl Mapper {
    /// A mapper of these paths. The first probes are spread over an interval.
    ///
    /// # Errors
    ///
    /// A setting of 0, a path whose program is too long.
    pub fn new(now: Instant, config: Config, paths: &Paths) -> Result<Self, MapperError> {
        let positive = [
            ("interval", config.interval_ns),
            ("timeout", config.timeout_ns),
            ("deny_after", config.deny_after.into()),
            ("allow_after", config.allow_after.into()),
            ("most_intervals", config.most_intervals),
        ];
        if let Some((name, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(MapperError::Zero(name));
        }
        let mut sessions = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let segments = paths.segments(index);
            if segments.len() > MAX_SEGMENTS {
                return Err(MapperError::TooManySegments { number: index + 1, segments: segments.len() });
            }
            sessions.push(Session {
                segments,
                entropy: path.entropy,
                state: State::START,
                history: History::default(),
                awaited: None,
                sequence: 0,
                sent: [None; REMEMBERED],
                sent_count: 0,
                returned_count: 0,
                round_trip_ns: None,
            });
        }
        let count = sessions.len() as u64;
        let due = |number: u64| now.after_ns(config.interval_ns / count.max(1) * number);
        let timers = (0..count).map(|number| (due(number), number as u16)).collect();
        let random = Stream::new(config.seed, "mapper");
        let ready = VecDeque::with_capacity(sessions.len());
        let mut mapper =
            Mapper { config, sessions, timers, ready, free_at: now, random, counters: Counters::default() };
        let _ = mapper.tick(now);
        Ok(mapper)
    }

    /// Counts probes that have not returned in time, and makes due ones ready for [`Mapper::poll`].
    pub fn tick(&mut self, now: Instant) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some((_, number)) = self.timers.first().copied().filter(|(due, _)| *due <= now) {
            self.timers.pop_first();
            let Some(session) = self.sessions.get_mut(usize::from(number)) else { continue };
            if session.awaited.take().is_none() {
                self.ready.push_back(number);
                continue;
            }
            self.counters.probes_lost += 1;
            changes.extend(self.apply(now, number, Event::Lost));
        }
        changes
    }

    /// The next probe that may be sent now, as a whole IPv6 packet, with its path.
    pub fn poll(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        if now < self.free_at {
            return None;
        }
        let number = self.ready.pop_front()?;
        let session = self.sessions.get_mut(usize::from(number))?;
        let probe = ProbePacket {
            address: self.config.address,
            traffic_class: self.config.traffic_class,
            hop_limit: self.config.hop_limit,
            port: self.config.port,
            probe: Probe { sequence: session.sequence, sent: now, session: number },
        };
        let packet = packet::emit(&session.segments, session.entropy.flow_label(), &probe)?;
        let until = now.after_ns(self.config.timeout_ns);
        session.awaited = Some((session.sequence, until));
        session.sent[session.sequence as usize % REMEMBERED] = Some(now);
        session.sequence = session.sequence.wrapping_add(1);
        session.sent_count += 1;
        self.timers.insert((until, number));
        self.free_at = now.after_ns(self.config.gap_ns);
        self.counters.probes_sent += 1;
        Some((usize::from(number), packet))
    }

    /// Takes an IPv6 packet that has arrived, from its IPv6 header on; the change that it causes.
    pub fn receive(&mut self, now: Instant, packet: &[u8]) -> Option<Change> {
        match ProbePacket::parse(packet, self.config.address, self.config.port) {
            Some(packet) => self.handle(now, &packet.probe),
            None => {
                self.counters.probes_foreign += 1;
                None
            }
        }
    }

    /// Takes the payload of a UDP packet from and to the mapper's address and port, as a socket has it.
    pub fn receive_payload(&mut self, now: Instant, payload: &[u8]) -> Option<Change> {
        match Probe::parse(payload) {
            Ok(probe) if payload.len() == Probe::LEN => self.handle(now, &probe),
            Ok(_) | Err(_) => {
                self.counters.probes_foreign += 1;
                None
            }
        }
    }

    fn handle(&mut self, now: Instant, probe: &Probe) -> Option<Change> {
        let Probe { sequence, sent, session: number } = *probe;
        let remembered = self.sessions.get_mut(usize::from(number)).and_then(|session| {
            let place = &mut session.sent[sequence as usize % REMEMBERED];
            // The time stamp, in nanoseconds, serves as an unpredictable nonce.
            place.take_if(|known| *known == sent).map(|_| session)
        });
        let Some(session) = remembered else {
            self.counters.probes_foreign += 1;
            return None;
        };
        let Some((_, until)) = session.awaited.take_if(|(awaited, _)| *awaited == sequence) else {
            self.counters.probes_late += 1;
            return None;
        };
        session.returned_count += 1;
        session.round_trip_ns = u64::try_from(now.since(sent).as_nanos()).ok();
        self.timers.remove(&(until, number));
        self.counters.probes_returned += 1;
        self.apply(now, number, Event::Returned)
    }

    /// Advances the state of a path, and sets the time of its next probe.
    fn apply(&mut self, now: Instant, number: u16, event: Event) -> Option<Change> {
        let Mapper { config, sessions, timers, random, counters, .. } = self;
        let session = sessions.get_mut(usize::from(number))?;
        let before = session.state.is_denied();
        session.state = session.state.after(now, event, &mut session.history, config);
        let wait_ns = match session.state {
            State::Allowed { lost: 0 } => config.interval_ns,
            State::Allowed { .. } => 0,
            State::Denied { intervals, .. } => config.interval_ns.saturating_mul(intervals),
        };
        // Up to an eighth less or more in all, so that probes of many hosts do not stay in step.
        let part = wait_ns / 8;
        let wait_ns = wait_ns - part / 2 + random.below(part.saturating_add(1));
        timers.insert((now.after_ns(wait_ns), number));
        let is_denied = session.state.is_denied();
        match (before, is_denied) {
            (false, true) => counters.denied += 1,
            (true, false) => counters.allowed += 1,
            (false, false) | (true, true) => return None,
        }
        Some(Change { path: usize::from(number), is_denied, at: now })
    }

    /// When [`Mapper::tick`] and [`Mapper::poll`] are wanted next.
    pub fn next_deadline(&self) -> Option<Instant> {
        let to_send = (!self.ready.is_empty()).then_some(self.free_at);
        [self.timers.first().map(|(due, _)| *due), to_send].into_iter().flatten().min()
    }

    /// Whether a path is in the deny list.
    pub fn is_denied(&self, path: usize) -> bool {
        self.sessions.get(path).is_some_and(|session| session.state.is_denied())
    }

    /// State and counts of all paths, in their order.
    pub fn reports(&self) -> impl Iterator<Item = PathReport> + '_ {
        self.sessions.iter().map(|session| PathReport {
            state: session.state,
            sent: session.sent_count,
            returned: session.returned_count,
            round_trip_ns: session.round_trip_ns,
        })
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }
}
