//! Counters of a traffic class of a port.

use super::pause::PauseCounters;
use crate::counters::Traffic;

/// Counters of a traffic class of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Frames that left here in this class.
    pub sent: Traffic,
    /// Frames that were marked CE on entering it.
    pub marks: u64,
    /// Frames that found no room in it.
    pub full_drops: u64,
    /// Frames that found no room in it and were cut instead (D88).
    pub trimmed: u64,
    /// Frames received here in this class beyond XOFF and headroom.
    pub headroom_drops: u64,
    /// Frames of it that were dropped for a storm of pauses.
    pub storm_drops: u64,
    /// The most octets that ever waited.
    pub peak_octets: usize,
    /// Pauses sent to the neighbour, refreshes included.
    pub pauses_sent: u64,
    /// Resumes sent to the neighbour.
    pub resumes_sent: u64,
    /// Pauses received from the neighbour.
    pub received: PauseCounters,
}
