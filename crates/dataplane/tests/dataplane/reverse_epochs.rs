//! From one epoch of a group to the next at a node: branches that stay, go, join and are renewed; the epoch that
//! responses between nodes carry; receivers that join late (D17, D18, D25, D30, R6, R7).

use crate::common::group::{self, HEADEND, PROXY, address, inner, member, receiver};
use crate::common::{Bench, next_hop};
use srdma_aggregation::{BranchIndex, EvictionCause};
use srdma_dataplane::{Command, Event, Lease, RouteAction, SidBehavior, TableId};
use srdma_frame::Element;
use srdma_group::*;
use srdma_testkit::checksums;
use srdma_wire::{Prefix, Psn};
use std::time::Duration;

const TRANSIT: &str = "2001:db8:4::1";
const TRANSIT_SID: &str = "5f00:0:4:e000::";
const N1: &str = "2001:db8:a::1";
const N2: &str = "2001:db8:b::1";
const R1: &str = "2001:db8:2::1";
const R2: &str = "2001:db8:2::2";

/// N6 above N4, which has the edges N1 and N2 at its ports 1 and 2; R1 and R2 are branches of N1, R3 of N2.
fn record(epoch: u32) -> Record {
    let nodes = [
        ("N6", HEADEND, "5f00:0:6:e000::", None),
        ("N4", TRANSIT, TRANSIT_SID, Some(0)),
        ("N1", N1, "5f00:0:1:e000::", Some(1)),
        ("N2", N2, "5f00:0:2:e000::", Some(1)),
    ];
    let on = |host, edge| member(&receiver(host, 0x100 + u32::from(host), None), edge);
    let mut record = group::record(&nodes, vec![on(1, 2), on(2, 2), on(3, 3)]);
    record.epoch = epoch;
    record.policy.lists = ListMode::Provisioned;
    record
}

/// A node's group entry of the record, changed.
fn entry(node: usize, epoch: u32, change: impl FnOnce(&mut Record, &mut Vec<TreeNode>)) -> GroupEntry {
    let mut record = record(epoch);
    let mut nodes = record.tree.nodes().to_vec();
    change(&mut record, &mut nodes);
    record.tree = Tree::new(nodes).unwrap();
    Group::new(record).unwrap().at(NodeIndex(node)).unwrap()
}

fn commit(bench: &mut Bench, entry: GroupEntry) {
    let (id, epoch) = (entry.id, entry.epoch);
    bench.apply(Command::PrepareGroup(Box::new(entry)));
    bench.apply(Command::CommitGroup { id, epoch, is_first: false });
}

fn routes(bench: &mut Bench, routes: &[(&str, u16)]) {
    for (prefix, port) in routes {
        let prefix = Prefix::new(address(prefix), 48).unwrap();
        let action = RouteAction::Via(vec![next_hop(*port)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
}

fn transit() -> Bench {
    let mut bench = Bench::new(TRANSIT, 3);
    let children = [("5f00:0:1::", 1), ("2001:db8:a::", 1), ("5f00:0:2::", 2), ("2001:db8:b::", 2)];
    routes(&mut bench, &[("2001:db8:6::", 0)]);
    routes(&mut bench, &children);
    let prefix = Prefix::host(address(TRANSIT_SID));
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndReplicate(GroupId(1)) });
    bench
}

/// N1 with its receivers behind port 1.
fn edge() -> Bench {
    let mut bench = Bench::new(N1, 2);
    routes(&mut bench, &[("2001:db8:4::", 0), ("2001:db8:2::", 1)]);
    let prefix = Prefix::host(address("5f00:0:1:e000::"));
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndMt { require_hmac: false } });
    bench
}

/// A group's data packet of this PSN, for a SID.
fn data(psn: u8, sid: &str) -> Vec<u8> {
    let mut packet = inner(0x04, 0, &[9; 200], false);
    packet[59] = psn;
    let end = packet.len() - 4;
    let icrc = checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    let mut packet = group::encapsulated(&packet);
    packet[24..40].copy_from_slice(&address(sid).octets());
    packet
}

fn with_port(mut packet: Vec<u8>, source_port: u16) -> Vec<u8> {
    packet[40..42].copy_from_slice(&source_port.to_be_bytes());
    let end = packet.len() - 4;
    let icrc = checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    packet
}

/// A response that a branch sends in an epoch.
fn response(responder: &str, epoch: u16, psn: u8, syndrome: u8) -> Vec<u8> {
    with_port(group::response(0x11, responder, psn, &[syndrome, 0, 0, 1]), 0xC000 | epoch)
}

/// PSN, syndrome and UDP source port of the responses that a node sends by its port 0.
fn upstream(sent: &[(u16, Vec<u8>)]) -> Vec<(u8, u8, u16)> {
    let up = sent.iter().filter(|(port, packet)| *port == 0 && packet[24..40] == address(PROXY).octets());
    up.map(|(_, packet)| (packet[59], packet[60], u16::from_be_bytes([packet[40], packet[41]]))).collect()
}

fn tick(bench: &mut Bench) -> Vec<(u16, Vec<u8>)> {
    if let Some(deadline) = bench.node.next_deadline() {
        bench.now = bench.now.max(deadline);
        bench.node.tick(bench.now, &mut bench.pool);
    }
    bench.drain()
}

fn unknown(bench: &Bench) -> u16 {
    bench.node.acknowledgements(GroupId(1)).unwrap().unknown_branches()
}

/// A branch that is removed holds no other back (R7); one that stays keeps its expected PSN; a response carries the
/// epoch in which it is sent.
#[test]
fn a_branch_that_leaves_frees_the_others_at_once() {
    let mut bench = transit();
    commit(&mut bench, entry(1, 1, |_, _| ()));
    (100..103).for_each(|psn| drop(bench.send(0, &data(psn, TRANSIT_SID))));
    assert_eq!(upstream(&bench.send(1, &response(N1, 1, 100, 0x1F))), []);
    assert_eq!(upstream(&bench.send(2, &response(N2, 1, 100, 0x1F))), [(100, 0x1F, 0xC001)]);
    assert_eq!(upstream(&bench.send(1, &response(N1, 1, 101, 0x1F))), []);
    let without_n2 = entry(1, 2, |record, nodes| {
        record.receivers.truncate(2);
        nodes.truncate(3);
    });
    commit(&mut bench, without_n2);
    assert_eq!(upstream(&tick(&mut bench)), [(101, 0x1F, 0xC002)]);
    assert_eq!(upstream(&bench.send(1, &response(N1, 1, 102, 0x1F))), [(102, 0x1F, 0xC002)], "still true");
    assert_eq!(upstream(&bench.send(2, &response(N2, 1, 102, 0x1F))), []);
    assert_eq!(bench.drops(2), [("unexpected_responder", 1)]);
}

/// Re-homing: responses that a renewed branch sent before are rejected (R6).
#[test]
fn responses_of_a_child_before_its_renewal_are_ignored() {
    let mut bench = transit();
    commit(&mut bench, entry(1, 6, |_, _| ()));
    (100..103).for_each(|psn| drop(bench.send(0, &data(psn, TRANSIT_SID))));
    bench.send(1, &response(N1, 6, 101, 0x1F));
    assert_eq!(upstream(&bench.send(2, &response(N2, 6, 101, 0x1F))), [(101, 0x1F, 0xC006)]);
    // The common ancestor: something moved below N2.
    commit(&mut bench, entry(1, 7, |_, nodes| nodes[3].renewed = 7));
    assert_eq!((unknown(&bench), upstream(&tick(&mut bench))), (1, vec![]));
    assert_eq!(upstream(&bench.send(1, &response(N1, 6, 102, 0x1F))), [], "R6");
    assert_eq!(upstream(&bench.send(2, &response(N2, 6, 102, 0x1F))), []);
    assert_eq!((bench.drops(2), unknown(&bench)), (vec![("old_epoch", 1)], 1));
    assert_eq!(upstream(&bench.send(2, &response(N2, 7, 102, 0x1F))), [(102, 0x1F, 0xC007)]);
    // Congestion is congestion.
    let cnp = with_port(group::response(0x81, N2, 0, &[0; 16]), 0xC006);
    assert_eq!(bench.send(2, &cnp).len(), 1);
}

/// Re-homing: a node that got new descendants discards its record of responses sent, and sends none until all branches
/// have responded; one with another parent sends its minimum at once.
#[test]
fn forwarded_responses_count_while_true_and_received() {
    let received = || {
        let mut bench = transit();
        commit(&mut bench, entry(1, 1, |_, _| ()));
        (100..103).for_each(|psn| drop(bench.send(0, &data(psn, TRANSIT_SID))));
        bench.send(1, &response(N1, 1, 101, 0x1F));
        assert_eq!(upstream(&bench.send(2, &response(N2, 1, 101, 0x1F))), [(101, 0x1F, 0xC001)]);
        bench
    };
    let mut renewed = received();
    commit(&mut renewed, entry(1, 2, |_, nodes| nodes[1].renewed = 2));
    assert_eq!(upstream(&tick(&mut renewed)), [(101, 0x1F, 0xC002)], "true of what hangs below now");

    let mut moved = received();
    let elsewhere = entry(1, 2, |_, nodes| nodes[1].parent_sid = Some(address("5f00:0:6::d6")));
    commit(&mut moved, elsewhere);
    routes(&mut moved, &[("5f00:0:6::", 0)]);
    let sent = tick(&mut moved);
    assert_eq!(sent.len(), 1);
    assert_eq!(&sent[0].1[24..40], &address("5f00:0:6::d6").octets());

    let mut same = received();
    commit(&mut same, entry(1, 2, |_, _| ()));
    assert_eq!(tick(&mut same), [], "upstream knows");
}

/// A node that is added to the tree of a running group: branches that were elsewhere before are unknown (R6), joining
/// ones are not (D30).
#[test]
fn a_late_node_knows_only_joining_receivers() {
    let join = Join { psn: Psn::new(110), msn: 4 };
    let mut bench = transit();
    let late = entry(1, 5, |_, nodes| {
        nodes[1].renewed = 5;
        nodes[2].joined = Some(join);
    });
    commit(&mut bench, late);
    let acks = bench.node.acknowledgements(GroupId(1)).unwrap();
    assert_eq!((acks.unknown_branches(), acks.minimum_psn()), (1, Some(Psn::new(110))));

    // All of it joins: at J with all receivers below.
    let mut bench = transit();
    let joined = entry(1, 5, |_, nodes| nodes[1..].iter_mut().for_each(|node| node.joined = Some(join)));
    commit(&mut bench, joined);
    bench.send(0, &data(110, TRANSIT_SID));
    bench.send(1, &response(N1, 5, 110, 0x1F));
    assert_eq!(upstream(&bench.send(2, &response(N2, 5, 110, 0x1F))), [(110, 0x1F, 0xC005)]);
}

/// R6, D17: the branches of a restored group are unknown, though the node did not begin as restarted; a node that still
/// has the group continues with its state.
#[test]
fn a_restored_group_entry_has_no_expected_psns() {
    let mut bench = transit();
    let restored = || Command::RestoreGroup(Box::new(entry(1, 3, |_, _| ())));
    bench.apply(restored());
    assert_eq!(unknown(&bench), 2);
    (100..103).for_each(|psn| drop(bench.send(0, &data(psn, TRANSIT_SID))));
    assert_eq!(upstream(&bench.send(1, &response(N1, 3, 101, 0x1F))), [], "R6");
    assert_eq!(upstream(&bench.send(2, &response(N2, 3, 100, 0x1F))), [(100, 0x1F, 0xC003)]);
    bench.apply(restored());
    assert_eq!(unknown(&bench), 0);
    let mut new = transit();
    commit(&mut new, entry(1, 3, |_, _| ()));
    assert_eq!(unknown(&new), 0, "a new group is known from its initial PSN");
}

/// CNPs are counted by branch, and counting continues in another epoch, wherever the branch is then.
#[test]
fn cnps_are_counted_by_branch() {
    let mut bench = transit();
    commit(&mut bench, entry(1, 1, |_, _| ()));
    let cnp = |from| with_port(group::response(0x81, from, 0, &[0; 16]), 0xC001);
    (0..3).for_each(|_| drop(bench.send(2, &cnp(N2))));
    bench.send(1, &cnp(N1));
    let counts = |bench: &Bench| [0, 1].map(|branch| bench.node.branch_cnps(GroupId(1), BranchIndex(branch)));
    assert_eq!(counts(&bench), [Some(1), Some(3)]);
    let without_n1 = entry(1, 2, |record, nodes| {
        record.receivers.drain(..2);
        record.receivers[0].edge = NodeIndex(2);
        nodes.remove(2);
    });
    commit(&mut bench, without_n1);
    assert_eq!(counts(&bench), [Some(3), None]);
}

/// An epoch that is older than the one in effect is refused by name, in both phases.
#[test]
fn older_epochs_are_refused() {
    let mut bench = transit();
    commit(&mut bench, entry(1, 3, |_, _| ()));
    let prepared = bench.node.apply(Command::PrepareGroup(Box::new(entry(1, 2, |_, _| ()))));
    let expected = "group 1: epoch 2 is older than 3, which is in effect at this node";
    assert_eq!(prepared.unwrap_err().to_string(), expected);
    let added = bench.node.apply(Command::AddGroup(Box::new(entry(1, 2, |_, _| ()))));
    assert_eq!(added.unwrap_err().to_string(), expected);
    // Serially: 0 comes after 0xF0000000.
    commit(&mut bench, entry(1, u32::MAX / 2, |_, _| ()));
    commit(&mut bench, entry(1, 0xF000_0000, |_, _| ()));
    commit(&mut bench, entry(1, 0, |_, _| ()));
}

/// D30, D18: nothing from before J is sent to a receiver that joined at J, until it has confirmed something; R2 answers
/// for it; its MSN is raised by the messages that were over, also when the record no longer has its join point.
#[test]
fn a_receiver_that_joins_is_sent_nothing_from_before() {
    let mut bench = edge();
    let only_r1 = |record: &mut Record, _: &mut Vec<TreeNode>| {
        record.receivers.remove(1);
    };
    commit(&mut bench, entry(2, 1, only_r1));
    let sid = "5f00:0:1:e000::";
    (100..103).for_each(|psn| assert_eq!(bench.send(0, &data(psn, sid)).len(), 1));
    assert_eq!(upstream(&bench.send(1, &response(R1, 0, 102, 0x1F))), [(102, 0x1F, 0xC001)]);
    let joined = |psn| {
        move |record: &mut Record, _: &mut Vec<TreeNode>| {
            record.receivers[1].joined = Some(Join { psn: Psn::new(psn), msn: 3 });
        }
    };
    commit(&mut bench, entry(2, 2, joined(103)));
    assert_eq!(tick(&mut bench), []);

    let destinations = |sent: &[(u16, Vec<u8>)]| -> Vec<Vec<u8>> {
        sent.iter().filter(|(port, _)| *port == 1).map(|(_, packet)| packet[24..40].to_vec()).collect()
    };
    let (to_r1, to_r2) = (address(R1).octets().to_vec(), address(R2).octets().to_vec());
    let sent = bench.send(0, &data(101, sid));
    assert_eq!(destinations(&sent), [&to_r1[..]]);
    assert_eq!(upstream(&sent), [(102, 0x1F, 0xC002)], "R2 answers for both");
    assert_eq!(bench.drops(0), [("before_join", 1)]);
    assert_eq!(destinations(&bench.send(0, &data(103, sid))), [to_r1.clone(), to_r2.clone()]);
    assert_eq!(destinations(&bench.send(0, &data(102, sid))), [&to_r1[..]], "it has not confirmed 103");
    bench.send(1, &response(R1, 0, 103, 0x1F));
    let sent = bench.send(1, &response(R2, 0, 103, 0x1F));
    assert_eq!(upstream(&sent), [(103, 0x1F, 0xC002)]);
    assert_eq!(destinations(&bench.send(0, &data(102, sid))), [to_r1, to_r2], "a duplicate as any other");

    let msn = |sent: &[(u16, Vec<u8>)]| sent[0].1[63];
    bench.send(0, &data(104, sid));
    bench.send(1, &response(R1, 0, 104, 0x1F));
    commit(&mut bench, entry(2, 3, |_, _| ()));
    // The holder of the minimum is the first of those that stand there, R1 with an MSN of 1; when R1 goes, R2's is 1 +
    // 3.
    assert_eq!(msn(&bench.send(1, &response(R2, 0, 104, 0x1F))), 1);
    let only_r2 = |record: &mut Record, _: &mut Vec<TreeNode>| {
        record.receivers.remove(0);
    };
    commit(&mut bench, entry(2, 4, only_r2));
    bench.send(0, &data(105, sid));
    assert_eq!(msn(&bench.send(1, &response(R2, 0, 105, 0x1F))), 4);
}

/// D24, D25: an edge under `evict` requests the eviction of a receiver that is stalled or has failed; no other node
/// does, and a request that has not been fetched is not repeated.
#[test]
fn an_edge_requests_evictions() {
    let evict = |record: &mut Record, _: &mut Vec<TreeNode>| {
        record.policy.on_failure = OnFailure::Evict;
        record.policy.t_stall = Duration::from_millis(10);
    };
    let mut bench = edge();
    commit(&mut bench, entry(2, 1, evict));
    let sid = "5f00:0:1:e000::";
    for _ in 0..3 {
        bench.send(0, &data(100, sid));
        bench.send(1, &response(R1, 0, 100, 0x1F));
    }
    assert_eq!(bench.node.take_events().count(), 0);
    for _ in 0..3 {
        tick(&mut bench);
    }
    let wanted = |receiver, cause| Event::EvictionRequested { group: GroupId(1), receiver: address(receiver), cause };
    let events: Vec<Event> = bench.node.take_events().collect();
    assert_eq!(events, [wanted(R2, EvictionCause::Stalled)]);
    assert!(bench.now.as_ns() > 30_000_000 && bench.now.as_ns() < 30_010_000, "each T_stall");
    assert_eq!(upstream(&bench.send(1, &response(R2, 0, 100, 0x62))), [], "the failure itself is not said");
    assert_eq!(bench.node.take_events().collect::<Vec<_>>(), []);
    tick(&mut bench);
    assert_eq!(bench.node.take_events().collect::<Vec<_>>(), [wanted(R2, EvictionCause::Failed(2))]);
    let granted = |record: &mut Record, nodes: &mut Vec<TreeNode>| {
        evict(record, nodes);
        record.receivers.remove(1);
    };
    commit(&mut bench, entry(2, 2, granted));
    assert_eq!(upstream(&tick(&mut bench)), [(100, 0x1F, 0xC002)]);
    assert_eq!(bench.node.next_deadline(), None);

    let mut transit = transit();
    commit(&mut transit, entry(1, 1, evict));
    (0..5).for_each(|_| drop(transit.send(0, &data(100, TRANSIT_SID))));
    assert_eq!((transit.node.next_deadline(), transit.node.take_events().count()), (None, 0));
}

/// D122: a node whose lease is over sends nothing up or down for a controller's group, and goes on when it has another;
/// groups of its own file have none.
#[test]
fn a_node_without_its_lease_is_silent() {
    for is_of_controller in [true, false] {
        let mut bench = transit();
        match is_of_controller {
            true => commit(&mut bench, entry(1, 1, |_, _| ())),
            false => bench.apply(Command::AddGroup(Box::new(entry(1, 1, |_, _| ())))),
        }
        let end = bench.now + Duration::from_secs(2);
        bench.node.set_lease(Lease::Until(end));
        bench.now += Duration::from_nanos(1_999_999_999);
        assert_eq!(bench.send(0, &data(100, TRANSIT_SID)).len(), 2, "a copy to each branch");
        bench.send(1, &response(N1, 1, 100, 0x1F));
        assert_eq!(upstream(&bench.send(2, &response(N2, 1, 100, 0x1F))), [(100, 0x1F, 0xC001)]);
        bench.send(0, &data(101, TRANSIT_SID));
        bench.send(1, &response(N1, 1, 101, 0x1F));
        bench.now = end;
        let acknowledged = upstream(&bench.send(2, &response(N2, 1, 101, 0x1F)));
        let copies = bench.send(0, &data(102, TRANSIT_SID)).len();
        if !is_of_controller {
            assert_eq!((acknowledged.len(), copies), (1, 2));
            continue;
        }
        assert_eq!((acknowledged, copies), (vec![], 0));
        assert_eq!((bench.drops(2), bench.drops(0)), (vec![("lease_over", 1)], vec![("lease_over", 1)]));
        // Another epoch changes nothing, and neither does a timer.
        commit(
            &mut bench,
            entry(1, 2, |record, nodes| {
                record.receivers.truncate(2);
                nodes.truncate(3);
            }),
        );
        assert_eq!(upstream(&tick(&mut bench)), []);
        bench.node.set_lease(Lease::Until(bench.now + Duration::from_secs(2)));
        assert_eq!(bench.send(0, &data(102, TRANSIT_SID)).len(), 1);
        assert_eq!(upstream(&bench.send(1, &response(N1, 1, 102, 0x1F))), [(102, 0x1F, 0xC002)]);
    }
}
