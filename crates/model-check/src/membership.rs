//! Restarts, and changes of membership.

use crate::machines::{Event, Fingerprint, Machine};
use crate::model::{Tree, spend};
use crate::record::{Branch, Change, Record};
use crate::state::State;
use srdma_aggregation::{BranchBefore, BranchIndex, NodeBefore, Origin};
use srdma_wire::Psn;

impl Tree {
    /// A node after a restart, with its current group entry and without learned state (D17).
    pub(crate) fn restarted(&self, state: &State, node: usize) -> Fingerprint {
        self.fresh(state, self.record_at(state, node), node, NodeBefore::Restarted)
    }

    /// The controller stores a changed record; its group entries are sent to the nodes.
    pub(crate) fn store(&self, state: &mut State, record: usize) -> Option<()> {
        state.record = record as u8;
        let stored = &self.records[record];
        let changed = (0..stored.phases.len()).filter(|&node| stored.phases[node].is_some());
        state.pending = changed.fold(0, |pending, node| pending | 1 << node);
        if let Some(Change::Join { receiver, .. }) = stored.change {
            // The receiver's queue pair expects J.
            state.joined_at = state.source.next;
            state.receivers[receiver].has = state.joined_at;
        }
        spend(Some(&mut state.left.changes)).then_some(())
    }

    /// The stored record takes effect at a node.
    pub(crate) fn commit(&self, state: &mut State, node: usize) -> Option<()> {
        let before = self.record_at(state, node);
        state.pending &= !(1 << node);
        let after = self.stored(state);
        if !after.has_node(node) {
            state.nodes[node] = Fingerprint::ABSENT;
            return Some(());
        }
        if state.nodes[node] == Fingerprint::ABSENT {
            let renewed = after.places[node].renewed > 0;
            let node_before = if renewed { NodeBefore::Renewed } else { NodeBefore::New };
            state.nodes[node] = self.fresh(state, after, node, node_before);
            return Some(());
        }
        let event = Event::Commit { record: usize::from(state.record), node, joined_at: state.joined_at };
        let origins = self.origins(state, before, after, node);
        let (old, new) = (&before.places[node], &after.places[node]);
        let forgets = old.renewed != new.renewed || old.parent != new.parent;
        let step = self.machines.step(state.nodes[node], event, |machine, out| {
            let of_repair = self.bounds.repairs.of(node, &after.places);
            machine.succeed(&self.bounds.rules, &origins, forgets, of_repair, out);
        });
        self.advance(state, node, step)
    }

    /// Origins of the branches of a node that stays in the tree.
    fn origins(&self, state: &State, before: &Record, after: &Record, node: usize) -> Vec<Origin> {
        let known = &before.places[node].branches;
        let origin = |branch: &Branch| {
            let index = known.iter().position(|known| known.child == branch.child);
            let branch_before = match index {
                None => BranchBefore::Absent,
                Some(index) if known[index].renewed == branch.renewed => BranchBefore::Same(BranchIndex(index as u16)),
                Some(_) => BranchBefore::Renewed,
            };
            let is_new = index.is_none_or(|index| !known[index].joined) && branch.renewed == 0;
            let joined = (branch.joined && is_new).then(|| self.psn(state.joined_at));
            Origin::of(NodeBefore::Present, branch_before, joined, self.bounds.initial_psn)
        };
        after.places[node].branches.iter().map(origin).collect()
    }

    fn fresh(&self, state: &State, record: &Record, node: usize, node_before: NodeBefore) -> Fingerprint {
        let origin = |branch: &Branch| {
            let joined = (branch.joined && branch.renewed == 0).then(|| self.psn(state.joined_at));
            Origin::of(node_before, BranchBefore::Absent, joined, self.bounds.initial_psn)
        };
        let origins: Vec<Origin> = record.places[node].branches.iter().map(origin).collect();
        let of_repair = self.bounds.repairs.of(node, &record.places);
        self.machines.store(Machine::new(&self.bounds.rules, &origins, of_repair))
    }

    /// The PSN of a packet.
    pub(crate) fn psn(&self, packet: u8) -> Psn {
        self.bounds.initial_psn.plus(u32::from(packet))
    }
}
