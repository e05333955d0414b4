//! The objective by which variants are compared (D239): slowdown of short flows and share of endless flows, which are
//! traded against each other. The front are the variants that no other is better than in both.

use super::results::{FabricResults, Summary};
use super::scenario::{FabricScenario, Variant};
use serde::Serialize;
use srdma_report::Spread;

/// The share of its fair rate that an endless flow is to get. Below it, a variant's cost grows in proportion.
pub const SHARE_TARGET: f64 = 0.9;

/// A variant, by the medians of its seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Name of the variant.
    pub variant: String,
    /// Method of a sweep that it is a combination of; its name otherwise.
    pub method: String,
    /// Slowdown of short background flows, the 99th percentile.
    pub short_slowdown_p99: f64,
    /// The least share that an endless flow has of its fair rate: of streams and multicast flows, at most 1.
    pub share: f64,
    /// The slowdown, multiplied by [`SHARE_TARGET`] over the share where that is more than 1. Of each method of a sweep
    /// the variant with the least cost is selected.
    pub cost: f64,
    /// Flows that had not ended, with all seeds. Such a variant is neither on a front nor selected.
    pub unfinished: u64,
    /// No variant of the same method is at least as good in both, and better in one.
    pub on_front: bool,
    /// The least cost of its method.
    pub is_selected: bool,
}

impl Point {
    fn is_better_than(&self, other: &Point) -> bool {
        let is_no_worse = self.short_slowdown_p99 <= other.short_slowdown_p99 && self.share >= other.share;
        is_no_worse && (self.short_slowdown_p99 < other.short_slowdown_p99 || self.share > other.share)
    }
}

/// The variants of a scenario with short flows and endless ones, in its order; of other scenarios none.
pub(super) fn points(scenario: &FabricScenario, results: &FabricResults) -> Vec<Point> {
    let point = |variant: &Variant| {
        let median = |of: &dyn Fn(&Summary) -> Option<f64>| {
            let runs = results.of_variant(&variant.name);
            let spread = Spread::of(&runs.filter_map(|run| of(&run.summary)).collect::<Vec<f64>>());
            spread.map(|spread| spread.median)
        };
        let short_slowdown_p99 = median(&|summary| summary.short_slowdown_p99)?;
        let share = median(&share)?;
        Some(Point {
            variant: variant.name.clone(),
            method: variant.method().to_owned(),
            short_slowdown_p99,
            share,
            cost: short_slowdown_p99 * (SHARE_TARGET / share.max(f64::MIN_POSITIVE)).max(1.0),
            unfinished: results.of_variant(&variant.name).map(|run| run.summary.unfinished).sum(),
            on_front: false,
            is_selected: false,
        })
    };
    let mut points: Vec<Point> = scenario.variants.iter().filter_map(point).collect();
    judge(&mut points);
    points
}

fn share(summary: &Summary) -> Option<f64> {
    summary.victim_share.into_iter().chain(summary.group_share).map(|share| share.min(1.0)).reduce(f64::min)
}

/// Finds the front and the least cost of each method.
fn judge(points: &mut [Point]) {
    for at in 0..points.len() {
        let others = || {
            let of_method = points.iter().enumerate().filter(|(_, other)| other.method == points[at].method);
            of_method.filter(|(other, point)| *other != at && point.unfinished == 0)
        };
        let is_cheaper = |(other, point): (usize, &Point)| {
            point.cost < points[at].cost || (point.cost == points[at].cost && other < at)
        };
        let ends = points[at].unfinished == 0;
        let on_front = ends && !others().any(|(_, other)| other.is_better_than(&points[at]));
        let is_selected = ends && !others().any(is_cheaper);
        (points[at].on_front, points[at].is_selected) = (on_front, is_selected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(method: &str, short_slowdown_p99: f64, share: f64, unfinished: u64) -> Point {
        Point {
            variant: String::new(),
            method: method.to_owned(),
            short_slowdown_p99,
            share,
            cost: short_slowdown_p99 * (SHARE_TARGET / share).max(1.0),
            unfinished,
            on_front: false,
            is_selected: false,
        }
    }

    /// D239
    #[test]
    fn the_front_are_those_that_no_other_is_better_than() {
        let mut points = vec![
            point("a", 10.0, 0.5, 0),
            point("a", 20.0, 0.95, 0),
            point("a", 20.0, 0.8, 0),
            point("a", 5.0, 0.2, 0),
            point("a", 1.0, 1.0, 3),
            point("b", 90.0, 0.1, 0),
        ];
        judge(&mut points);
        let on_front: Vec<bool> = points.iter().map(|point| point.on_front).collect();
        assert_eq!(on_front, [true, true, false, true, false, true]);
        let selected: Vec<bool> = points.iter().map(|point| point.is_selected).collect();
        // Costs 18, 20, 22.5, 22.5; what has not ended is not selected; the other method has its own.
        assert_eq!(selected, [true, false, false, false, false, true]);
    }

    /// D239
    #[test]
    fn of_equal_variants_the_first_is_selected_and_both_are_on_the_front() {
        let mut points = vec![point("a", 10.0, 1.0, 0), point("a", 10.0, 1.0, 0)];
        judge(&mut points);
        assert!(points[0].is_selected && !points[1].is_selected);
        assert!(points.iter().all(|point| point.on_front));
    }

    /// D239
    #[test]
    fn the_share_is_the_least_and_at_most_one() {
        let of = |victim_share, group_share| share(&Summary { victim_share, group_share, ..Summary::default() });
        assert_eq!(of(Some(0.5), Some(1.6)), Some(0.5));
        assert_eq!(of(None, Some(1.6)), Some(1.0));
        assert_eq!(of(None, None), None);
    }
}
