//! The life cycle of a group: create, commit, join, leave, close (D25, D30, D31).

use crate::fleet::{figure_1, loopback};
use crate::running::*;
use srdma_api::{EvictionRequest, GroupState, ReceiverState, SourceOrder, SourceReport, SourceState};
use srdma_group::Join;
use srdma_wire::Psn;
use std::time::{Duration, Instant};

/// A group of figure 1 with receivers 1 to 5, ready.
pub(crate) fn ready(running: &Running) -> (u32, srdma_api::Client) {
    let client = running.client();
    let group = create(&client, 1).summary.id;
    (1..=5).for_each(|number| join(&client, group, number));
    let committed = commit(&client, group);
    assert_eq!(committed.summary.state, GroupState::Ready, "{committed:?}");
    (group, client)
}

/// D31: every node has its group entry when the group is ready, and the tree is that of the figure, with its
/// explanation.
#[test]
fn a_group_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    for (number, agent) in agents.iter().filter(|(number, _)| **number != 5) {
        assert_eq!(agent.group_entry(group).map(|entry| entry.epoch), Some(1), "N{number}");
        // An order whose answer is late is sent again.
        let log = agent.log();
        let mut orders: Vec<&str> = log.split(", ").collect();
        orders.dedup();
        assert!(orders.join(", ").contains(&format!("prepare {group} 1, commit {group} 1")), "N{number}: {log}");
    }
    let shown = show(&client, group);
    let tree = shown.tree.unwrap();
    let names: Vec<&str> = tree.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["N6", "N4", "N1", "N2", "N3"], "three edges of one node above need no N5");
    assert_eq!((tree.links, tree.links_of_unicast), (4, 6));
    assert!(tree.explanation[0].starts_with("N6 is the headend"), "{:?}", tree.explanation);
    assert!(tree.overhead.lists_in_packets && tree.overhead.octets > tree.overhead.octets_provisioned);
    assert_eq!(tree.nodes[0].sid.to_string(), "2001:db8:ff:6:f::1");
    assert!(shown.members.iter().all(|member| member.state == ReceiverState::Member));
}

/// A refusal by one node leaves the group open, no node has it, and the reason is reported.
#[test]
fn a_creation_that_a_node_refuses_is_aborted() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    agents[&4].state.lock().unwrap().refuses = true;
    let client = running.client();
    let group = create(&client, 1).summary.id;
    join(&client, group, 1);
    let refused = commit(&client, group);
    assert_eq!(refused.summary.state, GroupState::Open);
    assert!(refused.failure.unwrap().contains("no room"));
    assert!(agents.values().all(|agent| agent.group_entry(group).is_none()));
    agents[&4].state.lock().unwrap().refuses = false;
    assert_eq!(commit(&client, group).summary.state, GroupState::Ready);
    assert_eq!(agents[&4].group_entry(group).unwrap().epoch, 2, "the aborted epoch is not reused");
}

/// D30: a source that has begun pauses, reports its PSN, and resumes when all nodes have the new receiver.
#[test]
fn a_late_receiver_joins_at_the_next_psn() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    let path = format!("/v1/groups/{group}/source");
    let report = |report: SourceReport| client.post::<SourceOrder>(&path, &report, None).unwrap().value;
    let SourceOrder::Send { round } = report(SourceReport::default()) else { panic!("expected permission to send") };
    join(&client, group, 6);
    assert_eq!(show(&client, group).summary.state, GroupState::Changing);
    let waiting = SourceReport { round: Some(round), wait_ms: 5000, ..SourceReport::default() };
    let SourceOrder::Pause { round } = report(waiting) else { panic!("expected a pause") };
    assert!(agents[&2].group_entry(group).unwrap().receivers.len() == 1, "nothing changes before the source is paused");
    let paused = SourceReport {
        round: Some(round),
        pausing: true,
        paused_at_psn: Some(0x123),
        completed_messages: 9,
        wait_ms: 5000,
        ..SourceReport::default()
    };
    let mut order = report(paused);
    while order == SourceOrder::Wait {
        order = report(paused);
    }
    assert_eq!(order, SourceOrder::Send { round });
    let entry = agents[&2].group_entry(group).unwrap();
    assert_eq!((entry.epoch, entry.receivers.len()), (2, 2));
    let joined = entry.receivers.iter().find(|receiver| receiver.address == receiver_address(6)).unwrap().joined;
    assert_eq!(joined, Some(Join { psn: Psn::new(0x123), msn: 9 }));
    let member = until_ready(&client, group).members.into_iter().find(|one| one.address == receiver_address(6));
    assert_eq!(member.unwrap().joined_psn, Some(0x123));
}

/// A source that has never reported has sent nothing: a join does not wait for it.
#[test]
fn a_join_before_the_source_begins_needs_no_pause() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let _agents = figure_1(&running);
    let (group, client) = ready(&running);
    join(&client, group, 6);
    assert_eq!(until_ready(&client, group).summary.receivers, 6);
}

/// Waiting joins are rejected at once.
#[test]
fn joins_are_rejected_after_the_end_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let _agents = figure_1(&running);
    let (group, client) = ready(&running);
    let path = format!("/v1/groups/{group}/source");
    let report = |report: SourceReport| client.post::<SourceOrder>(&path, &report, None).map(|reply| reply.value);
    assert_eq!(show(&client, group).source_state, SourceState::Idle);
    assert_eq!(report(SourceReport::default()).unwrap(), SourceOrder::Send { round: 0 });
    join(&client, group, 6);
    assert_eq!(show(&client, group).summary.state, GroupState::Changing);
    let end = SourceReport { round: Some(0), ended: true, ..SourceReport::default() };
    assert_eq!(report(end).unwrap(), SourceOrder::End);
    let ended = show(&client, group);
    assert_eq!((ended.summary.state, ended.source_state), (GroupState::Ready, SourceState::Ended));
    assert_eq!((ended.summary.receivers, ended.failure.as_deref()), (5, Some("the source has ended")));
    assert_eq!(report(end).unwrap(), SourceOrder::End, "the end may be reported again");
    let again = report(SourceReport::default()).unwrap_err();
    assert_eq!(again.problem().unwrap().name(), "source-ended");
    let receiver = format!("/v1/groups/{group}/receivers/{}", receiver_address(6));
    let late = client.put::<srdma_api::Receiver>(&receiver, &new_receiver(6)).unwrap_err();
    assert_eq!(late.problem().unwrap().name(), "source-ended");
    client.delete::<srdma_api::Receiver>(&format!("/v1/groups/{group}/receivers/{}", receiver_address(5))).unwrap();
    assert_eq!(until_ready(&client, group).summary.receivers, 4);
}

/// D25, D30: an edge without receivers leaves the tree; the last receiver cannot leave.
#[test]
fn receivers_leave_and_are_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    let path = |number| format!("/v1/groups/{group}/receivers/{}", receiver_address(number));
    let left: srdma_api::Receiver = client.delete(&path(3)).unwrap().value;
    assert_eq!(left.state, ReceiverState::Leaving);
    until("N2 has left the tree", || agents[&2].group_entry(group).is_none().then_some(()));
    let request = |number| EvictionRequest { group, receiver: receiver_address(number), cause: "stalled".to_owned() };
    agents[&1].state.lock().unwrap().eviction_requests = vec![request(1), request(1)];
    until("R1 is evicted", || (show(&client, group).summary.receivers == 3).then_some(()));
    for number in [2, 4] {
        client.delete::<srdma_api::Receiver>(&path(number)).unwrap();
        until_ready(&client, group);
    }
    let refused = client.delete::<srdma_api::Receiver>(&path(5)).unwrap_err();
    assert_eq!(refused.problem().unwrap().name(), "too-few-receivers");
    assert_eq!(show(&client, group).summary.receivers, 1);
    let audit: srdma_api::AuditPage = client.get("/v1/audit").unwrap().value;
    let evicted = audit.entries.iter().find(|entry| entry.action == "evict").unwrap();
    assert_eq!(evicted.who, "local");
    assert!(evicted.target.ends_with(" at the request of node N1"), "{evicted:?}");
}

/// A closed group is removed from every node and from the store.
#[test]
fn a_group_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    let path = format!("/v1/groups/{group}");
    let closed: srdma_api::Group = client.delete(&path).unwrap().value;
    assert!(matches!(closed.summary.state, GroupState::Closing | GroupState::Closed));
    until("the group is deleted", || client.get::<srdma_api::Group>(&path).is_err().then_some(()));
    assert!(agents.values().all(|agent| agent.group_entry(group).is_none()));
    let again = create(&client, 1);
    assert_eq!(again.summary.id, group + 1, "the Proxy Address is reused, the number is not");
}

/// A group of 1,024 receivers behind 32 edges is ready within a second.
#[test]
fn a_group_of_1024_receivers_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let client = running.client();
    let edges = 32_u16;
    let mut agents = Vec::new();
    let mut head = crate::fleet::registration(6);
    head.links = (0..edges).map(|edge| srdma_api::Link { to: loopback(0x100 + edge), mtu: 9000, cost: 1 }).collect();
    agents.push(crate::fleet::Agent::with(running.client(), head, std::sync::Arc::default()));
    for edge in 0..edges {
        let mut registration = crate::fleet::registration(1);
        registration.name = format!("E{edge}");
        registration.loopback = loopback(0x100 + edge);
        registration.end_mt = Some(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0x100 + edge, 0, 0, 0, 0xe));
        registration.links = vec![srdma_api::Link { to: loopback(6), mtu: 9000, cost: 1 }];
        registration.hosts = vec![format!("2001:db8:bb:{edge:x}::/64").parse().unwrap()];
        agents.push(crate::fleet::Agent::with(running.client(), registration, std::sync::Arc::default()));
    }
    crate::fleet::until_registered(&running, 1 + usize::from(edges));
    let group = create(&client, 1).summary.id;
    for receiver in 0..1024_u16 {
        let address = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xbb, receiver % edges, 0, 0, 0, 1 + receiver / edges);
        let path = format!("/v1/groups/{group}/receivers/{address}");
        client.put::<srdma_api::Receiver>(&path, &new_receiver(receiver)).unwrap();
    }
    let began = Instant::now();
    let committed = commit(&client, group);
    println!("1024 receivers behind {edges} edges: ready after {:?}", began.elapsed());
    assert_eq!(committed.summary.state, GroupState::Ready);
    assert!(!committed.tree.unwrap().overhead.lists_in_packets, "the lists exceed a packet");
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(agents[1..].iter().all(|agent| agent.group_entry(group).unwrap().receivers.len() == 32));
}
