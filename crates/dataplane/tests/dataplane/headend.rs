//! The headend: encapsulation of a source's packets, and which packets it accepts (D1, D4, D7, D9, D26, D27).

use crate::common::group::*;
use crate::common::{Bench, next_hop};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use srdma_dataplane::{Command, Cover, HmacKey, RouteAction, TableId};
use srdma_group::*;
use srdma_testkit::multicast::Receiver as ModelReceiver;
use srdma_wire::{PathMtu, Prefix};

const OTHER_EDGE: &str = "2001:db8:b::1";

/// N6 above the edges N1, at port 1, and N2, at port 2; the source is at port 0.
fn group(change: impl FnOnce(&mut Record)) -> Group {
    let nodes = [
        ("N6", HEADEND, "5f00:0:6:e000::", None),
        ("N1", EDGE, SID, Some(0)),
        ("N2", OTHER_EDGE, "5f00:0:2:e000::", Some(0)),
    ];
    let below_n1 = first_edge().into_iter().map(|receiver| member(&receiver, 1));
    let below_n2 = second_edge().into_iter().map(|receiver| member(&receiver, 2));
    let receivers = below_n1.chain(below_n2).collect();
    let mut record = Record { region: Some(REGION), path_mtu: PathMtu::Octets1024, ..record(&nodes, receivers) };
    change(&mut record);
    Group::new(record).unwrap()
}

/// Twelve receivers, one more than a TLV holds.
fn first_edge() -> Vec<ModelReceiver> {
    (1..=12).map(|host| receiver(host, 0x100 + u32::from(host), Some((u64::from(host) << 32, host.into())))).collect()
}

fn second_edge() -> Vec<ModelReceiver> {
    vec![receiver(99, 0x999, Some((7, 8)))]
}

fn regions(receivers: &[ModelReceiver]) -> Vec<(u64, u32)> {
    receivers.iter().filter_map(|receiver| receiver.region).collect()
}

fn headend_of(group: &Group) -> Bench {
    let mut bench = Bench::new(HEADEND, 3);
    for (prefix, len, port) in [(SOURCE, 128, 0), ("5f00:0:1::", 48, 1), ("5f00:0:2::", 48, 2)] {
        let prefix = Prefix::new(address(prefix), len).unwrap();
        let action = RouteAction::Via(vec![next_hop(port)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    bench.apply(Command::AddHmacKey { key_id: 42, key: HmacKey::new(b"first", Cover::Tlvs) });
    bench.apply(Command::AddGroup(Box::new(group.at(NodeIndex(0)).unwrap())));
    bench
}

/// The End.MT and MR TLVs of the whole group (D7: eleven receivers a TLV, PadN behind odd lists).
fn tlvs(with_regions: bool) -> Vec<u8> {
    let (first, second) = (first_edge(), second_edge());
    let mut tlvs = Vec::new();
    for (edge, receivers) in [(EDGE, &first[..11]), (EDGE, &first[11..]), (OTHER_EDGE, &second)] {
        tlvs.extend(end_mt_tlv(edge, receivers));
        if with_regions {
            tlvs.extend(mr_tlv(edge, &regions(receivers)));
        }
    }
    tlvs
}

/// The packet that N1 is to get; its flow label is the headend's affair.
fn expected(inner: &[u8], tlvs: &[u8]) -> Vec<u8> {
    let mut inner = inner.to_vec();
    inner[7] -= 1;
    let mut packet = with_tlvs(&inner, &[tlvs]);
    // Traffic class, ECN included, goes outward (RFC 6040).
    packet[..2].copy_from_slice(&[inner[0], inner[1] & 0xF0]);
    packet
}

fn without_flow_label(mut packet: Vec<u8>) -> Vec<u8> {
    packet[1] &= 0xF0;
    packet[2..4].fill(0);
    packet
}

/// MT-5.1-4, MT-5.2-1, D1, D4, D7, D27: octet by octet.
#[test]
fn headers_hold_every_edges_receivers() {
    let mut data = inner(0x0A, 0, &[1; 100], true);
    data[1] |= 0x30;
    let sent = headend_of(&group(|_| ())).send(0, &data);
    let to_n1 = expected(&data, &tlvs(true));
    let mut to_n2 = to_n1.clone();
    to_n2[24..40].copy_from_slice(&address("5f00:0:2:e000::").octets());
    let sent: Vec<_> = sent.into_iter().map(|(port, packet)| (port, without_flow_label(packet))).collect();
    assert_eq!(sent, [(1, to_n1), (2, to_n2)]);
}

/// An edge accepts the packets of the headend, regions included.
#[test]
fn edges_understand_their_headend() {
    let group = group(|_| ());
    let data = inner(0x0B, 500, &[1; 100], true);
    let mut at_edge = edge(false);
    at_edge.apply(Command::AddGroup(Box::new(group.at(NodeIndex(1)).unwrap())));
    let encapsulated = headend_of(&group).send(0, &data).remove(0).1;
    let mut once_decremented = data;
    once_decremented[7] -= 1;
    assert_eq!(at_edge.send(0, &encapsulated), copies(&once_decremented, &first_edge()));
}

/// D7: provisioned lists leave the SRH with its one segment; without a region no MR TLV travels.
#[test]
fn headers_are_as_short_as_possible() {
    let data = inner(0x04, 0, &[1; 100], false);
    let provisioned = group(|record| record.policy.lists = ListMode::Provisioned);
    let sent = headend_of(&provisioned).send(0, &data);
    assert_eq!(without_flow_label(sent[0].1.clone()), expected(&data, &[]));
    assert_eq!(provisioned.overhead().octets(), 40 + 24);
    let without_region = group(|record| record.region = None);
    let sent = headend_of(&without_region).send(0, &data);
    assert_eq!(without_flow_label(sent[0].1.clone()), expected(&data, &tlvs(false)));
}

/// D231: behind each list of a group of several regions is an MR TLV without any.
#[test]
fn lists_of_several_regions_refer_to_the_edges_entry() {
    let data = inner(0x04, 0, &[1; 100], false);
    let several = group(|record| {
        record.more_regions = vec![SourceRegion { base: 0, length: 64, rkey: 7 }];
        let further = ReceiverRegion { base: 0, rkey: 1 };
        record.receivers.iter_mut().for_each(|receiver| receiver.more_regions = vec![further]);
    });
    let (first, second) = (first_edge(), second_edge());
    let mut tlvs = Vec::new();
    for (edge, receivers) in [(EDGE, &first[..11]), (EDGE, &first[11..]), (OTHER_EDGE, &second)] {
        tlvs.extend([end_mt_tlv(edge, receivers), mr_tlv(edge, &[])].concat());
    }
    let sent = headend_of(&several).send(0, &data);
    assert_eq!(without_flow_label(sent[0].1.clone()), expected(&data, &tlvs));
    assert_eq!(several.overhead().octets(), 40 + 24 + tlvs.len());
}

/// MT-9-1, D4, D9: the HMAC covers source, Last Entry, Flags, D, key id, Segment List and the lists; with a new key
/// headers are signed again.
#[test]
fn signed_headers_cover_the_lists() {
    let data = inner(0x04, 0, &[1; 100], false);
    let group = group(|record| record.policy.hmac_key_id = Some(42));
    let mut bench = headend_of(&group);
    let lists = |lists: &[u8]| {
        // Every list but the first, of eleven, is odd, and the padding behind it is not covered.
        let mut covered = Vec::new();
        let mut rest = lists;
        while let [kind, len, ..] = rest {
            let (tlv, after) = rest.split_at(2 + usize::from(*len));
            covered.extend(if *kind == 4 { &[][..] } else { tlv });
            rest = after;
        }
        covered
    };
    let signed = |secret: &[u8]| {
        let mut hmac_tlv = vec![5, 38, 0x80, 0, 0, 0, 0, 42];
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
        mac.update(&address(HEADEND).octets());
        mac.update(&[0, 0]);
        mac.update(&hmac_tlv[2..]);
        mac.update(&address(PROXY).octets());
        mac.update(&lists(&tlvs(true)));
        hmac_tlv.extend(mac.finalize().into_bytes());
        expected(&data, &[tlvs(true), hmac_tlv].concat())
    };
    assert_eq!(without_flow_label(bench.send(0, &data)[0].1.clone()), signed(b"first"));
    bench.apply(Command::AddHmacKey { key_id: 42, key: HmacKey::new(b"second", Cover::Tlvs) });
    assert_eq!(without_flow_label(bench.send(0, &data)[0].1.clone()), signed(b"second"));
}

/// D137: the headend of a group that is committed for the first time forwards nothing before the first PSN, and all
/// after it; one that has lost an earlier entry, or whose entry is restored, accepts any PSN.
#[test]
fn a_new_group_begins_at_its_first_psn() {
    let data = |psn: u32| {
        let mut data = inner(0x04, 0, &[1; 16], false);
        data[40 + 8 + 9..][..3].copy_from_slice(&psn.to_be_bytes()[1..]);
        data
    };
    let entry = |epoch| group(|record| record.epoch = epoch).at(NodeIndex(0)).unwrap();
    let commit = |bench: &mut Bench, epoch, is_first| {
        bench.apply(Command::PrepareGroup(Box::new(entry(epoch))));
        bench.apply(Command::CommitGroup { id: GroupId(1), epoch, is_first });
    };
    let new = || {
        let mut bench = headend_of(&group(|_| ()));
        bench.apply(Command::RemoveGroup(GroupId(1)));
        bench
    };
    let mut bench = new();
    commit(&mut bench, 2, true);
    for psn in [140, 101, 99] {
        assert_eq!((bench.send(0, &data(psn)).len(), bench.node.awaits_first_psn(GroupId(1))), (0, true));
    }
    commit(&mut bench, 3, false);
    assert_eq!(bench.send(0, &data(140)).len(), 0, "the change has forwarded nothing");
    assert_eq!(bench.drops(0), [("before_first_psn", 4)]);
    assert_eq!((bench.send(0, &data(100)).len(), bench.node.awaits_first_psn(GroupId(1))), (2, false));
    assert_eq!(bench.send(0, &data(140)).len(), 2);
    commit(&mut bench, 4, false);
    assert_eq!(bench.send(0, &data(141)).len(), 2);

    let mut restored = new();
    restored.apply(Command::RestoreGroup(Box::new(entry(2))));
    assert_eq!(restored.send(0, &data(140)).len(), 2);
    let mut changed = new();
    commit(&mut changed, 3, false);
    assert_eq!(changed.send(0, &data(140)).len(), 2, "it has lost the entry before, which was not the first");

    // Another node becomes the headend, and begins; when this one is the headend again it goes on (D289).
    let below_another = |record: &mut Record| {
        let nodes = [("N5", "2001:db8:5::1", "5f00:0:5:e000::", None), ("N6", HEADEND, "5f00:0:6:e000::", Some(0))];
        let edges = [("N1", EDGE, SID, Some(1)), ("N2", OTHER_EDGE, "5f00:0:2:e000::", Some(1))];
        record.receivers.iter_mut().for_each(|receiver| receiver.edge = NodeIndex(receiver.edge.0 + 1));
        record.tree = self::record(&[nodes, edges].concat(), record.receivers.clone()).tree;
        record.epoch = 3;
    };
    let mut replaced = new();
    commit(&mut replaced, 2, true);
    replaced.apply(Command::PrepareGroup(Box::new(group(below_another).at(NodeIndex(1)).unwrap())));
    replaced.apply(Command::CommitGroup { id: GroupId(1), epoch: 3, is_first: false });
    assert!(!replaced.node.awaits_first_psn(GroupId(1)));
    commit(&mut replaced, 4, false);
    assert_eq!(replaced.send(0, &data(140)).len(), 2);
}

/// D26, MT-9-2: SEND and WRITE of the source are replicated; its other packets, and packets with a forged source, are
/// not.
#[test]
fn only_the_sources_requests_are_replicated() {
    for opcode in 0..0x0C {
        let data = inner(opcode, 0, &[1; 16], false);
        assert_eq!(headend_of(&group(|_| ())).send(0, &data).len(), 2, "opcode {opcode:#x}");
    }
    let dropped = |port, packet: &[u8]| {
        let mut bench = headend_of(&group(|_| ()));
        let sent = bench.send(port, packet);
        assert!(sent.iter().all(|(port, packet)| *port == 0 && packet[48] == 0x11), "{sent:?}");
        (sent.len(), bench.drops(port))
    };
    // With nothing outstanding the turn of a refused request has come: NAK, invalid request.
    for opcode in [0x0C, 0x13, 0x14, 0x16, 0x17] {
        assert_eq!(dropped(0, &request(opcode, 0, &[0; 28], false)), (1, vec![("not_multicastable", 1)]));
    }
    for opcode in [0x0D, 0x11, 0x81] {
        assert_eq!(dropped(0, &request(opcode, 0, &[0; 28], false)), (0, vec![("not_multicastable", 1)]));
    }
    let data = inner(0x04, 0, &[1; 16], false);
    assert_eq!(dropped(1, &data), (0, vec![("wrong_incoming_port", 1)]));
    let mut with_options = data.clone();
    with_options.splice(40..40, [17, 0, 1, 4, 0, 0, 0, 0]);
    (with_options[5], with_options[6]) = (with_options[5] + 8, 60);
    assert_eq!(dropped(0, &with_options), (0, vec![("extension_headers", 1)]));
    let mut exhausted = data;
    exhausted[7] = 1;
    let mut bench = headend_of(&group(|_| ()));
    let error = &bench.send(0, &exhausted)[0].1;
    assert_eq!((error[6], error[40], error[41]), (58, 3, 0));
}

/// D33: a packet with a damaged opcode is no request of the source. A refusal would be fatal.
#[test]
fn damage_is_not_refused_but_dropped() {
    let mut bench = headend_of(&group(|_| ()));
    let mut packet = request(0x04, 0, &[0; 28], false);
    packet[48] ^= 0x08;
    assert_eq!(packet[48], 0x0C, "a READ");
    assert_eq!((bench.send(0, &packet), bench.drops(0)), (vec![], vec![("bad_icrc", 1)]));
}

/// D24, D26: of two refused requests the earlier one's turn comes first.
#[test]
fn the_first_refused_request_is_answered() {
    let mut bench = headend_of(&group(|_| ()));
    let at = |opcode, psn: u8| {
        let mut packet = request(opcode, 0, &[0; 28], false);
        packet[59] = psn;
        let end = packet.len() - 4;
        let icrc = srdma_testkit::checksums::icrc(&packet[..end]);
        packet[end..].copy_from_slice(&icrc);
        packet
    };
    bench.send(0, &at(0x04, 100));
    assert_eq!(bench.send(0, &at(0x0C, 101)), []);
    assert_eq!(bench.send(0, &at(0x0C, 103)), []);
    let ack = |edge| response(0x11, edge, 100, &[0x1F, 0, 0, 1]);
    assert_eq!(bench.send(1, &ack(EDGE)), []);
    let sent = bench.send(2, &ack(OTHER_EDGE));
    let told: Vec<_> = sent.iter().map(|(port, packet)| (*port, packet[59], packet[60])).collect();
    assert_eq!(told, [(0, 100, 0x1F), (0, 101, 0x61)]);
}

/// Data that were dropped were not sent downstream: an acknowledgement of them is invalid (rule R1, D15).
#[test]
fn too_long_packets_are_not_replicated() {
    let mut bench = headend_of(&group(|record| record.link_mtu = 2000));
    assert_eq!(bench.send(0, &inner(0x04, 0, &[1; 1900], false))[0].1[40], 2);
    assert_eq!(bench.node.acknowledgements(GroupId(1)).unwrap().highest_psn(), None);
    assert_eq!(bench.node.group_counters(GroupId(1)).unwrap().data_packets, 0);
}
