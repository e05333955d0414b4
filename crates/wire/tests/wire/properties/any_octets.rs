//! No octets from the network make a parser panic, loop, or hand out what is not there.

use proptest::prelude::*;
use srdma_wire::ethernet::Vlan;
use srdma_wire::extension::{ExtensionHeaders, MAX_EXTENSION_HEADERS};
use srdma_wire::fast_cnp::{FastCnp, OptionTypes, can_carry};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ioam::{self, NodeData, Trace, TraceType};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::options::OptionsHeader;
use srdma_wire::pfc::Pfc;
use srdma_wire::rocev2::{Extended, Packet};
use srdma_wire::tlv::{TlvTypes, Tlvs, receiver_lists};
use srdma_wire::{
    Aeth, AtomicEth, Bth, CnpView, Ethernet, IethView, ImmDtView, Ipv6, Opcode, Reth, Srh, Truncated, Udp, View,
};

fn octets() -> impl Strategy<Value = Vec<u8>> {
    let octet = prop_oneof![4 => any::<u8>(), 1 => Just(0), 1 => 0..8_u8, 1 => Just(124)];
    prop::collection::vec(octet, 0..300)
}

/// Octets that begin as a RoCEv2 packet does, up to `damage`, so that parsers get far.
fn likely_packet() -> impl Strategy<Value = Vec<u8>> {
    let extension = prop::sample::select(vec![17_u8, 0, 43, 44, 60]);
    let opcode = prop_oneof![0..=0x17_u8, Just(0x81), any::<u8>()];
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (octets(), extension, opcode, damage, any::<bool>()).prop_map(|(tail, extension, opcode, damage, exact)| {
        let mut packet = vec![0; 40];
        let options = if extension == 17 { 0 } else { 8 };
        let udp_len = 8 + 12 + tail.len();
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&((options + udp_len) as u16).to_be_bytes());
        packet[6] = extension;
        packet.extend([17, 0, 1, 4, 0, 0, 0, 0].iter().take(options));
        packet.extend([0xC0, 0, 0x12, 0xB7]);
        packet.extend((udp_len as u16).to_be_bytes());
        packet.extend([0, u8::from(!exact), opcode, 0, 0xFF, 0xFF, 0, 0, 0, 2, 0, 0, 0, 0]);
        packet.extend(tail);
        for (place, octet) in damage {
            let place = place.index(packet.len());
            packet[place] = octet;
        }
        packet
    })
}

/// A Hop-by-Hop Options header with an IOAM trace of any lengths and type, cut or not.
fn likely_trace() -> impl Strategy<Value = Vec<u8>> {
    let trace_type = prop_oneof![Just(0xC2_0000), Just(0x00_F000), Just(0xF2_0002), 0..1_u32 << 24];
    let is_consistent = prop::bool::weighted(0.8);
    (octets(), trace_type, any::<u16>(), is_consistent, any::<u8>()).prop_map(
        |(tail, trace_type, lengths, is_consistent, cut)| {
            let node_len = if is_consistent { TraceType(trace_type).node_len_words() as u16 } else { lengths >> 11 };
            let lengths = node_len << 11 | lengths & 0x7FF;
            let space = usize::from(cut) % (tail.len() + 1) / 4 * 4;
            let mut header = vec![17, 0, 1, 0, 0x31, 10 + space.min(240) as u8, 0, 0, 0, 123];
            header.extend(lengths.to_be_bytes());
            header.extend([(trace_type >> 16) as u8, (trace_type >> 8) as u8, trace_type as u8, 0]);
            header.extend(tail);
            header.resize(header.len().next_multiple_of(8), 0);
            header[1] = (header.len() / 8 - 1) as u8;
            header
        },
    )
}

/// The rest that a parser gives back is the end of what it got, behind what it took.
fn takes(octets: &[u8], len: usize, rest: Result<&[u8], Truncated>) -> Result<(), TestCaseError> {
    match rest {
        Ok(rest) => prop_assert_eq!(rest, &octets[len..]),
        Err(truncated) => {
            prop_assert!(octets.len() < len);
            prop_assert_eq!((truncated.needed, truncated.found), (len, octets.len()));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn headers_of_fixed_length(octets in octets()) {
        takes(&octets, 14, Ethernet::parse(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 4, Vlan::parse(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 8, Udp::parse(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 12, Bth::parse(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 16, Reth::parse(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 4, Aeth::parse(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 28, AtomicEth::parse(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 4, ImmDtView::split(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 4, IethView::split(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 16, CnpView::split(&octets).map(|(_, rest)| rest))?;
        takes(&octets, 8, Icmpv6Error::parse(&octets).map(|(_, rest)| rest))?;
        let is_version_6 = octets.first().is_some_and(|first| first >> 4 == 6);
        prop_assert_eq!(Ipv6::parse(&octets).is_ok(), octets.len() >= 40 && is_version_6);
    }

    #[test]
    fn srh(mut octets in octets(), routing_type in prop_oneof![9 => Just(4), 1 => any::<u8>()]) {
        if let Some(place) = octets.get_mut(2) {
            *place = routing_type;
        }
        if let Ok((srh, rest)) = Srh::split(&octets) {
            let len = srh.header.total_len();
            prop_assert_eq!(rest, &octets[len..]);
            prop_assert_eq!(8 + 16 * srh.segments.len() + srh.tlvs.len(), len);
            prop_assert_eq!(srh.segments.len(), usize::from(srh.header.last_entry()) + 1);
            prop_assert!(srh.segment(u8::MAX).is_none());
        }
    }

    #[test]
    fn tlvs(octets in octets()) {
        let mut walk = Tlvs::new(&octets, TlvTypes::default());
        let mut end = 0;
        while let Some(tlv) = walk.next() {
            prop_assert!(walk.offset() > end && walk.offset() <= octets.len());
            end = walk.offset();
            if tlv.is_err() {
                prop_assert!(walk.next().is_none());
            }
        }
        let whole: usize = receiver_lists(&octets, TlvTypes::default()).map_while(Result::ok).map(<[u8]>::len).sum();
        prop_assert!(whole <= octets.len());
    }

    #[test]
    fn options(octets in octets()) {
        if let Ok((header, rest)) = OptionsHeader::split(&octets) {
            prop_assert_eq!(2 + header.options.len() + rest.len(), octets.len());
            let mut end = 2;
            for option in header.iter() {
                let offset = option.map_or_else(|overrun| overrun.offset, |option| option.offset);
                prop_assert!(offset >= end);
                end = offset + 1;
            }
            prop_assert!(end <= 2 + header.options.len());
        }
    }

    #[test]
    fn extension_headers(octets in octets(), first: u8) {
        let mut headers = ExtensionHeaders::new(NextHeader(first), &octets);
        let taken = headers.by_ref().count();
        prop_assert!(taken <= MAX_EXTENSION_HEADERS + 1);
        prop_assert_eq!(headers.offset() - 40 + headers.rest().len(), octets.len());
    }

    #[test]
    fn extended_transport_headers(octets in octets(), opcode: u8) {
        if let Ok((extended, rest)) = Extended::split(Opcode(opcode), &octets) {
            let pieces = extended.octets().concat();
            prop_assert_eq!(&pieces, &octets[..pieces.len()]);
            prop_assert_eq!(rest, &octets[pieces.len()..]);
        }
    }

    #[test]
    fn traces(octets in prop_oneof![1 => octets(), 9 => likely_trace()]) {
        let words = |octets: &[u8]| {
            let trace = Trace::find(octets)?.ok()?;
            let nodes: Vec<_> = trace.nodes().collect();
            let errors = nodes.iter().filter(|node| node.is_err()).count();
            assert!(errors <= 1 && nodes.iter().rev().skip(1).all(Result::is_ok), "an error is the last");
            Some((trace.header.remaining_len_words(), nodes.len() - errors))
        };
        let node = NodeData { hop_limit: Some(1), opaque: Some((2, &[3; 5])), ..NodeData::default() };
        let before = words(&octets);
        let mut filled = octets.clone();
        let mut outcomes = Vec::new();
        ioam::fill(&mut filled, |_| Some(node), |outcome| outcomes.push(outcome));
        match (before, outcomes.first().filter(|_| Trace::find(&octets).is_some())) {
            (Some((free, nodes)), Some(Ok(ioam::Filled::Written))) => {
                let (less, more) = words(&filled).expect("a trace");
                prop_assert!(less < free && more == nodes + 1);
            }
            (Some(before), outcome) => {
                prop_assert_eq!(outcome, Some(&Ok(ioam::Filled::Overflow)));
                prop_assert_eq!(words(&filled), Some(before));
            }
            (None, Some(outcome)) => prop_assert!(outcome.is_err() || *outcome == Ok(ioam::Filled::Overflow)),
            (None, None) => {}
        }
        if outcomes.iter().all(Result::is_err) {
            prop_assert_eq!(filled, octets);
        }
    }

    #[test]
    fn mac_control(octets in octets(), is_pfc: bool) {
        let octets = if is_pfc { [&[1, 1], &octets[..]].concat() } else { octets };
        if let Ok(pfc) = Pfc::parse(&octets) {
            let enabled = |class: u8| octets[3] >> class & 1 == 1;
            let enabled_classes = pfc.quanta.map(|quanta| quanta.is_some());
            prop_assert_eq!(enabled_classes, [0, 1, 2, 3, 4, 5, 6, 7].map(enabled));
        }
    }

    #[test]
    fn rocev2_packets(octets in prop_oneof![1 => octets(), 9 => likely_packet()], more: u16) {
        for total_len in [octets.len(), octets.len() + usize::from(more)] {
            let Ok(packet) = Packet::parse(&octets, total_len) else { continue };
            prop_assert!(packet.total_len() <= total_len);
            prop_assert!(packet.extended_offset() <= packet.payload_range().start);
            prop_assert!(packet.payload_range().end <= packet.icrc_offset());
            prop_assert_eq!(packet.icrc_offset() + 4, packet.total_len());
            let is_whole = packet.total_len() <= octets.len();
            prop_assert_eq!(packet.icrc([]).is_ok(), is_whole);
            prop_assert!(packet.udp_checksum([]).is_ok() || !is_whole);
            let _ = packet.value();
            prop_assert_eq!(packet.extension_headers().filter(Result::is_err).count(), 0);
        }
    }

    /// Whatever octets are where a Fast CNP has its options: an error, or a trace and an address that lie in them.
    #[test]
    fn fast_cnps(
        length in 0..=255_u8,
        tail in prop::collection::vec(any::<u8>(), 300),
        units in 0..32_u8,
        equal: bool,
    ) {
        let header_len = 8 + 8 * usize::from(units);
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((header_len as u16 + 40).to_be_bytes());
        packet.extend([60, 64]);
        packet.extend([5; 32]);
        packet.extend([17, units, 0x9E, length]);
        packet.extend(&tail[..header_len - 4]);
        packet.extend([0xC0, 0, 0x12, 0xB7, 0, 40, 0, 0, 0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 2, 0, 0, 0, 0]);
        packet.extend([0; 20]);
        let types = OptionTypes::new(0x9E, if equal { 0x9E } else { 0x9D }).unwrap();
        let parsed = Packet::parse(&packet, packet.len()).unwrap();
        if let Ok(fast_cnp) = FastCnp::find(&parsed, types) {
            let fast_cnp = fast_cnp.unwrap();
            let trace_len = fast_cnp.trace.map_or(0, <[u8]>::len);
            prop_assert!(trace_len == 0 || can_carry(trace_len));
            let end = 44 + usize::from(length);
            prop_assert_eq!(&packet[end - 16..end], fast_cnp.original_destination.octets());
        }
    }
}
