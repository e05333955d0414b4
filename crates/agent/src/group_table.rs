//! The controller's groups at a node, and what each order changes. The caller gives the node the commands of a
//! [`Change`], and keeps the table that [`GroupTable::apply`] returns if the node accepts them.

use srdma_api::{HeldGroup, NodeAnswer, NodeOrder};
use srdma_dataplane::{Command, SidBehavior};
use srdma_group::{GroupEntry, GroupId, NodeRole};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Removed groups that are remembered, so that an older order does not install them again.
const MAX_REMOVED: usize = 4096;

/// The SIDs that a controller may use at this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedSids {
    /// As an edge.
    pub end_mt: Option<Ipv6Addr>,
    /// As a transit node: a prefix that contains them.
    pub replication: Option<Prefix>,
}

/// The controller's groups at this node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupTable {
    allowed: AllowedSids,
    store: Option<u64>,
    groups: BTreeMap<u32, Group>,
    /// The epochs of the orders that removed groups.
    removed: BTreeMap<u32, u32>,
}

/// A group: at least one of the two is set.
#[derive(Clone, Debug, Default, PartialEq)]
struct Group {
    prepared: Option<Installed>,
    committed: Option<Installed>,
}

#[derive(Clone, Debug, PartialEq)]
struct Installed {
    entry: GroupEntry,
    recovery_snapshot: Option<String>,
}

/// The actions that an order requires.
#[derive(Clone, Debug)]
pub enum Plan {
    /// No action: the order is outdated, or done.
    Nothing,
    /// An answer: the order was executed before, or is refused.
    Answer(NodeAnswer),
    /// Commands to the node.
    Apply(Box<Change>),
}

/// The commands for an order, and the update of the table.
#[derive(Clone, Debug)]
pub struct Change {
    /// Applied first, all or none.
    pub commands: Vec<Command>,
    /// Applied after `commands` were accepted.
    pub afterwards: Vec<Command>,
    /// Applied after one of `commands` was refused.
    pub undo: Vec<Command>,
    group: u32,
    epoch: u32,
    update: Update,
}

/// Update of the table by a change.
#[derive(Clone, Debug, PartialEq)]
enum Update {
    Prepare(Installed),
    Commit,
    Abort,
    Restore(Installed),
    Remove,
}

/// Reason for which an entry is refused before the node checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum EntryError {
    #[error("group {0} is configured in the node's own file")]
    GroupInFile(u32),
    #[error("SID {sid} of group {group} is not the End.MT SID that the node has registered")]
    NotEndMt { group: u32, sid: Ipv6Addr },
    #[error("SID {sid} of group {group} is outside the replication prefix that the node has registered")]
    NotInReplication { group: u32, sid: Ipv6Addr },
    #[error("SID {sid} of group {group} is already used by group {other}")]
    SidInUse { group: u32, sid: Ipv6Addr, other: u32 },
}

impl GroupTable {
    /// A table without groups.
    pub fn new(allowed: AllowedSids) -> Self {
        GroupTable { allowed, ..GroupTable::default() }
    }

    /// The store that the groups are from.
    pub fn store(&self) -> Option<u64> {
        self.store
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether the table has no group.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether a group is in the table.
    pub fn contains(&self, group: u32) -> bool {
        self.groups.contains_key(&group)
    }

    /// The node is registered with a controller of this store. Another store may use numbers of removed groups again.
    pub fn set_store(&mut self, store: u64) {
        if self.store != Some(store) {
            self.removed.clear();
        }
        self.store = Some(store);
    }

    /// The groups in a registration.
    pub fn held(&self) -> Vec<HeldGroup> {
        let held = |(group, group_state): (&u32, &Group)| {
            let installed = group_state.committed.as_ref().or(group_state.prepared.as_ref());
            HeldGroup {
                group: *group,
                epoch: group_state.committed.as_ref().map(|installed| installed.entry.epoch),
                prepared: group_state.prepared.as_ref().map(|installed| installed.entry.epoch),
                recovery_snapshot: installed.and_then(|installed| installed.recovery_snapshot.clone()),
            }
        };
        self.groups.iter().map(held).collect()
    }

    /// The commands that install all committed entries at a node.
    pub fn commands(&self) -> Vec<Command> {
        let entries = self.groups.values().filter_map(|group_state| Some(&group_state.committed.as_ref()?.entry));
        entries
            .flat_map(|entry| add_sid(entry).into_iter().chain([Command::AddGroup(Box::new(entry.clone()))]))
            .collect()
    }

    /// The same for committed and prepared entries: all addresses that the node may send to.
    pub fn commands_with_prepared(&self) -> Vec<Command> {
        let prepared = self.groups.values().filter_map(|group_state| Some(&group_state.prepared.as_ref()?.entry));
        let prepared = prepared.map(|entry| Command::AddGroup(Box::new(entry.clone())));
        self.commands().into_iter().chain(prepared).collect()
    }

    /// What an order requires. `is_in_file`: whether the node's own file configures a group of this number.
    pub fn plan(&self, order: NodeOrder, is_in_file: impl Fn(u32) -> bool) -> Plan {
        let (group, epoch) = subject(&order);
        let group_state = self.groups.get(&group);
        let committed = group_state.and_then(|group_state| group_state.committed.as_ref());
        let prepared = group_state.and_then(|group_state| group_state.prepared.as_ref());
        let is_committed = committed.is_some_and(|installed| installed.entry.epoch == epoch);
        let is_prepared = prepared.is_some_and(|installed| installed.entry.epoch == epoch);
        let known = committed.into_iter().chain(prepared).map(|installed| installed.entry.epoch);
        let newest = known.chain(self.removed.get(&group).copied()).max().unwrap_or(0);
        let refuse = |reason: String| Plan::Answer(NodeAnswer::Refused { group, epoch, reason });
        let apply = |change| Plan::Apply(Box::new(change));
        match order {
            NodeOrder::Prepare { .. } if is_committed => Plan::Answer(NodeAnswer::Prepared { group, epoch }),
            NodeOrder::Commit { .. } | NodeOrder::Restore { .. } if is_committed => {
                Plan::Answer(NodeAnswer::Committed { group, epoch })
            }
            _ if epoch < newest => Plan::Nothing,
            NodeOrder::Prepare { entry, recovery_snapshot } => match self.check(&entry, is_in_file) {
                Err(refusal) => refuse(refusal.to_string()),
                Ok(()) => apply(Change {
                    commands: vec![Command::PrepareGroup(entry.clone())],
                    update: Update::Prepare(Installed { entry: *entry, recovery_snapshot }),
                    ..Change::of(group, epoch, Update::Abort)
                }),
            },
            NodeOrder::Commit { .. } => match prepared {
                Some(installed) if is_prepared => {
                    let command = Command::CommitGroup { id: GroupId(group), epoch };
                    apply(install(committed, &installed.entry, command, Update::Commit))
                }
                Some(_) | None => refuse(format!("nothing is prepared for epoch {epoch} of group {group}")),
            },
            NodeOrder::Abort { .. } if is_prepared => apply(Change {
                commands: vec![Command::AbortGroup(GroupId(group))],
                ..Change::of(group, epoch, Update::Abort)
            }),
            NodeOrder::Abort { .. } => Plan::Nothing,
            NodeOrder::Restore { entry, recovery_snapshot } => match self.check(&entry, is_in_file) {
                Err(refusal) => refuse(refusal.to_string()),
                Ok(()) => {
                    let command = Command::RestoreGroup(entry.clone());
                    let installed = Installed { entry: (*entry).clone(), recovery_snapshot };
                    apply(install(committed, &entry, command, Update::Restore(installed)))
                }
            },
            NodeOrder::Remove { .. } => {
                let abort = prepared.map(|_| Command::AbortGroup(GroupId(group)));
                let leave = committed.map(|_| Command::RemoveGroup(GroupId(group)));
                let sid = committed.and_then(|installed| sid_of(&installed.entry)).map(Command::RemoveSid);
                apply(Change {
                    commands: abort.into_iter().chain(leave).chain(sid).collect(),
                    ..Change::of(group, epoch, Update::Remove)
                })
            }
        }
    }

    /// The table after a change that the node has accepted, and the answer to its order.
    pub fn apply(&self, change: &Change) -> (GroupTable, Option<NodeAnswer>) {
        let (group, epoch) = (change.group, change.epoch);
        let mut table = self.clone();
        let group_state = table.groups.entry(group).or_default();
        let answer = match &change.update {
            Update::Prepare(installed) => {
                group_state.prepared = Some(installed.clone());
                Some(NodeAnswer::Prepared { group, epoch })
            }
            Update::Commit => {
                group_state.committed = group_state.prepared.take().or(group_state.committed.take());
                Some(NodeAnswer::Committed { group, epoch })
            }
            Update::Abort => {
                group_state.prepared = None;
                None
            }
            Update::Restore(installed) => {
                group_state.committed = Some(installed.clone());
                Some(NodeAnswer::Committed { group, epoch })
            }
            Update::Remove => {
                *group_state = Group::default();
                table.removed.insert(group, epoch);
                Some(NodeAnswer::Removed { group, epoch })
            }
        };
        table.groups.retain(|_, group_state| group_state.prepared.is_some() || group_state.committed.is_some());
        while table.removed.len() > MAX_REMOVED {
            table.removed.pop_first();
        }
        (table, answer)
    }

    /// Checks that an entry uses the SIDs that the node has registered.
    fn check(&self, entry: &GroupEntry, is_in_file: impl Fn(u32) -> bool) -> Result<(), EntryError> {
        let (group, sid) = (entry.id.0, entry.sid);
        if is_in_file(group) {
            return Err(EntryError::GroupInFile(group));
        }
        match entry.role {
            NodeRole::Edge if self.allowed.end_mt != Some(sid) => Err(EntryError::NotEndMt { group, sid }),
            NodeRole::Edge => Ok(()),
            NodeRole::Transit if entry.headend.is_some() && sid.is_unspecified() => Ok(()),
            NodeRole::Transit if !self.allowed.replication.is_some_and(|prefix| prefix.contains(sid)) => {
                Err(EntryError::NotInReplication { group, sid })
            }
            NodeRole::Transit => {
                let uses_sid = |installed: &Option<Installed>| {
                    installed.as_ref().is_some_and(|installed| {
                        installed.entry.role == NodeRole::Transit && installed.entry.sid == sid
                    })
                };
                let other_user = |(id, group_state): (&u32, &Group)| {
                    (*id != group && (uses_sid(&group_state.committed) || uses_sid(&group_state.prepared)))
                        .then_some(*id)
                };
                match self.groups.iter().find_map(other_user) {
                    Some(other) => Err(EntryError::SidInUse { group, sid, other }),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Change {
    /// The answer after a refusal by the node; `None` for removals, whose state does not exist then.
    pub fn refused(&self, reason: String) -> Option<NodeAnswer> {
        let (group, epoch) = (self.group, self.epoch);
        match self.update {
            Update::Prepare(_) | Update::Commit | Update::Restore(_) => {
                Some(NodeAnswer::Refused { group, epoch, reason })
            }
            Update::Abort | Update::Remove => None,
        }
    }

    /// Whether it changes which packets the node receives from its interfaces.
    pub fn changes_interest(&self) -> bool {
        match self.update {
            Update::Commit | Update::Restore(_) | Update::Remove => true,
            Update::Prepare(_) | Update::Abort => false,
        }
    }

    fn of(group: u32, epoch: u32, update: Update) -> Self {
        Change { commands: Vec::new(), afterwards: Vec::new(), undo: Vec::new(), group, epoch, update }
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

/// An entry takes effect: its SID is added before, and another SID of the former entry is removed afterwards.
fn install(before: Option<&Installed>, entry: &GroupEntry, command: Command, update: Update) -> Change {
    let (old, new) = (before.and_then(|installed| sid_of(&installed.entry)), sid_of(entry));
    let is_other = old != new;
    Change {
        commands: add_sid(entry).filter(|_| is_other).into_iter().chain([command]).collect(),
        afterwards: old.filter(|_| is_other).map(Command::RemoveSid).into_iter().collect(),
        undo: new.filter(|_| is_other).map(Command::RemoveSid).into_iter().collect(),
        ..Change::of(entry.id.0, entry.epoch, update)
    }
}

/// The SID of this group alone: an edge has one for all groups.
fn sid_of(entry: &GroupEntry) -> Option<Prefix> {
    (entry.role == NodeRole::Transit && !entry.sid.is_unspecified()).then(|| Prefix::host(entry.sid))
}

fn add_sid(entry: &GroupEntry) -> Option<Command> {
    sid_of(entry).map(|prefix| Command::AddSid { prefix, behavior: SidBehavior::EndReplicate(entry.id) })
}

#[cfg(test)]
mod tests;
