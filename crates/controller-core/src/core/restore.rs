//! Restores the core from rows, and groups from recovery snapshots when the rows are lost.

use super::{Core, Group, Node, Time};
use crate::jobs::{JobRow, Jobs};
use crate::migration::migrate_group;
use crate::refusal::Refusal;
use crate::rows::{
    self, AnswerRow, FORMAT, FORMAT_KEY, ForeignRow, GroupRow, MemberRow, NodeRow, RecordRow, Row, RowError, SITE_KEY,
    SiteRow, Write, address_of, check_key, damaged, id_of,
};
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use srdma_api::ProblemType;
use srdma_group::{Lifecycle, Record, Resumption};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A recovery snapshot: a group in the form that its headend keeps.
#[derive(Serialize, Deserialize)]
struct RecoverySnapshot {
    /// Of the group's row.
    #[serde(default = "first_format")]
    format: u32,
    /// Identity of the store.
    #[serde(default)]
    store: u64,
    group: Value,
    members: Vec<(Ipv6Addr, MemberRow)>,
    record: Record,
    /// The former record: some nodes may have its entries still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Record>,
}

/// The first snapshots have no format.
fn first_format() -> u32 {
    1
}

/// The recovery snapshot of a group at an epoch.
pub(super) fn recovery_snapshot(group: &Group, store: u64, epoch: u32) -> Option<String> {
    let lifecycle = group.lifecycle.as_ref()?;
    let records = lifecycle.newest().into_iter().chain(lifecycle.group()).map(srdma_group::Group::record);
    let record = records.chain(&group.before).find(|record| record.epoch == epoch)?.clone();
    let before = group.record.as_ref().filter(|before| before.epoch < epoch).or(group.before.as_ref()).cloned();
    let members = group.members.iter().map(|(address, member)| (*address, member.clone())).collect();
    let row = serde_json::to_value(&group.row).ok()?;
    serde_json::to_string(&RecoverySnapshot { format: FORMAT, store, group: row, members, record, before }).ok()
}

/// A group from a recovery snapshot.
pub(super) struct Recovered {
    /// Identity of the store.
    pub(super) store: u64,
    pub(super) row: GroupRow,
    pub(super) members: Vec<(Ipv6Addr, MemberRow)>,
    pub(super) record: Record,
    /// The former record.
    pub(super) before: Option<Record>,
}

/// Parses a recovery snapshot and migrates its group.
pub(super) fn parse(recovery_snapshot: &str) -> Option<Recovered> {
    let RecoverySnapshot { format, store, mut group, members, record, before } =
        serde_json::from_str(recovery_snapshot).ok()?;
    migrate_group(format, &mut group).ok()?;
    Some(Recovered { store, row: serde_json::from_value(group).ok()?, members, record, before })
}

impl Core {
    /// Restores a controller from rows of this program's format. `identity`: for a new store.
    /// `rebuilds`: the lost store, whose groups are restored from recovery snapshots.
    ///
    /// # Errors
    ///
    /// A row is damaged.
    pub fn restore(
        settings: Settings,
        jobs: Option<Jobs>,
        rows: &[Row],
        identity: u64,
        rebuilds: Option<u64>,
        now: Time,
    ) -> Result<Self, RowError> {
        let mut core = Core::new(settings, now);
        core.rebuilds = rebuilds.is_some();
        // Missing and older formats are handled by the caller.
        let is_new = rows.is_empty();
        let mut records = BTreeMap::new();
        let mut placed = Vec::new();
        for row @ (key, _) in rows {
            let counter = |name, found, end| rows::check_counter(name, found, end).map_err(|text| damaged(key, text));
            match key.split('/').next().unwrap_or_default() {
                SITE_KEY => {
                    core.site = rows::get::<SiteRow>(row)?;
                    counter("starts", core.site.starts.into(), u32::MAX.into())?;
                    counter("last_audit", core.site.last_audit, u64::MAX)?;
                }
                "group" => {
                    let group: GroupRow = rows::get(row)?;
                    check_key(key, &rows::group_key(group.id))?;
                    counter("version", group.version, u64::MAX)?;
                    let id = group.id;
                    core.enter(group);
                    if let Some(group) = core.groups.get_mut(&id) {
                        group.is_restored = true;
                    }
                }
                "member" => core.restore_member(key, rows::get(row)?)?,
                "record" => {
                    let id = id_of(key)?;
                    check_key(key, &rows::record_key(id))?;
                    records.insert(id, rows::get::<RecordRow>(row)?);
                }
                "node" => {
                    let node: NodeRow = rows::get(row)?;
                    check_key(key, &rows::node_key(node.registration.loopback))?;
                    core.restore_node(node);
                }
                "response" => {
                    core.answers.insert(key.clone(), rows::get::<AnswerRow>(row)?);
                }
                "foreign" => {
                    let foreign: ForeignRow = rows::get(row)?;
                    check_key(key, &rows::foreign_key(foreign.store, foreign.group))?;
                    core.foreign.restore(foreign);
                }
                "answer" => core.restore_former_answer(key, rows::get(row)?),
                "job" | "job-chunk" | "drained" => placed.push(JobRow { key: key.clone(), value: Some(row.1.clone()) }),
                // The format is checked by the caller, and the audit log is read on request.
                _ => {}
            }
        }
        if is_new {
            core.site.store = identity;
        }
        core.site.store = rebuilds.unwrap_or(core.site.store);
        core.site.starts += 1;
        core.write(rows::put(FORMAT_KEY.to_owned(), &FORMAT));
        core.write(rows::put(SITE_KEY.to_owned(), &core.site));
        for (id, record) in records {
            core.resume(id, record)?;
        }
        if let Some(jobs) = jobs {
            core.restore_jobs(jobs, &placed).map_err(|error| damaged("job", error.to_string()))?;
        }
        let unfinished = core.groups.values().filter(|group| group.lifecycle.is_none());
        let unfinished: Vec<(u32, bool)> = unfinished.map(|group| (group.row.id, group.row.is_closing)).collect();
        for (id, is_closing) in unfinished {
            if is_closing {
                core.forget(id);
                continue;
            }
            core.foreign.await_report(id);
            if core.groups[&id].row.is_committed {
                core.unsettled.insert(id);
            }
            core.delete_leaving(id);
        }
        Ok(core)
    }

    pub(super) fn restore_member(&mut self, key: &str, member: MemberRow) -> Result<(), RowError> {
        let (id, address) = (id_of(key)?, address_of(key)?);
        check_key(key, &rows::member_key(id, address))?;
        let group = self.groups.get_mut(&id).ok_or_else(|| damaged(key, format!("group {id} does not exist")))?;
        if member.in_two_steps {
            self.reserving.insert(id);
        }
        self.queue_pairs.insert((address, member.receiver.qpn), id);
        group.members.insert(address, member);
        Ok(())
    }

    /// Replaces a row of an earlier program, or deletes it if it may be of two tokens (D102).
    fn restore_former_answer(&mut self, key: &str, answer: AnswerRow) {
        self.write(Write::Delete { key: key.to_owned() });
        if let Some(key) = rows::replaced_answer_key(key) {
            self.write(rows::put(key.clone(), &answer));
            self.answers.insert(key, answer);
        }
    }

    fn restore_node(&mut self, row: NodeRow) {
        let NodeRow { registration, is_drained, name, identity, is_removing, is_lost } = row;
        let loopback = registration.loopback;
        let name = name.unwrap_or_else(|| registration.name.clone());
        let stated = self.settings.nodes.get(&name).filter(|stated| stated.loopback == loopback).cloned();
        let identity = stated.or(identity).unwrap_or_else(|| registration.identity());
        let heard = self.now.monotonic;
        let node =
            Node { name, is_drained, is_removing, heard, was_dead: is_lost, ..Node::new(registration, identity) };
        // It is not usable before it registers.
        self.network.put(&node.used(), false);
        self.nodes.insert(loopback, node);
    }

    /// Resumes a group's lifecycle. Nodes that register without the group are given it.
    fn resume(&mut self, id: u32, row: RecordRow) -> Result<(), RowError> {
        let wrong = |text: String| damaged(&rows::record_key(id), text);
        let group = self.groups.get_mut(&id).ok_or_else(|| wrong(format!("group {id} does not exist")))?;
        let resumption = match row.is_settled {
            true => Resumption::Settled,
            false => Resumption::Committing { before: row.before.clone() },
        };
        // Greater than any round of an earlier start.
        let round = self.site.starts << 16;
        let lifecycle = Lifecycle::resume(row.record.clone(), resumption, group.row.last_epoch, round);
        let lifecycle = lifecycle.map_err(|error| wrong(error.to_string()))?.without(self.settings.without);
        let mut lifecycle = lifecycle.renewing(&group.row.unrenewed);
        for (node, _) in self.nodes.iter().filter(|(_, node)| node.was_dead) {
            lifecycle.lost(*node);
        }
        group.record = Some(row.record);
        group.explanation = row.explanation;
        group.links_of_unicast = row.links_of_unicast;
        group.before = row.before.map(|before| *before);
        group.lifecycle = Some(lifecycle);
        self.repeat_requests(id);
        self.reindex(id);
        Ok(())
    }

    /// Repeats the requests that a group's rows have and its resumed lifecycle does not: its removal and leaves.
    pub(super) fn repeat_requests(&mut self, id: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let (Some(record), Some(lifecycle)) = (&group.record, &mut group.lifecycle) else { return };
        let has = |record: &Record, address: &Ipv6Addr| record.receivers.iter().any(|one| one.address == *address);
        let leaving: Vec<Ipv6Addr> =
            group.members.iter().filter(|(_, member)| member.is_leaving).map(|(address, _)| *address).collect();
        let (leaving, others): (Vec<_>, Vec<_>) = leaving.into_iter().partition(|address| has(record, address));
        let mut refused = Vec::new();
        if group.row.is_closing {
            lifecycle.close();
        } else if !leaving.is_empty() && lifecycle.leave(&leaving).is_err() {
            // They were checked when they were requested, but perhaps with another record: each that is possible.
            for address in leaving {
                let Err(error) = lifecycle.leave(&[address]) else { continue };
                refused.push(format!("receiver {address} cannot leave: {error}"));
                if let Some(member) = group.members.get_mut(&address) {
                    member.is_leaving = false;
                    self.effects.writes.push(rows::put(rows::member_key(id, address), member));
                }
            }
        }
        if group.members.keys().any(|address| !has(record, address)) || !lifecycle.is_steady() {
            self.unsettled.insert(id);
        }
        // Those that left before their join began are in no record.
        let was_in = |address: &Ipv6Addr| group.before.as_ref().is_some_and(|before| has(before, address));
        let gone: Vec<Ipv6Addr> = others.into_iter().filter(|address| !was_in(address)).collect();
        gone.into_iter().for_each(|address| self.delete_member(id, address));
        refused.into_iter().for_each(|reason| self.record_failure(id, &reason));
    }

    /// Checks that the group of a recovery snapshot may be entered: its tenant exists, and its addresses are the
    /// tenant's and free.
    pub(super) fn check_recovered(&self, recovered: &Recovered) -> Result<(), Refusal> {
        let Recovered { row, record, members, .. } = recovered;
        let id = row.id;
        let invalid = |text: String| Refusal::new(ProblemType::InvalidGroup, format!("group {id}: {text}"));
        let is_other = |group: &Group| {
            let (known, request) = (&group.row.request, &row.request);
            (&group.row.tenant, known.proxy, known.source) != (&row.tenant, request.proxy, request.source)
        };
        if self.groups.get(&id).is_some_and(is_other) {
            return Err(invalid("the store has another group of this number".to_owned()));
        }
        if !self.settings.tenants.contains_key(&row.tenant) {
            return Err(invalid(format!("tenant {} does not exist", row.tenant)));
        }
        let (source, proxy) = (row.request.source, record.proxy);
        self.check_tenant(&row.tenant, "source", source.address)?;
        self.check_tenant(&row.tenant, "Proxy Address", proxy)?;
        if let Some(node) = self.network.owner_of(proxy) {
            return Err(invalid(format!("Proxy Address {proxy} is an address or SID of node {node}")));
        }
        if let Some(other) = self.proxies.get(&proxy).filter(|other| **other != id) {
            return Err(invalid(format!("Proxy Address {proxy} is that of group {other}")));
        }
        let nodes = record.tree.nodes();
        let at = [(source.address, nodes.first())].into_iter();
        let at = at.chain(record.receivers.iter().map(|receiver| (receiver.address, nodes.get(receiver.edge.0))));
        for (host, node) in at {
            if !node.is_some_and(|node| self.network.is_attached(host, node.loopback)) {
                return Err(invalid(format!("{host} is not at the node of the record")));
            }
        }
        self.check_queue_pair("source", source.address, source.qpn, Some(id))?;
        for (address, member) in members {
            self.check_tenant(&row.tenant, "receiver", *address)?;
            self.check_queue_pair("receiver", *address, member.receiver.qpn, Some(id))?;
        }
        Ok(())
    }
}
