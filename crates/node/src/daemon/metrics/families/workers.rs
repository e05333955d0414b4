//! Data threads.

use super::{Family, Out, frames};
use crate::daemon::WorkerSnapshot;
use std::fmt;

pub(super) fn workers(out: &mut Out<'_>, workers: &[WorkerSnapshot]) -> fmt::Result {
    let numbers: Vec<String> = (0..workers.len()).map(|worker| worker.to_string()).collect();
    let counters: [Family<WorkerSnapshot, u64>; 4] = [
        ("srdma_worker_received", "Frames that the data thread received", |worker| worker.received),
        ("srdma_worker_sent", "Frames that the data thread sent", |worker| worker.sent),
        ("srdma_worker_handed_over", "Packets handed over to the data threads of their groups", |worker| {
            worker.handed_over
        }),
        ("srdma_worker_taken_over", "Packets of its groups, taken over from other data threads", |worker| {
            worker.taken_over
        }),
    ];
    for (name, help, value) in counters {
        let values = numbers.iter().zip(workers).map(|(number, worker)| ([("worker", number.as_str())], value(worker)));
        out.counters(name, help, Some(frames()), values)?;
    }
    Ok(())
}
