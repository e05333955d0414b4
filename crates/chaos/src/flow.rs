//! One group of a chaos test: its source, its members, and the check of each response to the source.

mod record;

use crate::address;
use crate::outcome::{GroupOutcome, Step, StepKind, Violation, ViolationKind};
use crate::schedule::{GroupPlan, Insider, MAX_REGIONS, OperationPlan, PATH_MTU, PATH_MTU_OCTETS, Schedule};
use crate::testbed::Testbed;
use srdma_group::{Join, PsnOffset};
use srdma_random::Stream;
use srdma_rc::{Completion, Habits, MemoryKey, QueuePairConfig, RemoteAddress, Status};
use srdma_sim::invariants::{Checker, Layout, Response};
use srdma_sim::network::{ElementId, Network};
use srdma_sim::node_or_host::NodeOrHost;
use srdma_sim::program::{MessageOperation, ReceiveStream, SendStream};
use srdma_sim::replica::{Replica, Stripe};
use srdma_sim::retransmission::Retransmission;
use srdma_sim::timing::Timing;
use srdma_wire::{Instant, Psn, Qpn, Syndrome};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// Minimum interval between CNPs of a receiver.
const CNP_INTERVAL_NS: u64 = 5_000;

/// Timer code of RNR NAKs: 30 µs.
const MIN_RNR_TIMER: u8 = 3;

/// A receiver as a member of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Participant {
    pub(crate) receiver: usize,
    pub(crate) qpn: Qpn,
    /// Of its memory for each region of the group; the others are those of no memory.
    keys: [MemoryKey; MAX_REGIONS as usize],
    /// Offset of the first octet that it receives: 0, or the octets before its join point J.
    begins_octets: u64,
    joined: Option<Join>,
    /// Distance of its queue pair's PSNs from the group's.
    pub(crate) psn_offset: PsnOffset,
}

pub(crate) struct Flow<'s> {
    pub(crate) plan: &'s GroupPlan,
    number: usize,
    timing: Timing,
    retransmission: Retransmission,
    layout: Layout,
    data: Arc<Vec<u8>>,
    source: ElementId,
    proxy: Ipv6Addr,
    pub(crate) qpn: Qpn,
    /// Members in the stored record.
    pub(crate) members: Vec<Participant>,
    /// Those that have sent untrue responses for the group.
    pub(crate) insiders: BTreeSet<Insider>,
    /// The receivers that are or were behind one of them.
    pub(crate) deceived: BTreeSet<usize>,
    /// Members that have left or were evicted.
    former: Vec<Participant>,
    /// Number of queue pairs that each receiver has had in this group.
    queue_pairs: Vec<usize>,
    /// Members that have failed permanently.
    pub(crate) failed: Vec<usize>,
    checker: Checker,
    /// Offset of the message whose completion is expected next.
    next_wr_id: u64,
    acks_received: u64,
    naks_received: u64,
    pub(crate) completed_at: Option<Instant>,
    pub(crate) failure: Option<(Instant, Status)>,
    /// Time of the source's last progress.
    pub(crate) progress_at: Instant,
    pub(crate) recoveries_ns: Vec<u64>,
    pub(crate) steps: Vec<Step>,
}

/// Result of checking what a source received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) violations: Vec<Violation>,
    /// Whether the source made progress.
    pub(crate) progress: bool,
}

impl<'s> Flow<'s> {
    /// Sets up the source and the initial members.
    pub(crate) fn new(
        schedule: &'s Schedule,
        number: usize,
        timing: Timing,
        testbed: &Testbed,
        network: &mut Network<NodeOrHost>,
    ) -> Result<Self, srdma_rc::ConfigError> {
        let plan = &schedule.groups[number];
        let mut data = vec![0; plan.octets as usize];
        Stream::new(schedule.seed, &format!("data {number}")).fill(&mut data);
        let layout = Layout {
            size_octets: plan.octets,
            message_octets: plan.message_octets,
            path_mtu_octets: PATH_MTU_OCTETS,
            first_psn: Psn::new(plan.first_psn),
        };
        let mut flow = Flow {
            plan,
            number,
            timing,
            retransmission: schedule.retransmission,
            layout,
            data: Arc::new(data),
            source: testbed.sources[plan.source],
            proxy: testbed.proxy(number),
            qpn: address::source_qpn(number),
            members: Vec::new(),
            insiders: BTreeSet::new(),
            deceived: BTreeSet::new(),
            former: Vec::new(),
            queue_pairs: vec![0; schedule.receivers.len()],
            failed: Vec::new(),
            checker: Checker::new(layout),
            next_wr_id: 0,
            acks_received: 0,
            naks_received: 0,
            completed_at: None,
            failure: None,
            progress_at: Instant::ZERO,
            recoveries_ns: Vec::new(),
            steps: Vec::new(),
        };
        flow.add_source(network)?;
        for receiver in &plan.members {
            let participant = flow.register_memory(*receiver, testbed, network);
            flow.members.push(flow.connect(participant, None, testbed, network)?);
        }
        Ok(flow)
    }

    fn queue_pair(&self, qpn: Qpn, first_psn: Psn, habits: Habits) -> QueuePairConfig {
        let per_message = u64::from(self.plan.message_octets).div_ceil(u64::from(PATH_MTU_OCTETS));
        // Just enough messages to fill the window, so that a pause begins soon (D30).
        let messages = 1 + u64::from(self.timing.window_packets).div_ceil(per_message) as usize;
        QueuePairConfig {
            sq_psn: first_psn,
            rq_psn: first_psn,
            path_mtu: PATH_MTU,
            ack_timeout: self.timing.ack_timeout,
            min_rnr_timer: MIN_RNR_TIMER,
            send_queue_depth: messages,
            receive_queue_depth: messages,
            cnp_interval_ns: Some(CNP_INTERVAL_NS),
            habits: Habits { retry_count_7_is_unlimited: self.plan.unlimited_retries, ..habits },
            ..QueuePairConfig::new(qpn, self.proxy, address::designated_qpn(self.number))
        }
    }

    fn add_source(&self, network: &mut Network<NodeOrHost>) -> Result<(), srdma_rc::ConfigError> {
        let (virtual_address, rkey) = address::group_region(self.number);
        let remote = RemoteAddress { virtual_address, rkey };
        let operation = match (self.plan.operation, self.plan.regions) {
            (OperationPlan::Write, 1) => MessageOperation::Write { remote },
            (OperationPlan::Write, regions) => {
                MessageOperation::WriteInTurn { remote, regions: regions.into(), stride: address::REGION_STRIDE }
            }
            (OperationPlan::Send, _) => MessageOperation::Send,
        };
        let (qpn, plan) = (self.qpn, self.plan);
        let config = self.queue_pair(qpn, self.layout.first_psn, self.retransmission.at_source(self.timing.habits()));
        let added = network.with_host(self.source, |host| {
            host.add_queue_pair(config)?;
            let region = host.add_region(Replica::of_source(Arc::clone(&self.data)), 0, 0);
            host.observe_responses();
            host.observe_completions();
            host.add_send_stream(SendStream::new(qpn, region, plan.octets, plan.message_octets, operation).paused());
            Ok(())
        });
        added.unwrap_or(Ok(()))
    }

    /// What a receiver's region holds that nothing was written to before `offset`: all of the source's data, or the
    /// messages that go to it.
    fn replica(&self, region: usize, offset: u64) -> Replica {
        let replica = Replica::beginning_at(Arc::clone(&self.data), offset);
        match self.plan.regions {
            1 => replica,
            of => replica.striped(Stripe {
                piece_octets: self.plan.message_octets as usize,
                position: region,
                of: of.into(),
            }),
        }
    }

    /// Registers a receiver's memory regions.
    pub(crate) fn register_memory(
        &mut self,
        receiver: usize,
        testbed: &Testbed,
        network: &mut Network<NodeOrHost>,
    ) -> Participant {
        let qpn = address::receiver_qpn(self.number, receiver, self.queue_pairs[receiver]);
        self.queue_pairs[receiver] += 1;
        // Keys differ between receivers, as those of real hosts do.
        let tag = receiver as u8;
        let mut keys = [MemoryKey(0); MAX_REGIONS as usize];
        for (region, key) in keys.iter_mut().take(self.plan.regions.into()).enumerate() {
            let base = address::receiver_base(self.number, receiver, region);
            let replica = self.replica(region, 0);
            let added = network.with_host(testbed.receivers[receiver], |host| host.add_region(replica, base, tag));
            *key = added.unwrap_or(MemoryKey(0));
        }
        Participant { receiver, qpn, keys, begins_octets: 0, joined: None, psn_offset: self.psn_offset(qpn) }
    }

    /// Creates a receiver's queue pair, which begins at its join point.
    pub(crate) fn connect(
        &self,
        participant: Participant,
        joined: Option<Join>,
        testbed: &Testbed,
        network: &mut Network<NodeOrHost>,
    ) -> Result<Participant, srdma_rc::ConfigError> {
        let (first_psn, begins_octets) = match joined {
            None => (self.layout.first_psn, 0),
            Some(join) => (join.psn, u64::from(join.msn) * u64::from(self.plan.message_octets)),
        };
        let begins_octets = begins_octets.min(self.plan.octets);
        let Participant { receiver, qpn, keys, psn_offset, .. } = participant;
        let habits = self.retransmission.at_receiver(receiver, self.timing.habits());
        let config = self.queue_pair(qpn, psn_offset.of_receiver(first_psn), habits);
        let plan = self.plan;
        let added = network.with_host(testbed.receivers[receiver], |host| {
            host.add_queue_pair(config)?;
            for (region, key) in keys.iter().take(plan.regions.into()).enumerate() {
                host.replace_region(*key, self.replica(region, begins_octets));
            }
            if plan.operation == OperationPlan::Send {
                let stream = ReceiveStream::new(qpn, keys[0], plan.octets, plan.message_octets);
                host.add_receive_stream(stream.beginning_at(begins_octets));
                host.start();
            }
            Ok(())
        });
        added.unwrap_or(Ok(()))?;
        Ok(Participant { begins_octets, joined, ..participant })
    }

    /// The source's ACK timeout, in nanoseconds.
    pub(crate) fn ack_timeout_ns(&self) -> u64 {
        4096 << self.timing.ack_timeout
    }

    /// Whether the group is complete or has failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.completed_at.is_some() || self.failure.is_some()
    }

    /// Pauses the source at the end of a message, or resumes it (D30).
    pub(crate) fn pause(&self, network: &mut Network<NodeOrHost>, is_paused: bool) {
        network.with_host(self.source, |host| host.pause(self.qpn, is_paused));
    }

    /// The join point J of a receiver that joins now; `None` while packets are outstanding (D30).
    pub(crate) fn join_point(&self, network: &Network<NodeOrHost>) -> Option<Join> {
        let stream = network.host(self.source)?.send_streams().iter().find(|stream| stream.qpn() == self.qpn)?;
        stream.is_quiescent().then(|| {
            let octets = stream.posted_octets();
            let packets = self.layout.packets_before(octets);
            Join {
                psn: self.layout.first_psn.plus((packets & 0xFF_FFFF) as u32),
                msn: octets.div_ceil(u64::from(self.plan.message_octets)) as u32 & 0xFF_FFFF,
            }
        })
    }

    /// The next new PSN of the source.
    pub(crate) fn next_psn(&self, network: &Network<NodeOrHost>) -> Psn {
        let counters = network.host(self.source).and_then(|host| host.counters(self.qpn));
        let new = counters.map_or(0, |counters| counters.packets_sent - counters.packets_retransmitted);
        self.layout.first_psn.plus((new & 0xFF_FFFF) as u32)
    }

    /// Applies a stored record: members that `keep` rejects have left, `newcomers` have joined. Returns the former.
    pub(crate) fn change_members(&mut self, keep: impl Fn(usize) -> bool, newcomers: &[Participant]) -> Vec<usize> {
        let (stay, gone) = self.members.drain(..).partition(|member| keep(member.receiver));
        self.members = stay;
        let gone: Vec<Participant> = gone;
        self.former.extend(&gone);
        self.members.extend(newcomers);
        self.checker.change_receivers();
        gone.iter().map(|member| member.receiver).collect()
    }

    /// Checks a response that has reached the source (MT-5.3.1-1, MT-5.3.2-1).
    pub(crate) fn on_response(
        &mut self,
        response: Response,
        testbed: &Testbed,
        network: &Network<NodeOrHost>,
        observed: &mut Observed,
    ) {
        match response.syndrome {
            Syndrome::Ack(_) => self.acks_received += 1,
            Syndrome::RnrNak(_) | Syndrome::Nak(_) | Syndrome::Reserved(_) => self.naks_received += 1,
        }
        let now = network.now();
        let (violations, confirmed) = (self.checker.violations(), self.checker.confirmed_packets());
        let honest = self.members.iter().filter(|member| !self.deceived.contains(&member.receiver));
        if !self.deceived.is_empty() && honest.clone().next().is_none() {
            return;
        }
        let regions = self.plan.regions;
        let there = honest.map(|member| octets_of(member, regions, testbed, network));
        self.checker.check(now.as_ns(), response, there);
        if self.checker.violations() > violations {
            let text = self.checker.first().map(ToString::to_string).unwrap_or_default();
            self.violation(observed, now, ViolationKind::Safety, &text);
        }
        if self.checker.confirmed_packets() > confirmed {
            self.progress_at = now;
            observed.progress = true;
            self.note(now, StepKind::Progress);
        }
    }

    /// Records a step unless it repeats a known one.
    pub(crate) fn note(&mut self, now: Instant, kind: StepKind) {
        let is_known = match kind {
            StepKind::Progress => self.steps.last().is_some_and(|last| last.kind == kind),
            StepKind::EvictionRequested(_) => self.steps.iter().any(|step| step.kind == kind),
            StepKind::NodeRestarted(_)
            | StepKind::GroupApplied(_)
            | StepKind::ReceiverDied(_)
            | StepKind::SentToDeadReceiver(_) => false,
        };
        if !is_known {
            self.steps.push(Step { at_ns: now.as_ns(), kind });
        }
    }

    /// Checks a completion of the source: each work request completes once and in order.
    pub(crate) fn on_completion(&mut self, completion: &Completion, now: Instant, observed: &mut Observed) {
        if completion.wr_id != self.next_wr_id {
            let text = format!("message {} completed, expected {}", completion.wr_id, self.next_wr_id);
            self.violation(observed, now, ViolationKind::WrongData, &text);
        }
        self.next_wr_id = completion.wr_id + u64::from(self.plan.message_octets);
        match (completion.status, self.failure) {
            (Status::Success, None) => {
                if self.next_wr_id >= self.plan.octets {
                    self.completed_at = Some(now);
                }
            }
            (Status::Success, Some((_, status))) => {
                let text = format!("message {} completed after {status:?}", completion.wr_id);
                self.violation(observed, now, ViolationKind::WrongData, &text);
            }
            (status, None) => self.failure = Some((now, status)),
            (_, Some(_)) => {}
        }
    }

    fn violation(&self, observed: &mut Observed, now: Instant, kind: ViolationKind, text: &str) {
        let text = format!("group {}: {text}", self.number);
        observed.violations.push(Violation { at_ns: now.as_ns(), kind, text });
    }

    /// Checks the final data: members of a complete group have all of it, and no memory holds anything else.
    pub(crate) fn check_data(&self, testbed: &Testbed, network: &Network<NodeOrHost>, observed: &mut Observed) {
        let now = network.now();
        for member in self.members.iter().chain(&self.former) {
            let receiver = member.receiver;
            for replica in replicas_of(member, self.plan.regions, testbed, network) {
                if !replica.agrees_from(member.begins_octets) {
                    let text = format!("receiver {receiver} has octets that differ from the source's");
                    self.violation(observed, now, ViolationKind::WrongData, &text);
                } else if replica.wrong_writes() > 0 {
                    let text = format!("receiver {receiver} had octets that differed from the source's");
                    self.violation(observed, now, ViolationKind::WrongData, &text);
                }
            }
        }
        if self.completed_at.is_some() {
            for member in self.members.iter().filter(|member| !self.deceived.contains(&member.receiver)) {
                let octets = octets_of(member, self.plan.regions, testbed, network);
                if octets != self.plan.octets {
                    let text = format!("complete, but receiver {} has only {octets} octets", member.receiver);
                    self.violation(observed, now, ViolationKind::WrongData, &text);
                }
            }
        }
    }

    /// Number of members that lack data of a complete group, since an insider acknowledged them.
    pub(crate) fn members_deceived(&self, testbed: &Testbed, network: &Network<NodeOrHost>) -> u64 {
        let lacks = |member: &&Participant| octets_of(member, self.plan.regions, testbed, network) < self.plan.octets;
        let is_complete = self.completed_at.is_some();
        let deceived = self.members.iter().filter(|member| is_complete && self.deceived.contains(&member.receiver));
        deceived.filter(lacks).count() as u64
    }

    pub(crate) fn outcome(&self, network: &Network<NodeOrHost>) -> GroupOutcome {
        let counters = network.host(self.source).and_then(|host| host.counters(self.qpn)).copied().unwrap_or_default();
        GroupOutcome {
            completed_ns: self.completed_at.map(Instant::as_ns),
            failure: self.failure.map(|(_, status)| format!("{status:?}")),
            ack_timeout_ns: self.ack_timeout_ns(),
            recoveries_ns: self.recoveries_ns.clone(),
            steps: self.steps.clone(),
            packets_sent: counters.packets_sent,
            packets_retransmitted: counters.packets_retransmitted,
            timeouts: counters.timeouts,
            acks_received: self.acks_received,
            naks_received: self.naks_received,
            cnps_received: counters.cnps_received,
        }
    }
}

/// The memory of a member for each of so many regions.
fn replicas_of<'n>(
    member: &Participant,
    regions: u8,
    testbed: &Testbed,
    network: &'n Network<NodeOrHost>,
) -> impl Iterator<Item = &'n Replica> {
    let host = network.host(testbed.receivers[member.receiver]);
    member.keys.into_iter().take(regions.into()).filter_map(move |key| host?.region(key))
}

/// Octets from the start that a member has, in whatever regions.
fn octets_of(member: &Participant, regions: u8, testbed: &Testbed, network: &Network<NodeOrHost>) -> u64 {
    replicas_of(member, regions, testbed, network).map(Replica::complete_octets).min().unwrap_or(0)
}
