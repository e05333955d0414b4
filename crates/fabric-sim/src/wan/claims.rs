//! Checks of a WAN scenario.

use super::nodes::WanSignal;
use super::results::{ENOUGH, WanResults, WanRun};
use super::scenario::{WanScenario, WanVariant};
use serde::Serialize;

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
    /// Whether it holds with every seed.
    pub holds: bool,
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

    /// END.E compared with the CNPs of receivers: the minimum of the factors over the seeds, and (2 − f) / f.
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
        let factors = late.iter().zip(&early).filter_map(|(late, early)| Some((*late)? / (*early)?));
        let least = factors.reduce(f64::min)?;
        let share = self.at(&variant.name, total_km, buffer).next()?.share;
        let arithmetic = (2.0 - share) / share;
        let is_near = study.wan.first_hop_km.is_some() && total_km >= FROM_KM;
        let must = if is_near { format!("at least {SOONER}× sooner; ") } else { String::new() };
        Some(Claim {
            at: format!("{}, {total_km} km", variant.title()),
            expected: format!("{must}(2 − f) / f = {arithmetic:.1}× calculated, ± {:.0} %", 100.0 * NEAR),
            found: format!("a CNP of the receiver comes {least:.1}× later"),
            holds: (!is_near || least >= SOONER) && (least / arithmetic - 1.0).abs() <= NEAR,
        })
    }

    /// No loss, and almost no idle time.
    fn both(&self, study: &WanScenario, variant: &WanVariant, total_km: f64) -> Option<Claim> {
        let buffer = *study.wan.buffer.get_ref();
        let runs: Vec<&WanRun> = self.at(&variant.name, total_km, buffer).collect();
        let dropped: u64 = runs.iter().map(|run| run.dropped).sum();
        let used = runs.iter().filter_map(|run| run.utilisation).reduce(f64::min)?;
        Some(Claim {
            at: format!("{}, {total_km} km", variant.title()),
            expected: format!("no loss, {:.0} % utilisation with {buffer} of rate × round trip", 100.0 * ENOUGH),
            found: format!("{dropped} lost, {:.2} % utilisation", 100.0 * used),
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
        let claim = |what: &str, of: &dyn Fn(&WanRun) -> Option<f64>, arithmetic: f64| {
            // The buffer must suffice for the seed that needs most.
            let most = runs.iter().filter_map(|run| of(run)).reduce(f64::max)?;
            let beyond = most / arithmetic - 1.0;
            Some(Claim {
                at: format!("{}, {total_km} km", variant.title()),
                expected: format!("{what} {arithmetic:.3} of rate × round trip, ± {:.0} %", 100.0 * NEAR),
                found: format!("at most {most:.3}, {:+.0} %", 100.0 * beyond),
                holds: beyond.abs() <= NEAR,
            })
        };
        // Where senders reduce their rates, the load is below the calculated one.
        if variant.signal != WanSignal::None {
            return Vec::new();
        }
        let overload = study.wan.overload();
        let stops = claim("to stop (in/out − 1)·f =", &stop, (overload - 1.0) * share);
        let restarts = claim("to restart f =", &restart, share);
        stops.into_iter().chain(restarts).collect()
    }
}
