//! A multicast tree whose nodes hold nothing but the aggregation machines, links that fail, and the two invariants
//! checked at every response that reaches the source.

use super::control::Control;
use super::endpoints::{Receiver, ReceiverHabit, Source, SourceHabit, TIMEOUT_NS};
use super::record::{Branch, Change, Child, Part, Record};
use srdma_aggregation::{Acknowledgements, EpochTag, Origin, Response, Rules, Syndrome, UpstreamResponse};
use srdma_testkit::random::Random;
use srdma_wire::{Instant, Psn};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Faults of a run until the links are made perfect.
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
    /// Changes of membership: receivers leave and join, receivers and nodes get other parents (D25, D30).
    pub(crate) changes: u64,
    /// A node dies, and what hung on it gets another parent.
    pub(crate) death: bool,
    /// A node that restarts treats its branches as known: wrong on purpose, to see the checks find it.
    pub(crate) pretending: bool,
    /// Nodes accept responses that a child sent before it was renewed: wrong on purpose.
    pub(crate) credulous: bool,
    /// Nodes on the old path of what moves commit when they like: wrong on purpose.
    pub(crate) disorderly: bool,
}

/// Results of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// An acknowledgement of what a receiver does not have.
    pub(crate) unsafe_responses: u64,
    /// Something from before J was sent to a receiver that joined at J and has confirmed nothing yet (D30).
    pub(crate) sent_before_join: u64,
    /// Evictions that were requested, and those of receivers that were not stalled (D25).
    pub(crate) evictions: u64,
    pub(crate) false_evictions: u64,
    /// Changes of membership that took effect everywhere.
    pub(crate) changes: u64,
    /// Responses of old epochs that were rejected.
    pub(crate) old_epochs: u64,
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

pub(crate) struct Node {
    pub(crate) machine: Option<Acknowledgements>,
    pub(crate) entry: Part,
    pub(crate) epoch: u32,
    pub(crate) is_dead: bool,
    /// How long the link above takes.
    latency_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    SourceSends,
    DataAtNode { node: usize, packet: u64, ack_request: bool },
    DataAtReceiver { receiver: usize, packet: u64, ack_request: bool },
    ResponseAtNode { node: usize, from: Child, response: usize, epoch: u32 },
    ResponseAtSource { response: usize },
    Restart { node: usize },
    Falls { receiver: usize },
    Dies { node: usize },
    Rescue { node: usize },
    Requested(Change),
    Commit { node: usize },
}

pub(crate) struct Tree {
    pub(crate) rules: Rules,
    pub(crate) faults: Faults,
    pub(crate) random: Random,
    pub(crate) now_ns: u64,
    pub(crate) clean_at_ns: u64,
    /// When the source last completed something.
    pub(crate) progress_at_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    /// Responses on their way, by number.
    responses: Vec<Response>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) control: Control,
    pub(crate) source: Source,
    pub(crate) outcome: Outcome,
}

pub(crate) const NEVER_NS: u64 = Instant::NEVER.as_ns();
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
            control: Control::new(seed),
            source,
            outcome: Outcome::default(),
            random,
        };
        let levels = tree.random.between(1, 3);
        tree.grow(levels, None, 6);
        let entries = tree.nodes.iter().map(|node| node.entry.clone()).collect();
        tree.control.record = Record { epoch: 1, entries };
        tree.misfortunes();
        tree
    }

    /// Adds a node and what is below it; gives the number of receivers below.
    fn grow(&mut self, levels: u64, parent: Option<usize>, most: u64) -> u64 {
        let node = self.add_node(parent, 1_000);
        let wanted = self.random.between(1, 3);
        let mut receivers = 0;
        for _ in 0..wanted {
            if receivers == most {
                break;
            }
            let child = if levels > 1 && self.random.happens(700) {
                let child = self.nodes.len();
                receivers += self.grow(levels - 1, Some(node), (most - receivers).min(3));
                Child::Node(child)
            } else {
                receivers += 1;
                Child::Receiver(self.add_receiver())
            };
            let latency_ns = self.random.one_of(&[1_000, 1_000, 1_000, 20_000, 200_000]);
            match child {
                Child::Node(child) => self.nodes[child].latency_ns = latency_ns,
                Child::Receiver(child) => self.receivers[child].latency_ns = latency_ns,
            }
            self.nodes[node].entry.branches.push(Branch { child, joined: None, renewed: 0 });
        }
        let origins = self.nodes[node].entry.origins(None, false, |packet| self.source.psn(packet));
        self.nodes[node].machine = Some(Acknowledgements::of_branches(&self.rules, &origins));
        receivers
    }

    pub(crate) fn add_node(&mut self, parent: Option<usize>, latency_ns: u64) -> usize {
        let entry = Part { parent, ..Part::default() };
        self.nodes.push(Node { machine: None, entry, epoch: 1, is_dead: false, latency_ns });
        self.nodes.len() - 1
    }

    pub(crate) fn add_receiver(&mut self) -> usize {
        let habit = self.random.one_of(&[ReceiverHabit::AcksDuplicates, ReceiverHabit::AcksRequests]);
        self.receivers.push(Receiver::new(habit, self.faults.unready_per_mille));
        self.receivers.len() - 1
    }

    fn misfortunes(&mut self) {
        let mut spared = None;
        if self.faults.fatal {
            let receiver = self.random.below(self.receivers.len() as u64) as usize;
            self.receivers[receiver].fails_at = Some(self.random.below(self.source.total));
            // A receiver reports its failure once. After an edge node has lost the report the receiver is silent: no
            // failure here, unless silence is one.
            spared = self.control.record.holder(Child::Receiver(receiver)).filter(|_| self.rules.evict.is_none());
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
            if self.rules.evict.is_none() {
                let removed = self.random.between(falls, self.clean_at_ns);
                self.schedule(removed, Event::Requested(Change::Evict(receiver)));
            }
        }
        self.plan_changes();
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
        let event_at = self.events.peek().map_or(NEVER_NS, |Reverse((at, _, _))| *at);
        let of_node = |node: &Node| node.machine.as_ref().filter(|_| !node.is_dead)?.next_deadline();
        let deadlines = self.nodes.iter().map(|node| of_node(node).map_or(NEVER_NS, Instant::as_ns));
        let (node, tick_at) = deadlines.enumerate().min_by_key(|&(_, at)| at).unwrap_or((0, NEVER_NS));
        let source_at = self.source.waits_until_ns.unwrap_or(self.source.timeout_at_ns);
        self.now_ns = self.now_ns.max(event_at.min(tick_at).min(source_at));
        if self.now_ns > self.progress_at_ns.max(self.clean_at_ns) + STUCK_NS {
            return false;
        }
        if tick_at <= self.now_ns {
            let (mut out, now) = (Vec::new(), Instant::from_ns(self.now_ns));
            self.nodes[node].machine.iter_mut().for_each(|machine| machine.tick(now, &mut out));
            self.send_up(node, out);
            self.take_eviction_requests(node);
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
            Event::ResponseAtNode { node, from, response, epoch } => {
                self.response_at_node(node, from, self.responses[response], epoch);
            }
            Event::ResponseAtSource { response } => self.response_at_source(self.responses[response]),
            Event::Restart { node } => self.restart(node),
            Event::Falls { receiver } => self.receivers[receiver].dead = true,
            Event::Dies { node } => self.dies(node),
            Event::Rescue { node } => self.rescue(node),
            Event::Requested(change) => self.asked(change),
            Event::Commit { node } => self.commit(node),
        }
    }

    fn data_at_node(&mut self, node: usize, packet: u64, ack_request: bool) {
        let (psn, now) = (self.source.psn(packet), Instant::from_ns(self.now_ns));
        let mut out = Vec::new();
        let Node { machine: Some(machine), is_dead: false, .. } = &mut self.nodes[node] else {
            return;
        };
        machine.data(now, psn, ack_request, &mut out);
        self.send_up(node, out);
        for index in 0..self.nodes[node].entry.branches.len() {
            let branch = self.nodes[node].entry.branches[index];
            match branch.child {
                Child::Node(node) => {
                    self.transmit(self.nodes[node].latency_ns, Event::DataAtNode { node, packet, ack_request });
                }
                Child::Receiver(receiver) if !self.is_withheld(node, branch, packet) => {
                    self.receivers[receiver].sendings.push((node, packet, self.now_ns));
                    let event = Event::DataAtReceiver { receiver, packet, ack_request };
                    self.transmit(self.receivers[receiver].latency_ns, event);
                }
                Child::Receiver(_) => {}
            }
        }
        self.take_eviction_requests(node);
    }

    /// D22, D30: copies that an edge does not make.
    fn is_withheld(&self, node: usize, branch: Branch, packet: u64) -> bool {
        let Node { machine: Some(machine), entry, .. } = &self.nodes[node] else {
            return false;
        };
        let Some(index) = entry.branch_of(branch.child) else {
            return false;
        };
        let expected = machine.expected_psn(index);
        let is_before_join = branch.joined.is_some_and(|joined| {
            packet < joined && !expected.is_some_and(|expected| expected.is_after(self.source.psn(joined)))
        });
        is_before_join || machine.withholds(index, self.source.psn(packet))
    }

    fn data_at_receiver(&mut self, receiver: usize, packet: u64, ack_request: bool) {
        if self.now_ns > self.clean_at_ns {
            self.receivers[receiver].unready_per_mille = 0;
        }
        if self.receivers[receiver]
            .joined_at
            .is_some_and(|joined| packet < joined && self.receivers[receiver].expected == joined)
        {
            self.outcome.sent_before_join += 1;
        }
        let syndrome = self.receivers[receiver].receive(&mut self.random, packet, ack_request);
        let node =
            (0..self.nodes.len()).find(|&node| self.nodes[node].entry.branch_of(Child::Receiver(receiver)).is_some());
        if let (Some((packet, syndrome)), Some(node)) = (syndrome, node) {
            let psn = self.source.initial.plus((packet & 0xFF_FFFF) as u32);
            let response = self.remember(Response { psn, msn: 0, syndrome });
            let latency_ns = self.receivers[receiver].latency_ns;
            let event = Event::ResponseAtNode { node, from: Child::Receiver(receiver), response, epoch: 0 };
            match syndrome {
                // Sent once only, so not lost here: the receiver would just be silent.
                Syndrome::Fatal(_) => self.schedule(self.now_ns + latency_ns, event),
                Syndrome::Ack | Syndrome::SequenceNak | Syndrome::RnrNak(_) => self.transmit(latency_ns, event),
            }
        }
    }

    fn response_at_node(&mut self, node: usize, from: Child, response: Response, epoch: u32) {
        let is_dead = self.nodes[node].is_dead;
        let Node { machine: Some(machine), entry, epoch: own_epoch, .. } = &mut self.nodes[node] else {
            return;
        };
        let Some(branch) = entry.branch_of(from).filter(|_| !is_dead) else {
            return;
        };
        let renewed = entry.branches[branch.index()].renewed;
        if matches!(from, Child::Node(_))
            && EpochTag::of(epoch).is_before(renewed, *own_epoch)
            && !self.faults.credulous
        {
            self.outcome.old_epochs += 1;
            return;
        }
        let (mut out, before) = (Vec::new(), machine.expected_psn(branch));
        // The machine may refuse it: only the responses that it sends count.
        let _refused = machine.response(Instant::from_ns(self.now_ns), branch, response, &mut out);
        if let (true, Child::Receiver(receiver)) = (machine.expected_psn(branch) != before, from) {
            self.receivers[receiver].progress_at_ns = self.now_ns;
        }
        self.send_up(node, out);
        self.take_eviction_requests(node);
    }

    /// MT-5.3.1-1 and MT-5.3.2-1: every receiver has all data that the response confirms.
    fn response_at_source(&mut self, response: Response) {
        let completed = self.source.completed;
        let believed = self.source.receive(self.now_ns, response);
        if self.source.completed > completed {
            self.progress_at_ns = self.now_ns;
        }
        let members = (0..self.receivers.len()).filter(|&receiver| self.control.record.is_member(receiver));
        let least = members.map(|receiver| self.receivers[receiver].expected).min();
        self.outcome.unsafe_responses += u64::from(least.is_some_and(|least| believed > least));
        self.join_when_quiescent();
    }

    fn is_deserted(&self) -> bool {
        self.control.record.entries[0].branches.is_empty()
    }

    /// The node loses its state of all traffic; its group entry is in the committed record (D17).
    fn restart(&mut self, node: usize) {
        let newest = self.source.psn(self.source.fresh);
        let psn = |packet| self.source.psn(packet);
        let mut origins = self.nodes[node].entry.origins(None, true, psn);
        if self.faults.pretending {
            origins.fill(Origin::At(newest));
        }
        for branch in &self.nodes[node].entry.branches {
            if let Child::Receiver(receiver) = branch.child {
                self.receivers[receiver].sendings.clear();
                self.receivers[receiver].progress_at_ns = self.now_ns;
            }
        }
        if self.nodes[node].machine.is_some() {
            self.nodes[node].machine = Some(Acknowledgements::of_branches(&self.rules, &origins));
        }
    }

    /// Sends a node's responses to its current parent, in its current epoch.
    pub(crate) fn send_up(&mut self, node: usize, out: Vec<UpstreamResponse>) {
        let (epoch, parent) = (self.nodes[node].epoch, self.nodes[node].entry.parent);
        for UpstreamResponse { response, .. } in out {
            let response = self.remember(response);
            let event = match parent {
                Some(parent) => Event::ResponseAtNode { node: parent, from: Child::Node(node), response, epoch },
                None => Event::ResponseAtSource { response },
            };
            self.transmit(self.nodes[node].latency_ns, event);
        }
    }

    fn remember(&mut self, response: Response) -> usize {
        self.responses.push(response);
        self.responses.len() - 1
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

    pub(crate) fn schedule(&mut self, at_ns: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at_ns, self.scheduled, event)));
    }
}
