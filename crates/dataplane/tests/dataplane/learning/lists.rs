//! The union of the lists: its receivers, the responses sent for it, and its end.

use crate::common::group::*;
use crate::learning::bench::*;
use srdma_dataplane::{Command, FIRST_LEARNT_GROUP, GroupEvent, Learning};
use srdma_frame::Element;
use srdma_group::Policy;
use srdma_wire::Instant;

const ACK: u8 = 0x1F;
const NAK: u8 = 0x60;

/// D17, R6, D12: the first list makes the group; no response is sent upstream before each of its receivers has
/// responded.
#[test]
fn a_learnt_group_responds_after_responses_of_all_receivers() {
    let mut bench = edge_that_learns(false, learning());
    assert_eq!(data(&mut bench, 100, &[1, 2]), []);
    assert_eq!(bench.node.groups().collect::<Vec<_>>(), [FIRST_LEARNT_GROUP]);
    assert_eq!(ack(&mut bench, 1, 100), []);
    assert_eq!(ack(&mut bench, 1, 100), []);
    assert_eq!(ack(&mut bench, 2, 100), [(ACK, 100)]);
    // From here on it is a group like any other: R3, and R2 where the source goes back.
    assert_eq!(data(&mut bench, 101, &[1, 2]), []);
    assert_eq!(ack(&mut bench, 2, 101), []);
    assert_eq!(data(&mut bench, 100, &[1, 2]), [(ACK, 100)]);
    assert_eq!(answer(&mut bench, 1, NAK, 101), [(NAK, 101)]);
    let counters = bench.node.group_counters(FIRST_LEARNT_GROUP).unwrap();
    assert_eq!((counters.data_packets, counters.copies), (3, 6));
}

/// D12: to a parent that is no neighbour responses go by its SID.
#[test]
fn responses_go_to_the_sid_of_a_far_parent() {
    let far = Learning { parent: address("2001:db8:99::1"), parent_sid: Some(address(HEADEND)), ..learning() };
    let mut bench = edge_that_learns(false, far);
    assert_eq!(data(&mut bench, 100, &[1]), []);
    let sent = bench.send(1, &response_to(address(PROXY), of_host(1).address, ACK, 100));
    let [(0, packet)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(packet[6], 41, "IPv6 in IPv6");
    assert_eq!(packet[24..40], address(HEADEND).octets());
    assert_eq!(upstream(&packet[40..]), (ACK, 100));
}

/// D17: a shorter list must not raise the minimum.
#[test]
fn a_shorter_list_removes_no_receiver() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 100, &[1, 2]);
    ack(&mut bench, 1, 100);
    assert_eq!(ack(&mut bench, 2, 100), [(ACK, 100)]);
    assert_eq!(data(&mut bench, 101, &[1]), []);
    assert_eq!(ack(&mut bench, 1, 101), [], "receiver 2 has not got it");
    assert_eq!(data(&mut bench, 100, &[1]), [(ACK, 100)], "rule R2 says the old minimum");
    data(&mut bench, 101, &[2]);
    assert_eq!(ack(&mut bench, 2, 101), [(ACK, 101)]);
}

/// D17, R2, R6: a response that was sent before a receiver joined does not cover it, by any rule.
#[test]
fn a_new_receiver_delays_responses_until_its_own() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 100, &[1]);
    data(&mut bench, 101, &[1]);
    assert_eq!(ack(&mut bench, 1, 101), [(ACK, 101)]);
    assert_eq!(data(&mut bench, 102, &[1, 2]), []);
    assert_eq!(ack(&mut bench, 1, 102), []);
    assert_eq!(data(&mut bench, 100, &[1, 2]), [], "R2 has nothing to repeat: receiver 2 may lack 100");
    assert_eq!(data(&mut bench, 100, &[1]), [], "nor has it for a shorter list");
    // It lacks 100 indeed, for which the node has responded for the first receiver alone.
    assert_eq!(answer(&mut bench, 2, NAK, 100), [(ACK, 99), (NAK, 100)]);
    assert_eq!(data(&mut bench, 100, &[1, 2]), []);
    assert_eq!(ack(&mut bench, 2, 102), [(ACK, 102)]);
}

/// R5: a NAK that was held, or sent, is not discarded with the record of responses sent upstream.
#[test]
fn pending_responses_survive_a_new_receiver() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 100, &[1, 2]);
    ack(&mut bench, 1, 100);
    ack(&mut bench, 2, 100);
    data(&mut bench, 102, &[1, 2]);
    assert_eq!(answer(&mut bench, 1, NAK, 101), [(NAK, 101)]);
    data(&mut bench, 103, &[1, 2, 3]);
    assert_eq!(ack(&mut bench, 3, 103), [(ACK, 100), (NAK, 101)]);
}

/// D17: an epoch ends when nothing has come for the time, neither data nor responses.
#[test]
fn an_idle_group_is_forgotten() {
    let mut bench = edge_that_learns(false, learning());
    let prefixes = bench.node.prefix_count();
    assert_eq!(bench.node.next_deadline(), None);
    data(&mut bench, 100, &[1, 2]);
    assert_eq!(bench.node.next_deadline(), Some(Instant::from_ns(IDLE_NS)));
    bench.now = Instant::from_ns(IDLE_NS / 2);
    ack(&mut bench, 1, 100);
    bench.now = Instant::from_ns(IDLE_NS);
    bench.node.tick(bench.now, &mut bench.pool);
    assert_eq!(bench.node.next_deadline(), Some(Instant::from_ns(IDLE_NS * 3 / 2)), "a response has come since");
    bench.now = Instant::from_ns(IDLE_NS * 3 / 2);
    bench.node.tick(bench.now, &mut bench.pool);
    assert_eq!((bench.node.groups().count(), bench.node.next_deadline()), (0, None));
    assert_eq!(bench.node.prefix_count(), prefixes);
    // Another epoch: its lists alone count, and all receivers are unknown.
    assert_eq!(data(&mut bench, 101, &[1]), []);
    assert_eq!(ack(&mut bench, 1, 101), [(ACK, 101)]);
}

/// R6, D17: a node that restarts without state learns again; all receivers are unknown.
#[test]
fn a_restart_clears_learnt_groups() {
    for restarted in [false, true] {
        let mut bench = edge_that_learns_with(false, learning(), |config| config.restarted = restarted);
        assert_eq!(data(&mut bench, 105, &[1, 2]), []);
        assert_eq!(ack(&mut bench, 1, 105), []);
        assert_eq!(data(&mut bench, 100, &[1, 2]), []);
        assert_eq!(ack(&mut bench, 2, 103), [(ACK, 103)]);
    }
}

/// D22, R2: copies are withheld by each receiver's own point, also while the node is silent.
#[test]
fn the_policy_is_that_of_the_settings() {
    let policy = Policy { prune_retransmit: true, ..prompt() };
    let mut bench = edge_that_learns(false, Learning { policy, ..learning() });
    data(&mut bench, 100, &[1, 2]);
    ack(&mut bench, 1, 100);
    let packet = listed_to(address(PROXY), &send(100), &members(&[1, 2]));
    assert_eq!(bench.send(0, &packet), copies(&send(100), &members(&[2])));
    assert_eq!(bench.drops(0), [("pruned", 1)]);
}

/// MT-5.3.3-1: CNPs are forwarded without a known receiver.
#[test]
fn cnps_are_forwarded_upstream() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 100, &[1, 2]);
    let cnp = response(0x81, "2001:db8:2::2", 0, &[0; 16]);
    let sent = bench.send(1, &cnp);
    assert!(matches!(sent.as_slice(), [(0, packet)] if packet[48] == 0x81), "{sent:?}");
}

/// D14, D33: responses of senders in no list, and damaged ones, are rejected.
#[test]
fn responses_of_foreign_hosts_are_dropped() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 100, &[1]);
    assert_eq!(ack(&mut bench, 2, 100), []);
    let mut damaged = response_to(address(PROXY), of_host(1).address, ACK, 100);
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(bench.send(1, &damaged), []);
    assert_eq!(bench.send(0, &response_to(address(PROXY), of_host(1).address, ACK, 100)), [], "from the wrong side");
    assert_eq!(bench.drops(1), [("unexpected_responder", 1), ("bad_icrc", 1)]);
}

/// The journal has learnt and removed groups.
#[test]
fn the_journal_has_learnt_receivers() {
    let mut bench = edge_that_learns(false, learning());
    bench.node.observe(true);
    data(&mut bench, 100, &[1, 2]);
    ack(&mut bench, 1, 100);
    data(&mut bench, 101, &[3]);
    bench.apply(Command::RemoveLearning);
    let is_membership = |event: &GroupEvent| {
        matches!(event, GroupEvent::Learnt { .. } | GroupEvent::Left | GroupEvent::Committed { .. })
    };
    let (entries, _) = bench.node.take_journal();
    let membership: Vec<GroupEvent> = entries.into_iter().map(|entry| entry.event).filter(is_membership).collect();
    let learnt = |receivers, unknown| GroupEvent::Learnt { receivers, unknown };
    assert_eq!(membership, [learnt(2, 2), learnt(3, 2), GroupEvent::Left]);
}
