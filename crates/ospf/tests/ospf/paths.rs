//! Paths over LSAs that are written here: LANs, links that one end announces alone, and locators.

use crate::bad_input::{CIRCUIT, NOW, full, give, packet};
use crate::net::{locator, loopback, router};
use srdma_ospf::lsa::{IntraAreaPrefix, PrefixEntry, RouterBody, RouterLink, RouterLinkKind};
use srdma_ospf::srv6::{Locator, RouteType};
use srdma_ospf::{Body, LsType, Lsa, LsaHeader, LsaKey, RouterId, Speaker};
use srdma_wire::{Instant, Prefix};

/// When the router may announce its link: MinLSInterval after its first LSA.
const SOON: Instant = Instant::from_ns(NOW.as_ns() + 6_000_000_000);

/// The neighbour's number of the LAN.
const LAN: u32 = 9;

fn lsa(kind: LsType, id: u32, of: RouterId, sequence: i32, body: &[u8]) -> Lsa {
    let sequence = LsaHeader::FIRST_SEQUENCE + sequence;
    Lsa::new(LsaHeader { age_s: 1, kind, id, router: of, sequence, checksum: 0, length: 0 }, body).unwrap()
}

fn link(kind: RouterLinkKind, metric: u16, neighbour: RouterId, neighbour_interface: u32) -> RouterLink {
    RouterLink { kind, metric, interface: 1, neighbour_interface, neighbour, end_x: Vec::new() }
}

fn router_lsa(of: usize, sequence: i32, options: u32, links: Vec<RouterLink>) -> Lsa {
    lsa(LsType::ROUTER, 0, router(of), sequence, &RouterBody { flags: 0, options, links }.emit())
}

fn prefix_lsa(id: u32, of: usize, referenced: (LsType, u32), prefix: Prefix, metric: u16) -> Lsa {
    let referenced = LsaKey { kind: referenced.0, id: referenced.1, router: router(of) };
    let entry = PrefixEntry { prefix, options: Default::default(), metric };
    let body = IntraAreaPrefix { referenced, prefixes: vec![entry] };
    lsa(LsType::INTRA_AREA_PREFIX, id, router(of), 0, &body.emit())
}

fn distance(speaker: &Speaker, prefix: Prefix) -> Option<u64> {
    let paths = speaker.paths();
    let found = paths.prefixes.get(&prefix)?;
    assert_eq!(found.first_hops, [router(1)].into(), "its only neighbour");
    Some(found.distance)
}

/// A speaker, router 0, with a full neighbour, router 1, on whose LAN is router 2.
fn with_a_lan() -> Speaker {
    let mut speaker = full();
    speaker.tick(SOON);
    assert!(speaker.neighbour(CIRCUIT).is_some_and(|neighbour| neighbour.is_full()));
    let lan = |metric| link(RouterLinkKind::Transit, metric, router(1), LAN);
    let members = [[0, 0, 0, 0x13], router(1).0.to_be_bytes(), router(2).0.to_be_bytes()].concat();
    let to_us = link(RouterLinkKind::PointToPoint, 40, router(0), 1);
    let lsas = vec![
        router_lsa(1, 0, 0x13, vec![to_us, lan(7)]),
        lsa(LsType::NETWORK, LAN, router(1), 0, &members),
        router_lsa(2, 0, 0x13, vec![lan(5)]),
        prefix_lsa(1, 1, (LsType::NETWORK, LAN), "2001:db8:7::/64".parse().unwrap(), 0),
        prefix_lsa(0, 2, (LsType::ROUTER, 0), loopback(2), 1),
    ];
    give(&mut speaker, &packet(Body::Update(lsas)));
    assert!(speaker.drops().is_empty(), "{:?}", speaker.drops());
    speaker
}

#[test]
fn paths_lead_through_lans() {
    let speaker = with_a_lan();
    assert_eq!(distance(&speaker, "2001:db8:7::/64".parse().unwrap()), Some(10 + 7));
    assert_eq!(distance(&speaker, loopback(2)), Some(10 + 7 + 1));
}

#[test]
fn a_link_that_one_end_announces_alone_is_none() {
    let mut speaker = full();
    speaker.tick(SOON);
    let lsas = vec![router_lsa(1, 0, 0x13, Vec::new()), prefix_lsa(0, 1, (LsType::ROUTER, 0), loopback(1), 0)];
    give(&mut speaker, &packet(Body::Update(lsas)));
    assert_eq!(distance(&speaker, loopback(1)), None);
}

/// RFC 5340 sections 4.4.3.2 and A.2: the V6-bit and the R-bit.
#[test]
fn options_say_who_is_in_paths() {
    let later = NOW.after_ns(8_000_000_000);
    for (options, reaches_1, reaches_2) in [(0x13, true, true), (0x03, true, false), (0x12, false, false)] {
        let mut speaker = with_a_lan();
        let links = vec![
            link(RouterLinkKind::PointToPoint, 40, router(0), 1),
            link(RouterLinkKind::Transit, 7, router(1), LAN),
        ];
        let lsas = vec![router_lsa(1, 1, options, links), prefix_lsa(0, 1, (LsType::ROUTER, 0), loopback(1), 0)];
        let octets = packet(Body::Update(lsas)).emit(crate::bad_input::PEER, srdma_ospf::packet::ALL_ROUTERS);
        speaker.receive(later, CIRCUIT, crate::bad_input::PEER, srdma_ospf::packet::ALL_ROUTERS, &octets);
        let reaches = [loopback(1), loopback(2)].map(|prefix| distance(&speaker, prefix).is_some());
        assert_eq!(reaches, [reaches_1, reaches_2], "{options:#x}");
    }
}

/// D277: a locator has a path of its own, unless it is announced as a prefix too.
#[test]
fn a_prefix_is_preferred_to_a_locator() {
    let mut speaker = with_a_lan();
    let announce = |metric, algorithm, route_type| {
        let (options, sids) = (0, Vec::new());
        let mut body = Vec::new();
        Locator { route_type, algorithm, options, metric, prefix: locator(2), sids }.emit(&mut body);
        lsa(LsType::LOCATOR, 0, router(2), 0, &body)
    };
    for (metric, algorithm, route_type, expected) in [
        (3, 0, RouteType::IntraArea, Some(20)),
        (3, 128, RouteType::IntraArea, None),
        (3, 0, RouteType::External1, None),
        (u32::MAX, 0, RouteType::IntraArea, None),
    ] {
        let mut speaker = with_a_lan();
        give(&mut speaker, &packet(Body::Update(vec![announce(metric, algorithm, route_type)])));
        assert_eq!(distance(&speaker, locator(2)), expected, "{metric} {algorithm} {route_type:?}");
    }
    let lsas = vec![announce(3, 0, RouteType::IntraArea), prefix_lsa(1, 2, (LsType::ROUTER, 0), locator(2), 100)];
    give(&mut speaker, &packet(Body::Update(lsas)));
    assert_eq!(distance(&speaker, locator(2)), Some(117));
}

/// None announces the prefixes of another router.
#[test]
fn a_prefix_of_another_router_counts_for_nothing() {
    let mut speaker = with_a_lan();
    let referenced = LsaKey { kind: LsType::ROUTER, id: 0, router: router(1) };
    let entry = PrefixEntry { prefix: loopback(7), options: Default::default(), metric: 0 };
    let body = IntraAreaPrefix { referenced, prefixes: vec![entry] }.emit();
    give(&mut speaker, &packet(Body::Update(vec![lsa(LsType::INTRA_AREA_PREFIX, 5, router(2), 0, &body)])));
    assert_eq!(distance(&speaker, loopback(7)), None);
}
