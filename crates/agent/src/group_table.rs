//! The controller's groups at a node, and what each order changes. The caller gives the node the commands of a
//! [`Change`], and keeps the table that [`GroupTable::apply`] returns if the node accepts them.

use srdma_api::{HeldGroup, NodeAnswer, NodeOrder};
use srdma_dataplane::{Command, SidBehavior};
use srdma_group::{EntryName, GroupEntry, GroupId, Held, NodeRole, Safeguard};
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
    groups: BTreeMap<u32, Group>,
    /// The epochs of the orders that removed groups, by store and number.
    removed: BTreeMap<(u64, u32), u32>,
    /// Disabled by a test.
    without: Option<Safeguard>,
}

/// A group: it has an entry that is prepared, one that is committed, or both.
#[derive(Clone, Debug, Default, PartialEq)]
struct Group {
    /// Identity of the store that it is from.
    store: u64,
    prepared: Option<Installed>,
    committed: Option<Installed>,
}

#[derive(Clone, Debug, PartialEq)]
struct Installed {
    name: EntryName,
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
    order: Subject,
    update: Update,
}

/// The group that an order is about.
#[derive(Clone, Copy, Debug)]
struct Subject {
    store: u64,
    group: u32,
    epoch: u32,
}

/// Update of the table by a change.
#[derive(Clone, Debug, PartialEq)]
enum Update {
    Prepare(Installed),
    Commit(EntryName),
    Abort,
    Restore(Installed),
    Remove,
}

/// Levels of nodes that repair, at most, as in a node's own file: times of repair are multiplied by them (D300).
const MAX_LEVELS: u32 = 255;

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
    #[error("group {group} is held for store {held:016x}: remove it for that store first")]
    OtherStore { group: u32, held: u64 },
    #[error("{levels} levels of repair in group {group}: expected {MAX_LEVELS} at most")]
    Levels { group: u32, levels: u32 },
    #[error("epoch {epoch} of group {group} is older than epoch {newest}, which the node has")]
    Outdated { group: u32, epoch: u32, newest: u32 },
    #[error("epoch {epoch} of group {group} is known with another record")]
    OtherRecord { group: u32, epoch: u32 },
    #[error("nothing is prepared for epoch {epoch} of group {group}")]
    NotPrepared { group: u32, epoch: u32 },
}

impl GroupTable {
    /// A table without groups.
    pub fn new(allowed: AllowedSids) -> Self {
        GroupTable { allowed, ..GroupTable::default() }
    }

    /// The same without a safeguard, for tests that show what it prevents.
    pub fn without(self, safeguard: Option<Safeguard>) -> Self {
        GroupTable { without: safeguard, ..self }
    }

    /// Forgets the removed groups: orders of earlier sessions do not come any more, and a restored store may have a
    /// group at an epoch before its removal.
    pub fn forget_removed(&mut self) {
        self.removed.clear();
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

    /// The entry of a group that is in effect.
    pub fn entry(&self, group: u32) -> Option<&GroupEntry> {
        Some(&self.groups.get(&group)?.committed.as_ref()?.entry)
    }

    /// The groups in a registration.
    pub fn held(&self) -> Vec<HeldGroup> {
        let held = |(group, group_state): (&u32, &Group)| {
            let (committed, prepared) = (group_state.committed.as_ref(), group_state.prepared.as_ref());
            let newest = prepared.or(committed)?;
            let name = |installed: &Installed| installed.name;
            let snapshot = |installed: &Installed| installed.recovery_snapshot.clone();
            Some(HeldGroup {
                store: group_state.store,
                group: *group,
                proxy: newest.entry.proxy,
                designated_qpn: newest.entry.designated_qpn.get(),
                entries: Held { committed: committed.map(name), prepared: prepared.map(name) },
                recovery_snapshots: prepared.into_iter().chain(committed).filter_map(snapshot).collect(),
            })
        };
        self.groups.iter().filter_map(held).collect()
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
        let subject = subject(&order);
        let group = subject.group;
        let group_state = self.groups.get(&group);
        let refuse = |name: EntryName, error: EntryError| {
            Plan::Answer(NodeAnswer::Refused { group, name, reason: error.to_string() })
        };
        let names_entries = self.without != Some(Safeguard::EntriesNamed);
        if let Some(held) = group_state.map(|group_state| group_state.store).filter(|held| *held != subject.store)
            && names_entries
        {
            let error = EntryError::OtherStore { group, held };
            return name_of(&order).map_or(Plan::Nothing, |name| refuse(name, error));
        }
        let committed = group_state.and_then(|group_state| group_state.committed.as_ref());
        let prepared = group_state.and_then(|group_state| group_state.prepared.as_ref());
        let removed = self.removed.get(&(subject.store, group)).copied();
        let outdated = |name: EntryName, held: &[Option<&Installed>]| {
            let newest = held.iter().flatten().map(|installed| installed.name.epoch).chain(removed).max().unwrap_or(0);
            let is_other = |installed: &&Installed| installed.name.epoch == name.epoch && installed.name != name;
            if name.epoch < newest {
                Err(EntryError::Outdated { group, epoch: name.epoch, newest })
            } else if names_entries && held.iter().flatten().any(is_other) {
                Err(EntryError::OtherRecord { group, epoch: name.epoch })
            } else {
                Ok(())
            }
        };
        let apply = |change| Plan::Apply(Box::new(change));
        let is = |installed: Option<&Installed>, name: EntryName| {
            installed.is_some_and(|held| held.name == name || (!names_entries && held.name.epoch == name.epoch))
        };
        match order {
            NodeOrder::Prepare { name, .. } if is(committed, name) => {
                Plan::Answer(NodeAnswer::Prepared { group, name })
            }
            NodeOrder::Commit { name, .. } | NodeOrder::Restore { name, .. } if is(committed, name) => {
                Plan::Answer(NodeAnswer::Committed { group, name })
            }
            NodeOrder::Prepare { name, entry, recovery_snapshot, .. } => {
                let checked = outdated(name, &[committed, prepared]).and_then(|()| self.check(&entry, is_in_file));
                match checked {
                    Err(error) => refuse(name, error),
                    Ok(()) => apply(Change {
                        commands: vec![Command::PrepareGroup(entry.clone())],
                        update: Update::Prepare(Installed { name, entry: *entry, recovery_snapshot }),
                        ..Change::of(subject, Update::Abort)
                    }),
                }
            }
            NodeOrder::Commit { name, is_first, .. } => match prepared.filter(|_| is(prepared, name)) {
                Some(installed) => {
                    let command = Command::CommitGroup { id: GroupId(group), epoch: name.epoch, is_first };
                    apply(install(committed, &installed.entry, command, Change::of(subject, Update::Commit(name))))
                }
                None => refuse(name, EntryError::NotPrepared { group, epoch: name.epoch }),
            },
            NodeOrder::Abort { name, .. } if is(prepared, name) => apply(Change {
                commands: vec![Command::AbortGroup(GroupId(group))],
                ..Change::of(subject, Update::Abort)
            }),
            NodeOrder::Abort { .. } => Plan::Nothing,
            // What is prepared is replaced: it is prepared again when the entry is restored.
            NodeOrder::Restore { name, entry, recovery_snapshot, .. } => {
                let checked = outdated(name, &[committed]).and_then(|()| self.check(&entry, is_in_file));
                match checked {
                    Err(error) => refuse(name, error),
                    Ok(()) => {
                        let command = Command::RestoreGroup(entry.clone());
                        let installed = Installed { name, entry: (*entry).clone(), recovery_snapshot };
                        let change = Change::of(subject, Update::Restore(installed));
                        let mut change = install(committed, &entry, command, change);
                        change.commands.extend(prepared.map(|_| Command::AbortGroup(GroupId(group))));
                        apply(change)
                    }
                }
            }
            NodeOrder::Remove { epoch, .. } => {
                let newest = committed.into_iter().chain(prepared).map(|installed| installed.name.epoch).max();
                if epoch < newest.max(removed).unwrap_or(0) {
                    return Plan::Nothing;
                }
                let abort = prepared.map(|_| Command::AbortGroup(GroupId(group)));
                let leave = committed.map(|_| Command::RemoveGroup(GroupId(group)));
                let sid = committed.and_then(|installed| sid_of(&installed.entry)).map(Command::RemoveSid);
                apply(Change {
                    commands: abort.into_iter().chain(leave).chain(sid).collect(),
                    ..Change::of(subject, Update::Remove)
                })
            }
        }
    }

    /// Executes an order where no data plane can refuse its commands; returns its answer, if it has one.
    pub fn execute(&mut self, order: NodeOrder) -> Option<NodeAnswer> {
        match self.plan(order, |_| false) {
            Plan::Nothing => None,
            Plan::Answer(answer) => Some(answer),
            Plan::Apply(change) => {
                let (after, answer) = self.apply(&change);
                *self = after;
                answer
            }
        }
    }

    /// The table after a change that the node has accepted, and the answer to its order.
    pub fn apply(&self, change: &Change) -> (GroupTable, Option<NodeAnswer>) {
        let Subject { store, group, epoch } = change.order;
        let mut table = self.clone();
        let group_state = table.groups.entry(group).or_default();
        group_state.store = store;
        let answer = match &change.update {
            Update::Prepare(installed) => {
                group_state.prepared = Some(installed.clone());
                Some(NodeAnswer::Prepared { group, name: installed.name })
            }
            Update::Commit(name) => {
                group_state.committed = group_state.prepared.take().or(group_state.committed.take());
                Some(NodeAnswer::Committed { group, name: *name })
            }
            Update::Abort => {
                group_state.prepared = None;
                None
            }
            Update::Restore(installed) => {
                group_state.committed = Some(installed.clone());
                group_state.prepared = None;
                Some(NodeAnswer::Committed { group, name: installed.name })
            }
            Update::Remove => {
                *group_state = Group::default();
                table.removed.insert((store, group), epoch);
                Some(NodeAnswer::Removed { store, group, epoch })
            }
        };
        table.groups.retain(|_, group_state| group_state.prepared.is_some() || group_state.committed.is_some());
        while table.removed.len() > MAX_REMOVED {
            table.removed.pop_first();
        }
        (table, answer)
    }

    /// Checks that an entry uses the SIDs that the node has registered, and that its repair is within its limit.
    fn check(&self, entry: &GroupEntry, is_in_file: impl Fn(u32) -> bool) -> Result<(), EntryError> {
        let (group, sid) = (entry.id.0, entry.sid);
        if is_in_file(group) {
            return Err(EntryError::GroupInFile(group));
        }
        if let Some(levels) = entry.repair.as_ref().map(|repair| repair.levels).filter(|levels| *levels > MAX_LEVELS) {
            return Err(EntryError::Levels { group, levels });
        }
        match entry.role {
            NodeRole::Edge if self.allowed.end_mt != Some(sid) => Err(EntryError::NotEndMt { group, sid }),
            NodeRole::Edge => Ok(()),
            NodeRole::Transit | NodeRole::Bud if entry.headend.is_some() && sid.is_unspecified() => Ok(()),
            NodeRole::Transit | NodeRole::Bud
                if !self.allowed.replication.is_some_and(|prefix| prefix.contains(sid)) =>
            {
                Err(EntryError::NotInReplication { group, sid })
            }
            NodeRole::Transit | NodeRole::Bud => {
                let uses_sid = |installed: &Option<Installed>| {
                    installed
                        .as_ref()
                        .is_some_and(|installed| installed.entry.role.replicates() && installed.entry.sid == sid)
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
        let group = self.order.group;
        match &self.update {
            Update::Prepare(Installed { name, .. })
            | Update::Commit(name)
            | Update::Restore(Installed { name, .. }) => Some(NodeAnswer::Refused { group, name: *name, reason }),
            Update::Abort | Update::Remove => None,
        }
    }

    /// Whether it changes which packets the node receives from its interfaces.
    pub fn changes_interest(&self) -> bool {
        match self.update {
            Update::Commit(_) | Update::Restore(_) | Update::Remove => true,
            Update::Prepare(_) | Update::Abort => false,
        }
    }

    fn of(order: Subject, update: Update) -> Self {
        Change { commands: Vec::new(), afterwards: Vec::new(), undo: Vec::new(), order, update }
    }
}

fn subject(order: &NodeOrder) -> Subject {
    match order {
        NodeOrder::Prepare { store, entry, .. } | NodeOrder::Restore { store, entry, .. } => {
            Subject { store: *store, group: entry.id.0, epoch: entry.epoch }
        }
        NodeOrder::Commit { store, group, name, .. } | NodeOrder::Abort { store, group, name } => {
            Subject { store: *store, group: *group, epoch: name.epoch }
        }
        NodeOrder::Remove { store, group, epoch } => Subject { store: *store, group: *group, epoch: *epoch },
    }
}

/// The name that a refusal of an order returns.
fn name_of(order: &NodeOrder) -> Option<EntryName> {
    match order {
        NodeOrder::Prepare { name, .. } | NodeOrder::Restore { name, .. } | NodeOrder::Commit { name, .. } => {
            Some(*name)
        }
        NodeOrder::Abort { .. } | NodeOrder::Remove { .. } => None,
    }
}

/// An entry takes effect: its SID is added before, and another SID of the former entry is removed afterwards.
fn install(before: Option<&Installed>, entry: &GroupEntry, command: Command, change: Change) -> Change {
    let (old, new) = (before.and_then(|installed| sid_of(&installed.entry)), sid_of(entry));
    let is_other = old != new;
    Change {
        commands: add_sid(entry).filter(|_| is_other).into_iter().chain([command]).collect(),
        afterwards: old.filter(|_| is_other).map(Command::RemoveSid).into_iter().collect(),
        undo: new.filter(|_| is_other).map(Command::RemoveSid).into_iter().collect(),
        ..change
    }
}

/// The SID of this group alone: an edge has one for all groups.
fn sid_of(entry: &GroupEntry) -> Option<Prefix> {
    (entry.role.replicates() && !entry.sid.is_unspecified()).then(|| Prefix::host(entry.sid))
}

fn add_sid(entry: &GroupEntry) -> Option<Command> {
    sid_of(entry).map(|prefix| Command::AddSid { prefix, behavior: SidBehavior::EndReplicate(entry.id) })
}

#[cfg(test)]
mod tests;
