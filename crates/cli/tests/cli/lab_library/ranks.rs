//! Ranks of one host: processes that share a receiver (D199).

use super::{Broadcast, MIB, Network, PATIENCE, content};
use nix::sys::signal::Signal;
use srdma::{Buffer, Event, GroupOptions, Source};
use srdma_figures::report;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

const OCTETS: usize = 4 * MIB;

impl Network {
    /// A rank of R1.
    fn rank(&self, program: &Path, name: &str, group: &str, more: &[&str]) -> Broadcast {
        self.starts(program, "R1", name, &[&["receive", group, "--shared"], more].concat())
    }

    /// Whether a rank of R1 has joined, and listens for others.
    fn has_owner(&self) -> bool {
        let files = fs::read_dir(self.directory.path().join("srdma"));
        files.is_ok_and(|mut files| files.any(|file| file.expect("a file").path().extension() == Some("sock".as_ref())))
    }
}

impl Broadcast {
    fn has(&self, line: &str) -> bool {
        self.lines().iter().any(|found| found == line)
    }

    fn waits_for(&self, line: &str) {
        self.waits(line, |it| it.has(line));
    }

    fn waits_for_version(&self, version: u64) {
        self.waits(&format!("version {version}"), |it| it.versions().contains_key(&version));
    }

    /// Its versions, of which it has printed each once.
    fn numbers(&self) -> Vec<u64> {
        let lines = self.lines();
        let numbers = lines.iter().filter_map(|line| line.strip_prefix("version ")?.split_once(' ')?.0.parse().ok());
        numbers.collect()
    }

    fn process(&self) -> u32 {
        self.child.id()
    }
}

fn publish(source: &Source, version: u64) {
    source.publish(version, vec![Buffer::new("data", content(version, 0, OCTETS))]).expect("taken");
}

fn wait(source: &Source, version: u64) {
    source.wait(version, PATIENCE).expect("published");
}

/// Three ranks see each version; one that is killed while it holds a version, one that is stopped, and the owner, which
/// is killed in the middle of a version, do not hold up the others.
#[test]
#[ignore = "needs root"]
fn ranks_of_a_host_share_one_receiver_and_survive_each_other() {
    let network = Network::start();
    let program = network.compiles("examples/broadcast.c");
    let options = GroupOptions { keeps_current: true, ..GroupOptions::for_buffers([OCTETS as u64]) };
    let source = network.source(&options);
    let group = source.group().to_string();
    let mut elsewhere = network.starts(&program, "R3", "elsewhere", &["receive", &group]);
    let mut owner = network.rank(&program, "owner", &group, &[]);
    owner.waits("it joins", |_| network.has_owner());
    let mut other = network.rank(&program, "other", &group, &[]);
    owner.waits_for(&format!("attached {}", other.process()));
    let mut holder = network.rank(&program, "holder", &group, &["--slow", "600000"]);
    owner.waits_for(&format!("attached {}", holder.process()));
    // Two receivers, of which one is that of three processes.
    network.commit(&source, 2);
    [&elsewhere, &owner, &other, &holder].into_iter().for_each(|it| it.waits_for("joined"));

    // The slots of two versions are those that the third process has.
    (1..=3).for_each(|version| publish(&source, version));
    wait(&source, 2);
    [&elsewhere, &owner, &other].into_iter().for_each(|it| it.waits_for_version(2));
    holder.waits_for("taken 1");
    owner.waits_for(&format!("held 1: process {} has it", holder.process()));
    assert!(!owner.versions().contains_key(&3));
    holder.child.kill().expect("it runs");
    holder.child.wait().expect("a child");
    owner.waits_for(&format!("detached {}: its process has ended", holder.process()));
    wait(&source, 3);
    [&elsewhere, &owner, &other].into_iter().for_each(|it| it.waits_for_version(3));

    // One that attaches late is stopped, and does not answer.
    let stopped = network.rank(&program, "stopped", &group, &[]);
    stopped.waits_for("joined");
    stopped.stops();
    (4..=6).for_each(|version| publish(&source, version));
    owner.waits_for(&format!("detached {}: it did not answer in time", stopped.process()));
    wait(&source, 6);
    [&elsewhere, &owner, &other].into_iter().for_each(|it| it.waits_for_version(6));
    stopped.signal(Signal::SIGCONT);
    let detached = "over: the owner of the host's receiver has detached this process: it did not answer in time";
    stopped.waits_for(detached);
    assert_eq!(stopped.numbers(), [0; 0], "nothing that may have been written since");

    // The owner dies in the middle of a version.
    publish(&source, 7);
    owner.child.kill().expect("it runs");
    owner.child.wait().expect("a child");
    other.waits_for("owner lost");
    wait(&source, 7);
    other.waits("it joins anew", |it| it.lines().iter().filter(|line| *line == "joined").count() == 2);
    [&elsewhere, &other].into_iter().for_each(|it| it.waits_for_version(7));
    let mut late = network.rank(&program, "late", &group, &[]);
    other.waits_for(&format!("attached {}", late.process()));
    late.waits_for("joined");
    for version in 8..=9 {
        publish(&source, version);
        wait(&source, version);
        [&elsewhere, &other, &late].into_iter().for_each(|it| it.waits_for_version(version));
    }

    // The end of the group is that of all.
    network.at("S1", |_| source.close()).expect("closed");
    for it in [&mut elsewhere, &mut other, &mut late] {
        it.ends();
        assert_eq!(it.lines().last().map(String::as_str), Some("over: the group is closed"));
    }
    let all: Vec<u64> = (1..=9).collect();
    assert_eq!((elsewhere.numbers(), other.numbers()), (all.clone(), all));
    assert!(late.numbers().ends_with(&[8, 9]), "{:?}", late.lines());
    let sums: BTreeSet<_> = [&elsewhere, &other].map(Broadcast::versions).into_iter().collect();
    assert_eq!(sums.len(), 1, "the same octets");
    for it in [&owner, &late] {
        assert!(it.versions().iter().all(|version| elsewhere.versions().get(version.0) == Some(version.1)));
    }
}

/// An owner that closes its handle leaves the versions that the others have; one of them joins anew.
#[test]
#[ignore = "needs root"]
fn another_rank_takes_over_from_an_owner_that_leaves() {
    let network = Network::start();
    let source = network.source(&GroupOptions { keeps_current: true, ..GroupOptions::for_buffers([OCTETS as u64]) });
    let join = |host: &str, shared: bool| {
        let runtime_directory = Some(network.directory.path().join("ranks"));
        let options = srdma::JoinOptions { shared, runtime_directory, ..srdma::JoinOptions::default() };
        network.at(host, |device| device.join(source.group(), options)).expect("a receiver")
    };
    let is_right = |version: &srdma::Version| {
        assert!(version.buffer("data") == Some(&content(version.number(), 0, OCTETS)), "{version:?}");
    };
    let elsewhere = join("R3", false);
    let [first, second, third] = [(); 3].map(|()| join("R1", true));
    network.commit(&source, 2);
    publish(&source, 1);
    let kept = [&second, &third].map(|it| it.wait(1, PATIENCE).expect("whole"));
    [&elsewhere, &first].into_iter().for_each(|it| is_right(&it.wait(1, PATIENCE).expect("whole")));
    network.at("R1", |_| first.close()).expect("closed");

    let joined = |it: &srdma::Receiver| {
        let events = || super::events(|| it.next_event());
        let begin = std::time::Instant::now();
        let mut found = events();
        while found.iter().filter(|event| **event == Event::Joined).count() < 2 {
            assert!(begin.elapsed() < PATIENCE, "{found:?}");
            std::thread::sleep(Duration::from_millis(20));
            found.extend(events());
        }
        found
    };
    let events = [&second, &third].map(joined);
    for events in &events {
        let lost = events.iter().position(|event| *event == Event::OwnerLost);
        assert!(lost.is_some(), "{events:?}");
        let versions = events.iter().filter(|event| **event == Event::Version { version: 1 });
        assert_eq!(versions.count(), 1, "not again by the new owner: {events:?}");
    }
    let owners = events.iter().filter(|events| events.iter().any(|it| matches!(it, Event::RankAttached { .. })));
    assert_eq!(owners.count(), 1, "{events:?}");
    for version in 2..=4 {
        publish(&source, version);
        for it in [&elsewhere, &second, &third] {
            is_right(&it.wait(version, PATIENCE).expect("whole"));
        }
        wait(&source, version);
    }
    // What was taken of the first owner.
    kept.iter().for_each(is_right);
    network.at("S1", |_| source.close()).expect("closed");
}

/// Processor time and memory of the ranks of a host.
struct Cost {
    processor_ms: u64,
    /// Private memory of all, and each shared page once.
    memory: usize,
    /// Seconds from the call of `publish` of each version to the moment at which the last one has woken up.
    wake_ups: Vec<f64>,
}

/// Milliseconds of processor time of a process.
fn processor_ms(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let (_, rest) = stat.rsplit_once(") ").expect("a name");
    // utime and stime, in hundredths of a second.
    let ticks = rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number"));
    ticks.sum::<u64>() * 10
}

/// Proportional set size: a page that n processes map is the n-th part in each.
fn memory(process: u32) -> usize {
    let sizes = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).expect("it runs");
    let size = sizes.lines().find_map(|line| line.strip_prefix("Pss:")).expect("a size");
    size.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

/// What versions cost the processes of R1.
fn cost(network: &Network, program: &Path, name: &str, processes: usize, octets: usize) -> Cost {
    const VERSIONS: u64 = 5;
    let source = network.source(&GroupOptions::for_buffers([octets as u64]));
    let group = source.group().to_string();
    let start = |index| {
        let sharing = if name == "alone" { "alone" } else { "shared" };
        let process = network.starts(program, "R1", &format!("{name}.{index}"), &[&group, sharing]);
        process.waits_for("waiting");
        process
    };
    let mut ranks: Vec<Broadcast> = (0..processes).map(start).collect();
    network.commit(&source, 1);
    let woken = |it: &Broadcast| {
        let lines = it.lines();
        lines
            .iter()
            .filter_map(|line| line.strip_prefix("woken ")?.split(' ').nth(1)?.parse().ok())
            .collect::<Vec<u64>>()
    };
    let data = content(1, 0, octets);
    let mut wake_ups = Vec::new();
    let before: u64 = ranks.iter().map(|it| processor_ms(it.process())).sum();
    for version in 1..=VERSIONS {
        let begin_ns = now_ns();
        source.publish(version, vec![Buffer::new("data", data.clone())]).expect("taken");
        wait(&source, version);
        for it in &ranks {
            it.waits("it wakes up", |it| woken(it).len() as u64 == version);
        }
        let last_ns = ranks.iter().map(|it| woken(it)[version as usize - 1]).max().expect("ranks");
        wake_ups.push(Duration::from_nanos(last_ns - begin_ns).as_secs_f64());
    }
    let after: u64 = ranks.iter().map(|it| processor_ms(it.process())).sum();
    let memory = ranks.iter().map(|it| memory(it.process())).sum();
    network.at("S1", |_| source.close()).expect("closed");
    ranks.iter_mut().for_each(Broadcast::ends);
    Cost { processor_ms: (after - before) / VERSIONS, memory, wake_ups }
}

fn now_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Four ranks have one copy of the region. (How much processor time they take depends on what else the machine does, and
/// is printed.)
#[test]
#[ignore = "needs root"]
fn four_ranks_have_one_copy_of_the_region() {
    const OCTETS: usize = 64 * MIB;
    let network = Network::start();
    let program = network.compiles("crates/cli/tests/cli/lab_library/rank.c");
    let mut sizes = Vec::new();
    for (name, processes) in [("alone", 1), ("one", 1), ("four", 4)] {
        let Cost { processor_ms, memory, wake_ups } = cost(&network, &program, name, processes, OCTETS);
        let mib = memory as f64 / MIB as f64;
        let what = match name {
            "alone" => "1 process, without `shared`".to_owned(),
            _ => format!("{processes} with `shared`"),
        };
        report(format!("{what}: processor time of a version"), "ms", [processor_ms as f64]);
        report(format!("{what}: memory"), "MiB", [mib]);
        report(format!("{what}: from `publish` to the last wake-up"), "s", wake_ups);
        sizes.push(memory);
    }
    let one = sizes[1];
    assert!(one >= 2 * OCTETS, "two slots of the region are memory of the process: {one}");
    assert!(sizes[2] < one + OCTETS / 2, "{sizes:?}");
}
