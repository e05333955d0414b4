//! Records that are a group, records that are rejected, and the group entry of each node.

use crate::figure_1::{self, address, node, receiver, record};
use srdma_group::*;
use srdma_wire::Qpn;

fn refused(change: impl FnOnce(&mut Record)) -> String {
    let mut record = record();
    change(&mut record);
    Group::new(record).unwrap_err().to_string()
}

/// MT-4-1, D14: the headend learns the receivers by edge; branches are receivers at an edge and nodes elsewhere.
#[test]
fn each_node_gets_its_own_part() {
    let group = Group::new(record()).unwrap();
    let part = |index| group.at(NodeIndex(index)).unwrap();
    let root = part(0);
    assert_eq!(root.parent, Parent::Source(record().source));
    let responders: Vec<_> = root.branches.iter().map(|branch| branch.responder).collect();
    assert_eq!(responders, [address("2001:db8:4::1"), address("2001:db8:5::1")]);
    let downstream = ["5f00:0:4:e000::", "5f00:0:5:e000::"].map(|sid| Downstream::Sid(address(sid)));
    assert_eq!(root.downstream, downstream);
    let lists = &root.headend.as_ref().unwrap().lists;
    let sizes: Vec<_> = lists.iter().map(|list| (list.edge, list.receivers.len())).collect();
    let edges = [("2001:db8:1::1", 2), ("2001:db8:2::1", 1), ("2001:db8:3::1", 2)];
    assert_eq!(sizes, edges.map(|(edge, receivers)| (address(edge), receivers)));

    let edge = part(5);
    assert_eq!(edge.parent, Parent::Node { loopback: address("2001:db8:5::1"), sid: None });
    assert_eq!(edge.receivers, [receiver(4, 5), receiver(5, 5)]);
    assert_eq!((edge.headend, edge.downstream), (None, vec![]));
    assert_eq!(group.at(NodeIndex(6)), None);
}

/// D273: all IPv4 or all IPv6, and addresses that packets go to.
#[test]
fn a_group_has_one_address_family() {
    let ipv4 = |text: &str| text.parse::<std::net::Ipv4Addr>().unwrap().to_ipv6_mapped();
    let all = |record: &mut Record| {
        (record.proxy, record.source.address) = (ipv4("10.255.0.1"), ipv4("10.1.0.1"));
        for (receiver, host) in record.receivers.iter_mut().zip(1..) {
            receiver.address = ipv4(&format!("10.2.0.{host}"));
        }
    };
    let mut record = record();
    all(&mut record);
    let group = Group::new(record).unwrap();
    assert!(group.lists_in_packets());
    assert_eq!(group.at(NodeIndex(5)).unwrap().receivers[0].address, ipv4("10.2.0.4"));
    let mixed = refused(|record| record.source.address = ipv4("10.1.0.1"));
    assert_eq!(
        mixed,
        "mixed address families: 10.1.0.1 and Proxy Address 2001:db8:ff::100 are not both IPv4 or both IPv6"
    );
    let mixed = refused(|record| {
        all(record);
        record.receivers[2].address = address("2001:db8:b::3");
    });
    let expected = "mixed address families: 2001:db8:b::3 and Proxy Address 10.255.0.1 are not both IPv4 or both IPv6";
    assert_eq!(mixed, expected);
    for wrong in ["0.0.0.9", "127.0.0.1", "169.254.0.1", "224.0.0.1", "255.255.255.255"] {
        let text = refused(|record| {
            all(record);
            record.receivers[0].address = ipv4(wrong);
        });
        assert!(text.ends_with("not a unicast address that a host can have"), "{text}");
    }
    let mut nodes = figure_1::record().tree.nodes().to_vec();
    nodes[0].loopback = ipv4("10.0.0.1");
    assert!(Tree::new(nodes).is_err(), "nodes are IPv6");
}

/// D246: a bud node's branches are the nodes below it, then its receivers, which are in no list of packets.
#[test]
fn a_bud_node_has_nodes_and_receivers() {
    let with_buds = |record: &mut Record| {
        let mut nodes = record.tree.nodes().to_vec();
        [0, 2].into_iter().for_each(|position| nodes[position].role = NodeRole::Bud);
        record.tree = Tree::new(nodes).unwrap();
        record.receivers.extend([receiver(6, 0), receiver(7, 2), receiver(8, 2)]);
    };
    let mut record = record();
    let before = Group::new(record.clone()).unwrap();
    with_buds(&mut record);
    let group = Group::new(record.clone()).unwrap();
    let [root, bud] = [0, 2].map(|node| group.at(NodeIndex(node)).unwrap());
    assert_eq!(bud.receivers, [receiver(7, 2), receiver(8, 2)]);
    let responders: Vec<_> = bud.branches.iter().map(|branch| branch.responder).collect();
    assert_eq!(responders, [address("2001:db8:3::1"), receiver(7, 2).address, receiver(8, 2).address]);
    assert_eq!((bud.nodes_below(), bud.downstream.len(), bud.region), (1, 1, record.region));
    assert_eq!((bud.receiver_at(0), bud.receiver_at(1)), (None, Some(&receiver(7, 2))));
    assert_eq!((root.nodes_below(), root.receivers.len()), (2, 1));
    assert_eq!(root.headend.unwrap().lists, before.at(NodeIndex(0)).unwrap().headend.unwrap().lists);
    assert_eq!(group.overhead(), before.overhead());
    let idle = refused(|record| {
        with_buds(record);
        record.receivers.retain(|receiver| receiver.edge != NodeIndex(2));
    });
    assert_eq!(idle, "bud node N5 has no receiver");
}

/// D7: TLV of 24 + 20 n octets, padded to eight; MR TLV of 24 + 12 n, likewise; SRH of 8 and one segment of 16.
#[test]
fn overhead_is_known_beforehand() {
    let group = Group::new(record()).unwrap();
    let end_mt = 64 + 48 + 64;
    let mr = 48 + 40 + 48;
    assert!(group.lists_in_packets());
    assert_eq!(group.overhead(), Overhead { ipv6_octets: 40, srh_octets: 8 + 16 + end_mt + mr });

    let mut provisioned = record();
    provisioned.policy.lists = ListMode::Provisioned;
    assert_eq!(Group::new(provisioned).unwrap().overhead().octets(), 40 + 24);

    let mut signed = record();
    signed.policy.hmac_key_id = Some(1);
    assert_eq!(Group::new(signed).unwrap().overhead().srh_octets, 8 + 16 + end_mt + mr + 40);
}

/// D270: packets do not name PSNs of receivers, so that an edge without its entry must not know receivers by lists.
#[test]
fn lists_with_own_psns_are_provisioned() {
    let mut with_own_psn = record();
    with_own_psn.receivers[4].psn_offset = PsnOffset::new(1).unwrap();
    assert!(Group::new(record()).unwrap().lists_in_packets());
    assert!(!Group::new(with_own_psn.clone()).unwrap().lists_in_packets());
    let address = with_own_psn.receivers[4].address;
    with_own_psn.policy.lists = ListMode::Tlv;
    assert_eq!(Group::new(with_own_psn).unwrap_err(), GroupError::ListsWithOwnPsns(address));
}

/// D7: `auto` takes TLVs while a full packet fits the link, and provisions the lists beyond; `tlv` refuses.
#[test]
fn lists_travel_while_they_fit() {
    let longest = 4096 + 84 + 40 + 8 + 16 + 176 + 136;
    let lists_at = |link_mtu| {
        let mut record = record();
        record.link_mtu = link_mtu;
        Group::new(record).unwrap().lists_in_packets()
    };
    assert!(lists_at(longest));
    assert!(!lists_at(longest - 1));
    let message = refused(|record| {
        record.link_mtu = longest - 1;
        record.policy.lists = ListMode::Tlv;
    });
    assert_eq!(
        message,
        "receiver lists do not fit: a packet of RDMA path MTU 4096 with 5 receivers in TLVs needs 4556 octets, the link \
         MTU is 4555; provision the lists instead"
    );
    let message = refused(|record| {
        record.receivers.extend((6..100).map(|number| receiver(number, 5)));
        record.policy.lists = ListMode::Tlv;
    });
    let expected =
        "receiver lists do not fit: TLVs for 99 receivers exceed an SRH of 2048 octets; provision the lists instead";
    assert_eq!(message, expected);
    let message = refused(|record| record.link_mtu = 4096 + 84 + 40 + 24 - 1);
    assert_eq!(message, "link MTU 4243 is too small: a packet of RDMA path MTU 4096 needs 4244 octets");
}

/// D2, D8: members that cannot be.
#[test]
fn impossible_members_are_named() {
    assert_eq!(refused(|record| record.receivers.clear()), "a group needs at least one receiver");
    let twice = refused(|record| record.receivers[1].address = record.receivers[0].address);
    assert_eq!(twice, "receiver 2001:db8:100::1 is in the group twice");
    for bad in ["ff02::1", "::", "::1"] {
        let message = refused(|record| record.receivers[2].address = address(bad));
        assert_eq!(message, format!("receiver {bad}: not a unicast address that a host can have"));
    }
    let message = refused(|record| record.receivers[0].qpn = Qpn::new(1).unwrap());
    assert_eq!(message, "2001:db8:100::1: queue pair number 0x1 is reserved");
    assert_eq!(refused(|record| record.proxy = address("ff3e::1")), "Proxy Address ff3e::1 must be a unicast address");
    let message = refused(|record| record.proxy = address("2001:db8:4::1"));
    assert_eq!(message, "Proxy Address 2001:db8:4::1 is the address or SID of N4");
    let message = refused(|record| record.proxy = record.source.address);
    assert_eq!(message, "Proxy Address 2001:db8:f::1 is the address or SID of the source");
    let message = refused(|record| record.source.address = address("ff02::1"));
    assert_eq!(message, "source ff02::1: not a unicast address that a host can have");
    let message = refused(|record| record.receivers[4].region = None);
    assert_eq!(message, "receiver 2001:db8:100::5 names no memory region, but the group has one");
    let message = refused(|record| record.receivers[0].edge = NodeIndex(1));
    assert_eq!(message, "receiver 2001:db8:100::1 hangs on node 1, which is neither edge nor bud node of the tree");
    let message = refused(|record| record.receivers[2].edge = NodeIndex(3));
    assert_eq!(message, "edge node N2 has no receiver");
}

/// MT-8-1: 2,000 receivers below the edge N3 change neither the entry of N4, beside it, nor that of N5 above it; the
/// headend has the same branches, and keeps no lists when edges have them (MT-8-2). What an edge keeps grows: receivers
/// are its branches.
#[test]
fn entries_grow_with_branches_and_not_with_receivers() {
    let with = |receivers: u32| {
        let mut record = record();
        record.policy.lists = ListMode::Provisioned;
        record.receivers.extend((6..6 + receivers).map(|number| receiver(number, 5)));
        let group = Group::new(record).unwrap();
        [0, 1, 2, 5].map(|node| group.at(NodeIndex(node)).unwrap())
    };
    let ([root, transit, above, edge], [full_root, full_transit, full_above, full_edge]) = (with(0), with(2_000));
    assert_eq!((full_root, full_transit, full_above), (root, transit, above));
    assert_eq!((edge.branches.len(), full_edge.branches.len()), (2, 2_002));
}

/// Branches have numbers of 16 bits (MT-8-1).
#[test]
fn a_node_has_at_most_65535_branches() {
    let message = refused(|record| {
        let receiver =
            |number: u32| Receiver { address: (0x2001_0db8_u128 << 96 | u128::from(number)).into(), ..receiver(1, 3) };
        record.receivers.extend((1..=65_534).map(receiver));
    });
    assert_eq!(message, "node N1 has 65536 branches, at most 65535 are possible");
}

/// A tree is checked before it is one.
#[test]
fn impossible_trees_are_named() {
    use NodeRole::{Edge, Transit};
    let refused = |nodes| Tree::new(nodes).unwrap_err().to_string();
    assert_eq!(refused(vec![]), "a tree needs at least one node, the headend");
    assert_eq!(
        refused(vec![node(1, None, Edge)]),
        "the headend N1 cannot be an edge: with receivers of its own its role is `bud`"
    );
    let message = "node N2 must have a parent that comes before it, and only node 0 has none";
    assert_eq!(refused(vec![node(1, None, Transit), node(2, None, Edge)]), message);
    assert_eq!(refused(vec![node(1, None, Transit), node(2, Some(1), Edge)]), message);
    let below_edge = vec![node(1, None, Transit), node(2, Some(0), Edge), node(3, Some(1), Edge)];
    assert_eq!(refused(below_edge), "edge node N2 cannot have nodes below it: with both its role is `bud`");
    let mut duplicate = node(2, Some(0), Edge);
    duplicate.loopback = node(1, None, Edge).loopback;
    let message = "node N2: address 2001:db8:1::1 belongs to another node already";
    assert_eq!(refused(vec![node(1, None, Transit), duplicate]), message);
    let mut elsewhere = node(1, None, Transit);
    elsewhere.loopback = address("ff02::1");
    assert_eq!(refused(vec![elsewhere]), "node N1: ff02::1 cannot be its loopback address");
    let mut multicast = node(1, None, Transit);
    multicast.multicast = Some(address("2001:db8::1"));
    assert_eq!(refused(vec![multicast]), "node N1: 2001:db8::1 is not an IPv6 multicast address");
}
