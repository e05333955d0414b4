//! The choice of a GID: an address of a port, in one of the two formats of RoCE packets.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Packets that a GID is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidType {
    /// InfiniBand, or RoCE v1, whose packets are not IP packets.
    Other,
    /// RoCE v2: UDP over IPv6, or over IPv4 for v4-mapped addresses.
    RoceV2,
}

/// An entry of a port's GID table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// The port, from 1.
    pub port: u8,
    /// Place in the table, which changes when addresses come and go.
    pub index: u8,
    /// The GID, which in RoCE v2 is an IP address.
    pub address: Ipv6Addr,
    /// Its type.
    pub gid_type: GidType,
    /// Index of the network interface that has the address; 0 if unknown.
    pub interface_index: u32,
}

/// Why no GID fits an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GidProblem {
    /// Groups reach no host by such an address: link-local, loopback, multicast, unspecified.
    NotGlobal,
    /// The address is there for RoCE v1 only.
    OnlyRoceV1,
    /// No port has the address. These are usable.
    NotFound(Vec<Ipv6Addr>),
}

impl fmt::Display for GidProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GidProblem::NotGlobal => write!(f, "an address that other links reach is needed"),
            GidProblem::OnlyRoceV1 => write!(f, "its port has it for RoCE v1 only; set the port's GID type to RoCE v2"),
            GidProblem::NotFound(usable) if usable.is_empty() => {
                write!(
                    f,
                    "no device has an address for RoCE v2 that other links reach; add it to the device's interface"
                )
            }
            GidProblem::NotFound(usable) => {
                let usable: Vec<String> = usable.iter().map(|address| address.to_canonical().to_string()).collect();
                write!(f, "devices have {}; add it to a device's interface, or use one of these", usable.join(", "))
            }
        }
    }
}

/// The entry for an address, of IPv4 an IPv4-mapped one (D273): the first of type RoCE v2.
///
/// # Errors
///
/// If there is none.
pub fn choose(entries: &[GidEntry], address: Ipv6Addr) -> Result<GidEntry, GidProblem> {
    if !is_routable(address) {
        return Err(GidProblem::NotGlobal);
    }
    let is_usable = |entry: &&GidEntry| entry.gid_type == GidType::RoceV2 && is_routable(entry.address);
    if let Some(entry) = entries.iter().filter(is_usable).find(|entry| entry.address == address) {
        return Ok(*entry);
    }
    if entries.iter().any(|entry| entry.address == address) {
        return Err(GidProblem::OnlyRoceV1);
    }
    Err(GidProblem::NotFound(usable(entries)))
}

/// Addresses that [`choose`] finds an entry for, in order; those of IPv4 are IPv4-mapped.
pub fn usable(entries: &[GidEntry]) -> Vec<Ipv6Addr> {
    let is_usable = |entry: &&GidEntry| entry.gid_type == GidType::RoceV2 && is_routable(entry.address);
    let mut usable: Vec<Ipv6Addr> = entries.iter().filter(is_usable).map(|entry| entry.address).collect();
    usable.sort();
    usable.dedup();
    usable
}

/// True for addresses that other links can route to.
fn is_routable(address: Ipv6Addr) -> bool {
    let is_special = match address.to_canonical() {
        IpAddr::V6(address) => {
            address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || address.is_unicast_link_local()
        }
        IpAddr::V4(address) => {
            address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || address.is_broadcast()
                || address.is_link_local()
        }
    };
    !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Ipv6Addr {
        text.parse().expect("an address")
    }

    fn entry(index: u8, text: &str, gid_type: GidType) -> GidEntry {
        GidEntry { port: 1, index, address: address(text), gid_type, interface_index: 2 }
    }

    /// The table of a NIC with two addresses: each GID stands in it once for RoCE v1 and once for RoCE v2.
    fn table() -> Vec<GidEntry> {
        let addresses = ["fe80::5054:ff:fe00:1", "::ffff:192.0.2.1", "2001:db8::1", "fd00:1::1"];
        let types = [GidType::Other, GidType::RoceV2];
        let pairs = addresses.iter().flat_map(|text| types.map(|gid_type| (text, gid_type)));
        (0..).zip(pairs).map(|(index, (text, gid_type))| entry(index, text, gid_type)).collect()
    }

    #[test]
    fn the_entry_of_roce_v2_is_chosen() {
        assert_eq!(choose(&table(), address("2001:db8::1")).expect("an entry").index, 5);
        assert_eq!(choose(&table(), address("fd00:1::1")).expect("an entry").index, 7);
        // Its packets are IPv4, those of the entry before InfiniBand's.
        assert_eq!(choose(&table(), address("::ffff:192.0.2.1")).expect("an entry").index, 3);
    }

    #[test]
    fn the_order_of_the_table_does_not_matter() {
        let mut table = table();
        table.reverse();
        let chosen = choose(&table, address("2001:db8::1")).expect("an entry");
        assert_eq!((chosen.index, chosen.gid_type), (5, GidType::RoceV2));
    }

    #[test]
    fn the_port_is_that_of_the_address() {
        let mut table = table();
        let other = GidEntry { port: 2, index: 1, ..entry(0, "2001:db8::2", GidType::RoceV2) };
        table.push(other);
        assert_eq!(choose(&table, address("2001:db8::2")), Ok(other));
    }

    #[test]
    fn addresses_that_groups_do_not_reach_are_refused() {
        let of_ipv6 = ["fe80::5054:ff:fe00:1", "ff0e::1", "::", "::1"];
        let of_ipv4 = ["169.254.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "127.0.0.1"];
        for text in of_ipv6.map(str::to_owned).into_iter().chain(of_ipv4.map(|text| format!("::ffff:{text}"))) {
            let text = text.as_str();
            assert_eq!(choose(&table(), address(text)), Err(GidProblem::NotGlobal), "{text}");
        }
    }

    #[test]
    fn an_address_for_roce_v1_only_is_named() {
        let table = [entry(0, "2001:db8::1", GidType::Other)];
        assert_eq!(choose(&table, address("2001:db8::1")), Err(GidProblem::OnlyRoceV1));
    }

    #[test]
    fn an_unknown_address_is_answered_by_the_usable_ones() {
        let usable = ["::ffff:192.0.2.1", "2001:db8::1", "fd00:1::1"];
        let problem = choose(&table(), address("2001:db8::9")).expect_err("no such address");
        assert_eq!(problem, GidProblem::NotFound(usable.map(address).to_vec()));
        assert!(problem.to_string().starts_with("devices have 192.0.2.1, 2001:db8::1, fd00:1::1; "), "{problem}");
        let none = choose(&[], address("2001:db8::9")).expect_err("no such address");
        assert!(none.to_string().starts_with("no device has an address for RoCE v2"), "{none}");
    }
}
