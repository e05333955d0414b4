//! The workers of a node, before they run.

use super::memory;
use crate::configuration::Configuration;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use srdma_dataplane::{ConfigError, Node, Worker};

/// A node for each worker. They share the memory for retransmission buffers evenly, as they do the groups.
pub(super) fn nodes(configuration: &Configuration, workers: u16) -> Result<Vec<Node>, ConfigError> {
    let mut spec = configuration.spec.clone();
    spec.node.repair_memory_octets = memory::buffer_octets(configuration) / u64::from(workers);
    let node = |worker| {
        spec.node.worker = worker;
        spec.build()
    };
    Worker::all(workers).map(node).collect()
}

/// The processor of each worker. One worker stays on a processor only if the file gives one; several stay on different
/// ones, the first of which is left to the control task where there are enough.
pub(super) fn processors(first: Option<usize>, workers: u16) -> Vec<Option<usize>> {
    let workers = usize::from(workers);
    match first {
        Some(first) => (first..first + workers).map(Some).collect(),
        None if workers == 1 => vec![None],
        None => {
            let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
            let is_allowed = |cpu: &usize| allowed.is_set(*cpu).unwrap_or(false);
            spread(&(0..CpuSet::count()).filter(is_allowed).collect::<Vec<_>>(), workers)
        }
    }
}

fn spread(allowed: &[usize], workers: usize) -> Vec<Option<usize>> {
    let skipped = usize::from(allowed.len() > workers);
    let of = |worker: usize| allowed.get((worker + skipped) % allowed.len().max(1)).copied();
    (0..workers).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_stay_on_different_processors() {
        assert_eq!(processors(None, 1), [None]);
        assert_eq!(processors(Some(4), 3), [Some(4), Some(5), Some(6)]);
        assert_eq!(spread(&[0, 2, 4, 6], 3), [Some(2), Some(4), Some(6)]);
        assert_eq!(spread(&[0, 2], 2), [Some(0), Some(2)]);
        assert_eq!(spread(&[0, 2], 3), [Some(0), Some(2), Some(0)]);
        assert_eq!(spread(&[], 1), [None]);
    }
}
