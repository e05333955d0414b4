//! Receivers that are attached to two edges (D280): one of them serves a receiver at a time, and the other takes over.

use crate::cluster::*;
use srdma_api::{NodeOrder, Registration};
use srdma_group::OnFailure;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// The hosts of 2001:db8:d0::/64 are attached to N1 and N2, beside those of each edge.
fn described(number: u16) -> Registration {
    let mut registration = registration(number);
    if number <= 2 {
        registration.hosts.push("2001:db8:d0::/64".parse().unwrap());
    }
    registration
}

/// N1 has lost its link to them.
fn without_link(number: u16) -> Registration {
    let mut registration = described(number);
    if number == 1 {
        registration.hosts.pop();
    }
    registration
}

fn shared(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xd0, 0, 0, 0, 0, host)
}

/// Two that are shared, and one at N3.
fn cluster() -> Cluster {
    let mut cluster = Cluster::of(described);
    cluster.create(&[shared(1), shared(2), receiver(3, 1)], OnFailure::Strict);
    cluster
}

/// The receivers in the entry of a node.
fn at(cluster: &Cluster, number: u16) -> BTreeSet<Ipv6Addr> {
    let receivers = cluster.entry(number).map(|entry| entry.receivers.iter().map(|one| one.address).collect());
    receivers.unwrap_or_default()
}

#[track_caller]
fn are_all_at(cluster: &mut Cluster, number: u16) {
    let all: BTreeSet<Ipv6Addr> = [shared(1), shared(2), receiver(3, 1)].into();
    assert_eq!(at(cluster, number), [shared(1), shared(2)].into());
    assert_eq!((cluster.acknowledged(), cluster.members()), (all.clone(), all));
}

#[test]
fn the_other_edge_takes_over_from_a_dead_one() {
    let mut cluster = cluster();
    are_all_at(&mut cluster, 1);
    cluster.disconnect(1);
    cluster.pass(DEAD_AFTER_MS + 500);
    are_all_at(&mut cluster, 2);
    let epoch = cluster.group().summary.epoch;
    assert_eq!(epoch, 2, "one change moves all");
    // It goes back to an edge only when the present one fails.
    cluster.connect(1);
    cluster.pass(1000);
    are_all_at(&mut cluster, 2);
    assert_eq!((at(&cluster, 1), cluster.group().summary.epoch), (BTreeSet::new(), epoch));
    cluster.disconnect(2);
    cluster.pass(DEAD_AFTER_MS + 500);
    are_all_at(&mut cluster, 1);
}

/// Of an edge with receivers of its own only those leave that have another one.
#[test]
fn a_dead_edge_keeps_the_receivers_that_it_alone_has() {
    let mut cluster = Cluster::of(described);
    cluster.create(&[shared(1), receiver(1, 1)], OnFailure::Strict);
    cluster.disconnect(1);
    cluster.pass(DEAD_AFTER_MS + 500);
    assert_eq!(at(&cluster, 2), [shared(1)].into());
    assert_eq!(cluster.members(), [shared(1), receiver(1, 1)].into());
    cluster.connect(1);
    cluster.pass(1000);
    assert_eq!(at(&cluster, 1), [receiver(1, 1)].into());
    assert_eq!(cluster.acknowledged(), [shared(1), receiver(1, 1)].into());
}

#[test]
fn a_drained_edge_loses_them_and_so_does_one_that_has_lost_its_link() {
    let mut cluster = cluster();
    cluster.commit(|core| core.drain_node(&admin(), "N1", true)).unwrap();
    cluster.settle();
    are_all_at(&mut cluster, 2);
    assert!(!cluster.nodes[&1].table.contains(1), "it has left the tree");

    let mut cluster = self::cluster();
    cluster.register_as(1, without_link);
    cluster.settle();
    are_all_at(&mut cluster, 2);
}

/// A join that waits for a lost edge does not hold the others there.
#[test]
fn receivers_move_while_a_join_waits() {
    let mut cluster = Cluster::of(described);
    cluster.create(&[shared(1), receiver(1, 1)], OnFailure::Strict);
    cluster.disconnect(1);
    cluster.join(receiver(1, 2)).unwrap();
    cluster.pass(DEAD_AFTER_MS + 500);
    assert_eq!(at(&cluster, 2), [shared(1)].into());
    assert_eq!(cluster.group().awaited, ["N1"]);
    cluster.connect(1);
    cluster.pass(1000);
    assert_eq!(at(&cluster, 1), [receiver(1, 1), receiver(1, 2)].into());
    assert_eq!(cluster.acknowledged(), [shared(1), receiver(1, 1), receiver(1, 2)].into());
}

/// New receivers are attached to an edge that is there.
#[test]
fn receivers_join_at_an_edge_that_lives() {
    let mut cluster = Cluster::of(described);
    cluster.create(&[receiver(3, 1)], OnFailure::Strict);
    cluster.disconnect(1);
    cluster.pass(DEAD_AFTER_MS + 500);
    cluster.join(shared(1)).unwrap();
    cluster.pass(500);
    assert_eq!(at(&cluster, 2), [shared(1)].into());
}

/// Both are dead: the first that returns gets them.
#[test]
fn receivers_that_no_edge_serves_wait() {
    for returns in [1, 2] {
        let mut cluster = cluster();
        cluster.disconnect(1);
        cluster.disconnect(2);
        cluster.pass(DEAD_AFTER_MS + 500);
        assert_eq!(at(&cluster, 1), [shared(1), shared(2)].into(), "N1 does not know");
        cluster.connect(returns);
        cluster.pass(1000);
        are_all_at(&mut cluster, returns);
    }
}

/// After a restart of the controller an edge that has not registered yet is not taken for dead.
#[test]
fn a_restart_of_the_controller_moves_nothing() {
    let mut cluster = cluster();
    cluster.disconnect(1);
    cluster.restart();
    cluster.pass(500);
    assert_eq!((at(&cluster, 1), at(&cluster, 2)), ([shared(1), shared(2)].into(), BTreeSet::new()));
    cluster.connect(1);
    cluster.pass(500);
    are_all_at(&mut cluster, 1);
    assert_eq!(cluster.group().summary.epoch, 1);
    // It stays away, and the controller does not know whether it has a lease: it may be forwarding, until no neighbour
    // reaches it.
    cluster.disconnect(1);
    cluster.restart();
    cluster.pass(DEAD_AFTER_MS + 500);
    assert_eq!((at(&cluster, 1), at(&cluster, 2)), ([shared(1), shared(2)].into(), BTreeSet::new()));
    cluster.report_unreachable(4, &[1]);
    cluster.pass(500);
    assert_eq!(at(&cluster, 2), BTreeSet::new(), "N5 reaches it still");
    cluster.report_unreachable(5, &[1]);
    cluster.pass(500);
    are_all_at(&mut cluster, 2);
}

/// The controller ends at any time of a move: it is completed, or made again.
#[test]
fn a_move_survives_restarts_of_the_controller() {
    for steps in 0..12 {
        let mut cluster = cluster();
        cluster.commit(|core| core.drain_node(&admin(), "N1", true)).unwrap();
        (0..steps).for_each(|step| cluster.sync(1 + step % 6));
        let known: BTreeSet<Ipv6Addr> = cluster.acknowledged();
        assert!(known.is_empty() || known.len() == 3, "at step {steps}: {known:?}");
        cluster.restart();
        cluster.pass(1000);
        are_all_at(&mut cluster, 2);
    }
}

const ALL: &str = "2001:db8:d0::/64";

/// D282: the link of a host to its edge is down. It moves by itself, with those of the same prefix.
#[test]
fn receivers_leave_an_edge_whose_link_to_them_is_down() {
    for lost in [&[ALL][..], &["2001:db8:d0::1/128", "2001:db8:d0::2/128"]] {
        let mut cluster = cluster();
        cluster.report_lost(1, lost);
        cluster.pass(500);
        are_all_at(&mut cluster, 2);
        assert_eq!(cluster.group().summary.epoch, 2, "one change moves all");
        // There is no way back, until the other link is down.
        cluster.report_lost(1, &[]);
        cluster.pass(1000);
        are_all_at(&mut cluster, 2);
        cluster.report_lost(2, lost);
        cluster.pass(1000);
        are_all_at(&mut cluster, 1);
    }
}

/// D291: the controller does not wait for the node's next status, nor is a hint more than one.
#[test]
fn a_lost_link_that_is_reported_at_once_moves_the_receivers_at_once() {
    let mut cluster = cluster();
    cluster.hint_lost(1, &[ALL]);
    assert!(cluster.pipeline.take_orders(loopback(2)).iter().any(|order| matches!(order, NodeOrder::Prepare { .. })));
    cluster.report_lost(1, &[ALL]);
    cluster.pass(500);
    are_all_at(&mut cluster, 2);
    // A status without them says that the link is up.
    cluster.report_lost(1, &[]);
    cluster.pass(500);
    cluster.hint_lost(2, &["2001:db8:d0::1/128"]);
    cluster.pass(500);
    assert_eq!(at(&cluster, 1), [shared(1)].into(), "N1 has its link");
}

#[test]
fn one_host_moves_alone() {
    let mut cluster = cluster();
    cluster.report_lost(1, &["2001:db8:d0::2/128", "2001:db8:1::/64"]);
    cluster.pass(500);
    assert_eq!((at(&cluster, 1), at(&cluster, 2)), ([shared(1)].into(), [shared(2)].into()));
    assert_eq!(cluster.acknowledged().len(), 3);
}

/// Both links are down: nothing moves, in either order of the reports, and the first that is up again serves the receivers.
#[test]
fn receivers_without_any_link_stay() {
    for (first, returns) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let mut cluster = cluster();
        cluster.report_lost(2, &[ALL]);
        if first == 2 {
            cluster.pass(500);
        }
        cluster.report_lost(1, &[ALL]);
        cluster.pass(500);
        let (edge, epoch) = (if at(&cluster, 1).is_empty() { 2 } else { 1 }, cluster.group().summary.epoch);
        assert!(epoch <= 2, "at most one move, before both were known");
        cluster.pass(3000);
        assert_eq!((at(&cluster, edge).len(), cluster.group().summary.epoch), (2, epoch));
        cluster.report_lost(returns, &[]);
        cluster.pass(1000);
        are_all_at(&mut cluster, returns);
    }
}

/// A dead edge keeps its receivers while their other link is down.
#[test]
fn receivers_of_a_dead_edge_wait_for_their_other_link() {
    let mut cluster = cluster();
    cluster.report_lost(2, &[ALL]);
    cluster.pass(200);
    cluster.disconnect(1);
    cluster.pass(DEAD_AFTER_MS + 500);
    assert_eq!(at(&cluster, 2), BTreeSet::new());
    cluster.report_lost(2, &[]);
    cluster.pass(500);
    are_all_at(&mut cluster, 2);
}

/// After a restart of the controller nothing moves to an edge that has not said how its links are.
#[test]
fn a_restart_of_the_controller_forgets_no_link() {
    let mut cluster = cluster();
    cluster.report_lost(2, &[ALL]);
    cluster.pass(200);
    cluster.report_lost(1, &[ALL]);
    cluster.pass(200);
    for _ in 0..3 {
        cluster.restart();
        cluster.pass(1000);
        assert_eq!((at(&cluster, 1).len(), cluster.group().summary.epoch), (2, 1));
    }
    cluster.report_lost(2, &[]);
    cluster.pass(1000);
    are_all_at(&mut cluster, 2);
}

/// New receivers are attached to the edge whose link to them is up.
#[test]
fn receivers_join_where_their_link_is_up() {
    let mut cluster = Cluster::of(described);
    cluster.create(&[receiver(3, 1)], OnFailure::Strict);
    cluster.report_lost(1, &[ALL]);
    cluster.pass(200);
    cluster.join(shared(1)).unwrap();
    cluster.pass(500);
    assert_eq!((at(&cluster, 1), at(&cluster, 2)), (BTreeSet::new(), [shared(1)].into()));
}

/// A move that no path led to is made when the links are up again: the node has registered before.
#[test]
fn a_move_is_tried_again_when_links_are_up() {
    let mut cluster = cluster();
    for neighbour in [4, 5] {
        cluster.report_unreachable(neighbour, &[2]);
    }
    cluster.pass(500);
    cluster.report_lost(1, &["2001:db8:d0::/64"]);
    cluster.pass(500);
    let failure = cluster.group().failure.unwrap_or_default();
    assert!(failure.contains("no path to node N2"), "{failure}");
    are_all_at(&mut cluster, 1);
    for neighbour in [4, 5] {
        cluster.report_unreachable(neighbour, &[]);
    }
    cluster.pass(500);
    are_all_at(&mut cluster, 2);
    assert_eq!(cluster.group().failure, None);
}

/// A node refuses a group whose number or Proxy Address another store's group has: the move is made when that is removed.
#[test]
fn a_move_is_tried_again_when_a_node_has_removed_another_group() {
    let mut cluster = Cluster::of(described);
    cluster.create(&[receiver(2, 1)], OnFailure::Strict);
    cluster.disconnect(2);
    cluster.start_with(BTreeMap::new(), 2);
    cluster.settle();
    let remove = |cluster: &mut Cluster| cluster.commit(|core| core.remove_foreign(&admin(), 1, 1)).unwrap();
    remove(&mut cluster);
    cluster.settle();
    cluster.create(&[shared(1), shared(2), receiver(3, 1)], OnFailure::Strict);
    cluster.report_lost(1, &["2001:db8:d0::/64"]);
    cluster.connect(2);
    cluster.pass(500);
    let failure = cluster.group().failure.unwrap_or_default();
    assert!(failure.contains("group 1 is held for store 0000000000000001"), "{failure}");
    are_all_at(&mut cluster, 1);
    remove(&mut cluster);
    cluster.pass(500);
    are_all_at(&mut cluster, 2);
}
