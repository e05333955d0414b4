//! Time to place 65,536 flows on 4,096 NICs below three tiers: sixteen permutations at once.
//!
//! ```sh
//! cargo run --release -p srdma-placement --example place
//! ```

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{FatTree, HostId, LinkId, NextHops, Speeds};
use srdma_figures::report;
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
    assert_eq!(choices.len(), flows.len());
    report(format!("placing {} flows on {hosts} NICs", flows.len()), "ms", times_ms);

    let mut placement = Placement::new(&topology, &flows)?;
    report("bound of the load", "", [clos.bound(&topology, &flows)]);
    report("load, placed", "", [placement.most_loaded().1]);
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
    report("load with ECMP, by hash", "", (1..=ROUNDS as u64).map(hashed));
    let [mut drained_ms, mut released_ms, mut added_ms] = [const { Vec::new() }; 3];
    let [mut moved_by_drain, mut moved_by_release, mut loads] = [const { Vec::new() }; 3];
    for round in 0..ROUNDS as u32 {
        let name = format!("core{}.1", round + 1);
        let ports = topology.node(&name).map(|core| topology.ports(core)).unwrap_or_default();
        let core: Vec<LinkId> = ports.iter().map(|port| port.link).collect();
        let start = Instant::now();
        let moved = placement.drain(&core)?.len();
        drained_ms.push(start.elapsed().as_secs_f64() * 1e3);
        moved_by_drain.push(moved as f64);
        loads.push(placement.most_loaded().1);
        let start = Instant::now();
        let moved = placement.release(&core).len();
        released_ms.push(start.elapsed().as_secs_f64() * 1e3);
        moved_by_release.push(moved as f64);
        loads.push(placement.most_loaded().1);
        placement.remove(FlowId(round));
        let start = Instant::now();
        placement.add(flows[round as usize])?;
        added_ms.push(start.elapsed().as_secs_f64() * 1e3);
        loads.push(placement.most_loaded().1);
    }
    report("draining a core switch", "ms", drained_ms);
    report("flows that it moves", "", moved_by_drain);
    report("releasing it", "ms", released_ms);
    report("flows that the release moves", "", moved_by_release);
    report("adding a flow", "ms", added_ms);
    report("load after each change", "", loads);
    Ok(())
}
