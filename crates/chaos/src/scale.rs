//! Typical times in a schedule's network, from which events are drawn.

use crate::schedule::{GroupPlan, LinkPlan, PATH_MTU, PATH_MTU_OCTETS, Schedule};
use srdma_sim::link::LinkModel;
use srdma_sim::node_or_host::NodeOrHost;
use srdma_sim::timing::Timing;

/// Approximate octets of a full packet on a link, headers included.
const PACKET_OCTETS: usize = PATH_MTU_OCTETS as usize + 200;

/// Typical times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The sources' ACK timeout, in nanoseconds.
    pub ack_timeout_ns: u64,
    /// Approximate duration of the largest group's transfer without faults, in nanoseconds.
    pub transfer_ns: u64,
    /// Longest time for which the workers of all nodes on the way hand over a packet and its response.
    pub handovers_ns: u64,
    /// Maximum number of outstanding packets of a source.
    pub window_packets: u32,
}

impl Scale {
    /// The typical times of a schedule.
    pub fn of(schedule: &Schedule) -> Scale {
        let timing = timing(schedule);
        let link = model(&schedule.link);
        let packets = schedule.groups.iter().map(packets).max().unwrap_or(0);
        // Groups share the first link when they share a source, and often others.
        let sending_ns = packets * schedule.groups.len() as u64 * link.transmission_ps(PACKET_OCTETS) / 1000;
        let round_trips = packets.div_ceil(u64::from(timing.window_packets)) + 1;
        let handovers = if schedule.workers > 1 { 2 * levels(schedule) as u64 } else { 0 };
        Scale {
            ack_timeout_ns: 4096 << timing.ack_timeout,
            transfer_ns: sending_ns + round_trips * timing.round_trip_ns,
            handovers_ns: handovers * NodeOrHost::LONGEST_HANDOVER.as_nanos() as u64,
            window_packets: timing.window_packets,
        }
    }
}

/// Packets of a group's transfer.
fn packets(group: &GroupPlan) -> u64 {
    let message_octets = u64::from(group.message_octets.max(1));
    let packets_of = |octets: u64| octets.div_ceil(u64::from(PATH_MTU_OCTETS));
    group.octets / message_octets * packets_of(message_octets) + packets_of(group.octets % message_octets)
}

/// Timers and windows for the schedule's longest path.
pub fn timing(schedule: &Schedule) -> Timing {
    let levels = levels(schedule);
    // From the source to node 0, down the levels, and to the receiver.
    Timing::new(&model(&schedule.link), levels + 1, levels, PATH_MTU)
}

/// Nodes on the longest path through parents and spares.
fn levels(schedule: &Schedule) -> usize {
    let mut depth: Vec<usize> = Vec::new();
    for node in &schedule.nodes {
        // Parents and spares have smaller positions.
        let above = node.parent.iter().chain(&node.spares).filter_map(|above| depth.get(*above)).max();
        let own = above.map_or(1, |above| above + 1);
        depth.push(own);
    }
    depth.into_iter().max().unwrap_or(1)
}

/// A schedule's link without its faults.
fn model(link: &LinkPlan) -> LinkModel {
    LinkModel::perfect(link.rate_bits_per_s.max(1), link.delay_ns)
}
