//! Status of the node, as sent to the controller.

use crate::configuration::{ControllerLink, ControllerSettings, HostLinks};
use crate::daemon::snapshot::{GroupSnapshot, PortSnapshot, RepairSnapshot, Snapshot};
use srdma_api::{BranchStatus, GroupRepairStatus, GroupStatus, NodeStatus, PortStatus};
use srdma_frame::PortId;
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The status in a snapshot; of groups, only those of the controller.
pub(in crate::daemon) fn status_of(
    snapshot: &Snapshot,
    settings: &ControllerSettings,
    host_links: &[HostLinks],
    is_of_controller: impl Fn(u32) -> bool,
) -> NodeStatus {
    let port = |(index, port): (usize, &PortSnapshot)| PortStatus {
        name: port.name.clone(),
        to: settings.links.iter().find(|link| link.port.is_some_and(|id| id.index() == index)).map(|link| link.to),
        is_up: port.is_up && port.driver.is_some(),
        received_octets: port.received.octets,
        sent_octets: port.sent.octets,
    };
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in snapshot.ports.iter().flat_map(|port| &port.drops).chain(&snapshot.own_drops) {
        *drops.entry(reason.clone()).or_default() += count;
    }
    let steered = snapshot.steering.iter().flat_map(|steering| &steering.flows);
    NodeStatus {
        ports: snapshot.ports.iter().enumerate().map(port).collect(),
        groups: snapshot.groups.iter().filter(|group| is_of_controller(group.id)).map(group).collect(),
        drops,
        programs: steered.map(|flow| format!("{} {}", flow.destination, flow.path)).collect(),
        unreachable: unreachable(snapshot, settings),
        lost_hosts: lost_hosts(&snapshot.ports.iter().map(|port| port.is_up).collect::<Vec<_>>(), host_links),
    }
}

/// The hosts of which no port has its link (D282). `is_up`: of each port.
pub(in crate::daemon) fn lost_hosts(is_up: &[bool], host_links: &[HostLinks]) -> Vec<Prefix> {
    let has_link = |port: &PortId| is_up.get(port.index()) == Some(&true);
    let lost = host_links.iter().filter(|links| !links.ports.iter().any(has_link));
    lost.map(|links| links.hosts).collect()
}

/// The neighbours by links of the controller whose session was up and is down. One that was never up, or is disabled,
/// is no hint.
fn unreachable(snapshot: &Snapshot, settings: &ControllerSettings) -> Vec<Ipv6Addr> {
    let lost = snapshot.bfd.iter().filter(|session| session.is_lost).filter_map(|session| {
        let is_port = |port: &PortSnapshot| session.port.as_ref() == Some(&port.name);
        match &session.port {
            Some(_) => neighbour_of(Some(snapshot.ports.iter().position(is_port)?), session.peer, settings),
            None => neighbour_of(None, session.peer, settings),
        }
    });
    lost.collect()
}

/// The neighbour at a link of the controller that a BFD session shows: by the session's port, or by its peer's loopback
/// over several hops.
pub(in crate::daemon) fn neighbour_of(
    port: Option<usize>,
    peer: Ipv6Addr,
    settings: &ControllerSettings,
) -> Option<Ipv6Addr> {
    let is_it = |link: &&ControllerLink| match port {
        Some(port) => link.port.is_some_and(|id| id.index() == port),
        None => link.to == peer,
    };
    settings.links.iter().find(is_it).map(|link| link.to)
}

fn group(group: &GroupSnapshot) -> GroupStatus {
    let branches = group.branches.iter().map(|branch| BranchStatus {
        address: branch.address,
        expected_psn: branch.expected_psn,
        lag: branch.lag,
        cnps: branch.cnps,
        packets_resent: branch.repair.map(|repair| repair.packets_resent),
        is_repairing: branch.repair.is_some_and(|repair| repair.is_repairing),
    });
    GroupStatus {
        group: group.id,
        highest_psn: group.highest_psn,
        awaits_first_psn: group.awaits_first_psn,
        repair: group.repair.as_ref().map(repair),
        branches: branches.collect(),
    }
}

fn repair(repair: &RepairSnapshot) -> GroupRepairStatus {
    let counter = |name: &str| repair.counters.get(name).copied().unwrap_or(0);
    GroupRepairStatus {
        lacks_memory: repair.lacks_memory,
        packets_resent: counter("packets_resent"),
        requests_sent: counter("requests_sent"),
        gaps_given_up: counter("gaps_given_up"),
        windows_exceeded: counter("windows_exceeded"),
        kept: repair.kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{Configuration, Purpose};
    use crate::daemon::snapshot::{BfdSnapshot, ConfigurationSnapshot, DaemonState, PortState};
    use srdma_io::DriverStatistics;
    use std::path::Path;

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    /// A node of two ports with these sessions.
    fn snapshot(bfd: Vec<BfdSnapshot>) -> Snapshot {
        let text = "[node]\nloopback = '2001:db8::1'\n[[port]]\nname = 'p0'\n[[port]]\nname = 'p1'\n";
        let configuration =
            Configuration::parse_for(Path::new("node.toml"), text, Purpose::Interfaces(&BTreeMap::new()));
        let configuration = configuration.unwrap();
        let port = |interface: &str| PortState {
            interface: interface.to_owned(),
            driver: None,
            note: None,
            is_up: true,
            statistics: DriverStatistics::default(),
        };
        let daemon = DaemonState {
            name: "N1".to_owned(),
            started_unix_s: 0,
            uptime_ns: 0,
            ports: vec![port("p0"), port("p1")],
            controller: None,
            configuration: ConfigurationSnapshot { generation: 1, last_reload: None },
            dropped_log_lines: 0,
        };
        Snapshot { bfd, ..Snapshot::of(&configuration.node().unwrap(), &daemon) }
    }

    fn session(peer: &str, port: Option<&str>, is_lost: bool) -> BfdSnapshot {
        BfdSnapshot {
            peer: address(peer),
            port: port.map(str::to_owned),
            local: address("fe80::1"),
            state: if is_lost { "down" } else { "up" }.to_owned(),
            remote_state: "down".to_owned(),
            diagnostic: "none".to_owned(),
            discriminator: 7,
            remote_discriminator: None,
            interval_ns: None,
            detection_time_ns: None,
            downs: u64::from(is_lost),
            is_lost,
        }
    }

    /// D111: the neighbour at the port of a lost session, or at its peer's loopback over several hops; others are not
    /// named.
    #[test]
    fn neighbours_of_lost_sessions_are_named() {
        let link = |to: &str, port| ControllerLink { to: address(to), port, mtu: None, cost: 1 };
        let links = vec![
            link("2001:db8::10", Some(PortId(0))),
            link("2001:db8::11", Some(PortId(1))),
            link("2001:db8::12", None),
        ];
        let settings = ControllerSettings {
            url: "http://[::1]:8470".to_owned(),
            token_file: None,
            ca_file: None,
            name: "N1".to_owned(),
            end_mt: None,
            replication: None,
            links,
            hosts: Vec::new(),
        };
        let named = |bfd| status_of(&snapshot(bfd), &settings, &[], |_| true).unreachable;
        let sessions = |lost: [bool; 4]| {
            vec![
                session("fe80::10", Some("p0"), lost[0]),
                session("fe80::11", Some("p1"), lost[1]),
                session("2001:db8::12", None, lost[2]),
                session("2001:db8::99", None, lost[3]),
            ]
        };
        assert_eq!(named(sessions([false; 4])), [Ipv6Addr::UNSPECIFIED; 0]);
        assert_eq!(named(sessions([true, false, false, true])), [address("2001:db8::10")]);
        assert_eq!(named(sessions([false, true, true, false])), [address("2001:db8::11"), address("2001:db8::12")]);
    }

    /// D282: hosts are lost when the last of their ports has lost its link.
    #[test]
    fn hosts_without_a_link_are_named() {
        let prefix = |text: &str| text.parse::<Prefix>().unwrap();
        let links = |hosts: &str, ports: &[u16]| HostLinks {
            hosts: prefix(hosts),
            ports: ports.iter().copied().map(PortId).collect(),
        };
        let all =
            [links("2001:db8:d0::/64", &[0]), links("2001:db8:d1::/64", &[0, 1]), links("2001:db8:d2::1/128", &[1])];
        let named = |is_up: [bool; 2]| lost_hosts(&is_up, &all);
        assert_eq!(named([true, true]), []);
        assert_eq!(named([false, true]), [prefix("2001:db8:d0::/64")]);
        assert_eq!(named([true, false]), [prefix("2001:db8:d2::1/128")]);
        assert_eq!(named([false, false]), all.map(|links| links.hosts));
    }
}
