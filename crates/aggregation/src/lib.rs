//! Aggregation of responses on the way to the source (MT-5.3-1): the state of a group and its branches at a node of the
//! multicast tree, and the responses that the node sends upstream. Values only: no frame, no octet, no clock.
//!
//! ```text
//!                     upstream
//!                        ^  Response: ACK(m-1), NAK(m), RNR(m), FATAL(m)     CNP with a count
//!                        |                                                        ^
//!             +----------+-----------+                                    +-------+-------+
//!   data ---> |   Acknowledgements   |  one per group                     |   CnpWindow   |
//!             | m = minimum PSN      |                                    | CCounts, T    |
//!             +--+-------+-------+---+                                    +--+---------+--+
//!                |       |       |                                           |         |
//!             branch  branch  branch    expected PSN, pending syndrome    branch    branch
//!                ^       ^       ^                                           ^         ^
//!                Response: ACK, NAK, RNR NAK, fatal NAK                      CNP
//! ```
//!
//! * [`Rules`]: the forwarding rule R1-R7, the literal readings of the drafts and the rejected variants.
//! * [`Response`]: a response of a branch. An [`UpstreamResponse`] is one that goes upstream, with its [`Rule`].
//! * [`Acknowledgements`]: the machine of one group; the state of one branch is drawn in `branch.rs`.
//! * [`CnpWindow`]: the machine of one group's congestion notifications.
//! * [`PathLoads`]: the loads of one group's paths, of which the greatest one's trace goes upstream.

mod ablation;
mod acknowledgements;
mod branch;
mod branch_status;
mod cnp;
mod epoch;
mod eviction_cause;
mod expected_psns;
mod forwarded;
mod optional_psn;
mod path_load;
mod refusal;
mod response;
mod rules;
mod size;
mod stall;
mod succession;
mod upstream;
mod upstream_response;

pub use acknowledgements::{Acknowledgements, Counters, Start};
pub use branch_status::BranchStatus;
pub use cnp::{CnpRules, CnpUp, CnpWindow, TooManyCnps, WindowMode};
pub use epoch::{EpochTag, is_older};
pub use eviction_cause::EvictionCause;
pub use path_load::{FULL_LOAD, LinkMeasurement, LinkSample, PathLoads};
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
