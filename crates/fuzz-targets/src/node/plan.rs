//! Addresses of the nodes under test, and of their neighbours, hosts and groups.

use std::net::Ipv6Addr;

/// An address in 2001:db8::/32: its third group, its fourth, and its last.
const fn documentation(third: u16, fourth: u16, last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, third, fourth, 0, 0, 0, last)
}

/// A SID in fd00::/16: its second group and its last.
const fn sid(second: u16, last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, second, 0, 0, 0, 0, 0, last)
}

/// A SID in 5f00::/32: its third group and its fourth.
const fn micro(third: u16, fourth: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x5f00, 0, third, fourth, 0, 0, 0, 0)
}

const fn multicast(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xff3e, 0, 0, 0, 0, 0, 0, last)
}

/// The node under test.
pub(super) const LOOPBACK: Ipv6Addr = documentation(0xa, 0, 1);
/// A node above it, behind port 0: headend of the groups that it is not headend of.
pub(super) const ABOVE: Ipv6Addr = documentation(0xc, 0, 1);
/// Nodes below it, behind ports 1 and 2.
pub(super) const BELOW: [Ipv6Addr; 2] = [documentation(0xb, 0, 1), documentation(0xb, 0, 2)];

/// SIDs of the nodes above and below.
pub(super) const ABOVE_SID: Ipv6Addr = micro(0xc, 0xe000);
pub(super) const BELOW_SIDS: [Ipv6Addr; 2] = [micro(0xb1, 0xe000), micro(0xb2, 0xe000)];

/// The source of a group, its Proxy Address, and its receivers. Those with an odd number are behind port 2.
pub(super) const fn source(group: u16) -> Ipv6Addr {
    documentation(1, 0, group)
}

pub(super) const fn proxy(group: u16) -> Ipv6Addr {
    documentation(0xff, 0, 0x100 + group)
}

pub(super) const fn receiver(host: u16) -> Ipv6Addr {
    documentation(2, host & 1, host)
}

pub(super) const END: Ipv6Addr = sid(0x11, 0xe);
pub(super) const END_ALL: Ipv6Addr = sid(0x11, 0xf);
pub(super) const END_X: Ipv6Addr = sid(0x22, 0xe);
pub(super) const END_X_PSP: Ipv6Addr = sid(0x22, 0xf);
pub(super) const END_DT6: Ipv6Addr = sid(0x33, 0xd6);
pub(super) const END_DT6_OTHER: Ipv6Addr = sid(0x33, 0xd7);
/// By an SR policy alone.
pub(super) const END_DX6: Ipv6Addr = sid(0x33, 0xd8);
pub(super) const END_B6: Ipv6Addr = sid(0x33, 0xb6);
pub(super) const REPLICATE: Ipv6Addr = sid(0x44, 2);
pub(super) const REPLICATE_MULTICAST: Ipv6Addr = sid(0x44, 6);
pub(super) const REPLICATE_NOTHING: Ipv6Addr = sid(0x44, 0x99);
pub(super) const END_MT: Ipv6Addr = micro(1, 0xe000);
pub(super) const END_MT_SIGNED: Ipv6Addr = micro(1, 0xe001);
pub(super) const UN: [Ipv6Addr; 2] = [micro(0x100, 0), micro(0x200, 0)];
pub(super) const UA: Ipv6Addr = micro(0xe001, 0);

/// Multicast groups: copied and given End.MT, accepted by port 0 alone, with a required HMAC, handed over to branches,
/// without outgoing port, and unknown to every node.
pub(super) const COPIED: Ipv6Addr = multicast(0x100);
pub(super) const FROM_ABOVE: Ipv6Addr = multicast(0x101);
pub(super) const SIGNED: Ipv6Addr = multicast(0x102);
pub(super) const HANDED_OVER: Ipv6Addr = multicast(0x103);
pub(super) const NOWHERE: Ipv6Addr = multicast(0x104);
pub(super) const UNKNOWN_GROUP: Ipv6Addr = multicast(0x105);

/// An address in the prefix of a route, by the third group of the prefix.
pub(super) const fn behind(route: u16) -> Ipv6Addr {
    documentation(route, 0, 9)
}

/// Third groups of prefixes: encapsulated, encapsulated and signed, handed to a multicast group, black hole, unknown
/// neighbour, a link of little MTU, several next hops, a loop over the node's own SIDs, and encapsulated three times.
pub(super) const ENCAPSULATED: u16 = 0x13;
pub(super) const ENCAPSULATED_SIGNED: u16 = 0x14;
pub(super) const ENCAPSULATED_MULTICAST: u16 = 0x15;
pub(super) const BLACKHOLE: u16 = 0x16;
pub(super) const UNRESOLVED: u16 = 0x17;
pub(super) const NARROW: u16 = 0x18;
pub(super) const SEVERAL: u16 = 0x19;
pub(super) const LOOP: u16 = 0x1d;
pub(super) const NESTED: u16 = 0x1e;
pub(super) const NESTED_AGAIN: u16 = 0x1f;

/// Choices of destinations.
pub(super) const DESTINATIONS: [Ipv6Addr; 49] = [
    receiver(1),
    receiver(2),
    END_MT,
    REPLICATE,
    END,
    END_ALL,
    END_X,
    END_X_PSP,
    END_DT6,
    END_DT6_OTHER,
    REPLICATE_MULTICAST,
    REPLICATE_NOTHING,
    END_MT_SIGNED,
    UN[0],
    UN[1],
    UA,
    Ipv6Addr::new(0x5f00, 0, 0x100, 0x200, 0x300, 0, 0, 0),
    Ipv6Addr::new(0x5f00, 0, 0x200, 0x100, 0x200, 0x100, 0x200, 0x100),
    Ipv6Addr::new(0x5f00, 0, 0xe001, 0x300, 0, 0, 0, 0),
    Ipv6Addr::new(0x5f00, 0, 0x100, 0xe001, 0x300, 0, 0, 0),
    COPIED,
    FROM_ABOVE,
    SIGNED,
    HANDED_OVER,
    NOWHERE,
    UNKNOWN_GROUP,
    behind(ENCAPSULATED),
    behind(ENCAPSULATED_SIGNED),
    behind(ENCAPSULATED_MULTICAST),
    behind(BLACKHOLE),
    behind(UNRESOLVED),
    behind(NARROW),
    behind(SEVERAL),
    behind(LOOP),
    behind(NESTED),
    LOOPBACK,
    ABOVE,
    BELOW[0],
    BELOW[1],
    ABOVE_SID,
    BELOW_SIDS[0],
    source(1),
    source(3),
    proxy(1),
    proxy(2),
    proxy(3),
    proxy(4),
    Ipv6Addr::LOCALHOST,
    Ipv6Addr::new(0x3001, 0, 0, 0, 0, 0, 0, 1),
];

/// Choices of sources.
pub(super) const SOURCES: [Ipv6Addr; 16] = [
    ABOVE,
    source(1),
    source(2),
    source(3),
    source(4),
    source(5),
    BELOW[0],
    BELOW[1],
    receiver(1),
    receiver(2),
    receiver(3),
    LOOPBACK,
    proxy(1),
    COPIED,
    Ipv6Addr::UNSPECIFIED,
    behind(NARROW),
];
