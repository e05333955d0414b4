//! A group from its creation to its end, as a control plane drives it: its input are requests and replies, its output
//! orders (D25, D30, D31).
//!
//! ```text
//!              all prepared                  stage by stage           those that leave
//! create ──► Preparing ─────────► Store ──► Committing ──► … ──► Removing ──────────────────► Steady
//!              │   ▲                │           ▲                              Ready, at last  │  ▲
//!              │   │                └─ Fencing ─┘ another headend                              │  │
//!              │   └──────────── evict, re-home, move, join, replace the headend ─────────────┘  │
//!              └─ refused: Abort ────────────────────────────────────────────────────────────────┘
//!                          (of a creation: Closed)
//!
//! any ── close ──► Closing ── all removed ──► Closed
//!
//! source:  Waiting ── Ready ──► Running ── Pause ──► Pausing ── quiescent ──► Quiet ── Ready ──► Running
//!                                                                              (joins happen here)
//!
//! newcomer:  waiting ── quiescent ──► reserved at J ── ready ──► in the change ──► member
//!                                         └── expired ──► gone
//! ```
//!
//! Invariants, under loss, repetition and delay of messages, restarts of nodes and of the controller:
//!
//! * all concerned nodes that are connected have prepared their group entries before the record is stored, so that no
//!   node refuses a stored record;
//! * the record is stored before any node commits;
//! * nodes commit in the order of [`stages`], stage by stage; a node that restarts before its stage has its former
//!   entry restored;
//! * one headend at most answers the source: when another takes its place, the former one has removed the group, has
//!   committed the entry that it has in the new tree, or is fenced, before any other node commits (D289);
//! * the source is released when all nodes have committed, and is quiet during a join;
//! * a node whose connection is lost may be forwarding: a change in which it gains a member waits for it, unless its
//!   parent rejects its earlier responses (D97). An eviction may take the place of such a change;
//! * no change begins before the headend has registered since the controller's start: it has the newest record, unless
//!   the store is older than what nodes have in effect (D98).
//!
//! Changes are made one at a time, each under an epoch of its own; the others wait. The epoch of an aborted change is
//! not reused, so that a late reply to it is recognized.

mod change;
mod draft;
mod fencing;
mod member;
mod order;
mod progress;
mod registration;
mod reservation;
mod resume;
mod stages;

pub use change::{Admission, ChangeError, Move, NewNode, Newcomer, Rehoming, Replacement};
pub use order::Order;
pub use registration::Ahead;
pub use resume::Resumption;

use crate::group::{Group, GroupError, Join, Record};
use crate::name::EntryName;
use crate::safeguard::Safeguard;
use change::{Waiting, Wanted, check_eviction, is_over, is_receiver};
use member::{Effect, Member, Presence, Reply, Step, Verification};
use srdma_wire::Psn;
use stages::Before;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;

/// The lifecycle of a group, without I/O and without time: the driver executes its [orders](Order), passes it the
/// replies, and calls [`repeat`](Lifecycle::repeat) when a reply is overdue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// The last stored state of the group.
    stored: Option<Group>,
    change: Option<Change>,
    phase: Phase,
    members: BTreeMap<Ipv6Addr, Member>,
    source: Source,
    waiting: Waiting,
    /// What newcomers have said: each is ready to receive from this PSN on (D187).
    ready: BTreeMap<Ipv6Addr, Psn>,
    /// Nodes without which no waiting change can begin.
    blocked_by: BTreeSet<Ipv6Addr>,
    /// Lost nodes that do nothing for the group until they register (D122, D135).
    fenced: BTreeSet<Ipv6Addr>,
    orders: VecDeque<Order>,
    last_epoch: u32,
    rounds: u32,
    /// It was closed before it was verified: the nodes that are not known any more may have another entry.
    is_closed_unverified: bool,
    /// Disabled by a test.
    without: Option<Safeguard>,
}

/// A change in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    before: Option<Group>,
    after: Group,
    stages: usize,
    /// The request, to be repeated if the change cannot be completed now; `None` for a creation.
    wanted: Option<Wanted>,
    /// All receivers that a node may have.
    receivers: BTreeSet<Ipv6Addr>,
    /// It takes the place of a stored change that a lost node holds up, so that it cannot be aborted.
    is_superseding: bool,
    /// It was resumed from the store: any node may have committed it.
    is_resumed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Steady,
    Preparing,
    /// The former headend is to end, before any node commits.
    Fencing,
    Committing {
        stage: usize,
    },
    Removing,
    Closing,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Waiting,
    Running { acknowledged: bool },
    Pausing,
    Quiet(Join),
}

impl Lifecycle {
    /// Begins to create a group. A refusal by a node closes it again.
    pub fn create(record: Record) -> Result<Self, GroupError> {
        let after = Group::new(record)?;
        let mut lifecycle = Lifecycle {
            stored: None,
            change: None,
            phase: Phase::Steady,
            members: BTreeMap::new(),
            source: Source::Waiting,
            waiting: Waiting::default(),
            ready: BTreeMap::new(),
            blocked_by: BTreeSet::new(),
            fenced: BTreeSet::new(),
            orders: VecDeque::new(),
            last_epoch: after.record().epoch,
            rounds: 0,
            is_closed_unverified: false,
            without: None,
        };
        lifecycle.begin(after, None);
        Ok(lifecycle)
    }

    /// The same without a safeguard, for tests that show what it prevents.
    pub fn without(mut self, safeguard: Option<Safeguard>) -> Self {
        self.without = safeguard;
        for concern in self.members.values_mut().filter_map(|member| member.concern.as_mut()) {
            concern.must_commit &= safeguard != Some(Safeguard::LostNodesAwaited);
        }
        self
    }

    /// The next order.
    pub fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// The last stored state of the group; `None` during its creation.
    pub fn group(&self) -> Option<&Group> {
        self.stored.as_ref()
    }

    /// The last epoch that a node may have been given.
    pub fn last_epoch(&self) -> u32 {
        self.last_epoch
    }

    /// The epoch of the stored record; 0 without one.
    fn stored_epoch(&self) -> u32 {
        self.stored.as_ref().map_or(0, |group| group.record().epoch)
    }

    /// Whether all connected nodes have committed the stored record, and no change waits.
    pub fn is_steady(&self) -> bool {
        self.waiting.is_empty() && self.is_between_changes()
    }

    /// The same, while changes may wait: for a lost node, or for the source.
    pub fn is_between_changes(&self) -> bool {
        let is_returning = |member: &Member| matches!(member.presence, Presence::Returning(_) | Presence::Unheard);
        self.phase == Phase::Steady && !self.members.values().any(is_returning)
    }

    /// Whether a change in progress, or one that waits, may lead around a node: joins and evictions do not.
    pub fn may_reroute(&self) -> bool {
        let is_other = |wanted: &Wanted| !matches!(wanted, Wanted::Join { .. } | Wanted::Evict(_));
        !self.is_between_changes() || self.waiting.in_order().any(|(_, wanted)| is_other(wanted))
    }

    /// Whether the group is closed: no order follows.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Removes receivers that are stalled, have failed or leave (D25). The source is not paused: earlier responses are
    /// true for a smaller set of receivers.
    pub fn evict(&mut self, receivers: &[Ipv6Addr]) -> Result<(), ChangeError> {
        if receivers.is_empty() {
            return Err(ChangeError::Nothing);
        }
        let receivers: BTreeSet<Ipv6Addr> = receivers.iter().copied().collect();
        self.latest()?;
        let receivers = self.withdraw(receivers);
        if receivers.is_empty() {
            self.advance();
            return Ok(());
        }
        let group = self.latest()?;
        let newcomers = self.waiting.newcomers();
        let is_known = |address: &&Ipv6Addr| is_receiver(group, **address) || newcomers.contains(*address);
        if let Some(unknown) = receivers.iter().find(|address| !is_known(address)) {
            return Err(ChangeError::NotAReceiver(*unknown));
        }
        // Newcomers do not count, which may wait for a source that a dead receiver keeps from becoming quiet. Nor do
        // those that a change in progress adds, which may be aborted.
        let gone: BTreeSet<Ipv6Addr> = self.waiting.evictions().union(&receivers).copied().collect();
        for group in self.stored.iter().chain([group]) {
            check_eviction(group, &gone)?;
        }
        self.want(Wanted::Evict(receivers))
    }

    /// The receivers whose eviction waits or is in progress.
    pub fn leaving(&self) -> BTreeSet<Ipv6Addr> {
        let mut leaving = self.waiting.evictions();
        if let Some(change) = &self.change {
            let stay = &change.after.record().receivers;
            let is_gone = |address: &&Ipv6Addr| !stay.iter().any(|receiver| receiver.address == **address);
            leaving.extend(change.receivers.iter().filter(is_gone));
        }
        leaving
    }

    /// The receivers whose join waits or is in progress.
    pub fn joining(&self) -> BTreeSet<Ipv6Addr> {
        let mut joining = self.waiting.newcomers();
        if let Some(change) = &self.change {
            let before = change.before.iter().flat_map(|before| &before.record().receivers);
            let before: BTreeSet<Ipv6Addr> = before.map(|receiver| receiver.address).collect();
            let after = change.after.record().receivers.iter().map(|receiver| receiver.address);
            joining.extend(after.filter(|receiver| !before.contains(receiver)));
        }
        joining
    }

    /// Receivers leave: an eviction at their own request (D30).
    pub fn leave(&mut self, receivers: &[Ipv6Addr]) -> Result<(), ChangeError> {
        self.evict(receivers)
    }

    /// Adds receivers, with the nodes that the tree needs for them, when the source is quiet (D30). `link_mtu`: of all
    /// links of the tree then, if it changes.
    pub fn join(
        &mut self,
        newcomers: Vec<Newcomer>,
        new_nodes: Vec<NewNode>,
        link_mtu: Option<u16>,
    ) -> Result<(), ChangeError> {
        if newcomers.is_empty() {
            return Err(ChangeError::Nothing);
        }
        self.want_checked(Wanted::Join { newcomers, new_nodes, link_mtu, of_epoch: self.stored_epoch() })
    }

    /// Moves a node with its descendants to another parent. The old parent may be dead; the source is not paused.
    pub fn rehome(
        &mut self,
        node: Ipv6Addr,
        parent: Ipv6Addr,
        parent_sid: Option<Ipv6Addr>,
    ) -> Result<(), ChangeError> {
        self.rehome_by(Rehoming { node, parent, parent_sid, new_nodes: Vec::new(), link_mtu: None })
    }

    /// The same by nodes that are new to the tree.
    pub fn rehome_by(&mut self, rehoming: Rehoming) -> Result<(), ChangeError> {
        self.want_checked(Wanted::Rehome { rehoming, of_epoch: self.stored_epoch() })
    }

    /// Moves receivers to other edges. The former ones may be dead; the source is not paused (D280).
    pub fn move_receivers(&mut self, moving: Move) -> Result<(), ChangeError> {
        self.want_checked(Wanted::Move { moving, of_epoch: self.stored_epoch() })
    }

    /// Aborts the joins that wait for a quiescent source, after a timeout that the driver measures. A source that
    /// replies later is released.
    pub fn abort_joins(&mut self, reason: &str) {
        if self.waiting.remove_those_that_need_a_quiet_source() {
            self.orders.push_back(Order::Aborted { reason: reason.to_owned() });
        }
        self.advance();
    }

    /// Ends the group at every node. Pending requests are dropped.
    pub fn close(&mut self) {
        match self.phase {
            Phase::Closing | Phase::Closed => return,
            Phase::Steady | Phase::Preparing | Phase::Fencing | Phase::Committing { .. } | Phase::Removing => {}
        }
        self.is_closed_unverified = !self.is_verified();
        self.waiting.clear();
        self.ready.clear();
        self.orders.clear();
        self.change = None;
        self.phase = Phase::Closing;
        self.members.retain(|_, member| member.presence != Presence::Lost);
        for member in self.members.values_mut() {
            let presence = match member.presence {
                Presence::Unheard => Presence::Unheard,
                Presence::Here | Presence::Returning(_) | Presence::Lost => Presence::Here,
            };
            *member = Member { step: Step::Removing, presence, concern: None, ..*member };
        }
        self.order_for_all();
        self.advance();
    }

    /// Everything before `psn` has been acknowledged to the source. Marks of joins that are old enough are removed by a
    /// change of their own. To be called at least every 2^21 packets, since PSNs wrap.
    pub fn settled(&mut self, psn: Psn) {
        let is_due = |group: &Group| group.record().receivers.iter().any(|receiver| is_over(receiver, psn));
        if self.latest().is_ok_and(is_due) {
            // A renewal that exceeds the limit now is requested again by the next call.
            let _ = self.want(Wanted::Settle(psn));
        }
    }

    /// A node has prepared its group entry of this name.
    pub fn prepared(&mut self, node: Ipv6Addr, name: EntryName) {
        self.on_reply(node, name, Reply::Prepared, String::new());
    }

    /// A node has refused its group entry, or has none to commit.
    pub fn refused(&mut self, node: Ipv6Addr, name: EntryName, reason: String) {
        self.on_reply(node, name, Reply::Refused, reason);
    }

    /// A node has committed its group entry of this name.
    pub fn committed(&mut self, node: Ipv6Addr, name: EntryName) {
        self.on_reply(node, name, Reply::Committed, String::new());
    }

    /// A node has removed the group; `epoch`: that of the order.
    pub fn removed(&mut self, node: Ipv6Addr, epoch: u32) {
        if epoch == self.last_epoch
            && let Some(member) = self.members.get_mut(&node)
            && member.on_reply(Reply::Removed, false) == Effect::Gone
        {
            self.members.remove(&node);
            self.advance();
        }
    }

    /// The source is paused with nothing outstanding. `psn`: its next PSN; `msn`: its completed messages, modulo 2^24.
    pub fn quiescent(&mut self, round: u32, psn: Psn, msn: u32) {
        match self.source {
            Source::Pausing if round == self.rounds => self.source = Source::Quiet(Join { psn, msn }),
            Source::Pausing | Source::Waiting | Source::Running { .. } | Source::Quiet(_) => {}
        }
        self.advance();
    }

    /// The source has an order of this round, which another controller or a later state of the store has given it: the
    /// rounds that follow are not less, since it ignores earlier ones.
    /// `pausing`: it is ordered to pause, and has not been released. Only another history has released it from the
    /// round of a pause that lasts: a store that was restored may use the numbers of rounds again.
    pub fn source_knows(&mut self, round: u32, pausing: bool) {
        let is_released = round == self.rounds && !pausing && self.source == Source::Pausing;
        if round <= self.rounds && !is_released {
            return;
        }
        match self.source {
            Source::Waiting | Source::Quiet(_) => self.rounds = round,
            Source::Running { .. } => (self.rounds, self.source) = (round, Source::Running { acknowledged: false }),
            // It ignores the pause of a round that it was released from.
            Source::Pausing => self.rounds = round.saturating_add(1),
        }
    }

    /// The source has acknowledged its release.
    pub fn running(&mut self, round: u32) {
        match self.source {
            Source::Running { .. } if round == self.rounds => self.source = Source::Running { acknowledged: true },
            Source::Running { .. } | Source::Waiting | Source::Pausing | Source::Quiet(_) => {}
        }
    }

    /// The controller has lost the connection of a node, which may be dead, or forwarding with the entry that it has. A
    /// change in progress in which it gains a member is postponed until it has [registered](Lifecycle::registered),
    /// or, once it is stored, waits for that. Other changes do not wait for it.
    pub fn lost(&mut self, node: Ipv6Addr) {
        let change = self.change.as_ref().filter(|change| !change.is_superseding);
        let (is_abortable, is_new) = (change.is_some(), change.is_some_and(|change| !change.is_known(node)));
        let Some(member) = self.members.get_mut(&node) else {
            return;
        };
        member.presence = Presence::Lost;
        match (self.phase, member.step) {
            (Phase::Preparing, Step::Preparing | Step::Prepared) if is_new => {
                self.abort(format!("node {node} is lost"));
            }
            (Phase::Preparing, Step::Preparing | Step::Prepared) if is_abortable && member.must_commit() => {
                self.postpone();
            }
            // It may be the headend still.
            (Phase::Fencing, Step::Removing) => member.step = Step::Leaving,
            (_, Step::Removing) => {
                self.members.remove(&node);
            }
            (_, Step::Settled | Step::Preparing | Step::Prepared | Step::Committing | Step::Leaving) => {}
        }
        self.advance();
    }

    /// Retransmits the orders without a reply.
    pub fn repeat(&mut self) {
        self.want_renewal();
        if self.orders.is_empty() {
            self.order_for_all();
            self.order_for_source();
        }
    }

    /// The group that the next change starts from.
    fn latest(&self) -> Result<&Group, ChangeError> {
        match self.phase {
            Phase::Closing | Phase::Closed => Err(ChangeError::Closed),
            Phase::Steady | Phase::Preparing | Phase::Fencing | Phase::Committing { .. } | Phase::Removing => {
                let changing = self.change.as_ref().map(|change| &change.after);
                changing.or(self.stored.as_ref()).ok_or(ChangeError::Closed)
            }
        }
    }

    /// Rejects an impossible change at once, as far as this is known before the waiting changes.
    fn want_checked(&mut self, wanted: Wanted) -> Result<(), ChangeError> {
        let group = self.latest()?;
        let join = Join { psn: group.record().initial_psn, msn: 0 };
        draft::after(group, self.next_epoch()?, &wanted, Some(join), &BTreeSet::new())?;
        self.want(wanted)
    }

    fn want(&mut self, wanted: Wanted) -> Result<(), ChangeError> {
        self.waiting.push(wanted)?;
        self.advance();
        Ok(())
    }

    fn next_epoch(&self) -> Result<u32, ChangeError> {
        self.last_epoch.checked_add(1).ok_or(ChangeError::LastEpoch(self.last_epoch))
    }

    /// First phase: every concerned node receives its entry.
    fn begin(&mut self, after: Group, wanted: Option<Wanted>) {
        let (concerned, stages) = self.concerned(&after);
        let stays: BTreeSet<Ipv6Addr> = after.record().tree.nodes().iter().map(|node| node.loopback).collect();
        for (loopback, member) in &mut self.members {
            member.step = if stays.contains(loopback) { Step::Settled } else { Step::Leaving };
            member.concern = None;
        }
        for (loopback, concern) in concerned {
            let (step, presence) = (Step::Preparing, Presence::Here);
            let verification = Verification::Verified;
            let new = Member { step, presence, concern: None, verification, abandoned: None, must_renew: false };
            let member = self.members.entry(loopback).or_insert(new);
            *member = Member { step: Step::Preparing, concern: Some(concern), ..*member };
        }
        self.last_epoch = after.record().epoch;
        let superseded = self.change.take();
        let is_superseding = superseded.is_some();
        let (before, mut receivers) = match superseded {
            Some(change) => (change.before, change.receivers),
            None => (self.stored.clone(), BTreeSet::new()),
        };
        let records = before.iter().chain([&after]).flat_map(|group| &group.record().receivers);
        receivers.extend(records.map(|receiver| receiver.address));
        self.change = Some(Change { before, after, stages, wanted, receivers, is_superseding, is_resumed: false });
        self.phase = Phase::Preparing;
        self.order_for_all();
    }

    /// The nodes that a change concerns, and the number of its stages.
    fn concerned(&self, after: &Group) -> (BTreeMap<Ipv6Addr, stages::Concern>, usize) {
        let before = |node: Ipv6Addr| {
            let (group, is_unsettled) = match (&self.change, self.members.get(&node).map(|member| member.step)) {
                (Some(change), Some(Step::Preparing | Step::Prepared | Step::Committing)) => {
                    (change.before.as_ref(), true)
                }
                _ => (self.stored.as_ref(), false),
            };
            Before { entry: group.and_then(|group| stages::entry_of(group, node)), is_unsettled }
        };
        let (mut concerned, stages) = stages::stages(before, after);
        for concern in concerned.values_mut() {
            concern.must_commit &= self.without != Some(Safeguard::LostNodesAwaited);
        }
        (concerned, stages)
    }

    fn on_reply(&mut self, node: Ipv6Addr, name: EntryName, reply: Reply, reason: String) {
        let can_refuse = self.phase == Phase::Preparing;
        let Some(member) = self.members.get_mut(&node) else {
            return;
        };
        let meant = match member.presence {
            Presence::Returning(restored) => Some(restored),
            Presence::Here | Presence::Lost | Presence::Unheard => member.next(),
        };
        if meant != Some(name) {
            return;
        }
        match member.on_reply(reply, can_refuse) {
            Effect::Nothing | Effect::Progress => {}
            Effect::Prepare => self.order_for(node),
            Effect::Refusal => self.abort(format!("node {node} refuses epoch {}: {reason}", name.epoch)),
            Effect::Gone => {
                self.members.remove(&node);
            }
        }
        self.advance();
    }
}

impl Change {
    /// Whether a node may have committed its next entry, or one between the two records, without the controller's
    /// knowledge.
    fn is_unsettled(&self) -> bool {
        self.is_resumed || self.is_superseding
    }

    /// Whether the node was in the tree before.
    fn is_known(&self, node: Ipv6Addr) -> bool {
        self.before.as_ref().is_some_and(|before| stages::entry_of(before, node).is_some())
    }
}
