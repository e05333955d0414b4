//! Validity of schedules: tokens come from users, and shrinking may produce invalid schedules.
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::schedule::{
    Attacker, Claim, Event, GroupPlan, Insider, LinkPlan, ListsPlan, MAX_REGIONS, NodePlan, OperationPlan, Schedule,
};
use srdma_dataplane::MAX_WORKERS;
use srdma_wire::units::{MBIT_PER_S, NS_PER_S};

/// Maximum number of nodes.
pub const MAX_NODES: usize = 64;

/// Maximum number of receivers.
pub const MAX_RECEIVERS: usize = 256;

/// Maximum number of groups.
pub const MAX_GROUPS: usize = 8;

/// Maximum size of a transfer.
pub const MAX_OCTETS: u64 = 16 << 20;

/// Maximum time of any event or end of a fault: a minute.
pub const LATEST_NS: u64 = 60 * NS_PER_S;

/// Maximum room of a retransmission buffer, in packets.
pub const MAX_WINDOW_PACKETS: u32 = 1 << 16;

/// Maximum number of frames that one event sends.
pub const MAX_COPIES: u32 = 100_000;

const MIN_RATE_BITS_PER_S: u64 = MBIT_PER_S;

/// Why a schedule is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {found}; {expected}")]
pub struct Invalid {
    place: String,
    found: String,
    expected: &'static str,
}

fn require(holds: bool, place: &str, found: impl ToString, expected: &'static str) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(Invalid { place: place.to_owned(), found: found.to_string(), expected }) }
}

impl Schedule {
    /// Checks that the schedule can be run.
    ///
    /// # Errors
    ///
    /// The first invalid part, with the valid range.
    pub fn check(&self) -> Result<(), Invalid> {
        let within = |count: usize, most: usize| (1..=most).contains(&count);
        require((2..=MAX_NODES).contains(&self.nodes.len()), "nodes", self.nodes.len(), "there must be 2 to 64")?;
        let receivers = self.receivers.len();
        require(within(receivers, MAX_RECEIVERS), "receivers", receivers, "there must be 1 to 256")?;
        require(within(self.groups.len(), MAX_GROUPS), "groups", self.groups.len(), "there must be 1 to 8")?;
        require((1..=MAX_WORKERS).contains(&self.workers), "workers", self.workers, "it must be 1 to 64")?;
        require(self.faults_end_ns <= LATEST_NS, "faults_end_ns", self.faults_end_ns, "it must be within a minute")?;
        for (node, plan) in self.nodes.iter().enumerate() {
            check_node(node, plan)?;
        }
        for (receiver, plan) in self.receivers.iter().enumerate() {
            let exists = plan.edge < self.nodes.len();
            require(exists, &format!("receivers[{receiver}]"), plan.edge, "it must be an existing node")?;
        }
        check_link(&self.link)?;
        for (group, plan) in self.groups.iter().enumerate() {
            self.check_group(&format!("groups[{group}]"), plan)?;
        }
        let mut last_ns = 0;
        for (position, timed) in self.events.iter().enumerate() {
            let place = format!("events[{position}]");
            let in_order = (last_ns..=LATEST_NS).contains(&timed.at_ns);
            require(in_order, &place, timed.at_ns, "times must not decrease and be at most a minute")?;
            last_ns = timed.at_ns;
            self.check_event(&place, &timed.event)?;
        }
        Ok(())
    }

    fn check_group(&self, place: &str, plan: &GroupPlan) -> Result<(), Invalid> {
        require(plan.source < MAX_GROUPS, &format!("{place}.source"), plan.source, "it must be below 8")?;
        let members = &plan.members;
        let is_ordered = members.windows(2).all(|pair| pair[0] < pair[1]);
        let exist = members.last().is_some_and(|last| *last < self.receivers.len());
        let expected = "expected at least one existing receiver, in order, each once";
        require(is_ordered && exist, &format!("{place}.members"), format!("{members:?}"), expected)?;
        require(plan.start_ns <= LATEST_NS, &format!("{place}.start_ns"), plan.start_ns, "it must be within a minute")?;
        let fits = (1..=MAX_OCTETS).contains(&plan.octets);
        require(fits, &format!("{place}.octets"), plan.octets, "there must be 1 octet to 16 MiB")?;
        let fits = (1..=MAX_OCTETS).contains(&u64::from(plan.message_octets));
        require(fits, &format!("{place}.message_octets"), plan.message_octets, "there must be 1 octet to 16 MiB")?;
        let fits =
            plan.regions == 1 || (plan.operation == OperationPlan::Write && (1..=MAX_REGIONS).contains(&plan.regions));
        require(fits, &format!("{place}.regions"), plan.regions, "there must be 1, or up to 4 of WRITE")?;
        require(plan.first_psn < 1 << 24, &format!("{place}.first_psn"), plan.first_psn, "a PSN has 24 bits")?;
        let named = plan.own_psns && plan.policy.lists == ListsPlan::Tlv;
        require(!named, &format!("{place}.policy.lists"), "Tlv", "packets do not name receivers' own PSNs")?;
        let percent = plan.policy.t_hold_percent;
        require(percent <= 100, &format!("{place}.policy.t_hold_percent"), percent, "it must be at most 100")?;
        let percent = plan.policy.t_stall_percent;
        require(percent > 0, &format!("{place}.policy.t_stall_percent"), percent, "it must be more than 0")?;
        let percent = plan.policy.t_not_ready_percent.unwrap_or(1);
        require(percent > 0, &format!("{place}.policy.t_not_ready_percent"), percent, "it must be more than 0")?;
        if let Some(repair) = plan.policy.repair {
            let (packets, round_trip_ns) = (repair.window_packets, repair.round_trip_ns);
            let fits = (1..=MAX_WINDOW_PACKETS).contains(&packets);
            require(fits, &format!("{place}.policy.repair.window_packets"), packets, "there must be 1 to 65,536")?;
            let fits = (1..=LATEST_NS).contains(&round_trip_ns);
            require(
                fits,
                &format!("{place}.policy.repair.round_trip_ns"),
                round_trip_ns,
                "it must be within a minute",
            )?;
        }
        let least = plan.policy.min_receivers;
        require(least >= 1, &format!("{place}.policy.min_receivers"), least, "a group has at least one receiver")
    }

    fn check_event(&self, place: &str, event: &Event) -> Result<(), Invalid> {
        let node_exists = |node: usize| require(node < self.nodes.len(), place, node, "there is no such node");
        let is_below =
            |node: usize| require((1..self.nodes.len()).contains(&node), place, node, "it must not be node 0");
        let receiver_exists =
            |receiver: usize| require(receiver < self.receivers.len(), place, receiver, "there is no such receiver");
        let group_exists = |group: usize| require(group < self.groups.len(), place, group, "there is no such group");
        let lasts = |for_ns: u64| require(for_ns <= LATEST_NS, place, for_ns, "it may last at most a minute");
        match event {
            Event::CrashNode { node, for_ns } => node_exists(*node).and(lasts(*for_ns)),
            Event::CutNode { node, for_ns } => is_below(*node).and(lasts(*for_ns)),
            Event::CutReceiver { receiver, for_ns }
            | Event::FreezeReceiver { receiver, for_ns }
            | Event::StarveReceiver { receiver, for_ns }
            | Event::Congest { receiver, for_ns } => receiver_exists(*receiver).and(lasts(*for_ns)),
            Event::SlowReceiver { receiver, for_ns, by_ns } => {
                receiver_exists(*receiver).and(lasts(*for_ns)).and(lasts(*by_ns))
            }
            Event::KillReceiver { receiver } => receiver_exists(*receiver),
            Event::FailReceiver { receiver, group }
            | Event::Leave { group, receiver }
            | Event::Join { group, receiver } => receiver_exists(*receiver).and(group_exists(*group)),
            Event::Replay { node, up: _, frames } => {
                is_below(*node)?;
                require(*frames <= MAX_COPIES, place, frames, "there may be at most 100000 frames")
            }
            Event::Rehome { node, parent } => {
                is_below(*node)?;
                let plan = &self.nodes[*node];
                let is_home = plan.parent == Some(*parent) || plan.spares.contains(parent);
                require(is_home, place, parent, "it must be the node's parent or one of its spares")
            }
            Event::UntrueResponse(untrue) => {
                group_exists(untrue.group)?;
                match untrue.by {
                    Insider::Receiver(receiver) => receiver_exists(receiver)?,
                    Insider::Link(node) => is_below(node)?,
                }
                require(untrue.copies <= MAX_COPIES, place, untrue.copies, "there may be at most 100000 packets")
            }
            Event::Forge(forgery) => {
                group_exists(forgery.group)?;
                match forgery.from {
                    Attacker::Receiver(receiver) => receiver_exists(receiver)?,
                    Attacker::External(node) => node_exists(node)?,
                }
                match forgery.claims {
                    Claim::Receiver(receiver) => {
                        receiver_exists(receiver)?;
                        let is_other = forgery.from != Attacker::Receiver(receiver);
                        require(is_other, place, receiver, "it must be another receiver than the attacker")?;
                    }
                    Claim::Node(node) => node_exists(node)?,
                    Claim::Proxy | Claim::Source | Claim::External => {}
                }
                let offset = forgery.psn_offset;
                let is_serial = (-(1 << 23)..=1 << 23).contains(&offset);
                require(is_serial, place, offset, "an offset must be within ±2^23")?;
                require(forgery.copies <= MAX_COPIES, place, forgery.copies, "there may be at most 100000 copies")
            }
        }
    }
}

fn check_node(node: usize, plan: &NodePlan) -> Result<(), Invalid> {
    let place = format!("nodes[{node}]");
    let is_above = plan.parent.map_or(node == 0, |parent| parent < node);
    require(
        is_above,
        &place,
        format!("{:?}", plan.parent),
        "every node but node 0 has a parent with a smaller position",
    )?;
    let are_above = plan.spares.iter().all(|spare| *spare < node && plan.parent != Some(*spare));
    let expected = "spares have smaller positions and are not the parent";
    require(are_above, &place, format!("{:?}", plan.spares), expected)
}

fn check_link(link: &LinkPlan) -> Result<(), Invalid> {
    let rate = link.rate_bits_per_s;
    let fits = (MIN_RATE_BITS_PER_S..=10_000_000_000_000).contains(&rate);
    require(fits, "link.rate_bits_per_s", rate, "it must be from 1 Mbit/s to 10 Tbit/s")?;
    let longest_ns = link.delay_ns.max(link.spike_ns);
    require(longest_ns <= LATEST_NS, "link", longest_ns, "a delay may be at most a minute")?;
    for (name, ppm) in [
        ("link.loss_ppm", link.loss_ppm),
        ("link.duplicate_ppm", link.duplicate_ppm),
        ("link.reorder_ppm", link.reorder_ppm),
        ("link.spike_ppm", link.spike_ppm),
        ("link.corrupt_ppm", link.corrupt_ppm),
    ] {
        require(ppm <= 1_000_000, name, ppm, "a probability is at most 1000000 parts of a million")?;
    }
    Ok(())
}
