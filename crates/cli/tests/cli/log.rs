//! Logs of `srdma node` and `srdma controller`: lines, levels, and a stderr that cannot be written.

use crate::signals;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use srdma_api::Client;
use srdma_node::daemon::read_status;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A deadline that a passing test never reaches.
const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A stderr that takes nothing.
enum Stderr {
    Full,
    Closed,
    /// A full pipe that is not read.
    Blocked,
}

impl Stderr {
    /// With the reader that keeps a pipe open.
    fn open(&self) -> (Stdio, Option<PipeReader>) {
        if let Stderr::Full = self {
            return (File::options().write(true).open("/dev/full").expect("/dev/full").into(), None);
        }
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        if let Stderr::Closed = self {
            return (writer.into(), None);
        }
        let has_room = |writer: &std::io::PipeWriter| {
            poll(&mut [PollFd::new(writer.as_fd(), PollFlags::POLLOUT)], PollTimeout::ZERO).expect("poll") > 0
        };
        while has_room(&writer) {
            writer.write_all(&[b'\n'; 4096]).expect("written");
        }
        (writer.into(), Some(reader))
    }
}

/// A daemon; killed when dropped.
struct Daemon(Child);

impl Daemon {
    fn start(command: &mut Command, stderr: impl Into<Stdio>) -> Self {
        Daemon(command.stderr(stderr).spawn().expect("it starts"))
    }

    /// Waits for the end.
    #[track_caller]
    fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the daemon does not end", || {
            status = self.0.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("it has ended")
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn srdma(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
    command.args(words).env_remove("SRDMA_LOG").env_remove("JOURNAL_STREAM");
    command
}

fn controller(folder: &Path, address: &str) -> Command {
    let config = folder.join("controller.toml");
    fs::write(&config, format!("listen = ['{address}']\n")).expect("written");
    let mut command = srdma(&["controller", "run", "--config"]);
    command.arg(config).arg("--store").arg(folder.join("store"));
    command
}

/// An address of this process's own, for a controller whose log does not have it.
fn own_address(number: usize) -> String {
    let process = std::process::id();
    format!("127.{}.{}.{}:8470", (process >> 8) as u8, process as u8, number + 2)
}

fn responds(address: &str) -> bool {
    let client = Client::new(&format!("http://{address}"), None, None).expect("a client");
    client.groups(None, None, None).is_ok()
}

/// It responds, and ends by SIGTERM with exit code 0.
#[test]
fn a_controller_runs_without_a_writable_stderr() {
    for (number, stderr) in [Stderr::Full, Stderr::Closed, Stderr::Blocked].into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a directory");
        let address = own_address(number);
        let (stderr, _reader) = stderr.open();
        let mut daemon = Daemon::start(&mut controller(folder.path(), &address), stderr);
        wait_until("the controller does not respond", || responds(&address));
        signals::send(Signal::SIGTERM, daemon.0.id());
        assert!(daemon.ends().success());
    }
}

/// The exit code does not depend on stderr.
#[test]
fn a_daemon_that_does_not_start_ends_without_a_writable_stderr() {
    for words in [&["node", "--config", "/nowhere/file"][..], &["controller", "run", "--config", "/nowhere/file"]] {
        for stderr in [Stderr::Full, Stderr::Closed, Stderr::Blocked] {
            let (stderr, _reader) = stderr.open();
            assert_eq!(Daemon::start(&mut srdma(words), stderr).ends().code(), Some(2), "{words:?}");
        }
    }
}

/// A configuration, and a node with it in a network namespace of its own.
struct Node {
    folder: TempDir,
}

impl Node {
    fn new() -> Self {
        let node = Node { folder: tempfile::tempdir().expect("a directory") };
        node.configure("");
        node
    }

    fn status(&self) -> PathBuf {
        self.folder.path().join("status.sock")
    }

    fn configure(&self, more: &str) {
        let status = self.status();
        let text = format!("[node]\nloopback = '2001:db8::1'\n[daemon]\nstatus = '{}'\n{more}", status.display());
        fs::write(self.folder.path().join("node.toml"), text).expect("written");
    }

    /// `unshare` becomes the node.
    fn start(&self, stderr: Stdio) -> Daemon {
        let mut command = Command::new("unshare");
        command.args(["--net", env!("CARGO_BIN_EXE_srdma"), "node", "--config"]);
        command.arg(self.folder.path().join("node.toml")).env_remove("SRDMA_LOG").env_remove("JOURNAL_STREAM");
        Daemon::start(&mut command, stderr)
    }

    fn generation(&self) -> Option<(u64, bool)> {
        let configuration = read_status(&self.status()).ok()?.configuration;
        Some((configuration.generation, configuration.last_reload.is_some_and(|reload| reload.error.is_some())))
    }
}

/// It responds, reloads, counts lines that it could not write, and ends by SIGTERM with exit code 0.
#[test]
#[ignore = "needs root"]
fn a_node_runs_without_a_writable_stderr() {
    for (stderr, is_counted) in [(Stderr::Full, true), (Stderr::Closed, true), (Stderr::Blocked, false)] {
        let node = Node::new();
        let (stderr, reader) = stderr.open();
        let mut daemon = node.start(stderr);
        wait_until("the node does not respond", || node.generation() == Some((1, false)));
        node.configure("[wrong]\n");
        signals::send(Signal::SIGHUP, daemon.0.id());
        wait_until("the node does not reload", || node.generation() == Some((1, true)));
        node.configure("");
        signals::send(Signal::SIGHUP, daemon.0.id());
        wait_until("the node does not reload", || node.generation() == Some((2, false)));
        let dropped = || read_status(&node.status()).expect("it responds").dropped_log_lines;
        wait_until("dropped lines are not counted", || (dropped() > 0) == is_counted);
        assert!(daemon.is_running());
        signals::send(Signal::SIGTERM, daemon.0.id());
        assert!(daemon.ends().success());
        assert!(!node.status().exists());
        drop(reader);
    }
}

/// Lines that have waited are written as soon as stderr is read.
#[test]
#[ignore = "needs root"]
fn a_node_continues_its_log_when_stderr_is_read_again() {
    let node = Node::new();
    let (stderr, reader) = Stderr::Blocked.open();
    let mut daemon = node.start(stderr);
    wait_until("the node does not respond", || node.generation() == Some((1, false)));
    let mut lines = BufReader::new(reader.expect("a pipe")).lines().map(|line| line.expect("UTF-8"));
    assert!(lines.any(|line| line.ends_with(" INFO node: ready")));
    signals::send(Signal::SIGTERM, daemon.0.id());
    assert!(lines.any(|line| line.ends_with(" INFO node: stopping signal=SIGTERM")));
    assert_eq!(lines.last().expect("a line").split_once(' ').expect("a time").1, "INFO node: stopped unsent_frames=0");
    assert!(daemon.ends().success());
}

fn first_line(command: &mut Command) -> String {
    let mut daemon = Daemon::start(command, Stdio::piped());
    let mut line = String::new();
    BufReader::new(daemon.0.stderr.take().expect("a pipe")).read_line(&mut line).expect("UTF-8");
    line
}

#[test]
fn the_option_precedes_the_environment() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut command = controller(folder.path(), "[::1]:0");
    let line = first_line(command.env("SRDMA_LOG", "error").args(["--log-level", "info"]));
    let (time, rest) = line.split_once(' ').expect("a time");
    assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
    assert!(rest.starts_with("INFO controller: ready url=http://[::1]:"), "{line}");
    // Without the option the environment holds: nothing is wrong here.
    let (folder, address) = (tempfile::tempdir().expect("a directory"), own_address(9));
    let log = folder.path().join("log");
    let mut command = controller(folder.path(), &address);
    let mut daemon = Daemon::start(command.env("SRDMA_LOG", "error"), File::create(&log).expect("a file"));
    wait_until("the controller does not respond", || responds(&address));
    signals::send(Signal::SIGTERM, daemon.0.id());
    assert!(daemon.ends().success());
    assert_eq!(fs::read_to_string(&log).expect("UTF-8"), "");
}

#[test]
fn unknown_levels_are_rejected() {
    for words in [&["node", "--config", "x"][..], &["controller", "run"]] {
        let output = srdma(words).env("SRDMA_LOG", "loud").output().expect("it runs");
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("'loud'") && text.contains("[possible values: error, warn, info, debug, trace]"),
            "{text}"
        );
        let help = String::from_utf8(srdma(&[words, &["--help"]].concat()).output().expect("it runs").stdout);
        assert!(help.expect("UTF-8").contains("[env: SRDMA_LOG]"));
    }
}

/// The journal has its own time, and the level by number.
#[test]
fn lines_for_the_journal_have_no_time() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = File::create(folder.path().join("log")).expect("a file");
    let metadata = file.metadata().expect("it is there");
    for (stream, beginning) in [(metadata.ino(), "<6>controller: ready url="), (metadata.ino() + 1, "20")] {
        let store = tempfile::tempdir().expect("a directory");
        let mut command = controller(store.path(), "[::1]:0");
        command.env("JOURNAL_STREAM", format!("{}:{stream}", metadata.dev()));
        file.set_len(0).expect("emptied");
        let appended = File::options().append(true).open(folder.path().join("log")).expect("a file");
        let _daemon = Daemon::start(&mut command, appended);
        let mut line = String::new();
        wait_until("no line", || {
            line = fs::read_to_string(folder.path().join("log")).expect("UTF-8");
            line.ends_with('\n')
        });
        assert!(line.starts_with(beginning), "{line}");
    }
}
