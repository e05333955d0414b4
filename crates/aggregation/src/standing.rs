//! Where a branch stands, for those who ask why something was held.

use crate::BranchIndex;
use crate::acknowledgements::Acknowledgements;
use crate::branch::State;
use crate::response::Answer;

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

impl Acknowledgements {
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
