//! The cause of a node's eviction request.

/// Why a receiver holds its group back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionCause {
    /// Its expected PSN was sent repeatedly, without progress (D25).
    Stalled,
    /// It answered with a fatal NAK of this code (D24).
    Failed(u8),
}
