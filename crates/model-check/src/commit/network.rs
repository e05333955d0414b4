//! The network of the model: a headend and one or two edges, each linked to it.
//!
//! ```text
//!   source ── H ──┬── E1 ── receivers R1, R2, R3
//!                 └── E2 ── R3 instead, with two edges
//! ```

use srdma_agent::AllowedSids;
use srdma_api::{Link, NewGroup, PROTOCOL, Registration, SourceAddress};
use srdma_controller_core::{DEFAULT_TENANT, Principal, Role};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

pub(super) const GROUP_TENANT: &str = DEFAULT_TENANT;

/// The place of a node: 0 is the headend, the others are edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(pub(super) u8);

pub(super) const HEADEND: Place = Place(0);

impl Place {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn name(self) -> String {
        if self == HEADEND { "H".to_owned() } else { format!("E{}", self.0) }
    }

    pub(super) fn loopback(self) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0xff, self.0.into(), 0, 0, 0, 1)
    }

    /// The registration of a node without groups.
    pub(super) fn registration(self, places: &[Place]) -> Registration {
        let neighbours = places.iter().filter(|other| (self == HEADEND) != (**other == HEADEND));
        let hosts = if self == HEADEND { 0xaa } else { 0xb0 + u16::from(self.0) };
        Registration {
            protocol: PROTOCOL,
            name: self.name(),
            loopback: self.loopback(),
            end_mt: self.allowed().end_mt,
            replication: self.allowed().replication,
            links: neighbours.map(|other| Link { to: other.loopback(), mtu: 9000, cost: 1 }).collect(),
            hosts: prefix([0x2001, 0xdb8, hosts, 0, 0, 0, 0, 0], 64).into_iter().collect(),
            groups: Vec::new(),
            repairs: false,
        }
    }

    pub(super) fn allowed(self) -> AllowedSids {
        let number = u16::from(self.0);
        let is_edge = self != HEADEND;
        AllowedSids {
            end_mt: is_edge.then(|| Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 0xe)),
            replication: prefix([0x2001, 0xdb8, 0xff, number, 0xf, 0, 0, 0], 80).filter(|_| !is_edge),
        }
    }
}

fn prefix(segments: [u16; 8], length: u8) -> Option<Prefix> {
    Prefix::new(Ipv6Addr::from(segments), length)
}

/// A receiver of an edge.
pub(super) fn receiver(edge: u8, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xb0 + u16::from(edge), 0, 0, 0, 0, host)
}

pub(super) fn admin() -> Principal {
    Principal { name: "model".to_owned(), role: Role::Admin, tenant: None, node: None }
}

/// `proxy`: the number of its Proxy Address.
pub(super) fn new_group(proxy: u16) -> NewGroup {
    let source = SourceAddress { address: Ipv6Addr::new(0x2001, 0xdb8, 0xaa, 0, 0, 0, 0, 1), qpn: 0x100 };
    let proxy = Some(Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, proxy));
    NewGroup { proxy, ..NewGroup::new(source, 0xd0_0000) }
}
