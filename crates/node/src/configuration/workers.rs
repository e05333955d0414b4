//! Data threads of a node, and what runs on one of them only (D209).

use super::{Configuration, Draft};
use srdma_node_spec::file::NodeFile;
use srdma_toml_error::Problem;
use std::thread::available_parallelism;

/// Refuses several data threads where a feature needs one.
pub(super) fn check(file: &NodeFile, draft: &Draft) -> Result<(), Problem> {
    let Some(workers) = file.daemon.workers.as_ref().filter(|workers| workers.value.get() > 1) else {
        return Ok(());
    };
    let of_daemon = (file.daemon.fast_path == Some(true)).then_some(FAST_PATH);
    match of_daemon.or(draft.entries.feature_of_one_worker()) {
        None => Ok(()),
        Some(feature) => {
            let count = workers.value.get();
            let text = format!("workers is {count}, but {feature} need one data thread, which sees every packet");
            Err(Problem::new(workers.at, text))
        }
    }
}

/// The fast path, whose program and maps one data thread follows.
const FAST_PATH: &str = "fast paths";

impl Configuration {
    /// Number of data threads: that of the file, or one less than there are processors, at least one; one where a
    /// feature needs it.
    pub fn workers(&self) -> u16 {
        let processors = available_parallelism().map_or(1, |count| count.get().min(usize::from(MAX_DEFAULT)) as u16);
        let needs_one = self.daemon.fast_path || self.spec.entries.feature_of_one_worker().is_some();
        let default = if needs_one { 1 } else { processors.saturating_sub(1).max(1) };
        self.daemon.workers.unwrap_or(default)
    }
}

/// Data threads that a machine with many processors has by default: the interfaces are the bound then.
const MAX_DEFAULT: u16 = 9;
