//! From one epoch to the next: the initial expected PSN of each branch of the new epoch.
//!
//! ```text
//!                           the node                          the branch                            it begins
//!
//!   no part of the group before ──┬─ restarted ─────────────────────────────────────────────────── unknown (R6)
//!                                 ├─ joined at J ───────────────────────────────────────────────── at J (D30)
//!                                 ├─ the node was renewed: what hangs below is not new to the group ─ unknown (R6)
//!                                 └─ the group is new ───────────────────────────────── at its initial PSN (D17)
//!
//!   in the epoch before ──────────┬─ joined at a J that it had not ─────────────────────────────── at J (D30)
//!                                 ├─ it was there, and was not renewed since ────────── as it stood: state, point
//!                                 ├─ it was there, but renewed since (re-homing) ───────────────── unknown (R6)
//!                                 └─ it was not there ──────────────────────────────────────────── unknown (R6)
//! ```
//!
//! A branch that is not in the new epoch is removed (R7). A branch that joined and was renewed since is not what it was
//! when it joined: its J counts for nothing.

use crate::BranchIndex;
use crate::ablation::Ablation;
use crate::acknowledgements::{Acknowledgements, Counters, Group};
use crate::branch::{Branch, State};
use crate::expected_psns::ExpectedPsns;
use crate::forwarded::Upstream;
use crate::optional_psn::OptionalPsn;
use crate::rules::{Policy, Rules};
use crate::stall::StallWatch;
use crate::upstream_response::{Rule, UpstreamResponse};
use srdma_wire::{Instant, Psn};

/// A node's state from before an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeBefore {
    /// It was not in the group, and nothing below it now was.
    New,
    /// It was not in the group, but some receivers below it were (re-homing).
    Renewed,
    /// It has lost its state.
    Restarted,
    /// It was part of the group in the epoch before.
    Present,
}

/// Origin of a branch in the epoch before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchBefore {
    /// No such branch.
    Absent,
    /// The same branch, and its responses cover all receivers below it now.
    Same(BranchIndex),
    /// A branch of the same responder, renewed since.
    Renewed,
}

/// Where a branch of a new epoch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Continues this branch of the previous epoch.
    Kept(BranchIndex),
    /// At a PSN, with nothing pending: J of a branch that joins (D30), the initial PSN of a new group (D17, D28).
    At(Psn),
    /// Nothing is sent upstream until it responds (R6).
    Unknown,
}

impl Origin {
    /// Where a branch begins. `joined`: J of a branch that joined after the epoch that this node was in before, and was
    /// not renewed since. `initial`: the group's initial PSN.
    pub fn of(node: NodeBefore, branch: BranchBefore, joined: Option<Psn>, initial: Psn) -> Self {
        match (node, branch, joined) {
            (NodeBefore::Restarted, _, _) => Origin::Unknown,
            (NodeBefore::New | NodeBefore::Renewed | NodeBefore::Present, _, Some(psn)) => Origin::At(psn),
            (NodeBefore::New, _, None) => Origin::At(initial),
            (NodeBefore::Renewed, _, None) => Origin::Unknown,
            (NodeBefore::Present, BranchBefore::Same(index), None) => Origin::Kept(index),
            (NodeBefore::Present, BranchBefore::Absent | BranchBefore::Renewed, None) => Origin::Unknown,
        }
    }
}

impl Acknowledgements {
    /// A node that takes part in a group from here on. There is nothing that a branch could be kept from.
    pub fn of_branches(rules: &Rules, origins: &[Origin]) -> Self {
        let group = Group {
            highest: OptionalPsn::NONE,
            previous: OptionalPsn::NONE,
            upstream: Upstream::NOTHING,
            unknown: 0,
            deadline: Instant::NEVER,
            awaiting_data: 0,
            fatal: 0,
        };
        let (counters, expected_psns, branches) = (Counters::default(), ExpectedPsns::new(0, None), Box::default());
        let mut fresh = Acknowledgements {
            policy: Policy::of(rules),
            ablation: None,
            group,
            counters,
            expected_psns,
            branches,
            stall: None,
        };
        fresh.put_branches(rules, origins);
        fresh.stall = rules.evict.map(|rules| StallWatch::new(rules, origins.len()));
        if fresh.group.unknown == 0 {
            // Upstream stands there as well.
            fresh.group.upstream = Upstream::at(fresh.expected_psns.minimum());
        }
        fresh
    }

    /// Takes the state into another epoch: `origins` has the start of each branch; branches that are not kept are
    /// removed, and pending responses are added to `out` (R7). `forgets`: nothing counts as sent upstream, because it
    /// does not hold for the new subtree, or because another node is upstream.
    pub fn succeed(&mut self, rules: &Rules, origins: &[Origin], forgets: bool, out: &mut Vec<UpstreamResponse>) {
        self.put_branches(rules, origins);
        if forgets {
            self.group.upstream = Upstream::NOTHING;
            for branch in &mut self.branches {
                branch.state = branch.state.not_forwarded();
            }
        }
        self.end_epoch_change(out);
    }

    /// R7, and the holds of what was not forwarded.
    pub(super) fn end_epoch_change(&mut self, out: &mut Vec<UpstreamResponse>) {
        if let Some(minimum) = self.minimum_of_known() {
            self.forward_all(minimum, Rule::R7, out);
        }
        self.arm_holds();
    }

    fn put_branches(&mut self, rules: &Rules, origins: &[Origin]) {
        let known = |index: &BranchIndex| self.branches.get(index.index()).filter(|it| it.state != State::Removed);
        let fresh = |state| Branch { since: Instant::ZERO, msn: 0, state };
        let mut expected_psns = ExpectedPsns::new(origins.len(), None);
        let mut branches = Vec::with_capacity(origins.len());
        let policy = Policy::of(rules);
        for (place, origin) in origins.iter().enumerate() {
            let (branch, expected_psn) = match origin {
                Origin::Kept(index) => match known(index) {
                    Some(branch) => {
                        let state = branch.state.with_policy(policy.evicts(place));
                        (Branch { state, ..branch.clone() }, self.expected_psns.get(index.index()))
                    }
                    None => (fresh(State::Unknown), None),
                },
                Origin::At(psn) => (fresh(State::Clear), Some(*psn)),
                Origin::Unknown => (fresh(State::Unknown), None),
            };
            expected_psns.set(place, expected_psn);
            branches.push(branch);
        }
        (self.policy, self.expected_psns, self.branches) = (policy, expected_psns, branches.into_boxed_slice());
        self.ablation = Ablation::of(rules, origins, self.ablation.as_deref());
        self.stall = match (rules.evict, self.stall.take()) {
            (None, _) => None,
            (Some(rules), known) => {
                let mut stall = known.unwrap_or_else(|| StallWatch::new(rules, 0));
                stall.succeed(rules, origins, self.group.highest.get());
                Some(stall)
            }
        };
        if let Some(stall) = &mut self.stall {
            let failed = self.branches.iter().enumerate().filter(|(_, it)| matches!(it.state, State::Failed(_)));
            failed.for_each(|(index, _)| stall.failed(index));
        }
        let count = |is_it: fn(State) -> bool| self.branches.iter().filter(|branch| is_it(branch.state)).count() as u16;
        let unknown = count(|state| state == State::Unknown);
        let awaiting_data = count(State::awaits_data);
        let fatal = count(|state| state.fatal_code().is_some());
        (self.group.unknown, self.group.awaiting_data, self.group.fatal) = (unknown, awaiting_data, fatal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every node under every branch, without and with a J (D17, D30, R6, R7).
    #[test]
    fn the_full_table() {
        let nodes = [NodeBefore::New, NodeBefore::Renewed, NodeBefore::Restarted, NodeBefore::Present];
        let branches = [BranchBefore::Absent, BranchBefore::Same(BranchIndex(4)), BranchBefore::Renewed];
        let mut table = format!("{:<25}", "");
        nodes.iter().for_each(|node| table += &format!("{:<11}", format!("{node:?}")));
        for joined in [None, Some(Psn::new(77))] {
            for branch in branches {
                let name = match branch {
                    BranchBefore::Absent => "not there",
                    BranchBefore::Same(_) => "there",
                    BranchBefore::Renewed => "renewed",
                };
                let name = format!("{name}{}", if joined.is_some() { ", joined at 77" } else { "" });
                table += &format!("\n{name:<23}");
                for node in nodes {
                    let origin = match Origin::of(node, branch, joined, Psn::new(1)) {
                        Origin::Kept(index) => format!("as {}", index.0),
                        Origin::At(psn) => format!("at {psn}"),
                        Origin::Unknown => "unknown".into(),
                    };
                    table += &format!("{origin:<11}");
                }
            }
        }
        let table: Vec<&str> = table.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(table.join("\n"), @r"
                                 New        Renewed    Restarted  Present
        not there              at 1       unknown    unknown    unknown
        there                  at 1       unknown    unknown    as 4
        renewed                at 1       unknown    unknown    unknown
        not there, joined at 77at 77      at 77      unknown    at 77
        there, joined at 77    at 77      at 77      unknown    at 77
        renewed, joined at 77  at 77      at 77      unknown    at 77
        ");
    }
}
