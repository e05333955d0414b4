//! Receivers that join in two steps: their reports, and the checks of what the controller makes of them (D187, D188).
//!
//! They reach the controller without a network, as applications do, and poll at the interval of the checks instead of
//! waiting. A receiver that is dead reports nothing.

use crate::adapter::{self, Reply, Request};
use crate::controller::{Caller, PERIOD_NS, Party};
use crate::outcome::{Finding, ViolationKind};
use crate::world::{CHECK_INTERVAL_NS, World};
use srdma_api::{GroupState, ReceiverOrder, ReceiverReport, ReceiverState};
use srdma_wire::Instant;
use std::collections::BTreeMap;

/// The controller looks at reservations at intervals, and so do these checks.
const HELD_NS: u64 = adapter::JOIN_TIMEOUT_NS + PERIOD_NS + 2 * CHECK_INTERVAL_NS;

/// Since when each receiver is reserved and not ready: by flow, receiver, J and round of the pause. Another pause may
/// be at the same J.
pub(crate) type Reservations = BTreeMap<(usize, usize, u32, Option<u32>), Instant>;

impl World<'_> {
    /// The receivers that join in two steps and are no members yet report.
    pub(crate) fn report_receivers(&mut self) {
        if self.schedule.two_steps.is_empty() {
            return;
        }
        self.check_reservations();
        let Some(run) = self.controller.as_ref().map(|controller| controller.run) else { return };
        let mut reports = Vec::new();
        for (flow, state) in self.flows.iter().enumerate().filter(|(_, state)| !state.is_over) {
            let Some(id) = state.id else { continue };
            let reporting = state.participants.iter().filter(|(_, participant)| participant.is_reporting);
            let alive = reporting.filter(|(one, _)| self.faults.receiver_down_until[**one] != Instant::NEVER);
            for (receiver, participant) in alive {
                let report =
                    ReceiverReport { qpn: participant.qpn.get(), ready_at_psn: participant.connected, wait_ms: 0 };
                let address = self.testbed.receiver_address(*receiver);
                let request = Request::Report { id, source_qpn: state.qpn.get(), address, report };
                reports.push((Party::Receiver(flow, *receiver), request));
            }
        }
        for (party, request) in reports {
            self.calls += 1;
            let (now, caller) = (self.now(), Caller { party, call: self.calls });
            self.count("receiver report");
            self.with_controller(run, |controller, out| controller.request(now, caller, request, out));
        }
    }

    pub(crate) fn receiver_reply(&mut self, flow: usize, receiver: usize, reply: &Reply) {
        let is_dead = self.faults.receiver_down_until[receiver] == Instant::NEVER;
        let Some(participant) = self.flows[flow].participants.get_mut(&receiver).filter(|_| !is_dead) else { return };
        match reply {
            Reply::ReceiverOrder(ReceiverOrder::Reserved { psn }) if participant.connected != Some(*psn) => {
                self.log(&format_args!("flow {flow}: receiver {receiver} is reserved from PSN {psn} on"));
                self.count("receiver reserved");
                if let Err(error) = self.flows[flow].connect(receiver, *psn, &self.testbed, &mut self.network) {
                    self.violation(ViolationKind::Setup, Finding::Unknown, flow, error.to_string());
                }
            }
            // A store that was restored may have it as a member without its having been reserved: it connects as one
            // that joins in one step.
            Reply::ReceiverOrder(ReceiverOrder::Member { .. }) => participant.is_reporting = false,
            // It reports again: its request to join may not be durable yet.
            _ => {}
        }
    }

    /// An application has joined a receiver, perhaps again, since its reservation had expired.
    pub(crate) fn note_reserved(&mut self, flow: usize, receiver: usize) {
        self.checks.reservations.retain(|(of, one, ..), _| (*of, *one) != (flow, receiver));
    }

    fn check_reservations(&mut self) {
        let now = self.now();
        let mut unready = Vec::new();
        let mut reserved = Reservations::new();
        for flow in 0..self.flows.len() {
            let Some(group) = self.view(flow).filter(|_| self.controller.is_some()) else { continue };
            // Nothing goes on in it, whether its source waits or not.
            if group.summary.state == GroupState::Stopped {
                continue;
            }
            for member in &group.members {
                let Some(receiver) = self.testbed.receiver_of(member.address) else { continue };
                if let Some(psn) = member.reserved_psn.filter(|_| member.awaits_ready && group.summary.epoch > 0) {
                    let key = (flow, receiver, psn, self.flows[flow].session.round);
                    let since = self.checks.reservations.get(&key).copied().unwrap_or(now);
                    reserved.insert(key, since.max(self.faults.controller_started));
                }
                let known = self.flows[flow].participants.get(&receiver);
                let Some(known) = known.filter(|known| known.qpn.get() == member.qpn && known.is_reporting) else {
                    continue;
                };
                let psn = member.joined_psn.unwrap_or(group.initial_psn);
                if member.state == ReceiverState::Member && known.connected != Some(psn) {
                    unready.push((flow, receiver, psn, known.connected));
                }
            }
        }
        for (flow, receiver, psn, ready) in unready {
            let finding = if self.faults.store_changed { Finding::OtherStore } else { Finding::Unknown };
            let text =
                format!("flow {flow}: receiver {receiver} is a member from PSN {psn} on, and ready from {ready:?} on");
            self.violation(ViolationKind::Unready, finding, flow, text);
        }
        let is_held = |since: &Instant| now.since(*since).as_nanos() > u128::from(HELD_NS);
        let held: Vec<_> =
            reserved.iter().filter(|(_, since)| is_held(since)).map(|(key, since)| (*key, *since)).collect();
        for ((flow, receiver, psn, _), since) in held {
            let text = format!(
                "flow {flow}: receiver {receiver} is reserved from PSN {psn} on since {} ns, and not ready",
                since.as_ns()
            );
            self.violation(ViolationKind::Held, Finding::Unknown, flow, text);
        }
        self.checks.reservations = reserved;
    }
}
