//! The status of a branch, for diagnosis.

use crate::BranchIndex;
use crate::acknowledgements::Acknowledgements;
use crate::branch::State;
use crate::response::Syndrome;

/// The status of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchStatus {
    /// No response yet: nothing is sent upstream (R6).
    Unknown,
    /// Nothing is pending.
    Clear,
    /// A NAK, an RNR NAK or a fatal NAK at the branch's expected PSN.
    Pending {
        /// Which.
        syndrome: Syndrome,
        /// It waits for the minimum, or for T_hold, to be forwarded (R5, D24). After T_hold it is held no longer.
        held: bool,
    },
    /// No longer part of the tree (R7).
    Removed,
}

impl Acknowledgements {
    /// The status of a branch; one that does not exist is removed.
    pub fn branch_status(&self, branch: BranchIndex) -> BranchStatus {
        let pending = |syndrome, held| BranchStatus::Pending { syndrome, held };
        match self.branches.get(branch.index()).map_or(State::Removed, |branch| branch.state) {
            State::Unknown => BranchStatus::Unknown,
            State::Clear => BranchStatus::Clear,
            State::Nak => pending(Syndrome::SequenceNak, true),
            State::NakEarly | State::NakForwarded => pending(Syndrome::SequenceNak, false),
            State::Rnr(timer) => pending(Syndrome::RnrNak(timer), false),
            State::Fatal(code) => pending(Syndrome::Fatal(code), true),
            State::FatalForwarded(code) | State::Failed(code) => pending(Syndrome::Fatal(code), false),
            State::Removed => BranchStatus::Removed,
        }
    }
}
