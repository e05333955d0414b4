//! Results.

use serde_json::{Value, json};
use std::fmt;

/// What became of a peer.
#[derive(Debug)]
pub(super) enum Outcome {
    Measured(Vec<Row>),
    Missing(Missing),
}

/// A peer that is not measured.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) peer: &'static str,
    /// What is not there.
    pub(super) why: String,
    /// The commands that bring it.
    pub(super) install: &'static str,
}

impl Missing {
    pub(super) fn json(&self) -> Value {
        json!({ "peer": self.peer, "is_measured": false, "why": self.why, "install": self.install })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is NOT MEASURED: {}. To install it:\n{}", self.peer, self.why, self.install)
    }
}

/// The least and the median of some measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) least: f64,
    pub(super) median: f64,
}

impl Figures {
    /// Of some figures, of which there is at least one.
    pub(super) fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        let least = samples.first().copied().unwrap_or(f64::NAN);
        let median = samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN);
        Figures { least, median }
    }

    fn json(self) -> Value {
        json!({ "least": self.least, "median": self.median })
    }
}

/// A case: ours and theirs.
#[derive(Debug)]
pub(super) struct Row {
    /// The peer and its version.
    pub(super) peer: String,
    pub(super) case: String,
    pub(super) unit: &'static str,
    pub(super) ours: Figures,
    pub(super) theirs: Figures,
    pub(super) rounds: u64,
}

impl Row {
    /// Two lines above the columns.
    pub(super) fn head() -> String {
        let names =
            format!("{:<30} {:<31} {:<8} {:>17} {:>17} {:>15}", "peer", "case", "unit", "ours", "theirs", "ratio");
        let kinds = format!(
            "{:<71} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7}",
            "", "least", "median", "least", "median", "least", "median"
        );
        format!("ratio: theirs through ours; above 1, srdma takes less\n\n{names}\n{kinds}")
    }

    /// Theirs through ours, of the least and of the medians: above one, srdma takes less.
    fn ratios(&self) -> (f64, f64) {
        (self.theirs.least / self.ours.least, self.theirs.median / self.ours.median)
    }

    pub(super) fn json(&self) -> Value {
        let (least, median) = self.ratios();
        json!({
            "peer": self.peer, "case": self.case, "unit": self.unit, "rounds": self.rounds, "is_measured": true,
            "ours": self.ours.json(), "theirs": self.theirs.json(),
            "theirs_through_ours": { "least": least, "median": median },
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, median) = self.ratios();
        write!(
            f,
            "{:<30} {:<31} {:<8} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>7.2} {:>7.2}",
            self.peer,
            self.case,
            self.unit,
            self.ours.least,
            self.ours.median,
            self.theirs.least,
            self.theirs.median,
            least,
            median
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_theirs_through_ours() {
        let row = Row {
            peer: "VPP 26.10".to_owned(),
            case: "End".to_owned(),
            unit: "clocks",
            ours: Figures::of(vec![80.0, 77.0, 90.0]),
            theirs: Figures::of(vec![154.0, 160.0, 170.0]),
            rounds: 3,
        };
        assert_eq!((row.ours, row.ratios()), (Figures { least: 77.0, median: 80.0 }, (2.0, 2.0)));
        assert!(row.to_string().ends_with("2.00    2.00"), "{row}");
        assert_eq!(row.json()["theirs_through_ours"]["least"], 2.0);
    }

    #[test]
    fn a_peer_that_is_not_there_is_named_with_its_installation() {
        let missing = Missing {
            peer: "VPP",
            why: "not installed, there is no program vpp".to_owned(),
            install: "  apt-get install vpp",
        };
        assert!(missing.to_string().starts_with("VPP is NOT MEASURED: not installed, there is no program vpp"));
        assert_eq!(missing.json()["is_measured"], false);
    }
}
