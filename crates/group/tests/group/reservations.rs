//! Joins in two steps (D187, D188).

use crate::figure_1::*;
use crate::fleet::Fleet;
use srdma_group::*;
use srdma_wire::Psn;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

const J: Psn = Psn::new(0x1234);

fn running() -> (Lifecycle, Fleet) {
    let mut lifecycle = Lifecycle::create(record()).unwrap();
    let mut fleet = Fleet::default();
    fleet.settle(&mut lifecycle);
    fleet.take_log();
    fleet.next_psn = J;
    (lifecycle, fleet)
}

fn newcomer(number: u32, edge: usize, admission: Admission) -> Newcomer {
    let Receiver { address, qpn, region, .. } = receiver(number, 0);
    Newcomer {
        address,
        qpn,
        region,
        edge: loopback(edge),
        admission,
        more_regions: Vec::new(),
        psn_offset: PsnOffset::ZERO,
    }
}

fn new_edge(number: usize, parent: usize) -> NewNode {
    let TreeNode { name, loopback: own, sid, parent_sid, multicast, role, .. } = node(number, None, NodeRole::Edge);
    NewNode { name, loopback: own, sid, parent: loopback(parent), parent_sid, role, multicast, can_repair: true }
}

fn set(numbers: &[u32]) -> BTreeSet<Ipv6Addr> {
    numbers.iter().map(|number| receiver_address(*number)).collect()
}

fn has(lifecycle: &Lifecycle, number: u32) -> Option<Option<Psn>> {
    let record = lifecycle.group().unwrap().record();
    let found = record.receivers.iter().find(|receiver| receiver.address == receiver_address(number))?;
    Some(found.joined.map(|join| join.psn))
}

/// D187: a reserved newcomer is told J, and no node is given an entry with it before it is ready from that J on.
#[test]
fn a_newcomer_joins_when_it_is_ready() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.join(vec![newcomer(6, 2, Admission::WhenReady)], vec![], None).unwrap();
    assert_eq!((lifecycle.join_point(receiver_address(6)), lifecycle.reserved()), (None, set(&[])), "not quiet yet");
    lifecycle.ready(receiver_address(6), J);
    fleet.settle(&mut lifecycle);
    assert_eq!(fleet.take_log(), "pause 1", "it was not reserved when it said so");
    assert_eq!((lifecycle.join_point(receiver_address(6)), lifecycle.reserved()), (Some(J), set(&[6])));

    lifecycle.ready(receiver_address(6), J.plus(1));
    lifecycle.ready(receiver_address(7), J);
    lifecycle.repeat();
    fleet.settle(&mut lifecycle);
    assert_eq!(fleet.take_log(), "", "another PSN, and another receiver");

    lifecycle.ready(receiver_address(6), J);
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @"prepare N2 2, prepare N6 2, store 2, commit N2 2, commit N6 2, changed 2, ready 1");
    assert_eq!((has(&lifecycle, 6), lifecycle.join_point(receiver_address(6))), (Some(Some(J)), Some(J)));
    assert!(lifecycle.is_steady());
}

/// D188: a dead newcomer costs its reservation, and nothing else: those that are ready join in the same pause, and the
/// edge that was new for it is not in the tree.
#[test]
fn one_that_is_not_ready_does_not_hold_the_others() {
    let (mut lifecycle, mut fleet) = running();
    let newcomers = vec![newcomer(6, 7, Admission::WhenReady), newcomer(7, 2, Admission::WhenReady)];
    lifecycle.join(newcomers, vec![new_edge(7, 5)], None).unwrap();
    fleet.settle(&mut lifecycle);
    lifecycle.ready(receiver_address(7), J);
    fleet.settle(&mut lifecycle);
    assert_eq!(fleet.take_log(), "pause 1");
    assert_eq!(lifecycle.reserved(), set(&[6]));
    lifecycle.expire(&set(&[6]), "R6 was not ready in time");
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        aborted: R6 was not ready in time, prepare N2 2, prepare N6 2, store 2, commit N2 2
        commit N6 2, changed 2, ready 1
        ");
    assert_eq!((has(&lifecycle, 6), has(&lifecycle, 7)), (None, Some(Some(J))));
    assert!(!lifecycle.group().unwrap().record().tree.nodes().iter().any(|node| node.loopback == loopback(7)));
}

/// D188: with the only newcomer the pause ends. One that leaves is not waited for either.
#[test]
fn the_source_goes_on_without_a_dead_newcomer() {
    for leaves in [false, true] {
        let (mut lifecycle, mut fleet) = running();
        lifecycle.join(vec![newcomer(6, 2, Admission::WhenReady)], vec![], None).unwrap();
        fleet.settle(&mut lifecycle);
        fleet.take_log();
        let end = if leaves {
            lifecycle.leave(&[receiver_address(6)]).unwrap();
            "evicted R6, ready 1"
        } else {
            lifecycle.expire(&set(&[6]), "too late");
            "aborted: too late, ready 1"
        };
        fleet.settle(&mut lifecycle);
        assert_eq!(fleet.take_log(), end);
        assert!(lifecycle.is_steady() && lifecycle.joining().is_empty());
        lifecycle.ready(receiver_address(6), J);
        fleet.settle(&mut lifecycle);
        assert_eq!(fleet.take_log(), "", "it is too late");
    }
}

/// D188: a newcomer that leaves while its join is in progress is not waited for when the join is postponed.
#[test]
fn one_that_leaves_during_its_join_does_not_hold_the_source() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.join(vec![newcomer(6, 2, Admission::WhenReady)], vec![], None).unwrap();
    fleet.settle(&mut lifecycle);
    lifecycle.ready(receiver_address(6), J);
    lifecycle.leave(&[receiver_address(6)]).unwrap();
    fleet.dead.insert(loopback(2));
    fleet.settle(&mut lifecycle);
    lifecycle.lost(loopback(2));
    fleet.dead.clear();
    fleet.settle(&mut lifecycle);
    fleet.next_psn = J.plus(100);
    let held = fleet.agents.get(&loopback(2)).map(|agent| agent.held).unwrap_or_default();
    lifecycle.registered(loopback(2), held).unwrap();
    fleet.settle(&mut lifecycle);
    assert_eq!((has(&lifecycle, 6), lifecycle.reserved()), (None, set(&[])));
    assert!(lifecycle.is_steady() && lifecycle.leaving().is_empty(), "{:?}", fleet.log);
    assert!(
        fleet.log.contains(&"evicted R6".to_owned()) && fleet.log.contains(&"ready 1".to_owned()),
        "{:?}",
        fleet.log
    );
}

/// D187: other changes do not wait for a newcomer; J stays, since the source is quiet.
#[test]
fn others_leave_while_a_newcomer_is_reserved() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.join(vec![newcomer(6, 2, Admission::WhenReady)], vec![], None).unwrap();
    fleet.settle(&mut lifecycle);
    lifecycle.leave(&[receiver_address(1)]).unwrap();
    fleet.settle(&mut lifecycle);
    assert_eq!((has(&lifecycle, 1), lifecycle.reserved()), (None, set(&[6])));
    lifecycle.ready(receiver_address(6), J);
    fleet.settle(&mut lifecycle);
    assert_eq!(has(&lifecycle, 6), Some(Some(J)));
}

/// D187: a join that is postponed after its newcomer was ready is made at the J of another pause, and the newcomer has
/// to be ready for that one.
#[test]
fn readiness_is_for_one_j() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.join(vec![newcomer(6, 2, Admission::WhenReady)], vec![], None).unwrap();
    fleet.settle(&mut lifecycle);
    lifecycle.ready(receiver_address(6), J);
    fleet.dead.insert(loopback(2));
    fleet.settle(&mut lifecycle);
    lifecycle.lost(loopback(2));
    fleet.settle(&mut lifecycle);
    assert!(fleet.log.last().is_some_and(|last| last == "ready 1"), "{:?}", fleet.log);
    assert_eq!(lifecycle.reserved(), set(&[]));

    fleet.dead.clear();
    fleet.next_psn = J.plus(100);
    let held = fleet.agents.get(&loopback(2)).map(|agent| agent.held).unwrap_or_default();
    lifecycle.registered(loopback(2), held).unwrap();
    fleet.settle(&mut lifecycle);
    assert_eq!((lifecycle.join_point(receiver_address(6)), lifecycle.reserved()), (Some(J.plus(100)), set(&[6])));
    lifecycle.ready(receiver_address(6), J);
    fleet.settle(&mut lifecycle);
    assert_eq!(lifecycle.reserved(), set(&[6]));
    lifecycle.ready(receiver_address(6), J.plus(100));
    fleet.settle(&mut lifecycle);
    assert_eq!(has(&lifecycle, 6), Some(Some(J.plus(100))));
}
