//! Insiders: receivers, and attackers on the path of a branch, that send responses in the right name and at the right
//! place which are not true.
//!
//! Nothing in a response shows that it is untrue. What holds is that an insider deceives the source about the receivers
//! behind itself alone: no response to the source covers what another member lacks, and other groups are not concerned.

use crate::forge::{self, HOST_SOURCE_PORT, PacketAddresses};
use crate::outcome::ForgeryOutcome;
use crate::rng::Rng;
use crate::scale::Scale;
use crate::schedule::{Event, Insider, ResponseKind, Schedule, TimedEvent, UntrueResponse};
use crate::world::World;
use crate::{address, summary};
use srdma_frame::PortId;
use srdma_sim::network::Direction;
use srdma_wire::{Ethernet, Ipv6, Psn, Udp};
use std::net::Ipv6Addr;

/// Untrue responses per schedule.
const RESPONSES: (u64, u64) = (1, 16);

impl Schedule {
    /// The schedule of a seed with untrue responses of one or two insiders while the groups are active.
    pub fn with_insiders(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed(seed);
        let scale = Scale::of(&schedule);
        let mut rng = Rng::new(seed, "insiders");
        let insiders: Vec<Insider> = (0..=rng.below(2)).map(|_| draw_insider(&mut rng, &schedule)).collect();
        let group = rng.below(schedule.groups.len());
        for _ in 0..rng.log_uniform(RESPONSES.0, RESPONSES.1) {
            let at_ns = schedule.groups[group].start_ns + rng.range(0, scale.transfer_ns + scale.ack_timeout_ns);
            let by = rng.choose(&insiders);
            let event = Event::UntrueResponse(draw_response(&mut rng, group, by, &scale));
            schedule.events.push(TimedEvent { at_ns, event });
        }
        schedule.events.sort_by_key(|timed| timed.at_ns);
        schedule
    }
}

fn draw_insider(rng: &mut Rng, schedule: &Schedule) -> Insider {
    let is_link = rng.one_in(2);
    match is_link {
        true => Insider::Link(1 + rng.below(schedule.nodes.len() - 1)),
        false => Insider::Receiver(rng.below(schedule.receivers.len())),
    }
}

fn draw_response(rng: &mut Rng, group: usize, by: Insider, scale: &Scale) -> UntrueResponse {
    let kind = rng.choose(&[
        ResponseKind::Ack,
        ResponseKind::Ack,
        ResponseKind::Ack,
        ResponseKind::SequenceNak,
        ResponseKind::RnrNak,
        ResponseKind::FatalNak,
        ResponseKind::Cnp,
    ]);
    let window = u64::from(scale.window_packets);
    let psn_offset = match rng.below(6) {
        0..3 => -(rng.range(1, window) as i64),
        3 => -1,
        4 => rng.range(0, 2 * window) as i64,
        _ => rng.range(0, 1 << 24) as i64 - (1 << 23),
    };
    UntrueResponse { group, by, kind, psn_offset: psn_offset as i32, copies: rng.log_uniform(1, 4) as u32 }
}

impl World<'_> {
    /// Sends untrue responses to the node above the insider.
    pub(crate) fn respond_untruly(&mut self, untrue: &UntrueResponse) {
        let Some((node, port, packet)) = self.untrue_packet(untrue) else { return };
        let element = self.testbed.nodes[node];
        if self.network.workers(element).is_empty() {
            // The node is down.
            return;
        }
        self.flows[untrue.group].insiders.insert(untrue.by);
        self.note_deceived(untrue.group);
        let frame = self.frame_to(node, port, &packet);
        let mut outcome = ForgeryOutcome::default();
        for _ in 0..untrue.copies {
            self.settle(node);
            let before = self.aggregation_state(node);
            self.network.inject((element, port), &frame);
            self.settle(node);
            outcome.sent += 1;
            outcome.accepted += u64::from(self.aggregation_state(node) != before);
        }
        self.count(summary::untrue_name(untrue.kind), outcome.sent);
        self.count("untrue responses with an effect", outcome.accepted);
        self.observe(element);
    }

    /// The node and port at which it arrives, and the packet from its IPv6 header on.
    fn untrue_packet(&self, untrue: &UntrueResponse) -> Option<(usize, PortId, Vec<u8>)> {
        let flow = &self.flows[untrue.group];
        let mut psn = flow.next_psn(&self.network).plus(untrue.psn_offset.rem_euclid(1 << 24).unsigned_abs());
        let (node, port, source, source_port) = match untrue.by {
            Insider::Receiver(receiver) => {
                let (node, port) = self.testbed.port_of_receiver(receiver)?;
                psn = self.psn_of_receiver(untrue.group, receiver, psn);
                (node, port, self.testbed.receiver_address(receiver), HOST_SOURCE_PORT)
            }
            Insider::Link(below) => {
                let parent = self.nodes[below].parent?;
                let link = self.testbed.link_above(below, parent)?;
                let loopback = address::node(below).loopback;
                let mut seen = self.network.kept_for_replay(link, Direction::Up);
                let source_port =
                    seen.find_map(|frame| source_port_of(frame, self.testbed.proxy(untrue.group), loopback))?;
                (parent, self.testbed.port_to_node(parent, below)?, loopback, source_port)
            }
        };
        let addresses = PacketAddresses { source, destination: self.testbed.proxy(untrue.group), source_port };
        let packet = forge::response(&addresses, untrue.kind, address::designated_qpn(untrue.group), psn);
        Some((node, port, packet))
    }

    /// The PSN that a receiver of a group names for one of the group.
    pub(crate) fn psn_of_receiver(&self, group: usize, receiver: usize, psn: Psn) -> Psn {
        let member = self.flows[group].members.iter().find(|member| member.receiver == receiver);
        member.map_or(psn, |member| member.psn_offset.of_receiver(psn))
    }

    /// Adds the receivers that are, or were, behind an insider of the group.
    pub(crate) fn note_deceived(&mut self, group: usize) {
        if self.flows[group].insiders.is_empty() {
            return;
        }
        for receiver in 0..self.receivers.len() {
            if self.is_behind_insider(group, receiver) {
                self.flows[group].deceived.insert(receiver);
            }
        }
    }

    fn is_behind_insider(&self, group: usize, receiver: usize) -> bool {
        let insiders = &self.flows[group].insiders;
        let mut above = vec![self.testbed.edge_of(receiver)];
        let mut is_behind = insiders.contains(&Insider::Receiver(receiver));
        // Parents have lower numbers than their children, so that this ends.
        while let Some(node) = above.pop() {
            is_behind |= insiders.contains(&Insider::Link(node));
            above.extend(&self.nodes[node].parents);
        }
        is_behind
    }
}

/// The source port of a group's response from a node: what an attacker on the path sees of its epoch (D12).
fn source_port_of(frame: &[u8], proxy: Ipv6Addr, loopback: Ipv6Addr) -> Option<u16> {
    let (ipv6, rest) = Ipv6::parse(frame.get(Ethernet::LEN..)?).ok()?;
    let (udp, _) = Udp::parse(rest).ok()?;
    (ipv6.source == loopback && ipv6.destination == proxy).then_some(udp.source_port)
}
