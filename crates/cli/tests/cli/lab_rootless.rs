//! Labs of a user without root, and the commands of `docs/applications.md` for a first broadcast, as that user runs them.

use serde_json::Value;
use srdma_io::namespace::Namespace;
use srdma_testkit::built;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const DOCUMENT: &str = include_str!("../../../../docs/applications.md");

/// A user without privileges.
const UNPRIVILEGED: u32 = 65_534;

const PATIENCE: Duration = Duration::from_secs(60);

/// The user, with a directory of its own that has the program in it.
struct User {
    directory: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        // The tests' binary may lie where only root may look.
        let directory = tempfile::Builder::new().prefix("srdma-user").tempdir_in("/tmp").expect("a directory");
        let program = directory.path().join("srdma");
        fs::copy(env!("CARGO_BIN_EXE_srdma"), program).expect("copied");
        chown(directory.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("root may");
        User { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED).current_dir(self.path());
        // As users of Debian have it.
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path().display()));
        command.env("HOME", self.path()).env("TMPDIR", self.path()).env_remove("XDG_RUNTIME_DIR");
        command.env("PYTHONPATH", self.path().join("site"));
        command
    }

    #[track_caller]
    fn runs(&self, line: &str) {
        let output = self.command("sh").args(["-c", line]).output().expect("sh runs");
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }

    fn lab(&self, arguments: &[&str]) -> Output {
        let program = self.path().join("srdma");
        self.command(program.to_str().expect("UTF-8")).arg("lab").args(arguments).output().expect("it runs")
    }

    /// The number of the keeper of the user's namespaces, while it runs.
    fn keeper(&self) -> Option<u64> {
        let text = fs::read_to_string(self.path().join(format!("srdma-lab-{UNPRIVILEGED}/keeper.json"))).ok()?;
        let pid = serde_json::from_str::<Value>(&text).ok()?["pid"].as_u64()?;
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        command.contains("keep").then_some(pid)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Without it the namespaces, and what runs in them, are not found any more.
        self.lab(&["down", "figure1"]);
        self.lab(&["down", "figure1-controller"]);
        self.lab(&["down", "eight-receivers"]);
    }
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "in vain: {what}");
        sleep(Duration::from_millis(50));
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// A lab from its beginning to its end. Nothing of it is seen by root, and nothing is left.
#[test]
#[ignore = "needs root"]
fn a_user_runs_a_lab_without_root() {
    let user = User::new();
    let output = user.lab(&["run", "figure1", "--size", "1MiB", "--json", "--keep"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let outcome: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let receivers = outcome["receivers"].as_array().expect("receivers");
    assert!(receivers.len() == 5 && receivers.iter().all(|receiver| receiver["is_identical"] == true), "{outcome}");

    assert!(user.keeper().is_some());
    assert_eq!(Namespace::existing("srdma-figure1-N6"), None, "it is not among root's");
    assert_eq!(text(&user.lab(&["status"]).stdout), "figure1\n");
    let shell = user.lab(&["shell", "figure1", "N6", "--", "sh", "-c", "id -u; cat /proc/self/uid_map"]);
    assert_eq!(text(&shell.stdout).split_whitespace().collect::<Vec<_>>(), ["0", "0", "65534", "1"]);
    let up = user.lab(&["up", "figure1"]);
    assert!(up.status.code() == Some(2) && text(&up.stderr).contains("lab figure1 is up"), "{}", text(&up.stderr));

    let down = user.lab(&["down", "figure1"]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    wait_until("the keeper ends", || user.keeper().is_none());
    // Labs of root may be up.
    let status = user.lab(&["status", "figure1"]);
    assert!(status.status.code() == Some(2) && text(&status.stderr).contains("lab figure1 is not up"));
    let shell = user.lab(&["shell", "figure1", "N6", "--", "true"]);
    assert_eq!(shell.status.code(), Some(2), "{}", text(&shell.stderr));
}

/// Where users may not make namespaces, the setting is named.
#[test]
#[ignore = "needs root"]
fn a_system_that_forbids_user_namespaces_is_named() {
    let user = User::new();
    let program = user.path().join("srdma");
    // A user namespace in which no further one may be made: the limit is that of the namespace.
    let line = format!("echo 0 > /proc/sys/user/max_user_namespaces && {} lab keep", program.display());
    let output =
        user.command("unshare").args(["--user", "--map-root-user", "sh", "-c", &line]).output().expect("it runs");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("a lab without root needs a user namespace: cannot make"), "{error}");
    assert!(error.contains("user.max_user_namespaces is 0"), "{error}");
}

/// The shell blocks of a section, one for each terminal.
fn terminals(section: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = DOCUMENT.split_once(&format!("\n## {section}\n")).expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().expect("its end"));
    blocks.map(|block| block.lines().collect()).collect()
}

/// A command that runs in a terminal.
struct Terminal {
    line: String,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    fn opens(user: &User, line: &str) -> Self {
        let mut child = user.command("sh").args(["-c", line]).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Terminal { line: line.to_owned(), child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        line
    }

    #[track_caller]
    fn succeeds(mut self) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("readable");
        let status = self.child.wait().expect("a child");
        assert!(status.success(), "{}: {status}: {rest}", self.line);
    }
}

/// The commands of the document as they stand there: the first block, whose last line waits for receivers, then the next
/// ones at the same time, then the last one.
#[test]
#[ignore = "needs root"]
fn the_first_broadcast_of_the_document_works_without_root() {
    let user = User::new();
    let terminals = terminals("From nothing to a first broadcast in five minutes");
    let [install, first, receivers @ .., last] = terminals.as_slice() else { panic!("{terminals:?}") };
    assert!(install.iter().all(|line| line.starts_with("cargo ") || line.starts_with("export ")), "{install:?}");
    let (push, before) = first.split_last().expect("a command");
    before.iter().for_each(|line| user.runs(line));
    let mut push = Terminal::opens(&user, push);
    let line = push.line();
    assert!(line.contains("group 1"), "{line}");
    let pulls: Vec<Terminal> = receivers.iter().flatten().map(|line| Terminal::opens(&user, line)).collect();
    assert_eq!(pulls.len(), 2);
    pulls.into_iter().for_each(Terminal::succeeds);
    push.succeeds();
    last.iter().for_each(|line| user.runs(line));
    wait_until("the keeper ends", || user.keeper().is_none());
}

/// The commands for Python as they stand there; the package is installed by hand, as `pip` does it.
#[test]
#[ignore = "needs root"]
fn the_first_broadcast_in_python_works_without_root() {
    let user = User::new();
    let package = user.path().join("packages");
    built::python_package(&package);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/broadcast.py");
    fs::create_dir(user.path().join("examples")).expect("a directory");
    fs::copy(example, user.path().join("examples/broadcast.py")).expect("copied");
    // The files may lie where only root may look.
    let site = user.path().join("site");
    let copied = Command::new("cp").arg("-rL").args([&package, &site]).status().expect("cp runs");
    assert!(copied.success());
    let terminals = terminals("From pip install to a first broadcast");
    let [first, receivers @ .., last] = terminals.as_slice() else { panic!("{terminals:?}") };
    let [install, up, source] = first.as_slice() else { panic!("{first:?}") };
    assert!(install.starts_with("pip install "), "{install}");
    user.runs(up);
    let mut source = Terminal::opens(&user, source);
    assert_eq!(source.line(), "group 1\n");
    let mut receivers: Vec<Terminal> = receivers.iter().flatten().map(|line| Terminal::opens(&user, line)).collect();
    assert_eq!(receivers.len(), 2);
    for number in 1..=10 {
        let sent = source.line();
        assert!(sent.starts_with(&format!("version {number} ")), "{sent}");
        receivers.iter_mut().for_each(|receiver| assert_eq!(receiver.line(), sent));
    }
    receivers.into_iter().for_each(Terminal::succeeds);
    source.succeeds();
    last.iter().for_each(|line| user.runs(line));
}
