//! The words that a report uses.

use srdma_report::{Block, Section};

const WORDS: &[(&str, &str)] = &[
    ("variant", "One of the ways to handle congestion that are compared. Fabric and traffic are the same in all."),
    ("incast", "Many hosts send to one at the same time, more than its link can carry."),
    ("victim", "A flow that shares links with the congestion but does not cause it."),
    ("ECN mark", "A switch sets Congestion Experienced in a packet that met a long queue."),
    ("CNP", "Congestion Notification Packet: the receiver of a marked packet tells the sender."),
    ("Fast CNP", "The same message, sent by the switch itself: it does not wait behind the queue that it tells of."),
    ("DCQCN", "A rate control of senders: slower with each CNP, faster again without."),
    ("HPCC++", "A rate control that computes the rate from what switches wrote into a trace (IOAM) on the way."),
    ("PFC, PAUSE", "Priority Flow Control: a switch whose buffer fills tells its neighbour to stop for a while."),
    ("iteration", "A job does its collectives once, from the first message to the last octet of all."),
    ("ECMP", "Each switch takes one of several equal ways by a hash of the packet's addresses, ports and queue pair."),
    (
        "placed",
        "A scheduler that knows all flows gives each a path; the sender writes it into the destination address.",
    ),
    ("steering", "A NIC changes to another path by itself, when it is told of congestion or its probes are silent."),
    ("slowdown", "The time a flow took over the time that it would have taken alone."),
    ("p99", "The 99th percentile: one of a hundred is worse."),
    ("seed", "The number from which everything random in a run is drawn."),
];

/// The section.
pub(super) fn section() -> Section {
    Section::new("Words", "", vec![Block::definitions(WORDS)])
}
