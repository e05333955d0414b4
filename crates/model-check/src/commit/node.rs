//! A node: the real group table and controller session of the agent, and its connection to the controller.
//!
//! One request is outstanding at a time. A request that the node has given up may still be on its way, and reaches the
//! controller later than the next ones.

use super::bounds::Ablation;
use super::canonical::fingerprint;
use super::network::Place;
use srdma_agent::{ControllerSession, Failure, GroupTable, Report, Request};
use srdma_api::{GroupStatus, HeldGroup, NodeAnswer, NodeOrder, NodeStatus, Registration, Session, Sync};
use srdma_group::{EntryName, GroupEntry};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Numbers of the groups that the application creates.
const MAX_GROUP: u32 = 3;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) table: GroupTable,
    session: ControllerSession,
    /// The response that is on its way.
    pub(super) response: Option<Response>,
    /// A request that the node has given up, and that is on its way.
    pub(super) late: Option<Message>,
    /// It does not reach the controller, which has noticed it if `is_expired`.
    pub(super) is_cut: bool,
    pub(super) is_expired: bool,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Register(Box<Registration>),
    Report(Sync),
}

#[derive(Clone, Debug)]
pub(super) enum Response {
    Registered(Session),
    Orders(Vec<NodeOrder>),
}

impl Node {
    pub(super) fn new(place: Place) -> Self {
        Node {
            table: GroupTable::new(place.allowed()),
            session: ControllerSession::default(),
            response: None,
            late: None,
            is_cut: false,
            is_expired: false,
        }
    }

    /// The node loses its state; what is in the network stays there.
    pub(super) fn restart(&mut self, place: Place) {
        (self.table, self.session) = (GroupTable::new(place.allowed()), ControllerSession::default());
        self.response = None;
    }

    /// The next request. `places`: of the network. `reports_status`: with the node's status.
    pub(super) fn request(&mut self, place: Place, places: &[Place], reports_status: bool) -> Message {
        match self.session.next(Duration::ZERO) {
            Request::Register { protocol } => {
                let groups = self.table.held();
                Message::Register(Box::new(Registration { protocol, groups, ..place.registration(places) }))
            }
            Request::Sync => {
                let status = reports_status.then(|| self.status());
                Message::Report(self.session.sync(Report { status, ..Report::default() }))
            }
        }
    }

    /// Its status: the groups that it has in effect, without data.
    pub(super) fn status(&self) -> NodeStatus {
        let in_effect = self.table.held().into_iter().filter(|held| held.entries.committed.is_some());
        let groups = in_effect.map(|held| GroupStatus {
            group: held.group,
            highest_psn: None,
            awaits_first_psn: false,
            repair: None,
            branches: Vec::new(),
        });
        NodeStatus { groups: groups.collect(), ..NodeStatus::default() }
    }

    /// The number of its session; 0 without one.
    pub(super) fn session(&self) -> u64 {
        self.session.sync(Report::default()).session
    }

    /// All that determines its next steps but whether its session is current.
    pub(super) fn fingerprint(&self) -> u64 {
        fingerprint(self)
    }

    /// The answers that the controller has not received.
    pub(super) fn answers(&self) -> Vec<NodeAnswer> {
        self.session.sync(Report::default()).answers
    }

    pub(super) fn failed(&mut self, failure: Failure) {
        self.session.failed(failure, Duration::ZERO);
    }

    /// The response does not arrive.
    pub(super) fn lose_response(&mut self) {
        if self.response.take().is_some() {
            self.failed(Failure::Unreachable);
        }
    }

    /// The response arrives: orders are executed. Returns what the table did that it must not do.
    pub(super) fn receive(&mut self, ablation: Ablation) -> Result<(), String> {
        match self.response.take() {
            Some(Response::Registered(session)) => match self.session.registered(&session) {
                Ok(()) => {}
                Err(_) => self.failed(Failure::Refused),
            },
            Some(Response::Orders(orders)) => {
                let mut answers = Vec::new();
                for order in orders {
                    answers.extend(self.execute(order, ablation)?);
                }
                self.session.synced(answers);
            }
            None => {}
        }
        Ok(())
    }

    fn execute(&mut self, order: NodeOrder, ablation: Ablation) -> Result<Option<NodeAnswer>, String> {
        if ablation == Ablation::EpochIsName
            && let Some(answer) = self.answer_by_epoch(&order)
        {
            return Ok(Some(answer));
        }
        let before = self.table.held();
        let answer = self.table.execute(order.clone());
        let after = self.table.held();
        check_stores(&order, &before, &after)?;
        check_epochs(&before, &after)?;
        if let Some(NodeAnswer::Committed { group, name }) = &answer {
            check_committed(&after, *group, *name)?;
        }
        Ok(answer)
    }

    /// An answer that compares the number of the epoch alone.
    fn answer_by_epoch(&self, order: &NodeOrder) -> Option<NodeAnswer> {
        let (group, name, is_prepare) = match order {
            NodeOrder::Prepare { name, entry, .. } => (entry.id.0, *name, true),
            NodeOrder::Restore { name, entry, .. } => (entry.id.0, *name, false),
            NodeOrder::Commit { group, name, .. } => (*group, *name, false),
            NodeOrder::Abort { .. } | NodeOrder::Remove { .. } => return None,
        };
        let held = self.table.held();
        let committed = held.iter().find(|held| held.group == group)?.entries.committed?;
        (committed.epoch == name.epoch).then_some(match is_prepare {
            true => NodeAnswer::Prepared { group, name },
            false => NodeAnswer::Committed { group, name },
        })
    }

    /// The entry in effect for data to this Proxy Address.
    pub(super) fn entry(&self, proxy: Ipv6Addr) -> Option<&GroupEntry> {
        let mut entries = (1..=MAX_GROUP).filter_map(|group| self.table.entry(group));
        entries.find(|entry| entry.proxy == proxy)
    }

    /// The responders whose acknowledgements it waits for.
    pub(super) fn branches(&self, proxy: Ipv6Addr) -> Option<BTreeSet<Ipv6Addr>> {
        Some(self.entry(proxy)?.branches.iter().map(|branch| branch.responder).collect())
    }
}

fn held(groups: &[HeldGroup], group: u32) -> Option<&HeldGroup> {
    groups.iter().find(|held| held.group == group)
}

/// A store's order changes no group of another store.
fn check_stores(order: &NodeOrder, before: &[HeldGroup], after: &[HeldGroup]) -> Result<(), String> {
    let (NodeOrder::Prepare { store, .. }
    | NodeOrder::Commit { store, .. }
    | NodeOrder::Abort { store, .. }
    | NodeOrder::Restore { store, .. }
    | NodeOrder::Remove { store, .. }) = order;
    let changed = before.iter().find(|had| had.store != *store && held(after, had.group) != Some(had));
    match changed {
        Some(had) => Err(format!("an order of store {store} has changed group {} of store {}", had.group, had.store)),
        None => Ok(()),
    }
}

/// The epoch in effect never decreases while the group stays.
fn check_epochs(before: &[HeldGroup], after: &[HeldGroup]) -> Result<(), String> {
    for had in before {
        let (Some(was), Some(now)) = (had.entries.committed, held(after, had.group)) else { continue };
        if now.store == had.store && now.entries.committed.is_some_and(|now| now.epoch < was.epoch) {
            return Err(format!("epoch {} of group {} was replaced by an older one", was.epoch, had.group));
        }
    }
    Ok(())
}

/// A node answers "committed" for the name that it has in effect.
fn check_committed(after: &[HeldGroup], group: u32, name: EntryName) -> Result<(), String> {
    match held(after, group).and_then(|held| held.entries.committed) {
        Some(committed) if committed == name => Ok(()),
        committed => Err(format!("answered {name} of group {group} as committed, and has {committed:?}")),
    }
}
