//! Experiments: fabrics and WANs under load, run once for each variant and seed of a scenario file.
//!
//! A [`Scenario`] is parsed from TOML; its [`Kind`] decides what is simulated. Of a [`FabricScenario`], [`run`] runs one
//! variant with one seed and gives a [`VariantResult`]; runs share nothing, so that as many as there are cores may run at
//! once. [`Results`] holds the results of all runs, a [`Report`] presents them.
//!
//! ```text
//!   scenario.toml ──► Scenario ──► Scenario::run(seeds) ──► Results ──► Report ──► JSON, table, HTML page
//! ```

mod all;
mod build;
mod closing;
mod device;
pub mod end_to_end;
mod engine;
mod execute;
mod failing;
mod fair;
mod flow_level;
mod flows;
mod groups;
mod iterations;
mod job_results;
pub mod max_min;
mod measures;
mod member;
mod nic;
mod outcome;
mod page;
mod pages;
mod part;
mod path;
mod programs;
pub mod provenance;
mod queues;
pub mod report;
pub mod results;
mod route;
mod run;
mod sample;
pub mod scenario;
mod server;
mod showing;
mod sizes;
mod summary;
mod tasks;
#[cfg(test)]
mod tests;
mod text;
pub mod wan;
mod watch;

pub use all::run_all;
pub use execute::{Report, Results};
pub use provenance::Provenance;
pub use report::FabricReport;
pub use results::{FabricResults, VariantResult};
pub use run::{Progress, RunError, run, run_shown};
pub use scenario::{FabricScenario, Kind, Level, Scenario, SelectionError};
