//! Throughput of several workers of a node, each a thread on a processor of its own.
//!
//! Each worker makes frames from templates, as a driver copies them out of a ring, and takes the finished ones from the
//! queues. All of that is timed, for it is what a thread does: packets that all workers together have processed, by the
//! time on the wall.

mod packets;
mod row;
mod run;

pub use row::WorkersRow;

use crate::Machine;
use packets::Traffic;
use std::time::Duration;

/// What the workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkersCase {
    /// IPv6 packets of 128 octets, forwarded by one of ten routes.
    Forwarding,
    /// Data packets of 64 groups, each copied to eight receivers by End.MT, and the ACK of each receiver, which all
    /// arrive at the worker that owns their group.
    Groups,
    /// The same where each flow arrives at a random worker.
    GroupsAnywhere,
}

/// Duration of one repetition.
const DURATION: Duration = Duration::from_millis(200);

/// Groups of the cases that have them.
const GROUPS: u32 = 64;

/// Receivers of a group.
const RECEIVERS: u16 = 8;

impl WorkersCase {
    /// All of them.
    pub const ALL: [WorkersCase; 3] = [WorkersCase::Forwarding, WorkersCase::Groups, WorkersCase::GroupsAnywhere];

    /// As the table and JSON write it.
    pub fn name(self) -> &'static str {
        match self {
            WorkersCase::Forwarding => "IPv6",
            WorkersCase::Groups => "End.MT x8 and its ACKs, 64 groups",
            WorkersCase::GroupsAnywhere => "the same, at any worker",
        }
    }
}

/// Measures a case with each number of workers, in turn, as often as `repetitions` says.
///
/// # Errors
///
/// If packets are lost or processed wrongly, or a worker cannot stay on its processor.
pub fn measure(
    case: WorkersCase,
    workers: &[u16],
    repetitions: u32,
    machine: &Machine,
) -> anyhow::Result<Vec<WorkersRow>> {
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); workers.len()];
    // The first one meets cold caches.
    for repetition in 0..=repetitions {
        for (samples, count) in samples.iter_mut().zip(workers) {
            let rate = run::run(&Traffic::new(case, *count)?, DURATION)?;
            if repetition > 0 {
                samples.push(rate);
            }
        }
    }
    let base = samples.first().cloned().unwrap_or_default();
    Ok(workers
        .iter()
        .zip(samples)
        .map(|(count, samples)| WorkersRow::new(case, *count, samples, &base, machine))
        .collect())
}
