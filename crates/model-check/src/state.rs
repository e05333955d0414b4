//! One situation of the whole tree.

use crate::bounds::Faults;
use crate::hosts::{Receiver, Source};
use crate::machines::Fingerprint;
use crate::queue::Queue;

/// Most nodes of a tree.
pub(crate) const NODES: usize = 5;
/// Most receivers of a tree.
pub(crate) const RECEIVERS: usize = 4;
/// Most links of a tree, in all of its epochs.
pub(crate) const LINKS: usize = 10;

/// Everything that matters for what can happen next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(crate) source: Source,
    pub(crate) receivers: [Receiver; RECEIVERS],
    pub(crate) nodes: [Fingerprint; NODES],
    /// Data on the link to each node.
    pub(crate) down: [Queue; LINKS],
    /// Responses on each link.
    pub(crate) up: [Queue; LINKS],
    /// Links that hold back packets in flight: a bit for the data of each, then one for the responses of each.
    pub(crate) held: u32,
    /// The record that is stored, by position.
    pub(crate) record: u8,
    /// The nodes at which it has not taken effect yet, a bit each.
    pub(crate) pending: u8,
    /// The J of the last join: the number of packets before it.
    pub(crate) joined_at: u8,
    /// Faults that may still come.
    pub(crate) left: Faults,
    /// Timeouts in a row, without packets in flight, since the last progress or fault.
    pub(crate) fruitless: u8,
}

impl State {
    /// Queue of one direction of a link: its data, or its responses.
    pub(crate) fn way(&self, way: usize) -> Queue {
        way.checked_sub(LINKS).map_or_else(|| self.down[way], |link| self.up[link])
    }

    /// Whether a way holds back what is on it.
    pub(crate) fn is_held(&self, way: usize) -> bool {
        self.held >> way & 1 == 1
    }

    /// Whether the part of the stored record has not taken effect at a node yet.
    pub(crate) fn is_pending(&self, node: usize) -> bool {
        self.pending >> node & 1 == 1
    }
}

/// Actions of the model.
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
        /// It will arrive once more.
        again: bool,
        /// At an edge node: the fates of the copies, two bits a branch.
        fates: u8,
    },
    /// A data packet is lost.
    LoseData { link: usize },
    /// A response arrives.
    Response {
        link: usize,
        /// Its position on the link.
        position: usize,
        /// It will arrive once more.
        again: bool,
    },
    /// A response is lost.
    LoseResponse { link: usize },
    /// A link holds back packets in flight from now on.
    Delay {
        /// Its bit in [`State`].
        way: usize,
    },
    /// It no longer does.
    Release {
        /// Its bit in [`State`].
        way: usize,
    },
    /// T_hold ends for all that a node holds.
    HoldEnds { node: usize },
    /// A node restarts and forgets all traffic.
    Restart { node: usize },
    /// A receiver falls silent for good.
    Dies { receiver: usize },
    /// A changed record is stored.
    Store {
        /// Its position.
        record: usize,
    },
    /// The stored record takes effect at a node.
    Commit { node: usize },
}
