//! The transfers of a collective, by position in its group.
//!
//! The messages of a position are divided into lanes: lists that are sent one after the other. A message may be sent
//! when all before it in its lane were sent and enough has arrived; [`Pattern::ready_at_start`] and
//! [`Pattern::follows`] define enough.
//!
//! | kind | lanes | messages of a lane |
//! |---|---|---|
//! | all-reduce ring | to the next | 2(n−1), an n-th of the buffer each, passed on as they arrive |
//! | all-gather, reduce-scatter | to the next | n−1 of these |
//! | all-reduce tree | for each of two trees: to the parent, and to each child | chunks of half of the buffer |
//! | all-to-all | all others in turn, beginning with the next | n−1, an n-th of the buffer each |
//! | broadcast | to the next | chunks of the buffer, passed on as they arrive |
//! | broadcast tree | to each child | chunks of the buffer, passed on as they arrive |
//! | unicast broadcast | of the first: to all others in turn | all chunks, each to all others |
//! | multicast broadcast | of the first: to itself, which stands for all others | chunks of the buffer |
//! | send/receive | to the next | chunks of the buffer |

use crate::double_tree::{TREES, children, parent};
use crate::job::CollectiveKind;

/// Lanes of a tree: to the parent, to the lower child, to the upper child.
const TREE_LANES: u8 = 3;

/// A collective in groups of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) kind: CollectiveKind,
    /// Ranks of the group.
    pub(crate) ranks: u32,
    /// The buffer of each rank.
    pub(crate) octets: u64,
    /// Maximum length of a chunk, for kinds with chunks.
    pub(crate) chunk_octets: u64,
}

/// Effect of an arrival at the position where it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Nothing waits for it.
    Nothing,
    /// One more message of these lanes may go.
    Next([Option<u8>; 2]),
    /// One more part of a sum is there, from the lower or the upper child in this tree.
    Part { tree: u8, child: u8 },
}

impl Pattern {
    /// Number of lanes of each position.
    pub(crate) fn lanes(&self) -> u8 {
        match self.kind {
            CollectiveKind::AllReduceTree => TREES * TREE_LANES,
            CollectiveKind::BroadcastTree => 2,
            _ => 1,
        }
    }

    /// Number of messages of a lane.
    pub(crate) fn messages(&self, position: u32, lane: u8) -> u32 {
        let others = self.ranks.saturating_sub(1);
        match self.kind {
            _ if others == 0 => 0,
            CollectiveKind::AllReduceRing => 2 * others,
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => others,
            CollectiveKind::BroadcastUnicast if position == 0 => others.saturating_mul(self.chunks(lane)),
            _ => self.peer(position, lane, 0).map_or(0, |_| self.chunks(lane)),
        }
    }

    /// Number of messages of a lane that may be sent before any arrival.
    pub(crate) fn ready_at_start(&self, position: u32, lane: u8) -> u32 {
        match self.kind {
            CollectiveKind::AllReduceRing | CollectiveKind::AllGather | CollectiveKind::ReduceScatter => 1,
            CollectiveKind::AllToAll | CollectiveKind::SendRecv => u32::MAX,
            CollectiveKind::BroadcastUnicast | CollectiveKind::BroadcastMulticast => u32::MAX,
            CollectiveKind::Broadcast | CollectiveKind::BroadcastTree if position == 0 => u32::MAX,
            CollectiveKind::Broadcast | CollectiveKind::BroadcastTree => 0,
            CollectiveKind::AllReduceTree => {
                let is_leaf = children(self.ranks, lane / TREE_LANES, position) == [None; 2];
                if is_leaf { u32::MAX } else { 0 }
            }
        }
    }

    /// The destination of a message of a lane; `None` if the lane has none.
    pub(crate) fn peer(&self, position: u32, lane: u8, step: u32) -> Option<u32> {
        let next = (position + 1) % self.ranks;
        match self.kind {
            CollectiveKind::AllReduceRing | CollectiveKind::AllGather | CollectiveKind::ReduceScatter => Some(next),
            CollectiveKind::AllToAll => Some((position + 1 + step) % self.ranks),
            CollectiveKind::Broadcast | CollectiveKind::SendRecv => (next > 0).then_some(next),
            CollectiveKind::BroadcastTree => children(self.ranks, 0, position)[usize::from(lane)],
            CollectiveKind::BroadcastUnicast => (position == 0).then(|| 1 + step % (self.ranks - 1)),
            CollectiveKind::BroadcastMulticast => (position == 0).then_some(0),
            CollectiveKind::AllReduceTree => match (lane / TREE_LANES, lane % TREE_LANES) {
                (tree, 0) => parent(self.ranks, tree, position),
                (tree, to) => children(self.ranks, tree, position)[usize::from(to - 1)],
            },
        }
    }

    /// Octets of the buffer that a message carries: begin and end.
    pub(crate) fn part(&self, position: u32, lane: u8, step: u32) -> [u64; 2] {
        let ranks = self.ranks;
        let back = |steps: u32| (position + ranks - steps % ranks) % ranks;
        match self.kind {
            // After n−1 steps a position has the sum of the part that is called as itself, and passes it on.
            CollectiveKind::AllReduceRing | CollectiveKind::ReduceScatter => cut(self.octets, ranks, back(step + 1)),
            CollectiveKind::AllGather => cut(self.octets, ranks, back(step)),
            CollectiveKind::AllToAll => cut(self.octets, ranks, (position + 1 + step) % ranks),
            CollectiveKind::Broadcast
            | CollectiveKind::BroadcastTree
            | CollectiveKind::BroadcastMulticast
            | CollectiveKind::SendRecv => cut(self.octets, self.chunks(lane), step),
            CollectiveKind::BroadcastUnicast => cut(self.octets, self.chunks(lane), step / (ranks - 1)),
            CollectiveKind::AllReduceTree => {
                let [begin, end] = self.half(lane);
                cut(end - begin, self.chunks(lane), step).map(|at| begin + at)
            }
        }
    }

    /// Effect of the arrival of a message at the position where it arrives.
    pub(crate) fn follows(&self, position: u32, from: u32, lane: u8) -> Follows {
        match self.kind {
            CollectiveKind::AllToAll
            | CollectiveKind::SendRecv
            | CollectiveKind::BroadcastUnicast
            | CollectiveKind::BroadcastMulticast => Follows::Nothing,
            CollectiveKind::BroadcastTree => Follows::Next([Some(0), Some(1)]),
            CollectiveKind::AllReduceTree => {
                let tree = lane / TREE_LANES;
                if !lane.is_multiple_of(TREE_LANES) {
                    return Follows::Next(down(tree));
                }
                let is_upper = children(self.ranks, tree, position)[1] == Some(from);
                Follows::Part { tree, child: u8::from(is_upper) }
            }
            _ => Follows::Next([Some(0), None]),
        }
    }

    /// Whether a position has a lower and an upper child in a tree.
    pub(crate) fn has_children(&self, position: u32, tree: u8) -> [bool; 2] {
        children(self.ranks, tree, position).map(|child| child.is_some())
    }

    /// The lanes that have one more message to send when a tree's sum has one more part from every child.
    pub(crate) fn lanes_after_sum(&self, position: u32, tree: u8) -> [Option<u8>; 2] {
        match parent(self.ranks, tree, position) {
            Some(_) => [Some(tree * TREE_LANES), None],
            None => down(tree),
        }
    }

    /// The half of the buffer that a lane's tree sums up.
    fn half(&self, lane: u8) -> [u64; 2] {
        cut(self.octets, u32::from(TREES), u32::from(lane / TREE_LANES))
    }

    fn chunks(&self, lane: u8) -> u32 {
        let octets = match self.kind {
            CollectiveKind::AllReduceTree => {
                let [begin, end] = self.half(lane);
                end - begin
            }
            _ => self.octets,
        };
        octets.div_ceil(self.chunk_octets.max(1)).clamp(1, u64::from(u32::MAX)) as u32
    }
}

/// The lanes to both children in a tree.
fn down(tree: u8) -> [Option<u8>; 2] {
    [1, 2].map(|to| Some(tree * TREE_LANES + to))
}

/// One of several parts that are as even as whole octets can be.
fn cut(octets: u64, parts: u32, part: u32) -> [u64; 2] {
    let at = |part: u64| (u128::from(octets) * u128::from(part) / u128::from(parts.max(1))) as u64;
    [at(u64::from(part)), at(u64::from(part) + 1)]
}
