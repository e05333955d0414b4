//! `srdma demo`: one RDMA stream through a simulated network to every receiver, checked.

mod arguments;
mod progress;
mod report;
pub(crate) mod table;
mod text;

pub(crate) use arguments::Arguments;

use crate::output;
use anyhow::{Context, Result, bail};
use progress::Progress;
use report::Report;
use srdma_group::Group;
use srdma_random::Stream;
use srdma_recording::Recorder;
use srdma_sim::baseline::{self, Algorithm, BaselineOutcome};
use srdma_sim::transfer::{Outcome, TransferConfig};
use srdma_sim::{Multicast, PeriodicObserver, SnapshotInterval};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run and its outcome.
struct Run<'a> {
    scenario: &'a TransferConfig,
    group: &'a Group,
    size_octets: u64,
    loss: f64,
    outcome: &'a Outcome,
    compare: &'a [BaselineOutcome],
    /// Wall-clock time of the simulation.
    wall: Duration,
}

/// Runs the demo. Exit code 1: a receiver's data differ, or a response acknowledged more than a receiver has.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let begin = Instant::now();
    let data = Arc::new(data(arguments)?);
    let scenario = arguments.scenario();
    let mut multicast = Multicast::new(scenario.clone(), Arc::clone(&data))?;
    if let Some(directory) = &arguments.pcap {
        capture(&mut multicast, directory)?;
    }
    let mut progress = Progress::new("multicast", data.len() as u64);
    let simulation_begin = Instant::now();
    let outcome = simulate(arguments, &mut multicast, &mut progress)?;
    let wall = simulation_begin.elapsed();
    progress.finish();
    let compare = compare(&arguments.algorithms(), &scenario, &data)?;
    let run = Run {
        scenario: &scenario,
        group: multicast.group(),
        size_octets: data.len() as u64,
        loss: arguments.loss,
        outcome: &outcome,
        compare: &compare,
        wall,
    };
    if arguments.json {
        output::print_json(&Report::new(&run, begin.elapsed()))?;
    } else {
        output::print(&run.to_string())?;
    }
    Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the transfer, and records it with `--record`.
fn simulate(arguments: &Arguments, multicast: &mut Multicast, progress: &mut Progress) -> Result<Outcome> {
    let report = &mut |octets| progress.report(octets);
    let Some(path) = &arguments.record else {
        return multicast.run(report).context("cannot write a capture");
    };
    let scenario = arguments.scenario();
    let title = format!("srdma demo, {} receivers, seed {}", scenario.topology.receivers().len(), scenario.seed);
    let mut recorder = Recorder::create(path, title).with_context(|| format!("cannot create {}", path.display()))?;
    let mut observer = PeriodicObserver::new(&mut recorder, SnapshotInterval::Fixed(arguments.record_every));
    let outcome = multicast.run_observed(report, Some(&mut observer));
    let outcome = outcome.with_context(|| format!("cannot write a capture or {}", path.display()))?;
    recorder.finish().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(outcome)
}

fn data(arguments: &Arguments) -> Result<Vec<u8>> {
    if let Some(path) = &arguments.file {
        let data = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        if data.is_empty() {
            bail!("{} is empty: there must be at least one octet to send", path.display());
        }
        return Ok(data);
    }
    let mut data = Vec::new();
    let size = usize::try_from(arguments.size).ok().filter(|size| data.try_reserve_exact(*size).is_ok());
    let Some(size) = size else {
        bail!("--size: this machine's memory does not hold {} octets", arguments.size);
    };
    data.resize(size, 0);
    Stream::new(arguments.seed, "data").fill(&mut data);
    Ok(data)
}

/// Opens a capture for each link; removes all if one cannot be opened.
fn capture(multicast: &mut Multicast, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut opened = Vec::new();
    let result = multicast.capture(|link| {
        let path = directory.join(format!("{link}.pcapng"));
        let file = File::create(&path)?;
        opened.push(path);
        Ok(Box::new(BufWriter::new(file)) as Box<dyn Write>)
    });
    if result.is_err() {
        for path in opened {
            // The error of the capture is reported, not that of the removal.
            let _ = fs::remove_file(path);
        }
    }
    result.with_context(|| format!("cannot write captures to {}", directory.display()))
}

/// Runs each algorithm with several chunk sizes and returns its fastest run.
fn compare(algorithms: &[Algorithm], scenario: &TransferConfig, data: &Arc<Vec<u8>>) -> Result<Vec<BaselineOutcome>> {
    let mut outcomes = Vec::new();
    // The window of each connection's own path, and the group's, whichever is better.
    let own = TransferConfig { window_packets: None, ..scenario.clone() };
    let mut scenarios = vec![own];
    scenarios.extend(scenario.window_packets.is_some().then(|| scenario.clone()));
    for algorithm in algorithms {
        let sizes = algorithm.chunk_sizes(data.len() as u64, scenario.path_mtu.octets());
        let configurations: Vec<_> = scenarios
            .iter()
            .flat_map(|scenario| sizes.iter().map(move |chunk_octets| (scenario, *chunk_octets)))
            .collect();
        let mut progress = Progress::new(algorithm.name(), configurations.len() as u64 * data.len() as u64);
        let mut runs = Vec::new();
        for (before, (scenario, chunk_octets)) in (0..).zip(configurations) {
            let mut report = |octets| progress.report(before * data.len() as u64 + octets);
            runs.push(baseline::run(*algorithm, chunk_octets, scenario, data, &mut report)?);
        }
        progress.finish();
        let best = runs.into_iter().min_by_key(|run| run.completion_ns.unwrap_or(u64::MAX));
        let best = best.context("no chunk size was tried")?;
        if best.completion_ns.is_some() && !best.is_identical {
            bail!("{}: all is acknowledged, but a receiver's data differ", algorithm.name());
        }
        outcomes.push(best);
    }
    Ok(outcomes)
}
