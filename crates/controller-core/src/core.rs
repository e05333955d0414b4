//! The controller's state and decisions: requests go in; answers, writes for the store, orders for nodes and events
//! come out. The [pipeline](crate::Pipeline) releases them once the writes are durable.

mod arrears;
mod commit;
mod divergence;
mod drive;
mod foreign;
mod groups;
mod groups_of_node;
mod headends;
mod identities;
mod inventory;
mod jobs;
mod leftovers;
mod links;
mod members;
mod moves;
mod nodes;
mod repair;
mod reroute;
mod reservations;
mod restore;
mod sources;
mod stalls;
mod successors;
mod views;

pub use jobs::{JobOutcome, JobRequest, JobTask};
pub use repair::SEARCH_INTERVAL;

use crate::jobs::Jobs;
use crate::network::Network;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::{self, AnswerRow, GroupRow, MemberRow, SiteRow, Write};
use crate::settings::Settings;
use groups_of_node::GroupsOfNode;
use links::{Link, Load};
use srdma_api::ProblemType;
use srdma_api::{AuditEntry, EventKind, NewReceiver, NodeIdentity, NodeOrder, NodeStatus, Registration};
use srdma_group::{Lifecycle, Newcomer, Record};
use srdma_wire::Psn;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Duration;

/// The time of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Since any fixed time.
    pub monotonic: Duration,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
}

/// The controller's state.
#[derive(Clone, Debug)]
pub struct Core {
    settings: Settings,
    /// Of the current transaction.
    now: Time,
    site: SiteRow,
    groups: BTreeMap<u32, Group>,
    /// Number of groups that each tenant has.
    groups_of_tenant: BTreeMap<String, usize>,
    proxies: BTreeMap<Ipv6Addr, u32>,
    /// The newest group that resumes each (D193).
    successors: BTreeMap<u32, u32>,
    /// Group of each queue pair, including those of sources (D2, D8).
    queue_pairs: BTreeMap<(Ipv6Addr, u32), u32>,
    nodes: BTreeMap<Ipv6Addr, Node>,
    /// The identities that unconfirmed nodes have registered, by name.
    unconfirmed: BTreeMap<String, NodeIdentity>,
    network: Network,
    /// Incremented when a node or link is added or removed.
    network_version: u64,
    /// The groups of each node, by its loopback.
    groups_of_node: GroupsOfNode,
    /// Number of groups that each link carries.
    load: Load,
    /// Groups with a change in progress.
    unsettled: BTreeSet<u32>,
    /// Groups with receivers that join in two steps.
    reserving: BTreeSet<u32>,
    sessions: u64,
    answers: BTreeMap<String, AnswerRow>,
    /// Jobs, if a fabric is configured.
    jobs: Option<Jobs>,
    /// Groups of a lost store are restored from recovery snapshots.
    rebuilds: bool,
    stalls: stalls::Stalls,
    foreign: foreign::Foreign,
    leftovers: leftovers::Leftovers,
    /// Time of the last search for dead nodes.
    searched: Duration,
    /// Deadline for nodes to register after the controller's start.
    expects_until: Duration,
    effects: Effects,
}

/// Output of the controller that waits until all writes are durable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub(crate) writes: Vec<Write>,
    pub(crate) orders: Vec<(Ipv6Addr, NodeOrder)>,
    /// Each with its tenant.
    pub(crate) events: Vec<(Option<String>, EventKind)>,
    /// Each with the loopback of its node.
    pub(crate) ended_sessions: Vec<Ipv6Addr>,
    pub(crate) changed_groups: BTreeSet<u32>,
}

/// A group.
#[derive(Clone, Debug)]
struct Group {
    row: GroupRow,
    members: BTreeMap<Ipv6Addr, MemberRow>,
    /// Set by the first commit.
    lifecycle: Option<Lifecycle>,
    /// The record in the store, and the former one until all nodes have committed.
    record: Option<Record>,
    before: Option<Record>,
    /// The receivers of the join in progress.
    joining: Vec<Newcomer>,
    /// The network's version and the record's epoch at the last attempt to move receivers.
    moves_tried: Option<(u64, u32)>,
    /// Receivers that join in two steps, and are no members yet.
    reservations: BTreeMap<Ipv6Addr, reservations::Reservation>,
    /// Time at which the source reported last, or the controller started.
    source_seen: Duration,
    /// The round of the pause that the source was ordered, and the time.
    pausing: Option<(u32, Duration)>,
    /// The explanation of the tree.
    explanation: Vec<String>,
    /// Number of links that unicast would use, when the record was made; none for one that was recovered.
    links_of_unicast: Option<u32>,
    /// The nodes of its tree, indexed by [`Core::groups_of_node`].
    nodes: BTreeSet<Ipv6Addr>,
    /// The links of its tree, counted in [`Core::load`].
    links: Vec<Link>,
    reports: divergence::Reports,
    /// The PSN before which the source has completed everything, since the controller's start.
    completed: Option<Psn>,
    /// Receivers that have missed data (D131).
    arrears: BTreeMap<Ipv6Addr, arrears::Arrears>,
    /// It was in the store when the controller started.
    is_restored: bool,
    /// Receivers whose leave was accepted since then, until the group is verified.
    left: BTreeMap<Ipv6Addr, NewReceiver>,
}

/// A node.
#[derive(Clone, Debug)]
struct Node {
    /// The name by which it is shown; its registrations may have a former one.
    name: String,
    /// Its last registration.
    registration: Registration,
    /// What of its registration may be used.
    identity: NodeIdentity,
    is_drained: bool,
    /// It is deleted when no group has it.
    is_removing: bool,
    session: Option<u64>,
    /// Protocol of the session.
    protocol: u32,
    /// Time of its last request, or of the controller's start.
    heard: Duration,
    /// It is dead, and has not registered since.
    was_dead: bool,
    status: Option<NodeStatus>,
    /// Time of the last status, and octets per second sent by each port since the previous one.
    rates: Option<(Duration, BTreeMap<String, f64>)>,
}

impl Core {
    /// An empty controller, to be filled from [rows](Core::restore).
    fn new(settings: Settings, now: Time) -> Self {
        Core {
            expects_until: now.monotonic + settings.node_dead_after,
            settings,
            now,
            site: SiteRow::default(),
            groups: BTreeMap::new(),
            groups_of_tenant: BTreeMap::new(),
            proxies: BTreeMap::new(),
            successors: BTreeMap::new(),
            queue_pairs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            unconfirmed: BTreeMap::new(),
            network: Network::default(),
            network_version: 0,
            groups_of_node: GroupsOfNode::default(),
            load: Load::default(),
            unsettled: BTreeSet::new(),
            reserving: BTreeSet::new(),
            sessions: 0,
            answers: BTreeMap::new(),
            jobs: None,
            rebuilds: false,
            stalls: stalls::Stalls::default(),
            foreign: foreign::Foreign::default(),
            leftovers: leftovers::Leftovers::default(),
            searched: now.monotonic,
            effects: Effects::default(),
        }
    }

    pub(crate) fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Takes the effects since the last call.
    pub(crate) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// The group, if the principal may read it. Another tenant's group is refused as one that does not exist.
    fn seen(&self, id: u32, principal: &Principal) -> Result<&Group, Refusal> {
        principal.may_read_some()?;
        let group = self.groups.get(&id).filter(|group| principal.may_read(&group.row.tenant).is_ok());
        group.ok_or_else(|| self.missing(id))
    }

    /// The group, if the principal may change it, at this version; others as by [`Core::seen`].
    fn changeable(&self, id: u32, principal: &Principal, version: Option<u64>) -> Result<&Group, Refusal> {
        principal.may_change_some()?;
        let group = self.groups.get(&id).filter(|group| principal.may_change(&group.row.tenant).is_ok());
        let group = group.ok_or_else(|| self.missing(id))?;
        if group.row.is_closing {
            return Err(Refusal::new(ProblemType::GroupClosing, format!("group {id} is being closed")));
        }
        match version {
            Some(version) if version != group.row.version => {
                let now = group.row.version;
                let text = format!("group {id} has version {now}, not {version}: read it again");
                Err(Refusal::new(ProblemType::VersionMismatch, text))
            }
            Some(_) | None => Ok(group),
        }
    }

    fn audit(&mut self, who: &str, action: &str, target: String) {
        self.site.last_audit += 1;
        let number = self.site.last_audit;
        let entry =
            AuditEntry { number, unix_ms: self.now.unix_ms, who: who.to_owned(), action: action.to_owned(), target };
        self.write(rows::put(rows::audit_key(number), &entry));
        if let Some(old) = number.checked_sub(MAX_AUDIT_ENTRIES) {
            self.write(Write::Delete { key: rows::audit_key(old) });
        }
        self.write(rows::put(rows::SITE_KEY.to_owned(), &self.site));
    }

    fn write(&mut self, write: Write) {
        self.effects.writes.push(write);
    }

    /// Writes a group's row with an incremented version.
    fn write_group(&mut self, id: u32) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.row.version += 1;
            self.effects.writes.push(rows::put(rows::group_key(id), &group.row));
            self.effects.changed_groups.insert(id);
        }
    }

    fn emit(&mut self, tenant: Option<&str>, kind: EventKind) {
        self.effects.events.push((tenant.map(str::to_owned), kind));
    }

    /// Emits an event of a group.
    fn emit_for_group(&mut self, id: u32, kind: EventKind) {
        let tenant = self.groups.get(&id).map(|group| group.row.tenant.clone());
        self.emit(tenant.as_deref(), kind);
    }
}

/// Limit of entries of the audit log.
const MAX_AUDIT_ENTRIES: u64 = 1_000_000;

fn unknown(id: u32) -> Refusal {
    Refusal::new(ProblemType::UnknownGroup, format!("group {id} does not exist"))
}
