//! Time to place 65,536 flows on 4,096 NICs below three tiers: sixteen permutations at once.
//!
//! ```sh
//! cargo run --release -p srdma-placement --example place
//! ```

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{FatTree, HostId, LinkId, NextHops, Speeds};
use srdma_placement::{Clos, Flow, FlowId, Loads, Placement, ecmp};
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
    report(format!("{} flows on {hosts} NICs placed", flows.len()), times_ms);
    println!("{} choices, bound {:.4}", choices.len(), clos.bound(&topology, &flows));

    let mut placement = Placement::new(&topology, &flows)?;
    println!("load {:.4}, bound {:.4}", placement.most_loaded().1, placement.bound());
    let next_hops = NextHops::new(&topology);
    let hashed = |seed: u64| {
        let mut loads = Loads::none(&topology);
        for (number, flow) in (0..).zip(&flows) {
            loads.add(
                &topology,
                &ecmp(&topology, &next_hops, [flow.from, flow.to], number, seed),
                flow.rate_bits_per_s,
            );
        }
        loads.most_loaded(&topology).1
    };
    let hashes: Vec<f64> = (1..=ROUNDS as u64).map(hashed).collect();
    println!("ECMP {hashes:.4?}");
    let (mut drained_ms, mut released_ms, mut added_ms) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS as u32 {
        let name = format!("core{}.1", round + 1);
        let ports = topology.node(&name).map(|core| topology.ports(core)).unwrap_or_default();
        let core: Vec<LinkId> = ports.iter().map(|port| port.link).collect();
        let start = Instant::now();
        let moved = placement.drain(&core)?.len();
        drained_ms.push(start.elapsed().as_secs_f64() * 1e3);
        println!("drained {name}: {moved} flows moved, load {:.4}", placement.most_loaded().1);
        let start = Instant::now();
        let moved = placement.release(&core).len();
        released_ms.push(start.elapsed().as_secs_f64() * 1e3);
        println!("released: {moved} flows moved, load {:.4}", placement.most_loaded().1);
        placement.remove(FlowId(round));
        let start = Instant::now();
        let (_, moved) = placement.add(flows[round as usize])?;
        added_ms.push(start.elapsed().as_secs_f64() * 1e3);
        println!("removed and added: {} flows moved, load {:.4}", moved.len(), placement.most_loaded().1);
    }
    report("drained".to_owned(), drained_ms);
    report("released".to_owned(), released_ms);
    report("added".to_owned(), added_ms);
    Ok(())
}

fn report(what: String, mut times_ms: Vec<f64>) {
    times_ms.sort_by(f64::total_cmp);
    println!("{what}: {:.1} ms least, {:.1} ms median of {ROUNDS}", times_ms[0], times_ms[ROUNDS / 2]);
}
