//! Changes to the kernel: it drops the packets that the node takes, keeps neighbours resolved that only the node sends
//! to, and forwards by routes that were learnt.

use super::requests::Requests;
use super::{KernelNextHop, LEARNT_PROTOCOL, MAIN_TABLE, PROTOCOL};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourExtFlags, NeighbourFlags, NeighbourMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteNextHop, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use srdma_wire::Prefix;
use std::collections::BTreeSet;
use std::io;
use std::net::Ipv6Addr;

/// The metric of our routes: below all others, which default to 1024 or 256.
const METRIC: u32 = 1;

/// The metric of routes that were learnt: above all others.
const LEARNT_METRIC: u32 = 2000;

/// The entries that this program added to the kernel's tables in this network namespace, marked as [`PROTOCOL`] or
/// [`LEARNT_PROTOCOL`].
///
/// Dropping it leaves everything behind, for want of time; [`Kernel::clear`] does not.
#[derive(Debug)]
pub struct Kernel {
    requests: Requests,
    blackholes: BTreeSet<Prefix>,
    learnt: BTreeSet<Prefix>,
    kept: BTreeSet<(u32, Ipv6Addr)>,
}

impl Kernel {
    /// Begins without additions. Must be called inside a tokio runtime with I/O.
    ///
    /// # Errors
    ///
    /// If the socket cannot be opened.
    pub fn new() -> io::Result<Self> {
        let requests = Requests::new()?;
        Ok(Kernel { requests, blackholes: BTreeSet::new(), learnt: BTreeSet::new(), kept: BTreeSet::new() })
    }

    /// Removes what a killed predecessor left behind; returns how much that was. Two nodes in one network namespace
    /// would take each other's away.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, as it does without CAP_NET_ADMIN.
    pub async fn clear_stale(&mut self) -> io::Result<usize> {
        let mut stale = Vec::new();
        for family in [AddressFamily::Inet6, AddressFamily::Inet] {
            let routes = RouteNetlinkMessage::GetRoute(any_route(family));
            stale.append(&mut self.requests.dump(routes, stale_route).await?);
            let neighbours = RouteNetlinkMessage::GetNeighbour(any_neighbour(family));
            stale.append(&mut self.requests.dump(neighbours, stale_neighbour).await?);
        }
        let mut removed = 0;
        for message in stale {
            removed += usize::from(unless_gone(self.requests.act(message, 0).await)?);
        }
        Ok(removed)
    }

    /// Lets the kernel drop the packets to a prefix, which the node takes.
    ///
    /// # Errors
    ///
    /// If another process has a route to the prefix at the same metric, or the kernel refuses.
    pub async fn add_blackhole(&mut self, prefix: Prefix) -> io::Result<()> {
        if !self.blackholes.contains(&prefix) {
            let message = RouteNetlinkMessage::NewRoute(blackhole(prefix));
            self.requests.act(message, NLM_F_CREATE | NLM_F_EXCL).await?;
            self.blackholes.insert(prefix);
        }
        Ok(())
    }

    /// Takes such a route back, if it is there.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub async fn remove_blackhole(&mut self, prefix: Prefix) -> io::Result<()> {
        if self.blackholes.remove(&prefix) {
            unless_gone(self.requests.act(RouteNetlinkMessage::DelRoute(blackhole(prefix)), 0).await)?;
        }
        Ok(())
    }

    /// Has the kernel forward to a prefix by these routers, in place of the previous ones.
    ///
    /// # Errors
    ///
    /// If an interface is gone or down, or the kernel refuses.
    pub async fn set_route(&mut self, prefix: Prefix, next_hops: &[KernelNextHop]) -> io::Result<()> {
        let mut message = learnt(prefix);
        let gateway =
            |hop: &KernelNextHop| hop.gateway.map(|address| RouteAttribute::Gateway(RouteAddress::Inet6(address)));
        if let [hop] = next_hops {
            message.attributes.push(RouteAttribute::Oif(hop.index));
            message.attributes.extend(gateway(hop));
        } else {
            let hops = next_hops.iter().map(|hop| {
                let mut next_hop = RouteNextHop::default();
                next_hop.interface_index = hop.index;
                next_hop.attributes.extend(gateway(hop));
                next_hop
            });
            message.attributes.push(RouteAttribute::MultiPath(hops.collect()));
        }
        self.learnt.insert(prefix);
        self.requests.act(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE).await
    }

    /// Takes such a route back, if it is there.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub async fn remove_route(&mut self, prefix: Prefix) -> io::Result<()> {
        if self.learnt.remove(&prefix) {
            unless_gone(self.requests.act(RouteNetlinkMessage::DelRoute(learnt(prefix)), 0).await)?;
        }
        Ok(())
    }

    /// Has the kernel resolve a neighbour, and keep it resolved without traffic: a "managed" entry (since Linux 5.16).
    /// May be repeated when the entry was removed with its link. An entry that is set by hand would become a managed
    /// one.
    ///
    /// # Errors
    ///
    /// If the interface is gone or down, or the kernel refuses.
    pub async fn keep_resolved(&mut self, index: u32, address: Ipv6Addr) -> io::Result<()> {
        let mut message = neighbour(index, address);
        message.header.flags = NeighbourFlags::ExtLearned;
        message.attributes.push(NeighbourAttribute::Protocol(RouteProtocol::Other(PROTOCOL)));
        message.attributes.push(NeighbourAttribute::ExtFlags(NeighbourExtFlags::Managed));
        self.kept.insert((index, address));
        self.requests.act(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE).await
    }

    /// Leaves a neighbour to the kernel again.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub async fn remove_kept(&mut self, index: u32, address: Ipv6Addr) -> io::Result<()> {
        if self.kept.remove(&(index, address)) {
            let message = RouteNetlinkMessage::DelNeighbour(neighbour(index, address));
            unless_gone(self.requests.act(message, 0).await)?;
        }
        Ok(())
    }

    /// Takes everything back. Goes on behind an error, and returns the first.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub async fn clear(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for prefix in self.blackholes.clone() {
            result = result.and(self.remove_blackhole(prefix).await);
        }
        for prefix in self.learnt.clone() {
            result = result.and(self.remove_route(prefix).await);
        }
        for (index, address) in self.kept.clone() {
            result = result.and(self.remove_kept(index, address).await);
        }
        result
    }
}

/// Treats the absence of an entry as success of its removal; returns whether it was there.
fn unless_gone(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH | libc::ENODEV | libc::ENXIO) => Ok(false),
            _ => Err(error),
        },
    }
}

fn any_route(family: AddressFamily) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message
}

fn any_neighbour(family: AddressFamily) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family;
    message
}

fn blackhole(prefix: Prefix) -> RouteMessage {
    let mut message = route(prefix, PROTOCOL, METRIC);
    message.header.kind = RouteType::BlackHole;
    message
}

fn learnt(prefix: Prefix) -> RouteMessage {
    let mut message = route(prefix, LEARNT_PROTOCOL, LEARNT_METRIC);
    message.header.kind = RouteType::Unicast;
    message
}

fn route(prefix: Prefix, protocol: u8, metric: u32) -> RouteMessage {
    let (family, address, len) = match prefix.as_ipv4() {
        Some((address, len)) => (AddressFamily::Inet, RouteAddress::Inet(address), len),
        None => (AddressFamily::Inet6, RouteAddress::Inet6(prefix.address()), prefix.prefix_len()),
    };
    let mut message = any_route(family);
    message.header.destination_prefix_length = len;
    message.header.table = MAIN_TABLE as u8;
    message.header.protocol = RouteProtocol::Other(protocol);
    message.header.scope = RouteScope::Universe;
    message.attributes.push(RouteAttribute::Destination(address));
    message.attributes.push(RouteAttribute::Priority(metric));
    message
}

fn neighbour(index: u32, address: Ipv6Addr) -> NeighbourMessage {
    let (family, address) = match address.to_ipv4_mapped() {
        Some(address) => (AddressFamily::Inet, NeighbourAddress::Inet(address)),
        None => (AddressFamily::Inet6, NeighbourAddress::Inet6(address)),
    };
    let mut message = any_neighbour(family);
    message.header.ifindex = index;
    message.attributes.push(NeighbourAttribute::Destination(address));
    message
}

fn stale_route(message: RouteNetlinkMessage) -> Option<RouteNetlinkMessage> {
    match message {
        RouteNetlinkMessage::NewRoute(route)
            if [PROTOCOL, LEARNT_PROTOCOL].contains(&u8::from(route.header.protocol)) =>
        {
            Some(RouteNetlinkMessage::DelRoute(route))
        }
        _ => None,
    }
}

fn stale_neighbour(message: RouteNetlinkMessage) -> Option<RouteNetlinkMessage> {
    let RouteNetlinkMessage::NewNeighbour(found) = message else {
        return None;
    };
    let is_ours = found.attributes.contains(&NeighbourAttribute::Protocol(RouteProtocol::Other(PROTOCOL)));
    let address = found.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => Some(*address),
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(address.to_ipv6_mapped()),
        _ => None,
    });
    let address = address.filter(|_| is_ours)?;
    Some(RouteNetlinkMessage::DelNeighbour(neighbour(found.header.ifindex, address)))
}
