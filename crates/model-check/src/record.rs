//! Membership: the committed record of each reachable epoch, and how one follows from another.

/// Child of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Child {
    Node(usize),
    Receiver(usize),
}

/// A branch of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) child: Child,
    /// The epoch from which responses of the child cover its whole subtree; of a receiver the epoch at which it moved
    /// here (D280).
    pub(crate) renewed: u8,
    /// It joined after the start of the group (D30).
    pub(crate) joined: bool,
}

/// A node's place in the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The node above; `None` at the root, and for a node that is not in the tree.
    pub(crate) parent: Option<usize>,
    pub(crate) branches: Vec<Branch>,
    /// The last epoch in which a node or receiver of the group was moved below it.
    pub(crate) renewed: u8,
}

/// A change of membership.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A receiver is evicted or leaves, and with it nodes without other branches (D25).
    Evict(usize),
    /// A node and its subtree get another parent.
    Rehome {
        /// The node that moves.
        node: usize,
        /// Its new parent.
        to: usize,
    },
    /// A receiver moves to another edge node, to which it is attached as well (D280).
    Move {
        receiver: usize,
        /// Its new edge node.
        to: usize,
    },
    /// A receiver joins at an edge node while the source is quiescent (D30).
    Join {
        receiver: usize,
        /// The edge node.
        edge: usize,
    },
}

/// The record of one epoch. Node 0 is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) epoch: u8,
    pub(crate) places: Vec<Place>,
    /// Membership of each receiver.
    pub(crate) members: Vec<bool>,
    /// Position of the previous record.
    pub(crate) before: usize,
    pub(crate) change: Option<Change>,
    /// For each node with a changed group entry the phase of its commit: phases are sequential.
    pub(crate) phases: Vec<Option<u8>>,
}

/// Commit order of the nodes on the two paths of a re-homing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitOrder {
    /// The old path after the common ancestor: the common ancestor then no longer trusts earlier responses of the new
    /// path when responses of the old path stop covering the moved subtree.
    #[default]
    OldPathLast,
    /// Any order, which violates safety.
    Any,
}

impl Record {
    /// The first record of a group: each node's parent, each receiver's edge node if it is a member.
    pub(crate) fn first(parents: &[Option<usize>], edges: &[Option<usize>]) -> Self {
        let mut places = vec![Place::default(); parents.len()];
        for (node, &parent) in parents.iter().enumerate() {
            places[node].parent = parent;
            if let Some(parent) = parent {
                places[parent].branches.push(Branch { child: Child::Node(node), renewed: 0, joined: false });
            }
        }
        for (receiver, edge) in edges.iter().enumerate() {
            if let Some(edge) = *edge {
                places[edge].branches.push(Branch { child: Child::Receiver(receiver), renewed: 0, joined: false });
            }
        }
        let members = edges.iter().map(Option::is_some).collect();
        let phases = vec![None; places.len()];
        Record { epoch: 0, places, members, before: 0, change: None, phases }
    }

    /// The record after a change of `self` at position `before`; `None` if the change is impossible.
    pub(crate) fn after(&self, change: Change, before: usize, order: CommitOrder) -> Option<Record> {
        let mut next = Record { epoch: self.epoch + 1, before, change: Some(change), ..self.clone() };
        for branch in next.places.iter_mut().flat_map(|place| &mut place.branches) {
            branch.joined = false;
        }
        match change {
            Change::Evict(receiver) => next.evict(receiver)?,
            Change::Rehome { node, to } => {
                let renewed = next.places[node].renewed;
                next.rehome(Child::Node(node), to, renewed)?;
                next.places[node].parent = Some(to);
            }
            Change::Move { receiver, to } => next.rehome(Child::Receiver(receiver), to, next.epoch)?,
            Change::Join { receiver, edge } => next.join(receiver, edge)?,
        }
        let last = next.last_to_commit(self, change, order);
        let changed = self.places.iter().zip(&next.places).map(|(old, new)| old != new);
        next.phases =
            changed.enumerate().map(|(node, changed)| changed.then_some(u8::from(last.contains(&node)))).collect();
        Some(next)
    }

    fn evict(&mut self, receiver: usize) -> Option<()> {
        // A group ends with its last receiver.
        if !self.members[receiver] || self.members.iter().filter(|&&member| member).count() == 1 {
            return None;
        }
        self.members[receiver] = false;
        let mut child = Child::Receiver(receiver);
        while let Some(node) = self.parent_of(child) {
            self.places[node].branches.retain(|branch| branch.child != child);
            if !self.places[node].branches.is_empty() {
                break;
            }
            child = Child::Node(node);
        }
        if let Child::Node(node) = child {
            self.places[node].parent = None;
        }
        Some(())
    }

    fn rehome(&mut self, child: Child, to: usize, renewed: u8) -> Option<()> {
        let from = self.parent_of(child)?;
        if from == to {
            return None;
        }
        let ancestor = self.common_ancestor(from, to);
        self.places[from].branches.retain(|branch| branch.child != child);
        self.places[to].branches.push(Branch { child, renewed, joined: false });
        let mut on_path = to;
        while on_path != ancestor {
            self.places[on_path].renewed = self.epoch;
            let parent = self.places[on_path].parent?;
            let branches = &mut self.places[parent].branches;
            branches.iter_mut().find(|branch| branch.child == Child::Node(on_path))?.renewed = self.epoch;
            on_path = parent;
        }
        Some(())
    }

    fn join(&mut self, receiver: usize, edge: usize) -> Option<()> {
        if std::mem::replace(&mut self.members[receiver], true) {
            return None;
        }
        self.places[edge].branches.push(Branch { child: Child::Receiver(receiver), renewed: 0, joined: true });
        Some(())
    }

    /// The nodes of the old path of a re-homing or move, below the common ancestor.
    fn last_to_commit(&self, before: &Record, change: Change, order: CommitOrder) -> Vec<usize> {
        let (child, to) = match (change, order) {
            (Change::Rehome { node, to }, CommitOrder::OldPathLast) => (Child::Node(node), to),
            (Change::Move { receiver, to }, CommitOrder::OldPathLast) => (Child::Receiver(receiver), to),
            (Change::Evict(_) | Change::Join { .. }, _) | (_, CommitOrder::Any) => return Vec::new(),
        };
        let Some(from) = before.parent_of(child) else {
            return Vec::new();
        };
        let ancestor = self.common_ancestor(from, to);
        self.path_up(from).take_while(|&on_path| on_path != ancestor).collect()
    }

    fn common_ancestor(&self, one: usize, other: usize) -> usize {
        self.path_up(one).find(|above| self.path_up(other).any(|node| node == *above)).unwrap_or(0)
    }

    /// A node and all nodes above it.
    fn path_up(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |&node| self.places[node].parent)
    }

    /// The parent node of a child.
    pub(crate) fn parent_of(&self, child: Child) -> Option<usize> {
        self.places.iter().position(|place| place.branches.iter().any(|branch| branch.child == child))
    }

    /// Whether a node is in the tree.
    pub(crate) fn has_node(&self, node: usize) -> bool {
        node == 0 || self.places[node].parent.is_some()
    }
}
