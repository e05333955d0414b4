//! Taking part in groups: their state, and what is made ready for their packets.

use super::Node;
use super::state::{GroupState, Target};
use crate::config::{ConfigError, SidBehavior};
use crate::counters::GroupCounters;
use crate::fib::Prefix;
use crate::headers::IPV6;
use crate::multicast;
use crate::reverse::{Acknowledgements, BranchIndex, CnpRules, CnpWindow, Rules, Start, WindowMode};
use srdma_group::{CnpMode, GroupId, NodePart, NodeRole, Policy};

impl Node {
    /// First phase of a commit: what could refuse the part later is checked now (D31).
    pub(super) fn prepare_group(&mut self, part: NodePart) -> Result<(), ConfigError> {
        self.check_group(&part)?;
        self.headers_for(&part)?;
        self.prepared.insert(part.id, part);
        Ok(())
    }

    /// Second phase. A commit that is said again finds its epoch in effect.
    pub(super) fn commit_group(&mut self, id: GroupId, epoch: u32) -> Result<(), ConfigError> {
        match self.prepared.remove(&id) {
            Some(part) if part.epoch == epoch => self.add_group(part),
            other => {
                self.prepared.extend(other.map(|part| (id, part)));
                let in_effect = self.group(id).is_some_and(|group| group.part.epoch == epoch);
                if in_effect { Ok(()) } else { Err(ConfigError::NotPrepared { group: id.0, epoch }) }
            }
        }
    }

    fn check_group(&self, part: &NodePart) -> Result<(), ConfigError> {
        let owner = self.groups.iter().flatten().find(|group| group.part.proxy == part.proxy);
        if let Some(owner) = owner.filter(|owner| owner.part.id != part.id) {
            let (proxy, group) = (part.proxy, part.id.0);
            return Err(ConfigError::ProxyInUse { proxy, group, owner: owner.part.id.0 });
        }
        if self.main.lookup(&part.proxy.octets()) == Some(Target::Local) {
            return Err(ConfigError::ProxyIsOwn { proxy: part.proxy, group: part.id.0 });
        }
        self.check_proxy_in_domain(part)
    }

    pub(super) fn add_group(&mut self, part: NodePart) -> Result<(), ConfigError> {
        self.check_group(&part)?;
        let headers = self.headers_for(&part)?;
        let known = self.groups.iter().position(|group| group.as_ref().is_some_and(|group| group.part.id == part.id));
        let index = known.or_else(|| self.groups.iter().position(Option::is_none)).unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() - 1
        });
        let state = match self.groups[index].take() {
            None => group_state(part, headers, self.config.restarted),
            Some(before) => {
                self.withdraw(Prefix::host(before.part.proxy), Target::Group(index as u32));
                succeeding_state(before, part, headers)
            }
        };
        self.claim(Prefix::host(state.part.proxy), Target::Group(index as u32));
        self.groups[index] = Some(state);
        self.journal_membership(index as u32);
        self.assign_replication_sids();
        Ok(())
    }

    pub(super) fn remove_group(&mut self, id: GroupId) -> Result<(), ConfigError> {
        let index = self.groups.iter().position(|group| group.as_ref().is_some_and(|group| group.part.id == id));
        let index = index.ok_or(ConfigError::UnknownGroup(id.0))?;
        if let Some(state) = self.groups[index].take() {
            self.withdraw(Prefix::host(state.part.proxy), Target::Group(index as u32));
        }
        self.timers.arm(index as u32, None);
        self.journal_membership(index as u32);
        self.assign_replication_sids();
        Ok(())
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
    fn headers_for(&self, part: &NodePart) -> Result<Vec<u8>, ConfigError> {
        let Some(headend) = &part.headend else {
            return Ok(Vec::new());
        };
        let group = part.id.0;
        let hmac = match part.policy.hmac_key_id {
            None => None,
            Some(key_id) => {
                let key = self.hmac_keys.get(key_id).ok_or(ConfigError::UnknownKey { group, key_id })?;
                Some((key_id, key))
            }
        };
        let outer = multicast::headers(
            self.config.loopback,
            part,
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
                let headers = self.headers_for(&state.part)?;
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
    let is_it = |state: &GroupState| state.part.id == id && state.part.role == NodeRole::Transit;
    let position = groups.iter().position(|state| state.as_ref().is_some_and(is_it))?;
    Some(position as u32)
}

fn group_state(part: NodePart, headers: Vec<u8>, restarted: bool) -> GroupState {
    let branches = part.branches.len() as u16;
    let start = if restarted { Start::Unknown } else { Start::Committed(part.initial_psn) };
    let mut responders: Vec<([u8; 16], BranchIndex)> =
        (0..).zip(&part.branches).map(|(index, branch)| (branch.responder.octets(), BranchIndex(index))).collect();
    responders.sort_unstable();
    GroupState {
        acks: Acknowledgements::new(&rules_of(&part.policy), branches, start),
        cnps: CnpWindow::new(&cnp_rules_of(&part.policy), branches),
        responders,
        headers,
        copies: Vec::new(),
        resolved_for: None,
        refused: None,
        counters: GroupCounters::default(),
        part,
    }
}

/// The state of a group that is committed anew. From another initial PSN everything begins again (D17, D28). Otherwise
/// the data go on: what the branches have said stays true while they are the same; when they are not, the node knows as
/// little of them as after a restart, until each has been heard (R6).
fn succeeding_state(before: GroupState, part: NodePart, headers: Vec<u8>) -> GroupState {
    let known = &before.part;
    if known.initial_psn != part.initial_psn {
        GroupState { counters: before.counters, ..group_state(part, headers, false) }
    } else if known.branches == part.branches && known.policy == part.policy {
        GroupState { part, headers, copies: Vec::new(), resolved_for: None, ..before }
    } else {
        GroupState { counters: before.counters, ..group_state(part, headers, true) }
    }
}

fn rules_of(policy: &Policy) -> Rules {
    let rules = match policy.rules {
        srdma_group::Rules::Default => Rules::default(),
        srdma_group::Rules::Literal => Rules::literal(),
    };
    Rules { t_hold: policy.t_hold, prune_retransmit: policy.prune_retransmit, ..rules }
}

fn cnp_rules_of(policy: &Policy) -> CnpRules {
    let mode = match policy.cnp_mode {
        CnpMode::Leading => WindowMode::Leading,
        CnpMode::Trailing => WindowMode::Trailing,
    };
    CnpRules { mode, window: policy.cnp_window, ..CnpRules::default() }
}
