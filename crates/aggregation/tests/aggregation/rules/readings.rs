//! The literal rules, and other readings, kept to be measured.

use super::node::{Node, T_HOLD, text};
use srdma_aggregation::{BranchIndex, Refusal, Repeat, Response, Rules, Start, Syndrome};
use srdma_wire::Psn;

/// D19, MT-5.3.1-3: literally, every ACK makes an ACK of the minimum, and data are left to the receivers to answer.
#[test]
fn literal_acks() {
    let mut node = Node::new(Rules { literal_ack: true, ..Rules::default() }, 2, Start::Committed(Psn::new(0)));
    node.stream(0, 9);
    assert_eq!(node.ack(0, 4), "ACK 16777215", "the minimum is still 0");
    assert_eq!(node.ack(1, 2), "ACK 2");
    assert_eq!(node.ack(1, 2), "ACK 2");
    let mut out = Vec::new();
    let overtaken = Response { psn: Psn::new(1), msn: 0, syndrome: Syndrome::Ack };
    let taken = node.machine.response(node.now, BranchIndex(1), overtaken, &mut out);
    assert!(matches!(taken, Err(Refusal::Behind { .. })));
    assert_eq!(text(&out), "ACK 2", "even for one that was overtaken");
    assert_eq!(node.data(0, true), "");
    assert_eq!(node.nak(0, 6), "");
    assert_eq!(node.ack(1, 9), "ACK 5, NAK 6", "NAKs follow the default rules");
}

/// D20, MT-5.3.2-4: literally, every NAK makes a NAK of the minimum at once.
#[test]
fn literal_naks() {
    let mut node = Node::new(Rules { literal_nak: true, ..Rules::default() }, 2, Start::Committed(Psn::new(0)));
    node.stream(0, 9);
    assert_eq!(node.nak(0, 5), "NAK 0");
    assert_eq!(node.nak(0, 5), "NAK 0");
    assert_eq!(node.wait(2 * T_HOLD), "", "nothing is held");
    assert_eq!(node.ack(1, 3), "ACK 3");
    assert_eq!(node.nak(1, 4), "NAK 4");
    assert_eq!(node.nak(1, 7), "ACK 4, NAK 5", "with the default rule for ACKs the ACK goes first (D21)");
}

/// D20, D24: a NAK from a branch that has failed does not make its failure known.
#[test]
fn literal_naks_leave_a_failure_held() {
    let mut node = Node::new(Rules { literal_nak: true, ..Rules::default() }, 2, Start::Committed(Psn::new(0)));
    node.stream(0, 9);
    assert_eq!(node.fatal(0, 5, 2), "");
    assert_eq!(node.nak(0, 6), "NAK 0");
    assert_eq!(node.wait(T_HOLD), "FATAL 2 at 0");
}

/// Both literal rules together send no more than the draft: a NAK that advances the minimum goes alone.
#[test]
fn literal_rules_together() {
    let mut node = Node::new(Rules::literal(), 2, Start::Committed(Psn::new(0)));
    node.stream(0, 9);
    assert_eq!(node.ack(0, 9), "ACK 16777215");
    assert_eq!(node.nak(1, 5), "NAK 5");
    let mut unknown = Node::new(Rules::literal(), 2, Start::Unknown);
    unknown.stream(0, 9);
    assert_eq!(unknown.nak(0, 5), "", "a value that no branch ever sent is no minimum (D17, R6)");
}

/// D22, D19: an edge that withholds copies answers for the receivers, whatever the rule for ACKs.
#[test]
fn literal_acks_with_pruning_are_repeated() {
    let rules = Rules { prune_retransmit: true, ..Rules::literal() };
    let mut node = Node::new(rules, 1, Start::Committed(Psn::new(0)));
    node.stream(0, 9);
    assert_eq!(node.ack(0, 9), "ACK 9");
    assert_eq!(node.data(3, false), "ACK 9");
}

/// D15: a node that does not see the data cannot bound what is confirmed, and forwards each response.
#[test]
fn responses_without_data() {
    let mut node = Node::new(Rules::responses_only(), 2, Start::Committed(Psn::new(0)));
    assert_eq!(
        (node.ack(0, 4), node.ack(1, 2), node.ack(1, 2)),
        ("ACK 16777215".into(), "ACK 2".into(), "ACK 2".into())
    );
    assert_eq!(node.nak(1, 4), "NAK 4");
    assert_eq!(node.nak(1, 4), "NAK 4");
    let (far, old) = (Psn::new(4).plus((1 << 22) + 1), Psn::new(4).minus((1 << 22) + 1));
    assert!(matches!(node.try_response(0, far.get(), Syndrome::SequenceNak), Err(Refusal::ImplausiblePsn { .. })));
    assert!(matches!(node.try_response(0, old.get(), Syndrome::SequenceNak), Err(Refusal::Stale { .. })));
}

/// The other readings of repetition, kept to be measured: none answers data.
#[test]
fn ablations_of_r2() {
    let node = |repeat| {
        let mut node = Node::new(Rules { repeat, ..Rules::default() }, 3, Start::Committed(Psn::new(0)));
        node.stream(0, 9);
        assert_eq!((node.ack(0, 4), node.ack(1, 9), node.ack(2, 4)), (String::new(), String::new(), "ACK 4".into()));
        assert_eq!(node.data(0, true), "");
        node
    };
    let mut never = node(Repeat::Never);
    assert_eq!((never.ack(0, 4), never.ack(2, 4), never.ack(1, 9)), Default::default());
    let mut all = node(Repeat::AllRepeated);
    assert_eq!((all.ack(0, 4), all.ack(0, 4), all.ack(2, 4)), (String::new(), String::new(), "ACK 4".into()));
    assert_eq!((all.ack(2, 4), all.ack(0, 4)), (String::new(), "ACK 4".into()), "and once more");
    let mut count = node(Repeat::RepeatCount);
    assert_eq!((count.ack(0, 4), count.ack(0, 4), count.ack(2, 4)), (String::new(), "ACK 4".into(), String::new()));
}
