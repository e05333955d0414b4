//! Commits of group entries (D31), and the initial state of a new or changed group.

use super::buffer_memory::BufferShare;
use super::repair::{StoredPacket, repair_of, succeeding_repair};
use super::state::BranchOffsets;
use super::{GroupState, Groups, ResponseMarking, Surroundings};
use crate::config::{ConfigError, NodeConfig};
use crate::counters::GroupCounters;
use crate::event::Event;
use crate::headers::IPV6;
use crate::learning::FIRST_LEARNT_GROUP;
use crate::multicast;
use crate::security::Security;
use crate::tables::{Tables, Target, Unused};
use srdma_aggregation::{
    Acknowledgements, BranchBefore, BranchIndex, CnpRules, CnpWindow, NodeBefore, Origin, Rules, StallRules,
    WindowMode, is_older,
};
use srdma_group::{
    Branch, CnpMode, GroupEntry, GroupId, Join, NodeRole, OnFailure, Parent, Policy, PsnOffset, is_mixed,
};
use srdma_repair::Effects;
use srdma_wire::Psn;
use std::net::Ipv6Addr;

/// Who installs a group entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The node's own file.
    File,
    Controller,
}

impl Groups {
    /// First phase of a commit: checks everything that could refuse the group entry later (D31).
    pub(crate) fn prepare(&mut self, entry: GroupEntry, around: &Surroundings<'_>) -> Result<(), ConfigError> {
        self.check(&entry, around)?;
        headers_for(&entry, around.config, around.security)?;
        self.lists.forget(&entry);
        self.prepared.insert(entry.id, entry);
        Ok(())
    }

    /// Second phase. A repeated commit finds its epoch in effect.
    pub(crate) fn commit(
        &mut self,
        id: GroupId,
        epoch: u32,
        is_first: bool,
        around: &mut Surroundings<'_>,
    ) -> Result<Unused, ConfigError> {
        match self.prepared.remove(&id) {
            Some(entry) if entry.epoch == epoch => {
                let is_headend = entry.headend.is_some();
                let is_first = is_first && self.find(id).is_none();
                let unused = self.add(entry, around.config.restarted, Owner::Controller, around)?;
                if let Some(state) = self.slots.iter_mut().flatten().find(|state| state.entry.id == id) {
                    // The next headend waits: what this one gets as another node of the tree has passed that one.
                    state.awaits_first_psn = is_headend && (state.awaits_first_psn || is_first);
                }
                Ok(unused)
            }
            other => {
                self.prepared.extend(other.map(|entry| (id, entry)));
                let in_effect = self.find(id).is_some_and(|group| group.entry.epoch == epoch);
                if in_effect { Ok(None) } else { Err(ConfigError::NotPrepared { group: id.0, epoch }) }
            }
        }
    }

    /// Forgets what was prepared for a group.
    pub(crate) fn abort(&mut self, id: GroupId) {
        if let Some(entry) = self.prepared.remove(&id) {
            self.lists.forget(&entry);
        }
    }

    fn check(&self, entry: &GroupEntry, around: &Surroundings<'_>) -> Result<(), ConfigError> {
        if entry.id >= FIRST_LEARNT_GROUP {
            return Err(ConfigError::ReservedGroup(entry.id.0));
        }
        if let Some(known) = self.find(entry.id).filter(|known| is_older(entry.epoch, known.entry.epoch)) {
            return Err(ConfigError::OldEpoch { group: entry.id.0, epoch: entry.epoch, in_effect: known.entry.epoch });
        }
        // A record replaces a learnt group.
        let owner = self.slots.iter().flatten().find(|group| group.entry.proxy == entry.proxy);
        if let Some(owner) = owner.filter(|owner| owner.entry.id != entry.id && owner.learnt.is_none()) {
            let (proxy, group) = (entry.proxy, entry.id.0);
            return Err(ConfigError::ProxyInUse { proxy, group, owner: owner.entry.id.0 });
        }
        if around.tables.lookup_host(&entry.proxy.octets()) == Some(Target::Local) {
            return Err(ConfigError::ProxyIsOwn { proxy: entry.proxy, group: entry.id.0 });
        }
        let (proxy, group) = (entry.proxy, entry.id.0);
        if let Some(address) = members_of(entry).find(|address| is_mixed(*address, proxy)) {
            return Err(ConfigError::MixedFamilies { address, proxy, group });
        }
        around.security.check_proxy_in_domain(entry)
    }

    /// Joins a group or takes over a new epoch of it. `restarted`: the node was in it before and has lost what its
    /// branches had acknowledged, or has another entry than the record says.
    pub(crate) fn add(
        &mut self,
        entry: GroupEntry,
        restarted: bool,
        owner: Owner,
        around: &mut Surroundings<'_>,
    ) -> Result<Unused, ConfigError> {
        self.check(&entry, around)?;
        let headers = headers_for(&entry, around.config, around.security)?;
        let is_it = |group: &Option<GroupState>| group.as_ref().is_some_and(|group| group.entry.id == entry.id);
        let known = self.slots.iter().position(is_it);
        // Data have come down before the record did: no branch is at the initial PSN (D17, R6).
        let goes_on = self.give_way_to_record(entry.proxy, around.tables);
        let index = known.unwrap_or_else(|| self.free_slot());
        let share = self.buffer_share(index, &entry, around.config);
        let is_owned = around.config.worker.owns(entry.proxy);
        // Another worker has what the branches have acknowledged.
        let was_elsewhere = self.get(index as u32).is_some_and(|before| is_owned && !before.is_owned);
        let restarted = restarted || was_elsewhere;
        let is_leased = self.get(index as u32).is_some_and(|before| before.is_leased) || owner == Owner::Controller;
        let mut state = match self.slots[index].take() {
            None => group_state(entry, headers, share, restarted || goes_on),
            Some(before) => {
                around.tables.withdraw_proxy(before.entry.proxy, index as u32);
                succeeding_state(before, entry, headers, share, restarted, &mut self.pending.effects)
            }
        };
        state.is_leased = is_leased;
        state.is_owned = is_owned;
        if !is_owned {
            state.unsent.clear();
        }
        let unused = around.tables.claim_proxy(state.entry.proxy, index as u32);
        self.slots[index] = Some(state);
        self.forget_evictions(index);
        self.rearm(index as u32);
        self.journal_membership(index as u32);
        self.membership_changed(around);
        Ok(unused)
    }

    pub(crate) fn remove(&mut self, id: GroupId, around: &mut Surroundings<'_>) -> Result<(), ConfigError> {
        // A late commit must not bring the node back.
        self.prepared.remove(&id);
        self.events.retain(|Event::EvictionRequested { group, .. }| *group != id);
        let is_it = |state: &GroupState| state.entry.id == id && state.learnt.is_none();
        let index = self.slots.iter().position(|group| group.as_ref().is_some_and(is_it));
        self.take_out(index.ok_or(ConfigError::UnknownGroup(id.0))?, around.tables);
        self.membership_changed(around);
        Ok(())
    }

    fn membership_changed(&mut self, around: &mut Surroundings<'_>) {
        around.tables.assign_replication_sids(|id| self.transit_group(id));
        self.is_root = self.slots.iter().flatten().any(|group| group.entry.headend.is_some());
    }

    /// A free place for the state of a group.
    pub(super) fn free_slot(&mut self) -> usize {
        self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        })
    }

    /// Forgets the state of a group, and withdraws its Proxy Address.
    pub(super) fn take_out(&mut self, index: usize, tables: &mut Tables) {
        if let Some(mut state) = self.slots[index].take() {
            let kept = state.repair.iter_mut().flat_map(|repair| repair.drain());
            self.pending.effects.released.extend(kept);
            tables.withdraw_proxy(state.entry.proxy, index as u32);
        }
        self.timers.arm(index as u32, None);
        self.journal_membership(index as u32);
    }

    /// Drops events about receivers that were evicted before the event was fetched: they may join again (D25, D30).
    fn forget_evictions(&mut self, index: usize) {
        let Some(state) = &self.slots[index] else {
            return;
        };
        self.events.retain(|Event::EvictionRequested { group, receiver, .. }| {
            *group != state.entry.id || state.branch_of(&receiver.octets()).is_some()
        });
    }

    /// A Proxy Address is no node's own address (D2).
    pub(crate) fn check_not_proxies(&self, addresses: &[Ipv6Addr]) -> Result<(), ConfigError> {
        self.check_not_learnt(addresses)?;
        match self.slots.iter().flatten().find(|group| addresses.contains(&group.entry.proxy)) {
            Some(group) => Err(ConfigError::ProxyIsOwn { proxy: group.entry.proxy, group: group.entry.id.0 }),
            None => Ok(()),
        }
    }

    /// The group whose headend signs with a key.
    pub(crate) fn signs_with(&self, key_id: u32) -> Option<GroupId> {
        let signs = |entry: &&GroupEntry| entry.headend.is_some() && entry.policy.hmac_key_id == Some(key_id);
        self.entries().find(signs).map(|entry| entry.id)
    }

    /// Builds the headends' outer headers again after a change of keys.
    pub(crate) fn rebuild_headers(&mut self, config: &NodeConfig, security: &Security) -> Result<(), ConfigError> {
        for state in self.slots.iter_mut().flatten() {
            state.headers = headers_for(&state.entry, config, security)?;
        }
        Ok(())
    }
}

/// The headend's outer headers, behind room for the Ethernet header.
/// The addresses of hosts in an entry.
fn members_of(entry: &GroupEntry) -> impl Iterator<Item = Ipv6Addr> {
    let source = match entry.parent {
        Parent::Source(source) => Some(source.address),
        Parent::Node { .. } => entry.headend.as_ref().map(|headend| headend.source.address),
    };
    let listed = entry.headend.iter().flat_map(|headend| &headend.lists).flat_map(|list| &list.receivers);
    source.into_iter().chain(entry.receivers.iter().chain(listed).map(|receiver| receiver.address))
}

fn headers_for(entry: &GroupEntry, config: &NodeConfig, security: &Security) -> Result<Vec<u8>, ConfigError> {
    let Some(headend) = &entry.headend else {
        return Ok(Vec::new());
    };
    let group = entry.id.0;
    let hmac = match entry.policy.hmac_key_id {
        None => None,
        Some(key_id) => Some((key_id, security.key(key_id).ok_or(ConfigError::UnknownKey { group, key_id })?)),
    };
    let outer =
        multicast::headers(config.loopback, entry, &headend.lists, headend.with_regions, config.tlv_types, hmac);
    let mut headers = vec![0; IPV6];
    headers.extend(outer.ok_or(ConfigError::ListsTooLong(group))?);
    Ok(headers)
}

pub(super) fn group_state(
    entry: GroupEntry,
    headers: Vec<u8>,
    buffer_share: Option<BufferShare>,
    restarted: bool,
) -> GroupState {
    let node = match (restarted, entry.renewed) {
        (true, _) => NodeBefore::Restarted,
        (false, 0) => NodeBefore::New,
        (false, _) => NodeBefore::Renewed,
    };
    let origin = |branch| Origin::of(node, BranchBefore::Absent, joined_at(branch, None), entry.initial_psn);
    let origins: Vec<Origin> = entry.branches.iter().map(origin).collect();
    let offsets = (0..).zip(&entry.branches).map(|(index, branch)| BranchOffsets {
        msn: branch.joined.map_or(0, |join| join.msn),
        psn: psn_offset_at(&entry, index),
    });
    GroupState {
        acks: Acknowledgements::of_branches(&rules_of(&entry), &origins),
        cnps: CnpWindow::new(&cnp_rules_of(&entry.policy), entry.branches.len() as u16),
        loads: None,
        repair: buffer_share.and_then(|_| repair_of(&entry, &origins)),
        buffer_share,
        responders: responders_of(&entry),
        preceding: Vec::new(),
        offsets: offsets.collect(),
        branch_cnps: vec![0; entry.branches.len()].into_boxed_slice(),
        differs_by_branch: differs_by_branch(&entry),
        unsent: Vec::new(),
        headers,
        copies: Vec::new(),
        resolved_for: None,
        awaits_first_psn: false,
        refused: None,
        is_leased: false,
        is_owned: true,
        learnt: None,
        marking: ResponseMarking::default(),
        counters: GroupCounters::default(),
        entry,
    }
}

pub(super) fn responders_of(entry: &GroupEntry) -> Vec<([u8; 16], BranchIndex)> {
    let mut responders: Vec<([u8; 16], BranchIndex)> =
        (0..).zip(&entry.branches).map(|(index, branch)| (branch.responder.octets(), BranchIndex(index))).collect();
    responders.sort_unstable();
    responders
}

/// The state of a group for its next committed entry. With another initial PSN the state starts from scratch (D17,
/// D28). Otherwise the data continue, and each branch starts at the PSN given by `aggregation::succession`.
fn succeeding_state(
    mut before: GroupState,
    entry: GroupEntry,
    headers: Vec<u8>,
    buffer_share: Option<BufferShare>,
    restarted: bool,
    effects: &mut Effects<StoredPacket>,
) -> GroupState {
    if before.entry.initial_psn != entry.initial_psn {
        effects.released.extend(before.repair.iter_mut().flat_map(|repair| repair.drain()));
        return GroupState { counters: before.counters, ..group_state(entry, headers, buffer_share, false) };
    }
    let (mut origins, mut offsets, mut branch_cnps) = (Vec::new(), Vec::new(), Vec::new());
    for (position, branch) in (0..).zip(&entry.branches) {
        let index = before.branch_of(&branch.responder.octets());
        let known = index.and_then(|index| before.entry.branches.get(index.index()));
        let branch_before = match (index, known) {
            (Some(index), Some(known)) if known.renewed == branch.renewed => BranchBefore::Same(index),
            (Some(_), _) => BranchBefore::Renewed,
            (None, _) => BranchBefore::Absent,
        };
        let origin = Origin::of(NodeBefore::Present, branch_before, joined_at(branch, known), entry.initial_psn);
        // A record does not keep where a member joined; the member's MSN lags for good (D18).
        let kept = match origin {
            Origin::Kept(index) => before.raised_msn(index, 0),
            Origin::At(_) | Origin::Unknown => 0,
        };
        let msn = branch.joined.map_or(kept, |join| join.msn);
        offsets.push(BranchOffsets { msn, psn: psn_offset_at(&entry, position) });
        // A branch that is renewed is the same neighbour, or receiver, still.
        let counted = index.and_then(|index| before.branch_cnps.get(index.index()));
        branch_cnps.push(counted.copied().unwrap_or(0));
        origins.push(origin);
    }
    // Responses that were sent upstream do not hold for the branches below now, or the parent is another.
    let renewed = before.entry.renewed != entry.renewed;
    // So they do not for a branch that the node lacked in an entry of a lost record (D136).
    let lacked = restarted && origins.contains(&Origin::Unknown);
    let forgets = renewed || lacked || before.entry.parent != entry.parent;
    let responders = responders_of(&entry);
    let is_recorded =
        |responder: &Ipv6Addr| responders.binary_search_by(|(address, _)| address.cmp(&responder.octets())).is_ok();
    let preceding = before.entry.branches.iter().map(|branch| branch.responder);
    let preceding = preceding.filter(|responder| !is_recorded(responder)).collect();
    let GroupState { mut acks, mut cnps, mut unsent, repair, .. } = before;
    if renewed {
        unsent.clear();
    }
    acks.succeed(&rules_of(&entry), &origins, forgets, &mut unsent);
    cnps.succeed(&cnp_rules_of(&entry.policy), &origins);
    let repair = succeeding_repair(repair, &entry, buffer_share.is_some(), &origins, &acks, effects);
    GroupState {
        responders,
        preceding,
        offsets: offsets.into_boxed_slice(),
        branch_cnps: branch_cnps.into_boxed_slice(),
        differs_by_branch: differs_by_branch(&entry),
        acks,
        cnps,
        loads: None,
        repair,
        buffer_share,
        unsent,
        headers,
        copies: Vec::new(),
        resolved_for: None,
        entry,
        ..before
    }
}

fn differs_by_branch(entry: &GroupEntry) -> bool {
    entry.policy.prune_retransmit
        || entry.branches.iter().any(|branch| branch.joined.is_some())
        || entry.receivers.iter().any(|receiver| !receiver.psn_offset.is_zero())
}

/// Distance of the PSNs of the branch at a position from the group's.
fn psn_offset_at(entry: &GroupEntry, branch: usize) -> PsnOffset {
    entry.receiver_at(branch).map_or(PsnOffset::ZERO, |receiver| receiver.psn_offset)
}

/// J of a branch that was not known to have joined there. One that was renewed is not what it was when it joined.
fn joined_at(branch: &Branch, known: Option<&Branch>) -> Option<Psn> {
    let is_new = |join: &Join| branch.renewed == 0 && known.is_none_or(|known| known.joined != Some(*join));
    branch.joined.filter(is_new).map(|join| join.psn)
}

pub(super) fn rules_of(entry: &GroupEntry) -> Rules {
    let policy = &entry.policy;
    let rules = match policy.rules {
        srdma_group::Rules::Default => Rules::default(),
        srdma_group::Rules::Literal => Rules::literal(),
    };
    // Only the node of a receiver requests its eviction (D25): it alone has the record of what was sent to it.
    let evict = match (policy.on_failure, entry.role) {
        (OnFailure::Evict, NodeRole::Edge | NodeRole::Bud) => {
            let Policy { t_stall, stall_sends: sends, t_not_ready, .. } = *policy;
            Some(StallRules { t_stall, sends, t_not_ready, nodes: entry.nodes_below() as u16 })
        }
        (OnFailure::Evict, NodeRole::Transit) | (OnFailure::Strict, _) => None,
    };
    Rules { t_hold: policy.t_hold, prune_retransmit: policy.prune_retransmit, evict, ..rules }
}

pub(super) fn cnp_rules_of(policy: &Policy) -> CnpRules {
    let mode = match policy.cnp_mode {
        CnpMode::Leading => WindowMode::Leading,
        CnpMode::Trailing => WindowMode::Trailing,
    };
    let (window, window_most, limit) = (policy.cnp_window, policy.cnp_window_most, policy.cnp_limit);
    CnpRules { mode, window, window_most, limit }
}
