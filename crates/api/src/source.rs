//! What the source's side and the controller say to each other (D30, D31).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The source's side reports, and asks what to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SourceReport {
    /// The newest round that it has seen; none before the first.
    pub round: Option<u32>,
    /// Whether it obeys the pause of that round; else it sends, or waits for the first order.
    pub paused: bool,
    /// It has nothing outstanding and begins nothing: the PSN that it will use next.
    pub quiet_at_psn: Option<u32>,
    /// Messages that it has completed, modulo 2^24.
    pub completed_messages: u32,
    /// Everything before this PSN was acknowledged.
    pub settled_psn: Option<u32>,
    /// It sends nothing more, for ever: its queue pair is gone. The controller has no other order for it than the end.
    pub ended: bool,
    /// How long to wait for something else to do than what it was told last, milliseconds; at most 10000.
    pub wait_ms: u32,
}

/// How far a group's source is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceState {
    /// It has never asked what to do: it has sent nothing.
    #[default]
    Unheard,
    /// It has asked: it may have sent.
    Sending,
    /// It has said that it sends nothing more.
    Ended,
}

/// What the source's side is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "order")]
pub enum SourceOrder {
    /// Not all nodes have their part: wait.
    Wait,
    /// Send, for the first time or again.
    Ready {
        /// The pause that ends.
        round: u32,
    },
    /// Finish what has begun, begin nothing new, and say when it is so.
    Pause {
        /// Counts the pauses.
        round: u32,
    },
    /// The group is closed.
    Closed,
}
