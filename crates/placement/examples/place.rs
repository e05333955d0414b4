//! How long it takes to place 65,536 flows on 4,096 NICs below three tiers: sixteen permutations at once.
//!
//! ```sh
//! cargo run --release -p srdma-placement --example place
//! ```

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{FatTree, HostId, Speeds};
use srdma_placement::{Clos, Flow, Loads};
use std::time::Instant;

const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let topology = FatTree { tiers: 3, k: 32, pods: Some(16), speeds: Speeds::DEFAULT }.topology()?;
    let clos = Clos::recognise(&topology)?;
    let hosts = topology.hosts().len() as u32;
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut flows = Vec::new();
    for _ in 0..16 {
        let mut to: Vec<u32> = (0..hosts).collect();
        to.shuffle(&mut random);
        let pairs = (0..).zip(to).filter(|(from, to)| from != to);
        let rate_bits_per_s = Speeds::DEFAULT.host_rate_bits_per_s / 16;
        flows.extend(pairs.map(|(from, to)| Flow { from: HostId(from), to: HostId(to), rate_bits_per_s }));
    }
    let mut times_ms = Vec::new();
    let mut choices = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        choices = clos.place(&flows);
        times_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times_ms.sort_by(f64::total_cmp);
    let mut loads = Loads::none(&topology);
    for (flow, choice) in flows.iter().zip(&choices) {
        if let Some(path) = clos.path(flow, *choice) {
            loads.add(&topology, &path, flow.rate_bits_per_s);
        }
    }
    let (_, load) = loads.most_loaded(&topology);
    println!("{} flows on {hosts} NICs: load {load:.4}, bound {:.4}", flows.len(), clos.bound(&topology, &flows));
    println!("placed in {:.1} ms least, {:.1} ms median of {ROUNDS}", times_ms[0], times_ms[ROUNDS / 2]);
    Ok(())
}
