//! Probes of paths (D85, D87): sent to the headend itself along a path and back, so that no other host is involved.
//!
//! ```text
//!                 due, and packets take the path's set          comes back
//!   waiting ────────────────────────────────────────► on its way ──────────► waiting for an interval
//!      ▲                                                │ does not in time
//!      │   once in an interval, when the path is dead;  │
//!      └──────────────── else at once ──────────────────┘
//! ```
//!
//! In time is what TCP would call so (RFC 6298 section 2): the smoothed time there and back and four times its
//! variation, but an eighth of an interval at least.

use super::config::ProbeConfig;
use super::counters::HeadendCounters;
use crate::encaps::Encaps;
use crate::headers::IPV6;
use crate::timers::Timers;
use srdma_frame::{Frame, Pool};
use srdma_steering::{PathIndex, SetId, Signal, SignalEffect, Steering, Subject};
use srdma_wire::ipv6::Ecn;
use srdma_wire::units::NS_PER_S;
use srdma_wire::{Instant, Probe, ProbePacket};
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// Probes of a path that are recognised when they come back.
const REMEMBERED: usize = 8;

/// As long as no probe of a path has come back, the next is sent after so many intervals, twice as many each time.
const FIRST_INTERVALS: u64 = 10;

/// The shortest wait for a probe, in nanoseconds: also of one that comes back at once the next has to wait.
const LEAST_NS: u64 = 1_000;

/// The longest wait for a probe, in nanoseconds.
const MOST_NS: u64 = NS_PER_S;

/// Probes that the share of marked ones is taken of.
const MARKING_WINDOW: u32 = 16;

/// The probes of one path.
#[derive(Debug)]
struct Session {
    set: SetId,
    path: PathIndex,
    program: Encaps,
    due: Instant,
    /// The number of the outstanding probe, and its timeout.
    awaited: Option<(u32, Instant)>,
    sequence: u32,
    sent: [Option<Instant>; REMEMBERED],
    /// Smoothed time there and back and its variation, in nanoseconds; `None` before the first answer.
    round_trip: Option<(u64, u64)>,
    /// Probes in a row without an answer.
    silent: u32,
    marked: u32,
    answered: u32,
    /// It waits until packets take its set again.
    is_dormant: bool,
}

#[derive(Debug)]
pub(super) struct Probes {
    config: ProbeConfig,
    address: Ipv6Addr,
    hop_limit: u8,
    sessions: Vec<Option<Session>>,
    timers: Timers,
    /// Sessions that may send.
    ready: VecDeque<u16>,
    /// When the next probe may be sent.
    free_at: Instant,
}

impl Probes {
    pub(super) fn new(config: ProbeConfig, address: Ipv6Addr, hop_limit: u8) -> Self {
        let timers = Timers::default();
        let (sessions, ready, free_at) = (Vec::new(), VecDeque::new(), Instant::ZERO);
        Probes { config, address, hop_limit, sessions, timers, ready, free_at }
    }

    pub(super) fn config(&self) -> &ProbeConfig {
        &self.config
    }

    /// Begins to probe a path; `None` when there are too many.
    pub(super) fn begin(&mut self, now: Instant, set: SetId, path: PathIndex, program: Encaps) -> Option<u16> {
        let place = self.sessions.iter().position(Option::is_none).unwrap_or(self.sessions.len());
        let number = u16::try_from(place).ok()?;
        if place == self.sessions.len() {
            self.sessions.push(None);
            self.ready.reserve(self.sessions.len().saturating_sub(self.ready.len()));
        }
        self.sessions[place] = Some(Session {
            set,
            path,
            program,
            due: now,
            awaited: None,
            sequence: 0,
            sent: [None; REMEMBERED],
            round_trip: None,
            silent: 0,
            marked: 0,
            answered: 0,
            is_dormant: true,
        });
        Some(number)
    }

    /// The path of a session has another place now.
    pub(super) fn renumber(&mut self, number: u16, path: PathIndex) {
        if let Some(session) = self.session(number) {
            session.path = path;
        }
    }

    /// Ends a session.
    pub(super) fn end(&mut self, number: u16) {
        self.timers.arm(number.into(), None);
        self.ready.retain(|ready| *ready != number);
        if let Some(place) = self.sessions.get_mut(usize::from(number)) {
            *place = None;
        }
    }

    /// Packets take the path's set again.
    pub(super) fn wake(&mut self, now: Instant, number: u16) {
        let Some(session) = self.session(number) else { return };
        if std::mem::take(&mut session.is_dormant) {
            let due = session.due.max(now);
            self.timers.arm(number.into(), Some(due));
        }
    }

    /// The program of a session.
    pub(super) fn program(&self, number: u16) -> Option<&Encaps> {
        Some(&self.sessions.get(usize::from(number))?.as_ref()?.program)
    }

    /// The smoothed time there and back of a session, in nanoseconds.
    pub(super) fn round_trip_ns(&self, number: u16) -> Option<u64> {
        Some(self.sessions.get(usize::from(number))?.as_ref()?.round_trip?.0)
    }

    /// Times out unanswered probes, and prepares due ones; `is_active` returns whether packets use a set.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        steering: &mut Steering,
        counters: &mut HeadendCounters,
        mut is_active: impl FnMut(SetId) -> bool,
    ) {
        while let Some(number) = self.timers.take_due(now) {
            let interval_ns = self.config.interval_ns;
            let Some(session) = self.sessions.get_mut(number as usize).and_then(Option::as_mut) else { continue };
            if session.awaited.is_some_and(|(_, until)| until <= now) {
                session.awaited = None;
                session.silent = session.silent.saturating_add(1);
                counters.probes_silent += 1;
                let effect = steering.handle_signal(now, Subject::Path(session.set, session.path), Signal::ProbeSilent);
                if effect == SignalEffect::FlowMoves {
                    session.due = now.after_ns(interval_ns);
                } else {
                    session.due = now;
                }
            }
            match session.awaited {
                Some((_, until)) => self.timers.arm(number, Some(until)),
                None if now < session.due => self.timers.arm(number, Some(session.due)),
                None if is_active(session.set) => self.ready.push_back(number as u16),
                None => session.is_dormant = true,
            }
        }
    }

    /// The next probe that may be sent now.
    pub(super) fn poll(&mut self, now: Instant, pool: &mut Pool, counters: &mut HeadendCounters) -> Option<Frame> {
        if now < self.free_at {
            return None;
        }
        let number = self.ready.pop_front()?;
        let Probes { config, address, hop_limit, sessions, timers, .. } = self;
        let session = sessions.get_mut(usize::from(number))?.as_mut()?;
        let sequence = session.sequence;
        let packet = ProbePacket {
            address: *address,
            traffic_class: config.traffic_class,
            hop_limit: *hop_limit,
            port: config.port,
            probe: Probe { sequence, sent: now, session: number },
        };
        let mut octets = [0; IPV6 + ProbePacket::LEN];
        octets[IPV6..].copy_from_slice(&packet.emit());
        let frame = Frame::small(&octets, pool).and_then(|mut frame| match session.program.push(&mut frame, pool) {
            Ok(()) => Some(frame),
            Err(_) => {
                frame.release(pool);
                None
            }
        });
        if frame.is_none() {
            counters.probes_not_sent += 1;
            session.due = now.after_ns(config.interval_ns);
            timers.arm(number.into(), Some(session.due));
            self.free_at = now.after_ns(self.config.gap_ns);
            return None;
        }
        let until = now.after_ns(session.patience_ns(config.interval_ns));
        session.sequence = sequence.wrapping_add(1);
        session.sent[sequence as usize % REMEMBERED] = Some(now);
        session.due = now.after_ns(config.interval_ns);
        session.awaited = Some((sequence, until));
        timers.arm(number.into(), Some(until));
        self.free_at = now.after_ns(self.config.gap_ns);
        counters.probes_sent += 1;
        frame
    }

    /// Takes the probe that an IPv6 packet is, if it is one.
    pub(super) fn take(&self, octets: &[u8]) -> Option<ProbePacket> {
        ProbePacket::parse(octets, self.address, self.config.port)
    }

    /// A probe has come back.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        packet: &ProbePacket,
        steering: &mut Steering,
        counters: &mut HeadendCounters,
    ) {
        let Probe { sequence, sent, session: number } = packet.probe;
        let Some(session) = self.sessions.get_mut(usize::from(number)).and_then(Option::as_mut) else {
            counters.probes_foreign += 1;
            return;
        };
        let known = &mut session.sent[sequence as usize % REMEMBERED];
        // The time stamp, in nanoseconds, serves as an unpredictable nonce.
        if *known != Some(sent) {
            counters.probes_foreign += 1;
            return;
        }
        *known = None;
        let ns = u64::try_from(now.since(sent).as_nanos()).unwrap_or(u64::MAX);
        session.time(ns);
        session.silent = 0;
        let subject = Subject::Path(session.set, session.path);
        steering.handle_signal(now, subject, Signal::ProbeAnswered);
        steering.handle_signal(now, subject, Signal::TwoWayLatency { ns });
        if let Some(signal) = session.count_mark(Ecn::of_traffic_class(packet.traffic_class)) {
            steering.handle_signal(now, subject, signal);
        }
        if session.awaited.is_some_and(|(awaited, _)| awaited == sequence) {
            counters.probes_answered += 1;
            session.awaited = None;
            let due = session.due.max(now);
            self.timers.arm(number.into(), Some(due));
        } else {
            counters.probes_late += 1;
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let to_send = (!self.ready.is_empty()).then_some(self.free_at);
        [self.timers.next(), to_send].into_iter().flatten().min()
    }

    fn session(&mut self, number: u16) -> Option<&mut Session> {
        self.sessions.get_mut(usize::from(number))?.as_mut()
    }
}

impl Session {
    /// How long a probe is waited for.
    fn patience_ns(&self, interval_ns: u64) -> u64 {
        match self.round_trip {
            Some((mean, variation)) => mean.saturating_add(variation.saturating_mul(4)).max(interval_ns / 8),
            None => interval_ns.saturating_mul(FIRST_INTERVALS).saturating_mul(1 << self.silent.min(20)),
        }
        .clamp(LEAST_NS, MOST_NS)
    }

    /// RFC 6298 sections 2.2 and 2.3.
    fn time(&mut self, ns: u64) {
        self.round_trip = Some(match self.round_trip {
            None => (ns, ns / 2),
            Some((mean, variation)) => {
                let variation = variation - variation / 4 + mean.abs_diff(ns) / 4;
                (mean - mean / 8 + ns / 8, variation)
            }
        });
    }

    /// Counts the ECN marks of probes; every so often, returns their share.
    fn count_mark(&mut self, ecn: Ecn) -> Option<Signal> {
        self.answered += 1;
        self.marked += u32::from(ecn == Ecn::Ce);
        if self.answered < MARKING_WINDOW {
            return None;
        }
        let signal = Signal::CeRatio { marked: self.marked, packets: self.answered };
        (self.answered, self.marked) = (0, 0);
        Some(signal)
    }
}
