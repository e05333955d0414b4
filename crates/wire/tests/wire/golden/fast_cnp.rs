//! Fast CNPs against packets made by scapy.

use crate::golden::captures::{frames, ipv6};
use srdma_wire::Qpn;
use srdma_wire::fast_cnp::{FastCnp, FastCnpValue, OptionTypes, Translation, standard_cnp};
use srdma_wire::rocev2::Packet;
use std::net::Ipv6Addr;

const CAPTURE: &str = "scapy_04_fastcnp.pcap";

fn types() -> OptionTypes {
    OptionTypes::new(0x9E, 0x9D).unwrap()
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn value(trace: Option<&[u8]>) -> FastCnpValue<'_> {
    FastCnpValue {
        source: address("2001:db8:53::1"),
        destination: address("2001:db8:1::1"),
        traffic_class: FastCnpValue::TRAFFIC_CLASS,
        hop_limit: FastCnpValue::HOP_LIMIT,
        source_port: 0xD001,
        dest_qpn: Qpn::new(0xABCD).unwrap(),
        original_destination: address("2001:db8:2::1"),
        trace,
    }
}

/// FC-4-1, FC-4-2, FC-4-4, D40, D43, D44: octet by octet, the trace being that of the data packet of frame 2.
#[test]
fn both_options_are_written_as_in_the_capture() {
    let capture = frames(CAPTURE);
    let data = ipv6(&capture[1]).unwrap();
    let trace = &data[40 + 4 + 2..40 + 4 + 2 + 34];
    for (frame, trace) in [(5, None), (7, Some(trace))] {
        let mut written = [0xEE; 400];
        let len = value(trace).emit(types(), &mut written).unwrap();
        let expected = ipv6(&capture[frame]).unwrap();
        assert_eq!(written[..len], *expected, "frame {}", frame + 1);
    }
}

/// FC-4-7, FC-4-8, FC-4-9: each packet of the capture names its flow, whatever its padding.
#[test]
fn the_options_of_the_capture_are_found() {
    for frame in &frames(CAPTURE)[2..] {
        let packet = ipv6(frame).unwrap();
        let packet = Packet::parse(packet, packet.len()).unwrap();
        let fast_cnp = FastCnp::find(&packet, types()).unwrap().unwrap();
        assert_eq!(fast_cnp.original_destination, address("2001:db8:2::1"));
        assert!(fast_cnp.is_from_switch(packet.ipv6.source()));
        assert!(!fast_cnp.is_from_switch(address("2001:db8:2::1")));
        let trace_len = (packet.extension_octets() == 56).then_some(34);
        assert_eq!(fast_cnp.trace.map(<[u8]>::len), trace_len);
    }
    for frame in &frames(CAPTURE)[..2] {
        let packet = ipv6(frame).unwrap();
        let packet = Packet::parse(packet, packet.len()).unwrap();
        assert_eq!(FastCnp::find(&packet, types()), Ok(None), "a data packet is no Fast CNP");
    }
}

/// FC-O-1, D43, D48: the CNP of scapy_01 equals the translation of a Fast CNP, except addresses and traffic class,
/// which the ICRC does not cover.
#[test]
fn a_translation_is_a_standard_cnp() {
    let cnp_frame = &frames("scapy_01_rocev2_base.pcap")[4];
    let expected = ipv6(cnp_frame).unwrap();
    let standard = Packet::parse(expected, expected.len()).unwrap();
    let original = value(None);
    let from = FastCnpValue {
        destination: standard.ipv6.destination(),
        source_port: standard.udp.source_port(),
        original_destination: standard.ipv6.source(),
        ..original
    };
    let mut octets = [0; 104];
    assert_eq!(from.emit(OptionTypes::default(), &mut octets), Some(104));
    let packet = Packet::parse(&octets, octets.len()).unwrap();
    let to = Translation { source: standard.ipv6.source(), dest_qpn: standard.bth.dest_qpn() };
    let mut translated = standard_cnp(&packet, &octets, to).unwrap();
    translated[..4].copy_from_slice(&expected[..4]);
    assert_eq!(translated, *expected);
}
