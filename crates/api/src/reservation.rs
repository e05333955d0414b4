//! Messages of receivers that join in two steps, and the controller (D187).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A report of a receiver that has a reservation, and a poll for its order. Reports keep the reservation (D188).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReceiverReport {
    /// The queue pair that it has joined with.
    pub qpn: u32,
    /// Its queue pair is ready to receive from this PSN on.
    pub ready_at_psn: Option<u32>,
    /// Longest wait for an order that differs from the last, milliseconds; at most half of the controller's
    /// `join_timeout_ms`.
    pub wait_ms: u32,
}

/// An order to a receiver that joins in two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "order")]
pub enum ReceiverOrder {
    /// Wait: its first PSN is not known yet.
    Wait,
    /// Be ready to receive from this PSN on, and report it.
    Reserved {
        /// Join point (J): the first PSN that is sent to it.
        psn: u32,
    },
    /// It is a member: the group waits for what it acknowledges.
    Member {
        /// Its join point.
        psn: u32,
    },
    /// It is no receiver of the group, or not with this queue pair: it has left, its reservation has expired, its join
    /// was aborted, or the group is closed.
    End,
}

impl ReceiverReport {
    /// Whether the receiver has this order already, as far as its report shows.
    pub fn knows(&self, order: &ReceiverOrder) -> bool {
        match order {
            ReceiverOrder::Wait => true,
            ReceiverOrder::Reserved { psn } => self.ready_at_psn == Some(*psn),
            ReceiverOrder::Member { .. } | ReceiverOrder::End => false,
        }
    }
}
