//! The SRH's HMAC against changes, replay and reuse, and the keys' life (MT-9-1, D9).

use crate::common::group::*;
use crate::common::{Bench, next_hop};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use srdma_dataplane::{Command, ConfigError, Cover, HmacKey, RouteAction, TableId};
use srdma_group::*;
use srdma_testkit::multicast;
use srdma_wire::Prefix;

const OLD: (u32, &[u8]) = (1, b"the old key, which is to go.....");
const NEW: (u32, &[u8]) = (2, b"the new key, which is to come...");

fn add(key: (u32, &[u8])) -> Command {
    Command::AddHmacKey { key_id: key.0, key: HmacKey::new(key.1, Cover::Tlvs) }
}

fn receivers() -> [multicast::Receiver; 2] {
    [receiver(1, 0x101, None), receiver(2, 0x102, None)]
}

/// N6 above the edge N1, signing with a key.
fn tree(key_id: u32) -> Group {
    let nodes = [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", EDGE, SID, Some(0))];
    let members = receivers().iter().map(|receiver| member(receiver, 1)).collect();
    let policy = Policy { hmac_key_id: Some(key_id), lists: ListMode::Tlv, ..Policy::default() };
    Group::new(Record { policy, epoch: key_id, ..record(&nodes, members) }).unwrap()
}

fn take_part(bench: &mut Bench, index: usize, key_id: u32) {
    bench.apply(Command::AddGroup(Box::new(tree(key_id).at(NodeIndex(index)).unwrap())));
}

/// The headend: the source is at port 0, the edge behind port 1.
fn headend() -> Bench {
    let mut bench = Bench::new(HEADEND, 2);
    for (prefix, len, port) in [(SOURCE, 128, 0), ("5f00:0:1::", 48, 1), (EDGE, 128, 1)] {
        let prefix = Prefix::new(address(prefix), len).unwrap();
        let action = RouteAction::Via(vec![next_hop(port)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    bench
}

fn data(number: u8) -> Vec<u8> {
    inner(0x04, 0, &[number; 32], false)
}

/// The packets that the receivers get: the headend has decremented the hop limit once.
fn delivered(number: u8) -> Vec<(u16, Vec<u8>)> {
    let mut inner = data(number);
    inner[7] -= 1;
    copies(&inner, &receivers())
}

/// The order of a rotation: the new key to all nodes, the headend over to it, the old key away. Between any two steps
/// at any node, each packet is delivered, including those in flight; unsigned packets, and those signed with a removed
/// key, are not.
#[test]
fn keys_rotate_without_a_gap() {
    let (mut headend, mut edge) = (headend(), edge(true));
    for bench in [&mut headend, &mut edge] {
        bench.apply(add(OLD));
    }
    take_part(&mut headend, 0, OLD.0);
    take_part(&mut edge, 1, OLD.0);
    let mut number = 0;
    let mut signed_with = Vec::new();
    let mut on_its_way: Option<Vec<u8>> = None;
    let mut between_steps = |headend: &mut Bench, edge: &mut Bench| {
        if let Some(packet) = on_its_way.take() {
            assert_eq!(edge.send(0, &packet), delivered(number), "on its way during a step");
        }
        number += 1;
        let packet = headend.send(0, &data(number)).remove(0).1;
        // Behind the one list, of two receivers.
        let key_id = packet[40 + 24 + 64 + 4..][..4].try_into().unwrap();
        signed_with.push(u32::from_be_bytes(key_id));
        assert_eq!(edge.send(0, &packet), delivered(number));
        let refused_before = edge.drops(0).iter().map(|(_, count)| count).sum::<u64>();
        let mut forged = packet.clone();
        forged[40 + 24 + 64 + 8] ^= 1;
        let inner_at = packet.len() - data(number).len();
        let list = end_mt_tlv(EDGE, &receivers());
        for packet in [forged, with_tlvs(&packet[inner_at..], &[&list]), encapsulated(&packet[inner_at..])] {
            assert_eq!(edge.send(0, &packet), []);
        }
        assert_eq!(edge.drops(0).iter().map(|(_, count)| count).sum::<u64>(), refused_before + 3);
        number += 1;
        let packet = headend.send(0, &data(number)).remove(0).1;
        on_its_way = Some(packet.clone());
        packet
    };
    between_steps(&mut headend, &mut edge);
    edge.apply(add(NEW));
    between_steps(&mut headend, &mut edge);
    headend.apply(add(NEW));
    let with_old_key = between_steps(&mut headend, &mut edge);
    assert_eq!(headend.node.apply(Command::RemoveHmacKey(OLD.0)), Err(ConfigError::KeyInUse { key_id: 1, group: 1 }));
    take_part(&mut edge, 1, NEW.0);
    between_steps(&mut headend, &mut edge);
    take_part(&mut headend, 0, NEW.0);
    between_steps(&mut headend, &mut edge);
    headend.apply(Command::RemoveHmacKey(OLD.0));
    between_steps(&mut headend, &mut edge);
    between_steps(&mut headend, &mut edge);
    // The list is kept, and was verified a moment ago: once the key has gone it is worth nothing.
    assert_eq!(edge.send(0, &with_old_key).len(), 2);
    edge.apply(Command::RemoveHmacKey(OLD.0));
    assert_eq!(edge.send(0, &with_old_key), []);
    assert_eq!(edge.drops(0).iter().find(|(name, _)| *name == "hmac_unknown_key"), Some(&("hmac_unknown_key", 1)));
    between_steps(&mut headend, &mut edge);
    assert_eq!(signed_with, [1, 1, 1, 1, 2, 2, 2, 2]);
}

/// The headend's packet with this number, signed with the new key.
fn signed(number: u8) -> Vec<u8> {
    let mut headend = headend();
    headend.apply(add(NEW));
    take_part(&mut headend, 0, NEW.0);
    headend.send(0, &data(number)).remove(0).1
}

fn edge_with_key() -> Bench {
    let mut edge = edge(true);
    edge.apply(add(NEW));
    edge
}

/// Whatever octet of the outer headers an attacker changes, the receivers get what the headend sent them, or nothing.
#[test]
fn no_change_of_the_headers_changes_a_copy() {
    let packet = signed(7);
    let inner_at = packet.len() - data(7).len();
    let (mut passed, mut refused) = (0, 0);
    for at in 0..inner_at {
        for change in [0x01, 0x02, 0x40, 0x80, 0xFF] {
            let mut changed = packet.clone();
            changed[at] ^= change;
            let mut edge = edge_with_key();
            let sent = edge.send(0, &changed);
            match sent.is_empty() {
                true => refused += 1,
                // ECN goes into the copies (RFC 6040): its change is no matter of the HMAC.
                false if at == 1 => {}
                false => {
                    assert_eq!(sent, delivered(7), "octet {at} ^ {change:#x}");
                    passed += 1;
                }
            }
        }
    }
    // Traffic class, flow label, payload length and hop limit, tag, Segments Left and padding are for routers to change.
    assert!(passed < 60 && refused > 600, "{passed} passed, {refused} refused");
}

/// D9: the data, which the HMAC does not cover. An attacker on the path with a signed header can put other data behind
/// it; the ICRC is no secret. The data reach only the receivers of that list, and their queue pairs accept them as the
/// source's: only encryption between headend and edge stops that (D35).
#[test]
fn the_data_behind_a_signed_header_are_not_signed() {
    let packet = signed(7);
    let inner_at = packet.len() - data(7).len();
    let mut other = data(9);
    other[7] -= 1;
    let forged = [&packet[..inner_at], &other].concat();
    assert_eq!(edge_with_key().send(0, &forged), delivered(9));
    // The same header serves no other group, though: its Segment List names the Proxy Address.
    let mut of_other_group = other;
    of_other_group[39] ^= 1;
    let forged = [&packet[..inner_at], &of_other_group].concat();
    let mut edge = edge_with_key();
    assert_eq!(edge.send(0, &forged), []);
    assert_eq!(edge.drops(0), [("wrong_proxy", 1)]);
}

/// D9: keys that do not cover the lists sign for other purposes. End.MT rejects a packet with such a signature and an
/// appended list, although the HMAC matches.
#[test]
fn a_signature_for_another_purpose_is_worth_nothing() {
    let list = end_mt_tlv(EDGE, &receivers());
    for cover in [Cover::Rfc8754, Cover::Linux] {
        let flags: u8 = if cover == Cover::Linux { 8 } else { 0 };
        let d = if cover == Cover::Linux { 0 } else { 0x80 };
        let hmac_tlv = [5, 38, d, 0, 0, 0, 0, 3];
        let mut mac = Hmac::<Sha256>::new_from_slice(b"for unicast").unwrap();
        mac.update(&address(HEADEND).octets());
        mac.update(&[0, flags]);
        mac.update(if cover == Cover::Linux { &hmac_tlv[4..] } else { &hmac_tlv[2..] });
        mac.update(&address(PROXY).octets());
        let hmac_tlv = [&hmac_tlv[..], &mac.finalize().into_bytes()].concat();
        let mut packet = with_tlvs(&data(1), &[&list, &hmac_tlv]);
        packet[45] = flags;
        let verdict = |admitted: Cover| {
            let mut edge = edge_with(true, |config| config.end_mt_cover = admitted);
            edge.apply(Command::AddHmacKey { key_id: 3, key: HmacKey::new(b"for unicast", cover) });
            (edge.send(0, &packet).len(), edge.drops(0))
        };
        assert_eq!(verdict(Cover::Tlvs), (0, vec![("hmac_cover", 1)]));
        assert_eq!(verdict(cover), (2, vec![]), "where the operator admits it");
    }
}

/// No text that a node gives of itself has its keys: not as text, in hexadecimal or as numbers.
#[test]
fn keys_are_in_no_text() {
    let mut edge = edge_with_key();
    edge.send(0, &signed(1));
    let texts = [format!("{:?}", add(NEW)), format!("{:#?}", edge.node), format!("{:?}", edge.node)];
    let hexadecimal = hex::encode(NEW.1);
    let numbers = format!("{:?}", &NEW.1[..4]);
    for text in &texts {
        assert!(text.contains("HmacKey"), "the key is there, and hidden");
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        for secret in ["the new key", &hexadecimal, numbers.trim_matches(['[', ']'])] {
            assert!(!text.contains(secret));
        }
    }
}
