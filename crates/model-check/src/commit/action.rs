//! The events of the model.

use super::world::{Model, World};

/// An event.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommitAction {
    /// The next request of a node reaches the controller, which responds.
    Request {
        node: u8,
    },
    /// The response reaches the node, which executes the orders.
    Response {
        node: u8,
    },
    /// The response is lost.
    LoseResponse {
        node: u8,
    },
    /// The node gives a request up that is still on its way.
    DelayRequest {
        node: u8,
    },
    /// That request reaches the controller.
    LateRequest {
        node: u8,
    },
    /// A node does not reach the controller any more, which notices it.
    Cut {
        node: u8,
    },
    /// A restarted controller notices it.
    Expire {
        node: u8,
    },
    /// The node reaches the controller again.
    Heal {
        node: u8,
    },
    /// With an ablation: the controller goes on without the node.
    Skip {
        node: u8,
    },
    /// A node restarts without state.
    Restart {
        node: u8,
    },
    RestartController,
    LoseStore,
    /// Orders without an answer are retransmitted.
    Retransmit,
    /// The source reports and receives its order.
    Source,
    /// A receiver joins.
    Join,
    /// A receiver joins in two steps.
    Reserve,
    /// It reports, ready for what it was reserved at, and receives its order.
    Report,
    /// It dies.
    Die,
    /// Nothing is heard of it until its reservation expires.
    Lapse,
    /// A receiver leaves.
    Leave,
    /// The application creates the group after a loss of the store.
    Create,
}

/// What an event is for progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It happens sooner or later.
    Progress,
    /// A node returns.
    Heal,
    /// It may happen.
    Fault,
}

impl Model {
    /// What an event of a state is.
    pub(super) fn kind(&self, world: &World, action: CommitAction) -> Kind {
        match action {
            CommitAction::Heal { .. } => Kind::Heal,
            CommitAction::Retransmit if !world.is_silent(self) => Kind::Fault,
            CommitAction::Lapse if !world.newcomer.is_dead => Kind::Fault,
            CommitAction::Request { .. }
            | CommitAction::Response { .. }
            | CommitAction::LateRequest { .. }
            | CommitAction::Expire { .. }
            | CommitAction::Skip { .. }
            | CommitAction::Retransmit
            | CommitAction::Report
            | CommitAction::Lapse
            | CommitAction::Source => Kind::Progress,
            CommitAction::LoseResponse { .. }
            | CommitAction::DelayRequest { .. }
            | CommitAction::Cut { .. }
            | CommitAction::Restart { .. }
            | CommitAction::RestartController
            | CommitAction::LoseStore
            | CommitAction::Join
            | CommitAction::Reserve
            | CommitAction::Die
            | CommitAction::Leave
            | CommitAction::Create => Kind::Fault,
        }
    }
}
