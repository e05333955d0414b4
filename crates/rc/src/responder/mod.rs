//! The responding half of a queue pair: request packets in, memory written, responses out.
//!
//! ```text
//!   expected PSN, First ┌───────────────┐ expected PSN, Middle
//!        ┌─────────────►│ Send or Write │◄────┐
//!        │              │  in progress  │─────┘
//!      Idle ◄───────────└───────────────┘
//!     ▲    │         expected PSN, Last
//!     └────┘ expected PSN, Only or READ
//!
//!   a PSN ahead: sequence NAK, once until the expected one comes; with selective repeat the packet is kept until then
//!   a PSN behind: ACK of the newest; a READ is done again
//!   no receive posted: RNR NAK, nothing else changes
//!   anything that makes no sense or is forbidden: fatal NAK, the queue pair fails
//! ```

mod execute;
mod kept;
mod responses;

use crate::completion::{CompletedOperation, Completion, Receive, Status};
use crate::config::QueuePairConfig;
use crate::counters::DropReason;
use crate::inbound::Inbound;
use crate::memory::{Memory, MemoryKey};
use crate::queue_pair::Context;
use kept::KeptPackets;
use responses::{ReadReply, Responses};
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Aeth, Opcode, Psn, Syndrome};
use std::collections::VecDeque;

/// The message that a First packet has begun.
#[derive(Clone, Copy, Debug)]
enum Message {
    Idle,
    Send { receive: Receive, done_octets: u32 },
    Write { target: Target, length_octets: u32, left_octets: u32 },
}

/// Memory of the next octets.
#[derive(Clone, Copy, Debug)]
struct Target {
    key: MemoryKey,
    offset: u64,
}

/// The reason why the expected packet gets a NAK instead of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    NotReady,
    Fatal(Syndrome),
}

/// Response that was sent for the expected PSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Complaint {
    None,
    SequenceNak,
    NotReadyNak,
}

#[derive(Debug)]
pub(crate) struct Responder {
    config: QueuePairConfig,
    expected: Psn,
    has_received: bool,
    msn: u32,
    message: Message,
    complaint: Complaint,
    /// The first PSN ahead of the expected one whose packet came trimmed (D88).
    trimmed: Option<Psn>,
    receives: VecDeque<Receive>,
    responses: Responses,
    /// Packets that came before the expected one; with selective repeat.
    kept: KeptPackets,
    /// It can carry out no request any more.
    refuses: bool,
    failed: bool,
}

impl Responder {
    pub(crate) fn new(config: &QueuePairConfig) -> Self {
        Responder {
            expected: config.rq_psn,
            has_received: false,
            msn: 0,
            message: Message::Idle,
            complaint: Complaint::None,
            trimmed: None,
            receives: VecDeque::new(),
            responses: Responses::new(config),
            kept: KeptPackets::default(),
            refuses: false,
            failed: false,
            config: config.clone(),
        }
    }

    /// Receives that are not used.
    pub(crate) fn posted(&self) -> usize {
        self.receives.len()
    }

    pub(crate) fn post(&mut self, receive: Receive) {
        self.receives.push_back(receive);
    }

    /// Whether a receive that is not completed uses a region.
    pub(crate) fn uses(&self, key: MemoryKey) -> bool {
        let being_filled = match self.message {
            Message::Send { receive, .. } => Some(receive),
            Message::Idle | Message::Write { .. } => None,
        };
        self.receives.iter().chain(&being_filled).any(|receive| receive.local.key == key)
    }

    /// A region exists no more. A READ of it that is not answered gets a NAK: returns whether there was one.
    pub(crate) fn revoke(&mut self, key: MemoryKey) -> bool {
        let Some(first) = self.responses.drop_reads(key) else { return false };
        self.respond(first, Syndrome::REMOTE_ACCESS_ERROR);
        self.failed = true;
        true
    }

    /// Carries out no further request.
    pub(crate) fn refuse(&mut self) {
        self.refuses = true;
    }

    /// Whether the queue pair has to enter the error state.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn can_transmit(&self) -> bool {
        !self.responses.is_empty()
    }

    /// Whether the next response is one of a READ.
    pub(crate) fn sends_data(&self) -> bool {
        self.responses.begins_with_read()
    }

    /// A request packet has come.
    pub(crate) fn on_request<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        packet: &Inbound<'_>,
    ) -> Result<(), DropReason> {
        let ahead = packet.headers.bth.psn().distance_from(self.expected);
        if ahead > 0 {
            self.on_gap();
            return self.keep(ahead.unsigned_abs(), packet);
        }
        if ahead < 0 {
            context.counters.duplicates_received += 1;
            return self.on_duplicate(context, packet, ahead.unsigned_abs());
        }
        let packets = self.take_expected(context, packet)?;
        self.take_kept(context, packets);
        Ok(())
    }

    /// Keeps a packet that came before the expected one, if the queue pair receives out of order.
    fn keep(&mut self, ahead: u32, packet: &Inbound<'_>) -> Result<(), DropReason> {
        let habits = &self.config.habits;
        if !habits.receives_out_of_order || ahead >= habits.max_outstanding_psns {
            return Err(DropReason::OutOfSequence);
        }
        self.kept.keep(ahead as usize, packet);
        Ok(())
    }

    /// Takes what was kept behind the expected packet, which used up so many PSNs; requests the next one that is
    /// missing.
    fn take_kept<M: Memory>(&mut self, context: &mut Context<'_, M>, mut packets: u32) {
        while let Some(octets) = self.kept.advance(packets) {
            let slices = [&octets[..]];
            let taken = Inbound::parse(&slices).and_then(|packet| self.take_expected(context, &packet));
            match taken {
                Ok(used) => packets = used,
                // A receiver that is not ready gets all of it again.
                Err(_) => return self.kept.clear(),
            }
        }
        if !self.kept.is_empty() {
            self.on_gap();
        }
    }

    /// Executes the expected packet and responds; returns how many PSNs it used up.
    fn take_expected<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        packet: &Inbound<'_>,
    ) -> Result<u32, DropReason> {
        let executed = if self.refuses {
            Err(Refusal::Fatal(Syndrome::REMOTE_OPERATIONAL_ERROR))
        } else {
            self.execute(context, packet)
        };
        match executed {
            Ok(packets) => {
                self.accept(context, packet, packets);
                Ok(packets)
            }
            Err(Refusal::NotReady) => {
                self.complaint = Complaint::NotReadyNak;
                self.respond(self.expected, Syndrome::RnrNak(self.config.min_rnr_timer));
                Err(DropReason::ReceiverNotReady)
            }
            Err(Refusal::Fatal(syndrome)) => {
                self.respond(self.expected, syndrome);
                self.failed = true;
                let is_access = syndrome == Syndrome::REMOTE_ACCESS_ERROR;
                Err(if is_access { DropReason::RemoteAccess } else { DropReason::InvalidRequest })
            }
        }
    }

    /// The expected packet has been executed; it used up so many PSNs.
    fn accept<M: Memory>(&mut self, context: &mut Context<'_, M>, packet: &Inbound<'_>, packets: u32) {
        let opcode = packet.headers.bth.opcode();
        context.counters.payload_octets_received += u64::from(packet.payload_len());
        self.expected = self.expected.plus(packets);
        self.complaint = Complaint::None;
        self.has_received = true;
        if opcode.is_last() {
            self.msn = (self.msn + 1) & 0xFF_FFFF;
        }
        // A READ is acknowledged by its responses.
        if packet.headers.bth.ack_request() && opcode != Opcode::READ_REQUEST {
            let becn = self.config.echoes_marks && packet.headers.ipv6.ecn() == Ecn::Ce;
            let aeth = Aeth { syndrome: Syndrome::ACK, msn: self.msn };
            self.responses.push_acknowledge(packet.headers.bth.psn(), aeth, becn);
        }
        self.ask_for_trimmed();
    }

    /// A packet has lost its payload on the way (D88). Trimmed packets overtake others: one ahead is no gap yet, and is
    /// requested as soon as all before it have arrived.
    pub(crate) fn on_trimmed(&mut self, psn: Psn) {
        let ahead = psn.distance_from(self.expected);
        if ahead == 0 {
            self.on_gap();
        } else if ahead > 0 && self.trimmed.is_none_or(|first| psn.is_before(first)) {
            self.trimmed = Some(psn);
        }
    }

    /// Requests the expected packet if it has arrived trimmed.
    fn ask_for_trimmed(&mut self) {
        let ahead = self.trimmed.map(|psn| psn.distance_from(self.expected));
        if ahead.is_some_and(|ahead| ahead <= 0) {
            self.trimmed = None;
        }
        if ahead == Some(0) {
            self.on_gap();
        }
    }

    fn on_gap(&mut self) {
        let is_silent = match self.complaint {
            Complaint::None => false,
            Complaint::SequenceNak => true,
            Complaint::NotReadyNak => !self.config.habits.sequence_nak_after_not_ready,
        };
        if !is_silent {
            self.complaint = Complaint::SequenceNak;
            self.respond(self.expected, Syndrome::SEQUENCE_ERROR);
        }
    }

    fn on_duplicate<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        packet: &Inbound<'_>,
        behind: u32,
    ) -> Result<(), DropReason> {
        if packet.headers.bth.opcode() == Opcode::READ_REQUEST {
            return self.on_duplicate_read(context, packet, behind);
        }
        let newest = if self.has_received || !self.config.habits.acks_all_ones_before_first_request {
            self.expected.previous()
        } else {
            Psn::new(0xFF_FFFF)
        };
        self.respond(newest, Syndrome::ACK);
        Ok(())
    }

    /// A repeated READ, in whole or from a lost response on.
    fn on_duplicate_read<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        packet: &Inbound<'_>,
        behind: u32,
    ) -> Result<(), DropReason> {
        if self.responses.resume_read(packet.headers.bth.psn()) {
            return Ok(());
        }
        let reply = self.prepare_read(context, packet).map_err(|_| DropReason::InvalidDuplicate)?;
        // Its message was counted.
        let reply = ReadReply { msn: self.msn, ..reply };
        if reply.packets > behind {
            return Err(DropReason::InvalidDuplicate);
        }
        self.responses.push_read(reply);
        Ok(())
    }

    fn respond(&mut self, psn: Psn, syndrome: Syndrome) {
        self.responses.push_acknowledge(psn, Aeth { syndrome, msn: self.msn }, false);
    }

    /// Writes the next response packet and returns its length.
    pub(crate) fn transmit<M: Memory>(&mut self, context: &mut Context<'_, M>, into: &mut [u8]) -> Option<usize> {
        self.responses.transmit(context, into)
    }

    /// Completes every receive as not used. Responses that wait are still sent: the last carries the reason.
    pub(crate) fn flush<M: Memory>(&mut self, context: &mut Context<'_, M>) {
        if let Message::Send { receive, .. } = self.message {
            complete(context, &receive, CompletedOperation::Receive, Status::Flushed, 0, None);
        }
        self.message = Message::Idle;
        for receive in self.receives.drain(..) {
            complete(context, &receive, CompletedOperation::Receive, Status::Flushed, 0, None);
        }
        self.failed = true;
    }
}

fn complete<M: Memory>(
    context: &mut Context<'_, M>,
    receive: &Receive,
    operation: CompletedOperation,
    status: Status,
    length_octets: u32,
    immediate: Option<[u8; 4]>,
) {
    context.completions.push_back(Completion {
        qpn: context.qpn,
        wr_id: receive.wr_id,
        operation,
        status,
        length_octets,
        immediate,
    });
}
