//! Nodes whose connection is lost, and that may be forwarding (D97, D99).

use crate::cluster::*;
use srdma_api::GroupState;
use srdma_group::OnFailure;

/// A lost edge goes on acknowledging for its former receivers: a receiver that joins there is no member before the edge
/// is connected again.
#[test]
fn a_join_at_a_lost_edge_waits_for_it() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    cluster.disconnect(2);
    cluster.pass(DEAD_AFTER_MS + 500);
    cluster.join(receiver(2, 9)).unwrap();
    cluster.pass(1000);
    let group = cluster.group();
    assert!(!cluster.members().contains(&receiver(2, 9)), "{group:?}");
    assert_eq!((group.summary.epoch, group.awaited), (1, vec!["N2".to_owned()]));
    cluster.join(receiver(1, 2)).unwrap();
    cluster.settle();
    assert!(cluster.members().contains(&receiver(1, 2)), "other joins go on");
    cluster.connect(2);
    cluster.pass(1000);
    assert!(cluster.members().contains(&receiver(2, 9)));
    assert!(cluster.acknowledged().contains(&receiver(2, 9)));
    assert_eq!(cluster.group().summary.state, GroupState::Ready);
}

/// An edge that is lost between prepare and commit of a join holds the join up, and is named.
#[test]
fn a_join_in_progress_waits_for_an_edge_that_is_lost() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    cluster.disconnect(2);
    cluster.join(receiver(2, 9)).unwrap();
    cluster.pass(DEAD_AFTER_MS + 500);
    let group = cluster.group();
    assert!(!cluster.members().contains(&receiver(2, 9)), "{group:?}");
    assert_eq!(group.awaited, ["N2"]);
    let acknowledged = cluster.acknowledged();
    assert!(cluster.members().is_subset(&acknowledged), "{acknowledged:?}");
    cluster.connect(2);
    cluster.pass(1000);
    assert!(cluster.members().contains(&receiver(2, 9)) && cluster.acknowledged().contains(&receiver(2, 9)));
}

/// A node that missed a change has its entry restored when it returns, also after a restart of the controller.
#[test]
fn a_stale_node_is_restored_after_a_restart_of_the_controller() {
    for restarts in [false, true] {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
        let transit = if cluster.nodes[&4].table.contains(1) { 4 } else { 5 };
        cluster.disconnect(transit);
        cluster.pass(DEAD_AFTER_MS + 500);
        assert_eq!(cluster.group().summary.epoch, 3, "N1 and N2 were rerouted");
        assert!(cluster.nodes[&transit].table.contains(1), "it does not know");
        if restarts {
            cluster.restart();
            cluster.pass(500);
        }
        cluster.leave(receiver(2, 1)).unwrap();
        cluster.settle();
        cluster.connect(transit);
        cluster.pass(1000);
        assert!(!cluster.nodes[&transit].table.contains(1), "restarts: {restarts}");
        assert_eq!(cluster.group().summary.state, GroupState::Ready);
    }
}

/// An edge that missed an eviction is restored by the entry that it should have, not by the number of its epoch.
#[test]
fn an_edge_with_a_stale_entry_is_restored() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1), receiver(2, 2)], OnFailure::Strict);
    cluster.disconnect(2);
    cluster.pass(DEAD_AFTER_MS + 500);
    cluster.leave(receiver(2, 2)).unwrap();
    cluster.pass(500);
    cluster.restart();
    cluster.pass(500);
    cluster.connect(2);
    cluster.pass(500);
    let node = &cluster.nodes[&2];
    let restored = node.log.iter().rposition(|order| order.starts_with("restore"));
    let renewal = &node.log[restored.unwrap() + 1..];
    assert_eq!(renewal.first().map(String::as_str), Some("prepare 3"), "{:?}", node.log);
    assert_eq!(renewal.last().map(String::as_str), Some("commit 3"), "{:?}", node.log);
    assert_eq!(node.table.entry(1).unwrap().branches.len(), 1);
}

/// A receiver that joins is no member before its edge has committed, also if the controller restarts meanwhile.
#[test]
fn a_join_is_not_shown_before_it_is_committed() {
    for syncs_before in 0..40 {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
        cluster.join(receiver(2, 9)).unwrap();
        for number in (1..=6).cycle().take(syncs_before) {
            cluster.sync(number);
        }
        cluster.restart();
        for number in (1..=6).cycle().take(60) {
            cluster.sync(number);
            let (members, acknowledged) = (cluster.members(), cluster.acknowledged());
            assert!(members.is_subset(&acknowledged), "after {syncs_before}: {members:?}, {acknowledged:?}");
        }
        cluster.pass(500);
        assert!(cluster.members().contains(&receiver(2, 9)), "after {syncs_before}: {:?}", cluster.group());
    }
}

/// D121: a node that was lost before a restart is lost after it, without a wait, and until it registers.
#[test]
fn lost_nodes_are_known_after_a_restart() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1), receiver(2, 2)], OnFailure::Strict);
    cluster.disconnect(2);
    cluster.pass(DEAD_AFTER_MS + 500);
    cluster.restart();
    cluster.settle();
    let failure = cluster.group().failure.expect("the lost node is named");
    assert!(failure.contains("N2"), "{failure}");
    cluster.leave(receiver(2, 2)).unwrap();
    cluster.settle();
    assert_eq!(cluster.group().members.len(), 2, "a change that does not need the node goes on: {:?}", cluster.group());
    cluster.join(receiver(2, 9)).unwrap();
    cluster.pass(500);
    assert_eq!(cluster.group().awaited, ["N2"], "a change that needs it waits");
    cluster.connect(2);
    cluster.pass(1000);
    assert!(cluster.members().contains(&receiver(2, 9)) && cluster.acknowledged().contains(&receiver(2, 9)));
    cluster.restart();
    cluster.settle();
    assert_eq!(cluster.group().failure, None, "it has registered");
}

/// D121: a node that dies while no controller runs is dead as soon as it does not register.
#[test]
fn nodes_that_do_not_return_after_a_restart_are_dead() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    cluster.disconnect(2);
    cluster.restart();
    cluster.pass(1000);
    assert_eq!(
        (cluster.group().summary.state, cluster.group().awaited),
        (GroupState::Verifying, vec!["N2".to_owned()])
    );
    cluster.pass(DEAD_AFTER_MS);
    cluster.leave(receiver(2, 1)).unwrap();
    cluster.pass(500);
    assert_eq!(cluster.group().members.len(), 1, "{:?}", cluster.group());
    cluster.commit(|core| core.close_group(&admin(), 1, None)).unwrap();
    cluster.pass(500);
    assert!(cluster.commit(|core| core.group(&admin(), 1)).is_err(), "closed");
}

/// A transit node that dies while no controller runs is routed around.
#[test]
fn trees_are_rerouted_around_nodes_that_do_not_return() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let transit = if cluster.nodes[&4].table.contains(1) { 4 } else { 5 };
    cluster.disconnect(transit);
    cluster.restart();
    cluster.pass(DEAD_AFTER_MS + 1000);
    let group = cluster.group();
    assert!(group.summary.epoch > 1, "{group:?}");
    assert!(cluster.members().is_subset(&cluster.acknowledged()));
    assert_eq!(cluster.group().summary.state, GroupState::Ready);
}

/// D111: BFD down moves branches to other links, and evicts no receiver: all nodes live.
#[test]
fn trees_are_rerouted_around_links_that_are_down() {
    for reporter in [1, 6, 4, 5] {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Evict);
        let [used, other] = if cluster.nodes[&4].table.contains(1) { [4, 5] } else { [5, 4] };
        if reporter == other {
            continue;
        }
        let before = cluster.group().summary.epoch;
        // Its own links count, those of others do not.
        cluster.report_unreachable(3, &[used, 6, 1]);
        cluster.pass(1000);
        assert_eq!(cluster.group().summary.epoch, before);
        let down = if reporter == used { 1 } else { used };
        cluster.report_unreachable(reporter, &[down]);
        cluster.pass(1000);
        let group = cluster.group();
        assert!(group.summary.epoch > before && cluster.nodes[&other].table.contains(1), "{reporter}: {group:?}");
        // With the headend's link to it, the transit node has no branch left; with an edge's it keeps the other.
        assert_eq!(cluster.nodes[&used].table.contains(1), reporter != 6, "{reporter}");
        assert_eq!((cluster.members().len(), group.summary.state), (2, GroupState::Ready));
        assert!(cluster.members().is_subset(&cluster.acknowledged()));
        // Nothing moves back by itself.
        let after = group.summary.epoch;
        cluster.report_unreachable(reporter, &[]);
        cluster.pass(1000);
        assert_eq!(cluster.group().summary.epoch, after);
    }
}

/// D135: a transit node that no neighbour reaches is replaced at once, dead or not; without the report of one neighbour
/// it takes part in the change, and is waited for until it counts as dead.
#[test]
fn an_isolated_transit_node_is_replaced_at_once() {
    for (is_dead, reporters) in [(true, vec![6, 1, 2, 3]), (false, vec![1, 2, 3, 6]), (true, vec![6, 1, 2])] {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Evict);
        let [used, other] = if cluster.nodes[&4].table.contains(1) { [4, 5] } else { [5, 4] };
        if is_dead {
            cluster.disconnect(used);
        }
        let is_isolated = reporters.len() == 4;
        for reporter in reporters {
            cluster.hint(reporter, used);
        }
        cluster.settle();
        let group = cluster.group();
        let tree = group.tree.clone().unwrap();
        let is_in = |number: u16| tree.nodes.iter().any(|node| node.loopback == loopback(number));
        assert_eq!((is_in(other), is_in(used)), (true, !is_isolated), "{group:?}");
        assert_eq!(group.summary.state == GroupState::Ready, is_isolated, "{group:?}");
        assert!(cluster.members().len() == 2 && cluster.members().is_subset(&cluster.acknowledged()));
        cluster.pass(DEAD_AFTER_MS + 500);
        // The dead node does not know.
        assert_eq!(cluster.nodes[&used].table.contains(1), is_dead);
        assert_eq!((cluster.group().summary.state, cluster.members().len()), (GroupState::Ready, 2));
    }
}

/// With `on_failure = "evict"` the receivers of a dead edge are evicted once its parent finds it stalled; not when the
/// edge has only lost its connection, nor with another policy.
#[test]
fn receivers_of_a_dead_edge_are_evicted() {
    for (policy, lag, remain) in [(OnFailure::Evict, 7, 1), (OnFailure::Evict, 0, 3), (OnFailure::Strict, 7, 3)] {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1), receiver(2, 2)], policy);
        let parent = if cluster.nodes[&4].table.contains(1) { 4 } else { 5 };
        cluster.disconnect(2);
        cluster.pass(DEAD_AFTER_MS + 500);
        cluster.report_lag(parent, 2, 40, lag);
        cluster.pass(500);
        assert_eq!(cluster.group().members.len(), 3, "not before the stall time");
        cluster.report_lag(parent, 2, 41, lag);
        cluster.pass(700);
        assert_eq!(cluster.group().members.len(), 3, "there was progress");
        cluster.pass(1000);
        assert_eq!(cluster.group().members.len(), remain, "{policy:?}, {lag} outstanding");
    }
}

/// A dead transit node stops the group for all; where no other path leads around it, what hangs below it is evicted
/// (D99). A change that leads around it comes first.
#[test]
fn receivers_below_a_dead_transit_node_are_evicted_if_no_path_leads_around_it() {
    for (policy, has_path, remain) in
        [(OnFailure::Evict, false, 1), (OnFailure::Evict, true, 3), (OnFailure::Strict, false, 3)]
    {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], policy);
        let (used, other) = if cluster.nodes[&4].table.contains(1) { (4, 5) } else { (5, 4) };
        cluster.report_unreachable(used, &[3]);
        cluster.report_unreachable(other, if has_path { &[] } else { &[1, 2] });
        cluster.pass(100);
        cluster.join(receiver(3, 1)).unwrap();
        cluster.settle();
        assert_eq!((cluster.members().len(), cluster.nodes[&other].table.contains(1)), (3, true));
        cluster.disconnect(used);
        cluster.report_lag(6, used, 40, 7);
        cluster.pass(DEAD_AFTER_MS + 500);
        assert_eq!(cluster.group().members.len(), 3, "not before the stall time");
        cluster.pass(2000);
        assert_eq!(cluster.group().members.len(), remain, "{policy:?}, another path: {has_path}");
        if remain == 1 {
            assert_eq!(cluster.members(), [receiver(3, 1)].into());
        }
    }
}

/// A join behind a link with a smaller MTU changes the MTU of the group, and with it where the lists are.
#[test]
fn joins_and_reroutes_compute_the_link_mtu_anew() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    assert_eq!(cluster.group().tree.unwrap().overhead.link_mtu, 9000);

    let mut cluster = Cluster::of(|number| with_mtu(number, |near, _| if near == 3 { 4300 } else { 9000 }));
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let overhead = cluster.group().tree.unwrap().overhead;
    assert_eq!((overhead.link_mtu, overhead.lists_in_packets), (9000, true));
    cluster.join(receiver(3, 1)).unwrap();
    cluster.settle();
    let overhead = cluster.group().tree.unwrap().overhead;
    assert!(cluster.members().contains(&receiver(3, 1)));
    assert_eq!((overhead.link_mtu, overhead.lists_in_packets), (4300, false));
    assert!(overhead.longest_packet_octets <= 4300);
}

/// A controller that was stopped itself has heard no node meanwhile: that is no sign of their death.
#[test]
fn time_in_which_the_controller_did_not_listen_does_not_count() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    cluster.pass(500);
    cluster.now_ms += 60_000;
    cluster.commit(srdma_controller_core::Core::expire_nodes);
    let nodes = cluster.commit(|core| core.nodes(&admin(), None, None)).unwrap().nodes;
    assert!(nodes.iter().all(|node| node.is_alive), "{nodes:?}");
    cluster.disconnect(2);
    cluster.pass(DEAD_AFTER_MS + 500);
    let nodes = cluster.commit(|core| core.nodes(&admin(), None, None)).unwrap().nodes;
    assert_eq!(nodes.iter().filter(|node| !node.is_alive).count(), 1);
}
