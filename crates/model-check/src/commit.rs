//! Model checking of the commit protocol: every order of messages, losses, partitions and restarts within bounds, of
//! the real controller core, its group lifecycles, and the real group tables and sessions of agents.
//!
//! * [`CommitBounds`], [`CommitFaults`], [`COMMIT_SMALL`], [`COMMIT_LARGE`], [`COMMIT_ALL_FAULTS`]: configurations.
//! * [`check_commit`] explores all states of one. Properties: `checks`.
//!
//! A state is identified by the `Debug` output of its parts, without times and counters (`canonical`).

mod ablation;
mod action;
mod bounds;
mod canonical;
mod checks;
mod controller;
mod explore;
mod network;
mod newcomer;
mod node;
mod suite;
mod world;

pub use action::CommitAction;
pub use bounds::{Ablation, CommitBounds, CommitFaults, StoreLoss};
pub use checks::{COMMIT_AGREEMENT, COMMIT_NAMED, COMMIT_NAMES, COMMIT_PROGRESS, COMMIT_READY, COMMIT_SAFETY};
pub use explore::{CommitFailure, CommitFinding, check_commit};
pub use suite::{COMMIT_ALL_FAULTS, COMMIT_LARGE, COMMIT_SMALL};
