//! The default distribution of schedules: from a seed to a schedule. `docs/chaos.md` has it as a table.
//!
//! The meaning of a seed may change only together with [`VERSION`](crate::token::VERSION).

use crate::rng::Rng;
use crate::schedule::{
    DEFAULT_T_STALL_PERCENT, GroupPlan, LinkPlan, ListsPlan, MAX_REGIONS, NodePlan, OperationPlan, PATH_MTU_OCTETS,
    PolicyPlan, ReceiverPlan, RepairPlan, Schedule,
};
use crate::{events, scale::Scale};
use srdma_sim::retransmission::Retransmission;

const NODES: (u64, u64) = (2, 40);

const RECEIVERS: (u64, u64) = (1, 200);

/// Maximum depth of the tree below the first hop.
const MAX_LEVELS: usize = 7;

/// Packets that each source sends: 16 to 256 KiB.
const PACKETS: (u64, u64) = (16, 256);

/// Maximum number of data packet copies at nodes and receivers in a run without faults. Above it the number of packets
/// is reduced.
const MAX_COPIES: u64 = 1_200;

/// Maximum number of receivers of a group with lists in TLVs, so that later joins still fit.
const MAX_RECEIVERS_IN_TLVS: usize = 24;

/// T_not_ready in percent of the ACK timeout.
const T_NOT_READY_PERCENT: (u64, u64) = (50, 1_000);

/// Room for all packets of a group.
const AMPLE_PACKETS: u32 = 1_024;

impl Schedule {
    /// The schedule of a seed.
    pub fn from_seed(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_6(seed);
        schedule.ipv4_hosts = Rng::new(seed, "IPv4 hosts").one_in(4);
        schedule
    }

    /// The same before hosts were IPv4.
    pub fn from_seed_of_version_6(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_5(seed);
        draw_own_psns(&mut schedule);
        schedule
    }

    /// The same before receivers had PSNs of their own.
    pub fn from_seed_of_version_5(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_4(seed);
        draw_bud_nodes(&mut schedule);
        schedule
    }

    /// The same before nodes with others below them had receivers.
    pub fn from_seed_of_version_4(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_3(seed);
        draw_regions(&mut schedule);
        schedule
    }

    /// The same before groups had several regions.
    pub fn from_seed_of_version_3(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_2(seed);
        draw_not_ready(&mut schedule);
        schedule
    }

    /// The same before policies had a time for receivers that are not ready.
    pub fn from_seed_of_version_2(seed: u64) -> Schedule {
        // The name of the stream is part of the meaning of seeds.
        let mut rng = Rng::new(seed, "storm");
        let nodes = draw_nodes(&mut rng);
        let receivers = draw_receivers(&mut rng, &nodes);
        let link = draw_link(&mut rng, nodes.len() + receivers.len());
        let groups = draw_groups(&mut rng, nodes.len(), receivers.len());
        let mut schedule = Schedule {
            seed,
            nodes,
            receivers,
            link,
            groups,
            events: Vec::new(),
            faults_end_ns: 0,
            workers: 1,
            retransmission: Retransmission::GoBackN,
            ipv4_hosts: false,
        };
        let scale = Scale::of(&schedule);
        for group in &mut schedule.groups {
            group.start_ns = if rng.one_in(2) { 0 } else { rng.range(0, scale.transfer_ns) };
        }
        schedule.faults_end_ns = rng.range(scale.transfer_ns / 2, 2 * scale.transfer_ns + 4 * scale.ack_timeout_ns);
        schedule.events = events::draw(&mut rng, &schedule, &scale);
        draw_repair(&mut schedule, &scale);
        schedule
    }
}

/// PSNs of the receivers' own in half of the groups, with a random stream of its own.
fn draw_own_psns(schedule: &mut Schedule) {
    let mut rng = Rng::new(schedule.seed, "own PSNs");
    for group in &mut schedule.groups {
        group.own_psns = rng.one_in(2);
        // Packets do not name the PSNs of the receivers that they list.
        if group.own_psns && group.policy.lists == ListsPlan::Tlv {
            group.policy.lists = ListsPlan::Auto;
        }
    }
}

/// Receivers at any node in half of the schedules, with a random stream of its own: a part of them is attached to node
/// 0 or to others with nodes below.
fn draw_bud_nodes(schedule: &mut Schedule) {
    let mut rng = Rng::new(schedule.seed, "bud nodes");
    if rng.one_in(2) {
        let part = rng.range(1, 8);
        let inner: Vec<usize> = (0..schedule.nodes.len()).filter(|node| schedule.has_nodes_below(*node)).collect();
        for receiver in &mut schedule.receivers {
            if rng.range(1, 8) <= part {
                receiver.edge = rng.choose(&inner);
            }
        }
    }
}

/// Several regions in half of the groups that WRITE, with a random stream of its own.
fn draw_regions(schedule: &mut Schedule) {
    let mut rng = Rng::new(schedule.seed, "regions");
    for group in schedule.groups.iter_mut().filter(|group| group.operation == OperationPlan::Write) {
        let several = rng.range(2, MAX_REGIONS.into()) as u8;
        group.regions = if rng.one_in(2) { several } else { 1 };
    }
}

/// A time for receivers that are not ready in half of the groups that evict, with a random stream of its own.
fn draw_not_ready(schedule: &mut Schedule) {
    let mut rng = Rng::new(schedule.seed, "not ready");
    for group in schedule.groups.iter_mut().filter(|group| group.policy.evict) {
        let percent = rng.log_uniform(T_NOT_READY_PERCENT.0, T_NOT_READY_PERCENT.1) as u16;
        group.policy.t_not_ready_percent = rng.one_in(2).then_some(percent);
    }
}

/// Repair in half of the groups without literal rules: at all nodes, some, or the edges; with room for any window, or
/// for less than one. It has a random stream of its own, so that the rest of a schedule does not depend on it.
fn draw_repair(schedule: &mut Schedule, scale: &Scale) {
    let mut rng = Rng::new(schedule.seed, "repair");
    let is_mixed = rng.one_in(2);
    for node in &mut schedule.nodes {
        node.can_repair = !is_mixed || rng.one_in(2);
    }
    for group in schedule.groups.iter_mut().filter(|group| !group.policy.literal) {
        let plan = RepairPlan {
            edges_only: rng.one_in(4),
            window_packets: if rng.one_in(3) { rng.log_uniform(1, 64) as u32 } else { AMPLE_PACKETS },
            round_trip_ns: rng.log_uniform(1_000, scale.ack_timeout_ns / 4),
        };
        group.policy.repair = rng.one_in(2).then_some(plan);
    }
}

/// A random tree, wide or deep, with a few spare links.
fn draw_nodes(rng: &mut Rng) -> Vec<NodePlan> {
    let count = rng.log_uniform(NODES.0, NODES.1) as usize;
    let reach = if rng.one_in(3) { 2 } else { count };
    let mut nodes = vec![NodePlan { parent: None, spares: Vec::new(), can_repair: false }];
    let mut level = vec![0];
    for node in 1..count {
        let mut parent = node - 1 - rng.below(reach.min(node));
        while level[parent] + 1 > MAX_LEVELS {
            // Node 0 has level 0, so this ends.
            parent = nodes[parent].parent.unwrap_or(0);
        }
        level.push(level[parent] + 1);
        nodes.push(NodePlan { parent: Some(parent), spares: Vec::new(), can_repair: false });
    }
    let inner: Vec<usize> = (0..count).filter(|node| has_children(&nodes, *node)).collect();
    for (node, plan) in nodes.iter_mut().enumerate().skip(1) {
        let others: Vec<usize> =
            inner.iter().copied().filter(|other| *other < node && plan.parent != Some(*other)).collect();
        if !others.is_empty() && rng.one_in(3) {
            plan.spares.push(rng.choose(&others));
        }
    }
    nodes
}

fn has_children(nodes: &[NodePlan], node: usize) -> bool {
    nodes.iter().any(|other| other.parent == Some(node))
}

fn draw_receivers(rng: &mut Rng, nodes: &[NodePlan]) -> Vec<ReceiverPlan> {
    let leaves: Vec<usize> = (1..nodes.len()).filter(|node| !has_children(nodes, *node)).collect();
    let count = rng.log_uniform(RECEIVERS.0, RECEIVERS.1);
    (0..count).map(|_| ReceiverPlan { edge: rng.choose(&leaves) }).collect()
}

/// Draws faults so that a packet meets one in its tree with a given probability, whatever the size of the tree.
fn draw_link(rng: &mut Rng, links: usize) -> LinkPlan {
    let mut fault_ppm = |most_in_tree_ppm: u64, one_in: u64| {
        let in_tree_ppm = if rng.one_in(one_in) { rng.log_uniform(1000, most_in_tree_ppm) } else { 0 };
        in_tree_ppm.div_ceil(links as u64) as u32
    };
    let loss_ppm = fault_ppm(150_000, 2);
    let duplicate_ppm = fault_ppm(100_000, 3);
    let reorder_ppm = fault_ppm(100_000, 3);
    let spike_ppm = fault_ppm(30_000, 4);
    let corrupt_ppm = fault_ppm(100_000, 3);
    LinkPlan {
        rate_bits_per_s: rng.choose(&[10_000_000_000, 25_000_000_000, 100_000_000_000]),
        delay_ns: rng.log_uniform(500, 4000),
        loss_ppm,
        duplicate_ppm,
        reorder_ppm,
        spike_ppm,
        spike_ns: if spike_ppm > 0 { rng.log_uniform(1000, 64_000) } else { 0 },
        corrupt_ppm,
    }
}

fn draw_groups(rng: &mut Rng, nodes: usize, receivers: usize) -> Vec<GroupPlan> {
    let count = rng.choose(&[1, 1, 1, 2, 2, 3]);
    let shared_source = rng.one_in(2);
    let mut copies_left = MAX_COPIES;
    (0..count)
        .map(|position| {
            let mut members: Vec<usize> = (0..receivers).collect();
            if receivers > 1 && rng.one_in(2) {
                // The others may join later.
                let part = rng.range(1, 7);
                members.retain(|_| rng.range(0, 7) < part);
                if members.is_empty() {
                    members.push(rng.below(receivers));
                }
            }
            let links = (nodes + members.len()) as u64;
            let packets = rng.log_uniform(PACKETS.0, PACKETS.1).min(copies_left / links).max(PACKETS.0);
            copies_left = copies_left.saturating_sub(packets * links);
            let source = if shared_source { 0 } else { position };
            draw_group(rng, source, members, packets)
        })
        .collect()
}

fn draw_group(rng: &mut Rng, source: usize, members: Vec<usize>, packets: u64) -> GroupPlan {
    let path_mtu = u64::from(PATH_MTU_OCTETS);
    // The last packet may be short.
    let octets = packets * path_mtu - rng.choose(&[0, 0, 1, path_mtu / 2, path_mtu - 1]);
    let literal = rng.one_in(16);
    let lists = match rng.below(3) {
        0 if members.len() <= MAX_RECEIVERS_IN_TLVS => ListsPlan::Tlv,
        1 => ListsPlan::Provisioned,
        _ => ListsPlan::Auto,
    };
    GroupPlan {
        source,
        start_ns: 0,
        octets,
        message_octets: rng.choose(&[1, 2, 4, 16, 64]) * PATH_MTU_OCTETS,
        first_psn: draw_first_psn(rng, packets),
        operation: rng.choose(&[OperationPlan::Write, OperationPlan::Send]),
        regions: 1,
        own_psns: false,
        policy: PolicyPlan {
            literal,
            evict: rng.one_in(2),
            prune_retransmit: rng.one_in(4),
            lists,
            t_hold_percent: rng.choose(&[100, 100, 50, 10, 0]),
            trailing_cnps: rng.one_in(4),
            min_receivers: if rng.one_in(8) { rng.range(1, members.len() as u64) as u32 } else { 1 },
            t_stall_percent: DEFAULT_T_STALL_PERCENT,
            t_not_ready_percent: None,
            repair: None,
        },
        // Under the literal rules each NAK of each receiver consumes a retry.
        unlimited_retries: literal || !rng.one_in(4),
        members,
    }
}

/// Any PSN, or one that wraps or changes its sign as a serial number during the transfer.
fn draw_first_psn(rng: &mut Rng, packets: u64) -> u32 {
    let psn = match rng.below(4) {
        0 => rng.range(0, (1 << 24) - 1),
        1 => 0,
        2 => (1 << 23) - rng.range(1, packets),
        _ => (1 << 24) - rng.range(1, packets),
    };
    psn as u32
}
