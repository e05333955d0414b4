//! From a seed to a schedule: the default distribution. The documentation of storms has it as a table.
//!
//! What a seed means may change only together with [`VERSION`](crate::line::VERSION), or old seeds would silently mean
//! something else.

use crate::dice::Dice;
use crate::schedule::{
    GroupPlan, LinkPlan, ListsPlan, NodePlan, OperationPlan, PATH_MTU_OCTETS, PolicyPlan, ReceiverPlan, Schedule,
    USUAL_T_STALL_PERCENT,
};
use crate::{events, scale::Scale};

/// Nodes of a network.
const NODES: (u64, u64) = (2, 40);

/// Receivers of a network.
const RECEIVERS: (u64, u64) = (1, 200);

/// Nodes from the first hop to the lowest, at most.
const MOST_LEVELS: usize = 7;

/// Packets that each group's source sends; 16 to 256 KiB.
const PACKETS: (u64, u64) = (16, 256);

/// Copies of data packets that arrive at nodes and receivers without any fault, at most: what is above is cut down in
/// packets, then in receivers.
const MOST_COPIES: u64 = 1_200;

/// TLV lists are asked for up to so many receivers, so that those that join later still fit.
const MOST_RECEIVERS_IN_TLVS: usize = 24;

impl Schedule {
    /// The schedule of a seed.
    pub fn from_seed(seed: u64) -> Schedule {
        let mut dice = Dice::new(seed, "storm");
        let nodes = draw_nodes(&mut dice);
        let receivers = draw_receivers(&mut dice, &nodes);
        let link = draw_link(&mut dice, nodes.len() + receivers.len());
        let groups = draw_groups(&mut dice, nodes.len(), receivers.len());
        let mut schedule = Schedule { seed, nodes, receivers, link, groups, events: Vec::new(), faults_end_ns: 0 };
        let scale = Scale::of(&schedule);
        for group in &mut schedule.groups {
            group.start_ns = if dice.one_in(2) { 0 } else { dice.between(0, scale.transfer_ns) };
        }
        schedule.faults_end_ns = dice.between(scale.transfer_ns / 2, 2 * scale.transfer_ns + 4 * scale.ack_timeout_ns);
        schedule.events = events::draw(&mut dice, &schedule, &scale);
        schedule
    }
}

/// A tree that grows node by node, bushy or slim, and here and there a spare link.
fn draw_nodes(dice: &mut Dice) -> Vec<NodePlan> {
    let count = dice.over_doublings(NODES.0, NODES.1) as usize;
    let reach = if dice.one_in(3) { 2 } else { count };
    let mut nodes = vec![NodePlan { parent: None, spares: Vec::new() }];
    let mut level = vec![0];
    for node in 1..count {
        let mut parent = node - 1 - dice.position(reach.min(node));
        while level[parent] + 1 > MOST_LEVELS {
            // Node 0 has level 0, so this ends.
            parent = nodes[parent].parent.unwrap_or(0);
        }
        level.push(level[parent] + 1);
        nodes.push(NodePlan { parent: Some(parent), spares: Vec::new() });
    }
    let inner: Vec<usize> = (0..count).filter(|node| has_children(&nodes, *node)).collect();
    for (node, plan) in nodes.iter_mut().enumerate().skip(1) {
        let others: Vec<usize> =
            inner.iter().copied().filter(|other| *other < node && plan.parent != Some(*other)).collect();
        if !others.is_empty() && dice.one_in(3) {
            plan.spares.push(dice.one_of(&others));
        }
    }
    nodes
}

fn has_children(nodes: &[NodePlan], node: usize) -> bool {
    nodes.iter().any(|other| other.parent == Some(node))
}

fn draw_receivers(dice: &mut Dice, nodes: &[NodePlan]) -> Vec<ReceiverPlan> {
    let leaves: Vec<usize> = (1..nodes.len()).filter(|node| !has_children(nodes, *node)).collect();
    let count = dice.over_doublings(RECEIVERS.0, RECEIVERS.1);
    (0..count).map(|_| ReceiverPlan { edge: dice.one_of(&leaves) }).collect()
}

/// Probabilities are such that a packet meets a fault somewhere in its tree with a given probability: a tree of two
/// hundred links is to work as well as one of three.
fn draw_link(dice: &mut Dice, links: usize) -> LinkPlan {
    let mut fault_ppm = |most_in_tree_ppm: u64, one_in: u64| {
        let in_tree_ppm = if dice.one_in(one_in) { dice.over_doublings(1000, most_in_tree_ppm) } else { 0 };
        in_tree_ppm.div_ceil(links as u64) as u32
    };
    let loss_ppm = fault_ppm(150_000, 2);
    let duplicate_ppm = fault_ppm(100_000, 3);
    let reorder_ppm = fault_ppm(100_000, 3);
    let spike_ppm = fault_ppm(30_000, 4);
    let corrupt_ppm = fault_ppm(100_000, 3);
    LinkPlan {
        rate_bits_per_s: dice.one_of(&[10_000_000_000, 25_000_000_000, 100_000_000_000]),
        delay_ns: dice.over_doublings(500, 4000),
        loss_ppm,
        duplicate_ppm,
        reorder_ppm,
        spike_ppm,
        spike_ns: if spike_ppm > 0 { dice.over_doublings(1000, 64_000) } else { 0 },
        corrupt_ppm,
    }
}

fn draw_groups(dice: &mut Dice, nodes: usize, receivers: usize) -> Vec<GroupPlan> {
    let count = dice.one_of(&[1, 1, 1, 2, 2, 3]);
    let shared_source = dice.one_in(2);
    let mut copies_left = MOST_COPIES;
    (0..count)
        .map(|position| {
            let mut members: Vec<usize> = (0..receivers).collect();
            if receivers > 1 && dice.one_in(2) {
                // Some are left outside, so that they can join.
                let part = dice.between(1, 7);
                members.retain(|_| dice.between(0, 7) < part);
                if members.is_empty() {
                    members.push(dice.position(receivers));
                }
            }
            let links = (nodes + members.len()) as u64;
            let packets = dice.over_doublings(PACKETS.0, PACKETS.1).min(copies_left / links).max(PACKETS.0);
            copies_left = copies_left.saturating_sub(packets * links);
            let source = if shared_source { 0 } else { position };
            draw_group(dice, source, members, packets)
        })
        .collect()
}

fn draw_group(dice: &mut Dice, source: usize, members: Vec<usize>, packets: u64) -> GroupPlan {
    let path_mtu = u64::from(PATH_MTU_OCTETS);
    // The last packet may be short.
    let octets = packets * path_mtu - dice.one_of(&[0, 0, 1, path_mtu / 2, path_mtu - 1]);
    let literal = dice.one_in(16);
    let lists = match dice.position(3) {
        0 if members.len() <= MOST_RECEIVERS_IN_TLVS => ListsPlan::Tlv,
        1 => ListsPlan::Provisioned,
        _ => ListsPlan::Auto,
    };
    GroupPlan {
        source,
        start_ns: 0,
        octets,
        message_octets: dice.one_of(&[1, 2, 4, 16, 64]) * PATH_MTU_OCTETS,
        first_psn: draw_first_psn(dice, packets),
        operation: dice.one_of(&[OperationPlan::Write, OperationPlan::Send]),
        policy: PolicyPlan {
            literal,
            evict: dice.one_in(2),
            prune_retransmit: dice.one_in(4),
            lists,
            t_hold_percent: dice.one_of(&[100, 100, 50, 10, 0]),
            trailing_cnps: dice.one_in(4),
            min_receivers: if dice.one_in(8) { dice.between(1, members.len() as u64) as u32 } else { 1 },
            t_stall_percent: USUAL_T_STALL_PERCENT,
        },
        // Under the literal rules each NAK of each receiver spends a retry.
        unlimited_retries: literal || !dice.one_in(4),
        members,
    }
}

/// Anywhere; or so that the PSN, or its sign as a serial number, changes on the way.
fn draw_first_psn(dice: &mut Dice, packets: u64) -> u32 {
    let psn = match dice.position(4) {
        0 => dice.between(0, (1 << 24) - 1),
        1 => 0,
        2 => (1 << 23) - dice.between(1, packets),
        _ => (1 << 24) - dice.between(1, packets),
    };
    psn as u32
}
