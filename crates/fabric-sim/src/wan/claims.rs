//! Checks of a WAN scenario.

use super::nodes::WanSignal;
use super::results::{ENOUGH, WanResults, WanRun};
use super::scenario::{WanScenario, WanVariant};
use serde::Serialize;
use srdma_report::units::count;
use std::fmt;

/// Least ratio of the delay of a receiver's CNP to that of the notification, for congestion near the ingress PE, from
/// this length of the path on.
const SOONER: f64 = 10.0;
const FROM_KM: f64 = 100.0;

/// Tolerance between measured and calculated values.
const NEAR: f64 = 0.15;

/// A check of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The variant, and the length of the path.
    pub at: String,
    /// The expected value.
    pub expected: String,
    /// The measured value.
    pub found: String,
    /// Whether it holds: with every seed that was run with its size of the queue, unless `expected` names the one seed
    /// that is judged.
    pub holds: bool,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.holds { "✓" } else { "✗" };
        write!(f, "{mark} {}: {}; {}", self.at, self.expected, self.found)
    }
}

/// Whether every run has a value, and all of them are near the calculated one.
fn all_near(values: &[Option<f64>], arithmetic: f64) -> bool {
    let is_near = |value: &Option<f64>| value.is_some_and(|value| (value / arithmetic - 1.0).abs() <= NEAR);
    !values.is_empty() && values.iter().all(is_near)
}

/// The least and the greatest of some runs' values, and in how many of them there is none.
struct Spread {
    least: f64,
    most: f64,
    missing: usize,
}

impl Spread {
    /// `None` if no run has a value.
    fn of(values: &[Option<f64>]) -> Option<Spread> {
        let found = || values.iter().flatten().copied();
        let missing = values.len() - found().count();
        Some(Spread { least: found().reduce(f64::min)?, most: found().reduce(f64::max)?, missing })
    }
}

/// The values with so many digits and a unit, the number of seeds, and how many of them lack a value.
fn text(spread: Option<&Spread>, digits: usize, unit: &str, seeds: usize) -> String {
    let seeds = count(seeds as u64, "seed");
    match spread {
        None => format!("no value with {seeds}"),
        Some(Spread { least, most, missing: 0 }) => format!("{least:.digits$} to {most:.digits$}{unit} with {seeds}"),
        Some(Spread { least, most, missing }) => {
            format!("{least:.digits$} to {most:.digits$}{unit} with {seeds}, of which {missing} have no value")
        }
    }
}

impl WanResults {
    /// The checks of these results.
    pub fn claims(&self, study: &WanScenario) -> Vec<Claim> {
        let mut claims = Vec::new();
        for total_km in self.lengths() {
            claims.extend(self.delay_ratio(study, total_km));
        }
        for variant in &study.variants {
            for total_km in self.lengths() {
                if variant.end_c {
                    claims.extend(self.arithmetic(study, variant, total_km));
                }
                if variant.end_c && variant.signal == WanSignal::EndE {
                    claims.extend(self.both(study, variant, total_km));
                }
            }
        }
        claims
    }

    /// END.E compared with the CNPs of receivers: the factor of each seed, and (2 − f) / f.
    fn delay_ratio(&self, study: &WanScenario, total_km: f64) -> Option<Claim> {
        let buffer = *study.wan.buffer.get_ref();
        let alone = |signal| study.variants.iter().find(|variant| variant.signal == signal && !variant.end_c);
        let delays = |signal| {
            let variant = alone(signal)?;
            let notified: Vec<Option<f64>> =
                self.at(&variant.name, total_km, buffer).map(|run| run.notified_ns).collect();
            Some((variant, notified))
        };
        let ((_, late), (variant, early)) = (delays(WanSignal::ReceiverCnp)?, delays(WanSignal::EndE)?);
        let factors: Vec<Option<f64>> =
            late.iter().zip(&early).map(|(late, early)| Some((*late)? / (*early)?)).collect();
        let spread = Spread::of(&factors);
        let share = self.at(&variant.name, total_km, buffer).next()?.share;
        let arithmetic = (2.0 - share) / share;
        let is_near = study.wan.first_hop_km.is_some() && total_km >= FROM_KM;
        let must = if is_near { format!("at least {SOONER}× sooner; ") } else { String::new() };
        Some(Claim {
            at: format!("{}, {total_km} km", variant.title()),
            expected: format!(
                "{must}(2 − f) / f = {arithmetic:.1}× calculated, ± {:.0} % with every seed",
                100.0 * NEAR
            ),
            found: format!("a CNP of the receiver comes later, {}", text(spread.as_ref(), 1, "×", factors.len())),
            holds: spread.is_some_and(|spread| !is_near || spread.least >= SOONER) && all_near(&factors, arithmetic),
        })
    }

    /// No loss, and almost no idle time.
    fn both(&self, study: &WanScenario, variant: &WanVariant, total_km: f64) -> Option<Claim> {
        let buffer = *study.wan.buffer.get_ref();
        let runs: Vec<&WanRun> = self.at(&variant.name, total_km, buffer).collect();
        let dropped: u64 = runs.iter().map(|run| run.dropped).sum();
        let used: Option<Vec<f64>> = runs.iter().map(|run| run.utilisation).collect();
        let used = match used.and_then(|used| used.into_iter().reduce(f64::min)) {
            Some(least) => format!("at least {:.2} % utilisation", 100.0 * least),
            None => "no pause in one run at least".to_owned(),
        };
        let seeds = count(runs.len() as u64, "seed");
        (!runs.is_empty()).then(|| Claim {
            at: format!("{}, {total_km} km", variant.title()),
            expected: format!("no loss, {:.0} % utilisation with {buffer} of rate × round trip", 100.0 * ENOUGH),
            found: format!("{dropped} lost, {used} with {seeds}"),
            holds: runs.iter().all(|run| run.is_enough()),
        })
    }

    /// Buffer that END.C used above XOFF and below XON, where the buffer is large enough to show it.
    fn arithmetic(&self, study: &WanScenario, variant: &WanVariant, total_km: f64) -> Vec<Claim> {
        let buffer = self.buffers().into_iter().next_back().unwrap_or(0.0);
        let runs: Vec<&WanRun> = self.at(&variant.name, total_km, buffer).collect();
        let Some(share) = runs.first().map(|run| run.share) else { return Vec::new() };
        let stop = |run: &WanRun| Some(run.peak_octets.checked_sub(run.xoff_octets?)? as f64 / run.path_octets as f64);
        let restart =
            |run: &WanRun| Some(run.xon_octets?.saturating_sub(run.min_octets?) as f64 / run.path_octets as f64);
        let values = |of: &dyn Fn(&WanRun) -> Option<f64>| runs.iter().map(|run| of(run)).collect::<Vec<_>>();
        let claim = |expected: String, values: &[Option<f64>], holds: bool| Claim {
            at: format!("{}, {total_km} km", variant.title()),
            expected,
            found: text(Spread::of(values).as_ref(), 3, "", values.len()),
            holds,
        };
        // Where senders reduce their rates, the load is below the calculated one.
        if variant.signal != WanSignal::None {
            return Vec::new();
        }
        let (stops, restarts) = (values(&stop), values(&restart));
        // The calculation is of senders at their full rate. Pauses within the data centre may keep them from it: so no
        // seed may need more, but some may need less. The second check refuses a calculation that no seed confirms.
        let needed = (study.wan.overload() - 1.0) * share;
        let most = Spread::of(&stops).filter(|spread| spread.missing == 0).map(|spread| spread.most);
        let is_in_bounds = most.is_some_and(|most| most / needed <= 1.0 + NEAR);
        let percent = 100.0 * NEAR;
        let calculated = format!("(in/out − 1)·f = {needed:.3} of rate × round trip");
        vec![
            claim(format!("no seed needs more to stop than {calculated} + {percent:.0} %"), &stops, is_in_bounds),
            claim(
                format!("to stop, the seed that needs most needs {calculated}, ± {percent:.0} %"),
                &stops,
                all_near(&[most], needed),
            ),
            claim(
                format!("to restart f = {share:.3} of rate × round trip, ± {percent:.0} % with every seed"),
                &restarts,
                all_near(&restarts, share),
            ),
        ]
    }
}
