//! Experiments: fabrics and WANs under load, run once for each variant and seed of a scenario file.
//!
//! A [`Scenario`] is parsed from TOML; its [`Kind`] decides what is simulated. Of a [`FabricScenario`], [`run`] runs
//! one variant with one seed and gives a [`VariantResult`]; runs share nothing, so that as many as there are cores may
//! run at once, and a run may be divided among several threads. [`Results`] holds the results of all runs, a [`Report`]
//! presents them.
//!
//! ```text
//!   scenario.toml ──► Scenario ──► Scenario::run(seeds) ──► Results ──► Report ──► JSON, table, HTML page
//! ```

mod build;
mod comparison;
mod device;
pub mod end_to_end;
mod engine;
mod execute;
mod failure_schedule;
mod fair_share;
mod flow_level;
mod flow_sizes;
mod flows;
pub mod front;
mod group_host;
mod groups;
mod iterations;
mod job_results;
pub mod max_min;
mod measures;
mod message_flow;
mod nic;
mod observe;
mod outcome;
mod page;
mod page_memory;
mod parallel;
mod partition_plan;
mod path;
mod programs;
pub mod provenance;
mod queue_monitor;
mod queues;
mod rank;
pub mod report;
pub mod results;
mod route;
mod run;
mod sample;
pub mod scenario;
mod server;
mod steady;
mod summary;
mod target;
mod tasks;
mod teardown;
#[cfg(test)]
mod tests;
mod text;
pub mod wan;

pub use comparison::Comparison;
pub use execute::{Report, Results};
pub use parallel::run_all;
pub use provenance::Provenance;
pub use report::FabricReport;
pub use results::{FabricResults, VariantResult};
pub use run::{Progress, RunError, run, run_observed};
pub use scenario::{FabricScenario, Kind, Level, Scenario, SelectionError};
pub use target::Target;
