//! The nodes of the test: routes, SIDs and policies of every kind.

use srdma_dataplane::{
    Command, Domain, EncapsMode, Flavors, NextCsid, NextHop, Node, NodeConfig, PortConfig, RouteAction, SidBehavior,
    TableId,
};
use srdma_frame::PortId;
use srdma_wire::{MacAddress, Prefix};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const PORTS: u16 = 4;

const LINK_MTUS: [u16; PORTS as usize] = [1500, 9000, 1280, 4200];

/// SIDs of the node, each with the number of its behaviour below.
const SIDS: [&str; 18] = [
    "2001:db8:f:1::/128",
    "2001:db8:f:2::/128",
    "2001:db8:f:3::/128",
    "2001:db8:f:4::/128",
    "2001:db8:f:5::/128",
    "2001:db8:f:6::/128",
    "2001:db8:f:7::/128",
    "2001:db8:f:8::/128",
    "2001:db8:f:9::/128",
    "2001:db8:f:a::/128",
    "2001:db8:f:b::/128",
    "5f00:0:100::/48",
    "5f00:0:200::/48",
    "fc00:0:0:1::/64",
    "fc00:0:0:2::/64",
    "2001:db8:f:c::/128",
    "2001:db8:f:d::/128",
    "2001:db8:f:e::/128",
];

pub(super) fn mac(port: u16) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, 0x80 + port as u8])
}

fn prefix(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

/// Neighbours by letter; that of `d` has no MAC address.
fn hop(letter: char) -> NextHop {
    let port = match letter {
        'a' | 'd' | 'f' => 1,
        'b' => 2,
        'c' => 3,
        _ => 0,
    };
    NextHop { port: PortId(port), address: address(&format!("fe80::{letter}")) }
}

/// The IPv4 neighbour at a port.
fn ipv4_hop(port: u16) -> NextHop {
    NextHop { port: PortId(port), address: Ipv4Addr::new(192, 0, 2, port as u8 + 1).to_ipv6_mapped() }
}

/// Routes of IPv4 in both tables, which the program knows nothing of (D262).
fn add_ipv4(node: &mut Node) {
    let mut apply = |command: Command| node.apply(command).expect("a command that the node takes");
    for port in 0..PORTS {
        apply(Command::AddNeighbour { next_hop: ipv4_hop(port), mac: MacAddress([2, 0, 0, 0, 8, port as u8]) });
    }
    for table in [TableId(0), TableId(1)] {
        for (to, action) in [
            ([10, 1], RouteAction::Via(vec![ipv4_hop(1)])),
            ([10, 2], RouteAction::Via(vec![ipv4_hop(2), ipv4_hop(3)])),
            ([10, 3], encaps(&["2001:db8:a::1"])),
            ([10, 4], encaps(&["2001:db8:f:1::", "2001:db8:f:c::"])),
        ] {
            let prefix = Prefix::of_ipv4(Ipv4Addr::new(to[0], to[1], 0, 0), 16).expect("a length");
            apply(Command::AddRoute { table, prefix, action });
        }
    }
}

fn encaps(segments: &[&str]) -> RouteAction {
    let segments = segments.iter().map(|segment| address(segment)).collect();
    RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: None }
}

fn behavior(sid: &str) -> SidBehavior {
    let psp = Flavors { psp: true, ..Flavors::default() };
    let all = Flavors { psp: true, usp: true, usd: true, next_csid: None };
    let usd = Flavors { usd: true, ..Flavors::default() };
    let long = Flavors { next_csid: Some(NextCsid { block_bits: 48, csid_bits: 16 }), ..Flavors::MICRO };
    // A program has no more than 64 bits of block and compressed SID.
    let longer = Flavors { next_csid: Some(NextCsid { block_bits: 48, csid_bits: 24 }), ..Flavors::MICRO };
    match SIDS.iter().position(|known| *known == sid).expect("a SID of the list") {
        0 => SidBehavior::End(Flavors::default()),
        1 => SidBehavior::End(psp),
        2 => SidBehavior::End(all),
        3 => SidBehavior::EndX(psp, hop('a')),
        4 => SidBehavior::EndX(Flavors::default(), hop('d')),
        5 => SidBehavior::EndDt6(TableId(1)),
        6 => SidBehavior::EndDt6(TableId(0)),
        7 => SidBehavior::EndDt6(TableId(2)),
        8 => SidBehavior::EndMt { require_hmac: false },
        9 => SidBehavior::EndC,
        10 => SidBehavior::EndX(usd, hop('c')),
        11 => SidBehavior::End(Flavors::MICRO),
        12 => SidBehavior::EndX(Flavors::MICRO, hop('b')),
        13 => SidBehavior::End(long),
        14 => SidBehavior::End(longer),
        15 => SidBehavior::EndDt4(TableId(1)),
        16 => SidBehavior::EndDt46(TableId(1)),
        _ => SidBehavior::EndDx4 { next_hop: ipv4_hop(2), table: TableId(1) },
    }
}

/// Whether the program has a SID: all but those without MAC address of the neighbour, of multicast and of congestion,
/// the one that is too long, and those of IPv4.
pub(super) fn is_programs(sid: Prefix) -> bool {
    ![4, 8, 9, 14, 15, 16, 17].iter().any(|number| prefix(SIDS[*number]) == sid)
}

/// The node of a seed. One of three has a domain, and another one a default route.
pub(super) fn node(seed: u64) -> Node {
    let port = |number: u16| PortConfig {
        name: format!("p{number}"),
        mac: mac(number),
        addresses: vec![address(&format!("2001:db8:ff::{number}"))],
        link_mtu: LINK_MTUS[usize::from(number)],
        queue_limit_octets: 1 << 20,
        ..PortConfig::default()
    };
    let mut node = Node::new(NodeConfig::new(address("2001:db8:ff::99"), (0..PORTS).map(port).collect()));
    let mut apply = |command: Command| node.apply(command).expect("a command that the node takes");
    for (number, letter) in (1..).zip(['a', 'b', 'c', 'e', 'f']) {
        apply(Command::AddNeighbour { next_hop: hop(letter), mac: MacAddress([2, 0, 0, 0, 7, number]) });
    }
    for (table, to, hops) in [
        (0, "2001:db8:a::/48", "a"),
        (0, "2001:db8:b::/48", "b"),
        (0, "2001:db8:c::/48", "c"),
        (0, "2001:db8:d::/48", "d"),
        (0, "2001:db8:e::/48", "e"),
        (0, "2001:db8:10::/48", "ab"),
        (0, "2001:db8:11::/48", "abcef"),
        (0, "2001:db8:12::/48", "ad"),
        (0, "2001:db8::/32", "a"),
        (0, "5f00:0:300::/48", "a"),
        (0, "5f00:0:400::/48", "abc"),
        (0, "fc00::/16", "c"),
        (1, "2001:db8:a::/48", "b"),
        (1, "::/0", "c"),
        (2, "2001:db8::/32", "cfa"),
    ] {
        let action = RouteAction::Via(hops.chars().map(hop).collect());
        apply(Command::AddRoute { table: TableId(table), prefix: prefix(to), action });
    }
    if seed % 3 == 2 {
        let action = RouteAction::Via(vec![hop('f')]);
        apply(Command::AddRoute { table: TableId(0), prefix: prefix("::/0"), action });
    }
    apply(Command::AddRoute { table: TableId(0), prefix: prefix("2001:db8:bb::/48"), action: RouteAction::Blackhole });
    use EncapsMode::{Encaps, Reduced};
    for (table, to, mode, segments) in [
        (0, "2001:db8:e1::/48", Reduced, &["2001:db8:a::1"][..]),
        (0, "2001:db8:e2::/48", Reduced, &["2001:db8:11::1", "2001:db8:b::1", "2001:db8:c::1"]),
        (0, "2001:db8:e3::/48", Encaps, &["2001:db8:10::1", "2001:db8:b::1"]),
        (0, "2001:db8:e4::/48", Encaps, &["2001:db8:f:1::", "2001:db8:b::1"]),
        (0, "2001:db8:e5::/48", Encaps, &["2001:db8:a::1"; 8]),
        (0, "2001:db8:e6::/48", Reduced, &["2001:db8:e1::1"]),
        (1, "2001:db8:e7::/48", Encaps, &["2001:db8:c::1"; 6]),
    ] {
        let segments = segments.iter().map(|segment| address(segment)).collect();
        let action = RouteAction::Encaps { segments, mode, hmac_key_id: None };
        apply(Command::AddRoute { table: TableId(table), prefix: prefix(to), action });
    }
    for sid in SIDS {
        apply(Command::AddSid { prefix: prefix(sid), behavior: behavior(sid) });
    }
    add_ipv4(&mut node);
    let mut apply = |command: Command| node.apply(command).expect("a command that the node takes");
    if seed % 3 == 1 {
        let prefixes = |list: &[&str]| list.iter().map(|text| prefix(text)).collect();
        apply(Command::SetDomain(Domain {
            sids: prefixes(&["2001:db8:f::/48", "5f00::/32", "fc00::/32"]),
            infrastructure: prefixes(&["2001:db8:ff::/48", "2001:db8:a::/47"]),
            proxies: Vec::new(),
        }));
    }
    node
}
