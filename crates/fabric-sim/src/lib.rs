//! Experiments: a fabric under load, once for each arm and seed, as a file says.
//!
//! A [`Scenario`] is read from TOML: a topology, workloads, and arms, which differ in how hosts learn of congestion and
//! what they make of it. [`run`] runs one arm with one seed and gives an [`ArmResult`]; runs share nothing, so that as
//! many as there are cores may run at once. [`Results`] has them all, and what to compare.
//!
//! ```text
//!   scenario.toml ──► Scenario ──► run(scenario, arm, seed) ──► ArmResult ──► Results ──► JSON, report
//! ```

mod all;
mod build;
mod closing;
mod device;
pub mod end_to_end;
mod engine;
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
pub use provenance::Provenance;
pub use report::FabricReport;
pub use results::{ArmResult, Results};
pub use run::{Progress, RunError, run, run_shown};
pub use scenario::{Level, Scenario};
