//! Groups of several regions: a WRITE goes to the one that the rkey of its RETH names (D191).

use crate::allocation::allocations;
use crate::common::Bench;
use crate::common::group::*;
use crate::repair::send;
use srdma_dataplane::Command;
use srdma_group::*;
use srdma_testkit::checksums;
use srdma_testkit::multicast::{self, copy_for};
use srdma_testkit::random::Random;

/// The group's regions. The first two begin at the same address, so that the key alone distinguishes them.
const REGIONS: [SourceRegion; 3] = [
    REGION,
    SourceRegion { base: BASE, length: 4096, rkey: 0x5678 },
    SourceRegion { base: 0x10, length: 1 << 40, rkey: 0 },
];

/// Base and key of a receiver's region.
fn region_of(host: u16, region: usize) -> (u64, u32) {
    (0x4000_0000 * u64::from(host) + 0x10_0000 * region as u64 + 64, 0xA000 + u32::from(host) * 16 + region as u32)
}

/// The receivers as the model has them, for messages to a region.
fn hosts(region: usize) -> Vec<multicast::Receiver> {
    (1..=3).map(|host| receiver(host, 0x100 + u32::from(host), Some(region_of(host, region)))).collect()
}

fn group() -> GroupEntry {
    let nodes = [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", EDGE, SID, Some(0))];
    let further = |host: u16| {
        (1..REGIONS.len()).map(move |region| region_of(host, region)).map(|(base, rkey)| ReceiverRegion { base, rkey })
    };
    let members = hosts(0).into_iter().zip(1..);
    let members =
        members.map(|(host, number)| Receiver { more_regions: further(number).collect(), ..member(&host, 1) });
    let policy = Policy { lists: ListMode::Provisioned, ..Policy::default() };
    let record = record(&nodes, members.collect());
    let record = Record { region: Some(REGIONS[0]), more_regions: REGIONS[1..].to_vec(), policy, ..record };
    Group::new(record).unwrap().at(NodeIndex(1)).unwrap()
}

fn bench() -> Bench {
    let mut bench = edge(false);
    bench.apply(Command::AddGroup(Box::new(group())));
    bench
}

/// A WRITE Only of the source, and the same with immediate data.
fn write(opcode: u8, address: u64, rkey: u32, payload: &[u8], with_checksum: bool) -> Vec<u8> {
    let mut rest = address.to_be_bytes().to_vec();
    rest.extend(rkey.to_be_bytes());
    rest.extend((payload.len() as u32).to_be_bytes());
    if opcode == 0x0B {
        rest.extend([1, 2, 3, 4]);
    }
    let pad = payload.len().wrapping_neg() % 4;
    rest.extend(payload);
    rest.extend(vec![0; pad]);
    request(opcode, pad as u8, &rest, with_checksum)
}

/// The model's copies of a packet that names a region.
fn copies_to(packet: &[u8], region: usize) -> Vec<(u16, Vec<u8>)> {
    hosts(region).iter().map(|host| (1, copy_for(packet, host, REGIONS[region].base))).collect()
}

/// D191: in any order, with and without packets between that name none, by provisioned lists and lists in packets.
#[test]
fn the_rkey_selects_the_region() {
    let mut random = Random::new(0xD191);
    let list = end_mt_tlv(EDGE, &hosts(0));
    for in_packets in [false, true] {
        let mut bench = bench();
        for _ in 0..200 {
            let region = random.below(REGIONS.len() as u64) as usize;
            let SourceRegion { base, length, rkey } = REGIONS[region];
            let payload = vec![random.below(256) as u8; random.below(300) as usize];
            let offset = random.below(length - payload.len() as u64 + 1);
            let opcode = [0x06, 0x0A, 0x0B, 0x07, 0x04][random.below(5) as usize];
            let packet = match opcode {
                0x07 | 0x04 => inner(opcode, 0, &payload, random.below(2) == 0),
                _ => write(opcode, base + offset, rkey, &payload, random.below(2) == 0),
            };
            let outer = if in_packets { with_tlvs(&packet, &[&list]) } else { encapsulated(&packet) };
            assert_eq!(bench.send(0, &outer), copies_to(&packet, region), "opcode {opcode:#x}, region {region}");
        }
        assert_eq!(bench.drops(0), []);
    }
}

/// D191: each region has bounds of its own, and a key that names none of them goes nowhere.
#[test]
fn writes_stay_inside_the_region_that_they_name() {
    let mut bench = bench();
    let inside = write(0x0A, BASE + 4000, REGIONS[1].rkey, &[1; 96], false);
    assert_eq!(bench.send(0, &encapsulated(&inside)), copies_to(&inside, 1));
    let beyond = [
        write(0x0A, BASE + 4001, REGIONS[1].rkey, &[1; 96], false),
        write(0x0A, BASE - 1, REGIONS[1].rkey, &[1; 96], false),
        write(0x0A, 0xF, REGIONS[2].rkey, &[1; 96], false),
        write(0x0A, 0x10 + (1 << 40) - 95, REGIONS[2].rkey, &[1; 96], false),
        write(0x0A, BASE, 0x5679, &[1; 96], false),
        write(0x06, BASE, 1, &[1; 96], true),
    ];
    for packet in &beyond {
        assert_eq!(bench.send(0, &encapsulated(packet)), []);
    }
    assert_eq!(bench.drops(0), [("outside_region", beyond.len() as u64)]);
    // No octets, no memory, whatever the key is (IBTA C9-88).
    let none = write(0x0B, 5, 0x5679, &[], false);
    let keep = hosts(0).into_iter().map(|host| multicast::Receiver { region: None, ..host }).collect::<Vec<_>>();
    assert_eq!(bench.send(0, &encapsulated(&none)), copies(&none, &keep));
}

/// D191: an MR TLV does not say which region it is, so that WRITEs behind it go nowhere, and other packets go on.
#[test]
fn an_mr_tlv_names_none_of_several_regions() {
    let mut bench = bench();
    let regions: Vec<(u64, u32)> = (1..=3).map(|host| region_of(host, 0)).collect();
    let (list, mr) = (end_mt_tlv(EDGE, &hosts(0)), mr_tlv(EDGE, &regions));
    let packet = write(0x0A, BASE, RKEY, &[1; 96], false);
    assert_eq!(bench.send(0, &with_tlvs(&packet, &[&list, &mr])), []);
    assert_eq!(bench.drops(0), [("outside_region", 1)]);
    let send = inner(0x04, 0, &[7; 64], false);
    assert_eq!(bench.send(0, &with_tlvs(&send, &[&list, &mr])), copies_to(&send, 0));
    assert_eq!(bench.send(0, &with_tlvs(&packet, &[&list])), copies_to(&packet, 0));
}

/// D191: an entry whose receiver lacks a region carries no WRITE at all: its copy would reach memory of another use.
#[test]
fn a_receiver_without_a_region_holds_writes_back() {
    let mut bench = edge(false);
    let mut entry = group();
    entry.receivers[1].more_regions.pop();
    bench.apply(Command::AddGroup(Box::new(entry)));
    let packet = write(0x0A, BASE, RKEY, &[1; 96], false);
    assert_eq!(bench.send(0, &encapsulated(&packet)), []);
    assert_eq!(bench.drops(0), [("outside_region", 1)]);
}

/// D150, D191: a packet that an edge sends again goes to the region that it named.
#[test]
fn packets_sent_again_go_to_their_region() {
    let mut bench = edge(false);
    bench.route("2001:db8:6::/48", 0);
    let mut entry = group();
    entry.policy.repair.mode = RepairMode::Tree;
    entry.repair = Some(RepairEntry { window_packets: 64, parent_repairs: false, children: Vec::new(), levels: 1 });
    bench.apply(Command::AddGroup(Box::new(entry)));
    let packets: Vec<Vec<u8>> = [2, 1, 0, 1]
        .into_iter()
        .zip(100..)
        .map(|(region, psn)| {
            let SourceRegion { base, rkey, .. } = REGIONS[region];
            let mut packet = write(0x0A, base + u64::from(psn), rkey, &[psn; 64], false);
            packet[59] = psn;
            let end = packet.len() - 4;
            let icrc = checksums::icrc(&packet[..end]);
            packet[end..].copy_from_slice(&icrc);
            packet
        })
        .collect();
    for (packet, region) in packets.iter().zip([2, 1, 0, 1]) {
        assert_eq!(send(&mut bench, 0, &encapsulated(packet)), copies_to(packet, region));
    }
    let nak = response(0x11, "2001:db8:2::2", 101, &[0x60, 0, 0, 1]);
    let again: Vec<_> = [(1, 1), (2, 0), (3, 1)].map(|(at, region)| copies_to(&packets[at], region).remove(1)).to_vec();
    assert_eq!(send(&mut bench, 1, &nak), again);
}

/// D191: messages to the regions in turn cost no allocation.
#[test]
fn the_choice_of_a_region_allocates_nothing() {
    let mut bench = bench();
    let packets = [0, 1, 2, 1].map(|region| {
        let SourceRegion { base, rkey, .. } = REGIONS[region];
        (0, encapsulated(&write(0x0A, base, rkey, &[7; 512], true)))
    });
    assert_eq!(allocations(&mut bench, &packets), 0);
}

/// D231: a list of a group of several regions says that the edge has them. At one that does not, since it has not got its
/// entry again, WRITEs would reach the source's own addresses with its keys, which ends a receiver's queue pair.
#[test]
fn lists_say_that_the_edge_has_the_regions() {
    let (list, recorded) = (end_mt_tlv(EDGE, &hosts(0)), mr_tlv(EDGE, &[]));
    let packet = write(0x0A, BASE, REGIONS[1].rkey, &[1; 96], false);
    let outer = with_tlvs(&packet, &[&list, &recorded]);
    assert_eq!(bench().send(0, &outer), copies_to(&packet, 1));

    let mut without_entry = edge(false);
    assert_eq!(without_entry.send(0, &outer), []);
    let first = write(0x06, BASE, REGIONS[0].rkey, &[1; 256], false);
    assert_eq!(without_entry.send(0, &with_tlvs(&first, &[&list, &recorded])), []);
    assert_eq!(without_entry.drops(0), [("outside_region", 2)]);
    let middle = inner(0x07, 0, &[7; 64], false);
    assert_eq!(without_entry.send(0, &with_tlvs(&middle, &[&list, &recorded])), copies_to(&middle, 0));
}
