//! Orders of a lifecycle.

use crate::group::Record;
use crate::group_entry::GroupEntry;
use crate::name::EntryName;
use std::net::Ipv6Addr;

/// An order of a [`Lifecycle`](super::Lifecycle), to be executed in sequence. Each may be executed more than once.
///
/// Messages may be repeated and reordered. A node therefore refuses a group entry, commit or removal whose epoch is
/// before the newest that it has prepared, committed or removed. The source ignores orders of earlier rounds than the
/// newest, and the pause of a round that it was released from. Messages in flight when a node restarts must be lost, as
/// on a broken connection.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The source completes outstanding messages and starts none (D30); one that has not begun is quiet. Answer:
    /// `quiescent` with the same round.
    Pause {
        /// Number of the pause.
        round: u32,
    },
    /// Every node has its group entry: the source may send, for the first time (round 0, D31) or again. Answer:
    /// `running`.
    Ready {
        /// The pause that ends.
        round: u32,
    },
    /// The record is stored, and durable before the next order is executed.
    Store {
        record: Box<Record>,
        /// The record that all nodes had: with it the lifecycle is resumed until the change is complete.
        before: Option<Box<Record>>,
    },
    /// First phase at a node. Answer: `prepared` or `refused`, with the same name.
    Prepare {
        node: Ipv6Addr,
        name: EntryName,
        /// Its group entry.
        entry: Box<GroupEntry>,
    },
    /// Second phase at a node. Answer: `committed`, or `refused` if no entry of this name is prepared.
    Commit {
        node: Ipv6Addr,
        name: EntryName,
        /// The node is the headend of a new group, whose source has not been released (D137).
        is_first: bool,
    },
    /// The prepared entry of this name is dropped. No answer: a later entry replaces it anyway.
    Abort { node: Ipv6Addr, name: EntryName },
    /// The entry of a node that has lost its state is restored, both phases at once, with unknown branches (R6, D17).
    /// Answer: `committed` with the same name.
    Restore {
        node: Ipv6Addr,
        name: EntryName,
        /// Its former group entry.
        entry: Box<GroupEntry>,
    },
    /// The node removes the group and its prepared entry. Answer: `removed`.
    Remove {
        node: Ipv6Addr,
        /// The first epoch without the node.
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
    /// Loopback of the node that executes it; `None` for orders to the source, the store and the driver.
    pub fn node(&self) -> Option<Ipv6Addr> {
        match self {
            Order::Prepare { node, .. }
            | Order::Commit { node, .. }
            | Order::Abort { node, .. }
            | Order::Restore { node, .. }
            | Order::Remove { node, .. } => Some(*node),
            Order::Pause { .. }
            | Order::Ready { .. }
            | Order::Store { .. }
            | Order::Evicted { .. }
            | Order::Changed { .. }
            | Order::Aborted { .. }
            | Order::Closed => None,
        }
    }
}
