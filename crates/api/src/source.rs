//! Messages of sources and the controller (D30, D31).

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A report of a source, and a poll for its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SourceReport {
    /// The newest round of an order that it has received.
    pub round: Option<u32>,
    /// Whether it is draining or paused for that round; else it sends, or waits for the first order.
    pub pausing: bool,
    /// The next PSN to send, if it is paused: no packet is outstanding.
    pub paused_at_psn: Option<u32>,
    /// Completed messages, modulo 2^24.
    pub completed_messages: u32,
    /// All PSNs before this one are acknowledged.
    pub acknowledged_psn: Option<u32>,
    /// It has ended: its queue pair is gone.
    pub ended: bool,
    /// Longest wait for an order that differs from the last, milliseconds; at most 10000.
    pub wait_ms: u32,
}

/// Where the source of a group serves the version that it published last, by TCP at its own address (D190).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceService {
    /// TCP port.
    pub port: u16,
    /// Key of the HMAC by which receivers and source recognize each other, 64 hexadecimal digits.
    pub key: String,
}

/// Without the key, which is in no log.
impl fmt::Debug for SourceService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceService").field("port", &self.port).finish_non_exhaustive()
    }
}

/// The state of a group's source at the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceState {
    /// It has never reported, so it has sent nothing.
    #[default]
    Idle,
    /// It has reported, so it may have sent.
    Sending,
    /// It has ended.
    Ended,
}

/// An order to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "order")]
pub enum SourceOrder {
    /// Wait: not all nodes have the group.
    Wait,
    /// Send, for the first time or again.
    Send {
        /// The round of the pause that ends.
        round: u32,
    },
    /// Drain: complete outstanding messages, start none, and report the pause.
    Pause {
        /// Number of the pause.
        round: u32,
    },
    /// End: the group is closed.
    End,
}
