use super::*;
use std::fmt::Write;

/// The network of the published constants, with packets of 4,000 octets: 150,000 octets in flight, a largest window of
/// 225,000, and a target of 12 µs.
fn published() -> NsccParameters {
    NsccParameters::published(100_000_000_000, 12_000, 4_000)
}

fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

/// An ACK of so many octets, whose packet waited for so long.
fn ack(nscc: &mut Nscc, now_ns: u64, octets: u64, delay_ns: u64, is_marked: bool) {
    nscc.on(at(now_ns), Event::RoundTrip { ns: 12_000 + delay_ns, is_marked });
    nscc.on(at(now_ns), Event::Acknowledged { octets });
}

/// A sender with this window and average delay, in the midst of a period.
fn sender(window: f64, average_delay_ns: f64) -> Result<Nscc, RateError> {
    let mut nscc = Nscc::new(published())?;
    (nscc.window, nscc.average_delay_ns) = (window, average_delay_ns);
    nscc.period_ends = Some(at(1_000_000));
    nscc.adjusted_at = at(100_000);
    Ok(nscc)
}

#[test]
fn the_published_constants() {
    let parameters = published();
    let found = [parameters.proportional_octets, parameters.fair_octets, parameters.additive_octets];
    assert_eq!(found, [16_000.0, 20_000.0, 600.0], "4, 5 and 0.15 packets");
    // A quarter of the reference in flight: 25 Gbit/s; half of its round trip: an eighth, and the target is halved too.
    let smaller = NsccParameters::published(25_000_000_000, 6_000, 4_000);
    let found = [smaller.proportional_octets, smaller.fair_octets, smaller.additive_octets, smaller.fast_share];
    assert_eq!(found, [1_000.0, 2_500.0, 75.0, 0.031_25]);
    assert_eq!(smaller.max_window_octets(), 28_125.0);
}

/// Each quadrant, with windows of 100,000 octets after 40,000 acknowledged ones, which are enough for an adjustment.
#[test]
fn every_quadrant_has_its_reaction() -> Result<(), RateError> {
    let mut table = String::new();
    for average_delay_ns in [0.0, 24_000.0] {
        writeln!(table, "average delay {average_delay_ns}").expect("a string");
        for (delay_ns, is_marked) in [(0, false), (6_000, false), (15_000, false), (6_000, true), (24_000, true)] {
            let mut nscc = sender(100_000.0, average_delay_ns)?;
            ack(&mut nscc, 105_000, 40_000, delay_ns, is_marked);
            let (window, average) = (nscc.window, nscc.average_delay_ns);
            writeln!(table, "  delay {delay_ns}, marked {is_marked}: W {window:.0}, average {average:.0}")
                .expect("a string");
        }
    }
    insta::assert_snapshot!(table, @r"
    average delay 0
      delay 0, marked false: W 106400, average 0
      delay 6000, marked false: W 103200, average 75
      delay 15000, marked false: W 108000, average 38
      delay 6000, marked true: W 100000, average 75
      delay 24000, marked true: W 100000, average 300
    average delay 24000
      delay 0, marked false: W 106400, average 23700
      delay 6000, marked false: W 103200, average 23775
      delay 15000, marked false: W 108000, average 23738
      delay 6000, marked true: W 100000, average 23775
      delay 24000, marked true: W 60000, average 24000
    ");
    Ok(())
}

#[test]
fn a_window_without_delay_makes_increases_fast() -> Result<(), RateError> {
    let mut nscc = sender(60_000.0, 0.0)?;
    for number in 0..3 {
        ack(&mut nscc, 101_000 + number, 20_000, 999, false);
        assert!(!nscc.is_fast, "not yet more than a window");
    }
    let before = nscc.window;
    assert!(before > 60_000.0 && before < 80_000.0, "{before}");
    nscc.additions = 0.0;
    ack(&mut nscc, 101_010, 20_000, 0, false);
    assert!(nscc.is_fast);
    assert_eq!(nscc.window, before + 5_000.0, "a quarter of what is acknowledged");
    ack(&mut nscc, 101_020, 20_000, 1_000, false);
    assert!(!nscc.is_fast);
    Ok(())
}

#[test]
fn the_window_decreases_once_in_a_round_trip_by_at_most_half() -> Result<(), RateError> {
    let mut nscc = sender(100_000.0, 1e9)?;
    nscc.adjusted_at = at(200_000);
    ack(&mut nscc, 101_000, 4_000, 40_000, true);
    assert_eq!(nscc.window, 50_000.0, "γ · excess is more than half");
    ack(&mut nscc, 113_000, 4_000, 40_000, true);
    assert_eq!(nscc.window, 50_000.0, "a round trip later, and not more");
    ack(&mut nscc, 113_001, 4_000, 40_000, true);
    assert_eq!(nscc.window, 25_000.0);
    for number in 0..9 {
        ack(&mut nscc, 130_000 + 13_000 * number, 4_000, 40_000, true);
    }
    assert!(nscc.window >= 4_000.0 && nscc.window < 6_000.0, "never less than a packet: {}", nscc.window);
    Ok(())
}

#[test]
fn the_window_adapts_quickly_to_what_arrived() -> Result<(), RateError> {
    let mut nscc = Nscc::new(published())?;
    ack(&mut nscc, 20_000, 4_000, 60_000, true);
    assert_eq!(nscc.window, 225_000.0, "the first ACK begins a period");
    ack(&mut nscc, 30_000, 8_000, 60_000, true);
    assert_eq!(nscc.window, 225_000.0, "which lasts for a round trip and the target");
    ack(&mut nscc, 44_001, 4_000, 60_000, true);
    assert_eq!(nscc.window, 12_000.0, "8,000 and 4,000: what came in the period");
    ack(&mut nscc, 70_000, 200_000, 60_000, true);
    assert_eq!(nscc.window, 12_000.0, "of 225,000 in flight");
    ack(&mut nscc, 70_100, 24_999, 0, false);
    assert!(nscc.window > 12_000.0, "{}: what is not marked counts", nscc.window);
    Ok(())
}

#[test]
fn a_period_with_enough_acknowledged_is_no_reason_to_adapt() -> Result<(), RateError> {
    let mut nscc = sender(100_000.0, 0.0)?;
    nscc.period_ends = Some(at(100_000));
    nscc.adjusted_at = at(200_000);
    // An eighth of 225,000 is 28,125.
    ack(&mut nscc, 100_001, 28_125, 60_000, true);
    assert_eq!(nscc.window, 100_000.0);
    assert_eq!((nscc.octets_in_period, nscc.period_ends), (0, Some(at(124_001))));
    Ok(())
}

#[test]
fn a_loss_takes_a_packet_or_adapts() -> Result<(), RateError> {
    let mut nscc = sender(100_000.0, 0.0)?;
    nscc.on(at(100_000), Event::Lost);
    assert_eq!(nscc.window, 96_000.0);
    assert_eq!(nscc.average_delay_ns, 150.0, "an eightieth of a round trip");
    nscc.on(at(900_000), Event::Acknowledged { octets: 8_000 });
    nscc.on(at(1_000_001), Event::Lost);
    assert_eq!(nscc.window, 8_000.0, "the period is over");
    nscc.on(at(1_000_002), Event::Lost);
    assert_eq!(nscc.window, 8_000.0, "of what was in flight");
    Ok(())
}

#[test]
fn a_cnp_is_a_mark_of_the_next_ack() -> Result<(), RateError> {
    let mut nscc = sender(100_000.0, 24_000.0)?;
    nscc.on(at(101_000), Event::Cnp);
    assert_eq!(nscc.window_octets(), Some(100_000));
    ack(&mut nscc, 101_000, 4_000, 24_000, false);
    assert_eq!(nscc.window_octets(), Some(60_000), "γ · 12 of 24 µs");
    Ok(())
}

#[test]
fn what_is_not_measured_changes_no_window() -> Result<(), RateError> {
    let mut nscc = sender(100_000.0, 24_000.0)?;
    nscc.on(at(900_000), Event::Acknowledged { octets: 100_000 });
    assert_eq!((nscc.window_octets(), nscc.rate_bits_per_s(), nscc.next_deadline()), (Some(100_000), None, None));
    Ok(())
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let error = Nscc::new(NsccParameters { gamma: 0.0, ..published() }).expect_err("no decrease");
    assert_eq!(error.to_string(), "gamma must be above 0 and at most 1, found 0");
    let error = Nscc::new(NsccParameters { fair_octets: f64::NAN, ..published() }).expect_err("no number");
    assert_eq!(error.to_string(), "fair_octets must be 0 or more, found NaN");
    let error = Nscc::new(NsccParameters { packet_octets: 0, ..published() }).expect_err("no packet");
    assert_eq!(error.to_string(), "packet_octets must be at least 1, found 0");
}
