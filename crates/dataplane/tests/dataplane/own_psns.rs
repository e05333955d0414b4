//! Receivers whose queue pairs expect PSNs of their own (D270).

use crate::allocation::allocations;
use crate::common::Bench;
use crate::common::group::*;
use crate::repair::send;
use srdma_dataplane::Command;
use srdma_group::*;
use srdma_testkit::{checksums, multicast};
use srdma_wire::Psn;

/// Three receivers: one has the group's PSNs, one is ahead, one behind them.
fn hosts() -> [multicast::Receiver; 3] {
    let host = |host, psn_offset| multicast::Receiver { psn_offset, ..receiver(host, 0x100 + u32::from(host), None) };
    [host(1, 0), host(2, 0x12_3456), host(3, 0xFF_FFF0)]
}

fn bench(change: impl FnOnce(&mut GroupEntry)) -> Bench {
    let mut bench = edge(false);
    bench.route("2001:db8:6::/48", 0);
    let mut entry = entry(&hosts(), None);
    change(&mut entry);
    bench.apply(Command::AddGroup(Box::new(entry)));
    bench
}

/// A packet with this PSN in its last octets, and its ICRC.
fn with_psn(mut packet: Vec<u8>, psn: u32) -> Vec<u8> {
    packet[57..60].copy_from_slice(&psn.to_be_bytes()[1..]);
    let end = packet.len() - 4;
    let icrc = checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    packet
}

fn data(psn: u32) -> Vec<u8> {
    with_psn(inner(0x04, 0, &[psn as u8; 64], false), psn)
}

/// An ACK or NAK of a receiver, which names a PSN of its own.
fn answer(host: usize, psn: u32, syndrome: u8) -> Vec<u8> {
    let responder = hosts()[host].address.to_string();
    with_psn(response(0x11, &responder, 0, &[syndrome, 0, 0, 1]), (psn + hosts()[host].psn_offset) & 0xFF_FFFF)
}

/// Syndromes and PSNs that went up.
fn upward(sent: &[(u16, Vec<u8>)]) -> Vec<(u8, u32)> {
    let of = |packet: &Vec<u8>| (packet[60], u32::from_be_bytes([0, packet[57], packet[58], packet[59]]));
    sent.iter().filter(|(port, _)| *port == 0).map(|(_, packet)| of(packet)).collect()
}

const ACK: u8 = 0x1F;
const SEQUENCE_NAK: u8 = 0x60;

/// D270: each copy has its receiver's PSN, also where that passes zero, by lists of the entry and of the packet.
#[test]
fn each_copy_has_its_receivers_psn() {
    let list = end_mt_tlv(EDGE, &hosts());
    for psn in [100, 0, 0xF, 0x10, 0xED_CBA9, 0xED_CBAA, 0xFF_FFFF] {
        let packet = data(psn);
        let expected = copies(&packet, &hosts());
        for outer in [encapsulated(&packet), with_tlvs(&packet, &[&list])] {
            let first = |entry: &mut GroupEntry| entry.initial_psn = Psn::new(psn);
            assert_eq!(bench(first).send(0, &outer), expected, "PSN {psn:#x}");
        }
    }
}

/// D270, MT-5.3.1-3: what goes up is in the group's PSNs, and the minimum of those.
#[test]
fn responses_name_the_groups_psns() {
    let mut bench = bench(|_| ());
    for psn in 100..104 {
        bench.send(0, &encapsulated(&data(psn)));
    }
    assert_eq!(upward(&bench.send(1, &answer(0, 103, ACK))), []);
    assert_eq!(upward(&bench.send(1, &answer(1, 102, ACK))), []);
    let all = bench.send(1, &answer(2, 103, ACK));
    assert_eq!(upward(&all), [(ACK, 102)]);
    assert_eq!(upward(&bench.send(1, &answer(1, 103, ACK))), [(ACK, 103)]);
    // A PSN of the group is nothing that a receiver with others can mean.
    let foreign = with_psn(answer(1, 0, ACK), 103);
    assert_eq!(bench.send(1, &foreign), []);
    assert_eq!(bench.drops(1), [("stale_response", 1)]);
}

/// D150, D270: a packet that is sent again has its receiver's PSN, and a NAK asks for it by that.
#[test]
fn packets_sent_again_have_the_receivers_psn() {
    let mut bench = bench(|entry| {
        entry.policy.repair.mode = RepairMode::Tree;
        entry.repair = Some(RepairEntry { window_packets: 64, parent_repairs: false, children: Vec::new(), levels: 1 });
    });
    for psn in 100..104 {
        send(&mut bench, 0, &encapsulated(&data(psn)));
    }
    for host in [1, 2] {
        let again: Vec<(u16, Vec<u8>)> = (101..104).map(|psn| copies(&data(psn), &hosts()).remove(host)).collect();
        assert_eq!(send(&mut bench, 1, &answer(host, 101, SEQUENCE_NAK)), again, "receiver {host}");
    }
}

/// D270: copies with other PSNs cost no allocation.
#[test]
fn other_psns_allocate_nothing() {
    let mut bench = bench(|_| ());
    let packets = [100, 101, 102, 103].map(|psn| (0, encapsulated(&data(psn))));
    assert_eq!(allocations(&mut bench, &packets), 0);
}
