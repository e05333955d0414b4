//! Repair at an edge (D150-D159): what is sent again, octet by octet, and what is requested.

use crate::common::Bench;
use crate::common::group::*;
use srdma_dataplane::{ClassMap, Command, EgressConfig, Event, PfcConfig, RepairCounters};
use srdma_frame::{Element, Frame, PortId};
use srdma_group::*;
use srdma_testkit::{checksums, multicast};
use srdma_wire::Psn;
use std::net::Ipv6Addr;
use std::time::Duration;

const ACK: [u8; 4] = [0x1F, 0, 0, 1];
const NAK: [u8; 4] = [0x60, 0, 0, 1];

fn receivers() -> [multicast::Receiver; 2] {
    [receiver(1, 0x101, None), receiver(2, 0x102, None)]
}

/// The edge with two receivers at port 1 and its parent at port 0.
fn repairing(parent_repairs: bool) -> Bench {
    let mut bench = edge(false);
    bench.route("2001:db8:6::/48", 0);
    let mut entry = entry(&receivers(), None);
    entry.policy.repair.mode = RepairMode::Tree;
    entry.repair = Some(RepairEntry { window_packets: 64, parent_repairs, children: Vec::new(), levels: 1 });
    bench.apply(Command::AddGroup(Box::new(entry)));
    bench
}

/// A SEND Only of the source, with a valid ICRC.
fn data(psn: u8, ack_request: bool) -> Vec<u8> {
    let mut packet = request(0x04, 0, &[psn; 64], false);
    packet[56] = u8::from(ack_request) << 7;
    packet[59] = psn;
    with_icrc(packet)
}

fn with_icrc(mut packet: Vec<u8>) -> Vec<u8> {
    let end = packet.len() - 4;
    let icrc = checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    packet
}

/// Gives a packet to a port; returns what leaves, without Ethernet headers.
pub(crate) fn send(bench: &mut Bench, port: u16, packet: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mac = crate::common::port_mac(port).0;
    let frame = [&mac[..], &[2, 0, 0, 0, 1, port as u8, 0x86, 0xDD], packet].concat();
    let frame = Frame::from_octets(&frame, &mut bench.pool).unwrap();
    bench.node.receive(bench.now, PortId(port), &mut vec![frame], &mut bench.pool);
    sent(bench)
}

fn sent(bench: &mut Bench) -> Vec<(u16, Vec<u8>)> {
    let mut sent = Vec::new();
    for port in 0..2 {
        while let Some(octets) = bench.give_out(PortId(port)) {
            sent.push((port, octets[14..].to_vec()));
        }
    }
    sent
}

/// Time passes up to the next timer.
fn wait(bench: &mut Bench) -> Vec<(u16, Vec<u8>)> {
    bench.now = bench.node.next_deadline().unwrap() + Duration::from_nanos(1);
    bench.node.tick(bench.now, &mut bench.pool);
    sent(bench)
}

fn respond(bench: &mut Bench, host: u16, psn: u8, aeth: [u8; 4]) -> Vec<(u16, Vec<u8>)> {
    let responder = format!("2001:db8:2::{host}");
    send(bench, 1, &response(0x11, &responder, psn, &aeth))
}

fn counters(bench: &Bench) -> RepairCounters {
    bench.node.repair_counters(GroupId(1)).unwrap()
}

/// D152: the receiver that lacks 101 is sent 101 and 102 again, as before; the other one and the source nothing.
#[test]
fn a_nak_is_answered_for_its_branch_alone() {
    let (mut bench, all) = (repairing(false), receivers());
    for psn in 100..=102 {
        let inner = data(psn, true);
        assert_eq!(send(&mut bench, 0, &encapsulated(&inner)), copies(&inner, &all));
    }
    let again = respond(&mut bench, 1, 101, NAK);
    let expected = [data(101, true), data(102, true)].map(|inner| copies(&inner, &all[..1]).remove(0));
    assert_eq!(again, expected);
    // Its data are on their way.
    assert_eq!(respond(&mut bench, 1, 101, NAK), []);
    let RepairCounters { packets_resent, naks_absorbed, naks_suppressed, .. } = counters(&bench);
    assert_eq!((packets_resent, naks_absorbed, naks_suppressed), (2, 1, 1));
    // The minimum is that of both, and what both have is no longer kept.
    assert_eq!(respond(&mut bench, 1, 102, ACK), []);
    let upstream = respond(&mut bench, 2, 102, ACK);
    assert_eq!(upstream.len(), 1);
    assert_eq!((upstream[0].0, &upstream[0].1[57..64]), (0, &[0, 0, 102, 0x1F, 0, 0, 1][..]));
    assert_eq!(bench.pool.in_use(), 0, "every chunk comes back");
}

/// D25, D158: a receiver that is sent all data as they come, since a gap was given up, and that is dead, is evicted: data
/// that the source sends again count as sent to it.
#[test]
fn a_dead_receiver_that_is_sent_all_data_is_evicted() {
    let mut bench = edge(false);
    bench.route("2001:db8:6::/48", 0);
    let mut entry = entry(&receivers(), None);
    (entry.policy.repair.mode, entry.policy.on_failure) = (RepairMode::Tree, OnFailure::Evict);
    entry.repair = Some(RepairEntry { window_packets: 64, parent_repairs: true, children: Vec::new(), levels: 1 });
    bench.apply(Command::AddGroup(Box::new(entry)));
    send(&mut bench, 0, &encapsulated(&data(100, true)));
    [1, 2].into_iter().for_each(|host| drop(respond(&mut bench, host, 100, ACK)));
    send(&mut bench, 0, &encapsulated(&data(102, true)));
    while counters(&bench).gaps_given_up == 0 {
        wait(&mut bench);
    }
    let inner = data(101, true);
    let mut sent = send(&mut bench, 0, &encapsulated(&inner));
    sent.truncate(2);
    assert_eq!(sent, copies(&inner, &receivers()));
    respond(&mut bench, 2, 102, ACK);
    for _ in 0..10 {
        bench.now += Duration::from_secs(1);
        bench.node.tick(bench.now, &mut bench.pool);
        send(&mut bench, 0, &encapsulated(&inner));
    }
    let requested = |event| match event {
        Event::EvictionRequested { receiver, .. } => receiver,
    };
    let requested: Vec<Ipv6Addr> = bench.node.take_events().map(requested).collect();
    assert!(!requested.is_empty(), "{:?}", counters(&bench));
    assert!(requested.iter().all(|one| *one == receivers()[0].address), "{requested:?}");
}

/// D155, D96: a packet that comes again takes the place of the one in the buffer, whose outer headers may be of a former
/// record.
#[test]
fn a_packet_that_comes_again_replaces_the_one_in_the_buffer() {
    let (mut bench, all) = (repairing(false), receivers());
    let former = data(100, true);
    let newer = with_icrc([&former[..60], &[7; 64], &[0; 4]].concat());
    send(&mut bench, 0, &encapsulated(&former));
    assert_eq!(send(&mut bench, 0, &encapsulated(&newer)), []);
    assert_eq!(counters(&bench).duplicates_absorbed, 1);
    assert_eq!(respond(&mut bench, 1, 100, NAK), copies(&newer, &all[..1]));
}

/// D151, D153: what follows a gap is kept back, and the gap requested from the parent by a reserved syndrome.
#[test]
fn a_gap_is_requested_and_not_passed() {
    let (mut bench, all) = (repairing(true), receivers());
    send(&mut bench, 0, &encapsulated(&data(100, false)));
    let requested = send(&mut bench, 0, &encapsulated(&data(103, false)));
    assert_eq!(requested.len(), 1);
    let (port, packet) = &requested[0];
    assert_eq!((*port, packet[48], &packet[57..64]), (0, 0x11, &[0, 0, 101, 0x70, 0, 0, 2][..]));
    assert_eq!(packet[64..], checksums::icrc(&packet[..64]));
    // The first in order goes on, the second with what waited for it.
    assert_eq!(send(&mut bench, 0, &encapsulated(&data(101, false))), copies(&data(101, false), &all));
    let mut rest = send(&mut bench, 0, &encapsulated(&data(102, false)));
    rest.sort();
    let mut expected = [copies(&data(102, false), &all), copies(&data(103, false), &all)].concat();
    expected.sort();
    assert_eq!(rest, expected);
    assert_eq!((counters(&bench).gaps, counters(&bench).packets_resent), (1, 0));
}

/// D159: a packet that was damaged above this node is not sent a second time, but requested.
#[test]
fn a_damaged_packet_is_requested_instead() {
    let mut bench = repairing(true);
    send(&mut bench, 0, &encapsulated(&data(100, false)));
    let mut damaged = data(101, false);
    damaged[70] ^= 1;
    assert_eq!(send(&mut bench, 0, &encapsulated(&damaged)).len(), 2);
    assert_eq!(respond(&mut bench, 1, 101, NAK), [], "it is not sent again");
    let requested = wait(&mut bench);
    assert_eq!(requested.len(), 1);
    assert_eq!((requested[0].0, &requested[0].1[57..64]), (0, &[0, 0, 101, 0x70, 0, 0, 1][..]));
    assert_eq!(counters(&bench).damaged, 1);
    // The good one goes to the receiver that waits for it, and to the other, which has not acknowledged it.
    let mut filled = send(&mut bench, 0, &encapsulated(&data(101, false)));
    filled.sort();
    let mut expected = copies(&data(101, false), &receivers());
    expected.sort();
    assert_eq!(filled, expected);
}

/// D159: a congestion mark is sent once.
#[test]
fn a_mark_is_not_sent_twice() {
    let (mut bench, all) = (repairing(false), receivers());
    let mut outer = encapsulated(&data(100, false));
    outer[1] |= 0x30;
    let first = send(&mut bench, 0, &outer);
    let mut marked = copies(&data(100, false), &all);
    marked.iter_mut().for_each(|(_, copy)| copy[1] |= 0x30);
    assert_eq!(first, marked);
    let again = respond(&mut bench, 1, 100, NAK);
    let mut unmarked = marked.remove(0);
    unmarked.1[1] = unmarked.1[1] & !0x30 | 0x20;
    assert_eq!(again, [unmarked]);
}

/// D156, D10: a receiver that is silent is sent everything again; the last packet requests an ACK, and nothing else of
/// it changes but the ICRC. The other receiver has acknowledged it.
#[test]
fn a_silent_receiver_is_probed() {
    let (mut bench, all) = (repairing(false), receivers());
    send(&mut bench, 0, &encapsulated(&data(100, true)));
    send(&mut bench, 0, &encapsulated(&data(101, false)));
    respond(&mut bench, 2, 101, ACK);
    let probe = std::iter::repeat_with(|| wait(&mut bench)).take(4).find(|sent| !sent.is_empty()).unwrap();
    let expected = [data(100, true), data(101, true)].map(|inner| copies(&inner, &all[..1]).remove(0));
    assert_eq!(probe, expected);
    assert_eq!(counters(&bench).probes, 1);
}

/// D160: a source that exceeds its window has its group aggregated and no more; its packets pass, and its NAKs go up.
#[test]
fn a_group_beyond_its_window_goes_on_without_repair() {
    let (mut bench, all) = (repairing(false), receivers());
    for psn in 100..=165 {
        let inner = data(psn, false);
        assert_eq!(send(&mut bench, 0, &encapsulated(&inner)), copies(&inner, &all), "{psn}");
    }
    assert_eq!(counters(&bench).windows_exceeded, 1);
    assert_eq!(bench.pool.in_use(), 0, "nothing is kept");
    respond(&mut bench, 2, 165, ACK);
    let upstream = respond(&mut bench, 1, 120, NAK);
    let responses: Vec<_> = upstream.iter().map(|(port, packet)| (*port, packet[59], packet[60])).collect();
    assert_eq!(responses, [(0, 119, 0x1F), (0, 120, 0x60)]);
}

/// D154: below a parent that does not repair, the source is sent a NAK when all have acknowledged what is before the
/// gap; a PSN of the serial circle's end is no other.
#[test]
fn a_gap_is_reported_at_the_minimum() {
    let mut bench = repairing(false);
    send(&mut bench, 0, &encapsulated(&data(100, false)));
    // The packet before the gap asks for an ACK in its second sending.
    let hastened = send(&mut bench, 0, &encapsulated(&data(102, false)));
    assert_eq!(hastened, copies(&data(100, true), &receivers()));
    assert_eq!(respond(&mut bench, 1, 100, ACK), []);
    let upstream = respond(&mut bench, 2, 100, ACK);
    let responses: Vec<_> = upstream.iter().map(|(port, packet)| (*port, packet[59], packet[60])).collect();
    assert_eq!(responses, [(0, 100, 0x1F), (0, 101, 0x60)]);
    assert_eq!(bench.node.acknowledgements(GroupId(1)).unwrap().minimum_psn(), Some(Psn::new(101)));
}

/// The edge, its ports with classes by precedence; that of the data, 1, has PFC.
fn with_pfc() -> Bench {
    let mut bench = repairing(false);
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[1].pfc =
        Some(PfcConfig { xoff_octets: 1 << 19, xon_octets: 1 << 18, headroom_octets: 1 << 20, quanta: 0xFFFF });
    for port in 0..2 {
        bench.apply(Command::SetEgress { port: PortId(port), egress: Box::new(egress.clone()) });
    }
    bench
}

/// IEEE 802.1Q clause 36: a frame that pauses class 1 for so many quanta.
fn pause(quanta: u16) -> Vec<u8> {
    let mut frame =
        [&[1, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0, 1, 9, 0x88, 0x08, 1, 1, 0, 2, 0, 0][..], &quanta.to_be_bytes()].concat();
    frame.resize(60, 0);
    frame
}

/// What is sent again waits in the class of the data: while that is paused nothing leaves, and then all in order.
#[test]
fn what_is_sent_again_waits_while_its_class_is_paused() {
    let (mut bench, all) = (with_pfc(), receivers());
    for psn in 100..=102 {
        assert_eq!(send(&mut bench, 0, &encapsulated(&data(psn, true))).len(), 2);
    }
    let take = |bench: &mut Bench, quanta: u16| {
        let frame = Frame::from_octets(&pause(quanta), &mut bench.pool).unwrap();
        bench.node.receive(bench.now, PortId(1), &mut vec![frame], &mut bench.pool);
        sent(bench)
    };
    assert_eq!(take(&mut bench, 0xFFFF), []);
    assert_eq!(respond(&mut bench, 1, 101, NAK), []);
    assert_eq!(send(&mut bench, 0, &encapsulated(&data(103, true))), []);
    let left = take(&mut bench, 0);
    let expected = |psns: &[u8], receiver: usize| -> Vec<_> {
        psns.iter().map(|psn| copies(&data(*psn, true), &all[receiver..=receiver]).remove(0)).collect()
    };
    let of = |receiver: usize| -> Vec<_> {
        let address = all[receiver].address.octets();
        left.iter().filter(|(_, packet)| packet[24..40] == address).cloned().collect()
    };
    assert_eq!(of(0), expected(&[101, 102, 103], 0));
    assert_eq!(of(1), expected(&[103], 1));
    assert_eq!(left.len(), 4);
}

/// A branch that is far behind does not hold up the others at its port: new data are among what it is sent, not after it.
#[test]
fn a_branch_that_is_far_behind_does_not_starve_the_others() {
    let (mut bench, all) = (repairing(false), receivers());
    for psn in 100..=140 {
        send(&mut bench, 0, &encapsulated(&data(psn, true)));
    }
    let give = |bench: &mut Bench, port: u16, packet: &[u8]| {
        let frame = [&crate::common::port_mac(port).0[..], &[2, 0, 0, 0, 1, port as u8, 0x86, 0xDD], packet].concat();
        let frame = Frame::from_octets(&frame, &mut bench.pool).unwrap();
        bench.node.receive(bench.now, PortId(port), &mut vec![frame], &mut bench.pool);
    };
    give(&mut bench, 1, &response(0x11, "2001:db8:2::1", 100, &NAK));
    (141..=144).for_each(|psn| give(&mut bench, 0, &encapsulated(&data(psn, true))));
    let left = sent(&mut bench);
    let other = all[1].address.octets();
    let places: Vec<usize> = (0..left.len()).filter(|place| left[*place].1[24..40] == other).collect();
    assert_eq!((left.len(), places.len()), (41 + 4 + 4, 4));
    assert!(places[3] < 10, "new data wait for what is sent again: {places:?}");
}
