//! Nodes register, report, and are detected as dead.

use super::identities::unregistered;
use super::stalls::Actor;
use super::{Core, Node};
use crate::network::neighbour_named_twice;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::reports;
use srdma_api::ProblemType;
use srdma_api::{
    EventKind, EvictionRequest, FIRST_PROTOCOL, HeldGroup, NodeAnswer, NodeIdentity, NodeStatus, PROTOCOL, Protocols,
    Registration, Sync,
};
use srdma_group::Safeguard;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Duration;

/// Least time between two statuses to compute a rate.
const RATE_OVER: Duration = Duration::from_millis(50);

impl Core {
    /// Registers a node; returns its session.
    pub fn register(
        &mut self,
        principal: &Principal,
        registration: Registration,
    ) -> Result<srdma_api::Session, Refusal> {
        principal.may_register(&registration.name)?;
        let protocol = common_protocol(&registration)?;
        self.check_registration(&registration)?;
        self.check_foreign(registration.loopback, &registration.groups)?;
        let identity = self.admit(principal, &registration)?;
        self.forget_unconfirmed(&registration.name);
        let loopback = registration.loopback;
        let held = registration.groups.clone();
        let registration = Registration { protocol: FIRST_PROTOCOL, groups: Vec::new(), ..registration };
        self.sessions += 1;
        let number = u64::from(self.site.starts) << 32 | self.sessions;
        let (session, heard) = (Some(number), self.now.monotonic);
        let known = self.nodes.get(&loopback);
        let before = known.map(Node::row);
        let node = match known {
            Some(known) => {
                let (is_drained, is_removing) = (known.is_drained, known.is_removing);
                // It registers with the name that an administrator has given it, or still with the former one.
                let is_former = known.registration.name == registration.name;
                let name = if is_former { known.name.clone() } else { registration.name.clone() };
                Node { name, is_drained, is_removing, session, protocol, heard, ..Node::new(registration, identity) }
            }
            None => Node { session, protocol, heard, ..Node::new(registration, identity) },
        };
        let (name, is_changed) = (node.name.clone(), before != Some(node.row()));
        self.nodes.insert(loopback, node);
        self.update_network(loopback);
        self.network.set_lost_hosts(loopback, &[]);
        if is_changed {
            self.write_node(loopback);
        }
        self.effects.ended_sessions.push(loopback);
        self.emit(None, EventKind::NodeUp { node: name });
        self.leftovers.forget_node(loopback);
        self.reconcile(loopback, &held);
        self.adopt_agreed();
        self.follow_hosts(loopback);
        Ok(srdma_api::Session {
            session: number,
            store: self.site.store,
            dead_after_ms: milliseconds(self.settings.node_dead_after),
            protocol,
            lease_ms: self.settings.node_lease.filter(|_| protocol > FIRST_PROTOCOL).map_or(0, milliseconds),
        })
    }

    fn check_registration(&self, registration: &Registration) -> Result<(), Refusal> {
        let conflict = |text: String| Err(Refusal::new(ProblemType::NodeConflict, text));
        let not_understood = |text: &str| Err(Refusal::new(ProblemType::InvalidRequest, text));
        reports::check_node_name(&registration.name)?;
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
        let is_stated = |name: &str| self.settings.nodes.contains_key(name);
        for (loopback, node) in &self.nodes {
            let (is_loopback, is_name) = (*loopback == registration.loopback, node.has_name(&registration.name));
            // controller.toml may give a node another name.
            if is_loopback != is_name && !(is_loopback && is_stated(&registration.name) && !is_stated(&node.name)) {
                let name = &node.name;
                return conflict(format!(
                    "node {name} has loopback {loopback}: if it has another one now, `srdma controller node remove \
                     {name}`"
                ));
            }
        }
        let stated = self.settings.nodes.iter().find(|(_, stated)| stated.loopback == registration.loopback);
        match stated.filter(|(name, _)| **name != registration.name) {
            Some((name, stated)) => {
                conflict(format!("controller.toml states loopback {} for node {name}", stated.loopback))
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
        let mut compared: BTreeSet<u32> = self.groups_of_node.of(loopback).collect();
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
            self.request_eviction(principal, loopback, request);
        }
        if let Some(status) = sync.status {
            let links = self.network.set_unreachable(loopback, &status.unreachable);
            let is_first = self.nodes.get(&loopback).is_some_and(|node| node.status.is_none());
            let lost_hosts = status.lost_hosts.clone();
            self.note_status(loopback, status);
            self.hosts_reported(loopback, &lost_hosts, is_first);
            self.note_arrears(loopback);
            self.avoid_links(loopback, &links.down);
            if links.is_any_up {
                self.network_version += 1;
                self.follow_hosts(loopback);
            }
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
        if let NodeAnswer::Removed { store, group, .. } = answer {
            self.leftovers.forget((loopback, store, group));
            if store != self.site.store {
                return self.foreign_removed(loopback, store, group);
            }
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
    fn request_eviction(&mut self, principal: &Principal, node: Ipv6Addr, request: EvictionRequest) {
        let EvictionRequest { group, receiver, cause } = request;
        let record = self.groups.get(&group).and_then(|group| group.record.as_ref());
        let edge = record.and_then(|record| {
            let receiver = record.receivers.iter().find(|one| one.address == receiver)?;
            Some(record.tree.node(receiver.edge)?.loopback)
        });
        if edge != Some(node) {
            return;
        }
        let name = self.network.name(node);
        self.evict(group, receiver, cause, &Actor::Edge { token: &principal.name, node: &name });
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
        self.update_network(loopback);
        self.write_node(loopback);
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
            node.was_dead = true;
            self.network.set_usable(loopback, false);
            self.write_node(loopback);
            self.network_version += 1;
            self.lose(loopback);
            self.resolve_without(loopback);
            self.reroute(loopback);
        }
        self.note_reported_headends();
        self.evict_stalled();
        self.expire_reservations(since);
        self.delete_removed();
    }

    /// Ends the session of a node, which may be forwarding (D97), in all its groups.
    pub(super) fn lose(&mut self, loopback: Ipv6Addr) {
        let Some(node) = self.nodes.get_mut(&loopback) else { return };
        node.session = None;
        let name = node.name.clone();
        self.effects.ended_sessions.push(loopback);
        self.emit(None, EventKind::NodeDown { node: name });
        for id in self.groups_of_node.of(loopback).collect::<Vec<_>>() {
            if let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) {
                lifecycle.lost(loopback);
            }
            self.drive(id);
        }
    }

    pub(super) fn loopback_of(&self, name: &str) -> Result<Ipv6Addr, Refusal> {
        let found = self.nodes.iter().find(|(_, node)| node.has_name(name));
        found.map(|(loopback, _)| *loopback).ok_or_else(|| unregistered(name))
    }
}

impl Node {
    /// Whether it is connected.
    pub(super) fn is_alive(&self) -> bool {
        self.session.is_some()
    }

    /// A node without a session.
    pub(super) fn new(registration: Registration, identity: NodeIdentity) -> Self {
        Node {
            name: registration.name.clone(),
            registration,
            identity,
            is_drained: false,
            is_removing: false,
            session: None,
            protocol: FIRST_PROTOCOL,
            heard: Duration::ZERO,
            was_dead: false,
            status: None,
            rates: None,
        }
    }

    /// Whether this is its name, or the former one that it still uses.
    fn has_name(&self, name: &str) -> bool {
        self.name == name || self.registration.name == name
    }
}

/// The protocol of a session with the node (D112).
fn common_protocol(registration: &Registration) -> Result<u32, Refusal> {
    let (node, own) = (Protocols::up_to(registration.protocol), Protocols::OWN);
    node.common(own).ok_or_else(|| {
        let older = if registration.protocol < PROTOCOL { "node" } else { "controller" };
        let text = format!("node {} speaks {node}, the controller {own}: upgrade the {older}", registration.name);
        Refusal::new(ProblemType::ProtocolNotSupported, text)
    })
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn ended(name: &str, session: u64) -> Refusal {
    Refusal::new(ProblemType::UnknownSession, format!("session {session} of node {name} has ended: register again"))
}
