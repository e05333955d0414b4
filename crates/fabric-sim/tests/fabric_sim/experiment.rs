//! Scenarios: rejected ones, and the results of small ones.

use srdma_fabric_sim::results::SeriesKind;
use srdma_fabric_sim::{FabricScenario, VariantResult, run, run_all};
use std::path::Path;

const FABRIC: &str = "kind = \"fabric\"
title = \"two leaves\"
[topology]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 4
";

const VARIANT: &str = "[[variant]]\nname = \"plain\"\nsignal = \"none\"\ncontrol = \"none\"\n";

fn scenario(rest: &str) -> Result<FabricScenario, String> {
    FabricScenario::parse(Path::new("file.toml"), &format!("{FABRIC}{rest}")).map_err(|error| error.to_string())
}

fn run_once(scenario: &FabricScenario, seed: u64) -> VariantResult {
    run(scenario, 0, seed, &mut |_| {}).unwrap()
}

/// FABRIC has six lines.
#[test]
fn a_mistake_names_its_line() {
    let permutation = "[[workload.permutation]]\nsize_octets = 100000\n";
    let measure = "[measure]\nduration_us = 10\n";
    let cases = [
        (format!("{permutation}[measure]\nduration = 10\n{VARIANT}"), "file.toml:11: unknown key `duration`"),
        (format!("{permutation}[measure]\nduration_us = 0\n{VARIANT}"), "file.toml:11: invalid value: integer `0`"),
        (format!("{measure}{VARIANT}"), "file.toml:14: nothing is sent"),
        (format!("{permutation}{measure}"), "file.toml:1: missing key `variant`"),
        (
            format!("[[workload.stream]]\nname = \"a\"\nfrom = \"h1.1\"\nto = \"h9.9\"\n{measure}{VARIANT}"),
            "file.toml:11: there is no host \"h9.9\"",
        ),
        (
            format!("[[workload.stream]]\nname = \"a\"\nfrom = \"h1.1\"\nto = \"h1.1\"\n{measure}{VARIANT}"),
            "file.toml:11: \"h1.1\" sends to itself",
        ),
        (
            format!(
                "[[workload.incast]]\nreceiver = \"h1.1\"\nsenders = 8\nmin_octets = 1\nmax_octets = 2\nstart_us = 0\n\
                 {measure}{VARIANT}"
            ),
            "file.toml:10: 8 senders: expected 1 to 7, of 8 hosts",
        ),
        (format!("{permutation}{measure}{VARIANT}{VARIANT}"), "file.toml:16: two variants are called \"plain\""),
        (
            format!("{permutation}{measure}{VARIANT}").replace("control = \"none\"", "control = \"dcqcn\""),
            "file.toml:12: variant \"plain\": its control needs a signal",
        ),
        (
            format!("[hosts]\npath_mtu = 1500\n{permutation}{measure}{VARIANT}"),
            "file.toml:9: path_mtu 1500: expected 256",
        ),
    ];
    for (text, expected) in cases {
        let found = scenario(&text).unwrap_err();
        assert!(found.starts_with(expected), "{found}\n  expected: {expected}");
    }
}

/// The keys of jobs, variants with paths, and failures: the job has lines 7 to 11.
#[test]
fn a_mistake_in_a_job_or_a_failure_names_its_line() {
    let nics = "[[workload.job]]\nname = \"train\"\nnics = [\"h1.*\", \"h2.1\"]\n";
    let job = &format!("{nics}[[workload.job.collective]]\nkind = \"all-to-all\"\n");
    let measure = "[measure]\nduration_us = 1\n";
    let variant = |keys: &str| format!("{VARIANT}{keys}\n");
    let failure = |keys: &str| format!("{job}[[failure]]\n{keys}\n{measure}{VARIANT}");
    let cases = [
        (format!("{}{measure}{VARIANT}", job.replace("h2.1", "h7.1")), "file.toml:10: h7.1 is no NIC of this fabric"),
        (
            format!("{}{measure}{VARIANT}", job.replace("h2.1", "h1.1")),
            "file.toml:8: job train has two ranks at NIC h1.1",
        ),
        (format!("{nics}{measure}{VARIANT}"), "file.toml:8: job train sends nothing"),
        (format!("{nics}iterations = 0\n{measure}{VARIANT}"), "file.toml:11: iterations 0: expected 1 to 1000000"),
        (format!("{job}{measure}{}", variant("paths = \"best\"")), "file.toml:19: unknown value `best`"),
        (
            format!("{job}{measure}{}", variant("queue_pairs = 4\npaths = \"random\"")),
            "file.toml:15: variant \"plain\": several",
        ),
        (
            format!("{job}{measure}{}", variant("steering = true")),
            "file.toml:15: variant \"plain\": steering begins with",
        ),
        (failure("name = \"h1.1\"\nat_us = 1"), "file.toml:14: there is no switch or link \"h1.1\""),
        (failure("name = \"leaf1-leaf2\"\nat_us = 1"), "file.toml:14: there is no switch or link \"leaf1-leaf2\""),
        (
            failure("name = \"spine1\"\nat_us = 9\nuntil_us = 9"),
            "file.toml:16: until_us 9: expected more than at_us, 9",
        ),
    ];
    for (text, expected) in cases {
        let found = scenario(&text).unwrap_err();
        assert!(found.starts_with(expected), "{found}\n  expected: {expected}");
    }
    let scenario = scenario(&failure("name = \"spine1\"\nat_us = 9")).unwrap();
    assert_eq!((scenario.jobs[0].0.nics.len(), scenario.failures[0].links.len()), (5, 2));
}

#[test]
fn a_mistake_in_the_topology_names_its_line() {
    let text = format!("{FABRIC}[measure]\nduration_us = 1\n{VARIANT}").replace("leaves = 2", "leaves = 0");
    let found = FabricScenario::parse(Path::new("file.toml"), &text).unwrap_err().to_string();
    assert!(found.starts_with("file.toml:5: "), "{found}");
}

#[test]
fn every_octet_that_is_sent_arrives_once() {
    let text = format!("[[workload.permutation]]\nsize_octets = 300001\n[measure]\nduration_us = 10\n{VARIANT}");
    let result = run_once(&scenario(&text).unwrap(), 3);
    assert_eq!(result.flows.len(), 8);
    assert!(result.flows.iter().all(|flow| flow.finished_ns.is_some() && flow.retransmitted == 0));
    let totals = result.totals;
    assert_eq!((totals.octets_sent, totals.octets_delivered), (8 * 300_001, 8 * 300_001));
    assert_eq!((totals.octets_differing, totals.lost_by_simulator, totals.dropped), (0, 0, 0));
    // 73 packets of 4,096 octets and one of 993.
    assert_eq!(totals.data_packets, 8 * 74);
}

/// Alone on the fabric a flow takes exactly as long as it should.
#[test]
fn an_idle_fabric_gives_the_ideal_time() {
    for size in [1, 4096, 4097, 1_000_000] {
        let text = format!(
            "[[workload.incast]]\nreceiver = \"h1.1\"\nsenders = 1\nmin_octets = {size}\nmax_octets = {size}\n\
             start_us = 3\n[measure]\nduration_us = 10\n{VARIANT}"
        );
        let result = run_once(&scenario(&text).unwrap(), 1);
        let [flow] = &result.flows[..] else { panic!("one flow") };
        let took_ns = flow.finished_ns.unwrap() - flow.started_ns;
        assert!(took_ns.abs_diff(flow.ideal_ns) <= 8, "{size} octets: {took_ns} ns, ideal {} ns", flow.ideal_ns);
    }
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let text =
        format!("[[workload.background]]\nload = 0.5\nsizes = \"hadoop\"\n[measure]\nduration_us = 200\n{VARIANT}");
    let scenario = scenario(&text).unwrap();
    let json = |seed| serde_json::to_string(&run_once(&scenario, seed)).unwrap();
    let first = json(1);
    assert_eq!(first, json(1));
    assert_ne!(first, json(2));
}

/// By hand: two hosts send 65 packets of 1,024 octets each to a third at the same time; in a queue each has 1,102
/// octets, the first of each 16 more for its RETH. Of the first pair one frame goes out at once. That takes 1.3 ns
/// longer than until the second pair comes, so that each pair but the first finds the port busy: after pair n, n + 1
/// frames wait until one leaves; 66 after the last, and the longer ones have gone.
#[test]
fn a_queue_of_two_senders_grows_by_hand() {
    let text = format!(
        "[hosts]\npath_mtu = 1024\n[[workload.incast]]\nreceiver = \"h1.1\"\nsenders = 2\nmin_octets = 66560\n\
         max_octets = 66560\nstart_us = 0\n[measure]\nduration_us = 100\n{VARIANT}"
    );
    let result = run_once(&scenario(&text).unwrap(), 1);
    let peak = result.ports.iter().find(|port| port.name == "leaf1-h1.1").unwrap().peak_octets;
    assert_eq!(peak, 66 * 1102);
    assert_eq!((result.totals.pauses, result.totals.marked, result.totals.dropped), (0, 0, 0));
}

/// The same with PFC from 20 frames on and with marks from 10 frames on.
#[test]
fn thresholds_pause_and_mark() {
    let variant = "[[variant]]\nname = \"ecn\"\nsignal = \"receiver-cnp\"\ncontrol = \"dcqcn\"\n\
               ecn = { k_min_octets = 11020, k_max_octets = 11020, p_max = 1.0 }\n\
               pfc_thresholds = { xoff_octets = 22040, xon_octets = 11020, headroom_octets = 200000 }\n";
    let text = format!(
        "[hosts]\npath_mtu = 1024\n[[workload.incast]]\nreceiver = \"h1.1\"\nsenders = 4\nmin_octets = 66560\n\
         max_octets = 66560\nstart_us = 0\n[measure]\nduration_us = 100\n{variant}"
    );
    let result = run_once(&scenario(&text).unwrap(), 1);
    assert!(result.totals.marked > 0 && result.totals.cnps > 0, "{:?}", result.totals);
    assert!(result.totals.pauses > 0, "{:?}", result.totals);
    assert_eq!((result.totals.dropped, result.totals.retransmitted, result.summary.unfinished), (0, 0, 0));
    assert_eq!(result.notifications.len(), 4);
    for notification in &result.notifications {
        let delay_ns = notification.reacted_ns.unwrap() - notification.congested_ns;
        assert!(delay_ns >= notification.return_path_ns, "{notification:?}");
    }
}

/// D283, D284: four hosts fill the queue of a fifth with what they may send unacknowledged, unless they hear of it by
/// marks in ACKs, or by CNPs. Where CNPs tell how many they are, they recover in smaller steps and meet fewer marks.
#[test]
fn senders_follow_marks_in_acks_and_cnps_that_tell_of_an_incast() {
    let variant = |name: &str, signal: &str, control: &str| {
        format!(
            "[[variant]]\nname = \"{name}\"\nsignal = \"{signal}\"\ncontrol = \"{control}\"\npfc = false\n\
             cnp_interval_ns = 4000\necn = {{ k_min_octets = 13700, k_max_octets = 54600, p_max = 1.0 }}\n\
             [variant.dcqcn]\npreset = \"sigcomm-2015\"\ndecrease_interval_ns = 4000\nincrease_timer_ns = 10000\n\
             additive_increase_bits_per_s = 4_000_000_000\n"
        )
    };
    let variants = variant("none", "none", "none")
        + &variant("nscc", "receiver-echo", "nscc")
        + &variant("dcqcn", "receiver-cnp", "dcqcn")
        + &variant("dcqcn-plus", "receiver-cnp", "dcqcn-plus");
    let text = format!(
        "[[workload.incast]]\nreceiver = \"h1.1\"\nsenders = 4\nmin_octets = 4_000_000\nmax_octets = 4_000_000\n\
         start_us = 0\n[measure]\nduration_us = 100\ndrain_us = 50_000\n{variants}"
    );
    let results = run_all(&scenario(&text).unwrap(), &[1], 1, &|_, _| {}, None).unwrap();
    let [none, nscc, dcqcn, plus] = results.runs.as_slice() else { panic!("one run of each") };
    for run in &results.runs {
        assert_eq!((run.totals.octets_differing, run.summary.unfinished), (0, 0), "{}", run.variant);
    }
    let peak = |run: &VariantResult| run.summary.peak_queue_octets;
    assert!(peak(none) > 1_000_000, "{}", peak(none));
    assert!(peak(nscc) < 500_000, "four windows of 1.5 round trips: {}", peak(nscc));
    assert!(nscc.totals.marked > 0 && nscc.totals.cnps == 0, "{:?}", nscc.totals);
    assert!(peak(plus) < 500_000, "{}", peak(plus));
    let cnps = |run: &VariantResult| run.totals.cnps;
    assert!(cnps(plus) > 0 && cnps(plus) < cnps(dcqcn), "{} {}", cnps(plus), cnps(dcqcn));
}

/// Short flows come and go for 12 ms, 2 ms longer than the queue pairs of each stay behind its end: how many there are
/// at a time depends on the load, not on how many there have been.
#[test]
fn queue_pairs_of_completed_flows_are_removed() {
    let text =
        format!("[[workload.background]]\nload = 0.3\nsizes = \"hadoop\"\n[measure]\nduration_us = 12000\n{VARIANT}");
    let (mut early, mut late, mut last) = (0, 0, 0);
    let result = run(&scenario(&text).unwrap(), 0, 1, &mut |progress| {
        let most = if progress.now_ns <= 6_000_000 { &mut early } else { &mut late };
        *most = progress.queue_pairs.max(*most);
        last = progress.queue_pairs;
    });
    let flows = result.unwrap().flows.len();
    assert!(early > 0 && late <= early * 3 / 2, "{early} queue pairs at most in the first half, {late} in the second");
    assert!(late < flows, "{late} queue pairs at a time for {flows} flows, each of which has two");
    assert!(last < late);
}

#[test]
fn the_number_of_threads_does_not_change_results() {
    let text =
        format!("[[workload.background]]\nload = 0.4\nsizes = \"hadoop\"\n[measure]\nduration_us = 100\n{VARIANT}");
    let scenario = scenario(&text).unwrap();
    let json = |threads| {
        let results = run_all(&scenario, &[1, 2, 3], threads, &|_, _| {}, None).unwrap();
        serde_json::to_string(&results).unwrap()
    };
    let one = json(1);
    assert_eq!(one, json(2));
    assert_eq!(one.matches("\"seed\":").count(), 3);
}

/// FC-4-1: the switch notifies a sender within the return path's delay and 1 µs, whatever the reaction; the receiver,
/// which has to see the marked packet first, notifies it later by the whole queue in front of that packet.
#[test]
fn a_switch_notifies_senders_at_once() {
    let variant = |name: &str, signal: &str, control: &str| {
        format!(
            "[[variant]]\nname = \"{name}\"\nsignal = \"{signal}\"\ncontrol = \"{control}\"\n\
             ecn = {{ k_min_octets = 50000, k_max_octets = 50000, p_max = 1.0 }}\n\
             notification = {{ threshold_octets = 50000, interval_ns = 50000 }}\n"
        )
    };
    let text = format!(
        "[[workload.incast]]\nreceiver = \"h1.1\"\nsenders = 4\nmin_octets = 1000000\nmax_octets = 1000000\n\
         start_us = 0\n[measure]\nduration_us = 10\n{}{}{}",
        variant("slow", "receiver-cnp", "dcqcn"),
        variant("fast", "fast-cnp", "dcqcn"),
        variant("traced", "fast-cnp", "hpcc")
    );
    let results = run_all(&scenario(&text).unwrap(), &[1, 2], 2, &|_, _| {}, None).unwrap();
    for result in &results.runs {
        assert_eq!(result.notifications.len(), 4, "{}", result.variant);
        assert_eq!((result.summary.unfinished, result.totals.dropped, result.totals.octets_differing), (0, 0, 0));
        for notification in &result.notifications {
            // Receivers' traces may have slowed a sender already.
            let Some(reacted_ns) = notification.reacted_ns else {
                assert_eq!(result.variant, "traced");
                continue;
            };
            let delay_ns = reacted_ns - notification.congested_ns;
            // Another switch on the path may have notified the sender before.
            let late_ns = delay_ns.saturating_sub(notification.return_path_ns);
            match result.variant.as_str() {
                "slow" => assert!(late_ns > 50_000 * 8 / 100, "{notification:?}"),
                _ => assert!(late_ns <= 1000, "{}: {late_ns} ns late", result.variant),
            }
        }
    }
    let peak = |variant: &str| results.spread(variant, |summary| Some(summary.peak_queue_octets as f64)).unwrap()[1];
    assert!(peak("traced") < peak("slow"), "{} {}", peak("traced"), peak("slow"));
}

/// FC-4-9: returned traces reduce rates. They are the only signal here: switches neither mark nor notify. Each of four
/// senders begins with a window of the link's rate times the round trip. Three of these wait in the queue as long as no
/// trace changes them; traces in intervals of 5 µs have emptied the queue after 100 µs, the tenth point. All flows last
/// for 300 µs at least in the run without traces.
#[test]
fn a_returned_trace_reduces_the_rate() {
    let variant = |name: &str, interval_ns: u64| {
        format!(
            "[[variant]]\nname = \"{name}\"\nsignal = \"receiver-trace\"\ncontrol = \"hpcc\"\n\
             hpcc = {{ feedback_interval_ns = {interval_ns} }}\nnotification = {{ threshold_octets = 50000 }}\n"
        )
    };
    let text = format!(
        "[[workload.incast]]\nreceiver = \"h1.1\"\nsenders = 4\nmin_octets = 1000000\nmax_octets = 1000000\n\
         start_us = 0\n[measure]\nduration_us = 10\n{}{}",
        variant("returned", 5000),
        variant("seldom", 1_000_000_000)
    );
    let results = run_all(&scenario(&text).unwrap(), &[1, 2], 2, &|_, _| {}, None).unwrap();
    for result in &results.runs {
        let totals = &result.totals;
        assert_eq!((result.summary.unfinished, totals.dropped, totals.octets_differing), (0, 0, 0));
        assert_eq!((totals.fast_cnps, totals.marked, totals.cnps), (0, 0, 0), "{}", result.variant);
        let queue = result.series.iter().find(|series| series.kind == SeriesKind::Queue && series.name == "leaf1-h1.1");
        let steady = &queue.expect("the congested port").values[10..30];
        match result.variant.as_str() {
            "returned" => assert!(steady.iter().all(|octets| *octets < 20_000.0), "{steady:?}"),
            _ => assert!(steady.iter().all(|octets| *octets > 150_000.0), "{steady:?}"),
        }
    }
}

fn group_variants(variants: &[(&str, &str, &str)]) -> String {
    let variant = |(name, signal, control): &(&str, &str, &str)| {
        format!(
            "[[variant]]\nname = \"{name}\"\nsignal = \"{signal}\"\ncontrol = \"{control}\"\n\
             ecn = {{ k_min_octets = 50000, k_max_octets = 50000, p_max = 1.0 }}\n\
             notification = {{ threshold_octets = 50000, interval_ns = 4000 }}\n"
        )
    };
    variants.iter().map(variant).collect()
}

/// D46: a group of four has a receiver that an incast congests. Its source is notified by the edge, which counts a Fast
/// CNP for the branch in place of sending one, or by the receivers' CNPs; every octet gets to all four.
#[test]
fn a_group_meets_an_incast() {
    let variants = [("slow", "receiver-cnp", "dcqcn"), ("fast", "fast-cnp", "dcqcn"), ("traced", "fast-cnp", "hpcc")];
    let text = format!(
        "[[workload.multicast]]\nname = \"group\"\nfrom = \"h1.1\"\nreceivers_below = [\"leaf2\"]\n\
         message_octets = 40000\n[[workload.incast]]\nreceiver = \"h2.1\"\nsenders = 3\nmin_octets = 400000\n\
         max_octets = 400000\nstart_us = 20\n[measure]\nduration_us = 200\ncontrol_run = true\n{}",
        group_variants(&variants)
    );
    let results = run_all(&scenario(&text).unwrap(), &[1], 2, &|_, _| {}, None).unwrap();
    for result in &results.runs {
        let (variant, totals) = (&result.variant, &result.totals);
        let group = result.flows.iter().find(|flow| flow.name.as_deref() == Some("group")).unwrap();
        assert_eq!((group.source.as_str(), group.destination.as_str()), ("h1.1", "group"));
        assert!(group.size_octets > 500_000, "{variant}: {group:?}");
        assert_eq!((totals.dropped, totals.octets_differing, totals.lost_by_simulator), (0, 0, 0), "{variant}");
        // Of what is in flight when the run ends, four copies each, is less than a window.
        let sent = 4 * (totals.octets_sent - 1_200_000) + 1_200_000;
        assert!(
            totals.octets_delivered <= sent && totals.octets_delivered + 4 * 128 * 4096 > sent,
            "{variant}: {totals:?}"
        );
        let (control_run, share) = (result.summary.group_retained.unwrap(), result.summary.group_share.unwrap());
        assert!(control_run < 0.95, "{variant}: {control_run}: the source was not told");
        assert!(share > 0.1 && share < 1.1, "{variant}: {share}");
        assert!(result.summary.victim_share.is_none());
    }
}

/// D242: a group of three and a stream share the link of one receiver under HPCC++. Without the traces of its nodes the
/// group keeps its initial window, and the stream gets 0.07 of its fair share.
#[test]
fn traces_let_a_group_share_a_receivers_link() {
    let fabric = FABRIC.replace("leaves = 2", "leaves = 3").replace("hosts_per_leaf = 4", "hosts_per_leaf = 3");
    let text = format!(
        "{fabric}host_rate_bits_per_s = 100_000_000_000\n[hosts]\noutstanding_packets = 128\nack_every = 8\n\
         [[workload.multicast]]\nname = \"group\"\nfrom = \"h1.1\"\nreceivers_below = [\"leaf2\"]\n\
         [[workload.stream]]\nname = \"victim\"\nfrom = \"h3.1\"\nto = \"h2.1\"\n[measure]\nduration_us = 1000\n\
         [[variant]]\nname = \"traced\"\nsignal = \"fast-cnp\"\ncontrol = \"hpcc\"\n\
         notification = {{ threshold_octets = 150_000, interval_ns = 50_000 }}\n"
    );
    let scenario = FabricScenario::parse(Path::new("file.toml"), &text).unwrap();
    let summary = run_once(&scenario, 1).summary;
    let (group, stream) = (summary.group_share.unwrap(), summary.victim_share.unwrap());
    assert!((0.6..1.2).contains(&group) && (0.8..1.3).contains(&stream), "group {group}, stream {stream}");
    assert!(summary.peak_queue_octets < 150_000, "{}", summary.peak_queue_octets);
}

#[test]
fn a_group_that_cannot_be_names_its_line() {
    let group = |below: &str| {
        format!(
            "[[workload.multicast]]\nname = \"g\"\nfrom = \"h1.1\"\nreceivers_below = [{below}]\n[measure]\nduration_us = 1\n{VARIANT}"
        )
    };
    let cases = [
        ("\"leaf1\"", "file.toml:11: receivers_below: \"leaf1\" is the source's own switch"),
        ("\"leaf2\", \"leaf9\"", "file.toml:11: receivers_below: there is no switch \"leaf9\" with hosts"),
        ("\"spine1\"", "file.toml:11: receivers_below: there is no switch \"spine1\" with hosts"),
        ("\"h2.1\"", "file.toml:11: receivers_below: there is no switch \"h2.1\" with hosts"),
        ("", "file.toml:11: receivers_below: no receivers"),
    ];
    for (below, expected) in cases {
        let found = scenario(&group(below)).unwrap_err();
        assert!(found.starts_with(expected), "{found}\n  expected: {expected}");
    }
    let text = format!(
        "[[workload.background]]\nload = 0.4\nsizes = \"hadoop\"\nexcept = [\"h9.9\"]\n[measure]\nduration_us = 1\n{VARIANT}"
    );
    assert!(scenario(&text).unwrap_err().starts_with("file.toml:11: there is no host \"h9.9\""));
}

/// By hand: a stream alone on its links gets all that headers leave of them, and an incast to another host of its leaf,
/// which takes other links of the fabric or leaves enough of the same, changes neither that nor what would be fair.
#[test]
fn a_victim_gets_its_fair_share_without_congestion_control() {
    let text = format!(
        "[[workload.stream]]\nname = \"victim\"\nfrom = \"h1.1\"\nto = \"h2.1\"\n[[workload.incast]]\n\
         receiver = \"h2.2\"\nsenders = 1\nmin_octets = 100000\nmax_octets = 100000\nstart_us = 50\n\
         [[workload.background]]\nload = 0.0\nsizes = \"hadoop\"\nexcept = [\"h1.1\", \"h2.1\"]\n\
         [measure]\nduration_us = 400\ncontrol_run = true\n{VARIANT}"
    );
    // With some seed the two flows share no link.
    let scenario = scenario(&text).unwrap();
    let shares: Vec<(f64, f64)> = (1..=4)
        .map(|seed| {
            let summary = run_once(&scenario, seed).summary;
            (summary.victim_share.unwrap(), summary.victim_retained.unwrap())
        })
        .collect();
    assert!(
        shares.iter().any(|(share, control_run)| *share > 0.97 && *share < 1.0 && *control_run == 1.0),
        "{shares:?}"
    );
}
