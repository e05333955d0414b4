//! `srdma explain`: the groups of a node, from captures of its ports.
//!
//! ```text
//!   captures ──→ received packets ──→ the node, observed ──→ journal ──→ groups ──→ verdicts, timelines
//!          └───→ responses that the node sent ────────────────────────────^
//! ```
//!
//! There is no second implementation of the rules: the node of the data plane processes the received packets, and its
//! journal has the actions and their reasons. The captured responses of the real node are compared with them.

mod branch;
mod captures;
mod comparison;
mod error;
mod event;
mod group;
mod packet;
mod report;
mod run;
mod sends;
mod timeline;
mod verdict;

pub use captures::Capture;
pub use comparison::Compared;
pub use error::ExplainError;
pub use event::{Difference, Event, Response, SyndromeKind};
pub use report::{
    At, Beginning, BranchExplanation, Explanation, GroupExplanation, LastResponse, PortObservation, Upstream,
};
pub use run::{Wanted, explain};
pub use srdma_aggregation::Rule;
pub use srdma_dataplane::HoldEnd;
pub use timeline::{Line, LineContent, Run};
pub use verdict::{Condition, Verdict};
