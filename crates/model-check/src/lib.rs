//! Model checking of the aggregation machines: every order of events in a small tree, within bounds, on the production
//! machines. The model, its properties and the results are in `docs/model-checking.md`.
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
mod hosts;
mod machines;
mod membership;
mod model;
mod queue;
mod record;
mod shape;
mod state;
mod steps;
mod suite;

pub use bounds::{Bounds, Faults};
pub use check::{Failure, Finding, Order, check, shortest};
pub use hosts::{DuplicateHandling, NakHandling};
pub use model::{COMPLETION, PROGRESS, SAFETY, Tree};
pub use record::{Change, CommitOrder};
pub use shape::{SHAPES, Shape};
pub use state::{Action, State};
pub use suite::{Configuration, LARGE, SMALL};
