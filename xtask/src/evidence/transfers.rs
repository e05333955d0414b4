//! Groups beside other ways of distributing the same data: rules, algorithms, applications, and guests with soft-RoCE.

use super::job::{Job, Step};
use super::jobs::{array, grouped, head, number, only, spread, text};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write;

pub(super) fn jobs() -> [Job; 9] {
    [
        demos(),
        rules(),
        algorithms(),
        broadcasts(),
        broadcast_rails(),
        broadcast_flow(),
        applications(),
        guests(),
        guests_lossy(),
    ]
}

fn percent(row: &Value) -> Result<String> {
    Ok(format!("{} %", number(row, "/loss")? * 100.0))
}

const DEMOS: [&str; 5] = [
    "demo --json",
    "demo --headend host --json",
    "demo --repair off --json",
    "demo --receivers 1024 --size 16MiB --json",
    "demo --receivers 1024 --size 16MiB --loss 0 --json",
];

fn demos() -> Job {
    Job {
        name: "demos",
        about: "wall time and source egress of srdma demo",
        is_quick: true,
        steps: DEMOS.map(|demo| Step::srdma(demo, &["/wall_ms", "/packet_hops", "/source/egress_ratio"])).to_vec(),
        table: |results| {
            ensure!(results.len() == DEMOS.len(), "results are missing");
            let columns = ["command", "wall time, s", "million packet-hops", "a second", "source egress"];
            let mut table = head(&columns);
            for (demo, result) in DEMOS.iter().zip(results) {
                let (seconds, millions) = (number(result, "/wall_ms")? / 1e3, number(result, "/packet_hops")? / 1e6);
                let (rate, egress) = (millions / seconds, number(result, "/egress_ratio")?);
                let _ = writeln!(table, "| `srdma {demo}` | {seconds:.2} | {millions:.2} | {rate:.2} | {egress:.3} |");
            }
            Ok(table)
        },
    }
}

fn ablation(name: &'static str, about: &'static str, part: &str, table: fn(&[Value]) -> Result<String>) -> Job {
    let steps = vec![Step::example("srdma-cli", "ablation", part)];
    Job { name, about, is_quick: false, steps, table }
}

fn rules() -> Job {
    ablation("rules", "the default rules beside the literal ones, means of five seeds", "rules", |results| {
        let counts = [
            ("ACKs at source", "/acks_at_source"),
            ("NAKs at source", "/naks_at_source"),
            ("sent by receivers", "/responses_of_receivers"),
            ("packets sent again", "/packets_retransmitted"),
            ("copies to receivers", "/copies_to_receivers"),
        ];
        let mut columns = vec!["loss; rules; retransmissions go to; receiver lists"];
        columns.extend(counts.iter().map(|(name, _)| *name));
        columns.push("completion, ms");
        let mut table = head(&columns);
        for row in array(only(results)?, "")? {
            let is_pruned = row["prune_retransmit"].as_bool().context("a row that is pruned or not")?;
            let to = if is_pruned { "those that lack them" } else { "all" };
            let (loss, rules, lists) = (percent(row)?, text(row, "/rules")?, text(row, "/lists")?);
            let _ = write!(table, "| {loss}; {rules}; {to}; {lists} |");
            for (_, pointer) in counts {
                let _ = write!(table, " {} |", grouped(number(row, pointer)?));
            }
            let _ = writeln!(table, " {:.2} |", number(row, "/completion_ns")? / 1e6);
        }
        Ok(table)
    })
}

fn algorithms() -> Job {
    let about = "a group beside unicast algorithms, means of five seeds";
    ablation("algorithms", about, "algorithms", |results| {
        let mut table = head(&["data; loss", "multicast, µs", "unicast", "chain", "binomial"]);
        for row in array(only(results)?, "")? {
            let (kib, group) = (number(row, "/octets")? / 1024.0, number(row, "/multicast_ns")?);
            let _ = write!(table, "| {} KiB; {} | {:.1} |", grouped(kib), percent(row)?, group / 1e3);
            let of = array(row, "/algorithms")?;
            for name in ["unicast", "chain", "binomial"] {
                let found = of.iter().find(|algorithm| algorithm["algorithm"] == name).context(name)?;
                let (time, chunk) = (number(found, "/completion_ns")?, number(found, "/chunk_octets")? / 1024.0);
                let ratio = time / group;
                let _ = write!(table, " {:.1} ({ratio:.2} times, chunks of {chunk} KiB) |", time / 1e3);
            }
            table.push('\n');
        }
        Ok(table)
    })
}

const BROADCASTS: [&str; 2] = ["broadcast-60gb", "broadcast-1024"];

const RAILS: [&str; 1] = ["broadcast-rails"];

fn steps_of_broadcasts(names: &[&str]) -> Vec<Step> {
    let step = |name| {
        let kept = &["/variants", "/runs/*/packet_hops", "/runs/*/verified_icrc"];
        Step::srdma(format!("sim scenarios/{name}.toml --json"), kept)
    };
    names.iter().map(step).collect()
}

fn broadcasts() -> Job {
    Job {
        name: "broadcasts",
        about: "data to many receivers by one group at 400 Gbit/s, packet by packet",
        is_quick: false,
        steps: steps_of_broadcasts(&BROADCASTS),
        table: |results| of_broadcasts(&BROADCASTS, results),
    }
}

fn broadcast_rails() -> Job {
    Job {
        name: "broadcast-rails",
        about: "data to many receivers by a group for each of four NICs at 400 Gbit/s, packet by packet",
        is_quick: false,
        steps: steps_of_broadcasts(&RAILS),
        table: |results| of_broadcasts(&RAILS, results),
    }
}

fn of_broadcasts(names: &[&str], results: &[Value]) -> Result<String> {
    ensure!(results.len() == names.len(), "results are missing");
    let columns = ["scenario", "octets delivered", "completion, ms", "relative to size by rate", "packet-hops"];
    let mut table = head(&columns);
    for (name, result) in names.iter().zip(results) {
        ensure!(result["runs"][0]["verified_icrc"] == true, "{name}: its ICRCs were not verified");
        let measure = |of: &str| number(result, &format!("/variants/0/measures/{of}/1"));
        let (octets, time) = (measure("data delivered")?, measure("broadcast completion")? / 1e6);
        let ratio = measure("broadcast relative to size by rate")?;
        let (octets, hops) = (grouped(octets), grouped(number(result, "/runs/0/packet_hops")?));
        let _ = writeln!(table, "| `{name}` | {octets} | {time:.3} | {ratio:.3} | {hops} |");
    }
    Ok(table)
}

fn broadcast_flow() -> Job {
    Job {
        name: "broadcast-flow",
        about: "broadcasts by groups, chains, trees and to each receiver, at flow level",
        is_quick: true,
        steps: vec![Step::srdma(
            "sim scenarios/broadcast-flow.toml --json",
            &["/runs/*/title", "/runs/*/jobs/*/name", "/runs/*/jobs/*/ideal_ns", "/runs/*/jobs/*/iterations"],
        )],
        table: |results| {
            let runs = array(only(results)?, "/runs")?;
            let first = array(&runs[0], "/jobs")?;
            let names = first.iter().map(|job| text(job, "/name")).collect::<Result<Vec<_>>>()?;
            let mut table = head(&[&["ms, median of the seeds (least–greatest)"], &names[..]].concat());
            for of_variant in runs.chunk_by(|one, other| one["title"] == other["title"]) {
                let _ = write!(table, "| {} |", text(&of_variant[0], "/title")?);
                for at in 0..names.len() {
                    let time = |run: &Value| {
                        let moment = |name| number(run, &format!("/jobs/{at}/iterations/0/{name}"));
                        Ok::<_, anyhow::Error>((moment("finished_ns")? - moment("started_ns")?) / 1e6)
                    };
                    let mut times = of_variant.iter().map(time).collect::<Result<Vec<f64>>>()?;
                    times.sort_by(f64::total_cmp);
                    let times = [times[0], times[times.len() / 2], times[times.len() - 1]];
                    let _ = write!(table, " {} |", spread(times, 2));
                }
                table.push('\n');
            }
            let ideal = |job: &Value| Ok::<_, anyhow::Error>(format!("{:.2}", number(job, "/ideal_ns")? / 1e6));
            let ideals = first.iter().map(ideal).collect::<Result<Vec<_>>>()?;
            let _ = writeln!(table, "| bound of the links | {} |", ideals.join(" | "));
            Ok(table)
        },
    }
}

fn applications() -> Job {
    Job {
        name: "applications",
        about: "from publish to the last of eight receivers, by multicast and by unicast; needs root",
        is_quick: false,
        steps: vec![Step::srdma("bench applications --json", &[])],
        table: |results| {
            let columns = [
                "way; links",
                "s least",
                "s median",
                "ratio",
                "source link",
                "to one",
                "source s",
                "receivers s",
                "nodes s",
            ];
            let mut table = head(&columns);
            for row in array(only(results)?, "")? {
                let links = match row["rate_bits_per_s"].as_f64() {
                    Some(rate) => format!("{} Mbit/s", rate / 1e6),
                    None => "no limit".to_owned(),
                };
                let _ = write!(table, "| {}; {links} |", text(row, "/way")?);
                let [least, median] = [number(row, "/seconds_min")?, number(row, "/seconds_median")?];
                let ratio = row["ratio"].as_f64().map_or_else(String::new, |ratio| format!("{ratio:.2}"));
                let [source, one] = [number(row, "/source_link")?, number(row, "/receiver_link")?];
                let _ = write!(table, " {least:.1} | {median:.1} | {ratio} | {source:.3} | {one:.3} |");
                for part in ["source", "receivers", "nodes"] {
                    let _ = write!(table, " {:.1} |", number(row, &format!("/processors/{part}"))?);
                }
                table.push('\n');
            }
            Ok(table)
        },
    }
}

/// A lab with guests, and options of a run.
type OfGuests = (&'static str, &'static str);

const GUESTS: [OfGuests; 4] = [
    ("figure1-rxe", "--size 16MiB"),
    ("figure1-rxe", "--size 16MiB --op send --list provisioned"),
    ("figure1-rxe", "--size 4MiB --loss N4-N1=0.01 --loss N5-N3=0.01"),
    ("figure1-rxe", "--size 16MiB --list provisioned"),
];

const GUESTS_LOSSY: [OfGuests; 1] =
    [("figure1-lossy-rxe", "--size 8MiB --op write --list tlv --loss 0 --loss N4-N1=0.01 --loss N5-N3=0.01")];

/// The commands of such runs, beside unicast to all at once.
fn steps_of_guests(runs: &[OfGuests]) -> Vec<Step> {
    let step = |(lab, options): &OfGuests| {
        let keep = &["/source/seconds", "/source/emulation_share", "/unicast", "/receivers/*/is_identical"];
        Step::srdma(format!("lab run {lab} {options} --compare unicast --json"), keep)
    };
    runs.iter().map(step).collect()
}

fn of_guests(runs: &[OfGuests], results: &[Value]) -> Result<String> {
    ensure!(results.len() == runs.len(), "results are missing");
    let columns = ["options", "group, s", "unicast to all five, s", "share of both processors that emulation took"];
    let mut table = head(&columns);
    for ((_, options), result) in runs.iter().zip(results) {
        let receivers = array(result, "/receivers")?;
        let all = receivers.iter().chain([&result["unicast"]]);
        ensure!(all.into_iter().all(|of| of["is_identical"] == true), "{options}: other data");
        let (group, unicast) = (number(result, "/seconds")?, number(result, "/unicast/seconds")?);
        let share = number(result, "/emulation_share")? * 100.0;
        let _ = writeln!(table, "| `{options}` | {group:.2} | {unicast:.2} | {share:.0} % |");
    }
    Ok(table)
}

fn guests() -> Job {
    Job {
        name: "guests",
        about: "a group of emulated Linux hosts with soft-RoCE, beside unicast to all at once; needs root and QEMU",
        is_quick: false,
        steps: steps_of_guests(&GUESTS),
        table: |results| of_guests(&GUESTS, results),
    }
}

fn guests_lossy() -> Job {
    Job {
        name: "guests-lossy",
        about: "the same under loss with repair in the nodes; needs root and QEMU",
        is_quick: false,
        steps: steps_of_guests(&GUESTS_LOSSY),
        table: |results| of_guests(&GUESTS_LOSSY, results),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_that_differ_make_no_table_of_guests() {
        let run = |is_identical: bool| {
            let unicast = json!({ "seconds": 8.0, "is_identical": true });
            let receivers = json!([{ "is_identical": true }, { "is_identical": is_identical }]);
            json!({ "seconds": 4.0, "emulation_share": 0.5, "unicast": unicast, "receivers": receivers })
        };
        let results = |last| [true, true, true, last].map(run);
        let text = (guests().table)(&results(true)).unwrap();
        assert!(text.contains("\n| `--size 16MiB` | 4.00 | 8.00 | 50 % |\n"), "{text}");
        assert!((guests().table)(&results(false)).unwrap_err().to_string().ends_with("other data"));
    }

    #[test]
    fn broadcasts_are_columns_and_ways_to_choose_paths_rows() {
        let job = |finished_ns: u32| {
            let iterations = json!([{ "started_ns": 1_000_000, "finished_ns": finished_ns }]);
            json!({ "name": "chain", "ideal_ns": 5_500_000.0, "iterations": iterations })
        };
        let run = |title: &str, finished_ns| json!({ "title": title, "jobs": [job(finished_ns)] });
        let runs = json!({ "runs": [run("ECMP", 9_000_000), run("ECMP", 7_000_000), run("placed", 6_500_000)] });
        let text = "| ms, median of the seeds (least–greatest) | chain |\n|---|---:|\n\
                    | ECMP | 8.00 (6.00–8.00) |\n| placed | 5.50 |\n| bound of the links | 5.50 |\n";
        assert_eq!((broadcast_flow().table)(&[runs]).unwrap(), text);
    }

    #[test]
    fn rails_have_a_table_like_one_group() {
        let measures = json!({ "data delivered": [1, 1_800, 1], "broadcast completion": [1, 316_432.0, 1],
                               "broadcast relative to size by rate": [1, 1.0548, 1] });
        let run = |verified: bool| json!([{ "packet_hops": 4_321, "verified_icrc": verified }]);
        let result = |verified| json!({ "variants": [{ "measures": measures }], "runs": run(verified) });
        let table = (broadcast_rails().table)(&[result(true)]).unwrap();
        assert!(table.ends_with("\n| `broadcast-rails` | 1,800 | 0.316 | 1.055 | 4,321 |\n"), "{table}");
        assert!((broadcast_rails().table)(&[result(false)]).is_err());
    }

    /// The README has the source egress without repair, and with the host as headend.
    #[test]
    fn demos_have_a_row_for_each_command() {
        let ratios = [1.0289, 1.0, 1.343017, 1.01, 1.0];
        let result = |ratio: f64| json!({ "wall_ms": 400, "packet_hops": 200_000, "egress_ratio": ratio });
        let table = (demos().table)(&ratios.map(result)).unwrap();
        for row in
            ["--repair off --json` | 0.40 | 0.20 | 0.50 | 1.343", "--headend host --json` | 0.40 | 0.20 | 0.50 | 1.000"]
        {
            assert!(table.contains(&format!("\n| `srdma demo {row} |\n")), "{table}");
        }
    }

    #[test]
    fn unicast_algorithms_are_beside_the_group() {
        let algorithm = |name: &str| json!({ "algorithm": name, "chunk_octets": 4096, "completion_ns": 30_000.0 });
        let algorithms = ["unicast", "chain", "binomial"].map(algorithm);
        let row = |algorithms: &[Value]| json!([{ "octets": 65_536, "loss": 0.01, "multicast_ns": 15_000.0, "algorithms": algorithms }]);
        let text = (super::algorithms().table)(&[row(&algorithms)]).unwrap();
        let cell = "30.0 (2.00 times, chunks of 4 KiB)";
        assert!(text.ends_with(&format!("\n| 64 KiB; 1 % | 15.0 | {cell} | {cell} | {cell} |\n")), "{text}");
        assert!((super::algorithms().table)(&[row(&algorithms[1..])]).is_err());
    }
}
