//! Results behind tables of `docs/multicast.md`, as JSON: the default rules beside the draft's literal ones, and
//! multicast beside unicast algorithms.
//!
//! `cargo run --release -p srdma-cli --example ablation -- rules`
//! `cargo run --release -p srdma-cli --example ablation -- algorithms`

use serde::Serialize;
use srdma_group::{ListMode, Rules};
use srdma_random::{Probability, Stream};
use srdma_sim::baseline::{self, Algorithm};
use srdma_sim::transfer::{Outcome, TransferConfig};
use srdma_sim::{LinkModel, Multicast, SetupError};
use std::error::Error;
use std::sync::Arc;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
const LOSSES: [f64; 3] = [0.0, 0.001, 0.01];

/// Means over the seeds of a group's transfer.
#[derive(Serialize)]
struct OfRules {
    loss: f64,
    rules: &'static str,
    prune_retransmit: bool,
    lists: &'static str,
    acks_at_source: f64,
    naks_at_source: f64,
    responses_of_receivers: f64,
    packets_retransmitted: f64,
    copies_to_receivers: f64,
    completion_ns: f64,
}

/// Mean times over the seeds, of a group and of each algorithm.
#[derive(Serialize)]
struct OfAlgorithms {
    octets: usize,
    loss: f64,
    multicast_ns: f64,
    algorithms: Vec<OfAlgorithm>,
}

#[derive(Serialize)]
struct OfAlgorithm {
    algorithm: &'static str,
    /// The chunk size at which it takes least.
    chunk_octets: u32,
    completion_ns: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rules"] => println!("{}", serde_json::to_string(&rules()?)?),
        ["algorithms"] => println!("{}", serde_json::to_string(&algorithms()?)?),
        _ => return Err("usage: ablation rules | algorithms".into()),
    }
    Ok(())
}

/// How the responses are aggregated, whether retransmissions are pruned, and where the receiver lists are.
fn rules() -> Result<Vec<OfRules>, Box<dyn Error>> {
    let data = random(64 << 20);
    let mut rows = Vec::new();
    for loss in LOSSES {
        for rules in [Rules::Default, Rules::Literal] {
            for prune_retransmit in [false, true] {
                for lists in [ListMode::Tlv, ListMode::Provisioned] {
                    let choice = TransferConfig { rules, prune_retransmit, lists, ..TransferConfig::figure_1() };
                    eprintln!("loss {loss}, {rules:?}, {lists:?}, pruned: {prune_retransmit}");
                    rows.push(means(&choice, loss, &data)?);
                }
            }
        }
    }
    Ok(rows)
}

/// Multicast and the unicast algorithms, by size of the data.
fn algorithms() -> Result<Vec<OfAlgorithms>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for octets in [64 << 10, 1 << 20, 64 << 20] {
        let data = random(octets);
        for loss in LOSSES {
            eprintln!("{octets} octets, loss {loss}");
            let multicast_ns = mean(loss, |scenario| Ok(multicast(scenario, &data)?.completion_ns))?;
            let of = |algorithm| best(algorithm, loss, &data);
            let algorithms = Algorithm::ALL.into_iter().map(of).collect::<Result<_, SetupError>>()?;
            rows.push(OfAlgorithms { octets, loss, multicast_ns, algorithms });
        }
    }
    Ok(rows)
}

/// Mean completion time at the chunk size where it is least, and that size.
fn best(algorithm: Algorithm, loss: f64, data: &Arc<Vec<u8>>) -> Result<OfAlgorithm, SetupError> {
    let mut best = OfAlgorithm { algorithm: algorithm.name(), chunk_octets: 0, completion_ns: f64::INFINITY };
    for chunk_octets in algorithm.chunk_sizes(data.len() as u64, TransferConfig::figure_1().path_mtu.octets()) {
        let run = |scenario: &TransferConfig| baseline::run(algorithm, chunk_octets, scenario, data, &mut |_| {});
        let completion_ns = mean(loss, |scenario| Ok(run(scenario)?.completion_ns))?;
        if completion_ns < best.completion_ns {
            best = OfAlgorithm { chunk_octets, completion_ns, ..best };
        }
    }
    Ok(best)
}

/// Mean of a time over the seeds, in nanoseconds; endless when one of the runs never ended.
fn mean(loss: f64, mut run: impl FnMut(&TransferConfig) -> Result<Option<u64>, SetupError>) -> Result<f64, SetupError> {
    let mut sum = 0.0;
    for seed in SEEDS {
        let time = run(&with_faults(&TransferConfig::figure_1(), loss, seed))?;
        sum += time.map_or(f64::INFINITY, |ns| ns as f64);
    }
    Ok(sum / SEEDS.len() as f64)
}

/// A row of the rules.
fn means(choice: &TransferConfig, loss: f64, data: &Arc<Vec<u8>>) -> Result<OfRules, SetupError> {
    let outcomes: Result<Vec<Outcome>, SetupError> =
        SEEDS.iter().map(|seed| multicast(&with_faults(choice, loss, *seed), data)).collect();
    let outcomes = outcomes?;
    let mean = |value: fn(&Outcome) -> u64| outcomes.iter().map(value).sum::<u64>() as f64 / SEEDS.len() as f64;
    let responses = |outcome: &Outcome| outcome.receivers.iter().map(|of| of.acks_sent + of.naks_sent).sum();
    Ok(OfRules {
        loss,
        rules: if choice.rules == Rules::Default { "default" } else { "literal" },
        prune_retransmit: choice.prune_retransmit,
        lists: if choice.lists == ListMode::Tlv { "TLV" } else { "provisioned" },
        acks_at_source: mean(|outcome| outcome.source.acks_received),
        naks_at_source: mean(|outcome| outcome.source.naks_received),
        responses_of_receivers: mean(responses),
        packets_retransmitted: mean(|outcome| outcome.source.packets_retransmitted),
        copies_to_receivers: mean(|outcome| outcome.frames_to_receivers),
        completion_ns: mean(|outcome| outcome.completion_ns.unwrap_or(u64::MAX)),
    })
}

/// A run that must end well: what is measured is the price, not the result.
fn multicast(scenario: &TransferConfig, data: &Arc<Vec<u8>>) -> Result<Outcome, SetupError> {
    let outcome = Multicast::new(scenario.clone(), Arc::clone(data))?.run(&mut |_| {}).expect("there is no capture");
    assert!(outcome.is_good(), "seed {}: {:?}", scenario.seed, outcome.first_violation);
    Ok(outcome)
}

fn with_faults(choice: &TransferConfig, loss: f64, seed: u64) -> TransferConfig {
    let loss = Probability::new(loss).expect("the table's losses are probabilities");
    let link = LinkModel { loss, ..choice.link };
    TransferConfig { link, seed, unlimited_retries: true, ..choice.clone() }
}

fn random(size: usize) -> Arc<Vec<u8>> {
    let mut data = vec![0; size];
    Stream::new(1, "data").fill(&mut data);
    Arc::new(data)
}
