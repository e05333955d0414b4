//! Studies of whole networks: a WAN between data centres, and one stream from end to end. Their checks have to hold,
//! and their runs make the tables.

use super::job::{Job, Step};
use super::jobs::{array, grouped, head, number, only, text};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write;

const WANS: [(&str, &str); 3] = [
    ("wan", "congestion at the first router of a WAN, 5 km behind the ingress PE"),
    ("wan-equal-hops", "congestion at a third of a WAN's path"),
    ("wan-equal-hops-r3", "congestion at two thirds of a WAN's path"),
];

const OF_WAN: &[&str] = &[
    "/claims",
    "/runs/*/variant",
    "/runs/*/seed",
    "/runs/*/total_km",
    "/runs/*/share",
    "/runs/*/buffer",
    "/runs/*/path_octets",
    "/runs/*/notified_ns",
    "/runs/*/paused_ns",
    "/runs/*/dropped",
    "/runs/*/peak_octets",
    "/runs/*/min_octets",
    "/runs/*/xoff_octets",
    "/runs/*/xon_octets",
    "/runs/*/utilisation",
    "/runs/*/local_slowdown_p99",
];

const OF_STREAM: &[&str] = &[
    "/claims",
    "/runs/*/seed",
    "/runs/*/restarted",
    "/runs/*/acknowledged_at_restart",
    "/runs/*/octets",
    "/runs/*/completion_ns",
    "/runs/*/receivers/*/is_identical",
    "/runs/*/packets",
    "/runs/*/retransmitted",
    "/runs/*/source_frames",
    "/runs/*/headend_packets",
    "/runs/*/responses_checked",
    "/runs/*/invariant_violations",
    "/runs/*/acks_of_receivers",
    "/runs/*/acks_at_source",
    "/runs/*/naks_of_receivers",
    "/runs/*/naks_at_source",
    "/runs/*/cnps_of_receivers",
    "/runs/*/cnps_at_source",
    "/runs/*/lost_on_links",
    "/runs/*/dropped",
    "/runs/*/end_e_sent",
    "/runs/*/fast_cnps_at_source",
    "/runs/*/end_c_sent",
    "/runs/*/end_c_resumes",
    "/runs/*/end_c_expired",
    "/runs/*/longest_hold_ns",
    "/runs/*/gateway_paused_ns",
];

pub(super) fn jobs() -> Vec<Job> {
    let wan = |(name, about): (&'static str, &'static str)| Job {
        name,
        about,
        is_quick: false,
        steps: vec![Step::srdma(format!("sim scenarios/{name}.toml --json"), OF_WAN)],
        table: of_wan,
    };
    let stream = Job {
        name: "end-to-end",
        about: "one stream through all four drafts",
        is_quick: true,
        steps: vec![Step::srdma("sim scenarios/end-to-end.toml --json", OF_STREAM)],
        table: of_stream,
    };
    WANS.into_iter().map(wan).chain([stream]).collect()
}

/// A line on how many checks hold, and a row for each that does not.
fn checks(result: &Value) -> Result<String> {
    let claims = array(result, "/claims")?;
    let mut broken = String::new();
    let mut count = 0;
    for claim in claims {
        if !claim["holds"].as_bool().context("a check that holds or not")? {
            let [at, expected, found] = [text(claim, "/at")?, text(claim, "/expected")?, text(claim, "/found")?];
            let _ = writeln!(broken, "* does not hold: {at}: {expected}; {found}");
            count += 1;
        }
    }
    let held = claims.len() - count;
    Ok(format!("\n{held} of {} checks hold.\n{broken}", claims.len()))
}

/// A row, if one of its cells has a value.
fn row(table: &mut String, label: &str, cells: Vec<Option<String>>) {
    if cells.iter().any(Option::is_some) {
        let cells: Vec<String> = cells.into_iter().map(Option::unwrap_or_default).collect();
        let _ = writeln!(table, "| {label} | {} |", cells.join(" | "));
    }
}

fn time(ns: f64) -> String {
    if ns < 1e6 { format!("{:.1} µs", ns / 1e3) } else { format!("{:.2} ms", ns / 1e6) }
}

/// Rate into the bottleneck relative to its own, in all three files.
const OVERLOAD: f64 = 4.0;

/// The runs of a WAN.
struct Runs<'v> {
    all: &'v [Value],
    /// The size of the queue that was run with all seeds.
    reference: f64,
    largest: f64,
}

impl<'v> Runs<'v> {
    fn of(result: &'v Value) -> Result<Self> {
        let all = array(result, "/runs")?;
        let mut reference = None;
        let mut largest: f64 = 0.0;
        for run in all {
            let buffer = number(run, "/buffer")?;
            largest = largest.max(buffer);
            if number(run, "/seed")? > 1.0 {
                ensure!(*reference.get_or_insert(buffer) == buffer, "two sizes of the queue have several seeds");
            }
        }
        Ok(Runs { all, reference: reference.context("one seed alone")?, largest })
    }

    /// What differs among the runs, in their order.
    fn distinct<T: PartialEq>(&self, of: impl Fn(&'v Value) -> Result<T>) -> Result<Vec<T>> {
        let mut found = Vec::new();
        for run in self.all {
            let value = of(run)?;
            if !found.contains(&value) {
                found.push(value);
            }
        }
        Ok(found)
    }

    /// Values of the runs of a variant with one size of the queue, ascending; none where one run has none.
    fn values(&self, at: (&str, f64, f64), of: impl Fn(&Value) -> Option<f64>) -> Option<Vec<f64>> {
        let is_there = |run: &&Value| {
            (run["variant"] == at.0, number(run, "/total_km").ok(), number(run, "/buffer").ok())
                == (true, Some(at.1), Some(at.2))
        };
        let mut values = self.all.iter().filter(is_there).map(of).collect::<Option<Vec<f64>>>()?;
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(values)
    }

    /// The smallest queue from which on all sizes are as wanted, with every seed.
    fn from(&self, variant: &str, km: f64, is_wanted: impl Fn(&Value) -> Option<f64> + Copy) -> Result<Option<f64>> {
        let mut buffers = self.distinct(|run| number(run, "/buffer"))?;
        buffers.sort_by(f64::total_cmp);
        let is_enough = |buffer: &f64| {
            self.values((variant, km, *buffer), is_wanted).is_some_and(|values| values.iter().all(|value| *value > 0.0))
        };
        Ok(buffers.iter().rev().take_while(|buffer| is_enough(buffer)).last().copied())
    }
}

fn median(values: &[f64]) -> f64 {
    values[values.len() / 2]
}

fn of_wan(results: &[Value]) -> Result<String> {
    let result = only(results)?;
    let runs = Runs::of(result)?;
    let lengths = runs.distinct(|run| number(run, "/total_km"))?;
    let variants = runs.distinct(|run| text(run, "/variant"))?;
    let mut headings = vec!["path".to_owned()];
    headings.extend(lengths.iter().map(|km| format!("{km} km")));
    let mut table = head(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    let member = |name: &'static str| move |run: &Value| run[name].as_f64();
    let at_reference = |variant, km, name| runs.values((variant, km, runs.reference), member(name));
    let share = |km| Some(median(&at_reference(variants[0], km, "share")?));
    let mut add = |label: &str, of: &dyn Fn(f64) -> Option<String>| {
        row(&mut table, label, lengths.iter().map(|km| of(*km)).collect());
    };
    add("f", &|km| Some(format!("{:.3}", share(km)?)));
    for variant in &variants {
        add(&format!("sender notified: `{variant}`"), &|km| {
            Some(time(median(&at_reference(variant, km, "notified_ns")?)))
        });
    }
    add("ratio of the first two; (2 − f)/f", &|km| {
        let notified = |variant| Some(median(&at_reference(variant, km, "notified_ns")?));
        let (late, early, share) = (notified("receiver-cnp")?, notified("end-e")?, share(km)?);
        Some(format!("{:.1}; {:.1}", late / early, (2.0 - share) / share))
    });
    for variant in &variants {
        add(&format!("gateway paused: `{variant}`"), &|km| {
            Some(time(median(&at_reference(variant, km, "paused_ns")?)))
        });
    }
    let octets = |run: &Value, name: &str| run[name].as_f64();
    for variant in variants.iter().filter(|variant| variant.starts_with("end-c")) {
        let most =
            |km, of: &dyn Fn(&Value) -> Option<f64>| Some(*runs.values((variant, km, runs.largest), of)?.last()?);
        let per_path = |run: &Value, octets: f64| Some(octets.max(0.0) / run["path_octets"].as_f64()?);
        add(&format!("to stop: `{variant}`; {:.0}f", OVERLOAD - 1.0), &|km| {
            let stop = |run: &Value| per_path(run, octets(run, "peak_octets")? - octets(run, "xoff_octets")?);
            Some(format!("{:.3}; {:.3}", most(km, &stop)?, (OVERLOAD - 1.0) * share(km)?))
        });
        add(&format!("to restart: `{variant}`; f"), &|km| {
            let restart = |run: &Value| per_path(run, octets(run, "xon_octets")? - octets(run, "min_octets")?);
            Some(format!("{:.3}; {:.3}", most(km, &restart)?, share(km)?))
        });
    }
    for variant in &variants {
        add(&format!("bottleneck utilisation: `{variant}`"), &|km| {
            Some(format!("{:.1} %", 100.0 * at_reference(variant, km, "utilisation")?.first()?))
        });
    }
    for variant in &variants {
        add(&format!("lost: `{variant}`"), &|km| Some(grouped(*at_reference(variant, km, "dropped")?.last()?)));
    }
    let is_lossless = |run: &Value| Some(f64::from(run["dropped"] == 0));
    let is_enough = |run: &Value| Some(f64::from(run["dropped"] == 0 && run["utilisation"].as_f64()? >= 0.99));
    for variant in &variants {
        add(&format!("lossless from: `{variant}`"), &|km| Some(runs.from(variant, km, is_lossless).ok()??.to_string()));
    }
    for variant in &variants {
        add(&format!("lossless with 99 % utilisation from: `{variant}`; {OVERLOAD:.0}f"), &|km| {
            let from = runs.from(variant, km, is_enough).ok()??;
            Some(format!("{from}; {:.2}", OVERLOAD * share(km)?))
        });
    }
    for variant in &variants {
        add(&format!("local flows, slowdown p99: `{variant}`"), &|km| {
            let slowdown = median(&at_reference(variant, km, "local_slowdown_p99")?);
            Some(if slowdown < 10.0 { format!("{slowdown:.2}") } else { format!("{slowdown:.1}") })
        });
    }
    table.push_str(&checks(result)?);
    Ok(table)
}

fn of_stream(results: &[Value]) -> Result<String> {
    let result = only(results)?;
    let runs = array(result, "/runs")?;
    let seeds = runs.iter().map(|run| Ok(number(run, "/seed")?.to_string())).collect::<Result<Vec<_>>>()?;
    let mut table = head(&[&["seed"], &seeds.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    let mut add = |label: &str, of: &dyn Fn(&Value) -> Result<String>| -> Result<()> {
        row(&mut table, label, runs.iter().map(|run| of(run).map(Some)).collect::<Result<Vec<_>>>()?);
        Ok(())
    };
    // Counts, one behind the other.
    let counts = |names: &'static [&'static str]| {
        move |run: &Value| {
            let counts = names.iter().map(|name| Ok(grouped(number(run, name)?)));
            Ok(counts.collect::<Result<Vec<String>>>()?.join("; "))
        }
    };
    let at = |name: &'static str| move |run: &Value| Ok(time(number(run, name)?));
    add("restarting node", &|run| Ok(text(run, "/restarted")?.to_owned()))?;
    add("acknowledged at the restart", &|run| {
        Ok(format!("{:.0} %", 100.0 * number(run, "/acknowledged_at_restart")? / number(run, "/octets")?))
    })?;
    add("completion time", &at("/completion_ns"))?;
    add("packets; retransmitted", &counts(&["/packets", "/retransmitted"]))?;
    add("frames on the source's link", &counts(&["/source_frames"]))?;
    add("data packets at the headend", &counts(&["/headend_packets"]))?;
    add("receivers with the source's SHA-256", &|run| {
        let receivers = array(run, "/receivers")?;
        let identical = receivers.iter().filter(|receiver| receiver["is_identical"] == true).count();
        Ok(format!("{identical} of {}", receivers.len()))
    })?;
    add("checked responses; violations", &counts(&["/responses_checked", "/invariant_violations"]))?;
    add("ACKs of receivers; at the source", &counts(&["/acks_of_receivers", "/acks_at_source"]))?;
    add("NAKs", &counts(&["/naks_of_receivers", "/naks_at_source"]))?;
    add("CNPs", &counts(&["/cnps_of_receivers", "/cnps_at_source"]))?;
    add("lost on links", &counts(&["/lost_on_links"]))?;
    add("dropped by nodes", &|run| {
        let reasons = run["dropped"].as_object().context("a run has no drops")?;
        let of = |(reason, count): (&String, &Value)| format!("{reason} {count}");
        Ok(if reasons.is_empty() { "0".to_owned() } else { reasons.iter().map(of).collect::<Vec<_>>().join(", ") })
    })?;
    add("Fast CNPs by END.E; received by the source", &counts(&["/end_e_sent", "/fast_cnps_at_source"]))?;
    let pauses = counts(&["/end_c_sent", "/end_c_resumes", "/end_c_expired"]);
    add("pauses by END.C; resumed; expired", &pauses)?;
    add("longest pause, of 1 ms", &at("/longest_hold_ns"))?;
    add("gateway paused", &at("/gateway_paused_ns"))?;
    table.push_str(&checks(result)?);
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(variant: &str, seed: u64, buffer: f64, dropped: u64, notified: f64) -> Value {
        json!({ "variant": variant, "seed": seed, "total_km": 50.0, "share": 0.1, "buffer": buffer, "path_octets": 1000,
                "notified_ns": notified, "paused_ns": null, "dropped": dropped, "peak_octets": 900, "min_octets": 0,
                "xoff_octets": null, "xon_octets": null, "utilisation": 0.995, "local_slowdown_p99": 1.5 })
    }

    #[test]
    fn runs_of_a_wan_are_rows_of_variants() {
        let claim = json!({ "at": "END.E, 50 km", "expected": "sooner", "found": "later", "holds": false });
        let runs = json!([
            run("receiver-cnp", 1, 0.5, 7, 2e6),
            run("receiver-cnp", 2, 0.5, 9, 3e6),
            run("receiver-cnp", 1, 1.0, 0, 2e6),
            run("end-e", 1, 0.5, 0, 1e5),
            run("end-e", 2, 0.5, 0, 2e5),
            run("end-e", 1, 1.0, 0, 1e5)
        ]);
        let table = of_wan(&[json!({ "runs": runs, "claims": [claim] })]).unwrap();
        for row in [
            "| path | 50 km |",
            "| sender notified: `receiver-cnp` | 3.00 ms |",
            "| ratio of the first two; (2 − f)/f | 15.0; 19.0 |",
            "| lost: `receiver-cnp` | 9 |",
            "| lossless from: `receiver-cnp` | 1 |",
            "| lossless with 99 % utilisation from: `end-e`; 4f | 0.5; 0.40 |",
            "0 of 1 checks hold.",
            "* does not hold: END.E, 50 km: sooner; later",
        ] {
            assert!(table.contains(&format!("{row}\n")), "{row}\n{table}");
        }
        assert!(!table.contains("gateway paused") && !table.contains("to stop"), "{table}");
    }

    #[test]
    fn a_check_without_an_answer_is_refused() {
        let claim = json!({ "at": "x", "expected": "y", "found": "z" });
        assert!(checks(&json!({ "claims": [claim] })).is_err() && checks(&json!({ "claims": [] })).is_err());
    }
}
