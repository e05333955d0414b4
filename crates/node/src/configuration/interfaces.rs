//! Where ports are: the keys of `[[port]]` that only a node on interfaces needs, and what the kernel says itself.

use super::file::{DriverName, PortSection};
use super::value::{HostAddress, Located};
use srdma_io::Choice;
use srdma_wire::MacAddress;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// What a configuration is read for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose<'k> {
    /// A run over captures: what a packet needs stands in the file.
    Captures,
    /// A node on interfaces, of which the kernel says this, by their names. It also knows neighbours and routes, so
    /// that next hops and addresses may be named that the file does not lead to.
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

    /// What is known of an interface beside the file.
    pub(super) fn facts(self, interface: &str) -> Option<&'k InterfaceFacts> {
        match self {
            Purpose::Captures => None,
            Purpose::Interfaces(known) => known.get(interface),
        }
    }
}

/// What the kernel says of an interface. The keys of its `[[port]]` win over it.
#[allow(missing_docs)]
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
    /// Its MAC address, if the file says it.
    pub mac: Option<MacAddress>,
    /// Its addresses, if the file says them.
    pub addresses: Option<Vec<Ipv6Addr>>,
    /// Its link MTU in octets, if the file says it.
    pub link_mtu: Option<u16>,
    /// The node sends no faster than so many bits a second here, if the file says so.
    pub pace_bits_per_s: Option<u64>,
}

impl PortInterface {
    pub(super) fn of(section: &PortSection, pace_bits_per_s: Option<u64>) -> Self {
        let name = section.interface.as_ref().map_or(&section.name.value.0, |interface| &interface.value.0);
        let driver = match section.driver {
            DriverName::Auto => Choice::Auto,
            DriverName::AfXdp => Choice::Xdp,
            DriverName::AfXdpGeneric => Choice::XdpGeneric,
            DriverName::AfPacket => Choice::Packet,
        };
        let addresses = |given: &Vec<Located<HostAddress>>| given.iter().map(|address| address.value.0).collect();
        PortInterface {
            name: name.clone(),
            driver,
            mac: section.mac.as_ref().map(|mac| mac.value),
            addresses: section.addresses.as_ref().map(addresses),
            link_mtu: section.link_mtu.as_ref().map(|mtu| mtu.value.get() as u16),
            pace_bits_per_s,
        }
    }
}
