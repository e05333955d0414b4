//! The controller's decisions, driven as a server or a simulator drives them.

mod pipeline;
mod placed_jobs;
