//! A desired state is written as `node.toml` and read again as the same state.

use super::documentation::example;
use super::parse;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use srdma_bfd::Config as BfdConfig;
use srdma_dataplane::headend::{HeadendConfig, HeadendPath, ProbeConfig, Probing};
use srdma_dataplane::{
    BackpressureConfig, BackpressureSids, BackpressureThresholds, BfdPeer, BfdSession, ClassMap, Connection, Cover,
    CrossConnect, Domain, EgressConfig, EncapsMode, FastCnpConfig, Flavors, HmacPolicy, IcrcMode, IoamConfig,
    IoamInterface, IoamNamespace, Learning, MAX_VLAN_ID, Marking, MulticastRoute, NextCsid, NextHop, NodeConfig,
    PfcConfig, PolicyId, PortConfig, PortVlan, PriorityMapping, RouteAction, Scheduling, SegmentList, SharedHosts,
    SidBehavior, SrPolicy, StormAction, TableId, TimestampFormat, Trust, Watchdog, WideData,
};
use srdma_frame::PortId;
use srdma_group::{
    Branch, CnpMode, Downstream, Dscp, EdgeList, GroupEntry, GroupId, HeadendEntry, Join, ListMode, NodeIndex,
    NodeRole, OnFailure, Parent, Policy, PsnOffset, Receiver, ReceiverRegion, RepairEntry, RepairMode, RepairPolicy,
    Rules, Source, SourceRegion,
};
use srdma_node::{Configuration, Purpose};
use srdma_node_spec::file::NodeFile;
use srdma_node_spec::{Entries, KeySpec, NodeSpec};
use srdma_steering::{Config, Limits, Mode, Path};
use srdma_wire::fast_cnp::OptionTypes;
use srdma_wire::{Entropy, MacAddress, Prefix, Psn, Qpn};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const LOOPBACK: &str = "2001:db8:a::1";
const END_MT: &str = "5f00:0:1:e000::";
const END_MT_GROUP: &str = "ff3e::100";

/// Decisions, taken from octets one by one; when they are used up, the first of each.
struct Octets(std::vec::IntoIter<u8>);

impl Octets {
    fn octet(&mut self) -> u8 {
        self.0.next().unwrap_or(0)
    }

    fn is(&mut self) -> bool {
        self.octet() & 1 == 1
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.is().then(|| make(self))
    }

    /// One of some values.
    fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[usize::from(self.octet()) % values.len()].clone()
    }

    /// Any number with up to 64 bits from a lowest one.
    fn from(&mut self, least: u64, most: u64) -> u64 {
        let octets = std::array::from_fn(|_| self.octet());
        let span = most - least;
        let any = u64::from_le_bytes(octets);
        least + if span == u64::MAX { any } else { any % (span + 1) }
    }

    fn u16(&mut self, least: u16, most: u16) -> u16 {
        self.from(least.into(), most.into()) as u16
    }

    fn u32(&mut self, least: u32, most: u32) -> u32 {
        self.from(least.into(), most.into()) as u32
    }

    fn time(&mut self, least_ns: u64) -> Duration {
        Duration::from_nanos(self.one_of(&[1, 1_000, 1_000_000, 1_000_000_000]) * self.from(least_ns, 1_000_000))
    }

    fn ns(&mut self) -> u64 {
        self.time(1).as_nanos() as u64
    }

    fn hop(&mut self) -> NextHop {
        let port = self.octet() % 3;
        NextHop { port: PortId(port.into()), address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, u16::from(port) + 1) }
    }

    fn qpn(&mut self) -> Qpn {
        Qpn::new(self.u32(2, 0xFF_FFFF)).expect("24 bits")
    }

    fn psn(&mut self) -> Psn {
        Psn::new(self.u32(0, 0xFF_FFFF))
    }
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

fn prefix(text: &str, len: u8) -> Prefix {
    Prefix::new(address(text), len).expect("a prefix")
}

fn settings(octets: &mut Octets) -> NodeConfig {
    let port = |number: u16| PortConfig {
        name: format!("p{number}"),
        mac: MacAddress([2, 0, 0, 0, octets.octet(), number as u8]),
        addresses: octets.maybe(|_| Ipv6Addr::new(0x2001, 0xdb8, 0xee, number, 0, 0, 0, 1)).into_iter().collect(),
        link_mtu: octets.u16(1280, 0xFFFF),
        queue_limit_octets: octets.u32(0, u32::MAX) as usize,
        trust: octets.one_of(&[Trust::Dscp, Trust::Pcp]),
        ..PortConfig::default()
    };
    let mut ports: Vec<_> = (0..3).map(port).collect();
    if octets.is() && octets.is() && octets.is() {
        let vlan = PortVlan { parent: PortId(0), id: octets.u16(0, MAX_VLAN_ID) };
        ports.push(PortConfig {
            name: "vlan".to_owned(),
            mac: ports[0].mac,
            vlan: Some(vlan),
            ..PortConfig::default()
        });
    }
    let mut config = NodeConfig::new(address(LOOPBACK), ports);
    config.restarted = octets.is();
    config.icrc = octets.one_of(&[IcrcMode::Incremental, IcrcMode::Recompute]);
    config.verify_icrc = octets.is();
    config.hmac = octets.one_of(&[HmacPolicy::Ignored, HmacPolicy::IfPresent, HmacPolicy::Required]);
    config.end_mt_cover = octets.one_of(&[Cover::Tlvs, Cover::Rfc8754, Cover::Linux]);
    config.icmp_errors_per_second = octets.u32(0, u32::MAX);
    config.replication_hop_limit = octets.octet();
    config.cm_host_ipv4 = octets.maybe(|octets| Ipv4Addr::new(10, 0, 0, octets.octet()).to_ipv6_mapped());
    config.cm_host = octets.maybe(|octets| Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0xc, 0, 0, 0, octets.octet().into()));
    config.marking_seed = octets.from(0, u64::MAX);
    config.repair_memory_octets = octets.from(0, u64::MAX);
    if octets.is() {
        (config.tlv_types.end_mt, config.tlv_types.mr) = (octets.u16(7, 60) as u8, octets.u16(61, 126) as u8);
        let types = OptionTypes::new(octets.u16(0x80, 0x8F) as u8, octets.u16(0x90, 0x9F) as u8);
        config.fast_cnp_types = types.expect("the high bits are 100");
    }
    config
}

fn dscp(octets: &mut Octets) -> Dscp {
    Dscp::of_traffic_class(octets.u16(0, 255) as u8)
}

fn policy(octets: &mut Octets, lists: ListMode) -> Policy {
    let cnp_window = octets.time(0);
    let rules = octets.one_of(&[Rules::Default, Rules::Literal]);
    let modes: &[RepairMode] = match rules {
        Rules::Default => &[RepairMode::Off, RepairMode::Edge, RepairMode::Tree],
        Rules::Literal => &[RepairMode::Off],
    };
    Policy {
        rules,
        lists,
        prune_retransmit: octets.is(),
        t_hold: octets.time(0),
        cnp_mode: octets.one_of(&[CnpMode::Leading, CnpMode::Trailing]),
        cnp_window,
        cnp_window_most: cnp_window * octets.one_of(&[1, 7]),
        cnp_limit: octets.u16(1, 0xFFFF),
        ack_dscp: octets.is().then(|| dscp(octets)),
        cnp_dscp: dscp(octets),
        on_failure: octets.one_of(&[OnFailure::Strict, OnFailure::Evict]),
        t_stall: octets.time(1),
        t_not_ready: octets.is().then(|| octets.time(1)),
        stall_sends: octets.u16(2, 15) as u8,
        min_receivers: octets.u32(1, u32::MAX),
        hmac_key_id: None,
        repair: RepairPolicy {
            mode: octets.one_of(modes),
            window_octets: octets.u32(1, u32::MAX),
            ack_timeout: octets.time(1),
            round_trip: octets.time(1),
        },
    }
}

/// How the node repairs: by its policy and role.
fn repair(octets: &mut Octets, entry: &GroupEntry) -> Option<RepairEntry> {
    let repairs = match entry.policy.repair.mode {
        RepairMode::Off => false,
        RepairMode::Edge => entry.role.has_receivers(),
        RepairMode::Tree => true,
    };
    repairs.then(|| RepairEntry {
        window_packets: octets.u32(1, 0x1_0000),
        parent_repairs: octets.is() && matches!(entry.parent, Parent::Node { .. }),
        children: entry.downstream.iter().map(|_| octets.is()).collect(),
        levels: octets.u32(1, 255),
    })
}

fn join(octets: &mut Octets, epoch: u32) -> Option<Join> {
    let join = octets.maybe(|octets| Join { psn: octets.psn(), msn: octets.u32(0, 0xFF_FFFF) });
    join.filter(|_| epoch > 0)
}

fn receiver(octets: &mut Octets, id: u32, host: u16, regions: usize, epoch: u32) -> Receiver {
    let mut region = || ReceiverRegion { base: octets.from(0, u64::MAX), rkey: octets.u32(0, u32::MAX) };
    let mut regions = (0..regions).map(|_| region()).collect::<Vec<_>>().into_iter();
    Receiver {
        address: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, id as u16, host),
        qpn: octets.qpn(),
        region: regions.next(),
        more_regions: regions.collect(),
        edge: NodeIndex(0),
        joined: join(octets, epoch),
        psn_offset: PsnOffset::new(octets.u32(0, 0xFF_FFFF)).unwrap(),
        moved: octets.u32(0, epoch),
    }
}

/// A group of which the node is an edge, a transit or bud node, the root or another headend.
fn group(octets: &mut Octets, id: u32, keys: &BTreeMap<u32, KeySpec>) -> GroupEntry {
    let epoch = octets.u32(0, 3);
    let mut region = |rkey| SourceRegion { base: octets.from(0, u64::MAX), length: octets.from(0, u64::MAX), rkey };
    let mut regions = [0, 1, 7, u32::MAX].map(&mut region).to_vec();
    regions.truncate(octets.u16(0, 4).into());
    let region = regions.first().copied();
    let source = Source { address: Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, id as u16), qpn: octets.qpn() };
    let loopback = address("2001:db8:6::1");
    let node = Parent::Node { loopback, sid: octets.maybe(|_| address("5f00:0:6::")) };
    let [role, parent] = [octets.octet(), octets.octet()];
    let parent = if parent & 1 == 1 { node } else { Parent::Source(source) };
    let mut entry = GroupEntry {
        id: GroupId(id),
        epoch,
        renewed: octets.u32(0, epoch),
        proxy: Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 1, id as u16),
        designated_qpn: octets.qpn(),
        initial_psn: octets.psn(),
        role: NodeRole::Transit,
        sid: Ipv6Addr::new(0x5f00, 0, 1, 0xf000, 0, 0, 0, id as u16),
        parent,
        branches: Vec::new(),
        downstream: Vec::new(),
        receivers: Vec::new(),
        region,
        headend: None,
        repair: None,
        policy: policy(octets, ListMode::default()),
        more_regions: Vec::new(),
    };
    let branch = |receiver: &Receiver| Branch {
        joined: receiver.joined,
        renewed: receiver.moved,
        ..Branch::new(receiver.address)
    };
    let has_receivers = role.is_multiple_of(3) || role >= 0x80;
    if has_receivers {
        let hosts = 1..=octets.u16(1, 4);
        entry.receivers = hosts.map(|host| receiver(octets, id, host, regions.len(), epoch)).collect();
        entry.more_regions = regions.split_off(regions.len().min(1));
    }
    entry.role = NodeRole::of(has_receivers, !role.is_multiple_of(3));
    if entry.role == NodeRole::Edge {
        entry.sid = address(octets.one_of(&[END_MT, END_MT_GROUP]));
        entry.branches = entry.receivers.iter().map(branch).collect();
        entry.repair = repair(octets, &entry);
        return entry;
    }
    for child in 1..=octets.u16(1, 3) {
        entry.branches.push(Branch {
            responder: Ipv6Addr::new(0x2001, 0xdb8, 7, child, 0, 0, 0, 1),
            joined: join(octets, epoch),
            renewed: octets.u32(0, epoch),
        });
        entry.downstream.push(Downstream::Sid(Ipv6Addr::new(0x5f00, 0, 7, child, 0, 0, 0, 0)));
    }
    entry.branches.extend(entry.receivers.iter().map(branch));
    if role % 3 == 1 {
        let listed = if entry.more_regions.is_empty() { regions.len().min(1) } else { 0 };
        let edges = 1..=octets.u16(0, 3);
        let list = |edge: u16| EdgeList {
            edge: Ipv6Addr::new(0x2001, 0xdb8, 8, edge, 0, 0, 0, 1),
            receivers: vec![receiver(octets, id, 0x100 + edge, listed, epoch)],
        };
        let lists: Vec<EdgeList> = edges.map(list).collect();
        entry.policy.lists = if lists.is_empty() { ListMode::Provisioned } else { ListMode::Tlv };
        entry.policy.hmac_key_id = keys.keys().next().copied().filter(|_| octets.is());
        let with_regions = (region.is_some() || octets.is()) && !lists.is_empty();
        entry.headend = Some(HeadendEntry { source, lists, with_regions, link_mtu: octets.u16(1280, 0xFFFF) });
    }
    entry.repair = repair(octets, &entry);
    entry
}

fn boundary(octets: &mut Octets, entries: &mut Entries) {
    let all = |texts: &[(&str, u8)]| texts.iter().map(|(text, len)| prefix(text, *len)).collect();
    entries.domain = octets.maybe(|octets| Domain {
        sids: all(&[("5f00::", 16)]),
        infrastructure: all(&[("2001:db8:a::", 48), octets.one_of(&[("2001:db8:6::", 48), ("2001:db8:9::", 64)])]),
        proxies: all(&[("2001:db8:ff::", 48)]),
    });
    if octets.is() {
        let sources = octets.maybe(|_| prefix("2001:db8:2::", 64)).into_iter().collect::<Vec<_>>();
        if entries.domain.is_some() || !sources.is_empty() {
            entries.borders.insert(PortId(2), sources);
        }
    }
}

fn egress(octets: &mut Octets, classes: &[u8]) -> EgressConfig {
    let limit_octets = octets.u32(0, u32::MAX) as usize;
    let mut egress = EgressConfig::new(octets.from(1, u64::MAX), limit_octets);
    egress.watchdog = octets.maybe(|octets| Watchdog {
        bound_ns: octets.ns(),
        quiet_ns: octets.ns(),
        action: octets.one_of(&[StormAction::Drop, StormAction::Forward]),
    });
    egress.trim_dscp = octets.maybe(|_| 26);
    for number in classes {
        let class = &mut egress.classes[usize::from(*number)];
        let mut size = || octets.u32(1, 1 << 30) as usize;
        class.limit_octets = size();
        let [low, high] = [size(), size()];
        let (low, high) = (low.min(high), low.max(high) + 1);
        class.scheduling = octets
            .maybe(|octets| Scheduling::Weighted { quantum_octets: octets.u32(256, u32::MAX) })
            .unwrap_or(Scheduling::Strict);
        let p_max = f64::from(octets.u16(0, 1000)) / 1000.0;
        class.marking = octets.maybe(|_| Marking { k_min_octets: low, k_max_octets: high, p_max });
        class.notify_octets = octets.maybe(|_| low);
        let (headroom_octets, quanta) = (octets.u32(0, u32::MAX) as usize, octets.u16(1, 0xFFFF));
        class.pfc = octets.maybe(|_| PfcConfig { xoff_octets: high, xon_octets: low, headroom_octets, quanta });
        let (xoff_octets, xon_octets) = if octets.is() { (low, high) } else { (high, low) };
        class.backpressure = octets.maybe(|_| BackpressureThresholds { xoff_octets, xon_octets });
    }
    egress
}

fn traffic_classes(octets: &mut Octets, entries: &mut Entries) {
    let mut classes = ClassMap::default();
    for (dscp, class) in [(26, 3), (27, 3), (48, 6)] {
        classes.set(dscp, class);
    }
    entries.classes = Some(classes);
    for port in 0..=octets.u16(0, 2) {
        entries.egress.insert(PortId(port), egress(octets, &[0, 3, 6]));
    }
    let has_pfc = |egress: &EgressConfig| egress.classes[3].pfc.is_some();
    let with_pfc = entries.egress.iter().find(|(_, egress)| has_pfc(egress)).map(|(port, _)| *port);
    let priority = |port| PriorityMapping { traffic_class: 5, ports: vec![port], priority: 3 };
    entries.backpressure = Some(BackpressureConfig {
        hold: octets.time(1_000),
        refresh: octets.time(1_000),
        priorities: with_pfc.map(priority).into_iter().collect(),
        greatest_hold: octets.time(1_000),
        watchdog: octets.time(1_000),
        per_second: octets.u32(1, u32::MAX),
        at_once: octets.u32(1, u32::MAX),
        end_e_per_second: octets.u32(1, u32::MAX),
        end_e_at_once: octets.u32(1, u32::MAX),
        origins: octets.u16(1, 0xFFFF),
    });
    entries.sids.insert(prefix("5f00:0:1:c::", 128), SidBehavior::EndC);
}

fn traces(octets: &mut Octets) -> IoamConfig {
    let namespace = |id| IoamNamespace {
        id,
        data: octets.maybe(|octets| octets.u32(0, u32::MAX)),
        // Traces of groups need a namespace with loads.
        data_wide: octets
            .maybe(|octets| WideData::Fixed(octets.from(0, u64::MAX)))
            .filter(|_| id > 1)
            .or(Some(WideData::LinkLoad)),
        opaque: octets.maybe(|octets| (octets.u32(0, 0xFF_FFFF), vec![octets.octet(); 8])),
    };
    IoamConfig {
        namespaces: [1, 0xFFFF].map(namespace).into(),
        node_id: octets.maybe(|octets| octets.u32(0, 0xFF_FFFE)),
        node_id_wide: octets.maybe(|octets| octets.from(0, 0xFF_FFFF_FFFF_FFFE)),
        interfaces: vec![IoamInterface {
            port: PortId(1),
            id: octets.maybe(|octets| octets.u16(0, 0xFFFE)),
            id_wide: octets.maybe(|octets| octets.u32(0, 0xFFFF_FFFE)),
            fills: true,
        }],
        timestamps: octets.one_of(&[TimestampFormat::Posix, TimestampFormat::Ptp]),
        tells_buffer_occupancy: octets.is(),
        group_interval: octets.maybe(|octets| Duration::from_nanos(octets.from(1_000, 1_000_000_000))),
    }
}

fn steering(octets: &mut Octets) -> HeadendConfig {
    let hold_ns = octets.ns();
    let probes = octets.maybe(|octets| ProbeConfig {
        interval_ns: octets.ns(),
        active_ns: octets.ns(),
        gap_ns: octets.ns(),
        traffic_class: octets.u16(0, 63) as u8 * 4 + (ProbeConfig::default().traffic_class & 3),
        port: octets.u16(1, 0xFFFF),
    });
    HeadendConfig {
        probe_address: probes.as_ref().map(|_| address("2001:db8:a::9")),
        probes,
        steering: Config {
            mode: octets.one_of(&[Mode::Fast, Mode::Ordered]),
            dwell_ns: octets.ns(),
            hold_ns,
            hold_most_ns: hold_ns * 2,
            return_ns: octets.ns(),
            idle_gap_ns: octets.ns(),
            silent_probes: octets.u16(1, 255) as u8,
            limits: Limits {
                losses: octets.u16(1, 255) as u8,
                loss_window_ns: octets.ns(),
                ce_permille: octets.u16(1, 1000),
                one_way_ns: octets.maybe(Octets::ns),
                two_way_ns: octets.maybe(Octets::ns),
            },
            flows: octets.u32(4, 1 << 12) as usize,
            seed: octets.from(0, u64::MAX),
        },
        trimmed_dscp: octets.maybe(|octets| octets.u16(0, 63) as u8),
        // The node sets the source.
        ..HeadendConfig::new(Ipv6Addr::UNSPECIFIED)
    }
}

fn path(octets: &mut Octets, number: u16) -> HeadendPath {
    let segments = vec![Ipv6Addr::new(0x5f00, 0, 0x100 + number, 0, 0, 0, 0, 0)];
    HeadendPath {
        path: Path {
            nodes: octets.maybe(|_| address("2001:db8:9::7")).into_iter().collect(),
            rank: octets.u16(0, 0xFFFF),
            // The first one may always be taken.
            is_denied: number > 0 && octets.is(),
            segments,
        },
        probing: octets.one_of(&[Probing::ThereAndBack, Probing::Never, Probing::By(vec![address("5f00:0:9::")])]),
        entropy: octets.maybe(|octets| Entropy(octets.u32(0, u32::MAX))),
    }
}

fn flavors(octets: &mut Octets) -> (Prefix, Flavors) {
    let [psp, usp, usd] = [octets.is(), octets.is(), octets.is()];
    let structure = NextCsid { block_bits: octets.one_of(&[32, 16]), csid_bits: octets.one_of(&[16, 32]) };
    match octets.maybe(|_| structure) {
        Some(structure) => {
            let sid = prefix("5f00:0:4::", structure.block_bits + structure.csid_bits);
            (sid, Flavors { psp, usp, usd, next_csid: Some(structure) })
        }
        None => (prefix("5f00:0:4::", 128), Flavors { psp, usp, usd, next_csid: None }),
    }
}

fn policies(octets: &mut Octets, entries: &mut Entries) {
    let key_id = entries.keys.keys().next().copied();
    for id in 1..=octets.u32(0, 2) {
        let list = |octets: &mut Octets, number: u16| SegmentList {
            segments: vec![address("5f00:0:9::"), Ipv6Addr::new(0x5f00, 0, number, 0, 0, 0, 0, 0)],
            weight: octets.u32(1, u32::MAX),
        };
        let lists = (0..=octets.u16(0, 2)).map(|number| list(octets, number)).collect();
        entries.policies.insert(PolicyId(id), SrPolicy { lists, hmac_key_id: key_id.filter(|_| octets.is()) });
    }
}

fn routes(octets: &mut Octets, entries: &mut Entries) {
    for (table, text, len) in [(0, "2001:db8:2::", 64), (0, "2001:db8:9::", 48), (0, "5f00::", 16), (0xFFFF, "::", 0)] {
        let key_id = entries.keys.keys().next().copied();
        let action = match octets.octet() % 6 {
            0 => continue,
            1 => RouteAction::Via(vec![octets.hop(), octets.hop()]),
            2 => RouteAction::Blackhole,
            3 if entries.steering.is_some() => {
                RouteAction::Placed((0..=octets.u16(0, 2)).map(|number| path(octets, number)).collect())
            }
            4 if !entries.policies.is_empty() => {
                let mode = octets.one_of(&[EncapsMode::Encaps, EncapsMode::Reduced]);
                RouteAction::Policy { policy: PolicyId(1), mode }
            }
            _ => RouteAction::Encaps {
                segments: vec![address("5f00:0:9::"), address("5f00:0:8::")],
                mode: octets.one_of(&[EncapsMode::Encaps, EncapsMode::Reduced]),
                hmac_key_id: key_id.filter(|_| octets.is()),
            },
        };
        entries.routes.insert((TableId(table), prefix(text, len)), action);
    }
    if octets.is() {
        let proxies = prefix("2001:db8:cf::", 48);
        let shared = |number: u16| SharedHosts {
            hosts: prefix(&format!("2001:db8:d0:{number:x}::"), 64),
            proxies,
            peer: address("2001:db8:6::1"),
            sid: address(if number == 0 { "5f00:0:6::" } else { "2001:db8:6::1" }),
        };
        let all = (0..=octets.u16(0, 1)).map(shared);
        entries.shared_hosts.extend(all.map(|shared| (shared.hosts, shared)));
        entries.routes.insert((TableId(0), proxies), RouteAction::ToPeer);
    }
    if octets.is() {
        let (source, group) = (address("2001:db8:6::1"), address("ff3e::200"));
        let route = MulticastRoute {
            source,
            group,
            incoming: octets.maybe(|_| PortId(0)),
            outgoing: vec![PortId(1), PortId(2)],
            end_mt: false,
            require_hmac: false,
        };
        entries.multicast_routes.insert((source, group), route);
    }
}

fn bfd(octets: &mut Octets, entries: &mut Entries) {
    let far = BfdPeer { port: None, address: address("2001:db8:9::1") };
    let NextHop { port, address: neighbour } = octets.hop();
    for peer in [far, BfdPeer { port: Some(port), address: neighbour }] {
        if octets.is() {
            let intervals = [octets.u32(10_000, 60_000_000), octets.u32(10_000, 60_000_000)];
            let config = BfdConfig::new(intervals[0], intervals[1], octets.u16(1, 255) as u8).expect("above the least");
            let session = BfdSession { peer, local: address(LOOPBACK), config, is_enabled: octets.is() };
            entries.bfd.insert(peer, session);
        }
    }
}

fn entries(octets: &mut Octets) -> Entries {
    let mut entries = Entries::default();
    for id in [1, 0xFFFF_FFFF] {
        if octets.is() {
            let secret = vec![octets.octet(); octets.u16(8, 64).into()];
            entries.keys.insert(id, KeySpec::new(secret, octets.one_of(&[Cover::Tlvs, Cover::Rfc8754, Cover::Linux])));
        }
    }
    boundary(octets, &mut entries);
    if octets.is() {
        traffic_classes(octets, &mut entries);
    }
    entries.ioam = octets.maybe(traces);
    entries.steering = octets.maybe(steering);
    entries.fast_cnp = octets.maybe(|octets| FastCnpConfig {
        senders: Vec::new(),
        capable: octets.maybe(|_| prefix("2001:db8:3::", 48)).into_iter().collect(),
        switches: vec![prefix("2001:db8:a::", 48)],
        hosts_inside: vec![prefix("2001:db8:2::", 64)],
        translated: vec![prefix("2001:db8:2::", 64)],
        learn_connections: octets.is(),
        mark_unknown: octets.is(),
        mark_notified: octets.is(),
        interval: octets.time(1),
        per_second: octets.u32(1, u32::MAX),
        at_once: octets.u32(1, u32::MAX),
        drain: octets.maybe(|octets| octets.time(1)),
        incapable_for: octets.time(1),
    });
    if entries.fast_cnp.is_some() && octets.is() {
        let (host, peer) = (address("2001:db8:2::5"), address("2001:db8:3::1"));
        let connection = Connection { host, host_qpn: octets.qpn(), peer, peer_qpn: octets.qpn() };
        entries.connections.insert((host, peer, connection.peer_qpn), connection);
    }
    if octets.is() {
        let (end_c, end_e) = (address("5f00:0:9:c::"), octets.maybe(|_| address("5f00:0:9:d::")));
        let sids = BackpressureSids { outer_source: prefix("2001:db8:9::", 64), end_c: Some(end_c), end_e };
        entries.backpressure_sids.insert(sids.outer_source, sids);
    }
    for _ in 0..octets.u16(0, 3) {
        let NextHop { port, address } = octets.hop();
        entries.neighbours.insert((port, address), MacAddress([2, octets.octet(), 0, 0, 0, 1]));
    }
    policies(octets, &mut entries);
    routes(octets, &mut entries);
    let (sid, flavors) = flavors(octets);
    let hop = octets.hop();
    let behavior = octets.one_of(&[
        SidBehavior::End(flavors),
        SidBehavior::EndX(flavors, hop),
        SidBehavior::End(Flavors { psp: true, usd: true, ..flavors }),
    ]);
    entries.sids.insert(sid, behavior);
    let table = TableId(octets.one_of(&[0, 0xFFFF]));
    let applied = SidBehavior::EndB6Encaps {
        policy: PolicyId(1),
        mode: octets.one_of(&[EncapsMode::Encaps, EncapsMode::Reduced]),
    };
    let crossed = SidBehavior::EndDx6 { next_hop: octets.hop(), table };
    let ipv4 = |last: u8| Ipv4Addr::new(192, 0, 2, last).to_ipv6_mapped();
    let ipv4_hop = NextHop { port: octets.hop().port, address: ipv4(octets.octet().max(1)) };
    let crossed = octets.one_of(&[crossed, SidBehavior::EndDx4 { next_hop: ipv4_hop, table }]);
    if octets.is() {
        entries.neighbours.insert((ipv4_hop.port, ipv4_hop.address), MacAddress([2, 0, 0, 0, 0, 9]));
        let net = |len| Prefix::of_ipv4(Ipv4Addr::new(198, 51, 100, 0), len).expect("a length");
        entries.routes.insert((table, net(24)), RouteAction::Via(vec![ipv4_hop]));
        let segments = vec![octets.hop().address];
        let encaps = RouteAction::Encaps { segments, mode: EncapsMode::Encaps, hmac_key_id: None };
        entries.routes.insert((TableId(0), net(25)), encaps);
    }
    let is_free = |port: &PortId| !entries.neighbours.keys().any(|(other, _)| other == port);
    let free = (0..3).map(PortId).find(is_free).filter(|_| !entries.policies.is_empty());
    if let Some(port) = free.filter(|_| octets.is()) {
        let mode = octets.one_of(&[EncapsMode::Encaps, EncapsMode::Reduced]);
        entries.cross_connects.insert(port, CrossConnect { policy: PolicyId(1), mode });
        entries.sids.insert(prefix("5f00:0:5:d2::", 128), SidBehavior::EndDx2(port));
    }
    let services = [("5f00:0:5:b6::", applied), ("5f00:0:5:d8::", crossed)];
    let services = services.into_iter().skip(usize::from(entries.policies.is_empty()));
    entries.sids.extend(services.map(|(sid, behavior)| (prefix(sid, 128), behavior)));
    let decapsulating = octets.one_of(&[
        SidBehavior::EndDt6(table),
        SidBehavior::EndDt4(table),
        SidBehavior::EndDt46(table),
        SidBehavior::EndE(table),
    ]);
    entries.sids.insert(prefix("5f00:0:5:1::", 64), decapsulating);
    entries.sids.insert(prefix(END_MT, 128), SidBehavior::EndMt { require_hmac: octets.is() });
    let (source, end_mt_group) = (address("2001:db8:6::1"), address(END_MT_GROUP));
    let (incoming, require_hmac) = (octets.maybe(|_| PortId(1)), octets.is());
    let route =
        MulticastRoute { source, group: end_mt_group, incoming, outgoing: Vec::new(), end_mt: true, require_hmac };
    entries.multicast_routes.insert((source, end_mt_group), route);
    for id in 1..=octets.u32(0, 3) {
        let entry = group(octets, id, &entries.keys);
        if entry.role.replicates() {
            entries.sids.insert(Prefix::host(entry.sid), SidBehavior::EndReplicate(entry.id));
        }
        entries.groups.insert(id, entry);
    }
    bfd(octets, &mut entries);
    entries.learning = octets.maybe(|octets| Learning {
        proxies: vec![prefix("2001:db8:ff:1::", 64)],
        parent: address("2001:db8:6::1"),
        parent_sid: octets.maybe(|_| address("5f00:0:6::")),
        policy: Policy { repair: RepairPolicy::default(), ..policy(octets, ListMode::Tlv) },
        max_groups: octets.u16(1, 0xFFFF),
        max_receivers: octets.u16(1, 0xFFFF),
        idle_ns: octets.ns(),
    });
    entries
}

fn read_for(text: &str, purpose: Purpose<'_>) -> Configuration {
    let read = Configuration::parse_for(std::path::Path::new("node.toml"), text, purpose);
    read.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_state_is_written_and_read(octets in prop::collection::vec(any::<u8>(), 0..2500)) {
        let mut octets = Octets(octets.into_iter());
        let spec = NodeSpec { node: settings(&mut octets), entries: entries(&mut octets) };
        prop_assume!(spec.build().is_ok());
        let text = NodeFile::of(&spec).to_toml().expect("there is no file name");
        let read = read_for(&text, Purpose::Interfaces(&BTreeMap::new())).spec;
        prop_assert_eq!(format!("{:#?}", read.node), format!("{:#?}", spec.node), "{}", text);
        prop_assert_eq!(read.entries, spec.entries, "{}", text);
    }
}

/// A good part of the states above are ones that a node accepts.
#[test]
fn generated_states_are_possible() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop::collection::vec(any::<u8>(), 1000..2500);
    let count = (0..100)
        .filter(|_| {
            let octets = strategy.new_tree(&mut runner).expect("a value").current();
            let mut octets = Octets(octets.into_iter());
            let spec = NodeSpec { node: settings(&mut octets), entries: entries(&mut octets) };
            spec.build().is_ok()
        })
        .count();
    assert!(count > 30, "{count} of 100");
}

/// The example of the document has every key.
#[test]
fn the_example_is_written_and_read() {
    let configuration = parse(example()).expect("the example is right");
    let file: NodeFile = toml::from_str(example()).expect("it is the schema's");
    let again = parse(&file.to_toml().expect("TOML")).expect("it is the same file");
    assert_eq!(format!("{again:#?}"), format!("{configuration:#?}"));
    assert_eq!(again.spec.entries, configuration.spec.entries);
    let written = NodeFile::of(&configuration.spec).to_toml().expect("TOML");
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.spec.entries, configuration.spec.entries);
}
