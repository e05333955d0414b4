//! Loads of paths against a slow model, which keeps every report and every sample (D242).

use srdma_aggregation::{BranchIndex, LinkSample, PathLoads};
use srdma_testkit::random::Random;
use srdma_wire::Instant;
use std::time::Duration;

/// All that a node was told, in order.
#[derive(Default)]
struct Model {
    reports: Vec<(u64, u16, u32)>,
    samples: Vec<(u16, LinkSample)>,
}

impl Model {
    fn last_report(&self, branch: u16) -> Option<(u64, u32)> {
        self.reports.iter().rev().find(|(_, of, _)| *of == branch).map(|(at, _, load)| (*at, *load))
    }

    /// Whether a report counts, and whether it is that of the most loaded path: of equal ones the first branch's.
    fn report(&mut self, interval: u64, branches: u16, at: u64, branch: u16, load: u32) -> Option<bool> {
        if branch >= branches || self.last_report(branch).is_some_and(|(last, _)| at < last + interval / 2) {
            return None;
        }
        self.reports.push((at, branch, load));
        let fresh = (0..branches).filter_map(|of| {
            let (last, load) = self.last_report(of)?;
            (at < last + 2 * interval).then_some((load, std::cmp::Reverse(of)))
        });
        Some(fresh.max() == Some((load, std::cmp::Reverse(branch))))
    }

    /// The load between this sample and the last one that counts, in thousandths of the link's rate.
    fn measure(&mut self, interval: u64, branch: u16, sample: LinkSample) -> f64 {
        let of_branch = |skip: usize| self.samples.iter().rev().filter(|(of, _)| *of == branch).nth(skip);
        let Some((_, last)) = of_branch(0).copied() else {
            self.samples.push((branch, sample));
            return 0.0;
        };
        if 2 * sample.at.since(last.at).as_nanos() < u128::from(interval) {
            return of_branch(1).map_or(0.0, |(_, earlier)| load(*earlier, last, interval));
        }
        self.samples.push((branch, sample));
        load(last, sample, interval)
    }
}

fn load(earlier: LinkSample, later: LinkSample, interval: u64) -> f64 {
    let octets_in = |ns: f64| later.rate_bits_per_s as f64 / 8e9 * ns;
    let sent = (later.sent_octets - earlier.sent_octets) as f64;
    let elapsed = later.at.since(earlier.at).as_nanos() as f64;
    1000.0 * (sent / octets_in(elapsed) + later.queued_octets as f64 / octets_in(interval as f64))
}

#[test]
fn loads_of_paths_are_the_models() {
    for seed in 0..srdma_testkit::seeds::count(300) {
        let mut random = Random::new(seed);
        let interval = 1_000 + random.below(20_000);
        let branches = 1 + random.below(6) as u16;
        let mut loads = PathLoads::new(Duration::from_nanos(interval), branches.into());
        let (mut model, mut at, mut sent, mut next_due) = (Model::default(), 0, 0, 0);
        for _ in 0..200 {
            at += random.below(interval);
            let (now, branch) = (Instant::from_ns(at), random.below(u64::from(branches) + 1) as u16);
            let is_due = at >= next_due;
            if is_due {
                next_due = at + interval;
            }
            assert_eq!(loads.is_due(now), is_due, "seed {seed}");
            // Few loads, so that many are equal.
            let reported = 100 * random.below(8) as u32;
            let expected = model.report(interval, branches, at, branch, reported);
            assert_eq!(loads.report(now, BranchIndex(branch), reported), expected, "seed {seed}, {at} ns");
            if branch < branches {
                sent += random.below(1 << 20);
                let rate_bits_per_s = [100_000_000_000, 25_000_000_000, 1][random.below(3) as usize];
                let queued_octets = random.below(1 << 18);
                let sample = LinkSample { at: now, sent_octets: sent, queued_octets, rate_bits_per_s };
                let measured = loads.measure(BranchIndex(branch), sample).expect("there is such a branch").load;
                let expected = model.measure(interval, branch, sample);
                let is_near = (f64::from(measured) - expected).abs() <= 1.0 + expected * 1e-9;
                assert!(is_near || (measured == u32::MAX && expected > 4e9), "seed {seed}: {measured}, {expected}");
            }
        }
    }
}

/// No counter and no setting is too great.
#[test]
fn loads_are_bounded() {
    let greatest = |at, sent_octets| LinkSample {
        at: Instant::from_ns(at),
        sent_octets,
        queued_octets: u64::MAX,
        rate_bits_per_s: u64::MAX,
    };
    for interval in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(86_400), Duration::MAX] {
        for rate_bits_per_s in [0, 1, u64::MAX] {
            let mut loads = PathLoads::new(interval, 1);
            loads.measure(BranchIndex(0), LinkSample { rate_bits_per_s, ..greatest(0, 0) });
            let later = LinkSample { rate_bits_per_s, ..greatest(u64::MAX, u64::MAX) };
            assert!(loads.measure(BranchIndex(0), later).is_some());
            assert!(loads.is_due(Instant::from_ns(u64::MAX)));
            assert_eq!(loads.report(Instant::from_ns(u64::MAX), BranchIndex(0), u32::MAX), Some(true));
        }
    }
}
