//! How hosts send lost packets again, and receive what comes before them.

use serde::{Deserialize, Serialize};
use srdma_rc::Habits;

/// Retransmission of a source and its receivers (D228).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retransmission {
    /// Go-back-N at all hosts.
    #[default]
    GoBackN,
    /// Selective repeat, out-of-order reception and adaptive timeouts at all hosts.
    Selective,
    /// A source with selective repeat; of the receivers every second one receives out of order.
    Mixed,
}

impl Retransmission {
    /// Whether it is go-back-N at all hosts.
    pub fn is_go_back_n(&self) -> bool {
        *self == Retransmission::GoBackN
    }

    /// Code of the ACK timeout with which the first timeout is that of this code: adaptive timeouts begin with a
    /// sixteenth.
    pub fn ack_timeout(self, first: u8) -> u8 {
        if self.is_go_back_n() { first } else { (first + 4).min(31) }
    }

    /// The habits of a source.
    pub fn at_source(self, habits: Habits) -> Habits {
        if self.is_go_back_n() { habits } else { habits.with_selective_repeat() }
    }

    /// The habits of the receiver at a position.
    pub fn at_receiver(self, position: usize, habits: Habits) -> Habits {
        let is_selective = match self {
            Retransmission::GoBackN => false,
            Retransmission::Selective => true,
            Retransmission::Mixed => position.is_multiple_of(2),
        };
        if is_selective { habits.with_selective_repeat() } else { habits }
    }
}
