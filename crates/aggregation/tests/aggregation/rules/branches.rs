//! R6, R7: branches that are unknown, and branches that go.

use super::node::{Node, T_HOLD};
use srdma_aggregation::{Refusal, Rules, Start, Syndrome};
use srdma_wire::Psn;
use std::time::Duration;

/// R6, D17: after a restart no response is sent upstream until each branch has responded; then the minimum is.
#[test]
fn r6_a_node_with_unknown_branches_sends_no_response() {
    let mut node = Node::new(Rules::default(), 3, Start::Unknown);
    assert_eq!(node.try_response(0, 7, Syndrome::Ack), Err(Refusal::NothingSent { psn: Psn::new(8) }));
    assert_eq!(node.stream(4, 9), "");
    assert_eq!(node.machine.unknown_branches(), 3);
    assert_eq!(node.nak(0, 6), "");
    assert_eq!(node.fatal(1, 8, 1), "");
    assert_eq!(node.data(4, true), "", "nor are data acknowledged");
    assert_eq!(node.wait(10 * T_HOLD), "");
    assert_eq!((node.machine.next_deadline(), node.machine.unknown_branches(), node.expected_psn(2)), (None, 1, None));
    assert_eq!(node.ack(2, 6), "ACK 5, NAK 6");
    assert_eq!(node.wait(Duration::ZERO), "FATAL 1 at 6", "its hold ended long ago");
}

/// R1, R6, D17: after a restart a receiver's newest PSN may lie above what the node has seen again.
#[test]
fn r6_a_restarted_node_acknowledges_no_more_than_it_has_received() {
    let mut node = Node::new(Rules::default(), 2, Start::Unknown);
    assert_eq!(node.data(50, false), "");
    assert_eq!(node.ack(0, 99), "");
    assert_eq!(node.nak(1, 80), "ACK 50");
    assert_eq!((node.expected_psn(0), node.expected_psn(1)), (Some(51), Some(51)));
    // A failure holds for any PSN.
    assert_eq!(node.fatal(0, 99, 2), "FATAL 2 at 51");
}

/// R7: when the branch that held the minimum is removed, the others' response is sent at once.
#[test]
fn r7_a_branch_is_removed() {
    let mut node = Node::sent(3, 9);
    assert_eq!(node.ack(1, 7), "");
    assert_eq!(node.nak(2, 6), "");
    assert_eq!(node.remove(0), "ACK 5, NAK 6");
    assert_eq!(node.try_response(0, 9, Syndrome::Ack), Err(Refusal::NoSuchBranch(0)));
    assert_eq!((node.expected_psn(0), node.remove(0)), (None, String::new()));
    assert_eq!(node.remove(2), "ACK 7");
    assert_eq!(node.remove(1), "", "no branch is left");
    assert_eq!((node.machine.minimum_psn(), node.data(1, true)), (None, String::new()));
}

/// R7, R6: the last unknown branch goes, and the rest is known.
#[test]
fn r7_removes_the_last_unknown_branch() {
    let mut node = Node::new(Rules::default(), 3, Start::Unknown);
    assert_eq!(node.stream(4, 9), "");
    assert_eq!((node.ack(0, 8), node.nak(1, 7)), (String::new(), String::new()));
    assert_eq!(node.remove(2), "ACK 6, NAK 7");
}

/// R7, D23: with the branch that was not ready gone, the NAK that it kept back goes upstream.
#[test]
fn r7_removing_a_branch_advances_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!((node.ack(0, 4), node.ack(1, 4)), (String::new(), "ACK 4".into()));
    assert_eq!((node.rnr(0, 5, 14), node.nak(1, 5)), ("RNR 14 at 5".into(), String::new()));
    assert_eq!(node.remove(0), "NAK 5");
}

/// R5, R7: of a group without branches nothing is wanted, whatever was held when they went.
#[test]
fn r7_a_group_without_branches_has_no_deadline() {
    let mut node = Node::sent(2, 9);
    assert_eq!((node.nak(0, 5), node.machine.next_deadline().is_some()), (String::new(), true));
    assert_eq!((node.remove(0), node.remove(1)), (String::new(), String::new()));
    assert_eq!(node.machine.next_deadline(), None);
}

/// R6: a hold that has ended while a branch was unknown has no deadline until that branch responds.
#[test]
fn r6_a_hold_waits_for_unknown_branches() {
    let mut node = Node::new(Rules::default(), 2, Start::Unknown);
    assert_eq!((node.stream(4, 9), node.nak(0, 6)), (String::new(), String::new()));
    assert_eq!(node.machine.next_deadline(), None);
    assert_eq!(node.ack(1, 4), "ACK 4");
    assert!(node.machine.next_deadline().is_some_and(|deadline| deadline <= node.now + T_HOLD));
    assert_eq!(node.wait(T_HOLD), "NAK 5");
}
