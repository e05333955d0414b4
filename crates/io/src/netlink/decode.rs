//! Conversion of rtnetlink messages to changes.

use super::change::{Change, KernelNextHop, KernelRoute, RouteKind};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use srdma_wire::{MacAddress, Prefix};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The change in a message, when it is a relevant one; `replaces` is the message's flag.
pub(super) fn change(message: &RouteNetlinkMessage, replaces: bool) -> Option<Change> {
    match message {
        RouteNetlinkMessage::NewLink(link) => link_there(link),
        RouteNetlinkMessage::DelLink(link) if is_link(link) => Some(Change::LinkGone { index: link.header.index }),
        RouteNetlinkMessage::NewAddress(message) => address(message, false),
        RouteNetlinkMessage::DelAddress(message) => address(message, true),
        RouteNetlinkMessage::NewNeighbour(message) => neighbour(message, false),
        RouteNetlinkMessage::DelNeighbour(message) => neighbour(message, true),
        RouteNetlinkMessage::NewRoute(message) => route(message, replaces, false),
        RouteNetlinkMessage::DelRoute(message) => route(message, false, true),
        _ => None,
    }
}

/// The number of a route's protocol.
pub(super) fn route_protocol(message: &RouteMessage) -> u8 {
    message.header.protocol.into()
}

/// A bridge reports its ports as if they were links, and a port that leaves it as if it were gone.
fn is_link(message: &LinkMessage) -> bool {
    message.header.interface_family != AddressFamily::Bridge
}

fn link_there(message: &LinkMessage) -> Option<Change> {
    if !is_link(message) {
        return None;
    }
    let (mut name, mut mac, mut mtu) = (None, None, 0);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = Some(text.clone()),
            LinkAttribute::Address(octets) => mac = mac_address(octets),
            LinkAttribute::Mtu(octets) => mtu = *octets,
            _ => {}
        }
    }
    let is_up = message.header.flags.contains(LinkFlags::Up | LinkFlags::Running);
    Some(Change::Link { index: message.header.index, name: name?, mac, mtu, is_up })
}

/// An address is used once duplicate address detection is through.
fn address(message: &AddressMessage, gone: bool) -> Option<Change> {
    let mut flags = AddressFlags::from_bits_retain(message.header.flags.bits().into());
    let (mut address, mut local) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Address(value) => address = Some(as_ipv6(*value)),
            AddressAttribute::Local(value) => local = Some(as_ipv6(*value)),
            AddressAttribute::Flags(value) => flags = *value,
            _ => {}
        }
    }
    let unusable = flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed)
        && !flags.contains(AddressFlags::Optimistic);
    Some(Change::Address { index: message.header.index, address: local.or(address)?, gone: gone || unusable })
}

fn neighbour(message: &NeighbourMessage, gone: bool) -> Option<Change> {
    let header = &message.header;
    if !is_ip(header.family) || header.flags.contains(NeighbourFlags::Proxy) {
        return None;
    }
    let (mut address, mut mac) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(value)) => address = Some(*value),
            NeighbourAttribute::Destination(NeighbourAddress::Inet(value)) => address = Some(value.to_ipv6_mapped()),
            NeighbourAttribute::LinkLayerAddress(octets) => mac = mac_address(octets),
            _ => {}
        }
    }
    let is_known = match header.state {
        NeighbourState::Reachable | NeighbourState::Stale | NeighbourState::Delay | NeighbourState::Probe => true,
        NeighbourState::Permanent | NeighbourState::Noarp => true,
        NeighbourState::Incomplete | NeighbourState::Failed | NeighbourState::None => false,
        _ => false,
    };
    let address = address.filter(|address| !address.to_canonical().is_multicast())?;
    let mac = mac.filter(|_| is_known && !gone);
    let is_permanent = !gone && header.state == NeighbourState::Permanent;
    Some(Change::Neighbour { index: header.ifindex, address, mac, is_permanent, gone })
}

fn route(message: &RouteMessage, replaces: bool, gone: bool) -> Option<Change> {
    let header = &message.header;
    let is_ipv4 = header.address_family == AddressFamily::Inet;
    let mut is_plain =
        is_ip(header.address_family) && header.source_prefix_length == 0 && !header.flags.contains(RouteFlags::Cloned);
    let kind = match header.kind {
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::BlackHole => RouteKind::Blackhole,
        RouteType::Unreachable => RouteKind::Unreachable,
        RouteType::Prohibit => RouteKind::Prohibit,
        RouteType::Throw => RouteKind::Throw,
        // Of the local table: addresses are reported separately.
        _ => return None,
    };
    let prefix = |address: Ipv6Addr| match address.to_ipv4_mapped() {
        Some(address) => Prefix::of_ipv4(address, header.destination_prefix_length),
        None => Prefix::new(address, header.destination_prefix_length),
    };
    let all = if is_ipv4 { Ipv4Addr::UNSPECIFIED.to_ipv6_mapped() } else { Ipv6Addr::UNSPECIFIED };
    let mut route = KernelRoute {
        table: header.table.into(),
        prefix: prefix(all)?,
        metric: 0,
        kind,
        protocol: route_protocol(message),
        next_hops: Vec::new(),
        is_tunnelled: false,
        replaces,
        gone,
    };
    let (mut index, mut gateway) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => route.prefix = prefix(route_address(address)?)?,
            // A next hop of the other IP version (RFC 8950).
            RouteAttribute::Via(_) => is_plain = false,
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Priority(metric) => route.metric = *metric,
            RouteAttribute::Oif(value) => index = Some(*value),
            RouteAttribute::Gateway(address) => gateway = route_address(address),
            RouteAttribute::EncapType(_) => route.is_tunnelled = true,
            RouteAttribute::MultiPath(hops) => {
                for hop in hops {
                    let gateway = hop.attributes.iter().find_map(|attribute| match attribute {
                        RouteAttribute::Gateway(address) => route_address(address),
                        _ => None,
                    });
                    is_plain &= !hop.attributes.iter().any(|attribute| matches!(attribute, RouteAttribute::Via(_)));
                    route.is_tunnelled |=
                        hop.attributes.iter().any(|attribute| matches!(attribute, RouteAttribute::EncapType(_)));
                    route.next_hops.push(KernelNextHop { index: hop.interface_index, gateway });
                }
            }
            _ => {}
        }
    }
    route.next_hops.extend(index.map(|index| KernelNextHop { index, gateway }));
    is_plain.then_some(Change::Route(route))
}

fn is_ip(family: AddressFamily) -> bool {
    matches!(family, AddressFamily::Inet | AddressFamily::Inet6)
}

fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn route_address(address: &RouteAddress) -> Option<Ipv6Addr> {
    match address {
        RouteAddress::Inet(address) => Some(address.to_ipv6_mapped()),
        RouteAddress::Inet6(address) => Some(*address),
        _ => None,
    }
}

fn mac_address(octets: &[u8]) -> Option<MacAddress> {
    octets.try_into().ok().map(MacAddress)
}
