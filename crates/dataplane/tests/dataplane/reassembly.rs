//! Fragments of tunnel packets to SIDs (RFC 8200 section 4.5, RFC 5722, RFC 6946; D245). The fragments are scapy's, by
//! `tools/fragments.py`.

use crate::common::{Bench, address, port_mac, prefix};
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};

const LOOPBACK: &str = "2001:db8:ffff::1";
const SID: &str = "fd00:1::d6";
const SECOND_NS: u64 = 1_000_000_000;

/// Octets before the payload of a fragment without an SRH, and where its Fragment header is.
const HEADERS: usize = 48;
const FRAGMENT: usize = 40;

/// The source is at port 0, everything else at port 1.
fn node() -> Bench {
    let mut bench = Bench::new(LOOPBACK, 2);
    bench.route("::/0", 1);
    bench.route("2001:db8:5::/48", 0);
    bench.apply(Command::AddSid { prefix: prefix(SID), behavior: SidBehavior::EndDt6(TableId(0)) });
    bench
}

/// The same as workers of one node.
fn workers() -> Vec<Bench> {
    let worker = |worker| {
        let mut bench = Bench::with(LOOPBACK, 2, |config| config.worker = worker);
        bench.route("::/0", 1);
        bench.apply(Command::AddSid { prefix: prefix(SID), behavior: SidBehavior::EndDt6(TableId(0)) });
        bench
    };
    Worker::all(3).map(worker).collect()
}

/// The packets of a name.
fn scapy(name: &str) -> Vec<Vec<u8>> {
    let text = include_str!("../../../../testdata/fragments/scapy.txt");
    let packets = text.lines().filter_map(|line| line.split_once(' ')).filter(|(own, _)| *own == name);
    packets.map(|(_, octets)| hex::decode(octets).unwrap()).collect()
}

/// The packet that scapy has fragmented, as the node forwards it.
fn inner() -> Vec<u8> {
    let mut packet = scapy("inner").remove(0);
    packet[7] -= 1;
    packet
}

/// The fragment with another offset, in octets, and the M flag.
fn moved(fragment: &[u8], offset: u16, more: bool) -> Vec<u8> {
    let mut packet = fragment.to_vec();
    packet[FRAGMENT + 2..FRAGMENT + 4].copy_from_slice(&(offset | u16::from(more)).to_be_bytes());
    packet
}

/// The fragment with so many octets of its payload.
fn cut(fragment: &[u8], payload: usize) -> Vec<u8> {
    let mut packet = fragment[..HEADERS + payload].to_vec();
    packet[4..6].copy_from_slice(&(payload as u16 + 8).to_be_bytes());
    packet
}

/// The fragment of another packet.
fn of_packet(fragment: &[u8], identification: u32) -> Vec<u8> {
    let mut packet = fragment.to_vec();
    packet[FRAGMENT + 4..HEADERS].copy_from_slice(&identification.to_be_bytes());
    packet
}

/// Type, code and pointer of the ICMPv6 error that the source is sent.
fn error(sent: &[(u16, Vec<u8>)]) -> (u8, u8, u32) {
    let [(0, packet)] = sent else { panic!("{sent:?}") };
    assert_eq!((packet[6], &packet[24..40]), (58, &address("2001:db8:5::5").octets()[..]));
    (packet[40], packet[41], u32::from_be_bytes(packet[44..48].try_into().unwrap()))
}

/// D245.
#[test]
fn fragments_make_the_packet_in_any_order() {
    for name in ["plain", "srh"] {
        let fragments = scapy(name);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut bench = node();
            let sent = order.map(|index: usize| bench.send(0, &fragments[index]));
            assert_eq!(sent, [vec![], vec![], vec![(1, inner())]], "{name} {order:?}");
            assert_eq!((bench.drops(0), bench.pool.in_use()), (vec![], 0));
            assert_eq!(bench.node.next_deadline(), None, "nothing waits any more");
        }
    }
}

/// D297: fragments that come by several ports, or in tunnels of their own, arrive at several workers.
#[test]
fn fragments_at_several_workers_make_the_packet() {
    for name in ["plain", "srh"] {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let (mut workers, mut sent, mut handed_over) = (workers(), Vec::new(), Vec::new());
            for (number, fragment) in order.into_iter().zip(scapy(name)) {
                let Bench { node, pool, now, .. } = &mut workers[number];
                let octets = [&port_mac(0).0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD], &fragment].concat();
                node.receive(*now, PortId(0), &mut vec![Frame::from_octets(&octets, pool).unwrap()], pool);
                node.take_handovers(&mut handed_over);
                let others = handed_over.drain(..).map(|Handover { to, note, frame }| {
                    let octets = frame.to_vec(pool);
                    frame.release(pool);
                    (to, note, octets)
                });
                let others: Vec<_> = others.collect();
                sent.extend(workers[number].drain());
                for (to, note, octets) in others {
                    let Bench { node, pool, now, .. } = &mut workers[to];
                    let frame = Frame::from_octets(&octets, pool).unwrap();
                    node.take_over(*now, &note, frame, pool);
                    sent.extend(workers[to].drain());
                }
            }
            assert_eq!(sent, [(1, inner())], "{name} {order:?}");
            for worker in &workers {
                assert_eq!((worker.drops(0), worker.pool.in_use(), worker.node.next_deadline()), (vec![], 0, None));
            }
        }
    }
}

/// A mark on one fragment is one on the packet (RFC 3168 section 5.3); the inner one is not ECN-capable (RFC 6040).
#[test]
fn a_marked_fragment_marks_the_packet() {
    for marked in 0..3 {
        let mut bench = node();
        let mut fragments = scapy("plain");
        fragments[marked][1] |= 0x30;
        fragments.iter().for_each(|fragment| assert_eq!(bench.send(0, fragment), []));
        assert_eq!(bench.drops(0), [("congestion_experienced", 1)]);
    }
}

#[test]
fn a_duplicate_is_ignored_and_counted() {
    let (mut bench, fragments) = (node(), scapy("plain"));
    for index in [0, 0, 2, 2, 1] {
        bench.send(0, &fragments[index]);
    }
    assert_eq!(bench.drops(0), [("fragment_duplicate", 2)]);
    assert_eq!(bench.node.next_deadline(), None, "the packet has left");
}

/// D245, RFC 5722: all that has come and what still comes of the packet is discarded.
#[test]
fn an_overlap_refuses_the_whole_packet() {
    let fragments = scapy("plain");
    let other_octets = {
        let mut packet = fragments[0].clone();
        packet[100] ^= 1;
        packet
    };
    let overlaps = [
        moved(&fragments[1], 944, true),
        moved(&fragments[1], 8, true),
        moved(&fragments[2], 1800, true),
        moved(&fragments[2], 1912, true),
        moved(&fragments[2], 1912, false),
        moved(&fragments[0], 952, false),
        other_octets,
    ];
    for (index, overlap) in overlaps.iter().enumerate() {
        let mut bench = node();
        assert_eq!([&fragments[0], &fragments[2]].map(|fragment| bench.send(0, fragment)), [vec![], vec![]]);
        assert_eq!(bench.send(0, overlap), [], "no error is sent");
        assert_eq!(bench.drops(0), [("fragment_overlap", 3)], "{index}");
        for fragment in &fragments {
            assert_eq!(bench.send(0, fragment), []);
        }
        assert_eq!((bench.drops(0), bench.pool.in_use()), (vec![("fragment_overlap", 6)], 0));
    }
    // The last one first: nothing lies behind its end.
    let mut bench = node();
    bench.send(0, &fragments[1]);
    bench.send(0, &moved(&fragments[2], 8, false));
    assert_eq!(bench.drops(0), [("fragment_overlap", 2)]);
}

/// RFC 8200 section 4.5: reported, at Payload Length and at Fragment Offset.
#[test]
fn malformed_fragments_are_refused() {
    let fragments = scapy("plain");
    let mut bench = node();
    assert_eq!(error(&bench.send(0, &cut(&fragments[0], 951))), (4, 0, 4));
    assert_eq!(error(&bench.send(0, &moved(&fragments[0], 0xFFF8, true))), (4, 0, 42));
    assert_eq!(bench.send(0, &cut(&fragments[1], 0)), []);
    assert_eq!(bench.drops(0), [("fragment_malformed", 3)]);
    assert_eq!(bench.send(0, &cut(&fragments[0], 0)[..44]), []);
    assert_eq!(bench.node.next_deadline(), None, "nothing waits");
}

/// RFC 6946: apart from fragments with the same Identification.
#[test]
fn an_atomic_fragment_is_a_packet() {
    let (mut bench, fragments) = (node(), scapy("plain"));
    bench.send(0, &fragments[1]);
    let packet = scapy("inner").remove(0);
    let mut atomic = moved(&fragments[0][..HEADERS], 0, false);
    atomic.extend(&packet);
    atomic[4..6].copy_from_slice(&(packet.len() as u16 + 8).to_be_bytes());
    assert_eq!(bench.send(0, &atomic), [(1, inner())]);
    bench.send(0, &fragments[0]);
    assert_eq!(bench.send(0, &fragments[2]), [(1, inner())]);
    assert_eq!(bench.drops(0), []);

    // One Fragment header and no more.
    let mut nested = atomic.clone();
    nested[FRAGMENT] = 44;
    nested.splice(HEADERS..HEADERS, atomic[FRAGMENT..HEADERS].iter().copied());
    nested[4..6].copy_from_slice(&(packet.len() as u16 + 16).to_be_bytes());
    assert_eq!(error(&bench.send(0, &nested)), (4, 4, 40));
    assert_eq!(bench.drops(0), [("upper_layer", 1)]);
}

#[test]
fn fragments_wait_for_sixty_seconds() {
    let (mut bench, fragments) = (node(), scapy("plain"));
    let begin = bench.now;
    bench.send(0, &fragments[0]);
    bench.now = begin.after_ns(59 * SECOND_NS);
    bench.send(0, &fragments[1]);
    let deadline = begin.after_ns(60 * SECOND_NS);
    assert_eq!(bench.node.next_deadline(), Some(deadline), "the first one counts");
    bench.node.tick(deadline, &mut bench.pool);
    let expired =
        bench.node.own_drops().iter().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.name(), count));
    assert_eq!(expired.collect::<Vec<_>>(), [("fragment_timeout", 2)]);
    assert_eq!(bench.send(0, &fragments[2]), [], "the others are gone");
    assert_eq!(bench.drops(0), []);
}

/// No stream of fragments holds more than so much memory: the packet that has waited longest gives way.
#[test]
fn memory_is_bounded() {
    let (mut bench, fragments) = (node(), scapy("plain"));
    for identification in 0..1000 {
        bench.now = bench.now.after_ns(1);
        assert_eq!(bench.send(0, &of_packet(&fragments[0], identification)), []);
    }
    assert_eq!(bench.drops(0), [("fragment_limit", 1000 - 64)]);
    let rest = |bench: &mut Bench, identification| {
        bench.send(0, &of_packet(&fragments[1], identification));
        bench.send(0, &of_packet(&fragments[2], identification)).len()
    };
    assert_eq!((rest(&mut bench, 999), rest(&mut bench, 937)), (1, 1), "the last ones are whole");
    assert_eq!(rest(&mut bench, 1), 0);

    // Too long, and too many.
    let mut bench = node();
    bench.send(0, &moved(&fragments[0], 9304, true));
    assert_eq!(bench.drops(0), [("fragment_limit", 1)]);
    let mut bench = node();
    let piece = cut(&fragments[0], 8);
    for index in 0..40 {
        bench.send(0, &moved(&piece, 8 * index, true));
    }
    assert_eq!(bench.drops(0), [("fragment_limit", 40)]);
    assert_eq!(bench.pool.in_use(), 0);
}

/// D245: SIDs of a packet's middle do not look at fragments, which follow the program one by one.
#[test]
fn fragments_pass_other_sids() {
    let mut bench = node();
    bench.apply(Command::AddSid { prefix: prefix("5f00:0:100::/48"), behavior: SidBehavior::End(Flavors::MICRO) });
    let mut fragment = scapy("plain").remove(1);
    fragment[24..40].copy_from_slice(&address("5f00:0:100:200::").octets());
    let sent = bench.send(0, &fragment);
    assert_eq!((sent.len(), sent[0].0, &sent[0].1[24..40]), (1, 1, &address("5f00:0:200::").octets()[..]));
    assert_eq!(sent[0].1[FRAGMENT..], fragment[FRAGMENT..]);
}
