//! Results.

use crate::median;
use serde::Serialize;

/// A way to bring a version to all receivers, with links of one rate.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are the columns that docs/applications.md describes")]
pub struct ApplicationRow {
    pub way: Way,
    pub receivers: u32,
    pub octets: u64,
    /// Of each link, in each direction; `None`: not limited.
    pub rate_bits_per_s: Option<u64>,
    /// From `publish` to the moment at which the last receiver has woken up: the fastest round.
    pub seconds_min: f64,
    pub seconds_median: f64,
    /// Octets on the source's link, headers and retransmissions included, by the octets of a version.
    pub source_link: f64,
    /// The same on the link of the receiver that has got most.
    pub receiver_link: f64,
    /// Processor seconds of a round, medians.
    pub processors: ProcessorSeconds,
    /// The time of unicast by that of this way: the median over rounds, paired in their order. `None` for ways other
    /// than multicast.
    pub ratio: Option<f64>,
    pub target: Option<f64>,
    pub rounds: usize,
}

/// A way to bring a version to all receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// One group for each receiver, all at once.
    Unicast,
    /// One group with all receivers.
    Multicast,
    /// To each receiver an equal part of the version, by a group of its own.
    Scatter,
}

impl Way {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Way::Unicast => "unicast",
            Way::Multicast => "multicast",
            Way::Scatter => "scatter",
        }
    }
}

/// Processor seconds of the sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProcessorSeconds {
    pub source: f64,
    /// Of all receivers together.
    pub receivers: f64,
    /// Of all nodes together.
    pub nodes: f64,
}

/// A round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) seconds: f64,
    /// Octets that left the source.
    pub(super) source_octets: u64,
    /// Octets that went to the receiver that has got most.
    pub(super) receiver_octets: u64,
    pub(super) processors: ProcessorSeconds,
}

impl ApplicationRow {
    /// Of some rounds, of which there is at least one, beside those of unicast.
    pub(super) fn of(
        way: Way,
        (receivers, octets, rate_bits_per_s): (u32, u64, Option<u64>),
        rounds: &[Round],
        unicast: Option<&[Round]>,
        target: Option<f64>,
    ) -> Self {
        let seconds = || rounds.iter().map(|round| round.seconds);
        let octets_of_version = octets as f64;
        let ratios = unicast.map(|unicast| {
            median(unicast.iter().zip(rounds).map(|(unicast, round)| unicast.seconds / round.seconds.max(1e-9)))
        });
        let relative = |octets: fn(&Round) -> u64| {
            thousandths(median(rounds.iter().map(|r| octets(r) as f64 / octets_of_version)))
        };
        let side = |side: fn(&ProcessorSeconds) -> f64| thousandths(median(rounds.iter().map(|r| side(&r.processors))));
        ApplicationRow {
            way,
            receivers,
            octets,
            rate_bits_per_s,
            seconds_min: thousandths(seconds().fold(f64::INFINITY, f64::min)),
            seconds_median: thousandths(median(seconds())),
            source_link: relative(|round| round.source_octets),
            receiver_link: relative(|round| round.receiver_octets),
            processors: ProcessorSeconds {
                source: side(|sides| sides.source),
                receivers: side(|sides| sides.receivers),
                nodes: side(|sides| sides.nodes),
            },
            ratio: ratios.map(thousandths),
            target,
            rounds: rounds.len(),
        }
    }

    /// Whether the target is missed.
    pub fn is_missed(&self) -> bool {
        self.target.zip(self.ratio).is_some_and(|(target, ratio)| ratio < target)
    }
}

fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(seconds: [f64; 3]) -> Vec<Round> {
        let round = |seconds| Round {
            seconds,
            source_octets: 2_100,
            receiver_octets: 1_050,
            processors: ProcessorSeconds { source: seconds / 2.0, ..ProcessorSeconds::default() },
        };
        seconds.map(round).to_vec()
    }

    #[test]
    fn rounds_are_paired_and_a_target_may_be_missed() {
        let (unicast, multicast) = (rounds([8.0, 9.0, 30.0]), rounds([2.0, 1.0, 5.0]));
        let row =
            |target| ApplicationRow::of(Way::Multicast, (8, 1_000, None), &multicast, Some(&unicast), Some(target));
        let found = row(6.0);
        // 4, 9 and 6.
        assert_eq!((found.ratio, found.is_missed()), (Some(6.0), false));
        assert_eq!((found.seconds_min, found.seconds_median, found.source_link), (1.0, 2.0, 2.1));
        assert_eq!(found.receiver_link, 1.05);
        assert_eq!((found.processors.source, found.rounds), (1.0, 3));
        assert!(row(6.1).is_missed());
        let alone = ApplicationRow::of(Way::Unicast, (8, 1_000, None), &unicast, None, None);
        assert_eq!((alone.ratio, alone.is_missed()), (None, false));
    }
}
