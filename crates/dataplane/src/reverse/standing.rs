//! Where a branch stands, for those who ask why something was held.

use super::BranchIndex;
use super::acknowledgements::Acknowledgements;
use super::branch::{Branch, State};
use super::response::Answer;
use super::stall::Watch;
use srdma_wire::{Instant, Psn};

/// What a branch has said last, as far as it matters still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not heard yet: nothing goes upstream (R6).
    Unknown,
    /// Nothing is pending.
    Clear,
    /// A NAK, an RNR NAK or a fatal NAK at the branch's point.
    Pending {
        /// Which.
        answer: Answer,
        /// It waits for the minimum, or for T_hold, to go upstream (R5, D24).
        held: bool,
    },
    /// No longer part of the tree (R7).
    Removed,
}

/// A branch as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchView {
    /// The state of the drawing in `branch.rs`, by its name there.
    pub state: &'static str,
    /// The PSN that it expects next; `None` when it is unknown or removed.
    pub point: Option<Psn>,
    /// Since when something has been pending there.
    pub since: Option<Instant>,
    /// How it comes on; `None` where nobody asks for evictions.
    pub stall: Option<StallView>,
}

/// What the watch over stalls knows of a branch (D25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallView {
    /// It had everything when somebody last looked.
    Idle,
    /// What it expects next has been sent so often since its last progress, 15 times or more as 15.
    Waiting {
        /// Sendings.
        sends: u8,
    },
    /// Its eviction is wanted.
    EvictionWanted,
}

/// What is kept of a group besides its branches, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// m: the least point of the branches heard.
    pub minimum: Option<Psn>,
    /// `up`: the last minimum said upstream.
    pub up: Option<Psn>,
    /// `hi`: the highest PSN sent down.
    pub highest: Option<Psn>,
    /// Branches not heard; nothing goes upstream while there are any (R6).
    pub unknown: u16,
    /// Upstream has been told of a NAK at the minimum, and the data there have not come down since.
    pub nak_up: bool,
    /// The same for an RNR NAK, with its timer code.
    pub rnr_up: Option<u8>,
}

impl Acknowledgements {
    /// A branch as it is now; `None` when there is no such branch.
    pub fn branch_view(&self, branch: BranchIndex) -> Option<BranchView> {
        let Branch { state, since, .. } = self.branches.get(branch.index())?;
        let has_pending = matches!(self.standing(branch), Standing::Pending { .. });
        let stall = self.stall.as_ref().map(|stall| match stall.watch(branch.index()) {
            Watch::Idle => StallView::Idle,
            Watch::Waiting { sends, .. } => StallView::Waiting { sends },
            Watch::Due | Watch::Asked { .. } => StallView::EvictionWanted,
        });
        let point = self.points.get(branch.index());
        Some(BranchView { state: state.name(), point, since: has_pending.then_some(*since), stall })
    }

    /// What is kept of the group besides its branches.
    pub fn group_view(&self) -> GroupView {
        GroupView {
            minimum: self.minimum(),
            up: self.group.up.get(),
            highest: self.highest(),
            unknown: self.unknown(),
            nak_up: self.group.nak_up,
            rnr_up: self.group.rnr_up,
        }
    }

    /// Where a branch stands; one that does not exist has been removed.
    pub fn standing(&self, branch: BranchIndex) -> Standing {
        let pending = |answer, held| Standing::Pending { answer, held };
        match self.branches.get(branch.index()).map_or(State::Removed, |branch| branch.state) {
            State::Unknown => Standing::Unknown,
            State::Clear => Standing::Clear,
            State::Nak => pending(Answer::SequenceNak, true),
            State::NakTold => pending(Answer::SequenceNak, false),
            State::Rnr(timer) => pending(Answer::RnrNak(timer), false),
            State::Fatal(code) => pending(Answer::Fatal(code), true),
            State::FatalTold(code) | State::Failed(code) => pending(Answer::Fatal(code), false),
            State::Removed => Standing::Removed,
        }
    }
}
