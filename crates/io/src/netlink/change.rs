//! Changes of the kernel's links, addresses, neighbours and routes.

use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

/// A change of the kernel's links, addresses, neighbours or routes. Interfaces are identified by their index;
/// IPv4 addresses are IPv4-mapped ones (D258).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Everything there is follows, as changes: at the start, and again after changes were lost.
    DumpBegins,
    /// Entries that were not named since [`Change::DumpBegins`] are gone.
    DumpEnds,
    /// An interface is there.
    Link {
        index: u32,
        name: String,
        /// Its MAC address, if it has one of six octets.
        mac: Option<MacAddress>,
        /// Its MTU, in octets.
        mtu: u32,
        /// Whether it is up and has a carrier.
        is_up: bool,
    },
    /// An interface is gone, and with it all of its entries.
    LinkGone { index: u32 },
    /// An address that the kernel uses came or went.
    Address {
        /// The interface.
        index: u32,
        address: Ipv6Addr,
        /// Whether it went.
        gone: bool,
    },
    /// A neighbour was found, lost or changed.
    Neighbour {
        /// The interface.
        index: u32,
        address: Ipv6Addr,
        /// Its MAC address, while it is known.
        mac: Option<MacAddress>,
        /// A static entry: the kernel neither resolves nor expires it.
        is_permanent: bool,
        /// The kernel has removed it, and no longer resolves it.
        gone: bool,
    },
    /// A route came, changed or went.
    Route(KernelRoute),
}

/// A route of the kernel, or what of it came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRoute {
    /// The number of its table; the main one is [`MAIN_TABLE`](super::MAIN_TABLE).
    pub table: u32,
    /// The destination.
    pub prefix: Prefix,
    /// Its metric: of several routes to one prefix, the least is in use.
    pub metric: u32,
    /// Kind of the route.
    pub kind: RouteKind,
    /// The protocol that added it; ours have [`PROTOCOL`](super::PROTOCOL).
    pub protocol: u8,
    /// All of its next hops; of a removed route, those that are removed.
    pub next_hops: Vec<KernelNextHop>,
    /// It encapsulates or runs a behaviour in the kernel, such as seg6 and seg6local do.
    pub is_tunnelled: bool,
    /// It takes the place of a route with the same table, prefix and metric.
    pub replaces: bool,
    /// Whether it went.
    pub gone: bool,
}

/// A next hop of a kernel's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelNextHop {
    /// The interface.
    pub index: u32,
    /// The router; `None`: destinations are on the link.
    pub gateway: Option<Ipv6Addr>,
}

/// Kind of a kernel route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// It forwards.
    Unicast,
    /// It drops in silence.
    Blackhole,
    /// It drops, and answers that the destination is unreachable.
    Unreachable,
    /// It drops, and answers that this is prohibited.
    Prohibit,
    /// It ends the look-up in this table.
    Throw,
}
