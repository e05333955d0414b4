//! Parts of a newer peer's messages that this version cannot read: the rest of the message holds (D112).

use crate::{NodeAnswer, NodeOrder, SyncAnswer};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use srdma_group::EntryName;

#[derive(Deserialize)]
#[serde(untagged)]
enum Item<T, U> {
    Readable(T),
    Unreadable(U),
}

/// The items of a list that can be read.
pub(crate) fn readable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let items: Vec<Item<T, IgnoredAny>> = Vec::deserialize(deserializer)?;
    let readable = items.into_iter().filter_map(|item| match item {
        Item::Readable(item) => Some(item),
        Item::Unreadable(IgnoredAny) => None,
    });
    Ok(readable.collect())
}

/// An order that the node cannot read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadableOrder {
    /// Its kind.
    pub order: String,
    group: Option<u32>,
    name: Option<EntryName>,
}

impl UnreadableOrder {
    /// The answer to the order; `None` if it names no group and no entry.
    pub fn refusal(&self) -> Option<NodeAnswer> {
        let reason = format!("the node cannot read the order {:?}: upgrade the node", self.order);
        Some(NodeAnswer::Refused { group: self.group?, name: self.name?, reason })
    }
}

/// What is left of an order, as far as it is as in this version.
#[derive(Deserialize)]
struct Remains {
    #[serde(default)]
    order: String,
    group: Option<u32>,
    name: Option<EntryName>,
    entry: Option<EntryRemains>,
}

#[derive(Deserialize)]
struct EntryRemains {
    id: Option<u32>,
}

impl From<Item<Remains, IgnoredAny>> for UnreadableOrder {
    fn from(remains: Item<Remains, IgnoredAny>) -> Self {
        match remains {
            Item::Readable(Remains { order, group, name, entry }) => {
                UnreadableOrder { order, group: group.or_else(|| entry?.id), name }
            }
            Item::Unreadable(IgnoredAny) => UnreadableOrder::default(),
        }
    }
}

/// A [`SyncAnswer`] as it is received.
#[derive(Deserialize)]
pub(crate) struct Received {
    orders: Vec<Item<NodeOrder, Item<Remains, IgnoredAny>>>,
}

impl From<Received> for SyncAnswer {
    fn from(received: Received) -> Self {
        let mut answer = SyncAnswer::default();
        for item in received.orders {
            match item {
                Item::Readable(order) => answer.orders.push(order),
                Item::Unreadable(remains) => answer.unreadable.push(remains.into()),
            }
        }
        answer
    }
}

#[cfg(test)]
mod recorded;
