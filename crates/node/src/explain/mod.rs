//! `srdma explain`: the groups of a node, from captures of its ports.
//!
//! ```text
//!   captures ──→ what came in ──→ the very node, observed ──→ journal ──→ stories ──→ verdicts, timelines
//!          └───→ what the node really sent ──────────────────────────────────^
//! ```
//!
//! The rules are not written a second time here: the node itself is run over the packets that came in, and its journal
//! has its actions and their reasons. The real node's captured responses are compared with it.

mod branch;
mod captures;
mod comparison;
mod error;
mod happening;
mod packet;
mod report;
mod run;
mod sends;
mod story;
mod timeline;
mod verdict;

pub use captures::Capture;
pub use comparison::Compared;
pub use error::ExplainError;
pub use happening::{Difference, EndOfHold, Happening, Kind, Said};
pub use report::{At, Beginning, BranchExplanation, Explanation, GroupExplanation, LastStatement, PortSeen, Upstream};
pub use run::{Wanted, explain};
pub use srdma_aggregation::Rule;
pub use timeline::{Line, LineWhat, Run};
pub use verdict::{Condition, Verdict};
