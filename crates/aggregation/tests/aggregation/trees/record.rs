//! The tree of each epoch: its record, and the next record after a change of membership.

use srdma_aggregation::{BranchBefore, BranchIndex, NodeBefore, Origin};
use srdma_wire::Psn;

/// The child of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Child {
    Node(usize),
    Receiver(usize),
}

/// A branch of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) child: Child,
    /// The packet at which it joined (D30).
    pub(crate) joined: Option<u64>,
    /// The epoch from which a node's responses cover all receivers below it now.
    pub(crate) renewed: u32,
}

/// A node's group entry. A node that is not in the tree has no branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) parent: Option<usize>,
    pub(crate) branches: Vec<Branch>,
    pub(crate) renewed: u32,
}

/// The record of an epoch. Node 0 is the root.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) epoch: u32,
    pub(crate) entries: Vec<Part>,
}

/// A change of membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// A receiver goes, and each node that is left without branches (D25).
    Evict(usize),
    /// A receiver, or a node with all below it, gets another parent.
    Move { child: Child, to: usize },
    /// A receiver joins below a node, or a node that is new and has that receiver alone.
    Join { receiver: usize, at: usize, through: Option<usize> },
}

impl Record {
    /// The parent of a child.
    pub(crate) fn holder(&self, child: Child) -> Option<usize> {
        self.entries.iter().position(|entry| entry.branches.iter().any(|branch| branch.child == child))
    }

    /// Whether a receiver is a member.
    pub(crate) fn is_member(&self, receiver: usize) -> bool {
        self.holder(Child::Receiver(receiver)).is_some()
    }

    /// A node and all above it, the root last.
    fn path(&self, node: usize) -> Vec<usize> {
        let mut path = vec![node];
        while let Some(parent) = self.entries[path[path.len() - 1]].parent {
            path.push(parent);
        }
        path
    }

    /// Whether a node is in the tree.
    pub(crate) fn has(&self, node: usize) -> bool {
        node == 0 || self.holder(Child::Node(node)).is_some()
    }

    /// The next record, and the nodes that must not commit before all others have: those on the old path of the moved
    /// branch, below the common ancestor, which accepts their responses until it commits the change. `None` for a
    /// change that cannot be. `next_packet`: the source's, at which a receiver joins.
    pub(crate) fn changed(&self, change: Change, next_packet: u64) -> Option<(Record, Vec<usize>)> {
        let mut next = Record { epoch: self.epoch + 1, entries: self.entries.clone() };
        let mut last = Vec::new();
        match change {
            Change::Evict(receiver) => next.take_out(Child::Receiver(receiver), self)?,
            Change::Move { child, to } => {
                let (from, path) = (self.holder(child)?, self.path(to));
                if from == to || !self.has(to) || matches!(child, Child::Node(node) if path.contains(&node)) {
                    return None;
                }
                let old_path = self.path(from);
                last.extend(old_path.iter().copied().filter(|node| !path.contains(node)));
                for node in path.into_iter().filter(|node| !old_path.contains(node)) {
                    next.entries[node].renewed = next.epoch;
                }
                next.entries[to].branches.push(Branch { child, joined: None, renewed: 0 });
                if let Child::Node(node) = child {
                    next.entries[node].parent = Some(to);
                }
                next.drop_branch(from, child);
            }
            Change::Join { receiver, at, through } => {
                if !self.has(at) || self.is_member(receiver) || through.is_some_and(|node| self.has(node)) {
                    return None;
                }
                let branch = |child| Branch { child, joined: Some(next_packet), renewed: 0 };
                let mut holder = at;
                if let Some(node) = through {
                    next.entries[at].branches.push(branch(Child::Node(node)));
                    next.entries[node] = Part { parent: Some(at), ..Part::default() };
                    holder = node;
                }
                next.entries[holder].branches.push(branch(Child::Receiver(receiver)));
            }
        }
        for node in 0..next.entries.len() {
            for index in 0..next.entries[node].branches.len() {
                if let Child::Node(child) = next.entries[node].branches[index].child {
                    next.entries[node].branches[index].renewed = next.entries[child].renewed;
                }
            }
        }
        Some((next, last))
    }

    fn take_out(&mut self, child: Child, before: &Record) -> Option<()> {
        let holder = before.holder(child)?;
        self.drop_branch(holder, child);
        Some(())
    }

    /// A node left without branches goes, recursively; the root stays.
    fn drop_branch(&mut self, node: usize, child: Child) {
        self.entries[node].branches.retain(|branch| branch.child != child);
        if let (true, Some(parent)) = (self.entries[node].branches.is_empty(), self.entries[node].parent) {
            self.drop_branch(parent, Child::Node(node));
        }
    }
}

impl Part {
    /// The branch of a child.
    pub(crate) fn branch_of(&self, child: Child) -> Option<BranchIndex> {
        self.branches.iter().position(|branch| branch.child == child).map(|index| BranchIndex(index as u16))
    }

    /// Where the branches begin, at a node that had this part before, or none.
    pub(crate) fn origins(&self, before: Option<&Part>, restarted: bool, psn: impl Fn(u64) -> Psn) -> Vec<Origin> {
        let node = match (restarted, before, self.renewed) {
            (true, _, _) => NodeBefore::Restarted,
            (false, Some(_), _) => NodeBefore::Present,
            (false, None, 0) => NodeBefore::New,
            (false, None, _) => NodeBefore::Renewed,
        };
        let origin = |branch: &Branch| {
            let index = before.and_then(|entry| entry.branch_of(branch.child));
            let known = before.zip(index).map(|(entry, index)| entry.branches[index.index()]);
            let of_branch = match (index, known) {
                (Some(index), Some(known)) if known.renewed == branch.renewed => BranchBefore::Same(index),
                (Some(_), _) => BranchBefore::Renewed,
                (None, _) => BranchBefore::Absent,
            };
            let is_new = known.is_none_or(|known| known.joined != branch.joined);
            let joined = branch.joined.filter(|_| is_new && branch.renewed == 0);
            Origin::of(node, of_branch, joined.map(&psn), psn(0))
        };
        self.branches.iter().map(origin).collect()
    }
}
