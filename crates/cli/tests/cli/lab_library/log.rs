//! `examples/log.rs`: a replicated log.

use super::{Broadcast, Network};
use crate::signals;
use nix::sys::signal::Signal;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};

/// The example, which cargo builds beside the tests.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let examples = test.parent().and_then(|directory| directory.parent()).expect("a target directory").join("examples");
    let log = examples.join("log");
    assert!(log.exists(), "{} is not there: cargo test -p srdma-cli builds it", log.display());
    log
}

impl Network {
    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn follows(&self, host: &str, group: &str) -> Broadcast {
        self.starts(&example(), host, &format!("{host}.out"), &["follow", group, &self.file(host)])
    }

    /// Starts the leader, with its input.
    fn leads(&self, arguments: &[&str]) -> (Broadcast, ChildStdin) {
        let output = self.directory.path().join("leader.out");
        let file = fs::File::create(&output).expect("a file");
        let mut command = self.namespace("S1").command(example().to_str().expect("UTF-8"));
        self.access.set(&mut command);
        command.arg("lead").args(arguments).arg(self.file("leader"));
        command.stdin(Stdio::piped()).stdout(Stdio::from(file)).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take().expect("a pipe");
        (Broadcast { child, output }, input)
    }
}

impl Broadcast {
    pub(super) fn signal(&self, signal: Signal) {
        signals::send(signal, self.child.id());
    }

    /// Stops it, and waits until none of its threads runs any more: one may still acknowledge what comes.
    pub(super) fn stops(&self) {
        self.signal(Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_stopped = |task: fs::DirEntry| {
            let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        };
        self.waits("it stops", |_| fs::read_dir(&tasks).expect("it runs").flatten().all(is_stopped));
    }

    fn says(&self, line: &str) {
        self.waits(line, |it| it.lines().iter().any(|found| found == line));
    }
}

/// Three members, of which two must be left: the first that stops is evicted and the log goes on; the second that stops
/// is not, so that nothing is acknowledged until it goes on. What is acknowledged is in the file of every member.
#[test]
#[ignore = "needs root"]
fn a_log_goes_on_without_a_laggard_down_to_the_least_number_of_members() {
    let network = Network::start();
    // Long enough for a follower that waits for a busy processor or disk.
    let options = ["--proxy", "2001:db8:cc::1", "--members", "3", "--least", "2", "--evict-after", "8000"];
    let (mut leader, mut input) = network.leads(&options);
    let group = leader.group();
    let mut followers = ["R1", "R3", "R5"].map(|host| network.follows(host, &group));
    let mut append = |entries: std::ops::RangeInclusive<u64>| {
        entries.for_each(|entry| writeln!(input, "entry number {entry}").expect("it reads"));
    };
    append(1..=40);
    leader.says("acknowledged 40");

    followers[2].stops();
    append(41..=80);
    leader.says("acknowledged 80");

    followers[1].stops();
    append(81..=81);
    // A second each: longer than it took to evict the other.
    leader.waits("it waits", |leader| leader.lines().iter().filter(|line| *line == "waiting 81").count() >= 12);
    assert!(!leader.lines().contains(&"acknowledged 81".to_owned()), "{:?}", leader.lines());
    followers[1].signal(Signal::SIGCONT);
    leader.says("acknowledged 81");

    followers[2].signal(Signal::SIGCONT);
    followers[2].ends();
    let last = followers[2].lines().pop().unwrap_or_default();
    assert!(last.starts_with("over: the receiver is no longer a member"), "{last}");
    drop(input);
    leader.ends();
    for follower in &mut followers[..2] {
        follower.ends();
        assert_eq!(follower.lines().last().map(String::as_str), Some("over: the group is closed"));
    }

    let log = |name: &str| fs::read_to_string(network.file(name)).expect("written");
    let expected: String = (1..=81).map(|entry| format!("{entry} entry number {entry}\n")).collect();
    assert_eq!(log("leader"), expected);
    assert_eq!((log("R1"), log("R3")), (expected.clone(), expected.clone()));
    let behind = log("R5");
    assert!(expected.starts_with(&behind) && behind.lines().count() >= 40, "{behind}");
}
