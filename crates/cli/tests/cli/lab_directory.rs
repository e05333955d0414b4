//! `srdma push` and `srdma pull` in the lab `figure1-controller`: each host in its namespace.

use crate::own_lab::{ControllerAccess, Lab, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const NAME: &str = "figure1-controller";
const MIB: usize = 1 << 20;

struct Network {
    lab: Lab,
    access: ControllerAccess,
    directory: tempfile::TempDir,
}

/// A command that runs at a host; ended at the end whatever happens.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        serde_json::from_str(&line).expect("a line is JSON")
    }

    /// Its last line, and whether it has succeeded.
    fn ends(mut self) -> (bool, Value) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("readable");
        let is_good = self.child.wait().expect("a child").success();
        (is_good, serde_json::from_str(rest.lines().last().unwrap_or("null")).expect("a line is JSON"))
    }
}

impl Network {
    fn start() -> Self {
        let lab = Lab::new(NAME, &[]);
        lab.up();
        let access = lab.controller();
        Network { lab, access, directory: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, host: &str) -> Command {
        let namespace = self.lab.existing(host);
        let mut command = namespace.command(env!("CARGO_BIN_EXE_srdma"));
        self.access.set(&mut command);
        command
    }

    fn runs(&self, host: &str, arguments: &[&str]) -> Running {
        let mut command = self.command(host);
        command.args(arguments).arg("--json").stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Running { child, output }
    }

    /// Starts a source; returns it and the group's URL.
    fn pushes(&self, directory: &Path, arguments: &[&str]) -> (Running, String) {
        let directory = directory.to_str().expect("UTF-8");
        let common = ["push", directory, "--proxy", "2001:db8:cc::1", "--chunk", "1MiB"];
        let mut push = self.runs("S1", &[&common[..], arguments].concat());
        let group = push.line()["group"].as_u64().expect("its number");
        (push, format!("{}/{group}", self.access.url()))
    }

    fn pulls(&self, host: &str, group: &str, arguments: &[&str]) -> Running {
        let directory = self.path(host);
        self.runs(host, &[&["pull", group, directory.to_str().expect("UTF-8")][..], arguments].concat())
    }
}

/// A model's files: some of several chunks, some small, an empty one, and a symbolic link as in a snapshot.
fn model(directory: &Path, octets: usize) {
    fs::create_dir_all(directory.join("blobs")).expect("a directory");
    let content = |seed: usize, octets: usize| -> Vec<u8> {
        (0..octets).map(|at| (at.wrapping_mul(0x9E37_79B1).wrapping_add(seed * 77) >> 11) as u8).collect()
    };
    for shard in 0..4 {
        fs::write(directory.join(format!("model-{shard}.safetensors")), content(shard, octets / 4 + shard)).unwrap();
    }
    fs::write(directory.join("blobs/0f"), content(9, 5000)).expect("a file");
    std::os::unix::fs::symlink("blobs/0f", directory.join("config.json")).expect("a link");
    fs::write(directory.join("empty"), []).expect("a file");
}

fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).expect("readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let content = fs::read(&path).expect("readable");
                contents.insert(path.strip_prefix(directory).expect("below it").to_owned(), content);
            }
        }
    }
    contents
}

/// Three receivers; one is killed in the middle and started again, and has what it lacked from the next round; a fourth
/// joins late.
#[test]
#[ignore = "needs root"]
fn a_directory_reaches_receivers_that_are_killed_or_late() {
    let network = Network::start();
    let source = network.path("source");
    model(&source, 48 * MIB);
    let (push, group) = network.pushes(&source, &["--receivers", "3"]);
    let early = ["R1", "R3"].map(|host| network.pulls(host, &group, &[]));
    let mut killed = network.pulls("R5", &group, &[]);
    let record = network.path("R5.partial/chunks");
    wait_until(|| fs::metadata(&record).is_ok_and(|data| data.len() >= 4 * 36), || "R5 receives nothing".to_owned());
    killed.child.kill().expect("it runs");
    killed.child.wait().expect("a child");
    let late = ["R5", "R2"].map(|host| network.pulls(host, &group, &[]));
    assert!(!network.path("R5").exists(), "nothing is seen before everything is there");
    let expected = contents(&source);
    for receiver in early.into_iter().chain(late) {
        let (is_good, report) = receiver.ends();
        assert!(is_good, "{report}");
        let octets = report["octets"].as_u64().expect("a number");
        assert_eq!((&report["octets_there"], &report["damaged_chunks"]), (&octets.into(), &0.into()), "{report}");
    }
    let (is_good, report) = push.ends();
    assert!(is_good, "{report}");
    for host in ["R1", "R2", "R3", "R5"] {
        assert!(contents(&network.path(host)) == expected, "{host} has other files");
        assert!(!network.path(&format!("{host}.partial")).exists(), "{host}");
    }
}

/// What was received before a kill is verified and kept: the second process says how much.
#[test]
#[ignore = "needs root"]
fn a_restarted_receiver_keeps_what_it_has() {
    let network = Network::start();
    let source = network.path("source");
    // More than the other receiver gets while this one starts again: a group cannot be without a receiver.
    model(&source, 96 * MIB);
    let (push, group) = network.pushes(&source, &["--receivers", "2", "--stay", "5s"]);
    let other = network.pulls("R3", &group, &[]);
    let mut killed = network.pulls("R1", &group, &[]);
    let record = network.path("R1.partial/chunks");
    wait_until(|| fs::metadata(&record).is_ok_and(|data| data.len() >= 8 * 36), || "R1 receives nothing".to_owned());
    killed.child.kill().expect("it runs");
    killed.child.wait().expect("a child");
    let (is_good, report) = network.pulls("R1", &group, &[]).ends();
    assert!(is_good, "{report}");
    let resumed = report["octets_resumed"].as_u64().expect("a count");
    assert!(resumed >= 8 * MIB as u64 && resumed < 97 * MIB as u64, "{report}");
    assert!(contents(&network.path("R1")) == contents(&source));
    drop((push, other));
}

/// The source is killed in the middle: the same command with `--resume` goes on, and receivers have what they had.
#[test]
#[ignore = "needs root"]
fn a_killed_source_resumes_and_no_receiver_is_started_again() {
    let network = Network::start();
    let source = network.path("source");
    model(&source, 48 * MIB);
    let (mut push, group) = network.pushes(&source, &["--receivers", "2"]);
    let receivers = ["R1", "R3"].map(|host| network.pulls(host, &group, &[]));
    let record = network.path("R3.partial/chunks");
    wait_until(|| fs::metadata(&record).is_ok_and(|data| data.len() >= 12 * 36), || "R3 receives nothing".to_owned());
    push.child.kill().expect("it runs");
    push.child.wait().expect("a child");
    let number = group.rsplit('/').next().expect("a number");
    let (resumed, next) = network.pushes(&source, &["--receivers", "2", "--resume", number]);
    assert_ne!(group, next);
    for receiver in receivers {
        let (is_good, report) = receiver.ends();
        assert!(is_good, "{report}");
        assert!(report["octets_repeated"].as_u64().expect("a count") >= 8 * MIB as u64, "{report}");
    }
    let (is_good, report) = resumed.ends();
    assert!(is_good, "{report}");
    for host in ["R1", "R3"] {
        assert!(contents(&network.path(host)) == contents(&source), "{host} has other files");
    }
}

/// A receiver whose disk is full ends by name, and the others have everything.
#[test]
#[ignore = "needs root"]
fn a_full_disk_costs_its_own_host_alone() {
    let network = Network::start();
    let source = network.path("source");
    model(&source, 16 * MIB);
    let small = network.path("R3");
    let small = small.parent().expect("a directory").join("small");
    fs::create_dir(&small).expect("a directory");
    let mount = |arguments: &[&str]| Command::new(arguments[0]).args(&arguments[1..]).status();
    let place = small.to_str().expect("UTF-8");
    assert!(mount(&["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place]).expect("mount runs").success());
    let (push, group) = network.pushes(&source, &["--receivers", "2"]);
    let whole = network.pulls("R1", &group, &[]);
    let copy = small.join("copy");
    let full = network.runs("R3", &["pull", &group, copy.to_str().expect("UTF-8")]);
    let (is_good, report) = full.ends();
    let error = report["error"].as_str().unwrap_or_default().to_owned();
    let (is_whole, of_whole) = whole.ends();
    let (is_pushed, of_push) = push.ends();
    assert!(mount(&["umount", place]).expect("umount runs").success());
    assert!(!is_good && error.contains("No space left") && error.contains("safetensors"), "{report}");
    assert!(is_whole && is_pushed, "{of_whole} {of_push}");
    assert!(contents(&network.path("R1")) == contents(&source));
}

#[test]
#[ignore = "needs root"]
fn wrong_directories_and_groups_are_refused() {
    let network = Network::start();
    let missing = network.path("missing");
    let run = |arguments: &[&str]| {
        let output = network.command("R1").args(arguments).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, error) = run(&["push", missing.to_str().expect("UTF-8")]);
    assert!(code == Some(2) && error.contains("missing: No such file or directory"), "{error}");
    let url = format!("{}/999", network.access.url());
    let (code, error) = run(&["pull", &url, missing.to_str().expect("UTF-8")]);
    assert!(code == Some(1) && error.contains("999"), "{error}");
    let (code, error) = run(&["pull", &url, "/"]);
    assert!(code == Some(2) && error.contains("exists"), "{error}");
    let (code, error) = run(&["pull", "7", "x"]);
    assert!(code == Some(2) && error.contains("expected a controller and the number of a group"), "{error}");
    let (code, error) = run(&["pull", &url]);
    assert!(code == Some(2) && error.contains("<DIR>"), "{error}");
}
