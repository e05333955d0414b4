//! Packets to a Proxy Address: the source's, which go down the tree, and responses, which come up (D1, D12).

use super::state::Target;
use super::{Arrival, Node};
use crate::drop::DropReason;
use crate::headers::{IPV6, ipv6};
use crate::multicast::{check_icrc, data_packet, is_carried};
use srdma_aggregation::{BranchIndex, EpochTag, Refusal, Response, Syndrome};
use srdma_frame::{Frame, Pool};
use srdma_wire::rocev2::{Extended, Packet};
use srdma_wire::{BthView, Instant, Opcode, Psn};

/// What the reverse path has to know of a data packet (rule R2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    psn: Psn,
    ack_request: bool,
}

impl Data {
    pub(super) fn of(bth: &BthView) -> Self {
        Data { psn: bth.psn(), ack_request: bth.ack_request() }
    }

    pub(super) fn psn(&self) -> Psn {
        self.psn
    }

    pub(super) fn ack_request(&self) -> bool {
        self.ack_request
    }
}

impl Node {
    /// A packet whose destination is a group's Proxy Address.
    pub(super) fn proxied(&mut self, arrival: Arrival, frame: Frame, pool: &mut Pool, group: u32) {
        let result = match self.groups[group as usize].as_ref() {
            None => Err(DropReason::UnknownGroup),
            Some(state) => match (ipv6(frame.head(pool)), &state.entry.headend) {
                (Ok(view), Some(headend)) if view.source() == headend.source.address => {
                    return self.request(arrival, frame, pool, group);
                }
                (Ok(view), _) => {
                    let responder = view.source();
                    let taken = match self.fast_cnp_response(arrival, &frame, pool, group) {
                        Some(taken) => taken,
                        None => self.response(arrival, &frame, pool, group),
                    };
                    taken.inspect_err(|reason| self.journal_drop(arrival.now, group, responder, *reason))
                }
                (Err(reason), _) => Err(reason),
            },
        };
        match result {
            Ok(()) => frame.release(pool),
            Err(reason) => self.drop_frame(arrival, frame, pool, reason),
        }
    }

    /// The headend policy: SEND and WRITE go down; READ and ATOMIC are refused (D26).
    fn request(&mut self, arrival: Arrival, frame: Frame, pool: &mut Pool, group: u32) {
        match self.check_request(arrival, &frame, pool, group) {
            Ok((data, true)) => self.encapsulate_copies(arrival, frame, pool, group, data),
            Ok((data, false)) => {
                self.refuse(arrival.now, group, data.psn, pool);
                self.drop_frame(arrival, frame, pool, DropReason::NotMulticastable);
            }
            Err(reason) => self.drop_frame(arrival, frame, pool, reason),
        }
    }

    /// What a request says, and whether a group can carry it. It is only believed from the port where the source is
    /// (MT-9-2, BCP 38).
    fn check_request(
        &self,
        arrival: Arrival,
        frame: &Frame,
        pool: &Pool,
        group: u32,
    ) -> Result<(Data, bool), DropReason> {
        let state = self.groups[group as usize].as_ref().ok_or(DropReason::UnknownGroup)?;
        let packet = data_packet(frame.head(pool).get(IPV6..).unwrap_or(&[]), frame.len() - IPV6)?;
        if arrival.decapsulated || !self.may_come_from(arrival, packet.ipv6.source_octets()) {
            return Err(DropReason::WrongIncomingPort);
        }
        if packet.bth.dest_qpn() != state.entry.designated_qpn {
            return Err(DropReason::WrongQpn);
        }
        let opcode = packet.bth.opcode();
        if !opcode.is_request() {
            return Err(DropReason::NotMulticastable);
        }
        let is_carried = is_carried(opcode);
        if !is_carried {
            // The refusal fails the source's queue pair: damage must not ask for it (D33).
            check_icrc(&packet, frame, pool)?;
        }
        Ok((Data::of(packet.bth), is_carried))
    }

    /// Rule R2: a data packet goes down.
    pub(super) fn data_goes_down(&mut self, now: Instant, group: u32, data: Data, pool: &mut Pool) {
        let Some(state) = self.groups[group as usize].as_mut() else {
            return;
        };
        state.counters.data_packets += 1;
        state.touch(now);
        let before = state.acks.next_deadline();
        state.acks.data(now, data.psn, data.ack_request, &mut self.upstream);
        let deadline = state.acks.next_deadline();
        self.journal_data(now, group, data);
        self.ask_for_evictions(now, group);
        if !self.upstream.is_empty() {
            self.send_upstream(now, group, pool);
        } else if deadline != before {
            self.rearm(group);
        }
    }

    /// A packet from below: ACK, NAK or CNP of a branch; anything else is not taken (D12, D14, D33).
    fn response(&mut self, arrival: Arrival, frame: &Frame, pool: &mut Pool, group: u32) -> Result<(), DropReason> {
        let state = self.groups[group as usize].as_ref().ok_or(DropReason::UnknownGroup)?;
        let head = frame.head(pool);
        let responder = ipv6(head)?.source_octets();
        let branch = state.branch_of(responder).ok_or(DropReason::UnexpectedResponder)?;
        let from_node = !matches!(state.entry.role, srdma_group::NodeRole::Edge);
        // Nodes may be far off, and tunnel in their own name (D12); receivers are not.
        let came_right = match arrival.decapsulated {
            true => from_node && self.outer_source == *responder,
            false => self.may_come_from(arrival, responder),
        };
        if !came_right {
            return Err(DropReason::UnexpectedResponder);
        }
        let packet =
            Packet::parse(head.get(IPV6..).unwrap_or(&[]), frame.len() - IPV6).map_err(|_| DropReason::NotRocev2)?;
        let opcode = packet.bth.opcode();
        if opcode != Opcode::ACKNOWLEDGE && opcode != Opcode::CNP {
            return Err(DropReason::NotAResponse);
        }
        if packet.bth.dest_qpn() != state.entry.designated_qpn {
            return Err(DropReason::WrongQpn);
        }
        check_icrc(&packet, frame, pool)?;
        let psn = packet.bth.psn();
        match packet.extended {
            Extended::Aeth(aeth) => {
                let response = Response::from_aeth(psn, aeth.value()).ok_or(DropReason::ReservedSyndrome)?;
                let tag = EpochTag::from_port(packet.udp.source_port());
                if from_node && state.is_of_old_epoch(branch, tag) {
                    return Err(DropReason::OldEpoch);
                }
                if !from_node && state.is_of_earlier_member(branch, response) {
                    return Err(DropReason::StaleResponse);
                }
                let response = Response { msn: state.raised_msn(branch, response.msn), ..response };
                self.acknowledgement(arrival.now, group, branch, response, pool)
            }
            Extended::Cnp(cnp) => {
                let count = if from_node { cnp.count().max(1) } else { 1 };
                self.congestion(arrival.now, group, branch, count, pool)
            }
            _ => Err(DropReason::NotAResponse),
        }
    }

    /// Whether the port is one where the sender is (D14). Where that is not known, any port of the inside will do.
    pub(super) fn may_come_from(&self, arrival: Arrival, sender: &[u8; 16]) -> bool {
        let is_arrivals = |adjacency: &u32| Some(self.adjacencies[*adjacency as usize].port) == arrival.port;
        match self.main.lookup(sender) {
            Some(Target::Adjacency(adjacency)) => is_arrivals(&adjacency),
            Some(Target::Ecmp(set)) => self.ecmp[set as usize].adjacencies.iter().any(is_arrivals),
            Some(
                Target::Sid(_)
                | Target::Group(_)
                | Target::Encaps(_)
                | Target::Placed(_)
                | Target::Local
                | Target::Blackhole,
            )
            | None => !arrival.port.is_some_and(|port| self.boundary.is_border(port)),
        }
    }

    fn acknowledgement(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        response: Response,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let state = self.groups[group as usize].as_mut().ok_or(DropReason::UnknownGroup)?;
        state.touch(now);
        match response.syndrome {
            Syndrome::Ack => state.counters.acks_received += 1,
            _ => state.counters.naks_received += 1,
        }
        let taken = state.acks.response(now, branch, response, &mut self.upstream);
        self.journal_response(now, group, branch, response, taken);
        self.ask_for_evictions(now, group);
        self.send_upstream(now, group, pool);
        taken.map_err(|refusal| match refusal {
            Refusal::NoSuchBranch(_) => DropReason::UnexpectedResponder,
            Refusal::NothingSent { .. } => DropReason::NothingSent,
            Refusal::ImplausiblePsn { .. } => DropReason::ImplausiblePsn,
            Refusal::Stale { .. } | Refusal::Behind { .. } => DropReason::StaleResponse,
        })
    }

    pub(super) fn congestion(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        count: u32,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let state = self.groups[group as usize].as_mut().ok_or(DropReason::UnknownGroup)?;
        state.counters.cnps_received += 1;
        if let Some(of_branch) = state.branch_cnps.get_mut(branch.index()) {
            *of_branch += 1;
        }
        state.touch(now);
        let taken = state.cnps.cnp(now, branch, count, &mut self.cnps);
        self.journal_cnp(now, group, branch, count, taken.is_ok());
        self.send_cnps(now, group, pool);
        self.rearm(group);
        taken.map_err(|_| DropReason::CnpRateLimited)
    }
}
