//! Unit constants.

/// Picoseconds per nanosecond.
pub const PS_PER_NS: u64 = 1_000;

/// Nanoseconds per microsecond.
pub const NS_PER_US: u64 = 1_000;

/// Nanoseconds per millisecond.
pub const NS_PER_MS: u64 = 1_000_000;

/// Nanoseconds per second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// Bits per second in 1 Mbit/s.
pub const MBIT_PER_S: u64 = 1_000_000;

/// Bits per second in 1 Gbit/s.
pub const GBIT_PER_S: u64 = 1_000_000_000;
