//! One group of a storm: its source, its members, and whether what the source is told is true.

use crate::address;
use crate::outcome::{Complaint, ComplaintKind, GroupOutcome, Step, StepKind};
use crate::schedule::{GroupPlan, ListsPlan, OperationPlan, PATH_MTU_OCTETS, PolicyPlan, Schedule};
use crate::site::{LINK_MTU, Site};
use srdma_group::{
    CnpMode, GroupId, Join, ListMode, NodeIndex, NodeRole, OnFailure, PathMtu, Policy, Receiver, ReceiverRegion,
    Record, Rules, Source, SourceRegion, Tree, TreeError, TreeNode,
};
use srdma_rc::{Completion, Habits, MemoryKey, QueuePairConfig, RemoteAddress, Status};
use srdma_sim::invariants::{Checker, Layout, Response};
use srdma_sim::network::{ElementId, Network};
use srdma_sim::program::{Carriage, Intake, Outgoing};
use srdma_sim::random::Stream;
use srdma_sim::replica::Replica;
use srdma_sim::station::Member;
use srdma_sim::timing::Timing;
use srdma_wire::{Instant, Psn, Qpn, Syndrome};
use std::rc::Rc;
use std::time::Duration;

/// At most one CNP of a receiver in so long.
const CNP_INTERVAL_NS: u64 = 5_000;

/// Timer code of RNR NAKs: 30 µs.
const MIN_RNR_TIMER: u8 = 3;

/// A receiver's part in a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Participant {
    pub(crate) receiver: usize,
    pub(crate) qpn: Qpn,
    key: MemoryKey,
    /// Where its part of the stream begins: 0, or the octets before J.
    begins_octets: u64,
    joined: Option<Join>,
}

/// A group.
pub(crate) struct Flow<'s> {
    pub(crate) plan: &'s GroupPlan,
    number: usize,
    timing: Timing,
    layout: Layout,
    data: Rc<Vec<u8>>,
    source: ElementId,
    pub(crate) qpn: Qpn,
    /// Those of the stored record.
    pub(crate) members: Vec<Participant>,
    /// Those that were members once.
    former: Vec<Participant>,
    /// How many queue pairs each receiver has had here.
    queue_pairs: Vec<usize>,
    /// Members that have failed for good.
    pub(crate) failed: Vec<usize>,
    checker: Checker,
    /// The message whose completion comes next, by its offset.
    next_wr_id: u64,
    acks_received: u64,
    naks_received: u64,
    pub(crate) completed_at: Option<Instant>,
    pub(crate) failure: Option<(Instant, Status)>,
    /// When the source was told of something new last.
    pub(crate) progress_at: Instant,
    pub(crate) recoveries_ns: Vec<u64>,
    pub(crate) steps: Vec<Step>,
}

/// What a look at a source showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) complaints: Vec<Complaint>,
    /// Whether the source was told of something new.
    pub(crate) progress: bool,
}

impl<'s> Flow<'s> {
    /// Sets up the source, and the receivers that are members from the beginning.
    pub(crate) fn new(
        schedule: &'s Schedule,
        number: usize,
        timing: Timing,
        site: &Site,
        network: &mut Network<Member>,
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
            layout,
            data: Rc::new(data),
            source: site.sources[plan.source],
            qpn: address::source_qpn(number),
            members: Vec::new(),
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
        flow.set_up_source(network)?;
        for receiver in &plan.members {
            let participant = flow.enroll(*receiver, site, network);
            flow.members.push(flow.connect(participant, None, site, network)?);
        }
        Ok(flow)
    }

    fn queue_pair(&self, qpn: Qpn, first_psn: Psn) -> QueuePairConfig {
        let per_message = u64::from(self.plan.message_octets).div_ceil(u64::from(PATH_MTU_OCTETS));
        // Enough messages to fill the window, but few, so that a pause begins soon (D30).
        let messages = 1 + u64::from(self.timing.window_packets).div_ceil(per_message) as usize;
        QueuePairConfig {
            sq_psn: first_psn,
            rq_psn: first_psn,
            path_mtu: srdma_rc::PathMtu::Octets1024,
            ack_timeout: self.timing.ack_timeout,
            min_rnr_timer: MIN_RNR_TIMER,
            send_queue_depth: messages,
            receive_queue_depth: messages,
            cnp_interval_ns: Some(CNP_INTERVAL_NS),
            habits: Habits { retry_count_7_is_unlimited: self.plan.unlimited_retries, ..self.timing.habits() },
            ..QueuePairConfig::new(qpn, address::proxy(self.number), address::designated_qpn(self.number))
        }
    }

    fn set_up_source(&self, network: &mut Network<Member>) -> Result<(), srdma_rc::ConfigError> {
        let (virtual_address, rkey) = address::group_region(self.number);
        let carriage = match self.plan.operation {
            OperationPlan::Write => Carriage::Write { remote: RemoteAddress { virtual_address, rkey } },
            OperationPlan::Send => Carriage::Send,
        };
        let (qpn, plan) = (self.qpn, self.plan);
        let config = self.queue_pair(qpn, self.layout.first_psn);
        let added = network.with_host(self.source, |host| {
            host.add_queue_pair(config)?;
            let region = host.add_region(Replica::of_source(Rc::clone(&self.data)), 0, 0);
            host.observe_responses();
            host.observe_completions();
            host.send(Outgoing::new(qpn, region, plan.octets, plan.message_octets, carriage).paused());
            Ok(())
        });
        added.unwrap_or(Ok(()))
    }

    /// Gives a receiver memory.
    pub(crate) fn enroll(&mut self, receiver: usize, site: &Site, network: &mut Network<Member>) -> Participant {
        let qpn = address::receiver_qpn(self.number, receiver, self.queue_pairs[receiver]);
        self.queue_pairs[receiver] += 1;
        let base = address::receiver_base(self.number, receiver);
        let replica = Replica::empty(Rc::clone(&self.data));
        // A key that differs from receiver to receiver, as those of real hosts do.
        let tag = receiver as u8;
        let key = network.with_host(site.receivers[receiver], |host| host.add_region(replica, base, tag));
        Participant { receiver, qpn, key: key.unwrap_or(MemoryKey(0)), begins_octets: 0, joined: None }
    }

    /// Gives a receiver that has memory its queue pair, beginning where it joins.
    pub(crate) fn connect(
        &self,
        participant: Participant,
        joined: Option<Join>,
        site: &Site,
        network: &mut Network<Member>,
    ) -> Result<Participant, srdma_rc::ConfigError> {
        let (first_psn, begins_octets) = match joined {
            None => (self.layout.first_psn, 0),
            Some(join) => (join.psn, u64::from(join.msn) * u64::from(self.plan.message_octets)),
        };
        let begins_octets = begins_octets.min(self.plan.octets);
        let Participant { receiver, qpn, key, .. } = participant;
        let config = self.queue_pair(qpn, first_psn);
        let replica = Replica::beginning_at(Rc::clone(&self.data), begins_octets);
        let plan = self.plan;
        let added = network.with_host(site.receivers[receiver], |host| {
            host.add_queue_pair(config)?;
            host.replace_region(key, replica);
            if plan.operation == OperationPlan::Send {
                let intake = Intake::new(qpn, key, plan.octets, plan.message_octets);
                host.take_in(intake.beginning_at(begins_octets));
                host.start();
            }
            Ok(())
        });
        added.unwrap_or(Ok(()))?;
        Ok(Participant { begins_octets, joined, ..participant })
    }

    /// The record of the group's beginning, as a control plane would commit it.
    pub(crate) fn first_record(&self, schedule: &Schedule, site: &Site) -> Result<Record, TreeError> {
        let mut in_tree = vec![false; schedule.nodes.len()];
        for member in &self.members {
            let mut above = Some(site.edge_of(member.receiver));
            while let Some(node) = above {
                in_tree[node] = true;
                above = schedule.nodes[node].parent;
            }
        }
        let mut positions = vec![NodeIndex(0); schedule.nodes.len()];
        let mut nodes = Vec::new();
        for (node, plan) in schedule.nodes.iter().enumerate().filter(|(node, _)| in_tree[*node]) {
            positions[node] = NodeIndex(nodes.len());
            let parent = plan.parent.map(|parent| positions[parent]);
            nodes.push(tree_node(node, self.number, parent, site));
        }
        let receivers =
            self.members.iter().map(|member| self.receiver(member, positions[site.edge_of(member.receiver)], site));
        let (base, rkey) = address::group_region(self.number);
        let region = SourceRegion { base, length: self.plan.octets, rkey: rkey.0 };
        Ok(Record {
            id: self.id(),
            epoch: 1,
            proxy: address::proxy(self.number),
            designated_qpn: address::designated_qpn(self.number),
            initial_psn: self.layout.first_psn,
            path_mtu: PathMtu::new(PATH_MTU_OCTETS as u16).expect("1024 octets are an RDMA path MTU"),
            link_mtu: LINK_MTU,
            source: Source { address: address::source(self.plan.source), qpn: self.qpn },
            region: self.has_regions().then_some(region),
            receivers: receivers.collect(),
            tree: Tree::new(nodes)?,
            policy: self.policy(),
        })
    }

    fn has_regions(&self) -> bool {
        self.plan.operation == OperationPlan::Write
    }

    fn receiver(&self, member: &Participant, edge: NodeIndex, site: &Site) -> Receiver {
        Receiver {
            address: site.receiver_address(member.receiver),
            qpn: member.qpn,
            region: self.region_of(member),
            edge,
            joined: member.joined,
        }
    }

    /// Where a member's memory is, when the group carries WRITE.
    pub(crate) fn region_of(&self, member: &Participant) -> Option<ReceiverRegion> {
        let base = address::receiver_base(self.number, member.receiver);
        self.has_regions().then_some(ReceiverRegion { base, rkey: member.key.0 })
    }

    /// The group's number, as nodes know it.
    pub(crate) fn id(&self) -> GroupId {
        GroupId(self.number as u32 + 1)
    }

    fn policy(&self) -> Policy {
        let PolicyPlan { literal, evict, prune_retransmit, lists, t_hold_percent, trailing_cnps, .. } =
            self.plan.policy;
        Policy {
            rules: if literal { Rules::Literal } else { Rules::Default },
            lists: match lists {
                ListsPlan::Tlv => ListMode::Tlv,
                ListsPlan::Provisioned => ListMode::Provisioned,
                ListsPlan::Auto => ListMode::Auto,
            },
            prune_retransmit,
            t_hold: self.timing.t_hold * u32::from(t_hold_percent) / 100,
            cnp_mode: if trailing_cnps { CnpMode::Trailing } else { CnpMode::Leading },
            on_failure: if evict { OnFailure::Evict } else { OnFailure::Strict },
            t_stall: self.t_stall(),
            min_receivers: self.plan.policy.min_receivers,
            ..Policy::default()
        }
    }

    /// T_stall (D25).
    pub(crate) fn t_stall(&self) -> Duration {
        Duration::from_nanos(self.ack_timeout_ns()) * u32::from(self.plan.policy.t_stall_percent) / 100
    }

    /// How long the source's ACK timer runs, in nanoseconds.
    pub(crate) fn ack_timeout_ns(&self) -> u64 {
        4096 << self.timing.ack_timeout
    }

    /// Whether there is nothing more to come: complete, or failed.
    pub(crate) fn is_over(&self) -> bool {
        self.completed_at.is_some() || self.failure.is_some()
    }

    /// Has the source pause at the end of a message, or go on (D30).
    pub(crate) fn pause(&self, network: &mut Network<Member>, is_paused: bool) {
        network.with_host(self.source, |host| host.pause(self.qpn, is_paused));
    }

    /// J: where a receiver joins that joins now; `None` while anything is on its way (D30).
    pub(crate) fn join_point(&self, network: &Network<Member>) -> Option<Join> {
        let outgoing = network.host(self.source)?.outgoing().iter().find(|outgoing| outgoing.qpn() == self.qpn)?;
        outgoing.is_quiescent().then(|| {
            let octets = outgoing.posted_octets();
            let packets = self.layout.packets_before(octets);
            Join {
                psn: self.layout.first_psn.plus((packets & 0xFF_FFFF) as u32),
                msn: octets.div_ceil(u64::from(self.plan.message_octets)) as u32 & 0xFF_FFFF,
            }
        })
    }

    /// The PSN that the source sends next, when it has not to go back.
    pub(crate) fn next_psn(&self, network: &Network<Member>) -> Psn {
        let counters = network.host(self.source).and_then(|host| host.counters(self.qpn));
        let new = counters.map_or(0, |counters| counters.packets_sent - counters.packets_retransmitted);
        self.layout.first_psn.plus((new & 0xFF_FFFF) as u32)
    }

    /// A new record is stored, in which those that are not kept have left and others have come; gives who has left.
    pub(crate) fn change_members(&mut self, keep: impl Fn(usize) -> bool, newcomers: &[Participant]) -> Vec<usize> {
        let (stay, gone) = self.members.drain(..).partition(|member| keep(member.receiver));
        self.members = stay;
        let gone: Vec<Participant> = gone;
        self.former.extend(&gone);
        self.members.extend(newcomers);
        gone.iter().map(|member| member.receiver).collect()
    }

    /// A response has reached the source (MT-5.3.1-1, MT-5.3.2-1).
    pub(crate) fn hear(&mut self, response: Response, site: &Site, network: &Network<Member>, seen: &mut Seen) {
        match response.syndrome {
            Syndrome::Ack(_) => self.acks_received += 1,
            Syndrome::RnrNak(_) | Syndrome::Nak(_) | Syndrome::Reserved(_) => self.naks_received += 1,
        }
        let now = network.now();
        let (violations, confirmed) = (self.checker.violations(), self.checker.confirmed_packets());
        let there = self.members.iter().map(|member| octets_of(member, site, network));
        self.checker.check(now.as_ns(), response, there);
        if self.checker.violations() > violations {
            let text = self.checker.first().map(ToString::to_string).unwrap_or_default();
            self.complain(seen, now, ComplaintKind::Untrue, &text);
        }
        if self.checker.confirmed_packets() > confirmed {
            self.progress_at = now;
            seen.progress = true;
            self.note(now, StepKind::Progress);
        }
    }

    /// Notes a step, unless it says what is known.
    pub(crate) fn note(&mut self, now: Instant, kind: StepKind) {
        let is_known = match kind {
            StepKind::Progress => self.steps.last().is_some_and(|last| last.kind == kind),
            StepKind::EvictionWanted(_) => self.steps.iter().any(|step| step.kind == kind),
            StepKind::NodeBack(_) | StepKind::InEffect(_) | StepKind::Death(_) | StepKind::Unanswered(_) => false,
        };
        if !is_known {
            self.steps.push(Step { at_ns: now.as_ns(), kind });
        }
    }

    /// A work request of the source has ended: each does so once, and in order.
    pub(crate) fn end(&mut self, completion: &Completion, now: Instant, seen: &mut Seen) {
        if completion.wr_id != self.next_wr_id {
            let text = format!("message {} ended, but {} was to be next", completion.wr_id, self.next_wr_id);
            self.complain(seen, now, ComplaintKind::WrongData, &text);
        }
        self.next_wr_id = completion.wr_id + u64::from(self.plan.message_octets);
        match (completion.status, self.failure) {
            (Status::Success, None) => {
                if self.next_wr_id >= self.plan.octets {
                    self.completed_at = Some(now);
                }
            }
            (Status::Success, Some((_, status))) => {
                let text = format!("message {} succeeded after {status:?}", completion.wr_id);
                self.complain(seen, now, ComplaintKind::WrongData, &text);
            }
            (status, None) => self.failure = Some((now, status)),
            (_, Some(_)) => {}
        }
    }

    fn complain(&self, seen: &mut Seen, now: Instant, kind: ComplaintKind, text: &str) {
        let text = format!("group {}: {text}", self.number);
        seen.complaints.push(Complaint { at_ns: now.as_ns(), kind, text });
    }

    /// What everybody has at the end: members of a complete group all, the others nothing that is not the source's.
    pub(crate) fn check_data(&self, site: &Site, network: &Network<Member>, seen: &mut Seen) {
        let now = network.now();
        for member in self.members.iter().chain(&self.former) {
            let receiver = member.receiver;
            let Some(replica) = replica_of(member, site, network) else {
                continue;
            };
            if !replica.agrees_from(member.begins_octets) {
                let text = format!("receiver {receiver} has octets that the source never sent");
                self.complain(seen, now, ComplaintKind::WrongData, &text);
            }
        }
        if self.completed_at.is_some() {
            for member in &self.members {
                let octets = octets_of(member, site, network);
                if octets != self.plan.octets {
                    let text = format!("complete, but receiver {} has {octets} octets", member.receiver);
                    self.complain(seen, now, ComplaintKind::WrongData, &text);
                }
            }
        }
    }

    /// What came of the group.
    pub(crate) fn outcome(&self, network: &Network<Member>) -> GroupOutcome {
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

/// A node of the network as a node of a group's tree.
pub(crate) fn tree_node(node: usize, group: usize, parent: Option<NodeIndex>, site: &Site) -> TreeNode {
    let addresses = address::node(node);
    let is_edge = site.is_edge(node);
    TreeNode {
        name: format!("N{node}"),
        loopback: addresses.loopback,
        sid: if is_edge { addresses.end_mt } else { address::replication(node, group) },
        parent,
        parent_sid: None,
        role: if is_edge { NodeRole::Edge } else { NodeRole::Transit },
        multicast: None,
        joined: None,
        renewed: 0,
    }
}

fn replica_of<'n>(member: &Participant, site: &Site, network: &'n Network<Member>) -> Option<&'n Replica> {
    network.host(site.receivers[member.receiver])?.region(member.key)
}

fn octets_of(member: &Participant, site: &Site, network: &Network<Member>) -> u64 {
    replica_of(member, site, network).map_or(0, Replica::complete_octets)
}
