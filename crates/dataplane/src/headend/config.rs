//! Configuration of a headend.

use crate::encaps::EncapsError;
use srdma_steering::{Config, Path, PathError};
use srdma_wire::Entropy;
use srdma_wire::codepoints::PROBE_PORT;
use srdma_wire::fast_cnp::OptionTypes;
use std::net::Ipv6Addr;

/// A headend's settings. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadendConfig {
    /// Outer source address.
    pub source: Ipv6Addr,
    /// Where probes come back to; [`HeadendConfig::source`] if it is `None`.
    pub probe_address: Option<Ipv6Addr>,
    /// Outer hop limit.
    pub hop_limit: u8,
    /// How flows are steered.
    pub steering: Config,
    /// How paths are probed (D87); `None`: they are not.
    pub probes: Option<ProbeConfig>,
    /// Types of the two options of Fast CNPs (FC-6-1).
    pub fast_cnp_types: OptionTypes,
    /// The DSCP of packets that were trimmed (D88), if they are.
    pub trimmed_dscp: Option<u8>,
}

impl HeadendConfig {
    /// The usual settings: paths are probed once in a millisecond.
    pub fn new(source: Ipv6Addr) -> Self {
        HeadendConfig {
            source,
            probe_address: None,
            hop_limit: 64,
            steering: Config::default(),
            probes: Some(ProbeConfig::default()),
            fast_cnp_types: OptionTypes::default(),
            trimmed_dscp: None,
        }
    }
}

impl HeadendConfig {
    /// Where probes come back to.
    pub fn probe_address(&self) -> Ipv6Addr {
        self.probe_address.unwrap_or(self.source)
    }
}

/// How paths are probed (D85, D87). Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeConfig {
    /// A path is probed once in so long, while packets take paths of its destination. 1 ms. A probe that is silent is
    /// followed by the next at once.
    pub interval_ns: u64,
    /// How long after the last packet to a destination its paths are probed. 100 ms.
    pub active_ns: u64,
    /// At least so long between two probes, whatever paths they are of. 5 µs: 0.3 Gbit/s at most.
    pub gap_ns: u64,
    /// DSCP and ECN. DSCP 48 (CS6), ECN-capable.
    pub traffic_class: u8,
    /// UDP port of both sides.
    pub port: u16,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        ProbeConfig {
            interval_ns: 1_000_000,
            active_ns: 100_000_000,
            gap_ns: 5_000,
            traffic_class: 48 << 2 | 2,
            port: PROBE_PORT,
        }
    }
}

/// A path as a headend takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadendPath {
    /// Its segments, nodes and rank.
    pub path: Path,
    /// How it is probed.
    pub probing: Probing,
    /// Its value, which UDP source port and flow label of RoCEv2 packets then have (D254).
    pub entropy: Option<Entropy>,
}

/// Path of probes (D87).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probing {
    /// The path's own program and then the same nodes backwards, as [`loop_program`](super::loop_program) has it; none
    /// if there is no such program.
    #[default]
    ThereAndBack,
    /// These segments, the last of which leads back to the headend and takes the outer headers off.
    By(Vec<Ipv6Addr>),
    /// Not at all.
    Never,
}

/// Why a configuration of a headend is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadendError {
    /// No path, or too many.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// A program that is too long.
    #[error("path {number}: {error}")]
    Program {
        /// Number of the path, from 1 on.
        number: usize,
        /// Why.
        error: EncapsError,
    },
    /// The program of a probe that is too long.
    #[error("probe of path {number}: {error}")]
    Probe {
        /// Number of the path, from 1 on.
        number: usize,
        /// Why.
        error: EncapsError,
    },
    /// More paths than probes can distinguish.
    #[error("more than 65536 paths with probes")]
    TooManyProbes,
}
