//! Data threads of a node, and what runs on one of them only (D209).

use super::{Configuration, DaemonSettings, Draft};
use srdma_node_spec::Entries;
use srdma_node_spec::file::NodeFile;
use srdma_toml_error::Problem;
use std::thread::available_parallelism;

/// Data threads that a machine with many processors has by default: the interfaces are the bound then.
const MOST_BY_DEFAULT: usize = 8;

/// Refuses several data threads where a feature needs one.
pub(super) fn check(file: &NodeFile, daemon: &DaemonSettings, draft: &Draft) -> Result<(), Problem> {
    let feature = feature_of_one_worker(daemon, &draft.entries);
    match (&file.daemon.workers, feature) {
        (Some(workers), Some(feature)) if workers.value.get() > 1 => {
            let count = workers.value.get();
            let text = format!("workers is {count}, but {feature} need one data thread, which sees every packet");
            Err(Problem::new(workers.at, text))
        }
        _ => Ok(()),
    }
}

/// A feature that needs one data thread; the fast path does because one thread follows the tables for it.
fn feature_of_one_worker(daemon: &DaemonSettings, entries: &Entries) -> Option<&'static str> {
    daemon.fast_path.then_some("fast paths").or(entries.feature_of_one_worker())
}

impl Configuration {
    /// A feature that needs one data thread, if there is one.
    pub(crate) fn feature_of_one_worker(&self) -> Option<&'static str> {
        feature_of_one_worker(&self.daemon, &self.spec.entries)
    }

    /// Number of data threads: that of the file, or one less than there are processors, at least one; one where a
    /// feature needs it.
    pub fn workers(&self) -> u16 {
        let processors = available_parallelism().map_or(1, usize::from);
        let default = match self.feature_of_one_worker() {
            Some(_) => 1,
            None => processors.saturating_sub(1).clamp(1, MOST_BY_DEFAULT) as u16,
        };
        self.daemon.workers.unwrap_or(default)
    }
}
