//! Stores that are lost, restored from a backup, or replaced by another one (D97, D98).

use crate::cluster::*;
use srdma_api::{EventKind, GroupState, ProblemType, SourceOrder, SourceReport};
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
    cluster.leave(receiver(3, 1)).unwrap();
    cluster.settle();
    assert_eq!(cluster.group().summary.epoch, epoch + 1);
    assert_eq!(cluster.acknowledged(), cluster.members());

    // The source may have sent before it reports to this controller: a join waits for it.
    cluster.join(receiver(1, 2)).unwrap();
    cluster.settle();
    assert_eq!(cluster.group().summary.epoch, epoch + 1);
}

/// A group, and a backup from before a receiver of N3 joined.
fn backup_before_a_join() -> (Cluster, BTreeMap<String, Vec<u8>>) {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let backup = cluster.rows.clone();
    cluster.join(receiver(3, 1)).unwrap();
    cluster.settle();
    (cluster, backup)
}

/// The same when nodes register in any order, some of them while a change is requested.
#[test]
fn changes_wait_until_a_restored_store_is_verified() {
    for last in 1..=6 {
        let (mut cluster, backup) = backup_before_a_join();
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

/// The same when its headend, which has nothing, is given the entry of the backup before another node contradicts it: all
/// nodes remove the group.
#[test]
fn a_stopped_group_is_removed_from_nodes_that_had_nothing() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let backup = cluster.rows.clone();
    cluster.join(receiver(2, 2)).unwrap();
    cluster.settle();
    cluster.reinstall(6);
    (1..=5).for_each(|number| cluster.disconnect(number));
    cluster.start_with(backup, 1);
    cluster.pass(300);
    assert!(cluster.nodes[&6].table.contains(1));
    (1..=5).for_each(|number| cluster.connect(number));
    cluster.pass(1000);
    assert_eq!(cluster.group().summary.state, GroupState::Stopped);
    cluster.commit(|core| core.close_group(&admin(), 1, None)).unwrap();
    cluster.pass(1000);
    assert!(cluster.commit(|core| core.group(&admin(), 1)).is_err(), "closed");
    let left: Vec<u16> =
        cluster.nodes.iter().filter(|(_, node)| !node.table.is_empty()).map(|(node, _)| *node).collect();
    assert_eq!(left, [0; 0], "nodes that still have it");
}

/// A node that only the lost record has registers with a stopped group, and again without it: when that has been closed, it
/// can be removed.
#[test]
fn a_stopped_group_that_was_closed_keeps_no_node() {
    let (mut cluster, backup) = backup_before_a_join();
    cluster.reinstall(6);
    cluster.disconnect(3);
    cluster.start_with(backup, 1);
    cluster.pass(300);
    assert_eq!(cluster.group().summary.state, GroupState::Stopped);
    cluster.connect(3);
    cluster.pass(300);
    cluster.reinstall(3);
    cluster.pass(300);
    cluster.commit(|core| core.close_group(&admin(), 1, None)).unwrap();
    cluster.pass(1000);
    assert!(cluster.commit(|core| core.group(&admin(), 1)).is_err(), "closed");
    cluster.commit(|core| core.drain_node(&admin(), "N3", true)).unwrap();
    cluster.commit(|core| core.remove_node(&admin(), "N3")).unwrap();
    let is_removed = |event: &EventKind| matches!(event, EventKind::NodeRemoved { node } if node == "N3");
    assert!(cluster.events.iter().any(is_removed), "{:?}", cluster.events);
}

/// A store restored from a backup before a receiver of N1 left: N1, which is cut off, has the record without it, and the
/// headend has none.
fn restored_without_a_leave() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(1, 2), receiver(2, 1)], OnFailure::Strict);
    let backup = cluster.rows.clone();
    cluster.leave(receiver(1, 2)).unwrap();
    cluster.settle();
    cluster.reinstall(6);
    cluster.disconnect(1);
    cluster.start_with(backup, 1);
    cluster
}

/// The same, and epochs 2 and 3 were used again, by changes that do not concern N1.
fn restored_with_epochs_used_again() -> Cluster {
    let mut cluster = restored_without_a_leave();
    cluster.pass(DEAD_AFTER_MS + 300);
    cluster.join(receiver(2, 2)).unwrap();
    cluster.pass(300);
    cluster.leave(receiver(2, 2)).unwrap();
    cluster.pass(300);
    cluster
}

/// A node has committed a record that was lost, and a change in progress has a later epoch: the group stops, since that epoch
/// says nothing of what was stored.
#[test]
fn a_change_in_progress_hides_no_record_that_was_lost() {
    let mut cluster = restored_without_a_leave();
    cluster.pass(300);
    cluster.leave(receiver(1, 1)).unwrap();
    cluster.pass(300);
    cluster.restart();
    cluster.pass(300);
    assert_eq!(cluster.nodes[&6].log.last().map(String::as_str), Some("prepare 3"));
    cluster.connect(1);
    cluster.pass(1000);
    assert!(cluster.members().is_subset(&cluster.acknowledged()), "{:?}", cluster.group());
    assert_eq!(cluster.group().summary.state, GroupState::Stopped);
}

/// A node has an entry of a lost record whose epoch was used again meanwhile: its receivers are no members before it has
/// confirmed the entry that is restored (D132).
#[test]
fn receivers_at_a_node_with_another_entry_are_unverified() {
    let mut cluster = restored_with_epochs_used_again();
    assert_eq!(cluster.group().summary.epoch, 3, "{:?}", cluster.group());
    assert!(cluster.members().is_empty());
    cluster.connect(1);
    for number in (1..=6).cycle().take(60) {
        cluster.sync(number);
        assert!(cluster.members().is_subset(&cluster.acknowledged()), "{:?}", cluster.group());
        assert!(cluster.members().is_empty() || cluster.group().summary.epoch == 4, "{:?}", cluster.group());
    }
    assert_eq!(cluster.members().len(), 3);
}

/// The group is closed before N1 has registered, which is lost and does not wait for all receivers of the backup: they stay
/// unverified while the other nodes remove the group, and acknowledge meanwhile (D132).
#[test]
fn receivers_of_a_group_that_is_closed_unverified_are_no_members() {
    let mut cluster = restored_without_a_leave();
    cluster.pass(DEAD_AFTER_MS + 300);
    assert_eq!(cluster.group().summary.state, GroupState::Verifying);
    cluster.commit(|core| core.close_group(&admin(), 1, None)).unwrap();
    assert_eq!(cluster.group().summary.state, GroupState::Closing);
    assert!(cluster.members().is_empty(), "{:?}", cluster.group());
    cluster.sync(6);
    assert!(cluster.members().is_empty(), "{:?}", cluster.group());
}

/// N3 registers, loses its state, and registers again before the others do: it has the group then.
fn registers_twice(mut cluster: Cluster) {
    cluster.connect(3);
    cluster.pass(300);
    cluster.reinstall(3);
    cluster.pass(300);
    (1..=6).for_each(|number| cluster.connect(number));
    cluster.pass(1000);
    assert!(cluster.nodes[&3].table.contains(1), "{:?}", cluster.group());
    assert_eq!(cluster.members(), cluster.acknowledged());
    assert_eq!(cluster.members().len(), 3);
}

/// A node that only a lost record has loses its state between two registrations, before the headend has registered: it is
/// not taken to have what it had reported first.
#[test]
fn the_last_report_of_a_node_outside_the_backup_counts() {
    let (mut cluster, backup) = backup_before_a_join();
    (1..=6).for_each(|number| cluster.disconnect(number));
    cluster.start_with(backup, 1);
    registers_twice(cluster);
}

/// The same if it registers when another node has shown already that the store is older.
#[test]
fn the_last_report_of_a_node_outside_a_diverged_backup_counts() {
    let (mut cluster, backup) = backup_before_a_join();
    (1..=6).for_each(|number| cluster.disconnect(number));
    cluster.start_with(backup, 1);
    // The parent of N3 in the lost record.
    [4, 5].into_iter().for_each(|number| cluster.connect(number));
    cluster.pass(300);
    assert!(cluster.group().failure.is_some_and(|failure| failure.contains("a newer record")));
    registers_twice(cluster);
}

/// A leave that is accepted while the store may be an older one is carried out when the headend's record replaces it (D98).
#[test]
fn a_leave_is_not_forgotten_when_a_newer_record_is_taken_over() {
    let (mut cluster, backup) = backup_before_a_join();
    (1..=6).for_each(|number| cluster.disconnect(number));
    cluster.start_with(backup, 1);
    cluster.leave(receiver(1, 1)).unwrap();
    (1..=6).for_each(|number| cluster.connect(number));
    cluster.pass(1000);
    assert_eq!(cluster.members(), [receiver(2, 1), receiver(3, 1)].into());
    assert_eq!(cluster.members(), cluster.acknowledged());
    assert_eq!(cluster.group().summary.state, GroupState::Ready);
}

/// The same, but the record that replaces the store's has no other receiver (D116).
#[test]
fn a_leave_that_the_newer_record_does_not_permit_is_named() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let backup = cluster.rows.clone();
    cluster.leave(receiver(2, 1)).unwrap();
    cluster.settle();
    (1..=6).for_each(|number| cluster.disconnect(number));
    cluster.start_with(backup, 1);
    cluster.leave(receiver(1, 1)).unwrap();
    (1..=6).for_each(|number| cluster.connect(number));
    cluster.pass(1000);
    assert_eq!(cluster.members(), [receiver(1, 1)].into(), "{:?}", cluster.group());
    assert_eq!(cluster.members(), cluster.acknowledged());
    let says_why =
        |event: &EventKind| matches!(event, EventKind::ChangeAborted { reason, .. } if reason.contains("cannot leave"));
    assert!(cluster.events.iter().any(says_why), "{:?}", cluster.events);
}

/// A node has an entry of a lost record, and the controller restarts when it has the right one: that its parents may count what it
/// acknowledged before is in the store (D136).
#[test]
fn a_node_is_renewed_after_a_restart_between_its_entry_and_its_renewal() {
    let mut renewed = 0;
    for syncs in 0..12 {
        let mut cluster = restored_with_epochs_used_again();
        cluster.connect(1);
        (0..syncs).for_each(|_| cluster.sync(1));
        renewed += usize::from(cluster.group().summary.epoch == 4);
        cluster.restart();
        cluster.pass(1000);
        assert_eq!(cluster.members().len(), 3, "after {syncs}");
        let parent = cluster.nodes.values().filter_map(|node| node.table.entry(1));
        let is_of_n1 = |branch: &&srdma_group::Branch| branch.responder == loopback(1);
        let renewals: Vec<u32> =
            parent.flat_map(|entry| entry.branches.iter().filter(is_of_n1).map(|branch| branch.renewed)).collect();
        assert!(!renewals.is_empty() && renewals.iter().all(|epoch| *epoch >= 4), "after {syncs}: {renewals:?}");
    }
    assert!(renewed < 12, "no restart came before the renewal");
}

/// No change repeats the order to remove a foreign group, or a group that was deleted while the node was lost.
#[test]
fn lost_orders_to_remove_leftovers_are_repeated() {
    for is_foreign in [true, false] {
        let mut cluster = Cluster::new();
        let backup = cluster.rows.clone();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
        if is_foreign {
            cluster.start_with(backup, 1);
            cluster.pass(500);
            cluster.commit(|core| core.remove_foreign(&admin(), 1, 1)).unwrap();
        } else {
            cluster.disconnect(1);
            cluster.pass(DEAD_AFTER_MS + 500);
            cluster.commit(|core| core.close_group(&admin(), 1, None)).unwrap();
            cluster.pass(500);
            assert!(cluster.commit(|core| core.group(&admin(), 1)).is_err(), "closed");
            cluster.connect(1);
            cluster.sync(1);
        }
        cluster.lose_orders(1);
        assert!(!cluster.nodes[&1].table.is_empty());
        cluster.pass(500);
        assert!(cluster.nodes[&1].table.is_empty(), "foreign: {is_foreign}");
    }
}

/// A group that was created after the backup is left alone and listed; its number and Proxy Address are not used again.
/// It is adopted with its members, or removed.
#[test]
fn groups_newer_than_the_backup_are_adopted_or_removed() {
    for adopts in [true, false] {
        let mut cluster = Cluster::new();
        let backup = cluster.rows.clone();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
        let before = cluster.members();
        cluster.start_with(backup, 1);
        cluster.pass(500);
        let listed = cluster.commit(|core| core.foreign_groups(&admin())).unwrap();
        assert_eq!(listed.groups.len(), 1);
        let foreign = &listed.groups[0];
        assert_eq!((foreign.group, foreign.epoch, foreign.nodes.len(), foreign.is_adoptable), (1, 1, 4, true));
        assert!(!foreign.is_removing);
        assert_eq!(cluster.acknowledged(), before, "left alone");
        let refused = cluster.commit(|core| core.create_group(&admin(), None, new_group(OnFailure::Strict)));
        assert!(refused.unwrap_err().detail.contains("is the Proxy Address of group 1 of store"));

        // The controller remembers it, whatever nodes are there.
        cluster.restart();
        let listed = cluster.commit(|core| core.foreign_groups(&admin())).unwrap();
        assert_eq!((listed.groups.len(), listed.groups[0].nodes.len()), (1, 0));
        let refused = cluster.commit(|core| core.adopt_foreign(&admin(), 1, 1));
        assert!(refused.unwrap_err().detail.contains("waiting for the report of headend"));
        cluster.pass(500);
        if adopts {
            cluster.commit(|core| core.adopt_foreign(&admin(), 1, 1)).unwrap();
            cluster.pass(500);
            assert_eq!((cluster.members(), cluster.group().summary.state), (before, GroupState::Ready));
            cluster.join(receiver(3, 1)).unwrap();
            cluster.settle();
            assert_eq!(cluster.acknowledged(), cluster.members());
        } else {
            cluster.disconnect(1);
            cluster.pass(DEAD_AFTER_MS + 500);
            cluster.commit(|core| core.remove_foreign(&admin(), 1, 1)).unwrap();
            cluster.pass(500);
            let listed = cluster.commit(|core| core.foreign_groups(&admin())).unwrap().groups;
            assert!(listed.len() == 1 && listed[0].is_removing && listed[0].nodes == ["N1"], "{listed:?}");
            assert!(cluster.nodes.iter().all(|(number, node)| *number == 1 || node.table.is_empty()));
            cluster.connect(1);
            cluster.pass(500);
            assert!(cluster.nodes[&1].table.is_empty(), "it removes the group when it registers");
            assert_eq!(cluster.commit(|core| core.foreign_groups(&admin())).unwrap().groups, []);
            let new = cluster.commit(|core| core.create_group(&admin(), None, new_group(OnFailure::Strict))).unwrap();
            assert_eq!(new, 2, "its number is not used again");
        }
    }
}

/// A backup from within the first commit has no record: the group is taken over from its nodes, not created again.
#[test]
fn a_backup_of_an_unfinished_creation_takes_the_group_over() {
    let mut cluster = Cluster::new();
    cluster.disconnect(2);
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let backup = cluster.rows.clone();
    assert_eq!(cluster.group().summary.state, GroupState::Creating);
    cluster.connect(2);
    cluster.pass(500);
    cluster.join(receiver(3, 1)).unwrap();
    cluster.settle();
    let (newest, epoch) = (cluster.members(), cluster.group().summary.epoch);
    assert_eq!(newest.len(), 3);
    cluster.start_with(backup, 1);
    assert_eq!(cluster.group().summary.state, GroupState::Verifying);
    cluster.pass(1000);
    let group = cluster.group();
    assert_eq!((cluster.members(), group.summary.state, group.failure), (newest, GroupState::Ready, None));
    assert_eq!(group.summary.epoch, epoch);
}

/// A creation that the backup does not know has left entries of epoch 1 at nodes, whose orders to drop them are lost:
/// the next creation has a later epoch, so that no node takes one for the other.
#[test]
fn a_creation_after_a_restored_backup_uses_no_epoch_again() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.commit(|core| core.create_group(&admin(), None, new_group(OnFailure::Strict))).unwrap(), 1);
    for host in [receiver(1, 1), receiver(2, 1)] {
        cluster.join(host).unwrap();
    }
    cluster.settle();
    let backup = cluster.rows.clone();
    // Node 2 is gone, so that the others have prepared, and none has committed.
    cluster.disconnect(2);
    cluster.commit(|core| core.commit_group(&admin(), 1, None)).unwrap();
    cluster.settle();
    let prepared = |cluster: &Cluster| {
        let held = cluster.nodes.values().flat_map(|node| node.table.held());
        held.filter_map(|held| held.entries.prepared).map(|name| name.epoch).collect::<Vec<_>>()
    };
    assert!(!prepared(&cluster).is_empty());
    cluster.connect(2);
    cluster.start_with(backup, 1);
    for number in 1..=6 {
        cluster.sync(number);
    }
    for number in [1, 6] {
        cluster.lose_orders(number);
    }
    cluster.join(receiver(3, 1)).unwrap();
    cluster.commit(|core| core.commit_group(&admin(), 1, None)).unwrap();
    // The session of one that has an entry of the former creation is broken before it gets its order.
    cluster.lose_orders(1);
    cluster.disconnect(1);
    cluster.connect(1);
    cluster.pass(1000);
    let group = cluster.group();
    assert_eq!((group.summary.state, group.failure, group.summary.epoch), (GroupState::Ready, None, 2));
}

/// An application that creates its group again before any node has registered gets a number that nodes use already: such
/// a group is not committed, and the nodes keep the other one.
#[test]
fn a_number_that_nodes_use_is_not_committed_again() {
    let mut cluster = Cluster::new();
    let backup = cluster.rows.clone();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let before = cluster.acknowledged();
    cluster.start_with(backup, 1);
    let new = cluster.commit(|core| core.create_group(&admin(), None, new_group(OnFailure::Strict))).unwrap();
    assert_eq!(new, 1);
    cluster.join(receiver(2, 1)).unwrap();
    cluster.settle();
    for _ in 0..3 {
        let refused = cluster.commit(|core| core.commit_group(&admin(), 1, None)).unwrap_err().detail;
        assert!(refused.contains("nodes have another group 1 of this store"), "{refused}");
        cluster.pass(500);
    }
    assert_eq!(cluster.acknowledged(), before);
    cluster.commit(|core| core.close_group(&admin(), 1, None)).unwrap();
    cluster.commit(|core| core.remove_foreign(&admin(), 1, 1)).unwrap();
    cluster.pass(500);
    assert!(cluster.nodes.values().all(|node| node.table.is_empty()));
    let new = cluster.commit(|core| core.create_group(&admin(), None, new_group(OnFailure::Strict))).unwrap();
    assert_eq!(new, 2);
}

/// A lost store is rebuilt by its identity, from the headends of the records alone.
#[test]
fn a_lost_store_is_rebuilt_by_its_identity() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    cluster.join(receiver(3, 1)).unwrap();
    cluster.settle();
    let before = cluster.members();
    for (store, expected) in [(5, false), (1, true)] {
        cluster.rebuild(store);
        cluster.pass(500);
        let group = cluster.commit(|core| core.group(&admin(), 1));
        assert_eq!(group.is_ok(), expected, "store {store}");
        assert_eq!(cluster.acknowledged(), before);
    }
    assert_eq!((cluster.members(), cluster.group().summary.state), (before, GroupState::Ready));
}

/// A new store changes no group that the nodes have from another one: neither its number nor its Proxy Address is used
/// again.
#[test]
fn an_empty_store_changes_no_group_of_another() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let before = cluster.acknowledged();
    cluster.start_with(BTreeMap::new(), 77);
    cluster.settle();
    let create = |cluster: &mut Cluster, new| cluster.commit(|core| core.create_group(&admin(), None, new));
    let refused = create(&mut cluster, new_group(OnFailure::Strict)).unwrap_err().detail;
    assert!(refused.contains("is the Proxy Address of group 1 of store 0000000000000001"), "{refused}");
    let mut other = new_group(OnFailure::Strict);
    other.proxy = Some("2001:db8:cc::2".parse().unwrap());
    assert_eq!(create(&mut cluster, other).unwrap(), 2);
    cluster.pass(500);
    assert_eq!(cluster.acknowledged(), before);
    let refused = cluster.commit(|core| core.adopt_foreign(&admin(), 1, 1)).unwrap_err().detail;
    assert!(refused.contains("--rebuild 0000000000000001"), "{refused}");
}

/// A store that is restored again from the same backup uses a round again, from which the source has been released: it
/// would ignore a pause of that round (D115).
#[test]
fn a_pause_of_a_round_that_the_source_has_left_has_a_later_one() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let report = |cluster: &mut Cluster, round, pausing| {
        let report = SourceReport { round, pausing, ..SourceReport::default() };
        cluster.commit(|core| core.report_source(&admin(), 1, report)).unwrap()
    };
    report(&mut cluster, None, false);
    let backup = cluster.rows.clone();
    let pause = |cluster: &mut Cluster, known| {
        cluster.start_with(backup.clone(), 1);
        cluster.pass(300);
        cluster.join(receiver(2, 1)).unwrap();
        cluster.pass(300);
        report(cluster, known, false)
    };
    let SourceOrder::Pause { round } = pause(&mut cluster, Some(0)) else { panic!("a join pauses the source") };
    // It was released from that round.
    assert_eq!(pause(&mut cluster, Some(round)), SourceOrder::Pause { round: round + 1 });
}

/// A row under another key than its own would neither be replaced nor deleted: a member's would be left when its group
/// is gone, and the next controller would not start.
#[test]
fn rows_under_other_keys_are_refused() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let moved = |from: &str, to: &str| {
        let mut rows = cluster.rows.clone();
        let value = rows.remove(from).unwrap_or_else(|| panic!("no row {from} in {:?}", rows.keys()));
        rows.insert(to.to_owned(), value);
        restored(&rows)
    };
    let first = receiver(1, 1);
    let [.., last] = first.segments();
    let longer = first.to_string().replace(&format!("::{last:x}"), &format!(":0::{last:x}"));
    let node = cluster.rows.keys().find(|key| key.starts_with("node/")).unwrap().clone();
    for (from, to) in [
        (format!("member/0000000001/{first}"), format!("member/0000000001/{longer}")),
        (format!("member/0000000001/{first}"), format!("member/1/{first}")),
        ("group/0000000001".to_owned(), "group/1".to_owned()),
        ("record/0000000001".to_owned(), "record/1".to_owned()),
        (node.clone(), "node/2001:db8::77".to_owned()),
    ] {
        assert_eq!(moved(&from, &to), Err(format!("the store's row {to} is damaged: expected the key {from}")));
    }
    assert_eq!(moved(&node, &node), Ok(()));
}

/// Nodes that register after the creation of a group have another store's group with its Proxy Address: one of them may
/// answer the source by that.
#[test]
fn a_group_whose_proxy_address_another_store_has_is_not_committed() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    cluster.start_with(BTreeMap::new(), 2);
    cluster.open(new_group(OnFailure::Strict), &[receiver(2, 1)]);
    cluster.settle();
    let refused = cluster.commit_group().unwrap_err();
    let text = "proxy 2001:db8:cc::1 is the Proxy Address of group 1 of store 0000000000000001, which nodes have";
    assert_eq!((refused.kind, &*refused.detail), (ProblemType::AddressInUse, text));
    cluster.commit(|core| core.remove_foreign(&admin(), 1, 1)).unwrap();
    cluster.settle();
    cluster.commit_group().unwrap();
    assert_eq!((cluster.members(), cluster.acknowledged()), ([receiver(2, 1)].into(), [receiver(2, 1)].into()));
}
