//! Request packets, written.

use super::{Posted, Requester, Timer, psn_of};
use crate::completion::{Operation, RemoteAddress};
use crate::memory::Memory;
use crate::outbound::Header;
use crate::queue_pair::Context;
use srdma_wire::rocev2::Extended;
use srdma_wire::{ImmDtView, Opcode, Reth};

impl Requester {
    /// Writes the next request packet and returns its length.
    pub(crate) fn transmit<M: Memory>(&mut self, context: &mut Context<'_, M>, into: &mut [u8]) -> Option<usize> {
        if !self.can_transmit() {
            return None;
        }
        if self.repeats_oldest() {
            return self.transmit_again(context, into);
        }
        let posted = *self.queue.get(self.cursor)?;
        let is_new = self.next >= self.sent;
        let (written, payload_octets) = match posted.request.operation {
            Operation::Read { remote } => {
                self.reads_outstanding += u16::from(is_new);
                (self.write_read_request(context, into, &posted, remote), 0)
            }
            Operation::Send { .. } | Operation::Write { .. } => {
                let ack_request = self.requests_ack(context, &posted);
                if let Some(pacer) = context.pacer.as_mut().filter(|_| ack_request && is_new) {
                    pacer.departs(context.now, self.next);
                }
                self.write_segment(context, into, &posted, self.next, ack_request)
            }
        };
        count(context, is_new, payload_octets);
        self.next = if posted.is_read() { posted.end } else { self.next + 1 };
        self.cursor += usize::from(self.next == posted.end);
        self.sent = self.sent.max(self.next);
        if !posted.is_read()
            && let Some(pacer) = &mut context.pacer
        {
            pacer.sent(context.now, written as u32);
        }
        if self.timer == Timer::Idle {
            self.restart_timer(context.now);
        }
        Some(written)
    }

    /// Writes the oldest packet again, which requests an acknowledgement.
    fn transmit_again<M: Memory>(&mut self, context: &mut Context<'_, M>, into: &mut [u8]) -> Option<usize> {
        self.repeats = None;
        let posted = *self.queue.front()?;
        let (written, payload_octets) = self.write_segment(context, into, &posted, self.unacknowledged, true);
        count(context, false, payload_octets);
        if let Some(pacer) = &mut context.pacer {
            pacer.sent(context.now, written as u32);
        }
        Some(written)
    }

    fn write_read_request<M: Memory>(
        &mut self,
        context: &Context<'_, M>,
        into: &mut [u8],
        posted: &Posted,
        remote: RemoteAddress,
    ) -> usize {
        // After a loss only the missing part is requested.
        let done = self.offset_of(posted, self.next);
        let reth = Reth {
            virtual_address: remote.virtual_address.wrapping_add(done.into()),
            rkey: remote.rkey.0,
            dma_length: posted.request.local.length_octets - done,
        };
        self.packets_since_ack_request = 0;
        self.octets_since_ack_request = 0;
        let header = Header { opcode: Opcode::READ_REQUEST, psn: psn_of(self.next), ack_request: true, becn: false };
        context.writer.write(into, &header, Extended::Reth(&reth.emit()), 0, |_| {})
    }

    /// Whether the next packet of a message requests an acknowledgement; counts it.
    fn requests_ack<M: Memory>(&mut self, context: &Context<'_, M>, posted: &Posted) -> bool {
        self.packets_since_ack_request += 1;
        let ack_request = self.next + 1 == posted.end
            || self.packets_since_ack_request >= self.ack_request_interval
            || self.window_wants_ack(context, self.segment(posted, self.next).1);
        if ack_request {
            self.packets_since_ack_request = 0;
            self.octets_since_ack_request = 0;
        }
        ack_request
    }

    /// Offset and octets of payload of a packet of a message.
    fn segment(&self, posted: &Posted, number: u64) -> (u32, u32) {
        let offset = self.offset_of(posted, number);
        (offset, (posted.request.local.length_octets - offset).min(self.config.path_mtu.octets()))
    }

    /// Writes packet `number` of a SEND or a WRITE; returns its octets and those of its payload.
    fn write_segment<M: Memory>(
        &self,
        context: &Context<'_, M>,
        into: &mut [u8],
        posted: &Posted,
        number: u64,
        ack_request: bool,
    ) -> (usize, u32) {
        let (remote, immediate) = match posted.request.operation {
            Operation::Write { remote, immediate } => (Some(remote), immediate),
            Operation::Send { immediate } => (None, immediate),
            Operation::Read { .. } => (None, None),
        };
        let local = posted.request.local;
        let is_first = number == posted.first;
        let is_last = number + 1 == posted.end;
        let (offset, payload_octets) = self.segment(posted, number);

        let opcode = if remote.is_some() { write_opcode } else { send_opcode };
        let opcode = opcode(is_first, is_last, immediate.is_some());
        let reth = remote.filter(|_| is_first).map(|remote| {
            let dma_length = local.length_octets;
            Reth { virtual_address: remote.virtual_address, rkey: remote.rkey.0, dma_length }.emit()
        });
        let immediate = immediate.filter(|_| is_last).map(ImmDtView);
        let extended = match (&reth, &immediate) {
            (None, None) => Extended::None,
            (None, Some(immediate)) => Extended::Immediate(immediate),
            (Some(reth), None) => Extended::Reth(reth),
            (Some(reth), Some(immediate)) => Extended::RethImmediate(reth, immediate),
        };
        let header = Header { opcode, psn: psn_of(number), ack_request, becn: false };
        let written = context.writer.write(into, &header, extended, payload_octets as usize, |payload| {
            context.regions.read(local.key, local.offset + u64::from(offset), payload);
        });
        (written, payload_octets)
    }

    /// Whether the rate control's window needs an acknowledgement of the next packet.
    fn window_wants_ack<M: Memory>(&mut self, context: &Context<'_, M>, payload_octets: u32) -> bool {
        let Some(pacer) = &context.pacer else { return false };
        let octets = u64::from(pacer.link_octets(self.header_octets + payload_octets));
        self.octets_since_ack_request += octets;
        pacer.wants_ack(self.in_flight_octets(pacer) + octets, self.octets_since_ack_request)
    }
}

/// Counts a request packet.
fn count<M: Memory>(context: &mut Context<'_, M>, is_new: bool, payload_octets: u32) {
    context.counters.packets_sent += 1;
    context.counters.packets_retransmitted += u64::from(!is_new);
    context.counters.payload_octets_sent += u64::from(payload_octets);
}

fn send_opcode(is_first: bool, is_last: bool, has_immediate: bool) -> Opcode {
    match (is_first, is_last, has_immediate) {
        (true, false, _) => Opcode::SEND_FIRST,
        (false, false, _) => Opcode::SEND_MIDDLE,
        (false, true, false) => Opcode::SEND_LAST,
        (false, true, true) => Opcode::SEND_LAST_IMMEDIATE,
        (true, true, false) => Opcode::SEND_ONLY,
        (true, true, true) => Opcode::SEND_ONLY_IMMEDIATE,
    }
}

fn write_opcode(is_first: bool, is_last: bool, has_immediate: bool) -> Opcode {
    match (is_first, is_last, has_immediate) {
        (true, false, _) => Opcode::WRITE_FIRST,
        (false, false, _) => Opcode::WRITE_MIDDLE,
        (false, true, false) => Opcode::WRITE_LAST,
        (false, true, true) => Opcode::WRITE_LAST_IMMEDIATE,
        (true, true, false) => Opcode::WRITE_ONLY,
        (true, true, true) => Opcode::WRITE_ONLY_IMMEDIATE,
    }
}
