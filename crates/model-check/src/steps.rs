//! Application of actions to states.

use crate::bounds::{Bounds, Faults};
use crate::hosts::Delivery;
use crate::machines::{Fingerprint, Sent, Step};
use crate::model::{Tree, budget, spend};
use crate::queue::{Data, Message, Queue, Upward};
use crate::record::Child;
use crate::repairs::Due;
use crate::state::{Action, LINKS, NODES, State};
use srdma_aggregation::BranchIndex;

/// Messages after a fault, before nothing is in flight any more.
const MOST_MESSAGES: usize = 500;
/// Ends of the timers of repair after a loss.
const MOST_TICKS: usize = 8;

impl Tree {
    /// `None` if a queue is full or nothing changes.
    pub(crate) fn apply(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Send => {
                let data = state.source.send(self.bounds.packets, self.bounds.message);
                self.push(&mut state.down[0], data.code())
            }
            Action::Timeout => {
                if state.left.early_timeouts > 0 && !self.is_quiet(state) {
                    state.left.early_timeouts -= 1;
                } else {
                    state.fruitless += u8::from(self.all_live(state));
                }
                state.ticked = 0;
                state.source.go_back(self.bounds.source);
                Some(())
            }
            Action::Data { link, position, again, deliveries } => {
                let data = Data::of(take(&mut state.down[link], position, again, &mut state.left));
                match self.links[link].below {
                    Child::Node(node) => self.data_at_node(state, node, data, deliveries),
                    Child::Receiver(receiver) => self.data_at_receiver(state, link, receiver, data, deliveries),
                }
            }
            Action::LoseData { link } => {
                state.down[link].remove(0);
                spend(Some(&mut state.left.losses)).then_some(())
            }
            Action::Response { link, position, again } => {
                let upward = Upward::of(take(&mut state.up[link], position, again, &mut state.left));
                self.response_arrives(state, link, upward)
            }
            Action::LoseResponse { link } => {
                state.up[link].remove(0);
                spend(Some(&mut state.left.losses)).then_some(())
            }
            Action::Delay { direction } => {
                state.held |= 1 << direction;
                spend(Some(&mut state.left.delays)).then_some(())
            }
            Action::Release { direction } => {
                state.held &= !(1 << direction);
                Some(())
            }
            Action::Poll { node, branch } => {
                let step = self.machines.poll(state.nodes[node], branch as u16);
                self.advance(state, node, step)
            }
            Action::Damage { node, branch } => {
                let step = self.machines.damage(state.nodes[node], branch as u16);
                if step.next == state.nodes[node] {
                    return None;
                }
                self.advance(state, node, step)?;
                spend(Some(&mut state.left.damages)).then_some(())
            }
            Action::Tick { node, due } => {
                if !self.is_quiet(state) || due == Due::Requests || state.has_ticked(node) {
                    state.left.early_ticks = state.left.early_ticks.checked_sub(1)?;
                } else {
                    state.ticked |= 1 << node;
                }
                let step = self.machines.tick(state.nodes[node], due);
                self.advance(state, node, step)
            }
            Action::HoldEnds { node } => {
                let step = self.machines.hold_ends(state.nodes[node]);
                self.advance(state, node, step)
            }
            Action::Restart { node } => {
                state.nodes[node] = self.restarted(state, node);
                spend(Some(&mut state.left.restarts)).then_some(())
            }
            Action::Dies { receiver } => {
                state.receivers[receiver].dead = true;
                spend(Some(&mut state.left.deaths)).then_some(())
            }
            Action::Store { record } => self.store(state, record),
            Action::Commit { node } => self.commit(state, node),
        }
    }

    fn push(&self, queue: &mut Queue, code: u8) -> Option<()> {
        let keeps_order = self.bounds.faults.overtakings != Faults::ANY;
        queue.push(code, keeps_order, self.bounds.depth).then_some(())
    }

    /// Applies a transition of a node's machine and sends its responses.
    pub(crate) fn advance(&self, state: &mut State, node: usize, step: Step) -> Option<()> {
        state.nodes[node] = step.next;
        self.send_down(state, node, &step.down)?;
        let record = self.record_at(state, node);
        let parent = record.places[node].parent;
        if parent.is_none() && node != 0 {
            return Some(());
        }
        let link = self.link(parent, Child::Node(node));
        for code in step.sent.into_iter().take_while(|&code| code != 0) {
            // The source ignores the epoch.
            let epoch = if node == 0 { 0 } else { record.epoch };
            self.push(&mut state.up[link], Upward::of(code).in_epoch(epoch).code())?;
        }
        Some(())
    }

    /// The data that a node which repairs sends to its branches.
    fn send_down(&self, state: &mut State, node: usize, down: &[Sent]) -> Option<()> {
        for &Sent { branch: position, code, goes_ahead } in down {
            let branch = self.record_at(state, node).places[node].branches[usize::from(position)];
            let data = Data::of(code);
            let is_withheld = self.withholds(state, node, usize::from(position), data)
                || (branch.joined && data.packet < state.joined_at);
            if !is_withheld {
                let link = self.link(Some(node), branch.child);
                let queue = &mut state.down[link];
                let behind = if goes_ahead { std::mem::take(queue) } else { Queue::default() };
                for code in std::iter::once(code).chain(behind.iter()) {
                    self.push(queue, code)?;
                }
            }
        }
        Some(())
    }

    fn receive(&self, state: &mut State, receiver: usize, data: Data, delivery: Delivery) -> Option<Message> {
        let Bounds { receivers, reception, .. } = self.bounds;
        state.receivers[receiver].receive(data, delivery, receivers, reception.keeps(receiver))
    }

    fn data_at_receiver(
        &self,
        state: &mut State,
        link: usize,
        receiver: usize,
        data: Data,
        deliveries: u8,
    ) -> Option<()> {
        let delivery = Delivery::of(deliveries);
        spend(budget(&mut state.left, delivery));
        match self.receive(state, receiver, data, delivery) {
            Some(message) => self.push(&mut state.up[link], message.code()),
            None => Some(()),
        }
    }

    /// Whether all messages arrive within bounded time when no fault happens: nothing is sent in circles.
    pub(crate) fn comes_to_rest(&self, state: &State) -> bool {
        self.rests(&mut state.clone())
    }

    /// Whether the timers of repair complete another packet, without the source's.
    pub(crate) fn recovers(&self, state: &State) -> bool {
        let mut state = state.clone();
        let completed = state.source.completed;
        if self.is_done(&state) || completed == state.source.next {
            return true;
        }
        for _ in 0..MOST_TICKS {
            for node in 0..NODES {
                if self.is_armed(&state, node) {
                    let step = self.machines.tick(state.nodes[node], Due::All);
                    if self.advance(&mut state, node, step).is_none() || !self.rests(&mut state) {
                        return false;
                    }
                }
            }
            if state.source.completed > completed {
                return true;
            }
        }
        false
    }

    fn rests(&self, state: &mut State) -> bool {
        for _ in 0..MOST_MESSAGES {
            let mut actions = Vec::new();
            state.held = 0;
            self.undisturbed_actions(state, &mut actions);
            let next = actions.into_iter().find_map(|action| {
                let mut next = state.clone();
                self.apply(&mut next, action).map(|()| next)
            });
            match next {
                Some(next) => *state = next,
                None => return true,
            }
        }
        false
    }

    fn undisturbed_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let busy = |direction: &usize| !state.direction(*direction).is_empty();
        let up = (LINKS..LINKS + self.links.len()).filter(busy);
        actions.extend(up.map(|it| Action::Response { link: it - LINKS, position: 0, again: false }));
        actions.extend(self.waiting(state).map(|(node, branch)| Action::Poll { node, branch }));
        let down = (0..self.links.len()).rev().filter(busy);
        actions.extend(down.map(|link| Action::Data { link, position: 0, again: false, deliveries: 0 }));
        if self.can_send(state) && !state.source.failed {
            actions.push(Action::Send);
        }
    }

    fn data_at_node(&self, state: &mut State, node: usize, data: Data, deliveries: u8) -> Option<()> {
        if state.nodes[node] == Fingerprint::ABSENT {
            return Some(());
        }
        let step = self.machines.data(state.nodes[node], data);
        let repairs = self.repairs_at(state, node);
        self.advance(state, node, step)?;
        if repairs {
            return Some(());
        }
        let record = self.record_at(state, node);
        for (position, branch) in record.places[node].branches.iter().enumerate() {
            let link = self.link(Some(node), branch.child);
            match branch.child {
                Child::Node(_) => self.push(&mut state.down[link], data.code())?,
                Child::Receiver(receiver) => {
                    let delivery = Delivery::of(deliveries >> (2 * position));
                    spend(budget(&mut state.left, delivery));
                    // D30: nothing before J is ever sent to the member that joined there.
                    let before_join = branch.joined && data.packet < state.joined_at;
                    let withheld = self.withholds(state, node, position, data) || before_join;
                    if withheld {
                        continue;
                    }
                    if let Some(message) = self.receive(state, receiver, data, delivery) {
                        self.push(&mut state.up[link], message.code())?;
                    }
                }
            }
        }
        Some(())
    }

    fn response_arrives(&self, state: &mut State, link: usize, upward: Upward) -> Option<()> {
        let Some(node) = self.links[link].above else {
            if let Upward::Response(message) = upward {
                state.source.receive(message, self.bounds.source);
            }
            return Some(());
        };
        if state.nodes[node] == Fingerprint::ABSENT {
            return Some(());
        }
        let branches = &self.record_at(state, node).places[node].branches;
        let Some(branch) = branches.iter().position(|branch| branch.child == self.links[link].below) else {
            return Some(());
        };
        let is_old = matches!(branches[branch].child, Child::Node(_)) && upward.epoch() < branches[branch].renewed;
        if is_old && self.bounds.epochs_checked {
            return Some(());
        }
        let step = self.machines.response(state.nodes[node], branch as u16, upward);
        self.advance(state, node, step)
    }
}

/// Removes a message from a link or, for a duplicate, reads it; overtaking is a fault.
fn take(queue: &mut Queue, position: usize, again: bool, left: &mut Faults) -> u8 {
    let code = queue.get(position);
    if position > 0 {
        spend(Some(&mut left.overtakings));
    }
    if again {
        spend(Some(&mut left.duplicates));
    } else {
        queue.remove(position);
    }
    code
}

impl Tree {
    fn withholds(&self, state: &State, node: usize, position: usize, data: Data) -> bool {
        let psn = self.psn(data.packet);
        self.bounds.rules.prune_retransmit
            && self
                .machines
                .read(state.nodes[node], |machine| machine.acks.withholds(BranchIndex(position as u16), psn))
    }
}
