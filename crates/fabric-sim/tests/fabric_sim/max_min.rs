//! Flow-level rates and transfers compared with a slow model: rates by the definition of max-min fairness, transfers by
//! small steps of time.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric_sim::max_min::{FlowId, Flows};
use srdma_wire::units::GBIT_PER_S;

/// Lets everything go: what has completed, and when in nanoseconds.
fn run(flows: &mut Flows<u32>) -> Vec<(u32, f64)> {
    let (mut completed, mut ends) = (Vec::new(), Vec::new());
    flows.settle(0);
    while let Some(now_ps) = flows.next_ps() {
        flows.take_completed(now_ps, &mut completed);
        ends.extend(completed.drain(..).map(|(_, what)| (what, now_ps as f64 / 1000.0)));
        flows.settle(now_ps);
    }
    ends
}

/// By hand, at 8 Gbit/s, an octet a nanosecond: A and B share a link; A's second transfer waits for its first; C is
/// alone.
#[test]
fn a_link_is_shared_and_a_pipe_goes_on() {
    let mut flows: Flows<u32> = Flows::new([8 * GBIT_PER_S; 4]);
    let [a, b, c] = [&[0, 1][..], &[2, 1], &[3]].map(|links| flows.add(links));
    flows.send(0, a, 500.0, 1);
    flows.send(0, a, 500.0, 2);
    flows.send(0, b, 1500.0, 3);
    flows.send(0, c, 700.0, 4);
    // A's 1,000 take 2,000 ns at half; B has 500 left then.
    assert_eq!(run(&mut flows), [(4, 700.0), (1, 1000.0), (2, 2000.0), (3, 2500.0)]);
}

/// By hand: a flow whose link fails waits, and goes on elsewhere with what is left.
#[test]
fn waiting_flows_continue_elsewhere() {
    let mut flows: Flows<u32> = Flows::new([8 * GBIT_PER_S; 3]);
    let flow = flows.add(&[0, 1]);
    flows.send(0, flow, 1000.0, 1);
    flows.settle(0);
    flows.block(400_000, flow);
    flows.settle(400_000);
    assert_eq!(flows.next_ps(), None);
    flows.send(600_000, flow, 100.0, 2);
    flows.reroute(900_000, flow, &[0, 2]);
    flows.settle(900_000);
    assert_eq!(flows.links(flow).collect::<Vec<u32>>(), [0, 2]);
    let mut completed = Vec::new();
    assert_eq!(flows.next_ps(), Some(1_500_000));
    flows.take_completed(1_500_000, &mut completed);
    assert_eq!((completed, flows.next_ps()), (vec![(FlowId(0), 1)], Some(1_600_000)));
}

/// Rates by definition: they grow in small steps, each until one of its links is full.
fn slow_rates(capacities: &[f64], routes: &[Vec<u32>], in_use: &[bool]) -> Vec<f64> {
    const STEP: f64 = 1e-2;
    let mut rates = vec![0.0; routes.len()];
    let mut grows: Vec<bool> = in_use.to_vec();
    while grows.contains(&true) {
        for flow in 0..routes.len() {
            if grows[flow] {
                rates[flow] += STEP;
            }
        }
        let mut loads = vec![0.0; capacities.len()];
        routes.iter().zip(&rates).for_each(|(route, rate)| route.iter().for_each(|link| loads[*link as usize] += rate));
        let is_full = |link: &u32| loads[*link as usize] >= capacities[*link as usize] - STEP / 2.0;
        (0..routes.len()).for_each(|flow| grows[flow] &= !routes[flow].iter().any(is_full));
    }
    rates
}

/// Random networks and transfers that begin and end: each transfer ends at the time that small steps give.
#[test]
fn transfers_end_as_with_small_steps() {
    for seed in 0..30 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let links = rng.random_range(2..8_u32);
        let rates: Vec<u64> = (0..links).map(|_| rng.random_range(1..5)).collect();
        let capacities: Vec<f64> = rates.iter().map(|rate| *rate as f64).collect();
        let mut flows: Flows<u32> = Flows::new(rates.iter().map(|rate| rate * 8 * GBIT_PER_S));
        let mut routes: Vec<Vec<u32>> = Vec::new();
        let mut left: Vec<f64> = Vec::new();
        for number in 0..rng.random_range(2..8) {
            let mut all: Vec<u32> = (0..links).collect();
            all.shuffle(&mut rng);
            all.truncate(rng.random_range(1..4));
            let flow = flows.add(&all);
            let octets = f64::from(rng.random_range(500..2000));
            flows.send(0, flow, octets, number);
            routes.push(all);
            left.push(octets);
        }
        let mut expected = vec![0.0; left.len()];
        let mut now = 0.0;
        while left.iter().any(|left| *left > 0.0) {
            let in_use: Vec<bool> = left.iter().map(|left| *left > 0.0).collect();
            let rates = slow_rates(&capacities, &routes, &in_use);
            now += 1.0;
            for flow in 0..left.len() {
                if left[flow] > 0.0 {
                    left[flow] -= rates[flow];
                    expected[flow] = now;
                }
            }
        }
        for (what, at) in run(&mut flows) {
            let expected = expected[what as usize];
            // Steps of a nanosecond, and of a hundredth in the rates.
            assert!((at - expected).abs() < 12.0 + expected * 0.02, "seed {seed}: {what} at {at}, not {expected}");
        }
    }
}
