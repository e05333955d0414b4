//! Fluids against a slow model: rates by the definition of max-min fairness, transfers by small steps of time.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric_sim::max_min::{PipeId, Pipes};
use srdma_wire::units::GBIT_PER_S;

/// Lets everything go: what has gone, and when in nanoseconds.
fn run(pipes: &mut Pipes<u32>) -> Vec<(u32, f64)> {
    let (mut gone, mut ends) = (Vec::new(), Vec::new());
    pipes.settle(0);
    while let Some(now_ps) = pipes.next_ps() {
        pipes.take_gone(now_ps, &mut gone);
        ends.extend(gone.drain(..).map(|(_, what)| (what, now_ps as f64 / 1000.0)));
        pipes.settle(now_ps);
    }
    ends
}

/// By hand, at 8 Gbit/s, an octet a nanosecond: A and B share a link; A's second transfer waits for its first; C is
/// alone.
#[test]
fn a_link_is_shared_and_a_pipe_goes_on() {
    let mut pipes: Pipes<u32> = Pipes::new([8 * GBIT_PER_S; 4]);
    let [a, b, c] = [&[0, 1][..], &[2, 1], &[3]].map(|links| pipes.add(links));
    pipes.send(0, a, 500.0, 1);
    pipes.send(0, a, 500.0, 2);
    pipes.send(0, b, 1500.0, 3);
    pipes.send(0, c, 700.0, 4);
    // A's 1,000 take 2,000 ns at half; B has 500 left then.
    assert_eq!(run(&mut pipes), [(4, 700.0), (1, 1000.0), (2, 2000.0), (3, 2500.0)]);
}

/// By hand: a pipe whose link fails waits, and goes on elsewhere with what is left.
#[test]
fn what_waits_goes_on_elsewhere() {
    let mut pipes: Pipes<u32> = Pipes::new([8 * GBIT_PER_S; 3]);
    let pipe = pipes.add(&[0, 1]);
    pipes.send(0, pipe, 1000.0, 1);
    pipes.settle(0);
    pipes.shut(400_000, pipe);
    pipes.settle(400_000);
    assert_eq!(pipes.next_ps(), None);
    pipes.send(600_000, pipe, 100.0, 2);
    pipes.lay(900_000, pipe, &[0, 2]);
    pipes.settle(900_000);
    assert_eq!(pipes.links(pipe).collect::<Vec<u32>>(), [0, 2]);
    let mut gone = Vec::new();
    assert_eq!(pipes.next_ps(), Some(1_500_000));
    pipes.take_gone(1_500_000, &mut gone);
    assert_eq!((gone, pipes.next_ps()), (vec![(PipeId(0), 1)], Some(1_600_000)));
}

/// Rates by definition: they grow in small steps, each until one of its links is full.
fn slow_rates(capacities: &[f64], routes: &[Vec<u32>], in_use: &[bool]) -> Vec<f64> {
    const STEP: f64 = 1e-2;
    let mut rates = vec![0.0; routes.len()];
    let mut grows: Vec<bool> = in_use.to_vec();
    while grows.contains(&true) {
        for pipe in 0..routes.len() {
            if grows[pipe] {
                rates[pipe] += STEP;
            }
        }
        let mut loads = vec![0.0; capacities.len()];
        routes.iter().zip(&rates).for_each(|(route, rate)| route.iter().for_each(|link| loads[*link as usize] += rate));
        let is_full = |link: &u32| loads[*link as usize] >= capacities[*link as usize] - STEP / 2.0;
        (0..routes.len()).for_each(|pipe| grows[pipe] &= !routes[pipe].iter().any(is_full));
    }
    rates
}

/// Random networks and transfers that begin and end: each transfer ends when small steps of time say so.
#[test]
fn transfers_end_when_small_steps_say_so() {
    for seed in 0..30 {
        let mut chance = Pcg64Mcg::seed_from_u64(seed);
        let links = chance.random_range(2..8_u32);
        let rates: Vec<u64> = (0..links).map(|_| chance.random_range(1..5)).collect();
        let capacities: Vec<f64> = rates.iter().map(|rate| *rate as f64).collect();
        let mut pipes: Pipes<u32> = Pipes::new(rates.iter().map(|rate| rate * 8 * GBIT_PER_S));
        let mut routes: Vec<Vec<u32>> = Vec::new();
        let mut left: Vec<f64> = Vec::new();
        for number in 0..chance.random_range(2..8) {
            let mut all: Vec<u32> = (0..links).collect();
            all.shuffle(&mut chance);
            all.truncate(chance.random_range(1..4));
            let pipe = pipes.add(&all);
            let octets = f64::from(chance.random_range(500..2000));
            pipes.send(0, pipe, octets, number);
            routes.push(all);
            left.push(octets);
        }
        let mut expected = vec![0.0; left.len()];
        let mut now = 0.0;
        while left.iter().any(|left| *left > 0.0) {
            let in_use: Vec<bool> = left.iter().map(|left| *left > 0.0).collect();
            let rates = slow_rates(&capacities, &routes, &in_use);
            now += 1.0;
            for pipe in 0..left.len() {
                if left[pipe] > 0.0 {
                    left[pipe] -= rates[pipe];
                    expected[pipe] = now;
                }
            }
        }
        for (what, at) in run(&mut pipes) {
            let expected = expected[what as usize];
            // Steps of a nanosecond, and of a hundredth in the rates.
            assert!((at - expected).abs() < 12.0 + expected * 0.02, "seed {seed}: {what} at {at}, not {expected}");
        }
    }
}
