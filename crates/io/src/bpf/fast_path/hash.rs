//! The hash of a flow, as the element's `entropy::of_packet`: the two must choose alike.

use super::program::{DESTINATION, NEXT_HEADER, Parts, SOURCE, place};
use crate::bpf::assembler::{Arithmetic, Condition, Register, Width};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::ipv6::NextHeader;

use Arithmetic::{Add, And, Multiply, Or, ShiftLeft, ShiftRight, Xor};
use Register::{R0, R1, R2, R3, R4, R10};

/// `R0` becomes the hash of the header on the stack and, for UDP, of what follows it in the frame. A UDP packet that
/// is too short for that is the element's.
pub(super) fn emit_hash(parts: &mut Parts<'_>) {
    let mixed = parts.program.label();
    // R2 = mix(source ^ flow label) + destination
    load_network(parts, R2, 0);
    parts.program.calculate(ShiftRight, R2, 32);
    parts.program.calculate(And, R2, 0xf_ffff);
    fold(parts, SOURCE, 17);
    mix(parts, R2);
    parts.program.copy(R0, R2);
    parts.program.set(R2, 0);
    fold(parts, DESTINATION, 31);
    parts.program.calculate_by(Add, R2, R0);
    parts.program.load(Width::One, R1, R10, place::HEADER + NEXT_HEADER);
    parts.program.jump_if(R1, Condition::NotEqual, NextHeader::UDP.0.into(), mixed);
    parts.behind_header(16);
    let program = &mut *parts.program;
    program.load(Width::Four, R1, R4, 0);
    program.swap_to_network(Width::Four, R1);
    program.calculate(ShiftLeft, R1, 32);
    program.calculate_by(Xor, R2, R1);
    program.load(Width::Two, R1, R4, 2);
    program.jump_if(R1, Condition::NotEqual, ROCEV2_PORT.to_be().into(), mixed);
    program.load(Width::Four, R1, R4, 12);
    program.swap_to_network(Width::Four, R1);
    program.calculate(And, R1, 0xff_ffff);
    program.calculate_by(Xor, R2, R1);
    program.place(mixed);
    mix(parts, R2);
    parts.program.calculate(ShiftRight, R2, 32);
    parts.program.copy(R0, R2);
}

/// Eight octets of the header as a number.
fn load_network(parts: &mut Parts<'_>, to: Register, offset: i16) {
    parts.program.load(Width::Eight, to, R10, place::HEADER + offset);
    parts.program.swap_to_network(Width::Eight, to);
}

/// `R2 ^= ` both halves of an address, the second one rotated to the left.
fn fold(parts: &mut Parts<'_>, offset: i16, rotation: i32) {
    load_network(parts, R1, offset);
    parts.program.calculate_by(Xor, R2, R1);
    load_network(parts, R1, offset + 8);
    let program = &mut *parts.program;
    program.copy(R3, R1);
    program.calculate(ShiftLeft, R1, rotation);
    program.calculate(ShiftRight, R3, 64 - rotation);
    program.calculate_by(Or, R1, R3);
    program.calculate_by(Xor, R2, R1);
}

/// `value = (value ^ value >> 29) * constant`, without `R0`.
fn mix(parts: &mut Parts<'_>, value: Register) {
    let program = &mut *parts.program;
    program.copy(R1, value);
    program.calculate(ShiftRight, R1, 29);
    program.calculate_by(Xor, value, R1);
    program.set_long(R1, 0xBF58_476D_1CE4_E5B9);
    program.calculate_by(Multiply, value, R1);
}
