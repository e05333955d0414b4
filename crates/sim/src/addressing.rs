//! Addressing plan of a transfer, in the documentation prefix.
//!
//! | what | address |
//! |---|---|
//! | source S1 | `2001:db8:aa::1` |
//! | receiver R12 | `2001:db8:bb::12` |
//! | the group's Proxy Address | `2001:db8:cc::1` |
//! | node N12: loopback, End.MT SID, Replication SID | `2001:db8:ff:12::1`, `2001:db8:ff:12::e`, `2001:db8:ff:12::f` |
//! | multicast group below node N12 | `ff3e:20:2001:db8::12` |
//!
//! Numbers are written in decimal in addresses, so that R12 is recognizable.

use crate::topology::{Leaf, TreeNode};
use srdma_frame::PortId;
use srdma_wire::{MacAddress, Qpn};
use std::net::Ipv6Addr;

/// The source's address.
pub const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xaa, 0, 0, 0, 0, 1);

/// The group's Proxy Address.
pub const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, 1);

/// The number of the source's software switch, where that is the headend.
const SWITCH_NUMBER: u16 = 0xaa;

/// The addresses of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAddresses {
    /// Common prefix of the node's SIDs, 64 bits.
    pub locator: Ipv6Addr,
    /// Its loopback address.
    pub loopback: Ipv6Addr,
    /// Its End.MT SID.
    pub end_mt: Ipv6Addr,
    /// Its Replication SID.
    pub replication: Ipv6Addr,
    /// The multicast group that its branches listen to.
    pub multicast_group: Ipv6Addr,
}

impl NodeAddresses {
    /// The addresses of a node of the tree.
    pub fn of(node: &TreeNode) -> Self {
        Self::of_number(decimal(node.number))
    }

    /// The addresses of the source's software switch.
    pub fn of_switch() -> Self {
        Self::of_number(SWITCH_NUMBER)
    }

    /// The addresses of the node whose number has these hexadecimal digits.
    pub fn of_number(number: u16) -> Self {
        let own = |last| Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, last);
        NodeAddresses {
            locator: own(0),
            loopback: own(1),
            end_mt: own(0xe),
            replication: own(0xf),
            multicast_group: Ipv6Addr::new(0xff3e, 0x20, 0x2001, 0xdb8, 0, 0, 0, number),
        }
    }
}

/// A receiver's address.
pub fn receiver(leaf: &Leaf) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xbb, 0, 0, 0, 0, decimal(leaf.number))
}

/// The source's queue pair, and those of other hosts toward their peers, by the peer's rank.
pub fn qpn_toward(rank: usize) -> Qpn {
    qpn(0x100, rank)
}

/// A receiver's queue pair in the group, or toward the peer that it receives from.
pub fn receiving_qpn(rank: usize) -> Qpn {
    qpn(0x1000, rank)
}

/// The group's Designated QPN.
pub fn designated_qpn() -> Qpn {
    qpn(0xD0_0000, 0)
}

/// The MAC address of a port, by the position of its element in the network.
pub fn mac(element: usize, port: PortId) -> MacAddress {
    let [e1, e2] = (element as u16).to_be_bytes();
    let [p1, p2] = port.0.to_be_bytes();
    MacAddress([0x02, 0, e1, e2, p1, p2])
}

/// The queue pair number of a rank.
///
/// # Panics
///
/// If the sum does not fit into 24 bits.
pub fn qpn(base: u32, rank: usize) -> Qpn {
    Qpn::new(base + rank as u32).expect("ranks stay far below 2^24")
}

/// The number whose hexadecimal digits are the decimal ones of `number`, which has at most four.
pub fn decimal(number: u16) -> u16 {
    let digit = |divisor| number / divisor % 10;
    digit(1000) << 12 | digit(100) << 8 | digit(10) << 4 | digit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_show_the_number_in_decimal() {
        let leaf = |number| Leaf { name: String::new(), number, edge: 0 };
        assert_eq!(receiver(&leaf(12)).to_string(), "2001:db8:bb::12");
        assert_eq!(receiver(&leaf(1024)).to_string(), "2001:db8:bb::1024");
        let node = NodeAddresses::of(&TreeNode { name: String::new(), number: 6, parent: None });
        assert_eq!(node.replication.to_string(), "2001:db8:ff:6::f");
        assert_eq!(node.multicast_group.to_string(), "ff3e:20:2001:db8::6");
    }
}
