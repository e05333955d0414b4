//! Hop-by-Hop and Destination Options in the captures.

use crate::golden::captures::{frames, ipv6};
use srdma_wire::extension::ExtensionHeaders;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::options::{Alignment, OptionTlv, OptionsHeader, OptionsWriter, UnknownAction};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Ipv6View, Opcode, View};

fn options_header(packet: &[u8]) -> Vec<u8> {
    let (ipv6, after) = Ipv6View::split(packet).unwrap();
    let mut headers = ExtensionHeaders::new(ipv6.next_header(), after);
    let header = headers.next().unwrap().unwrap();
    assert_eq!((header.offset, headers.next()), (40, None));
    assert_eq!(headers.next_header(), NextHeader::UDP);
    header.octets.to_vec()
}

fn walk(header: &[u8]) -> Vec<(usize, u8, usize)> {
    let (header, rest) = OptionsHeader::split(header).unwrap();
    assert!(rest.is_empty());
    header.iter().map(|option| option.unwrap()).map(|option| (option.offset, option.kind, option.data.len())).collect()
}

/// The two options of a Fast CNP, padded behind and before (D40, D42); their ICRC counts the header as absent (D43).
#[test]
fn fast_cnps() {
    let expected: [&[_]; 3] = [
        &[(2, 0x9E, 16), (20, OptionTlv::PADN, 2)],
        &[(2, OptionTlv::PADN, 2), (6, 0x9E, 16)],
        &[(2, OptionTlv::PADN, 0), (4, 0x9D, 50)],
    ];
    for (frame, expected) in frames("scapy_04_fastcnp.pcap")[5..].iter().zip(expected) {
        let packet = ipv6(frame).unwrap();
        let header = options_header(packet);
        assert_eq!(walk(&header), expected);
        let rocev2 = Packet::parse(packet, packet.len()).unwrap();
        assert_eq!((rocev2.bth.opcode(), usize::from(rocev2.extension_octets())), (Opcode::CNP, header.len()));
        assert_eq!(rocev2.extension_headers().count(), 1);
        assert!(rocev2.value().is_none(), "a value has no extension headers");
        assert!(rocev2.icrc([]).unwrap().is_good());
    }
}

/// Without its Destination Options header a Fast CNP is a standard CNP under the same ICRC (D43).
#[test]
fn stripping_the_options_leaves_the_icrc_good() {
    let frame = &frames("scapy_04_fastcnp.pcap")[5];
    let packet = ipv6(frame).unwrap();
    let mut stripped = [&packet[..40], &packet[64..]].concat();
    let (view, _) = Ipv6View::split_mut(&mut stripped).unwrap();
    view.set_next_header(NextHeader::UDP);
    view.set_payload_length(40);
    let rocev2 = Packet::parse(&stripped, stripped.len()).unwrap();
    assert_eq!(rocev2.extension_octets(), 0);
    assert!(rocev2.icrc([]).unwrap().is_good());
}

/// The writer pads by D40, as in the packets of scapy.
#[test]
fn written_options_equal_those_of_the_captures() {
    for (index, alignment) in [(5, Alignment::FOUR_N_PLUS_2), (7, Alignment::FOUR_N)] {
        let header = options_header(ipv6(&frames("scapy_04_fastcnp.pcap")[index]).unwrap());
        let (parsed, _) = OptionsHeader::split(&header).unwrap();
        let option = parsed.iter().map(|option| option.unwrap()).find(|option| option.kind != OptionTlv::PADN).unwrap();
        assert_eq!(option.unknown_action(), UnknownAction::DiscardAndReport);
        let mut written = [0xEE; 128];
        let mut writer = OptionsWriter::new(&mut written);
        writer.option(option.kind, option.data, alignment).unwrap();
        assert_eq!(writer.finish(NextHeader::UDP), Some(header.len()));
        assert_eq!(written[..header.len()], header[..]);
    }
}

/// An IOAM trace that three kernel routers filled, hop by hop: the Hop-by-Hop Options header is another on each link,
/// while the ICRC, which counts it as absent, is the same and good (D43).
#[test]
fn traces_change_and_the_icrc_stays() {
    let mut headers = Vec::new();
    for link in ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"] {
        let frame = &frames(&format!("kernel_t17_ioam_{link}.pcap"))[0];
        let packet = ipv6(frame).unwrap();
        let header = options_header(packet);
        assert_eq!(walk(&header), [(2, OptionTlv::PADN, 0), (4, 0x31, 46), (52, OptionTlv::PADN, 2)]);
        let rocev2 = Packet::parse(packet, packet.len()).unwrap();
        assert_eq!(rocev2.extension_headers().next().unwrap().unwrap().kind, NextHeader::HOP_BY_HOP);
        let icrc = rocev2.icrc([]).unwrap();
        assert_eq!((icrc.carried.0, icrc.is_good()), ([0xD1, 0x09, 0x87, 0x12], true));
        headers.push(header);
    }
    headers.dedup();
    assert_eq!(headers.len(), 4, "each router writes to the trace");
}
