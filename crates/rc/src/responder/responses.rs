//! Responses: queued in the order of their PSNs, and written when their turn comes.

use super::Target;
use crate::config::QueuePairConfig;
use crate::memory::{Memory, MemoryKey};
use crate::outbound::Header;
use crate::queue_pair::Context;
use srdma_wire::rocev2::Extended;
use srdma_wire::{Aeth, Opcode, PathMtu, Psn, Syndrome};
use std::collections::VecDeque;

/// Acknowledges that wait to be sent. Beyond, ACKs are merged, and NAKs left out: the peer's timeout makes them good.
const MAX_WAITING_ACKNOWLEDGES: usize = 256;

#[derive(Clone, Copy, Debug)]
enum Response {
    Acknowledge { psn: Psn, aeth: Aeth, becn: bool },
    Read(ReadReply),
}

/// A READ being answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadReply {
    pub(super) target: Target,
    pub(super) length_octets: u32,
    pub(super) first: Psn,
    pub(super) packets: u32,
    pub(super) msn: u32,
    /// Packets sent.
    pub(super) sent: u32,
}

impl ReadReply {
    /// Leaves out the first `packets`: the rest is a response of its own, that begins with a First or Only.
    fn begin_at(&mut self, packets: u32, mtu_octets: u32) {
        let octets = packets * mtu_octets;
        self.target.offset += u64::from(octets);
        self.length_octets -= octets;
        self.first = self.first.plus(packets);
        self.packets -= packets;
        self.sent = 0;
    }
}

#[derive(Debug)]
pub(super) struct Responses {
    queue: VecDeque<Response>,
    reads_waiting: usize,
    max_reads_waiting: usize,
    coalesces_acks: bool,
    path_mtu: PathMtu,
}

impl Responses {
    pub(super) fn new(config: &QueuePairConfig) -> Self {
        Responses {
            queue: VecDeque::new(),
            reads_waiting: 0,
            max_reads_waiting: usize::from(config.max_outstanding_reads),
            coalesces_acks: config.habits.coalesces_acks,
            path_mtu: config.path_mtu,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn begins_with_read(&self) -> bool {
        matches!(self.queue.front(), Some(Response::Read(_)))
    }

    pub(super) fn has_room_for_read(&self) -> bool {
        self.reads_waiting < self.max_reads_waiting
    }

    pub(super) fn push_read(&mut self, reply: ReadReply) {
        self.reads_waiting += 1;
        self.queue.push_back(Response::Read(reply));
    }

    /// Drops all responses from the first READ of a region on: returns the PSN that was to be sent next of it.
    pub(super) fn drop_reads(&mut self, key: MemoryKey) -> Option<Psn> {
        let is_of_region = |response: &Response| match response {
            Response::Read(reply) => reply.target.key == key,
            Response::Acknowledge { .. } => false,
        };
        let place = self.queue.iter().position(is_of_region)?;
        let Some(Response::Read(first)) = self.queue.get(place).copied() else { return None };
        self.queue.truncate(place);
        let reads = self.queue.iter().filter(|response| matches!(response, Response::Read(_))).count();
        self.reads_waiting = reads;
        Some(first.first.plus(first.sent))
    }

    /// `becn`: what is acknowledged was marked (D283).
    pub(super) fn push_acknowledge(&mut self, psn: Psn, aeth: Aeth, becn: bool) {
        let response = Response::Acknowledge { psn, aeth, becn };
        let is_full = self.queue.len() - self.reads_waiting >= MAX_WAITING_ACKNOWLEDGES;
        let is_ack = matches!(aeth.syndrome, Syndrome::Ack(_));
        if is_ack
            && (self.coalesces_acks || is_full)
            && let Some(newest @ Response::Acknowledge { aeth: Aeth { syndrome: Syndrome::Ack(_), .. }, .. }) =
                self.queue.back_mut()
        {
            *newest = response;
            return;
        }
        let is_fatal = !is_ack && !matches!(aeth.syndrome, Syndrome::RnrNak(_) | Syndrome::SEQUENCE_ERROR);
        if !is_full || is_fatal {
            self.queue.push_back(response);
        }
    }

    /// A READ that still waits is repeated, in whole or from a lost response on: returns whether there is
    /// one.
    pub(super) fn resume_read(&mut self, psn: Psn) -> bool {
        let mtu_octets = self.path_mtu.octets();
        for response in &mut self.queue {
            if let Response::Read(reply) = response
                && let Ok(index) = u32::try_from(psn.distance_from(reply.first))
                && index < reply.packets
            {
                // The remaining ones are sent later.
                if index <= reply.sent {
                    reply.begin_at(index, mtu_octets);
                }
                return true;
            }
        }
        false
    }

    /// Writes the next response packet and returns its length.
    pub(super) fn transmit<M: Memory>(&mut self, context: &mut Context<'_, M>, into: &mut [u8]) -> Option<usize> {
        match self.queue.front_mut()? {
            Response::Acknowledge { psn, aeth, becn } => {
                match aeth.syndrome {
                    Syndrome::Ack(_) => context.counters.acks_sent += 1,
                    Syndrome::RnrNak(_) => context.counters.rnr_naks_sent += 1,
                    Syndrome::Nak(_) | Syndrome::Reserved(_) => context.counters.naks_sent += 1,
                }
                let header = Header { opcode: Opcode::ACKNOWLEDGE, psn: *psn, ack_request: false, becn: *becn };
                let aeth = aeth.emit();
                self.queue.pop_front();
                Some(context.writer.write(into, &header, Extended::Aeth(&aeth), 0, |_| {}))
            }
            Response::Read(reply) => {
                let written = write_read_response(context, reply, self.path_mtu.octets(), into);
                reply.sent += 1;
                if reply.sent == reply.packets {
                    self.queue.pop_front();
                    self.reads_waiting -= 1;
                }
                context.counters.read_responses_sent += 1;
                if let Some(pacer) = &mut context.pacer {
                    pacer.sent(context.now, written as u32);
                }
                Some(written)
            }
        }
    }
}

fn write_read_response<M: Memory>(
    context: &Context<'_, M>,
    reply: &ReadReply,
    mtu_octets: u32,
    into: &mut [u8],
) -> usize {
    let done = reply.sent * mtu_octets;
    let payload_octets = (reply.length_octets - done).min(mtu_octets);
    let opcode = match (reply.sent == 0, reply.sent + 1 == reply.packets) {
        (true, true) => Opcode::READ_RESPONSE_ONLY,
        (true, false) => Opcode::READ_RESPONSE_FIRST,
        (false, true) => Opcode::READ_RESPONSE_LAST,
        (false, false) => Opcode::READ_RESPONSE_MIDDLE,
    };
    let aeth = Aeth { syndrome: Syndrome::ACK, msn: reply.msn }.emit();
    let extended = if opcode.has_aeth() { Extended::Aeth(&aeth) } else { Extended::None };
    let header = Header { opcode, psn: reply.first.plus(reply.sent), ack_request: false, becn: false };
    context.writer.write(into, &header, extended, payload_octets as usize, |payload| {
        context.regions.read(reply.target.key, reply.target.offset + u64::from(done), payload);
    })
}
