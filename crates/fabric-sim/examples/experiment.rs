//! Runs one variant of a scenario with one seed and prints the time that it took.
//!
//! ```sh
//! cargo run --release -p srdma-fabric-sim --example experiment -- FILE [VARIANT [SEED [THREADS [RATE_INTERVAL]]]]
//! ```

use srdma_fabric_sim::{Scenario, run_observed};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
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
    let begin = Instant::now();
    let result = run_observed(&scenario, variant, seed, threads, &mut |_| {}, None)?;
    let seconds = begin.elapsed().as_secs_f64();
    let millions = result.packet_hops as f64 / 1e6;
    println!(
        "{}: {seconds:.2} s, {millions:.2} million packet-hops, {:.2} million a second; {:.1} us simulated",
        result.variant,
        millions / seconds,
        result.simulated_ns as f64 / 1e3
    );
    println!("{:#?}\n{:#?}", result.totals, result.summary);
    Ok(())
}
