//! Data sent downstream, and ACKs, NAKs and CNPs received from below (D12, D14, D33).

use super::{GroupState, Groups};
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::event::Event;
use crate::headers::{IPV6, ipv6};
use crate::multicast::{check_icrc, data_packet, is_carried};
use crate::security::Security;
use crate::tables::Tables;
use srdma_aggregation::{BranchIndex, CnpUp, EpochTag, Refusal, Response, Rule, Syndrome, UpstreamResponse};
use srdma_frame::{Frame, Pool};
use srdma_group::Dscp;
use srdma_repair::Request as RepairRequest;
use srdma_wire::rocev2::{Extended, Packet};
use srdma_wire::{BthView, Instant, Opcode, Psn, Qpn};

/// NAK code: invalid request.
const INVALID_REQUEST: u8 = 1;

/// The facts of a data packet that the aggregation needs (rule R2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    psn: Psn,
    ack_request: bool,
    migration_request: bool,
}

impl Data {
    pub(crate) fn of(bth: &BthView) -> Self {
        Data { psn: bth.psn(), ack_request: bth.ack_request(), migration_request: bth.migration_request() }
    }

    pub(crate) fn psn(&self) -> Psn {
        self.psn
    }

    pub(crate) fn ack_request(&self) -> bool {
        self.ack_request
    }
}

/// Responses and CNPs of a group upstream. The caller sends the CNPs, then the responses, and returns the memory by
/// [`Groups::sent`].
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Outbox {
    pub(crate) cnps: Vec<CnpUp>,
    pub(crate) responses: Vec<UpstreamResponse>,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.cnps.is_empty() && self.responses.is_empty()
    }
}

/// Result of checking a request of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// It is sent to the branches.
    Carried(Data),
    /// A READ or ATOMIC at this PSN, which the headend refuses (D26).
    Refused(Psn),
}

/// A packet from below, checked.
pub(super) struct FromBelow<'f> {
    pub(super) branch: BranchIndex,
    /// It is a node's, not a receiver's.
    pub(super) is_node: bool,
    pub(super) packet: Packet<'f>,
}

impl Groups {
    /// Whether a group can carry a request of its source. It is only accepted from the port where the source is, or
    /// from the peer of shared hosts, if the source is one of them (MT-9-2, BCP 38, D290).
    pub(crate) fn check_request(
        &self,
        context: &PacketContext,
        frame: &Frame,
        pool: &Pool,
        group: u32,
        tables: &Tables,
        security: &Security,
    ) -> Result<Request, DropReason> {
        let state = self.get(group).ok_or(DropReason::UnknownGroup)?;
        let packet = data_packet(frame.head(pool).get(IPV6..).unwrap_or(&[]), frame.len() - IPV6)?;
        let source = packet.ipv6.source_octets();
        let came_right = match context.outer_source {
            Some(outer_source) => security.shared_hosts.may_pass_on(&outer_source, source),
            None => security.may_come_from(context, source, tables),
        };
        if !came_right {
            return Err(DropReason::WrongIncomingPort);
        }
        if packet.bth.dest_qpn() != state.entry.designated_qpn {
            return Err(DropReason::WrongQpn);
        }
        let opcode = packet.bth.opcode();
        if !opcode.is_request() {
            return Err(DropReason::NotMulticastable);
        }
        if is_carried(opcode) {
            let data = Data::of(packet.bth);
            return if state.awaits_other(data.psn) {
                Err(DropReason::BeforeFirstPsn)
            } else {
                Ok(Request::Carried(data))
            };
        }
        // The refusal fails the source's queue pair: a damaged request must not cause it (D33).
        check_icrc(&packet, frame, pool)?;
        Ok(Request::Refused(packet.bth.psn()))
    }

    /// Rule R2: a data packet is sent downstream. `None` when nothing is to be sent upstream for it.
    #[inline]
    pub(crate) fn data(&mut self, now: Instant, group: u32, data: Data) -> Option<Outbox> {
        let state = self.slots[group as usize].as_mut()?;
        state.counters.data_packets += 1;
        state.marking.migration_request = data.migration_request;
        state.touch(now);
        let before = state.acks.next_deadline();
        if state.repair.as_ref().is_some_and(|repair| !repair.is_off()) {
            state.acks.kept_data(now, data.psn, data.ack_request, &mut self.responses);
        } else {
            state.acks.data(now, data.psn, data.ack_request, &mut self.responses);
        }
        let deadline = state.acks.next_deadline();
        self.journal_data(now, group, data);
        self.request_evictions(now, group);
        if !self.responses.is_empty() {
            return Some(self.take_responses(group));
        }
        if deadline != before {
            self.rearm(group);
        }
        None
    }

    /// The headend's own response to a request that a group cannot carry. A requester takes a NAK for an ACK of
    /// everything before it: the NAK is sent when the receivers have confirmed that (D24, D26).
    pub(crate) fn refuse(&mut self, group: u32, psn: Psn) -> Outbox {
        if let Some(state) = self.get_mut(group) {
            state.refused = Some(state.refused.map_or(psn, |earlier| earlier.serial_min(psn)));
        }
        self.take_responses(group)
    }

    /// Handles the deadline of a group: held NAKs (R5), CNP windows (MT-5.3.3-2).
    pub(crate) fn tick(&mut self, now: Instant, group: u32) -> Outbox {
        let Some(state) = self.slots[group as usize].as_mut() else {
            return Outbox::default();
        };
        state.acks.tick(now, &mut self.responses);
        if let Some(repair) = &mut state.repair {
            repair.tick(now, &state.acks, &mut self.responses, &mut self.pending.effects);
        }
        state.cnps.tick(now, &mut self.cnps);
        self.journal_tick(now, group);
        self.request_evictions(now, group);
        Outbox { cnps: std::mem::take(&mut self.cnps), ..self.take_responses(group) }
    }

    /// A packet from below: ACK, NAK or CNP of a branch; anything else is refused (D12, D14, D33).
    pub(crate) fn response(
        &mut self,
        context: &PacketContext,
        frame: &Frame,
        pool: &Pool,
        group: u32,
        tables: &Tables,
        security: &Security,
    ) -> Result<(Outbox, Result<(), DropReason>), DropReason> {
        let state = self.get(group).ok_or(DropReason::UnknownGroup)?;
        let FromBelow { branch, is_node: from_node, packet } =
            self.check_response(context, frame, pool, group, tables, security)?;
        let psn = packet.bth.psn();
        match packet.extended {
            Extended::Aeth(aeth) => {
                let psn = state.psn_offset(branch).of_group(psn);
                let request = RepairRequest::from_aeth(psn, aeth.value()).filter(|_| from_node);
                let response = Response::from_aeth(psn, aeth.value());
                if request.is_none() && response.is_none() {
                    return Err(DropReason::ReservedSyndrome);
                }
                let tag = EpochTag::from_port(packet.udp.source_port());
                if from_node && state.is_of_old_epoch(branch, tag) {
                    return Err(DropReason::OldEpoch);
                }
                if let Some(request) = request {
                    return Ok((Outbox::default(), self.requested(context.now, group, branch, request)));
                }
                let response = response.ok_or(DropReason::ReservedSyndrome)?;
                if !from_node && state.is_of_earlier_member(branch, response) {
                    return Err(DropReason::StaleResponse);
                }
                let response = Response { msn: state.raised_msn(branch, response.msn), ..response };
                let traffic_class = Dscp::of_traffic_class(packet.ipv6.traffic_class()).traffic_class();
                let (outbox, taken) = self.acknowledgement(context.now, group, branch, response);
                if let Some(state) = self.get_mut(group).filter(|_| taken.is_ok()) {
                    state.marking.traffic_class = traffic_class;
                }
                Ok((outbox, taken))
            }
            // A trace, at a node without traces of groups.
            Extended::Cnp(cnp) if from_node && cnp.count() == 0 && packet.extension_octets() > 0 => {
                Err(DropReason::FastCnpReturnedTrace)
            }
            Extended::Cnp(cnp) => {
                let count = if from_node { cnp.count().max(1) } else { 1 };
                Ok(self.cnp(context.now, group, branch, count))
            }
            _ => Err(DropReason::NotAResponse),
        }
    }

    /// Checks a packet from below.
    pub(super) fn check_response<'f>(
        &self,
        context: &PacketContext,
        frame: &'f Frame,
        pool: &'f Pool,
        group: u32,
        tables: &Tables,
        security: &Security,
    ) -> Result<FromBelow<'f>, DropReason> {
        let state = self.get(group).ok_or(DropReason::UnknownGroup)?;
        let head = frame.head(pool);
        let responder = ipv6(head)?.source_octets();
        let branch = state.branch_of(responder).ok_or(DropReason::UnexpectedResponder)?;
        let is_node = branch.index() < state.entry.nodes_below();
        // Nodes may be several hops away, and tunnel in their own name (D12); receivers are not, but the peer of shared
        // hosts passes on what they send (D281).
        let came_right = match context.outer_source {
            Some(outer_source) if is_node => outer_source == *responder,
            Some(outer_source) => security.shared_hosts.may_pass_on(&outer_source, responder),
            None => security.may_come_from(context, responder, tables),
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
        Ok(FromBelow { branch, is_node, packet })
    }

    fn acknowledgement(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        response: Response,
    ) -> (Outbox, Result<(), DropReason>) {
        let Some(state) = self.slots[group as usize].as_mut() else {
            return (Outbox::default(), Err(DropReason::UnknownGroup));
        };
        state.touch(now);
        match response.syndrome {
            Syndrome::Ack => state.counters.acks_received += 1,
            _ => state.counters.naks_received += 1,
        }
        let GroupState { acks, repair, .. } = state;
        let (out, effects) = (&mut self.responses, &mut self.pending.effects);
        let taken = match repair {
            Some(repair) => repair.response(now, branch, response, acks, out, effects),
            None => acks.response(now, branch, response, out),
        };
        self.journal_response(now, group, branch, response, taken);
        self.request_evictions(now, group);
        let taken = taken.map_err(|refusal| match refusal {
            Refusal::NoSuchBranch(_) => DropReason::UnexpectedResponder,
            Refusal::NothingSent { .. } => DropReason::NothingSent,
            Refusal::ImplausiblePsn { .. } => DropReason::ImplausiblePsn,
            Refusal::Stale { .. } | Refusal::Behind { .. } => DropReason::StaleResponse,
        });
        (self.take_responses(group), taken)
    }

    /// A CNP of a branch that represents `count`.
    pub(crate) fn cnp(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        count: u32,
    ) -> (Outbox, Result<(), DropReason>) {
        let Some(state) = self.slots[group as usize].as_mut() else {
            return (Outbox::default(), Err(DropReason::UnknownGroup));
        };
        state.counters.cnps_received += 1;
        if let Some(of_branch) = state.branch_cnps.get_mut(branch.index()) {
            *of_branch += 1;
        }
        state.touch(now);
        let taken = state.cnps.cnp(now, branch, count, &mut self.cnps);
        self.journal_cnp(now, group, branch, count, taken.is_ok());
        let outbox = Outbox { cnps: std::mem::take(&mut self.cnps), responses: Vec::new() };
        (outbox, taken.map_err(|_| DropReason::CnpRateLimited))
    }

    /// The responses of the machines, with those that a commit left and a refusal that is due.
    fn take_responses(&mut self, group: u32) -> Outbox {
        let mut responses = std::mem::take(&mut self.responses);
        if let Some(state) = self.slots[group as usize].as_mut() {
            responses.extend(refusal_due(state));
            if !state.unsent.is_empty() {
                responses.splice(0..0, state.unsent.drain(..));
            }
        }
        Outbox { cnps: Vec::new(), responses }
    }

    /// An outbox has been sent: its memory is used again, and the group's next deadline is set.
    pub(crate) fn sent(&mut self, group: u32, outbox: Outbox) {
        let Outbox { mut cnps, mut responses } = outbox;
        if responses.capacity() > 0 {
            responses.clear();
            self.responses = responses;
        }
        if cnps.capacity() > 0 {
            cnps.clear();
            self.cnps = cnps;
        }
        self.rearm(group);
    }

    /// Requests the eviction of stalled receivers from the control plane (D24, D25). An event that has not been fetched
    /// is not repeated.
    #[inline]
    fn request_evictions(&mut self, now: Instant, group: u32) {
        if self.get(group).is_some_and(|state| state.acks.has_eviction_requests()) {
            self.push_evictions(now, group);
        }
    }

    #[cold]
    fn push_evictions(&mut self, now: Instant, group: u32) {
        let Some(GroupState { entry, acks, .. }) = self.slots[group as usize].as_mut() else {
            return;
        };
        let (mut wanted, id) = (Vec::new(), entry.id);
        acks.take_eviction_requests(now, |branch, cause| {
            let receiver = entry.branches.get(branch.index()).map(|branch| branch.responder);
            wanted.extend(receiver.map(|receiver| Event::EvictionRequested { group: id, receiver, cause }));
        });
        for event in wanted {
            if !self.events.contains(&event) {
                self.events.push(event);
            }
        }
        self.rearm(group);
    }

    /// The branch that a copy to this receiver and queue pair belongs to.
    pub(crate) fn branch_of_copy(&self, group: u32, receiver: &[u8; 16], qpn: Qpn) -> Option<BranchIndex> {
        let state = self.get(group)?;
        let branch = state.branch_of(receiver)?;
        let listed = state.entry.receiver_at(branch.index())?;
        (listed.qpn == qpn).then_some(branch)
    }
}

/// The response to a refused request, once everything before it is confirmed; a repeated request makes it due again.
fn refusal_due(state: &mut GroupState) -> Option<UpstreamResponse> {
    if state.refused.is_none() || state.refused != state.acks.minimum_psn() || state.acks.unknown_branches() > 0 {
        return None;
    }
    let psn = state.refused.take()?;
    let response = Response { psn, msn: state.acks.minimum_msn(), syndrome: Syndrome::Fatal(INVALID_REQUEST) };
    Some(UpstreamResponse { response, rule: Rule::RefusedRequest })
}
