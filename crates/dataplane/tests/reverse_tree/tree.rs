//! A multicast tree whose nodes hold nothing but the aggregation machines, links that fail, and the two invariants
//! checked at every response that reaches the source.

use crate::endpoints::{Receiver, ReceiverHabit, Source, SourceHabit, TIMEOUT_NS};
use crate::random::Random;
use srdma_dataplane::reverse::{Acknowledgements, Answer, BranchIndex, Response, Rules, Start, Statement};
use srdma_wire::{Instant, Psn};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// What a run may suffer until the links are made clean.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss_per_mille: u64,
    pub(crate) duplicate_per_mille: u64,
    pub(crate) reorder_per_mille: u64,
    pub(crate) unready_per_mille: u64,
    pub(crate) restarts: u64,
    /// A receiver fails for good, with a fatal NAK.
    pub(crate) fatal: bool,
    /// A receiver falls silent and is removed later (R7).
    pub(crate) removal: bool,
    /// A node that restarts pretends to know its branches: wrong on purpose, to see the checks find it.
    pub(crate) pretending: bool,
}

/// What came out of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// An acknowledgement of what a receiver does not have.
    pub(crate) unsafe_responses: u64,
    /// The source never ended.
    pub(crate) stuck: bool,
    /// Timeouts of the source after the links were made clean.
    pub(crate) timeouts_when_clean: u64,
    pub(crate) acks: u64,
    pub(crate) naks: u64,
    pub(crate) sent: u64,
    pub(crate) requests: u64,
    pub(crate) total: u64,
    pub(crate) receiver_acks: u64,
    pub(crate) most_retries: u64,
    /// The source took a fatal NAK.
    pub(crate) failed: bool,
    /// The last receiver was removed before the end.
    pub(crate) deserted: bool,
}

#[derive(Clone, Copy, Debug)]
enum Child {
    Node(usize),
    Receiver(usize),
}

struct Node {
    machine: Acknowledgements,
    parent: Option<(usize, BranchIndex)>,
    children: Vec<Child>,
    /// How long the link to each child takes.
    latency_ns: Vec<u64>,
    removed: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    SourceSends,
    DataAtNode { node: usize, packet: u64, ack_request: bool },
    DataAtReceiver { receiver: usize, packet: u64, ack_request: bool },
    ResponseAtNode { node: usize, branch: u16, response: usize },
    ResponseAtSource { response: usize },
    Restart { node: usize },
    Falls { receiver: usize },
    Remove { receiver: usize },
}

pub(crate) struct Tree {
    rules: Rules,
    faults: Faults,
    random: Random,
    now_ns: u64,
    clean_at_ns: u64,
    /// When the source last completed something.
    progress_at_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    /// Responses on their way, by number.
    responses: Vec<Response>,
    nodes: Vec<Node>,
    receivers: Vec<Receiver>,
    edges: Vec<(usize, u16)>,
    source: Source,
    outcome: Outcome,
}

/// Between two packets of the source.
const SPACING_NS: u64 = 400;
/// A source that completes nothing for so long over clean links never will.
const STUCK_NS: u64 = 12 * TIMEOUT_NS;

impl Tree {
    /// A random tree of up to three levels and six receivers.
    pub(crate) fn random(seed: u64, rules: Rules, habit: SourceHabit, faults: Faults) -> Self {
        let mut random = Random::new(seed);
        let initial = Psn::new(random.one_of(&[0, 1, 0xFF_FFFF, 0xFF_FFF0, 0xFF_FFC0, 0x7F_FFF0, 0x12_3456]));
        let rules = Rules { t_hold: Duration::from_micros(random.one_of(&[5, 50, 300])), ..rules };
        let source = Source::new(&mut random, habit, initial);
        let mut tree = Tree {
            rules,
            faults,
            now_ns: 0,
            clean_at_ns: random.between(10_000, 20_000_000),
            progress_at_ns: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            responses: Vec::new(),
            nodes: Vec::new(),
            receivers: Vec::new(),
            edges: Vec::new(),
            source,
            outcome: Outcome::default(),
            random,
        };
        let levels = tree.random.between(1, 3);
        tree.grow(levels, None, 6);
        tree.misfortunes();
        tree
    }

    /// Adds a node and what is below it; gives the number of receivers below.
    fn grow(&mut self, levels: u64, parent: Option<(usize, BranchIndex)>, most: u64) -> u64 {
        let node = self.nodes.len();
        let machine = Acknowledgements::new(&self.rules, 0, Start::Unknown);
        self.nodes.push(Node { machine, parent, children: Vec::new(), latency_ns: Vec::new(), removed: Vec::new() });
        let wanted = self.random.between(1, 3);
        let mut receivers = 0;
        for branch in 0..wanted {
            if receivers == most {
                break;
            }
            let index = BranchIndex(branch as u16);
            let child = if levels > 1 && self.random.happens(700) {
                let child = self.nodes.len();
                receivers += self.grow(levels - 1, Some((node, index)), (most - receivers).min(3));
                Child::Node(child)
            } else {
                receivers += 1;
                let habit = self.random.one_of(&[ReceiverHabit::AnswersDuplicates, ReceiverHabit::AnswersRequests]);
                self.receivers.push(Receiver::new(habit, self.faults.unready_per_mille));
                self.edges.push((node, index.0));
                Child::Receiver(self.receivers.len() - 1)
            };
            let latency_ns = self.random.one_of(&[1_000, 1_000, 1_000, 20_000, 200_000]);
            self.nodes[node].children.push(child);
            self.nodes[node].latency_ns.push(latency_ns);
        }
        let branches = self.nodes[node].children.len();
        self.nodes[node].removed = vec![false; branches];
        self.nodes[node].machine =
            Acknowledgements::new(&self.rules, branches as u16, Start::Committed(self.source.initial));
        receivers
    }

    fn misfortunes(&mut self) {
        let mut spared = None;
        if self.faults.fatal {
            let receiver = self.random.below(self.receivers.len() as u64) as usize;
            self.receivers[receiver].fails_at = Some(self.random.below(self.source.total));
            // A receiver says once that it has failed. An edge node that forgets it has a silent receiver: no failure
            // here.
            spared = Some(self.edges[receiver].0);
        }
        for _ in 0..self.faults.restarts {
            let node = self.random.below(self.nodes.len() as u64) as usize;
            let at = self.random.below(self.clean_at_ns);
            if spared != Some(node) {
                self.schedule(at, Event::Restart { node });
            }
        }
        if self.faults.removal {
            let receiver = self.random.below(self.receivers.len() as u64) as usize;
            let falls = self.random.below(self.clean_at_ns);
            self.schedule(falls, Event::Falls { receiver });
            let removed = self.random.between(falls, self.clean_at_ns);
            self.schedule(removed, Event::Remove { receiver });
        }
    }

    /// Runs to the end of the source's work.
    pub(crate) fn run(mut self) -> Outcome {
        self.schedule(0, Event::SourceSends);
        while !self.source.is_done() && !self.is_deserted() {
            if !self.step() {
                self.outcome.stuck = true;
                break;
            }
        }
        Outcome {
            acks: self.source.acks,
            naks: self.source.naks,
            sent: self.source.sent,
            requests: self.source.requests,
            total: self.source.total,
            receiver_acks: self.receivers.iter().map(|receiver| receiver.acks).sum(),
            most_retries: self.source.most_retries,
            failed: self.source.failed,
            deserted: self.is_deserted(),
            ..self.outcome
        }
    }

    /// The next thing that happens: an event, a node's deadline or the source's timers. False when it is stuck.
    fn step(&mut self) -> bool {
        let event_at = self.events.peek().map_or(u64::MAX, |Reverse((at, _, _))| *at);
        let deadlines = self.nodes.iter().map(|node| node.machine.next_deadline().map_or(u64::MAX, Instant::as_ns));
        let (node, tick_at) = deadlines.enumerate().min_by_key(|&(_, at)| at).unwrap_or((0, u64::MAX));
        let source_at = self.source.waits_until_ns.unwrap_or(self.source.timeout_at_ns);
        self.now_ns = self.now_ns.max(event_at.min(tick_at).min(source_at));
        if self.now_ns > self.progress_at_ns.max(self.clean_at_ns) + STUCK_NS {
            return false;
        }
        if tick_at <= self.now_ns {
            let mut out = Vec::new();
            self.nodes[node].machine.tick(Instant::from_ns(self.now_ns), &mut out);
            self.send_up(node, out);
        } else if source_at <= self.now_ns {
            self.source_timer();
        } else if let Some(Reverse((_, _, event))) = self.events.pop() {
            self.happen(event);
        }
        true
    }

    fn source_timer(&mut self) {
        if self.source.waits_until_ns.take().is_some() {
            self.source.timeout_at_ns = self.now_ns + TIMEOUT_NS;
        } else {
            self.outcome.timeouts_when_clean += u64::from(self.now_ns > self.clean_at_ns);
            self.source.time_out(self.now_ns);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::SourceSends => {
                if let Some((packet, ack_request)) = self.source.send() {
                    self.transmit(1_000, Event::DataAtNode { node: 0, packet, ack_request });
                }
                self.schedule(self.now_ns + SPACING_NS, Event::SourceSends);
            }
            Event::DataAtNode { node, packet, ack_request } => self.data_at_node(node, packet, ack_request),
            Event::DataAtReceiver { receiver, packet, ack_request } => {
                self.data_at_receiver(receiver, packet, ack_request);
            }
            Event::ResponseAtNode { node, branch, response } => {
                let mut out = Vec::new();
                let (now, response) = (Instant::from_ns(self.now_ns), self.responses[response]);
                // A refusal is the machine's business: what matters is what it sends.
                let _refused = self.nodes[node].machine.response(now, BranchIndex(branch), response, &mut out);
                self.send_up(node, out);
            }
            Event::ResponseAtSource { response } => self.response_at_source(self.responses[response]),
            Event::Restart { node } => self.restart(node),
            Event::Falls { receiver } => self.receivers[receiver].dead = true,
            Event::Remove { receiver } => {
                let (node, branch) = self.edges[receiver];
                self.remove(node, BranchIndex(branch));
            }
        }
    }

    fn data_at_node(&mut self, node: usize, packet: u64, ack_request: bool) {
        let psn = self.source.psn(packet);
        let mut out = Vec::new();
        self.nodes[node].machine.data(Instant::from_ns(self.now_ns), psn, ack_request, &mut out);
        self.send_up(node, out);
        for branch in 0..self.nodes[node].children.len() {
            let parent = &self.nodes[node];
            let edge = matches!(parent.children[branch], Child::Receiver(_));
            if parent.removed[branch] || (edge && parent.machine.withholds(BranchIndex(branch as u16), psn)) {
                continue;
            }
            let event = match parent.children[branch] {
                Child::Node(node) => Event::DataAtNode { node, packet, ack_request },
                Child::Receiver(receiver) => Event::DataAtReceiver { receiver, packet, ack_request },
            };
            self.transmit(parent.latency_ns[branch], event);
        }
    }

    fn data_at_receiver(&mut self, receiver: usize, packet: u64, ack_request: bool) {
        if self.now_ns > self.clean_at_ns {
            self.receivers[receiver].unready_per_mille = 0;
        }
        if let Some((packet, answer)) = self.receivers[receiver].receive(&mut self.random, packet, ack_request) {
            let psn = self.source.initial.plus((packet & 0xFF_FFFF) as u32);
            let (node, branch) = self.edges[receiver];
            let response = self.remember(Response { psn, msn: 0, answer });
            let latency_ns = self.nodes[node].latency_ns[usize::from(branch)];
            let event = Event::ResponseAtNode { node, branch, response };
            match answer {
                // Said once only, so not lost here: the receiver would just be silent.
                Answer::Fatal(_) => self.schedule(self.now_ns + latency_ns, event),
                Answer::Ack | Answer::SequenceNak | Answer::RnrNak(_) => self.transmit(latency_ns, event),
            }
        }
    }

    /// MT-5.3.1-1 and MT-5.3.2-1: whatever the response says is confirmed, every receiver has.
    fn response_at_source(&mut self, response: Response) {
        let completed = self.source.completed;
        let believed = self.source.receive(self.now_ns, response);
        if self.source.completed > completed {
            self.progress_at_ns = self.now_ns;
        }
        let confirmed = (0..self.receivers.len()).filter(|&receiver| !self.is_removed(receiver));
        let least = confirmed.map(|receiver| self.receivers[receiver].expected).min();
        self.outcome.unsafe_responses += u64::from(least.is_some_and(|least| believed > least));
    }

    fn is_deserted(&self) -> bool {
        self.nodes[0].removed.iter().all(|&removed| removed)
    }

    fn is_removed(&self, receiver: usize) -> bool {
        let (node, branch) = self.edges[receiver];
        self.nodes[node].removed[usize::from(branch)]
    }

    /// The node forgets all traffic; its branches, and which were removed, are in the committed record (D17).
    fn restart(&mut self, node: usize) {
        let newest = self.source.psn(self.source.fresh);
        let start = if self.faults.pretending { Start::Committed(newest) } else { Start::Unknown };
        let node = &mut self.nodes[node];
        node.machine = Acknowledgements::new(&self.rules, node.children.len() as u16, start);
        for branch in (0..).zip(&node.removed).filter(|&(_, &removed)| removed).map(|(branch, _)| branch) {
            node.machine.remove_branch(BranchIndex(branch), &mut Vec::new());
        }
    }

    /// R7; and a node left without branches is removed at its parent.
    fn remove(&mut self, node: usize, branch: BranchIndex) {
        let mut out = Vec::new();
        self.nodes[node].removed[branch.index()] = true;
        self.nodes[node].machine.remove_branch(branch, &mut out);
        self.send_up(node, out);
        if let (true, Some((parent, branch))) =
            (self.nodes[node].removed.iter().all(|&removed| removed), self.nodes[node].parent)
        {
            self.remove(parent, branch);
        }
    }

    fn send_up(&mut self, node: usize, out: Vec<Statement>) {
        for Statement { response, .. } in out {
            let response = self.remember(response);
            let event = match self.nodes[node].parent {
                Some((parent, branch)) => Event::ResponseAtNode { node: parent, branch: branch.0, response },
                None => Event::ResponseAtSource { response },
            };
            self.transmit(self.latency_above_ns(node), event);
        }
    }

    fn remember(&mut self, response: Response) -> usize {
        self.responses.push(response);
        self.responses.len() - 1
    }

    /// The latency of the link above a node.
    fn latency_above_ns(&self, node: usize) -> u64 {
        self.nodes[node].parent.map_or(1_000, |(parent, branch)| self.nodes[parent].latency_ns[branch.index()])
    }

    /// Over a link: lost, twice or late while the links are not clean.
    fn transmit(&mut self, latency_ns: u64, event: Event) {
        let clean = self.now_ns > self.clean_at_ns;
        if !clean && self.random.happens(self.faults.loss_per_mille) {
            return;
        }
        let copies = 1 + u64::from(!clean && self.random.happens(self.faults.duplicate_per_mille));
        for _ in 0..copies {
            let late = !clean && self.random.happens(self.faults.reorder_per_mille);
            let extra_ns = if late { self.random.between(100, 100_000) } else { 0 };
            self.schedule(self.now_ns + latency_ns + extra_ns, event);
        }
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at_ns, self.scheduled, event)));
    }
}
