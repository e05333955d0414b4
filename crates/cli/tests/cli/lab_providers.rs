//! The host library on both providers, by the same cases: endpoints on sockets in namespaces, and queue pairs of
//! soft-RoCE in guests, which an unmodified Linux kernel has. Every link loses one frame in a hundred.

mod site;

use serde_json::Value;
use site::{Hosts, IpVersion, Running, Site, versions};
use srdma_capi as _;

const MIB: u64 = 1 << 20;

/// Octets that are sent to five receivers.
fn total_octets() -> u64 {
    let text = std::env::var("SRDMA_TEST_PROVIDER_OCTETS").unwrap_or_else(|_| (64 * MIB).to_string());
    text.parse().expect("SRDMA_TEST_PROVIDER_OCTETS is a number")
}

#[test]
#[ignore = "needs root"]
fn endpoints_on_sockets_pass_the_cases_of_providers() {
    cases(&Site::start(Hosts::Namespaces, IpVersion::Ipv6));
}

/// D272, D275: the same in groups of IPv4 hosts.
#[test]
#[ignore = "needs root"]
fn endpoints_on_ipv4_sockets_pass_the_cases_of_providers() {
    cases(&Site::start(Hosts::Namespaces, IpVersion::Ipv4));
}

/// D185: one that joins later is connected at its join point.
#[test]
#[ignore = "needs root"]
fn queue_pairs_of_devices_pass_the_cases_of_providers() {
    cases(&Site::start(Hosts::Guests, IpVersion::Ipv6));
}

/// D272, D273: queue pairs with IPv4-mapped GIDs, whose packets are IPv4, are members of groups of IPv4.
#[test]
#[ignore = "needs root"]
fn queue_pairs_with_ipv4_gids_pass_the_cases_of_providers() {
    cases(&Site::start(Hosts::Guests, IpVersion::Ipv4));
}

fn cases(site: &Site) {
    errors(site);
    damaged(site);
    full_slots(site);
    ranks(site);
    evicted(site);
    file_to_group(site, "write", &site.proxy(5));
    file_to_group(site, "send", &site.proxy(6));
    file_to_peer(site);
    directory(site);
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
    for receiver in &receivers {
        receiver.waits("its request to join", |lines| lines.iter().any(|line| line == "requested"));
    }
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
    let words = ["source", &site.proxy(1), "2", "3", &octets, "damage", "2"];
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
    let words = ["source", &site.proxy(2), "3", "6", &octets, "stall", "60000"];
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

/// D199: three processes of a host share its receiver; one of them, which is not the owner, keeps its versions.
fn ranks(site: &Site) {
    let (octets, file, directory) = (MIB.to_string(), site.path("rank-release"), site.path("ranks"));
    let words = ["source", &site.proxy(8), "2", "6", &octets, "stall", "60000"];
    let shared = ["shared", directory.as_str()];
    let (source, group, [owner]) = group(site, "ranks", &words, [("R1", &shared)]);
    let starts = |host: &str, name: &str, more: &[&str]| {
        let receiver = site.starts(host, name, &[&["receive", group.as_str()], more].concat());
        receiver.waits("it has joined, or is attached", |lines| lines.iter().any(|line| line == "requested"));
        receiver
    };
    let second = starts("R1", "ranks-second", &shared);
    let holding = starts("R1", "ranks-holding", &[&shared[..], &["hold", file.as_str()]].concat());
    // The source waits for two receivers: that of three processes, and this one.
    let other = starts("R4", "ranks-R4", &[]);
    source.waits("the source is held", |lines| published(lines).len() >= 2);
    holding.waits("two versions", |lines| versions(lines) == [1, 2]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(published(&source.lines()), [1, 2], "it waits");
    site.touch("R1", &file);
    assert_eq!(published(&source.ends()), [1, 2, 3, 4, 5, 6]);
    assert_eq!(versions(&holding.ends()), [1, 2, 1, 2, 3, 4, 5, 6], "those that it held are seen twice");
    for receiver in [owner, second, other] {
        let lines = receiver.ends();
        assert_eq!(versions(&lines), [1, 2, 3, 4, 5, 6]);
        assert!(lines.contains(&"over 108: the group is closed".to_owned()), "{lines:?}");
    }
}

/// A receiver that keeps its versions for longer than `t_stall` is evicted; what it has stays as it is.
fn evicted(site: &Site) {
    let (octets, never) = (MIB.to_string(), site.path("never"));
    let words = ["source", &site.proxy(3), "2", "5", &octets, "stall", "2000", "pause", "700"];
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
    let file = site.path("joined-again");
    let words = ["source", &site.proxy(4), "5", &versions_wanted, &octets, "pause", "1000", "last", &file];
    let slow = ["slow", "300"];
    let receivers: [(&str, &[&str]); 5] = [("R1", &[]), ("R2", &[]), ("R3", &slow), ("R4", &[]), ("R5", &[])];
    let (source, group, mut receivers) = group(site, "whole", &words, receivers);
    receivers[4].waits("two versions", |lines| versions(lines).len() >= 2);
    receivers[4].is_killed();
    let before = versions(&receivers[4].lines());
    let again = site.starts("R5", "whole-again", &["receive", &group]);
    again.waits("it has joined", |lines| lines.iter().any(|line| line == "joined"));
    site.touch("S1", &file);
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

/// The line that is an object of JSON with this key.
fn object(lines: &[String], key: &str) -> Option<Value> {
    let objects = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    objects.rev().find(|object| object.get(key).is_some())
}

/// `srdma send --create` and `srdma recv --group`.
fn file_to_group(site: &Site, operation: &str, proxy: &str) {
    let device = site.device();
    let line = format!(
        "send --random 3000001 --seed 7 --op {operation} --create $SRDMA_CONTROLLER --proxy {proxy} --receivers 5 \
         --path-mtu 1024 --json {device}"
    );
    let source = site.starts_srdma("S1", &format!("send-{operation}"), &line);
    let lines = source.waits("a group", |lines| object(lines, "group").is_some());
    let group = object(&lines, "group").expect("it has one")["group"].as_str().expect("a URL").to_owned();
    let receivers = ["R1", "R2", "R3", "R4", "R5"].map(|host| {
        let line = format!("recv --group {group} --size 4MiB --json {device}");
        site.starts_srdma(host, &format!("recv-{operation}-{host}"), &line)
    });
    for receiver in &receivers {
        receiver.waits("its properties", |lines| object(lines, "rkey").is_some());
    }
    let lines = source.ends();
    println!("send --op {operation}: {lines:?}");
    let sent = object(&lines, "completions").expect("a result");
    assert_eq!((&sent["error"], &sent["octets"]), (&Value::Null, &3_000_001.into()), "{sent}");
    let digest = Value::from(sent["sha256"].as_str().expect("a digest"));
    for receiver in receivers {
        let lines = receiver.ends();
        let received = object(&lines, "matches").unwrap_or_else(|| panic!("a result: {lines:?}"));
        assert_eq!((&received["matches"], &received["operation"]), (&true.into(), &operation.into()), "{received}");
        assert_eq!((&received["sha256"], &received["octets"]), (&digest, &3_000_001.into()), "{received}");
    }
}

/// `srdma send` and `srdma recv` without a controller; on devices each prints the number of its queue pair.
fn file_to_peer(site: &Site) {
    let (device, address) = (site.device(), site.source());
    let file = site.path("peer-info");
    let (source, qpn) = if device.is_empty() {
        (None, 0x11)
    } else {
        site.lab.guest_shell("S1", &format!("mkfifo {file}"));
        let line = format!("send --random 1000003 --peer-info {file} --address {address} --json {device}");
        let source = site.starts_srdma("S1", "send-peer", &line);
        let lines = source.waits("its queue pair", |lines| object(lines, "qpn").is_some());
        (Some(source), object(&lines, "qpn").expect("it has one")["qpn"].as_u64().expect("a number"))
    };
    let line =
        format!("recv --peer {address} --peer-qpn {qpn} --psn 0xfffff0 --path-mtu 1024 --size 2MiB --json {device}");
    let receiver = site.starts_srdma("R2", "recv-peer", &line);
    let info = receiver.waits("its properties", |lines| object(lines, "rkey").is_some());
    let info = object(&info, "rkey").expect("they are there").to_string();
    site.write("S1", &file, &info);
    let source = source.unwrap_or_else(|| {
        site.starts_srdma("S1", "send-peer", &format!("send --random 1000003 --peer-info {file} --json"))
    });
    let sent = object(&source.ends(), "completions").expect("a result");
    let received = object(&receiver.ends(), "matches").expect("a result");
    assert_eq!((&sent["error"], &received["matches"]), (&Value::Null, &true.into()), "{sent} {received}");
    assert_eq!((&sent["octets"], &received["operation"]), (&1_000_003.into(), &"write".into()), "{sent} {received}");
}

/// `srdma push` and `srdma pull`.
fn directory(site: &Site) {
    let (device, proxy) = (site.device(), site.proxy(7));
    let line = format!("push /etc/libibverbs.d --proxy {proxy} --receivers 2 --path-mtu 1024 --json {device}");
    let line = if device.is_empty() { line.replace("/etc/libibverbs.d", "/etc/apt") } else { line };
    let source = site.starts_srdma("S1", "push", &line);
    let lines = source.waits("a group", |lines| object(lines, "list").is_some());
    let group = object(&lines, "list").expect("it has one")["group"].as_u64().expect("a number");
    let receivers = ["R1", "R4"].map(|host| {
        let copy = site.path(&format!("copy-{host}"));
        site.starts_srdma(
            host,
            &format!("pull-{host}"),
            &format!("pull $SRDMA_CONTROLLER/{group} {copy} --json {device}"),
        )
    });
    let sent = object(&source.ends(), "rounds").expect("a result");
    assert_eq!((&sent["error"], &sent["receivers_left"]), (&Value::Null, &0.into()), "{sent}");
    let octets = sent["octets"].as_u64().expect("a number");
    for receiver in receivers {
        let lines = receiver.ends();
        let received = object(&lines, "octets_there").unwrap_or_else(|| panic!("a result: {lines:?}"));
        assert_eq!((&received["error"], &received["octets_there"]), (&Value::Null, &octets.into()), "{received}");
    }
}

/// Numbers of published versions.
fn published(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| {
        let (number, _) = line.strip_prefix("published ")?.split_once(' ').expect("a number and a time");
        Some(number.parse().expect("a number"))
    };
    lines.iter().filter_map(number).collect()
}
