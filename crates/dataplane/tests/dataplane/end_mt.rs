//! End.MT against scapy's packets and against a model that copies and recomputes everything.

use crate::common;

use crate::common::golden;
use crate::common::group::{
    address, copies, edge, edge_with, encapsulated, entry, inner, provisioned, receiver, request,
};
use proptest::prelude::*;
use srdma_dataplane::{Command, Cover, HmacKey, IcrcMode, MulticastRoute};
use srdma_frame::{CHUNK_ROOM, HEADER_SPAN};
use srdma_testkit::{checksums, multicast};
use std::net::Ipv6Addr;

const SECRET: &[u8] = b"secret-key-for-tests-0123456789ab";

/// scapy_03 holds the copies of scapy_02's first packet (MT-5.2-3, D5, D10, D11).
#[test]
fn copies_equal_those_of_scapy() {
    let packets = golden("scapy_02_endmt_in.pcap");
    let copies = golden("scapy_03_endmt_out.pcap");
    // One TLV, a second one for another edge, HMAC of either cover, a full-form Segment List: the same two receivers.
    for index in [0, 1, 2, 3, 6] {
        let sent = edge(false).send(0, &packets[index]);
        let expected: Vec<_> = copies.iter().map(|copy| (1, copy.clone())).collect();
        assert_eq!(sent, expected, "packet {}", index + 1);
    }
}

/// The largest TLV: eleven receivers (D7); and a multicast group as End.MT SID (MT-5.1-3, D3).
#[test]
fn eleven_receivers_and_a_multicast_sid() {
    let packets = golden("scapy_02_endmt_in.pcap");
    let sent = edge(false).send(0, &packets[5]);
    let destinations: Vec<Ipv6Addr> =
        sent.iter().map(|(_, copy)| <[u8; 16]>::try_from(&copy[24..40]).unwrap().into()).collect();
    let expected: Vec<Ipv6Addr> = (0..11).map(|host| format!("2001:db8:2::{host:x}").parse().unwrap()).collect();
    assert_eq!(destinations, expected);

    let mut bench = edge(false);
    bench.apply(Command::AddMulticastRoute(MulticastRoute {
        source: address("2001:db8:6::1"),
        group: address("ff3e::100"),
        incoming: None,
        outgoing: Vec::new(),
        end_mt: true,
        require_hmac: false,
    }));
    let copies = golden("scapy_03_endmt_out.pcap");
    let sent: Vec<_> = bench.send(0, &packets[7]).into_iter().map(|(_, copy)| copy).collect();
    assert_eq!(sent, copies);
}

/// MT-9-1, D9: scapy signed packet 3 over RFC 8754's text and packet 4 over the TLVs too. The first is enough only where
/// that was admitted.
#[test]
fn hmac_is_verified_before_any_receiver_is_used() {
    let packets = golden("scapy_02_endmt_in.pcap");
    let verdict_at = |admitted: Cover, packet: &[u8], cover: Option<Cover>, secret: &[u8]| {
        let mut bench = edge_with(true, |config| config.end_mt_cover = admitted);
        if let Some(cover) = cover {
            bench.apply(Command::AddHmacKey { key_id: 42, key: HmacKey::new(secret, cover) });
        }
        let sent = bench.send(0, packet).len();
        (sent, bench.drops(0))
    };
    let verdict = |packet: &[u8], cover, secret: &[u8]| verdict_at(Cover::Tlvs, packet, cover, secret);
    assert_eq!(verdict_at(Cover::Rfc8754, &packets[2], Some(Cover::Rfc8754), SECRET), (2, vec![]));
    assert_eq!(verdict(&packets[2], Some(Cover::Rfc8754), SECRET), (0, vec![("hmac_cover", 1)]));
    assert_eq!(verdict(&packets[3], Some(Cover::Tlvs), SECRET), (2, vec![]));
    assert_eq!(verdict(&packets[2], Some(Cover::Tlvs), SECRET), (0, vec![("hmac_mismatch", 1)]));
    assert_eq!(verdict(&packets[3], Some(Cover::Tlvs), b"other"), (0, vec![("hmac_mismatch", 1)]));
    assert_eq!(verdict(&packets[3], None, SECRET), (0, vec![("hmac_unknown_key", 1)]));
    assert_eq!(verdict(&packets[1], Some(Cover::Tlvs), SECRET), (0, vec![("hmac_missing", 1)]));
    // A receiver's address changed on the way: RFC 8754's text does not see it, cover "tlvs" does.
    let receiver = 40 + 8 + 16 + 24 + 15;
    for (index, cover, result) in [(2, Cover::Rfc8754, 2), (3, Cover::Tlvs, 0)] {
        let mut tampered = packets[index].clone();
        tampered[receiver] ^= 0x40;
        assert_eq!(verdict_at(cover, &tampered, Some(cover), SECRET).0, result);
    }
}

/// MT-6.2-1, MT-6.2-2, D6, D8: invalid End.MT packets, and their drop reasons.
#[test]
fn refusals_have_names() {
    let packets = golden("scapy_02_endmt_in.pcap");
    const SRH: usize = 40;
    const TLV: usize = SRH + 8 + 16;
    let refused = |packet: &[u8]| {
        let mut bench = edge(false);
        assert_eq!(bench.send(0, packet), vec![]);
        bench.drops(0)[0].0
    };
    let changed = |index: usize, at: usize, value: u8| {
        let mut packet = packets[index].clone();
        packet[at] = value;
        packet
    };
    assert_eq!(refused(&changed(0, SRH + 3, 0)), "end_mt_no_segment");
    assert_eq!(refused(&changed(0, 6, 41)), "end_mt_no_segment");
    assert_eq!(refused(&changed(0, SRH + 3, 3)), "bad_srh");
    assert_eq!(refused(&changed(0, SRH + 4, 99)), "bad_srh");
    assert_eq!(refused(&changed(0, SRH + 2, 3)), "unknown_routing_type");
    assert_eq!(refused(&changed(0, SRH + 1, 255)), "truncated");
    assert_eq!(refused(&changed(0, SRH, 59)), "upper_layer");
    assert_eq!(refused(&changed(0, 7, 1)), "hop_limit_exceeded");
    assert_eq!(refused(&changed(0, TLV + 1, 250)), "malformed_tlv");
    assert_eq!(refused(&changed(0, TLV + 20, 3)), "malformed_tlv");
    // The second TLV is another edge's, and condemns the packet all the same.
    assert_eq!(refused(&changed(1, TLV + 64 + 20, 9)), "malformed_tlv");
    assert_eq!(refused(&changed(0, TLV + 4 + 15, 9)), "no_receiver_list");
    assert_eq!(refused(&changed(0, TLV + 24, 0xFF)), "bad_receiver");
    let mut twice = packets[0].clone();
    twice.copy_within(TLV + 24..TLV + 40, TLV + 44);
    assert_eq!(refused(&twice), "bad_receiver");
    let mut management = packets[0].clone();
    management[TLV + 40..TLV + 43].copy_from_slice(&[0, 0, 1]);
    assert_eq!(refused(&management), "bad_receiver");
    // A bad receiver in another edge's TLV is that edge's affair (D8).
    let other = changed(1, TLV + 64 + 24, 0xFF);
    assert_eq!(edge(false).send(0, &other).len(), 2);
    // No ICMPv6 error answers a replicated packet (RFC 9524 section 2.2.3): nothing was sent in any of these cases.
}

fn any_receivers() -> impl Strategy<Value = Vec<multicast::Receiver>> {
    let psn_offset = prop_oneof![Just(0), 0u32..1 << 24];
    prop::collection::vec((2u32..1 << 24, any::<u32>(), 0u64..1 << 47, psn_offset), 1..9).prop_map(|entries| {
        let receiver = |(host, (qpn, rkey, base, psn_offset))| multicast::Receiver {
            psn_offset,
            ..receiver(host, qpn, Some((base, rkey)))
        };
        (1..).zip(entries).map(receiver).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Incremental ICRC and UDP checksum are what full recomputation gives, at any length, for each opcode that a group
    /// carries, with the RETH moved to each receiver's region and its own PSN (D10, D27, D270); so is the mode that
    /// recomputes.
    #[test]
    fn copies_are_the_models(
        receivers in any_receivers(),
        opcode in 0u8..12,
        offset in 0u64..1 << 19,
        len in prop_oneof![0usize..64, 0usize..4097],
        with_checksum in any::<bool>(),
        recompute in any::<bool>(),
    ) {
        let payload: Vec<u8> = (0..len).map(|index| (index * 31) as u8).collect();
        let inner = inner(opcode, offset, &payload, with_checksum);
        let mut bench = edge_with(false, |config| {
            config.verify_icrc = true;
            if recompute {
                config.icrc = IcrcMode::Recompute;
            }
        });
        bench.apply(Command::AddGroup(Box::new(provisioned(&receivers))));
        // A checksum of the model's covers the ICRC, and the recomputing mode makes the same one.
        let sent = bench.send(0, &encapsulated(&inner));
        prop_assert_eq!(sent, copies(&inner, &receivers));
    }

    /// A bad ICRC stays bad, and by the same difference (D10).
    #[test]
    fn damage_is_not_repaired(receivers in any_receivers(), at in 60usize..1000, bit in 0u8..8) {
        let good = inner(0x04, 0, &[9; 1000], false);
        let mut damaged = good.clone();
        damaged[at] ^= 1 << bit;
        let mut bench = edge(false);
        bench.apply(Command::AddGroup(Box::new(provisioned(&receivers))));
        for (_, copy) in bench.send(0, &encapsulated(&damaged)) {
            let end = copy.len() - 4;
            prop_assert_ne!(&checksums::icrc(&copy[..end])[..], &copy[end..]);
        }
    }
}

/// The ICRC lies in the first chunk, in the second, or over the border, at every offset; lengths follow each other in any
/// order (D10). Unpadded payloads of odd length are the sender's fault, but their ICRC and UDP checksum stay right.
#[test]
fn the_icrc_may_straddle_two_chunks() {
    let receivers = [receiver(1, 0x101, Some((1 << 40, 1))), receiver(2, 0xFF_FFFF, Some((u64::MAX - (1 << 20), 2)))];
    let mut bench = edge_with(false, |config| config.verify_icrc = true);
    bench.apply(Command::AddGroup(Box::new(provisioned(&receivers))));
    let headers = 14 + 40 + 24;
    for last_octet in (CHUNK_ROOM - 5..=CHUNK_ROOM + 9).rev().chain([1000, CHUNK_ROOM + 4, 999, CHUNK_ROOM + 1]) {
        let rest = vec![0xA5; last_octet - headers - 40 - 8 - 12 - 4];
        let packet = request(0x07, 0, &rest, last_octet % 3 == 0);
        let outer = encapsulated(&packet);
        assert_eq!(14 + outer.len(), last_octet);
        assert_eq!(bench.send(0, &outer), copies(&packet, &receivers), "{last_octet} octets");
        // Sent, received and copied once more, as a driver with other chunks might lay them: the header span is all that
        // the first segment must hold.
        let mut frame = [&common::port_mac(0).0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD]].concat();
        frame.extend(&outer);
        for cut in [HEADER_SPAN, last_octet - 5, last_octet - 4, last_octet - 3, last_octet - 1] {
            if cut < last_octet && (HEADER_SPAN..=CHUNK_ROOM).contains(&cut) {
                let frame = common::frame_in_two(&frame, cut, &mut bench.pool);
                assert_eq!(bench.receive(0, frame), copies(&packet, &receivers), "cut at {cut} of {last_octet}");
            }
        }
    }
    assert_eq!(bench.drops(0), []);
}

/// A UDP checksum that comes out as zero is sent as 0xFFFF, and one that came as 0xFFFF is a checksum (RFC 8200 section
/// 8.1, D10).
#[test]
fn a_checksum_of_zero_is_sent_as_all_ones() {
    let receivers = [receiver(1, 0x101, None)];
    let mut bench = edge(false);
    bench.apply(Command::AddGroup(Box::new(entry(&receivers, None))));
    let (mut came, mut left) = (0, 0);
    for number in 0..1_000_000u32 {
        let packet = request(0x04, 0, &number.to_be_bytes(), true);
        let expected = copies(&packet, &receivers);
        let is_ones = |packet: &[u8]| u32::from(packet[46..48] == [0xFF; 2]);
        let (comes, leaves) = (is_ones(&packet), is_ones(&expected[0].1));
        if comes + leaves > 0 {
            (came, left) = (came + comes, left + leaves);
            assert_eq!(bench.send(0, &encapsulated(&packet)), expected);
        }
        if came > 0 && left > 0 {
            return;
        }
    }
    panic!("no such checksum was found: {came} came, {left} left");
}
