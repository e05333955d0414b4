//! Requests, executed.

use super::responses::ReadReply;
use super::{Message, Refusal, Responder, Target, complete};
use crate::completion::{CompletedOperation, Status};
use crate::config::MAX_MESSAGE_OCTETS;
use crate::inbound::Inbound;
use crate::memory::{Access, Memory, MemoryKey};
use crate::queue_pair::Context;
use srdma_wire::{Opcode, Reth, Syndrome};

const INVALID_REQUEST: Refusal = Refusal::Fatal(Syndrome::INVALID_REQUEST);
const REMOTE_ACCESS_ERROR: Refusal = Refusal::Fatal(Syndrome::REMOTE_ACCESS_ERROR);

impl Responder {
    /// Executes the expected packet and returns how many PSNs it uses up.
    pub(super) fn execute<M: Memory>(
        &mut self,
        context: &mut Context<'_, M>,
        packet: &Inbound<'_>,
    ) -> Result<u32, Refusal> {
        let opcode = packet.headers.bth.opcode();
        match opcode {
            Opcode::SEND_FIRST
            | Opcode::SEND_MIDDLE
            | Opcode::SEND_LAST
            | Opcode::SEND_LAST_IMMEDIATE
            | Opcode::SEND_ONLY
            | Opcode::SEND_ONLY_IMMEDIATE => self.execute_send(context, packet).map(|()| 1),
            Opcode::WRITE_FIRST
            | Opcode::WRITE_MIDDLE
            | Opcode::WRITE_LAST
            | Opcode::WRITE_LAST_IMMEDIATE
            | Opcode::WRITE_ONLY
            | Opcode::WRITE_ONLY_IMMEDIATE => self.execute_write(context, packet).map(|()| 1),
            Opcode::READ_REQUEST => {
                let Message::Idle = self.message else { return Err(INVALID_REQUEST) };
                let reply = self.prepare_read(context, packet)?;
                self.responses.push_read(reply);
                Ok(reply.packets)
            }
            // ATOMIC and SEND with Invalidate are not offered.
            _ => Err(INVALID_REQUEST),
        }
    }

    fn execute_send<M: Memory>(&mut self, context: &mut Context<'_, M>, packet: &Inbound<'_>) -> Result<(), Refusal> {
        let opcode = packet.headers.bth.opcode();
        let (receive, done_octets) = match (self.message, opcode.is_first()) {
            (Message::Idle, true) => (*self.receives.front().ok_or(Refusal::NotReady)?, 0),
            (Message::Send { receive, done_octets }, false) => (receive, done_octets),
            (Message::Idle, false) | (Message::Send { .. }, true) | (Message::Write { .. }, _) => {
                return Err(INVALID_REQUEST);
            }
        };
        self.check_segment_length(opcode, packet.payload_len())?;
        if opcode.is_first() {
            self.receives.pop_front();
        }
        let payload_octets = packet.payload_len();
        if payload_octets > receive.local.length_octets - done_octets {
            let operation = CompletedOperation::Receive;
            complete(context, &receive, operation, Status::LocalLengthError, 0, None);
            self.message = Message::Idle;
            return Err(INVALID_REQUEST);
        }
        let target = Target { key: receive.local.key, offset: receive.local.offset + u64::from(done_octets) };
        put(context, packet, target);
        let done_octets = done_octets + payload_octets;
        self.message = Message::Send { receive, done_octets };
        if opcode.is_last() {
            self.message = Message::Idle;
            let immediate = immediate_of(packet);
            complete(context, &receive, CompletedOperation::Receive, Status::Success, done_octets, immediate);
        }
        Ok(())
    }

    fn execute_write<M: Memory>(&mut self, context: &mut Context<'_, M>, packet: &Inbound<'_>) -> Result<(), Refusal> {
        let opcode = packet.headers.bth.opcode();
        let begun = match (self.message, opcode.is_first()) {
            (Message::Idle, true) => None,
            (Message::Write { target, length_octets, left_octets }, false) => {
                Some((target, length_octets, left_octets))
            }
            (Message::Idle, false) | (Message::Write { .. }, true) | (Message::Send { .. }, _) => {
                return Err(INVALID_REQUEST);
            }
        };
        let receive = self.receives.front().copied();
        if opcode.has_immediate() && receive.is_none() {
            return Err(Refusal::NotReady);
        }
        let payload_octets = packet.payload_len();
        self.check_segment_length(opcode, payload_octets)?;
        let (target, length_octets, left_octets) = match begun {
            // The region may have been deregistered since the First packet.
            Some((target, ..)) if !context.regions.is_inside(target.key, target.offset, payload_octets) => {
                return Err(REMOTE_ACCESS_ERROR);
            }
            Some(begun) => begun,
            None => begin_write(context, packet)?,
        };
        let is_right_length =
            if opcode.is_last() { payload_octets == left_octets } else { payload_octets < left_octets };
        if !is_right_length {
            return Err(INVALID_REQUEST);
        }
        put(context, packet, target);
        let left_octets = left_octets - payload_octets;
        let target = Target { offset: target.offset + u64::from(payload_octets), ..target };
        self.message = Message::Write { target, length_octets, left_octets };
        if opcode.is_last() {
            self.message = Message::Idle;
        }
        if let (true, Some(receive)) = (opcode.has_immediate(), receive) {
            self.receives.pop_front();
            let operation = CompletedOperation::ReceiveWriteImmediate;
            complete(context, &receive, operation, Status::Success, length_octets, immediate_of(packet));
        }
        Ok(())
    }

    /// Packets that do not end a message are exactly as long as the path MTU.
    fn check_segment_length(&self, opcode: Opcode, payload_octets: u32) -> Result<(), Refusal> {
        let mtu = self.config.path_mtu.octets();
        let is_right = match (opcode.is_first(), opcode.is_last()) {
            (_, false) => payload_octets == mtu,
            (false, true) => (1..=mtu).contains(&payload_octets),
            (true, true) => payload_octets <= mtu,
        };
        if is_right { Ok(()) } else { Err(INVALID_REQUEST) }
    }

    pub(super) fn prepare_read<M: Memory>(
        &self,
        context: &Context<'_, M>,
        packet: &Inbound<'_>,
    ) -> Result<ReadReply, Refusal> {
        let reth = packet.headers.extended.reth().ok_or(INVALID_REQUEST)?.value();
        let is_refused = reth.dma_length > MAX_MESSAGE_OCTETS || packet.payload_len() != 0;
        if is_refused || !self.responses.has_room_for_read() {
            return Err(INVALID_REQUEST);
        }
        Ok(ReadReply {
            target: remote_target(context, &reth, Access::REMOTE_READ)?,
            length_octets: reth.dma_length,
            first: packet.headers.bth.psn(),
            packets: self.config.path_mtu.packets(reth.dma_length),
            sent: 0,
            msn: (self.msn + 1) & 0xFF_FFFF,
        })
    }
}

/// Address, length and remaining octets of a WRITE, from its RETH.
fn begin_write<M: Memory>(context: &Context<'_, M>, packet: &Inbound<'_>) -> Result<(Target, u32, u32), Refusal> {
    let reth = packet.headers.extended.reth().ok_or(INVALID_REQUEST)?.value();
    if reth.dma_length > MAX_MESSAGE_OCTETS {
        return Err(INVALID_REQUEST);
    }
    Ok((remote_target(context, &reth, Access::REMOTE_WRITE)?, reth.dma_length, reth.dma_length))
}

/// An empty message needs no key (IBTA volume 1, section 9.4.3).
fn remote_target<M: Memory>(context: &Context<'_, M>, reth: &Reth, wanted: Access) -> Result<Target, Refusal> {
    let key = MemoryKey(reth.rkey);
    if reth.dma_length == 0 {
        return Ok(Target { key, offset: 0 });
    }
    let offset = context.regions.remote_offset(key, reth.virtual_address, reth.dma_length, wanted);
    offset.map(|offset| Target { key, offset }).ok_or(REMOTE_ACCESS_ERROR)
}

fn put<M: Memory>(context: &mut Context<'_, M>, packet: &Inbound<'_>, target: Target) {
    let mut offset = target.offset;
    for piece in packet.payload() {
        context.regions.write(target.key, offset, piece);
        offset += piece.len() as u64;
    }
}

fn immediate_of(packet: &Inbound<'_>) -> Option<[u8; 4]> {
    packet.headers.extended.immediate().map(|immediate| immediate.0)
}
