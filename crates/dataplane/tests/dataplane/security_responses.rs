//! Attacks on the reverse path: forged, replayed and flooding responses, and receivers with false responses (MT-9-2,
//! MT-9-3, D14, D15).

use crate::common::group::{self, HEADEND, PROXY, SOURCE, address, receiver};
use crate::common::{Bench, next_hop};
use srdma_dataplane::*;
use srdma_frame::{Element, PortId};
use srdma_group::*;
use srdma_testkit::checksums;
use srdma_wire::{Instant, Prefix};

const N4: &str = "2001:db8:4::1";
const N5: &str = "2001:db8:5::1";
const ROOT_SID: &str = "5f00:0:6:d6::";
const ACK: u8 = 0x1F;
const NAK: u8 = 0x60;
const RNR: u8 = 0x21;
/// The window T, in nanoseconds, and the CNPs that a branch may send in one.
const WINDOW_NS: u64 = 50_000;
const CNP_LIMIT: u64 = 64;

fn route(bench: &mut Bench, text: &str, len: u8, ports: &[u16]) {
    let prefix = Prefix::new(address(text), len).unwrap();
    let action = RouteAction::Via(ports.iter().map(|port| next_hop(*port)).collect());
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
}

/// The root: the source at port 0, N4 at port 1, N5 at ports 2 and 3, port 4 unused; and a SID to tunnel to.
fn root() -> Bench {
    let nodes = [
        ("N6", HEADEND, "5f00:0:6:e000::", None),
        ("N4", N4, "5f00:0:4:e000::", Some(0)),
        ("N5", N5, "5f00:0:5:e000::", Some(0)),
    ];
    let receivers = [(receiver(1, 0x101, None), 1), (receiver(2, 0x102, None), 2)];
    let receivers = receivers.iter().map(|(receiver, edge)| group::member(receiver, *edge)).collect();
    let mut bench = Bench::new(HEADEND, 5);
    for (text, len, ports) in [
        (SOURCE, 128, &[0][..]),
        ("2001:db8:4::", 48, &[1]),
        ("5f00:0:4::", 48, &[1]),
        ("2001:db8:5::", 48, &[2, 3]),
        ("5f00:0:5::", 48, &[2, 3]),
    ] {
        route(&mut bench, text, len, ports);
    }
    let (prefix, behavior) = (Prefix::host(address(ROOT_SID)), SidBehavior::EndDt6(TableId(0)));
    bench.apply(Command::AddSid { prefix, behavior });
    let entry = Group::new(group::record(&nodes, receivers)).unwrap().at(NodeIndex(0)).unwrap();
    bench.apply(Command::AddGroup(Box::new(entry)));
    bench
}

/// An edge below it: receivers at port 1, the parent at port 0, port 2 unused; and a SID to tunnel to.
fn edge(receivers: u16) -> Bench {
    let mut bench = Bench::new(group::EDGE, 3);
    route(&mut bench, HEADEND, 128, &[0]);
    route(&mut bench, "2001:db8:2::", 64, &[1]);
    let behavior = SidBehavior::EndMt { require_hmac: false };
    bench.apply(Command::AddSid { prefix: Prefix::host(address(group::SID)), behavior });
    let (prefix, behavior) = (Prefix::host(address(ROOT_SID)), SidBehavior::EndDt6(TableId(0)));
    bench.apply(Command::AddSid { prefix, behavior });
    let receivers: Vec<_> = (1..=receivers).map(|host| receiver(host, 0x100 + u32::from(host), None)).collect();
    bench.apply(Command::AddGroup(Box::new(group::entry(&receivers, None))));
    bench
}

/// The source's packet of this PSN.
fn data(psn: u8) -> Vec<u8> {
    group::response(0x04, SOURCE, psn, &[1; 64])
}

/// The same as it comes to the edge.
fn tunnelled_data(psn: u8) -> Vec<u8> {
    group::encapsulated(&data(psn))
}

fn acknowledge(responder: &str, psn: u8, syndrome: u8) -> Vec<u8> {
    group::response(0x11, responder, psn, &[syndrome, 0, 0, 1])
}

fn cnp(responder: &str, count: u32) -> Vec<u8> {
    group::response(0x81, responder, 0, &[&count.to_be_bytes()[..], &[0; 12]].concat())
}

/// A packet in a tunnel to the node's SID.
fn tunnelled(outer_source: &str, inner: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((inner.len() as u16).to_be_bytes());
    packet.extend([41, 64]);
    packet.extend(address(outer_source).octets());
    packet.extend(address(ROOT_SID).octets());
    packet.extend(inner);
    packet
}

/// What leaves by port 0 of ACKs, NAKs and CNPs: opcode, PSN, syndrome; each with a good ICRC.
fn upstream(sent: &[(u16, Vec<u8>)]) -> Vec<(u8, u8, u8)> {
    let read = |packet: &Vec<u8>| {
        let end = packet.len() - 4;
        assert_eq!(checksums::icrc(&packet[..end])[..], packet[end..]);
        (packet[48], packet[59], packet[60])
    };
    sent.iter().filter(|(port, packet)| *port == 0 && packet[6] == 17).map(|(_, packet)| read(packet)).collect()
}

/// D14, D15, D33, MT-9-2: checks of a response: sender, port, queue pair and PSN. A forged response changes no state:
/// the same valid responses have the same result at the source.
#[test]
fn forged_responses_leave_no_trace() {
    let mut bench = root();
    assert_eq!(bench.send(1, &acknowledge(N4, 100, ACK)), vec![]);
    for psn in 100..110 {
        bench.send(0, &data(psn));
    }
    let mut damaged = acknowledge(N4, 104, ACK);
    damaged[59] = 109;
    let mut other_pair = acknowledge(N4, 109, ACK);
    other_pair[55] ^= 1;
    let end = other_pair.len() - 4;
    let icrc = checksums::icrc(&other_pair[..end]);
    other_pair[end..].copy_from_slice(&icrc);
    let mut inflated = acknowledge(N4, 109, ACK);
    inflated[57] = 0x20;
    let icrc = checksums::icrc(&inflated[..end]);
    inflated[end..].copy_from_slice(&icrc);
    for (port, packet) in [
        (1, &acknowledge("2001:db8:4::2", 109, ACK)),
        (1, &acknowledge("2001:db8:2::1", 109, ACK)),
        (1, &acknowledge(N5, 109, ACK)),
        (4, &acknowledge(N4, 109, ACK)),
        (4, &acknowledge(N5, 109, NAK)),
        (0, &acknowledge(N4, 109, ACK)),
        (1, &damaged),
        (1, &other_pair),
        (1, &inflated),
        (4, &data(115)),
    ] {
        assert_eq!(bench.send(port, packet), vec![]);
    }
    assert_eq!(bench.drops(0), [("unexpected_responder", 1)]);
    let first = [("unexpected_responder", 3), ("wrong_qpn", 1), ("bad_icrc", 1), ("nothing_sent", 1)];
    assert_eq!(bench.drops(1), [&first[..], &[("implausible_psn", 1)]].concat());
    assert_eq!(bench.drops(4), [("wrong_incoming_port", 1), ("unexpected_responder", 2)]);
    assert_eq!(upstream(&bench.send(1, &acknowledge(N4, 104, ACK))), []);
    assert_eq!(upstream(&bench.send(2, &acknowledge(N5, 103, ACK))), [(0x11, 103, ACK)]);
    assert_eq!(upstream(&bench.send(3, &acknowledge(N5, 107, ACK))), [(0x11, 104, ACK)]);
}

/// D12, D14: out of a tunnel a response is accepted only from the child that made the tunnel: its outer source is the
/// child's loopback. Receivers and the source do not tunnel at all.
#[test]
fn tunnels_carry_responses_of_their_own_node_only() {
    let mut bench = root();
    bench.send(0, &data(100));
    let forged = acknowledge(N4, 100, ACK);
    for outer in ["2001:db8:9::1", N5, SOURCE, PROXY] {
        assert_eq!(bench.send(4, &tunnelled(outer, &forged)), vec![]);
    }
    assert_eq!(bench.send(4, &tunnelled(SOURCE, &data(101))), vec![]);
    assert_eq!(bench.drops(4), [("wrong_incoming_port", 1), ("unexpected_responder", 4)]);
    assert_eq!(bench.send(4, &tunnelled(N4, &forged)), vec![]);
    assert_eq!(upstream(&bench.send(4, &tunnelled(N5, &acknowledge(N5, 100, ACK)))), [(0x11, 100, ACK)]);

    let mut bench = edge(1);
    bench.send(0, &tunnelled_data(100));
    let of_receiver = acknowledge("2001:db8:2::1", 100, ACK);
    assert_eq!(bench.send(2, &tunnelled("2001:db8:2::1", &of_receiver)), vec![]);
    assert_eq!(bench.drops(2), [("unexpected_responder", 1)]);
    assert_eq!(upstream(&bench.send(1, &of_receiver)), [(0x11, 100, ACK)]);
}

/// D14: where the node has no route to a branch, any port of the inside is accepted, and no border.
#[test]
fn responses_by_a_border_are_accepted_only_from_its_own_hosts() {
    let mut bench = root();
    let prefix = Prefix::new(address("2001:db8:4::"), 48).unwrap();
    bench.apply(Command::RemoveRoute { table: TableId(0), prefix });
    bench.apply(Command::SetBorder { port: PortId(4), sources: Vec::new() });
    bench.send(0, &data(100));
    bench.send(2, &acknowledge(N5, 100, ACK));
    assert_eq!(bench.send(4, &acknowledge(N4, 100, ACK)), vec![]);
    assert_eq!(bench.drops(4), [("unexpected_responder", 1)]);
    assert_eq!(upstream(&bench.send(1, &acknowledge(N4, 100, ACK))), [(0x11, 100, ACK)]);
}

/// A replayed response has no effect, be it an ACK or a NAK (D16, R1).
#[test]
fn replayed_responses_change_nothing() {
    let mut bench = root();
    for psn in 100..110 {
        bench.send(0, &data(psn));
    }
    let responses = [acknowledge(N4, 102, ACK), acknowledge(N4, 103, NAK), acknowledge(N4, 105, ACK)];
    responses.iter().for_each(|packet| drop(bench.send(1, packet)));
    assert_eq!(upstream(&bench.send(2, &acknowledge(N5, 107, ACK))), [(0x11, 105, ACK)]);
    for _ in 0..1000 {
        responses.iter().for_each(|packet| assert_eq!(bench.send(1, packet), vec![]));
    }
    assert_eq!(upstream(&bench.send(1, &acknowledge(N4, 109, ACK))), [(0x11, 107, ACK)]);
}

/// R4: a NAK that is repeated is forwarded once. A NAK concerns its sender alone: the source retransmits from there,
/// which costs capacity and no data.
#[test]
fn a_flood_of_naks_reaches_the_source_once() {
    let mut bench = root();
    for psn in 100..110 {
        bench.send(0, &data(psn));
    }
    bench.send(2, &acknowledge(N5, 109, ACK));
    bench.send(1, &acknowledge(N4, 102, ACK));
    let forwarded: Vec<_> = (0..1000).flat_map(|_| upstream(&bench.send(1, &acknowledge(N4, 103, NAK)))).collect();
    assert_eq!(forwarded, [(0x11, 103, NAK)]);
}

/// A receiver can forge its own state. It cannot forge that of another towards the source: not by ACKs of PSNs not sent
/// yet, nor by its NAKs, nor can any number of them together.
#[test]
fn a_forging_receiver_affects_its_own_branch_alone() {
    let mut bench = edge(3);
    for psn in 100..110 {
        bench.send(0, &tunnelled_data(psn));
    }
    for psn in 100..=255 {
        for liar in ["2001:db8:2::2", "2001:db8:2::3"] {
            for syndrome in [ACK, NAK, RNR] {
                assert_eq!(upstream(&bench.send(1, &acknowledge(liar, psn, syndrome))), []);
            }
        }
    }
    // The honest one has five packets, and that is what is confirmed.
    assert_eq!(upstream(&bench.send(1, &acknowledge("2001:db8:2::1", 104, ACK))), [(0x11, 104, ACK)]);
    let acknowledged = bench.node.acknowledgements(GroupId(1)).unwrap().minimum_psn().unwrap();
    assert_eq!(acknowledged.get(), 105);
}

/// MT-9-3: a branch that floods CNPs loses its own, not those of others, and the source gets one in each window.
#[test]
fn a_flood_of_cnps_is_one_a_window() {
    const WINDOWS: u64 = 20;
    const FLOOD: u64 = 1000;
    let mut bench = root();
    let mut received = Vec::new();
    for tick in 0..WINDOWS * FLOOD {
        bench.now = Instant::from_ns(tick * WINDOW_NS / FLOOD);
        bench.node.tick(bench.now, &mut bench.pool);
        received.extend(upstream(&bench.drain()));
        received.extend(upstream(&bench.send(1, &cnp(N4, u32::MAX))));
        if tick % FLOOD == 0 {
            received.extend(upstream(&bench.send(2, &cnp(N5, 1))));
        }
    }
    // One at once, and one at the end of each window that has passed.
    assert_eq!(received, vec![(0x81, 0, 0); WINDOWS as usize]);
    assert_eq!(bench.drops(1), [("cnp_rate_limited", WINDOWS * (FLOOD - CNP_LIMIT))]);
    assert_eq!(bench.drops(2), []);
    let counters = bench.node.group_counters(GroupId(1)).unwrap();
    assert_eq!(counters.cnps_received, WINDOWS * (FLOOD + 1));
}

/// MT-9-3, D29: at an edge a receiver's CNP counts one, whatever it claims, so that a liar does not outweigh a receiver
/// that is congested indeed.
#[test]
fn a_receiver_cannot_exaggerate() {
    let mut bench = edge(2);
    bench.send(1, &cnp("2001:db8:2::1", 1));
    bench.send(1, &cnp("2001:db8:2::1", u32::MAX));
    (0..2).for_each(|_| drop(bench.send(1, &cnp("2001:db8:2::2", 1))));
    bench.now = Instant::from_ns(WINDOW_NS);
    bench.node.tick(bench.now, &mut bench.pool);
    let sent = bench.drain();
    assert_eq!(upstream(&sent).len(), 1);
    assert_eq!(sent[0].1[60..64], [0, 0, 0, 2]);
}
