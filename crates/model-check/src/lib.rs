//! The reverse path searched: everything that can happen in a small tree, within bounds, on the machines that the nodes
//! run. What is searched, what must hold and what came of it stands in `docs/model-checking.md`.
//!
//! ```text
//!   source --- down[0] --> node 0 --- down[i] --> node i --- at once, or lost --> receiver
//!          <---- up[0] ---        <---- up[i] ---        <---------- up[j] -----
//!
//!   State: what source, nodes and receivers know, what is on each link, which record is stored, which faults are left
//!   Action: one thing that happens; `Tree` says which can, and what comes of it
//! ```
//!
//! * [`Shape`], [`Bounds`], [`Faults`]: what is searched; [`SMALL`], [`LARGE`]: what is searched by tests and for the
//!   documentation.
//! * [`Tree`]: the model, for the checker of the crate `stateright`; [`search`] runs it.

mod bounds;
mod hosts;
mod machines;
mod membership;
mod model;
mod queue;
mod record;
mod search;
mod shape;
mod state;
mod steps;
mod suite;

pub use bounds::{Bounds, Faults};
pub use hosts::{ReceiverHabit, SourceHabit};
pub use model::{COMPLETION, PROGRESS, TRUTH, Tree};
pub use record::{Change, CommitOrder};
pub use search::{Failure, Finding, Order, search, shortest};
pub use shape::{SHAPES, Shape};
pub use state::{Action, State};
pub use suite::{Configuration, LARGE, SMALL};
