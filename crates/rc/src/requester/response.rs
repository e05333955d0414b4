//! Responses, taken: ACK, NAK of every kind, READ response.

use super::{Posted, Requester, Timer, complete};
use crate::completion::Status;
use crate::counters::DropReason;
use crate::inbound::Inbound;
use crate::memory::Memory;
use crate::queue_pair::Context;
use crate::rate::Event;
use srdma_wire::transport::rnr_timer;
use srdma_wire::{Aeth, Psn, Syndrome};

/// Evidence that a packet, or its response, was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// A NAK of the peer, once for each loss.
    Nak,
    /// A later response came first; many more may follow it.
    Implied,
}

impl Requester {
    /// An Acknowledge packet has come.
    pub(crate) fn on_acknowledge<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        psn: Psn,
        aeth: Aeth,
        is_marked: bool,
    ) -> Result<(), DropReason> {
        if self.config.habits.any_response_rearms_timer {
            self.restart_timer(context.now);
        }
        match aeth.syndrome {
            Syndrome::Ack(_) => {
                context.counters.acks_received += 1;
                let number = self.outstanding(psn)?;
                let before = self.unacknowledged;
                if let Some(pacer) = &mut context.pacer {
                    pacer.arrives(context.now, number, is_marked);
                }
                let is_blocked = self.acknowledge(context, number + 1);
                if self.unacknowledged != before {
                    self.made_progress();
                    self.leave_not_ready_after(before);
                    self.restart_timer(context.now);
                }
                if is_blocked { self.sequence_error(context, Evidence::Implied) } else { Ok(()) }
            }
            Syndrome::RnrNak(code) => {
                context.counters.rnr_naks_received += 1;
                let number = self.outstanding(psn)?;
                self.on_not_ready(context, number, code)
            }
            Syndrome::Nak(code) => {
                context.counters.naks_received += 1;
                let number = self.outstanding(psn)?;
                match Syndrome::Nak(code) {
                    Syndrome::SEQUENCE_ERROR => self.on_sequence_nak(context, number),
                    Syndrome::INVALID_REQUEST => self.on_fatal_nak(context, number, Status::RemoteInvalidRequest),
                    Syndrome::REMOTE_ACCESS_ERROR => self.on_fatal_nak(context, number, Status::RemoteAccessError),
                    Syndrome::REMOTE_OPERATIONAL_ERROR => {
                        self.on_fatal_nak(context, number, Status::RemoteOperationalError)
                    }
                    _ => Err(DropReason::ReservedSyndrome),
                }
            }
            Syndrome::Reserved(_) => Err(DropReason::ReservedSyndrome),
        }
    }

    /// A NAK, of any kind, acknowledges what comes before it (D16).
    fn acknowledge_before<M: Memory>(&mut self, context: &mut Context<'_, M>, number: u64) {
        let before = self.unacknowledged;
        self.acknowledge(context, number);
        self.leave_not_ready_after(before);
        if self.unacknowledged != before && !self.config.habits.one_go_back_until_ack {
            self.made_progress();
        }
    }

    fn on_sequence_nak<M: Memory>(&mut self, context: &mut Context<'_, M>, number: u64) -> Result<(), DropReason> {
        self.acknowledge_before(context, number);
        let is_read = self.queue.front().is_none_or(Posted::is_read);
        if self.config.habits.repeats_selectively && !is_read {
            self.repeat_oldest(context)
        } else {
            self.sequence_error(context, Evidence::Nak)
        }
    }

    /// The packet at `unacknowledged` is missing at the peer, which keeps those behind it.
    fn repeat_oldest<M: Memory>(&mut self, context: &mut Context<'_, M>) -> Result<(), DropReason> {
        let is_next = self.next == self.unacknowledged;
        if is_next || self.repeats_oldest() || matches!(self.timer, Timer::NotReady(_)) {
            return Err(DropReason::StaleResponse);
        }
        if !self.spend_retry() {
            self.fail(context, Status::RetryExceeded);
            return Ok(());
        }
        self.restart_timer(context.now);
        self.repeats = Some(self.unacknowledged);
        context.notify(Event::Lost);
        Ok(())
    }

    /// The packet at `unacknowledged` is missing at the peer, or its response is.
    fn sequence_error<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        evidence: Evidence,
    ) -> Result<(), DropReason> {
        if matches!(self.timer, Timer::NotReady(_)) {
            // We have gone back already, and wait for an ACK.
            return Err(DropReason::StaleResponse);
        }
        let has_gone_back = if self.config.habits.one_go_back_until_ack {
            self.went_back_to.is_some()
        } else {
            // A second NAK, after the retransmission, indicates another loss.
            let is_other_loss = evidence == Evidence::Nak && self.next > self.unacknowledged;
            self.went_back_to == Some(self.unacknowledged) && !is_other_loss
        };
        if has_gone_back && !self.config.habits.one_go_back_until_ack {
            return Err(DropReason::StaleResponse);
        }
        if !self.spend_retry() {
            self.fail(context, Status::RetryExceeded);
            return Ok(());
        }
        self.restart_timer(context.now);
        if has_gone_back {
            return Err(DropReason::StaleResponse);
        }
        self.went_back_to = Some(self.unacknowledged);
        self.go_back_after_loss(context);
        Ok(())
    }

    fn on_not_ready<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        number: u64,
        code: u8,
    ) -> Result<(), DropReason> {
        self.acknowledge_before(context, number);
        if matches!(self.timer, Timer::NotReady(_)) {
            return Err(DropReason::StaleResponse);
        }
        if self.rnr_retries_left == 0 {
            self.fail(context, Status::RnrRetryExceeded);
            return Ok(());
        }
        self.rnr_retries_left -= u8::from(self.config.rnr_retry != 7);
        self.go_back();
        self.awaits_ready = self.config.habits.sends_one_message_until_ready;
        self.timer = Timer::NotReady(context.now + rnr_timer(code));
        Ok(())
    }

    /// The peer refuses the request; so does a network that refuses a READ to a group (D26).
    fn on_fatal_nak<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        number: u64,
        status: Status,
    ) -> Result<(), DropReason> {
        self.acknowledge(context, number);
        self.fail(context, status);
        Ok(())
    }

    /// A READ response packet has come.
    pub(crate) fn on_read_response<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        packet: &Inbound<'_>,
    ) -> Result<(), DropReason> {
        let number = self.number(packet.headers.bth.psn());
        if number < self.unacknowledged {
            return Err(DropReason::StaleResponse);
        }
        if number >= self.sent {
            return Err(DropReason::AcknowledgesUnsent);
        }
        let posted = *self.queue.iter().find(|posted| number < posted.end).ok_or(DropReason::AcknowledgesUnsent)?;
        if !posted.is_read() {
            return Err(DropReason::UnexpectedResponse);
        }
        if let Some(aeth) = packet.headers.extended.aeth() {
            let Syndrome::Ack(_) = aeth.value().syndrome else { return Err(DropReason::UnexpectedResponse) };
        }
        let before = self.unacknowledged;
        self.acknowledge(context, number);
        if self.unacknowledged != before {
            self.made_progress();
        }
        if self.unacknowledged != number {
            return self.sequence_error(context, Evidence::Implied).and(Err(DropReason::MissingReadResponse));
        }
        self.take_read_response(context, &posted, packet)
    }

    /// The response is the one that `unacknowledged` waits for.
    fn take_read_response<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        posted: &Posted,
        packet: &Inbound<'_>,
    ) -> Result<(), DropReason> {
        let local = posted.request.local;
        let done = self.offset_of(posted, self.unacknowledged);
        let expected = (local.length_octets - done).min(self.config.path_mtu.octets());
        let is_last = self.unacknowledged + 1 == posted.end;
        if packet.payload_len() != expected || packet.headers.bth.opcode().is_last() != is_last {
            return Err(DropReason::UnexpectedResponse);
        }
        let mut offset = local.offset + u64::from(done);
        for piece in packet.payload() {
            context.regions.write(local.key, offset, piece);
            offset += piece.len() as u64;
        }
        self.unacknowledged += 1;
        context.counters.packets_acknowledged += 1;
        if is_last {
            self.queue.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
            self.reads_outstanding -= 1;
            complete(context, &posted.request, Status::Success);
        }
        self.never_send_acknowledged();
        self.made_progress();
        self.restart_timer(context.now);
        Ok(())
    }
}
