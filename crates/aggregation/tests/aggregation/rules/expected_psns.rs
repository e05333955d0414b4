//! R1 and R3: expected PSNs, their minimum, and accepted responses.

use super::node::Node;
use srdma_aggregation::{BranchIndex, Refusal, Response, Rules, Start, Syndrome};
use srdma_wire::Psn;

/// MT-5.3.1-2, MT-5.3.1-3, D16, D19: upstream when the minimum advances, and only then.
#[test]
fn an_ack_is_forwarded_when_the_minimum_advances() {
    let mut node = Node::sent(3, 9);
    assert_eq!(node.ack(0, 4), "");
    assert_eq!(node.ack(1, 9), "");
    assert_eq!(node.ack(2, 2), "ACK 2");
    assert_eq!(node.ack(2, 7), "ACK 4");
    assert_eq!(node.ack(2, 7), "", "a repeat is absorbed");
    assert_eq!(node.ack(0, 9), "ACK 7");
    assert_eq!((node.expected_psn(0), node.expected_psn(1), node.expected_psn(2)), (Some(10), Some(10), Some(8)));
    assert_eq!(node.machine.minimum_psn(), Some(Psn::new(8)));
    assert_eq!((node.machine.lag(BranchIndex(0)), node.machine.lag(BranchIndex(2))), (Some(0), Some(2)));
}

/// D16: the minimum is serial. A numeric one would take PSN 1 for less than 0xFFFFFD.
#[test]
fn the_minimum_is_serial_across_the_wrap() {
    let mut node = Node::new(Rules::default(), 2, Start::Committed(Psn::new(0xFF_FFFC)));
    for psn in [0xFF_FFFC, 0xFF_FFFD, 0xFF_FFFE, 0xFF_FFFF, 0, 1, 2] {
        assert_eq!(node.data(psn, false), "");
    }
    assert_eq!(node.ack(0, 1), "");
    assert_eq!(node.ack(1, 0xFF_FFFC), "ACK 16777212");
    assert_eq!(node.ack(1, 0xFF_FFFF), "ACK 16777215");
    assert_eq!(node.nak(1, 1), "ACK 0, NAK 1");
    assert_eq!(node.data(0xFF_FFFE, false), "ACK 0", "before the minimum, across the wrap (R2)");
    assert_eq!(node.machine.highest_psn(), Some(Psn::new(2)));
}

/// D17, D28: at commit every branch expects the group's initial PSN, so nothing is acknowledged that was never sent.
#[test]
fn a_committed_group_expects_its_initial_psn() {
    let node = Node::new(Rules::default(), 2, Start::Committed(Psn::new(77)));
    assert_eq!((node.expected_psn(0), node.expected_psn(1), node.machine.unknown_branches()), (Some(77), Some(77), 0));
    assert_eq!((node.machine.highest_psn(), node.machine.next_deadline()), (None, None));
}

/// R1: without data there is nothing to answer.
#[test]
fn r1_nothing_was_sent() {
    let mut node = Node::new(Rules::default(), 1, Start::Committed(Psn::new(5)));
    assert_eq!(node.try_response(0, 5, Syndrome::Ack), Err(Refusal::NothingSent { psn: Psn::new(6) }));
    assert_eq!(node.expected_psn(0), Some(5));
}

/// R1, D15, MT-9-2: the limits of the plausible.
#[test]
fn r1_inflated_acknowledgements() {
    let mut node = Node::sent(2, 9);
    let far = 9 + (1 << 16);
    let refused = Refusal::ImplausiblePsn { psn: Psn::new(far + 1), highest: Psn::new(9) };
    assert_eq!(node.try_response(0, far, Syndrome::Ack), Err(refused));
    assert_eq!(node.try_response(0, far + 1, Syndrome::SequenceNak), Err(refused));
    assert_eq!(node.expected_psn(0), Some(0), "refused responses leave no trace");
    assert_eq!(node.ack(0, 10), "", "one above the highest");
    assert_eq!(node.expected_psn(0), Some(10));
    assert_eq!(node.ack(0, far - 1), "");
    assert_eq!(node.nak(1, 4_000), "ACK 9", "a NAK above is an ACK of the highest too");
    assert_eq!((node.expected_psn(0), node.expected_psn(1)), (Some(10), Some(10)));
    assert_eq!(node.machine.counters().above_highest, 3);
}

/// R1: old responses change nothing; those further behind than 2^22 do not belong to this stream.
#[test]
fn r1_behind() {
    let mut node = Node::sent(1, 9);
    assert_eq!(node.ack(0, 6), "ACK 6");
    let behind = |next| Err(Refusal::Behind { psn: Psn::new(next), expected_psn: Psn::new(7) });
    assert_eq!(node.try_response(0, 3, Syndrome::Ack), behind(4));
    assert_eq!(node.try_response(0, 6, Syndrome::SequenceNak), behind(6));
    assert_eq!(node.try_response(0, 2, Syndrome::Fatal(1)), behind(2));
    let stale = Psn::new(9).minus((1 << 22) + 1);
    let refused = Refusal::Stale { psn: stale, newest: Psn::new(9) };
    assert_eq!(node.try_response(0, stale.get(), Syndrome::SequenceNak), Err(refused));
    assert_eq!(node.expected_psn(0), Some(7));
}

/// R1, D14: a branch that is not there.
#[test]
fn r1_no_such_branch() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.try_response(2, 4, Syndrome::Ack), Err(Refusal::NoSuchBranch(2)));
    assert_eq!(node.try_response(u16::MAX, 4, Syndrome::Ack), Err(Refusal::NoSuchBranch(u16::MAX)));
    assert_eq!(node.remove(7), "");
}

/// R1, D21: at one point a stronger kind replaces a weaker one, and an ACK leaves what stands there.
#[test]
fn r1_stronger_kinds_replace_weaker_ones() {
    let mut node = Node::sent(2, 9);
    // Branch 1 holds the minimum at 0 meanwhile.
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.rnr(0, 5, 14), "");
    assert_eq!(node.nak(0, 5), "", "RNR stands (D23)");
    assert_eq!(node.ack(0, 4), "");
    assert_eq!(node.ack(1, 8), "ACK 4, RNR 14 at 5");
    assert_eq!(node.fatal(0, 5, 2), "FATAL 2 at 5");
    assert_eq!(node.rnr(0, 5, 14), "");
}

/// R1: a response ahead of a branch's expected PSN is new, and clears what was pending behind it.
#[test]
fn r1_a_later_response_replaces_a_pending_one() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.ack(0, 7), "");
    assert_eq!(node.ack(1, 4), "ACK 4", "no NAK of 5");
    assert_eq!(node.nak(0, 9), "");
    assert_eq!(node.ack(1, 8), "ACK 8, NAK 9");
}

/// D18: the MSN is that of a branch at the minimum.
#[test]
fn the_msn_is_that_of_the_minimum() {
    let mut node = Node::sent(3, 9);
    node.ack(0, 9);
    node.ack(1, 9);
    let mut out = Vec::new();
    let response = Response { psn: Psn::new(4), msn: 1_234, syndrome: Syndrome::Ack };
    node.machine.response(node.now, BranchIndex(2), response, &mut out).unwrap();
    assert_eq!(out.iter().map(|sent| sent.response).collect::<Vec<_>>(), [response]);
}

/// D16: whatever comes down, expected_psns stay within a quarter of the circle, and `hi` does not go back.
#[test]
fn data_far_ahead_do_not_move_the_highest() {
    let mut node = Node::sent(1, 9);
    assert_eq!(node.data(1 << 22, false), "");
    assert_eq!(node.machine.highest_psn(), Some(Psn::new(1 << 22)));
    for far in [(1 << 22) + 1, (1 << 23) - 1] {
        node.data(far, false);
        assert_eq!(node.machine.highest_psn(), Some(Psn::new(1 << 22)));
    }
    node.data(7, false);
    assert_eq!(node.machine.highest_psn(), Some(Psn::new(1 << 22)));
    // Data that begin before the group's initial PSN do not make it stale.
    let mut early = Node::new(Rules::default(), 1, Start::Committed(Psn::new(100)));
    early.data(95, false);
    assert_eq!(early.machine.highest_psn(), Some(Psn::new(99)));
}
