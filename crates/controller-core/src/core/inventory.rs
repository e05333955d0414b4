//! Nodes are removed and renamed (D127).

use super::Core;
use super::stalls::Actor;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::reports;
use crate::rows::{self, Write};
use srdma_api::{EventKind, ProblemType};
use srdma_group::NodeIndex;
use std::net::Ipv6Addr;

impl Core {
    /// Removes a node: the receivers of an edge are evicted, and the node is deleted when no group has it.
    ///
    /// # Errors
    ///
    /// It has not registered, is connected and not drained, or groups would not work without it. Nothing has changed.
    pub fn remove_node(&mut self, principal: &Principal, name: &str) -> Result<(), Refusal> {
        principal.may_operate()?;
        if self.forget_unconfirmed_node(principal, name) {
            return Ok(());
        }
        let loopback = self.loopback_of(name)?;
        let Some(node) = self.nodes.get(&loopback) else { return Ok(()) };
        if node.session.is_some() && !node.is_drained {
            let text = format!("node {name} is connected: `srdma controller node drain {name}` first");
            return Err(Refusal::new(ProblemType::NodeInUse, text));
        }
        let evictions = self.evictions_without(loopback)?;
        self.audit(&principal.name, "remove", format!("node {name}"));
        if let Some(node) = self.nodes.get_mut(&loopback) {
            node.is_removing = true;
        }
        self.update_network(loopback);
        self.write_node(loopback);
        for (id, receivers) in evictions {
            for receiver in receivers {
                self.evict(id, receiver, format!("edge {name} is removed"), &Actor::Operator(&principal.name));
            }
            self.drive(id);
        }
        self.delete_removed();
        Ok(())
    }

    /// Deletes what an unconfirmed node has registered.
    fn forget_unconfirmed_node(&mut self, principal: &Principal, name: &str) -> bool {
        let is_unconfirmed = self.unconfirmed.contains_key(name);
        if is_unconfirmed {
            self.forget_unconfirmed(name);
            self.audit(&principal.name, "remove", format!("unconfirmed node {name}"));
            self.emit(None, EventKind::NodeRemoved { node: name.to_owned() });
        }
        is_unconfirmed
    }

    /// The receivers to evict, by group, before a node can be removed.
    fn evictions_without(&self, loopback: Ipv6Addr) -> Result<Vec<(u32, Vec<Ipv6Addr>)>, Refusal> {
        let mut evictions = Vec::new();
        for id in self.groups_of_node.of(loopback) {
            let group = self.groups.get(&id).filter(|group| !group.row.is_closing);
            let Some((group, lifecycle)) = group.and_then(|group| Some((group, group.lifecycle.as_ref()?))) else {
                continue;
            };
            let in_use = |text: &str| {
                let name = self.network.name(loopback);
                Err(Refusal::new(ProblemType::NodeInUse, format!("node {name} is in group {id}: {text}")))
            };
            let Some(record) = &group.record else { return in_use("which is being created") };
            match record.tree.nodes().iter().position(|node| node.loopback == loopback).map(NodeIndex) {
                None => {}
                Some(NodeIndex(0)) => return in_use("it is the headend, so close the group first"),
                Some(position) if !record.tree.children(position).is_empty() => {
                    return in_use("no other path to the nodes below it is in use yet");
                }
                Some(position) => {
                    let below = record.receivers.iter().filter(|receiver| receiver.edge == position);
                    let below = below.map(|receiver| receiver.address);
                    let below = below.filter(|receiver| group.members.get(receiver).is_some_and(|one| !one.is_leaving));
                    let below: Vec<Ipv6Addr> = below.collect();
                    if !below.is_empty()
                        && let Err(error) = lifecycle.clone().leave(&below)
                    {
                        return in_use(&format!("its receivers cannot be evicted: {error}"));
                    }
                    evictions.push((id, below));
                }
            }
        }
        Ok(evictions)
    }

    /// Deletes the nodes that are being removed and that no group has.
    pub(super) fn delete_removed(&mut self) {
        let is_unused = |loopback: &Ipv6Addr| self.groups_of_node.count(*loopback) == 0;
        let removed = self.nodes.iter().filter(|(loopback, node)| node.is_removing && is_unused(loopback));
        for loopback in removed.map(|(loopback, _)| *loopback).collect::<Vec<_>>() {
            let Some(node) = self.nodes.remove(&loopback) else { continue };
            self.network.remove(loopback);
            self.network.set_unconfirmed(&node.name, &[]);
            self.network_version += 1;
            self.groups_of_node.forget(loopback);
            self.leftovers.forget_node(loopback);
            self.effects.ended_sessions.push(loopback);
            self.write(Write::Delete { key: rows::node_key(loopback) });
            self.emit(None, EventKind::NodeRemoved { node: node.name });
        }
    }

    /// Gives a node another name. It may use the former one until it registers with the new one.
    ///
    /// # Errors
    ///
    /// It has not registered, `controller.toml` states it, or the name is invalid or in use.
    pub fn rename_node(&mut self, principal: &Principal, name: &str, new: &str) -> Result<(), Refusal> {
        principal.may_operate()?;
        let loopback = self.loopback_of(name)?;
        reports::check_node_name(new)?;
        let conflict = |text: String| Err(Refusal::new(ProblemType::NodeConflict, text));
        self.check_not_stated(name)?;
        let is_taken = self.loopback_of(new).is_ok_and(|other| other != loopback);
        if is_taken || self.unconfirmed.contains_key(new) || self.settings.nodes.contains_key(new) {
            return conflict(format!("another node has the name {new}"));
        }
        let Some(node) = self.nodes.get_mut(&loopback).filter(|node| node.name != new) else { return Ok(()) };
        let former = std::mem::replace(&mut node.name, new.to_owned());
        self.network.set_unconfirmed(&former, &[]);
        self.update_network(loopback);
        self.write_node(loopback);
        self.audit(&principal.name, "rename", format!("node {former} to {new}"));
        self.emit(None, EventKind::NodeRenamed { node: former, name: new.to_owned() });
        Ok(())
    }
}
