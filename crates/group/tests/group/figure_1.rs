//! Figure 1 as a record: N6 above N4 and N5, N4 above N1 and N2, N5 above N3 (D34).

use srdma_group::*;
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;

pub(crate) fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// Loopback of a node.
pub(crate) fn loopback(number: usize) -> Ipv6Addr {
    format!("2001:db8:{number:x}::1").parse().unwrap()
}

pub(crate) fn receiver_address(number: u32) -> Ipv6Addr {
    format!("2001:db8:100::{number:x}").parse().unwrap()
}

pub(crate) fn node(number: usize, parent: Option<usize>, role: NodeRole) -> TreeNode {
    TreeNode {
        name: format!("N{number}"),
        loopback: loopback(number),
        sid: sid(number),
        parent: parent.map(NodeIndex),
        parent_sid: None,
        role,
        multicast: None,
        joined: None,
        renewed: 0,
        can_repair: true,
    }
}

pub(crate) fn sid(number: usize) -> Ipv6Addr {
    format!("5f00:0:{number:x}:e000::").parse().unwrap()
}

pub(crate) fn figure_1() -> Tree {
    use NodeRole::{Edge, Transit};
    Tree::new(vec![
        node(6, None, Transit),
        node(4, Some(0), Transit),
        node(5, Some(0), Transit),
        node(1, Some(1), Edge),
        node(2, Some(1), Edge),
        node(3, Some(2), Edge),
    ])
    .unwrap()
}

pub(crate) fn receiver(number: u32, edge: usize) -> Receiver {
    Receiver {
        region: Some(ReceiverRegion { base: u64::from(number) << 32, rkey: number }),
        ..Receiver::new(receiver_address(number), Qpn::new(0x100 + number).unwrap(), NodeIndex(edge))
    }
}

pub(crate) fn record() -> Record {
    Record {
        id: GroupId(1),
        epoch: 1,
        proxy: address("2001:db8:ff::100"),
        designated_qpn: Qpn::new(0xABCD).unwrap(),
        initial_psn: Psn::new(0),
        path_mtu: PathMtu::Octets4096,
        link_mtu: 4608,
        source: Source { address: address("2001:db8:f::1"), qpn: Qpn::new(0x77).unwrap() },
        region: Some(SourceRegion { base: 0, length: 1 << 20, rkey: 9 }),
        receivers: vec![receiver(1, 3), receiver(2, 3), receiver(3, 4), receiver(4, 5), receiver(5, 5)],
        tree: figure_1(),
        policy: Policy::default(),
        more_regions: Vec::new(),
    }
}
