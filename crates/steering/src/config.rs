//! Configuration of steering: modes, times and limits, with their defaults.

/// When a flow that is to move does (D83).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// With its next packet. Packets overtake each other, and a receiver that takes them in order only has some sent
    /// again.
    #[default]
    Fast,
    /// With the next message, or after an idle gap.
    Ordered,
}

/// How a NIC steers. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Condition under which a flow that is to move does so.
    pub mode: Mode,
    /// A flow that has moved stays this long, whatever the signals of its new path but silence: the first ones are
    /// still about the old one. 100 µs: several round trips within a fabric, two CNP intervals.
    pub dwell_ns: u64,
    /// How long a path is assumed bad at first. 1 ms.
    pub hold_ns: u64,
    /// How long at most: each time is twice the last one, until the path was usable for so long in one piece. 1 s.
    pub hold_most_ns: u64,
    /// A path must be good this long before flows come back to it, each after up to as long again by chance. 10 ms.
    pub return_ns: u64,
    /// A flow without a packet for so long may move although a message is not over. 100 µs.
    pub idle_gap_ns: u64,
    /// So many probes in a row without an answer, and their path carries nothing (D87). 3.
    pub silent_probes: u8,
    /// What counts as congestion.
    pub limits: Limits,
    /// Flows that are remembered; the one that was quiet longest makes room. Rounded up to a power of two. 16,384, each
    /// of about 100 octets.
    pub flows: usize,
    /// Where all chance comes from.
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

/// What counts as congestion. CNPs, Fast CNPs and trimmed packets always do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many losses of a flow within [`Limits::loss_window_ns`] are its path's. 2: one may be a damaged packet.
    pub losses: u8,
    /// Within so many nanoseconds. 10 ms.
    pub loss_window_ns: u64,
    /// Marked packets among a thousand, from which on a path is congested. 500.
    pub ce_permille: u16,
    /// One-way latency that is too long, in nanoseconds; `None`: none is.
    pub one_way_ns: Option<u64>,
    /// Two-way latency that is too long, in nanoseconds; `None`: none is.
    pub two_way_ns: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { losses: 2, loss_window_ns: 10_000_000, ce_permille: 500, one_way_ns: None, two_way_ns: None }
    }
}
