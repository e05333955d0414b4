//! Repair by loss, receivers, buffer and variant, as JSON: the result `repair-sweep` of `cargo xtask evidence`, which
//! draws the plots of `docs/multicast.md` from it.
//!
//! `cargo run --release -p srdma-cli --example repair_sweep`

use serde::Serialize;
use srdma_group::{ListMode, RepairMode};
use srdma_random::{Probability, Stream};
use srdma_sim::fabric::Headend;
use srdma_sim::topology::Topology;
use srdma_sim::transfer::TransferConfig;
use srdma_sim::{LinkModel, Multicast};
use std::error::Error;
use std::sync::Arc;

const LOSSES_PER_MILLION: [u32; 6] = [0, 100, 300, 1_000, 3_000, 10_000];
/// Loss of the sweep over buffers.
const LOSS_OF_BUFFERS_PER_MILLION: u32 = 3_000;

/// What repairs, and where the headend is.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Variant {
    Off,
    Edge,
    Tree,
    /// The first node is on the source's host.
    TreeHostHeadend,
}

impl Variant {
    const ALL: [Variant; 4] = [Variant::Off, Variant::Edge, Variant::Tree, Variant::TreeHostHeadend];

    fn repair(self) -> (RepairMode, Headend) {
        match self {
            Variant::Off => (RepairMode::Off, Headend::FirstHop),
            Variant::Edge => (RepairMode::Edge, Headend::FirstHop),
            Variant::Tree => (RepairMode::Tree, Headend::FirstHop),
            Variant::TreeHostHeadend => (RepairMode::Tree, Headend::Host),
        }
    }
}

/// A tree, and what is sent through it.
#[derive(Clone, Copy, Debug, Serialize)]
struct Load {
    receivers: u16,
    size_octets: u32,
    window_packets: u32,
}

const LOADS: [(Load, &[u64]); 3] = [
    (Load { receivers: 5, size_octets: 64 << 20, window_packets: 64 }, &[1, 2, 3, 4, 5]),
    (Load { receivers: 64, size_octets: 16 << 20, window_packets: 64 }, &[1, 2, 3]),
    (Load { receivers: 1_024, size_octets: 4 << 20, window_packets: 128 }, &[1]),
];

/// One run.
#[derive(Clone, Debug, Serialize)]
struct Run {
    #[serde(flatten)]
    load: Load,
    variant: Variant,
    buffer_packets: u32,
    loss_per_million: u32,
    seed: u64,
    source_octets: u64,
    completion_ns: u64,
    link_octets: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut runs = Vec::new();
    for (load, seeds) in LOADS {
        let data = random(load.size_octets as usize);
        for (variant, loss_per_million) in
            Variant::ALL.iter().flat_map(|variant| LOSSES_PER_MILLION.map(|loss| (*variant, loss)))
        {
            for seed in seeds_of(loss_per_million, seeds) {
                runs.push(run(load, variant, load.window_packets, loss_per_million, *seed, &data)?);
            }
        }
        if load.receivers != 5 {
            continue;
        }
        for eighths in [1, 2, 4, 6, 7, 9, 12, 16] {
            for seed in seeds {
                let buffer = load.window_packets * eighths / 8;
                runs.push(run(load, Variant::Tree, buffer, LOSS_OF_BUFFERS_PER_MILLION, *seed, &data)?);
            }
        }
    }
    println!("{}", serde_json::to_string(&runs)?);
    Ok(())
}

/// Without loss all seeds give the same.
fn seeds_of(loss_per_million: u32, seeds: &[u64]) -> &[u64] {
    if loss_per_million == 0 { &seeds[..1] } else { seeds }
}

fn run(
    load: Load,
    variant: Variant,
    buffer_packets: u32,
    loss_per_million: u32,
    seed: u64,
    data: &Arc<Vec<u8>>,
) -> Result<Run, Box<dyn Error>> {
    let base = TransferConfig::figure_1();
    let topology = if load.receivers == 5 { None } else { Topology::balanced(usize::from(load.receivers)) };
    let loss = Probability::new(f64::from(loss_per_million) / 1e6).ok_or("the loss is no probability")?;
    let (repair, headend) = variant.repair();
    let config = TransferConfig {
        topology: topology.unwrap_or_else(Topology::figure_1),
        link: LinkModel { loss, ..base.link },
        lists: ListMode::Auto,
        unlimited_retries: true,
        window_packets: Some(load.window_packets),
        buffer_packets: Some(buffer_packets),
        seed,
        repair,
        headend,
        ..base
    };
    let outcome = Multicast::new(config, Arc::clone(data))?.run(&mut |_| {})?;
    assert!(outcome.is_good(), "{load:?}, {variant:?}, seed {seed}: {:?}", outcome.first_violation);
    let result = Run {
        load,
        variant,
        buffer_packets,
        loss_per_million,
        seed,
        source_octets: outcome.source.egress_octets,
        completion_ns: outcome.completion_ns.ok_or("the run did not end")?,
        link_octets: outcome.links.iter().map(|link| link.down_octets + link.up_octets).sum(),
    };
    eprintln!(
        "{} receivers, {:?}, buffer {buffer_packets}, loss {loss_per_million} per million, seed {seed}: {} us",
        load.receivers,
        variant,
        result.completion_ns / 1_000
    );
    Ok(result)
}

fn random(size: usize) -> Arc<Vec<u8>> {
    let mut data = vec![0; size];
    Stream::new(1, "data").fill(&mut data);
    Arc::new(data)
}
