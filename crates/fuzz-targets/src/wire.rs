//! The parsers of `srdma-wire`: no octets make them panic, loop, or return octets beyond the input; and parsed values
//! are emitted as the same octets, except reserved ones.

use crate::choices::Choices;
use srdma_testkit::checksums;
use srdma_wire::checksum::{Sum, Update};
use srdma_wire::cm::{CM_PACKET_LEN, CmMessage, CmPacket};
use srdma_wire::ethernet::Vlan;
use srdma_wire::extension::{ExtensionHeaders, MAX_EXTENSION_HEADERS};
use srdma_wire::fast_cnp::{
    FastCnp, FastCnpValue, MAX_FAST_CNP_LEN, OptionTypes, Translation, can_carry, standard_cnp,
};
use srdma_wire::icmpv6::{Icmpv6Error, Icmpv6View};
use srdma_wire::icrc::{Delta, Shift};
use srdma_wire::options::{Alignment, OptionTlv, OptionsHeader, OptionsWriter};
use srdma_wire::pfc::{Pfc, PfcError, PfcView};
use srdma_wire::rocev2::{Extended, Packet, PacketValue, UdpChecksum};
use srdma_wire::srh::SrhValue;
use srdma_wire::tlv::{HmacView, ReceiverView, RegionView, Tlv, TlvTypes, TlvWriter, Tlvs, receiver_lists};
use srdma_wire::{
    Aeth, AtomicEth, Bth, Ethernet, Icrc, Ipv6, NextHeader, Opcode, ProbePacket, Psn, Qpn, Reth, Srh, Syndrome, Udp,
    UdpView, View,
};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Ethernet and 802.1Q headers: every bit has a meaning, so that all come back.
pub fn ethernet(input: &[u8]) {
    let Ok((ethernet, mut rest)) = Ethernet::parse(input) else {
        assert!(input.len() < 14);
        return;
    };
    assert_eq!(ethernet.emit().as_bytes(), &input[..14]);
    assert_eq!(rest, &input[14..]);
    while let Ok((vlan, behind)) = Vlan::parse(rest) {
        assert_eq!(vlan.emit().as_bytes(), &rest[..4]);
        assert!(vlan.priority < 8 && vlan.id < 4096);
        rest = behind;
    }
    assert!(rest.len() < 4);
}

/// PFC: all that counts comes back.
pub fn pfc(input: &[u8]) {
    match Pfc::parse(input) {
        Ok(pfc) => {
            assert_eq!(Pfc::parse(pfc.emit().as_bytes()), Ok(pfc));
            let enabled = |class: usize| input[3] >> class & 1 == 1;
            assert!(pfc.quanta.iter().enumerate().all(|(class, quanta)| quanta.is_some() == enabled(class)));
        }
        Err(PfcError::Truncated(_)) => assert!(input.len() < PfcView::LEN),
        Err(PfcError::Opcode(_)) => assert_ne!(input[..2], [1, 1]),
    }
}

/// Probes: one that is read is written as a packet that is read as the same.
pub fn probe(input: &[u8]) {
    let field = |at: usize| input.get(at..).and_then(|rest| rest.first_chunk::<16>());
    let (Some(address), Some([high, low, ..])) = (field(8), field(40)) else { return };
    let (address, port) = (Ipv6Addr::from(*address), u16::from_be_bytes([*high, *low]));
    if let Some(packet) = ProbePacket::parse(input, address, port) {
        assert_eq!((packet.address, packet.port), (address, port));
        assert_eq!(ProbePacket::parse(&packet.emit(), address, port), Some(packet));
    }
}

/// The IPv6 header, its extension headers and their options.
pub fn ipv6(input: &[u8]) {
    match Ipv6::parse(input) {
        Ok((header, rest)) => {
            assert_eq!(header.emit().as_bytes(), &input[..40]);
            extension_headers(header.next_header, rest);
        }
        Err(_) => assert!(input.len() < 40 || input[0] >> 4 != 6),
    }
    options(input);
}

fn extension_headers(first: NextHeader, octets: &[u8]) {
    let mut headers = ExtensionHeaders::new(first, octets);
    let mut count = 0;
    while let Some(header) = headers.next() {
        count += 1;
        assert!(count <= MAX_EXTENSION_HEADERS + 1);
        if header.is_err() {
            assert!(headers.next().is_none(), "an error is the last");
        }
    }
    assert_eq!(headers.offset() - 40 + headers.rest().len(), octets.len());
}

/// The options that were read are written again, and read as the same.
fn options(input: &[u8]) {
    let Ok((header, rest)) = OptionsHeader::split(input) else {
        return;
    };
    assert_eq!(header.header.total_len() + rest.len(), input.len());
    let mut octets = [0; 8 + 8 * 255 + 8];
    let mut writer = OptionsWriter::new(&mut octets);
    let mut end = 2;
    let mut is_whole = true;
    for option in header.iter() {
        let Ok(option) = option else {
            is_whole = false;
            break;
        };
        assert!(option.offset >= end && option.offset < header.header.total_len());
        end = option.offset + 1 + option.data.len();
        is_whole &= option.kind <= OptionTlv::PADN || writer.option(option.kind, option.data, Alignment::ANY).is_some();
    }
    let Some(len) = writer.finish(header.header.next_header()).filter(|_| is_whole) else {
        return;
    };
    let (again, _) = OptionsHeader::split(&octets[..len]).expect("what the writer wrote");
    let given = |option: &OptionTlv<'_>| option.kind > OptionTlv::PADN;
    let before = header.iter().map_while(Result::ok).filter(given).map(|option| (option.kind, option.data));
    let after = again.iter().map_while(Result::ok).filter(given).map(|option| (option.kind, option.data));
    assert!(before.eq(after));
}

/// The SRH: a parsed one is emitted as the same octets, and its TLVs are walked to their end.
pub fn srh(input: &[u8]) {
    let Ok((srh, rest)) = Srh::split(input) else {
        return;
    };
    let len = srh.header.total_len();
    assert_eq!((rest, srh.segments.len()), (&input[len..], usize::from(srh.header.last_entry()) + 1));
    assert_eq!(8 + 16 * srh.segments.len() + srh.tlvs.len(), len);
    assert!(srh.header.segments_left <= srh.header.last_entry() + 1);
    assert!(srh.segment(srh.header.last_entry()).is_some() && srh.segment(u8::MAX).is_none());
    let segments: Vec<_> = srh.segments.iter().map(|segment| std::net::Ipv6Addr::from(*segment)).collect();
    let mut octets = [0; 8 + 8 * 255];
    assert_eq!(srh.header.value().emit(&segments, srh.tlvs, &mut octets), Some(len));
    assert_eq!(octets[..len], input[..len], "no field of an SRH is reserved");
    assert_eq!(SrhValue::len_octets(segments.len(), srh.tlvs.len()), Some(len));
    tlvs(srh.tlvs);
}

/// TLVs: the walk advances and ends; parsed values are emitted, and parsed again unchanged.
pub fn tlvs(input: &[u8]) {
    let types = TlvTypes::default();
    let mut walk = Tlvs::new(input, types);
    let mut octets = [0; 4096];
    let mut end = 0;
    while let Some(tlv) = walk.next() {
        let start = std::mem::replace(&mut end, walk.offset());
        assert!(start < end && end <= input.len());
        let Ok(tlv) = tlv else {
            assert!(walk.next().is_none(), "an error is the last");
            break;
        };
        let mut writer = TlvWriter::new(&mut octets, types);
        let written = match tlv {
            Tlv::EndMt(list, receivers) => writer.end_mt(list.edge(), receivers),
            Tlv::Mr(list, regions) => writer.mr(list.edge(), regions),
            Tlv::Hmac(view, hmac) => hmac.first_chunk().and_then(|hmac| writer.hmac(view, hmac)),
            Tlv::Pad1 | Tlv::PadN(_) | Tlv::Other(..) => continue,
        };
        let len = writer.len();
        if written.is_some() {
            assert_eq!(len % 8, 0);
            let again = Tlvs::new(&octets[..len], types).next();
            assert!(is_same(&tlv, &again), "{tlv:?} was read, {again:?} was written");
        } else {
            assert!(matches!(tlv, Tlv::Hmac(_, hmac) if hmac.len() < 32), "{tlv:?} cannot be written");
        }
    }
    let lists: usize = receiver_lists(input, types).map_while(Result::ok).map(<[u8]>::len).sum();
    assert!(lists <= input.len());
}

fn is_same(before: &Tlv<'_>, after: &Option<Result<Tlv<'_>, srdma_wire::tlv::TlvError>>) -> bool {
    match (before, after) {
        (Tlv::EndMt(list, receivers), Some(Ok(Tlv::EndMt(other, others)))) => {
            let of = |view: &ReceiverView| (view.address(), view.qpn());
            list.edge() == other.edge() && receivers.iter().map(of).eq(others.iter().map(of))
        }
        (Tlv::Mr(list, regions), Some(Ok(Tlv::Mr(other, others)))) => {
            let of = |view: &RegionView| (view.virtual_address(), view.rkey());
            list.edge() == other.edge() && regions.iter().map(of).eq(others.iter().map(of))
        }
        (Tlv::Hmac(view, hmac), Some(Ok(Tlv::Hmac(other, others)))) => {
            view.key_id() == other.key_id() && hmac == others && HmacView::LEN + hmac.len() == 40
        }
        _ => false,
    }
}

/// A RoCEv2 packet: its parts are inside, its ICRC and UDP checksum are those of the slow reference, and its value is
/// written as an equivalent packet.
pub fn rocev2(input: &[u8]) {
    transport_headers(input);
    let Ok(packet) = Packet::parse(input, input.len()) else {
        return;
    };
    assert!(packet.total_len() <= input.len());
    assert!(packet.extended_offset() <= packet.payload_range().start);
    assert!(packet.payload_range().end <= packet.icrc_offset());
    assert_eq!(packet.icrc_offset() + Icrc::LEN, packet.total_len());
    let check = packet.icrc([]).expect("the packet is whole");
    let checksum = packet.udp_checksum([]).expect("the packet is whole");
    if packet.extension_octets() == 0 {
        let whole = &input[..packet.total_len()];
        assert_eq!(check.computed.0, checksums::icrc(&whole[..packet.icrc_offset()]), "the reference's ICRC");
        let expected = match packet.udp.checksum() {
            0 => UdpChecksum::Absent,
            carried if carried == checksums::udp(whole) => UdpChecksum::Good,
            _ => UdpChecksum::Bad,
        };
        assert_eq!(checksum, expected, "the reference's UDP checksum");
    }
    if let Some(value) = packet.value() {
        written_again(&packet, &value);
    }
}

fn written_again(packet: &Packet<'_>, value: &PacketValue<'_>) {
    let mut octets = vec![0; value.len_octets()];
    assert_eq!(value.emit(&mut octets), Some(octets.len()));
    let again = Packet::parse(&octets, octets.len()).expect("what was written");
    assert!(again.icrc([]).expect("whole").is_good());
    assert_eq!((again.bth.value().psn, again.bth.opcode()), (packet.bth.value().psn, packet.bth.opcode()));
    assert_eq!(again.payload(), packet.payload());
    assert_eq!(again.extended.octets(), packet.extended.octets());
    assert_eq!(again.bth.value().dest_qpn, packet.bth.value().dest_qpn);
}

/// Transport headers: parsed values are emitted, and parsed again unchanged.
fn transport_headers(input: &[u8]) {
    if let Ok((bth, rest)) = Bth::parse(input) {
        assert_eq!(Bth::parse(bth.emit().as_bytes()), Ok((bth, &[][..])));
        if let Ok((extended, behind)) = Extended::split(bth.opcode, rest) {
            assert_eq!(extended.len_octets() + behind.len(), rest.len());
            assert_eq!(Some(extended.len_octets()), bth.opcode.extension_len());
        }
    }
    if let Ok((reth, _)) = Reth::parse(input) {
        assert_eq!(reth.emit().as_bytes(), &input[..16]);
    }
    if let Ok((atomic, _)) = AtomicEth::parse(input) {
        assert_eq!(atomic.emit().as_bytes(), &input[..28]);
    }
    if let Ok((aeth, _)) = Aeth::parse(input) {
        assert_eq!(Aeth::parse(aeth.emit().as_bytes()), Ok((aeth, &[][..])));
        assert_eq!(Syndrome::from_octet(aeth.syndrome.to_octet()), aeth.syndrome);
    }
}

/// ICMPv6 errors: emitted ones are parsed unchanged, and their checksum is correct.
pub fn icmpv6(input: &[u8]) {
    if let Ok((view, _)) = Icmpv6View::split(input) {
        let (error, invoking) = Icmpv6Error::parse(input).expect("long enough");
        assert_eq!(error, view.error());
        if let Some(error) = error {
            let mut message = [0; 1240];
            let (from, to) = (std::net::Ipv6Addr::LOCALHOST, std::net::Ipv6Addr::UNSPECIFIED);
            let len = error.emit(from, to, invoking, &mut message).expect("room for the longest message");
            let (again, quoted) = Icmpv6Error::parse(&message[..len]).expect("what was written");
            assert_eq!((again, quoted), (Some(error), &invoking[..quoted.len()]));
            let mut sum = Sum::pseudo_header(&from.octets(), &to.octets(), len as u32, NextHeader::ICMPV6);
            sum.add(&message[..len]);
            assert_eq!(sum.checksum(), 0, "with its checksum the message adds up to nothing");
        }
    }
}

/// UDP: the header comes back; the sum over pieces is that of the whole, and of the reference; an update after a change
/// is a sum from the beginning.
pub fn udp(input: &[u8]) {
    let Ok((udp, _)) = Udp::parse(input) else {
        assert!(input.len() < UdpView::LEN);
        return;
    };
    assert_eq!(udp.emit().as_bytes(), &input[..8]);
    let mut choices = Choices::new(input);
    let cut = usize::from(choices.u16()) % (input.len() + 1);
    let mut packet = vec![0; 40];
    choices.octets(32).iter().zip(&mut packet[8..40]).for_each(|(octet, place)| *place = *octet);
    packet.extend(input);
    let full = |packet: &[u8], pieces: &[&[u8]]| {
        let (source, destination) = (packet[8..24].first_chunk(), packet[24..40].first_chunk());
        let (source, destination) = (source.expect("an IPv6 header"), destination.expect("an IPv6 header"));
        let mut sum = Sum::pseudo_header(source, destination, (packet.len() - 40) as u32, NextHeader::UDP);
        pieces.iter().for_each(|piece| sum.add(piece));
        sum.udp_checksum()
    };
    packet[46..48].fill(0);
    let checksum = full(&packet, &[&packet[40..]]);
    assert_eq!(checksum, checksums::udp(&packet));
    if cut.is_multiple_of(2) {
        assert_eq!(checksum, full(&packet, &[&packet[40..40 + cut], &packet[40 + cut..]]));
    }
    let old: [u8; 16] = *packet[8..].first_chunk().expect("an address");
    let new = choices.address().octets();
    let mut update = Update::default();
    update.replace(&old, &new);
    packet[8..24].copy_from_slice(&new);
    assert_eq!(update.apply_udp(checksum), full(&packet, &[&packet[40..]]), "after a change of the source");
}

/// Fast CNPs: for any Destination Options header, an option that is found lies within it, is emitted and found again;
/// and a translation to a standard CNP has an ICRC as valid or invalid as before.
pub fn fast_cnp(input: &[u8]) {
    let mut choices = Choices::new(input);
    let types = OptionTypes::new(0x9E, choices.of(&[0x9E, 0x9D])).expect("discard and report");
    let first = choices.of(&[NextHeader::DESTINATION_OPTIONS, NextHeader::HOP_BY_HOP, NextHeader::ROUTING]);
    let headers = input.get(2..).unwrap_or(&[]);
    let headers = &headers[..headers.len().min(600) & !7];
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((headers.len() as u16 + 40).to_be_bytes());
    packet.extend([if headers.is_empty() { 17 } else { first.0 }, 64]);
    packet.extend([7; 32]);
    packet.extend(headers);
    packet.extend([0xC0, 0, 0x12, 0xB7, 0, 40, 0, 0, 0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 2, 0, 0, 0, 0]);
    packet.extend([0; 20]);
    let Ok(whole) = Packet::parse(&packet, packet.len()) else { return };
    let icrc_is_good = whole.icrc([]).expect("whole").is_good();
    let to = Translation { source: choices.address(), dest_qpn: Qpn::from_octets([1, 2, 3]) };
    let standard = standard_cnp(&whole, &packet, to).expect("a CNP without a payload");
    let standard = Packet::parse(&standard, standard.len()).expect("a CNP");
    assert_eq!(standard.icrc([]).expect("whole").is_good(), icrc_is_good);
    assert_eq!((standard.ipv6.source(), standard.bth.dest_qpn()), (to.source, to.dest_qpn));

    let Ok(Some(found)) = FastCnp::find(&whole, types) else { return };
    assert!(found.trace.is_none_or(|trace| can_carry(trace.len())));
    let value = FastCnpValue {
        source: to.source,
        destination: whole.ipv6.source(),
        traffic_class: FastCnpValue::TRAFFIC_CLASS,
        hop_limit: FastCnpValue::HOP_LIMIT,
        source_port: whole.udp.source_port(),
        dest_qpn: whole.bth.dest_qpn(),
        original_destination: found.original_destination,
        trace: found.trace,
    };
    let mut written = [0; MAX_FAST_CNP_LEN];
    let len = value.emit(types, &mut written).expect("what was found can be written");
    let again = Packet::parse(&written[..len], len).expect("what was written is a packet");
    assert!(again.icrc([]).expect("whole").is_good());
    assert_eq!(FastCnp::find(&again, types), Ok(Some(found)));
}

/// RDMA CM messages: as octets, and as a MAD under a good ICRC, so that what is behind it is reached.
pub fn cm(input: &[u8]) {
    assert!(CmPacket::parse(input).is_none() || CmPacket::may_be(input));
    let length = CM_PACKET_LEN - 40;
    let mut packet = vec![0x60, 0, 0, 0, (length >> 8) as u8, length as u8, 17, 64];
    packet.extend([7; 32]);
    packet.extend([0xC0, 0, 0x12, 0xB7, (length >> 8) as u8, length as u8, 0, 0]);
    packet.extend([0x64, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 1]);
    packet.extend([0x80, 1, 0, 0, 0, 0, 0, 1]);
    packet.extend(input);
    packet.resize(CM_PACKET_LEN - 4, 0);
    let icrc = checksums::icrc(&packet);
    packet.extend(icrc);
    let Some(found) = CmPacket::parse(&packet) else { return };
    assert_eq!((found.source, found.destination), ([7; 16].into(), [7; 16].into()));
    let (CmMessage::ConnectRequest { local_qpn: qpn, .. }
    | CmMessage::ConnectReply { local_qpn: qpn, .. }
    | CmMessage::DisconnectRequest { remote_qpn: qpn }) = found.message;
    assert!(qpn.is_connected());
}

/// The ICRC after changes anywhere: by difference, in full, and bit by bit.
pub fn icrc(input: &[u8]) {
    let mut choices = Choices::new(input);
    let payload = choices.octet();
    let udp_len = (8 + 12 + usize::from(payload) + 4) as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(udp_len.to_be_bytes());
    packet.extend([17, 64]);
    packet.extend(choices.address().octets());
    packet.extend(choices.address().octets());
    packet.extend([0xC0, 0, 0x12, 0xB7]);
    packet.extend(udp_len.to_be_bytes());
    packet.extend([0, 0, 4, 0, 0xFF, 0xFF, 0]);
    packet.extend(Qpn::from_octets([0, choices.octet(), choices.octet()]).to_octets());
    packet.push(0);
    packet.extend(Psn::new(choices.u32()).to_octets());
    let filling = choices.octets(usize::from(payload));
    packet.extend(filling);
    packet.resize(60 + usize::from(payload), 0);
    let end = packet.len();
    let mut icrc = Icrc(checksums::icrc(&packet));
    while !choices.is_empty() {
        // Octets that a router must not change: addresses, and all after the BTH's fifth octet but the end.
        let at = match choices.octet() {
            at @ 0..=27 => 8 + usize::from(at),
            at => (53 + usize::from(at) - 28).min(end - 4),
        };
        let new = choices.u32().to_be_bytes();
        let old: [u8; 4] = *packet[at..].first_chunk().expect("four octets are left");
        packet[at..at + 4].copy_from_slice(&new);
        icrc = icrc.changed_by(Delta::between(&old, &new).then(Shift::octets((end - at - 4) as u16)));
    }
    packet.extend(icrc.0);
    let whole = Packet::parse(&packet, packet.len());
    assert_eq!(icrc.0, checksums::icrc(&packet[..end]), "by difference, and bit by bit");
    if let Ok(whole) = whole
        && whole.bth.opcode() == Opcode::SEND_ONLY
    {
        assert!(whole.icrc([]).expect("whole").is_good());
    }
}
