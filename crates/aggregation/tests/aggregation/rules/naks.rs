//! R3, R4, R5: NAKs and RNR NAKs upstream.

use super::node::{Node, T_HOLD};
use std::time::Duration;

/// R3, D21: the ACK of what is confirmed goes first, then the strongest kind at the minimum, only that.
#[test]
fn r3_ack_first_then_the_strongest() {
    let mut node = Node::sent(5, 9);
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.rnr(1, 5, 3), "");
    assert_eq!(node.fatal(2, 5, 1), "");
    assert_eq!(node.nak(3, 7), "");
    assert_eq!(node.ack(4, 9), "ACK 4, FATAL 1 at 5");
}

/// R3, MT-5.3.2-3, MT-5.3.2-4: a branch that sent only ACKs counts as ePSN = AckPSN + 1; a NAK goes upstream with the
/// minimum.
#[test]
fn r3_a_nak_waits_for_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.nak(0, 5), "", "branch 1 has 0 outstanding: 5 is only in flight for it (D20)");
    assert_eq!(node.ack(1, 3), "ACK 3");
    assert_eq!(node.ack(1, 6), "ACK 4, NAK 5");
}

/// MT-5.3.2-2, D16: each branch has an ePSN of its own, which its NAKs set and its ACKs advance, whatever the others do.
#[test]
fn each_branch_keeps_the_psn_that_it_expects() {
    let mut node = Node::sent(3, 9);
    assert_eq!((node.nak(0, 7), node.nak(1, 4)), (String::new(), String::new()));
    let expected = |node: &Node| [0, 1, 2].map(|branch| node.expected_psn(branch));
    assert_eq!(expected(&node), [Some(7), Some(4), Some(0)]);
    node.ack(2, 5);
    assert_eq!(expected(&node), [Some(7), Some(4), Some(6)]);
    node.nak(1, 6);
    assert_eq!(expected(&node), [Some(7), Some(6), Some(6)]);
    node.ack(0, 9);
    assert_eq!(expected(&node), [Some(10), Some(6), Some(6)]);
}

/// R4: a NAK at the minimum goes upstream once, whichever branches send it, until the data there go downstream again. A requester
/// that has gone back spends a retry on each further one.
#[test]
fn r4_a_nak_is_forwarded_once() {
    let mut node = Node::sent(3, 9);
    assert_eq!((node.ack(0, 4), node.ack(1, 4), node.ack(2, 4)), (String::new(), String::new(), "ACK 4".into()));
    assert_eq!(node.nak(0, 5), "NAK 5");
    assert_eq!(node.nak(1, 5), "");
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.data(5, true), "");
    assert_eq!(node.nak(2, 5), "NAK 5");
}

/// R4: the mark of a forwarded NAK is cleared with its minimum, and when the data there are sent down again.
#[test]
fn r4_a_nak_at_another_minimum_is_new() {
    let mut node = Node::sent(2, 9);
    assert_eq!((node.ack(1, 4), node.nak(0, 5)), (String::new(), "ACK 4, NAK 5".into()));
    assert_eq!((node.ack(0, 6), node.ack(1, 6)), (String::new(), "ACK 6".into()));
    assert_eq!(node.nak(1, 7), "NAK 7");

    let mut node = Node::sent(2, 9);
    assert_eq!((node.nak(0, 1), node.wait(T_HOLD)), (String::new(), "NAK 0".into()));
    assert_eq!((node.data(1, false), node.data(0, false)), Default::default());
    assert_eq!(node.nak(1, 0), "NAK 0", "0 went down when nothing else was pending");
}

/// R4, D23: an RNR NAK at the minimum is forwarded with the longest requested time: code 0, 655 ms, is longer than code
/// 31, 492 ms, and that longer than code 1, 10 microseconds. It goes once for each time that the data there go downstream:
/// the RNR NAKs of several receivers for one transmission must not cost the source one retry each.
#[test]
fn r4_an_rnr_nak_is_forwarded_with_the_longest_time() {
    let mut node = Node::sent(3, 9);
    assert_eq!((node.ack(0, 4), node.ack(1, 4), node.ack(2, 4)), (String::new(), String::new(), "ACK 4".into()));
    assert_eq!(node.rnr(0, 5, 1), "RNR 1 at 5");
    assert_eq!(node.rnr(0, 5, 1), "", "the source is waiting");
    assert_eq!(node.rnr(1, 5, 31), "RNR 31 at 5", "not for so long");
    assert_eq!(node.rnr(0, 5, 1), "");
    assert_eq!(node.rnr(2, 5, 0), "RNR 0 at 5");
    assert_eq!(node.rnr(1, 5, 31), "");
    assert_eq!(node.data(5, false), "");
    assert_eq!(node.rnr(0, 5, 1), "RNR 1 at 5", "the data were retransmitted");
    assert_eq!(node.remove(0), "");
    assert_eq!(node.data(5, false), "");
    assert_eq!(node.rnr(1, 5, 1), "RNR 1 at 5", "each sending counts anew");
}

/// D23: an RNR NAK above the minimum waits for it; it is an ACK of what is before it.
#[test]
fn rnr_above_the_minimum_waits() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.rnr(0, 5, 14), "");
    assert_eq!(node.wait(10 * T_HOLD), "", "no hold ends for it");
    assert_eq!(node.ack(1, 9), "ACK 4, RNR 14 at 5");
}

/// D23: a sequence NAK at the PSN of an RNR NAK would end the receiver's wait, from whichever branch it comes.
#[test]
fn rnr_beats_a_nak_at_the_same_psn() {
    let mut node = Node::sent(2, 9);
    assert_eq!((node.ack(0, 4), node.ack(1, 4)), (String::new(), "ACK 4".into()));
    assert_eq!(node.rnr(0, 5, 14), "RNR 14 at 5");
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.nak(1, 5), "");
    assert_eq!(node.wait(2 * T_HOLD), "", "nor does it when its hold ends");
    assert_eq!(node.data(5, false), "");
    assert_eq!(node.nak(1, 5), "NAK 5");
    assert_eq!(node.rnr(0, 5, 14), "RNR 14 at 5", "a later RNR NAK replaces a NAK");
}

/// R5, D20: held for T_hold above the minimum, a NAK goes upstream at the minimum; and at its own PSN once, when the
/// minimum comes there first: a source with selective repeat has sent the data at the minimum alone (D228).
#[test]
fn r5_a_held_nak_is_forwarded_at_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.ack(1, 2), "");
    assert_eq!(node.nak(0, 5), "ACK 2");
    assert_eq!(node.machine.next_deadline(), Some(node.now + T_HOLD));
    assert_eq!(node.wait(T_HOLD - Duration::from_nanos(1)), "");
    assert_eq!(node.wait(Duration::from_nanos(1)), "NAK 3");
    assert_eq!(node.machine.next_deadline(), None);
    assert_eq!(node.data(3, false), "", "the source repeats 3 alone");
    assert_eq!(node.ack(1, 9), "ACK 4, NAK 5");
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.wait(10 * T_HOLD), "");
    assert_eq!(node.machine.counters().hold_expired, 1);
    assert_eq!(node.data(5, true), "");
    assert_eq!(node.ack(0, 9), "ACK 9");
}

/// R5: a source that goes back sends the data of a held NAK again before the minimum comes there.
#[test]
fn r5_a_source_that_goes_back_needs_one_nak() {
    let mut node = Node::sent(2, 9);
    assert_eq!((node.ack(1, 2), node.nak(0, 5)), (String::new(), "ACK 2".into()));
    assert_eq!(node.wait(T_HOLD), "NAK 3");
    assert_eq!(node.stream(3, 9), "");
    assert_eq!(node.ack(1, 9), "ACK 4");
    assert_eq!(node.ack(0, 9), "ACK 9");
}

/// R5: one NAK of the minimum brings back the data of all held ones.
#[test]
fn r5_several_held_naks_make_one() {
    let mut node = Node::sent(4, 9);
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.wait(T_HOLD / 2), "");
    assert_eq!(node.nak(1, 6), "");
    assert_eq!(node.wait(T_HOLD), "NAK 0");
    assert_eq!(node.nak(2, 0), "", "the branch at the minimum misses what is coming already");
    assert_eq!(node.data(0, false), "");
    assert_eq!(node.nak(3, 7), "");
    assert_eq!(node.wait(T_HOLD), "NAK 0", "that one came after 0 had gone down again");
}

/// R5: a NAK at a new PSN starts a new hold.
#[test]
fn r5_a_hold_begins_with_its_nak() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.wait(T_HOLD / 2), "");
    assert_eq!(node.nak(0, 7), "");
    assert_eq!(node.wait(T_HOLD * 3 / 4), "");
    assert_eq!(node.wait(T_HOLD / 4), "NAK 0");
}

/// R4, R5: a NAK that an RNR NAK keeps back goes upstream when it is repeated, with all that are kept back there.
#[test]
fn a_nak_behind_an_rnr_nak_is_forwarded_later() {
    let mut node = Node::sent(4, 9);
    assert_eq!((node.rnr(0, 2, 14), node.nak(1, 2)), (String::new(), String::new()));
    assert_eq!(node.wait(T_HOLD), "NAK 0", "early, for branch 1");
    assert_eq!((node.ack(2, 1), node.nak(3, 2)), (String::new(), "ACK 1, RNR 14 at 2".into()));
    assert_eq!(node.ack(0, 2), "", "the RNR NAK is gone");
    assert_eq!(node.nak(1, 2), "NAK 2");
    assert_eq!(node.wait(T_HOLD), "", "that of branch 3 was forwarded with it");
}
