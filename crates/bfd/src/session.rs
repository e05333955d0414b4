//! One session (RFC 5880 section 6.8).

use crate::config::Config;
use crate::control::{Control, ControlPacket, Discriminator};
use crate::diagnostic::Diagnostic;
use crate::refusal::Refusal;
use crate::state::{State, StateEvent};
use crate::timers::{Jitter, Timers, detection_time_ns, transmission_interval_ns};
use crate::transmission::{Kind, Transmission};
use srdma_random::Stream;
use srdma_wire::Instant;
use std::num::NonZeroU8;

/// A change for those who use the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Packets pass in both directions.
    Up,
    /// The session was Up and is not any more: a hint to use another path (D90).
    Down {
        /// Our reason.
        diagnostic: Diagnostic,
        /// The peer or we disabled the session: nothing is known about the path (RFC 5882 section 3.2).
        is_administrative: bool,
    },
}

/// The peer's last packet.
#[derive(Clone, Copy, Debug)]
struct Remote {
    discriminator: Option<Discriminator>,
    state: State,
    is_demand: bool,
    required_min_rx_us: u32,
    /// When it came, and the two of its values that the detection time follows from.
    received: Option<Received>,
}

#[derive(Clone, Copy, Debug)]
struct Received {
    at: Instant,
    desired_min_tx_us: u32,
    detect_mult: NonZeroU8,
}

impl Remote {
    /// A peer that was not received for a detection time (RFC 5880 section 6.8.1; D91).
    const UNKNOWN: Remote =
        Remote { discriminator: None, state: State::Down, is_demand: false, required_min_rx_us: 1, received: None };

    fn of(control: &Control, at: Instant) -> Self {
        let &Control { desired_min_tx_us, detect_mult, .. } = control;
        Remote {
            discriminator: Some(control.my_discriminator),
            state: control.state,
            is_demand: control.is_demand,
            required_min_rx_us: control.required_min_rx_us,
            received: Some(Received { at, desired_min_tx_us, detect_mult }),
        }
    }
}

/// One side of a session, in the active role: it sends without having received anything.
///
/// At a time, first [`receive`](Session::receive) what has come, then [`tick`](Session::tick), then
/// [`poll`](Session::poll) until there is nothing to send: so a driver that runs late does not take its own delay for
/// the peer's silence.
#[derive(Clone, Debug)]
pub struct Session {
    discriminator: Discriminator,
    state: State,
    diagnostic: Diagnostic,
    remote: Remote,
    timers: Timers,
    transmission: Transmission,
    random: Stream,
}

impl Session {
    /// A session that is Down and enabled. `discriminator` is unique among the system's; `random` is for jitter.
    pub fn new(config: Config, discriminator: Discriminator, random: Stream, now: Instant) -> Self {
        Session {
            discriminator,
            state: State::Down,
            diagnostic: Diagnostic::NONE,
            remote: Remote::UNKNOWN,
            timers: Timers::new(config),
            transmission: Transmission::new(now),
            random,
        }
    }

    /// Our number for the session.
    pub fn discriminator(&self) -> Discriminator {
        self.discriminator
    }

    /// Our state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Reason for our last change of state.
    pub fn diagnostic(&self) -> Diagnostic {
        self.diagnostic
    }

    /// The peer's number for the session, while it is received.
    pub fn remote_discriminator(&self) -> Option<Discriminator> {
        self.remote.discriminator
    }

    /// The peer's state in its last packet; Down while it is not received.
    pub fn remote_state(&self) -> State {
        self.remote.state
    }

    /// The configuration.
    pub fn config(&self) -> Config {
        self.timers.config()
    }

    /// Changes the configuration. A session that is Up stays so: the peer confirms the intervals by a Poll Sequence.
    pub fn configure(&mut self, config: Config) {
        self.timers.configure(config, self.is_up());
    }

    /// Disables the session; the peer learns it by the next packet. `diagnostic` is usually
    /// [`Diagnostic::ADMINISTRATIVELY_DOWN`].
    pub fn disable(&mut self, diagnostic: Diagnostic) -> Option<Event> {
        self.change(StateEvent::Disabled(diagnostic))
    }

    /// Enables the session.
    pub fn enable(&mut self) {
        // From AdminDown it becomes Down, which is no event.
        let _ = self.change(StateEvent::Enabled);
    }

    /// Takes a packet of the peer (RFC 5880 section 6.8.6).
    ///
    /// # Errors
    ///
    /// If the packet is refused. It changes nothing then, except that a disabled session learns the peer's values and
    /// answers a Poll.
    pub fn receive(&mut self, packet: &ControlPacket<'_>, now: Instant) -> Result<Option<Event>, Refusal> {
        let ControlPacket { control, authentication } = packet;
        if control.your_discriminator.is_some_and(|yours| yours != self.discriminator) {
            return Err(Refusal::UnknownDiscriminator);
        }
        if authentication.is_some() {
            return Err(Refusal::Authenticated);
        }
        self.remote = Remote::of(control, now);
        self.timers.received(control.is_final, self.is_up(), now);
        // In any state (RFC 5880 section 6.8.7, D91).
        if control.is_poll {
            self.transmission.polled();
        }
        if self.state == State::AdminDown {
            return Err(Refusal::AdministrativelyDown);
        }
        Ok(self.change(StateEvent::Peer(control.state)))
    }

    /// Detects that the peer is not received any more.
    pub fn tick(&mut self, now: Instant) -> Option<Event> {
        if self.detection_at().is_none_or(|at| now < at) {
            return None;
        }
        self.remote = Remote::UNKNOWN;
        self.change(StateEvent::DetectionTimeExpired)
    }

    /// The next packet that is due; call until there is none.
    pub fn poll(&mut self, now: Instant) -> Option<Control> {
        let content = self.content();
        let (at, kind) = self.transmission.next(&content, self.interval_ns())?;
        if now < at {
            return None;
        }
        let jitter = Jitter::draw(&mut self.random, content.detect_mult);
        self.transmission.sent(now, kind, content, jitter);
        let is_poll = match kind {
            Kind::Final => return Some(Control { is_final: true, ..content }),
            Kind::Periodic | Kind::Early => self.timers.is_polling(),
        };
        if is_poll {
            self.timers.polled(now);
        }
        Some(Control { is_poll, ..content })
    }

    /// Time of the next [`tick`](Session::tick) and [`poll`](Session::poll); one that has passed means at once.
    /// `None`: when a packet is received.
    pub fn next_deadline(&self) -> Option<Instant> {
        let packet_at = self.transmission.next(&self.content(), self.interval_ns()).map(|(at, _)| at);
        [packet_at, self.detection_at()].into_iter().flatten().min()
    }

    /// Time without a packet after which the session goes down, in nanoseconds; `None` while the peer is not received.
    pub fn detection_time_ns(&self) -> Option<u64> {
        let rx_us = self.timers.in_use().rx_us;
        let Received { desired_min_tx_us, detect_mult, .. } = self.remote.received?;
        Some(detection_time_ns(rx_us, desired_min_tx_us, detect_mult))
    }

    /// Interval between periodic packets before jitter, in nanoseconds; `None` when none are sent: the peer wants
    /// none, or only those of a Poll Sequence, since it is in Demand mode.
    pub fn interval_ns(&self) -> Option<u64> {
        let is_demanded = self.remote.is_demand && self.is_up() && self.remote.state == State::Up;
        if is_demanded && !self.timers.is_polling() {
            return None;
        }
        transmission_interval_ns(self.timers.in_use().tx_us, self.remote.required_min_rx_us)
    }

    fn detection_at(&self) -> Option<Instant> {
        Some(self.remote.received?.at.after_ns(self.detection_time_ns()?))
    }

    fn is_up(&self) -> bool {
        self.state == State::Up
    }

    fn change(&mut self, event: StateEvent) -> Option<Event> {
        let (next, diagnostic) = self.state.next(event)?;
        let was_up = self.is_up();
        (self.state, self.diagnostic) = (next, diagnostic);
        self.timers.state_changed(self.is_up());
        let is_administrative = match event {
            StateEvent::Peer(State::AdminDown) | StateEvent::Disabled(_) => true,
            StateEvent::Peer(State::Down | State::Init | State::Up)
            | StateEvent::DetectionTimeExpired
            | StateEvent::Enabled => false,
        };
        match (was_up, self.is_up()) {
            (false, true) => Some(Event::Up),
            (true, false) => Some(Event::Down { diagnostic, is_administrative }),
            (false, false) | (true, true) => None,
        }
    }

    /// A packet with neither Poll nor Final (RFC 5880 section 6.8.7).
    fn content(&self) -> Control {
        let advertised = self.timers.advertised();
        Control {
            diagnostic: self.diagnostic,
            state: self.state,
            is_poll: false,
            is_final: false,
            is_control_plane_independent: false,
            is_demand: false,
            detect_mult: self.timers.config().detect_mult(),
            my_discriminator: self.discriminator,
            your_discriminator: self.remote.discriminator,
            desired_min_tx_us: advertised.tx_us,
            required_min_rx_us: advertised.rx_us,
            required_min_echo_rx_us: 0,
        }
    }
}
