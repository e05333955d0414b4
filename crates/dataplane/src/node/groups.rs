//! Taking part in groups: their state, and what is made ready for their packets.

use super::Node;
use super::state::{GroupState, Target};
use crate::config::{ConfigError, SidBehavior};
use crate::counters::GroupCounters;
use crate::event::Event;
use crate::headers::IPV6;
use crate::learning::FIRST_LEARNT_GROUP;
use crate::multicast;
use srdma_aggregation::{
    Acknowledgements, BranchBefore, BranchIndex, CnpRules, CnpWindow, NodeBefore, Origin, Rules, StallRules,
    WindowMode, is_older,
};
use srdma_group::{Branch, CnpMode, GroupEntry, GroupId, Join, NodeRole, OnFailure, Policy};
use srdma_wire::{Prefix, Psn};

impl Node {
    /// First phase of a commit: what could refuse the group entry later is checked now (D31).
    pub(super) fn prepare_group(&mut self, entry: GroupEntry) -> Result<(), ConfigError> {
        self.check_group(&entry)?;
        self.headers_for(&entry)?;
        self.prepared.insert(entry.id, entry);
        Ok(())
    }

    /// Second phase. A commit that is said again finds its epoch in effect.
    pub(super) fn commit_group(&mut self, id: GroupId, epoch: u32) -> Result<(), ConfigError> {
        match self.prepared.remove(&id) {
            Some(entry) if entry.epoch == epoch => self.add_group(entry, self.config.restarted),
            other => {
                self.prepared.extend(other.map(|entry| (id, entry)));
                let in_effect = self.group(id).is_some_and(|group| group.entry.epoch == epoch);
                if in_effect { Ok(()) } else { Err(ConfigError::NotPrepared { group: id.0, epoch }) }
            }
        }
    }

    fn check_group(&self, entry: &GroupEntry) -> Result<(), ConfigError> {
        if entry.id >= FIRST_LEARNT_GROUP {
            return Err(ConfigError::ReservedGroup(entry.id.0));
        }
        if let Some(known) = self.group(entry.id).filter(|known| is_older(entry.epoch, known.entry.epoch)) {
            return Err(ConfigError::OldEpoch { group: entry.id.0, epoch: entry.epoch, in_effect: known.entry.epoch });
        }
        // What was learnt gives way to a record.
        let owner = self.groups.iter().flatten().find(|group| group.entry.proxy == entry.proxy);
        if let Some(owner) = owner.filter(|owner| owner.entry.id != entry.id && owner.learnt.is_none()) {
            let (proxy, group) = (entry.proxy, entry.id.0);
            return Err(ConfigError::ProxyInUse { proxy, group, owner: owner.entry.id.0 });
        }
        if self.main.lookup(&entry.proxy.octets()) == Some(Target::Local) {
            return Err(ConfigError::ProxyIsOwn { proxy: entry.proxy, group: entry.id.0 });
        }
        self.check_proxy_in_domain(entry)
    }

    /// Takes part in a group; `restarted`: it was in it before, and has forgotten what its branches have said.
    pub(super) fn add_group(&mut self, entry: GroupEntry, restarted: bool) -> Result<(), ConfigError> {
        self.check_group(&entry)?;
        let headers = self.headers_for(&entry)?;
        let known = self.groups.iter().position(|group| group.as_ref().is_some_and(|group| group.entry.id == entry.id));
        // Data have come down before the record did, so that nobody stands at the initial PSN (D17, R6).
        let goes_on = self.give_way_to_record(entry.proxy);
        let index = known.unwrap_or_else(|| self.free_group_slot());
        let state = match self.groups[index].take() {
            None => group_state(entry, headers, restarted || goes_on),
            Some(before) => {
                self.withdraw(Prefix::host(before.entry.proxy), Target::Group(index as u32));
                succeeding_state(before, entry, headers)
            }
        };
        self.claim(Prefix::host(state.entry.proxy), Target::Group(index as u32));
        self.groups[index] = Some(state);
        self.forget_wishes(index);
        self.rearm(index as u32);
        self.journal_membership(index as u32);
        self.assign_replication_sids();
        self.is_root = self.groups.iter().flatten().any(|group| group.entry.headend.is_some());
        Ok(())
    }

    pub(super) fn remove_group(&mut self, id: GroupId) -> Result<(), ConfigError> {
        // A commit that comes late must not bring the node back.
        self.prepared.remove(&id);
        self.events.retain(|Event::EvictionWanted { group, .. }| *group != id);
        let is_it = |state: &GroupState| state.entry.id == id && state.learnt.is_none();
        let index = self.groups.iter().position(|group| group.as_ref().is_some_and(is_it));
        self.take_out_group(index.ok_or(ConfigError::UnknownGroup(id.0))?);
        self.assign_replication_sids();
        self.is_root = self.groups.iter().flatten().any(|group| group.entry.headend.is_some());
        Ok(())
    }

    /// A place for the state of a group.
    pub(super) fn free_group_slot(&mut self) -> usize {
        self.groups.iter().position(Option::is_none).unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() - 1
        })
    }

    /// Forgets the state of a group, whose Proxy Address then leads elsewhere.
    pub(super) fn take_out_group(&mut self, index: usize) {
        if let Some(state) = self.groups[index].take() {
            self.withdraw(Prefix::host(state.entry.proxy), Target::Group(index as u32));
        }
        self.timers.arm(index as u32, None);
        self.journal_membership(index as u32);
    }

    /// Evictions that were granted before anybody fetched the wish: the receiver may join again (D25, D30).
    fn forget_wishes(&mut self, index: usize) {
        let Some(state) = &self.groups[index] else {
            return;
        };
        self.events.retain(|Event::EvictionWanted { group, receiver, .. }| {
            *group != state.entry.id || state.branch_of(&receiver.octets()).is_some()
        });
    }

    /// Tells Replication SIDs where their groups are now.
    fn assign_replication_sids(&mut self) {
        let groups = &self.groups;
        for sid in &mut self.sids {
            if let SidBehavior::EndReplicate(id) = sid.behavior {
                sid.group = transit_group(groups, id);
            }
        }
    }

    /// The headend's outer headers, behind room for the Ethernet header.
    fn headers_for(&self, entry: &GroupEntry) -> Result<Vec<u8>, ConfigError> {
        let Some(headend) = &entry.headend else {
            return Ok(Vec::new());
        };
        let group = entry.id.0;
        let hmac = match entry.policy.hmac_key_id {
            None => None,
            Some(key_id) => {
                let key = self.hmac_keys.get(key_id).ok_or(ConfigError::UnknownKey { group, key_id })?;
                Some((key_id, key))
            }
        };
        let outer = multicast::headers(
            self.config.loopback,
            entry,
            &headend.lists,
            headend.with_regions,
            self.config.tlv_types,
            hmac,
        );
        let mut headers = vec![0; IPV6];
        headers.extend(outer.ok_or(ConfigError::ListsTooLong(group))?);
        Ok(headers)
    }

    /// A key has changed: sign again.
    pub(super) fn rebuild_headers(&mut self) -> Result<(), ConfigError> {
        for index in 0..self.groups.len() {
            if let Some(state) = &self.groups[index] {
                let headers = self.headers_for(&state.entry)?;
                if let Some(state) = self.groups[index].as_mut() {
                    state.headers = headers;
                }
            }
        }
        Ok(())
    }
}

/// Where a group is in which the node replicates.
pub(super) fn transit_group(groups: &[Option<GroupState>], id: GroupId) -> Option<u32> {
    let is_it = |state: &GroupState| state.entry.id == id && state.entry.role == NodeRole::Transit;
    let position = groups.iter().position(|state| state.as_ref().is_some_and(is_it))?;
    Some(position as u32)
}

pub(super) fn group_state(entry: GroupEntry, headers: Vec<u8>, restarted: bool) -> GroupState {
    let node = match (restarted, entry.renewed) {
        (true, _) => NodeBefore::Restarted,
        (false, 0) => NodeBefore::New,
        (false, _) => NodeBefore::Renewed,
    };
    let origin = |branch| Origin::of(node, BranchBefore::Absent, joined_at(branch, None), entry.initial_psn);
    let origins: Vec<Origin> = entry.branches.iter().map(origin).collect();
    GroupState {
        acks: Acknowledgements::of_branches(&rules_of(&entry), &origins),
        cnps: CnpWindow::new(&cnp_rules_of(&entry.policy), entry.branches.len() as u16),
        responders: responders_of(&entry),
        msn_offsets: entry.branches.iter().map(|branch| branch.joined.map_or(0, |join| join.msn)).collect(),
        branch_cnps: vec![0; entry.branches.len()].into_boxed_slice(),
        withholds_any: withholds_any(&entry),
        owed: Vec::new(),
        headers,
        copies: Vec::new(),
        resolved_for: None,
        refused: None,
        learnt: None,
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

/// The state of a group that is committed anew. From another initial PSN everything begins again (D17, D28). Otherwise
/// the data go on, and each branch begins where `reverse/succession.rs` says.
fn succeeding_state(before: GroupState, entry: GroupEntry, headers: Vec<u8>) -> GroupState {
    if before.entry.initial_psn != entry.initial_psn {
        return GroupState { counters: before.counters, ..group_state(entry, headers, false) };
    }
    let (mut origins, mut msn_offsets, mut branch_cnps) = (Vec::new(), Vec::new(), Vec::new());
    for branch in &entry.branches {
        let index = before.branch_of(&branch.responder.octets());
        let known = index.and_then(|index| before.entry.branches.get(index.index()));
        let branch_before = match (index, known) {
            (Some(index), Some(known)) if known.renewed == branch.renewed => BranchBefore::Same(index),
            (Some(_), _) => BranchBefore::Renewed,
            (None, _) => BranchBefore::Absent,
        };
        let origin = Origin::of(NodeBefore::Present, branch_before, joined_at(branch, known), entry.initial_psn);
        // A record forgets where a member joined; the member's MSN lags for good (D18).
        let kept = match origin {
            Origin::Kept(index) => before.msn_offsets.get(index.index()).copied().unwrap_or(0),
            Origin::At(_) | Origin::Unknown => 0,
        };
        msn_offsets.push(branch.joined.map_or(kept, |join| join.msn));
        // A branch that is renewed is the same neighbour, or receiver, still.
        let counted = index.and_then(|index| before.branch_cnps.get(index.index()));
        branch_cnps.push(counted.copied().unwrap_or(0));
        origins.push(origin);
    }
    // What was said upstream is not true of what hangs below now, or somebody else is upstream, who has not heard it.
    let renewed = before.entry.renewed != entry.renewed;
    let forgets = renewed || before.entry.parent != entry.parent;
    let GroupState { mut acks, mut cnps, mut owed, .. } = before;
    if renewed {
        owed.clear();
    }
    acks.succeed(&rules_of(&entry), &origins, forgets, &mut owed);
    cnps.succeed(&cnp_rules_of(&entry.policy), &origins);
    GroupState {
        responders: responders_of(&entry),
        msn_offsets: msn_offsets.into_boxed_slice(),
        branch_cnps: branch_cnps.into_boxed_slice(),
        withholds_any: withholds_any(&entry),
        acks,
        cnps,
        owed,
        headers,
        copies: Vec::new(),
        resolved_for: None,
        entry,
        ..before
    }
}

fn withholds_any(entry: &GroupEntry) -> bool {
    entry.policy.prune_retransmit || entry.branches.iter().any(|branch| branch.joined.is_some())
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
    // Only an edge asks for evictions (D25): it alone knows what its receivers were sent.
    let evict = match (policy.on_failure, entry.role) {
        (OnFailure::Evict, NodeRole::Edge) => Some(StallRules { t_stall: policy.t_stall, sends: policy.stall_sends }),
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
