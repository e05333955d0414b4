//! Nodes come, report, and are missed.

use super::{Core, Node, Session};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::{self, NodeRow};
use srdma_api::ProblemType;
use srdma_api::{Held, Hello, News, NodeAnswer, NodeOrder, NodeStatus, Sync, Wish};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The least time between two statuses that a rate is taken of.
const RATE_OVER: std::time::Duration = std::time::Duration::from_millis(50);

impl Core {
    /// A node presents itself; returns its session.
    pub fn register(&mut self, principal: &Principal, hello: Hello) -> Result<srdma_api::Session, Refusal> {
        principal.may_register(&hello.name)?;
        self.check_hello(&hello)?;
        let (loopback, name) = (hello.loopback, hello.name.clone());
        let (held, store) = (hello.groups.clone(), hello.store);
        let hello = Hello { groups: Vec::new(), store: None, ..hello };
        self.sessions += 1;
        let number = u64::from(self.site.starts) << 32 | self.sessions;
        let session = Some(Session { number, heard: self.now.monotonic });
        let known = self.nodes.get(&loopback);
        let (is_drained, was_missed) = known.map_or((false, false), |node| (node.is_drained, node.was_missed));
        if known.is_none_or(|node| node.hello != hello) {
            self.write(rows::put(rows::node_key(loopback), &NodeRow { hello: hello.clone(), is_drained }));
        }
        self.network.put(&hello, !is_drained);
        self.network_version += 1;
        self.nodes.insert(loopback, Node { hello, is_drained, session, was_missed: false, status: None, rates: None });
        self.effects.ended_sessions.push(loopback);
        self.tell(None, News::NodeUp { node: name });
        if self.rebuilds {
            self.take_over(store, &held);
        }
        self.reconcile(loopback, &held, store, was_missed);
        Ok(srdma_api::Session {
            session: number,
            store: self.site.store,
            dead_after_ms: u32::try_from(self.settings.node_dead_after.as_millis()).unwrap_or(u32::MAX),
        })
    }

    fn check_hello(&self, hello: &Hello) -> Result<(), Refusal> {
        let conflict = |text: String| Err(Refusal::new(ProblemType::NodeConflict, text));
        let not_understood = |text: &str| Err(Refusal::new(ProblemType::InvalidRequest, text));
        if hello.name.is_empty() || hello.name.len() > 64 || hello.name.contains(['/', '?', '#', ' ']) {
            return not_understood("name: expected 1 to 64 octets without /, ?, # and spaces");
        }
        if hello.replication.is_some_and(|prefix| prefix.length() > 96) {
            return not_understood("replication: expected at most /96, for the numbers of groups have 32 bits");
        }
        if hello.links.len() > 4096 || hello.hosts.len() > 4096 || hello.groups.len() > 1 << 20 {
            return not_understood("links, hosts: expected at most 4096 of each");
        }
        super::groups::check_host("loopback", hello.loopback)?;
        for (loopback, node) in &self.nodes {
            if (*loopback == hello.loopback) != (node.hello.name == hello.name) {
                return conflict(format!("node {} has loopback {loopback} already", node.hello.name));
            }
        }
        match self.proxies.get(&hello.loopback) {
            Some(group) => conflict(format!("loopback {} is the Proxy Address of group {group}", hello.loopback)),
            None => Ok(()),
        }
    }

    /// What the node has is held against what it should have.
    fn reconcile(&mut self, loopback: Ipv6Addr, held: &[Held], store: Option<u64>, was_missed: bool) {
        let has: BTreeMap<u32, &Held> = held.iter().map(|held| (held.group, held)).collect();
        let is_ours = store == Some(self.site.store);
        for id in self.groups_of_node.get(&loopback).cloned().unwrap_or_default() {
            let has_part = is_ours && has.get(&id).is_some_and(|held| held.epoch.or(held.prepared).is_some());
            if let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) {
                // One that was missed says nothing that counts until it is given its part again.
                if has_part && !was_missed {
                    lifecycle.repeat();
                } else {
                    lifecycle.restarted(loopback);
                }
            }
            self.drive(id);
        }
        // What it has by this store and should not have goes; what it has by another is left alone.
        for held in held.iter().filter(|_| is_ours && !self.rebuilds) {
            let is_in = self.groups_of_node.get(&loopback).is_some_and(|groups| groups.contains(&held.group));
            if !is_in {
                let epoch = held.epoch.max(held.prepared).unwrap_or(0);
                self.effects.orders.push((loopback, NodeOrder::Remove { group: held.group, epoch }));
            }
        }
    }

    /// A node reports; its orders are handed out by the shell.
    pub fn sync(&mut self, principal: &Principal, name: &str, sync: Sync) -> Result<Ipv6Addr, Refusal> {
        principal.may_register(name)?;
        let loopback = self.loopback_of(name)?;
        let now = self.now.monotonic;
        let node = self.nodes.get_mut(&loopback);
        let session = node.and_then(|node| node.session.as_mut()).filter(|session| session.number == sync.session);
        let Some(session) = session else {
            return Err(ended(name, sync.session));
        };
        session.heard = now;
        for answer in sync.answers {
            self.answered(loopback, answer);
        }
        for wish in sync.wishes {
            self.wished(wish);
        }
        if let Some(status) = sync.status {
            self.note_status(loopback, status);
        }
        Ok(loopback)
    }

    /// That a node's session is still this one.
    pub fn check_session(&self, loopback: Ipv6Addr, number: u64, name: &str) -> Result<(), Refusal> {
        let session = self.nodes.get(&loopback).and_then(|node| node.session);
        match session.filter(|session| session.number == number) {
            Some(_) => Ok(()),
            None => Err(ended(name, number)),
        }
    }

    /// A node that waits for orders is there.
    pub fn keep_session(&mut self, loopback: Ipv6Addr) {
        let now = self.now.monotonic;
        if let Some(session) = self.nodes.get_mut(&loopback).and_then(|node| node.session.as_mut()) {
            session.heard = now;
        }
    }

    fn answered(&mut self, loopback: Ipv6Addr, answer: NodeAnswer) {
        let (NodeAnswer::Prepared { group: id, .. }
        | NodeAnswer::Refused { group: id, .. }
        | NodeAnswer::Committed { group: id, .. }
        | NodeAnswer::Removed { group: id, .. }) = answer;
        let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) else { return };
        match answer {
            NodeAnswer::Prepared { epoch, .. } => lifecycle.prepared(loopback, epoch),
            NodeAnswer::Refused { epoch, reason, .. } => lifecycle.refused(loopback, epoch, reason),
            NodeAnswer::Committed { epoch, .. } => lifecycle.committed(loopback, epoch),
            NodeAnswer::Removed { epoch, .. } => lifecycle.removed(loopback, epoch),
        }
        self.drive(id);
    }

    /// An edge asks for an eviction: granted unless the group cannot do without the receiver (D25).
    fn wished(&mut self, wish: Wish) {
        let Some(group) = self.groups.get(&wish.group) else { return };
        let is_done = group.row.is_closing || group.members.get(&wish.receiver).is_none_or(|member| member.is_leaving);
        if is_done {
            return;
        }
        let refusal = self.take_out_of(wish.group, wish.receiver).err().map(|refusal| refusal.detail);
        if refusal.is_none() {
            self.audit("controller", "evict", format!("group {} receiver {}", wish.group, wish.receiver));
            self.write_group(wish.group);
        }
        let Wish { group, receiver, cause } = wish;
        self.tell_of_group(group, News::EvictionWanted { group, receiver, cause, refusal });
        self.drive(group);
    }

    fn note_status(&mut self, loopback: Ipv6Addr, status: NodeStatus) {
        let now = self.now.monotonic;
        let Some(node) = self.nodes.get_mut(&loopback) else { return };
        let rates = match (&node.rates, &node.status) {
            (Some((then, rates)), Some(old)) => {
                let elapsed = now.saturating_sub(*then);
                if elapsed < RATE_OVER {
                    // Too near to the last: the rates stay, and count from then.
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

    /// Says that new trees go round a node, and moves those that can be, or lets them through again.
    pub fn drain_node(&mut self, principal: &Principal, name: &str, is_drained: bool) -> Result<(), Refusal> {
        principal.may_operate()?;
        let loopback = self.loopback_of(name)?;
        let Some(node) = self.nodes.get_mut(&loopback) else { return Ok(()) };
        if node.is_drained == is_drained {
            return Ok(());
        }
        node.is_drained = is_drained;
        let row = NodeRow { hello: node.hello.clone(), is_drained };
        let is_usable = !is_drained && node.session.is_some();
        self.network.set_usable(loopback, is_usable);
        self.network_version += 1;
        self.write(rows::put(rows::node_key(loopback), &row));
        self.audit(&principal.name, if is_drained { "drain" } else { "release" }, format!("node {name}"));
        self.tell(None, News::NodeDrained { node: name.to_owned(), drained: is_drained });
        if is_drained {
            self.route_around(loopback);
        }
        Ok(())
    }

    /// Nodes that were silent for too long are taken for dead, and what hangs below them hangs elsewhere.
    pub fn expire_nodes(&mut self) {
        let (now, dead_after) = (self.now.monotonic, self.settings.node_dead_after);
        let is_dead = |node: &Node| node.session.is_some_and(|session| now.saturating_sub(session.heard) > dead_after);
        let dead: Vec<Ipv6Addr> =
            self.nodes.iter().filter(|(_, node)| is_dead(node)).map(|(loopback, _)| *loopback).collect();
        for loopback in dead {
            let Some(node) = self.nodes.get_mut(&loopback) else { continue };
            node.session = None;
            node.was_missed = true;
            let name = node.hello.name.clone();
            self.network.set_usable(loopback, false);
            self.network_version += 1;
            self.effects.ended_sessions.push(loopback);
            self.tell(None, News::NodeLost { node: name });
            for id in self.groups_of_node.get(&loopback).cloned().unwrap_or_default() {
                if let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) {
                    lifecycle.lost(loopback);
                }
                self.drive(id);
            }
            self.route_around(loopback);
        }
    }

    pub(super) fn loopback_of(&self, name: &str) -> Result<Ipv6Addr, Refusal> {
        let found = self.nodes.iter().find(|(_, node)| node.hello.name == name);
        found
            .map(|(loopback, _)| *loopback)
            .ok_or_else(|| Refusal::new(ProblemType::UnknownNode, format!("no node {name} has said hello")))
    }
}

fn ended(name: &str, session: u64) -> Refusal {
    Refusal::new(ProblemType::UnknownSession, format!("session {session} of node {name} has ended: say hello again"))
}
