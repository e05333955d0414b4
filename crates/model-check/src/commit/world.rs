//! The state of controller, nodes and source, and its possible events.
//!
//! ```text
//!   application ──► controller ◄── requests ── node H, E1, E2
//!   source ◄──────►     │      ─── responses ─► one outstanding for each node
//!                     store
//! ```

use super::action::{CommitAction, Kind};
use super::bounds::{Ablation, CommitBounds, CommitFaults, StoreLoss};
use super::controller::Controller;
use super::network::{HEADEND, Place, receiver};
use super::newcomer::Newcomer;
use super::node::{Message, Node, Response};
use srdma_agent::Failure;
use srdma_api::{SourceOrder, SourceReport};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv6Addr;
use std::rc::Rc;

/// The Proxy Address of the group that is created first.
const FIRST_PROXY: u16 = 1;
/// PSN at which the source pauses first. It sends a packet before the next pause.
const PAUSED_AT: u32 = 5;

/// A part of the state, shared by the states in which it is equal.
#[derive(Clone, Debug)]
pub(super) struct Part<T> {
    pub(super) value: Rc<T>,
    fingerprint: u64,
}

/// A state.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) controller: Part<Controller>,
    pub(super) nodes: Vec<Part<Node>>,
    source: Source,
    pub(super) newcomer: Newcomer,
    left: CommitFaults,
    /// The nodes that have restarted, one bit each.
    restarted: u8,
}

/// The source: the last order that it has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Source {
    round: Option<u32>,
    is_paused: bool,
    /// Packets since the first pause.
    sent: u32,
}

/// The model: what does not change.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) bounds: CommitBounds,
    pub(super) places: Vec<Place>,
    /// The first state.
    pub(super) initial: World,
}

impl<T: Clone + Debug> Part<T> {
    fn new(value: T, fingerprint: impl Fn(&T) -> u64) -> Self {
        Part { fingerprint: fingerprint(&value), value: Rc::new(value) }
    }
}

impl World {
    /// A hash of the state.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.controller.fingerprint.hash(&mut hasher);
        for (index, node) in self.nodes.iter().enumerate() {
            (node.fingerprint, self.is_current(index)).hash(&mut hasher);
        }
        (self.source, self.newcomer, self.left, self.restarted).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether the controller knows the node's session.
    pub(super) fn is_current(&self, node: usize) -> bool {
        self.controller.value.is_current(Place(node as u8), self.nodes[node].value.session())
    }

    /// Whether the controller has not the status that the node reports.
    fn has_new_status(&self, index: usize, model: &Model) -> bool {
        let place = Place(index as u8);
        model.reports_status(place)
            && self.controller.value.status(place).as_ref() != Some(&self.nodes[index].value.status())
    }

    fn has_orders(&self, node: usize) -> bool {
        !self.controller.value.orders(Place(node as u8).loopback()).is_empty()
    }

    /// Whether a request of the node would have an effect.
    fn has_request(&self, index: usize, model: &Model) -> bool {
        let node = &self.nodes[index].value;
        let has_more = !node.answers().is_empty() || self.has_orders(index) || self.has_new_status(index, model);
        !node.is_cut && node.response.is_none() && (has_more || !self.is_current(index))
    }

    /// Whether no message is on its way.
    pub(super) fn is_silent(&self, model: &Model) -> bool {
        (0..self.nodes.len()).all(|index| self.nodes[index].value.response.is_none() && !self.has_request(index, model))
    }
}

impl Model {
    /// The first state: registered nodes and, if the group is in effect, no message on its way.
    pub(super) fn new(bounds: CommitBounds) -> Result<Self, String> {
        let places: Vec<Place> = (0..=bounds.edges).map(Place).collect();
        let controller = Controller::new(1, None, bounds.ablation.safeguard()).map_err(|error| error.to_string())?;
        let nodes = places.iter().map(|place| Part::new(Node::new(*place), Node::fingerprint)).collect();
        let controller = Part::new(controller, |controller| controller.fingerprint(&places));
        let left = CommitFaults::default();
        let (source, newcomer) = (Source::default(), Newcomer::default());
        let initial = World { controller, nodes, source, newcomer, left, restarted: 0 };
        let mut model = Model { bounds, places, initial };
        model.settle()?;
        let receivers = model.first_receivers();
        let mut world = model.initial.clone();
        model.change_controller(&mut world, |controller| controller.create(&receivers, FIRST_PROXY));
        model.initial = world;
        if bounds.is_ready {
            model.settle()?;
        }
        model.initial.left = bounds.faults;
        Ok(model)
    }

    /// Lets everything happen that happens without faults.
    fn settle(&mut self) -> Result<(), String> {
        loop {
            let before = self.initial.fingerprint();
            for action in self.actions(&self.initial) {
                if self.kind(&self.initial, action) == Kind::Progress && self.is_possible(&self.initial, action) {
                    self.initial = self.after(&self.initial, action)?;
                }
            }
            if self.initial.fingerprint() == before {
                return Ok(());
            }
        }
    }

    fn first_receivers(&self) -> [Ipv6Addr; 2] {
        [receiver(1, 1), receiver(1, 2)]
    }

    /// The receiver that joins: at the last edge.
    pub(super) fn newcomer(&self) -> Ipv6Addr {
        receiver(self.bounds.edges, 3)
    }

    /// The possible events of a state.
    pub(super) fn actions(&self, world: &World) -> Vec<CommitAction> {
        use CommitAction::*;
        let of_node = |place: &Place| {
            let node = place.0;
            [
                Request { node },
                Response { node },
                LoseResponse { node },
                DelayRequest { node },
                LateRequest { node },
                Cut { node },
                Expire { node },
                Heal { node },
                Skip { node },
                Restart { node },
            ]
        };
        let others =
            [RestartController, LoseStore, Retransmit, Source, Join, Reserve, Report, Die, Lapse, Leave, Create];
        let all = self.places.iter().flat_map(of_node).chain(others);
        all.filter(|action| self.is_possible(world, *action)).collect()
    }

    fn is_possible(&self, world: &World, action: CommitAction) -> bool {
        let left = &world.left;
        let node = |index: u8| &*world.nodes[usize::from(index)].value;
        let index = usize::from;
        match action {
            CommitAction::Request { node } => world.has_request(index(node), self),
            CommitAction::Response { node: at } => node(at).response.is_some(),
            CommitAction::LoseResponse { node: at } => left.losses > 0 && node(at).response.is_some(),
            CommitAction::DelayRequest { node: at } => {
                left.delays > 0 && node(at).late.is_none() && world.has_request(index(at), self)
            }
            CommitAction::LateRequest { node: at } => node(at).late.is_some(),
            CommitAction::Cut { node: at } => left.partitions > 0 && !node(at).is_cut,
            CommitAction::Expire { node: at } => node(at).is_cut && !node(at).is_expired,
            CommitAction::Heal { node: at } => node(at).is_cut,
            CommitAction::Skip { node: at } => {
                self.bounds.ablation == Ablation::LostIsSettled && node(at).is_cut && world.has_orders(index(at))
            }
            CommitAction::Restart { node } => left.restarts > 0 && world.restarted >> node & 1 == 0,
            CommitAction::RestartController => left.controller_restarts > 0,
            CommitAction::LoseStore => left.store_losses > 0,
            CommitAction::Retransmit => {
                self.bounds.ablation != Ablation::NoRetransmission
                    && (left.early_retransmissions > 0 || world.is_silent(self))
            }
            CommitAction::Source => self.bounds.sends,
            CommitAction::Join => left.joins > 0,
            CommitAction::Reserve => left.reservations > 0 && world.newcomer.may_join(),
            CommitAction::Report => world.newcomer.reports(),
            CommitAction::Die => left.deaths > 0 && world.newcomer.reports(),
            CommitAction::Lapse => {
                let may_be_slow = left.slow_receivers > 0 && world.newcomer.reports();
                (world.newcomer.is_dead || may_be_slow) && world.has_reservation(self)
            }
            CommitAction::Leave => left.leaves > 0,
            CommitAction::Create => left.creations > 0 && left.store_losses < self.bounds.faults.store_losses,
        }
    }

    /// The state after an event.
    ///
    /// # Errors
    ///
    /// A node has done what no order may make it do.
    pub(super) fn after(&self, world: &World, action: CommitAction) -> Result<World, String> {
        let mut world = world.clone();
        match action {
            CommitAction::Request { node } => {
                let message = self.change_node(&mut world, node, |one| self.next_request(one, node));
                let response = self.deliver(&mut world, node, message);
                self.change_node(&mut world, node, |node| match response {
                    Ok(response) => node.response = Some(response),
                    Err(failure) => node.failed(failure),
                });
            }
            CommitAction::Response { node } => {
                self.change_node(&mut world, node, |node| node.receive(self.bounds.ablation))?;
            }
            CommitAction::LoseResponse { node } => {
                world.left.losses -= 1;
                self.change_node(&mut world, node, Node::lose_response);
            }
            CommitAction::DelayRequest { node } => {
                world.left.delays -= 1;
                self.change_node(&mut world, node, |one| {
                    one.late = Some(self.next_request(one, node));
                    one.failed(Failure::Unreachable);
                });
            }
            CommitAction::LateRequest { node } => {
                if let Some(message) = self.change_node(&mut world, node, |node| node.late.take()) {
                    // The connection of the response does not exist any more.
                    let _ = self.deliver(&mut world, node, message);
                }
            }
            CommitAction::Cut { node } => {
                world.left.partitions -= 1;
                self.change_node(&mut world, node, |node| {
                    node.lose_response();
                    node.is_cut = true;
                });
                self.expire(&mut world, node);
            }
            CommitAction::Expire { node } => self.expire(&mut world, node),
            CommitAction::Heal { node } => {
                self.change_node(&mut world, node, |node| (node.is_cut, node.is_expired) = (false, false));
            }
            CommitAction::Skip { node } => self.skip(&mut world, node),
            CommitAction::Restart { node } => {
                world.left.restarts -= 1;
                world.restarted |= 1 << node;
                self.change_node(&mut world, node, |one| one.restart(Place(node)));
            }
            CommitAction::RestartController => {
                world.left.controller_restarts -= 1;
                let controller = world.controller.value.restarted().map_err(|error| error.to_string())?;
                self.start(&mut world, controller);
            }
            CommitAction::LoseStore => {
                world.left.store_losses -= 1;
                let controller = match self.bounds.store_loss {
                    StoreLoss::Empty => Controller::new(2, None, None),
                    StoreLoss::Rebuilt => Controller::new(2, Some(1), None),
                    StoreLoss::Backup => self.initial.controller.value.restarted(),
                };
                self.start(&mut world, controller.map_err(|error| error.to_string())?);
            }
            CommitAction::Retransmit => {
                if !world.is_silent(self) {
                    world.left.early_retransmissions -= 1;
                }
                self.change_controller(&mut world, Controller::retransmit);
            }
            CommitAction::Source => self.report_source(&mut world),
            CommitAction::Join => {
                world.left.joins -= 1;
                let newcomer = self.newcomer();
                self.request(&mut world, |controller, id| controller.join(id, newcomer));
            }
            CommitAction::Reserve => {
                world.left.reservations -= 1;
                let newcomer = self.newcomer();
                self.request(&mut world, |controller, id| controller.reserve(id, newcomer));
                world.newcomer = Newcomer::reserved();
            }
            CommitAction::Report => self.report_newcomer(&mut world),
            CommitAction::Die => {
                world.left.deaths -= 1;
                world.newcomer.is_dead = true;
            }
            CommitAction::Lapse => {
                world.left.slow_receivers -= u8::from(!world.newcomer.is_dead);
                self.change_controller(&mut world, |controller| controller.lapse(&self.places));
            }
            CommitAction::Leave => {
                world.left.leaves -= 1;
                let [first, _] = self.first_receivers();
                self.request(&mut world, |controller, id| controller.leave(id, first));
            }
            CommitAction::Create => {
                world.left.creations -= 1;
                world.source = Source::default();
                let receivers: Vec<Ipv6Addr> =
                    self.first_receivers().into_iter().take(1).chain([self.newcomer()]).collect();
                let proxy = FIRST_PROXY + u16::from(self.bounds.changes_proxy);
                self.change_controller(&mut world, |controller| controller.create(&receivers, proxy));
            }
        }
        self.drop_late_reports(&mut world);
        Ok(world)
    }

    /// Whether a node reports its status: the headend of a source that sends nothing, as no other report says (D115).
    fn reports_status(&self, place: Place) -> bool {
        place == HEADEND && !self.bounds.sends
    }

    fn next_request(&self, node: &mut Node, number: u8) -> Message {
        let place = Place(number);
        node.request(place, &self.places, self.reports_status(place))
    }

    fn change_node<T>(&self, world: &mut World, node: u8, act: impl FnOnce(&mut Node) -> T) -> T {
        let part = &mut world.nodes[usize::from(node)];
        let mut node = (*part.value).clone();
        let result = act(&mut node);
        *part = Part::new(node, Node::fingerprint);
        result
    }

    pub(super) fn change_controller<T>(&self, world: &mut World, act: impl FnOnce(&mut Controller) -> T) -> T {
        let mut controller = (*world.controller.value).clone();
        let result = act(&mut controller);
        world.controller = Part::new(controller, |controller| controller.fingerprint(&self.places));
        result
    }

    /// A request of the application about the group, if it exists.
    pub(super) fn request<E>(&self, world: &mut World, act: impl FnOnce(&mut Controller, u32) -> Result<(), E>) {
        if let Some(group) = world.controller.value.groups().first() {
            let id = group.summary.id;
            // A refusal changes nothing.
            let _ = self.change_controller(world, |controller| act(controller, id));
        }
    }

    fn start(&self, world: &mut World, controller: Controller) {
        world.controller = Part::new(controller, |controller| controller.fingerprint(&self.places));
        for place in &self.places {
            self.change_node(world, place.0, |node| node.is_expired = false);
        }
    }

    fn expire(&self, world: &mut World, node: u8) {
        self.change_node(world, node, |node| node.is_expired = true);
        if self.bounds.ablation != Ablation::LostIsSettled {
            self.change_controller(world, |controller| controller.expire(Place(node), &self.places));
        }
    }

    /// A request reaches the controller.
    fn deliver(&self, world: &mut World, node: u8, message: Message) -> Result<Response, Failure> {
        match message {
            Message::Register(registration) => {
                let registration = self.ablated(world, node, *registration);
                let session = self.change_controller(world, |controller| controller.register(registration));
                session.map(Response::Registered).ok_or(Failure::Refused)
            }
            Message::Report(report) => {
                let orders = self.change_controller(world, |controller| controller.sync(Place(node), report));
                orders.map(Response::Orders).ok_or(Failure::UnknownSession)
            }
        }
    }

    fn report_source(&self, world: &mut World) {
        let Some(id) = world.controller.value.groups().first().map(|group| group.summary.id) else { return };
        let Source { round, is_paused, sent } = world.source;
        let paused_at_psn = is_paused.then_some(PAUSED_AT + sent);
        let report = SourceReport { round, pausing: is_paused, paused_at_psn, ..SourceReport::default() };
        match self.change_controller(world, |controller| controller.report_source(id, report)) {
            Some(SourceOrder::Send { round }) => {
                world.source = Source { round: Some(round), is_paused: false, sent: sent + u32::from(is_paused) };
            }
            Some(SourceOrder::Pause { round }) => {
                world.source = Source { round: Some(round), is_paused: true, sent };
            }
            Some(SourceOrder::Wait | SourceOrder::End) | None => {}
        }
    }

    /// A late report of a session that has ended has no effect.
    fn drop_late_reports(&self, world: &mut World) {
        for place in &self.places {
            if let Some(Message::Report(report)) = &world.nodes[place.index()].value.late
                && !world.controller.value.is_current(*place, report.session)
            {
                self.change_node(world, place.0, |node| node.late = None);
            }
        }
    }
}
