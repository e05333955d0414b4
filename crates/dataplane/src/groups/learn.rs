//! Groups that an edge learns from the lists in their packets, because it has no record of them (D17).
//!
//! ```text
//!                 a packet whose list passed every check, for a Proxy Address in `proxies`
//!   not learnt ────────────────────────────────────────────────────────────────────────────► learnt, every receiver
//!       ▲                                                                                   │  unknown (R6)
//!       │                                                                                   │
//!       │  nothing came for `idle`; a record took the Proxy Address;   a list with others:  │
//!       └─ the settings have changed ◄───────────────────────────────  they are added, ◄────┤
//!                                                                      unknown (R6)         │
//!                                                                      a shorter list:      │
//!                                                                      nothing ◄────────────'
//! ```
//!
//! The branches are the union of all lists: a shorter list must not raise the minimum. Receivers that are added later
//! begin unknown. Responses sent upstream do not cover them and are discarded: the node sends nothing until each of
//! them has responded.
//!
//! A packet whose receivers cannot all be branches goes to none of them. Otherwise receivers would get packets that no
//! response accounts for.

use super::membership::{cnp_rules_of, group_state, responders_of, rules_of};
use super::state::Learnt;
use super::{GroupState, Groups, ReceiverList, Surroundings};
use crate::config::ConfigError;
use crate::drop::DropReason;
use crate::learning::{FIRST_LEARNT_GROUP, Learning, LearningError};
use crate::multicast::ListedReceiver;
use crate::tables::{Tables, Target};
use srdma_aggregation::{BranchIndex, Origin};
use srdma_group::{Branch, GroupEntry, GroupId, NodeIndex, NodeRole, Parent, Receiver};
use srdma_wire::Prefix;
use srdma_wire::{Instant, Psn, Qpn};
use std::net::Ipv6Addr;
use std::time::Duration;

/// The settings, and when to look for idle groups.
#[derive(Debug)]
pub(super) struct Learner {
    pub(super) settings: Learning,
    /// Not later than the end of any of the groups; `None` while there are none. Kept apart from the groups' own
    /// deadlines, since it is far ahead and does not change with each packet.
    next_check: Option<Instant>,
}

impl Groups {
    /// Groups that were learnt under other settings are removed.
    pub(crate) fn set_learning(
        &mut self,
        learning: Learning,
        around: &mut Surroundings<'_>,
    ) -> Result<(), ConfigError> {
        learning.check()?;
        for proxies in &learning.proxies {
            around.security.check_learnt_in_domain(*proxies)?;
        }
        let own = around.config.ports.iter().flat_map(|port| port.addresses.iter().copied());
        own.chain([around.config.loopback]).try_for_each(|address| not_a_proxy(&learning, address))?;
        for parent in [Some(learning.parent), learning.parent_sid].into_iter().flatten() {
            if around.tables.is_own(parent) {
                return Err(LearningError::ParentIsOwn(parent).into());
            }
        }
        if self.learner.as_ref().is_none_or(|learner| learner.settings != learning) {
            self.remove_learning(around.tables);
            self.learner = Some(Box::new(Learner { settings: learning, next_check: None }));
        }
        Ok(())
    }

    /// Forgets the settings and the groups.
    pub(crate) fn remove_learning(&mut self, tables: &mut Tables) {
        (0..self.slots.len()).for_each(|index| self.forget_if_learnt(index, tables));
        self.learner = None;
    }

    /// The prefixes of Proxy Addresses whose groups are learnt.
    pub(crate) fn learnt_proxies(&self) -> &[Prefix] {
        self.learner.as_ref().map_or(&[], |learner| &learner.settings.proxies)
    }

    /// A Proxy Address is no node's own address (D2).
    pub(super) fn check_not_learnt(&self, addresses: &[Ipv6Addr]) -> Result<(), ConfigError> {
        let learner = self.learner.as_ref();
        learner.map_or(Ok(()), |it| addresses.iter().try_for_each(|address| not_a_proxy(&it.settings, *address)))
    }

    /// A record has come for a Proxy Address. Returns whether the group had been learnt.
    pub(super) fn give_way_to_record(&mut self, proxy: Ipv6Addr, tables: &mut Tables) -> bool {
        let is_it = |it: &Option<GroupState>| it.as_ref().is_some_and(|it| it.is_learnt_at(proxy));
        let index = self.slots.iter().position(is_it);
        index.map(|index| self.forget_if_learnt(index, tables)).is_some()
    }

    /// Whether a packet to this Proxy Address has to be learnt from, where the node has no record.
    pub(super) fn learns(&self, proxy: &[u8; 16]) -> bool {
        self.learner.as_ref().is_some_and(|learner| learner.settings.covers((*proxy).into()))
    }

    /// Adds the receivers of a list to its group, before its first packet is sent. A refused list changes
    /// nothing.
    #[cold]
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        list: &mut ReceiverList,
        tables: &mut Tables,
    ) -> Result<(), DropReason> {
        let (Some(receivers), Some(learner)) = (&list.to_learn, &self.learner) else {
            return Ok(());
        };
        let (most, proxy) = (learner.settings.max_receivers, list.proxy());
        let group = match tables.lookup_main(&proxy.octets()) {
            Some(Target::Group(group)) => group,
            _ => self.begin_learnt(now, proxy, list.designated_qpn, receivers, tables)?,
        };
        let index = group as usize;
        let state = self.slots[index].as_mut().filter(|state| state.is_learnt_at(proxy));
        let state = state.ok_or(DropReason::ProxyInUse)?;
        if state.entry.designated_qpn.to_octets() != list.designated_qpn {
            return Err(DropReason::WrongQpn);
        }
        let mut added = Vec::new();
        for receiver in receivers {
            match state.entry.receivers.iter().find(|known| known.address == receiver.address) {
                None => added.push(receiver_of(receiver)),
                Some(known) if known.qpn == receiver.qpn => {}
                Some(_) => return Err(DropReason::OtherReceiver),
            }
        }
        let known = state.entry.receivers.len();
        if known + added.len() > usize::from(most) {
            return Err(DropReason::TooManyLearntReceivers);
        }
        if !added.is_empty() {
            state.entry.branches.extend(added.iter().map(|receiver| Branch::new(receiver.address)));
            state.entry.receivers.extend(added);
            state.responders = responders_of(&state.entry);
            let stays = (0..known as u16).map(|branch| Origin::Kept(BranchIndex(branch)));
            let mut origins: Vec<Origin> = stays.collect();
            origins.resize(state.entry.branches.len(), Origin::Unknown);
            // Earlier responses do not hold for the new receivers; none is sent now, for they are unknown (R6).
            state.acks.succeed(&rules_of(&state.entry), &origins, true, &mut state.unsent);
            state.cnps.succeed(&cnp_rules_of(&state.entry.policy), &origins);
            self.journal_membership(group);
            self.rearm(group);
        }
        let state = self.slots[index].as_ref().ok_or(DropReason::UnknownGroup)?;
        for (copy, receiver) in list.copies.iter_mut().zip(receivers) {
            copy.branch = state.branch_of(&receiver.address.octets());
        }
        list.group = Some(group);
        list.to_learn = None;
        Ok(())
    }

    /// A group without receivers, which the caller adds.
    fn begin_learnt(
        &mut self,
        now: Instant,
        proxy: Ipv6Addr,
        designated_qpn: [u8; 3],
        receivers: &[ListedReceiver],
        tables: &mut Tables,
    ) -> Result<u32, DropReason> {
        let Some(learner) = &mut self.learner else {
            return Err(DropReason::UnknownGroup);
        };
        let settings = &learner.settings;
        // A group that could not have them is not begun.
        if receivers.len() > usize::from(settings.max_receivers) {
            return Err(DropReason::TooManyLearntReceivers);
        }
        let learnt = || self.slots.iter().flatten().filter(|state| state.learnt.is_some());
        if learnt().count() >= usize::from(settings.max_groups) {
            return Err(DropReason::TooManyLearntGroups);
        }
        let is_free = |id: &GroupId| learnt().all(|state| state.entry.id != *id);
        let id = (FIRST_LEARNT_GROUP.0..=u32::MAX).map(GroupId).find(is_free);
        let entry = GroupEntry {
            id: id.ok_or(DropReason::TooManyLearntGroups)?,
            epoch: 0,
            renewed: 0,
            proxy,
            designated_qpn: Qpn::from_octets(designated_qpn),
            initial_psn: Psn::new(0),
            role: NodeRole::Edge,
            sid: Ipv6Addr::UNSPECIFIED,
            parent: Parent::Node { loopback: settings.parent, sid: settings.parent_sid },
            branches: Vec::new(),
            downstream: Vec::new(),
            receivers: Vec::new(),
            region: None,
            headend: None,
            repair: None,
            policy: settings.policy,
            more_regions: Vec::new(),
        };
        let end = now + Duration::from_nanos(settings.idle_ns);
        if !tables.may_be_claimed(proxy) {
            return Err(DropReason::ProxyInUse);
        }
        if let Some(learner) = &mut self.learner {
            learner.next_check = Some(learner.next_check.map_or(end, |check| check.min(end)));
        }
        let index = self.free_slot();
        let mut state = group_state(entry, Vec::new(), None, true);
        state.learnt = Some(Learnt { active: now });
        tables.claim_proxy(state.entry.proxy, index as u32);
        tables.invalidate();
        self.slots[index] = Some(state);
        Ok(index as u32)
    }

    /// Time of the next removal of idle groups.
    pub(super) fn next_idle_check(&self) -> Option<Instant> {
        self.learner.as_ref()?.next_check
    }

    /// Forgets the learnt groups that have been idle for too long, if a check is due.
    pub(crate) fn forget_idle(&mut self, now: Instant, tables: &mut Tables) {
        let Some(learner) = &self.learner else {
            return;
        };
        if learner.next_check.is_none_or(|check| now < check) {
            return;
        }
        let (idle, mut next): (_, Option<Instant>) = (Duration::from_nanos(learner.settings.idle_ns), None);
        for index in 0..self.slots.len() {
            let learnt = self.slots[index].as_ref().and_then(|state| state.learnt.as_ref());
            match learnt.map(|learnt| learnt.active + idle) {
                None => {}
                Some(end) if end <= now => self.forget_if_learnt(index, tables),
                Some(end) => next = Some(next.map_or(end, |next| next.min(end))),
            }
        }
        if let Some(learner) = &mut self.learner {
            learner.next_check = next;
        }
    }

    fn forget_if_learnt(&mut self, index: usize, tables: &mut Tables) {
        if self.slots[index].as_ref().is_some_and(|state| state.learnt.is_some()) {
            self.take_out(index, tables);
            tables.invalidate();
        }
    }
}

fn not_a_proxy(learning: &Learning, address: Ipv6Addr) -> Result<(), ConfigError> {
    match learning.proxies.iter().find(|prefix| prefix.contains(address)) {
        Some(proxies) => Err(LearningError::OwnAddress { proxies: *proxies, address }.into()),
        None => Ok(()),
    }
}

fn receiver_of(listed: &ListedReceiver) -> Receiver {
    let ListedReceiver { address, qpn, region } = *listed;
    Receiver { region, ..Receiver::new(address, qpn, NodeIndex(0)) }
}
