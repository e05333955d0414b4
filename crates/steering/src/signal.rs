//! Signals: all information about flows and paths that a NIC receives (D84).

use crate::config::Limits;
use std::net::Ipv6Addr;

/// Information about a flow or a path (PP-4-6).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The receiver reports a marked packet.
    Cnp,
    /// A switch reports that it has queued a packet in congestion.
    FastCnp {
        /// The switch: source address of the Fast CNP (FC-4-8).
        avoid: Ipv6Addr,
    },
    CeRatio {
        marked: u32,
        packets: u32,
    },
    /// Latency of a packet to the other side.
    OneWayLatency {
        /// Nanoseconds.
        ns: u64,
    },
    /// Latency of a packet and its response.
    TwoWayLatency {
        /// Nanoseconds.
        ns: u64,
    },
    /// A packet has arrived without its payload (D88).
    Trimmed,
    /// A packet was lost.
    Loss,
    /// The reply to a probe arrived (D87).
    ProbeAnswered,
    /// The reply to a probe is overdue.
    ProbeSilent,
}

impl Signal {
    /// Kinds of signals.
    pub const KINDS: usize = 9;

    /// The kind as metrics and JSON write it, in the order of [`Signal::kind`].
    pub const NAMES: [&'static str; Self::KINDS] = [
        "cnp",
        "fast_cnp",
        "ce_ratio",
        "one_way_latency",
        "two_way_latency",
        "trimmed",
        "loss",
        "probe_answered",
        "probe_silent",
    ];

    /// The number of its kind.
    pub const fn kind(&self) -> usize {
        match self {
            Signal::Cnp => 0,
            Signal::FastCnp { .. } => 1,
            Signal::CeRatio { .. } => 2,
            Signal::OneWayLatency { .. } => 3,
            Signal::TwoWayLatency { .. } => 4,
            Signal::Trimmed => 5,
            Signal::Loss => 6,
            Signal::ProbeAnswered => 7,
            Signal::ProbeSilent => 8,
        }
    }
}

/// Cause of a move.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Cnp,
    FastCnp,
    /// Too many marks.
    CeRatio,
    /// One-way latency above its limit.
    OneWayLatency,
    /// Two-way latency above its limit.
    TwoWayLatency,
    /// A packet without payload.
    Trimmed,
    /// Lost packets.
    Loss,
    /// Probes without a reply.
    Silence,
    /// A path of a better rank has been good for some time.
    Return,
    /// The path is denied.
    Denied,
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = 10;

    /// The causes as metrics and JSON write them, in the order of their numbers.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "cnp",
        "fast_cnp",
        "ce_ratio",
        "one_way_latency",
        "two_way_latency",
        "trimmed",
        "loss",
        "silence",
        "return",
        "denied",
    ];
}

/// Interpretation of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interpretation {
    /// No problem.
    Good,
    /// The path is congested, at this node if it is known.
    Congested(Cause, Option<Ipv6Addr>),
    /// A loss: congestion if there were others within the loss window.
    Lost,
    /// The path forwards packets.
    Answered,
    /// The path may be down.
    Silent,
}

impl Limits {
    pub(crate) fn interpret(&self, signal: Signal) -> Interpretation {
        let if_beyond = |cause, found: u64, limit: Option<u64>| match limit {
            Some(limit) if found > limit => Interpretation::Congested(cause, None),
            Some(_) | None => Interpretation::Good,
        };
        match signal {
            Signal::Cnp => Interpretation::Congested(Cause::Cnp, None),
            Signal::FastCnp { avoid } => Interpretation::Congested(Cause::FastCnp, Some(avoid)),
            Signal::CeRatio { marked, packets } => {
                let is_above = u64::from(marked) * 1000 >= u64::from(packets) * u64::from(self.ce_permille);
                if marked > 0 && is_above {
                    Interpretation::Congested(Cause::CeRatio, None)
                } else {
                    Interpretation::Good
                }
            }
            Signal::OneWayLatency { ns } => if_beyond(Cause::OneWayLatency, ns, self.one_way_ns),
            Signal::TwoWayLatency { ns } => if_beyond(Cause::TwoWayLatency, ns, self.two_way_ns),
            Signal::Trimmed => Interpretation::Congested(Cause::Trimmed, None),
            Signal::Loss => Interpretation::Lost,
            Signal::ProbeAnswered => Interpretation::Answered,
            Signal::ProbeSilent => Interpretation::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PP-4-6: each kind of signal, at its limit and beyond.
    #[test]
    fn signals_beyond_their_limits_mean_congestion() {
        let limits = Limits { one_way_ns: Some(20_000), two_way_ns: Some(50_000), ..Limits::default() };
        let is_congested = |signal| matches!(limits.interpret(signal), Interpretation::Congested(..));
        let rows = [
            (Signal::Cnp, true),
            (Signal::FastCnp { avoid: Ipv6Addr::LOCALHOST }, true),
            (Signal::CeRatio { marked: 7, packets: 16 }, false),
            (Signal::CeRatio { marked: 8, packets: 16 }, true),
            (Signal::CeRatio { marked: 0, packets: 0 }, false),
            (Signal::OneWayLatency { ns: 20_000 }, false),
            (Signal::OneWayLatency { ns: 20_001 }, true),
            (Signal::TwoWayLatency { ns: 50_000 }, false),
            (Signal::TwoWayLatency { ns: 50_001 }, true),
            (Signal::Trimmed, true),
            (Signal::Loss, false),
            (Signal::ProbeAnswered, false),
            (Signal::ProbeSilent, false),
        ];
        for (signal, expected) in rows {
            assert_eq!(is_congested(signal), expected, "{signal:?}");
        }
        let unlimited = Limits::default().interpret(Signal::TwoWayLatency { ns: u64::MAX });
        assert_eq!(unlimited, Interpretation::Good, "latency has no limit unless one is given");
    }
}
