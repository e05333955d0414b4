//! Repair by loss, receivers, buffer and variant: the results behind the plots and the table of `docs/multicast.md`.
//!
//! `cargo run --release -p srdma-cli --example repair_sweep -- run docs/results/repair-sweep.json`
//! `cargo run --release -p srdma-cli --example repair_sweep -- plot docs/results/repair-sweep.json docs/images`

use serde::{Deserialize, Serialize};
use srdma_group::{ListMode, RepairMode};
use srdma_random::{Probability, Stream};
use srdma_report::{Axis, LinePlot, Reference, Scale, Series, Shape, Unit};
use srdma_sim::fabric::Headend;
use srdma_sim::topology::Topology;
use srdma_sim::transfer::TransferConfig;
use srdma_sim::{LinkModel, Multicast};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

const COMMAND: &str = "cargo run --release -p srdma-cli --example repair_sweep -- run docs/results/repair-sweep.json";
const LOSSES_PER_MILLION: [u32; 6] = [0, 100, 300, 1_000, 3_000, 10_000];
/// Loss of the sweep over buffers.
const LOSS_OF_BUFFERS_PER_MILLION: u32 = 3_000;

/// What repairs, and where the headend is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

    fn name(self) -> &'static str {
        match self {
            Variant::Off => "without repair",
            Variant::Edge => "edges repair",
            Variant::Tree => "all nodes repair",
            Variant::TreeHostHeadend => "all nodes, headend on the source's host",
        }
    }

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    source_timeouts: u64,
    packets_resent_by_nodes: u64,
    windows_exceeded: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Results {
    command: String,
    runs: Vec<Run>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", file] => sweep(Path::new(file)),
        ["plot", file, directory] => plot(&serde_json::from_slice(&std::fs::read(file)?)?, Path::new(directory)),
        _ => Err("usage: repair_sweep run FILE | repair_sweep plot FILE DIRECTORY".into()),
    }
}

/// All runs, written to a file.
fn sweep(file: &Path) -> Result<(), Box<dyn Error>> {
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
    let results = Results { command: COMMAND.to_owned(), runs };
    std::fs::write(file, serde_json::to_string_pretty(&results)? + "\n")?;
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
        source_timeouts: outcome.source.timeouts,
        packets_resent_by_nodes: outcome.repair.packets_resent,
        windows_exceeded: outcome.repair.windows_exceeded,
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

/// Means of a configuration's seeds over its run without loss.
#[derive(Clone, Copy, Debug, Default)]
struct Ratios {
    source: f64,
    completion: f64,
    links: f64,
}

/// By load, variant, buffer and loss.
fn ratios(results: &Results) -> BTreeMap<(Load, Variant, u32, u32), Ratios> {
    let lossless = |run: &Run| {
        results
            .runs
            .iter()
            .find(|base| base.loss_per_million == 0 && base.load == run.load && base.variant == run.variant)
    };
    let mut sums: BTreeMap<_, (Ratios, f64)> = BTreeMap::new();
    for run in &results.runs {
        let Some(base) = lossless(run) else { continue };
        let (sum, count) = sums.entry((run.load, run.variant, run.buffer_packets, run.loss_per_million)).or_default();
        sum.source += run.source_octets as f64 / base.source_octets as f64;
        sum.completion += run.completion_ns as f64 / base.completion_ns as f64;
        sum.links += run.link_octets as f64 / base.link_octets as f64;
        *count += 1.0;
    }
    let mean = |(sum, count): (Ratios, f64)| Ratios {
        source: sum.source / count,
        completion: sum.completion / count,
        links: sum.links / count,
    };
    sums.into_iter().map(|(key, sum)| (key, mean(sum))).collect()
}

/// Writes the plots, and prints the table.
fn plot(results: &Results, directory: &Path) -> Result<(), Box<dyn Error>> {
    let ratios = ratios(results);
    println!("| receivers | loss | variant | source egress | completion | octets on all links |");
    println!("|---:|---:|---|---:|---:|---:|");
    for ((load, variant, buffer, loss), means) in &ratios {
        if *loss > 0 && *buffer == load.window_packets {
            println!(
                "| {} | {} % | {} | {:.3} | {:.3} | {:.3} |",
                load.receivers,
                f64::from(*loss) / 1e4,
                variant.name(),
                means.source,
                means.completion,
                means.links
            );
        }
    }
    for (load, _) in LOADS {
        type Value = fn(&Ratios) -> f64;
        let quantities: [(&str, &str, Value); 2] = [
            ("source", "octets of the source", |means| means.source),
            ("completion", "completion", |means| means.completion),
        ];
        for (file, name, value) in quantities {
            let series = Variant::ALL.iter().enumerate().map(|(colour, variant)| Series {
                name: variant.name().to_owned(),
                colour,
                shape: Shape::Line,
                points: ratios
                    .iter()
                    .filter(|((of, by, buffer, loss), _)| {
                        (of, by) == (&load, variant) && *buffer == load.window_packets && *loss > 0
                    })
                    .map(|((_, _, _, loss), means)| (f64::from(*loss) / 1e4, value(means)))
                    .collect(),
            });
            let plot = LinePlot {
                title: format!("{} receivers: {name}, over no loss", load.receivers),
                look_for: String::new(),
                x: Axis { scale: Scale::Logarithmic, ..Axis::new("loss on each link and direction", Unit::Percent) },
                y: Axis { scale: Scale::Logarithmic, least: Some(1.0), ..Axis::new(name, Unit::Times) },
                series: series.collect(),
                references: Vec::new(),
            };
            std::fs::write(directory.join(format!("repair-{file}-{}.svg", load.receivers)), plot.svg())?;
        }
    }
    let (load, _) = LOADS[0];
    let of_buffers: Vec<_> = ratios
        .iter()
        .filter(|((of, variant, _, loss), _)| {
            (of, variant, *loss) == (&load, &Variant::Tree, LOSS_OF_BUFFERS_PER_MILLION)
        })
        .map(|((_, _, buffer, _), means)| (f64::from(*buffer), *means))
        .collect();
    let series = |name: &str, colour: usize, value: fn(&Ratios) -> f64| Series {
        name: name.to_owned(),
        colour,
        shape: Shape::Line,
        points: of_buffers.iter().map(|(buffer, means)| (*buffer, value(means))).collect(),
    };
    let off = ratios.get(&(load, Variant::Off, load.window_packets, LOSS_OF_BUFFERS_PER_MILLION));
    let plot = LinePlot {
        title: format!("5 receivers, 0.3 % loss, window {}", load.window_packets),
        look_for: String::new(),
        x: Axis::new("buffer, packets", Unit::Count),
        y: Axis { least: Some(1.0), ..Axis::new("over no loss", Unit::Times) },
        series: vec![
            series("octets of the source", 0, |means| means.source),
            series("completion", 1, |means| means.completion),
        ],
        references: off
            .map(|off| Reference { name: "completion without repair".to_owned(), value: off.completion })
            .into_iter()
            .collect(),
    };
    std::fs::write(directory.join("repair-buffer.svg"), plot.svg())?;
    Ok(())
}
