//! Notifications of congestion in a WAN between data centres, to senders and gateways (CN-3-1, CN-4.1-2, CN-4.1-3,
//! CN-4.2-2).

use srdma_fabric_sim::Provenance;
use srdma_fabric_sim::wan::{WanReport, WanResults, WanRun, WanScenario, run_wan};
use std::path::Path;
use std::time::Duration;

/// A short path, of which 5 km of 40 lie before the congested node: f = 0.127.
const FILE: &str = r#"
kind = "wan"
title = "t"

[wan]
congested = "R1"
total_km = [40]
first_hop_km = 5
buffers = [0.7, 1]
buffer = 0.7
min_duration_us = 1200
round_trips = 1
local_every_us = 100

[hosts]
outstanding_packets = 4096
verify_icrc = false
"#;

const VARIANTS: &str = r#"
[[variant]]
name = "none"
signal = "none"

[[variant]]
name = "receiver-cnp"
signal = "receiver-cnp"

[[variant]]
name = "end-e"
signal = "end-e"

[[variant]]
name = "end-c"
signal = "none"
end_c = true
"#;

fn study(text: &str) -> Result<WanScenario, String> {
    WanScenario::parse(Path::new("wan.toml"), text).map_err(|error| error.to_string())
}

fn results() -> WanResults {
    run_wan(&study(&format!("{FILE}{VARIANTS}")).unwrap(), &[1], 2, &|_| (), None).unwrap()
}

fn close<'a>(results: &'a WanResults, variant: &'a str) -> &'a WanRun {
    results.at(variant, 40.0, 0.7).next().unwrap()
}

/// One run of all variants, since it is slow: data arrive through the tunnel, the sender is notified by the congested
/// node long before the receiver notifies it, and a queue of 0.7 loses nothing where END.C pauses the gateway.
#[test]
fn senders_are_notified_sooner_and_paused_gateways_lose_nothing() {
    let results = results();
    assert!(results.runs.iter().all(|run| run.delivered_octets > 1_000_000 && run.lost_by_simulator == 0));
    let told = |variant| close(&results, variant).notified_ns.unwrap();
    // Light needs 25 µs from R1 to the PE, and 200 + 175 µs for the path to the receiver and back to the sender.
    assert!((25_000.0..32_000.0).contains(&told("end-e")), "{}", told("end-e"));
    assert!((375_000.0..410_000.0).contains(&told("receiver-cnp")), "{}", told("receiver-cnp"));
    assert!(close(&results, "none").notified_ns.is_none() && close(&results, "none").dropped > 0);
    let paused = close(&results, "end-c");
    assert_eq!((paused.dropped, paused.retransmitted), (0, 0));
    assert!((25_000.0..29_000.0).contains(&paused.paused_ns.unwrap()), "{:?}", paused.paused_ns);
    assert!(paused.utilisation.unwrap() > 0.99, "{:?}", paused.utilisation);
}

/// D67: 3f of rate times round trip to stop at 4:1, f to restart, within 15 %.
#[test]
fn end_c_needs_the_computed_headroom() {
    let end_c = &VARIANTS[VARIANTS.find("[[variant]]\nname = \"end-c\"").unwrap()..];
    let study = study(&format!("{FILE}{end_c}")).unwrap();
    let results = run_wan(&study, &[3], 1, &|_| (), None).unwrap();
    let claims = results.claims(&study);
    assert_eq!(claims.len(), 3);
    for claim in claims {
        assert!(claim.holds, "{claim:?}");
    }
}

/// Two seeds with END.C.
fn two_seeds() -> (WanScenario, WanResults) {
    let end_c = &VARIANTS[VARIANTS.find("[[variant]]\nname = \"end-c\"").unwrap()..];
    let study = study(&format!("{FILE}{end_c}")).unwrap();
    let mut results = run_wan(&study, &[3], 1, &|_| (), None).unwrap();
    let again: Vec<WanRun> = results.runs.iter().map(|run| WanRun { seed: 4, ..run.clone() }).collect();
    results.runs.extend(again);
    (study, results)
}

/// A check holds with every seed or not at all: not when one seed lies outside, and not when one has no value. Only the
/// octets to stop may be fewer with some seeds, but not with all.
#[test]
fn one_seed_breaks_a_check() {
    let (study, results) = two_seeds();
    let holds = |results: &WanResults| {
        let claims = results.claims(&study);
        assert!(claims.iter().all(|claim| claim.found.contains("with 2 seeds")), "{claims:?}");
        claims.iter().map(|claim| claim.holds).collect::<Vec<_>>()
    };
    assert_eq!(holds(&results), [true; 3], "no seed needs more to stop, one as much, and all as much to restart");
    let spoilt_of = |seeds: &[u64], spoil: &dyn Fn(&mut WanRun)| {
        let mut results = results.clone();
        results.runs.iter_mut().filter(|run| seeds.contains(&run.seed)).for_each(spoil);
        holds(&results)
    };
    let spoilt = |spoil: &dyn Fn(&mut WanRun)| spoilt_of(&[4], spoil);
    let nothing_to_stop = |run: &mut WanRun| run.peak_octets = run.xoff_octets.expect("a threshold");
    assert_eq!(spoilt(&|run| run.peak_octets += run.path_octets), [false, false, true]);
    assert_eq!(spoilt(&nothing_to_stop), [true, true, true]);
    assert_eq!(spoilt_of(&[3, 4], &nothing_to_stop), [true, false, true]);
    assert_eq!(spoilt(&|run| run.min_octets = Some(0)), [true, true, false]);
    assert_eq!(spoilt(&|run| run.xoff_octets = None), [false, false, true]);
    assert_eq!(spoilt(&|run| run.min_octets = None), [true, true, false]);
}

/// A seed that needs less than the calculated octets to stop is outside the tolerance of one check, which names the seed
/// that it judges; the report's summary does not claim every seed.
#[test]
fn a_check_names_the_seed_that_it_judges() {
    let (study, mut results) = two_seeds();
    let spare = |run: &mut WanRun| run.peak_octets = run.xoff_octets.expect("a threshold");
    results.runs.iter_mut().filter(|run| run.seed == 4).for_each(spare);
    let claims = results.claims(&study);
    let [none_more, most, restart] = claims.as_slice() else { panic!("three checks: {claims:?}") };
    assert!(claims.iter().all(|claim| claim.holds), "{claims:?}");
    assert!(none_more.found.starts_with("0.000 to 0.") && most.found == none_more.found, "{claims:?}");
    assert!(none_more.expected.starts_with("no seed needs more to stop than (in/out − 1)·f = 0."), "{claims:?}");
    assert!(none_more.expected.ends_with(" of rate × round trip + 15 %"), "{claims:?}");
    assert!(most.expected.starts_with("to stop, the seed that needs most needs (in/out − 1)·f = 0."), "{claims:?}");
    assert!(most.expected.ends_with(" of rate × round trip, ± 15 %"), "{claims:?}");
    assert!(restart.expected.ends_with("± 15 % with every seed"), "{claims:?}");
    let provenance = Provenance {
        command: "srdma sim wan.toml".to_owned(),
        file_text: FILE,
        report: None,
        seeds: 2,
        wall: Duration::ZERO,
        threads: 1,
    };
    let html = WanReport::new(&study, &results, &provenance).page().html();
    assert!(html.contains("3 of 3 checks pass.") && html.contains("the seed that needs most needs"), "{html}");
}

/// A queue of 3f and a little is enough where the gateway is let go early; 4f are needed where it is not.
#[test]
fn an_early_resume_spares_the_restart() {
    let end_c = &VARIANTS[VARIANTS.find("[[variant]]\nname = \"end-c\"").unwrap()..];
    let early = end_c.replace("end-c", "early") + "early_resume = true\n";
    let tight = FILE.replace("buffers = [0.7, 1]\nbuffer = 0.7", "buffers = [0.41]\nbuffer = 0.41");
    let longer = tight.replace("min_duration_us = 1200", "min_duration_us = 4000");
    let results = run_wan(&study(&format!("{longer}{end_c}{early}")).unwrap(), &[1], 2, &|_| (), None).unwrap();
    let of = |variant| results.at(variant, 40.0, 0.41).next().unwrap();
    assert_eq!((of("end-c").dropped, of("early").dropped), (0, 0));
    let (late, early) = (of("end-c").utilisation.unwrap(), of("early").utilisation.unwrap());
    assert!(late < 0.95 && early > 0.99, "{late} {early}");
    assert!(of("early").xon_octets > of("early").xoff_octets);
}

/// Same seed same octets, on any number of threads.
#[test]
fn results_do_not_depend_on_threads() {
    let end_c = &VARIANTS[VARIANTS.find("[[variant]]\nname = \"end-c\"").unwrap()..];
    let study = study(&format!("{FILE}{end_c}")).unwrap();
    let run = |threads| run_wan(&study, &[7], threads, &|_| (), None).unwrap();
    assert_eq!(run(1), run(3));
}

#[test]
fn contradictory_keys_are_refused_with_their_line() {
    let refused = |from: &str, to: &str| study(&format!("{FILE}{VARIANTS}").replace(from, to)).unwrap_err();
    assert_eq!(
        refused("total_km = [40]", "total_km = [40, 5]"),
        "wan.toml:7: total_km 5: expected hops of 0.1 to 40000 km"
    );
    assert_eq!(refused("total_km = [40]", "total_km = []"), "wan.toml:7: total_km: expected one length at least");
    assert_eq!(
        refused("buffers = [0.7, 1]", "buffers = [1, 0.7]"),
        "wan.toml:9: buffers: expected them in rising order"
    );
    assert_eq!(refused("buffer = 0.7", "buffer = 0.8"), "wan.toml:10: buffer 0.8: expected one of the buffers");
    assert_eq!(
        refused("buffers = [0.7, 1]", "buffers = [0, 0.7]"),
        "wan.toml:9: buffers: 0: expected 0.001 to 100 of rate times round trip"
    );
    assert!(refused("\"end-c\"", "\"none\"").ends_with("two variants are called \"none\": rename one"));
    assert!(
        refused("signal = \"end-e\"", "signal = \"end-e\"\nearly_resume = true")
            .contains("the gateway is never paused")
    );
    assert!(refused("congested = \"R1\"", "congested = \"R2\"").contains("wan.toml:6: "));
    assert!(refused("min_duration_us", "leest_us").contains("unknown key `leest_us`"));
    assert!(study(FILE).unwrap_err().contains("variant"));
}
