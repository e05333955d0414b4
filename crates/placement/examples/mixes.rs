//! Distance from the bound of placements of random mixes of jobs on the shipped fabrics with hosts at two leaves: one
//! to three jobs, some with NICs at random, of one to four collectives each, all at once.
//!
//! ```sh
//! cargo run --release -p srdma-placement --example mixes
//! ```

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{NodeId, Topology};
use srdma_placement::{Flow, Placement, jobs_from_toml};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

const MIXES: usize = 200;
const KINDS: [&str; 5] = ["all-reduce-ring", "all-reduce-tree", "all-gather", "all-to-all", "send-recv"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fabrics");
    for fabric in ["dual-homed", "dual-plane"] {
        let topology = Topology::from_toml(&std::fs::read_to_string(folder.join(format!("{fabric}.toml")))?)?;
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let (mut gaps, mut longest_ms) = (Vec::new(), 0.0_f64);
        for _ in 0..MIXES {
            let jobs = jobs_from_toml(&mix(&topology, &mut random)?, &topology)?;
            let listed = jobs.iter().flat_map(|job| job.wanted(&topology, |_| true));
            let flows: Vec<Flow> = listed.map(|listed| listed.flow).collect();
            if flows.is_empty() {
                continue;
            }
            let start = Instant::now();
            let placement = Placement::new(&topology, &flows)?;
            longest_ms = longest_ms.max(start.elapsed().as_secs_f64() * 1e3);
            gaps.push(placement.most_loaded().1 / placement.bound() - 1.0);
        }
        gaps.sort_by(f64::total_cmp);
        let within = |gap: f64| gaps.iter().filter(|own| **own < gap).count();
        let (count, met, near, most) = (gaps.len(), within(1e-6), within(0.05), 100.0 * gaps[gaps.len() - 1]);
        let times = format!("longest {longest_ms:.0} ms");
        println!("{fabric}: {count} mixes, {met} at the bound, {near} within 5 % of it, most {most:.1} %; {times}");
    }
    Ok(())
}

/// The text of a job file.
fn mix(topology: &Topology, random: &mut Pcg64Mcg) -> Result<String, std::fmt::Error> {
    let mut nics: Vec<String> =
        topology.host_ids().map(|host| format!("\"{}\"", topology.name(NodeId::Host(host)))).collect();
    if random.random_bool(0.5) {
        nics.shuffle(random);
    }
    let jobs = random.random_range(1..4);
    let each = nics.len() / jobs;
    let mut text = String::new();
    for job in 0..jobs {
        // A multiple of every size of tensor groups.
        let own = nics[job * each..][..each / 4 * 4].join(", ");
        let tensor = 1 << random.random_range(0..3);
        writeln!(text, "[[job]]\nname = \"j{job}\"\nnics = [{own}]\ntensor = {tensor}")?;
        for _ in 0..random.random_range(1..5) {
            let kind = KINDS[random.random_range(0..KINDS.len())];
            let group = ["all", "data", "tensor"][random.random_range(0..3)];
            writeln!(text, "[[job.collective]]\nkind = \"{kind}\"\ngroup = \"{group}\"")?;
        }
    }
    Ok(text)
}
