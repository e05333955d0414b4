//! Addresses: a /64 for each host, a locator with a loopback for each switch, all of one /32.
//!
//! | what | address below the base, here `2001:db8::/32` |
//! |---|---|
//! | host with number `g << 16 \| m` | `2001:db8:g:m::1`, its /64 `2001:db8:g:m::/64` |
//! | its NIC, where that is a node of its own | `2001:db8:g:m::2` |
//! | switch number n of tier t | loopback `2001:db8:ff00+t:n::1`, its locator `2001:db8:ff00+t:n::/64` |
//!
//! An address is made of a node's number alone, so that it stays when others are added. Where a generator gave the
//! numbers, the hosts of one switch share a /48: [`AddressPlan::destinations`] uses it to keep tables small.

use crate::next_hops::NextHops;
use crate::topology::{HostId, SwitchId, Topology};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The largest number of a host. Larger ones would collide with the switches' addresses.
pub const MAX_HOST_NUMBER: u32 = 0xfeff_ffff;

/// First number of switches.
const SWITCHES: u16 = 0xff00;

/// The /32 below which all addresses of a fabric lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    base: [u16; 2],
}

/// Hosts that are reached alike, by one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The prefix; bits after its length are zero.
    pub prefix: Ipv6Addr,
    /// Its length, 48 or 64 bits.
    pub length: u8,
    /// The class of hosts, as [`NextHops::class`] counts them.
    pub class: u32,
}

impl AddressPlan {
    /// The documentation prefix, 2001:db8::/32 (RFC 3849).
    pub const DOCUMENTATION: AddressPlan = AddressPlan { base: [0x2001, 0xdb8] };

    /// Everything below the first 32 bits of an address.
    pub fn below(base: Ipv6Addr) -> Self {
        let [first, second, ..] = base.segments();
        AddressPlan { base: [first, second] }
    }

    /// A host's address.
    pub fn host(&self, topology: &Topology, host: HostId) -> Ipv6Addr {
        let number = topology.hosts()[host.index()].number;
        self.address((number >> 16) as u16, number as u16, 1)
    }

    /// The address of a NIC that is a node of its own, in front of its host: the second of the host's /64.
    pub fn headend(&self, topology: &Topology, host: HostId) -> Ipv6Addr {
        let number = topology.hosts()[host.index()].number;
        self.address((number >> 16) as u16, number as u16, 2)
    }

    /// A host's /64.
    pub fn host_prefix(&self, topology: &Topology, host: HostId) -> Ipv6Addr {
        let number = topology.hosts()[host.index()].number;
        self.address((number >> 16) as u16, number as u16, 0)
    }

    /// A switch's loopback address.
    pub fn loopback(&self, topology: &Topology, switch: SwitchId) -> Ipv6Addr {
        let switch = &topology.switches()[switch.index()];
        self.address(SWITCHES + u16::from(switch.tier), switch.number, 1)
    }

    /// A switch's locator, 64 bits long: the common prefix of its SIDs.
    pub fn locator(&self, topology: &Topology, switch: SwitchId) -> Ipv6Addr {
        let switch = &topology.switches()[switch.index()];
        self.address(SWITCHES + u16::from(switch.tier), switch.number, 0)
    }

    /// All hosts by the smallest number of prefixes: a /48 where all its hosts have the same next hops, else a /64 for
    /// each. A switch with attached hosts must distinguish them in addition.
    pub fn destinations(&self, topology: &Topology, next_hops: &NextHops) -> Vec<Destination> {
        let mut groups: BTreeMap<u16, Vec<HostId>> = BTreeMap::new();
        for host in topology.host_ids() {
            groups.entry((topology.hosts()[host.index()].number >> 16) as u16).or_default().push(host);
        }
        let mut destinations = Vec::new();
        for (group, hosts) in groups {
            let class = next_hops.class(hosts[0]);
            if hosts.iter().all(|host| next_hops.class(*host) == class) {
                destinations.push(Destination { prefix: self.address(group, 0, 0), length: 48, class });
            } else {
                destinations.extend(hosts.iter().map(|host| Destination {
                    prefix: self.host_prefix(topology, *host),
                    length: 64,
                    class: next_hops.class(*host),
                }));
            }
        }
        destinations
    }

    fn address(&self, third: u16, fourth: u16, last: u16) -> Ipv6Addr {
        Ipv6Addr::new(self.base[0], self.base[1], third, fourth, 0, 0, 0, last)
    }
}
