//! DCQCN's trajectory beside the reference, which computes each answer from the whole history.

use proptest::prelude::*;
use srdma_rc::RateControl;
use srdma_rc::rate::{AlphaUpdate, Dcqcn, DcqcnParameters, Event, TargetUpdate};
use srdma_testkit::dcqcn::{Happened, Letters, answer};
use srdma_wire::Instant;

const LINE: u64 = 100_000_000_000;

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    Send(u32),
    Cnp,
}

fn letters(parameters: &DcqcnParameters) -> Letters {
    Letters {
        line: parameters.line_rate_bits_per_s as f64,
        least: parameters.min_rate_bits_per_s as f64,
        g: parameters.g,
        first_alpha: parameters.initial_alpha,
        k_ns: parameters.alpha_interval_ns,
        alpha_by_period: parameters.alpha_update == AlphaUpdate::EveryPeriod,
        cut_interval_ns: parameters.decrease_interval_ns,
        keeps_target: parameters.target_update == TargetUpdate::AfterTimerIncrease,
        t_ns: parameters.increase_timer_ns,
        b_octets: parameters.octets_per_increase,
        f: parameters.fast_recovery_increases as usize,
        r_ai: parameters.additive_increase_bits_per_s as f64,
        r_hai: parameters.hyper_increase_bits_per_s as f64,
        is_released: parameters.released_at_line_rate,
    }
}

fn parameters() -> impl Strategy<Value = DcqcnParameters> {
    let preset = prop_oneof![
        Just(DcqcnParameters::sigcomm_2015(LINE)),
        Just(DcqcnParameters::connectx(LINE)),
        Just(DcqcnParameters::hpcc_vendor(LINE)),
        Just(DcqcnParameters::hpcc_paper(LINE)),
    ];
    let octets = prop_oneof![Just(None), (10_000u64..300_000).prop_map(Some)];
    (preset, any::<bool>(), 1u32..6, octets, 1_000u64..60_000, any::<bool>()).prop_map(
        |(preset, is_preset, fast_recovery_increases, octets_per_increase, increase_timer_ns, by_period)| {
            if is_preset {
                return preset;
            }
            let alpha_update = if by_period { AlphaUpdate::EveryPeriod } else { AlphaUpdate::AtCuts };
            DcqcnParameters { fast_recovery_increases, octets_per_increase, increase_timer_ns, alpha_update, ..preset }
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait =
        prop_oneof![4 => 0u64..2_000, 4 => 0u64..60_000, 1 => 0u64..3_000_000, 2 => Just(1_000), 2 => Just(50_000)];
    let step = prop_oneof![
        4 => wait.prop_map(Step::Wait),
        4 => (64u32..9_000).prop_map(Step::Send),
        2 => Just(Step::Cnp),
    ];
    prop::collection::vec(step, 1..120)
}

/// Within a few bits per second: rates that are that close to their target count as there.
fn is_close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 4.0 + expected * 1e-9
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_trajectory_equals_that_of_the_reference(parameters in parameters(), steps in steps()) {
        let letters = letters(&parameters);
        let mut dcqcn = Dcqcn::new(parameters).expect("good parameters");
        let mut history = Vec::new();
        let mut now_ns = 0;
        for step in steps {
            let now = Instant::from_ns(now_ns);
            match step {
                Step::Wait(ns) => {
                    now_ns += ns;
                    dcqcn.on(Instant::from_ns(now_ns), Event::Timer);
                }
                Step::Send(octets) => {
                    dcqcn.on(now, Event::Sent { octets });
                    history.push(Happened::Sent(now_ns, octets.into()));
                }
                Step::Cnp => {
                    dcqcn.on(now, Event::Cnp);
                    history.push(Happened::Cnp(now_ns));
                }
            }
            let Some(expected) = answer(&letters, &history, now_ns) else {
                prop_assert_eq!(dcqcn.rate_bits_per_s(), None);
                continue;
            };
            let found = (dcqcn.current_bits_per_s(), dcqcn.target_bits_per_s(), dcqcn.alpha());
            prop_assert!(is_close(found.0, expected.current), "current {found:?}, {expected:?} at {now_ns}");
            prop_assert!(is_close(found.1, expected.target), "target {found:?}, {expected:?} at {now_ns}");
            prop_assert!((found.2 - expected.alpha).abs() < 1e-9, "α {found:?}, {expected:?} at {now_ns}");
        }
    }

    /// Polling makes no difference: the effect of the timers is the same.
    #[test]
    fn catching_up_late_changes_nothing(parameters in parameters(), steps in steps()) {
        let mut polled = Dcqcn::new(parameters.clone()).expect("good parameters");
        let mut left_alone = polled.clone();
        let mut now = Instant::ZERO;
        for step in steps {
            let event = match step {
                Step::Wait(ns) => {
                    let end = now.after_ns(ns);
                    while let Some(deadline) = polled.next_deadline().filter(|deadline| *deadline <= end) {
                        prop_assert!(deadline > now, "a deadline that is due for ever");
                        polled.on(deadline, Event::Timer);
                        now = deadline;
                    }
                    now = end;
                    continue;
                }
                Step::Send(octets) => Event::Sent { octets },
                Step::Cnp => Event::Cnp,
            };
            polled.on(now, event);
            left_alone.on(now, event);
            prop_assert_eq!(polled.rate_bits_per_s(), left_alone.rate_bits_per_s());
            prop_assert_eq!(polled.alpha().to_bits(), left_alone.alpha().to_bits());
        }
    }
}
