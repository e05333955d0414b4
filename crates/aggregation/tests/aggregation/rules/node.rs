//! A node under test.

use srdma_aggregation::{Acknowledgements, BranchIndex, Refusal, Response, Rules, Start, Syndrome, UpstreamResponse};
use srdma_wire::{Instant, Psn};
use std::fmt::Write;
use std::time::Duration;

pub(crate) const T_HOLD: Duration = Duration::from_micros(20);

/// A node, with its upstream responses as text: `ACK 4`, `NAK 5`, `RNR 14 at 5`, `FATAL 2 at 5`.
pub(crate) struct Node {
    pub(crate) machine: Acknowledgements,
    pub(crate) now: Instant,
}

impl Node {
    pub(crate) fn new(rules: Rules, branches: u16, start: Start) -> Self {
        let rules = Rules { t_hold: T_HOLD, ..rules };
        Node { machine: Acknowledgements::new(&rules, branches, start), now: Instant::from_ns(1_000_000) }
    }

    /// Default rules, group committed with initial PSN 0, data 0 to `newest` sent down.
    pub(crate) fn sent(branches: u16, newest: u32) -> Self {
        let mut node = Node::new(Rules::default(), branches, Start::Committed(Psn::new(0)));
        assert_eq!(node.stream(0, newest), "");
        node
    }

    /// Data from `first` to `last`, without AckReq.
    pub(crate) fn stream(&mut self, first: u32, last: u32) -> String {
        (first..=last).map(|psn| self.data(psn, false)).filter(|sent| !sent.is_empty()).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn data(&mut self, psn: u32, ack_request: bool) -> String {
        let mut out = Vec::new();
        self.machine.data(self.now, Psn::new(psn), ack_request, &mut out);
        text(&out)
    }

    pub(crate) fn try_response(&mut self, branch: u16, psn: u32, syndrome: Syndrome) -> Result<String, Refusal> {
        let mut out = Vec::new();
        let response = Response { psn: Psn::new(psn), msn: 100 + u32::from(branch), syndrome };
        let taken = self.machine.response(self.now, BranchIndex(branch), response, &mut out);
        taken.map(|()| text(&out))
    }

    pub(crate) fn response(&mut self, branch: u16, psn: u32, syndrome: Syndrome) -> String {
        self.try_response(branch, psn, syndrome).unwrap()
    }

    pub(crate) fn ack(&mut self, branch: u16, psn: u32) -> String {
        self.response(branch, psn, Syndrome::Ack)
    }

    pub(crate) fn nak(&mut self, branch: u16, psn: u32) -> String {
        self.response(branch, psn, Syndrome::SequenceNak)
    }

    pub(crate) fn rnr(&mut self, branch: u16, psn: u32, timer: u8) -> String {
        self.response(branch, psn, Syndrome::RnrNak(timer))
    }

    pub(crate) fn fatal(&mut self, branch: u16, psn: u32, code: u8) -> String {
        self.response(branch, psn, Syndrome::Fatal(code))
    }

    pub(crate) fn remove(&mut self, branch: u16) -> String {
        let mut out = Vec::new();
        self.machine.remove_branch(BranchIndex(branch), &mut out);
        text(&out)
    }

    /// Lets time pass; ticks when it is wanted, at the end in any case.
    pub(crate) fn wait(&mut self, duration: Duration) -> String {
        let end = self.now + duration;
        let mut out = Vec::new();
        if let Some(deadline) = self.machine.next_deadline().filter(|&deadline| deadline < end) {
            self.machine.tick(deadline, &mut out);
        }
        self.now = end;
        self.machine.tick(end, &mut out);
        text(&out)
    }

    pub(crate) fn expected_psn(&self, branch: u16) -> Option<u32> {
        self.machine.expected_psn(BranchIndex(branch)).map(Psn::get)
    }
}

pub(crate) fn text(out: &[UpstreamResponse]) -> String {
    let mut text = String::new();
    for UpstreamResponse { response, .. } in out {
        let separator = if text.is_empty() { "" } else { ", " };
        match response.syndrome {
            Syndrome::Ack => write!(text, "{separator}ACK {}", response.psn),
            Syndrome::SequenceNak => write!(text, "{separator}NAK {}", response.psn),
            Syndrome::RnrNak(timer) => write!(text, "{separator}RNR {timer} at {}", response.psn),
            Syndrome::Fatal(code) => write!(text, "{separator}FATAL {code} at {}", response.psn),
        }
        .unwrap();
    }
    text
}
