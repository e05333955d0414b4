//! HPCC++'s window beside the reference, over random feedback from links whose counters and clocks wrap.

use crate::support::Traced;
use proptest::prelude::*;
use srdma_rc::RateControl;
use srdma_rc::rate::{Event, Hpcc, HpccParameters, Origin, Recovery};
use srdma_testkit::hpcc::{Feedback, Parameters, Sample, state_at};
use srdma_wire::Instant;
use srdma_wire::ioam::LinkLoad;
use std::net::Ipv6Addr;

const LINE: u64 = 100_000_000_000;
const NAMESPACE: u16 = 77;
const LINKS: usize = 5;

fn reference_parameters(parameters: &HpccParameters) -> Parameters {
    let seconds = parameters.base_rtt_ns as f64 / 1e9;
    Parameters {
        line: parameters.line_rate_bits_per_s as f64 / 8.0,
        t: seconds,
        eta: parameters.eta,
        max_stage: parameters.max_stage,
        w_ai: parameters.additive_increase_octets as f64,
        least_w: parameters.min_rate_bits_per_s as f64 / 8.0 * seconds,
        u_noticed: parameters.notified_utilisation,
        recovery: parameters.recovery.map(|recovery| (recovery.interval_ns, recovery.step_octets as f64)),
    }
}

/// A link over time: it sends at a part of its rate, and its clock has any initial value.
#[derive(Clone, Copy, Debug)]
struct Link {
    mbit_per_s: u32,
    clock_offset_ns: u64,
    sent_offset: u64,
    sent: u64,
}

#[derive(Clone, Debug)]
struct Step {
    wait_ns: u64,
    /// Of each link, how full it was in thousandths, and what waits.
    links: Vec<(u64, u32)>,
    first: usize,
    count: usize,
    kind: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![6 => 100u64..20_000, 2 => Just(0u64), 1 => 20_000u64..2_000_000];
    let link = (0u64..1_100, prop_oneof![2 => Just(0u32), 1 => 0u32..300_000]);
    let step = (wait, prop::collection::vec(link, LINKS), 0usize..LINKS, 0usize..=LINKS, 0u8..10)
        .prop_map(|(wait_ns, links, first, count, kind)| Step { wait_ns, links, first, count, kind });
    prop::collection::vec(step, 1..60)
}

fn links() -> impl Strategy<Value = Vec<Link>> {
    let rate = prop_oneof![Just(25_000u32), Just(100_000), Just(400_000)];
    let link = (rate, any::<u32>(), 0..LinkLoad::MODULUS).prop_map(|(mbit_per_s, clock, sent_offset)| Link {
        mbit_per_s,
        clock_offset_ns: clock.into(),
        sent_offset,
        sent: 0,
    });
    prop::collection::vec(link, LINKS)
}

fn parameters() -> impl Strategy<Value = HpccParameters> {
    let recovery = prop_oneof![
        Just(None),
        (5_000u64..100_000, 50u64..5_000)
            .prop_map(|(interval_ns, step_octets)| Some(Recovery { interval_ns, step_octets })),
    ];
    (4_000u64..30_000, 0u32..7, recovery).prop_map(|(base_rtt_ns, max_stage, recovery)| HpccParameters {
        max_stage,
        recovery,
        ..HpccParameters::published(LINE, base_rtt_ns, NAMESPACE)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_window_equals_that_of_the_reference(parameters in parameters(), mut links in links(), steps in steps()) {
        let reference_parameters = reference_parameters(&parameters);
        let mut hpcc = Hpcc::new(parameters).expect("good parameters");
        let mut history: Vec<Feedback> = Vec::new();
        let mut now_ns: u64 = 0;
        for step in steps {
            now_ns += step.wait_ns;
            for (link, (thousandths, _)) in links.iter_mut().zip(&step.links) {
                link.sent += u64::from(link.mbit_per_s) * step.wait_ns / 8_000 * thousandths / 1_000;
            }
            let now = Instant::from_ns(now_ns);
            let mut feedback = Feedback { at_ns: now_ns, links: Vec::new(), is_notice: step.kind < 2 };
            let mut traced = Traced::new(NAMESPACE);
            for number in (step.first..LINKS).take(step.count) {
                let (link, waiting) = (links[number], step.links[number].1);
                traced.hop(
                    number as u32,
                    ((now_ns + link.clock_offset_ns) % 1_000_000_000) as u32,
                    waiting,
                    LinkLoad { rate_mbit_per_s: link.mbit_per_s, sent_octets: link.sent + link.sent_offset },
                );
                let rate = f64::from(link.mbit_per_s) * 1e6 / 8.0;
                let waiting = waiting.into();
                feedback.links.push(Sample { link: number, at_ns: now_ns, sent: link.sent, waiting, rate });
            }
            // The newest node stands first in a trace, and the fullest link is the first of equals.
            feedback.links.reverse();
            let octets = traced.octets();
            let trace = traced.trace(&octets);
            let event = match step.kind {
                0 => Event::FastCnp { origin: Origin::Switch(Ipv6Addr::LOCALHOST), trace: Some(trace), rate_bits_per_s: None },
                1 => Event::Cnp,
                _ => Event::FastCnp { origin: Origin::Receiver, trace: Some(trace), rate_bits_per_s: None },
            };
            if step.kind == 1 {
                feedback.links.clear();
            }
            hpcc.on(now, event);
            history.push(feedback);
            let expected = state_at(&reference_parameters, &history, now_ns);
            let is_close = |found: f64, expected: f64| (found - expected).abs() <= 1e-6 * expected.max(1.0);
            prop_assert!(is_close(hpcc.utilisation(), expected.u), "U {}, {expected:?}", hpcc.utilisation());
            prop_assert!(is_close(hpcc.window(), expected.w), "W {}, {expected:?} at {now_ns}", hpcc.window());
        }
        now_ns += 3_000_000;
        hpcc.on(Instant::from_ns(now_ns), Event::Timer);
        let expected = state_at(&reference_parameters, &history, now_ns);
        prop_assert!((hpcc.window() - expected.w).abs() <= 1e-6 * expected.w, "{expected:?} after a long silence");
    }
}
