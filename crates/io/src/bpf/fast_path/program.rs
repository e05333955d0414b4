//! The program: from the frame to the neighbour.
//!
//! `R6` is the context, `R8` the frame, `R9` its end, and `R7` the offset of what follows the IPv6 header. That header
//! is a copy on the stack until the frame leaves, so that headers can be taken off, put on and edited without a change
//! of the frame.

use super::hash::emit_hash;
use super::image::{ARRIVAL, KIND_HOP, KIND_POLICY, KIND_SET, KIND_SID, MAX_MEMBERS, MAX_POLICY_OCTETS, TO_HOP};
use super::leave::{self, MAX_SEGMENT_OCTETS};
use super::{Maps, Port, sid};
use crate::bpf::assembler::{Arithmetic, Assembler, Condition, Helper, Label, Register, Width};
use crate::bpf::{XDP_MD_DATA, XDP_MD_DATA_END};
use std::os::fd::{AsFd, BorrowedFd};

use Arithmetic::{Add, And, Multiply, Or, ShiftLeft, ShiftRight, Subtract, Xor};
use Condition::{AtMost, Equal, Greater, NotEqual};
use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use Width::{Eight, Four, One, Two};

/// Places on the stack.
pub(super) mod place {
    /// The IPv6 header as the packet will have it, or, of an encapsulated packet, the outer one.
    pub(in super::super) const HEADER: i16 = -64;
    /// The IPv6 header of a packet that is encapsulated.
    pub(in super::super) const INNER: i16 = -104;
    /// Key of a look-up by address.
    pub(in super::super) const KEY: i16 = -128;
    /// Key of a look-up by number.
    pub(in super::super) const NUMBER: i16 = -132;
    /// Octets of the frame as it will be.
    pub(in super::super) const LEN: i16 = -144;
    /// Octets of the frame as it came in.
    pub(in super::super) const RECEIVED: i16 = -152;
    /// Segments Left of an SRH that stays, plus 1; 0: no change.
    pub(in super::super) const SEGMENTS_LEFT: i16 = -160;
    /// Octets of the outer headers to be pushed; 0: none.
    pub(in super::super) const PUSH: i16 = -168;
    /// Slot of the outer headers.
    pub(in super::super) const POLICY: i16 = -176;
    /// Whether the hop limit has been decremented.
    pub(in super::super) const IS_DECREMENTED: i16 = -184;
    /// Table of the next look-up, in network byte order.
    pub(in super::super) const TABLE: i16 = -192;
    /// Slot of the neighbour, or of the set of equal paths.
    pub(in super::super) const SLOT: i16 = -200;
    /// A hash.
    pub(in super::super) const HASH: i16 = -208;
    /// Slots of the SIDs that have processed the packet, plus 1, each with the octets of the frame then.
    pub(in super::super) const SIDS: [(i16, i16); 2] = [(-216, -224), (-232, -240)];
    /// Flags of a SID, and its neighbour or table.
    pub(in super::super) const FLAGS: i16 = -248;
    pub(in super::super) const INDEX: i16 = -256;
    /// Octets of an SRH, and of others for a moment.
    pub(in super::super) const OCTETS: i16 = -264;
    /// The Ethernet header that the frame will have.
    pub(in super::super) const ETHERNET: i16 = -280;
    /// Key of the port by which it leaves.
    pub(in super::super) const OUT: i16 = -288;
}

/// Look-ups for one packet. The element makes more, for packets that meet more SIDs of one node than any path needs.
const STAGES: usize = 3;

/// Offset of the IPv6 header in a frame, and of what follows it.
pub(super) const IPV6: i16 = 14;
pub(super) const AFTER_IPV6: i16 = IPV6 + 40;

/// Offsets in an IPv6 header.
pub(super) const PAYLOAD_LENGTH: i16 = 4;
pub(super) const NEXT_HEADER: i16 = 6;
pub(super) const HOP_LIMIT: i16 = 7;
pub(super) const SOURCE: i16 = 8;
pub(super) const DESTINATION: i16 = 24;

/// What a program of a port needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::bpf) struct FastProgram<'m> {
    pub(in crate::bpf) maps: &'m Maps,
    pub(in crate::bpf) port: &'m Port,
}

/// A program in the making, with the labels that all its parts know.
pub(super) struct Parts<'p> {
    pub(super) program: &'p mut Assembler,
    pub(super) maps: &'p Maps,
    pub(super) port: &'p Port,
    /// Gives the frame to the element.
    pub(super) element: Label,
    /// Sends the packet to the neighbour in `SLOT`.
    pub(super) neighbour: Label,
}

impl FastProgram<'_> {
    /// Emits the fast path, which begins here with the context in `R6`. It jumps to `element` with the frame unchanged.
    pub(in crate::bpf) fn emit(&self, program: &mut Assembler, element: Label) {
        let (neighbour, equal_paths) = (program.label(), program.label());
        let mut parts = Parts { program, maps: self.maps, port: self.port, element, neighbour };
        parts.admit();
        let mut stage = parts.program.label();
        for number in 0..STAGES {
            let next = parts.program.label();
            parts.program.place(stage);
            parts.look_up(number, next, equal_paths);
            stage = next;
        }
        // The last stage ends with neighbours, or with the element.
        parts.program.place(equal_paths);
        parts.choose();
        parts.program.place(neighbour);
        parts.decrement();
        leave::emit(&mut parts);
    }
}

impl Parts<'_> {
    /// Admission, as the element's: an IPv6 packet for this port, without padding; its header is copied.
    fn admit(&mut self) {
        let element = self.element;
        self.program.load(Four, R8, R6, XDP_MD_DATA);
        self.program.load(Four, R9, R6, XDP_MD_DATA_END);
        self.has_octets(R8, AFTER_IPV6.into());
        let program = &mut *self.program;
        let [a, b, c, d, e, f] = self.port.mac;
        program.load(Four, R1, R8, 0);
        program.set_long(R2, u32::from_ne_bytes([a, b, c, d]).into());
        program.jump_if_register(R1, NotEqual, R2, element);
        program.load(Two, R1, R8, 4);
        program.jump_if(R1, NotEqual, u16::from_ne_bytes([e, f]).into(), element);
        program.load(Two, R1, R8, 12);
        program.jump_if(R1, NotEqual, 0x86ddu16.to_be().into(), element);
        program.load(One, R1, R8, IPV6);
        program.calculate(ShiftRight, R1, 4);
        program.jump_if(R1, NotEqual, 6, element);
        for word in (0..40).step_by(8) {
            program.load(Eight, R1, R8, IPV6 + word);
            program.store(Eight, R10, place::HEADER + word, R1);
        }
        self.special_is_the_elements(SOURCE);
        let program = &mut *self.program;
        program.copy(R1, R6);
        program.call(Helper::BufferLength);
        program.store(Eight, R10, place::LEN, R0);
        program.store(Eight, R10, place::RECEIVED, R0);
        self.is_exact(R0);
        let program = &mut *self.program;
        program.set(R7, AFTER_IPV6.into());
        program.set(R1, 0);
        let zeroed = [place::SEGMENTS_LEFT, place::PUSH, place::IS_DECREMENTED, place::TABLE];
        for place in zeroed.into_iter().chain(place::SIDS.map(|(slot, _)| slot)) {
            program.store(Eight, R10, place, R1);
        }
    }

    /// Leaves for the element unless the payload length of the header fits a frame of so many octets.
    pub(super) fn is_exact(&mut self, len: Register) {
        let program = &mut *self.program;
        program.load(Two, R1, R10, place::HEADER + PAYLOAD_LENGTH);
        program.swap_to_network(Two, R1);
        program.add(R1, AFTER_IPV6.into());
        program.jump_if_register(R1, NotEqual, len, self.element);
    }

    /// Leaves for the element if the address at this place of the header may be a multicast, link-local, loopback or
    /// unspecified one.
    pub(super) fn special_is_the_elements(&mut self, address: i16) {
        let program = &mut *self.program;
        program.load(One, R1, R10, place::HEADER + address);
        program.jump_if(R1, Equal, 0, self.element);
        program.jump_if(R1, Greater, 0xfd, self.element);
    }

    /// Leaves for the element unless so many octets lie behind `from` in the frame's first buffer.
    pub(super) fn has_octets(&mut self, from: Register, octets: i32) {
        self.program.copy(R0, from);
        self.program.add(R0, octets);
        self.program.jump_if_register(R0, Greater, R9, self.element);
    }

    /// `R4` becomes what follows the IPv6 header, of which so many octets are there.
    pub(super) fn behind_header(&mut self, octets: i32) {
        self.program.copy(R4, R8);
        self.program.calculate_by(Add, R4, R7);
        self.has_octets(R4, octets);
    }

    /// Decrements the hop limit, once for the node.
    pub(super) fn decrement(&mut self) {
        let is_done = self.program.label();
        self.program.load(Eight, R1, R10, place::IS_DECREMENTED);
        self.program.jump_if(R1, NotEqual, 0, is_done);
        self.decrement_now();
        self.program.place(is_done);
    }

    /// Decrements the hop limit; an exhausted one is the element's.
    pub(super) fn decrement_now(&mut self) {
        let program = &mut *self.program;
        program.load(One, R1, R10, place::HEADER + HOP_LIMIT);
        program.jump_if(R1, AtMost, 1, self.element);
        program.calculate(Subtract, R1, 1);
        program.store(One, R10, place::HEADER + HOP_LIMIT, R1);
        program.set(R1, 1);
        program.store(Eight, R10, place::IS_DECREMENTED, R1);
    }

    /// `R0` becomes the value of an entry whose number is on the stack, in `from`.
    pub(super) fn value_at(&mut self, map: BorrowedFd<'_>, from: i16) {
        let program = &mut *self.program;
        program.load(Eight, R1, R10, from);
        program.store(Four, R10, place::NUMBER, R1);
        program.look_up(map, place::NUMBER.into());
    }

    /// Looks the destination up, and processes the packet as its entry says; goes on at `next` with a new destination.
    fn look_up(&mut self, stage: usize, next: Label, equal_paths: Label) {
        let (element, neighbour) = (self.element, self.neighbour);
        self.special_is_the_elements(DESTINATION);
        let program = &mut *self.program;
        program.store_value(Four, R10, place::KEY, 32 + 128);
        if stage == 0 {
            program.store_value(Four, R10, place::KEY + 4, ARRIVAL.to_be() as i32);
        } else {
            program.load(Eight, R1, R10, place::TABLE);
            program.store(Four, R10, place::KEY + 4, R1);
        }
        for word in [0, 8] {
            program.load(Eight, R1, R10, place::HEADER + DESTINATION + word);
            program.store(Eight, R10, place::KEY + 8 + word, R1);
        }
        program.look_up(self.maps.routes.fd.as_fd(), place::KEY.into());
        program.jump_if(R0, Equal, 0, element);
        program.copy(R5, R0);
        program.load(Four, R2, R5, 4);
        program.store(Eight, R10, place::SLOT, R2);
        program.load(One, R1, R5, 0);
        program.jump_if(R1, Equal, KIND_HOP.into(), neighbour);
        program.jump_if(R1, Equal, KIND_SET.into(), equal_paths);
        if stage + 1 == STAGES {
            program.jump(element);
            return;
        }
        // Packets with outer headers of this node's that meet another of its SIDs or policies are the element's.
        program.load(Eight, R2, R10, place::PUSH);
        program.jump_if(R2, NotEqual, 0, element);
        let policy = program.label();
        program.jump_if(R1, Equal, KIND_POLICY.into(), policy);
        program.jump_if(R1, NotEqual, KIND_SID.into(), element);
        sid::emit(self, stage, next);
        let program = &mut *self.program;
        program.place(policy);
        program.load(One, R1, R5, 1);
        program.store(Eight, R10, place::FLAGS, R1);
        program.load(Four, R1, R5, 8);
        program.store(Eight, R10, place::INDEX, R1);
        self.encapsulate();
        // Where the outer destination leads may be known already.
        let program = &mut *self.program;
        program.load(Eight, R1, R10, place::FLAGS);
        program.jump_if(R1, Equal, 0, next);
        program.load(Eight, R2, R10, place::INDEX);
        program.store(Eight, R10, place::SLOT, R2);
        program.jump_if(R1, Equal, TO_HOP.into(), neighbour);
        program.jump(equal_paths);
    }

    /// Puts outer headers around the packet (RFC 8986 section 5.1), as the element's `Encaps::push`.
    fn encapsulate(&mut self) {
        let element = self.element;
        self.program.load(Eight, R1, R10, place::SEGMENTS_LEFT);
        self.program.jump_if(R1, NotEqual, 0, element);
        self.decrement();
        emit_hash(self);
        self.program.store(Eight, R10, place::HASH, R0);
        self.program.load(Eight, R1, R10, place::SLOT);
        self.program.store(Eight, R10, place::POLICY, R1);
        self.value_at(self.maps.policies.fd.as_fd(), place::POLICY);
        let program = &mut *self.program;
        program.jump_if(R0, Equal, 0, element);
        for word in (0..40).step_by(8) {
            program.load(Eight, R1, R10, place::HEADER + word);
            program.store(Eight, R10, place::INNER + word, R1);
            program.load(Eight, R1, R0, 8 + word);
            program.store(Eight, R10, place::HEADER + word, R1);
        }
        // Payload length: the SRH, and all behind the former Ethernet header.
        program.load(Four, R1, R0, 0);
        program.jump_if(R1, Greater, MAX_POLICY_OCTETS as i32, element);
        program.store(Eight, R10, place::PUSH, R1);
        program.load(Eight, R2, R10, place::LEN);
        program.calculate_by(Add, R2, R1);
        program.store(Eight, R10, place::LEN, R2);
        program.calculate(Subtract, R2, AFTER_IPV6.into());
        program.jump_if(R2, Greater, u16::MAX.into(), element);
        program.swap_to_network(Two, R2);
        program.store(Two, R10, place::HEADER + PAYLOAD_LENGTH, R2);
        // Version 6, the inner traffic class (RFC 6040), the flow's hash as flow label (RFC 6438).
        program.load(Four, R1, R10, place::INNER);
        program.swap_to_network(Four, R1);
        program.calculate(And, R1, 0x0ff0_0000);
        program.calculate(Or, R1, 0x6000_0000);
        program.load(Eight, R2, R10, place::HASH);
        program.calculate(And, R2, 0xf_ffff);
        program.calculate_by(Or, R1, R2);
        program.swap_to_network(Four, R1);
        program.store(Four, R10, place::HEADER, R1);
        program.set(R1, 1);
        program.store(Eight, R10, place::IS_DECREMENTED, R1);
        program.set(R1, 0);
        program.store(Eight, R10, place::TABLE, R1);
    }

    /// Chooses the neighbour of the flow among equal paths, as the element's `entropy::choose`.
    fn choose(&mut self) {
        emit_hash(self);
        self.program.store(Eight, R10, place::HASH, R0);
        self.value_at(self.maps.sets.fd.as_fd(), place::SLOT);
        let element = self.element;
        let program = &mut *self.program;
        program.jump_if(R0, Equal, 0, element);
        program.load(Four, R1, R0, 0);
        program.load(Eight, R2, R10, place::HASH);
        program.set_long(R3, self.port.salt.into());
        program.calculate_by(Xor, R2, R3);
        program.set_long(R3, 0x9E37_79B1);
        program.calculate_by(Multiply, R2, R3);
        program.calculate(ShiftLeft, R2, 32);
        program.calculate(ShiftRight, R2, 32);
        program.calculate_by(Multiply, R2, R1);
        program.calculate(ShiftRight, R2, 32);
        program.jump_if(R2, Greater, MAX_MEMBERS as i32 - 1, element);
        program.calculate(ShiftLeft, R2, 2);
        program.calculate_by(Add, R0, R2);
        program.load(Four, R1, R0, 4);
        program.store(Eight, R10, place::SLOT, R1);
    }

    /// Reads the frame's bounds again, after a change of its beginning. `failed`: it has not so many octets.
    pub(super) fn reload(&mut self, octets: i32, failed: Label) {
        let program = &mut *self.program;
        program.load(Four, R8, R6, XDP_MD_DATA);
        program.load(Four, R9, R6, XDP_MD_DATA_END);
        program.copy(R0, R8);
        program.add(R0, octets);
        program.jump_if_register(R0, Greater, R9, failed);
    }
}

const _: () = assert!(MAX_SEGMENT_OCTETS == MAX_POLICY_OCTETS - 40);
