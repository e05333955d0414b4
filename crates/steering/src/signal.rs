//! Every kind of information about paths that a NIC gets, in one type (D84).

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
    /// The ratio of marked packets.
    CeRatio { marked: u32, packets: u32 },
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
    /// A packet has not arrived.
    Loss,
    /// A probe has come back (D87).
    ProbeAnswered,
    /// A probe should have come back by now.
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

/// Reason for which a flow has moved.
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
    /// Packets that have not arrived.
    Loss,
    /// Probes that have not come back.
    Silence,
    /// A better ranked path has been good for long.
    Return,
    /// The path must no longer be taken.
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

/// What a signal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing is wrong.
    Fine,
    /// The path is congested; if it is given, at this node.
    Congested(Cause, Option<Ipv6Addr>),
    /// Congested, if it is not the first within a while.
    Lost,
    /// The path works.
    Answered,
    /// The path may not work.
    Silent,
}

impl Limits {
    pub(crate) fn judge(&self, signal: Signal) -> Meaning {
        let if_beyond = |cause, found: u64, limit: Option<u64>| match limit {
            Some(limit) if found > limit => Meaning::Congested(cause, None),
            Some(_) | None => Meaning::Fine,
        };
        match signal {
            Signal::Cnp => Meaning::Congested(Cause::Cnp, None),
            Signal::FastCnp { avoid } => Meaning::Congested(Cause::FastCnp, Some(avoid)),
            Signal::CeRatio { marked, packets } => {
                let is_much = u64::from(marked) * 1000 >= u64::from(packets) * u64::from(self.ce_permille);
                if marked > 0 && is_much { Meaning::Congested(Cause::CeRatio, None) } else { Meaning::Fine }
            }
            Signal::OneWayLatency { ns } => if_beyond(Cause::OneWayLatency, ns, self.one_way_ns),
            Signal::TwoWayLatency { ns } => if_beyond(Cause::TwoWayLatency, ns, self.two_way_ns),
            Signal::Trimmed => Meaning::Congested(Cause::Trimmed, None),
            Signal::Loss => Meaning::Lost,
            Signal::ProbeAnswered => Meaning::Answered,
            Signal::ProbeSilent => Meaning::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PP-4-6: each kind of signal, at its limit and beyond.
    #[test]
    fn signals_of_congestion_and_others() {
        let limits = Limits { one_way_ns: Some(20_000), two_way_ns: Some(50_000), ..Limits::default() };
        let is_congested = |signal| matches!(limits.judge(signal), Meaning::Congested(..));
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
        let unlimited = Limits::default().judge(Signal::TwoWayLatency { ns: u64::MAX });
        assert_eq!(unlimited, Meaning::Fine, "latency has no limit unless one is given");
    }
}
