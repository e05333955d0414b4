//! Runs one variant of a scenario with one seed and prints the time that it took.
//!
//! ```sh
//! cargo run --release -p srdma-fabric-sim --example experiment -- FILE [VARIANT [SEED [THREADS [RATE_INTERVAL]]]]
//! ```
//!
//! With `--json`, and with `--rounds=N`, which runs it several times, it prints the times alone, as JSON. With
//! `--skip-steady` steady states are skipped.

use serde_json::json;
use srdma_fabric_sim::{Scenario, run_observed};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let (options, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let (mut rounds, mut is_json, mut skip_steady) = (1_u32, false, false);
    for option in &options {
        match option.split_once('=') {
            None if option == "--json" => is_json = true,
            None if option == "--skip-steady" => skip_steady = true,
            Some(("--rounds", number)) => (rounds, is_json) = (number.parse()?, true),
            _ => return Err(format!("{option}: expected --json, --skip-steady or --rounds=N").into()),
        }
    }
    let file = arguments.first().ok_or("which scenario? expected a file")?;
    let mut scenario = match Scenario::read(Path::new(file))? {
        Scenario::Fabric(scenario) => scenario,
        other => return Err(format!("kind {}: expected fabric or flow-level", other.kind()).into()),
    };
    let variant = match arguments.get(1) {
        Some(name) => scenario.variant(name).ok_or_else(|| format!("there is no variant {name}"))?,
        None => scenario.baseline(),
    };
    let seed = arguments.get(2).map_or(Ok(1), |seed| seed.parse())?;
    let threads = arguments.get(3).map_or(Ok(1), |threads| threads.parse())?;
    arguments.get(4).map_or(Ok(()), |share| scenario.set_rate_interval(share.parse().map_err(|_| share.as_str())?))?;
    scenario.set_skip_steady(skip_steady)?;
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..rounds.max(1) {
        let begin = Instant::now();
        let result = run_observed(&scenario, variant, seed, threads, &mut |_| {}, None)?;
        times.push(begin.elapsed().as_secs_f64());
        last = Some(result);
    }
    let result = last.ok_or("no round")?;
    times.sort_unstable_by(f64::total_cmp);
    let (least, median) = (times[0], times[times.len() / 2]);
    if is_json {
        let mut row = json!({ "scenario": file, "variant": result.variant, "seed": seed, "threads": threads });
        row["skip_steady"] = json!(skip_steady);
        row["rate_interval"] = json!(scenario.rate_interval);
        row["rounds"] = json!(times.len());
        row["seconds_least"] = json!(least);
        row["seconds_median"] = json!(median);
        row["packet_hops"] = json!(result.packet_hops);
        row["simulated_ns"] = json!(result.simulated_ns);
        println!("{row}");
        return Ok(());
    }
    let millions = result.packet_hops as f64 / 1e6;
    println!(
        "{}: {least:.2} s, {millions:.2} million packet-hops, {:.2} million a second; {:.1} us simulated",
        result.variant,
        millions / least,
        result.simulated_ns as f64 / 1e3
    );
    println!("{:#?}\n{:#?}", result.totals, result.summary);
    Ok(())
}
