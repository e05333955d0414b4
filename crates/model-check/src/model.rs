//! The possible events of a tree, and the properties that must hold.

use crate::bounds::{Bounds, Faults};
use crate::hosts::Delivery;
use crate::machines::{Fingerprint, Machine, Machines};
use crate::queue::{Data, Kind, Message, Upward};
use crate::record::{Change, Child, Record};
use crate::repairs::Due;
use crate::shape::Shape;
use crate::state::{Action, LINKS, NODES, RECEIVERS, State};
use srdma_aggregation::Origin;
use srdma_wire::Instant;
use stateright::{Model, Property};

/// Safety: no response at the source acknowledges a packet that a surviving member lacks (MT-5.3.1-1, MT-5.3.2-1), and
/// nothing is sent down that the source did not send.
pub const SAFETY: &str = "no response reaches the source for a packet that a member lacks";
/// Progress: the source completes packets after the last fault.
pub const PROGRESS: &str = "the source is never stuck";
/// Reachability: some state completes all packets.
pub const COMPLETION: &str = "everything is completed";

/// Messages on a link up to which packets of a buffer are added.
const SHORT_QUEUE: usize = 2;

/// A link: the node above, or `None` for the source above the root, and the child below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) above: Option<usize>,
    pub(crate) below: Child,
}

/// A tree, the bounds of its faults, and all states of its nodes.
#[derive(Debug)]
pub struct Tree {
    pub(crate) bounds: Bounds,
    pub(crate) records: Vec<Record>,
    pub(crate) links: Vec<Link>,
    pub(crate) machines: Machines,
}

impl Tree {
    /// A tree within bounds.
    pub fn new(shape: &Shape, bounds: Bounds) -> Self {
        let records = shape.records(bounds.faults.changes, bounds.order);
        let mut links = Vec::new();
        for record in &records {
            let below = record.places.iter().enumerate().flat_map(|(node, place)| {
                place.branches.iter().map(move |branch| Link { above: Some(node), below: branch.child })
            });
            for link in std::iter::once(Link { above: None, below: Child::Node(0) }).chain(below) {
                if !links.contains(&link) {
                    links.push(link);
                }
            }
        }
        assert!(links.len() <= LINKS, "a tree with {} links, at most {LINKS} are possible", links.len());
        let machines = Machines::new(bounds.initial_psn, Instant::ZERO + bounds.rules.t_hold);
        Tree { bounds, records, links, machines }
    }

    /// Number of distinct states of the nodes' machines.
    pub fn machines(&self) -> usize {
        self.machines.len()
    }

    /// The record that is in effect at a node.
    pub(crate) fn record_at(&self, state: &State, node: usize) -> &Record {
        let stored = &self.records[usize::from(state.record)];
        if state.is_pending(node) { &self.records[stored.before] } else { stored }
    }

    /// The stored record.
    pub(crate) fn stored(&self, state: &State) -> &Record {
        &self.records[usize::from(state.record)]
    }

    /// The link between a node and its child.
    pub(crate) fn link(&self, above: Option<usize>, below: Child) -> usize {
        let link = Link { above, below };
        self.links.iter().position(|known| *known == link).unwrap_or_else(|| panic!("there is no link {link:?}"))
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self, state: &State) -> bool {
        state.source.failed || state.source.completed >= self.bounds.packets
    }

    /// The source waits for a join to take effect (D30).
    fn is_paused(&self, state: &State) -> bool {
        state.pending != 0 && matches!(self.stored(state).change, Some(Change::Join { .. }))
    }

    pub(crate) fn can_send(&self, state: &State) -> bool {
        let source = &state.source;
        let has_new = source.next < self.bounds.packets.min(source.completed + self.bounds.window);
        (has_new || source.repeats) && !self.is_paused(state)
    }

    fn is_holding(&self, state: &State, node: usize) -> bool {
        let machine = state.nodes[node];
        machine != Fingerprint::ABSENT && self.machines.read(machine, |machine| machine.acks.next_deadline().is_some())
    }

    /// Nothing is in flight, no T_hold runs, no commit is pending, and the source has sent all it may.
    pub(crate) fn is_quiet(&self, state: &State) -> bool {
        state.down.iter().chain(&state.up).all(|queue| queue.is_empty())
            && state.pending == 0
            && !self.can_send(state)
            && (0..self.stored(state).places.len()).all(|node| !self.is_holding(state, node))
            && self.waiting(state).next().is_none()
    }

    /// Whether all timers of repair have ended in this quiet state: the source's ACK timeout is longer.
    fn have_ticked(&self, state: &State) -> bool {
        (0..self.stored(state).places.len()).all(|node| state.has_ticked(node) || !self.is_armed(state, node))
    }

    /// Whether a timer of a node's repair runs.
    pub(crate) fn is_armed(&self, state: &State, node: usize) -> bool {
        let machine = state.nodes[node];
        let is_armed = |machine: &Machine| machine.repair.as_ref().is_some_and(|repair| repair.is_armed());
        machine != Fingerprint::ABSENT && self.machines.read(machine, is_armed)
    }

    /// The nodes and branches for which a buffer may have packets, and whose link has room.
    pub(crate) fn waiting(&self, state: &State) -> impl Iterator<Item = (usize, usize)> {
        let places = if self.bounds.repairs.repairs() { self.stored(state).places.len() } else { 0 };
        let there = (0..places).filter(|&node| state.nodes[node] != Fingerprint::ABSENT);
        there.flat_map(move |node| {
            let branches = &self.record_at(state, node).places[node].branches;
            let has_room = move |branch: usize| {
                let link = self.link(Some(node), branches[branch].child);
                state.down[link].len() < SHORT_QUEUE && !state.is_held(link)
            };
            let is_waiting = move |branch: usize| {
                let waits = |machine: &Machine| machine.repair.as_ref().is_some_and(|it| it.is_waiting(branch));
                self.machines.read(state.nodes[node], waits)
            };
            (0..branches.len())
                .filter(move |&branch| is_waiting(branch) && has_room(branch))
                .map(move |branch| (node, branch))
        })
    }

    /// Whether all members are alive.
    pub(crate) fn all_live(&self, state: &State) -> bool {
        let members = self.stored(state).members.iter();
        members.zip(&state.receivers).all(|(&member, receiver)| !member || !receiver.dead)
    }

    /// Whether a NAK is in flight to the source.
    fn notices(&self, state: &State) -> bool {
        state.up[0].iter().any(|code| match Upward::of(code) {
            Upward::Response(Message { kind, .. }) => matches!(kind, Kind::Nak | Kind::Rnr),
            Upward::Request(_) => true,
        })
    }

    /// No response in flight to the source acknowledges a packet that a member lacks or that was never sent, no data in
    /// flight were never sent, and no request reaches the source.
    fn is_safe(&self, state: &State) -> bool {
        let members = self.stored(state).members.iter().zip(&state.receivers);
        let least = members.filter(|(member, _)| **member).map(|(_, receiver)| receiver.has).min().unwrap_or(0);
        let is_true = |code: u8| match Upward::of(code) {
            Upward::Response(message) => message.confirms <= least,
            Upward::Request(_) => false,
        };
        let was_sent = |code: u8| Data::of(code).packet < state.source.fresh.max(state.joined_at);
        state.up[0].iter().all(is_true) && state.down.iter().all(|queue| queue.iter().all(was_sent))
    }
}

impl Model for Tree {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let first = &self.records[0];
        let mut nodes = [Fingerprint::ABSENT; NODES];
        for (node, place) in first.places.iter().enumerate().filter(|&(node, _)| first.has_node(node)) {
            let origins = vec![Origin::At(self.bounds.initial_psn); place.branches.len()];
            let of_repair = self.bounds.repairs.of(node, &first.places);
            nodes[node] = self.machines.store(Machine::new(&self.bounds.rules, &origins, of_repair));
        }
        vec![State {
            source: Default::default(),
            receivers: [Default::default(); RECEIVERS],
            nodes,
            down: Default::default(),
            up: Default::default(),
            held: 0,
            record: 0,
            pending: 0,
            joined_at: 0,
            ticked: 0,
            left: self.bounds.faults,
            fruitless: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if self.is_done(state) || state.fruitless > self.bounds.patience {
            return;
        }
        if self.can_send(state) {
            actions.push(Action::Send);
        }
        self.traffic_actions(state, actions);
        let nodes = 0..self.stored(state).places.len();
        actions
            .extend(nodes.clone().filter(|&node| self.is_holding(state, node)).map(|node| Action::HoldEnds { node }));
        let outstanding = state.source.next > state.source.completed;
        let is_quiet = self.is_quiet(state);
        let is_due = state.left.early_timeouts > 0 || is_quiet && self.have_ticked(state);
        if outstanding && is_due && !self.bounds.repairs.alone {
            actions.push(Action::Timeout);
        }
        for node in nodes.clone().filter(|&node| self.is_armed(state, node)) {
            if state.left.early_ticks > 0 {
                actions.extend([Due::Requests, Due::All].map(|due| Action::Tick { node, due }));
            } else if is_quiet && (self.bounds.repairs.alone || !state.has_ticked(node)) {
                actions.push(Action::Tick { node, due: Due::All });
            }
        }
        if state.left.damages > 0 {
            // What the root has lost, the source has to send again.
            let waiting = self.waiting(state).filter(|&(node, _)| !self.bounds.repairs.alone || node != 0);
            actions.extend(waiting.map(|(node, branch)| Action::Damage { node, branch }));
        }
        if state.left.restarts > 0 {
            let there = nodes.clone().filter(|&node| state.nodes[node] != Fingerprint::ABSENT);
            let there = there.filter(|&node| !self.bounds.repairs.alone || node != 0);
            actions.extend(there.map(|node| Action::Restart { node }));
        }
        if state.left.deaths > 0 {
            let members = self.stored(state).members.iter().enumerate();
            let living = members.filter(|&(receiver, &member)| member && !state.receivers[receiver].dead);
            actions.extend(living.map(|(receiver, _)| Action::Dies { receiver }));
        }
        self.membership_actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.apply(&mut state, action)?;
        if state.source.completed > last.source.completed || state.left != last.left || state.pending != last.pending {
            (state.fruitless, state.ticked) = (0, 0);
        }
        if self.bounds.repairs.repairs() && !action.is_traffic() && !self.comes_to_rest(&state) {
            state.fruitless = u8::MAX;
        }
        if self.bounds.repairs.alone && (self.notices(&state) || self.is_quiet(&state) && !self.recovers(&state)) {
            state.fruitless = u8::MAX;
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFETY, |tree: &Tree, state: &State| tree.is_safe(state)),
            Property::always(PROGRESS, |tree: &Tree, state: &State| state.fruitless <= tree.bounds.patience),
            Property::sometimes(COMPLETION, |tree: &Tree, state: &State| state.source.completed == tree.bounds.packets),
        ]
    }
}

/// Possible actions by kind.
impl Tree {
    /// Messages arrive, or are lost. Unless any link may be slow at any time, responses come first, those
    /// nearest to the source before all others, and then data, the deepest first.
    fn traffic_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let directions = (LINKS..LINKS + self.links.len()).chain((0..self.links.len()).rev());
        let mut busy = directions.filter(|&direction| !state.direction(direction).is_empty());
        let mut polls = self.waiting(state).map(|(node, branch)| Action::Poll { node, branch });
        if state.left.delays == Faults::ANY {
            actions.extend(polls);
            return busy.for_each(|direction| self.direction_actions(state, direction, actions));
        }
        actions.extend(
            busy.clone().filter(|&direction| state.is_held(direction)).map(|direction| Action::Release { direction }),
        );
        let next = busy.find(|&direction| !state.is_held(direction));
        if let Some(poll) = polls.next().filter(|_| next.is_none_or(|direction| direction < LINKS)) {
            actions.push(poll);
        } else if let Some(direction) = next {
            self.direction_actions(state, direction, actions);
            if state.left.delays > 0 {
                actions.push(Action::Delay { direction });
            }
        }
    }

    fn direction_actions(&self, state: &State, direction: usize, actions: &mut Vec<Action>) {
        match direction.checked_sub(LINKS) {
            None => self.data_actions(state, direction, actions),
            Some(link) => self.response_actions(state, link, actions),
        }
    }

    /// The faults that remain for the messages of a link.
    fn faults_of(&self, state: &State, link: usize) -> Faults {
        let is_spared = self.bounds.repairs.alone && self.links[link].above.is_none();
        if is_spared { Faults::NONE } else { state.left }
    }

    fn data_actions(&self, state: &State, link: usize, actions: &mut Vec<Action>) {
        let (queue, left) = (state.down[link], self.faults_of(state, link));
        let mut before = 0;
        for position in 0..queue.len() {
            if position > 0 && (left.overtakings == 0 || queue.get(position) == before) {
                continue;
            }
            before = queue.get(position);
            for deliveries in self.deliveries(state, link) {
                actions.push(Action::Data { link, position, again: false, deliveries });
                if left.duplicates > 0 {
                    actions.push(Action::Data { link, position, again: true, deliveries });
                }
            }
        }
        if !queue.is_empty() && left.losses > 0 {
            actions.push(Action::LoseData { link });
        }
    }

    /// Whether a node repairs now.
    pub(crate) fn repairs_at(&self, state: &State, node: usize) -> bool {
        let machine = state.nodes[node];
        machine != Fingerprint::ABSENT && self.machines.read(machine, |machine| machine.repair.is_some())
    }

    /// Possible deliveries of the copies of a packet to receivers.
    fn deliveries(&self, state: &State, link: usize) -> Vec<u8> {
        let mut all = vec![(0_u8, state.left)];
        // The link of a receiver has data where the node above repairs: they are lost as on other links.
        let (below, faults): (Vec<Child>, &[Delivery]) = match self.links[link].below {
            Child::Node(node) if self.repairs_at(state, node) => (Vec::new(), &[]),
            Child::Node(node) => {
                let branches = &self.record_at(state, node).places[node].branches;
                let below = branches.iter().map(|branch| branch.child).collect();
                (below, &[Delivery::Lost, Delivery::NotReady, Delivery::Fails])
            }
            receiver @ Child::Receiver(_) => (vec![receiver], &[Delivery::NotReady, Delivery::Fails]),
        };
        for (position, child) in below.into_iter().enumerate() {
            let Child::Receiver(receiver) = child else {
                continue;
            };
            if state.receivers[receiver].dead {
                continue;
            }
            for (deliveries, left) in all.clone() {
                for &delivery in faults {
                    let mut left = left;
                    if spend(budget(&mut left, delivery)) {
                        all.push((deliveries | (delivery as u8) << (2 * position), left));
                    }
                }
            }
        }
        all.into_iter().map(|(deliveries, _)| deliveries).collect()
    }

    fn response_actions(&self, state: &State, link: usize, actions: &mut Vec<Action>) {
        let (queue, left) = (state.up[link], self.faults_of(state, link));
        let mut before = 0;
        for position in 0..queue.len() {
            if position > 0 && (left.overtakings == 0 || queue.get(position) == before) {
                continue;
            }
            before = queue.get(position);
            actions.push(Action::Response { link, position, again: false });
            if left.duplicates > 0 {
                actions.push(Action::Response { link, position, again: true });
            }
        }
        if !queue.is_empty() && left.losses > 0 {
            actions.push(Action::LoseResponse { link });
        }
    }

    fn membership_actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.pending == 0 {
            if state.left.changes > 0 {
                for (position, record) in self.records.iter().enumerate() {
                    let follows = record.before == usize::from(state.record);
                    let source = &state.source;
                    let possible = match record.change {
                        None => false,
                        Some(Change::Evict(_) | Change::Rehome { .. } | Change::Move { .. }) => true,
                        Some(Change::Join { .. }) => source.next == source.completed && source.fresh == source.next,
                    };
                    if follows && possible {
                        actions.push(Action::Store { record: position });
                    }
                }
            }
            return;
        }
        let phases = &self.stored(state).phases;
        let pending = |node: &usize| state.is_pending(*node);
        let first = (0..phases.len()).filter(pending).filter_map(|node| phases[node]).min();
        let nodes = (0..phases.len()).filter(pending).filter(|&node| phases[node] == first);
        actions.extend(nodes.map(|node| Action::Commit { node }));
    }
}

/// The fault budget of a delivery; `None` if it is no fault.
pub(crate) fn budget(left: &mut Faults, delivery: Delivery) -> Option<&mut u8> {
    match delivery {
        Delivery::Arrives => None,
        Delivery::Lost => Some(&mut left.losses),
        Delivery::NotReady => Some(&mut left.unready),
        Delivery::Fails => Some(&mut left.failures),
    }
}

/// Takes one from a budget, if there is one; false if it is empty.
pub(crate) fn spend(budget: Option<&mut u8>) -> bool {
    match budget {
        None | Some(&mut Faults::ANY) => true,
        Some(0) => false,
        Some(left) => {
            *left -= 1;
            true
        }
    }
}
