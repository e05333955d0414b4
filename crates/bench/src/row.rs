//! Results.

use super::machine::Machine;
use serde::Serialize;

/// Time of one case.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are the columns that docs/performance.md describes")]
pub struct Row {
    pub case: String,
    pub frame_octets: Option<usize>,
    pub routes: Option<usize>,
    pub working_set: &'static str,
    /// Frames that leave for each that comes in.
    pub copies: usize,
    pub ns_min: f64,
    pub ns_median: f64,
    /// Cycles of the time stamp counter; absent where the kernel does not report its frequency.
    pub clocks_min: Option<f64>,
    pub ns_min_per_copy: f64,
    pub repetitions: usize,
}

impl Row {
    /// A row from the nanoseconds of each repetition, of which there is at least one.
    pub(super) fn new(
        case: String,
        frame_octets: Option<usize>,
        routes: Option<usize>,
        working_set: &'static str,
        copies: usize,
        mut samples: Vec<f64>,
        machine: &Machine,
    ) -> Self {
        samples.sort_by(f64::total_cmp);
        let ns_min = samples[0];
        let ns_median = samples[samples.len() / 2];
        let tenths = |value: f64| (value * 10.0).round() / 10.0;
        Row {
            case,
            frame_octets,
            routes,
            working_set,
            copies,
            ns_min: tenths(ns_min),
            ns_median: tenths(ns_median),
            clocks_min: machine.clocks(ns_min).map(tenths),
            ns_min_per_copy: tenths(ns_min / copies as f64),
            repetitions: samples.len(),
        }
    }
}

/// Memory of a group.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Serialize)]
pub struct MemoryRow {
    pub case: String,
    /// Branches of the group.
    pub branches: u16,
    pub octets_per_group: f64,
}
