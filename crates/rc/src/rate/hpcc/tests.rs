use super::*;
use crate::rate::{RateControl, RateError};
use std::fmt::Write;

/// A largest window of 100,000 octets, steps of 1,000, and 10,000 for each 50 µs of silence.
fn parameters() -> HpccParameters {
    HpccParameters {
        additive_increase_octets: 1_000,
        recovery: Some(Recovery { interval_ns: 50_000, step_octets: 10_000 }),
        ..HpccParameters::published(80_000_000_000, 10_000, 1)
    }
}

fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

fn sample(utilisation: f64) -> Input {
    Input::Sample { utilisation, over_ns: 10_000, queueing_ns: 2_000 }
}

/// A sender in a state, entered by what it takes.
fn in_state(state: State) -> Result<Hpcc, RateError> {
    let mut hpcc = Hpcc::new(parameters())?;
    match state {
        State::Fresh => {}
        State::Steered => hpcc.handle(at(0), sample(1.9)),
        State::Recovering => {
            hpcc.handle(at(0), sample(1.9));
            hpcc.handle(at(50_000), Input::Quiet);
        }
    }
    assert_eq!(hpcc.state, state);
    Ok(hpcc)
}

fn show(hpcc: &Hpcc) -> String {
    format!(
        "{:?} U {:.2} W {:.0} Wc {:.0} stage {}",
        hpcc.state, hpcc.utilisation, hpcc.window, hpcc.reference, hpcc.stage
    )
}

#[test]
fn every_state_meets_every_input() -> Result<(), RateError> {
    let mut table = String::new();
    for state in [State::Fresh, State::Steered, State::Recovering] {
        writeln!(table, "{}", show(&in_state(state)?)).expect("a string");
        for input in [sample(0.5), sample(1.9), Input::Notice, Input::Quiet] {
            let mut hpcc = in_state(state)?;
            hpcc.handle(at(100_000), input);
            writeln!(table, "  {input:?} -> {}", show(&hpcc)).expect("a string");
        }
    }
    insta::assert_snapshot!(table, @r"
    Fresh U 1.00 W 100000 Wc 100000 stage 0
      Sample { utilisation: 0.5, over_ns: 10000, queueing_ns: 2000 } -> Steered U 0.50 W 100000 Wc 100000 stage 1
      Sample { utilisation: 1.9, over_ns: 10000, queueing_ns: 2000 } -> Steered U 1.90 W 51000 Wc 51000 stage 0
      Notice -> Steered U 2.00 W 48500 Wc 48500 stage 0
      Quiet -> Fresh U 1.00 W 100000 Wc 100000 stage 0
    Steered U 1.90 W 51000 Wc 51000 stage 0
      Sample { utilisation: 0.5, over_ns: 10000, queueing_ns: 2000 } -> Steered U 0.50 W 52000 Wc 52000 stage 1
      Sample { utilisation: 1.9, over_ns: 10000, queueing_ns: 2000 } -> Steered U 1.90 W 26500 Wc 26500 stage 0
      Notice -> Steered U 2.00 W 25225 Wc 25225 stage 0
      Quiet -> Recovering U 1.90 W 61000 Wc 61000 stage 0
    Recovering U 1.90 W 61000 Wc 61000 stage 0
      Sample { utilisation: 0.5, over_ns: 10000, queueing_ns: 2000 } -> Steered U 0.50 W 62000 Wc 62000 stage 1
      Sample { utilisation: 1.9, over_ns: 10000, queueing_ns: 2000 } -> Steered U 1.90 W 31500 Wc 31500 stage 0
      Notice -> Steered U 2.00 W 29975 Wc 29975 stage 0
      Quiet -> Recovering U 1.90 W 71000 Wc 71000 stage 0
    ");
    Ok(())
}

#[test]
fn the_reference_window_is_replaced_once_in_a_round_trip() -> Result<(), RateError> {
    let mut hpcc = Hpcc::new(parameters())?;
    hpcc.handle(at(0), sample(1.9));
    assert_eq!((hpcc.window.round(), hpcc.reference.round()), (51_000.0, 51_000.0));
    for ns in [1_000, 5_000, 11_999] {
        hpcc.handle(at(ns), sample(1.9));
        assert_eq!(hpcc.window.round(), 26_500.0, "each reacts to the same reference, queues included");
        assert_eq!(hpcc.reference.round(), 51_000.0);
    }
    hpcc.handle(at(12_000), sample(1.9));
    assert_eq!(hpcc.reference.round(), 26_500.0);
    Ok(())
}

#[test]
fn the_window_grows_by_steps_and_then_by_the_difference() -> Result<(), RateError> {
    let mut hpcc = Hpcc::new(parameters())?;
    hpcc.handle(at(0), sample(9.5));
    assert_eq!(hpcc.window.round(), 11_000.0);
    for round in 1..=5 {
        hpcc.handle(at(round * 12_000), sample(0.475));
        assert_eq!(hpcc.window.round(), 11_000.0 + round as f64 * 1_000.0, "maxStage steps");
    }
    hpcc.handle(at(72_000), sample(0.475));
    assert_eq!((hpcc.window.round(), hpcc.stage), (33_000.0, 0), "twice as much, and a step");
    Ok(())
}

#[test]
fn windows_have_bounds_and_rates_follow_them() -> Result<(), RateError> {
    let mut hpcc = Hpcc::new(parameters())?;
    assert_eq!((hpcc.rate_bits_per_s(), hpcc.window_octets()), (None, Some(100_000)));
    hpcc.handle(at(0), sample(1e9));
    assert_eq!(hpcc.rate_bits_per_s(), Some(800_000_076), "W / T: a step, and next to nothing");
    for round in 1..9 {
        hpcc.handle(at(round * 12_000), sample(1e9));
    }
    assert_eq!(hpcc.rate_bits_per_s(), Some(800_000_000), "never less than a step");
    hpcc.handle(at(200_000), sample(0.0));
    assert!(hpcc.window < 100_001.0);
    Ok(())
}

#[test]
fn without_feedback_the_window_grows_to_no_limit() -> Result<(), RateError> {
    let mut hpcc = Hpcc::new(parameters())?;
    hpcc.on(at(0), Event::Cnp);
    assert_eq!(hpcc.window_octets(), Some(48_500), "a notice counts as twice full");
    assert_eq!(hpcc.next_deadline(), Some(at(50_000)));
    hpcc.on(at(149_999), Event::Timer);
    assert_eq!(hpcc.window_octets(), Some(68_500));
    hpcc.on(at(10_000_000), Event::Timer);
    assert_eq!((hpcc.rate_bits_per_s(), hpcc.next_deadline()), (None, None));

    let mut stays = Hpcc::new(HpccParameters { recovery: None, ..parameters() })?;
    stays.on(at(0), Event::Cnp);
    stays.on(at(10_000_000), Event::Timer);
    assert_eq!((stays.window_octets(), stays.next_deadline()), (Some(48_500), None));
    Ok(())
}

#[test]
fn parameters_out_of_range_are_named() {
    let error = |change: fn(&mut HpccParameters)| {
        let mut parameters = parameters();
        change(&mut parameters);
        Hpcc::new(parameters).expect_err("out of range").to_string()
    };
    assert_eq!(error(|p| p.eta = 1.5), "eta must be above 0 and at most 1, found 1.5");
    assert_eq!(error(|p| p.notified_utilisation = 0.9), "notified_utilisation must be at least eta, found 0.9");
    assert_eq!(error(|p| p.base_rtt_ns = 0), "base_rtt_ns must be at least 100, found 0");
}

/// D240: the window of a notified rate is a limit, and the reference of the next traces.
#[test]
fn a_notified_rate_limits_the_window() -> Result<(), RateError> {
    let mut hpcc = Hpcc::new(parameters())?;
    // 8 Gbit/s for a round trip of 10 µs.
    hpcc.handle(at(0), Input::Rate(8_000_000_000));
    assert_eq!((hpcc.state, hpcc.window, hpcc.reference), (State::Steered, 10_000.0, 10_000.0));
    hpcc.handle(at(1_000), Input::Rate(16_000_000_000));
    assert_eq!(hpcc.window, 10_000.0, "no reason to send more");
    hpcc.handle(at(11_000), Input::Rate(1));
    assert_eq!(hpcc.window, parameters().min_window_octets());
    Ok(())
}
