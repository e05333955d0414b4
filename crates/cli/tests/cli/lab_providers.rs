//! The host library on both providers, by the same cases: endpoints on sockets in namespaces, and queue pairs of
//! soft-RoCE in guests, which an unmodified Linux kernel has. Every link loses one frame in a hundred.

mod site;

use site::{Hosts, Running, Site, versions};
use srdma_capi as _;

const PROXY: &str = "2001:db8:cc::1";
const MIB: u64 = 1 << 20;

/// Octets that are sent to five receivers.
fn total_octets() -> u64 {
    let text = std::env::var("SRDMA_TEST_PROVIDER_OCTETS").unwrap_or_else(|_| (64 * MIB).to_string());
    text.parse().expect("SRDMA_TEST_PROVIDER_OCTETS is a number")
}

#[test]
#[ignore = "needs root"]
fn endpoints_on_sockets_pass_the_cases_of_providers() {
    cases(&Site::start(Hosts::Namespaces));
}

#[test]
#[ignore = "needs root"]
fn queue_pairs_of_devices_pass_the_cases_of_providers() {
    cases(&Site::start(Hosts::Guests));
}

fn cases(site: &Site) {
    errors(site);
    damaged(site);
    full_slots(site);
    evicted(site);
    whole(site);
}

/// The number of a group whose source has been started.
fn group_of(lines: &[String]) -> Option<&str> {
    lines.iter().find_map(|line| line.strip_prefix("group "))
}

/// Starts a source and its receivers, as many as the source waits for.
fn group<'a, const N: usize>(
    site: &'a Site,
    case: &str,
    source: &[&str],
    receivers: [(&str, &[&str]); N],
) -> (Running<'a>, String, [Running<'a>; N]) {
    let source = site.starts("S1", &format!("{case}-source"), source);
    let lines = source.waits("a group", |lines| group_of(lines).is_some());
    let group = group_of(&lines).expect("it has one").to_owned();
    let receivers = receivers.map(|(host, words)| {
        let words = [&["receive", group.as_str()], words].concat();
        site.starts(host, &format!("{case}-{host}"), &words)
    });
    (source, group, receivers)
}

/// Each at the call that causes it.
fn errors(site: &Site) {
    let error = |provider: &str| {
        let program = site.starts_with(provider, "R1", "errors", &["open"]);
        let is_over = |lines: &[String]| !lines.is_empty();
        let lines = program.waits("a sentence", is_over);
        lines.first().cloned().expect("a line")
    };
    let enodev = "error 19 open: ";
    let sentence = error("shm");
    assert_eq!(
        sentence,
        format!(
            "{enodev}there is no provider \"shm\": udp, verbs, and verbs:NAME for the RDMA device of this name are"
        )
    );
    let sentence = error("verbs:none0");
    assert!(sentence.starts_with(enodev), "{sentence}");
    if site.provider() != "udp" {
        assert_eq!(sentence, format!("{enodev}there is no RDMA device none0; devices: rxe0"));
    }
    assert_eq!(error(site.provider()), "ended");
}

/// D171, D173: a buffer that changes while it is sent is rejected by each receiver, and the next version is right.
fn damaged(site: &Site) {
    let octets = (4 * MIB).to_string();
    let words = ["source", PROXY, "2", "3", &octets, "damage", "2"];
    let (source, _, receivers) = group(site, "damaged", &words, [("R1", &[]), ("R4", &[])]);
    println!("damaged: {:?}", source.ends());
    for receiver in &receivers {
        let lines = receiver.ends();
        assert_eq!(versions(&lines), [1, 3], "{lines:?}");
        assert!(lines.contains(&"rejected 2: the digest of buffer \"half\" is wrong".to_owned()), "{lines:?}");
        assert!(lines.contains(&"over 108: the group is closed".to_owned()), "{lines:?}");
    }
}

/// D172, D175, D183: a receiver whose slots are full holds the source, and its versions stay as they are.
fn full_slots(site: &Site) {
    let (octets, file) = (MIB.to_string(), site.path("release"));
    let words = ["source", PROXY, "3", "6", &octets, "stall", "60000"];
    let hold = ["hold", file.as_str()];
    let receivers: [(&str, &[&str]); 3] = [("R1", &[]), ("R3", &hold), ("R5", &["memory", "2097664"])];
    let (source, _, [first, holding, own]) = group(site, "full", &words, receivers);
    let lines = source.waits("the source is held", |lines| published(lines).len() >= 2);
    assert_eq!(published(&lines), [1, 2]);
    holding.waits("two versions", |lines| versions(lines) == [1, 2]);
    // The source says so when it has waited for slow_after; it prints that when the version is published.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(published(&source.lines()), [1, 2], "it waits");
    site.touch("R3", &file);
    let lines = source.ends();
    assert_eq!(published(&lines), [1, 2, 3, 4, 5, 6]);
    assert!(lines.contains(&"slow 3".to_owned()), "{lines:?}");
    assert_eq!(versions(&holding.ends()), [1, 2, 1, 2, 3, 4, 5, 6], "those that it held are seen twice");
    for receiver in [first, own] {
        assert_eq!(versions(&receiver.ends()), [1, 2, 3, 4, 5, 6]);
    }
}

/// A receiver that keeps its versions for longer than `t_stall` is evicted; what it has stays as it is.
fn evicted(site: &Site) {
    let (octets, never) = (MIB.to_string(), site.path("never"));
    let words = ["source", PROXY, "2", "5", &octets, "stall", "2000", "pause", "700"];
    let hold = ["hold", never.as_str()];
    let receivers: [(&str, &[&str]); 2] = [("R2", &[]), ("R4", &hold)];
    let (source, _, [other, holding]) = group(site, "evicted", &words, receivers);
    assert_eq!(published(&source.ends()), [1, 2, 3, 4, 5]);
    let lines = holding.ends();
    assert_eq!(versions(&lines), [1, 2, 1, 2], "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("over 104: ")), "{lines:?}");
    assert_eq!(versions(&other.ends()), [1, 2, 3, 4, 5]);
}

/// D184, D185: versions reach five receivers, one of which is slow, and one of which is killed and started again: it has
/// the versions after its join.
fn whole(site: &Site) {
    let octets = 8 * MIB;
    let count = total_octets() / octets;
    let (octets, versions_wanted) = (octets.to_string(), count.to_string());
    let words = ["source", PROXY, "5", &versions_wanted, &octets, "pause", "1000"];
    let slow = ["slow", "300"];
    let receivers: [(&str, &[&str]); 5] = [("R1", &[]), ("R2", &[]), ("R3", &slow), ("R4", &[]), ("R5", &[])];
    let (source, group, mut receivers) = group(site, "whole", &words, receivers);
    receivers[4].waits("two versions", |lines| versions(lines).len() >= 2);
    receivers[4].is_killed();
    let before = versions(&receivers[4].lines());
    let again = site.starts("R5", "whole-again", &["receive", &group]);
    let lines = source.ends();
    println!("whole: {lines:?}");
    let all: Vec<u64> = (1..=count).collect();
    assert_eq!(published(&lines), all);
    for receiver in &receivers[..4] {
        let lines = receiver.ends();
        assert_eq!(versions(&lines), all, "{lines:?}");
        assert!(!lines.iter().any(|line| line.starts_with("rejected")), "{lines:?}");
        assert!(lines.contains(&"over 108: the group is closed".to_owned()), "{lines:?}");
    }
    let after = versions(&again.ends());
    let first = *after.first().expect("it has joined again");
    assert!(before.last().is_some_and(|last| first > *last), "{before:?} {after:?}");
    assert_eq!(after, (first..=count).collect::<Vec<u64>>());
    assert_eq!(before, (1..=before.len() as u64).collect::<Vec<u64>>());
    println!("the receiver that was killed has {before:?}, then {after:?}");
}

/// Numbers of published versions.
fn published(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| {
        let (number, _) = line.strip_prefix("published ")?.split_once(' ').expect("a number and a time");
        Some(number.parse().expect("a number"))
    };
    lines.iter().filter_map(number).collect()
}
