//! R2: data that the node acknowledges itself, pending responses that data clear, and withheld copies.

use super::node::Node;
use srdma_aggregation::{BranchIndex, Rules, Start};
use srdma_wire::Psn;

/// R2, D19: data below the minimum, going back or requesting an ACK, are acknowledged at once by this node.
#[test]
fn r2_retransmitted_data_are_answered() {
    let mut node = Node::sent(2, 9);
    assert_eq!((node.ack(0, 7), node.ack(1, 7)), (String::new(), "ACK 7".into()));
    assert_eq!(node.data(4, false), "ACK 7", "a step back");
    assert_eq!(node.data(5, false), "", "forward again");
    assert_eq!(node.data(6, true), "ACK 7", "AckReq");
    assert_eq!(node.data(6, false), "ACK 7", "not above the previous");
    assert_eq!(node.data(8, true), "", "8 is not confirmed");
    assert_eq!(node.data(8, true), "", "going back to the minimum or above needs the receivers' own response");
    assert_eq!(node.machine.counters().repeated_acks, 3);
}

/// R2: a NAK or RNR NAK whose PSN is sent down once more is cleared; the next one is new (D23).
#[test]
fn r2_data_trigger_a_pending_response() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.ack(1, 9), "");
    assert_eq!(node.nak(0, 5), "ACK 4, NAK 5");
    assert_eq!(node.data(4, false), "ACK 4");
    assert_eq!(node.nak(0, 5), "", "5 has not gone down again");
    assert_eq!(node.data(5, false), "");
    assert_eq!(node.nak(0, 5), "NAK 5", "5 was lost again");
    assert_eq!(node.data(5, false), "");
    assert_eq!(node.ack(0, 9), "ACK 9");
}

/// D22: only with the option, only what the receiver has confirmed.
#[test]
fn pruning_withholds_acknowledged_data() {
    let mut node =
        Node::new(Rules { prune_retransmit: true, ..Rules::default() }, 2, Start::Committed(Psn::new(0xFF_FFFE)));
    for psn in [0xFF_FFFE, 0xFF_FFFF, 0, 1, 2] {
        node.data(psn, false);
    }
    node.ack(0, 0);
    let withheld = |node: &Node, branch| {
        let psns = [0xFF_FFFE, 0xFF_FFFF, 0, 1, 2];
        psns.map(|psn| node.machine.withholds(BranchIndex(branch), Psn::new(psn)))
    };
    assert_eq!(withheld(&node, 0), [true, true, true, false, false]);
    assert_eq!(withheld(&node, 1), [false; 5]);
    assert_eq!(withheld(&node, 9), [false; 5]);
    let unknown = Node::new(Rules { prune_retransmit: true, ..Rules::default() }, 1, Start::Unknown);
    assert_eq!(withheld(&unknown, 0), [false; 5]);
    let mut default = Node::sent(1, 9);
    default.ack(0, 9);
    assert_eq!(withheld(&default, 0), [false; 5]);
}
