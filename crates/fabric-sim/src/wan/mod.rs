//! Congestion notification in a WAN between data centres, to senders and to the gateway (CN-3-1, D60–D67).
//!
//! ```text
//!   wan.toml ──► WanScenario ──► measure(variant, length, buffer, seed) ──► WanRun ──► WanResults ──► JSON, report
//! ```
//!
//! The network is that of Figure 1 of draft rocev2-fcn, of the nodes and hosts that run elsewhere. Measured are the
//! delay of notifications, and the size of the congested queue that is lossless and never idles.

mod claims;
pub(super) mod figure;
pub(super) mod measure;
pub(super) mod nodes;
mod page;
mod report;
pub mod results;
pub mod scenario;
mod text;

pub use claims::Claim;
pub use figure::{Congested, Distances};
pub use nodes::WanSignal;
pub use report::WanReport;
pub use results::{WanResults, WanRun};
pub use scenario::{WanScenario, WanVariant};

pub(crate) use nodes::Wan;

use super::parallel::{in_parallel, locked};
use super::run::RunError;
use measure::Point;
use srdma_sim::observer::PeriodicObserver;
use std::sync::Mutex;

impl WanScenario {
    /// Number of runs with this number of seeds.
    pub fn runs(&self, seeds: usize) -> usize {
        self.points(&vec![0; seeds]).len()
    }

    /// The observed run, if there is one: its variant and the length of its path, in kilometres. It is the first with
    /// the reference buffer.
    pub fn observed(&self) -> Option<(&WanVariant, f64)> {
        let points = self.points(&[0]);
        points.get(self.observed_position(&[0])).map(|(point, _)| (point.variant, point.total_km))
    }

    fn observed_position(&self, seeds: &[u64]) -> usize {
        let is_close = |(point, _): &(Point<'_>, u64)| point.buffer == *self.wan.buffer.get_ref();
        self.points(seeds).iter().position(is_close).unwrap_or(0)
    }

    /// Every point with its seeds: all seeds with the reference buffer, the first ones with other sizes.
    fn points(&self, seeds: &[u64]) -> Vec<(Point<'_>, u64)> {
        let mut points = Vec::new();
        for variant in &self.variants {
            for total_km in self.wan.total_km.get_ref() {
                for buffer in self.wan.buffers.get_ref() {
                    let is_close = buffer == self.wan.buffer.get_ref();
                    let most = if is_close { seeds.len() } else { self.wan.sweep_seeds.get() as usize };
                    let point = Point { variant, total_km: *total_km, buffer: *buffer };
                    points.extend(seeds.iter().take(most).map(|seed| (point, *seed)));
                }
            }
        }
        points
    }
}

/// Runs all points. `done` gets the position of each completed run. The run that [`WanScenario::observed`] names is
/// observed. The results depend neither on the observer nor on the number of threads.
///
/// # Errors
///
/// That of the first failed run, in order.
pub fn run_wan(
    study: &WanScenario,
    seeds: &[u64],
    threads: usize,
    done: &(dyn Fn(usize) + Sync),
    observer: Option<&Mutex<PeriodicObserver<'_>>>,
) -> Result<WanResults, RunError> {
    let (points, first) = (study.points(seeds), study.observed_position(seeds));
    let runs = in_parallel(points.len(), threads, &|position| {
        let (point, seed) = points[position];
        let mut observer = if position == first { observer.map(locked) } else { None };
        let result = measure::measure(study, point, seed, observer.as_deref_mut());
        done(position);
        result
    });
    Ok(WanResults {
        title: study.title.clone(),
        description: study.description.clone(),
        runs: runs.into_iter().collect::<Result<Vec<WanRun>, RunError>>()?,
    })
}
