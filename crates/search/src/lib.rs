//! The reverse path searched.

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
