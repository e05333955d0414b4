//! Requests, views, orders and answers: the only file that knows how the controller's core and the nodes' agents are
//! called. A change of the protocol is made here.
//!
//! ```text
//!   requests ──► execute ──► Core          orders ──► carry_out ──► GroupTable, Node
//! ```

use crate::phase::Phase;
use crate::schedule::Schedule;
use srdma_agent::{Agent, Plan};
use srdma_aggregation::BranchIndex;
use srdma_api::{
    BranchStatus, Group, GroupRepairStatus, GroupState, GroupStatus, NewGroup, NewReceiver, NodeAnswer, NodeOrder,
    NodeStatus, ProblemType, Receiver, ReceiverOrder, ReceiverReport, Registration, Session, SourceOrder, SourceReport,
    Sync, UnreachableReport,
};
use srdma_chaos::address;
use srdma_controller_core::{Core, Principal, Refusal, Role, Row, RowError, Settings, Time, Write};
use srdma_dataplane::{Command, Node};
use srdma_group::{GroupId, Safeguard};
use srdma_wire::{Instant, Prefix, Psn};
use std::net::Ipv6Addr;
use std::time::Duration;

/// Timeout after which a silent node is dead: the default of the controller's configuration.
pub(crate) const NODE_DEAD_AFTER_NS: u64 = 3_000_000_000;

/// Timeout of silent sources: shorter than the default of 30 s, so that runs stay short.
pub(crate) const SOURCE_SILENT_AFTER_NS: u64 = 4_000_000_000;

/// Time after which reservations expire: the default of the controller's configuration (D188).
pub(crate) const JOIN_TIMEOUT_NS: u64 = 1_000_000_000;

/// Wall clock of the controller's host at the beginning, milliseconds since 1970.
const UNIX_MS: u64 = 1_800_000_000_000;

/// A request to the controller.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Register(Box<Registration>),
    Sync {
        name: String,
        sync: Sync,
    },
    Unreachable {
        name: String,
        neighbours: Vec<usize>,
        lost_hosts: Vec<Prefix>,
    },
    Source {
        id: u32,
        qpn: u32,
        report: SourceReport,
    },
    Create {
        key: String,
        group: Box<NewGroup>,
        /// Queue pair of the source of the group that it resumes.
        former_qpn: Option<u32>,
    },
    Join {
        id: u32,
        address: Ipv6Addr,
        receiver: NewReceiver,
    },
    /// The first step of two.
    Reserve {
        id: u32,
        address: Ipv6Addr,
        receiver: NewReceiver,
    },
    Report {
        id: u32,
        source_qpn: u32,
        address: Ipv6Addr,
        report: ReceiverReport,
    },
    Commit {
        id: u32,
    },
    Leave {
        id: u32,
        address: Ipv6Addr,
    },
    Close {
        id: u32,
    },
    Drain {
        name: String,
        on: bool,
    },
    Adopt {
        store: u64,
        group: u32,
    },
    RemoveForeign {
        store: u64,
        group: u32,
    },
}

/// The controller's reply.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Session(Session),
    /// The orders of a node, after a [`Request::Sync`].
    Orders(Vec<NodeOrder>),
    Synced(Ipv6Addr),
    Order(SourceOrder),
    /// To a receiver that joins in two steps.
    ReceiverOrder(ReceiverOrder),
    Created(u32),
    Done,
    Refused(ProblemType, String),
    /// The request or its reply was lost, or the controller is down.
    Unreachable,
}

fn operator() -> Principal {
    Principal { name: "chaos".to_owned(), role: Role::Admin, tenant: None, node: None }
}

/// Lease of nodes (D122): the longest for that timeout.
pub(crate) const NODE_LEASE_NS: u64 = 2_500_000_000;

pub(crate) fn settings(without: Option<Safeguard>, schedule: &Schedule) -> Settings {
    let sources = schedule.second_headend.map(|_| address::sources());
    Settings {
        node_dead_after: Duration::from_nanos(NODE_DEAD_AFTER_NS),
        node_lease: schedule.has_leases.then_some(Duration::from_nanos(NODE_LEASE_NS)),
        source_silent_after: Duration::from_nanos(SOURCE_SILENT_AFTER_NS),
        join_timeout: Duration::from_nanos(JOIN_TIMEOUT_NS),
        shared_hosts: sources.into_iter().chain([address::shared_receivers()]).collect(),
        without,
        ..Settings::default()
    }
}

/// The time of a transaction. `clock_ms`: what the wall clock was set by.
pub(crate) fn time(now: Instant, started: Instant, clock_ms: i64) -> Time {
    let unix_ms = UNIX_MS.saturating_add(now.as_ns() / 1_000_000).saturating_add_signed(clock_ms);
    Time { monotonic: now.since(started), unix_ms }
}

/// Identity of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// Of one without rows.
    pub(crate) new: u64,
    /// The lost store that it replaces.
    pub(crate) rebuilds: Option<u64>,
}

/// A core from the rows of a store.
pub(crate) fn restore(settings: Settings, rows: &[Row], identity: Identity, time: Time) -> Result<Core, RowError> {
    Core::restore(settings, None, rows, identity.new, identity.rebuilds, time)
}

/// The identity of a store, as `srdma group foreign list` prints it.
pub(crate) fn store_identity(rows: &[Row]) -> Option<u64> {
    let (_, site) = rows.iter().find(|(key, _)| key == "site")?;
    serde_json::from_slice::<serde_json::Value>(site).ok()?["store"].as_u64()
}

/// Executes a request, as the HTTP layer does.
pub(crate) fn execute(core: &mut Core, request: Request) -> Reply {
    let operator = operator();
    let done = |result: Result<(), Refusal>| result.map(|()| Reply::Done);
    let result = match request {
        Request::Register(registration) => core.register(&operator, *registration).map(Reply::Session),
        Request::Sync { name, sync } => core.sync(&operator, &name, sync).map(Reply::Synced),
        Request::Unreachable { name, neighbours, lost_hosts } => {
            let unreachable = neighbours.into_iter().map(|node| address::node(node).loopback).collect();
            done(core.note_unreachable(&operator, &name, &UnreachableReport { unreachable, lost_hosts }))
        }
        Request::Source { id, qpn, report } => match core.group(&operator, id) {
            // A group of another application has this number.
            Ok((group, _)) if group.source.qpn != qpn => Ok(Reply::Refused(ProblemType::UnknownGroup, String::new())),
            Ok(_) | Err(_) => core.report_source(&operator, id, report).map(Reply::Order),
        },
        // A restored store may have given that number to a group of another application.
        Request::Create { group, former_qpn: Some(former_qpn), .. }
            if group.resumes.is_some_and(|former| is_of_another(core, former, former_qpn)) =>
        {
            Ok(Reply::Refused(ProblemType::UnknownGroup, String::new()))
        }
        Request::Create { key, group, .. } => create(core, &operator, &key, *group).map(Reply::Created),
        Request::Join { id, address, receiver } => done(core.join(&operator, id, address, receiver, None)),
        Request::Reserve { id, address, receiver } => done(core.reserve(&operator, id, address, receiver, None)),
        Request::Report { id, source_qpn, address, report } => match core.group(&operator, id) {
            Ok((group, _)) if group.source.qpn != source_qpn => {
                Ok(Reply::Refused(ProblemType::UnknownGroup, String::new()))
            }
            Ok(_) | Err(_) => core.report_receiver(&operator, id, address, report).map(Reply::ReceiverOrder),
        },
        Request::Commit { id } => done(core.commit_group(&operator, id, None)),
        Request::Leave { id, address } => done(core.leave(&operator, id, address, None)),
        Request::Close { id } => done(core.close_group(&operator, id, None)),
        Request::Adopt { store, group } => done(core.adopt_foreign(&operator, store, group)),
        Request::RemoveForeign { store, group } => done(core.remove_foreign(&operator, store, group)),
        Request::Drain { name, on } => done(core.drain_node(&operator, &name, on)),
    };
    result.unwrap_or_else(|refusal| Reply::Refused(refusal.kind, refusal.detail))
}

/// The same key receives the same group.
fn create(core: &mut Core, operator: &Principal, key: &str, group: NewGroup) -> Result<u32, Refusal> {
    if let Some(stored) = core.stored_answer(operator, key, key)? {
        return Ok(stored.body.parse().unwrap_or_default());
    }
    let id = core.create_group(operator, None, group)?;
    core.store_answer(operator, key, key.to_owned(), 201, id.to_string());
    Ok(id)
}

/// The poll of a node has ended: whether its session is current.
pub(crate) fn finish_poll(core: &mut Core, loopback: Ipv6Addr, session: u64, name: &str) -> Result<(), Reply> {
    match core.check_session(loopback, session, name) {
        Ok(()) => {
            core.keep_session(loopback);
            Ok(())
        }
        Err(refusal) => Err(Reply::Refused(refusal.kind, refusal.detail)),
    }
}

/// The group of this number, as the API shows it.
pub(crate) fn shown_group(core: &Core, id: u32) -> Option<Group> {
    core.group(&operator(), id).ok().map(|(group, _)| group)
}

/// Whether the group of this number does not exist, or is of another source.
pub(crate) fn is_gone(core: &Core, id: u32, qpn: u32) -> bool {
    match core.group(&operator(), id) {
        Ok((group, _)) => group.source.qpn != qpn,
        Err(refusal) => refusal.kind == ProblemType::UnknownGroup,
    }
}

fn is_of_another(core: &Core, id: u32, qpn: u32) -> bool {
    shown_group(core, id).is_some_and(|group| group.source.qpn != qpn)
}

/// Whether a group resumes one that nodes may still have.
pub(crate) fn awaits_former(core: &Core, id: u32) -> bool {
    shown_group(core, id).and_then(|group| group.resumes).is_some_and(|former| core.group_state(former).is_some())
}

/// The group that resumes another, directly or by others between them.
pub(crate) fn successor(core: &Core, id: u32) -> Option<u32> {
    core.successor(&operator(), id).ok().map(|(group, _)| group.summary.id)
}

/// The group with this Proxy Address.
pub(crate) fn group_of_proxy(core: &Core, proxy: Ipv6Addr) -> Option<u32> {
    let page = core.groups(&operator(), None, None, Some(1000)).ok()?;
    page.groups.iter().find(|group| group.proxy == proxy).map(|group| group.id)
}

/// A group that nodes have and the store does not.
pub(crate) struct ForeignGroup {
    pub(crate) store: u64,
    pub(crate) group: u32,
    pub(crate) is_adoptable: bool,
}

/// The foreign groups that are not being removed.
pub(crate) fn foreign_groups(core: &Core) -> Vec<ForeignGroup> {
    let Ok(shown) = core.foreign_groups(&operator()) else { return Vec::new() };
    let groups = shown.groups.into_iter().map(|group| ForeignGroup {
        store: u64::from_str_radix(&group.store, 16).unwrap_or_default(),
        group: group.group,
        is_adoptable: group.is_adoptable,
    });
    groups.collect()
}

pub(crate) fn shown_receiver(core: &Core, id: u32, address: Ipv6Addr) -> Option<Receiver> {
    core.receiver(&operator(), id, address).ok().map(|(receiver, _)| receiver)
}

pub(crate) fn shown_state(core: &Core, id: u32) -> Option<GroupState> {
    core.group_state(id)
}

/// The names of the nodes that the API shows as drained.
pub(crate) fn drained_nodes(core: &Core) -> Vec<String> {
    let shown = core.nodes(&operator(), None, None).map(|page| page.nodes).unwrap_or_default();
    shown.into_iter().filter(|node| node.is_drained).map(|node| node.name).collect()
}

/// Whether the API shows a node as alive.
pub(crate) fn is_shown_alive(core: &Core, name: &str) -> bool {
    core.is_alive(name)
}

/// Executes an order at a node, all workers of which get the same commands, as the daemon does.
pub(crate) fn carry_out(agent: &mut Agent, workers: &mut [Node], order: NodeOrder) -> Option<NodeAnswer> {
    match agent.table.plan(order, |_| false) {
        Plan::Nothing => None,
        Plan::Answer(answer) => Some(answer),
        Plan::Apply(change) => {
            let (after, answer) = agent.table.apply(&change);
            match apply_all(workers, &change.commands) {
                Ok(()) => {
                    agent.table = after;
                    // A command that is refused here leaves an entry that nothing refers to.
                    let _ = apply_all(workers, &change.afterwards);
                    answer
                }
                Err(reason) => {
                    for worker in workers {
                        // Missing entries need no removal.
                        change.undo.iter().for_each(|command| drop(worker.apply(command.clone())));
                    }
                    change.refused(reason)
                }
            }
        }
    }
}

/// Applies commands to each worker, up to the first that it refuses.
fn apply_all(workers: &mut [Node], commands: &[Command]) -> Result<(), String> {
    let apply = |worker: &mut Node| {
        let mut commands = commands.iter().cloned();
        commands.try_for_each(|command| worker.apply(command)).map_err(|error| error.to_string())
    };
    workers.iter_mut().map(apply).fold(Ok(()), Result::and)
}

/// The worker of a node that owns a group.
pub(crate) fn owner(workers: &[Node], id: GroupId) -> Option<&Node> {
    workers.iter().find(|worker| worker.owned_groups().any(|owned| owned == id))
}

/// The status of a node, as the daemon reports it: the branches of the controller's groups.
pub(crate) fn status(agent: &Agent, workers: &[Node]) -> NodeStatus {
    let owned = workers.iter().flat_map(|worker| worker.owned_groups().map(move |id| (worker, id)));
    let groups = owned.filter(|(_, id)| agent.table.contains(id.0)).filter_map(|(node, id)| {
        let (entry, acknowledgements) = (node.group_entry(id)?, node.acknowledgements(id)?);
        let branches = (0..).map(BranchIndex).zip(&entry.branches).map(|(index, branch)| BranchStatus {
            address: branch.responder,
            expected_psn: acknowledgements.expected_psn(index).map(Psn::get),
            lag: acknowledgements.lag(index),
            cnps: 0,
            packets_resent: node.branch_repair(id, index).map(|repair| repair.counters.packets_resent),
            is_repairing: false,
        });
        let repair = entry.repair.as_ref().map(|_| repair_status(node, id));
        let highest_psn = acknowledgements.highest_psn().map(Psn::get);
        let awaits_first_psn = node.awaits_first_psn(id);
        let branches = branches.collect();
        Some(GroupStatus { group: id.0, highest_psn, awaits_first_psn, repair, branches })
    });
    NodeStatus { groups: groups.collect(), ..NodeStatus::default() }
}

fn repair_status(node: &Node, id: GroupId) -> GroupRepairStatus {
    let counters = node.repair_counters(id).unwrap_or_default();
    GroupRepairStatus {
        lacks_memory: node.lacks_repair_memory(id),
        packets_resent: counters.packets_resent,
        requests_sent: counters.requests_sent,
        gaps_given_up: counters.gaps_given_up,
        windows_exceeded: counters.windows_exceeded,
        kept: node.repair_fill(id).unwrap_or_default().packets,
    }
}

/// Whether an agent has a group of the controller.
pub(crate) fn has_group(agent: &Agent, id: u32) -> bool {
    agent.table.contains(id)
}

/// The newest epoch of a group that an agent has prepared or committed; 0 without the group.
pub(crate) fn newest_epoch(agent: &Agent, id: u32) -> u32 {
    let held = agent.table.held();
    held.iter().filter(|held| held.group == id).map(|held| held.entries.newest_epoch()).max().unwrap_or(0)
}

/// An order: its group, what it is, and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderName {
    pub(crate) group: u32,
    pub(crate) phase: Phase,
    pub(crate) epoch: u32,
}

impl OrderName {
    /// Whether an answer for this epoch answers it. A removal is executed by one of a later epoch, after which a node
    /// ignores those of earlier ones.
    pub(crate) fn is_answered_by(&self, epoch: u32) -> bool {
        self.epoch == epoch || (self.phase == Phase::Removing && self.epoch < epoch)
    }

    /// Whether `other`, which is sent after it, asks for nothing new.
    pub(crate) fn covers(&self, other: &OrderName) -> bool {
        let are_removals = self.phase == Phase::Removing && other.phase == Phase::Removing;
        self == other || (are_removals && self.epoch >= other.epoch)
    }
}

/// Whether receivers move to the node of an order by it (D280).
pub(crate) fn moves_receivers(order: &NodeOrder) -> bool {
    match order {
        NodeOrder::Prepare { entry, name, .. } => entry.receivers.iter().any(|receiver| receiver.moved == name.epoch),
        NodeOrder::Commit { .. } | NodeOrder::Abort { .. } | NodeOrder::Restore { .. } | NodeOrder::Remove { .. } => {
            false
        }
    }
}

/// Whether the node of an order takes the place of another headend by it (D289).
pub(crate) fn replaces_headend(order: &NodeOrder) -> bool {
    match order {
        NodeOrder::Prepare { entry, name, .. } => entry.headend.is_some() && entry.renewed == name.epoch,
        NodeOrder::Commit { .. } | NodeOrder::Abort { .. } | NodeOrder::Restore { .. } | NodeOrder::Remove { .. } => {
            false
        }
    }
}

pub(crate) fn order_name(order: &NodeOrder) -> OrderName {
    let (group, phase, epoch) = match order {
        NodeOrder::Prepare { entry, name, .. } => (entry.id.0, Phase::Preparing, name.epoch),
        NodeOrder::Commit { group, name, .. } => (*group, Phase::Committing, name.epoch),
        NodeOrder::Abort { group, name, .. } => (*group, Phase::Aborting, name.epoch),
        NodeOrder::Restore { entry, name, .. } => (entry.id.0, Phase::Restoring, name.epoch),
        NodeOrder::Remove { group, epoch, .. } => (*group, Phase::Removing, *epoch),
    };
    OrderName { group, phase, epoch }
}

/// The groups and epochs of the orders that a request answers.
pub(crate) fn answered_orders(request: &Request) -> Vec<(u32, u32)> {
    let Request::Sync { sync, .. } = request else { return Vec::new() };
    let answered = sync.answers.iter().map(|answer| match answer {
        NodeAnswer::Prepared { group, name }
        | NodeAnswer::Refused { group, name, .. }
        | NodeAnswer::Committed { group, name } => (*group, name.epoch),
        NodeAnswer::Removed { group, epoch, .. } => (*group, *epoch),
    });
    answered.collect()
}

/// The group whose record a write stores, unless all nodes have it.
pub(crate) fn stored_record(write: &Write) -> Option<u32> {
    const UNSETTLED: &[u8] = br#""is_settled":false"#;
    let Write::Put { key, value } = write else { return None };
    let id = key.strip_prefix("record/")?.parse().ok()?;
    value.windows(UNSETTLED.len()).any(|octets| octets == UNSETTLED).then_some(id)
}

/// The number of a group at nodes.
pub(crate) fn group_id(id: u32) -> GroupId {
    GroupId(id)
}
