//! The demo at small size, seed after seed: whatever is lost, repeated or overtaken, every receiver gets every octet,
//! and no false response reaches the source (MT-5.3.1-1, MT-5.3.2-1, MT-5.3-1, MT-3-1, MT-3-2, D3, D7, D17, D22, D28).
//!
//! `SRDMA_TEST_SEEDS` is the number of seeds.

use sha2::{Digest, Sha256};
use srdma_group::{ListMode, RepairMode, Rules};
use srdma_random::{Probability, Stream};
use srdma_sim::fabric::Headend;
use srdma_sim::replica::Sha256Digest;
use srdma_sim::retransmission::Retransmission;
use srdma_sim::topology::Topology;
use srdma_sim::transfer::{Branching, Operation, Outcome, ReceiverOutcome, TransferConfig};
use srdma_sim::{LinkModel, Multicast};
use srdma_wire::{Instant, PathMtu, Psn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const DEFAULT_SEEDS: u64 = 500;

/// The most that is lost, repeated or overtaken, in millionths.
const MOST_FAULTS_PPM: u64 = 50_000;

/// Far more than any of these runs takes.
const TIME_LIMIT_NS: u64 = 10_000_000_000;

fn choose<T: Copy>(rng: &mut Stream, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// A probability up to 5 %; none at all in a third of the cases.
fn fault(rng: &mut Stream) -> Probability {
    let ppm = if rng.below(3) == 0 { 0 } else { rng.below(MOST_FAULTS_PPM + 1) };
    Probability::new(ppm as f64 / 1e6).unwrap()
}

fn scenario(seed: u64) -> (TransferConfig, Vec<u8>) {
    let rng = &mut Stream::new(seed, "scenario");
    // Streams of their own: the rest of a scenario does not depend on repair and retransmission.
    let retransmissions = [Retransmission::GoBackN, Retransmission::Selective, Retransmission::Mixed];
    let retransmission = choose(&mut Stream::new(seed, "retransmission"), &retransmissions);
    let repair = choose(&mut Stream::new(seed, "repair"), &[RepairMode::Off, RepairMode::Edge, RepairMode::Tree]);
    let generated = Topology::balanced(1 + rng.below(20) as usize).unwrap();
    let topology = if rng.below(2) == 0 { Topology::figure_1() } else { generated };
    let link = LinkModel {
        rate_bits_per_s: choose(rng, &[1, 10, 100]) * 1_000_000_000,
        delay_ns: rng.below(5000),
        loss: fault(rng),
        duplicate: fault(rng),
        reorder: fault(rng),
    };
    let scenario = TransferConfig {
        topology,
        seed,
        link,
        link_mtu: 9000,
        path_mtu: choose(rng, &PathMtu::ALL),
        message_octets: 1 + rng.below(30_000) as u32,
        first_psn: Psn::new(0).minus(rng.below(40) as u32),
        operation: choose(rng, &[Operation::Write, Operation::Send]),
        branching: choose(rng, &[Branching::Replicate, Branching::Multicast, Branching::Mixed]),
        headend: choose(rng, &[Headend::FirstHop, Headend::Host]),
        lists: choose(rng, &[ListMode::Tlv, ListMode::Provisioned, ListMode::Auto]),
        rules: choose(rng, &[Rules::Default, Rules::Default, Rules::Literal]),
        repair,
        window_packets: None,
        buffer_packets: None,
        prune_retransmit: rng.below(4) == 0,
        // Under the literal rules each NAK of each receiver spends a retry; what matters here is that all ends well.
        unlimited_retries: true,
        retransmission,
        time_limit: Instant::from_ns(TIME_LIMIT_NS),
    };
    let packets = 20 + rng.below(80);
    let mut data = vec![0; (packets * u64::from(scenario.path_mtu.octets()) + rng.below(256)) as usize];
    rng.fill(&mut data);
    (scenario, data)
}

fn run(seed: u64) -> Outcome {
    let (scenario, data) = scenario(seed);
    let mut multicast = Multicast::new(scenario, Arc::new(data)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    multicast.run(&mut |_| {}).unwrap()
}

/// The failed check of a seed, if there is one.
fn failure_of(seed: u64) -> Option<String> {
    let outcome = run(seed);
    let named = |text: String| Some(format!("seed {seed}: {text}"));
    if let Some(violation) = outcome.first_violation {
        return named(format!("{} violations, the first {violation}", outcome.invariant_violations));
    }
    if outcome.completion_ns.is_none() {
        let octets: Vec<u64> = outcome.receivers.iter().map(|receiver| receiver.octets).collect();
        return named(format!("not complete, failure {:?}, octets there {octets:?}", outcome.failure));
    }
    if outcome.chunks_in_use != 0 {
        return named(format!("{} chunks still held", outcome.chunks_in_use));
    }
    let (_, data) = scenario(seed);
    let sha256: Sha256Digest = Sha256::digest(&data).into();
    let differs = |receiver: &&ReceiverOutcome| receiver.sha256 != sha256 || receiver.octets != data.len() as u64;
    match outcome.receivers.iter().find(differs) {
        Some(receiver) => named(format!("the data of {} differ", receiver.name)),
        None if outcome.source.sha256 != sha256 => named("the source's digest is wrong".to_owned()),
        None => None,
    }
}

#[test]
fn every_receiver_gets_every_octet() {
    let seeds = srdma_testkit::seeds::count(DEFAULT_SEEDS);
    let next = AtomicU64::new(0);
    let work = || std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let failures: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| work().filter_map(failure_of).collect::<Vec<_>>())).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} of {seeds} seeds:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn one_seed_has_one_outcome() {
    for seed in [1, 2, 3] {
        assert_eq!(run(seed), run(seed));
    }
    assert_ne!(run(1), run(2));
}
