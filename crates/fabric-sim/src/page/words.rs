//! Labels of a report.

use srdma_report::{Block, Section};

const WORDS: &[(&str, &str)] = &[
    ("variant", "One of the configurations that are compared. Fabric and traffic are the same in all of them."),
    ("incast", "Many hosts send to one host at the same time, more than its link can carry."),
    ("victim", "A flow that shares links with the congestion but does not cause it."),
    ("ECN mark", "A switch sets Congestion Experienced in a packet that enters a long queue."),
    ("CNP", "Congestion Notification Packet: sent by the receiver of a marked packet to the sender."),
    ("Fast CNP", "A CNP that the congested switch sends itself, so it does not wait in the congested queue."),
    ("DCQCN", "Rate control of senders: each CNP reduces the rate, its absence increases it."),
    ("HPCC++", "Rate control that computes the rate from telemetry that switches write into an IOAM trace."),
    (
        "DCQCN+",
        "DCQCN whose CNPs tell how many flows of the receiver are congested: the more, the slower senders recover.",
    ),
    ("NSCC", "A window that follows marks and round trips, which come with each ACK, as in Ultra Ethernet."),
    ("PFC, PAUSE", "Priority Flow Control: a switch whose buffer fills pauses its neighbour."),
    ("iteration", "One execution of all collectives of a job, from the first message to the last octet."),
    ("ECMP", "Each switch selects one of several equal-cost paths by a hash of addresses, ports and queue pair."),
    (
        "placed",
        "A scheduler that knows all flows assigns each a path; the sender writes it into the destination address.",
    ),
    ("steering", "A NIC changes to its backup path when CNPs report congestion or probes are lost."),
    ("slowdown", "Completion time of a flow divided by its completion time on an idle fabric."),
    ("p99", "99th percentile."),
    ("seed", "Initial value of all random generators of a run."),
];

pub(super) fn section() -> Section {
    Section::new("Terms", "", vec![Block::definitions(WORDS)])
}
