//! Configuration of steering: modes, times and limits, with their defaults.

/// When a pending move takes place (D83).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// With the next packet. Packets are reordered, and a receiver that requires order requests retransmissions.
    #[default]
    Fast,
    /// With the next message, or after an idle gap.
    Ordered,
}

/// Configuration of steering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// When pending moves take place.
    pub mode: Mode,
    /// After a move a flow stays this long, regardless of all signals but silence: the first ones still concern the old
    /// path. 100 µs: several round trips within a fabric, two CNP intervals.
    pub dwell_ns: u64,
    /// Initial time for which a path is assumed bad. 1 ms.
    pub hold_ns: u64,
    /// Maximum of that time: it doubles each time, until the path was usable for this long. 1 s.
    pub hold_most_ns: u64,
    /// Time for which a path must be good before flows return to it, plus a random delay of up to the same. 10 ms.
    pub return_ns: u64,
    /// A flow without packets for this long may move within a message. 100 µs.
    pub idle_gap_ns: u64,
    /// Number of consecutive probes without a reply after which a path is silent (D87). 3.
    pub silent_probes: u8,
    /// Limits of congestion.
    pub limits: Limits,
    /// Size of the flow table, rounded up to a power of two; about 100 octets each. 16,384.
    pub flows: usize,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mode: Mode::Fast,
            dwell_ns: 100_000,
            hold_ns: 1_000_000,
            hold_most_ns: 1_000_000_000,
            return_ns: 10_000_000,
            idle_gap_ns: 100_000,
            silent_probes: 3,
            limits: Limits::default(),
            flows: 16_384,
            seed: 0,
        }
    }
}

/// Limits beyond which signals mean congestion. CNPs, Fast CNPs and trimmed packets always do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Losses of a flow within [`Limits::loss_window_ns`] that mean congestion. 2: one may be a corrupted packet.
    pub losses: u8,
    /// See `losses`. 10 ms.
    pub loss_window_ns: u64,
    /// Marked packets per thousand from which on a path is congested. 500.
    pub ce_permille: u16,
    /// Maximum one-way latency; `None`: unlimited.
    pub one_way_ns: Option<u64>,
    /// Maximum two-way latency; `None`: unlimited.
    pub two_way_ns: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { losses: 2, loss_window_ns: 10_000_000, ce_permille: 500, one_way_ns: None, two_way_ns: None }
    }
}
