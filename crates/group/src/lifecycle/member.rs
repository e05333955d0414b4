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
//! Its presence is `Here`, `Returning` (it has an entry of another record or none, and its entry is restored first),
//! `Unheard` (the controller has restarted, and the node has not registered since), or `Lost`: its connection to the
//! controller is gone, while it may be forwarding. Replies of a lost node are ignored until it registers, and only
//! those phases wait for it in which it gains a member that its parent would not miss (D97).

use super::stages::Concern;
use crate::name::EntryName;

/// State of a node in the change in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It has its entry; always so outside a change.
    Settled,
    /// Its next entry was sent.
    Preparing,
    /// It has prepared.
    Prepared,
    /// The commit was sent.
    Committing,
    /// It is not in the next record.
    Leaving,
    /// The removal was sent.
    Removing,
}

/// Whether a node is reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is reachable.
    Here,
    /// This entry of it is being restored.
    Returning(EntryName),
    /// It has not registered since the controller's start.
    Unheard,
    /// The controller has lost its connection.
    Lost,
}

/// What is known of the entry that a node has in effect, since the controller's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// It has not registered.
    Unreported,
    /// It had an entry that the record does not explain, and may acknowledge less than the record says (D132).
    Differs,
    /// It has what the record says, or has confirmed an entry since, or had none.
    Verified,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) step: Step,
    pub(super) presence: Presence,
    /// Its part in the change in progress; `None`: it keeps its entry.
    pub(super) concern: Option<Concern>,
    pub(super) verification: Verification,
    /// An entry of another change that it had prepared when it registered: it drops that before it prepares.
    pub(super) abandoned: Option<EntryName>,
    /// Its parent may count responses that it sent for an entry without members of the record (D136).
    pub(super) must_renew: bool,
}

/// A node's reply, together with its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Prepared,
    Refused,
    Committed,
    Removed,
}

/// Effect of a reply beside the member's new step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// None: a reply to an earlier order.
    Nothing,
    /// The phase may be complete.
    Progress,
    /// The next entry is to be sent to the node.
    Prepare,
    /// The node has refused its next entry.
    Refusal,
    /// The node has left the group.
    Gone,
}

impl Member {
    /// Handles a reply for the epoch of the change in progress or, of a returning node, for the restored epoch.
    /// `can_refuse`: whether the record is not stored yet.
    pub(super) fn on_reply(&mut self, reply: Reply, can_refuse: bool) -> Effect {
        use Reply::{Committed, Prepared, Refused, Removed};
        match (self.presence, self.step, reply) {
            (Presence::Lost | Presence::Unheard, _, Prepared | Refused | Committed | Removed) => Effect::Nothing,
            (Presence::Returning(_), step, Committed) => {
                self.presence = Presence::Here;
                self.verification = Verification::Verified;
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
            // It has lost its prepared entry. `repeat` sends it again: a node that keeps refusing must not receive
            // orders as fast as it replies.
            (Presence::Here, Step::Committing, Refused) => {
                self.step = Step::Preparing;
                Effect::Nothing
            }
            (Presence::Here, Step::Committing, Committed) => {
                self.step = Step::Settled;
                self.verification = Verification::Verified;
                Effect::Progress
            }
            (Presence::Here, Step::Removing, Removed) => Effect::Gone,
            (Presence::Here, Step::Settled | Step::Prepared | Step::Leaving, _)
            | (Presence::Here, Step::Preparing, Refused | Committed | Removed)
            | (Presence::Here, Step::Committing, Prepared | Removed)
            | (Presence::Here, Step::Removing, Prepared | Refused | Committed) => Effect::Nothing,
        }
    }

    /// Whether it has not registered since the controller's start.
    pub(super) fn is_unreported(&self) -> bool {
        self.verification == Verification::Unreported
    }

    /// Whether the change in progress waits for the node to prepare.
    pub(super) fn delays_store(&self) -> bool {
        match (self.presence, self.step) {
            (Presence::Lost, Step::Preparing) => self.must_commit(),
            (Presence::Here | Presence::Returning(_) | Presence::Unheard, Step::Preparing) => true,
            (
                Presence::Here | Presence::Returning(_) | Presence::Unheard | Presence::Lost,
                Step::Settled | Step::Prepared | Step::Committing | Step::Leaving | Step::Removing,
            ) => false,
        }
    }

    /// Whether the change in progress waits for the node to commit.
    pub(super) fn delays_stage(&self) -> bool {
        match (self.presence, self.step) {
            (_, Step::Settled | Step::Leaving | Step::Removing) => false,
            (Presence::Lost, Step::Preparing | Step::Prepared | Step::Committing) => self.must_commit(),
            (
                Presence::Here | Presence::Returning(_) | Presence::Unheard,
                Step::Preparing | Step::Prepared | Step::Committing,
            ) => true,
        }
    }

    /// Whether the change in progress waits for its commit even if it is lost.
    pub(super) fn must_commit(&self) -> bool {
        self.concern.is_some_and(|concern| concern.must_commit)
    }

    /// Whether its commit belongs to this stage.
    pub(super) fn is_in_stage(&self, stage: usize) -> bool {
        self.concern.is_some_and(|concern| concern.stage == stage)
    }

    /// The name of its next entry.
    pub(super) fn next(&self) -> Option<EntryName> {
        self.concern.map(|concern| concern.name)
    }
}
