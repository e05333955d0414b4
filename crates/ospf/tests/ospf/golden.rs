//! The formats compared with octets of FRR 8.4's ospf6d (`testdata/golden/README.md`).

use srdma_capture::Reader;
use srdma_ospf::lsa::{IntraAreaPrefix, Link, LsType, MAX_AGE_S, RouterBody, RouterLinkKind};
use srdma_ospf::{Body, Lsa, LsaHeader, Packet, RouterId};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::Path;

const A: RouterId = RouterId(0x0A00_0001);
const B: RouterId = RouterId(0x0A00_0002);

/// The packets behind Ethernet and IPv6 headers, with their addresses.
fn packets() -> Vec<(Ipv6Addr, Ipv6Addr, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/frr84_ospf6.pcap");
    let address = |octets: &[u8]| Ipv6Addr::from(<[u8; 16]>::try_from(octets).unwrap());
    let packet = |octets: Vec<u8>| (address(&octets[22..38]), address(&octets[38..54]), octets[54..].to_vec());
    let frames = Reader::open(&path).unwrap().map(|packet| packet.unwrap().octets);
    frames.map(packet).collect()
}

fn lsas() -> Vec<Lsa> {
    let parsed = packets().into_iter().map(|(from, to, octets)| Packet::parse(&octets, from, to).unwrap());
    parsed.flat_map(|packet| if let Body::Update(lsas) = packet.body { lsas } else { Vec::new() }).collect()
}

#[test]
fn every_packet_of_frr_is_parsed_and_emitted_again() {
    let mut kinds: BTreeMap<u8, usize> = BTreeMap::new();
    for (from, to, octets) in packets() {
        let packet = Packet::parse(&octets, from, to).unwrap();
        assert!([A, B].contains(&packet.router));
        assert_eq!(packet.emit(from, to), octets, "{packet:?}");
        *kinds.entry(packet.body.kind()).or_default() += 1;
    }
    assert_eq!(kinds, BTreeMap::from([(1, 49), (2, 4), (3, 2), (4, 12), (5, 4)]));
}

/// Values as tshark has them.
#[test]
fn hellos_and_descriptions_have_their_fields() {
    let all: Vec<Packet> =
        packets().iter().map(|(from, to, octets)| Packet::parse(octets, *from, *to).unwrap()).collect();
    let Body::Hello(hello) = &all[3].body else { panic!("{:?}", all[3]) };
    assert_eq!((hello.interface, hello.priority, hello.options), (2, 1, 0x13));
    assert_eq!((hello.hello_s, hello.dead_s, hello.neighbours.clone()), (1, 4, vec![B]));
    let Body::Description(first) = &all[4].body else { panic!("{:?}", all[4]) };
    assert!(first.is_first && first.has_more && first.is_master && first.headers.is_empty());
    assert_eq!((first.mtu, first.options), (1500, 0x13));
    let Body::Description(answer) = &all[5].body else { panic!("{:?}", all[5]) };
    assert!(!answer.is_first && !answer.is_master && answer.sequence == first.sequence);
    assert_eq!(answer.headers.iter().map(|header| header.router).collect::<Vec<_>>(), [A; 3]);
}

#[test]
fn every_lsa_of_frr_is_made_again_from_its_body() {
    let all = lsas();
    assert_eq!(all.len(), 20);
    for lsa in &all {
        assert!(lsa.has_right_checksum(), "{lsa:?}");
        let without = LsaHeader { checksum: 0, length: 0, ..lsa.header() };
        assert_eq!(Lsa::new(without, lsa.body()).as_ref(), Some(lsa));
        let body = match lsa.key().kind {
            LsType::ROUTER => RouterBody::parse(lsa.body()).unwrap().emit(),
            LsType::INTRA_AREA_PREFIX => IntraAreaPrefix::parse(lsa.body()).unwrap().emit(),
            LsType::LINK => {
                let body = Link::parse(lsa.body()).unwrap();
                // Behind it are prefixes, which have no use on a point-to-point circuit.
                [body.emit()[..20].to_vec(), lsa.body()[20..].to_vec()].concat()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(body, lsa.body());
        for at in [2, 5, 14, 16, 19] {
            let mut octets = lsa.octets().to_vec();
            octets[at] ^= 1;
            let length = u16::from_be_bytes([octets[18], octets[19]]);
            octets.resize(usize::from(length), 0);
            let broken = Lsa::parse(&mut srdma_isis::reader::Reader::new("an LSA", &octets)).unwrap();
            assert!(!broken.has_right_checksum(), "octet {at}");
        }
    }
    assert!(all.iter().any(|lsa| lsa.header().age_s == MAX_AGE_S), "FRR flushes what it has originated when it ends");
}

/// As `show ipv6 ospf6 database detail` had them.
#[test]
fn the_graph_and_the_prefixes_are_those_of_frr() {
    let newest = |kind: LsType, router: RouterId| {
        let of_key = lsas().into_iter().filter(|lsa| (lsa.key().kind, lsa.key().router) == (kind, router));
        of_key.filter(|lsa| !lsa.header().is_old()).max_by(|one, other| one.header().compare(&other.header())).unwrap()
    };
    let router = newest(LsType::ROUTER, A);
    assert_eq!(
        (router.header().sequence, router.header().checksum, router.header().length),
        (i32::MIN + 2, 0x8278, 40)
    );
    let links = RouterBody::parse(router.body()).unwrap().links;
    assert_eq!(links.len(), 1);
    let link = &links[0];
    assert_eq!((link.kind, link.metric, link.neighbour), (RouterLinkKind::PointToPoint, 10, B));
    assert_eq!((link.interface, link.neighbour_interface), (2, 2));
    let prefixes = newest(LsType::INTRA_AREA_PREFIX, A);
    assert_eq!(prefixes.header().checksum, 0xfe2c);
    let body = IntraAreaPrefix::parse(prefixes.body()).unwrap();
    assert_eq!((body.referenced.kind, body.referenced.id, body.referenced.router), (LsType::ROUTER, 0, A));
    let expected = [("2001:db8:0:1::", 64), ("2001:db8:ff:a::1", 128)];
    let expected = expected.map(|(text, len)| Prefix::new(text.parse().unwrap(), len).unwrap());
    assert_eq!(body.prefixes.iter().map(|entry| entry.prefix).collect::<Vec<_>>(), expected);
}
