//! Signing and verifying the SRH of unicast packets as the Linux kernel does (D9): octets from captures of its routers.

use crate::common::group::address;
use crate::common::{Bench, golden, ipv6, next_hop, prefix};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use srdma_dataplane::*;
use srdma_wire::Prefix;

const KEY_ID: u32 = 42;
const SECRET: &[u8] = b"secretkey";

fn route(prefix: &str, len: u8, action: RouteAction) -> Command {
    Command::AddRoute { table: TableId(0), prefix: Prefix::new(address(prefix), len).unwrap(), action }
}

fn key(secret: &[u8]) -> Command {
    Command::AddHmacKey { key_id: KEY_ID, key: HmacKey::new(secret, Cover::Linux) }
}

/// A packet's octets without its hop limit, and without the flow label, which Linux computes in its own way.
fn comparable(packet: &[u8]) -> Vec<u8> {
    [&packet[4..7], &packet[8..]].concat()
}

/// The kernel's H.Encaps and H.Encaps.Red, signed, from the inner packet that it had.
#[test]
fn the_headend_signs_as_linux_does() {
    for (capture, mode) in [("t9_hmac", EncapsMode::Encaps), ("t10_hmac_red", EncapsMode::Reduced)] {
        // The kernel's headend sends from its own address.
        let mut bench = Bench::new("fd00:a::1", 2);
        bench.apply(key(b"another key"));
        let segments = ["fd00:11::e", "fd00:22::e", "fd00:33::d6"].map(address).to_vec();
        bench.apply(route("fd00:d::", 64, RouteAction::Encaps { segments, mode, hmac_key_id: Some(KEY_ID) }));
        bench.apply(route("fd00:11::", 32, RouteAction::Via(vec![next_hop(1)])));
        // A key that changes signs what stands already.
        bench.apply(key(SECRET));
        let inner = golden(&format!("kernel_{capture}_4r3-h2.pcap"));
        let signed = golden(&format!("kernel_{capture}_1h1-r1.pcap"));
        for index in [0, 2] {
            let sent = bench.send(0, &inner[index]);
            let outer = sent[0].1.len() - inner[index].len();
            assert_eq!(comparable(&sent[0].1[..outer]), comparable(&signed[index][..outer]), "{capture}");
        }
    }
}

/// The kernel's packets pass a node that demands an HMAC; without the key, without an HMAC or changed they do not.
#[test]
fn a_node_that_requires_an_hmac_accepts_those_of_linux() {
    for capture in ["t9_hmac", "t10_hmac_red"] {
        let node = |with_key| {
            let mut bench = Bench::with("fd00:11::1", 2, |config| config.hmac = HmacPolicy::Required);
            if with_key {
                bench.apply(key(SECRET));
            }
            let sid = Prefix::host(address("fd00:11::e"));
            bench.apply(Command::AddSid { prefix: sid, behavior: SidBehavior::End(Flavors::default()) });
            bench.apply(route("fd00::", 16, RouteAction::Via(vec![next_hop(1)])));
            bench
        };
        let received = golden(&format!("kernel_{capture}_1h1-r1.pcap"));
        let expected = golden(&format!("kernel_{capture}_2r1-r2.pcap"));
        let mut bench = node(true);
        assert_eq!(bench.send(0, &received[0]), [(1, expected[0].clone())], "{capture}");

        let mut changed = received[0].clone();
        changed[40 + 8 + 5] ^= 1;
        assert_eq!(error_types(&bench.send(0, &changed)), [(4, 0)]);
        assert_eq!(bench.drops(0), [("hmac_mismatch", 1)]);

        let mut unsigned = golden("kernel_t4_encap3_1h1-r1.pcap")[0].clone();
        unsigned[24..40].copy_from_slice(&address("fd00:11::e").octets());
        assert!(bench.send(0, &unsigned).is_empty());
        assert_eq!(bench.drops(0), [("hmac_missing", 1), ("hmac_mismatch", 1)]);

        let mut ignorant = node(false);
        assert_eq!(error_types(&ignorant.send(0, &received[0])), [(4, 0)]);
        assert_eq!(ignorant.drops(0), [("hmac_unknown_key", 1)]);
    }
}

/// Type and code of ICMPv6 errors, as which nothing else passes.
fn error_types(sent: &[(u16, Vec<u8>)]) -> Vec<(u8, u8)> {
    assert!(sent.iter().all(|(_, packet)| packet[6] == 58), "{sent:?}");
    sent.iter().map(|(_, packet)| (packet[40], packet[41])).collect()
}

/// D130: a packet without an SRH has no HMAC. The source of one in a domain is a node's.
#[test]
fn a_node_that_requires_an_hmac_accepts_packets_without_an_srh_inside_its_domain_only() {
    let signed = golden("kernel_t9_hmac_1h1-r1.pcap")[0].clone();
    let (srh_end, source) = (48 + usize::from(signed[41]) * 8, &signed[8..24]);
    let mut plain = [&signed[..40], &signed[srh_end..]].concat();
    let length = u16::try_from(plain.len() - 40).unwrap();
    plain[4..6].copy_from_slice(&length.to_be_bytes());
    plain[6] = signed[40];
    let source = std::net::Ipv6Addr::from(<[u8; 16]>::try_from(source).unwrap());
    let node = |infrastructure: Option<Prefix>| {
        let mut bench = Bench::with("fd00:11::1", 2, |config| config.hmac = HmacPolicy::Required);
        bench.apply(key(SECRET));
        let sid = Prefix::host(address("fd00:11::e"));
        if let Some(infrastructure) = infrastructure {
            let infrastructure = vec![Prefix::host(address("fd00:11::1")), infrastructure];
            bench.apply(Command::SetDomain(Domain { sids: vec![sid], infrastructure, proxies: Vec::new() }));
        }
        bench.apply(Command::AddSid { prefix: sid, behavior: SidBehavior::EndDt6(TableId(0)) });
        bench.apply(route("::", 0, RouteAction::Via(vec![next_hop(1)])));
        bench
    };
    let mut open = node(None);
    assert!(open.send(0, &plain).is_empty());
    assert_eq!(open.drops(0), [("hmac_missing", 1)]);
    let mut foreign = node(Some(Prefix::host(address("fd00:99::1"))));
    assert!(foreign.send(0, &plain).is_empty());
    assert_eq!(foreign.drops(0), [("foreign_source", 1)]);
    let sent = node(Some(Prefix::host(source))).send(0, &plain);
    assert_eq!(sent.len(), 1, "the inner packet leaves");
}

/// A key that signs is not taken away.
#[test]
fn a_key_in_use_stays() {
    let mut bench = Bench::new("fd00:a::1", 2);
    let signed = RouteAction::Encaps {
        segments: vec![address("fd00:11::e"), address("fd00:22::e")],
        mode: EncapsMode::Reduced,
        hmac_key_id: Some(KEY_ID),
    };
    let prefix = Prefix::new(address("fd00:d::"), 64).unwrap();
    let unknown = bench.node.apply(route("fd00:d::", 64, signed.clone()));
    assert_eq!(unknown, Err(ConfigError::UnknownEncapsKey { prefix, key_id: KEY_ID }));
    bench.apply(key(SECRET));
    bench.apply(route("fd00:d::", 64, signed));
    assert_eq!(bench.node.apply(Command::RemoveHmacKey(KEY_ID)), Err(ConfigError::KeySignsRoutes(KEY_ID)));
    bench.apply(Command::RemoveRoute { table: TableId(0), prefix });
    bench.apply(Command::RemoveHmacKey(KEY_ID));
}

/// A packet with the signature of RFC 8754 section 2.1.2.1, computed here from its text.
fn signed(destination: &str, left: u8, segments: &[&str], key_id: u32) -> Vec<u8> {
    let segments: Vec<u8> = segments.iter().flat_map(|segment| address(segment).octets()).collect();
    let last_entry = (segments.len() / 16 - 1) as u8;
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
    mac.update(&address(SENDER).octets());
    mac.update(&[last_entry, 0, 0, 0]);
    mac.update(&key_id.to_be_bytes());
    mac.update(&segments);
    let tlv = [&[5, 38, 0, 0][..], &key_id.to_be_bytes(), &mac.finalize().into_bytes()].concat();
    let octets = segments.len() + tlv.len();
    let srh = [&[59, (octets / 8) as u8, 4, left, last_entry, 0, 0, 0][..], &segments, &tlv].concat();
    ipv6(SENDER, destination, 0, 43, &srh)
}

const SENDER: &str = "2001:db8:5::5";

/// A node with End, uN and a route back to the sender at port 0.
fn verifying(policy: HmacPolicy) -> Bench {
    let mut bench = Bench::with("2001:db8:ffff::1", 2, |config| config.hmac = policy);
    bench.route("::/0", 1);
    bench.route("2001:db8:5::/48", 0);
    bench.apply(Command::AddHmacKey { key_id: KEY_ID, key: HmacKey::new(SECRET, Cover::Rfc8754) });
    for (sid, flavors) in [("fd00:1::e/128", Flavors::default()), ("fd00:2:200::/48", Flavors::MICRO)] {
        bench.apply(Command::AddSid { prefix: prefix(sid), behavior: SidBehavior::End(flavors) });
    }
    bench
}

/// D232: type, code and pointer of the ICMPv6 error that a packet gets, if it gets one.
fn error_for(bench: &mut Bench, packet: &[u8]) -> Option<(u8, u8, u32)> {
    let sent = bench.send(0, packet);
    let (port, error) = sent.first()?;
    assert_eq!((sent.len(), *port, error[6]), (1, 0, 58), "one error at port 0");
    Some((error[40], error[41], u32::from_be_bytes(error[44..48].try_into().unwrap())))
}

/// RFC 8754 section 2.1.2.1: an HMAC that is not valid is reported at its TLV. Where an HMAC is not required, a packet may
/// be without.
#[test]
fn an_hmac_that_is_not_valid_is_reported() {
    let segments = ["2001:db8:1::1", "fd00:1::e"];
    let good = signed("fd00:1::e", 1, &segments, KEY_ID);
    let mut changed = good.clone();
    changed[40 + 8 + 5] ^= 1;
    let unknown = signed("fd00:1::e", 1, &segments, 43);
    let bare = ipv6(SENDER, "fd00:1::e", 0, 43, &[&good[40..41], &[4], &good[42..80]].concat());
    let at_tlv = Some((4, 0, 40 + 8 + 32));
    for policy in [HmacPolicy::Required, HmacPolicy::IfPresent] {
        let mut bench = verifying(policy);
        assert_eq!(bench.send(0, &good)[0].0, 1, "{policy:?}");
        assert_eq!(error_for(&mut bench, &changed), at_tlv, "{policy:?}");
        assert_eq!(error_for(&mut bench, &unknown), at_tlv, "{policy:?}");
        assert_eq!(bench.drops(0), [("hmac_unknown_key", 1), ("hmac_mismatch", 1)]);
        let sent: Vec<u16> = bench.send(0, &bare).into_iter().map(|(port, _)| port).collect();
        assert_eq!(sent, if policy == HmacPolicy::Required { vec![] } else { vec![1] });
    }
    let mut ignoring = verifying(HmacPolicy::Ignored);
    assert_eq!(ignoring.send(0, &changed)[0].0, 1);
}

/// D232: nodes before have shifted compressed SIDs out of the destination; the segment was signed whole.
#[test]
fn an_hmac_covers_compressed_sids_that_are_gone() {
    let carrier = "fd00:2:100:200:300::";
    for policy in [HmacPolicy::Required, HmacPolicy::IfPresent] {
        let mut bench = verifying(policy);
        let sent = bench.send(0, &signed("fd00:2:200:300::", 1, &["2001:db8:1::1", carrier], KEY_ID));
        assert_eq!((sent[0].0, &sent[0].1[24..40]), (1, &address("fd00:2:300::").octets()[..]), "{policy:?}");
        // These are not what is left of it.
        for other in ["fd00:2:200:400::", "fd00:2:200::", "fd00:2:200:300::1"] {
            let packet = signed(other, 1, &["2001:db8:1::1", carrier], KEY_ID);
            assert_eq!(error_for(&mut bench, &packet), Some((4, 0, 80)), "{policy:?}, {other}");
        }
    }
}
