//! Application of actions to states.

use crate::bounds::Faults;
use crate::hosts::Delivery;
use crate::machines::{Fingerprint, Step};
use crate::model::{Tree, budget, spend};
use crate::queue::{Data, Message, Queue};
use crate::record::Child;
use crate::state::{Action, State};
use srdma_aggregation::BranchIndex;

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
                state.source.go_back(self.bounds.source);
                Some(())
            }
            Action::Data { link, position, again, deliveries } => {
                let data = Data::of(take(&mut state.down[link], position, again, &mut state.left));
                let Child::Node(node) = self.links[link].below else {
                    return None;
                };
                self.data_at_node(state, node, data, deliveries)
            }
            Action::LoseData { link } => {
                state.down[link].remove(0);
                spend(Some(&mut state.left.losses)).then_some(())
            }
            Action::Response { link, position, again } => {
                let message = Message::of(take(&mut state.up[link], position, again, &mut state.left));
                self.response_arrives(state, link, message)
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
        let record = self.record_at(state, node);
        let parent = record.places[node].parent;
        if parent.is_none() && node != 0 {
            return Some(());
        }
        let link = self.link(parent, Child::Node(node));
        for code in step.sent.into_iter().take_while(|&code| code != 0) {
            // The source ignores the epoch.
            let epoch = if node == 0 { 0 } else { record.epoch };
            let message = Message { epoch, ..Message::of(code) };
            self.push(&mut state.up[link], message.code())?;
        }
        Some(())
    }

    fn data_at_node(&self, state: &mut State, node: usize, data: Data, deliveries: u8) -> Option<()> {
        if state.nodes[node] == Fingerprint::ABSENT {
            return Some(());
        }
        let step = self.machines.data(state.nodes[node], data);
        self.advance(state, node, step)?;
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
                    if let Some(message) = state.receivers[receiver].receive(data, delivery, self.bounds.receivers) {
                        self.push(&mut state.up[link], message.code())?;
                    }
                }
            }
        }
        Some(())
    }

    fn response_arrives(&self, state: &mut State, link: usize, message: Message) -> Option<()> {
        let Some(node) = self.links[link].above else {
            state.source.receive(message, self.bounds.source);
            return Some(());
        };
        if state.nodes[node] == Fingerprint::ABSENT {
            return Some(());
        }
        let branches = &self.record_at(state, node).places[node].branches;
        let Some(branch) = branches.iter().position(|branch| branch.child == self.links[link].below) else {
            return Some(());
        };
        let is_old = matches!(branches[branch].child, Child::Node(_)) && message.epoch < branches[branch].renewed;
        if is_old && self.bounds.epochs_checked {
            return Some(());
        }
        let step = self.machines.response(state.nodes[node], branch as u16, message);
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
            && self.machines.read(state.nodes[node], |machine| machine.withholds(BranchIndex(position as u16), psn))
    }
}
