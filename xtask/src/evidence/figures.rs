//! Figures that benchmarks, examples and tests report, and programs of others beside ours.

use super::job::{Job, Program, Step};
use super::jobs::{array, head, number, only, text};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use srdma_figures::{Figure, shown};
use std::fmt::Write;

pub(super) fn jobs() -> Vec<Job> {
    let job = |name, about, steps, table| Job { name, about, is_quick: false, steps, table };
    let measured = |name, about, commands: &[&str]| {
        job(name, about, commands.iter().map(|command| Step::measured(*command)).collect(), of_figures)
    };
    let peer = |name, about, arguments: &str| {
        job(name, about, vec![Step { program: Program::Xtask, ..Step::srdma(arguments, &[]) }], of_peers)
    };
    vec![
        measured("controller", "response times of the controller, and its cost at rest", &CONTROLLER),
        measured("placement", "time to place flows, and to change what was placed", &[PLACE]),
        measured("isis-at-rest", "processor time of a node in a second, beside systems at rest; needs root", &[ISIS]),
        measured("recovery", "outages by lost links and dead nodes, in labs; needs root", &RECOVERY),
        measured(
            "recovery-simulation",
            "time from a single fault to the source's next progress",
            &[RECOVERY_SIMULATION],
        ),
        job(
            "levels",
            "collectives at flow level beside the same packet by packet",
            vec![Step::measured(LEVELS)],
            of_levels,
        ),
        measured("goodput", "a group beside unicast over links of 200 Mbit/s; needs root", &[GOODPUT]),
        measured("ranks", "processes of a host that share a receiver; needs root", &[RANKS]),
        job(
            "perftest",
            "perftest's tools between guests with soft-RoCE; needs root and QEMU",
            vec![Step { runs: 3, ..Step::measured(PERFTEST) }],
            of_figures,
        ),
        peer("peers-vpp", "clocks a packet beside VPP; needs VPP", "peers --only vpp --rounds 25 --json"),
        peer("peers-kernel", "time per frame beside the kernel's; needs root", "peers --only kernel --json"),
        peer("peers-htsim", "wall time beside htsim; needs htsim", "peers --only htsim --json"),
        gloo(),
    ]
}

const CONTROLLER: [&str; 4] = [
    "bench --locked -p srdma-controller --bench joins",
    "run --release --locked -p srdma-controller-core --example large_group",
    "bench --locked -p srdma-controller --bench idle",
    "bench --locked -p srdma-controller --bench placement",
];
const PLACE: &str = "run --release --locked -p srdma-placement --example place";
const ISIS: &str = "test --release --locked -p srdma-node --test node -- --ignored a_thousand_systems_at_rest";
const RECOVERY: [&str; 8] = [
    "test --locked -p srdma-cli --test cli -- --ignored frr_goes_around_a_dead_spine",
    "test --locked -p srdma-cli --test cli -- --ignored equal_paths_go_around_a_dead_transit_node",
    "test --locked -p srdma-cli --test cli -- --ignored routes_of_isis_go_around_a_dead_transit_node",
    "test --locked -p srdma-cli --test cli -- --ignored lab_bfd::replicating",
    "test --locked -p srdma-cli --test cli -- --ignored backups_take_over_when_a_link_fails",
    "test --locked -p srdma-cli --test cli -- --ignored backups_take_over_when_the_carrier_goes",
    "test --locked -p srdma-cli --test cli -- --ignored a_receiver_outlives_its_link_to_a_leaf",
    "test --locked -p srdma-cli --test cli -- --ignored a_source_outlives_its_link_to_its_headend",
];
/// 1,500 runs of each fault, in the order of the tests.
const RECOVERY_SIMULATION: &str = "test --config \"env.SRDMA_TEST_SEEDS='1500'\" --release --locked -p srdma-chaos \
                                   --test chaos recovery:: -- --test-threads=1";
const LEVELS: &str = "test --release --locked -p srdma-fabric-sim --test fabric_sim iterations_and_links";
const GOODPUT: &str = "test --locked -p srdma-cli --test cli -- --ignored a_group_and_unicast_share_links";
const RANKS: &str = "test --locked -p srdma-cli --test cli -- --ignored four_ranks_have_one_copy";
const PERFTEST: &str = "test --locked -p srdma-cli --test cli -- --ignored unmodified_tools_measure_a_group";

/// What a command has printed or reported: one document is no array.
fn rows(result: &Value) -> &[Value] {
    result.as_array().map_or(std::slice::from_ref(result), Vec::as_slice)
}

/// A row for each figure of each command.
fn of_figures(results: &[Value]) -> Result<String> {
    let mut table = head(&["what", "unit", "least", "median", "p99", "most", "of"]);
    for result in results {
        let figures = rows(result);
        ensure!(!figures.is_empty(), "a command has reported no figures");
        for figure in figures {
            let figure: Figure = serde_json::from_value(figure.clone())?;
            let Figure { what, unit, count, .. } = &figure;
            let [least, p99, most] = match count {
                1 => [const { String::new() }; 3],
                _ => [figure.least, figure.p99, figure.most].map(shown),
            };
            let median = shown(figure.median);
            let _ = writeln!(table, "| {what} | {unit} | {least} | {median} | {p99} | {most} | {count} |");
        }
    }
    Ok(table)
}

/// A row for each collective and a column for each selection of paths: how much longer iterations take at flow level.
fn of_levels(results: &[Value]) -> Result<String> {
    let figures = rows(only(results)?).iter().map(|row| {
        let figure: Figure = serde_json::from_value(row.clone())?;
        let (kind, paths) = figure.what.split_once(": ").context("a figure names a collective and paths")?;
        Ok((kind.to_owned(), paths.to_owned(), figure.median))
    });
    let figures = figures.collect::<Result<Vec<_>>>()?;
    let of_kinds: Vec<_> = figures.chunk_by(|one, next| one.0 == next.0).collect();
    let paths =
        |of_kind: &&[(String, String, f64)]| of_kind.iter().map(|(_, paths, _)| paths.clone()).collect::<Vec<_>>();
    let headings = of_kinds.first().map(paths).context("a test has reported no figures")?;
    ensure!(of_kinds.iter().all(|of_kind| paths(of_kind) == headings), "collectives have other paths");
    let columns: Vec<&str> = ["collective"].into_iter().chain(headings.iter().map(String::as_str)).collect();
    let mut table = head(&columns);
    for of_kind in of_kinds {
        let cells = of_kind.iter().map(|(.., ratio)| format!(" {:+.1} % |", 100.0 * (ratio - 1.0)));
        let _ = writeln!(table, "| `{}` |{}", of_kind[0].0, cells.collect::<String>());
    }
    Ok(table)
}

/// A row for each case of a peer.
fn of_peers(results: &[Value]) -> Result<String> {
    let columns =
        ["case", "unit", "ours: least, median", "the peer's", "ratio of the least", "of the medians", "rounds"];
    let mut table = head(&[&["peer"], &columns[..]].concat());
    for result in results {
        let rows = rows(result);
        ensure!(!rows.is_empty(), "a peer has no rows");
        for row in rows {
            let pair = |of: &str| {
                Ok::<_, anyhow::Error>([number(row, &format!("/{of}/least"))?, number(row, &format!("/{of}/median"))?])
            };
            let ([ours, our_median], [theirs, their_median]) = (pair("ours")?, pair("theirs")?);
            let [least, median] = pair("theirs_through_ours")?;
            let [ours, our_median, theirs, their_median] = [ours, our_median, theirs, their_median].map(shown);
            let (peer, case, unit) = (text(row, "/peer")?, text(row, "/case")?, text(row, "/unit")?);
            let rounds = number(row, "/rounds")?;
            let _ = writeln!(
                table,
                "| {peer} | {case} | {unit} | {ours}, {our_median} | {theirs}, {their_median} | {least:.2} | \
                 {median:.2} | {rounds} |"
            );
        }
    }
    Ok(table)
}

/// Mbit/s of the links; none: no limit.
const RATES: [Option<u32>; 2] = [Some(200), None];

fn gloo() -> Job {
    let step = |rate: Option<u32>| {
        let rate = rate.map_or_else(String::new, |rate| format!(" --rate {rate}"));
        let arguments = format!("examples/weights.py measure{rate}");
        Step { program: Program::Python, ..Step::srdma(arguments, &[]) }
    };
    Job {
        name: "gloo",
        about: "weights to eight replicas beside gloo's broadcast; needs root, torch and the Python package",
        is_quick: false,
        steps: RATES.map(step).to_vec(),
        table: |results| {
            ensure!(results.len() == RATES.len(), "results are missing");
            let columns = ["links", "way", "s least", "s median", "source s", "replica s"];
            let mut table = head(&columns);
            for (rate, lines) in RATES.iter().zip(results) {
                let links = rate.map_or_else(|| "no limit".to_owned(), |rate| format!("{rate} Mbit/s"));
                // The rounds come first.
                let result = array(lines, "")?.last().unwrap_or(&Value::Null);
                for way in ["gloo", "srdma"] {
                    let pair = |of: &str| -> Result<[f64; 2]> {
                        Ok([number(result, &format!("/{way}/{of}/0"))?, number(result, &format!("/{way}/{of}/1"))?])
                    };
                    let [least, median] = pair("seconds")?;
                    let (source, replica) = (pair("source_processor_seconds")?, pair("replica_processor_seconds")?);
                    let processor = |[least, median]: [f64; 2]| format!("{least:.1}, {median:.1}");
                    let (source, replica) = (processor(source), processor(replica));
                    let _ = writeln!(table, "| {links} | {way} | {least:.1} | {median:.1} | {source} | {replica} |");
                }
            }
            Ok(table)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::Stored;
    use super::*;
    use crate::tree::Tree;
    use serde_json::json;

    #[test]
    fn figures_of_one_value_have_no_least() {
        let figure = |what: &str, count: usize| {
            json!({ "what": what, "unit": "ms", "least": 1.0, "median": 2.0, "p99": 30.0, "most": 4000.0,
                    "count": count })
        };
        let table = of_figures(&[figure("a", 1), json!([figure("b", 9)])]).unwrap();
        assert!(table.ends_with("\n| a | ms |  | 2.00 |  |  | 1 |\n| b | ms | 1.00 | 2.00 | 30.0 | 4,000 | 9 |\n"));
        assert!(of_figures(&[json!([])]).is_err());
    }

    #[test]
    fn levels_are_a_column_for_each_selection_of_paths() {
        let figure = |what: &str, ratio: f64| serde_json::to_value(Figure::of(what, "", [ratio])).unwrap();
        let all = json!([figure("ring: ECMP", 1.001), figure("ring: placed", 1.0), figure("tree: ECMP", 0.918)]);
        assert!(of_levels(&[all]).unwrap_err().to_string().contains("other paths"));
        let all = json!([figure("ring: ECMP", 1.001), figure("ring: placed", 1.0)]);
        let table = "| collective | ECMP | placed |\n|---|---:|---:|\n| `ring` | +0.1 % | +0.0 % |\n";
        assert_eq!(of_levels(&[all]).unwrap(), table);
        assert!(of_levels(&[json!([])]).is_err());
    }

    #[test]
    fn a_peer_that_is_not_measured_makes_no_table() {
        let pair = |least: f64, median: f64| json!({ "least": least, "median": median });
        let row = json!({ "peer": "VPP 26.10", "case": "End", "unit": "clocks", "rounds": 25, "ours": pair(80.0, 100.0),
                          "theirs": pair(180.0, 200.0), "theirs_through_ours": pair(2.25, 2.0) });
        let table = of_peers(&[row]).unwrap();
        assert!(
            table.ends_with("\n| VPP 26.10 | End | clocks | 80.0, 100 | 180, 200 | 2.25 | 2.00 | 25 |\n"),
            "{table}"
        );
        assert!(of_peers(&[json!({ "peer": "VPP", "is_measured": false })]).is_err());
    }

    /// The outages of scenarios are those of the labs, in whole milliseconds around them.
    #[test]
    fn measured_outages_of_scenarios_are_those_of_the_result() {
        let tree = Tree::of_repository().unwrap();
        let stored = Stored::of_tree(&tree, "recovery").unwrap().unwrap();
        let figures = stored.steps.iter().flat_map(|(_, result)| rows(result));
        let figures: Vec<Figure> = figures.map(|figure| serde_json::from_value(figure.clone()).unwrap()).collect();
        for (file, begin) in [("frr", "dead spine"), ("bfd-transit", "dead transit node")] {
            let path = format!("scenarios/measured/{file}.toml");
            let text = std::fs::read_to_string(Tree::root().join(&path)).unwrap();
            let outages = text.parse::<toml::Table>().unwrap()["outage_us"].as_array().unwrap().clone();
            let outages: Vec<i64> = outages.iter().map(|outage| outage.as_integer().unwrap()).collect();
            let measured = figures.iter().filter(|figure| figure.what.starts_with(begin));
            let of = |value: f64, round: fn(f64) -> f64| round(value) as i64 * 1000;
            let least = measured.clone().map(|figure| of(figure.least, f64::floor)).min().unwrap();
            let most = measured.map(|figure| of(figure.most, f64::ceil)).max().unwrap();
            assert_eq!(outages, [least, most], "{path}: outage_us of docs/results/recovery.json");
        }
    }

    #[test]
    fn ways_are_rows_for_each_rate() {
        let way = |seconds: f64| {
            let pair = json!([seconds, seconds + 1.0]);
            json!({ "seconds": pair, "source_processor_seconds": pair, "replica_processor_seconds": pair })
        };
        let lines = json!([{ "round": 1 }, { "gloo": way(50.0), "srdma": way(13.0) }]);
        let table = (gloo().table)(&[lines.clone(), lines]).unwrap();
        assert!(table.contains("\n| 200 Mbit/s | gloo | 50.0 | 51.0 | 50.0, 51.0 | 50.0, 51.0 |\n"), "{table}");
        assert!(table.ends_with("\n| no limit | srdma | 13.0 | 14.0 | 13.0, 14.0 | 13.0, 14.0 |\n"), "{table}");
    }
}
