//! State of the whole tree.

use crate::bounds::Faults;
use crate::hosts::{Receiver, Source};
use crate::machines::Fingerprint;
use crate::queue::Queue;
use crate::repairs::Due;

/// Maximum number of nodes.
pub(crate) const NODES: usize = 5;
/// Maximum number of receivers.
pub(crate) const RECEIVERS: usize = 4;
/// Maximum number of links, in all epochs.
pub(crate) const LINKS: usize = 10;

/// Everything that determines the next actions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(crate) source: Source,
    pub(crate) receivers: [Receiver; RECEIVERS],
    pub(crate) nodes: [Fingerprint; NODES],
    /// Data on the link to each node.
    pub(crate) down: [Queue; LINKS],
    /// Responses on each link.
    pub(crate) up: [Queue; LINKS],
    /// Links that delay messages: a bit for the data of each, then one for the responses of each.
    pub(crate) held: u32,
    /// Position of the stored record.
    pub(crate) record: u8,
    /// The nodes at which it has not taken effect, one bit each.
    pub(crate) pending: u8,
    /// The J of the last join: the number of packets before it.
    pub(crate) joined_at: u8,
    /// Nodes whose timer of repair has ended since the source last sent or was acknowledged, one bit each.
    pub(crate) ticked: u8,
    /// Remaining faults.
    pub(crate) left: Faults,
    /// Consecutive timeouts with nothing in flight, since the last progress or fault.
    pub(crate) fruitless: u8,
}

impl State {
    /// The data of a link, or its responses.
    pub(crate) fn direction(&self, direction: usize) -> Queue {
        direction.checked_sub(LINKS).map_or_else(|| self.down[direction], |link| self.up[link])
    }

    /// Whether a direction of a link delays messages.
    pub(crate) fn is_held(&self, direction: usize) -> bool {
        self.held >> direction & 1 == 1
    }

    /// Whether the timer of a node's repair has ended since the source last sent or was acknowledged.
    pub(crate) fn has_ticked(&self, node: usize) -> bool {
        self.ticked >> node & 1 == 1
    }

    /// Whether the stored record has not taken effect at a node.
    pub(crate) fn is_pending(&self, node: usize) -> bool {
        self.pending >> node & 1 == 1
    }
}

/// Possible actions.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The source sends its next packet.
    Send,
    /// The source's retransmission timer fires.
    Timeout,
    /// A data packet arrives at a node.
    Data {
        link: usize,
        /// Its position on the link.
        position: usize,
        /// It will arrive a second time.
        again: bool,
        /// At an edge node: deliveries of the copies, two bits per branch.
        deliveries: u8,
    },
    /// A data packet is lost.
    LoseData { link: usize },
    /// A response arrives.
    Response {
        link: usize,
        /// Its position on the link.
        position: usize,
        /// It will arrive a second time.
        again: bool,
    },
    /// A response is lost.
    LoseResponse { link: usize },
    /// A link starts to delay messages.
    Delay {
        /// The bit in [`State`].
        direction: usize,
    },
    /// It stops delaying messages.
    Release {
        /// The bit in [`State`].
        direction: usize,
    },
    /// The link of a branch has room for a packet of a buffer.
    Poll {
        node: usize,
        /// Its position.
        branch: usize,
    },
    /// It has, and the packet of the buffer proves damaged (D159).
    Damage {
        node: usize,
        /// Its position.
        branch: usize,
    },
    /// The timer of a node's repair ends.
    Tick { node: usize, due: Due },
    /// T_hold of a node ends.
    HoldEnds { node: usize },
    /// A node restarts without learned state.
    Restart { node: usize },
    /// A receiver dies silently.
    Dies { receiver: usize },
    /// A changed record is stored.
    Store {
        /// Its position.
        record: usize,
    },
    /// The stored record takes effect at a node.
    Commit { node: usize },
}

impl Action {
    /// Whether a message moves without a fault.
    pub(crate) fn is_traffic(&self) -> bool {
        match self {
            Action::Send
            | Action::Poll { .. }
            | Action::Response { again: false, position: 0, .. }
            | Action::Data { again: false, position: 0, deliveries: 0, .. }
            | Action::Release { .. }
            | Action::HoldEnds { .. } => true,
            Action::Timeout
            | Action::Data { .. }
            | Action::LoseData { .. }
            | Action::Response { .. }
            | Action::LoseResponse { .. }
            | Action::Delay { .. }
            | Action::Damage { .. }
            | Action::Tick { .. }
            | Action::Restart { .. }
            | Action::Dies { .. }
            | Action::Store { .. }
            | Action::Commit { .. } => false,
        }
    }
}
