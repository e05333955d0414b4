//! Distance of placements on the shipped fabrics from the bound, and the loads under ECMP for the same flows.
//!
//! ```sh
//! cargo run --release -p srdma-placement --example gap
//! ```

use srdma_fabric::{NextHops, NodeId, Topology};
use srdma_placement::{Clos, Flow, Loads, Placement, ecmp, jobs_from_toml};
use std::path::Path;
use std::time::Instant;

const SEEDS: u64 = 21;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fabrics");
    println!(
        "{:<13} {:<14} {:>6} {:>8} {:>8} {:>7} {:>7} {:>9}",
        "fabric", "flows of", "flows", "load", "bound", "gap %", "ECMP", "ms"
    );
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix("-jobs.toml").map(str::to_owned));
    }
    names.sort_unstable();
    for name in names {
        let topology = Topology::from_toml(&std::fs::read_to_string(folder.join(format!("{name}.toml")))?)?;
        let text = std::fs::read_to_string(folder.join(format!("{name}-jobs.toml")))?;
        let kind = if Clos::recognise(&topology).is_ok() { "" } else { "*" };
        let mut all: Vec<Flow> = Vec::new();
        for job in jobs_from_toml(&text, &topology)? {
            for collective in &job.collectives {
                let ports = job.nics.iter().flat_map(|nic| topology.ports(NodeId::Host(*nic)));
                let rate = ports.map(|port| topology.links()[port.link.index()].rate_bits_per_s).min().unwrap_or(0);
                let flows = job.flows(collective, rate);
                report(&format!("{name}{kind}"), &collective.name, &topology, &flows)?;
                all.extend(flows);
            }
        }
        report(&format!("{name}{kind}"), "all at once", &topology, &all)?;
    }
    println!("* no folded Clos");
    Ok(())
}

fn report(name: &str, of: &str, topology: &Topology, flows: &[Flow]) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let placement = Placement::new(topology, flows)?;
    let time_ms = start.elapsed().as_secs_f64() * 1e3;
    let (load, bound) = (placement.most_loaded().1, placement.bound());
    let next_hops = NextHops::new(topology);
    let hashed = |seed: u64| {
        let mut loads = Loads::none(topology);
        for (number, flow) in (0..).zip(flows) {
            loads.add(topology, &ecmp(topology, &next_hops, [flow.from, flow.to], number, seed), flow.rate_bits_per_s);
        }
        loads.most_loaded(topology).1
    };
    let mut hashes: Vec<f64> = (1..=SEEDS).map(hashed).collect();
    hashes.sort_by(f64::total_cmp);
    let (gap, median) = (100.0 * (load / bound - 1.0).max(0.0), hashes[hashes.len() / 2]);
    let flows = flows.len();
    println!("{name:<13} {of:<14} {flows:>6} {load:>8.4} {bound:>8.4} {gap:>7.2} {median:>7.3} {time_ms:>9.1}");
    Ok(())
}
