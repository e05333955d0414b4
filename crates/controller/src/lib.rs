//! The controller.

mod jobs;

pub use jobs::{JobError, JobRow, Jobs, MOST_FLOWS};
