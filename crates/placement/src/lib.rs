//! Places flows on a fabric: every flow gets a path such that the most loaded link carries as little as it can
//! (PP-4-1).
//!
//! ```text
//!   flows ──▶ Clos::recognise ──▶ colour ──▶ paths ──▶ Loads
//!                fabric            │ halve, one_of
//! ```
//!
//! On a folded [`Clos`] the choice of a flow is a colour: which of the switches above its leaf, and then which above
//! that. Flows from one leaf, or to one, with the same colour share a link, so a colouring that is even at every leaf
//! and every pod loads all links evenly: [`colour`] finds one in time that hardly grows faster than the number of
//! flows. On other fabrics, and where links are drained, a [`Placement`] puts flows one after the other where there is
//! room and moves some while that helps; [`divided_bound`] bounds the distance from the optimum.
//!
//! Nothing depends on chance or on the order of a hash table: the same flows get the same paths.

mod bound;
mod choose;
mod clos;
mod colour;
mod deadline;
mod double_tree;
mod ecmp;
mod flow;
mod flow_file;
mod goal;
mod group_flow;
mod halve;
mod job;
pub mod job_file;
mod load;
mod nccl;
mod network;
mod one_of;
mod pattern;
mod placement;
mod plan;
mod route;
mod saved_flow;
mod schedule;
mod search;

pub use bound::{Cut, divided_bound};
pub use choose::{Choosing, choose, choose_with_groups, hashed_tree};
pub use clos::{Choice, Clos, NotClos};
pub use colour::{Evenly, colour};
pub use deadline::{Deadline, Phase};
pub use ecmp::ecmp;
pub use flow::Flow;
pub use flow_file::{ListedFlow, flows_from_csv};
pub use goal::{GoalTrace, Replay, flows_from_goal};
pub use group_flow::{GroupFlow, ListedGroup};
pub use job::{Collective, CollectiveKind, GroupKind, Job, Parallel};
pub use job_file::{jobs_from_toml, jobs_with_traces_from_toml};
pub use load::{Direction, Loads, directions};
pub use nccl::{NcclAlgorithm, flows_from_nccl, flows_from_nccl_log};
pub use placement::{Alternative, FlowId, Placement, PlacementError, TreeId};
pub use plan::{KeptFlow, KeptGroup, Numbered, NumberedGroup, Plan};
pub use saved_flow::{LinkNames, SavedError, SavedFlow, SavedGroup};
pub use schedule::{Lockstep, Message, Pace, Schedule};
