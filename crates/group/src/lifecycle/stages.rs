//! Nodes that a change concerns, and the order of their commits.
//!
//! Nodes that gain a branch or receiver commit first, from the top down, level by level; then those with other changes
//! only; then those that lose a branch. Each level has committed before the next begins.
//!
//! This order makes re-homing safe at any time. Let a node M move from below P to below Q, and let A be the lowest node
//! above both places. While A has not committed, it takes the responses of its branch towards Q not to include M, and
//! those of the branch towards P to include M. So P must include M until A has made the branch towards Q
//! unknown, after which A accepts from it only responses of nodes that have M: A commits before P. A is above P, and A
//! or a branch of it gains something, whereas P only loses. If P were first, it would drop M from its responses, and A
//! would take these, with Q's old expected PSN, for the responses of all.

use crate::group::Group;
use crate::group_entry::GroupEntry;
use crate::name::{Digest, EntryName};
use crate::tree::NodeIndex;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The part of a node in a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Concern {
    /// Its next entry.
    pub(super) name: EntryName,
    /// Stage of its commit.
    pub(super) stage: usize,
    /// The change waits for its commit even if it is lost: with its former entry it would acknowledge data without the
    /// member that it gains, and its parent would accept that (D97).
    pub(super) must_commit: bool,
}

/// A node before a change.
pub(super) struct Before {
    pub(super) entry: Option<GroupEntry>,
    /// It may instead have the entry of a change which did not reach all nodes.
    pub(super) is_unsettled: bool,
}

/// Nodes of the group after a change that need a new group entry; and the number of stages.
///
/// A group entry is needed when it differs in more than its epoch, and at the headend, which keeps the recovery
/// snapshot of each record. The other nodes stay at the epoch that they have: their responses are compared with
/// `renewed` alone, and a node without a new member at its branches may send them under an older one.
pub(super) fn stages(before: impl Fn(Ipv6Addr) -> Before, after: &Group) -> (BTreeMap<Ipv6Addr, Concern>, usize) {
    let mut concerned = Vec::new();
    for (loopback, level, now) in entries(after) {
        let Before { entry: known, is_unsettled } = before(loopback);
        let entry = Digest::of_entry(&now);
        if is_unsettled || now.headend.is_some() || known.as_ref().map(Digest::of_entry) != Some(entry) {
            let turn = turn(level, known.as_ref(), &now);
            let name = EntryName { epoch: now.epoch, record: after.digest(), entry };
            // Its parent does not accept responses of earlier epochs than that of its renewal.
            let is_fenced = now.renewed == now.epoch;
            concerned.push((loopback, turn, name, matches!(turn, Turn::Gains { .. }) && !is_fenced));
        }
    }
    let mut turns: Vec<Turn> = concerned.iter().map(|(_, turn, ..)| *turn).collect();
    turns.sort_unstable();
    turns.dedup();
    let stage_of = |turn: Turn| turns.partition_point(|earlier| *earlier < turn);
    let concerns = concerned
        .iter()
        .map(|&(loopback, turn, name, must_commit)| (loopback, Concern { name, stage: stage_of(turn), must_commit }));
    (concerns.collect(), turns.len())
}

/// Stage of a node's commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// It gains a branch or receiver: with all such nodes of its level.
    Gains { level: usize },
    /// Its parent, its policy, or the receivers of the headend's lists change.
    Other,
    /// It loses a branch or receiver.
    Loses,
}

fn turn(level: usize, known: Option<&GroupEntry>, now: &GroupEntry) -> Turn {
    let Some(known) = known else { return Turn::Gains { level } };
    let was_there = |responder, renewed| {
        known.branches.iter().any(|branch| branch.responder == responder && branch.renewed == renewed)
    };
    let is_there = |responder| now.branches.iter().any(|branch| branch.responder == responder);
    if now.renewed != known.renewed || !now.branches.iter().all(|branch| was_there(branch.responder, branch.renewed)) {
        Turn::Gains { level }
    } else if known.branches.iter().all(|branch| is_there(branch.responder)) {
        Turn::Other
    } else {
        Turn::Loses
    }
}

/// All nodes: loopback, levels below the headend, group entry.
fn entries(group: &Group) -> impl Iterator<Item = (Ipv6Addr, usize, GroupEntry)> {
    let nodes = group.record().tree.nodes();
    let mut levels: Vec<usize> = Vec::with_capacity(nodes.len());
    for node in nodes {
        levels.push(node.parent.and_then(|parent| levels.get(parent.0)).map_or(0, |level| level + 1));
    }
    let at = |index: usize| group.at(NodeIndex(index));
    nodes.iter().enumerate().filter_map(move |(index, node)| Some((node.loopback, levels[index], at(index)?)))
}

/// The group entry of the node with this loopback.
pub(super) fn entry_of(group: &Group, loopback: Ipv6Addr) -> Option<GroupEntry> {
    let index = group.record().tree.nodes().iter().position(|node| node.loopback == loopback)?;
    group.at(NodeIndex(index))
}
