//! Ports on interfaces: the keys of `[[port]]` for them, and the facts that the kernel reports.

use srdma_frame::PortId;
use srdma_io::Choice;
use srdma_node_spec::file::{AnyAddress, DriverName, Located, PortSection};
use srdma_wire::MacAddress;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Use of a configuration.
#[derive(Clone, Copy, Debug)]
pub enum Purpose<'k> {
    /// A run over captures: the file has everything that a packet needs.
    Captures,
    /// A node on interfaces, with the kernel's facts by name. Neighbours and routes also come from the kernel, so that
    /// next hops and addresses are accepted without a route of the file.
    Interfaces(&'k BTreeMap<String, InterfaceFacts>),
}

impl<'k> Purpose<'k> {
    /// Whether the node learns neighbours and routes from elsewhere than the file.
    pub(super) fn learns(self) -> bool {
        match self {
            Purpose::Captures => false,
            Purpose::Interfaces(_) => true,
        }
    }

    /// Facts of an interface beside the file.
    pub(super) fn facts(self, interface: &str) -> Option<&'k InterfaceFacts> {
        match self {
            Purpose::Captures => None,
            Purpose::Interfaces(known) => known.get(interface),
        }
    }
}

/// Facts that the kernel reports of an interface. The keys of its `[[port]]` win over it.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFacts {
    pub mac: MacAddress,
    pub addresses: Vec<Ipv6Addr>,
    /// The longest IPv6 packet that its link carries, in octets.
    pub link_mtu: u16,
}

/// A port's interface, and how frames get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInterface {
    /// The interface's name.
    pub name: String,
    /// The driver that was chosen.
    pub driver: Choice,
    /// MAC address, if configured.
    pub mac: Option<MacAddress>,
    /// Addresses, if configured.
    pub addresses: Option<Vec<Ipv6Addr>>,
    /// Link MTU in octets, if configured.
    pub link_mtu: Option<u16>,
    /// Limit of the sending rate in bits a second, if configured.
    pub pace_bits_per_s: Option<u64>,
    /// Whether packets may be forwarded without the element.
    pub fast_path: bool,
    /// The port whose driver carries the frames of a VLAN port. The interface is then the kernel's VLAN device, whose
    /// addresses and neighbours the port has, if there is one.
    pub parent: Option<PortId>,
    /// Whether frames with VLAN tags come and go by the interface.
    pub carries_vlans: bool,
}

impl PortInterface {
    /// `fast_path`: whether the file turns it on for the node.
    pub(super) fn of(section: &PortSection, pace_bits_per_s: Option<u64>, fast_path: bool) -> Self {
        let name = section.interface.as_ref().map_or(&section.name.value.0, |interface| &interface.value.0);
        let driver = match section.driver {
            DriverName::Auto => Choice::Auto,
            DriverName::AfXdp => Choice::Xdp,
            DriverName::AfXdpGeneric => Choice::XdpGeneric,
            DriverName::AfPacket => Choice::Packet,
        };
        let addresses = |given: &Vec<Located<AnyAddress>>| given.iter().map(|address| address.value.0).collect();
        PortInterface {
            name: name.clone(),
            driver,
            mac: section.mac.as_ref().map(|mac| mac.value),
            addresses: section.addresses.as_ref().map(addresses),
            link_mtu: section.link_mtu.as_ref().map(|mtu| mtu.value.get() as u16),
            pace_bits_per_s,
            fast_path: fast_path && section.fast_path.unwrap_or(true),
            parent: None,
            carries_vlans: false,
        }
    }
}
