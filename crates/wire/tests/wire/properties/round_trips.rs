//! A value that is emitted and parsed again is the same value.

use proptest::prelude::*;
use srdma_wire::ethernet::{EtherType, Ethernet, MacAddress, Vlan};
use srdma_wire::fast_cnp::{FastCnp, FastCnpValue, OptionTypes, Translation, standard_cnp};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ioam::{self, NodeData, Trace, TraceHeader, TraceType};
use srdma_wire::ipv6::{Ipv6, NextHeader};
use srdma_wire::options::{Alignment, OptionTlv, OptionsHeader, OptionsWriter};
use srdma_wire::pfc::Pfc;
use srdma_wire::rocev2::{Extended, Packet, PacketValue};
use srdma_wire::srh::{Srh, SrhValue};
use srdma_wire::tlv::{HmacView, ReceiverView, RegionView, Tlv, TlvTypes, TlvWriter, Tlvs};
use srdma_wire::{Aeth, AtomicEth, Bth, Opcode, Psn, Qpn, Reth, Syndrome, Udp};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

fn address() -> impl Strategy<Value = Ipv6Addr> {
    any::<u128>().prop_map(Ipv6Addr::from)
}

fn qpn() -> impl Strategy<Value = Qpn> {
    (0..1_u32 << 24).prop_map(|number| Qpn::new(number).unwrap())
}

prop_compose! {
    fn ipv6()(
        traffic_class: u8,
        flow_label in 0..1_u32 << 20,
        payload_length: u16,
        next_header: u8,
        hop_limit: u8,
        source in address(),
        destination in address(),
    ) -> Ipv6 {
        let next_header = NextHeader(next_header);
        Ipv6 { traffic_class, flow_label, payload_length, next_header, hop_limit, source, destination }
    }
}

prop_compose! {
    fn bth(opcode: impl Strategy<Value = u8>)(
        opcode in opcode,
        flags: [bool; 5],
        pad_count in 0..4_u8,
        pkey: u16,
        dest_qpn in qpn(),
        psn: u32,
    ) -> Bth {
        let [solicited_event, migration_request, fecn, becn, ack_request] = flags;
        let (opcode, psn) = (Opcode(opcode), Psn::new(psn));
        Bth { opcode, solicited_event, migration_request, pad_count, pkey, fecn, becn, dest_qpn, ack_request, psn }
    }
}

fn known_opcode() -> impl Strategy<Value = u8> {
    let known: Vec<u8> = (0..=u8::MAX).filter(|opcode| Opcode(*opcode).extension_len().is_some()).collect();
    prop::sample::select(known)
}

proptest! {
    #[test]
    fn link_layer(
        destination: [u8; 6],
        source: [u8; 6],
        ethertype: u16,
        priority in 0..8_u8,
        drop_eligible: bool,
        id in 0..4096_u16,
    ) {
        let ethertype = EtherType(ethertype);
        let ethernet = Ethernet { destination: MacAddress(destination), source: MacAddress(source), ethertype };
        assert_eq!(Ethernet::parse(ethernet.emit().as_bytes()), Ok((ethernet, &[][..])));
        let vlan = Vlan { priority, drop_eligible, id, ethertype };
        assert_eq!(Vlan::parse(vlan.emit().as_bytes()), Ok((vlan, &[][..])));
    }

    #[test]
    fn network_layer(ipv6 in ipv6(), source_port: u16, destination_port: u16, length: u16, checksum: u16) {
        assert_eq!(Ipv6::parse(ipv6.emit().as_bytes()), Ok((ipv6, &[][..])));
        let udp = Udp { source_port, destination_port, length, checksum };
        assert_eq!(Udp::parse(udp.emit().as_bytes()), Ok((udp, &[][..])));
    }

    #[test]
    fn transport_headers(
        bth in bth(any::<u8>()),
        virtual_address: u64,
        rkey: u32,
        dma_length: u32,
        swap_or_add: u64,
        compare: u64,
        syndrome in 0..0x80_u8,
        msn in 0..1_u32 << 24,
    ) {
        assert_eq!(Bth::parse(bth.emit().as_bytes()), Ok((bth, &[][..])));
        let reth = Reth { virtual_address, rkey, dma_length };
        assert_eq!(Reth::parse(reth.emit().as_bytes()), Ok((reth, &[][..])));
        let atomic = AtomicEth { virtual_address, rkey, swap_or_add, compare };
        assert_eq!(AtomicEth::parse(atomic.emit().as_bytes()), Ok((atomic, &[][..])));
        let aeth = Aeth { syndrome: Syndrome::from_octet(syndrome), msn };
        assert_eq!(Aeth::parse(aeth.emit().as_bytes()), Ok((aeth, &[][..])));
    }

    #[test]
    fn icmpv6(kind in 1..5_u8, code in 0..5_u8, parameter: u32, from in address(), to in address(), packet: Vec<u8>) {
        if let Some(error) = Icmpv6Error::from_fields(kind, code, parameter) {
            let mut message = vec![0; 8 + packet.len()];
            prop_assert_eq!(error.emit(from, to, &packet, &mut message), Some(message.len()));
            prop_assert_eq!(Icmpv6Error::parse(&message), Ok((Some(error), &packet[..])));
        }
    }

    #[test]
    fn mac_control(quanta: [Option<u16>; 8]) {
        let pfc = Pfc { quanta };
        prop_assert_eq!(Pfc::parse(pfc.emit().as_bytes()), Ok(pfc));
        prop_assert_eq!(Pfc::parse(&pfc.frame(MacAddress([2, 0, 0, 0, 0, 1]))[14..]), Ok(pfc));
    }

    #[test]
    fn traces(
        fields in 0..1_u32 << 12,
        hop_limit: u8,
        node_id in 0..0xFF_FFFF_u32,
        interfaces in (0..0xFFFF_u16, 0..0xFFFF_u16),
        words: [u16; 8],
        wide in 0..u64::MAX >> 8,
    ) {
        let trace_type = TraceType(fields << 12);
        let has = |field: TraceType| trace_type.has(field);
        let word = |field, index: usize| has(field).then_some(u32::from(words[index]));
        let node = NodeData {
            hop_limit: (has(TraceType::NODE) || has(TraceType::NODE_WIDE)).then_some(hop_limit),
            node_id: has(TraceType::NODE).then_some(node_id),
            ingress: has(TraceType::INTERFACES).then_some(interfaces.0),
            egress: has(TraceType::INTERFACES).then_some(interfaces.1),
            timestamp_seconds: word(TraceType::TIMESTAMP_SECONDS, 0),
            timestamp_fraction: word(TraceType::TIMESTAMP_FRACTION, 1),
            transit_delay: word(TraceType::TRANSIT_DELAY, 2),
            namespace_data: word(TraceType::NAMESPACE_DATA, 3),
            queue_depth: word(TraceType::QUEUE_DEPTH, 4),
            checksum_complement: word(TraceType::CHECKSUM_COMPLEMENT, 5),
            node_id_wide: has(TraceType::NODE_WIDE).then_some(wide),
            ingress_wide: word(TraceType::INTERFACES_WIDE, 6),
            egress_wide: word(TraceType::INTERFACES_WIDE, 7),
            namespace_data_wide: has(TraceType::NAMESPACE_DATA_WIDE).then_some(wide),
            buffer_occupancy: word(TraceType::BUFFER_OCCUPANCY, 0),
            opaque: None,
        };
        let mut octets = [0; 300];
        let header = TraceHeader::for_nodes(7, trace_type, 2).unwrap();
        let len = header.emit_hop_by_hop(NextHeader::UDP, &mut octets).unwrap();
        ioam::fill(&mut octets[..len], |namespace| (namespace == 7).then_some(node), |_| {});
        let trace = Trace::find(&octets[..len]).unwrap().unwrap();
        let expected: &[_] = if fields == 0 { &[] } else { &[Ok(node)] };
        prop_assert_eq!(trace.nodes().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn options(
        options in prop::collection::vec((2..=u8::MAX, prop::collection::vec(any::<u8>(), 0..40), 0..3_usize), 0..6),
        next_header: u8,
    ) {
        let mut octets = vec![0xEE; 512];
        let mut writer = OptionsWriter::new(&mut octets);
        let alignments = [(Alignment::ANY, 1, 0), (Alignment::FOUR_N, 4, 0), (Alignment::FOUR_N_PLUS_2, 4, 2)];
        for (kind, data, alignment) in &options {
            writer.option(*kind, data, alignments[*alignment].0).unwrap();
        }
        let len = writer.finish(NextHeader(next_header)).unwrap();
        let (header, rest) = OptionsHeader::split(&octets[..len]).unwrap();
        prop_assert_eq!((header.header.next_header(), rest), (NextHeader(next_header), &[][..]));
        let walked: Result<Vec<_>, _> = header.iter().collect();
        let walked = walked.unwrap().into_iter();
        let found: Vec<OptionTlv<'_>> = walked.filter(|option| option.kind > OptionTlv::PADN).collect();
        prop_assert_eq!(found.len(), options.len());
        for (found, (kind, data, alignment)) in found.iter().zip(&options) {
            let (_, multiple, offset) = alignments[*alignment];
            prop_assert_eq!((found.kind, found.data, found.offset % multiple), (*kind, &data[..], offset));
        }
    }

    #[test]
    fn srh_with_tlvs(
        segments in prop::collection::vec(address(), 1..20),
        segments_left: prop::sample::Index,
        flags: u8,
        tag: u16,
        edge in address(),
        receivers in prop::collection::vec((address(), qpn(), any::<u64>(), any::<u32>()), 0..=11),
        hmac: [u8; 32],
        key_id: u32,
    ) {
        let list = receivers.iter().map(|(address, qpn, ..)| ReceiverView::new(*address, *qpn));
        let lists: Vec<ReceiverView> = list.collect();
        let list = receivers.iter().map(|(_, _, base, rkey)| RegionView::new(*base, *rkey));
        let regions: Vec<RegionView> = list.collect();
        let mut tlvs = [0; 1024];
        let mut writer = TlvWriter::new(&mut tlvs, TlvTypes::default());
        writer.end_mt(edge, &lists).unwrap();
        writer.mr(edge, &regions).unwrap();
        writer.hmac(&HmacView::new(true, key_id), &hmac).unwrap();
        let len = writer.len();
        let tlvs = &tlvs[..len];

        let segments_left = segments_left.index(segments.len() + 1) as u8;
        let value = SrhValue { next_header: NextHeader::IPV6, segments_left, flags, tag };
        let mut octets = [0; 2048];
        let len = value.emit(&segments, tlvs, &mut octets).unwrap();
        prop_assert_eq!(Some(len), SrhValue::len_octets(segments.len(), tlvs.len()));
        let (srh, rest) = Srh::split(&octets[..len]).unwrap();
        prop_assert_eq!((srh.header.value(), srh.tlvs, rest), (value, tlvs, &[][..]));
        prop_assert_eq!(srh.segments, segments.iter().map(Ipv6Addr::octets).collect::<Vec<_>>());

        for tlv in Tlvs::new(tlvs, TlvTypes::default()) {
            match tlv.unwrap() {
                Tlv::EndMt(list, found) => {
                    prop_assert_eq!((list.edge(), list.count()), (edge, lists.len() as u8));
                    prop_assert_eq!(found.as_bytes(), lists.as_bytes());
                    assert!(found.iter().zip(&receivers).all(|(view, (address, qpn, ..))| {
                        (view.address(), view.qpn()) == (*address, *qpn)
                    }));
                }
                Tlv::Mr(list, found) => {
                    prop_assert_eq!((list.edge(), found.as_bytes()), (edge, regions.as_bytes()));
                    assert!(found.iter().zip(&receivers).all(|(view, (.., base, rkey))| {
                        (view.virtual_address(), view.rkey()) == (*base, *rkey)
                    }));
                }
                Tlv::Hmac(view, found) => prop_assert_eq!((view.key_id(), found), (key_id, &hmac[..])),
                Tlv::PadN(len) => prop_assert_eq!(len, 4),
                Tlv::Pad1 | Tlv::Other(..) => prop_assert!(false, "never written"),
            }
        }
    }

    #[test]
    fn rocev2_packets(
        ipv6 in ipv6(),
        source_port: u16,
        bth in bth(known_opcode()),
        extended: [u8; 28],
        payload in prop::collection::vec(any::<u8>(), 0..4200),
    ) {
        let (extended, _) = Extended::split(bth.opcode, &extended).unwrap();
        let value = PacketValue { ipv6, source_port, bth, extended, payload: &payload };
        let mut octets = vec![0xEE; 5000];
        let len = value.emit(&mut octets).unwrap();
        prop_assert_eq!(len, value.len_octets());
        prop_assert!(value.emit(&mut vec![0; len - 1]).is_none());

        let packet = Packet::parse(&octets, octets.len()).unwrap();
        prop_assert!(packet.icrc([]).unwrap().is_good());
        prop_assert_eq!(packet.payload(), Some(&payload[..]));
        prop_assert_eq!((packet.total_len(), len % 4), (len, 0));
        let found = packet.value().unwrap();
        let pad_count = (payload.len().wrapping_neg() % 4) as u8;
        prop_assert_eq!(found.bth, Bth { pad_count, ..bth });
        let payload_length = (len - 40) as u16;
        prop_assert_eq!(found.ipv6, Ipv6 { payload_length, next_header: NextHeader::UDP, ..ipv6 });
        prop_assert_eq!(found.source_port, source_port);
        prop_assert_eq!(found.extended.octets(), extended.octets());
    }

    /// Headers that belong to another opcode are not sent. FC-4-1, FC-4-2, D43: a host reads the Fast CNP that a switch
    /// writes, with a valid ICRC; without its options, and readdressed, it is a standard CNP with a valid ICRC (D48).
    #[test]
    fn fast_cnps(
        [source, destination, original_destination] in [address(), address(), address()],
        [dest_qpn, source_qpn] in [qpn(), qpn()],
        source_port: u16,
        units in prop::option::of(0..=57_usize),
        types in prop::sample::select(vec![(0x9E, 0x9E), (0x9E, 0x9D), (0x80, 0x9F)]),
    ) {
        let types = OptionTypes::new(types.0, types.1).unwrap();
        let trace: Option<Vec<u8>> = units.map(|units| [&[0, 0, 0, 1, 8, 0, 2, 0, 0, 0][..], &vec![7; 4 * units]].concat());
        let (traffic_class, hop_limit) = (FastCnpValue::TRAFFIC_CLASS, FastCnpValue::HOP_LIMIT);
        let trace = trace.as_deref();
        let value = FastCnpValue {
            source, destination, traffic_class, hop_limit, source_port, dest_qpn, original_destination, trace,
        };
        let mut octets = [0xEE; 400];
        let len = value.emit(types, &mut octets).unwrap();
        prop_assert_eq!(len, value.len_octets());
        let octets = &octets[..len];
        let packet = Packet::parse(octets, len).unwrap();
        prop_assert!(packet.icrc([]).unwrap().is_good());
        prop_assert_eq!((packet.ipv6.source(), packet.ipv6.destination()), (source, destination));
        prop_assert_eq!((packet.bth.dest_qpn(), packet.udp.source_port()), (dest_qpn, source_port));
        prop_assert_eq!(FastCnp::find(&packet, types), Ok(Some(FastCnp { original_destination, trace })));

        let to = Translation { source: original_destination, dest_qpn: source_qpn };
        let standard = standard_cnp(&packet, octets, to).unwrap();
        let standard = Packet::parse(&standard, standard.len()).unwrap();
        prop_assert!(standard.icrc([]).unwrap().is_good() && standard.extension_octets() == 0);
        prop_assert_eq!((standard.ipv6.source(), standard.ipv6.destination()), (original_destination, destination));
        prop_assert_eq!(standard.bth.dest_qpn(), source_qpn);

        let mut damaged = octets.to_vec();
        damaged[len - 5] ^= 1;
        let standard = standard_cnp(&Packet::parse(&damaged, len).unwrap(), &damaged, to).unwrap();
        prop_assert!(!Packet::parse(&standard, standard.len()).unwrap().icrc([]).unwrap().is_good(), "damage stays");
    }

    #[test]
    fn packets_with_headers_of_another_opcode_are_refused(
        ipv6 in ipv6(),
        bth in bth(known_opcode()),
        other in known_opcode(),
    ) {
        let (extended, _) = Extended::split(Opcode(other), &[0; 28]).unwrap();
        let value = PacketValue { ipv6, source_port: 0, bth, extended, payload: &[] };
        let fits = Opcode(other).extension_len() == bth.opcode.extension_len();
        prop_assert_eq!(value.emit(&mut [0; 128]).is_some(), fits);
    }
}
