//! SIDs: End, End.X, uN, uA and End.DT6, as the element's `behavior`. An SRH stands right behind the IPv6 header; all
//! other places are the element's.

use super::image::{CROSS_CONNECT, DECAPSULATE, NEXT_CSID, PSP, USD};
use super::program::{DESTINATION, NEXT_HEADER, PAYLOAD_LENGTH, Parts, SOURCE, place};
use crate::bpf::assembler::{Arithmetic, Condition, Label, Register, Width};
use srdma_wire::Prefix;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::srh::ROUTING_TYPE;

use Arithmetic::{Add, And, Or, ShiftLeft, ShiftRight, Subtract, Xor};
use Condition::{AnyBit, Equal, Greater, NotEqual};
use Register::{R0, R1, R2, R3, R4, R5, R7, R10};
use Width::{Eight, Four, One, Two};

/// Offsets in an SRH.
const SRH_NEXT_HEADER: i16 = 0;
const HDR_EXT_LEN: i16 = 1;
const SRH_ROUTING_TYPE: i16 = 2;
pub(super) const SEGMENTS_LEFT: i16 = 3;
const LAST_ENTRY: i16 = 4;
const SEGMENT_LIST: i16 = 8;

/// The longest SRH that the program reads: 8 octets and 8 times this. Twenty segments, less what TLVs take.
const MAX_HDR_EXT_LEN: i32 = 40;

const CE: i32 = 3;
const ECT_1: i32 = 1;
const ECT_0: i32 = 2;
const NOT_ECT: i32 = 0;

/// Labels of the processing of one SID.
struct Steps {
    /// The compressed SIDs that follow are shifted into place.
    shift: Label,
    /// The SRH is processed, or what stands in its place.
    routing_header: Label,
    /// End.DT6: the inner packet is found.
    end_dt6: Label,
    /// The inner packet at offset `R7` is taken out.
    decapsulate: Label,
    /// The packet is forwarded: by the SID's neighbour, or by another look-up.
    forward: Label,
}

/// Processes a packet by the SID whose entry is in `R5`, and goes on at `next` or with the neighbour.
pub(super) fn emit(parts: &mut Parts<'_>, stage: usize, next: Label) {
    admit(parts);
    let program = &mut *parts.program;
    let steps = Steps {
        shift: program.label(),
        routing_header: program.label(),
        end_dt6: program.label(),
        decapsulate: program.label(),
        forward: program.label(),
    };
    let (slot, octets) = place::SIDS[stage];
    program.load(Four, R1, R5, 8);
    program.add(R1, 1);
    program.store(Eight, R10, slot, R1);
    program.load(Eight, R1, R10, place::LEN);
    program.store(Eight, R10, octets, R1);
    program.load(Four, R1, R5, 4);
    program.store(Eight, R10, place::INDEX, R1);
    program.load(One, R1, R5, 1);
    program.store(Eight, R10, place::FLAGS, R1);
    program.jump_if(R1, AnyBit, DECAPSULATE.into(), steps.end_dt6);
    program.jump_if(R1, AnyBit, NEXT_CSID.into(), steps.shift);
    program.jump(steps.routing_header);
    shift(parts, &steps);
    routing_header(parts, &steps);
    end_dt6(parts, &steps);
    decapsulate(parts);
    let program = &mut *parts.program;
    program.place(steps.forward);
    program.load(Eight, R1, R10, place::FLAGS);
    program.load(Eight, R2, R10, place::INDEX);
    program.store(Eight, R10, place::SLOT, R2);
    program.jump_if(R1, AnyBit, CROSS_CONNECT.into(), parts.neighbour);
    program.jump(next);
}

/// Only packets from nodes of the domain may go to a SID (RFC 8754 section 5.1).
fn admit(parts: &mut Parts<'_>) {
    let Some(sources) = &parts.port.sources else {
        return;
    };
    let is_admitted = parts.program.label();
    for source in sources {
        admit_source(parts, *source, is_admitted);
    }
    parts.program.jump(parts.element);
    parts.program.place(is_admitted);
}

fn admit_source(parts: &mut Parts<'_>, prefix: Prefix, is_admitted: Label) {
    let other = parts.program.label();
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix.prefix_len())).unwrap_or(0);
    let (mask, wanted) = (mask.to_be_bytes(), prefix.address().octets());
    for half in [0, 8] {
        let as_loaded = |octets: &[u8; 16]| u64::from_ne_bytes(std::array::from_fn(|index| octets[half + index]));
        let program = &mut *parts.program;
        program.load(Eight, R1, R10, place::HEADER + SOURCE + half as i16);
        program.set_long(R2, as_loaded(&mask));
        program.calculate_by(And, R1, R2);
        program.set_long(R2, as_loaded(&wanted));
        program.jump_if_register(R1, NotEqual, R2, other);
    }
    parts.program.jump(is_admitted);
    parts.program.place(other);
}

/// NEXT-CSID: shifts the argument to the left by one compressed SID, unless it is zero (RFC 9800 section 4.1). The
/// entry, in `R5`, has at most 64 bits of block and compressed SID.
fn shift(parts: &mut Parts<'_>, steps: &Steps) {
    let program = &mut *parts.program;
    program.place(steps.shift);
    // R1, R2: the destination; R0: the bits below the block; R4: those of a compressed SID.
    program.load(One, R3, R5, 2);
    program.load(One, R4, R5, 3);
    program.load(Eight, R1, R10, place::HEADER + DESTINATION);
    program.swap_to_network(Eight, R1);
    program.load(Eight, R2, R10, place::HEADER + DESTINATION + 8);
    program.swap_to_network(Eight, R2);
    program.set(R0, -1);
    program.calculate_by(ShiftRight, R0, R3);
    program.copy(R3, R0);
    program.calculate_by(ShiftRight, R3, R4);
    program.calculate_by(And, R3, R1);
    program.calculate_by(Or, R3, R2);
    program.jump_if(R3, Equal, 0, steps.routing_header);
    // The upper half: the block, and below it what comes up from the argument.
    program.copy(R3, R1);
    program.calculate_by(ShiftLeft, R3, R4);
    program.store(Eight, R10, place::OCTETS, R2);
    program.set(R5, 64);
    program.calculate_by(Subtract, R5, R4);
    program.calculate_by(ShiftRight, R2, R5);
    program.calculate_by(Or, R3, R2);
    program.calculate_by(And, R3, R0);
    program.calculate(Xor, R0, -1);
    program.calculate_by(And, R1, R0);
    program.calculate_by(Or, R1, R3);
    program.swap_to_network(Eight, R1);
    program.store(Eight, R10, place::HEADER + DESTINATION, R1);
    program.load(Eight, R2, R10, place::OCTETS);
    program.calculate_by(ShiftLeft, R2, R4);
    program.swap_to_network(Eight, R2);
    program.store(Eight, R10, place::HEADER + DESTINATION + 8, R2);
    parts.decrement_now();
    parts.program.jump(steps.forward);
}

/// End: the next segment of the SRH, or, with USD, the packet in the outer headers.
fn routing_header(parts: &mut Parts<'_>, steps: &Steps) {
    let element = parts.element;
    let (is_srh, advance, stays) = (parts.program.label(), parts.program.label(), parts.program.label());
    let program = &mut *parts.program;
    program.place(steps.routing_header);
    program.load(One, R1, R10, place::HEADER + NEXT_HEADER);
    program.jump_if(R1, Equal, NextHeader::ROUTING.0.into(), is_srh);
    program.jump_if(R1, NotEqual, NextHeader::IPV6.0.into(), element);
    program.load(Eight, R1, R10, place::FLAGS);
    program.jump_if(R1, AnyBit, USD.into(), steps.decapsulate);
    program.jump(element);

    program.place(is_srh);
    read_srh(parts);
    let program = &mut *parts.program;
    program.load(One, R3, R4, SEGMENTS_LEFT);
    program.jump_if(R3, NotEqual, 0, advance);
    program.load(Eight, R1, R10, place::FLAGS);
    let ultimate = program.label();
    program.jump_if(R1, AnyBit, USD.into(), ultimate);
    program.jump(element);
    program.place(ultimate);
    inner_behind_srh(parts, steps);

    // R1: number of segments in the list; R2: Hdr Ext Len; R3: Segments Left.
    parts.program.place(advance);
    parts.program.load(One, R1, R4, LAST_ENTRY);
    parts.program.add(R1, 1);
    parts.program.jump_if_register(R3, Greater, R1, element);
    parts.program.calculate(ShiftLeft, R1, 1);
    parts.program.jump_if_register(R1, Greater, R2, element);
    parts.program.calculate(Subtract, R3, 1);
    // The element reads an SRH only where it is there as a whole.
    parts.program.load(Eight, R1, R10, place::OCTETS);
    parts.program.copy(R5, R4);
    parts.program.calculate_by(Add, R5, R1);
    parts.has_octets(R5, 0);
    parts.program.copy(R5, R3);
    parts.program.calculate(ShiftLeft, R5, 4);
    parts.program.calculate_by(Add, R4, R5);
    parts.has_octets(R4, i32::from(SEGMENT_LIST) + 16);
    for word in [0, 8] {
        parts.program.load(Eight, R1, R4, SEGMENT_LIST + word);
        parts.program.store(Eight, R10, place::HEADER + DESTINATION + word, R1);
    }
    parts.decrement_now();
    let program = &mut *parts.program;
    program.jump_if(R3, NotEqual, 0, stays);
    program.load(Eight, R1, R10, place::FLAGS);
    let pop = program.label();
    program.jump_if(R1, AnyBit, PSP.into(), pop);
    program.place(stays);
    program.add(R3, 1);
    program.store(Eight, R10, place::SEGMENTS_LEFT, R3);
    program.jump(steps.forward);
    program.place(pop);
    pop_srh(parts);
    parts.program.jump(steps.forward);
}

/// `R4` becomes the SRH, `R2` its Hdr Ext Len, and `OCTETS` its octets. Another routing header is the element's, and
/// one that a SID of this node has changed.
fn read_srh(parts: &mut Parts<'_>) {
    let element = parts.element;
    parts.program.load(Eight, R1, R10, place::SEGMENTS_LEFT);
    parts.program.jump_if(R1, NotEqual, 0, element);
    parts.behind_header(8);
    let program = &mut *parts.program;
    program.load(One, R1, R4, SRH_ROUTING_TYPE);
    program.jump_if(R1, NotEqual, ROUTING_TYPE.into(), element);
    program.load(One, R2, R4, HDR_EXT_LEN);
    program.jump_if(R2, Greater, MAX_HDR_EXT_LEN, element);
    program.copy(R1, R2);
    program.calculate(ShiftLeft, R1, 3);
    program.add(R1, 8);
    program.store(Eight, R10, place::OCTETS, R1);
}

/// Takes the SRH out, whose octets are in `OCTETS` (RFC 8986 section 4.16.1, S14.2 to S14.4).
fn pop_srh(parts: &mut Parts<'_>) {
    parts.behind_header(8);
    let program = &mut *parts.program;
    program.load(One, R1, R4, SRH_NEXT_HEADER);
    program.store(One, R10, place::HEADER + NEXT_HEADER, R1);
    program.load(Eight, R2, R10, place::OCTETS);
    program.load(Two, R1, R10, place::HEADER + PAYLOAD_LENGTH);
    program.swap_to_network(Two, R1);
    program.jump_if_register(R2, Greater, R1, parts.element);
    program.calculate_by(Subtract, R1, R2);
    program.swap_to_network(Two, R1);
    program.store(Two, R10, place::HEADER + PAYLOAD_LENGTH, R1);
    skip_octets(parts);
}

/// `R7` and the length of the frame advance by `OCTETS`.
fn skip_octets(parts: &mut Parts<'_>) {
    let program = &mut *parts.program;
    program.load(Eight, R2, R10, place::OCTETS);
    program.calculate_by(Add, R7, R2);
    program.load(Eight, R1, R10, place::LEN);
    program.calculate_by(Subtract, R1, R2);
    program.store(Eight, R10, place::LEN, R1);
}

/// The inner packet behind the SRH at `R4` is taken out, if there is one.
fn inner_behind_srh(parts: &mut Parts<'_>, steps: &Steps) {
    parts.program.load(One, R1, R4, SRH_NEXT_HEADER);
    parts.program.jump_if(R1, NotEqual, NextHeader::IPV6.0.into(), parts.element);
    skip_octets(parts);
    parts.program.jump(steps.decapsulate);
}

/// End.DT6: the inner packet stands behind the IPv6 header, or behind an SRH without segments left.
fn end_dt6(parts: &mut Parts<'_>, steps: &Steps) {
    let element = parts.element;
    let program = &mut *parts.program;
    program.place(steps.end_dt6);
    program.load(One, R1, R10, place::HEADER + NEXT_HEADER);
    program.jump_if(R1, Equal, NextHeader::IPV6.0.into(), steps.decapsulate);
    program.jump_if(R1, NotEqual, NextHeader::ROUTING.0.into(), element);
    read_srh(parts);
    parts.program.load(One, R1, R4, SEGMENTS_LEFT);
    parts.program.jump_if(R1, NotEqual, 0, element);
    inner_behind_srh(parts, steps);
    parts.program.place(steps.decapsulate);
}

/// Takes the packet at offset `R7` out, and merges the ECN fields (RFC 6040 section 4.2), as the element's
/// `decapsulate`. Octets behind the inner packet are the element's to cut off.
fn decapsulate(parts: &mut Parts<'_>) {
    let element = parts.element;
    let (keeps_inner, is_merged) = (parts.program.label(), parts.program.label());
    parts.behind_header(40);
    let program = &mut *parts.program;
    program.load(One, R1, R4, 0);
    program.calculate(ShiftRight, R1, 4);
    program.jump_if(R1, NotEqual, 6, element);
    let ecn = |program: &mut crate::bpf::assembler::Assembler, register| {
        program.calculate(ShiftRight, register, 4);
        program.calculate(And, register, 3);
    };
    // R3: the outer field; R2: the inner one, and then what becomes of it.
    program.load(One, R3, R10, place::HEADER + 1);
    ecn(program, R3);
    program.load(One, R2, R4, 1);
    ecn(program, R2);
    let is_ce = program.label();
    program.jump_if(R3, Equal, CE, is_ce);
    program.jump_if(R3, NotEqual, ECT_1, keeps_inner);
    program.jump_if(R2, NotEqual, ECT_0, keeps_inner);
    program.set(R2, ECT_1);
    program.jump(keeps_inner);
    program.place(is_ce);
    program.jump_if(R2, Equal, NOT_ECT, element);
    program.set(R2, CE);
    program.place(keeps_inner);
    for word in (0..40).step_by(8) {
        program.load(Eight, R1, R4, word);
        program.store(Eight, R10, place::HEADER + word, R1);
    }
    program.load(One, R1, R10, place::HEADER + 1);
    program.calculate(And, R1, 0xcf);
    program.calculate(ShiftLeft, R2, 4);
    program.calculate_by(Or, R1, R2);
    program.store(One, R10, place::HEADER + 1, R1);
    program.add(R7, 40);
    program.load(Eight, R2, R10, place::LEN);
    program.calculate(Subtract, R2, 40);
    program.store(Eight, R10, place::LEN, R2);
    parts.is_exact(R2);
    parts.special_is_the_elements(SOURCE);
    let program = &mut *parts.program;
    program.set(R1, 0);
    program.store(Eight, R10, place::IS_DECREMENTED, R1);
    program.load(Eight, R1, R10, place::FLAGS);
    program.jump_if(R1, AnyBit, DECAPSULATE.into(), is_merged);
    // USD: the main table, or the SID's neighbour.
    let done = program.label();
    program.jump(done);
    program.place(is_merged);
    program.load(Eight, R1, R10, place::INDEX);
    program.swap_to_network(Four, R1);
    program.store(Eight, R10, place::TABLE, R1);
    program.place(done);
}
