//! The state of a session (RFC 5880 sections 6.2 and 6.8.6).
//!
//! ```text
//!                      peer: Down                       peer: Init, Up
//!   enabled ──▶ Down ─────────────▶ Init ─────────────────────────────▶ Up
//!      ▲        ▲  │ peer: Init      │ detection time over,               │
//!      │        │  │                 │ peer: AdminDown                    │
//!      │        │  └─────────────────┼──────────────────────────────────▶ │
//!      │        ├────────────────────┘                                    │
//!      │        └──── detection time over, peer: Down, AdminDown ◀────────┘
//!      │
//!   AdminDown ◀── disabled (from any state)
//! ```
//!
//! A peer that is still Up when we are Down goes down first, by our packets.

use crate::diagnostic::Diagnostic;

/// The state of a session; two bits of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Disabled.
    AdminDown,
    /// Nothing is received, or the peer has just gone down.
    Down,
    /// The peer is received, and is not known to receive us.
    Init,
    /// Each receives the other.
    Up,
}

/// What may change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateEvent {
    /// A packet was received in which the peer is in this state.
    Peer(State),
    /// No packet was received for the detection time.
    DetectionTimeExpired,
    /// The operator disables the session, for this reason.
    Disabled(Diagnostic),
    /// The operator enables it.
    Enabled,
}

impl State {
    /// The state in the two low bits of `bits`.
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => State::AdminDown,
            1 => State::Down,
            2 => State::Init,
            _ => State::Up,
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        match self {
            State::AdminDown => 0,
            State::Down => 1,
            State::Init => 2,
            State::Up => 3,
        }
    }

    /// Its name, for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            State::AdminDown => "admin_down",
            State::Down => "down",
            State::Init => "init",
            State::Up => "up",
        }
    }

    /// The next state and its diagnostic; `None` when the state stays.
    pub(crate) const fn next(self, event: StateEvent) -> Option<(State, Diagnostic)> {
        use State::{AdminDown, Down, Init, Up};
        match (self, event) {
            (Down, StateEvent::Peer(Down)) => Some((Init, Diagnostic::NONE)),
            (Down, StateEvent::Peer(Init)) | (Init, StateEvent::Peer(Init | Up)) => Some((Up, Diagnostic::NONE)),
            (Init, StateEvent::Peer(AdminDown)) | (Up, StateEvent::Peer(AdminDown | Down)) => {
                Some((Down, Diagnostic::NEIGHBOR_SIGNALED_DOWN))
            }
            (Down, StateEvent::Peer(AdminDown | Up))
            | (Init, StateEvent::Peer(Down))
            | (Up, StateEvent::Peer(Init | Up))
            | (AdminDown, StateEvent::Peer(AdminDown | Down | Init | Up)) => None,
            (Init | Up, StateEvent::DetectionTimeExpired) => Some((Down, Diagnostic::DETECTION_TIME_EXPIRED)),
            (AdminDown | Down, StateEvent::DetectionTimeExpired) => None,
            (Down | Init | Up, StateEvent::Disabled(diagnostic)) => Some((AdminDown, diagnostic)),
            (AdminDown, StateEvent::Disabled(_)) => None,
            (AdminDown, StateEvent::Enabled) => Some((Down, Diagnostic::NONE)),
            (Down | Init | Up, StateEvent::Enabled) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_testkit::table::table;

    const STATES: [State; 4] = [State::AdminDown, State::Down, State::Init, State::Up];

    /// Every state under every event.
    #[test]
    fn the_full_table() {
        let mut rows = vec![[String::new()].into_iter().chain(STATES.map(|state| format!("{state:?}"))).collect()];
        let peer = STATES.map(|state| (format!("peer: {state:?}"), StateEvent::Peer(state)));
        let others = [
            ("detection time over", StateEvent::DetectionTimeExpired),
            ("disabled", StateEvent::Disabled(Diagnostic::ADMINISTRATIVELY_DOWN)),
            ("enabled", StateEvent::Enabled),
        ];
        for (name, event) in peer.into_iter().chain(others.map(|(name, event)| (name.to_owned(), event))) {
            let cell = |state: State| match state.next(event) {
                None => "-".to_owned(),
                Some((next, diagnostic)) => format!("{next:?} {}", diagnostic.code()),
            };
            rows.push([name].into_iter().chain(STATES.map(cell)).collect());
        }
        insta::assert_snapshot!(table(&rows), @r"
                            AdminDown Down        Init        Up
        peer: AdminDown     -         -           Down 3      Down 3
        peer: Down          -         Init 0      -           Down 3
        peer: Init          -         Up 0        Up 0        -
        peer: Up            -         -           Up 0        -
        detection time over -         -           Down 1      Down 1
        disabled            -         AdminDown 7 AdminDown 7 AdminDown 7
        enabled             Down 0    -           -           -
        ");
    }

    #[test]
    fn two_bits_are_a_state() {
        for state in STATES {
            assert_eq!(State::from_bits(state.bits()), state);
        }
        assert_eq!([0, 1, 2, 3].map(State::from_bits), STATES);
    }
}
