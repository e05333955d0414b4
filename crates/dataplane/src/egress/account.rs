//! Octets received by a port in one class that still wait in the node, and the PFC pauses sent to the neighbour for
//! them. A class may also be held for congestion elsewhere (CN-4.1-1).
//!
//! ```text
//!                 octets > XOFF
//!         Open ──────────────────▶ Closed      leaving Open / PAUSE
//!        │  ▲  ◀──────────────────  │  ▲       reaching Open / RESUME
//!   hold │  │     octets ≤ XON      │  │       elsewhere, half of the pause is over / PAUSE
//!        ▼  │ release               ▼  │
//!         Held ──────────────────▶ Both
//!              ◀──────────────────
//! ```

use super::config::PfcConfig;
use super::pause::quanta_ns;
use srdma_wire::Instant;

/// Retry interval for a pause that could not be sent.
const RETRY_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The neighbour may send.
    #[default]
    Open,
    /// XOFF was sent.
    Closed,
    /// XOFF was sent for congestion elsewhere.
    Held,
    /// For both reasons.
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// More waits than XOFF allows.
    AboveXoff,
    /// No more waits than XON.
    BelowXon,
    /// Half of the pause that was sent is over.
    HalfOver,
    /// There is a reason elsewhere to pause the neighbour.
    Hold,
    /// The pause is withdrawn.
    Release,
}

/// State of the pause sent to the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Pause,
    Resume,
}

impl State {
    fn after(self, event: Event) -> (Self, Option<Message>) {
        match (self, event) {
            (State::Open, Event::AboveXoff) => (State::Closed, Some(Message::Pause)),
            (State::Open, Event::Hold) => (State::Held, Some(Message::Pause)),
            (State::Open, Event::BelowXon | Event::HalfOver | Event::Release) => (State::Open, None),
            (State::Closed, Event::BelowXon) => (State::Open, Some(Message::Resume)),
            (State::Closed, Event::Hold) => (State::Both, None),
            (State::Closed, Event::AboveXoff | Event::Release) => (State::Closed, None),
            (State::Held, Event::Release) => (State::Open, Some(Message::Resume)),
            (State::Held, Event::AboveXoff) => (State::Both, None),
            (State::Held, Event::BelowXon | Event::Hold) => (State::Held, None),
            (State::Both, Event::BelowXon) => (State::Held, None),
            (State::Both, Event::Release) => (State::Closed, None),
            (State::Both, Event::AboveXoff | Event::Hold) => (State::Both, None),
            (State::Closed | State::Held | State::Both, Event::HalfOver) => (self, Some(Message::Pause)),
        }
    }
}

/// The account of one class of a port.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Account {
    octets: usize,
    state: State,
    /// Quanta of the pause that is still to be sent.
    unsent: Option<u16>,
    /// Time at which half of the last sent pause is over.
    half_over: Option<Instant>,
}

impl Account {
    /// Octets that wait.
    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    /// Whether the neighbour is to pause.
    pub(super) fn is_closed(&self) -> bool {
        self.state != State::Open
    }

    /// Whether so many octets more fit behind XOFF and headroom.
    #[inline]
    pub(super) fn has_room(&self, len: usize, pfc: &PfcConfig) -> bool {
        self.octets + len <= pfc.xoff_octets.saturating_add(pfc.headroom_octets)
    }

    /// A frame of so many octets is enqueued; returns whether a pause must be sent.
    #[inline]
    pub(super) fn enter(&mut self, len: usize, pfc: Option<&PfcConfig>) -> bool {
        self.octets += len;
        match pfc {
            Some(pfc) if self.octets > pfc.xoff_octets => self.happen(Event::AboveXoff, pfc),
            Some(_) | None => false,
        }
    }

    /// A frame of so many octets is dequeued; returns whether a pause must be sent.
    #[inline]
    pub(super) fn leave(&mut self, len: usize, pfc: Option<&PfcConfig>) -> bool {
        self.octets -= len;
        match pfc {
            Some(pfc) if self.octets <= pfc.xon_octets => self.happen(Event::BelowXon, pfc),
            Some(_) | None => false,
        }
    }

    /// Handles a due deadline; returns whether a pause must be sent.
    pub(super) fn tick(&mut self, now: Instant, pfc: &PfcConfig) -> bool {
        if self.half_over.is_none_or(|half_over| half_over > now) {
            return false;
        }
        self.half_over = None;
        self.happen(Event::HalfOver, pfc)
    }

    /// Sets or clears a hold for congestion elsewhere; returns whether a pause must be sent.
    pub(super) fn hold(&mut self, is_held: bool, pfc: &PfcConfig) -> bool {
        self.happen(if is_held { Event::Hold } else { Event::Release }, pfc)
    }

    /// Applies new thresholds in place of `before`. Returns whether a pause must be sent.
    pub(super) fn change(&mut self, before: Option<&PfcConfig>, pfc: Option<&PfcConfig>) -> bool {
        match pfc {
            Some(pfc) if self.octets > pfc.xoff_octets => self.happen(Event::AboveXoff, pfc),
            Some(pfc) if self.octets <= pfc.xon_octets => self.happen(Event::BelowXon, pfc),
            Some(_) => false,
            // A pause that was sent must not outlive the class's PFC.
            None => before.is_some_and(|before| {
                let by_octets = self.happen(Event::BelowXon, before);
                self.happen(Event::Release, before) || by_octets
            }),
        }
    }

    /// The quanta to send now. A pause is refreshed at half of its time.
    pub(super) fn take_message(&mut self, now: Instant, rate_bits_per_s: u64) -> Option<u16> {
        let quanta = self.unsent.take()?;
        let half_ns = (quanta_ns(quanta, rate_bits_per_s) / 2).max(1);
        self.half_over = (quanta > 0).then(|| now.after_ns(half_ns));
        Some(quanta)
    }

    /// The pause could not be sent: retries soon.
    pub(super) fn take_back(&mut self, now: Instant, quanta: u16) {
        (self.unsent, self.half_over) = (Some(quanta), Some(now.after_ns(RETRY_NS)));
    }

    /// Discards the state: the link is down.
    pub(super) fn forget(&mut self) {
        (self.state, self.unsent, self.half_over) = (State::Open, None, None);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.half_over
    }

    fn happen(&mut self, event: Event, pfc: &PfcConfig) -> bool {
        let (state, message) = self.state.after(event);
        self.state = state;
        match message {
            Some(Message::Pause) => self.unsent = Some(pfc.quanta),
            Some(Message::Resume) => (self.unsent, self.half_over) = (Some(0), None),
            None => {}
        }
        message.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    const PFC: PfcConfig = PfcConfig { xoff_octets: 1000, xon_octets: 400, headroom_octets: 500, quanta: 0xFFFF };
    const RATE: u64 = 100_000_000_000;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn every_state_meets_every_event() {
        let mut table = String::new();
        for state in [State::Open, State::Closed, State::Held, State::Both] {
            for event in [Event::AboveXoff, Event::BelowXon, Event::HalfOver, Event::Hold, Event::Release] {
                let (after, message) = state.after(event);
                let (state, event, after) = (format!("{state:?}"), format!("{event:?}"), format!("{after:?}"));
                writeln!(table, "{state:<6} {event:<9} {after:<6} {message:?}").unwrap();
            }
        }
        insta::assert_snapshot!(table, @r"
        Open   AboveXoff Closed Some(Pause)
        Open   BelowXon  Open   None
        Open   HalfOver  Open   None
        Open   Hold      Held   Some(Pause)
        Open   Release   Open   None
        Closed AboveXoff Closed None
        Closed BelowXon  Open   Some(Resume)
        Closed HalfOver  Closed Some(Pause)
        Closed Hold      Both   None
        Closed Release   Closed None
        Held   AboveXoff Both   None
        Held   BelowXon  Held   None
        Held   HalfOver  Held   Some(Pause)
        Held   Hold      Held   None
        Held   Release   Open   Some(Resume)
        Both   AboveXoff Both   None
        Both   BelowXon  Held   None
        Both   HalfOver  Both   Some(Pause)
        Both   Hold      Both   None
        Both   Release   Closed None
        ");
    }

    #[test]
    fn a_pause_is_sent_refreshed_and_withdrawn() {
        let mut account = Account::default();
        assert!(!account.enter(1000, Some(&PFC)));
        assert_eq!(account.take_message(at(0), RATE), None);
        assert!(account.enter(1, Some(&PFC)) && account.is_closed());
        assert!(!account.enter(499, Some(&PFC)), "the pause was sent before");
        assert!(!account.has_room(1, &PFC), "XOFF and headroom are full");
        assert_eq!(account.take_message(at(0), RATE), Some(0xFFFF));
        assert_eq!((account.take_message(at(0), RATE), account.next_deadline()), (None, Some(at(167_769))));
        assert!(!account.tick(at(167_768), &PFC));
        assert!(account.tick(at(167_769), &PFC));
        assert_eq!(account.take_message(at(167_800), RATE), Some(0xFFFF));
        assert!(!account.leave(1099, Some(&PFC)), "401 octets still wait");
        assert!(account.leave(1, Some(&PFC)) && !account.is_closed());
        assert_eq!((account.take_message(at(200_000), RATE), account.next_deadline()), (Some(0), None));
        assert!(!account.leave(400, Some(&PFC)));
        assert_eq!(account.octets(), 0);
    }

    /// CN-4.1-1: a hold pauses the neighbour whatever waits, with refreshes; the resume is sent when neither reason is
    /// left.
    #[test]
    fn a_class_is_held_for_a_reason_elsewhere() {
        let mut account = Account::default();
        assert!(account.hold(true, &PFC) && account.is_closed());
        assert_eq!(account.take_message(at(0), RATE), Some(0xFFFF));
        assert!(!account.hold(true, &PFC), "the pause was sent before");
        assert!(account.tick(at(167_769), &PFC), "half of it is over");
        assert_eq!(account.take_message(at(167_769), RATE), Some(0xFFFF));
        assert!(!account.enter(1001, Some(&PFC)) && !account.leave(1001, Some(&PFC)));
        assert!(account.is_closed(), "its own reason is not the only one");
        assert!(account.hold(false, &PFC) && !account.is_closed());
        assert_eq!(account.take_message(at(200_000), RATE), Some(0));
        assert!(account.hold(true, &PFC) && account.change(Some(&PFC), None) && !account.is_closed());
    }

    #[test]
    fn a_class_without_pfc_withdraws_its_pause() {
        let mut account = Account::default();
        assert!(account.enter(1500, Some(&PFC)));
        assert!(account.change(Some(&PFC), None));
        assert_eq!(account.take_message(at(0), RATE), Some(0));
        assert!(!account.change(None, None));
        assert!(account.change(None, Some(&PFC)), "too much waits for the new thresholds");
        assert_eq!(account.take_message(at(0), RATE), Some(0xFFFF));
    }
}
