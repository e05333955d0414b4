//! From one configuration to the next: what a running node is told when its file has changed.

use crate::Configuration;
use srdma_dataplane::{ClassMap, Command, Connection, NextHop, NodeConfig, TableId};
use srdma_frame::PortId;
use srdma_group::{GroupEntry, GroupId};
use srdma_wire::{Prefix, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Why a configuration cannot follow another while the node runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CannotFollow {
    #[error("{0} cannot change while the node runs: restart it")]
    Restart(String),
    #[error(
        "group {group} has changed, but its epoch is still {epoch}: each change of membership raises the epoch (D30)"
    )]
    SameEpoch { group: u32, epoch: u32 },
    #[error("the epoch of group {group} goes back from {before} to {after}: it only rises (D30)")]
    OlderEpoch { group: u32, before: u32, after: u32 },
}

/// What a change consists of.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    /// The commands that lead from the old to the new configuration, in their order. What is the same in both is not
    /// touched, but keys, which cannot be compared.
    pub(super) commands: Vec<Command>,
    /// Ports that get another interface, driver or pace, or are new.
    pub(super) moved: Vec<PortId>,
}

/// The changes from `old` to `new`.
///
/// # Errors
///
/// When they differ in what a node is made with.
pub(super) fn changes(old: &Configuration, new: &Configuration) -> Result<Changes, CannotFollow> {
    check_node(&old.node, &new.node)?;
    if old.daemon != new.daemon {
        return Err(CannotFollow::Restart("[daemon]".to_owned()));
    }
    if old.controller != new.controller {
        return Err(CannotFollow::Restart("[controller]".to_owned()));
    }
    let (ports, moved) = ports(old, new)?;
    let (before, after) = (by_subject(old), by_subject(new));
    for (subject, command) in &before {
        after.get(subject).map_or(Ok(()), |next| check_epoch(command, next))?;
    }
    let mut commands = Vec::new();
    let mut unused_keys = Vec::new();
    for (subject, command) in &before {
        let stays = after.get(subject).is_some_and(|next| keeps_its_place(command, next));
        match subject.removal() {
            _ if stays => {}
            // Groups that sign with the key are told first that they no longer do.
            Command::RemoveHmacKey(key_id) => unused_keys.push(Command::RemoveHmacKey(key_id)),
            removal => commands.push(removal),
        }
    }
    commands.extend(ports);
    for command in &new.commands {
        let known = Subject::of(command).and_then(|subject| before.get(&subject));
        if !known.is_some_and(|known| is_same(known, command)) {
            commands.push(command.clone());
        }
    }
    commands.extend(unused_keys);
    Ok(Changes { commands, moved })
}

/// What a command of a file is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    // In the order in which they are removed.
    Group(u32),
    Learning,
    MulticastRoute(Ipv6Addr, Ipv6Addr),
    /// Host, peer and the peer's queue pair.
    Connection(Ipv6Addr, Ipv6Addr, Qpn),
    FastCnp,
    Notifications,
    NotificationSids,
    Sid(Prefix),
    Route(TableId, Prefix),
    Steering,
    Neighbour(PortId, Ipv6Addr),
    Border(PortId),
    Domain,
    Egress(PortId),
    Classes,
    Ioam,
    Key(u32),
}

impl Subject {
    fn of(command: &Command) -> Option<Self> {
        match command {
            Command::AddNeighbour { next_hop, .. } => Some(Subject::Neighbour(next_hop.port, next_hop.address)),
            Command::AddRoute { table, prefix, .. } => Some(Subject::Route(*table, *prefix)),
            Command::AddSid { prefix, .. } => Some(Subject::Sid(*prefix)),
            Command::AddMulticastRoute(route) => Some(Subject::MulticastRoute(route.source, route.group)),
            Command::AddHmacKey { key_id, .. } => Some(Subject::Key(*key_id)),
            Command::SetDomain(_) => Some(Subject::Domain),
            Command::SetBorder { port, .. } => Some(Subject::Border(*port)),
            Command::SetEgress { port, .. } => Some(Subject::Egress(*port)),
            Command::SetClasses(_) => Some(Subject::Classes),
            Command::SetIoam(_) => Some(Subject::Ioam),
            Command::AddGroup(entry) => Some(Subject::Group(entry.id.0)),
            Command::SetLearning(_) => Some(Subject::Learning),
            Command::SetFastCnp(_) => Some(Subject::FastCnp),
            Command::SetNotifications(_) => Some(Subject::Notifications),
            Command::SetNotificationSids(_) => Some(Subject::NotificationSids),
            Command::SetSteering(_) => Some(Subject::Steering),
            Command::AddConnection(Connection { host, peer, peer_qpn, .. }) => {
                Some(Subject::Connection(*host, *peer, *peer_qpn))
            }
            // No file has these.
            Command::AddPort(_)
            | Command::SetPort { .. }
            | Command::RemoveNeighbour(_)
            | Command::RemoveRoute { .. }
            | Command::RemoveSid(_)
            | Command::RemoveMulticastRoute { .. }
            | Command::RemoveHmacKey(_)
            | Command::RemoveDomain
            | Command::RemoveBorder(_)
            | Command::RemoveEgress(_)
            | Command::RemoveIoam
            | Command::RemoveFastCnp
            | Command::RemoveNotifications
            | Command::RemoveSteering
            | Command::RemoveConnection { .. }
            | Command::RestoreGroup(_)
            | Command::PrepareGroup(_)
            | Command::CommitGroup { .. }
            | Command::AbortGroup(_)
            | Command::RemoveGroup(_)
            | Command::RemoveLearning => None,
        }
    }

    fn removal(self) -> Command {
        match self {
            Subject::Group(id) => Command::RemoveGroup(GroupId(id)),
            Subject::Learning => Command::RemoveLearning,
            Subject::MulticastRoute(source, group) => Command::RemoveMulticastRoute { source, group },
            Subject::Sid(prefix) => Command::RemoveSid(prefix),
            Subject::Route(table, prefix) => Command::RemoveRoute { table, prefix },
            Subject::Neighbour(port, address) => Command::RemoveNeighbour(NextHop { port, address }),
            Subject::Key(key_id) => Command::RemoveHmacKey(key_id),
            Subject::Domain => Command::RemoveDomain,
            Subject::Border(port) => Command::RemoveBorder(port),
            Subject::Egress(port) => Command::RemoveEgress(port),
            Subject::Classes => Command::SetClasses(ClassMap::default()),
            Subject::Ioam => Command::RemoveIoam,
            Subject::FastCnp => Command::RemoveFastCnp,
            Subject::Notifications => Command::RemoveNotifications,
            Subject::NotificationSids => Command::SetNotificationSids(Vec::new()),
            Subject::Steering => Command::RemoveSteering,
            Subject::Connection(host, peer, peer_qpn) => Command::RemoveConnection { host, peer, peer_qpn },
        }
    }
}

fn by_subject(configuration: &Configuration) -> BTreeMap<Subject, &Command> {
    configuration.commands.iter().filter_map(|command| Some((Subject::of(command)?, command))).collect()
}

/// Whether the second of two commands about one subject can replace the first as it stands. A group with another Proxy
/// Address is another group: two groups may have exchanged theirs.
fn keeps_its_place(before: &Command, after: &Command) -> bool {
    match (before, after) {
        (Command::AddGroup(before), Command::AddGroup(after)) => before.proxy == after.proxy,
        // A new domain may be where an old border had its hosts.
        (Command::SetDomain(_) | Command::SetBorder { .. } | Command::SetLearning(_), _) => is_same(before, after),
        _ => true,
    }
}

/// That whoever changes the members or the tree of a group raises its epoch: words of before and after are told apart
/// by it. A group from another initial PSN, or at another Proxy Address, is another group and begins anew (D28).
fn check_epoch(before: &Command, after: &Command) -> Result<(), CannotFollow> {
    let (Command::AddGroup(before), Command::AddGroup(after)) = (before, after) else {
        return Ok(());
    };
    let members = |entry: &GroupEntry| (entry.branches.clone(), entry.receivers.clone(), entry.parent, entry.renewed);
    let group = before.id.0;
    if (before.proxy, before.initial_psn) != (after.proxy, after.initial_psn) {
        Ok(())
    } else if after.epoch < before.epoch {
        Err(CannotFollow::OlderEpoch { group, before: before.epoch, after: after.epoch })
    } else if after.epoch == before.epoch && members(before) != members(after) {
        Err(CannotFollow::SameEpoch { group, epoch: before.epoch })
    } else {
        Ok(())
    }
}

/// Whether two commands about one subject say the same.
fn is_same(before: &Command, after: &Command) -> bool {
    match (before, after) {
        (Command::AddNeighbour { mac: before, .. }, Command::AddNeighbour { mac: after, .. }) => before == after,
        (Command::AddRoute { action: before, .. }, Command::AddRoute { action: after, .. }) => before == after,
        (Command::AddSid { behavior: before, .. }, Command::AddSid { behavior: after, .. }) => before == after,
        (Command::AddMulticastRoute(before), Command::AddMulticastRoute(after)) => before == after,
        (Command::AddGroup(before), Command::AddGroup(after)) => before == after,
        (Command::SetDomain(before), Command::SetDomain(after)) => before == after,
        (Command::SetLearning(before), Command::SetLearning(after)) => before == after,
        (Command::SetBorder { sources: before, .. }, Command::SetBorder { sources: after, .. }) => before == after,
        (Command::SetEgress { egress: before, .. }, Command::SetEgress { egress: after, .. }) => before == after,
        (Command::SetClasses(before), Command::SetClasses(after)) => before == after,
        (Command::SetIoam(before), Command::SetIoam(after)) => before == after,
        (Command::SetFastCnp(before), Command::SetFastCnp(after)) => before == after,
        (Command::SetNotifications(before), Command::SetNotifications(after)) => before == after,
        (Command::SetNotificationSids(before), Command::SetNotificationSids(after)) => before == after,
        (Command::SetSteering(before), Command::SetSteering(after)) => before == after,
        (Command::AddConnection(before), Command::AddConnection(after)) => before == after,
        // Keys are kept ready for use and cannot be compared; told again, they change nothing.
        _ => false,
    }
}

/// That the node's own settings are the same. `restarted` says only how it begins.
fn check_node(old: &NodeConfig, new: &NodeConfig) -> Result<(), CannotFollow> {
    let same = [
        (old.loopback == new.loopback, "loopback"),
        (old.icrc == new.icrc, "icrc"),
        (old.verify_icrc == new.verify_icrc, "verify_icrc"),
        (old.require_hmac == new.require_hmac, "require_hmac"),
        (old.end_mt_cover == new.end_mt_cover, "end_mt_cover"),
        (old.icmp_errors_per_second == new.icmp_errors_per_second, "icmp_errors_per_second"),
        (old.replication_hop_limit == new.replication_hop_limit, "replication_hop_limit"),
        (old.require_hmac == new.require_hmac, "require_hmac"),
        (old.tlv_types.end_mt == new.tlv_types.end_mt, "end_mt_tlv_type"),
        (old.tlv_types.mr == new.tlv_types.mr, "mr_tlv_type"),
        (old.fast_cnp_types.address() == new.fast_cnp_types.address(), "fast_cnp_address_type"),
        (old.fast_cnp_types.trace() == new.fast_cnp_types.trace(), "fast_cnp_trace_type"),
        (old.marking_seed == new.marking_seed, "marking_seed"),
    ];
    match same.iter().find(|(is_same, _)| !is_same) {
        Some((_, key)) => Err(CannotFollow::Restart(format!("{key} of [node]"))),
        None => Ok(()),
    }
}

/// Ports are numbered as they come in the file, and are never taken away: new ones stand at its end. What is said of
/// their links comes from whoever follows these.
fn ports(old: &Configuration, new: &Configuration) -> Result<(Vec<Command>, Vec<PortId>), CannotFollow> {
    let (mut commands, mut moved) = (Vec::new(), Vec::new());
    for (index, port) in old.node.ports.iter().enumerate() {
        let Some(next) = new.node.ports.get(index).filter(|next| next.name == port.name) else {
            return Err(CannotFollow::Restart(format!("the place of port {} among the ports", port.name)));
        };
        if port.queue_limit_octets != next.queue_limit_octets {
            return Err(CannotFollow::Restart(format!("queue_limit_octets of port {}", port.name)));
        }
        let place = |configuration: &Configuration| {
            let interface = configuration.interfaces.get(index)?;
            Some((interface.name.clone(), interface.driver, interface.pace_bits_per_s))
        };
        if place(old) != place(new) {
            moved.push(PortId(index as u16));
        }
    }
    for (index, port) in new.node.ports.iter().enumerate().skip(old.node.ports.len()) {
        commands.push(Command::AddPort(port.clone()));
        moved.push(PortId(index as u16));
    }
    Ok((commands, moved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const BASE: &str = "\
[node]
loopback = '2001:db8:ff:1::1'
[[port]]
name = 'p'
mac = '02:00:00:00:00:01'
[[neighbour]]
address = 'fe80::2%p'
mac = '02:00:00:00:00:02'
[[route]]
prefix = '2001:db8:bb::/64'
via = ['fe80::2%p']
[[sid]]
sid = '2001:db8:ff:1::e'
behavior = 'End.MT'
";

    fn group(id: u32, proxy: u32, receiver: u32) -> String {
        format!(
            "[[group]]\nid = {id}\nproxy = '2001:db8:cc::{proxy}'\ndesignated_qpn = {}\ninitial_psn = 0\n\
             role = 'edge'\nsid = '2001:db8:ff:1::e'\nparent = {{ loopback = '2001:db8:bb::1' }}\n\
             receiver = [{{ address = '2001:db8:bb::{receiver}', qpn = 3{id} }}]\n",
            16 + id
        )
    }

    fn configuration(text: &str) -> Configuration {
        Configuration::parse(Path::new("node.toml"), text).expect("right")
    }

    /// The commands between two files, which a node of the first takes.
    #[track_caller]
    fn commands(old: &str, new: &str) -> Vec<String> {
        let (old, new) = (configuration(old), configuration(new));
        let changes = changes(&old, &new).expect("possible");
        let mut node = old.node().expect("right");
        changes.commands.iter().for_each(|command| node.control(command.clone()).expect("taken"));
        let name = |command: &Command| match command {
            Command::AddGroup(entry) => format!("AddGroup {}", entry.id.0),
            Command::RemoveGroup(id) => format!("RemoveGroup {}", id.0),
            Command::AddNeighbour { next_hop, .. } => format!("AddNeighbour {}", next_hop.address),
            Command::RemoveNeighbour(next_hop) => format!("RemoveNeighbour {}", next_hop.address),
            Command::AddRoute { prefix, .. } => format!("AddRoute {prefix}"),
            Command::RemoveRoute { prefix, .. } => format!("RemoveRoute {prefix}"),
            Command::AddSid { prefix, .. } => format!("AddSid {prefix}"),
            Command::RemoveSid(prefix) => format!("RemoveSid {prefix}"),
            Command::AddMulticastRoute(route) => format!("AddMulticastRoute {}", route.group),
            Command::RemoveMulticastRoute { group, .. } => format!("RemoveMulticastRoute {group}"),
            Command::AddHmacKey { key_id, .. } => format!("AddHmacKey {key_id}"),
            Command::RemoveHmacKey(key_id) => format!("RemoveHmacKey {key_id}"),
            Command::AddPort(port) => format!("AddPort {}", port.name),
            Command::SetPort { link_mtu, .. } => format!("SetPort {link_mtu}"),
            Command::SetDomain(_) => "SetDomain".to_owned(),
            Command::RemoveDomain => "RemoveDomain".to_owned(),
            Command::SetBorder { port, .. } => format!("SetBorder {}", port.0),
            Command::RemoveBorder(port) => format!("RemoveBorder {}", port.0),
            Command::SetEgress { port, .. } => format!("SetEgress {}", port.0),
            Command::RemoveEgress(port) => format!("RemoveEgress {}", port.0),
            Command::SetClasses(_) => "SetClasses".to_owned(),
            Command::SetIoam(_) => "SetIoam".to_owned(),
            Command::RemoveIoam => "RemoveIoam".to_owned(),
            Command::SetFastCnp(_) => "SetFastCnp".to_owned(),
            Command::RemoveFastCnp => "RemoveFastCnp".to_owned(),
            Command::SetNotifications(_) => "SetNotifications".to_owned(),
            Command::RemoveNotifications => "RemoveNotifications".to_owned(),
            Command::SetNotificationSids(sids) => format!("SetNotificationSids {}", sids.len()),
            Command::SetSteering(_) => "SetSteering".to_owned(),
            Command::RemoveSteering => "RemoveSteering".to_owned(),
            Command::AddConnection(connection) => format!("AddConnection {}", connection.host),
            Command::RemoveConnection { host, .. } => format!("RemoveConnection {host}"),
            Command::RestoreGroup(entry) => format!("RestoreGroup {}", entry.id.0),
            Command::PrepareGroup(entry) => format!("PrepareGroup {}", entry.id.0),
            Command::CommitGroup { id, epoch } => format!("CommitGroup {} {epoch}", id.0),
            Command::AbortGroup(id) => format!("AbortGroup {}", id.0),
            Command::SetLearning(_) => "SetLearning".to_owned(),
            Command::RemoveLearning => "RemoveLearning".to_owned(),
        };
        changes.commands.iter().map(name).collect()
    }

    fn refused(from: &str, to: &str) -> String {
        let new = configuration(&BASE.replace(from, to));
        changes(&configuration(BASE), &new).expect_err("not possible").to_string()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn what_is_the_same_is_not_touched() {
        let one = format!("{BASE}{}", group(1, 1, 2));
        assert_eq!(commands(&one, &one), NOTHING);
        let two = format!("{one}{}", group(2, 2, 2));
        assert_eq!(commands(&one, &two), ["AddGroup 2"]);
        assert_eq!(commands(&two, &one), ["RemoveGroup 2"]);
        let other_receiver = format!("{BASE}{}epoch = 1\n", group(1, 1, 3));
        assert_eq!(commands(&one, &other_receiver), ["AddGroup 1"]);
    }

    /// D30: an operator who forgets the epoch is told so, and the group goes on as it was.
    #[test]
    fn another_membership_has_another_epoch() {
        let refused = |old: &str, new: &str| changes(&configuration(old), &configuration(new)).unwrap_err().to_string();
        let (one, other) = (format!("{BASE}{}", group(1, 1, 2)), format!("{BASE}{}", group(1, 1, 3)));
        let message = "group 1 has changed, but its epoch is still 0: each change of membership raises the epoch (D30)";
        assert_eq!(refused(&one, &other), message);
        let message = "the epoch of group 1 goes back from 4 to 3: it only rises (D30)";
        assert_eq!(refused(&format!("{one}epoch = 4\n"), &format!("{one}epoch = 3\n")), message);
        let policy = format!("{one}policy = {{ t_hold = '30us' }}\n");
        assert_eq!(commands(&one, &policy), ["AddGroup 1"]);
    }

    #[test]
    fn an_address_may_get_another_meaning() {
        let swapped = |one, other| format!("{BASE}{}{}", group(1, one, 2), group(2, other, 2));
        let exchange = ["RemoveGroup 1", "RemoveGroup 2", "AddGroup 1", "AddGroup 2"];
        assert_eq!(commands(&swapped(1, 2), &swapped(2, 1)), exchange);
        let route = "[[route]]\nprefix = '2001:db8:cc::1'\nblackhole = true\n";
        let as_route = format!("{BASE}{route}");
        let as_sid = format!("{BASE}[[sid]]\nsid = '2001:db8:cc::1'\nbehavior = 'End'\n");
        assert_eq!(commands(&as_route, &as_sid), ["RemoveRoute 2001:db8:cc::1/128", "AddSid 2001:db8:cc::1/128"]);
        let as_proxy = format!("{BASE}{}", group(1, 1, 2));
        assert_eq!(commands(&as_sid, &as_proxy), ["RemoveSid 2001:db8:cc::1/128", "AddGroup 1"]);
        assert_eq!(commands(&as_proxy, &as_route), ["RemoveGroup 1", "AddRoute 2001:db8:cc::1/128"]);
    }

    #[test]
    fn neighbours_and_ports_follow() {
        let other_mac = BASE.replace("00:02'", "00:03'");
        assert_eq!(commands(BASE, &other_mac), ["AddNeighbour fe80::2"]);
        let port = BASE.replace("[[neighbour]]", "[[port]]\nname = 'q'\nmac = '02:00:00:00:00:09'\n[[neighbour]]");
        assert_eq!(commands(BASE, &port), ["AddPort q"]);
        let moved = BASE.replace("name = 'p'", "name = 'p'\ninterface = 'eth9'\nlink_mtu = 4200");
        let changes = changes(&configuration(BASE), &configuration(&moved)).expect("possible");
        assert_eq!(changes.moved, [PortId(0)]);
    }

    #[test]
    fn a_key_goes_when_nobody_signs_with_it() {
        let key = format!("{BASE}[[hmac_key]]\nid = 4\nkey = '0011223344556677'\n");
        assert_eq!(commands(&key, BASE), ["RemoveHmacKey 4"]);
        assert_eq!(commands(BASE, &key), ["AddHmacKey 4"]);
    }

    /// The three files of a rotation, and all of it at once: the new key is there before anything is signed with it,
    /// the old one goes when nothing is any more.
    #[test]
    fn a_key_is_rotated() {
        let key = |id: u32| format!("[[hmac_key]]\nid = {id}\nkey = '001122334455660{id}'\n");
        let signing = |id: u32| {
            let route = "prefix = '2001:db8:dd::/64'\nencaps = { segments = ['2001:db8:bb::1', '2001:db8:bb::2']";
            format!("{BASE}[[route]]\n{route}, hmac_key_id = {id} }}\n")
        };
        let (old, both) = (format!("{}{}", signing(4), key(4)), format!("{}{}{}", signing(4), key(4), key(5)));
        let switched = format!("{}{}{}", signing(5), key(4), key(5));
        let new = format!("{}{}", signing(5), key(5));
        assert_eq!(commands(&old, &both), ["AddHmacKey 4", "AddHmacKey 5"]);
        assert_eq!(commands(&both, &switched), ["AddHmacKey 4", "AddHmacKey 5", "AddRoute 2001:db8:dd::/64"]);
        assert_eq!(commands(&switched, &new), ["AddHmacKey 5", "RemoveHmacKey 4"]);
        assert_eq!(commands(&old, &new), ["AddHmacKey 5", "AddRoute 2001:db8:dd::/64", "RemoveHmacKey 4"]);
    }

    #[test]
    fn the_boundary_follows() {
        let domain = |nodes: &str, hosts: &str| {
            format!(
                "{BASE}[domain]\nsids = ['2001:db8:ff::/48']\ninfrastructure = ['2001:db8:ff::/48', '{nodes}']\n\
                 [[border]]\nport = 'p'\nsources = ['{hosts}']\n"
            )
        };
        let (one, other) = (domain("2001:db8:a::/48", "2001:db8:b::/64"), domain("2001:db8:b::/48", "2001:db8:a::/64"));
        assert_eq!(commands(&one, &one), NOTHING);
        assert_eq!(commands(BASE, &one), ["SetDomain", "SetBorder 0"]);
        assert_eq!(commands(&one, BASE), ["RemoveBorder 0", "RemoveDomain"]);
        assert_eq!(commands(&one, &other), ["RemoveBorder 0", "RemoveDomain", "SetDomain", "SetBorder 0"]);
    }

    /// D48: connections go before what they are of use to, and come behind it.
    #[test]
    fn congestion_follows_the_file() {
        let class = |more: &str| {
            format!(
                "{BASE}[[traffic_class]]\nclass = 3\ndscps = [26]\n[[egress]]\nport = 'p'\n\
                 rate_bits_per_s = 1000\nclass = [{{ class = 3, {more} }}]\n"
            )
        };
        let fast_cnp = |more: &str, peer_qpn: u32| {
            format!(
                "{}[fast_cnp]\nsenders = ['2001:db8:a::/48']\ntranslated = ['2001:db8:bb::/64']\n{more}[[connection]]\n\
                 host = '2001:db8:bb::2'\nhost_qpn = 5\npeer = '2001:db8:a::1'\npeer_qpn = {peer_qpn}\n",
                class("notify_octets = 1")
            )
        };
        let traces = |id: u8| {
            let interface = "interface = [{ port = 'p', fills = true }]\n";
            format!("{BASE}[ioam]\nnode_id = {id}\nnamespace = [{{ id = 0 }}]\n{interface}")
        };
        let (plain, on) = (class("notify_octets = 1"), fast_cnp("", 6));
        for same in [&plain, &on, &traces(1)] {
            assert_eq!(commands(same, same), NOTHING);
        }
        assert_eq!(commands(BASE, &plain), ["SetClasses", "SetEgress 0"]);
        assert_eq!(commands(&plain, &class("notify_octets = 2")), ["SetEgress 0"]);
        assert_eq!(commands(&plain, BASE), ["RemoveEgress 0", "SetClasses"]);
        assert_eq!(commands(&plain, &on), ["SetFastCnp", "AddConnection 2001:db8:bb::2"]);
        assert_eq!(commands(&on, &fast_cnp("at_once = 7\n", 6)), ["SetFastCnp"]);
        let other_peer = ["RemoveConnection 2001:db8:bb::2", "AddConnection 2001:db8:bb::2"];
        assert_eq!(commands(&on, &fast_cnp("", 7)), other_peer);
        assert_eq!(commands(&on, &plain), ["RemoveConnection 2001:db8:bb::2", "RemoveFastCnp"]);
        assert_eq!(commands(BASE, &traces(1)), ["SetIoam"]);
        assert_eq!(commands(&traces(1), &traces(2)), ["SetIoam"]);
        assert_eq!(commands(&traces(1), BASE), ["RemoveIoam"]);
        let types = "fast_cnp_trace_type of [node] cannot change while the node runs: restart it";
        assert_eq!(refused("[node]", "[node]\nfast_cnp_trace_type = 0x9f"), types);
        let paced = plain.replace("rate_bits_per_s = 1000", "rate_bits_per_s = 1000\npaced = true");
        let changes = changes(&configuration(&plain), &configuration(&paced)).expect("possible");
        assert_eq!((changes.commands.len(), changes.moved), (0, vec![PortId(0)]));
    }

    /// Notifications name ports with PFC: they go before those do, and come behind them.
    #[test]
    fn notifications_follow_the_file() {
        let class = "[[traffic_class]]\nclass = 3\ndscps = [26]\n[[egress]]\nport = 'p'\nrate_bits_per_s = 1000\n\
                     class = [{ class = 3, pfc = { xoff_octets = 9, xon_octets = 5, headroom_octets = 9 } }]\n";
        let on = |hold: &str| {
            let priority = "priority = [{ traffic_class = 3, ports = ['p'], priority = 3 }]";
            format!("{BASE}{class}[notifications]\nhold = '{hold}'\n{priority}\n")
        };
        let sids = |end_c: u8| {
            format!("{BASE}[[notification_sids]]\nouter_source = '2001:db8::1/128'\nend_c = '5f00::{end_c}'\n")
        };
        let off = format!("{BASE}{class}");
        for same in [&on("1ms"), &sids(1)] {
            assert_eq!(commands(same, same), NOTHING);
        }
        assert_eq!(commands(&off, &on("1ms")), ["SetNotifications"]);
        assert_eq!(commands(&on("1ms"), &on("2ms")), ["SetNotifications"]);
        assert_eq!(commands(&on("1ms"), BASE), ["RemoveNotifications", "RemoveEgress 0", "SetClasses"]);
        assert_eq!(commands(BASE, &sids(1)), ["SetNotificationSids 1"]);
        assert_eq!(commands(&sids(1), &sids(2)), ["SetNotificationSids 1"]);
        assert_eq!(commands(&sids(1), BASE), ["SetNotificationSids 0"]);
    }

    /// Settings that change are removed first: the new domain may not hold the old Proxy Addresses.
    #[test]
    fn learning_follows_the_file() {
        let learning = |proxies: &str| {
            format!("{BASE}[learning]\nproxies = ['{proxies}']\nparent = {{ loopback = '2001:db8:bb::1' }}\n")
        };
        let (one, other) = (learning("2001:db8:c1::/48"), learning("2001:db8:c2::/48"));
        assert_eq!(commands(&one, &one), NOTHING);
        assert_eq!(commands(BASE, &one), ["SetLearning"]);
        assert_eq!(commands(&one, &other), ["RemoveLearning", "SetLearning"]);
        assert_eq!(commands(&one, BASE), ["RemoveLearning"]);
    }

    #[test]
    fn what_a_node_is_made_with_stays() {
        let of_node = "verify_icrc of [node] cannot change while the node runs: restart it";
        assert_eq!(refused("[node]", "[node]\nverify_icrc = true"), of_node);
        let port = "the place of port p among the ports cannot change while the node runs: restart it";
        let second = "[[port]]\nname = 'q'\nmac = '02:00:00:00:00:07'\n[[port]]\nname = 'p'";
        assert_eq!(refused("[[port]]\nname = 'p'", second), port);
        let daemon = "[daemon] cannot change while the node runs: restart it";
        assert_eq!(refused("[[neighbour]]", "[daemon]\ncpu = 1\n[[neighbour]]"), daemon);
    }
}
