//! Stores that are lost, restored from a backup, or replaced by another one (D97, D98).

use crate::cluster::*;
use srdma_api::GroupState;
use srdma_group::OnFailure;
use std::collections::BTreeMap;

/// A backup is older than what the nodes have: the newer membership is taken over from the headend's recovery snapshot.
#[test]
fn a_restored_backup_does_not_replace_a_newer_membership() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let backup = cluster.rows.clone();
    cluster.leave(receiver(1, 1)).unwrap();
    cluster.settle();
    cluster.join(receiver(3, 1)).unwrap();
    cluster.settle();
    let newest = cluster.members();
    let epoch = cluster.group().summary.epoch;

    cluster.start_with(backup, 1);
    assert_eq!(cluster.group().summary.state, GroupState::Verifying);
    assert!(cluster.members().is_empty(), "not shown as members before the nodes have reported");
    cluster.pass(1000);
    let group = cluster.group();
    assert_eq!((cluster.members(), group.summary.epoch, group.failure), (newest.clone(), epoch, None));
    assert_eq!(group.summary.state, GroupState::Ready);
    assert_eq!(cluster.acknowledged(), newest);

    // Later epochs do not repeat the numbers of those that were lost.
    cluster.join(receiver(1, 2)).unwrap();
    cluster.settle();
    assert_eq!(cluster.group().summary.epoch, epoch + 1);
    assert_eq!(cluster.acknowledged(), cluster.members());
}

/// The same when nodes register in any order, some of them while a change is requested.
#[test]
fn changes_wait_until_a_restored_store_is_verified() {
    for last in 1..=6 {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
        let backup = cluster.rows.clone();
        cluster.join(receiver(3, 1)).unwrap();
        cluster.settle();
        cluster.disconnect(last);
        cluster.start_with(backup, 1);
        cluster.pass(200);
        // Of the membership that the backup has.
        let _ = cluster.leave(receiver(1, 1));
        cluster.pass(200);
        assert!(cluster.members().is_subset(&cluster.acknowledged()), "N{last} is last: {:?}", cluster.group());
        cluster.connect(last);
        cluster.pass(1000);
        let group = cluster.group();
        assert_eq!((group.summary.state, group.failure), (GroupState::Ready, None), "N{last} is last");
        assert_eq!(cluster.members(), cluster.acknowledged(), "N{last} is last");
        assert!(cluster.members().contains(&receiver(3, 1)));
    }
}

/// Without a recovery snapshot that the nodes agree with, the group stops with a reason, and can be closed.
#[test]
fn a_group_whose_nodes_contradict_its_store_stops() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let backup = cluster.rows.clone();
    cluster.join(receiver(2, 2)).unwrap();
    cluster.settle();
    cluster.reinstall(6);
    cluster.start_with(backup, 1);
    cluster.pass(1000);
    let group = cluster.group();
    assert_eq!(group.summary.state, GroupState::Stopped);
    let failure = group.failure.unwrap();
    assert!(failure.contains("newer record than the store") && failure.contains("N6"), "{failure}");
    assert!(cluster.members().is_empty());
    cluster.commit(|core| core.close_group(&admin(), 1, None)).unwrap();
    cluster.pass(1000);
    assert!(cluster.commit(|core| core.group(&admin(), 1)).is_err(), "closed");
    assert!(cluster.nodes.values().all(|node| node.table.is_empty()));
}

/// A new store whose application makes its group again: nodes keep the group of the former store, and refuse the new one
/// by name.
#[test]
fn an_empty_store_changes_no_group_of_another() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let before = cluster.acknowledged();
    cluster.start_with(BTreeMap::new(), 77);
    cluster.settle();
    cluster.create(&[receiver(2, 1)], OnFailure::Strict);
    cluster.pass(500);
    let group = cluster.group();
    assert_ne!(group.summary.state, GroupState::Ready);
    let failure = group.failure.unwrap();
    assert!(failure.contains("is held for store"), "{failure}");
    assert_eq!(cluster.acknowledged(), before);
}
