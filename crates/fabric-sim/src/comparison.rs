//! Comparison of runs that were made faster with the same runs in full: steady states were skipped, which are simulated
//! packet by packet (D219), or rates computed less often (D295).

use super::results::{FabricResults, JobResult, VariantResult};

/// A faster run, compared with the same run in full.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name of the variant.
    pub variant: String,
    /// The seed.
    pub seed: u64,
    /// The share of the simulated time that was skipped.
    pub skipped: f64,
    /// The longest iteration, and the same in full, in nanoseconds; `None` if none has ended.
    pub iteration_ns: Option<[f64; 2]>,
    /// The largest difference of an iteration's duration, by that in full; `None` if other iterations have
    /// ended.
    pub difference: Option<f64>,
}

impl FabricResults {
    /// Compares each run with the same run of other results, in full.
    pub fn compared_with(&self, full: &FabricResults) -> Vec<Comparison> {
        self.runs.iter().zip(&full.runs).map(|(own, other)| compared(own, other)).collect()
    }
}

fn compared(own: &VariantResult, full: &VariantResult) -> Comparison {
    let both = [own, full].map(durations);
    let pairs = both[0].iter().zip(&both[1]);
    let difference = |(own, full): (&Option<u64>, &Option<u64>)| {
        let [own, full] = [(*own)?, (*full)?].map(|ns| ns as f64);
        Some((own / full.max(1.0) - 1.0).abs())
    };
    let differences: Option<Vec<f64>> = pairs.map(difference).collect();
    let longest = [own, full].map(|run| run.summary.iteration_longest_ns);
    Comparison {
        variant: own.variant.clone(),
        seed: own.seed,
        skipped: own.skipped_ns as f64 / own.simulated_ns.max(1) as f64,
        iteration_ns: longest[0].zip(longest[1]).map(<[f64; 2]>::from),
        difference: differences
            .filter(|differences| differences.len() == both[0].len().max(both[1].len()))
            .and_then(|differences| differences.into_iter().reduce(f64::max)),
    }
}

/// Durations of all iterations; `None` for one that has not ended.
fn durations(run: &VariantResult) -> Vec<Option<u64>> {
    let of_job = |job: &JobResult| {
        job.iterations.iter().map(|it| Some(it.finished_ns? - it.started_ns)).collect::<Vec<Option<u64>>>()
    };
    run.jobs.iter().flat_map(of_job).collect()
}
