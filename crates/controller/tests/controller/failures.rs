//! Failures of nodes and controllers.

use crate::fleet::{Agent, figure_1, loopback, registration};
use crate::life::ready;
use crate::running::*;
use srdma_api::{GroupState, NodePage, SourceOrder, SourceReport};
use srdma_controller::Config;
use srdma_group::Parent;
use std::sync::Arc;

/// R6, D17: a node that restarts without state is given its group entry, and knows nothing of its branches.
#[test]
fn a_restarted_node_gets_its_group_entry() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let mut agents = figure_1(&running);
    let (group, client) = ready(&running);
    agents.insert(4, Agent::start(&running, 4));
    until("N4 has its group entry", || agents[&4].group_entry(group));
    assert_eq!(agents[&4].log(), format!("restore {group} 1"));
    until_ready(&client, group);
}

/// N2 and N3 become children of N5; N1, which has no other path, waits.
#[test]
fn the_tree_is_rerouted_around_a_dead_node() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(Config { node_dead_after_ms: 3000, ..config() }, &folder.path().join("store"));
    let mut agents = figure_1(&running);
    let (group, client) = ready(&running);
    agents.remove(&4);
    for number in [2, 3] {
        until("it is a child of N5", || {
            let parent = agents[&number].group_entry(group).map(|entry| entry.parent);
            (parent == Some(Parent::Node { loopback: loopback(5), sid: None })).then_some(())
        });
    }
    let nodes: NodePage = client.get("/v1/nodes").unwrap().value;
    let alive: Vec<bool> = nodes.nodes.iter().map(|node| node.is_alive).collect();
    assert_eq!(alive, [true, true, true, false, true, true]);
}

/// A drained node loses the children that have another path, and new trees avoid it.
#[test]
fn the_tree_is_rerouted_around_a_drained_node() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    let drained: srdma_api::Node =
        client.put("/v1/nodes/N5/drain", &srdma_api::DrainRequest { drained: true }).unwrap().value;
    assert!(drained.is_drained);
    client.put::<srdma_api::Node>("/v1/nodes/N5/drain", &srdma_api::DrainRequest { drained: false }).unwrap();
    client.put::<srdma_api::Node>("/v1/nodes/N4/drain", &srdma_api::DrainRequest { drained: true }).unwrap();
    let shown = until("N3 is a child of N5", || {
        let shown = show(&client, group);
        let tree = shown.tree.clone()?;
        let parent = tree.nodes.iter().find(|node| node.name == "N3")?.parent.clone();
        (parent.as_deref() == Some("N5") && shown.summary.state == GroupState::Ready).then_some(shown)
    });
    let below: Vec<String> = shown
        .tree
        .unwrap()
        .nodes
        .into_iter()
        .filter(|node| node.parent.as_deref() == Some("N4"))
        .map(|node| node.name)
        .collect();
    assert_eq!(below, ["N1"], "N1 has no other path");
    assert!(agents[&5].group_entry(group).is_some());
    let again = create(&client, 2).summary.id;
    let other = srdma_api::NewReceiver { qpn: 0x2001, ..new_receiver(1) };
    let path = format!("/v1/groups/{again}/receivers/{}", receiver_address(1));
    client.put::<srdma_api::Receiver>(&path, &other).unwrap();
    let refused = client.post::<srdma_api::Group>(
        &format!("/v1/groups/{again}/commit"),
        &srdma_api::CommitRequest::default(),
        None,
    );
    assert_eq!(refused.unwrap_err().problem().unwrap().name(), "no-path");
}

/// Every answered write survives a controller's death; the nodes keep their groups and receive no orders.
#[test]
fn a_restarted_controller_restores_all_groups() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let running = Running::on_disk(&file);
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    let open = create(&client, 2).summary.id;
    join(&client, open, 7);
    let before = [show(&client, group), show(&client, open)];
    let states: Vec<_> = agents.iter().map(|(number, agent)| (*number, Arc::clone(&agent.state))).collect();
    drop(agents);
    drop(running);
    for (_, state) in &states {
        state.lock().unwrap().log.clear();
    }
    let running = Running::on_disk(&file);
    let client = running.client();
    let agents: Vec<Agent> =
        states.into_iter().map(|(number, state)| Agent::with(running.client(), registration(number), state)).collect();
    until("all nodes have registered", || {
        let nodes: NodePage = client.get("/v1/nodes").unwrap().value;
        nodes.nodes.iter().all(|node| node.is_alive).then_some(())
    });
    let after = [show(&client, group), show(&client, open)];
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before.members, before.summary.state), (&after.members, after.summary.state));
        assert_eq!(before.summary.epoch, after.summary.epoch);
    }
    assert!(agents.iter().all(|agent| agent.log().is_empty()), "a node received an order");
    join(&client, group, 6);
    assert_eq!(until_ready(&client, group).summary.epoch, 2);
}

/// The next start of a controller completes a creation.
#[test]
fn an_interrupted_creation_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let running = Running::on_disk(&file);
    let client = running.client();
    // Registered nodes that answer no order.
    for number in 1..=6 {
        client.post::<srdma_api::Session>("/v1/nodes", &registration(number), None).unwrap();
    }
    let group = create(&client, 1).summary.id;
    (1..=5).for_each(|number| join(&client, group, number));
    let path = format!("/v1/groups/{group}/commit");
    let begun: srdma_api::Group = client.post(&path, &srdma_api::CommitRequest::default(), None).unwrap().value;
    assert_eq!(begun.summary.state, GroupState::Creating);
    drop(running);
    let running = Running::on_disk(&file);
    let _agents = figure_1(&running);
    assert_eq!(until_ready(&running.client(), group).summary.receivers, 5);
}

/// Joins that wait for a silent source are aborted; when the source reports again, it is released, and receivers join.
#[test]
fn joins_do_not_wait_for_a_silent_source() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(Config { source_silent_after_ms: 2000, ..config() }, &folder.path().join("store"));
    let _agents = figure_1(&running);
    let (group, client) = ready(&running);
    let path = format!("/v1/groups/{group}/source");
    let report = |report: SourceReport| client.post::<SourceOrder>(&path, &report, None).unwrap().value;
    assert_eq!(report(SourceReport::default()), SourceOrder::Send { round: 0 });
    join(&client, group, 6);
    let aborted =
        until("the join is aborted", || Some(show(&client, group)).filter(|group| group.summary.receivers == 5));
    assert_eq!(aborted.summary.state, GroupState::Ready);
    let failure = aborted.failure.expect("a reason");
    assert!(failure.contains("silent for 2000 ms"), "{failure}");
    let sending = SourceReport { round: Some(0), ..SourceReport::default() };
    assert_eq!(report(sending), SourceOrder::Pause { round: 1 });
    let quiet = SourceReport { round: Some(1), pausing: true, paused_at_psn: Some(9), ..SourceReport::default() };
    assert_eq!(report(quiet), SourceOrder::Send { round: 1 });
    join(&client, group, 6);
    assert_eq!(report(SourceReport { round: Some(1), ..sending }), SourceOrder::Pause { round: 2 });
    report(SourceReport { round: Some(2), ..quiet });
    assert_eq!(until_ready(&client, group).summary.receivers, 6);
}

/// D111: a node reports that BFD has found a neighbour down: its branch moves to another path, and no receiver is evicted.
#[test]
fn a_hint_of_bfd_moves_a_branch() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    let parent = |shown: &srdma_api::Group, name: &str| {
        let nodes = shown.tree.as_ref().unwrap().nodes.iter();
        nodes.clone().find(|node| node.name == name).and_then(|node| node.parent.clone())
    };
    let before = show(&client, group);
    assert_eq!(parent(&before, "N3").as_deref(), Some("N4"));
    agents[&4].state.lock().unwrap().unreachable = vec![loopback(3)];
    let after = until("the branch has moved", || {
        Some(show(&client, group)).filter(|shown| parent(shown, "N3").as_deref() == Some("N5"))
    });
    assert_eq!(after.members.len(), before.members.len());
    let settled = until_ready(&client, group);
    assert!(settled.failure.is_none() && agents[&5].group_entry(group).is_some());
    let node: srdma_api::Node = client.get("/v1/nodes/N3").unwrap().value;
    assert!(node.is_alive, "a hint is no proof of death");
}
