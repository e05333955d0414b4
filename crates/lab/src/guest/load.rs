//! Processor load of the emulation of guests.

use crate::lab::Lab;
use crate::process::Process;
use crate::topology::{Kind, Topology};
use std::fs;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

/// The unit of the times in `/proc`: it is the same on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// The guests' processes, and how long the processors had worked for them when a measurement began.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pids: Vec<i32>,
    before: Duration,
}

impl Load {
    /// Begins to measure.
    pub(super) fn begin(lab: &Lab) -> Self {
        let guests = lab.processes().iter().filter(|process| is_guest(lab.topology(), process));
        let pids: Vec<i32> = guests.map(|process| process.pid).collect();
        let before = time_of(&pids);
        Load { pids, before }
    }

    /// The share of all processors that the guests have taken since then, in a given time.
    pub(super) fn share(&self, time: Duration) -> f64 {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let taken = time_of(&self.pids).saturating_sub(self.before);
        taken.as_secs_f64() / (time.as_secs_f64() * processors as f64).max(TICK.as_secs_f64())
    }
}

fn is_guest(topology: &Topology, process: &Process) -> bool {
    topology.node(&process.node).is_some_and(|node| topology.nodes[node].kind == Kind::Guest)
}

/// Processor time of some processes since they began. Ended ones do not count.
fn time_of(pids: &[i32]) -> Duration {
    let stat = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    pids.iter().map(|pid| TICK * ticks(&stat(pid))).sum()
}

/// The ticks in user and kernel mode of a process.
fn ticks(stat: &str) -> u32 {
    // The second field, the name, may hold anything.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return 0 };
    rest.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_kernel_mode_are_added() {
        let stat = "29945 (qemu) system) S 1 29945 29945 0 -1 4194560 9125 0 13 0 412 31 0 0 20 0 3 0 103 5 6";
        assert_eq!(ticks(stat), 443);
        assert_eq!(ticks(""), 0);
    }
}
