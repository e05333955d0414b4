//! Nodes register, report, and are detected as dead.

use super::{Core, Node};
use crate::network::neighbour_named_twice;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::reports;
use crate::rows::{self, NodeRow};
use srdma_api::ProblemType;
use srdma_api::{EventKind, EvictionRequest, HeldGroup, NodeAnswer, NodeStatus, Registration, Sync};
use srdma_group::Safeguard;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Least time between two statuses to compute a rate.
const RATE_OVER: std::time::Duration = std::time::Duration::from_millis(50);

impl Core {
    /// Registers a node; returns its session.
    pub fn register(
        &mut self,
        principal: &Principal,
        registration: Registration,
    ) -> Result<srdma_api::Session, Refusal> {
        principal.may_register(&registration.name)?;
        self.check_registration(&registration)?;
        let (loopback, name) = (registration.loopback, registration.name.clone());
        let held = registration.groups.clone();
        let registration = Registration { groups: Vec::new(), ..registration };
        self.sessions += 1;
        let number = u64::from(self.site.starts) << 32 | self.sessions;
        let (session, heard) = (Some(number), self.now.monotonic);
        let known = self.nodes.get(&loopback);
        let is_drained = known.is_some_and(|node| node.is_drained);
        if known.is_none_or(|node| node.registration != registration) {
            self.write(rows::put(
                rows::node_key(loopback),
                &NodeRow { registration: registration.clone(), is_drained },
            ));
        }
        self.network.put(&registration, !is_drained);
        self.network_version += 1;
        let node = Node { registration, is_drained, session, heard, was_dead: false, status: None, rates: None };
        self.nodes.insert(loopback, node);
        self.effects.ended_sessions.push(loopback);
        self.emit(None, EventKind::NodeUp { node: name });
        self.reconcile(loopback, &held);
        self.adopt_agreed();
        Ok(srdma_api::Session {
            session: number,
            store: self.site.store,
            dead_after_ms: u32::try_from(self.settings.node_dead_after.as_millis()).unwrap_or(u32::MAX),
        })
    }

    fn check_registration(&self, registration: &Registration) -> Result<(), Refusal> {
        let conflict = |text: String| Err(Refusal::new(ProblemType::NodeConflict, text));
        let not_understood = |text: &str| Err(Refusal::new(ProblemType::InvalidRequest, text));
        if !reports::is_node_name(&registration.name) {
            return not_understood("name: expected 1 to 64 letters, digits, dots, hyphens and underscores of ASCII");
        }
        if registration.replication.is_some_and(|prefix| prefix.prefix_len() > 96) {
            return not_understood("replication: expected at most /96, since group numbers have 32 bits");
        }
        if registration.links.len() > 4096 || registration.hosts.len() > 4096 || registration.groups.len() > 1 << 20 {
            return not_understood("links, hosts: expected at most 4096 of each");
        }
        if let Some(twice) = neighbour_named_twice(&registration.links) {
            return not_understood(&format!("links: {twice} is named twice, expected one link to each neighbour"));
        }
        super::groups::check_host("loopback", registration.loopback)?;
        for (loopback, node) in &self.nodes {
            if (*loopback == registration.loopback) != (node.registration.name == registration.name) {
                return conflict(format!("node {} has loopback {loopback} already", node.registration.name));
            }
        }
        match self.proxies.get(&registration.loopback) {
            Some(group) => {
                conflict(format!("loopback {} is the Proxy Address of group {group}", registration.loopback))
            }
            None => Ok(()),
        }
    }

    /// Compares the groups that a node has with those that it should have. Groups of other stores are left alone.
    fn reconcile(&mut self, loopback: Ipv6Addr, held: &[HeldGroup]) {
        let store = self.site.store;
        let is_ours = |held: &&HeldGroup| held.store == store || self.settings.without == Some(Safeguard::EntriesNamed);
        let ours = held.iter().filter(is_ours);
        let has: BTreeMap<u32, &HeldGroup> = ours.clone().map(|held| (held.group, held)).collect();
        let known = has.keys().filter(|id| self.groups.get(*id).is_some_and(|group| group.lifecycle.is_some()));
        let mut compared = self.groups_of_node.get(&loopback).cloned().unwrap_or_default();
        compared.extend(known);
        for id in compared {
            self.compare(id, loopback, has.get(&id).copied());
        }
        self.note_foreign(loopback, held);
    }

    /// Handles a report of a node; its orders are taken from the pipeline.
    pub fn sync(&mut self, principal: &Principal, name: &str, sync: Sync) -> Result<Ipv6Addr, Refusal> {
        principal.may_register(name)?;
        let sync = reports::bounded(sync)?;
        let loopback = self.loopback_of(name)?;
        let now = self.now.monotonic;
        let node = self.nodes.get_mut(&loopback).filter(|node| node.session == Some(sync.session));
        node.ok_or_else(|| ended(name, sync.session))?.heard = now;
        for answer in sync.answers {
            self.answered(loopback, answer);
        }
        for request in sync.eviction_requests {
            self.request_eviction(loopback, request);
        }
        if let Some(status) = sync.status {
            self.note_status(loopback, status);
        }
        Ok(loopback)
    }

    /// Checks that a node's session is current.
    pub fn check_session(&self, loopback: Ipv6Addr, number: u64, name: &str) -> Result<(), Refusal> {
        let session = self.nodes.get(&loopback).and_then(|node| node.session);
        match session.filter(|session| *session == number) {
            Some(_) => Ok(()),
            None => Err(ended(name, number)),
        }
    }

    /// Notes that a node that waits for orders is alive.
    pub fn keep_session(&mut self, loopback: Ipv6Addr) {
        let now = self.now.monotonic;
        if let Some(node) = self.nodes.get_mut(&loopback).filter(|node| node.session.is_some()) {
            node.heard = now;
        }
    }

    fn answered(&mut self, loopback: Ipv6Addr, answer: NodeAnswer) {
        let (NodeAnswer::Prepared { group: id, .. }
        | NodeAnswer::Refused { group: id, .. }
        | NodeAnswer::Committed { group: id, .. }
        | NodeAnswer::Removed { group: id, .. }) = answer;
        if let NodeAnswer::Removed { store, group, .. } = answer
            && store != self.site.store
        {
            return self.foreign_removed(loopback, store, group);
        }
        let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) else {
            return self.foreign_removed(loopback, self.site.store, id);
        };
        match answer {
            NodeAnswer::Prepared { name, .. } => lifecycle.prepared(loopback, name),
            NodeAnswer::Refused { name, reason, .. } => lifecycle.refused(loopback, name, reason),
            NodeAnswer::Committed { name, .. } => lifecycle.committed(loopback, name),
            NodeAnswer::Removed { epoch, .. } => lifecycle.removed(loopback, epoch),
        }
        self.drive(id);
    }

    /// Handles an eviction request: granted if it comes from the receiver's edge, and enough receivers remain (D25).
    fn request_eviction(&mut self, node: Ipv6Addr, request: EvictionRequest) {
        let EvictionRequest { group, receiver, cause } = request;
        let record = self.groups.get(&group).and_then(|group| group.record.as_ref());
        let edge = record.and_then(|record| {
            let receiver = record.receivers.iter().find(|one| one.address == receiver)?;
            Some(record.tree.node(receiver.edge)?.loopback)
        });
        if edge != Some(node) {
            return;
        }
        let actor = self.network.name(node);
        self.evict(group, receiver, cause, &actor);
        self.drive(group);
    }

    fn note_status(&mut self, loopback: Ipv6Addr, status: NodeStatus) {
        let now = self.now.monotonic;
        let Some(node) = self.nodes.get_mut(&loopback) else { return };
        let rates = match (&node.rates, &node.status) {
            (Some((then, rates)), Some(old)) => {
                let elapsed = now.saturating_sub(*then);
                if elapsed < RATE_OVER {
                    // Too early after the last status: the rates stay.
                    (*then, rates.clone())
                } else {
                    let rate = |port: &srdma_api::PortStatus| {
                        let before = old.ports.iter().find(|old| old.name == port.name);
                        let octets =
                            port.sent_octets.saturating_sub(before.map_or(port.sent_octets, |old| old.sent_octets));
                        (port.name.clone(), octets as f64 / elapsed.as_secs_f64())
                    };
                    (now, status.ports.iter().map(rate).collect())
                }
            }
            (None, _) | (_, None) => (now, BTreeMap::new()),
        };
        node.rates = Some(rates);
        node.status = Some(status);
    }

    /// Excludes a node from new trees and reroutes existing ones where possible, or admits it again.
    pub fn drain_node(&mut self, principal: &Principal, name: &str, is_drained: bool) -> Result<(), Refusal> {
        principal.may_operate()?;
        let loopback = self.loopback_of(name)?;
        let Some(node) = self.nodes.get_mut(&loopback) else { return Ok(()) };
        if node.is_drained == is_drained {
            return Ok(());
        }
        node.is_drained = is_drained;
        let row = NodeRow { registration: node.registration.clone(), is_drained };
        let is_usable = !is_drained && node.session.is_some();
        self.network.set_usable(loopback, is_usable);
        self.network_version += 1;
        self.write(rows::put(rows::node_key(loopback), &row));
        self.audit(&principal.name, if is_drained { "drain" } else { "release" }, format!("node {name}"));
        self.emit(None, EventKind::NodeDrained { node: name.to_owned(), drained: is_drained });
        if is_drained {
            self.reroute(loopback);
        }
        Ok(())
    }

    /// Detects dead nodes and reroutes the trees below them.
    pub fn expire_nodes(&mut self) {
        let (now, dead_after) = (self.now.monotonic, self.settings.node_dead_after);
        // Time in which the controller itself did not listen does not count.
        let since = now.saturating_sub(std::mem::replace(&mut self.searched, now));
        if since > dead_after / 2 {
            self.nodes.values_mut().for_each(|node| node.heard += since);
        }
        // Nodes that have not registered since the controller's start are dead at the same age.
        let without = self.settings.without;
        let is_expected = |node: &Node| node.session.is_some() || without != Some(Safeguard::SilentSinceStart);
        let is_dead = |node: &Node| !node.was_dead && is_expected(node) && now.saturating_sub(node.heard) > dead_after;
        let dead: Vec<Ipv6Addr> =
            self.nodes.iter().filter(|(_, node)| is_dead(node)).map(|(loopback, _)| *loopback).collect();
        for loopback in dead {
            let Some(node) = self.nodes.get_mut(&loopback) else { continue };
            node.session = None;
            node.was_dead = true;
            let name = node.registration.name.clone();
            self.network.set_usable(loopback, false);
            self.network_version += 1;
            self.effects.ended_sessions.push(loopback);
            self.emit(None, EventKind::NodeDown { node: name });
            for id in self.groups_of_node.get(&loopback).cloned().unwrap_or_default() {
                if let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) {
                    lifecycle.lost(loopback);
                }
                self.drive(id);
            }
            self.resolve_without(loopback);
            self.reroute(loopback);
        }
        self.evict_stalled();
    }

    pub(super) fn loopback_of(&self, name: &str) -> Result<Ipv6Addr, Refusal> {
        let found = self.nodes.iter().find(|(_, node)| node.registration.name == name);
        found
            .map(|(loopback, _)| *loopback)
            .ok_or_else(|| Refusal::new(ProblemType::UnknownNode, format!("node {name} has not registered")))
    }
}

fn ended(name: &str, session: u64) -> Refusal {
    Refusal::new(ProblemType::UnknownSession, format!("session {session} of node {name} has ended: register again"))
}
