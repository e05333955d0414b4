//! Receiver lists at an edge: which are accepted, which parts of them, and for how long (D6, D8, D9, D27).

use crate::common::group::*;
use crate::common::{Bench, next_hop};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use srdma_dataplane::{Command, Cover, HmacKey, MulticastRoute, RouteAction, SidBehavior, TableId};
use srdma_group::{GroupEntry, GroupId};
use srdma_testkit::multicast::Receiver;
use srdma_wire::Prefix;

const OTHER_EDGE: &str = "2001:db8:b::1";

fn send() -> Vec<u8> {
    inner(0x04, 0, &[7; 64], false)
}

fn edge_of(entry: GroupEntry) -> Bench {
    let mut bench = edge(false);
    bench.apply(Command::AddGroup(Box::new(entry)));
    bench
}

/// MT-6.2-3, MT-8-2, D6: this edge's TLV comes before the record, the record before nothing.
#[test]
fn the_packets_list_takes_precedence_over_the_records() {
    let recorded = [receiver(1, 0x101, None), receiver(2, 0x102, None)];
    let listed = [recorded[1]];
    let (own, others) = (end_mt_tlv(EDGE, &listed), end_mt_tlv(OTHER_EDGE, &[receiver(9, 0x909, None)]));
    let by_record = copies(&send(), &recorded);
    let by_tlv = copies(&send(), &listed);
    let mut bench = edge_of(entry(&recorded, None));
    assert_eq!(bench.send(0, &encapsulated(&send())), by_record);
    assert_eq!(bench.send(0, &with_tlvs(&send(), &[&others])), by_record);
    assert_eq!(bench.send(0, &with_tlvs(&send(), &[&others, &own])), by_tlv);

    let mut without_record = edge(false);
    assert_eq!(without_record.send(0, &with_tlvs(&send(), &[&own])), by_tlv);
    assert_eq!(without_record.send(0, &with_tlvs(&send(), &[&others])), []);
    assert_eq!(without_record.send(0, &encapsulated(&send())), []);
    // An empty list is not accepted.
    assert_eq!(without_record.send(0, &with_tlvs(&send(), &[&end_mt_tlv(EDGE, &[])])), []);
    assert_eq!(without_record.drops(0), [("no_receiver_list", 3)]);
}

/// MT-7.2-3, D6: several TLVs, by any address or SID of the edge, are one list; no receiver may be in it twice (D8).
#[test]
fn lists_for_one_edge_concatenate() {
    let edge_with_address = || {
        let mut bench = edge_with(false, |config| config.ports[1].addresses.push(address("2001:db8:2::ffff")));
        bench.apply(Command::AddSid {
            prefix: Prefix::host(address("fd00:a::e")),
            behavior: SidBehavior::End(srdma_dataplane::Flavors::default()),
        });
        bench
    };
    let receivers: Vec<Receiver> = (1..=14).map(|host| receiver(host, 0x100 + u32::from(host), None)).collect();
    let tlvs = [
        end_mt_tlv(EDGE, &receivers[..11]),
        end_mt_tlv(OTHER_EDGE, &receivers[..2]),
        end_mt_tlv("2001:db8:2::ffff", &receivers[11..12]),
        end_mt_tlv(SID, &receivers[12..13]),
        end_mt_tlv("fd00:a::e", &receivers[13..]),
    ];
    assert_eq!(
        edge_with_address().send(0, &with_tlvs(&send(), &tlvs.each_ref().map(|tlv| &tlv[..]))),
        copies(&send(), &receivers)
    );

    let twice = [end_mt_tlv(EDGE, &receivers[..2]), end_mt_tlv(SID, &receivers[1..3])];
    let mut bench = edge(false);
    assert_eq!(bench.send(0, &with_tlvs(&send(), &[&twice.concat()])), []);
    assert_eq!(bench.drops(0), [("bad_receiver", 1)]);
}

/// D27: regions come from the MR TLV behind an End.MT TLV, else from the record; a WRITE whose receivers' regions are not
/// all known goes nowhere.
#[test]
fn regions_travel_behind_their_receivers() {
    let write = inner(0x0A, 4096, &[5; 256], false);
    let bare = [receiver(1, 0x101, None), receiver(2, 0x102, None)];
    let regions = [(0x1000_0000, 0xA1), (0xFFFF_FFFF_0000_0000, 0xA2)];
    let with_regions = [receiver(1, 0x101, Some(regions[0])), receiver(2, 0x102, Some(regions[1]))];
    let (end_mt, mr) = (end_mt_tlv(EDGE, &bare), mr_tlv(EDGE, &regions));
    let recorded = [receiver(1, 0x101, Some((0x2000, 0xB1))), with_regions[1]];
    let mut record = provisioned(&recorded);
    record.receivers[1].region = None;

    let mut bench = edge_of(record);
    let whole = with_tlvs(&write, &[&end_mt, &mr]);
    assert_eq!(bench.send(0, &whole), copies(&write, &with_regions));
    // The record has the first receiver's region, but not the second one's.
    let known = end_mt_tlv(EDGE, &bare[..1]);
    assert_eq!(bench.send(0, &with_tlvs(&write, &[&known])), copies(&write, &recorded[..1]));
    assert_eq!(bench.send(0, &with_tlvs(&write, &[&end_mt])), []);
    assert_eq!(bench.drops(0), [("outside_region", 1)]);
    // Packets without a RETH need no region.
    for opcode in [0x04, 0x07, 0x08, 0x09] {
        let packet = inner(opcode, 0, &[5; 256], false);
        assert_eq!(bench.send(0, &with_tlvs(&packet, &[&end_mt])), copies(&packet, &bare));
    }

    // Without a record the start of the group's region is unknown; without any region the draft's text applies.
    let mut without_record = edge(false);
    assert_eq!(without_record.send(0, &whole), []);
    assert_eq!(without_record.send(0, &with_tlvs(&write, &[&end_mt])), copies(&write, &bare));

    let refused = |tlvs: [&[u8]; 2]| {
        let mut bench = edge(false);
        assert_eq!(bench.send(0, &with_tlvs(&write, &tlvs)), []);
        bench.drops(0)[0].0
    };
    assert_eq!(refused([&mr, &end_mt]), "malformed_tlv");
    assert_eq!(refused([&end_mt, &mr_tlv(EDGE, &regions[..1])]), "malformed_tlv");
}

/// D96: a receiver outside the record would be vouched for without its acknowledgement, so that the packet goes to none.
/// One that the edge is about to have, or has just lost, misses its copy alone.
#[test]
fn copies_go_to_receivers_of_the_record_alone() {
    let all = [1, 2, 3].map(|host| receiver(host, 0x100 + u32::from(host), None));
    let listed = with_tlvs(&send(), &[&end_mt_tlv(EDGE, &all)]);
    let at_epoch = |receivers: &[Receiver], epoch| Box::new(GroupEntry { epoch, ..entry(receivers, None) });
    let mut bench = edge_of(entry(&all[..2], None));
    assert_eq!(bench.send(0, &listed), []);
    assert_eq!(bench.drops(0), [("receiver_not_in_record", 1)]);

    bench.apply(Command::PrepareGroup(at_epoch(&all, 2)));
    assert_eq!(bench.send(0, &listed), copies(&send(), &all[..2]), "prepared");
    assert_eq!(bench.send(0, &listed), copies(&send(), &all[..2]), "from the kept list");
    assert_eq!(bench.drops(0), [("receiver_not_in_record", 3)]);
    bench.apply(Command::AbortGroup(GroupId(1)));
    assert_eq!(bench.send(0, &listed), [], "aborted");

    bench.apply(Command::AddGroup(at_epoch(&all, 3)));
    assert_eq!(bench.send(0, &listed), copies(&send(), &all), "committed");
    bench.apply(Command::AddGroup(at_epoch(&all[1..], 4)));
    assert_eq!(bench.send(0, &listed), copies(&send(), &all[1..]), "the first one has left");
    let left = with_tlvs(&send(), &[&end_mt_tlv(EDGE, &all[..1])]);
    assert_eq!(bench.send(0, &left), [], "only for the one that has left");
    bench.apply(Command::AddGroup(at_epoch(&all[2..], 5)));
    assert_eq!(bench.send(0, &listed), [], "left before the preceding record");
    assert_eq!(bench.drops(0), [("receiver_not_in_record", 7)]);
}

/// D96: a host that has left and joined again has another queue pair. What the headend's older list sends to the former
/// one, the host would acknowledge for the new one, since responses have no number of their own queue pair.
#[test]
fn copies_go_to_queue_pairs_of_the_record_alone() {
    let [former, other] = [receiver(1, 0x101, None), receiver(2, 0x102, None)];
    let joined_again = receiver(1, 0x1FF, None);
    let mut bench = edge_of(entry(&[joined_again, other], None));
    let of_headend = |listed: &[Receiver]| with_tlvs(&send(), &[&end_mt_tlv(EDGE, listed)]);
    assert_eq!(bench.send(0, &of_headend(&[former, other])), copies(&send(), &[other]));
    assert_eq!(bench.send(0, &of_headend(&[former])), []);
    assert_eq!(bench.drops(0), [("receiver_not_in_record", 2)]);
    assert_eq!(bench.send(0, &of_headend(&[joined_again, other])), copies(&send(), &[joined_again, other]));
}

/// D27: a WRITE that leaves the region, or names another key, is dropped.
#[test]
fn writes_stay_inside_the_region() {
    let receivers = [receiver(1, 5, Some((0, 7)))];
    let mut bench = edge_of(provisioned(&receivers));
    let last = inner(0x0A, REGION_OCTETS - 100, &[1; 100], false);
    assert_eq!(bench.send(0, &encapsulated(&last)), copies(&last, &receivers));
    let mut other_key = inner(0x0A, 0, &[1; 100], false);
    other_key[71] ^= 1;
    let beyond =
        [REGION_OCTETS - 99, REGION_OCTETS, u64::MAX - BASE].map(|offset| inner(0x0B, offset, &[1; 100], false));
    for packet in beyond.iter().chain([&other_key]) {
        assert_eq!(bench.send(0, &encapsulated(packet)), []);
    }
    assert_eq!(bench.drops(0), [("outside_region", 4)]);
}

/// D27: a message of no octets addresses no memory, whatever is in its RETH; a WRITE with immediate is often one.
#[test]
fn writes_of_no_octets_pass() {
    let receivers = [receiver(1, 5, Some((0x4000, 7))), receiver(2, 6, Some((0x5000, 8)))];
    let keep = receivers.map(|receiver| Receiver { region: None, ..receiver });
    let mut bench = edge_of(provisioned(&receivers));
    for opcode in [0x0A, 0x0B] {
        let inside = inner(opcode, 64, &[], true);
        assert_eq!(bench.send(0, &encapsulated(&inside)), copies(&inside, &receivers));
        let rest = [&[0; 16][..], if opcode == 0x0B { &[1, 2, 3, 4] } else { &[] }].concat();
        let null = request(opcode, 0, &rest, true);
        assert_eq!(bench.send(0, &encapsulated(&null)), copies(&null, &keep));
    }
    assert_eq!(bench.drops(0), []);
}

/// A list is kept under all that it was made from: sources, group, SRH, routes and the record.
#[test]
fn kept_lists_are_never_stale() {
    let first = [receiver(1, 0x101, None), receiver(2, 0x102, None)];
    let second = [receiver(1, 0x111, None), receiver(2, 0x112, None)];
    let packet = encapsulated(&send());
    let mut bench = edge_of(entry(&first, None));
    assert_eq!(bench.send(0, &packet), copies(&send(), &first));
    // Another SRH, another source, and the first again: they share a slot.
    let tlv = with_tlvs(&send(), &[&end_mt_tlv(EDGE, &first[1..])]);
    let mut spoofed = send();
    spoofed[8..24].copy_from_slice(&address("2001:db8:1::2").octets());
    let icrc = srdma_testkit::checksums::icrc(&spoofed[..spoofed.len() - 4]);
    let end = spoofed.len() - 4;
    spoofed[end..].copy_from_slice(&icrc);
    for _ in 0..3 {
        assert_eq!(bench.send(0, &tlv), copies(&send(), &first[1..]));
        assert_eq!(bench.send(0, &encapsulated(&spoofed)), copies(&spoofed, &first));
        assert_eq!(bench.send(0, &packet), copies(&send(), &first));
    }
    // A receiver moves to another port.
    let prefix = Prefix::host(first[0].address);
    let action = RouteAction::Via(vec![next_hop(0)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    let ports: Vec<u16> = bench.send(0, &packet).iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [0, 1]);
    bench.apply(Command::RemoveRoute { table: TableId(0), prefix });
    // The record changes, and goes.
    bench.apply(Command::AddGroup(Box::new(entry(&second, None))));
    assert_eq!(bench.send(0, &packet), copies(&send(), &second));
    bench.apply(Command::RemoveGroup(GroupId(1)));
    assert_eq!(bench.send(0, &packet), []);
    assert_eq!(bench.drops(0), [("no_receiver_list", 1)]);
}

/// Packets of another queue pair are not the group's data; SEND with Invalidate names one receiver's key (D26); a header
/// before UDP would reach hosts that take none.
#[test]
fn packets_that_receivers_would_reject_are_dropped() {
    let mut bench = edge_of(entry(&[receiver(1, 0x101, None)], None));
    let mut other_qpn = send();
    other_qpn[55] ^= 1;
    for opcode in [0x16, 0x17, 0x0C, 0x11, 0x13] {
        assert_eq!(bench.send(0, &encapsulated(&request(opcode, 0, &[0; 28], false))), []);
    }
    assert_eq!(bench.send(0, &encapsulated(&other_qpn)), []);
    assert_eq!(bench.send(0, &encapsulated(&with_options(&send()))), []);
    let expected = [("extension_headers", 1), ("not_multicastable", 5), ("wrong_qpn", 1)];
    assert_eq!(bench.drops(0), expected);
}

/// Options between SRH and inner header, such as a Tunnel Encapsulation Limit (RFC 2473), go with the outer headers.
#[test]
fn options_of_the_tunnel_are_removed_with_it() {
    let receivers = [receiver(1, 0x101, None)];
    let mut packet = encapsulated(&send());
    packet.splice(64..64, [41, 0, 4, 1, 3, 1, 1, 0]);
    packet[40] = 60;
    packet[5] += 8;
    assert_eq!(edge_of(entry(&receivers, None)).send(0, &packet), copies(&send(), &receivers));
}

fn with_options(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet.splice(40..40, [17, 0, 1, 4, 0, 0, 0, 0]);
    packet[6] = 60;
    packet[5] += 8;
    packet
}

const SECRET: &[u8] = b"another secret";

/// A packet whose last 40 octets before `inner` are an HMAC TLV, signed by RFC 8754 section 2.1.2 and D9; `list` is its
/// only End.MT TLV, whose padding is not covered.
fn signed(mut packet: Vec<u8>, inner: &[u8], list: &[u8]) -> Vec<u8> {
    let field = packet.len() - inner.len() - 32;
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
    let last_entry = usize::from(packet[44]);
    mac.update(&packet[8..24]);
    mac.update(&packet[44..46]);
    mac.update(&packet[field - 6..field]);
    mac.update(&packet[48..48 + 16 * (last_entry + 1)]);
    mac.update(&list[..2 + usize::from(list[1])]);
    packet[field..field + 32].copy_from_slice(&mac.finalize().into_bytes());
    packet
}

fn hmac_tlv(d: u8) -> Vec<u8> {
    [&[5, 38, d, 0, 0, 0, 0, 9][..], &[0; 32]].concat()
}

/// MT-9-1, D9: a list that was verified once is verified again for another key and for another SID.
#[test]
fn verified_lists_stay_so_for_one_key_and_one_sid() {
    let receivers = [receiver(1, 0x101, None), receiver(2, 0x102, None)];
    let list = end_mt_tlv(EDGE, &receivers);
    let packet = signed(with_tlvs(&send(), &[&list, &hmac_tlv(0x80)]), &send(), &list);
    let mut bench = edge(true);
    let key = |secret| Command::AddHmacKey { key_id: 9, key: HmacKey::new(secret, Cover::Tlvs) };
    bench.apply(key(SECRET));
    for _ in 0..2 {
        assert_eq!(bench.send(0, &packet), copies(&send(), &receivers));
    }
    bench.apply(key(b"new"));
    assert_eq!(bench.send(0, &packet), []);
    assert_eq!(bench.drops(0), [("hmac_mismatch", 1)]);

    // A full Segment List is signed for its own SID (RFC 8754 section 2.1.2.1), not for the edge's other one.
    let mut full = with_tlvs(&send(), &[&list, &hmac_tlv(0)]);
    full.splice(64..64, address(SID).octets());
    full[41] += 2;
    full[44] = 1;
    full[5] += 16;
    let full = signed(full, &send(), &list);
    let mut to_other = full.clone();
    to_other[24..40].copy_from_slice(&address("5f00:0:1:e001::").octets());
    let mut bench = edge(true);
    bench.apply(key(SECRET));
    let prefix = Prefix::host(address("5f00:0:1:e001::"));
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndMt { require_hmac: true } });
    assert_eq!(bench.send(0, &full), copies(&send(), &receivers));
    assert_eq!(bench.send(0, &to_other), []);
    assert_eq!(bench.send(0, &full), copies(&send(), &receivers));
    assert_eq!(bench.drops(0), [("hmac_mismatch", 1)]);
}

/// MT-9-1, D3: a multicast group as End.MT SID demands its HMAC as any other.
#[test]
fn a_multicast_sid_can_demand_an_hmac() {
    let receivers = [receiver(1, 0x101, None)];
    let list = end_mt_tlv(EDGE, &receivers);
    let mut bench = edge(false);
    bench.apply(Command::AddHmacKey { key_id: 9, key: HmacKey::new(SECRET, Cover::Tlvs) });
    bench.apply(Command::AddMulticastRoute(MulticastRoute {
        source: address(HEADEND),
        group: address("ff3e::100"),
        incoming: None,
        outgoing: Vec::new(),
        end_mt: true,
        require_hmac: true,
    }));
    let to_group = |mut packet: Vec<u8>| {
        packet[24..40].copy_from_slice(&address("ff3e::100").octets());
        packet
    };
    let good = signed(with_tlvs(&send(), &[&list, &hmac_tlv(0x80)]), &send(), &list);
    let sent = bench.send(0, &to_group(good));
    assert_eq!(bench.drops(0), []);
    assert_eq!(sent, copies(&send(), &receivers));
    assert_eq!(bench.send(0, &to_group(with_tlvs(&send(), &[&list]))), []);
    assert_eq!(bench.drops(0), [("hmac_missing", 1)]);
}
