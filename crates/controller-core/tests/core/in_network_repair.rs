//! In-network repair of a controller's groups (D150, D163).

use crate::cluster::*;
use srdma_api::{NewGroup, SourceTransport};
use srdma_group::{OnFailure, Policy, RepairEntry, RepairMode, RepairPolicy};
use std::time::Duration;

fn cluster_with(group: NewGroup) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.create_as(group, &[receiver(1, 1), receiver(3, 1)]);
    cluster
}

/// How a node repairs, and the policy that it was given.
fn repair_of(cluster: &Cluster, node: u16) -> (Option<RepairEntry>, RepairPolicy) {
    let entry = cluster.nodes[&node].table.entry(1).expect("it is in the tree");
    (entry.repair.clone(), entry.policy.repair)
}

/// The nodes that repair, of those in the tree.
fn repairing(cluster: &Cluster) -> Vec<u16> {
    let of_tree = cluster.nodes.iter().filter_map(|(number, node)| Some((*number, node.table.entry(1)?)));
    of_tree.filter(|(_, entry)| entry.repair.is_some()).map(|(number, _)| number).collect()
}

/// D163: By default all repair that can. N3, of an earlier version, is given no key that it does not know.
#[test]
fn nodes_repair_that_state_that_they_can() {
    let cluster = cluster_with(new_group(OnFailure::Strict));
    let transit = if cluster.nodes[&4].table.contains(1) { 4 } else { 5 };
    assert_eq!(repairing(&cluster), [1, transit, 6]);
    let policy = RepairPolicy { mode: RepairMode::Tree, ..RepairPolicy::default() };
    let entry = |parent_repairs, children: &[bool], levels| {
        (Some(RepairEntry { window_packets: 128, parent_repairs, children: children.to_vec(), levels }), policy)
    };
    assert_eq!(repair_of(&cluster, 6), entry(false, &[true], 3));
    assert_eq!(repair_of(&cluster, transit), entry(true, &[true, false], 2));
    assert_eq!(repair_of(&cluster, 1), entry(true, &[], 1));
    assert_eq!(repair_of(&cluster, 3), (None, RepairPolicy::default()));
    let text = serde_json::to_string(cluster.nodes[&3].table.entry(1).unwrap()).unwrap();
    assert!(!text.contains("repair"), "{text}");
}

/// D163: A node that comes into the tree by a later join repairs as well.
#[test]
fn nodes_that_join_a_tree_repair_if_they_can() {
    let mut cluster = cluster_with(new_group(OnFailure::Strict));
    cluster.join(receiver(2, 1)).unwrap();
    cluster.settle();
    assert_eq!(repair_of(&cluster, 2).0.map(|repair| repair.parent_repairs), Some(true));
}

#[test]
fn the_creator_chooses_who_repairs_and_the_window() {
    let with = |repair| cluster_with(NewGroup { repair: Some(repair), ..new_group(OnFailure::Strict) });
    assert_eq!(repairing(&with(RepairMode::Off)), [0_u16; 0]);
    assert_eq!(repairing(&with(RepairMode::Edge)), [1]);
    let transport = Some(SourceTransport { ack_timeout: 10, retries: 7 });
    let mut cluster =
        cluster_with(NewGroup { window_octets: Some(1 << 20), transport, ..new_group(OnFailure::Strict) });
    let (entry, policy) = repair_of(&cluster, 1);
    assert_eq!(entry.map(|entry| entry.window_packets), Some(256));
    let ack_timeout = Duration::from_nanos(4096 << 10);
    let expected =
        RepairPolicy { mode: RepairMode::Tree, window_octets: 1 << 20, ack_timeout, ..RepairPolicy::default() };
    assert_eq!(policy, expected);
    assert_eq!(cluster.group().policy.repair, expected);
    // What was chosen outlasts the controller.
    cluster.restart();
    cluster.settle();
    assert_eq!(cluster.group().policy.repair, expected);
    let mut off = with(RepairMode::Off);
    off.restart();
    assert!(off.group().policy.repair.is_off());
}

#[test]
fn windows_and_times_without_sense_are_refused() {
    let refused = |change: &dyn Fn(&mut NewGroup)| {
        let mut group = new_group(OnFailure::Strict);
        change(&mut group);
        let mut cluster = Cluster::new();
        cluster.commit(|core| core.create_group(&admin(), None, group)).unwrap_err().detail
    };
    let window = "window_octets: expected from 1 octet to 65536 packets of the path MTU, found";
    assert_eq!(refused(&|group| group.window_octets = Some(0)), format!("{window} 0 packets"));
    let most = (1 << 16) * 256;
    let beyond = |group: &mut NewGroup| (group.path_mtu, group.window_octets) = (256, Some(most + 1));
    assert_eq!(refused(&beyond), format!("{window} 65537 packets"));
    let repair = RepairPolicy { mode: RepairMode::Tree, round_trip: Duration::ZERO, ..RepairPolicy::default() };
    let text = "policy.repair: expected ack_timeout_ns and round_trip_ns above 0";
    assert_eq!(refused(&|group| group.policy = Policy { repair, ..Policy::default() }), text);
}
