//! Flows to place.

use srdma_fabric::HostId;

/// Data that a host keeps sending to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The sender.
    pub from: HostId,
    /// The receiver.
    pub to: HostId,
    /// Rate in bits per second on the wire.
    pub rate_bits_per_s: u64,
}
