//! What a node holds of the controller's groups, and what becomes of an order. No I/O: whoever has a [`Ledger`] tells
//! the node what a [`Change`] says, and then keeps the ledger that follows.

use srdma_api::{Held, NodeAnswer, NodeOrder};
use srdma_dataplane::{Command, Prefix, SidBehavior};
use srdma_group::{GroupEntry, GroupId, NodeRole};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// How many groups that the node has left are remembered, so that an older order does not bring them back.
const MOST_REMOVED: usize = 4096;

/// What the parts of a controller's groups must keep to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::daemon) struct Rules {
    /// The SID of the node's parts as an edge.
    pub(in crate::daemon) end_mt: Option<Ipv6Addr>,
    /// Where the SIDs of its parts as a transit node lie.
    pub(in crate::daemon) replication: Option<Prefix>,
}

/// What the node holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::daemon) struct Ledger {
    rules: Rules,
    store: Option<u64>,
    groups: BTreeMap<u32, Holding>,
    /// The epochs by which groups were removed.
    removed: BTreeMap<u32, u32>,
}

/// What it holds of a group: at least one of the two.
#[derive(Clone, Debug, Default, PartialEq)]
struct Holding {
    prepared: Option<Kept>,
    in_effect: Option<Kept>,
}

#[derive(Clone, Debug, PartialEq)]
struct Kept {
    entry: GroupEntry,
    deed: Option<String>,
}

/// What an order leads to.
#[derive(Clone, Debug)]
pub(in crate::daemon) enum Verdict {
    /// It was overtaken by a newer one, or asks for nothing.
    Nothing,
    /// It was carried out before, or cannot be.
    Answer(NodeAnswer),
    /// The node has to be told first.
    Tell(Box<Change>),
}

/// What the node is told for an order.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct Change {
    /// The order, to the node.
    pub(in crate::daemon) commands: Vec<Command>,
    /// What goes when the node has taken it.
    pub(in crate::daemon) afterwards: Vec<Command>,
    /// What is taken back when the node refuses it.
    pub(in crate::daemon) undo: Vec<Command>,
    group: u32,
    epoch: u32,
    deed: Deed,
}

/// What the ledger notes of a change.
#[derive(Clone, Debug, PartialEq)]
enum Deed {
    Prepare(Kept),
    Commit,
    Abort,
    Restore(Kept),
    Remove,
}

/// Why a part cannot be taken, beside what the node itself has against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum EntryRefusal {
    #[error("group {0} is one of the node's own file")]
    GroupOfFile(u32),
    #[error("SID {sid} of group {group} is not the End.MT SID that the node has told")]
    NotEndMt { group: u32, sid: Ipv6Addr },
    #[error("SID {sid} of group {group} does not lie in the replication prefix that the node has told")]
    NotInReplication { group: u32, sid: Ipv6Addr },
    #[error("SID {sid} of group {group} is that of group {other}")]
    SidInUse { group: u32, sid: Ipv6Addr, other: u32 },
}

impl Ledger {
    /// Nothing is held.
    pub(in crate::daemon) fn new(rules: Rules) -> Self {
        Ledger { rules, ..Ledger::default() }
    }

    /// The store that the groups are from.
    pub(in crate::daemon) fn store(&self) -> Option<u64> {
        self.store
    }

    /// How many groups there are.
    pub(in crate::daemon) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether a group is the controller's.
    pub(in crate::daemon) fn has(&self, group: u32) -> bool {
        self.groups.contains_key(&group)
    }

    /// The controller that answers has this store. Numbers of groups that another one had may come again.
    pub(in crate::daemon) fn follow_store(&mut self, store: u64) {
        if self.store != Some(store) {
            self.removed.clear();
        }
        self.store = Some(store);
    }

    /// What is told in a hello.
    pub(in crate::daemon) fn held(&self) -> Vec<Held> {
        let held = |(group, holding): (&u32, &Holding)| {
            let kept = holding.in_effect.as_ref().or(holding.prepared.as_ref());
            Held {
                group: *group,
                epoch: holding.in_effect.as_ref().map(|kept| kept.entry.epoch),
                prepared: holding.prepared.as_ref().map(|kept| kept.entry.epoch),
                deed: kept.and_then(|kept| kept.deed.clone()),
            }
        };
        self.groups.iter().map(held).collect()
    }

    /// What a node is told that is to have all that is in effect.
    pub(in crate::daemon) fn commands(&self) -> Vec<Command> {
        let entries = self.groups.values().filter_map(|holding| Some(&holding.in_effect.as_ref()?.entry));
        entries
            .flat_map(|entry| add_sid(entry).into_iter().chain([Command::AddGroup(Box::new(entry.clone()))]))
            .collect()
    }

    /// The same with what is prepared: whom the node will send to.
    pub(in crate::daemon) fn foreseen(&self) -> Vec<Command> {
        let prepared = self.groups.values().filter_map(|holding| Some(&holding.prepared.as_ref()?.entry));
        let prepared = prepared.map(|entry| Command::AddGroup(Box::new(entry.clone())));
        self.commands().into_iter().chain(prepared).collect()
    }

    /// What an order leads to. `is_of_file`: whether the node's own file has a group of this number.
    pub(in crate::daemon) fn weigh(&self, order: NodeOrder, is_of_file: impl Fn(u32) -> bool) -> Verdict {
        let (group, epoch) = subject(&order);
        let holding = self.groups.get(&group);
        let in_effect = holding.and_then(|holding| holding.in_effect.as_ref());
        let prepared = holding.and_then(|holding| holding.prepared.as_ref());
        let is_in_effect = in_effect.is_some_and(|kept| kept.entry.epoch == epoch);
        let is_prepared = prepared.is_some_and(|kept| kept.entry.epoch == epoch);
        let known = in_effect.into_iter().chain(prepared).map(|kept| kept.entry.epoch);
        let newest = known.chain(self.removed.get(&group).copied()).max().unwrap_or(0);
        let refuse = |reason: String| Verdict::Answer(NodeAnswer::Refused { group, epoch, reason });
        let tell = |change| Verdict::Tell(Box::new(change));
        match order {
            NodeOrder::Prepare { .. } if is_in_effect => Verdict::Answer(NodeAnswer::Prepared { group, epoch }),
            NodeOrder::Commit { .. } | NodeOrder::Restore { .. } if is_in_effect => {
                Verdict::Answer(NodeAnswer::Committed { group, epoch })
            }
            _ if epoch < newest => Verdict::Nothing,
            NodeOrder::Prepare { entry, deed } => match self.check(&entry, is_of_file) {
                Err(refusal) => refuse(refusal.to_string()),
                Ok(()) => tell(Change {
                    commands: vec![Command::PrepareGroup(entry.clone())],
                    deed: Deed::Prepare(Kept { entry: *entry, deed }),
                    ..Change::of(group, epoch, Deed::Abort)
                }),
            },
            NodeOrder::Commit { .. } => match prepared {
                Some(kept) if is_prepared => {
                    let command = Command::CommitGroup { id: GroupId(group), epoch };
                    tell(put_into_effect(in_effect, &kept.entry, command, Deed::Commit))
                }
                Some(_) | None => refuse(format!("nothing is prepared for epoch {epoch} of group {group}")),
            },
            NodeOrder::Abort { .. } if is_prepared => tell(Change {
                commands: vec![Command::AbortGroup(GroupId(group))],
                ..Change::of(group, epoch, Deed::Abort)
            }),
            NodeOrder::Abort { .. } => Verdict::Nothing,
            NodeOrder::Restore { entry, deed } => match self.check(&entry, is_of_file) {
                Err(refusal) => refuse(refusal.to_string()),
                Ok(()) => {
                    let command = Command::RestoreGroup(entry.clone());
                    let kept = Kept { entry: (*entry).clone(), deed };
                    tell(put_into_effect(in_effect, &entry, command, Deed::Restore(kept)))
                }
            },
            NodeOrder::Remove { .. } => {
                let abort = prepared.map(|_| Command::AbortGroup(GroupId(group)));
                let leave = in_effect.map(|_| Command::RemoveGroup(GroupId(group)));
                let sid = in_effect.and_then(|kept| sid_of(&kept.entry)).map(Command::RemoveSid);
                tell(Change {
                    commands: abort.into_iter().chain(leave).chain(sid).collect(),
                    ..Change::of(group, epoch, Deed::Remove)
                })
            }
        }
    }

    /// The ledger behind a change that the node has taken, and what is answered.
    pub(in crate::daemon) fn taken(&self, change: &Change) -> (Ledger, Option<NodeAnswer>) {
        let (group, epoch) = (change.group, change.epoch);
        let mut ledger = self.clone();
        let holding = ledger.groups.entry(group).or_default();
        let answer = match &change.deed {
            Deed::Prepare(kept) => {
                holding.prepared = Some(kept.clone());
                Some(NodeAnswer::Prepared { group, epoch })
            }
            Deed::Commit => {
                holding.in_effect = holding.prepared.take().or(holding.in_effect.take());
                Some(NodeAnswer::Committed { group, epoch })
            }
            Deed::Abort => {
                holding.prepared = None;
                None
            }
            Deed::Restore(kept) => {
                holding.in_effect = Some(kept.clone());
                Some(NodeAnswer::Committed { group, epoch })
            }
            Deed::Remove => {
                *holding = Holding::default();
                ledger.removed.insert(group, epoch);
                Some(NodeAnswer::Removed { group, epoch })
            }
        };
        ledger.groups.retain(|_, holding| holding.prepared.is_some() || holding.in_effect.is_some());
        while ledger.removed.len() > MOST_REMOVED {
            ledger.removed.pop_first();
        }
        (ledger, answer)
    }

    /// That the controller keeps to what the node has told it.
    fn check(&self, entry: &GroupEntry, is_of_file: impl Fn(u32) -> bool) -> Result<(), EntryRefusal> {
        let (group, sid) = (entry.id.0, entry.sid);
        if is_of_file(group) {
            return Err(EntryRefusal::GroupOfFile(group));
        }
        match entry.role {
            NodeRole::Edge if self.rules.end_mt != Some(sid) => Err(EntryRefusal::NotEndMt { group, sid }),
            NodeRole::Edge => Ok(()),
            NodeRole::Transit if entry.headend.is_some() && sid.is_unspecified() => Ok(()),
            NodeRole::Transit if !self.rules.replication.is_some_and(|prefix| prefix.contains(sid)) => {
                Err(EntryRefusal::NotInReplication { group, sid })
            }
            NodeRole::Transit => {
                let has_it = |kept: &Option<Kept>| {
                    kept.as_ref().is_some_and(|kept| kept.entry.role == NodeRole::Transit && kept.entry.sid == sid)
                };
                let is_it = |(id, holding): (&u32, &Holding)| {
                    (*id != group && (has_it(&holding.in_effect) || has_it(&holding.prepared))).then_some(*id)
                };
                match self.groups.iter().find_map(is_it) {
                    Some(other) => Err(EntryRefusal::SidInUse { group, sid, other }),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Change {
    /// The answer when the node has refused it; none: it does not know what it was to forget, and that is as good.
    pub(in crate::daemon) fn refused(&self, reason: String) -> Option<NodeAnswer> {
        let (group, epoch) = (self.group, self.epoch);
        match self.deed {
            Deed::Prepare(_) | Deed::Commit | Deed::Restore(_) => Some(NodeAnswer::Refused { group, epoch, reason }),
            Deed::Abort | Deed::Remove => None,
        }
    }

    /// Whether it changes what the node takes off its interfaces.
    pub(in crate::daemon) fn is_felt(&self) -> bool {
        match self.deed {
            Deed::Commit | Deed::Restore(_) | Deed::Remove => true,
            Deed::Prepare(_) | Deed::Abort => false,
        }
    }

    fn of(group: u32, epoch: u32, deed: Deed) -> Self {
        Change { commands: Vec::new(), afterwards: Vec::new(), undo: Vec::new(), group, epoch, deed }
    }
}

fn subject(order: &NodeOrder) -> (u32, u32) {
    match order {
        NodeOrder::Prepare { entry, .. } | NodeOrder::Restore { entry, .. } => (entry.id.0, entry.epoch),
        NodeOrder::Commit { group, epoch } | NodeOrder::Abort { group, epoch } | NodeOrder::Remove { group, epoch } => {
            (*group, *epoch)
        }
    }
}

/// A part takes effect: its SID is there before, and one that the group entry before had goes afterwards.
fn put_into_effect(before: Option<&Kept>, entry: &GroupEntry, command: Command, deed: Deed) -> Change {
    let (old, new) = (before.and_then(|kept| sid_of(&kept.entry)), sid_of(entry));
    let is_other = old != new;
    Change {
        commands: add_sid(entry).filter(|_| is_other).into_iter().chain([command]).collect(),
        afterwards: old.filter(|_| is_other).map(Command::RemoveSid).into_iter().collect(),
        undo: new.filter(|_| is_other).map(Command::RemoveSid).into_iter().collect(),
        ..Change::of(entry.id.0, entry.epoch, deed)
    }
}

/// The SID that the node has for a group alone: an edge has one for all.
fn sid_of(entry: &GroupEntry) -> Option<Prefix> {
    (entry.role == NodeRole::Transit && !entry.sid.is_unspecified()).then(|| Prefix::host(entry.sid))
}

fn add_sid(entry: &GroupEntry) -> Option<Command> {
    sid_of(entry).map(|prefix| Command::AddSid { prefix, behavior: SidBehavior::EndReplicate(entry.id) })
}

#[cfg(test)]
mod tests;
