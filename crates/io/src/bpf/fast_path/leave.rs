//! The way out: checks of the link, then the rewrite, and the redirection to the interface.

use super::image::MAX_POLICY_OCTETS;
use super::program::{AFTER_IPV6, Parts, place};
use super::{SID_COUNTERS, sid};
use crate::bpf::assembler::{Arithmetic, Condition, Helper, Label, Register, Width};
use crate::bpf::{XDP_ABORTED, XDP_REDIRECT};
use std::os::fd::AsFd;

use Arithmetic::{Add, Subtract};
use Condition::{Equal, Greater, NotEqual};
use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use Width::{Eight, Four, One, Two};

/// Octets of an SRH that is pushed.
pub(super) const MAX_SEGMENT_OCTETS: usize = MAX_POLICY_OCTETS - 40;

/// Sends the packet to the neighbour in `SLOT`. From the change of the frame's beginning on there is no way back.
pub(super) fn emit(parts: &mut Parts<'_>) {
    let element = parts.element;
    parts.value_at(parts.maps.hops.fd.as_fd(), place::SLOT);
    let program = &mut *parts.program;
    program.jump_if(R0, Equal, 0, element);
    program.load(Eight, R1, R10, place::LEN);
    program.load(Four, R2, R0, 4);
    program.jump_if_register(R1, Greater, R2, element);
    for word in [0, 4, 8] {
        program.load(Four, R1, R0, 8 + word);
        program.store(Four, R10, place::ETHERNET + word, R1);
    }
    program.load(Four, R1, R0, 0);
    program.store(Eight, R10, place::OUT, R1);
    // The kernel notes the interface, and it takes effect with the verdict. What the element takes is noted anew.
    program.copy(R2, R1);
    program.set_map(R1, parts.maps.interfaces.fd.as_fd());
    program.set(R3, XDP_ABORTED);
    program.call(Helper::RedirectMap);
    program.jump_if(R0, NotEqual, XDP_REDIRECT, element);

    let (failed, is_moved) = (parts.program.label(), parts.program.label());
    let program = &mut *parts.program;
    program.copy(R2, R7);
    program.calculate(Subtract, R2, AFTER_IPV6.into());
    program.load(Eight, R1, R10, place::PUSH);
    program.calculate_by(Subtract, R2, R1);
    program.jump_if(R2, Equal, 0, is_moved);
    program.copy(R1, R6);
    program.call(Helper::AdjustHead);
    program.jump_if(R0, NotEqual, 0, element);
    program.place(is_moved);
    parts.reload(AFTER_IPV6.into(), failed);
    write_headers(parts);
    write_pushed(parts, failed);
    write_segments_left(parts, failed);
    count_all(parts);
    let program = &mut *parts.program;
    program.set(R0, XDP_REDIRECT);
    program.exit();
    // It cannot come about: every check has been made before.
    program.place(failed);
    program.set(R0, XDP_ABORTED);
    program.exit();
}

/// The Ethernet header and the IPv6 header behind it.
fn write_headers(parts: &mut Parts<'_>) {
    let program = &mut *parts.program;
    for word in [0, 4, 8] {
        program.load(Four, R1, R10, place::ETHERNET + word);
        program.store(Four, R8, word, R1);
    }
    program.set(R1, 0x86ddu16.to_be().into());
    program.store(Two, R8, 12, R1);
    for word in (0..40).step_by(8) {
        program.load(Eight, R1, R10, place::HEADER + word);
        program.store(Eight, R8, 14 + word, R1);
    }
}

/// The SRH and the inner IPv6 header of a packet that is encapsulated.
fn write_pushed(parts: &mut Parts<'_>, failed: Label) {
    let (is_written, inner) = (parts.program.label(), parts.program.label());
    parts.program.load(Eight, R1, R10, place::PUSH);
    parts.program.jump_if(R1, Equal, 0, is_written);
    parts.value_at(parts.maps.policies.fd.as_fd(), place::POLICY);
    let program = &mut *parts.program;
    program.jump_if(R0, Equal, 0, failed);
    program.load(Eight, R5, R10, place::PUSH);
    program.calculate(Subtract, R5, 40);
    program.jump_if(R5, Greater, MAX_SEGMENT_OCTETS as i32, failed);
    for word in (0..MAX_SEGMENT_OCTETS as i16).step_by(8) {
        program.jump_if(R5, Equal, word.into(), inner);
        program.copy(R2, R8);
        program.add(R2, i32::from(AFTER_IPV6 + word) + 8);
        program.jump_if_register(R2, Greater, R9, failed);
        program.load(Eight, R1, R0, 8 + 40 + word);
        program.store(Eight, R8, AFTER_IPV6 + word, R1);
    }
    program.place(inner);
    program.copy(R4, R8);
    program.calculate_by(Add, R4, R5);
    program.copy(R2, R4);
    program.add(R2, i32::from(AFTER_IPV6) + 40);
    program.jump_if_register(R2, Greater, R9, failed);
    for word in (0..40).step_by(8) {
        program.load(Eight, R1, R10, place::INNER + word);
        program.store(Eight, R4, AFTER_IPV6 + word, R1);
    }
    program.place(is_written);
}

/// Segments Left of an SRH that stays, right behind the IPv6 header.
fn write_segments_left(parts: &mut Parts<'_>, failed: Label) {
    let is_written = parts.program.label();
    let program = &mut *parts.program;
    program.load(Eight, R1, R10, place::SEGMENTS_LEFT);
    program.jump_if(R1, Equal, 0, is_written);
    program.copy(R2, R8);
    program.add(R2, i32::from(AFTER_IPV6) + 8);
    program.jump_if_register(R2, Greater, R9, failed);
    program.calculate(Subtract, R1, 1);
    program.store(One, R8, AFTER_IPV6 + sid::SEGMENTS_LEFT, R1);
    program.place(is_written);
}

/// Counts the frame where it came in and where it leaves, and for the SIDs that have processed it.
fn count_all(parts: &mut Parts<'_>) {
    let received = 2 * i32::from(parts.port.number);
    parts.program.set(R1, received);
    count(parts, place::RECEIVED);
    parts.program.load(Eight, R1, R10, place::OUT);
    parts.program.calculate_by(Add, R1, R1);
    parts.program.add(R1, 1);
    count(parts, place::LEN);
    for (slot, octets) in place::SIDS {
        let is_counted = parts.program.label();
        parts.program.load(Eight, R1, R10, slot);
        parts.program.jump_if(R1, Equal, 0, is_counted);
        parts.program.add(R1, SID_COUNTERS as i32 - 1);
        count(parts, octets);
        parts.program.place(is_counted);
    }
}

/// Counts a frame, whose octets are on the stack, in the entry of the number in `R1`. Each processor has its own.
fn count(parts: &mut Parts<'_>, octets: i16) {
    let is_counted = parts.program.label();
    let program = &mut *parts.program;
    program.store(Four, R10, place::NUMBER, R1);
    program.look_up(parts.maps.counters.fd.as_fd(), place::NUMBER.into());
    program.jump_if(R0, Equal, 0, is_counted);
    program.load(Eight, R1, R0, 0);
    program.add(R1, 1);
    program.store(Eight, R0, 0, R1);
    program.load(Eight, R1, R0, 8);
    program.load(Eight, R2, R10, octets);
    program.calculate_by(Add, R1, R2);
    program.store(Eight, R0, 8, R1);
    program.place(is_counted);
}
