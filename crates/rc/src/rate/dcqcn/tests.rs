use super::*;
use crate::rate::{RateControl, RateError};
use std::fmt::Write;
use std::net::Ipv6Addr;

const LINE: u64 = 100_000_000_000;

/// Round numbers: a period of α of 10 µs, an increase by timer each 100 µs or by a million octets, F = 2.
fn parameters() -> DcqcnParameters {
    DcqcnParameters {
        g: 0.25,
        alpha_interval_ns: 10_000,
        increase_timer_ns: 100_000,
        octets_per_increase: Some(1_000_000),
        fast_recovery_increases: 2,
        decrease_interval_ns: 50_000,
        additive_increase_bits_per_s: 1_000_000_000,
        hyper_increase_bits_per_s: 5_000_000_000,
        ..DcqcnParameters::sigcomm_2015(LINE)
    }
}

fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

/// A sender in a state, entered by what it takes.
fn in_state(state: State) -> Result<Dcqcn, RateError> {
    let mut dcqcn = Dcqcn::new(parameters())?;
    if state != State::Unlimited {
        dcqcn.handle(at(0), Input::Cnp);
        dcqcn.handle(at(50_000), Input::Cnp);
        dcqcn.handle(at(60_000), Input::AlphaTimer);
    }
    let increases = match state {
        State::Unlimited | State::FastRecovery => 0,
        State::AdditiveIncrease => 2,
        State::HyperIncrease => 3,
    };
    for _ in 0..increases {
        dcqcn.handle(at(0), Input::IncreaseTimer);
        dcqcn.handle(at(0), Input::OctetsSent);
    }
    assert_eq!(dcqcn.state, state);
    Ok(dcqcn)
}

fn show(dcqcn: &Dcqcn) -> String {
    format!(
        "{:?} α {:.4} target {:.3} current {:.3} Gbit/s, {} by timer, {} by octets",
        dcqcn.state,
        dcqcn.alpha,
        dcqcn.target_bits_per_s / 1e9,
        dcqcn.current_bits_per_s / 1e9,
        dcqcn.timer_increases,
        dcqcn.octet_increases
    )
}

#[test]
fn every_state_meets_every_input() -> Result<(), RateError> {
    let mut table = String::new();
    for state in [State::Unlimited, State::FastRecovery, State::AdditiveIncrease, State::HyperIncrease] {
        writeln!(table, "{}", show(&in_state(state)?)).expect("a string");
        for input in [Input::Cnp, Input::AlphaTimer, Input::IncreaseTimer, Input::OctetsSent] {
            let mut dcqcn = in_state(state)?;
            dcqcn.handle(at(110_000), input);
            writeln!(table, "  {input:?} -> {}", show(&dcqcn)).expect("a string");
        }
    }
    insta::assert_snapshot!(table, @r"
    Unlimited α 1.0000 target 100.000 current 100.000 Gbit/s, 0 by timer, 0 by octets
      Cnp -> FastRecovery α 1.0000 target 100.000 current 50.000 Gbit/s, 0 by timer, 0 by octets
      AlphaTimer -> Unlimited α 1.0000 target 100.000 current 100.000 Gbit/s, 0 by timer, 0 by octets
      IncreaseTimer -> Unlimited α 1.0000 target 100.000 current 100.000 Gbit/s, 0 by timer, 0 by octets
      OctetsSent -> Unlimited α 1.0000 target 100.000 current 100.000 Gbit/s, 0 by timer, 0 by octets
    FastRecovery α 0.7500 target 50.000 current 25.000 Gbit/s, 0 by timer, 0 by octets
      Cnp -> FastRecovery α 0.8125 target 25.000 current 15.625 Gbit/s, 0 by timer, 0 by octets
      AlphaTimer -> FastRecovery α 0.5625 target 50.000 current 25.000 Gbit/s, 0 by timer, 0 by octets
      IncreaseTimer -> FastRecovery α 0.7500 target 50.000 current 37.500 Gbit/s, 1 by timer, 0 by octets
      OctetsSent -> FastRecovery α 0.7500 target 50.000 current 37.500 Gbit/s, 0 by timer, 1 by octets
    AdditiveIncrease α 0.7500 target 51.000 current 48.938 Gbit/s, 2 by timer, 2 by octets
      Cnp -> FastRecovery α 0.8125 target 48.938 current 30.586 Gbit/s, 0 by timer, 0 by octets
      AlphaTimer -> AdditiveIncrease α 0.5625 target 51.000 current 48.938 Gbit/s, 2 by timer, 2 by octets
      IncreaseTimer -> AdditiveIncrease α 0.7500 target 52.000 current 50.469 Gbit/s, 3 by timer, 2 by octets
      OctetsSent -> AdditiveIncrease α 0.7500 target 52.000 current 50.469 Gbit/s, 2 by timer, 3 by octets
    HyperIncrease α 0.7500 target 53.000 current 51.734 Gbit/s, 3 by timer, 3 by octets
      Cnp -> FastRecovery α 0.8125 target 51.734 current 32.334 Gbit/s, 0 by timer, 0 by octets
      AlphaTimer -> HyperIncrease α 0.5625 target 53.000 current 51.734 Gbit/s, 3 by timer, 3 by octets
      IncreaseTimer -> HyperIncrease α 0.7500 target 58.000 current 54.867 Gbit/s, 4 by timer, 3 by octets
      OctetsSent -> HyperIncrease α 0.7500 target 58.000 current 54.867 Gbit/s, 3 by timer, 4 by octets
    ");
    Ok(())
}

/// D284: steps of the target and both periods, at a CNP that tells of four flows and three times the period.
#[test]
fn an_incast_divides_steps_and_stretches_periods() -> Result<(), RateError> {
    let incast = Some(IncastScale { period_ns: 50_000 });
    let mut plus = Dcqcn::new(DcqcnParameters { incast, octets_per_increase: None, ..parameters() })?;
    let mut plain = Dcqcn::new(DcqcnParameters { octets_per_increase: None, ..parameters() })?;
    for dcqcn in [&mut plus, &mut plain] {
        dcqcn.on(at(0), Event::Incast { flows: 4, period_ns: 150_000 });
        dcqcn.on(at(0), Event::Cnp);
        dcqcn.on(at(29_999), Event::Timer);
    }
    assert_eq!((plus.alpha(), plain.alpha()), (1.0, 0.5625), "a period of 30 and of 10 µs");
    assert_eq!((plus.next_deadline(), plain.next_deadline()), (Some(at(300_000)), Some(at(100_000))));
    plus.on(at(600_000), Event::Timer);
    plain.on(at(200_000), Event::Timer);
    assert_eq!((plus.current_bits_per_s(), plain.current_bits_per_s()), (87.5e9, 87.5e9), "two of fast recovery");
    // The target is the line rate: cut again, so that steps show.
    for (dcqcn, now) in [(&mut plus, 600_000), (&mut plain, 200_000)] {
        dcqcn.alpha = 1.0;
        dcqcn.on(at(now), Event::Cnp);
        dcqcn.target_bits_per_s = 10e9;
        dcqcn.current_bits_per_s = 10e9;
    }
    plus.on(at(1_500_000), Event::Timer);
    plain.on(at(500_000), Event::Timer);
    assert_eq!((plus.target_bits_per_s(), plain.target_bits_per_s()), (10.25e9, 11e9), "a quarter of 1 Gbit/s");
    plus.on(at(1_500_000), Event::Incast { flows: 1, period_ns: 10_000 });
    plus.on(at(1_500_000), Event::Cnp);
    assert_eq!(plus.next_deadline(), Some(at(1_600_000)), "never shorter than configured");
    Ok(())
}

#[test]
fn the_papers_alpha_grows_at_cuts_and_decays_without() -> Result<(), RateError> {
    let mut dcqcn = Dcqcn::new(DcqcnParameters { initial_alpha: 0.5, ..parameters() })?;
    dcqcn.on(at(1_000), Event::Cnp);
    assert_eq!(dcqcn.current_bits_per_s(), 75e9, "R_C (1 - α/2)");
    assert_eq!(dcqcn.alpha(), 0.625, "(1 - g) α + g");
    dcqcn.on(at(10_999), Event::Timer);
    assert_eq!(dcqcn.alpha(), 0.625);
    dcqcn.on(at(11_000), Event::Timer);
    assert_eq!(dcqcn.alpha(), 0.468_75, "(1 - g) α");
    dcqcn.on(at(41_000), Event::Cnp);
    assert_eq!(dcqcn.current_bits_per_s(), 75e9, "one cut in 50 µs");
    dcqcn.on(at(51_000), Event::Cnp);
    assert!(dcqcn.current_bits_per_s() < 75e9);
    Ok(())
}

#[test]
fn a_nics_alpha_is_updated_once_in_a_period() -> Result<(), RateError> {
    let nic = DcqcnParameters { alpha_update: AlphaUpdate::EveryPeriod, initial_alpha: 0.5, ..parameters() };
    let mut dcqcn = Dcqcn::new(nic)?;
    dcqcn.on(at(0), Event::Cnp);
    dcqcn.on(at(10_000), Event::Timer);
    assert_eq!(dcqcn.alpha(), 0.375, "the first CNP made it what it is");
    dcqcn.on(at(12_000), Event::Cnp);
    dcqcn.on(at(13_000), Event::FastCnp { origin: Origin::Receiver, trace: None, rate_bits_per_s: None });
    assert_eq!(dcqcn.alpha(), 0.375);
    dcqcn.on(at(20_000), Event::Timer);
    assert_eq!(dcqcn.alpha(), 0.531_25, "two count once, and count though they cut nothing");
    assert_eq!(dcqcn.current_bits_per_s(), 75e9);
    Ok(())
}

#[test]
fn several_cuts_of_a_nic_recover_to_the_rate_before_the_first() -> Result<(), RateError> {
    for (target_update, target) in [(TargetUpdate::EveryCut, 50e9), (TargetUpdate::AfterTimerIncrease, 100e9)] {
        let mut dcqcn = Dcqcn::new(DcqcnParameters { target_update, ..parameters() })?;
        dcqcn.on(at(0), Event::Cnp);
        assert_eq!(dcqcn.target_bits_per_s(), 100e9);
        dcqcn.on(at(50_000), Event::Cnp);
        assert_eq!(dcqcn.target_bits_per_s(), target);
    }
    Ok(())
}

#[test]
fn a_recovered_sender_is_not_limited_and_needs_no_tick() -> Result<(), RateError> {
    let mut dcqcn = Dcqcn::new(parameters())?;
    assert_eq!((dcqcn.rate_bits_per_s(), dcqcn.next_deadline()), (None, None));
    dcqcn.on(at(0), Event::FastCnp { origin: Origin::Switch(Ipv6Addr::LOCALHOST), trace: None, rate_bits_per_s: None });
    assert_eq!((dcqcn.rate_bits_per_s(), dcqcn.next_deadline()), (Some(LINE / 2), Some(at(100_000))));
    dcqcn.on(at(10_000_000_000), Event::Timer);
    assert_eq!((dcqcn.rate_bits_per_s(), dcqcn.next_deadline()), (None, None));
    assert_eq!(dcqcn.alpha(), 0.0);
    dcqcn.on(at(20_000_000_000_000), Event::Cnp);
    assert_eq!(dcqcn.rate_bits_per_s(), None, "the paper's α has decayed to nothing");

    let mut released = Dcqcn::new(DcqcnParameters { released_at_line_rate: true, ..parameters() })?;
    released.on(at(0), Event::Cnp);
    released.on(at(10_000_000_000), Event::Timer);
    assert_eq!((released.state, released.next_deadline()), (State::Unlimited, None));
    released.on(at(10_000_000_000), Event::Cnp);
    assert_eq!(released.rate_bits_per_s(), Some(LINE / 2), "as at its first CNP");
    assert_eq!(released.next_deadline(), Some(at(10_000_100_000)));
    Ok(())
}

#[test]
fn no_rate_is_below_the_minimum() -> Result<(), RateError> {
    let mut dcqcn = Dcqcn::new(DcqcnParameters { decrease_interval_ns: 0, ..parameters() })?;
    for _ in 0..100 {
        dcqcn.on(at(0), Event::Cnp);
    }
    assert_eq!(dcqcn.rate_bits_per_s(), Some(10_000_000));
    Ok(())
}

#[test]
fn parameters_out_of_range_are_named() {
    let error = |change: fn(&mut DcqcnParameters)| {
        let mut parameters = parameters();
        change(&mut parameters);
        Dcqcn::new(parameters).expect_err("out of range").to_string()
    };
    assert_eq!(error(|p| p.g = 1.0), "g must be at least 1/65536 and below 1, found 1");
    assert_eq!(error(|p| p.initial_alpha = f64::NAN), "initial_alpha must be 0 to 1, found NaN");
    assert_eq!(
        error(|p| p.min_rate_bits_per_s = LINE + 1),
        "min_rate_bits_per_s must be at least 1 and at most line_rate_bits_per_s, found 100000000001"
    );
    for preset in [
        DcqcnParameters::sigcomm_2015(LINE),
        DcqcnParameters::connectx(LINE),
        DcqcnParameters::hpcc_vendor(LINE),
        DcqcnParameters::hpcc_paper(LINE),
    ] {
        Dcqcn::new(preset).expect("a preset");
    }
}

/// D240: what is below the current rate is a cut to it, from which increases begin; what is above changes nothing.
#[test]
fn a_notified_rate_is_a_limit_and_the_target() -> Result<(), RateError> {
    let notify = |bits_per_s| Event::FastCnp {
        origin: Origin::Switch(Ipv6Addr::LOCALHOST),
        trace: None,
        rate_bits_per_s: Some(bits_per_s),
    };
    let mut dcqcn = Dcqcn::new(parameters())?;
    dcqcn.on(at(0), notify(3_000_000_000));
    assert_eq!((dcqcn.current_bits_per_s(), dcqcn.target_bits_per_s()), (3e9, 3e9));
    dcqcn.on(at(50_000), notify(4_000_000_000));
    assert_eq!((dcqcn.current_bits_per_s(), dcqcn.increase_due), (3e9, at(100_000)), "increases go on");
    dcqcn.on(at(200_000), Event::Timer);
    assert_eq!(dcqcn.current_bits_per_s(), 3e9, "nothing to return to in fast recovery");
    dcqcn.on(at(300_000), Event::Timer);
    assert_eq!(dcqcn.current_bits_per_s(), 3.5e9, "half of an additive step");
    dcqcn.on(at(300_001), notify(1));
    assert_eq!(dcqcn.current_bits_per_s(), 1e7, "not below the least rate");
    Ok(())
}
