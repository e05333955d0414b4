//! Old state of a member, or of a node, that was in the group before and returns (D24, D25, D30, D31).

use crate::common::group::{self, HEADEND, address, member, receiver};
use crate::common::{Bench, next_hop};
use srdma_aggregation::{BranchIndex, EvictionCause};
use srdma_dataplane::{Command, Event, RouteAction, SidBehavior, TableId};
use srdma_group::*;
use srdma_testkit::checksums;
use srdma_wire::{Prefix, Psn};
use std::time::Duration;

const EDGE: &str = "2001:db8:a::1";
const SID: &str = "5f00:0:1:e000::";
const R2: &str = "2001:db8:2::2";

/// The edge's part: R1, and R2 if it is there, which may have joined.
fn entry(epoch: u32, with_r2: bool, joined: Option<Join>) -> GroupEntry {
    let nodes = [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", EDGE, SID, Some(0))];
    let mut record = group::record(&nodes, vec![member(&receiver(1, 0x101, None), 1)]);
    if with_r2 {
        record.receivers.push(Receiver { joined, ..member(&receiver(2, 0x102, None), 1) });
    }
    record.epoch = epoch;
    record.policy.lists = ListMode::Provisioned;
    record.policy.on_failure = OnFailure::Evict;
    record.policy.t_stall = Duration::from_millis(10);
    Group::new(record).unwrap().at(NodeIndex(1)).unwrap()
}

fn commit(bench: &mut Bench, entry: GroupEntry) {
    let (id, epoch) = (entry.id, entry.epoch);
    bench.apply(Command::PrepareGroup(Box::new(entry)));
    bench.apply(Command::CommitGroup { id, epoch, is_first: false });
}

fn edge(restarted: bool) -> Bench {
    let mut bench = Bench::with(EDGE, 2, |config| config.restarted = restarted);
    for (prefix, port) in [("2001:db8:6::", 0), ("2001:db8:2::", 1)] {
        let prefix = Prefix::new(address(prefix), 48).unwrap();
        let action = RouteAction::Via(vec![next_hop(port)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    let behavior = SidBehavior::EndMt { require_hmac: false };
    bench.apply(Command::AddSid { prefix: Prefix::host(address(SID)), behavior });
    bench
}

fn data(psn: u8) -> Vec<u8> {
    let mut packet = group::inner(0x04, 0, &[9; 200], false);
    packet[59] = psn;
    let end = packet.len() - 4;
    let icrc = checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    let mut packet = group::encapsulated(&packet);
    packet[24..40].copy_from_slice(&address(SID).octets());
    packet
}

fn failure(psn: u8) -> Vec<u8> {
    group::response(0x11, R2, psn, &[0x62, 0, 0, 1])
}

fn events(bench: &mut Bench) -> Vec<Event> {
    bench.node.take_events().collect()
}

fn joined_at(psn: u32) -> Option<Join> {
    Some(Join { psn: Psn::new(psn), msn: 3 })
}

/// A receiver failed, was evicted and joined again before the edge's eviction request was fetched: it is not to be
/// evicted for its earlier failure (D24, D30).
#[test]
fn a_granted_eviction_request_does_not_apply_to_the_next_member() {
    let mut bench = edge(false);
    commit(&mut bench, entry(1, true, None));
    bench.send(0, &data(100));
    bench.send(1, &failure(100));
    // A later epoch of the same member keeps its eviction request.
    commit(&mut bench, entry(2, true, None));
    let (group, receiver) = (GroupId(1), address(R2));
    assert_eq!(events(&mut bench), [Event::EvictionRequested { group, receiver, cause: EvictionCause::Failed(2) }]);

    let mut bench = edge(false);
    commit(&mut bench, entry(1, true, None));
    bench.send(0, &data(100));
    bench.send(1, &failure(100));
    commit(&mut bench, entry(2, false, None));
    commit(&mut bench, entry(3, true, joined_at(101)));
    assert_eq!(events(&mut bench), []);

    // The same for a group that was removed and created again.
    bench.send(0, &data(101));
    bench.send(1, &failure(101));
    bench.apply(Command::RemoveGroup(GroupId(1)));
    commit(&mut bench, entry(4, true, None));
    assert_eq!(events(&mut bench), []);
}

/// The edge has restarted since the receiver joined again at J, and has no state of it: a late failure from before J is
/// that of the member which was evicted (D24, D30, R6).
#[test]
fn an_old_failure_of_a_receiver_that_joined_again_is_ignored() {
    let mut bench = edge(true);
    commit(&mut bench, entry(3, true, joined_at(104)));
    bench.send(0, &data(104));
    bench.send(1, &failure(101));
    assert_eq!((events(&mut bench), bench.drops(1)), (vec![], vec![("stale_response", 1)]));
    bench.send(1, &failure(104));
    let (group, receiver) = (GroupId(1), address(R2));
    assert_eq!(events(&mut bench), [Event::EvictionRequested { group, receiver, cause: EvictionCause::Failed(2) }]);
}

/// A commit that comes after the group was removed does not bring it back, although it had been prepared (D31).
#[test]
fn a_late_commit_does_not_bring_a_removed_group_back() {
    let mut bench = edge(false);
    commit(&mut bench, entry(1, true, None));
    bench.apply(Command::PrepareGroup(Box::new(entry(2, true, None))));
    bench.apply(Command::RemoveGroup(GroupId(1)));
    let late = bench.node.apply(Command::CommitGroup { id: GroupId(1), epoch: 2, is_first: false });
    assert!(late.is_err());
    assert!(bench.node.acknowledgements(GroupId(1)).is_none());
    // Nor where it was prepared only.
    bench.apply(Command::PrepareGroup(Box::new(entry(3, true, None))));
    assert!(bench.node.apply(Command::RemoveGroup(GroupId(1))).is_err(), "not in effect");
    assert!(bench.node.apply(Command::CommitGroup { id: GroupId(1), epoch: 3, is_first: false }).is_err());
}

/// D136: the node had an entry of a lost record, without R2, and has acknowledged for R1 alone. That does not hold for
/// R2 when its entry is restored, whose first response is believed however old it is.
#[test]
fn what_was_sent_for_a_lost_record_does_not_hold_for_a_restored_branch() {
    let respond = |host: &str, psn, syndrome| group::response(0x11, host, psn, &[syndrome, 0, 0, 1]);
    let (r1, ack, nak) = ("2001:db8:2::1", 0x1F, 0x60);
    let mut bench = edge(false);
    commit(&mut bench, entry(2, false, None));
    bench.send(0, &data(100));
    bench.send(0, &data(101));
    assert_eq!(bench.send(1, &respond(r1, 101, ack)).len(), 1, "sent upstream");
    bench.apply(Command::RestoreGroup(Box::new(entry(3, true, None))));
    bench.send(1, &respond(R2, 100, nak));
    let expected = |bench: &Bench| {
        let state = bench.node.acknowledgements(GroupId(1)).unwrap();
        [0, 1].map(|branch| state.expected_psn(BranchIndex(branch)).map(Psn::get))
    };
    assert_eq!(expected(&bench), [Some(102), Some(100)]);
    bench.send(0, &data(102));
    assert_eq!(bench.send(1, &respond(r1, 102, ack)), [], "R2 has not acknowledged it");
}
