//! The host library in the lab `figure1-controller`: a source and receivers that use its groups, each in the namespace of
//! its host.

mod frameworks;
mod log;
mod python;
mod ranks;
mod regions;
mod weights;

use crate::own_lab::{ControllerAccess, Lab};
use nix::sys::signal::Signal;
use srdma::{Buffer, Device, DeviceOptions, Error, Event, GroupOptions, JoinOptions, Over, Receiver, Source, Version};
use srdma_capi as _;
use srdma_io::namespace::Namespace;
use srdma_testkit::built;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const NAME: &str = "figure1-controller";
const PATIENCE: Duration = Duration::from_secs(60);
const MIB: usize = 1 << 20;

/// The octets of a buffer, which depend on version and number alone.
fn content(version: u64, number: u64, octets: usize) -> Vec<u8> {
    let word = |place: u64| (version << 48 ^ number << 40 ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    let mut content: Vec<u8> = (0..octets as u64 / 8 + 1).flat_map(word).collect();
    content.truncate(octets);
    content
}

const LENGTHS: [usize; 3] = [3 * MIB, 1, MIB - 77];

fn buffers(version: u64) -> Vec<Buffer> {
    let buffer = |(number, octets): (usize, &usize)| {
        Buffer::new(format!("tensor {number}"), content(version, number as u64, *octets))
    };
    LENGTHS.iter().enumerate().map(buffer).collect()
}

#[track_caller]
fn check(version: &Version) {
    for (number, octets) in LENGTHS.iter().enumerate() {
        let found = version.buffer(&format!("tensor {number}")).expect("a buffer of this name");
        assert!(found == content(version.number(), number as u64, *octets), "{version:?}, buffer {number}");
    }
}

struct Network {
    lab: Lab,
    access: ControllerAccess,
    directory: tempfile::TempDir,
}

impl Network {
    fn start() -> Self {
        Self::in_lab(Lab::new(NAME, &[]))
    }

    /// The network of a lab file's text.
    fn of(name: &str, text: &str) -> Self {
        Self::in_lab(Lab::of(name, text))
    }

    fn in_lab(lab: Lab) -> Self {
        lab.up();
        let access = lab.controller();
        Network { lab, access, directory: tempfile::tempdir().expect("a directory") }
    }

    fn namespace(&self, host: &str) -> Namespace {
        self.lab.existing(host)
    }

    /// Runs `action` in the namespace of a host; threads that it starts stay there.
    fn at<T: Send>(&self, host: &str, action: impl FnOnce(&Device) -> T + Send) -> T {
        let ControllerAccess([url, token_file, ca_file]) = &self.access;
        let options = DeviceOptions {
            token_file: Some(token_file.into()),
            ca_file: Some(ca_file.into()),
            ..DeviceOptions::new(url)
        };
        let action = || action(&Device::open(&options).expect("a device"));
        self.namespace(host).enter(action).expect("the namespace can be entered")
    }

    fn source(&self, options: &GroupOptions) -> Source {
        let options = GroupOptions { proxy: Some("2001:db8:cc::1".parse().expect("an address")), ..options.clone() };
        self.at("S1", |device| device.create_group(&options)).expect("a group")
    }

    fn receiver(&self, host: &str, source: &Source) -> Receiver {
        self.at(host, |device| device.join(source.group(), JoinOptions::default())).expect("a receiver")
    }

    fn commit(&self, source: &Source, receivers: u32) {
        self.at("S1", |_| source.commit(receivers, PATIENCE)).expect("committed");
    }
}

/// All events so far.
fn events(next: impl Fn() -> srdma::Result<Option<Event>>) -> Vec<Event> {
    std::iter::from_fn(|| next().expect("this process")).collect()
}

/// Five receivers see each version whole, one of them slowly; a sixth joins meanwhile, and sees the next ones.
#[test]
#[ignore = "needs root"]
fn versions_reach_every_receiver_whole_and_in_order() {
    let network = Network::start();
    let options = GroupOptions {
        slow_after: Duration::from_millis(300),
        ..GroupOptions::for_buffers(LENGTHS.map(|octets| octets as u64))
    };
    let source = network.source(&options);
    let receivers = ["R1", "R2", "R3", "R4", "R5"].map(|host| network.receiver(host, &source));
    let begin = Instant::now();
    source.publish(10, buffers(10)).expect("taken");
    network.commit(&source, 5);
    source.wait(10, PATIENCE).expect("published");
    println!("the first version after {:?}", begin.elapsed());
    for receiver in &receivers {
        let version = receiver.next_version(PATIENCE).expect("whole");
        check(&version);
        assert_eq!(version.number(), 10);
        assert_eq!(events(|| receiver.next_event()), [Event::Joined, Event::Version { version: 10 }]);
    }

    // R3 keeps two versions, as many as there are slots, and so holds the source.
    let begin = Instant::now();
    for version in 11..=14 {
        source.publish(version, buffers(version)).expect("taken");
    }
    source.wait(12, PATIENCE).expect("published");
    println!("two versions of {} octets after {:?}", LENGTHS.iter().sum::<usize>(), begin.elapsed());
    let held = [11, 12].map(|number| receivers[2].wait(number, PATIENCE).expect("whole"));
    for index in [0, 1, 3, 4] {
        [11, 12].iter().for_each(|number| check(&receivers[index].wait(*number, PATIENCE).expect("whole")));
    }
    let late = source.wait(13, Duration::from_secs(1));
    assert!(matches!(late, Err(Error::Timeout)), "{late:?}");
    let found = events(|| source.next_event());
    // On a busy host other versions may have been slow, too.
    let (slow, published): (Vec<&Event>, Vec<&Event>) =
        found.iter().partition(|event| matches!(event, Event::Slow { .. }));
    assert!(slow.contains(&&Event::Slow { version: 13 }), "{found:?}");
    assert_eq!(published, [10, 11, 12].map(|version| Event::Published { version }).each_ref());
    held.iter().for_each(check);
    drop(held);
    source.wait(14, PATIENCE).expect("published");
    for receiver in &receivers {
        for number in 13..=14 {
            let version = receiver.next_version(PATIENCE).expect("whole");
            check(&version);
            assert_eq!(version.number(), number);
        }
    }

    // R6 joins between two versions: the pause waits for the end of the one on its way.
    let sixth = network.receiver("R6", &source);
    for version in 15..=40 {
        source.publish(version, buffers(version)).expect("taken");
        source.wait(version, PATIENCE).expect("published");
        for receiver in &receivers {
            check(&receiver.wait(version, PATIENCE).expect("whole"));
        }
        if events(|| sixth.next_event()).contains(&Event::Joined) {
            break;
        }
    }
    source.publish(50, buffers(50)).expect("taken");
    let first = sixth.next_version(PATIENCE).expect("whole");
    check(&first);
    let rejected = events(|| sixth.next_event());
    assert!(!rejected.iter().any(|event| matches!(event, Event::Rejected { .. })), "{rejected:?}");
    source.wait(50, PATIENCE).expect("published");

    // D202.
    let octets: usize = LENGTHS.iter().sum();
    let sent = source.statistics().expect("this process");
    // 10 to 14, those until R6 had joined, and 50.
    let versions = sent.versions;
    assert!((7..=32).contains(&versions), "{sent:?}");
    assert_eq!((sent.octets, sent.failed, sent.waiting), (versions * octets as u64, 0, 0), "{sent:?}");
    assert!(sent.slow >= 1, "{sent:?}");
    let packets = sent.packets.expect("an endpoint");
    assert_eq!(packets.sent - packets.retransmitted, packets.acknowledged, "{packets:?}");
    assert!(packets.acknowledged * 4096 >= sent.octets, "{packets:?}");
    for receiver in &receivers {
        receiver.wait(50, PATIENCE).expect("whole");
        let received = receiver.statistics().expect("this process");
        assert_eq!((received.versions, received.octets, received.failed), (versions, sent.octets, 0), "{received:?}");
        assert_eq!((received.slow, received.strays), (0, 0), "{received:?}");
        assert!(received.packets.expect("an endpoint").octets_received >= sent.octets, "{received:?}");
    }

    // The end of the group: what is whole is still there to take.
    drop(first);
    network.at("S1", |_| source.close()).expect("closed");
    for receiver in receivers {
        let over = loop {
            match receiver.next_version(PATIENCE) {
                Ok(version) => check(&version),
                Err(error) => break error,
            }
        };
        assert!(matches!(over, Error::Over(Over::GroupClosed)), "{over}");
    }
}

/// D200: Several groups have the same source host and the same receivers, each with one address.
#[test]
#[ignore = "needs root"]
fn groups_share_the_addresses_of_their_hosts() {
    let network = Network::start();
    let options = GroupOptions::for_buffers(LENGTHS.map(|octets| octets as u64));
    let create = || network.at("S1", |device| device.create_group(&options)).expect("a group");
    let sources = [create(), create(), create()];
    let receivers = sources.each_ref().map(|source| ["R1", "R5"].map(|host| network.receiver(host, source)));
    sources.iter().for_each(|source| network.commit(source, 2));
    for round in 0..3 {
        let number = |group: usize| 10 * (group as u64 + 1) + round;
        for (group, source) in sources.iter().enumerate() {
            source.publish(number(group), buffers(number(group))).expect("taken");
        }
        for (group, receivers) in receivers.iter().enumerate() {
            for receiver in receivers {
                let version = receiver.next_version(PATIENCE).expect("whole");
                assert_eq!(version.number(), number(group));
                check(&version);
            }
        }
    }
    // One of them ends, and its addresses go on.
    let [first, second, _third] = sources;
    network.at("S1", |_| first.close()).expect("closed");
    assert!(matches!(receivers[0][0].next_version(PATIENCE), Err(Error::Over(Over::GroupClosed))));
    second.publish(99, buffers(99)).expect("taken");
    receivers[1].iter().for_each(|receiver| check(&receiver.next_version(PATIENCE).expect("whole")));
}

/// A process of `examples/broadcast.c`, with its output in a file.
struct Broadcast {
    child: Child,
    output: PathBuf,
}

impl Drop for Broadcast {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Broadcast {
    fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.output).expect("written").lines().map(str::to_owned).collect()
    }

    /// Length and checksum of each version that it has printed.
    fn versions(&self) -> BTreeMap<u64, String> {
        let version = |line: String| {
            let (number, rest) = line.strip_prefix("version ")?.split_once(' ')?;
            Some((number.parse().expect("a number"), rest.to_owned()))
        };
        self.lines().into_iter().filter_map(version).collect()
    }

    #[track_caller]
    fn waits(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < PATIENCE, "in vain: {what}: {:?}", self.lines());
            sleep(Duration::from_millis(50));
        }
    }

    /// Its first line, once there is one.
    #[track_caller]
    fn first_line(&self) -> String {
        self.waits("a line", |it| !it.lines().is_empty());
        self.lines().remove(0)
    }

    /// The number of the group that it has created, from its first line.
    #[track_caller]
    fn group(&self) -> String {
        self.first_line().strip_prefix("group ").expect("the group's number").to_owned()
    }

    #[track_caller]
    fn ends(&mut self) {
        let begin = Instant::now();
        while self.child.try_wait().expect("a child").is_none() {
            assert!(begin.elapsed() < PATIENCE, "it does not end: {:?}", self.lines());
            sleep(Duration::from_millis(50));
        }
        assert!(self.child.wait().expect("ended").success(), "{:?}", self.lines());
    }
}

impl Network {
    /// Compiles a program with the static library.
    fn compiles(&self, source: &str) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let program = self.directory.path().join("program");
        let output = Command::new("cc")
            .args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
            .arg(&program)
            .arg(root.join(source))
            .arg(format!("-I{}", root.join("crates/capi/include").display()))
            .arg(format!("-I{}", root.join("crates/capi/tests/capi").display()))
            .arg(built::static_library("libsrdma_capi"))
            .args(["-lgcc_s", "-lpthread", "-ldl", "-lm"])
            .output()
            .expect("cc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    }

    fn starts(&self, program: &Path, host: &str, name: &str, arguments: &[&str]) -> Broadcast {
        let output = self.directory.path().join(name);
        let file = fs::File::create(&output).expect("a file");
        let mut command = self.namespace(host).command(program.to_str().expect("UTF-8"));
        self.access.set(&mut command);
        // Where ranks of a host find each other.
        command.env("XDG_RUNTIME_DIR", self.directory.path());
        command.args(arguments).stdout(Stdio::from(file)).stderr(Stdio::inherit());
        Broadcast { child: command.spawn().expect("it starts"), output }
    }
}

/// The C example: one receiver is slow, one is killed and started again. Each version that a receiver prints is that of
/// the source, and the one that was killed misses no version after its join.
#[test]
#[ignore = "needs root"]
fn the_c_example_broadcasts_to_a_slow_and_a_restarted_receiver() {
    const VERSIONS: u64 = 30;
    let network = Network::start();
    let program = network.compiles("examples/broadcast.c");
    let source = ["source", "--proxy", "2001:db8:cc::1", "--receivers", "3", "--octets", "4000001", "--pause", "50"];
    let versions = VERSIONS.to_string();
    let mut source = network.starts(&program, "S1", "source", &[&source[..], &["--versions", &versions]].concat());
    let group = source.group();
    let mut fast = network.starts(&program, "R1", "fast", &["receive", &group]);
    let mut slow = network.starts(&program, "R3", "slow", &["receive", &group, "--slow", "600"]);
    let mut killed = network.starts(&program, "R5", "killed", &["receive", &group]);
    killed.waits("three versions", |killed| killed.versions().len() >= 3);
    // In the middle of a version, most likely: the source waits for the acknowledgements of this receiver.
    killed.child.kill().expect("it runs");
    killed.child.wait().expect("a child");
    let mut restarted = network.starts(&program, "R5", "restarted", &["receive", &group]);
    source.ends();
    for receiver in [&mut fast, &mut slow, &mut restarted] {
        receiver.ends();
    }

    let sent = source.versions();
    assert_eq!(sent.keys().copied().collect::<Vec<_>>(), (1..=VERSIONS).collect::<Vec<_>>());
    assert_eq!((fast.versions(), slow.versions()), (sent.clone(), sent.clone()));
    assert!(source.lines().iter().any(|line| line.starts_with("slow ")), "{:?}", source.lines());
    let (before, after) = (killed.versions(), restarted.versions());
    let first = *after.keys().next().expect("it has joined again");
    assert!(first > *before.keys().next_back().expect("three versions"), "{before:?} {after:?}");
    assert_eq!(after, sent.range(first..).map(|(version, sum)| (*version, sum.clone())).collect());
    for (version, sum) in before {
        assert_eq!(sum, sent[&version], "version {version}");
    }
    for receiver in [&fast, &slow, &restarted] {
        let lines = receiver.lines();
        assert!(!lines.iter().any(|line| line.starts_with("rejected")), "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("over: the group is closed"));
    }
    println!(
        "the receiver that was killed after version {:?} has the versions from {first} on",
        killed.versions().len()
    );
}

/// The source's process is killed in the middle of a version, twice; its next one resumes the group. No receiver is
/// started again, and each has all versions, one of them slowly, and one that starts by the number of the first group.
#[test]
#[ignore = "needs root"]
fn receivers_go_on_with_a_source_that_is_killed_and_resumes() {
    const VERSIONS: u64 = 24;
    let network = Network::start();
    let program = network.compiles("examples/broadcast.c");
    let versions = VERSIONS.to_string();
    let common = ["source", "--receivers", "3", "--octets", "6000001", "--versions", &versions];
    let proxy = ["--proxy", "2001:db8:cc::1"];
    let mut source = network.starts(&program, "S1", "source", &[&common[..], &proxy].concat());
    let group = source.group();
    let slow = network.starts(&program, "R3", "slow", &["receive", &group, "--slow", "100"]);
    let mut receivers = vec![network.starts(&program, "R1", "first", &["receive", &group]), slow];
    receivers.push(network.starts(&program, "R5", "third", &["receive", &group]));
    let mut sent = BTreeMap::new();
    for (name, least) in [("second source", 5), ("third source", 12)] {
        // A version does not end while this receiver is stopped.
        receivers[0].waits("versions", |receiver| receiver.versions().len() >= least);
        receivers[0].stops();
        let octets = || network.lab.octets("S1-N6", "down_octets");
        let before = octets();
        source.waits("octets of a version", |_| octets() >= before + MIB as u64);
        source.child.kill().expect("it runs");
        source.child.wait().expect("a child");
        receivers[0].signal(Signal::SIGCONT);
        sent.append(&mut source.versions());
        let newest = sent.keys().next_back().expect("versions").to_string();
        let resumes = ["--resume", &group, "--after", &newest];
        let begin = Instant::now();
        source = network.starts(&program, "S1", name, &[&common[..], &resumes].concat());
        source.waits("its first version", |source| !source.versions().is_empty());
        println!("a version of the next source after {:?}", begin.elapsed());
    }
    source.ends();
    sent.append(&mut source.versions());
    assert_eq!(sent.keys().copied().collect::<Vec<_>>(), (1..=VERSIONS).collect::<Vec<_>>());
    let mut interrupted = 0;
    for receiver in &mut receivers {
        receiver.ends();
        assert_eq!(receiver.versions(), sent);
        let lines = receiver.lines();
        assert_eq!(lines.iter().filter(|line| *line == "resumed").count(), 2, "{lines:?}");
        let reasons: Vec<&String> = lines.iter().filter(|line| line.starts_with("rejected")).collect();
        let is_expected = |line: &&&String| {
            line.ends_with("the source has died in the middle of it") || line.contains("it is not after version")
        };
        assert_eq!(reasons.iter().filter(is_expected).count(), reasons.len(), "{reasons:?}");
        interrupted += reasons.iter().filter(|line| line.ends_with("in the middle of it")).count();
        assert_eq!(lines.last().map(String::as_str), Some("over: the group is closed"));
    }
    println!("{interrupted} versions were interrupted");
    assert!(interrupted > 0);
}

/// A receiver that joins late, and one that was killed and starts again, get the version that was published last, though
/// nothing is published meanwhile, and then the next one (D187, D190).
#[test]
#[ignore = "needs root"]
fn late_and_restarted_receivers_get_the_current_version() {
    let network = Network::start();
    let program = network.compiles("examples/broadcast.c");
    // The C example reads a buffer of this name.
    let data = |version| vec![Buffer::new("data", content(version, 0, 4 * MIB))];
    let is_right = |version: &Version| {
        assert!(version.buffer("data") == Some(&content(version.number(), 0, 4 * MIB)), "{version:?}");
    };
    let mut options = GroupOptions::for_buffers([4 << 20]);
    options.keeps_current = true;
    let source = network.source(&options);
    let group = source.group().to_string();
    let stays = network.receiver("R1", &source);
    let mut killed = network.starts(&program, "R5", "killed", &["receive", &group]);
    network.commit(&source, 2);
    for version in 1..=3 {
        source.publish(version, data(version)).expect("taken");
        is_right(&stays.wait(version, PATIENCE).expect("whole"));
    }
    source.wait(3, PATIENCE).expect("published");
    killed.waits("three versions", |killed| killed.versions().len() == 3);

    let begin = Instant::now();
    let late = network.receiver("R3", &source);
    let version = late.next_version(PATIENCE).expect("whole");
    println!("the current version after {:?}", begin.elapsed());
    assert_eq!(version.number(), 3);
    is_right(&version);
    drop(version);
    assert_eq!(events(|| late.next_event()), [Event::Joined, Event::Version { version: 3 }]);

    killed.child.kill().expect("it runs");
    killed.child.wait().expect("a child");
    let mut restarted = network.starts(&program, "R5", "restarted", &["receive", &group]);
    restarted.waits("the current version", |restarted| !restarted.versions().is_empty());
    source.publish(4, data(4)).expect("taken");
    source.wait(4, PATIENCE).expect("published");
    for receiver in [&stays, &late] {
        let version = receiver.next_version(PATIENCE).expect("whole");
        assert_eq!(version.number(), 4);
        is_right(&version);
    }
    restarted.waits("the next version", |restarted| restarted.versions().len() == 2);
    let (before, after) = (killed.versions(), restarted.versions());
    assert_eq!(after.keys().copied().collect::<Vec<_>>(), [3, 4]);
    assert_eq!(after[&3], before[&3]);
    network.at("S1", |_| source.close()).expect("closed");
    restarted.ends();
}

/// A receiver that keeps its versions for longer than `t_stall` is evicted: the others go on, and what it has stays as it
/// is.
#[test]
#[ignore = "needs root"]
fn a_receiver_that_is_too_slow_is_evicted_and_keeps_what_it_has() {
    let network = Network::start();
    let mut options = GroupOptions::for_buffers(LENGTHS.map(|octets| octets as u64));
    options.slow_after = Duration::from_millis(200);
    options.policy.t_stall = Duration::from_secs(1);
    let source = network.source(&options);
    let receivers = ["R1", "R3"].map(|host| network.receiver(host, &source));
    network.commit(&source, 2);
    for version in 1..=4 {
        source.publish(version, buffers(version)).expect("taken");
    }
    let held = [1, 2].map(|number| receivers[1].wait(number, PATIENCE).expect("whole"));
    for number in 1..=4 {
        check(&receivers[0].wait(number, PATIENCE).expect("whole"));
    }
    source.wait(4, PATIENCE).expect("published");
    let found = events(|| source.next_event());
    let slow = found.iter().position(|event| *event == Event::Slow { version: 3 });
    let published = found.iter().position(|event| *event == Event::Published { version: 3 });
    assert!(slow.expect("reported") < published.expect("then published"), "{found:?}");
    let over = receivers[1].next_version(PATIENCE).expect_err("evicted");
    assert!(matches!(over, Error::Over(Over::Evicted)), "{over}");
    held.iter().for_each(check);
    network.at("S1", |_| source.close()).expect("closed");
    held.iter().for_each(check);
}

/// Each error of the C interface at the call that causes it, with a real group; handles after `fork`; memory of the
/// program.
#[test]
#[ignore = "needs root"]
fn c_programs_get_each_error_at_its_call() {
    let network = Network::start();
    let program = network.compiles("crates/cli/tests/cli/lab_library/group.c");
    let mut alone = network.starts(&program, "S1", "source", &["source", "2001:db8:cc::2"]);
    alone.ends();

    let options = GroupOptions::for_buffers([4096]);
    let source = network.source(&options);
    let mut receiver = network.starts(&program, "R1", "receiver", &["receive", &source.group().to_string()]);
    receiver.waits("it joins", |receiver| receiver.lines().contains(&"waiting".to_owned()));
    network.commit(&source, 1);
    source.publish(1, vec![Buffer::new("ones", [1; 100]), Buffer::new("empty", [])]).expect("taken");
    source.wait(1, PATIENCE).expect("published");
    network.at("S1", |_| source.close()).expect("closed");
    receiver.ends();
}
