//! Taking a snapshot of a node.

use super::{
    BranchSnapshot, ConfigurationSnapshot, ControllerSnapshot, DriverSnapshot, GroupSnapshot, PortSnapshot, Role,
    SharedHostsSnapshot, SidSnapshot, Snapshot, VlanSnapshot, backups, bfd, congestion, repair, steering,
};
use crate::process::by_name;
use srdma_aggregation::BranchIndex;
use srdma_dataplane::{EncapsMode, FIRST_LEARNT_GROUP, Flavors, Node, SidBehavior};
use srdma_frame::PortId;
use srdma_group::{GroupId, NodeRole, Parent};
use srdma_io::{DriverKind, DriverStatistics};

/// State of the process around a node, which the node does not have.
#[derive(Clone, Debug)]
pub struct DaemonState {
    /// The node's name.
    pub name: String,
    /// Start of the process, in seconds since 1970.
    pub started_unix_s: u64,
    /// Time since the start, in nanoseconds.
    pub uptime_ns: u64,
    /// The ports, in the order of the node's.
    pub ports: Vec<PortState>,
    /// Its controller, if it has one.
    pub controller: Option<ControllerSnapshot>,
    /// The applied configuration.
    pub configuration: ConfigurationSnapshot,
    /// Log lines that the process has dropped.
    pub dropped_log_lines: u64,
}

/// State of a port in the process.
#[derive(Clone, Debug)]
pub struct PortState {
    /// The port's interface.
    pub interface: String,
    /// Its driver; `None` while the interface is gone.
    pub driver: Option<DriverKind>,
    /// Reason for a slower driver than configured, or none.
    pub note: Option<String>,
    /// Whether the link is up.
    pub is_up: bool,
    /// Counters of the port's drivers.
    pub statistics: DriverStatistics,
}

impl Snapshot {
    /// The state of a node and of the process around it, without IS-IS. Stalls are zero: a
    /// [`StallWatch`](crate::daemon::StallWatch) counts them over successive snapshots.
    pub fn of(node: &Node, daemon: &DaemonState) -> Self {
        let config = node.config();
        let ports = (0..).zip(&config.ports).zip(&daemon.ports).filter_map(|((id, port), state)| {
            let counters = node.port_counters(PortId(id))?;
            Some(PortSnapshot {
                name: port.name.clone(),
                interface: state.interface.clone(),
                driver: state.driver.map(|driver| driver.to_string()),
                note: state.note.clone(),
                is_up: state.is_up,
                vlan: port
                    .vlan
                    .map(|vlan| VlanSnapshot { parent: config.ports[vlan.parent.index()].name.clone(), id: vlan.id }),
                mac: port.mac.to_string(),
                link_mtu: port.link_mtu,
                received: counters.received.into(),
                enqueued: counters.enqueued.into(),
                sent: node.sent(PortId(id))?.into(),
                drops: by_name(&counters.drops),
                statistics: state.statistics.into(),
                fast_path: None,
                classes: congestion::classes(node, PortId(id)),
            })
        });
        let sids = node.sids().map(|(sid, behavior, processed)| SidSnapshot {
            sid: sid.to_string(),
            behavior: behavior_name(behavior).to_owned(),
            processed: processed.into(),
        });
        let shared_hosts = node.shared_hosts().map(|(of, passed_on, from_peer)| SharedHostsSnapshot {
            hosts: of.hosts.to_string(),
            peer: of.peer,
            passed_on: passed_on.into(),
            from_peer: from_peer.into(),
        });
        Snapshot {
            name: daemon.name.clone(),
            loopback: config.loopback,
            started_unix_s: daemon.started_unix_s,
            uptime_ns: daemon.uptime_ns,
            ports: ports.collect(),
            sids: sids.collect(),
            shared_hosts: shared_hosts.collect(),
            own_drops: by_name(node.own_drops()),
            groups: node.owned_groups().filter_map(|id| group(node, id)).collect(),
            prefixes: node.prefix_count(),
            neighbours: node.neighbour_count(),
            fast_cnp: congestion::fast_cnp(node),
            backpressure: congestion::backpressure(node),
            traces: congestion::traces(node),
            steering: steering::of(node),
            bfd: bfd::of(node),
            backups: backups::of(node),
            repair_memory: repair::memory(node),
            isis: None,
            ospf: None,
            controller: daemon.controller.clone(),
            configuration: daemon.configuration.clone(),
            workers: Vec::new(),
            dropped_log_lines: daemon.dropped_log_lines,
        }
    }
}

fn group(node: &Node, id: GroupId) -> Option<GroupSnapshot> {
    let (entry, counters, state) = (node.group_entry(id)?, node.group_counters(id)?, node.acknowledgements(id)?);
    let (parent, is_root) = match entry.parent {
        Parent::Source(source) => (source.address, true),
        Parent::Node { loopback, .. } => (loopback, false),
    };
    let role = match (entry.role, &entry.headend) {
        (NodeRole::Edge, _) => Role::Edge,
        (NodeRole::Transit, None) => Role::Transit,
        (NodeRole::Bud, None) => Role::Bud,
        (NodeRole::Transit | NodeRole::Bud, Some(_)) => Role::Headend,
    };
    let branches = (0..).map(BranchIndex).zip(&entry.branches).map(|(index, branch)| BranchSnapshot {
        address: branch.responder,
        expected_psn: state.expected_psn(index).map(|psn| psn.get()),
        lag: state.lag(index),
        stalls: 0,
        cnps: node.branch_cnps(id, index).unwrap_or(0),
        repair: repair::of_branch(node, id, index),
    });
    Some(GroupSnapshot {
        id: id.0,
        epoch: entry.epoch,
        role,
        is_learnt: id >= FIRST_LEARNT_GROUP,
        proxy: entry.proxy,
        parent,
        is_root,
        highest_psn: state.highest_psn().map(|psn| psn.get()),
        awaits_first_psn: node.awaits_first_psn(id),
        repair: repair::of_group(node, id),
        counters: counters.into(),
        eviction_requests: 0,
        to_evict: Vec::new(),
        branches: branches.collect(),
    })
}

/// A behaviour as `node.toml` names it.
fn behavior_name(behavior: SidBehavior) -> &'static str {
    match behavior {
        SidBehavior::End(flavors) if is_micro(flavors) => "uN",
        SidBehavior::End(_) => "End",
        SidBehavior::EndX(flavors, _) if is_micro(flavors) => "uA",
        SidBehavior::EndX(..) => "End.X",
        SidBehavior::EndDt6(_) => "End.DT6",
        SidBehavior::EndDt4(_) => "End.DT4",
        SidBehavior::EndDt46(_) => "End.DT46",
        SidBehavior::EndDx4 { .. } => "End.DX4",
        SidBehavior::EndDx6 { .. } => "End.DX6",
        SidBehavior::EndDx2(_) => "End.DX2",
        SidBehavior::EndB6Encaps { mode: EncapsMode::Encaps, .. } => "End.B6.Encaps",
        SidBehavior::EndB6Encaps { mode: EncapsMode::Reduced, .. } => "End.B6.Encaps.Red",
        SidBehavior::EndC => "END.C",
        SidBehavior::EndE(_) => "END.E",
        SidBehavior::EndReplicate(_) => "End.Replicate",
        SidBehavior::EndMt { .. } => "End.MT",
    }
}

/// Whether these are the flavors of uN and uA, of any division into block and compressed SID.
fn is_micro(flavors: Flavors) -> bool {
    flavors.next_csid.is_some() && Flavors { next_csid: Flavors::MICRO.next_csid, ..flavors } == Flavors::MICRO
}

impl From<DriverStatistics> for DriverSnapshot {
    fn from(statistics: DriverStatistics) -> Self {
        let DriverStatistics { received, sent, receive_overruns, too_long, send_errors } = statistics;
        DriverSnapshot { received, sent, receive_overruns, too_long, send_errors }
    }
}
