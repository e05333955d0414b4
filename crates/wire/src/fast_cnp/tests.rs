use super::*;
use crate::bth::Opcode;
use crate::ioam::TraceError;
use crate::options::{OptionOverrun, OptionTlv};
use crate::psn::Qpn;
use crate::rocev2::Packet;
use core::net::Ipv6Addr;
use std::vec;
use std::vec::Vec;

const ADDRESS: [u8; 16] = [0x20, 1, 0xD, 0xB8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const SEPARATE: OptionTypes = OptionTypes { address: 0x9E, trace: 0x9D };

/// Reserved, IOAM Option-Type, a trace header with four octets of node data a hop (queue depth), so many of them unused; then the data.
fn trace(units: u8, remaining: u8) -> Vec<u8> {
    let mut trace = vec![0, 0, 0, 1, 1 << 3, remaining, 0x02, 0, 0, 0];
    trace.resize(10 + 4 * usize::from(units), 0xAB);
    trace
}

fn trace_option(trace: &[u8]) -> Vec<u8> {
    [trace, &ADDRESS].concat()
}

/// Options as they are given, behind one another from offset 2, padded by Pad1.
fn header(next_header: u8, options: &[(u8, &[u8])]) -> Vec<u8> {
    let mut octets = vec![next_header, 0];
    for (kind, data) in options {
        octets.extend([&[*kind, data.len() as u8], *data].concat());
    }
    octets.resize(octets.len().next_multiple_of(8), 0);
    octets[1] = (octets.len() / 8 - 1) as u8;
    octets
}

/// A CNP behind these extension headers, the first of which is `first`.
fn packet(first: u8, headers: &[Vec<u8>]) -> Vec<u8> {
    let headers = headers.concat();
    let [high, low] = (headers.len() as u16 + 40).to_be_bytes();
    let mut octets = vec![0x6C, 0, 0, 0, high, low, first, 64];
    octets.extend([7; 32]);
    octets.extend(headers);
    octets.extend([0xD0, 1, 0x12, 0xB7, 0, 40, 0, 0, 0x81, 0, 0xFF, 0xFF, 0x40, 0, 0xAB, 0xCD, 0, 0, 0, 0]);
    octets.extend([0; 20]);
    octets
}

fn found(octets: &[u8], types: OptionTypes) -> Result<Option<(Ipv6Addr, Option<usize>)>, FastCnpError> {
    let packet = Packet::parse(octets, octets.len()).unwrap();
    let fast_cnp = FastCnp::find(&packet, types)?;
    Ok(fast_cnp.map(|fast_cnp| (fast_cnp.original_destination, fast_cnp.trace.map(<[u8]>::len))))
}

fn found_in(options: &[(u8, &[u8])], types: OptionTypes) -> Result<Option<(Ipv6Addr, Option<usize>)>, FastCnpError> {
    found(&packet(60, &[header(17, options)]), types)
}

/// D40: padding with any octets is accepted; so are options that may be skipped.
#[test]
fn any_padding_is_accepted() {
    let here = Ok(Some((ADDRESS.into(), None)));
    let pads: [&[(u8, &[u8])]; 4] = [
        &[(1, &[]), (0x9E, &ADDRESS)],
        &[(0x9E, &ADDRESS), (1, &[0xFF; 9])],
        &[(1, &[0; 5]), (1, &[0; 1]), (0x9E, &ADDRESS), (0x1E, &[1, 2, 3])],
        &[(0x9E, &ADDRESS)],
    ];
    for options in pads {
        assert_eq!(found_in(options, OptionTypes::default()), here);
        assert_eq!(found_in(options, SEPARATE), here);
    }
}

/// D42: with one type for both, 16 octets are option 1 and more are option 2.
#[test]
fn equal_types_are_distinguished_by_length() {
    let trace_data = trace_option(&trace(3, 1));
    let with_trace = Ok(Some((ADDRESS.into(), Some(22))));
    assert_eq!(found_in(&[(0x9E, &trace_data)], OptionTypes::default()), with_trace);
    assert_eq!(found_in(&[(0x9D, &trace_data)], SEPARATE), with_trace);
    assert_eq!(found_in(&[(0x9D, &ADDRESS)], OptionTypes::default()), Ok(None), "another option: ignored here");
    let error = FastCnpError::TooLong { offset: 2, limit: 16, found: trace_data.len() };
    assert_eq!(found_in(&[(0x9E, &trace_data)], SEPARATE), Err(error));
    let error = FastCnpError::TooShort { offset: 2, needed: 26, found: 16 };
    assert_eq!(found_in(&[(0x9D, &ADDRESS)], SEPARATE), Err(error));
}

/// FC-4-4: every length of one option but the right ones is an error with a name.
#[test]
fn every_wrong_length_is_refused() {
    for len in 0..=255_usize {
        let data: Vec<u8> = [&[0, 0, 0, 1, 8, 0, 2, 0, 0, 0][..], &[0; 245]].concat()[..len].to_vec();
        let is_trace = len >= 26 && (len - 26).is_multiple_of(4) && len <= MAX_TRACE_LEN + 16;
        let result = found_in(&[(0x9E, &data)], OptionTypes::default());
        match (len, result) {
            (16, Ok(Some((_, None)))) => {}
            (_, Ok(Some((_, Some(trace_len))))) => assert!(is_trace && trace_len == len - 16, "{len}"),
            (_, Err(FastCnpError::TooShort { .. })) => assert!(len < 26 && len != 16, "{len}"),
            (_, Err(FastCnpError::TooLong { limit, .. })) => assert!(!is_trace && limit < len && len > 26, "{len}"),
            (_, other) => panic!("{len} octets: {other:?}"),
        }
    }
}

#[test]
fn an_option_in_another_place_is_refused() {
    let ours = [(0x9E, &ADDRESS[..])];
    let routing = vec![60, 0, 3, 0, 0, 0, 0, 0];
    let before_routing = packet(60, &[header(43, &ours), vec![17, 0, 3, 0, 0, 0, 0, 0]]);
    let in_hop_by_hop = packet(0, &[header(17, &ours)]);
    let behind_routing = packet(43, &[routing, header(17, &ours)]);
    let behind_hop_by_hop = packet(0, &[header(60, &[(0x31, &[0; 4])]), header(17, &ours)]);
    let wrong = |header_offset| Err(FastCnpError::WrongPlace { header_offset });
    assert_eq!(found(&before_routing, OptionTypes::default()), wrong(40));
    assert_eq!(found(&in_hop_by_hop, OptionTypes::default()), wrong(40));
    assert!(matches!(found(&behind_routing, OptionTypes::default()), Ok(Some(_))));
    assert!(matches!(found(&behind_hop_by_hop, OptionTypes::default()), Ok(Some(_))));
}

#[test]
fn two_options_are_refused() {
    let trace_data = trace_option(&trace(1, 0));
    let result = found_in(&[(0x9E, &ADDRESS), (0x9E, &ADDRESS)], OptionTypes::default());
    assert_eq!(result, Err(FastCnpError::Twice { offset: 20 }));
    let result = found_in(&[(0x9E, &ADDRESS), (0x9D, &trace_data)], SEPARATE);
    assert_eq!(result, Err(FastCnpError::Twice { offset: 20 }));
}

#[test]
fn an_option_beyond_its_header_is_refused() {
    let mut octets = packet(60, &[header(17, &[(0x9E, &ADDRESS)])]);
    octets[43] = 200;
    let overrun = OptionOverrun { offset: 2 };
    assert_eq!(found(&octets, OptionTypes::default()), Err(FastCnpError::Overrun(overrun)));
}

/// RFC 8200 section 4.2: an unknown option is skipped only if its type permits that.
#[test]
fn unknown_options_beside_ours() {
    for (kind, expected) in [(0x1E, true), (0x5E, false), (0x9D, false), (0xDE, false)] {
        let result = found_in(&[(0x9E, &ADDRESS), (kind, &[])], OptionTypes::default());
        match expected {
            true => assert!(matches!(result, Ok(Some(_)))),
            false => assert_eq!(result, Err(FastCnpError::UnknownOption(kind))),
        }
    }
}

#[test]
fn a_trace_with_too_long_a_length_is_refused() {
    for remaining in 0..=127_u8 {
        let data = trace_option(&trace(5, remaining));
        let words = usize::from(remaining);
        let expected = match remaining {
            0..=5 => Ok(Some((ADDRESS.into(), Some(30)))),
            _ => Err(FastCnpError::Trace(TraceError::RemainingLen { words, space: 5 })),
        };
        assert_eq!(found_in(&[(0x9E, &data)], OptionTypes::default()), expected);
    }
    let mut two_words_a_node = trace(5, 0);
    (two_words_a_node[4], two_words_a_node[6]) = (2 << 3, 0x03);
    let partial = FastCnpError::Trace(TraceError::PartialNode { needed: 2, found: 1 });
    assert_eq!(found_in(&[(0x9E, &trace_option(&two_words_a_node))], OptionTypes::default()), Err(partial));
    let mut data = trace_option(&trace(1, 0));
    data[1] = 3;
    assert_eq!(found_in(&[(0x9E, &data)], OptionTypes::default()), Err(FastCnpError::Trace(TraceError::OptType(3))));
}

#[test]
fn only_a_cnp_carries_the_option() {
    let mut octets = packet(60, &[header(17, &[(0x9E, &ADDRESS)])]);
    octets[72] = Opcode::SEND_ONLY.0;
    assert_eq!(found(&octets, OptionTypes::default()), Err(FastCnpError::NotACnp(Opcode::SEND_ONLY)));
}

/// FC-4-3, FC-6-1: other types can be set, but only discard-and-report, without change on the way.
#[test]
fn types_have_the_bits_of_the_draft() {
    let option = |kind| OptionTlv { offset: 2, kind, data: &[] };
    for kind in 0..=u8::MAX {
        let expected = kind >> 6 == 0b10 && !option(kind).may_change();
        assert_eq!(OptionTypes::new(kind, 0x9E).is_some(), expected);
        assert_eq!(OptionTypes::new(0x80, kind).is_some(), expected);
    }
    let default = OptionTypes::default();
    assert_eq!(OptionTypes::new(default.address(), default.trace()), Some(default));
}

fn value(trace: Option<&[u8]>) -> FastCnpValue<'_> {
    FastCnpValue {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
        traffic_class: FastCnpValue::TRAFFIC_CLASS,
        hop_limit: FastCnpValue::HOP_LIMIT,
        source_port: 0xD001,
        dest_qpn: Qpn::new(5).unwrap(),
        original_destination: ADDRESS.into(),
        trace,
    }
}

/// D41: a trace of 236 octets is the longest.
#[test]
fn a_trace_must_fit_the_option() {
    let mut into = [0; MAX_FAST_CNP_LEN + 8];
    let mut emitted = |len: usize| value(Some(&[0; 256][..len])).emit(OptionTypes::default(), &mut into);
    assert_eq!(emitted(2 + 236), Some(MAX_FAST_CNP_LEN));
    assert_eq!(emitted(2 + 8), Some(80 + 32));
    assert_eq!([6, 12, 242].map(emitted), [None; 3]);
}

#[test]
fn values_that_do_not_fit_are_not_written() {
    assert_eq!(value(None).len_octets(), 104);
    assert_eq!(value(None).emit(OptionTypes::default(), &mut [0; 103]), None);
    assert_eq!(value(None).emit(OptionTypes::default(), &mut [0; 104]), Some(104));
}

#[test]
fn only_a_whole_cnp_of_the_standard_length_is_translated() {
    let to = Translation { source: ADDRESS.into(), dest_qpn: Qpn::new(9).unwrap() };
    let mut octets = packet(60, &[header(17, &[(0x9E, &ADDRESS)])]);
    let translated = |octets: &[u8], len: usize| {
        let packet = Packet::parse(octets, octets.len()).unwrap();
        standard_cnp(&packet, &octets[..len], to).is_some()
    };
    assert!(translated(&octets, 104) && !translated(&octets, 103) && !translated(&octets, 39));
    octets[72] = Opcode::SEND_ONLY.0;
    assert!(!translated(&octets, 104));
    octets[72] = Opcode::CNP.0;
    octets.extend([0; 4]);
    (octets[5], octets[69]) = (68, 44);
    assert!(!translated(&octets, 108), "a CNP with a payload");
}
