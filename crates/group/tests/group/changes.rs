//! Orders of each change of membership (D25, D30, D31).

use crate::figure_1::*;
use crate::fleet::Fleet;
use srdma_group::*;
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;

/// Figure 1, created and running.
fn running() -> (Lifecycle, Fleet) {
    running_with(record())
}

fn running_with(record: Record) -> (Lifecycle, Fleet) {
    let mut lifecycle = Lifecycle::create(record).unwrap();
    let mut fleet = Fleet::default();
    fleet.settle(&mut lifecycle);
    fleet.take_log();
    (lifecycle, fleet)
}

fn newcomer(number: u32, edge: usize) -> Newcomer {
    let Receiver { address, qpn, region, .. } = receiver(number, 0);
    Newcomer {
        address,
        qpn,
        region,
        edge: loopback(edge),
        admission: Admission::AtOnce,
        more_regions: Vec::new(),
        psn_offset: PsnOffset::ZERO,
    }
}

fn new_node(number: usize, parent: usize, role: NodeRole) -> NewNode {
    let TreeNode { name, loopback: own, sid, parent_sid, multicast, .. } = node(number, None, role);
    NewNode { name, loopback: own, sid, parent: loopback(parent), parent_sid, role, multicast, can_repair: true }
}

fn entry(fleet: &Fleet, number: usize) -> GroupEntry {
    fleet.agents[&loopback(number)].entry.clone().unwrap()
}

fn renewals(lifecycle: &Lifecycle) -> Vec<(String, u32)> {
    let nodes = lifecycle.group().unwrap().record().tree.nodes();
    nodes.iter().filter(|node| node.renewed != 0).map(|node| (node.name.clone(), node.renewed)).collect()
}

/// D31: every node has its state before the record is stored, and has committed before the source may send.
#[test]
fn creation_takes_two_phases() {
    let mut lifecycle = Lifecycle::create(record()).unwrap();
    let mut fleet = Fleet::default();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N1 1, prepare N2 1, prepare N3 1, prepare N4 1, prepare N5 1, prepare N6 1, store 1
        commit N6 1, commit N4 1, commit N5 1, commit N1 1, commit N2 1, commit N3 1, changed 1
        ready 0
        ");
    assert!(lifecycle.is_steady());
    assert_eq!(fleet.stored, Some(record()));
}

/// D31: if one node refuses, no node installs the group.
#[test]
fn a_creation_that_a_node_refuses_is_aborted() {
    let mut lifecycle = Lifecycle::create(record()).unwrap();
    let mut fleet = Fleet::default();
    fleet.agents.entry(loopback(5)).or_default().refuses = true;
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N1 1, prepare N2 1, prepare N3 1, prepare N4 1, prepare N5 1, prepare N6 1
        abort N1 1, abort N2 1, abort N3 1, abort N4 1, abort N5 1, abort N6 1
        aborted: node 2001:db8:5::1 refuses epoch 1: no room, closed
        ");
    assert!(lifecycle.is_closed() && lifecycle.group().is_none());
    assert!(fleet.agents.values().all(|agent| agent.entry.is_none() && agent.prepared.is_none()));
}

/// D25: nodes left without branches go, recursively; the source is not paused.
#[test]
fn an_eviction_takes_idle_nodes_out() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.evict(&[receiver_address(4), receiver_address(5)]).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N6 2, store 2, commit N6 2, remove N3 2, remove N5 2, evicted R4, evicted R5
        changed 2
        ");
    let root = entry(&fleet, 6);
    assert_eq!(root.branches, [Branch::new(loopback(4))]);
    assert_eq!(fleet.agents[&loopback(5)].entry, None);
}

/// D25: without these the group would be too small.
#[test]
fn an_eviction_respects_the_fewest_receivers() {
    let mut record = record();
    record.policy.min_receivers = 3;
    let (mut lifecycle, _) = running_with(record);
    let refusal = |error: Result<(), ChangeError>| error.unwrap_err().to_string();
    let three = [1, 2, 3].map(receiver_address);
    let message = "2 receivers would be left, `min_receivers` is 3: close the group, or lower the policy's bound";
    assert_eq!(refusal(lifecycle.evict(&three)), message);
    // Those that wait count, too.
    lifecycle.evict(&three[..1]).unwrap();
    lifecycle.evict(&three[1..2]).unwrap();
    assert_eq!(refusal(lifecycle.evict(&three[2..])), message);
    assert_eq!(refusal(lifecycle.evict(&[])), "no receiver is named");
    let unknown = receiver_address(9);
    assert_eq!(refusal(lifecycle.evict(&[unknown])), format!("{unknown} is not a receiver of the group"));
}

/// D30: the source is quiet from before the first node prepares until the last has committed, and J is its next PSN.
#[test]
fn a_join_pauses_the_source() {
    let (mut lifecycle, mut fleet) = running();
    fleet.next_psn = Psn::new(900);
    let nodes = vec![new_node(7, 5, NodeRole::Edge)];
    lifecycle.join(vec![newcomer(6, 2), newcomer(7, 7)], nodes, None).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        pause 1, prepare N2 2, prepare N5 2, prepare N6 2, prepare N7 2, store 2, commit N5 2
        commit N2 2, commit N7 2, commit N6 2, changed 2, ready 1
        ");
    let join = Some(Join { psn: Psn::new(900), msn: 7 });
    let branch = |number| Branch { joined: join, ..Branch::new(receiver_address(number)) };
    assert_eq!(entry(&fleet, 2).branches, [Branch::new(receiver_address(3)), branch(6)]);
    assert_eq!(entry(&fleet, 7).branches, [branch(7)]);
    let of_node = Branch { joined: join, ..Branch::new(loopback(7)) };
    assert_eq!(entry(&fleet, 5).branches, [Branch::new(loopback(3)), of_node]);
}

/// D25, D30: a dead receiver keeps the source from draining, so its eviction goes first.
#[test]
fn an_eviction_overtakes_a_join_that_waits() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.join(vec![newcomer(6, 2)], vec![], None).unwrap();
    lifecycle.evict(&[receiver_address(1)]).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        pause 1, prepare N1 2, prepare N6 2, store 2, commit N6 2, commit N1 2, evicted R1
        changed 2, prepare N2 3, prepare N6 3, store 3, commit N2 3, commit N6 3, changed 3
        ready 1
        ");
}

/// D25: a receiver that has not joined takes no receiver's place. It may wait for a source that a dead receiver keeps from
/// becoming quiet, so that an eviction that counted on it would wait as well.
#[test]
fn receivers_that_have_not_joined_do_not_count() {
    let mut record = record();
    record.policy.min_receivers = 3;
    let (mut lifecycle, mut fleet) = running_with(record);
    let (refused, unknown) = (ChangeError::TooFew { left: 2, least: 3 }, ChangeError::NotAReceiver);
    lifecycle.join(vec![newcomer(6, 2)], vec![], None).unwrap();
    for number in [1, 2] {
        lifecycle.evict(&[receiver_address(number)]).unwrap();
    }
    assert_eq!(lifecycle.evict(&[receiver_address(3)]), Err(refused.clone()));
    assert_eq!(lifecycle.evict(&[receiver_address(7)]), Err(unknown(receiver_address(7))));
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        pause 1, prepare N1 2, prepare N6 2, store 2, commit N6 2, commit N1 2, evicted R1
        changed 2, prepare N4 3, prepare N6 3, store 3, commit N6 3, commit N4 3, remove N1 3
        evicted R2, changed 3, prepare N2 4, prepare N6 4, store 4, commit N2 4, commit N6 4
        changed 4, ready 1
        ");
    // Its join is in progress, but may be aborted.
    lifecycle.join(vec![newcomer(7, 2)], vec![], None).unwrap();
    lifecycle.quiescent(2, Psn::new(900), 7);
    assert!(!lifecycle.is_between_changes());
    lifecycle.evict(&[receiver_address(3)]).unwrap();
    assert_eq!(lifecycle.evict(&[receiver_address(4)]), Err(refused));
    // It may leave before that.
    lifecycle.evict(&[receiver_address(7)]).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        pause 2, prepare N2 5, prepare N6 5, store 5, commit N2 5, commit N6 5, changed 5
        prepare N2 6, prepare N6 6, store 6, commit N6 6, commit N2 6, evicted R3, evicted R7
        changed 6, ready 2
        ");
    assert!(lifecycle.is_steady());
}

/// D30: waiting joins are aborted and reported; a source that reports later is released.
#[test]
fn joins_that_wait_for_a_silent_source_are_aborted() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.join(vec![newcomer(6, 2)], vec![], None).unwrap();
    assert_eq!(lifecycle.next_order(), Some(Order::Pause { round: 1 }));
    assert!(!lifecycle.is_steady());
    lifecycle.abort_joins("the source is silent");
    assert_eq!(lifecycle.next_order(), Some(Order::Aborted { reason: "the source is silent".to_owned() }));
    assert!(lifecycle.is_steady());
    assert_eq!(lifecycle.source_order(), Some(Order::Pause { round: 1 }));
    lifecycle.quiescent(1, Psn::new(0x1234), 56);
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @"ready 1");
    assert_eq!(lifecycle.group().unwrap().record(), &record());
}

/// The path from the new parent to below the common ancestor is renewed; the ancestor commits first, the old parent
/// last, which is removed when no branch is left below it.
#[test]
fn a_node_is_rehomed() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.rehome(loopback(1), loopback(5), Some(sid(5))).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N1 2, prepare N4 2, prepare N5 2, prepare N6 2, store 2, commit N6 2, commit N5 2
        commit N1 2, commit N4 2, changed 2
        ");
    assert_eq!(renewals(&lifecycle), [("N5".to_string(), 2)]);
    let renewed = Branch { renewed: 2, ..Branch::new(loopback(5)) };
    assert_eq!(entry(&fleet, 6).branches, [Branch::new(loopback(4)), renewed]);
    assert_eq!((entry(&fleet, 5).renewed, entry(&fleet, 5).branches.len()), (2, 2));
    assert_eq!(entry(&fleet, 1).parent, Parent::Node { loopback: loopback(5), sid: Some(sid(5)) });

    fleet.dead.insert(loopback(4));
    lifecycle.lost(loopback(4));
    lifecycle.rehome(loopback(2), loopback(6), None).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N2 3, prepare N6 3, store 3, commit N6 3, commit N2 3, changed 3
        ");
    assert_eq!(entry(&fleet, 6).branches, [renewed, Branch::new(loopback(2))]);
}

/// A node that was dead and left the tree comes into it again.
#[test]
fn a_node_is_rehomed_below_one_that_is_new() {
    let (mut lifecycle, mut fleet) = running();
    let new_nodes = vec![new_node(8, 4, NodeRole::Transit), new_node(7, 8, NodeRole::Transit)];
    lifecycle
        .rehome_by(Rehoming { node: loopback(3), parent: loopback(7), parent_sid: None, new_nodes, link_mtu: None })
        .unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N3 2, prepare N4 2, prepare N6 2, prepare N7 2, prepare N8 2, store 2, commit N6 2
        commit N4 2, commit N8 2, commit N7 2, commit N3 2, remove N5 2, changed 2
        ");
    let all = [("N4".to_string(), 2), ("N8".to_string(), 2), ("N7".to_string(), 2)];
    assert_eq!(renewals(&lifecycle), all);
}

/// A receiver moves to another edge as a node does to another parent: the path to it is renewed, the common ancestor
/// commits first, and the former edge last. Its branch is as new as its move. An edge that has no receiver any more
/// leaves the tree.
#[test]
fn receivers_move_to_other_edges() {
    let (mut lifecycle, mut fleet) = running();
    let moving = |receivers: &[(u32, usize)], new_nodes| {
        let receivers = receivers.iter().map(|(number, edge)| (receiver(*number, 0).address, loopback(*edge)));
        Move { receivers: receivers.collect(), new_nodes, link_mtu: None }
    };
    lifecycle.move_receivers(moving(&[(1, 3)], vec![])).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N1 2, prepare N3 2, prepare N5 2, prepare N6 2, store 2, commit N6 2, commit N5 2
        commit N3 2, commit N1 2, changed 2
        ");
    assert_eq!(renewals(&lifecycle), [("N5".to_string(), 2), ("N3".to_string(), 2)]);
    let moved = Branch { renewed: 2, ..Branch::new(receiver(1, 0).address) };
    assert!(entry(&fleet, 3).branches.contains(&moved), "{:?}", entry(&fleet, 3).branches);
    assert!(!entry(&fleet, 1).branches.iter().any(|branch| branch.responder == moved.responder));

    // N1 is dead, and loses its last receivers to a node that is new.
    fleet.dead.insert(loopback(1));
    lifecycle.lost(loopback(1));
    let left = entry(&fleet, 1).receivers.iter().map(|one| (one.address, loopback(7))).collect();
    let new_nodes = vec![new_node(7, 5, NodeRole::Edge)];
    lifecycle.move_receivers(Move { receivers: left, new_nodes, link_mtu: None }).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N4 3, prepare N5 3, prepare N6 3, prepare N7 3, store 3, commit N6 3, commit N5 3
        commit N7 3, commit N4 3, changed 3
        ");
    assert!(lifecycle.is_steady());

    let mut refused = |receivers| lifecycle.move_receivers(moving(receivers, vec![])).unwrap_err().to_string();
    let refusals = [refused(&[(1, 3)]), refused(&[(60, 3)]), refused(&[(1, 9)]), refused(&[])];
    let edge = "2001:db8:3::1 already";
    assert_eq!(refusals[0], format!("receiver 2001:db8:100::1 is at edge {edge}"));
    assert_eq!(refusals[1], "2001:db8:100::3c is not a receiver of the group");
    assert_eq!(refusals[2], "2001:db8:9::1 is not the loopback of a node of the tree");
    assert_eq!(refusals[3], "no receiver is named");
    // One that has left meanwhile is not moved, and the others are.
    lifecycle.move_receivers(moving(&[(60, 3), (1, 2)], vec![])).unwrap();
    fleet.settle(&mut lifecycle);
    assert!(entry(&fleet, 2).branches.iter().any(|branch| branch.renewed == 4));
}

/// Figure 1 from N7: N4 is above all edges.
fn from_another_headend() -> Replacement {
    use NodeRole::{Edge, Transit};
    let nodes = [
        node(7, None, Transit),
        node(4, Some(0), Transit),
        node(1, Some(1), Edge),
        node(2, Some(1), Edge),
        node(3, Some(1), Edge),
    ];
    Replacement { tree: Tree::new(nodes.to_vec()).unwrap(), receivers: Vec::new(), link_mtu: None }
}

/// D289: the former headend has removed the group before any node commits; all nodes are renewed, and commit from the top
/// down.
#[test]
fn another_headend_takes_the_place_of_the_first() {
    let (mut lifecycle, mut fleet) = running();
    let moved = receiver(5, 0).address;
    let replacement = Replacement { receivers: vec![(moved, loopback(1))], ..from_another_headend() };
    lifecycle.replace_headend(replacement).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N1 2, prepare N2 2, prepare N3 2, prepare N4 2, prepare N7 2, store 2, remove N6 2
        commit N7 2, commit N4 2, commit N1 2, commit N2 2, commit N3 2, remove N5 2, changed 2
        ");
    assert_eq!(renewals(&lifecycle).len(), 5);
    assert!(entry(&fleet, 7).headend.is_some() && entry(&fleet, 7).parent == Parent::Source(record().source));
    assert!(entry(&fleet, 1).branches.contains(&Branch { renewed: 2, ..Branch::new(moved) }));
    let others = entry(&fleet, 1).branches.iter().filter(|branch| branch.renewed == 0).count();
    assert_eq!(others, 2, "receivers that stay are as they were");
    let error = lifecycle.replace_headend(from_another_headend()).unwrap_err();
    assert_eq!(error.to_string(), "2001:db8:7::1 is the headend already");
}

/// D289: a headend that is lost holds the change up once it is stored, until it is fenced, or registers. Then it removes
/// the group before anything else, whatever it has.
#[test]
fn a_lost_headend_has_to_be_fenced() {
    for returns in [false, true] {
        let (mut lifecycle, mut fleet) = running();
        fleet.dead.insert(loopback(6));
        lifecycle.lost(loopback(6));
        lifecycle.replace_headend(from_another_headend()).unwrap();
        fleet.settle(&mut lifecycle);
        assert_eq!(lifecycle.awaited(), [loopback(6)].into());
        assert!(fleet.take_log().ends_with("store 2"), "no node commits");
        lifecycle.repeat();
        fleet.settle(&mut lifecycle);
        assert_eq!(fleet.take_log(), "", "there is nothing to repeat");
        if returns {
            fleet.dead.clear();
            let held = fleet.agents[&loopback(6)].held;
            lifecycle.registered(loopback(6), held).unwrap();
        } else {
            lifecycle.fenced(loopback(6));
        }
        fleet.settle(&mut lifecycle);
        let log = fleet.take_log();
        assert_eq!(log.starts_with("remove N6 2, commit N7 2"), returns, "{log}");
        assert_eq!(log.starts_with("commit N7 2"), !returns, "{log}");
        assert!(lifecycle.is_steady());
        if !returns {
            fleet.dead.clear();
            let held = fleet.agents[&loopback(6)].held;
            lifecycle.registered(loopback(6), held).unwrap();
            fleet.settle(&mut lifecycle);
            assert_eq!(fleet.take_log(), "remove N6 2");
        }
    }
}

/// D289: a headend with receivers of its own commits its entry in the new tree first.
#[test]
fn a_former_headend_with_receivers_stays_in_the_tree() {
    let mut tree: Vec<TreeNode> = figure_1().into();
    tree[0].role = NodeRole::Bud;
    let mut receivers = record().receivers;
    receivers.push(receiver(6, 0));
    let (mut lifecycle, mut fleet) = running_with(Record { tree: Tree::new(tree).unwrap(), receivers, ..record() });
    let mut nodes: Vec<TreeNode> = from_another_headend().tree.into();
    nodes.push(node(6, Some(1), NodeRole::Edge));
    let replacement = Replacement { tree: Tree::new(nodes).unwrap(), ..from_another_headend() };
    lifecycle.replace_headend(replacement).unwrap();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N1 2, prepare N2 2, prepare N3 2, prepare N4 2, prepare N6 2, prepare N7 2, store 2
        commit N6 2, commit N7 2, commit N4 2, commit N1 2, commit N2 2, commit N3 2, remove N5 2
        changed 2
        ");
    assert!(entry(&fleet, 6).headend.is_none());
}

/// A tree that was computed for an earlier record is dropped, whether another change is in progress or waits before it.
#[test]
fn a_tree_of_an_earlier_record_is_dropped() {
    let gone = [receiver(1, 0).address];
    let (mut lifecycle, fleet) = running();
    lifecycle.evict(&gone).unwrap();
    let error = lifecycle.replace_headend(from_another_headend()).unwrap_err().to_string();
    assert_eq!(error, "the record has changed since the tree was computed");

    let mut lifecycle = Lifecycle::resume(record(), Resumption::Settled, 1, 1 << 16).unwrap();
    lifecycle.evict(&gone).unwrap();
    lifecycle.replace_headend(from_another_headend()).unwrap();
    let mut fleet = fleet;
    for number in 1..=6 {
        lifecycle.registered(loopback(number), fleet.agents[&loopback(number)].held).unwrap();
    }
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        prepare N1 2, prepare N6 2, store 2, commit N6 2, commit N1 2, evicted R1, changed 2
        aborted: the record has changed since the tree was computed, ready 65536
        ");
    assert!(lifecycle.is_steady());
}

/// A node that an aborted change would have had removes all that it has of the group: it may have an entry of an earlier
/// record still, whose removal it did not get.
#[test]
fn an_aborted_change_removes_the_group_from_new_nodes() {
    let (mut lifecycle, mut fleet) = running();
    fleet.agents.entry(loopback(3)).or_default().refuses = true;
    let new_nodes = vec![new_node(7, 4, NodeRole::Transit)];
    lifecycle
        .rehome_by(Rehoming { node: loopback(3), parent: loopback(7), parent_sid: None, new_nodes, link_mtu: None })
        .unwrap();
    fleet.settle(&mut lifecycle);
    let log = fleet.take_log();
    assert!(log.contains("remove N7 2") && !log.contains("abort N7") && log.contains("abort N4 2"), "{log}");
    assert!(fleet.agents[&loopback(7)].prepared.is_none() && lifecycle.is_steady());
}

/// The link MTU of a change was computed before an earlier one was made: the lesser of both is in effect.
#[test]
fn waiting_changes_do_not_raise_the_link_mtu_again() {
    let (mut lifecycle, mut fleet) = running();
    let rehoming = |node, link_mtu| {
        let (parent, new_nodes) = (loopback(6), Vec::new());
        Rehoming { node: loopback(node), parent, parent_sid: None, new_nodes, link_mtu: Some(link_mtu) }
    };
    lifecycle.rehome_by(rehoming(1, 4400)).unwrap();
    lifecycle.rehome_by(rehoming(2, 4608)).unwrap();
    fleet.settle(&mut lifecycle);
    let record = |lifecycle: &Lifecycle| lifecycle.group().unwrap().record().clone();
    assert_eq!((record(&lifecycle).epoch, record(&lifecycle).link_mtu), (3, 4400));
    // Computed for the present tree.
    lifecycle.rehome_by(rehoming(3, 4608)).unwrap();
    fleet.settle(&mut lifecycle);
    assert_eq!((record(&lifecycle).epoch, record(&lifecycle).link_mtu), (4, 4608));
}

/// Impossible changes are rejected at once.
#[test]
fn impossible_changes_are_refused_with_a_reason() {
    let (mut lifecycle, mut fleet) = running();
    let mut rehomed = |node, parent| lifecycle.rehome(node, parent, None).unwrap_err().to_string();
    assert_eq!(rehomed(loopback(9), loopback(5)), "2001:db8:9::1 is not the loopback of a node of the tree");
    assert_eq!(rehomed(loopback(1), loopback(9)), "2001:db8:9::1 is not the loopback of a node of the tree");
    let message = "2001:db8:6::1 is the headend: it cannot hang below another node";
    assert_eq!(rehomed(loopback(6), loopback(5)), message);
    assert_eq!(rehomed(loopback(1), loopback(4)), "2001:db8:1::1 hangs below 2001:db8:4::1 already");
    let message = "2001:db8:1::1 hangs below 2001:db8:4::1 itself, so it cannot be its parent";
    assert_eq!(rehomed(loopback(4), loopback(1)), message);
    assert_eq!(
        rehomed(loopback(1), loopback(3)),
        "edge node N3 cannot have nodes below it: with both its role is `bud`"
    );

    let mut joined = |newcomer, nodes| lifecycle.join(vec![newcomer], nodes, None).unwrap_err().to_string();
    let message = "receiver 2001:db8:100::1 is in the group twice";
    assert_eq!(joined(newcomer(1, 2), vec![]), message);
    let reserved = Newcomer { qpn: Qpn::new(1).unwrap(), ..newcomer(6, 2) };
    assert_eq!(joined(reserved, vec![]), "2001:db8:100::6: queue pair number 0x1 is reserved");
    assert_eq!(joined(newcomer(6, 9), vec![]), "2001:db8:9::1 is not the loopback of a node of the tree");
    let ring = vec![new_node(7, 8, NodeRole::Edge), new_node(8, 7, NodeRole::Transit)];
    let message = "2001:db8:8::1 hangs below 2001:db8:8::1 itself, so it cannot be its parent";
    assert_eq!(joined(newcomer(6, 7), ring), message);
    assert_eq!(lifecycle.join(vec![], vec![], None), Err(ChangeError::Nothing));

    lifecycle.close();
    fleet.settle(&mut lifecycle);
    assert_eq!(lifecycle.evict(&[receiver_address(1)]), Err(ChangeError::Closed));
}

/// D246: a receiver joins at a transit node, which is a bud node until it has left; another behind an edge, which becomes
/// one.
#[test]
fn receivers_join_anywhere() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.join(vec![newcomer(6, 4)], vec![], None).unwrap();
    fleet.settle(&mut lifecycle);
    let bud = entry(&fleet, 4);
    assert_eq!((bud.role, bud.nodes_below(), bud.receivers.len()), (NodeRole::Bud, 2, 1));
    let promoted = NewNode { sid: address("2001:db8:3:f::1"), ..new_node(3, 5, NodeRole::Bud) };
    lifecycle.join(vec![newcomer(7, 7)], vec![promoted, new_node(7, 3, NodeRole::Edge)], None).unwrap();
    fleet.settle(&mut lifecycle);
    let bud = entry(&fleet, 3);
    assert_eq!((bud.role, bud.sid, bud.nodes_below()), (NodeRole::Bud, address("2001:db8:3:f::1"), 1));
    assert_eq!(entry(&fleet, 5).downstream, [Downstream::Sid(bud.sid)]);
    lifecycle.leave(&[receiver_address(6), receiver_address(7)]).unwrap();
    fleet.settle(&mut lifecycle);
    assert_eq!((entry(&fleet, 4).role, entry(&fleet, 3).role), (NodeRole::Transit, NodeRole::Bud));
}

/// D31: the end of a group is its end at every node.
#[test]
fn a_group_is_closed() {
    let (mut lifecycle, mut fleet) = running();
    fleet.dead.insert(loopback(2));
    lifecycle.lost(loopback(2));
    lifecycle.close();
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        remove N1 1, remove N3 1, remove N4 1, remove N5 1, remove N6 1, closed
        ");
    assert!(lifecycle.is_closed());
}

/// D30: the join mark is removed once the source is 2^22 packets past J, and not before.
#[test]
fn join_marks_are_removed() {
    let (mut lifecycle, mut fleet) = running();
    fleet.next_psn = Psn::new(0xFF_FFF0);
    lifecycle.join(vec![newcomer(6, 2)], vec![], None).unwrap();
    fleet.settle(&mut lifecycle);
    fleet.take_log();
    lifecycle.settled(Psn::new(0x3F_FFEF));
    fleet.settle(&mut lifecycle);
    assert_eq!(fleet.take_log(), "");
    lifecycle.settled(Psn::new(0x3F_FFF0));
    lifecycle.settled(Psn::new(0x3F_FFF1));
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @"prepare N2 3, prepare N6 3, store 3, commit N2 3, commit N6 3, changed 3");
    assert!(entry(&fleet, 2).receivers.iter().all(|receiver| receiver.joined.is_none()));
}

/// A restarted node gets the group entry that it had; during a change, until its turn, the previous one.
#[test]
fn a_restarted_node_gets_its_group_entry() {
    let (mut lifecycle, mut fleet) = running();
    fleet.agents.remove(&loopback(4));
    lifecycle.restarted(loopback(4));
    fleet.settle(&mut lifecycle);
    assert_eq!(fleet.take_log(), "restore N4 1");

    // N4 loses a branch, so it comes last: until N6 has committed, N4's responses must include N1.
    lifecycle.rehome(loopback(1), loopback(5), None).unwrap();
    while fleet.stored.as_ref().is_some_and(|stored| stored.epoch == 1) {
        let order = lifecycle.next_order().unwrap();
        let answer = fleet.carry_out(&order);
        answer.into_iter().for_each(|answer| fleet.hand_in(&mut lifecycle, answer));
    }
    fleet.take_log();
    fleet.agents.remove(&loopback(4));
    lifecycle.restarted(loopback(4));
    fleet.settle(&mut lifecycle);
    insta::assert_snapshot!(fleet.take_log(), @r"
        commit N6 2, restore N4 1, commit N5 2, prepare N4 2, commit N1 2, commit N4 2, changed 2
        ");
}

/// An epoch's number is used once, and there is an end to them.
#[test]
fn epochs_are_not_used_twice() {
    let (mut lifecycle, mut fleet) = running();
    fleet.agents.get_mut(&loopback(6)).unwrap().refuses = true;
    lifecycle.rehome(loopback(1), loopback(5), None).unwrap();
    fleet.settle(&mut lifecycle);
    let reason = "aborted: node 2001:db8:6::1 refuses epoch 2: no room";
    assert!(fleet.log.contains(&reason.to_string()), "{:?}", fleet.log);
    assert_eq!(fleet.agents[&loopback(5)].prepared, None);
    fleet.agents.get_mut(&loopback(6)).unwrap().refuses = false;
    lifecycle.rehome(loopback(1), loopback(5), None).unwrap();
    fleet.settle(&mut lifecycle);
    assert_eq!(lifecycle.group().unwrap().record().epoch, 3);

    let (mut lifecycle, _) = running_with(Record { epoch: u32::MAX, ..record() });
    let message = lifecycle.rehome(loopback(1), loopback(5), None).unwrap_err().to_string();
    assert_eq!(message, "epoch 4294967295 is the last: close the group and create another");
}

/// Responses name their epoch by 14 bits: a renewal is repeated long before they wrap.
#[test]
fn a_renewal_is_not_left_behind() {
    let mut record = record();
    let mut nodes = record.tree.nodes().to_vec();
    nodes[2].renewed = 5;
    record.tree = Tree::new(nodes).unwrap();
    record.epoch = 4099;
    let (mut lifecycle, mut fleet) = running_with(record);
    lifecycle.evict(&[receiver_address(1)]).unwrap();
    fleet.settle(&mut lifecycle);
    assert_eq!(renewals(&lifecycle), [("N5".to_string(), 5)]);
    lifecycle.evict(&[receiver_address(2)]).unwrap();
    fleet.settle(&mut lifecycle);
    assert_eq!(renewals(&lifecycle), [("N5".to_string(), 4101)]);
}

/// A restarted node must not begin at the PSN at which it once joined, when it is moved to another parent.
#[test]
fn the_mark_of_a_nodes_join_lasts_one_epoch() {
    let (mut lifecycle, mut fleet) = running();
    lifecycle.join(vec![newcomer(6, 7)], vec![new_node(7, 5, NodeRole::Edge)], None).unwrap();
    fleet.settle(&mut lifecycle);
    assert!(entry(&fleet, 5).branches[1].joined.is_some());
    lifecycle.rehome(loopback(7), loopback(4), None).unwrap();
    fleet.settle(&mut lifecycle);
    let branches = entry(&fleet, 4).branches;
    assert_eq!(branches.last(), Some(&Branch::new(loopback(7))));
    let unmarked: Vec<Ipv6Addr> = branches.iter().map(|branch| branch.responder).collect();
    assert_eq!(unmarked, [1, 2, 7].map(loopback));
}
