//! Configuration of a mapper.

use srdma_wire::codepoints::PROBE_PORT;
use std::net::Ipv6Addr;

/// A mapper's settings. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Source of the outer header, and source and destination of the probe in it.
    pub address: Ipv6Addr,
    /// UDP port of probes, of both sides.
    pub port: u16,
    /// DSCP and ECN of probes. DSCP 48 (CS6).
    pub traffic_class: u8,
    /// Hop limit of both headers.
    pub hop_limit: u8,
    /// A path is probed once in so long. 100 ms.
    pub interval_ns: u64,
    /// A probe that has not returned after so long is lost. 20 ms.
    pub timeout_ns: u64,
    /// At least so long between two probes, of whatever paths. 50 µs.
    pub gap_ns: u64,
    /// Probes lost in a row after which a path is denied. 3.
    pub deny_after: u32,
    /// Probes returned in a row after which a denied path is allowed. 5.
    pub allow_after: u32,
    /// Intervals of a denied path double with each loss, up to so many times the interval. 16.
    pub most_intervals: u64,
    /// A path that was denied within so long before needs twice as many returned probes, up to eight times as many.
    /// 60 s.
    pub flap_window_ns: u64,
    /// Seed of random choices.
    pub seed: u64,
}

impl Config {
    /// The usual settings.
    pub fn new(address: Ipv6Addr) -> Self {
        Config {
            address,
            port: PROBE_PORT,
            traffic_class: 48 << 2,
            hop_limit: 64,
            interval_ns: 100_000_000,
            timeout_ns: 20_000_000,
            gap_ns: 50_000,
            deny_after: 3,
            allow_after: 5,
            most_intervals: 16,
            flap_window_ns: 60_000_000_000,
            seed: 0,
        }
    }
}

/// Reason for which there is no mapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapperError {
    /// A setting is 0.
    #[error("{0} is 0: expected at least 1")]
    Zero(&'static str),
    /// The program of a path is too long for an SRH.
    #[error("path {number} needs {segments} segments: expected 8 at most")]
    TooManySegments {
        /// Number of the path, from 1 on.
        number: usize,
        /// Its segments.
        segments: usize,
    },
}
