//! Entries of groups that nodes have to remove. The order may be lost when no change of the group repeats it: it is
//! repeated until the node answers or registers again, or has to have an entry of the group.

use super::Core;
use srdma_api::NodeOrder;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::ops::Bound::{Excluded, Unbounded};

/// Limit of the orders that are repeated at a time.
const REPEATED: usize = 256;

/// Node, store and group.
type Key = (Ipv6Addr, u64, u32);

/// The orders that have no answer, each with the epoch up to which the entry is to be removed.
#[derive(Clone, Debug, Default)]
pub(super) struct Leftovers {
    orders: BTreeMap<Key, u32>,
    /// The order that was repeated last.
    last: Option<Key>,
}

impl Leftovers {
    /// An order was sent.
    pub(super) fn note(&mut self, key: Key, epoch: u32) {
        self.orders.insert(key, epoch);
    }

    /// The node has removed the entry, or has to have another one.
    pub(super) fn forget(&mut self, key: Key) {
        self.orders.remove(&key);
    }

    /// What the node has is not known any more.
    pub(super) fn forget_node(&mut self, node: Ipv6Addr) {
        let of_node = self.orders.range((node, 0, 0)..).take_while(|((of, ..), _)| *of == node);
        for key in of_node.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.orders.remove(&key);
        }
    }

    /// The orders to be repeated now: those behind the ones of the last time, from the first one on after the last.
    fn repeat(&mut self) -> Vec<(Key, u32)> {
        let behind = self.last.map_or(Unbounded, Excluded);
        let orders: Vec<_> =
            self.orders.range((behind, Unbounded)).take(REPEATED).map(|(key, epoch)| (*key, *epoch)).collect();
        self.last = orders.last().map(|(key, _)| *key).filter(|_| orders.len() == REPEATED);
        orders
    }
}

impl Core {
    /// Orders a node to remove the entry of a group.
    pub(super) fn remove_leftover(&mut self, (node, store, group): Key, epoch: u32) {
        self.leftovers.note((node, store, group), epoch);
        self.effects.orders.push((node, NodeOrder::Remove { store, group, epoch }));
    }

    pub(super) fn repeat_removals(&mut self) {
        for ((node, store, group), epoch) in self.leftovers.repeat() {
            if self.nodes.get(&node).is_some_and(|node| node.session.is_some()) {
                self.effects.orders.push((node, NodeOrder::Remove { store, group, epoch }));
            }
        }
    }
}
