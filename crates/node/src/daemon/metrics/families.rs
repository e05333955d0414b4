//! Names of the metrics, and their values in a snapshot.

mod bfd;
mod congestion;
mod fast_path;
mod isis;
mod ospf;
mod repair;
mod steering;
mod workers;

use crate::daemon::{BranchSnapshot, DriverSnapshot, GroupSnapshot, PortSnapshot, SharedHostsSnapshot, Snapshot};
use crate::process::TrafficReport;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Unit;
use srdma_dataplane::DropReason;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A snapshot that can be encoded.
#[derive(Debug)]
pub(super) struct Families(pub(super) Arc<Snapshot>);

impl Collector for Families {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out { encoder };
        node(&mut out, &self.0)?;
        ports(&mut out, &self.0.ports)?;
        drivers(&mut out, &self.0.ports)?;
        fast_path::families(&mut out, &self.0.ports)?;
        congestion::classes(&mut out, &self.0.ports)?;
        congestion::pauses(&mut out, &self.0.ports)?;
        congestion::node(&mut out, &self.0)?;
        workers::workers(&mut out, &self.0.workers)?;
        steering::steering(&mut out, &self.0)?;
        bfd::bfd(&mut out, &self.0)?;
        bfd::backups(&mut out, &self.0)?;
        isis::isis(&mut out, &self.0)?;
        ospf::ospf(&mut out, &self.0)?;
        sids(&mut out, &self.0)?;
        shared_hosts(&mut out, &self.0)?;
        groups(&mut out, &self.0.groups)?;
        repair::families(&mut out, &self.0.groups, self.0.repair_memory)?;
        branches(&mut out, &self.0.groups)
    }
}

type Labels<'s, const N: usize> = [(&'static str, &'s str); N];

/// Name and help of a family, and where its value is.
type Family<S, V> = (&'static str, &'static str, fn(&S) -> V);

fn node(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let loopback = snapshot.loopback.to_string();
    let version = env!("CARGO_PKG_VERSION");
    let labels = [("name", snapshot.name.as_str()), ("loopback", &loopback), ("version", version)];
    out.infos("srdma_node", "The node", [labels])?;
    let gauges = [
        ("srdma_node_start_time", "Start of the process, since 1970", Unit::Seconds, snapshot.started_unix_s),
        ("srdma_node_table", "Prefixes in the node's tables", prefixes(), snapshot.prefixes as u64),
        ("srdma_node_known", "Neighbours whose MAC address is known", neighbours(), snapshot.neighbours as u64),
    ];
    for (name, help, unit, value) in gauges {
        out.gauges(name, help, Some(unit), [([], value)])?;
    }
    let help = "Log lines dropped because stderr was not read in time, or could not be written";
    out.counters("srdma_log_dropped", help, Some(lines()), [([], snapshot.dropped_log_lines)])?;
    let configuration = &snapshot.configuration;
    let help = "Configurations applied since the start";
    out.gauges("srdma_configuration_generation", help, None, [([], configuration.generation)])?;
    let reload = configuration.last_reload.as_ref();
    let help = "Whether the last reload succeeded: 1 or 0";
    let success = reload.map(|reload| ([], u64::from(reload.error.is_none())));
    out.gauges("srdma_configuration_last_reload_success", help, None, success)?;
    let help = "Time of the last attempt to reload, since 1970";
    let time = reload.map(|reload| ([], reload.unix_s));
    out.gauges("srdma_configuration_last_reload_timestamp", help, Some(Unit::Seconds), time)?;
    let help = "Packets that the node originated and could not send";
    let drops = all_reasons(&snapshot.own_drops).map(|(reason, count)| ([("reason", reason)], count));
    out.counters("srdma_node_own_dropped", help, Some(frames()), drops)
}

fn ports(out: &mut Out<'_>, ports: &[PortSnapshot]) -> fmt::Result {
    let infos = ports.iter().map(|port| {
        let driver = port.driver.as_deref().unwrap_or("none");
        [("port", port.name.as_str()), ("interface", &port.interface), ("driver", driver), ("mac", &port.mac)]
    });
    out.infos("srdma_port", "The port, its interface and driver", infos)?;
    let up = ports.iter().map(|port| (of_port(port), u64::from(port.is_up)));
    out.gauges("srdma_port_up", "Whether the link is up: 1 or 0", None, up)?;
    let mtu = ports.iter().map(|port| (of_port(port), u64::from(port.link_mtu)));
    out.gauges("srdma_port_link_mtu", "The longest IPv6 packet that the link carries", Some(Unit::Bytes), mtu)?;
    let traffic: [Family<PortSnapshot, TrafficReport>; 3] = [
        ("srdma_port_received", "Received frames", |port| port.received),
        ("srdma_port_enqueued", "Frames that entered the egress queue", |port| port.enqueued),
        ("srdma_port_sent", "Frames that left the port", |port| port.sent),
    ];
    for (name, help, traffic) in traffic {
        let values = ports.iter().map(|port| (of_port(port), traffic(port)));
        out.traffic(name, help, values)?;
    }
    let drops = ports.iter().flat_map(|port| {
        let labels = move |reason| [("port", port.name.as_str()), ("reason", reason)];
        all_reasons(&port.drops).map(move |(reason, count)| (labels(reason), count))
    });
    out.counters("srdma_port_dropped", "Drops of packets received at the port", Some(frames()), drops)
}

fn drivers(out: &mut Out<'_>, ports: &[PortSnapshot]) -> fmt::Result {
    let counters: [Family<DriverSnapshot, u64>; 5] = [
        ("srdma_driver_received", "Frames handed to the node", |driver| driver.received),
        ("srdma_driver_sent", "Frames that the kernel accepted", |driver| driver.sent),
        ("srdma_driver_receive_overrun", "Received frames that found no buffer", |driver| driver.receive_overruns),
        ("srdma_driver_too_long", "Received frames that were too long", |driver| driver.too_long),
        ("srdma_driver_send_error", "Frames that the kernel refused to send", |driver| driver.send_errors),
    ];
    for (name, help, value) in counters {
        let values = ports.iter().map(|port| (of_port(port), value(&port.statistics)));
        out.counters(name, help, Some(frames()), values)?;
    }
    Ok(())
}

fn sids(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let processed = snapshot.sids.iter().map(|sid| {
        let labels = [("sid", sid.sid.as_str()), ("behavior", &sid.behavior)];
        (labels, sid.processed)
    });
    out.traffic("srdma_sid_processed", "Packets that the SID's behaviour processed", processed)
}

fn shared_hosts(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let texts: Vec<[String; 2]> =
        snapshot.shared_hosts.iter().map(|shared| [shared.hosts.clone(), shared.peer.to_string()]).collect();
    let of_each = |value: fn(&SharedHostsSnapshot) -> TrafficReport| {
        snapshot.shared_hosts.iter().zip(&texts).map(move |(shared, [hosts, peer])| {
            let labels = [("hosts", hosts.as_str()), ("peer", peer.as_str())];
            (labels, value(shared))
        })
    };
    let help = "Packets of shared hosts to Proxy Addresses, passed on to the peer";
    out.traffic("srdma_shared_hosts_passed_on", help, of_each(|shared| shared.passed_on))?;
    let help = "Packets of shared hosts that the peer has passed on to receivers of this node";
    out.traffic("srdma_shared_hosts_from_peer", help, of_each(|shared| shared.from_peer))
}

fn groups(out: &mut Out<'_>, groups: &[GroupSnapshot]) -> fmt::Result {
    let texts: Vec<[String; 3]> =
        groups.iter().map(|group| [group.id.to_string(), group.proxy.to_string(), group.parent.to_string()]).collect();
    let infos = groups.iter().zip(&texts).map(|(group, [id, proxy, parent])| {
        [("group", id.as_str()), ("role", group.role.name()), ("proxy", proxy), ("parent", parent)]
    });
    out.infos("srdma_group", "The group, and the node's role in it", infos)?;
    let with_id = || groups.iter().zip(&texts).map(|(group, [id, ..])| ([("group", id.as_str())], group));
    let epochs = with_id().map(|(labels, group)| (labels, u64::from(group.epoch)));
    out.gauges("srdma_group_epoch", "The group's epoch", None, epochs)?;
    let highest = with_id().filter_map(|(labels, group)| Some((labels, u64::from(group.highest_psn?))));
    out.gauges("srdma_group_highest", "The highest PSN sent downstream", Some(psn()), highest)?;
    let data = with_id().map(|(labels, group)| (labels, group.counters.data_packets));
    out.counters("srdma_group_data", "Data packets received", Some(packets()), data)?;
    let copies = with_id().map(|(labels, group)| (labels, group.counters.copies));
    out.counters("srdma_group_copied", "Copies made of data packets", Some(packets()), copies)?;
    let requests = with_id().map(|(labels, group)| (labels, group.eviction_requests));
    out.counters("srdma_group_eviction_requests", "Requests for the eviction of a receiver", None, requests)?;
    let responses: [Family<GroupSnapshot, [u64; 3]>; 2] = [
        ("srdma_group_responses_received", "Responses received from branches", |group| {
            [group.counters.acks_received, group.counters.naks_received, group.counters.cnps_received]
        }),
        ("srdma_group_responses_sent", "Responses sent upstream", |group| {
            [group.counters.acks_sent, group.counters.naks_sent, group.counters.cnps_sent]
        }),
    ];
    for (name, help, counts) in responses {
        let values = with_id().flat_map(|([id], group)| {
            ["ack", "nak", "cnp"].into_iter().zip(counts(group)).map(move |(kind, count)| ([id, ("kind", kind)], count))
        });
        out.counters(name, help, Some(packets()), values)?;
    }
    Ok(())
}

fn branches(out: &mut Out<'_>, groups: &[GroupSnapshot]) -> fmt::Result {
    let branches: Vec<(String, String, &BranchSnapshot)> = groups
        .iter()
        .flat_map(|group| {
            group.branches.iter().map(|branch| (group.id.to_string(), branch.address.to_string(), branch))
        })
        .collect();
    let values = |value: fn(&BranchSnapshot) -> Option<u64>| {
        let branches = branches.iter();
        branches.filter_map(move |(group, address, branch)| {
            Some(([("group", group.as_str()), ("branch", address)], value(branch)?))
        })
    };
    let help = "The PSN that the branch expects next; absent while unknown";
    out.gauges("srdma_branch_expected", help, Some(psn()), values(|branch| branch.expected_psn.map(u64::from)))?;
    let help = "Packets sent downstream that the branch has not acknowledged";
    out.gauges("srdma_branch_lag", help, Some(packets()), values(|branch| branch.lag.map(u64::from)))?;
    let help = "Times that the branch had a lag and made no progress for a second";
    out.counters("srdma_branch_stalls", help, None, values(|branch| Some(branch.stalls)))
}

fn of_port(port: &PortSnapshot) -> Labels<'_, 1> {
    [("port", &port.name)]
}

/// Every reason with its count, also those that never occurred, so that a rate has a beginning.
fn all_reasons(drops: &BTreeMap<String, u64>) -> impl Iterator<Item = (&'static str, u64)> {
    DropReason::ALL.iter().map(|reason| (reason.name(), drops.get(reason.name()).copied().unwrap_or(0)))
}

/// Prometheus measures time in seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn frames() -> Unit {
    Unit::Other("frames".to_owned())
}

fn lines() -> Unit {
    Unit::Other("lines".to_owned())
}

fn packets() -> Unit {
    Unit::Other("packets".to_owned())
}

fn prefixes() -> Unit {
    Unit::Other("prefixes".to_owned())
}

fn neighbours() -> Unit {
    Unit::Other("neighbours".to_owned())
}

fn psn() -> Unit {
    Unit::Other("psn".to_owned())
}

/// Sink for metrics: each call is one family, with its help, type and unit.
struct Out<'e> {
    encoder: DescriptorEncoder<'e>,
}

impl Out<'_> {
    fn infos<'s, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        infos: impl IntoIterator<Item = Labels<'s, N>>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Info)?;
        infos.into_iter().try_for_each(|labels| family.encode_info(&labels))
    }

    fn gauges<'s, const N: usize, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels<'s, N>, V)>,
    ) -> fmt::Result {
        self.family(name, help, unit, values, ConstGauge::new)
    }

    fn counters<'s, const N: usize, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels<'s, N>, V)>,
    ) -> fmt::Result {
        self.family(name, help, unit, values, ConstCounter::new)
    }

    /// Frames and their octets: two families.
    fn traffic<'s, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (Labels<'s, N>, TrafficReport)> + Clone,
    ) -> fmt::Result {
        let frame_counts = values.clone().map(|(labels, traffic)| (labels, traffic.frames));
        self.counters(name, help, Some(frames()), frame_counts)?;
        let help = format!("{help}: their octets without FCS");
        self.counters(name, &help, Some(Unit::Bytes), values.map(|(labels, traffic)| (labels, traffic.octets)))
    }

    fn family<'s, const N: usize, V, M: EncodeMetric + TypedMetric>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels<'s, N>, V)>,
        metric: impl Fn(V) -> M,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, unit.as_ref(), M::TYPE)?;
        for (labels, value) in values {
            metric(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
