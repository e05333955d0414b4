//! The NIC's side of placed paths (PP-4-3, PP-4-6, D83–D87): encapsulates each packet with its program, evaluates the
//! signals that come back, probes paths, and steers. A value without I/O; `Node` has one, and whatever else stands
//! before a host may.
//!
//! ```text
//!   host ──► encapsulate ── H.Encaps.Red by the flow's path ──► fabric
//!                │ ▲
//!                ▼ │ which path
//!             Steering ◄── CNP, Fast CNP, NAK, ACK, probes ── incoming ◄── fabric
//!                                                                │
//!   host ◄── everything but the headend's own probes, unchanged ─┘
//! ```
//!
//! No message goes to any router, whatever happens: a flow changes its path by its next packet's destination address.
//!
//! ```
//! use srdma_dataplane::headend::{Headend, HeadendConfig, HeadendPath, Incoming};
//! use srdma_frame::{Frame, Pool};
//! use srdma_steering::Path;
//! use srdma_wire::{Instant, Prefix};
//!
//! // Figure 1 of the draft: from NIC 1 to NIC 3 by spine 5 or spine 6.
//! let by = |program: &str, rank| HeadendPath {
//!     path: Path { segments: vec![program.parse().unwrap()], rank, ..Path::default() },
//!     ..HeadendPath::default()
//! };
//! let mut headend = Headend::new(HeadendConfig::new("2001:db8:1::1".parse().unwrap()));
//! let paths = [by("5f00:0:100:500:300::", 0), by("5f00:0:100:600:300::", 1)];
//! let set = headend.set_paths(Instant::ZERO, None, &paths).unwrap();
//! headend.lead(Prefix::new("2001:db8:3::".parse().unwrap(), 64).unwrap(), set);
//!
//! // A packet of the host, behind room for an Ethernet header, which is written anew after this.
//! let mut packet = vec![0; 14];
//! packet.extend([0x60, 0, 0, 0, 0, 0, 59, 64]);
//! packet.extend("2001:db8:1::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
//! packet.extend("2001:db8:3::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
//! let (now, mut pool) = (Instant::from_ns(1), Pool::new(64));
//! let mut frame = Frame::from_octets(&packet, &mut pool).unwrap();
//! assert_eq!(headend.outgoing(now, &mut frame, &mut pool), Ok(Some(40)));
//! let outer: [u8; 16] = frame.head(&pool)[14 + 24..14 + 40].try_into().unwrap();
//! assert_eq!(std::net::Ipv6Addr::from(outer), "5f00:0:100:500:300::".parse::<std::net::Ipv6Addr>().unwrap());
//! frame.release(&mut pool);
//!
//! // Its first packet has made the destination active: its paths are probed.
//! headend.tick(now);
//! let probe = headend.poll_probe(now, &mut pool).unwrap();
//! assert_eq!(headend.incoming(now, &probe, &pool), Incoming::Probe);
//! probe.release(&mut pool);
//! ```

mod again;
mod answers;
mod config;
mod counters;
mod entropy;
mod flow;
mod listen;
mod placed;
mod probes;
mod program;
mod report;

pub use config::{HeadendConfig, HeadendError, HeadendPath, ProbeConfig, Probing};
pub use counters::HeadendCounters;
pub use listen::Incoming;
pub(crate) use placed::{PlacedRoutes, has_entropy};
pub use program::loop_program;
pub use report::{HeadendFlow, HeadendPathReport};

use crate::drop::DropReason;
use crate::encaps::{Encaps, EncapsMode};
use crate::fast_cnp::Connection;
use crate::headers::ipv6;
use again::{Kind, Requests};
use answers::Answers;
use flow::{Leaving, key_of_connection};
use probes::Probes;
use srdma_fib::Fib;
use srdma_frame::{Frame, Pool};
use srdma_steering::{Path, PathIndex, SetId, Signal, SignalEffect, Steering, Subject};
use srdma_wire::{Entropy, Instant, Prefix, Qpn};
use std::net::Ipv6Addr;

/// The headend of a NIC.
#[derive(Debug)]
pub struct Headend {
    config: HeadendConfig,
    steering: Steering,
    /// By [`SetId`].
    sets: Vec<Option<Programs>>,
    destinations: Fib<SetId>,
    answers: Answers,
    /// By place of the flow.
    flows: Box<[FlowState]>,
    probes: Option<Probes>,
    counters: HeadendCounters,
    /// The latest time passed in.
    latest: Instant,
}

/// Encapsulations of packets to a destination.
#[derive(Debug)]
struct Programs {
    /// By path.
    paths: Vec<Encaps>,
    /// By path: the value that its packets carry, if they do.
    entropies: Vec<Option<Entropy>>,
    /// The best ranked path that is not denied.
    first: usize,
    /// The session of each path that is probed.
    sessions: Vec<Option<u16>>,
    /// When the last packet was encapsulated.
    last: Instant,
    /// No packet has been for a while, so that paths are not probed.
    is_quiet: bool,
}

/// State of a flow, besides that of steering.
#[derive(Clone, Copy, Debug, Default)]
struct FlowState {
    source: [u8; 16],
    destination: [u8; 16],
    requests: Requests,
}

impl Headend {
    /// A headend without paths.
    pub fn new(config: HeadendConfig) -> Self {
        let steering = Steering::new(config.steering.clone());
        let places = steering.flow_capacity();
        let probes = config.probes.clone().map(|probes| Probes::new(probes, config.probe_address(), config.hop_limit));
        Headend {
            config,
            steering,
            sets: Vec::new(),
            destinations: Fib::default(),
            answers: Answers::new(places),
            flows: vec![FlowState::default(); places].into_boxed_slice(),
            probes,
            counters: HeadendCounters::default(),
            latest: Instant::ZERO,
        }
    }

    /// Its settings.
    pub fn config(&self) -> &HeadendConfig {
        &self.config
    }

    /// Adds the paths to a destination, or replaces those of a set.
    ///
    /// # Errors
    ///
    /// If there is no path to take, too many, or one whose headers do not fit. Nothing has changed then.
    pub fn set_paths(
        &mut self,
        now: Instant,
        set: Option<SetId>,
        paths: &[HeadendPath],
    ) -> Result<SetId, HeadendError> {
        let mut programs = Vec::new();
        let mut looped = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let number = index + 1;
            let program = self.program(&path.path.segments);
            programs.push(program.map_err(|error| HeadendError::Program { number, error })?);
            let segments = match &path.probing {
                _ if path.path.is_denied || self.probes.is_none() => None,
                Probing::Never => None,
                Probing::By(segments) => Some(segments.clone()),
                Probing::ThereAndBack => loop_program(&path.path.segments),
            };
            let program = segments.map(|segments| self.program(&segments)).transpose();
            looped.push(program.map_err(|error| HeadendError::Probe { number, error })?);
        }
        if self.sets.iter().flatten().map(|programs| programs.sessions.len()).sum::<usize>() + paths.len() > 1 << 16 {
            return Err(HeadendError::TooManyProbes);
        }
        let plain: Vec<Path> = paths.iter().map(|path| path.path.clone()).collect();
        let id = self.steering.set_paths(now, set, &plain)?;
        let allowed = plain.iter().enumerate().filter(|(_, path)| !path.is_denied);
        let first = allowed.min_by_key(|(_, path)| path.rank).map_or(0, |(index, _)| index);
        let place = id.0 as usize;
        if self.sets.len() <= place {
            self.sets.resize_with(place + 1, || None);
        }
        let before = self.sets[place].take();
        let (last, is_quiet) = before.as_ref().map_or((Instant::ZERO, true), |before| (before.last, before.is_quiet));
        let sessions = self.sessions(now, id, before, looped);
        if let (Some(probes), false) = (&mut self.probes, is_quiet) {
            sessions.iter().flatten().for_each(|session| probes.wake(now, *session));
        }
        let entropies = paths.iter().map(|path| path.entropy).collect();
        self.sets[place] = Some(Programs { paths: programs, entropies, first, sessions, last, is_quiet });
        Ok(id)
    }

    /// Forgets a set of paths, its flows, and the prefixes that lead to it.
    pub fn remove_set(&mut self, set: SetId) {
        self.end_programs(set);
        self.steering.remove_set(set);
    }

    /// Forgets a set of paths to whose destinations another leads now: flows stay on the paths that both have.
    pub fn replace_set(&mut self, set: SetId, by: SetId) {
        self.end_programs(set);
        self.steering.replace_set(set, by);
    }

    fn end_programs(&mut self, set: SetId) {
        let programs = self.sets.get_mut(set.0 as usize).and_then(Option::take);
        if let (Some(programs), Some(probes)) = (programs, &mut self.probes) {
            programs.sessions.iter().flatten().for_each(|session| probes.end(*session));
        }
    }

    /// Leads packets to a prefix to a set, for [`Headend::outgoing`].
    pub fn lead(&mut self, prefix: Prefix, set: SetId) {
        self.destinations.insert(prefix, set);
    }

    /// Leads packets to a prefix nowhere; whether it led anywhere.
    pub fn lead_nowhere(&mut self, prefix: Prefix) -> bool {
        self.destinations.remove(prefix).is_some()
    }

    /// Adds a pair of connected queue pairs, by which CNPs and negative acknowledgements are assigned to a flow.
    pub fn add_connection(&mut self, connection: Connection) {
        self.answers.configure(connection);
    }

    /// Forgets the connection with a queue pair of a peer; whether it was known.
    pub fn remove_connection(&mut self, host: Ipv6Addr, peer: Ipv6Addr, peer_qpn: Qpn) -> bool {
        self.answers.forget(host, peer, peer_qpn)
    }

    /// Takes over the connections that another has known.
    pub(crate) fn succeed(&mut self, before: &mut Headend) {
        self.answers.adopt(before.answers.take_configured());
    }

    /// Puts the headers of its flow's path around a packet, if a prefix leads to any; returns how many octets they
    /// have.
    ///
    /// The frame begins with room for an Ethernet header, whose content means nothing, before or after.
    ///
    /// # Errors
    ///
    /// The reason for dropping the packet.
    #[inline]
    pub fn outgoing(&mut self, now: Instant, frame: &mut Frame, pool: &mut Pool) -> Result<Option<usize>, DropReason> {
        let destination = ipv6(frame.head(pool))?.destination_octets();
        match self.destinations.lookup(destination) {
            Some(set) => self.encapsulate(now, set, frame, pool).map(Some),
            None => Ok(None),
        }
    }

    /// Puts the headers of its flow's path around a packet; returns how many octets they have. The inner hop limit is
    /// the caller's affair. For the frame see [`Headend::outgoing`].
    ///
    /// # Errors
    ///
    /// The reason for dropping the packet.
    #[inline]
    pub fn encapsulate(
        &mut self,
        now: Instant,
        set: SetId,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<usize, DropReason> {
        let leaving = Leaving::of(frame.head(pool)).ok_or(DropReason::Truncated)?;
        let programs = self.sets.get_mut(set.0 as usize).and_then(Option::as_mut).ok_or(DropReason::NoPath)?;
        programs.last = now;
        self.latest = now;
        if programs.is_quiet {
            wake(&mut self.probes, now, programs);
        }
        let path = self.steer(now, set, &leaving).ok_or(DropReason::NoPath)?;
        let programs = self.sets.get(set.0 as usize).and_then(Option::as_ref).ok_or(DropReason::NoPath)?;
        let program = programs.paths.get(path.index()).ok_or(DropReason::NoPath)?;
        match programs.entropies.get(path.index()).copied().flatten() {
            Some(entropy) => entropy::push(entropy, program, frame, pool)?,
            None => program.push(frame, pool)?,
        }
        self.counters.encapsulated += 1;
        Ok(program.octets())
    }

    /// Puts the headers of a set's first path around a packet that is of no flow, such as an error.
    pub(crate) fn encapsulate_unsteered(
        &self,
        set: SetId,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let programs = self.sets.get(set.0 as usize).and_then(Option::as_ref).ok_or(DropReason::NoPath)?;
        programs.paths.get(programs.first).ok_or(DropReason::NoPath)?.push(frame, pool)
    }

    /// Reports a signal about a flow's path that only the host has: a trimmed packet, or a delay.
    ///
    /// The flow is that from one address to a queue pair of another.
    pub fn handle_signal(
        &mut self,
        now: Instant,
        host: Ipv6Addr,
        peer: Ipv6Addr,
        peer_qpn: Qpn,
        signal: Signal,
    ) -> SignalEffect {
        let flow = key_of_connection(&host.octets(), &peer.octets(), peer_qpn);
        self.steering.handle_signal(now, Subject::Flow(flow), signal)
    }

    /// Does what was due by now. Then [`Headend::poll_probe`] has the probes that it has made ready.
    pub fn tick(&mut self, now: Instant) {
        self.latest = now;
        let Headend { probes: Some(probes), sets, steering, counters, .. } = self else { return };
        let active_ns = u128::from(probes.config().active_ns);
        probes.tick(now, steering, counters, |set| {
            let Some(programs) = sets.get_mut(set.0 as usize).and_then(Option::as_mut) else { return false };
            programs.is_quiet = now.since(programs.last).as_nanos() >= active_ns;
            !programs.is_quiet
        });
    }

    /// The next probe to send now, headers of its path and room for an Ethernet header in front.
    pub fn poll_probe(&mut self, now: Instant, pool: &mut Pool) -> Option<Frame> {
        self.probes.as_mut()?.poll(now, pool, &mut self.counters)
    }

    /// Octets of the most headers that it puts around a packet.
    pub fn greatest_overhead(&self) -> usize {
        let programs = self.sets.iter().flatten().flat_map(|programs| &programs.paths);
        programs.map(Encaps::octets).max().unwrap_or(0)
    }

    /// When [`Headend::tick`] and [`Headend::poll_probe`] are wanted next.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.probes.as_ref()?.next_deadline()
    }

    /// The counters.
    pub fn counters(&self) -> &HeadendCounters {
        &self.counters
    }

    /// The latest time passed in, by a packet that was sent or by [`Headend::tick`].
    pub fn latest(&self) -> Instant {
        self.latest
    }

    /// The state of steering.
    pub fn steering(&self) -> &Steering {
        &self.steering
    }

    fn program(&self, segments: &[Ipv6Addr]) -> Result<Encaps, crate::encaps::EncapsError> {
        Encaps::signed(self.config.source, segments, EncapsMode::Reduced, self.config.hop_limit, None)
    }

    /// The sessions of a set's paths: existing and new ones; others end.
    fn sessions(
        &mut self,
        now: Instant,
        set: SetId,
        before: Option<Programs>,
        looped: Vec<Option<Encaps>>,
    ) -> Vec<Option<u16>> {
        let Some(probes) = &mut self.probes else { return vec![None; looped.len()] };
        let mut old: Vec<u16> = before.into_iter().flat_map(|before| before.sessions).flatten().collect();
        let mut sessions = Vec::new();
        for (index, program) in looped.into_iter().enumerate() {
            let path = PathIndex(index as u16);
            sessions.push(program.and_then(|program| {
                match old.iter().position(|session| probes.program(*session) == Some(&program)) {
                    Some(position) => {
                        let session = old.swap_remove(position);
                        probes.renumber(session, path);
                        Some(session)
                    }
                    None => probes.begin(now, set, path, program),
                }
            }));
        }
        old.into_iter().for_each(|session| probes.end(session));
        sessions
    }

    /// The path of a packet; a retransmission counts as a signal.
    #[inline]
    fn steer(&mut self, now: Instant, set: SetId, leaving: &Leaving<'_>) -> Option<PathIndex> {
        let choice = self.steering.choose(now, set, leaving.key, leaving.boundary)?;
        let flow = self.flows.get_mut(choice.place)?;
        if choice.is_new {
            let (source, destination) = (*leaving.source, *leaving.destination);
            *flow = FlowState { source, destination, requests: Requests::default() };
            if leaving.is_connection {
                self.answers.begin(leaving);
            }
        }
        if choice.moved.is_some() {
            flow.requests.moved(now.after_ns(self.config.steering.dwell_ns));
        }
        let Some(request) = leaving.request else { return Some(choice.path) };
        let kind = flow.requests.send(now, request);
        if request.asks {
            self.answers.expect(now, leaving, request, kind != Kind::New);
        }
        match kind {
            Kind::New => {}
            Kind::AfterMove => self.counters.sent_again_after_move += 1,
            Kind::Again { goes_back } => {
                self.counters.sent_again += 1;
                if goes_back {
                    self.steering.handle_signal(now, Subject::Flow(leaving.key), Signal::Loss);
                }
            }
        }
        Some(choice.path)
    }
}

#[cold]
fn wake(probes: &mut Option<Probes>, now: Instant, programs: &mut Programs) {
    programs.is_quiet = false;
    if let Some(probes) = probes {
        programs.sessions.iter().flatten().for_each(|session| probes.wake(now, *session));
    }
}
