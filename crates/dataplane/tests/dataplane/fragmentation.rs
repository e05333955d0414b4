//! Tunnel packets of a headend whose source need not send less (RFC 2473 section 7.1, D288). What is expected is
//! scapy's, by `tools/fragments.py`.

use crate::common::{Bench, address, ipv6, prefix};
use proptest::prelude::*;
use srdma_dataplane::*;
use srdma_frame::Pool;
use std::collections::BTreeSet;

const LOOPBACK: &str = "2001:db8:ffff::1";
const SID: &str = "fd00:1::d6";
const VIA: &str = "fd00:2::1";
const SOURCE: &str = "2001:db8:5::9";
const DESTINATION: &str = "2001:db8:1::1";
/// The Identification in scapy's fragments.
const SEED: u64 = 0x0102_0304;

/// The packets of a name.
fn scapy(name: &str) -> Vec<Vec<u8>> {
    let text = include_str!("../../../../testdata/fragments/scapy.txt");
    let packets = text.lines().filter_map(|line| line.split_once(' ')).filter(|(own, _)| *own == name);
    packets.map(|(_, octets)| hex::decode(octets).unwrap()).collect()
}

/// A headend: the source is at port 0, the tunnel leaves by port 1.
fn headend(mtu: u16, segments: &[&str], mode: EncapsMode) -> Bench {
    headend_of(Worker::ALONE, mtu, segments, mode)
}

fn headend_of(worker: Worker, mtu: u16, segments: &[&str], mode: EncapsMode) -> Bench {
    let mut bench = Bench::with(LOOPBACK, 2, |config| {
        config.worker = worker;
        config.ports[1].link_mtu = mtu;
        config.secret_seed = SEED;
    });
    bench.route("fd00::/16", 1);
    bench.route("2001:db8:5::/48", 0);
    let segments = segments.iter().map(|segment| address(segment)).collect();
    let action = RouteAction::Encaps { segments, mode, hmac_key_id: None };
    bench.apply(Command::AddRoute { table: TableId(0), prefix: prefix("2001:db8:1::/48"), action });
    bench
}

/// The packet of the fragments, by the end of the tunnel.
fn reassembled(fragments: &[(u16, Vec<u8>)]) -> Vec<(u16, Vec<u8>)> {
    let mut end = Bench::new("2001:db8:ffff::2", 2);
    end.route("2001:db8:1::/48", 1);
    end.apply(Command::AddSid { prefix: prefix(VIA), behavior: SidBehavior::End(Flavors::default()) });
    end.apply(Command::AddSid { prefix: prefix(SID), behavior: SidBehavior::EndDt6(TableId(0)) });
    let packets = fragments.iter().flat_map(|(_, fragment)| end.send(0, fragment)).collect();
    assert_eq!(end.drops(0), []);
    packets
}

/// D288. The flow label is the headend's.
#[test]
fn the_least_packet_leaves_in_fragments() {
    let least = scapy("least").remove(0);
    for (name, segments, mode) in [("one", &[SID][..], EncapsMode::Reduced), ("two", &[VIA, SID], EncapsMode::Encaps)] {
        let mut bench = headend(1280, segments, mode);
        let sent = bench.send(0, &least);
        let labels: BTreeSet<[u8; 3]> = sent.iter().map(|(_, packet)| [packet[1], packet[2], packet[3]]).collect();
        let [label] = Vec::from_iter(labels)[..] else { panic!("fragments take one path") };
        assert_ne!(label, [0; 3]);
        let expected = scapy(name).into_iter().map(|mut packet| {
            packet[1..4].copy_from_slice(&label);
            (1, packet)
        });
        assert_eq!(sent, expected.collect::<Vec<_>>(), "{name}");
        assert_eq!(bench.drops(0), []);
    }
}

/// D288: a longer one, and one that no headend has encapsulated, is answered by its source.
#[test]
fn a_source_that_can_send_less_is_told() {
    let too_big = |sent: Vec<(u16, Vec<u8>)>, mtu: u32| {
        let [(0, error)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((error[40], error[41], &error[44..48]), (2, 0, &mtu.to_be_bytes()[..]));
    };
    let mut bench = headend(1280, &[SID], EncapsMode::Reduced);
    too_big(bench.send(0, &ipv6(SOURCE, DESTINATION, 0, 17, &[0; 1241])), 1280);
    too_big(bench.send(0, &ipv6(SOURCE, "fd00:3::1", 0, 17, &[0; 1241])), 1280);
    assert_eq!(bench.drops(0), [("packet_too_big", 2)]);
    let mut bench = headend(1400, &[SID], EncapsMode::Reduced);
    too_big(bench.send(0, &ipv6(SOURCE, DESTINATION, 0, 17, &[0; 1321])), 1360);
    assert_eq!(bench.send(0, &ipv6(SOURCE, DESTINATION, 0, 17, &[0; 1320])).len(), 1, "it fits");
}

/// D288: of two packets, and of packets of two workers of a node.
#[test]
fn identifications_differ() {
    let mut found = BTreeSet::new();
    for worker in Worker::all(3) {
        let mut bench = headend_of(worker, 1280, &[SID], EncapsMode::Reduced);
        for _ in 0..10 {
            let sent = bench.send(0, &scapy("least")[0]);
            let own: BTreeSet<Vec<u8>> = sent.iter().map(|(_, fragment)| fragment[44..48].to_vec()).collect();
            assert_eq!((sent.len(), own.len()), (2, 1), "fragments of one packet have the same");
            found.extend(own);
        }
    }
    assert_eq!(found.len(), 30);
}

proptest! {
    /// D288: any packet that fits no link less, any MTU and any list: fragments fit, and their end has the packet.
    #[test]
    fn the_end_of_the_tunnel_has_the_packet(
        octets in 0usize..=1240, mtu in 1280u16..1420, layers in 1usize..3, reduced: bool,
    ) {
        let payload: Vec<u8> = (0..octets).map(|number| (number * 7) as u8).collect();
        let packet = ipv6(SOURCE, DESTINATION, 0, 253, &payload);
        let mode = if reduced { EncapsMode::Reduced } else { EncapsMode::Encaps };
        let mut bench = headend(mtu, &[VIA, SID][2 - layers..], mode);
        let sent = bench.send(0, &packet);
        prop_assert!(sent.iter().all(|(port, fragment)| *port == 1 && fragment.len() <= usize::from(mtu)));
        let mut expected = packet;
        expected[7] -= 2;
        prop_assert_eq!(reassembled(&sent), [(1, expected)]);
    }
}

/// Without chunks the fragments are dropped and counted, as other packets are.
#[test]
fn fragments_need_buffers() {
    let mut bench = headend(1280, &[SID], EncapsMode::Reduced);
    bench.pool = Pool::new(1);
    assert_eq!(bench.send(0, &scapy("least")[0]), []);
    assert_eq!(bench.drops(0), [("no_buffer", 2)]);
}
