//! Aggregation of responses on the way back to the source (MT-5.3-1): what a node of the multicast tree keeps per group
//! and branch, and what it says upstream. Values only: no frame, no octet, no clock.
//!
//! ```text
//!                     upstream
//!                        ^  Response: ACK(m-1), NAK(m), RNR(m), FATAL(m)     CNP with a count
//!                        |                                                        ^
//!             +----------+-----------+                                    +-------+-------+
//!   data ---> |   Acknowledgements   |  one per group                     |   CnpWindow   |
//!             | m = least `next`     |                                    | CCounts, T    |
//!             +--+-------+-------+---+                                    +--+---------+--+
//!                |       |       |                                           |         |
//!             branch  branch  branch    `next`, what is pending there     branch    branch
//!                ^       ^       ^                                           ^         ^
//!                Response: ACK, NAK, RNR NAK, fatal NAK                      CNP
//! ```
//!
//! * [`Rules`]: the forwarding rule R1-R7, the drafts' literal readings and the readings that failed.
//! * [`Response`]: what comes from a branch, and what goes upstream: the same thing, but that a [`UpstreamResponse`] says why.
//! * [`Acknowledgements`]: the machine of one group; its per-branch part is drawn in `branch.rs`.
//! * [`CnpWindow`]: the machine of one group's congestion notifications.

mod acknowledgements;
mod branch;
mod branch_status;
mod cnp;
mod epoch;
mod eviction_cause;
mod expected_psns;
mod optional_psn;
mod refusal;
mod response;
mod rules;
mod size;
mod stall;
mod succession;
#[cfg(test)]
mod table;
mod upstream;
mod upstream_response;

pub use acknowledgements::{Acknowledgements, Counters, Start};
pub use branch_status::BranchStatus;
pub use cnp::{CnpRules, CnpUp, CnpWindow, TooManyCnps, WindowMode};
pub use epoch::{EpochTag, is_older};
pub use eviction_cause::EvictionCause;
pub use refusal::Refusal;
pub use response::{Response, Syndrome};
pub use rules::{Repeat, Rules, StallRules};
pub use size::{STATE_OCTETS_PER_BRANCH, STATE_OCTETS_PER_GROUP};
pub use succession::{BranchBefore, NodeBefore, Origin};
pub use upstream_response::{Rule, UpstreamResponse};

/// A branch of a group's tree at this node, by its position: a receiver at an edge node, a child at a transit node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchIndex(pub u16);

impl BranchIndex {
    /// As an index into the node's list of branches.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
