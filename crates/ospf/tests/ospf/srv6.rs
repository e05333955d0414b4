//! OSPFv3's TLVs against octets written by hand from the figures of RFC 9513.

use srdma_isis::Malformed;
use srdma_isis::tlv::{CapabilityFlags, EndSid, EndXSid, SidStructure};
use srdma_ospf::RouterId;
use srdma_ospf::lsa::{ExtendedRouter, Information, RouterLink, RouterLinkKind};
use srdma_ospf::srv6::{Locator, RouteType, parse_capabilities, put_capabilities};
use srdma_wire::Prefix;

/// A Router Information LSA's TLVs: 1 (RFC 7770: capabilities of the router), then SRv6 Capabilities with O and C.
const INFORMATION: [u8; 16] = [0, 1, 0, 4, 0x60, 0, 0, 0, 0, 20, 0, 4, 0x60, 0, 0, 0];

/// A locator of 40 bits, which is two words, with END.C and END.E, the latter without a structure.
#[rustfmt::skip]
const LOCATOR: [u8; 76] = [
    0, 1, 0, 72,
    1, 0, 40, 0,
    0, 0, 0, 10,
    0x5F, 0, 0, 0, 0x77, 0, 0, 0,
    0, 1, 0, 28, 0, 0, 0x80, 0x01,
    0x5F, 0, 0, 0, 0x77, 0, 0xE0, 0x0C, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 10, 0, 4, 24, 16, 16, 0,
    0, 1, 0, 20, 0, 0, 0x80, 0x02,
    0x5F, 0, 0, 0, 0x77, 0, 0xE0, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0,
];

fn locator() -> Locator {
    let sid = |behavior, text: &str, structure| EndSid { behavior, sid: text.parse().unwrap(), structure };
    let structure = SidStructure { block: 24, node: 16, function: 16, argument: 0 };
    Locator {
        route_type: RouteType::IntraArea,
        algorithm: 0,
        options: 0,
        metric: 10,
        prefix: Prefix::new("5f00:0:7700::".parse().unwrap(), 40).unwrap(),
        sids: vec![sid(0x8001, "5f00:0:7700:e00c::", Some(structure)), sid(0x8002, "5f00:0:7700:e00e::", None)],
    }
}

/// CN-5.2-1
#[test]
fn capabilities_are_as_in_the_figure() {
    let flags = CapabilityFlags::OAM.with(CapabilityFlags::CONGESTION_NOTIFICATION);
    assert_eq!(parse_capabilities(&INFORMATION), Ok(Some(flags)));
    assert_eq!(parse_capabilities(&INFORMATION[..8]), Ok(None));
    let mut out = INFORMATION[..8].to_vec();
    put_capabilities(flags, &mut out);
    assert_eq!(out, INFORMATION);
}

/// CN-5.2-1
#[test]
fn a_locator_is_as_in_the_figures() {
    assert_eq!(Locator::parse_all(&LOCATOR), Ok(vec![locator()]));
    let mut out = Vec::new();
    locator().emit(&mut out);
    assert_eq!(out, LOCATOR);
}

/// RFC 9513 sections 7.1, 8 and 10: TLVs that are skipped.
#[test]
fn unknown_tlvs_are_skipped() {
    let changed = |at: usize, octet: u8| {
        let mut body = LOCATOR;
        body[at] = octet;
        Locator::parse_all(&body).unwrap()
    };
    assert_eq!(changed(4, 7), [], "a route type that does not exist");
    let only_second = [Locator { sids: locator().sids[1..].to_vec(), ..locator() }];
    assert_eq!(changed(48, 128), only_second, "a structure of more than 128 bits");
    assert_eq!(changed(32, 0x78), only_second, "a SID outside its locator");
    assert_eq!(changed(0, 1), [], "another TLV");
}

#[test]
fn lengths_are_checked() {
    for length in 1..LOCATOR.len() {
        assert!(Locator::parse_all(&LOCATOR[..length]).is_err(), "{length} octets");
    }
    let mut long = LOCATOR;
    long[6] = 129;
    let error = Malformed::Value { field: "a prefix length", found: 129, expected: "0 to 128" };
    assert_eq!(Locator::parse_all(&long), Err(error));
    assert!(parse_capabilities(&INFORMATION[..15]).is_err());
}

/// An E-Router-LSA with a link of metric 10 and its End.X, whose structure is that of F3216 with 16 bits of function.
#[rustfmt::skip]
const EXTENDED: [u8; 60] = [
    0, 0, 0, 0x13,
    0, 1, 0, 52,
    1, 0, 0, 10,
    0, 0, 0, 2,
    0, 0, 0, 7,
    10, 0, 0, 1,
    0, 31, 0, 32, 0, 5, 0, 0, 0, 0, 0, 0,
    0x5F, 0, 0, 0, 0, 1, 0xE0, 1, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 30, 0, 4, 32, 16, 16, 0,
];

/// RFC 8362 section 3.2, RFC 9513 section 9.1.
#[test]
fn an_end_x_sid_is_as_in_the_figure() {
    let sid = EndXSid {
        neighbour: None,
        flags: 0,
        algorithm: 0,
        weight: 0,
        behavior: 5,
        sid: "5f00:0:1:e001::".parse().unwrap(),
        structure: Some(SidStructure { block: 32, node: 16, function: 16, argument: 0 }),
    };
    let link = RouterLink {
        kind: RouterLinkKind::PointToPoint,
        metric: 10,
        interface: 2,
        neighbour_interface: 7,
        neighbour: RouterId(0x0A00_0001),
        end_x: vec![sid],
    };
    let body = ExtendedRouter { flags: 0, options: 0x13, links: vec![link] };
    assert_eq!(ExtendedRouter::parse(&EXTENDED), Ok(body.clone()));
    assert_eq!(body.emit(), EXTENDED);
    // Unknown sub-TLVs are skipped, and those that are malformed count for nothing.
    let mut octets = EXTENDED;
    octets[25] = 29;
    assert_eq!(ExtendedRouter::parse(&octets).unwrap().links[0].end_x, []);
    assert!(ExtendedRouter::parse(&EXTENDED[..40]).is_err());
}

/// RFC 7770, RFC 5642, RFC 8665: name and algorithm stand in front of SRv6 Capabilities.
#[test]
fn router_information_has_name_and_algorithm() {
    let octets = [0, 7, 0, 2, b'n', b'1', 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 20, 0, 4, 0x20, 0, 0, 0];
    let srv6 = Some(CapabilityFlags::CONGESTION_NOTIFICATION);
    let information = Information { hostname: Some("n1".to_owned()), algorithms: vec![0], srv6 };
    assert_eq!(Information::parse(&octets), Ok(information.clone()));
    assert_eq!(information.emit(), octets);
}
