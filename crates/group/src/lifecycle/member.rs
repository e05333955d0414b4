//! State of a node of a group in its lifecycle.
//!
//! ```text
//!                 concerned                prepared                its stage              committed
//!     Settled ───────────────► Preparing ───────────► Prepared ───────────► Committing ───────────► Settled
//!        ▲                      │  ▲  ▲                  │                   │      │
//!        └──── aborted ─────────┘  │  └──── restarted ───┘                   │      └─ restarted: Committing, of what
//!        is
//!                                  └──────────── refused ────────────────────┘         given back to it
//!
//!     Leaving ───────────────► Removing ───────────► (out of the group)
//!              all committed             removed
//! ```
//!
//! Beside it, whether the node can be reached: `Here`, `Returning` (it restarted without state and gets its entry back,
//! before anything else), or `Lost` (no phase waits for it, and its replies do not count, until it returns).

/// Progress of a node in the current change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It has what it is to have; outside a change, always.
    Settled,
    /// Its next entry was sent.
    Preparing,
    /// It can commit.
    Prepared,
    /// The commit was sent.
    Committing,
    /// It is not in the next record.
    Leaving,
    /// The removal was sent.
    Removing,
}

/// Whether a node can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It can.
    Here,
    /// It gets its entry of this epoch again.
    Returning(u32),
    /// It is known dead.
    Lost,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) step: Step,
    pub(super) presence: Presence,
    /// When it commits: see [`stages`](super::stages).
    pub(super) stage: usize,
}

/// A node's reply, with the epoch that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Prepared,
    Refused,
    Committed,
    Removed,
}

/// Effect of a reply, besides the member's new step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: the reply was one to an earlier order.
    Nothing,
    /// The phase waited for this.
    Progress,
    /// The node has to be sent its next entry.
    Prepare,
    /// The node cannot take its next part.
    Refusal,
    /// The node is out of the group.
    Gone,
}

impl Member {
    /// Takes a reply about the epoch of the change in progress, or, from a restarted node, about the epoch of its
    /// restored entry. `can_refuse`: whether the record is not stored yet.
    pub(super) fn on_reply(&mut self, reply: Reply, can_refuse: bool) -> Effect {
        use Reply::{Committed, Prepared, Refused, Removed};
        match (self.presence, self.step, reply) {
            (Presence::Lost, _, Prepared | Refused | Committed | Removed) => Effect::Nothing,
            (Presence::Returning(_), step, Committed) => {
                self.presence = Presence::Here;
                match step {
                    Step::Settled | Step::Leaving => Effect::Progress,
                    Step::Preparing | Step::Prepared => {
                        self.step = Step::Preparing;
                        Effect::Prepare
                    }
                    Step::Committing => {
                        self.step = Step::Settled;
                        Effect::Progress
                    }
                    Step::Removing => Effect::Nothing,
                }
            }
            (Presence::Returning(_), Step::Removing, Removed) => Effect::Gone,
            (Presence::Returning(_), _, Prepared | Refused | Removed) => Effect::Nothing,
            (Presence::Here, Step::Preparing, Prepared) => {
                self.step = Step::Prepared;
                Effect::Progress
            }
            (Presence::Here, Step::Preparing, Refused) if can_refuse => Effect::Refusal,
            // It has lost what it had prepared. Sent again by `repeat`: a node that keeps refusing must not
            // be sent orders as fast as it replies.
            (Presence::Here, Step::Committing, Refused) => {
                self.step = Step::Preparing;
                Effect::Nothing
            }
            (Presence::Here, Step::Committing, Committed) => {
                self.step = Step::Settled;
                Effect::Progress
            }
            // A node without the group cannot leave it.
            (Presence::Here, Step::Removing, Removed | Refused) => Effect::Gone,
            (Presence::Here, Step::Settled | Step::Prepared | Step::Leaving, _)
            | (Presence::Here, Step::Preparing, Refused | Committed | Removed)
            | (Presence::Here, Step::Committing, Prepared | Removed)
            | (Presence::Here, Step::Removing, Prepared | Committed) => Effect::Nothing,
        }
    }

    /// Whether the change in progress waits for the node to be prepared.
    pub(super) fn delays_store(&self) -> bool {
        match (self.presence, self.step) {
            (Presence::Lost, _) => false,
            (Presence::Here | Presence::Returning(_), Step::Preparing) => true,
            (
                Presence::Here | Presence::Returning(_),
                Step::Settled | Step::Prepared | Step::Committing | Step::Leaving | Step::Removing,
            ) => false,
        }
    }

    /// Whether the change in progress waits for the node to have committed.
    pub(super) fn delays_stage(&self) -> bool {
        match (self.presence, self.step) {
            (Presence::Lost, _) => false,
            (Presence::Here | Presence::Returning(_), Step::Preparing | Step::Prepared | Step::Committing) => true,
            (Presence::Here | Presence::Returning(_), Step::Settled | Step::Leaving | Step::Removing) => false,
        }
    }
}
