//! Model checking, with the production code in small models: of the aggregation machines, every order of events in a
//! small tree; of the commit protocol of controller and agents, every order of messages and faults ([`check_commit`]).
//! The models, their properties and the results are in `docs/model-checking.md`.
//!
//! ```text
//!   source --- down[0] --> node 0 --- down[i] --> node i --- at once, or lost --> receiver
//!          <---- up[0] ---        <---- up[i] ---        <---------- up[j] -----
//!
//!   State: source, nodes and receivers, the messages on each link, the stored record, the faults that remain
//!   Action: one event; `Tree` lists the possible events of a state, and their results
//! ```
//!
//! * [`Shape`], [`Bounds`], [`Faults`]: a configuration; [`SMALL`], [`LARGE`]: those of tests and documentation.
//! * [`Tree`]: the model, for the checker of the crate `stateright`; [`check`] runs it.

mod bounds;
mod check;
mod commit;
mod hosts;
mod machines;
mod membership;
mod model;
mod queue;
mod record;
mod repairs;
mod shape;
mod state;
mod steps;
mod suite;

pub use bounds::{Bounds, Faults};
pub use check::{Failure, Finding, Order, check, shortest};
pub use commit::{
    Ablation, COMMIT_AGREEMENT, COMMIT_ALL_FAULTS, COMMIT_LARGE, COMMIT_NAMED, COMMIT_NAMES, COMMIT_PROGRESS,
    COMMIT_READY, COMMIT_SAFETY, COMMIT_SMALL, CommitAction, CommitBounds, CommitFailure, CommitFaults, CommitFinding,
    StoreLoss, check_commit,
};
pub use hosts::{DuplicateHandling, NakHandling, Reception};
pub use model::{COMPLETION, PROGRESS, SAFETY, Tree};
pub use record::{Change, CommitOrder};
pub use repairs::{Due, Repairers, Repairs};
pub use shape::{SHAPES, Shape};
pub use state::{Action, State};
pub use suite::{Configuration, LARGE, REPAIR_LARGE, REPAIR_SMALL, RepairConfiguration, SMALL};
