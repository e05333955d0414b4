//! Processes that live as long as the lab does.

use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::interrupt::Interrupt;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Number of lines of a log in an error.
const TAIL_LINES: usize = 15;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A process of a lab.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its name; that of its node, when there is only one there.
    pub name: String,
    /// The node it belongs to.
    pub node: String,
    pub pid: i32,
    /// When it was started, in the kernel's ticks: the number alone may belong to another process by now.
    start_ticks: u64,
    pub command: Vec<String>,
    /// File of its error output.
    pub log: PathBuf,
    /// File of its standard output.
    pub output: PathBuf,
}

impl Process {
    /// Starts a process in the namespace of a node. Its output is appended to files.
    pub fn start(instance: &Instance, node: &str, name: &str, command: &[String]) -> Result<Self> {
        let (log, output) = (instance.log(name), instance.output(name));
        let namespace = instance.namespace(node);
        let words: Vec<&str> =
            ["ip", "netns", "exec", &namespace].into_iter().chain(command.iter().map(String::as_str)).collect();
        let mut spawner = Command::new(words[0]);
        spawner.args(&words[1..]).stdin(Stdio::null()).stdout(append(&output)?).stderr(append(&log)?);
        // The lab waits for lines of this level.
        spawner.env("SRDMA_LOG", "info");
        // Ctrl-C is for the lab, which ends its processes in order.
        spawner.process_group(0);
        let mut child = spawner.spawn().map_err(|error| LabError::Start { line: words.join(" "), error })?;
        let pid = child.id() as i32;
        // The process must be reaped, or it would appear as running.
        thread::spawn(move || child.wait());
        let (name, node) = (name.to_owned(), node.to_owned());
        let start_ticks = start_ticks(pid).unwrap_or(0);
        Ok(Process { name, node, pid, start_ticks, command: command.to_vec(), log, output })
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
    }

    /// Sends it a signal, if it still runs.
    pub fn signal(&self, signal: Signal) {
        if self.is_running() {
            // A process that has ended meanwhile needs no signal.
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }

    /// Waits until `found` finds something in its standard output or log.
    ///
    /// # Errors
    ///
    /// If the process ends before, or time runs out; then with the last lines of the log.
    pub fn wait_for<T>(
        &self,
        what: &str,
        timeout: Duration,
        interrupt: &Interrupt,
        mut found: impl FnMut(&str, &str) -> Option<T>,
    ) -> Result<T> {
        let begin = Instant::now();
        loop {
            // Whether it runs is checked first: its last output is there by then.
            let is_running = self.is_running();
            let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
            if let Some(value) = found(&read(&self.output), &read(&self.log)) {
                return Ok(value);
            }
            if !is_running {
                return Err(self.ended(what));
            }
            if begin.elapsed() > timeout {
                let (process, what, log) = (self.name.clone(), what.to_owned(), self.log.clone());
                let tail = tail(&self.log);
                return Err(LabError::Late { process, what, waited_s: timeout.as_secs(), log, tail });
            }
            interrupt.sleep(POLL_INTERVAL)?;
        }
    }

    /// The error that it ended before it did something.
    pub(crate) fn ended(&self, what: &str) -> LabError {
        let (process, what, log) = (self.name.clone(), what.to_owned(), self.log.clone());
        LabError::Ended { process, what, log, tail: tail(&self.log) }
    }

    /// Kills it and waits until it has ended.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
        while self.is_running() {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

fn append(path: &Path) -> Result<File> {
    OpenOptions::new().create(true).append(true).open(path).map_err(LabError::file("write", path))
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    if last.is_empty() { "  (it is empty)".to_owned() } else { format!("  {}", last.join("\n  ")) }
}

/// When a process was started; `None` for one that has ended.
pub(crate) fn start_ticks(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the name, may hold anything; the state and the others follow its last parenthesis.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let has_ended = matches!(fields.first().copied(), Some("Z" | "X")) && threads(pid) <= 1;
    fields.get(19).filter(|_| !has_ended)?.parse().ok()
}

/// The first thread of a process may be gone while others still hold what the process has open.
fn threads(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Whether a process runs.
pub(crate) fn is_alive(pid: i32) -> bool {
    start_ticks(pid).is_some()
}
