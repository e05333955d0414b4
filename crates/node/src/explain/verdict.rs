//! Reason for which a group waits.

use super::sends::Sent;
use serde::Serialize;
use srdma_aggregation::{BranchStatus, Syndrome};
use srdma_wire::{Instant, Psn};

/// States of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No data of the group were sent downstream.
    NoData,
    /// Branches are unknown: no response goes upstream until each has responded (R6).
    NoResponse,
    /// A branch has sent a fatal NAK (D24).
    Failed,
    /// A branch with a fault holds the minimum PSN.
    Waiting,
    /// Data are on their way, and nothing is unusual.
    InFlight,
    /// Everything is confirmed and was sent upstream, but the source sends it again.
    SourceRepeats,
    /// All data sent downstream are confirmed.
    Complete,
}

/// States of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// It has confirmed all data sent downstream.
    Confirmed,
    /// Its expected PSN was sent at most once.
    InFlight,
    /// No response since the captures began, or since the node restarted.
    NoResponse,
    /// The PSN that it expects was sent again, and no response has followed.
    Silent,
    /// Its responses are rejected.
    Refused,
    /// It responds, but its expected PSN never arrives there.
    Losing,
    /// Its NAK is held for the minimum, or for T_hold (R5).
    NakHeld,
    /// Its NAK went upstream, and the data have not come again.
    NotResent,
    /// It is not ready to receive.
    NotReady,
    /// It has sent a fatal NAK.
    Failed,
    /// It was removed.
    Removed,
}

/// Facts of a branch at the end.
pub(super) struct Facts {
    pub(super) status: BranchStatus,
    pub(super) expected_psn: Option<Psn>,
    pub(super) highest: Option<Psn>,
    /// Number of times that its expected PSN was sent.
    pub(super) sent: Sent,
    /// Time of its last accepted response.
    pub(super) last_accepted: Option<Instant>,
    /// Time of its last rejected response.
    pub(super) last_refused: Option<Instant>,
}

impl Condition {
    /// Verdict on the facts.
    pub(super) fn of(facts: &Facts) -> Self {
        let Facts { sent, .. } = *facts;
        let is_since = |time: Option<Instant>, begin: Instant| time.is_some_and(|time| time >= begin);
        let (Some(expected_psn), Some(highest)) = (facts.expected_psn, facts.highest) else {
            return match (facts.status, facts.last_refused) {
                (BranchStatus::Removed, _) => Condition::Removed,
                (BranchStatus::Unknown, Some(_)) => Condition::Refused,
                (BranchStatus::Unknown, None) => Condition::NoResponse,
                (BranchStatus::Clear | BranchStatus::Pending { .. }, _) => Condition::Confirmed,
            };
        };
        match facts.status {
            BranchStatus::Removed => Condition::Removed,
            BranchStatus::Pending { syndrome: Syndrome::Fatal(_), .. } => Condition::Failed,
            _ if expected_psn.is_after(highest) => Condition::Confirmed,
            BranchStatus::Pending { syndrome: Syndrome::RnrNak(_), .. } => Condition::NotReady,
            BranchStatus::Pending { held: true, .. } => Condition::NakHeld,
            // It was sent twice more, and the branch has requested it again.
            BranchStatus::Pending { held: false, .. } if sent.times > 2 => Condition::Losing,
            BranchStatus::Pending { held: false, .. } => Condition::NotResent,
            BranchStatus::Unknown | BranchStatus::Clear if sent.times < 2 => Condition::InFlight,
            BranchStatus::Unknown | BranchStatus::Clear if is_since(facts.last_accepted, sent.second) => {
                Condition::Losing
            }
            BranchStatus::Unknown | BranchStatus::Clear if is_since(facts.last_refused, sent.second) => {
                Condition::Refused
            }
            BranchStatus::Unknown | BranchStatus::Clear => Condition::Silent,
        }
    }

    /// Whether a group that waits for such a branch is in trouble.
    pub(super) fn is_trouble(self) -> bool {
        match self {
            Condition::Confirmed | Condition::InFlight | Condition::Removed => false,
            Condition::NoResponse
            | Condition::Silent
            | Condition::Refused
            | Condition::Losing
            | Condition::NakHeld
            | Condition::NotResent
            | Condition::NotReady
            | Condition::Failed => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every status of a branch, with other facts.
    #[test]
    fn conditions() {
        let at = |ns| Some(Instant::from_ns(ns));
        let sent = |times| Sent {
            times,
            first: Instant::from_ns(10),
            second: Instant::from_ns(20),
            last: Instant::from_ns(90),
        };
        let nak = |held| BranchStatus::Pending { syndrome: Syndrome::SequenceNak, held };
        let rows = [
            (BranchStatus::Unknown, None, 0, None, None),
            (BranchStatus::Unknown, None, 3, None, at(30)),
            (BranchStatus::Removed, None, 3, at(5), None),
            (BranchStatus::Clear, Some(8), 0, at(5), None),
            (BranchStatus::Clear, Some(7), 1, at(5), None),
            (BranchStatus::Clear, Some(7), 2, at(15), None),
            (BranchStatus::Clear, Some(7), 2, at(25), None),
            (BranchStatus::Clear, Some(7), 2, at(15), at(25)),
            (nak(true), Some(7), 1, at(15), None),
            (nak(false), Some(7), 1, at(15), None),
            (nak(false), Some(7), 3, at(15), None),
            (BranchStatus::Pending { syndrome: Syndrome::RnrNak(9), held: false }, Some(7), 4, at(15), None),
            (BranchStatus::Pending { syndrome: Syndrome::Fatal(2), held: true }, Some(8), 4, at(15), None),
        ];
        let conditions: Vec<Condition> = rows
            .into_iter()
            .map(|(status, expected_psn, times, last_accepted, last_refused)| {
                let (expected_psn, highest) = (expected_psn.map(Psn::new), Some(Psn::new(7)));
                Condition::of(&Facts { status, expected_psn, highest, sent: sent(times), last_accepted, last_refused })
            })
            .collect();
        use Condition::*;
        let expected = [
            NoResponse, Refused, Removed, Confirmed, InFlight, Silent, Losing, Refused, NakHeld, NotResent, Losing,
            NotReady, Failed,
        ];
        assert_eq!(conditions, expected);
    }
}
