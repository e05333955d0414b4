//! What nodes may say of themselves (D125): stated in `controller.toml`, confirmed by an administrator, or, without
//! tokens, by the registration itself.
//!
//! ```text
//!                    stated, or by an administrator
//!   registration ──────────────────────────────────────► session, restricted to the identity
//!        │                                    ▲
//!        └─ otherwise: listed, refused ── confirm
//! ```

use super::{Core, Node};
use crate::identity::{describe, overlap, own_prefixes, restricted};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::{self, NodeRow};
use srdma_api::{EventKind, FIRST_PROTOCOL, NodeIdentity, ProblemType, Registration};
use std::net::Ipv6Addr;

impl Core {
    /// The identity of a registering node.
    ///
    /// # Errors
    ///
    /// It is not the one that `controller.toml` states, overlaps others, exceeds the limit of nodes, or has to be
    /// confirmed first.
    pub(super) fn admit(
        &mut self,
        principal: &Principal,
        registration: &Registration,
    ) -> Result<NodeIdentity, Refusal> {
        let (name, said) = (&registration.name, registration.identity());
        if let Some(stated) = self.settings.nodes.get(name) {
            if stated.loopback != said.loopback {
                let text = format!("node {name}: controller.toml states loopback {}", stated.loopback);
                return Err(Refusal::new(ProblemType::NodeConflict, text));
            }
            let stated = stated.clone();
            self.check_identity(name, &stated)?;
            return Ok(stated);
        }
        let known = self.nodes.get(&said.loopback).map(|node| &node.identity);
        match known {
            Some(known) if *known == said => Ok(said),
            _ if principal.may_operate().is_ok() => {
                self.check_identity(name, &said)?;
                self.audit(&principal.name, "confirm", describe(name, &said));
                Ok(said)
            }
            Some(known) => {
                let known = known.clone();
                if self.nodes.get(&said.loopback).is_some_and(|node| node.registration.identity() != said) {
                    self.emit(None, EventKind::NodeUnconfirmed { node: name.clone() });
                }
                Ok(known)
            }
            None => {
                self.note_unconfirmed(name, said);
                let text = format!(
                    "the registration of node {name} is not confirmed: `srdma controller node confirm {name}`, or a \
                     [[node]] in controller.toml"
                );
                Err(Refusal::new(ProblemType::NodeUnconfirmed, text))
            }
        }
    }

    /// Keeps the identity of an unconfirmed node, which is listed. Tokens are bound to nodes, so that there are no more
    /// than tokens.
    fn note_unconfirmed(&mut self, name: &str, said: NodeIdentity) {
        let former = self.unconfirmed.insert(name.to_owned(), said.clone());
        self.network.set_unconfirmed(name, &said.hosts);
        if former.is_none_or(|former| former != said) {
            self.emit(None, EventKind::NodeUnconfirmed { node: name.to_owned() });
        }
    }

    pub(super) fn forget_unconfirmed(&mut self, name: &str) -> Option<NodeIdentity> {
        self.network.set_unconfirmed(name, &[]);
        self.unconfirmed.remove(name)
    }

    /// Checks an identity against other nodes, tenants and groups, and the limit of nodes, unless the node has it.
    fn check_identity(&self, name: &str, identity: &NodeIdentity) -> Result<(), Refusal> {
        let known = self.nodes.get(&identity.loopback);
        if known.is_some_and(|node| node.identity == *identity) {
            return Ok(());
        }
        let most = self.settings.max_nodes;
        if known.is_none() && self.nodes.len() >= most {
            let text = format!("node {name}: the limit is {most} nodes, `nodes` in controller.toml: remove one");
            return Err(Refusal::new(ProblemType::NodeQuotaExceeded, text));
        }
        let others = self.nodes.iter().filter(|(loopback, _)| **loopback != identity.loopback);
        let others = others.map(|(_, node)| (node.name.as_str(), &node.identity));
        let stated = self.settings.nodes.iter().filter(|(_, stated)| stated.loopback != identity.loopback);
        let others = others.chain(stated.map(|(name, stated)| (name.as_str(), stated)));
        match overlap(name, identity, &self.settings.shared_hosts, others, self.settings.tenants.values()) {
            Some(text) => Err(Refusal::new(ProblemType::PrefixOverlap, text)),
            None => self.check_unused(name, identity),
        }
    }

    /// Checks that no address of the node itself is a Proxy Address or a member's.
    fn check_unused(&self, name: &str, identity: &NodeIdentity) -> Result<(), Refusal> {
        for prefix in own_prefixes(identity) {
            let last = Ipv6Addr::from_bits(prefix.bits() | !prefix.mask());
            let proxy = self.proxies.range(prefix.address()..=last).next().map(|(address, group)| (*address, *group));
            if let Some((address, group)) = proxy.or_else(|| self.member_in(prefix.address(), last)) {
                let text = format!("node {name}: {prefix} contains {address}, which is an address of group {group}");
                return Err(Refusal::new(ProblemType::PrefixOverlap, text));
            }
        }
        Ok(())
    }

    /// Refuses to change a node that `controller.toml` states.
    pub(super) fn check_not_stated(&self, name: &str) -> Result<(), Refusal> {
        if !self.settings.nodes.contains_key(name) {
            return Ok(());
        }
        let text = format!("node {name} is stated in controller.toml: change its [[node]] there");
        Err(Refusal::new(ProblemType::NodeConflict, text))
    }

    /// Confirms what a node has registered. `identity`: what is confirmed.
    ///
    /// # Errors
    ///
    /// The node has not registered, or otherwise; `controller.toml` states its identity; or that of
    /// `check_identity`.
    pub fn confirm_node(&mut self, principal: &Principal, name: &str, identity: &NodeIdentity) -> Result<(), Refusal> {
        principal.may_operate()?;
        self.check_not_stated(name)?;
        let known = self.loopback_of(name).ok();
        let said = match known.and_then(|loopback| self.nodes.get(&loopback)) {
            Some(node) => Some(node.registration.identity()),
            None => self.unconfirmed.get(name).cloned(),
        };
        let said = said.ok_or_else(|| unregistered(name))?;
        if said != *identity {
            let text = format!("node {name} has registered other values: read it again");
            return Err(Refusal::new(ProblemType::VersionMismatch, text));
        }
        if known.is_some_and(|loopback| self.nodes.get(&loopback).is_some_and(|node| node.identity == said)) {
            return Ok(());
        }
        self.check_identity(name, identity)?;
        self.forget_unconfirmed(name);
        let node = self.nodes.entry(identity.loopback).or_insert_with(|| Node::unregistered(name, identity.clone()));
        node.identity = identity.clone();
        self.update_network(identity.loopback);
        self.write_node(identity.loopback);
        self.audit(&principal.name, "confirm", describe(name, identity));
        self.emit(None, EventKind::NodeConfirmed { node: name.to_owned() });
        Ok(())
    }

    /// Brings the network up to date with a node.
    pub(super) fn update_network(&mut self, loopback: Ipv6Addr) {
        let Some(node) = self.nodes.get(&loopback) else { return };
        let is_usable = node.session.is_some() && !node.is_drained && !node.is_removing;
        self.network.put(&node.used(), is_usable);
        let unconfirmed = node.unconfirmed_hosts();
        self.network.set_unconfirmed(&node.name, &unconfirmed);
        self.network_version += 1;
    }

    pub(super) fn write_node(&mut self, loopback: Ipv6Addr) {
        if let Some(node) = self.nodes.get(&loopback) {
            self.effects.writes.push(rows::put(rows::node_key(loopback), &node.row()));
        }
    }
}

impl Node {
    /// A confirmed node that has no session yet.
    fn unregistered(name: &str, identity: NodeIdentity) -> Self {
        let NodeIdentity { loopback, end_mt, replication, hosts } = identity.clone();
        let (name, links, groups) = (name.to_owned(), Vec::new(), Vec::new());
        let protocol = FIRST_PROTOCOL;
        let registration =
            Registration { protocol, name, loopback, end_mt, replication, links, hosts, groups, repairs: false };
        Node { was_dead: true, ..Node::new(registration, identity) }
    }

    /// What trees may use of it.
    pub(super) fn used(&self) -> Registration {
        let name = self.name.clone();
        if self.is_removing {
            let (links, hosts) = (Vec::new(), Vec::new());
            return Registration { name, end_mt: None, replication: None, links, hosts, ..self.registration.clone() };
        }
        Registration { name, ..restricted(&self.registration, &self.identity) }
    }

    /// Prefixes of hosts that it has registered and that are not confirmed.
    fn unconfirmed_hosts(&self) -> Vec<srdma_wire::Prefix> {
        let used = restricted(&self.registration, &self.identity).hosts;
        self.registration.hosts.iter().filter(|prefix| !used.contains(prefix)).copied().collect()
    }

    /// Its row in the store.
    pub(super) fn row(&self) -> NodeRow {
        NodeRow {
            registration: self.registration.clone(),
            is_drained: self.is_drained,
            name: Some(self.name.clone()),
            identity: Some(self.identity.clone()),
            is_removing: self.is_removing,
            is_lost: self.was_dead,
        }
    }
}

pub(super) fn unregistered(name: &str) -> Refusal {
    Refusal::new(ProblemType::UnknownNode, format!("node {name} has not registered"))
}
