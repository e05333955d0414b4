//! The forwarding rule R1-R7 step by step, and the decisions behind it.

use srdma_dataplane::reverse::{
    Acknowledgements, Answer, BranchIndex, Refusal, Repeat, Response, Rules, Start, Statement,
};
use srdma_wire::{Instant, Psn};
use std::fmt::Write;
use std::time::Duration;

const T_HOLD: Duration = Duration::from_micros(20);

/// A node, and what it says as text: `ACK 4`, `NAK 5`, `RNR 14 at 5`, `FATAL 2 at 5`.
struct Node {
    machine: Acknowledgements,
    now: Instant,
}

impl Node {
    fn new(rules: Rules, branches: u16, start: Start) -> Self {
        let rules = Rules { t_hold: T_HOLD, ..rules };
        Node { machine: Acknowledgements::new(&rules, branches, start), now: Instant::from_ns(1_000_000) }
    }

    /// Default rules, group committed with initial PSN 0, data 0 to `newest` sent down.
    fn sent(branches: u16, newest: u32) -> Self {
        let mut node = Node::new(Rules::default(), branches, Start::Committed(Psn::new(0)));
        assert_eq!(node.stream(0, newest), "");
        node
    }

    /// Data from `first` to `last`, without AckReq.
    fn stream(&mut self, first: u32, last: u32) -> String {
        (first..=last).map(|psn| self.data(psn, false)).filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ")
    }

    fn data(&mut self, psn: u32, ack_request: bool) -> String {
        let mut out = Vec::new();
        self.machine.data(self.now, Psn::new(psn), ack_request, &mut out);
        text(&out)
    }

    fn try_response(&mut self, branch: u16, psn: u32, answer: Answer) -> Result<String, Refusal> {
        let mut out = Vec::new();
        let response = Response { psn: Psn::new(psn), msn: 100 + u32::from(branch), answer };
        let taken = self.machine.response(self.now, BranchIndex(branch), response, &mut out);
        taken.map(|()| text(&out))
    }

    fn response(&mut self, branch: u16, psn: u32, answer: Answer) -> String {
        self.try_response(branch, psn, answer).unwrap()
    }

    fn ack(&mut self, branch: u16, psn: u32) -> String {
        self.response(branch, psn, Answer::Ack)
    }

    fn nak(&mut self, branch: u16, psn: u32) -> String {
        self.response(branch, psn, Answer::SequenceNak)
    }

    fn rnr(&mut self, branch: u16, psn: u32, timer: u8) -> String {
        self.response(branch, psn, Answer::RnrNak(timer))
    }

    fn fatal(&mut self, branch: u16, psn: u32, code: u8) -> String {
        self.response(branch, psn, Answer::Fatal(code))
    }

    fn remove(&mut self, branch: u16) -> String {
        let mut out = Vec::new();
        self.machine.remove_branch(BranchIndex(branch), &mut out);
        text(&out)
    }

    /// Lets time pass; ticks when it is wanted, at the end in any case.
    fn wait(&mut self, duration: Duration) -> String {
        let end = self.now + duration;
        let mut out = Vec::new();
        if let Some(deadline) = self.machine.next_deadline().filter(|&deadline| deadline < end) {
            self.machine.tick(deadline, &mut out);
        }
        self.now = end;
        self.machine.tick(end, &mut out);
        text(&out)
    }

    fn point(&self, branch: u16) -> Option<u32> {
        self.machine.point(BranchIndex(branch)).map(Psn::get)
    }
}

fn text(out: &[Statement]) -> String {
    let mut text = String::new();
    for Statement { response, .. } in out {
        let separator = if text.is_empty() { "" } else { ", " };
        match response.answer {
            Answer::Ack => write!(text, "{separator}ACK {}", response.psn),
            Answer::SequenceNak => write!(text, "{separator}NAK {}", response.psn),
            Answer::RnrNak(timer) => write!(text, "{separator}RNR {timer} at {}", response.psn),
            Answer::Fatal(code) => write!(text, "{separator}FATAL {code} at {}", response.psn),
        }
        .unwrap();
    }
    text
}

/// MT-5.3.1-2, MT-5.3.1-3, D16, D19: upstream when the minimum advances, and only then.
#[test]
fn an_ack_goes_up_when_the_minimum_advances() {
    let mut node = Node::sent(3, 9);
    assert_eq!(node.ack(0, 4), "");
    assert_eq!(node.ack(1, 9), "");
    assert_eq!(node.ack(2, 2), "ACK 2");
    assert_eq!(node.ack(2, 7), "ACK 4");
    assert_eq!(node.ack(2, 7), "", "a repeat is absorbed");
    assert_eq!(node.ack(0, 9), "ACK 7");
    assert_eq!((node.point(0), node.point(1), node.point(2)), (Some(10), Some(10), Some(8)));
    assert_eq!(node.machine.minimum(), Some(Psn::new(8)));
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
    assert_eq!(node.machine.highest(), Some(Psn::new(2)));
}

/// D17, D28: at commit every branch expects the group's initial PSN, so nothing is acknowledged that was never sent.
#[test]
fn a_committed_group_expects_its_initial_psn() {
    let node = Node::new(Rules::default(), 2, Start::Committed(Psn::new(77)));
    assert_eq!((node.point(0), node.point(1), node.machine.unknown()), (Some(77), Some(77), 0));
    assert_eq!((node.machine.highest(), node.machine.next_deadline()), (None, None));
}

/// R1: without data there is nothing to answer.
#[test]
fn r1_nothing_was_sent() {
    let mut node = Node::new(Rules::default(), 1, Start::Committed(Psn::new(5)));
    assert_eq!(node.try_response(0, 5, Answer::Ack), Err(Refusal::NothingSent { next: Psn::new(6) }));
    assert_eq!(node.point(0), Some(5));
}

/// R1, D15, MT-9-2: the limits of the plausible.
#[test]
fn r1_inflated_acknowledgements() {
    let mut node = Node::sent(2, 9);
    let far = 9 + (1 << 16);
    let refused = Refusal::ImplausiblePsn { next: Psn::new(far + 1), highest: Psn::new(9) };
    assert_eq!(node.try_response(0, far, Answer::Ack), Err(refused));
    assert_eq!(node.try_response(0, far + 1, Answer::SequenceNak), Err(refused));
    assert_eq!(node.point(0), Some(0), "refused responses leave no trace");
    assert_eq!(node.ack(0, 10), "", "one above the highest");
    assert_eq!(node.point(0), Some(10));
    assert_eq!(node.ack(0, far - 1), "");
    assert_eq!(node.nak(1, 4_000), "ACK 9", "a NAK above is an ACK of the highest too");
    assert_eq!((node.point(0), node.point(1)), (Some(10), Some(10)));
    assert_eq!(node.machine.counters().above_highest, 3);
}

/// R1: what is behind changes nothing; further behind than 2^22 it is not even from this stream.
#[test]
fn r1_behind() {
    let mut node = Node::sent(1, 9);
    assert_eq!(node.ack(0, 6), "ACK 6");
    let behind = |next| Err(Refusal::Behind { next: Psn::new(next), point: Psn::new(7) });
    assert_eq!(node.try_response(0, 3, Answer::Ack), behind(4));
    assert_eq!(node.try_response(0, 6, Answer::SequenceNak), behind(6));
    assert_eq!(node.try_response(0, 2, Answer::Fatal(1)), behind(2));
    let stale = Psn::new(9).minus((1 << 22) + 1);
    let refused = Refusal::Stale { next: stale, newest: Psn::new(9) };
    assert_eq!(node.try_response(0, stale.get(), Answer::SequenceNak), Err(refused));
    assert_eq!(node.point(0), Some(7));
}

/// R1, D14: a branch that is not there.
#[test]
fn r1_no_such_branch() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.try_response(2, 4, Answer::Ack), Err(Refusal::NoSuchBranch(2)));
    assert_eq!(node.try_response(u16::MAX, 4, Answer::Ack), Err(Refusal::NoSuchBranch(u16::MAX)));
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

/// R1: ahead of its point a branch says something new, and what was pending behind is over.
#[test]
fn r1_ahead_replaces_what_was_pending() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.ack(0, 7), "");
    assert_eq!(node.ack(1, 4), "ACK 4", "no NAK of 5");
    assert_eq!(node.nak(0, 9), "");
    assert_eq!(node.ack(1, 8), "ACK 8, NAK 9");
}

/// R2, D19: data below the minimum, going back or asking for an ACK, are answered at once and by nobody else.
#[test]
fn r2_data_that_go_back_are_answered() {
    let mut node = Node::sent(2, 9);
    assert_eq!((node.ack(0, 7), node.ack(1, 7)), (String::new(), "ACK 7".into()));
    assert_eq!(node.data(4, false), "ACK 7", "a step back");
    assert_eq!(node.data(5, false), "", "forward again");
    assert_eq!(node.data(6, true), "ACK 7", "AckReq");
    assert_eq!(node.data(6, false), "ACK 7", "not above the previous");
    assert_eq!(node.data(8, true), "", "8 is not confirmed");
    assert_eq!(node.data(8, true), "", "going back to the minimum or above needs the receivers' own answer");
    assert_eq!(node.machine.counters().answered_data, 3);
}

/// R2: a NAK or RNR NAK whose PSN goes down once more is served; the next one is new (D23).
#[test]
fn r2_data_serve_what_is_pending() {
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

/// R3, MT-5.3.2-3, MT-5.3.2-4: a branch that sent only ACKs counts as ePSN = AckPSN + 1; a NAK goes up with the
/// minimum.
#[test]
fn r3_a_nak_waits_for_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.nak(0, 5), "", "branch 1 has 0 outstanding: 5 is only in flight for it (D20)");
    assert_eq!(node.ack(1, 3), "ACK 3");
    assert_eq!(node.ack(1, 6), "ACK 4, NAK 5");
}

/// R4: a NAK at the minimum goes up once, whichever branches send it, until the data there go down again. A requester
/// that has gone back spends a retry on each further one.
#[test]
fn r4_a_nak_goes_up_once() {
    let mut node = Node::sent(3, 9);
    assert_eq!((node.ack(0, 4), node.ack(1, 4), node.ack(2, 4)), (String::new(), String::new(), "ACK 4".into()));
    assert_eq!(node.nak(0, 5), "NAK 5");
    assert_eq!(node.nak(1, 5), "");
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.data(5, true), "");
    assert_eq!(node.nak(2, 5), "NAK 5");
}

/// R4: that a NAK has gone up is forgotten with the minimum it was about, and when the data there go down again.
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

/// R4, D23: an RNR NAK at the minimum goes up with the longest time asked for: code 0, 655 ms, is longer than code 31,
/// 492 ms, and that longer than code 1, 10 microseconds. It goes once for each time that the data there go down: what
/// several receivers say to one sending must not cost the source one retry each.
#[test]
fn r4_rnr_goes_up_with_the_longest_time() {
    let mut node = Node::sent(3, 9);
    assert_eq!((node.ack(0, 4), node.ack(1, 4), node.ack(2, 4)), (String::new(), String::new(), "ACK 4".into()));
    assert_eq!(node.rnr(0, 5, 1), "RNR 1 at 5");
    assert_eq!(node.rnr(0, 5, 1), "", "the source is waiting");
    assert_eq!(node.rnr(1, 5, 31), "RNR 31 at 5", "not for so long");
    assert_eq!(node.rnr(0, 5, 1), "");
    assert_eq!(node.rnr(2, 5, 0), "RNR 0 at 5");
    assert_eq!(node.rnr(1, 5, 31), "");
    assert_eq!(node.data(5, false), "");
    assert_eq!(node.rnr(0, 5, 1), "RNR 1 at 5", "the others were served");
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
    assert_eq!(node.rnr(0, 5, 14), "RNR 14 at 5", "and a NAK is outdone by a later RNR NAK");
}

/// R5, D20: held for T_hold above the minimum, a NAK goes up at the minimum; not again when the minimum comes to it.
#[test]
fn r5_a_held_nak_goes_up_at_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.ack(1, 2), "");
    assert_eq!(node.nak(0, 5), "ACK 2");
    assert_eq!(node.machine.next_deadline(), Some(node.now + T_HOLD));
    assert_eq!(node.wait(T_HOLD - Duration::from_nanos(1)), "");
    assert_eq!(node.wait(Duration::from_nanos(1)), "NAK 3");
    assert_eq!(node.machine.next_deadline(), None);
    assert_eq!(node.ack(1, 9), "ACK 4", "the source knows");
    assert_eq!(node.wait(10 * T_HOLD), "");
    assert_eq!(node.machine.counters().hold_expired, 1);
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

/// R5: a NAK at a new PSN is held anew.
#[test]
fn r5_a_hold_begins_with_its_nak() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.nak(0, 5), "");
    assert_eq!(node.wait(T_HOLD / 2), "");
    assert_eq!(node.nak(0, 7), "");
    assert_eq!(node.wait(T_HOLD * 3 / 4), "");
    assert_eq!(node.wait(T_HOLD / 4), "NAK 0");
}

/// R4, R5: a NAK that an RNR NAK kept back is not made known by another branch that says its own once more.
#[test]
fn a_nak_behind_an_rnr_nak_keeps_its_hold() {
    let mut node = Node::sent(4, 9);
    assert_eq!((node.rnr(0, 2, 14), node.nak(1, 2)), (String::new(), String::new()));
    assert_eq!(node.wait(T_HOLD), "NAK 0", "branch 1 has been heard upstream");
    assert_eq!((node.ack(2, 1), node.nak(3, 2)), (String::new(), "ACK 1, RNR 14 at 2".into()));
    assert_eq!(node.ack(0, 2), "", "the RNR NAK is gone");
    assert_eq!(node.nak(1, 2), "");
    assert_eq!(node.wait(T_HOLD), "NAK 2", "for branch 3");
}

/// D24: a fatal NAK goes up at the minimum, when that reaches it or after T_hold, and completes nothing before.
#[test]
fn fatal_goes_up_only_at_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.fatal(0, 5, 2), "");
    assert_eq!(node.ack(1, 3), "ACK 3");
    assert_eq!(node.wait(T_HOLD), "FATAL 2 at 4");
    assert_eq!(node.ack(1, 9), "ACK 4", "said once");

    let mut node = Node::sent(2, 9);
    assert_eq!(node.fatal(0, 5, 3), "");
    assert_eq!(node.ack(1, 9), "ACK 4, FATAL 3 at 5");
    assert_eq!(node.wait(10 * T_HOLD), "");
}

/// D24, R2: a failure is sticky, and said again whenever the data go back; data do not serve it.
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

/// D24: a failure held above the minimum is repeated at the minimum once it was said there, and not before.
#[test]
fn a_held_failure_is_repeated_at_the_minimum() {
    let mut node = Node::sent(2, 9);
    assert_eq!(node.fatal(0, 5, 1), "");
    assert_eq!(node.data(0, false), "", "still held");
    assert_eq!(node.wait(T_HOLD), "FATAL 1 at 0");
    assert_eq!(node.data(0, false), "FATAL 1 at 0");
}

/// R6, D17: after a restart nothing goes up until each branch was heard; then the minimum does.
#[test]
fn r6_unknown_branches_silence_the_node() {
    let mut node = Node::new(Rules::default(), 3, Start::Unknown);
    assert_eq!(node.try_response(0, 7, Answer::Ack), Err(Refusal::NothingSent { next: Psn::new(8) }));
    assert_eq!(node.stream(4, 9), "");
    assert_eq!(node.machine.unknown(), 3);
    assert_eq!(node.nak(0, 6), "");
    assert_eq!(node.fatal(1, 8, 1), "");
    assert_eq!(node.data(4, true), "", "nor are data answered");
    assert_eq!(node.wait(10 * T_HOLD), "");
    assert_eq!((node.machine.next_deadline(), node.machine.unknown(), node.point(2)), (None, 1, None));
    assert_eq!(node.ack(2, 6), "ACK 5, NAK 6");
    assert_eq!(node.wait(Duration::ZERO), "FATAL 1 at 6", "its hold ended long ago");
}

/// R1, R6, D17: after a restart a receiver's newest PSN may lie above what the node has seen again.
#[test]
fn r6_a_restarted_node_believes_no_more_than_it_has_seen() {
    let mut node = Node::new(Rules::default(), 2, Start::Unknown);
    assert_eq!(node.data(50, false), "");
    assert_eq!(node.ack(0, 99), "");
    assert_eq!(node.nak(1, 80), "ACK 50");
    assert_eq!((node.point(0), node.point(1)), (Some(51), Some(51)));
    // What failed has failed, wherever that was.
    assert_eq!(node.fatal(0, 99, 2), "FATAL 2 at 51");
}

/// R7: when the branch that held the minimum goes, the others speak at once.
#[test]
fn r7_a_branch_is_removed() {
    let mut node = Node::sent(3, 9);
    assert_eq!(node.ack(1, 7), "");
    assert_eq!(node.nak(2, 6), "");
    assert_eq!(node.remove(0), "ACK 5, NAK 6");
    assert_eq!(node.try_response(0, 9, Answer::Ack), Err(Refusal::NoSuchBranch(0)));
    assert_eq!((node.point(0), node.remove(0)), (None, String::new()));
    assert_eq!(node.remove(2), "ACK 7");
    assert_eq!(node.remove(1), "", "nobody is left to speak for");
    assert_eq!((node.machine.minimum(), node.data(1, true)), (None, String::new()));
}

/// R7, R6: the last unknown branch goes, and the rest is known.
#[test]
fn r7_ends_the_silence_of_r6() {
    let mut node = Node::new(Rules::default(), 3, Start::Unknown);
    assert_eq!(node.stream(4, 9), "");
    assert_eq!((node.ack(0, 8), node.nak(1, 7)), (String::new(), String::new()));
    assert_eq!(node.remove(2), "ACK 6, NAK 7");
}

/// R7, D23: with the branch that was not ready gone, the NAK that it kept back goes up.
#[test]
fn r7_frees_what_a_removed_branch_kept_back() {
    let mut node = Node::sent(2, 9);
    assert_eq!((node.ack(0, 4), node.ack(1, 4)), (String::new(), "ACK 4".into()));
    assert_eq!((node.rnr(0, 5, 14), node.nak(1, 5)), ("RNR 14 at 5".into(), String::new()));
    assert_eq!(node.remove(0), "NAK 5");
}

/// D18: the MSN is that of a branch at the minimum.
#[test]
fn the_msn_is_that_of_the_minimum() {
    let mut node = Node::sent(3, 9);
    node.ack(0, 9);
    node.ack(1, 9);
    let mut out = Vec::new();
    let response = Response { psn: Psn::new(4), msn: 1_234, answer: Answer::Ack };
    node.machine.response(node.now, BranchIndex(2), response, &mut out).unwrap();
    assert_eq!(out.iter().map(|said| said.response).collect::<Vec<_>>(), [response]);
}

/// D22: only with the option, only what the receiver has confirmed.
#[test]
fn pruning_withholds_what_is_confirmed() {
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

/// D19, MT-5.3.1-3: literally, every ACK makes an ACK of the minimum, and data are left to the receivers to answer.
#[test]
fn literal_acks() {
    let mut node = Node::new(Rules { literal_ack: true, ..Rules::default() }, 2, Start::Committed(Psn::new(0)));
    node.stream(0, 9);
    assert_eq!(node.ack(0, 4), "ACK 16777215", "the minimum is still 0");
    assert_eq!(node.ack(1, 2), "ACK 2");
    assert_eq!(node.ack(1, 2), "ACK 2");
    let mut out = Vec::new();
    let overtaken = Response { psn: Psn::new(1), msn: 0, answer: Answer::Ack };
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

/// Both literal rules together say no more than the draft: a NAK that advances the minimum goes alone.
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
fn literal_acks_with_pruning_are_answered() {
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
    assert!(matches!(node.try_response(0, far.get(), Answer::SequenceNak), Err(Refusal::ImplausiblePsn { .. })));
    assert!(matches!(node.try_response(0, old.get(), Answer::SequenceNak), Err(Refusal::Stale { .. })));
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

/// D16: whatever comes down, points stay within a quarter of the circle, and `hi` does not go back.
#[test]
fn data_far_ahead_do_not_move_the_highest() {
    let mut node = Node::sent(1, 9);
    assert_eq!(node.data(1 << 22, false), "");
    assert_eq!(node.machine.highest(), Some(Psn::new(1 << 22)));
    for far in [(1 << 22) + 1, (1 << 23) - 1] {
        node.data(far, false);
        assert_eq!(node.machine.highest(), Some(Psn::new(1 << 22)));
    }
    node.data(7, false);
    assert_eq!(node.machine.highest(), Some(Psn::new(1 << 22)));
    // Data that begin before the group's initial PSN do not make it stale.
    let mut early = Node::new(Rules::default(), 1, Start::Committed(Psn::new(100)));
    early.data(95, false);
    assert_eq!(early.machine.highest(), Some(Psn::new(99)));
}
