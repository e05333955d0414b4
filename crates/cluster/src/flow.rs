//! A group as its application has it: requests to the controller, the source, and the receivers.
//!
//! The source's session is that of `srdma_session`, which is bound to sockets, written again.

use crate::adapter::Request;
use crate::data_network::DataNetwork;
use crate::schedule::{GroupPlan, PATH_MTU_OCTETS};
use srdma_api::{MemoryRegion, NewGroup, NewReceiver, SourceAddress, SourceOrder, SourceRegion, SourceReport};
use srdma_chaos::address;
use srdma_group::{OnFailure, Policy, PsnOffset};
use srdma_random::Stream;
use srdma_rc::{ConfigError, Habits, MemoryKey, QueuePairConfig, RemoteAddress};
use srdma_sim::network::{ElementId, Network};
use srdma_sim::node_or_host::NodeOrHost;
use srdma_sim::program::{MessageOperation, SendStream};
use srdma_sim::replica::Replica;
use srdma_wire::{Instant, Psn, Qpn};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Interval between messages of a source.
pub(crate) const MESSAGE_INTERVAL_NS: u64 = 50_000_000;

/// ACK timeout code of sources: 67 ms.
const ACK_TIMEOUT: u8 = 14;

/// T_stall of the policy: several ACK timeouts.
const T_STALL: Duration = Duration::from_millis(400);

/// Messages of a stream: it does not end within a run.
const MESSAGES: u64 = 1200;

/// Longest wait of a source's request.
pub(crate) const SOURCE_WAIT_MS: u32 = 1000;

/// A request of the application that it retries until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Join(usize),
    Commit,
    Leave(usize),
    Close,
}

/// A receiver of the group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Participant {
    pub(crate) qpn: Qpn,
    pub(crate) key: MemoryKey,
    /// The first PSN of its queue pair, once that exists.
    pub(crate) connected: Option<u32>,
    /// Distance of its queue pair's PSNs from the group's.
    pub(crate) psn_offset: PsnOffset,
    /// It joins in two steps, and has not learned that it is a member.
    pub(crate) is_reporting: bool,
}

/// The source's session (D30, D31).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SourceSession {
    pub(crate) round: Option<u32>,
    pub(crate) may_send: bool,
    pub(crate) is_over: bool,
}

pub(crate) struct Flow {
    pub(crate) group: usize,
    incarnation: usize,
    /// The group's number at the controller.
    pub(crate) id: Option<u32>,
    /// The group that it resumes, and the queue pair of its source.
    pub(crate) resumes: Option<(u32, Qpn)>,
    /// Its source's process has died, without an end of the group.
    pub(crate) has_died: bool,
    pub(crate) qpn: Qpn,
    pub(crate) first_psn: u32,
    has_own_psns: bool,
    message_packets: u32,
    data: Arc<Vec<u8>>,
    source: ElementId,
    pub(crate) session: SourceSession,
    /// The numbers of the outstanding requests.
    pub(crate) source_call: Option<u64>,
    pub(crate) application_call: Option<u64>,
    draining_since: Option<Instant>,
    pub(crate) steps: VecDeque<Step>,
    pub(crate) attempts: u32,
    /// The last request was one to create the group, and was refused for a named reason.
    pub(crate) is_creation_refused: bool,
    /// The commit was accepted.
    pub(crate) is_committed: bool,
    pub(crate) is_closed: bool,
    /// The application has ended it, or the controller lost it.
    pub(crate) is_over: bool,
    pub(crate) participants: BTreeMap<usize, Participant>,
    /// Receivers that have left. A restored store may have them as members, and they still answer.
    pub(crate) left: Vec<(usize, Participant)>,
    /// Leaves that were repeated because a restored store had their receivers again.
    pub(crate) repeated_leaves: u32,
    /// Commits that were accepted or given up.
    pub(crate) commits: u32,
    /// When the application saw last that its commit was aborted, for a reason that is named.
    pub(crate) aborted: Option<Instant>,
    /// Packets that responses covered so far.
    pub(crate) confirmed: u64,
    pub(crate) progress_at: Instant,
    /// Requests of the source since the last check.
    pub(crate) requests: u32,
    /// The source was told of more than a member has: what follows says nothing.
    pub(crate) is_spoiled: bool,
}

/// The data of flows, by their number and length.
type Data = BTreeMap<(usize, usize), Arc<Vec<u8>>>;

thread_local! {
    /// Flows differ by their data, and runs need not.
    static DATA: RefCell<Data> = const { RefCell::new(BTreeMap::new()) };
}

fn data(number: usize, octets: usize) -> Arc<Vec<u8>> {
    let fill = || {
        let mut data = vec![0; octets];
        Stream::new(0, &format!("data {number}")).fill(&mut data);
        Arc::new(data)
    };
    DATA.with_borrow_mut(|known| Arc::clone(known.entry((number, octets)).or_insert_with(fill)))
}

impl SourceSession {
    pub(crate) fn apply(&mut self, order: SourceOrder) {
        match order {
            SourceOrder::Send { round } if self.round.is_none_or(|newest| newest <= round) => {
                (self.round, self.may_send) = (Some(round), true);
            }
            SourceOrder::Pause { round } if self.round.is_none_or(|newest| newest < round) => {
                (self.round, self.may_send) = (Some(round), false);
            }
            SourceOrder::Wait | SourceOrder::Send { .. } | SourceOrder::Pause { .. } => {}
            SourceOrder::End => self.is_over = true,
        }
    }

    fn is_pausing(&self) -> bool {
        self.round.is_some() && !self.may_send
    }
}

impl Flow {
    /// A flow whose application creates its group and joins its first members. `number`: distinguishes it from others.
    pub(crate) fn new(
        group: usize,
        number: usize,
        plan: &GroupPlan,
        testbed: &DataNetwork,
        network: &mut Network<NodeOrHost>,
    ) -> Result<Self, ConfigError> {
        let octets = MESSAGES * u64::from(plan.message_packets * PATH_MTU_OCTETS);
        let joins = plan.members.iter().map(|receiver| Step::Join(*receiver));
        let flow = Flow {
            group,
            incarnation: number,
            id: None,
            resumes: None,
            has_died: false,
            qpn: Qpn::new(0x100 + number as u32).expect("a small number"),
            first_psn: plan.first_psn,
            has_own_psns: plan.own_psns,
            message_packets: plan.message_packets,
            data: data(number, octets as usize),
            source: testbed.sources[group],
            session: SourceSession::default(),
            source_call: None,
            application_call: None,
            draining_since: None,
            steps: [Step::Create].into_iter().chain(joins).chain([Step::Commit]).collect(),
            attempts: 0,
            is_committed: false,
            is_closed: false,
            is_creation_refused: false,
            is_over: false,
            participants: BTreeMap::new(),
            left: Vec::new(),
            repeated_leaves: 0,
            commits: 0,
            aborted: None,
            confirmed: 0,
            progress_at: Instant::ZERO,
            requests: 0,
            is_spoiled: false,
        };
        let config = flow.queue_pair(flow.qpn, Psn::new(flow.first_psn));
        let (virtual_address, rkey) = address::group_region(group);
        let added = network.with_host(flow.source, |host| {
            host.add_queue_pair(config)?;
            let region = host.add_region(Replica::of_source(Arc::clone(&flow.data)), 0, 0);
            let operation = MessageOperation::Write { remote: RemoteAddress { virtual_address, rkey } };
            let message_octets = plan.message_packets * PATH_MTU_OCTETS;
            host.add_send_stream(SendStream::new(flow.qpn, region, octets, message_octets, operation).paused());
            Ok(())
        });
        added.unwrap_or(Ok(()))?;
        Ok(flow)
    }

    /// Any, in a group whose receivers have PSNs of their own.
    fn psn_offset(&self, qpn: Qpn) -> PsnOffset {
        if self.has_own_psns { address::psn_offset(qpn.get().into()) } else { PsnOffset::ZERO }
    }

    fn queue_pair(&self, qpn: Qpn, first_psn: Psn) -> QueuePairConfig {
        QueuePairConfig {
            sq_psn: first_psn,
            rq_psn: first_psn,
            path_mtu: srdma_wire::PathMtu::Octets1024,
            ack_timeout: ACK_TIMEOUT,
            // A message at a time.
            send_queue_depth: 1,
            habits: Habits { retry_count_7_is_unlimited: true, ..Habits::strict() },
            ..QueuePairConfig::new(qpn, address::proxy(self.group), address::designated_qpn(self.group))
        }
    }

    /// The request of the first step, unless it has become impossible.
    pub(crate) fn request(
        &mut self,
        plan: &GroupPlan,
        testbed: &DataNetwork,
        network: &mut Network<NodeOrHost>,
        next_qpn: &mut u32,
        two_steps: &[usize],
    ) -> Option<Request> {
        let step = *self.steps.front()?;
        if step == Step::Create {
            return Some(Request::Create {
                key: format!("flow-{}", self.incarnation),
                group: Box::new(self.new_group(plan)),
                former_qpn: self.resumes.map(|(_, qpn)| qpn.get()),
            });
        }
        let id = self.id?;
        match step {
            Step::Create => None,
            Step::Join(receiver) => {
                let in_two_steps = two_steps.contains(&receiver);
                let participant = self.register(receiver, testbed, network, next_qpn, in_two_steps);
                let base = address::receiver_base(self.group, receiver, 0);
                let region = Some(MemoryRegion { virtual_address: base, rkey: participant.key.0 });
                let address = testbed.receiver_address(receiver);
                let psn_offset = participant.psn_offset.get();
                let receiver = NewReceiver {
                    region,
                    psn_offset,
                    ..NewReceiver::new(participant.qpn.get(), PATH_MTU_OCTETS as u16)
                };
                Some(match in_two_steps {
                    true => Request::Reserve { id, address, receiver },
                    false => Request::Join { id, address, receiver },
                })
            }
            Step::Commit => Some(Request::Commit { id }),
            Step::Leave(receiver) => Some(Request::Leave { id, address: testbed.receiver_address(receiver) }),
            Step::Close => Some(Request::Close { id }),
        }
    }

    fn new_group(&self, plan: &GroupPlan) -> NewGroup {
        let (base, rkey) = address::group_region(self.group);
        let source = SourceAddress { address: address::source(self.group), qpn: self.qpn.get() };
        NewGroup {
            proxy: Some(address::proxy(self.group)),
            initial_psn: self.first_psn,
            path_mtu: PATH_MTU_OCTETS as u16,
            region: Some(SourceRegion { base, length: self.data.len() as u64, rkey: rkey.0 }),
            policy: Policy {
                on_failure: if plan.evict { OnFailure::Evict } else { OnFailure::Strict },
                t_stall: T_STALL,
                ..Policy::default()
            },
            repair: plan.repair.map(|repair| repair.mode),
            window_octets: plan.repair.map(|repair| repair.window_packets * PATH_MTU_OCTETS),
            resumes: self.resumes.map(|(former, _)| former),
            ..NewGroup::new(source, address::designated_qpn(self.group).get())
        }
    }

    /// A receiver's memory and number, which stay while its join is retried.
    fn register(
        &mut self,
        receiver: usize,
        testbed: &DataNetwork,
        network: &mut Network<NodeOrHost>,
        next_qpn: &mut u32,
        is_reporting: bool,
    ) -> Participant {
        if let Some(known) = self.participants.get(&receiver) {
            return *known;
        }
        *next_qpn += 1;
        let qpn = Qpn::new(*next_qpn).expect("few queue pairs");
        let replica = Replica::empty(Arc::clone(&self.data));
        let base = address::receiver_base(self.group, receiver, 0);
        let key = network.with_host(testbed.receivers[receiver], |host| host.add_region(replica, base, receiver as u8));
        let key = key.unwrap_or(MemoryKey(0));
        let participant = Participant { qpn, key, connected: None, psn_offset: self.psn_offset(qpn), is_reporting };
        self.participants.insert(receiver, participant);
        participant
    }

    /// A receiver that is no member any more, and has been one, joins with another queue pair: the former one expects
    /// data from before. `shown`: the queue pair that the controller shows.
    pub(crate) fn renew(&mut self, receiver: usize, shown: Option<u32>) {
        let is_former =
            |known: &Participant| known.connected.is_some() && shown.is_none_or(|shown| shown != known.qpn.get());
        if self.participants.get(&receiver).is_some_and(is_former) {
            let former = self.participants.remove(&receiver);
            self.left.extend(former.map(|participant| (receiver, participant)));
        }
    }

    /// Creates the queue pair of a receiver that the controller shows as a member, or has reserved. One that was to
    /// begin at another PSN goes.
    pub(crate) fn connect(
        &mut self,
        receiver: usize,
        first_psn: u32,
        testbed: &DataNetwork,
        network: &mut Network<NodeOrHost>,
    ) -> Result<(), ConfigError> {
        let Some(participant) = self.participants.get_mut(&receiver) else { return Ok(()) };
        let former = participant.connected.replace(first_psn);
        let Participant { qpn, key, psn_offset, .. } = *participant;
        let config = self.queue_pair(qpn, psn_offset.of_receiver(Psn::new(first_psn)));
        let replica = Replica::beginning_at(Arc::clone(&self.data), self.octets_before(first_psn));
        let added = network.with_host(testbed.receivers[receiver], |host| {
            if former.is_some() {
                host.remove_queue_pair(qpn);
            }
            host.add_queue_pair(config)?;
            host.replace_region(key, replica);
            Ok(())
        });
        added.unwrap_or(Ok(()))
    }

    /// Octets of the packets before a PSN.
    pub(crate) fn octets_before(&self, psn: u32) -> u64 {
        self.octets_of(crate::reading::distance(self.first_psn, psn).max(0) as u64)
    }

    /// Octets of the first packets: all are full.
    pub(crate) fn octets_of(&self, packets: u64) -> u64 {
        (packets * u64::from(PATH_MTU_OCTETS)).min(self.data.len() as u64)
    }

    /// A receiver by its queue pair.
    pub(crate) fn participant(&self, receiver: usize, qpn: u32) -> Option<&Participant> {
        self.participants_at(receiver).find(|participant| participant.qpn.get() == qpn)
    }

    /// The present queue pair of a receiver, and those that have left.
    pub(crate) fn participants_at(&self, receiver: usize) -> impl Iterator<Item = &Participant> {
        let left = self.left.iter().filter(move |(one, _)| *one == receiver).map(|(_, participant)| participant);
        self.participants.get(&receiver).into_iter().chain(left)
    }

    /// The application has ended: its source sends nothing more.
    pub(crate) fn end_source(&self, network: &mut Network<NodeOrHost>) {
        network.with_host(self.source, |host| host.remove_queue_pair(self.qpn));
    }

    /// The memory of a receiver.
    pub(crate) fn memory<'n>(
        &self,
        receiver: usize,
        participant: &Participant,
        testbed: &DataNetwork,
        network: &'n Network<NodeOrHost>,
    ) -> Option<&'n Replica> {
        participant.connected?;
        network.host(testbed.receivers[receiver])?.region(participant.key)
    }

    /// Posts a message if the source may send and none is outstanding.
    pub(crate) fn post(&self, network: &mut Network<NodeOrHost>) {
        if self.session.may_send && !self.session.is_over && !self.is_over {
            network.with_host(self.source, |host| {
                host.pause(self.qpn, false);
                host.pause(self.qpn, true);
            });
        }
    }

    /// The source's report; `None` while it drains, for some time.
    pub(crate) fn report(&mut self, now: Instant, network: &Network<NodeOrHost>) -> Option<SourceReport> {
        let stream = self.stream(network)?;
        let pausing = self.session.is_pausing();
        let is_quiescent = stream.is_quiescent();
        if pausing && !is_quiescent {
            let since = *self.draining_since.get_or_insert(now);
            if now.since(since).as_millis() < u128::from(SOURCE_WAIT_MS) {
                return None;
            }
        }
        self.draining_since = None;
        let psn = |octets: u64| ((u64::from(self.first_psn) + octets / u64::from(PATH_MTU_OCTETS)) & 0xFF_FFFF) as u32;
        let acknowledged = stream.acknowledged_octets();
        let messages = acknowledged / u64::from(self.message_packets * PATH_MTU_OCTETS);
        Some(SourceReport {
            round: self.session.round,
            pausing,
            paused_at_psn: (pausing && is_quiescent).then(|| psn(stream.posted_octets())),
            completed_messages: (messages & 0xFF_FFFF) as u32,
            acknowledged_psn: (acknowledged > 0).then(|| psn(acknowledged)),
            ended: false,
            wait_ms: SOURCE_WAIT_MS,
        })
    }

    /// What the group has acknowledged to its source, also while the API did not show the group.
    pub(crate) fn acknowledged_octets(&self, network: &Network<NodeOrHost>) -> Option<u64> {
        Some(self.stream(network)?.acknowledged_octets())
    }

    fn stream<'a>(&self, network: &'a Network<NodeOrHost>) -> Option<&'a SendStream> {
        network.host(self.source)?.send_streams().iter().find(|stream| stream.qpn() == self.qpn)
    }

    /// Whether the whole stream is acknowledged.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.octets_of(self.confirmed) == self.data.len() as u64
    }
}
