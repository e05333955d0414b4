//! Groups that nodes have and the store does not: of another store, or created after the backup that was restored
//! (D98). They are left alone. Their numbers and Proxy Addresses are not used for other groups, until an administrator
//! adopts or removes them.

use super::divergence::{Report, newest_epoch};
use super::restore::Recovered;
use super::{Core, Group, unknown};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::{self, ForeignRow, Write};
use srdma_api::{EventKind, ForeignGroup, ForeignGroups, HeldGroup, NodeOrder, ProblemType};
use srdma_group::{Held, Safeguard};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Limit of the foreign groups that one node has introduced (D128).
const MAX_INTRODUCED: usize = 1 << 15;

/// The foreign groups, by store and number. Those of this store that were removed stay, without reports: their numbers
/// are not used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Foreign {
    groups: BTreeMap<(u64, u32), Entry>,
    /// How many of them have each number.
    numbers: BTreeMap<u32, u32>,
    /// Groups of the store without a record whose headend has not registered since the controller's start: it may have
    /// a record, of which the store does not know.
    unreported: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
struct Entry {
    row: ForeignRow,
    /// What the nodes have reported since the controller's start.
    reports: BTreeMap<Ipv6Addr, Report>,
}

impl Entry {
    /// It was removed, and no node has it. While a store is rebuilt it is remembered: a node that registers later must
    /// not bring it back.
    fn is_gone(&self) -> bool {
        self.row.is_removing && self.reports.is_empty()
    }
}

impl Foreign {
    pub(super) fn restore(&mut self, row: ForeignRow) {
        let former = self.groups.insert((row.store, row.group), Entry { row, reports: BTreeMap::new() });
        if former.is_none() {
            *self.numbers.entry(row.group).or_default() += 1;
        }
    }

    fn remove(&mut self, key: (u64, u32)) -> Option<Entry> {
        let removed = self.groups.remove(&key)?;
        if let Some(count) = self.numbers.get_mut(&key.1) {
            *count -= 1;
            if *count == 0 {
                self.numbers.remove(&key.1);
            }
        }
        Some(removed)
    }

    /// Whether a foreign group of some store has this number.
    pub(super) fn has_number(&self, group: u32) -> bool {
        self.numbers.contains_key(&group)
    }

    /// The store and number of the group with this Proxy Address.
    pub(super) fn owner_of(&self, proxy: Ipv6Addr) -> Option<(u64, u32)> {
        let mut present = self.groups.iter().filter(|(_, held)| !held.is_gone());
        present.find(|(_, held)| held.row.proxy == proxy).map(|(key, _)| *key)
    }

    /// The numbers of a store's groups that are not to be removed.
    pub(super) fn groups_of(&self, store: u64) -> impl Iterator<Item = u32> {
        let of_store = self.groups.iter().filter(move |((of, _), held)| *of == store && !held.row.is_removing);
        of_store.map(|((_, group), _)| *group)
    }

    /// What the nodes have reported of a group.
    pub(super) fn reports(&self, store: u64, group: u32) -> BTreeMap<Ipv6Addr, Report> {
        self.groups.get(&(store, group)).map(|foreign| foreign.reports.clone()).unwrap_or_default()
    }

    /// A group of the store has no record.
    pub(super) fn await_report(&mut self, group: u32) {
        self.unreported.insert(group);
    }

    pub(super) fn may_be_adopted(&self, key: (u64, u32)) -> bool {
        self.groups.get(&key).is_some_and(|foreign| !foreign.row.is_removing)
    }

    pub(super) fn has(&self, key: (u64, u32)) -> bool {
        self.groups.get(&key).is_some_and(|foreign| !foreign.is_gone())
    }
}

impl Core {
    /// Notes the groups without a record whose headend has registered: one node that the source is attached to has, and
    /// each other one has, or is fenced (D115, D289).
    pub(super) fn note_reported_headends(&mut self) {
        let has_registered = |node: Ipv6Addr| self.nodes.get(&node).is_some_and(|node| node.session.is_some());
        let is_reported = |id: &u32| {
            self.groups.get(id).is_none_or(|group| {
                let is_any_here = self.network.attached_to(group.row.request.source.address).any(has_registered);
                is_any_here && self.other_headend(group).is_none()
            })
        };
        let reported: Vec<u32> = self.foreign.unreported.iter().copied().filter(is_reported).collect();
        for id in reported {
            self.foreign.unreported.remove(&id);
            self.effects.changed_groups.insert(id);
        }
    }

    /// Notes the foreign groups of a registering node, and orders it to remove what is left of deleted groups.
    pub(super) fn note_foreign(&mut self, node: Ipv6Addr, held: &[HeldGroup]) {
        for foreign in self.foreign.groups.values_mut() {
            foreign.reports.remove(&node);
        }
        self.note_reported_headends();
        for held in held {
            let key @ (store, group) = (held.store, held.group);
            let is_ours = store == self.site.store || self.settings.without == Some(Safeguard::EntriesNamed);
            let known = self.groups.get(&group).filter(|_| is_ours);
            if known.is_some_and(|group| group.lifecycle.is_some()) {
                continue;
            }
            // The first commit of a group was interrupted, or its number was used after the backup.
            if known.is_some()
                && let Held { committed: None, prepared: Some(name) } = held.entries
            {
                self.effects.orders.push((node, NodeOrder::Abort { store, group, name }));
                self.note_used_epoch(group, name.epoch);
                continue;
            }
            let is_deleted = is_ours && known.is_none() && group <= self.site.last_group && !self.rebuilds;
            if is_deleted && !self.foreign.groups.contains_key(&key) {
                self.remove_leftover((node, store, group), held.entries.newest_epoch());
                continue;
            }
            if !self.foreign.groups.contains_key(&key) {
                let row = ForeignRow {
                    store,
                    group,
                    proxy: held.proxy,
                    designated_qpn: held.designated_qpn,
                    is_removing: false,
                    reporter: Some(node),
                };
                self.write(rows::put(rows::foreign_key(store, group), &row));
                self.foreign.restore(row);
            }
            if let Some(foreign) = self.foreign.groups.get_mut(&key) {
                foreign.reports.insert(node, Report::of(held));
                if foreign.row.is_removing {
                    self.remove_leftover((node, store, group), held.entries.newest_epoch());
                }
            }
        }
        self.forget_removed();
    }

    /// A group without a record was being created with this epoch before: the next creation has a greater one, so that
    /// no node takes one for the other.
    fn note_used_epoch(&mut self, id: u32, epoch: u32) {
        let Some(group) = self.groups.get_mut(&id).filter(|group| group.row.last_epoch < epoch) else { return };
        group.row.last_epoch = epoch;
        self.effects.writes.push(rows::put(rows::group_key(id), &group.row));
    }

    /// Checks that a registering node has not introduced too many foreign groups.
    pub(super) fn check_foreign(&self, node: Ipv6Addr, held: &[HeldGroup]) -> Result<(), Refusal> {
        let is_new = |held: &&HeldGroup| {
            let is_known = held.store == self.site.store && self.groups.contains_key(&held.group);
            !is_known && !self.foreign.groups.contains_key(&(held.store, held.group))
        };
        let new = held.iter().filter(is_new).count();
        let introduced = self.foreign.groups.values().filter(|foreign| foreign.row.reporter == Some(node)).count();
        if new > 0 && introduced + new > MAX_INTRODUCED {
            let text = format!(
                "groups: {new} that the store does not know, beside {introduced}: a node may have {MAX_INTRODUCED}"
            );
            return Err(Refusal::new(ProblemType::InvalidRequest, text));
        }
        Ok(())
    }

    /// Refuses a request for a group that does not exist. While a store is rebuilt, its groups may exist: their sources
    /// must not end before the nodes have reported.
    pub(super) fn missing(&self, id: u32) -> Refusal {
        let may_come = self.now.monotonic < self.expects_until || self.foreign.may_be_adopted((self.site.store, id));
        if self.rebuilds && may_come {
            let text = format!("group {id} is not known yet: the store is being rebuilt from what the nodes report");
            return Refusal::new(ProblemType::Recovering, text);
        }
        unknown(id)
    }

    /// Whether nodes may have a record of a group that has none in the store, which is older than its first commit.
    pub(super) fn may_have_record(&self, group: &Group) -> bool {
        let id = group.row.id;
        let is_older = group.is_restored && group.lifecycle.is_none();
        is_older && (self.foreign.unreported.contains(&id) || self.foreign.has((self.site.store, id)))
    }

    /// The record that nodes have of a group without one, as a failure.
    pub(super) fn foreign_record(&self, group: &Group) -> Option<String> {
        let key @ (store, id) = (self.site.store, group.row.id);
        if !self.may_have_record(group) {
            return None;
        }
        if !self.foreign.has(key) {
            return Some("waiting for the report of the headend".to_owned());
        }
        let obstacle = self.agreed(id, &self.foreign.reports(store, id), None).err()?;
        Some(format!("nodes have a newer record than the store: {obstacle}"))
    }

    /// A node has removed a group of this store and number.
    pub(super) fn foreign_removed(&mut self, node: Ipv6Addr, store: u64, group: u32) {
        let removed = self.foreign.groups.get_mut(&(store, group));
        let proxy = removed.map(|foreign| {
            foreign.reports.remove(&node);
            foreign.row.proxy
        });
        self.forget_removed();
        // The node has refused the entries of a group with this number or Proxy Address.
        let owner = proxy.and_then(|proxy| self.proxies.get(&proxy).copied());
        for id in BTreeSet::from_iter(owner.into_iter().chain([group])) {
            if let Some(refused) = self.groups.get_mut(&id) {
                refused.moves_tried = None;
                self.drive(id);
            }
        }
    }

    /// Deletes the rows of groups whose removal was requested and that no node has, unless the number of one of this
    /// store could be used again.
    fn forget_removed(&mut self) {
        if self.rebuilds {
            return;
        }
        let is_used = |(store, group): &(u64, u32)| *store != self.site.store || self.groups.contains_key(group);
        let gone = self.foreign.groups.iter().filter(|(key, foreign)| foreign.is_gone() && is_used(key));
        for key @ (store, group) in gone.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.foreign.remove(key);
            self.write(Write::Delete { key: rows::foreign_key(store, group) });
        }
    }

    /// The foreign groups.
    ///
    /// # Errors
    ///
    /// The principal may not read the network.
    pub fn foreign_groups(&self, principal: &Principal) -> Result<ForeignGroups, Refusal> {
        principal.may_read_network()?;
        let groups = self.foreign.groups.iter().filter(|(_, foreign)| !foreign.is_gone());
        let groups = groups.map(|(&(store, group), foreign)| ForeignGroup {
            store: format!("{store:016x}"),
            group,
            proxy: foreign.row.proxy,
            designated_qpn: foreign.row.designated_qpn,
            epoch: newest_epoch(&foreign.reports),
            nodes: foreign.reports.keys().map(|node| self.network.name(*node)).collect(),
            is_adoptable: store == self.site.store,
            is_removing: foreign.row.is_removing,
        });
        Ok(ForeignGroups { store: format!("{:016x}", self.site.store), groups: groups.collect() })
    }

    /// Removes a foreign group from the nodes that have it; nodes that register later remove it then.
    ///
    /// # Errors
    ///
    /// It does not exist, or the principal is no administrator.
    pub fn remove_foreign(&mut self, principal: &Principal, store: u64, group: u32) -> Result<(), Refusal> {
        principal.may_operate()?;
        let foreign = self.foreign.groups.get_mut(&(store, group)).ok_or_else(|| unknown(group))?;
        foreign.row.is_removing = true;
        let row = foreign.row;
        let epoch = newest_epoch(&foreign.reports);
        for node in foreign.reports.keys().copied().collect::<Vec<_>>() {
            self.remove_leftover((node, store, group), epoch);
        }
        self.write(rows::put(rows::foreign_key(store, group), &row));
        self.audit(&principal.name, "remove", format!("group {group} of store {store:016x}"));
        self.forget_removed();
        Ok(())
    }

    /// Takes a group of this store over from the nodes that have it.
    ///
    /// # Errors
    ///
    /// It does not exist, is of another store, its nodes contradict its recovery snapshot, or its addresses and tenant
    /// are not permitted now.
    pub fn adopt_foreign(&mut self, principal: &Principal, store: u64, group: u32) -> Result<(), Refusal> {
        principal.may_operate()?;
        let foreign = self.foreign.groups.get(&(store, group)).filter(|foreign| !foreign.is_gone());
        let foreign = foreign.ok_or_else(|| unknown(group))?;
        if store != self.site.store {
            let text = format!(
                "group {group} is of store {store:016x}: only `srdma controller run --rebuild {store:016x}` with an \
                 empty store takes over groups of another store"
            );
            return Err(Refusal::new(ProblemType::InvalidGroup, text));
        }
        if foreign.row.is_removing {
            let text = format!("group {group} is being removed: create another one");
            return Err(Refusal::new(ProblemType::InvalidGroup, text));
        }
        let recovered = self.agreed(group, &foreign.reports, None).map_err(|obstacle| {
            Refusal::new(ProblemType::InvalidGroup, format!("group {group} cannot be adopted: {obstacle}"))
        })?;
        self.check_recovered(&recovered)?;
        self.audit(&principal.name, "adopt", format!("group {group}"));
        self.adopt_reported(*recovered);
        Ok(())
    }

    /// Adopts groups whose nodes agree: those that the store has without a record, since it is older than their first
    /// commit; and all of a store that is rebuilt.
    pub(super) fn adopt_agreed(&mut self) {
        let store = self.site.store;
        let is_known = |id: &u32| self.groups.get(id).is_some_and(|group| group.is_restored && !group.row.is_closing);
        let groups: Vec<u32> = self.foreign.groups_of(store).filter(|id| self.rebuilds || is_known(id)).collect();
        for id in groups {
            let Ok(recovered) = self.agreed(id, &self.foreign.reports(store, id), None) else { continue };
            match self.check_recovered(&recovered) {
                Ok(()) => self.adopt_reported(*recovered),
                Err(refusal) if self.rebuilds => {
                    self.emit(None, EventKind::ChangeAborted { group: id, reason: refusal.detail });
                }
                Err(_) => {}
            }
        }
    }

    /// Adopts a group of this store with what its nodes have reported.
    fn adopt_reported(&mut self, recovered: Recovered) {
        let (store, group) = (self.site.store, recovered.row.id);
        let reports = self.foreign.remove((store, group)).map(|foreign| foreign.reports).unwrap_or_default();
        self.write(Write::Delete { key: rows::foreign_key(store, group) });
        self.site.last_group = self.site.last_group.max(group);
        self.write(rows::put(rows::SITE_KEY.to_owned(), &self.site));
        self.adopt(recovered, reports);
    }
}
