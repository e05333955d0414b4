//! Orders of a lifecycle.

use crate::group::Record;
use crate::group_entry::GroupEntry;
use std::net::Ipv6Addr;

/// One order of a [`Lifecycle`](super::Lifecycle), to be carried out in the order in which they come. All may be
/// carried out more than once.
///
/// A node, since messages may be repeated and reordered, ignores a prepare, a commit or a removal whose epoch is before
/// the newest that it has prepared, has in effect or was removed by. The source's side ignores orders of an earlier
/// round than the newest it has seen, and the pause of a round that it was released from. Messages in flight to or from
/// a node when it restarts must be lost, as on a connection that breaks.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The source finishes what it has begun and begins nothing new (D30); one that has not begun yet is quiet. Answer:
    /// `quiescent` with the same round.
    Pause {
        /// Counts the pauses.
        round: u32,
    },
    /// Every node has its part: the source may send, for the first time (round 0, D31) or again. Answer: `running`.
    Ready {
        /// The pause that ends.
        round: u32,
    },
    /// The record is put where it outlives everything, before the next order is carried out.
    Store(Box<Record>),
    /// First phase at a node. Answer: `prepared` or `refused`.
    Prepare {
        /// Its loopback.
        node: Ipv6Addr,
        /// The group entry to prepare.
        entry: Box<GroupEntry>,
    },
    /// Second phase at a node. Answer: `committed`, or `refused` when it has nothing prepared for this epoch.
    Commit {
        /// Its loopback.
        node: Ipv6Addr,
        /// Epoch that was prepared.
        epoch: u32,
    },
    /// Discards the entry prepared for this epoch. No reply: a later one replaces it anyway.
    Abort {
        /// Its loopback.
        node: Ipv6Addr,
        /// Epoch that was prepared.
        epoch: u32,
    },
    /// A node that has lost its state gets its entry again, both phases at once, with unknown branches (R6,
    /// D17). Reply: `committed` with the group entry's epoch.
    Restore {
        /// Its loopback.
        node: Ipv6Addr,
        /// The group entry that it had.
        entry: Box<GroupEntry>,
    },
    /// The node leaves the group, and forgets what was prepared. Answer: `removed`.
    Remove {
        /// Its loopback.
        node: Ipv6Addr,
        /// The epoch from which it is not in the tree.
        epoch: u32,
    },
    /// Event: the receiver was removed at every node.
    Evicted { receiver: Ipv6Addr },
    /// Event: every reachable node has committed this epoch.
    Changed { epoch: u32 },
    /// Event: a change was aborted; the former epoch stays.
    Aborted { reason: String },
    /// Event: the group was removed at every node, and the record can be deleted.
    Closed,
}

impl Order {
    /// The loopback of the node that carries it out; `None` for orders to the source, the store and the driver.
    pub fn node(&self) -> Option<Ipv6Addr> {
        match self {
            Order::Prepare { node, .. }
            | Order::Commit { node, .. }
            | Order::Abort { node, .. }
            | Order::Restore { node, .. }
            | Order::Remove { node, .. } => Some(*node),
            Order::Pause { .. }
            | Order::Ready { .. }
            | Order::Store(_)
            | Order::Evicted { .. }
            | Order::Changed { .. }
            | Order::Aborted { .. }
            | Order::Closed => None,
        }
    }
}
