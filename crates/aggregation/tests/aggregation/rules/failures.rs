//! D24: failures.

use super::node::{Node, T_HOLD};

/// D24: a fatal NAK goes upstream at the minimum, when that reaches it or after T_hold, and completes nothing before.
#[test]
fn a_fatal_nak_is_forwarded_only_at_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.fatal(0, 5, 2), "");
    assert_eq!(node.ack(1, 3), "ACK 3");
    assert_eq!(node.wait(T_HOLD), "FATAL 2 at 4");
    assert_eq!(node.ack(1, 9), "ACK 4", "sent once");

    let mut node = Node::sent(2, 9);
    assert_eq!(node.fatal(0, 5, 3), "");
    assert_eq!(node.ack(1, 9), "ACK 4, FATAL 3 at 5");
    assert_eq!(node.wait(10 * T_HOLD), "");
}

/// D24, R2: a failure is sticky, and sent again whenever the data go back; data do not clear it.
#[test]
fn fatal_is_sticky_and_repeated() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.ack(1, 9), "");
    assert_eq!(node.fatal(0, 5, 2), "ACK 4, FATAL 2 at 5");
    assert_eq!(node.data(3, false), "ACK 4, FATAL 2 at 5");
    assert_eq!(node.data(4, false), "", "not backward");
    assert_eq!(node.data(5, false), "");
    assert_eq!(node.data(5, false), "FATAL 2 at 5");
    assert_eq!(node.data(6, true), "FATAL 2 at 5", "where the order has changed, AckReq has to do");
    assert_eq!(node.ack(0, 7), "ACK 7", "a child speaks for others too; the failure stays");
    assert_eq!(node.data(1, false), "ACK 7, FATAL 2 at 8");
}

/// D24: a failure held above the minimum is repeated at the minimum once it was sent there, and not before.
#[test]
fn a_held_failure_is_repeated_at_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.fatal(0, 5, 1), "");
    assert_eq!(node.data(0, false), "", "still held");
    assert_eq!(node.wait(T_HOLD), "FATAL 1 at 0");
    assert_eq!(node.data(0, false), "FATAL 1 at 0");
}
