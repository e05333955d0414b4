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
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 4] = [State::AdminDown, State::Down, State::Init, State::Up];

    #[test]
    fn two_bits_are_a_state() {
        for state in STATES {
            assert_eq!(State::from_bits(state.bits()), state);
        }
        assert_eq!([0, 1, 2, 3].map(State::from_bits), STATES);
    }
}
