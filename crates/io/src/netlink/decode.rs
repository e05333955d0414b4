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
use std::net::{IpAddr, Ipv6Addr};

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
            AddressAttribute::Address(IpAddr::V6(value)) => address = Some(*value),
            AddressAttribute::Local(IpAddr::V6(value)) => local = Some(*value),
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
    if header.family != AddressFamily::Inet6 || header.flags.contains(NeighbourFlags::Proxy) {
        return None;
    }
    let (mut address, mut mac) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(value)) => address = Some(*value),
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
    let address = address.filter(|address| !address.is_multicast())?;
    let mac = mac.filter(|_| is_known && !gone);
    let is_permanent = !gone && header.state == NeighbourState::Permanent;
    Some(Change::Neighbour { index: header.ifindex, address, mac, is_permanent, gone })
}

fn route(message: &RouteMessage, replaces: bool, gone: bool) -> Option<Change> {
    let header = &message.header;
    let is_plain = header.address_family == AddressFamily::Inet6
        && header.source_prefix_length == 0
        && !header.flags.contains(RouteFlags::Cloned);
    let kind = match header.kind {
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::BlackHole => RouteKind::Blackhole,
        RouteType::Unreachable => RouteKind::Unreachable,
        RouteType::Prohibit => RouteKind::Prohibit,
        RouteType::Throw => RouteKind::Throw,
        // Of the local table: addresses are reported separately.
        _ => return None,
    };
    let mut route = KernelRoute {
        table: header.table.into(),
        prefix: Prefix::new(Ipv6Addr::UNSPECIFIED, header.destination_prefix_length)?,
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
            RouteAttribute::Destination(RouteAddress::Inet6(address)) => {
                route.prefix = Prefix::new(*address, header.destination_prefix_length)?;
            }
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Priority(metric) => route.metric = *metric,
            RouteAttribute::Oif(value) => index = Some(*value),
            RouteAttribute::Gateway(RouteAddress::Inet6(address)) => gateway = Some(*address),
            RouteAttribute::EncapType(_) => route.is_tunnelled = true,
            RouteAttribute::MultiPath(hops) => {
                for hop in hops {
                    let gateway = hop.attributes.iter().find_map(|attribute| match attribute {
                        RouteAttribute::Gateway(RouteAddress::Inet6(address)) => Some(*address),
                        _ => None,
                    });
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

fn mac_address(octets: &[u8]) -> Option<MacAddress> {
    octets.try_into().ok().map(MacAddress)
}
