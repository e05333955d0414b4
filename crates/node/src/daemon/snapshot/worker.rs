//! A data thread in snapshots.

use super::PortSnapshot;
use serde::{Deserialize, Serialize};
use srdma_workers::ExchangeCounters;

/// A data thread of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// The processor that it stays on; absent when the kernel chooses.
    pub cpu: Option<usize>,
    /// Frames that it has received.
    pub received: u64,
    /// Frames that it has sent.
    pub sent: u64,
    /// Packets of groups of other workers, handed over to them.
    pub handed_over: u64,
    /// Packets of its own groups, taken over from other workers.
    pub taken_over: u64,
}

impl WorkerSnapshot {
    /// A thread with these ports.
    pub(in crate::daemon) fn of(ports: &[PortSnapshot], exchanged: ExchangeCounters) -> Self {
        WorkerSnapshot {
            cpu: None,
            received: ports.iter().map(|port| port.received.frames).sum(),
            sent: ports.iter().map(|port| port.sent.frames).sum(),
            handed_over: exchanged.handed_over,
            taken_over: exchanged.taken_over,
        }
    }
}
