//! Records of groups that were learnt before, and groups of records that have gone.

use crate::common::group::*;
use crate::learning::bench::*;
use srdma_dataplane::{Command, ConfigError, FIRST_LEARNT_GROUP};
use srdma_group::{GroupEntry, GroupId};

fn record(hosts: &[u16]) -> Box<GroupEntry> {
    let mut entry = entry(&members(hosts), None);
    entry.parent = srdma_group::Parent::Node { loopback: address(HEADEND), sid: None };
    Box::new(entry)
}

/// D17: a record replaces what was learnt. Data had arrived before it, so that no branch is at the initial PSN (R6).
#[test]
fn a_record_replaces_a_learnt_group() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 104, &[1, 2]);
    bench.apply(Command::PrepareGroup(record(&[1, 3])));
    assert_eq!(bench.node.groups().collect::<Vec<_>>(), [FIRST_LEARNT_GROUP]);
    ack(&mut bench, 1, 104);
    assert_eq!(ack(&mut bench, 2, 104), [(0x1F, 104)]);
    bench.apply(Command::CommitGroup { id: GroupId(1), epoch: 1, is_first: false });
    assert_eq!(bench.node.groups().collect::<Vec<_>>(), [GroupId(1)]);
    assert_eq!(bench.node.acknowledgements(GroupId(1)).map(|acks| acks.unknown_branches()), Some(2));
    // Lists are still received; they no longer create branches, and a receiver without one stops the packet (D96).
    refused(&mut bench, 105, &[1, 2, 3]);
    assert_eq!(bench.drops(0), [("receiver_not_in_record", 1)]);
    assert_eq!(data(&mut bench, 105, &[1, 3]), []);
    assert_eq!(ack(&mut bench, 2, 105), []);
    assert_eq!(ack(&mut bench, 1, 105), []);
    assert_eq!(ack(&mut bench, 3, 105), [(0x1F, 105)]);
    assert_eq!(bench.drops(1), [("unexpected_responder", 1)]);
}

/// Without its record a group is learnt again, from what comes then.
#[test]
fn a_group_without_its_record_is_learnt_again() {
    let mut bench = edge_that_learns(false, learning());
    bench.apply(Command::AddGroup(record(&[1, 2])));
    data(&mut bench, 100, &[1, 2]);
    bench.apply(Command::RemoveGroup(GroupId(1)));
    assert_eq!(data(&mut bench, 101, &[1, 2]), []);
    assert_eq!(ack(&mut bench, 1, 101), []);
    assert_eq!(ack(&mut bench, 2, 101), [(0x1F, 101)]);
}

/// No command reaches a learnt group by its number, and no record can have it.
#[test]
fn numbers_of_learnt_groups_are_no_records() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 100, &[1, 2]);
    let unknown = Err(ConfigError::UnknownGroup(FIRST_LEARNT_GROUP.0));
    assert_eq!(bench.node.apply(Command::RemoveGroup(FIRST_LEARNT_GROUP)), unknown);
    let mut entry = record(&[1]);
    entry.id = FIRST_LEARNT_GROUP;
    let reserved = Err(ConfigError::ReservedGroup(FIRST_LEARNT_GROUP.0));
    assert_eq!(bench.node.apply(Command::AddGroup(entry)), reserved);
    assert_eq!(bench.node.groups().count(), 1);
}
