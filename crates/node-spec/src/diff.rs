//! From one desired state to another while the node runs.
//!
//! Entries are removed in the opposite order of that in which they are added, so that an address may change its meaning
//! (a route that becomes a SID), and no entry names another one that is not there. Entries that are equal in both specs
//! are not touched, so that a group keeps the state of its PSNs.

use crate::entries::LinkFacts;
use crate::{Entries, NodeSpec};
use srdma_dataplane::{ClassMap, Command, NextHop, NodeConfig, PortConfig};
use srdma_frame::PortId;
use srdma_group::{GroupEntry, GroupId};
use std::collections::BTreeMap;

/// Why a node cannot get from one spec to another while it runs.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// A setting that a node is made with.
    #[error("{0} cannot change while the node runs: restart it")]
    Restart(String),
    /// Another membership, and the same epoch.
    #[error(
        "group {group} has changed, but its epoch is still {epoch}: each change of membership raises the epoch (D30)"
    )]
    SameEpoch { group: u32, epoch: u32 },
    /// An epoch before the current one.
    #[error("the epoch of group {group} goes back from {before} to {after}: it only rises (D30)")]
    OlderEpoch {
        group: u32,
        /// Its epoch.
        before: u32,
        /// The epoch of the new spec.
        after: u32,
    },
}

/// The commands that lead a node from `old` to `new`, in their order.
///
/// # Errors
///
/// If the specs differ in a setting that a node is made with, or a group's epoch does not follow D30.
pub fn diff(old: &NodeSpec, new: &NodeSpec) -> Result<Vec<Command>, DiffError> {
    check_settings(&old.node, &new.node)?;
    check_ports(&old.node.ports, &new.node.ports)?;
    for (id, before) in &old.entries.groups {
        new.entries.groups.get(id).map_or(Ok(()), |after| check_epoch(before, after))?;
    }
    let mut commands = removals(&old.entries, &new.entries);
    commands.extend(ports(old, new));
    commands.extend(additions(&old.entries, &new.entries));
    commands.extend(unused(&old.entries, &new.entries));
    Ok(commands)
}

/// The commands between entries of a node whose settings and links stay.
pub(crate) fn between(before: &Entries, after: &Entries) -> Vec<Command> {
    let mut commands = removals(before, after);
    commands.extend(additions(before, after));
    commands.extend(unused(before, after));
    commands
}

/// SR policies and keys go last: routes and SIDs that use a policy, and all that sign with a key, first stop to do so.
fn unused<'a>(before: &'a Entries, after: &'a Entries) -> impl Iterator<Item = Command> + 'a {
    let policies = gone(&before.policies, &after.policies, |_, _| true).map(|id| Command::RemovePolicy(*id));
    let keys = gone(&before.keys, &after.keys, |_, _| true).map(|key_id| Command::RemoveHmacKey(*key_id));
    policies.chain(keys)
}

/// Removals of what is not in `after`, or cannot be replaced in its place.
fn removals(before: &Entries, after: &Entries) -> Vec<Command> {
    let mut commands: Vec<Command> = gone(&before.bfd, &after.bfd, |before, after| before.local == after.local)
        .copied()
        .map(Command::RemoveBfdSession)
        .collect();
    commands.extend(gone(&before.backups, &after.backups, |_, _| true).copied().map(Command::RemoveBackups));
    // A group with another Proxy Address is another group: two groups may have exchanged theirs.
    let keeps_proxy = |before: &GroupEntry, after: &GroupEntry| before.proxy == after.proxy;
    let groups = gone(&before.groups, &after.groups, keeps_proxy);
    commands.extend(groups.map(|id| Command::RemoveGroup(GroupId(*id))));
    if before.learning.is_some() && before.learning != after.learning {
        commands.push(Command::RemoveLearning);
    }
    let multicast_routes = gone(&before.multicast_routes, &after.multicast_routes, |_, _| true);
    commands.extend(
        multicast_routes.map(|(source, group)| Command::RemoveMulticastRoute { source: *source, group: *group }),
    );
    let connections = gone(&before.connections, &after.connections, |_, _| true);
    commands.extend(connections.map(|(host, peer, peer_qpn)| Command::RemoveConnection {
        host: *host,
        peer: *peer,
        peer_qpn: *peer_qpn,
    }));
    let is_off = |was_on: bool, is_on: bool| was_on && !is_on;
    if is_off(before.fast_cnp.is_some(), after.fast_cnp.is_some()) {
        commands.push(Command::RemoveFastCnp);
    }
    if is_off(before.backpressure.is_some(), after.backpressure.is_some()) {
        commands.push(Command::RemoveBackpressure);
    }
    if !before.backpressure_sids.is_empty() && after.backpressure_sids.is_empty() {
        commands.push(Command::SetBackpressureSids(Vec::new()));
    }
    commands.extend(gone(&before.sids, &after.sids, |_, _| true).map(|prefix| Command::RemoveSid(*prefix)));
    let cross_connects = gone(&before.cross_connects, &after.cross_connects, |_, _| true);
    commands.extend(cross_connects.map(|port| Command::RemoveCrossConnect(*port)));
    let routes = gone(&before.routes, &after.routes, |_, _| true);
    commands.extend(routes.map(|(table, prefix)| Command::RemoveRoute { table: *table, prefix: *prefix }));
    if is_off(before.steering.is_some(), after.steering.is_some()) {
        commands.push(Command::RemoveSteering);
    }
    let neighbours = gone(&before.neighbours, &after.neighbours, |_, _| true);
    commands
        .extend(neighbours.map(|(port, address)| Command::RemoveNeighbour(NextHop { port: *port, address: *address })));
    // A new domain may be where an old border had its hosts.
    let borders = gone(&before.borders, &after.borders, |before, after| before == after);
    commands.extend(borders.map(|port| Command::RemoveBorder(*port)));
    if before.domain.is_some() && before.domain != after.domain {
        commands.push(Command::RemoveDomain);
    }
    commands.extend(gone(&before.egress, &after.egress, |_, _| true).map(|port| Command::RemoveEgress(*port)));
    if is_off(before.classes.is_some(), after.classes.is_some()) {
        commands.push(Command::SetClasses(ClassMap::default()));
    }
    if is_off(before.ioam.is_some(), after.ioam.is_some()) {
        commands.push(Command::RemoveIoam);
    }
    commands
}

/// Additions of what is not in `before`, or differs from it; links aside, which belong to ports.
pub(crate) fn additions(before: &Entries, after: &Entries) -> Vec<Command> {
    let mut commands = Vec::new();
    let keys = changed(&before.keys, &after.keys);
    commands.extend(keys.map(|(key_id, key)| Command::AddHmacKey { key_id: *key_id, key: key.prepared() }));
    commands.extend(new(&before.domain, &after.domain).map(Command::SetDomain));
    let borders = changed(&before.borders, &after.borders);
    commands.extend(borders.map(|(port, sources)| Command::SetBorder { port: *port, sources: sources.clone() }));
    commands.extend(new(&before.classes, &after.classes).map(Command::SetClasses));
    let egress = changed(&before.egress, &after.egress);
    commands.extend(egress.map(|(port, egress)| Command::SetEgress { port: *port, egress: Box::new(egress.clone()) }));
    commands.extend(new(&before.ioam, &after.ioam).map(Box::new).map(Command::SetIoam));
    commands.extend(new(&before.steering, &after.steering).map(Box::new).map(Command::SetSteering));
    commands.extend(new(&before.fast_cnp, &after.fast_cnp).map(Box::new).map(Command::SetFastCnp));
    let connections = changed(&before.connections, &after.connections);
    commands.extend(connections.map(|(_, connection)| Command::AddConnection(*connection)));
    commands.extend(new(&before.backpressure, &after.backpressure).map(Box::new).map(Command::SetBackpressure));
    if before.backpressure_sids != after.backpressure_sids && !after.backpressure_sids.is_empty() {
        commands.push(Command::SetBackpressureSids(after.backpressure_sids.values().copied().collect()));
    }
    let neighbours = changed(&before.neighbours, &after.neighbours);
    commands.extend(neighbours.map(|((port, address), mac)| Command::AddNeighbour {
        next_hop: NextHop { port: *port, address: *address },
        mac: *mac,
    }));
    let policies = changed(&before.policies, &after.policies);
    commands.extend(policies.map(|(id, policy)| Command::AddPolicy { id: *id, policy: Box::new(policy.clone()) }));
    let cross_connects = changed(&before.cross_connects, &after.cross_connects);
    commands.extend(cross_connects.map(|(port, with)| Command::SetCrossConnect { port: *port, cross_connect: *with }));
    if before.shared_hosts != after.shared_hosts {
        commands.push(Command::SetSharedHosts(after.shared_hosts.values().copied().collect()));
    }
    let routes = changed(&before.routes, &after.routes);
    commands.extend(routes.map(|((table, prefix), action)| Command::AddRoute {
        table: *table,
        prefix: *prefix,
        action: action.clone(),
    }));
    let multicast_routes = changed(&before.multicast_routes, &after.multicast_routes);
    commands.extend(multicast_routes.map(|(_, route)| Command::AddMulticastRoute(route.clone())));
    let sids = changed(&before.sids, &after.sids);
    commands.extend(sids.map(|(prefix, behavior)| Command::AddSid { prefix: *prefix, behavior: *behavior }));
    let groups = changed(&before.groups, &after.groups);
    commands.extend(groups.map(|(_, group)| Command::AddGroup(Box::new(group.clone()))));
    commands.extend(new(&before.learning, &after.learning).map(Command::SetLearning));
    let bfd = changed(&before.bfd, &after.bfd);
    commands.extend(bfd.map(|(_, session)| Command::SetBfdSession(Box::new(*session))));
    let backups = changed(&before.backups, &after.backups);
    commands
        .extend(backups.map(|(next_hop, routes)| Command::SetBackups { next_hop: *next_hop, routes: routes.clone() }));
    commands
}

/// Keys of `before` that `after` lacks, or whose value cannot be replaced in its place.
fn gone<'a, K: Ord, V>(
    before: &'a BTreeMap<K, V>,
    after: &'a BTreeMap<K, V>,
    can_be_replaced: impl Fn(&V, &V) -> bool + 'a,
) -> impl Iterator<Item = &'a K> {
    let stays = move |(key, value): &(&K, &V)| after.get(*key).is_some_and(|next| can_be_replaced(value, next));
    before.iter().filter(move |entry| !stays(entry)).map(|(key, _)| key)
}

/// Entries of `after` that `before` lacks, or has with another value.
fn changed<'a, K: Ord, V: PartialEq>(
    before: &'a BTreeMap<K, V>,
    after: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, &'a V)> {
    after.iter().filter(|(key, value)| before.get(*key) != Some(*value))
}

/// The value of `after`, if `before` has another one.
fn new<V: PartialEq + Clone>(before: &Option<V>, after: &Option<V>) -> Option<V> {
    after.clone().filter(|_| before != after)
}

/// New ports, and ports whose link has changed.
fn ports(old: &NodeSpec, new: &NodeSpec) -> Vec<Command> {
    let mut commands = Vec::new();
    for (index, port) in new.node.ports.iter().enumerate() {
        let id = PortId(index as u16);
        let known = old.node.ports.get(index);
        if known.is_none() {
            commands.push(Command::AddPort(port.clone()));
        }
        let (before, after) = (known.map(|known| link(&old.entries, id, known)), link(&new.entries, id, port));
        let is_initial = before.is_none() && !new.entries.links.contains_key(&id);
        if before.as_ref() != Some(&after) && !is_initial {
            commands.push(set_port(id, after));
        }
    }
    commands
}

fn link(entries: &Entries, id: PortId, port: &PortConfig) -> LinkFacts {
    let PortConfig { mac, addresses, link_mtu, .. } = port;
    let of_port = || LinkFacts { mac: *mac, addresses: addresses.clone(), link_mtu: *link_mtu };
    entries.links.get(&id).cloned().unwrap_or_else(of_port)
}

pub(crate) fn set_port(port: PortId, LinkFacts { mac, addresses, link_mtu }: LinkFacts) -> Command {
    Command::SetPort { port, mac, addresses, link_mtu }
}

/// Ports are numbered in the order of the file and never removed: new ones stand at its end.
fn check_ports(old: &[PortConfig], new: &[PortConfig]) -> Result<(), DiffError> {
    for (index, port) in old.iter().enumerate() {
        let Some(next) = new.get(index).filter(|next| next.name == port.name) else {
            return Err(DiffError::Restart(format!("the place of port {} among the ports", port.name)));
        };
        if port.queue_limit_octets != next.queue_limit_octets {
            return Err(DiffError::Restart(format!("queue_limit_octets of port {}", port.name)));
        }
        if (port.vlan, port.trust) != (next.vlan, next.trust) {
            return Err(DiffError::Restart(format!("the VLAN or trust of port {}", port.name)));
        }
    }
    Ok(())
}

/// Each change of a group's members or tree has its own epoch, which distinguishes responses before and after it. A
/// group with another initial PSN or Proxy Address is another group and starts from scratch (D28).
fn check_epoch(before: &GroupEntry, after: &GroupEntry) -> Result<(), DiffError> {
    let members = |entry: &GroupEntry| (entry.branches.clone(), entry.receivers.clone(), entry.parent, entry.renewed);
    let group = before.id.0;
    if (before.proxy, before.initial_psn) != (after.proxy, after.initial_psn) {
        Ok(())
    } else if after.epoch < before.epoch {
        Err(DiffError::OlderEpoch { group, before: before.epoch, after: after.epoch })
    } else if after.epoch == before.epoch && members(before) != members(after) {
        Err(DiffError::SameEpoch { group, epoch: before.epoch })
    } else {
        Ok(())
    }
}

/// The settings that a node is made with are equal. `restarted` determines only how it begins.
fn check_settings(old: &NodeConfig, new: &NodeConfig) -> Result<(), DiffError> {
    let same = [
        (old.loopback == new.loopback, "loopback"),
        (old.icrc == new.icrc, "icrc"),
        (old.verify_icrc == new.verify_icrc, "verify_icrc"),
        (old.hmac == new.hmac, "require_hmac or verify_hmac"),
        (old.end_mt_cover == new.end_mt_cover, "end_mt_cover"),
        (old.icmp_errors_per_second == new.icmp_errors_per_second, "icmp_errors_per_second"),
        (old.replication_hop_limit == new.replication_hop_limit, "replication_hop_limit"),
        (old.cm_host == new.cm_host, "cm_host"),
        (old.cm_host_ipv4 == new.cm_host_ipv4, "cm_host_ipv4"),
        (old.tlv_types.end_mt == new.tlv_types.end_mt, "end_mt_tlv_type"),
        (old.tlv_types.mr == new.tlv_types.mr, "mr_tlv_type"),
        (old.fast_cnp_types.address() == new.fast_cnp_types.address(), "fast_cnp_address_type"),
        (old.fast_cnp_types.trace() == new.fast_cnp_types.trace(), "fast_cnp_trace_type"),
        (old.marking_seed == new.marking_seed, "marking_seed"),
        (old.repair_memory_octets == new.repair_memory_octets, "repair_memory_octets"),
    ];
    match same.iter().find(|(is_same, _)| !is_same) {
        Some((_, key)) => Err(DiffError::Restart(format!("{key} of [node]"))),
        None => Ok(()),
    }
}
