//! Sources that are attached to two nodes (D289): one of them is the headend at a time, and the other takes its place.

use crate::cluster::*;
use srdma_api::{GroupState, Registration};
use srdma_group::{NodeRole, OnFailure};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

const SOURCES: &str = "2001:db8:aa::/64";
const SHARED: &str = "2001:db8:d0::/64";

/// The source is attached to N6 and N5.
fn described(number: u16) -> Registration {
    let mut registration = registration(number);
    if number == 5 {
        registration.hosts.push(SOURCES.parse().unwrap());
    }
    registration
}

/// So are the receivers of this prefix; N6 has a receiver of its own as well.
fn leaves(number: u16) -> Registration {
    let mut registration = if number >= 5 { bud_node(number) } else { registration(number) };
    if number == 5 {
        registration.hosts.push(SOURCES.parse().unwrap());
    }
    if number >= 5 {
        registration.hosts.push(SHARED.parse().unwrap());
    }
    registration
}

fn without_source(number: u16) -> Registration {
    if number == 6 { Registration { hosts: Vec::new(), ..described(6) } } else { described(number) }
}

fn shared(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xd0, 0, 0, 0, 0, host)
}

fn receivers() -> BTreeSet<Ipv6Addr> {
    [receiver(1, 1), receiver(2, 1), receiver(2, 2)].into()
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::of(described);
    cluster.create(&receivers().into_iter().collect::<Vec<_>>(), OnFailure::Strict);
    serves(&mut cluster, 5);
    cluster
}

/// The nodes that are headends by the entries that they have in effect.
fn headends(cluster: &Cluster) -> Vec<u16> {
    let is_headend = |number: &u16| cluster.entry(*number).is_some_and(|entry| entry.headend.is_some());
    (1..=6).filter(is_headend).collect()
}

/// A node is the headend, above all receivers.
#[track_caller]
fn serves(cluster: &mut Cluster, headend: u16) {
    let group = cluster.group();
    assert_eq!(group.tree.unwrap().nodes[0].name, format!("N{headend}"), "{:?} {:?}", group.failure, group.awaited);
    assert_eq!((cluster.acknowledged_by(headend), cluster.members()), (receivers(), receivers()));
    assert!(headends(cluster).contains(&headend));
}

fn epoch(cluster: &mut Cluster) -> u32 {
    cluster.group().summary.epoch
}

#[test]
fn the_other_node_takes_the_place_of_a_dead_headend() {
    let mut cluster = cluster();
    cluster.disconnect(5);
    cluster.pass(DEAD_AFTER_MS + 500);
    serves(&mut cluster, 6);
    assert_eq!(epoch(&mut cluster), 2, "by one change");
    let text = "N6 is the headend in place of N5 since epoch 2: source 2001:db8:aa::1 is in the hosts of both";
    assert_eq!(cluster.group().tree.unwrap().explanation, [text]);
    // It removes what it has first of all, and does not become the headend again on its own.
    cluster.connect(5);
    let known = cluster.nodes[&5].log.len();
    cluster.pass(1000);
    assert!(cluster.nodes[&5].log[known..].iter().all(|order| order == "remove 2"));
    serves(&mut cluster, 6);
    assert_eq!((headends(&cluster), epoch(&mut cluster)), (vec![6], 2));
    cluster.disconnect(6);
    cluster.pass(DEAD_AFTER_MS + 500);
    serves(&mut cluster, 5);
}

/// D120: a source that gives up before its headend is replaced.
#[test]
fn a_commit_warns_of_a_replacement_that_is_slower_than_the_source() {
    let warnings = cluster().group().warnings;
    let text = "a dead headend is repaired after up to 3100 ms, and the source gives up after 469 ms";
    assert!(warnings.iter().any(|warning| warning.starts_with(text)), "{warnings:?}");
}

/// A headend that lives ends before any other node commits.
#[test]
fn a_headend_that_is_drained_or_has_lost_the_source_ends_first() {
    let drain = |cluster: &mut Cluster| cluster.commit(|core| core.drain_node(&admin(), "N5", true)).unwrap();
    let report = |cluster: &mut Cluster| cluster.report_lost(5, &[SOURCES]);
    let host = |cluster: &mut Cluster| cluster.report_lost(5, &["2001:db8:aa::1/128"]);
    for act in [&drain as &dyn Fn(&mut Cluster), &report, &host] {
        let mut cluster = cluster();
        act(&mut cluster);
        for step in 0..200 {
            cluster.sync(1 + step % 6);
            let committed = (1..=6).filter(|node| cluster.entry(*node).is_some_and(|entry| entry.epoch == 2)).count();
            let former = cluster.entry(5).is_some_and(|entry| entry.headend.is_some());
            assert!(committed == 0 || !former, "{committed} nodes have committed");
        }
        serves(&mut cluster, 6);
        assert_eq!(headends(&cluster), [6]);
    }
    let mut cluster = cluster();
    cluster.report_lost(6, &[SOURCES]);
    cluster.pass(500);
    cluster.report_lost(5, &[SOURCES]);
    cluster.pass(3000);
    serves(&mut cluster, 5);
    assert_eq!(epoch(&mut cluster), 1, "no node has a link to the source");
    cluster.report_lost(6, &[]);
    cluster.pass(500);
    serves(&mut cluster, 6);
}

/// What a node says that none of its neighbours reaches goes nowhere: there is no need to wait for its lease (D135).
#[test]
fn a_headend_that_no_neighbour_reaches_is_replaced_at_once() {
    let mut cluster = cluster();
    cluster.disconnect(5);
    for neighbour in [1, 2, 3] {
        cluster.hint(neighbour, 5);
    }
    cluster.settle();
    serves(&mut cluster, 5);
    cluster.hint(6, 5);
    cluster.settle();
    serves(&mut cluster, 6);
}

/// Source and receivers behind the same two leaves: all of them change over, but for those that one leaf alone has.
#[test]
fn receivers_move_with_the_headend() {
    let drained = |cluster: &mut Cluster| cluster.commit(|core| core.drain_node(&admin(), "N5", true)).unwrap();
    let lost = |cluster: &mut Cluster| cluster.report_lost(5, &[SOURCES, SHARED]);
    for (act, is_usable) in [(&drained as &dyn Fn(&mut Cluster), false), (&lost, true)] {
        let mut cluster = Cluster::of(leaves);
        let all = [shared(1), receiver(5, 1), receiver(1, 1)];
        cluster.create(&all, OnFailure::Strict);
        assert_eq!(cluster.entry(5).unwrap().receivers.len(), 2);
        act(&mut cluster);
        cluster.pass(500);
        assert_eq!(cluster.acknowledged_by(6), all.into(), "{is_usable}");
        assert_eq!((headends(&cluster), epoch(&mut cluster)), (vec![6], 2));
        let former = cluster.entry(5).unwrap();
        assert_eq!((former.nodes_below(), former.receivers.len()), (0, 1), "nothing hangs below it");
        let moved = cluster.entry(6).unwrap().receivers[0].clone();
        assert_eq!((moved.address, moved.moved), (shared(1), 2));
    }
    // A dead one has its own receiver back when it returns.
    let mut cluster = Cluster::of(leaves);
    let all = [shared(1), receiver(5, 1), receiver(1, 1)];
    cluster.create(&all, OnFailure::Strict);
    cluster.disconnect(5);
    cluster.pass(DEAD_AFTER_MS + 500);
    assert_eq!(cluster.entry(6).unwrap().receivers.len(), 1);
    cluster.connect(5);
    let known = cluster.nodes[&5].log.len();
    cluster.pass(500);
    assert!(cluster.nodes[&5].log[known..].iter().all(|order| order == "restore 2"));
    assert_eq!((cluster.acknowledged_by(6), headends(&cluster)), (all.into(), vec![6]));
}

/// An edge that is dead as well keeps its receivers and its place; what is not below it goes on as soon as it returns.
#[test]
fn a_dead_edge_keeps_its_way() {
    let mut cluster = cluster();
    cluster.disconnect(2);
    cluster.disconnect(5);
    cluster.pass(DEAD_AFTER_MS + 500);
    let group = cluster.group();
    assert_eq!(group.tree.unwrap().nodes[0].name, "N6", "{:?}", group.failure);
    assert!(cluster.entry(6).unwrap().branches.iter().all(|branch| branch.renewed == 2));
    assert_eq!(cluster.entry(2).unwrap().epoch, 1);
    cluster.connect(2);
    cluster.pass(1000);
    serves(&mut cluster, 6);
}

/// A node that is to be the headend and cannot: the group stays as it is, and says why.
#[test]
fn without_a_tree_nothing_changes() {
    let mut cluster = cluster();
    for node in [4, 5] {
        cluster.disconnect(node);
    }
    cluster.pass(DEAD_AFTER_MS + 500);
    let group = cluster.group();
    assert_eq!(group.tree.unwrap().nodes[0].name, "N5");
    assert!(group.failure.as_deref().unwrap_or_default().contains("no path to node"), "{:?}", group.failure);
    cluster.connect(4);
    cluster.pass(1000);
    serves(&mut cluster, 6);
    assert_eq!(cluster.group().failure, None);
}

/// A headend that registers without the source is replaced, and what is requested meanwhile happens, too.
#[test]
fn other_changes_come_before_or_after() {
    let mut cluster = cluster();
    cluster.commit(|core| core.drain_node(&admin(), "N5", true)).unwrap();
    cluster.leave(receiver(2, 1)).unwrap();
    cluster.join(receiver(3, 1)).unwrap();
    cluster.pass(2000);
    let expected: BTreeSet<Ipv6Addr> = [receiver(1, 1), receiver(2, 2), receiver(3, 1)].into();
    assert_eq!((cluster.acknowledged_by(6), cluster.members()), (expected.clone(), expected));
    let mut cluster = Cluster::of(described);
    cluster.commit(|core| core.drain_node(&admin(), "N5", true)).unwrap();
    cluster.create(&receivers().into_iter().collect::<Vec<_>>(), OnFailure::Strict);
    serves(&mut cluster, 6);
    cluster.commit(|core| core.drain_node(&admin(), "N5", false)).unwrap();
    cluster.register_as(6, without_source);
    cluster.pass(500);
    serves(&mut cluster, 5);
}

/// The controller ends at any time of a replacement: it is completed, or made again. At no time are there two headends
/// that live, or one that speaks without a receiver.
#[test]
fn a_replacement_survives_restarts_of_the_controller() {
    for steps in 0..40 {
        let mut cluster = cluster();
        cluster.commit(|core| core.drain_node(&admin(), "N5", true)).unwrap();
        (0..steps).for_each(|step| cluster.sync(1 + step % 6));
        cluster.restart();
        for step in 0..60 {
            let live = headends(&cluster);
            assert!(live.len() <= 1, "after {steps} steps: {live:?}");
            for headend in live {
                let known = cluster.acknowledged_by(headend);
                assert!(known.is_empty() || known == receivers(), "after {steps} steps: {known:?}");
            }
            cluster.sync(1 + (step * 5) % 6);
        }
        cluster.pass(1000);
        serves(&mut cluster, 6);
    }
}

/// After a restart of the controller a headend that has not registered may have a newer record, and one without a lease
/// may be answering the source: nothing is replaced.
#[test]
fn a_headend_that_may_be_alive_is_not_replaced() {
    let mut cluster = cluster();
    cluster.disconnect(5);
    cluster.restart();
    cluster.pass(DEAD_AFTER_MS + 500);
    assert_eq!((headends(&cluster), epoch(&mut cluster)), (vec![5], 1));
    for neighbour in [1, 2, 3, 6] {
        cluster.report_unreachable(neighbour, &[5]);
    }
    cluster.pass(500);
    assert_eq!((headends(&cluster), epoch(&mut cluster)), (vec![5], 1));
    cluster.connect(5);
    cluster.pass(500);
    serves(&mut cluster, 5);
    assert_eq!(epoch(&mut cluster), 1);
}

/// The store is lost, and rebuilt from the nodes: the newest record counts, though the former headend returns with an
/// earlier one.
#[test]
fn a_lost_store_is_rebuilt_from_the_present_headend() {
    let mut cluster = cluster();
    cluster.disconnect(5);
    cluster.pass(DEAD_AFTER_MS + 500);
    serves(&mut cluster, 6);
    cluster.rebuild(1);
    cluster.connect(5);
    cluster.pass(2 * DEAD_AFTER_MS);
    serves(&mut cluster, 6);
    assert_eq!(headends(&cluster), [6]);
    assert_eq!(cluster.entry(6).map(|entry| entry.role), Some(NodeRole::Transit));
}

/// The controller starts with a new store while a node is away.
fn start_anew(cluster: &mut Cluster, away: u16) {
    cluster.disconnect(away);
    cluster.start_with(BTreeMap::new(), 2);
    cluster.settle();
}

fn open(cluster: &mut Cluster) {
    cluster.open(new_group(OnFailure::Strict), &receivers().into_iter().collect::<Vec<_>>());
}

fn install(cluster: &mut Cluster) -> Result<(), String> {
    cluster.commit_group().map_err(|refusal| refusal.detail)
}

/// D301: a node that the store does not know may have a group of a former store, and answer the source. With a lease
/// that ends some time after the controller's start.
#[test]
fn a_first_commit_needs_to_know_both_nodes_of_the_source() {
    let refusal = "group 1: source 2001:db8:aa::1 is in `shared_hosts`, and fewer than two nodes have registered it with \
                   this store: another one may have the group of a former store";
    for has_leases in [false, true] {
        let mut cluster = Cluster::of(described);
        cluster.settings.node_lease = cluster.settings.node_lease.filter(|_| has_leases);
        start_anew(&mut cluster, 5);
        open(&mut cluster);
        assert_eq!(install(&mut cluster), Err(refusal.to_owned()));
        cluster.pass(2 * DEAD_AFTER_MS);
        assert_eq!(install(&mut cluster), if has_leases { Ok(()) } else { Err(refusal.to_owned()) });
        if !has_leases {
            cluster.connect(5);
            cluster.settle();
            assert_eq!(install(&mut cluster), Ok(()));
        }
        cluster.pass(500);
        assert_eq!(cluster.members(), receivers());
    }
}

/// D115, D301: the store is from before the first commit, at which it did not know the node that is the headend since,
/// or had it as lost.
#[test]
fn a_group_of_an_older_store_is_not_open_before_both_nodes_have_registered() {
    for is_known in [false, true] {
        let mut cluster = Cluster::of(described);
        cluster.settings.node_lease = None;
        if is_known {
            cluster.disconnect(5);
            cluster.pass(DEAD_AFTER_MS + 500);
        } else {
            start_anew(&mut cluster, 5);
        }
        open(&mut cluster);
        let backup = cluster.rows.clone();
        cluster.connect(5);
        cluster.settle();
        assert_eq!(install(&mut cluster), Ok(()));
        serves(&mut cluster, 5);
        // No other node of the group reports what it has.
        (1..=5).for_each(|node| cluster.disconnect(node));
        cluster.start_with(backup, 2);
        for _ in 0..3 {
            cluster.pass(DEAD_AFTER_MS);
            assert_eq!(cluster.group().summary.state, GroupState::Verifying, "{is_known}");
        }
        (1..=5).for_each(|node| cluster.connect(node));
        cluster.pass(1000);
        assert_eq!(cluster.group().summary.state, GroupState::Ready, "{is_known}");
        serves(&mut cluster, 5);
    }
}
