//! The tables of `docs/multicast.md`: how the default rules compare with the draft's literal ones, and multicast with
//! unicast.
//!
//! `cargo run --release -p srdma-sim --example ablation`

use srdma_group::{ListMode, Rules};
use srdma_random::{Probability, Stream};
use srdma_sim::baseline::{self, Algorithm};
use srdma_sim::transfer::{Outcome, TransferConfig};
use srdma_sim::{LinkModel, Multicast, SetupError};
use std::error::Error;
use std::sync::Arc;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
const LOSSES: [f64; 3] = [0.0, 0.001, 0.01];

fn main() -> Result<(), Box<dyn Error>> {
    rules()?;
    println!();
    ways()
}

/// How the responses are aggregated, whether retransmissions are pruned, and where the receiver lists are.
fn rules() -> Result<(), Box<dyn Error>> {
    let columns = [
        "loss",
        "rules",
        "retransmissions go to",
        "receiver lists",
        "ACKs at source",
        "NAKs at source",
        "sent by receivers",
        "packets sent again",
        "copies to receivers",
        "completion, ms",
    ];
    println!("| {} |", columns.join(" | "));
    println!("|---|---|---|---|---:|---:|---:|---:|---:|---:|");
    let data = random(64 << 20);
    for loss in LOSSES {
        for (rules, rules_name) in [(Rules::Default, "default"), (Rules::Literal, "literal")] {
            for (prune_retransmit, to) in [(false, "all"), (true, "those that lack them")] {
                for (lists, lists_name) in [(ListMode::Tlv, "TLV"), (ListMode::Provisioned, "provisioned")] {
                    let choice = TransferConfig { rules, prune_retransmit, lists, ..TransferConfig::figure_1() };
                    let means = means(&choice, loss, &data)?;
                    println!("| {} | {rules_name} | {to} | {lists_name} | {means} |", percent(loss));
                }
            }
        }
    }
    Ok(())
}

/// Multicast and the baselines, by size of the data.
fn ways() -> Result<(), Box<dyn Error>> {
    println!("| data | loss | multicast, µs | unicast | chain | binomial |");
    println!("|---|---|---:|---:|---:|---:|");
    for (size, name) in [(64 << 10, "64 KiB"), (1 << 20, "1 MiB"), (64 << 20, "64 MiB")] {
        let data = random(size);
        for loss in LOSSES {
            let multicast = mean(loss, |scenario| Ok(multicast(scenario, &data)?.completion_ns))?;
            print!("| {name} | {} | {:.1} |", percent(loss), multicast / 1e3);
            for algorithm in Algorithm::ALL {
                let (time, chunk) = best(algorithm, loss, &data)?;
                print!(" {:.1} ({:.2} ×, chunks of {} KiB) |", time / 1e3, time / multicast, chunk >> 10);
            }
            println!();
        }
    }
    Ok(())
}

/// Mean completion time at the chunk size where it is least, and that size.
fn best(algorithm: Algorithm, loss: f64, data: &Arc<Vec<u8>>) -> Result<(f64, u32), SetupError> {
    let mut best = (f64::INFINITY, 0);
    for chunk in algorithm.chunk_sizes(data.len() as u64, TransferConfig::figure_1().path_mtu.octets()) {
        let time =
            mean(loss, |scenario| Ok(baseline::run(algorithm, chunk, scenario, data, &mut |_| {})?.completion_ns))?;
        if time < best.0 {
            best = (time, chunk);
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

/// The cells of a row of the first table.
fn means(choice: &TransferConfig, loss: f64, data: &Arc<Vec<u8>>) -> Result<String, SetupError> {
    let outcomes: Result<Vec<Outcome>, SetupError> =
        SEEDS.iter().map(|seed| multicast(&with_faults(choice, loss, *seed), data)).collect();
    let outcomes = outcomes?;
    let mean = |value: fn(&Outcome) -> u64| outcomes.iter().map(value).sum::<u64>() as f64 / SEEDS.len() as f64;
    let counts = [
        mean(|outcome| outcome.source.acks_received),
        mean(|outcome| outcome.source.naks_received),
        mean(|outcome| outcome.receivers.iter().map(|receiver| receiver.acks_sent + receiver.naks_sent).sum()),
        mean(|outcome| outcome.source.packets_retransmitted),
        mean(|outcome| outcome.frames_to_receivers),
    ];
    let time = mean(|outcome| outcome.completion_ns.unwrap_or(u64::MAX));
    let counts = counts.map(|count| format!("{count:.0}")).join(" | ");
    Ok(format!("{counts} | {:.2}", time / 1e6))
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

fn percent(loss: f64) -> String {
    format!("{} %", loss * 100.0)
}
