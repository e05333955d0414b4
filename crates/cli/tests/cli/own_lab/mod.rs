//! A lab that is one test's own.

use crate::signals;
use nix::sys::signal::Signal;
use serde_json::Value;
use srdma_io::namespace::Namespace;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Maximum time to wait for an event.
const PATIENCE: Duration = Duration::from_secs(60);

/// A shipped lab, or what a test has made of it; down at the end whatever happens.
pub(crate) struct Lab {
    pub(crate) file: PathBuf,
    pub(crate) suffix: String,
    directory: tempfile::TempDir,
}

impl Lab {
    /// The lab of this name, with these replacements in its file.
    pub(crate) fn new(name: &str, replacements: &[(&str, &str)]) -> Self {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs").join(name).with_extension("toml");
        let mut text = fs::read_to_string(shipped).expect("the lab is there");
        for (from, to) in replacements {
            assert!(text.contains(from), "{name} has no {from:?}");
            text = text.replace(from, to);
        }
        Lab::of(name, &text)
    }

    /// A lab that is not shipped.
    pub(crate) fn of(name: &str, text: &str) -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(name).with_extension("toml");
        fs::write(&file, text).expect("the lab is written");
        let suffix = format!("o{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        Lab { file, suffix, directory }
    }

    /// Runs `srdma lab COMMAND` for it.
    pub(crate) fn command(&self, command: &str, arguments: &[&str]) -> Output {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        srdma.args(["lab", command]).arg(&self.file).args(["--instance", &self.suffix]).args(arguments);
        srdma.output().expect("the program runs")
    }

    /// Brings it up.
    #[track_caller]
    pub(crate) fn up(&self) {
        self.up_with(&[]);
    }

    /// The same with options.
    #[track_caller]
    pub(crate) fn up_with(&self, options: &[&str]) {
        let output = self.command("up", options);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The name of an element's namespace.
    pub(crate) fn namespace(&self, element: &str) -> String {
        let name = self.file.file_stem().expect("a name").to_str().expect("UTF-8");
        format!("srdma-{name}-{}-{element}", self.suffix)
    }

    /// The namespace of an element, while the lab is up.
    #[track_caller]
    pub(crate) fn existing(&self, element: &str) -> Namespace {
        Namespace::existing(&self.namespace(element)).expect("the lab is up")
    }

    /// Directory of the files of the lab's programs.
    pub(crate) fn state(&self) -> PathBuf {
        let name = self.file.file_stem().expect("a name").to_str().expect("UTF-8");
        PathBuf::from(format!("/run/srdma/lab/{name}-{}", self.suffix))
    }

    /// The process of a daemon of FRR in a directory of the lab's.
    #[track_caller]
    pub(crate) fn frr_pid(&self, directory: &str, daemon: &str) -> u32 {
        let file = self.state().join(directory).join(daemon).with_extension("pid");
        fs::read_to_string(file).expect("it runs").trim().parse().expect("a process ID")
    }

    /// Kills daemons of FRR in a directory of the lab's at the same time.
    #[track_caller]
    pub(crate) fn kill_together(&self, directory: &str, daemons: &[&str]) {
        let pids: Vec<u32> = daemons.iter().map(|daemon| self.frr_pid(directory, daemon)).collect();
        pids.into_iter().for_each(|pid| signals::send(Signal::SIGKILL, pid));
    }

    /// The status of a node.
    #[track_caller]
    pub(crate) fn status(&self, node: &str) -> Value {
        let socket = self.state().join("node").join(format!("{node}.sock"));
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = srdma.args(["status", "--json"]).arg(socket).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Octets so far from the first end of a link, `down_octets`, or from the second one, `up_octets`.
    #[track_caller]
    pub(crate) fn octets(&self, link: &str, direction: &str) -> u64 {
        let status = self.lab_status();
        let links = status["links"].as_array().expect("links");
        let found = links.iter().find(|one| one["name"] == link);
        found.unwrap_or_else(|| panic!("{link}: {links:?}"))[direction].as_u64().expect("a number")
    }

    /// The output of `srdma lab status`.
    #[track_caller]
    pub(crate) fn lab_status(&self) -> Value {
        let output = self.command("status", &["--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The first process of a node.
    #[track_caller]
    pub(crate) fn pid(&self, node: &str) -> u32 {
        let status = self.lab_status();
        let mut nodes = status["nodes"].as_array().expect("nodes").iter();
        let found = nodes.find(|found| found["name"] == node).expect("the node");
        found["processes"][0]["pid"].as_u64().expect("a process ID").try_into().expect("of 32 bits")
    }

    /// Access to its controller.
    #[track_caller]
    pub(crate) fn controller(&self) -> ControllerAccess {
        let status = self.lab_status();
        ControllerAccess(
            ["url", "token_file", "ca_file"]
                .map(|key| status["controller"][key].as_str().expect("a string").to_owned()),
        )
    }

    /// Directory of the captures of its links.
    pub(crate) fn captures(&self) -> PathBuf {
        self.directory.path().join("captures")
    }

    /// The capture of a link.
    pub(crate) fn capture(&self, link: &str) -> PathBuf {
        self.captures().join(link).with_extension("pcapng")
    }
}

/// The URL of a lab's controller, a file with its token, and one with its certificate.
pub(crate) struct ControllerAccess(pub(crate) [String; 3]);

impl ControllerAccess {
    pub(crate) fn url(&self) -> &str {
        &self.0[0]
    }

    /// Lets a command of `srdma` reach the controller.
    pub(crate) fn set(&self, command: &mut Command) {
        let ControllerAccess([url, token_file, ca_file]) = self;
        command.env("SRDMA_CONTROLLER", url).env("SRDMA_TOKEN_FILE", token_file).env("SRDMA_CA", ca_file);
    }
}

/// A command of `srdma` that prints lines of JSON; ended at the end whatever happens.
pub(crate) struct JsonLines {
    pub(crate) child: Child,
    pub(crate) lines: BufReader<ChildStdout>,
}

impl JsonLines {
    /// Starts a command, and waits for its first line, which has this key first.
    #[track_caller]
    pub(crate) fn start(mut command: Command, first_key: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("text");
        assert!(line.starts_with(&format!("{{\"{first_key}\":")), "{line}");
        JsonLines { child, lines }
    }

    /// Waits for its end: its exit code, its further lines, and its error output.
    pub(crate) fn ends(mut self) -> (Option<i32>, Vec<Value>, String) {
        let lines: Vec<String> = (&mut self.lines).lines().collect::<Result<_, _>>().expect("text");
        let mut errors = String::new();
        self.child.stderr.as_mut().expect("a pipe").read_to_string(&mut errors).expect("text");
        let parsed = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        (self.child.wait().expect("a child").code(), parsed, errors)
    }
}

impl Drop for JsonLines {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lab {
    /// Runs a line in a guest; returns what it prints.
    #[track_caller]
    pub(crate) fn guest_shell(&self, host: &str, line: &str) -> String {
        let output = self.command("shell", &[host, "--", line]);
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success(), "{host}: {line}: {}{text}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Packets that a guest's RDMA device has sent or received, and which of it.
    #[track_caller]
    pub(crate) fn rxe_packets(&self, host: &str, counter: &str) -> u64 {
        let path = format!("/sys/class/infiniband/rxe0/ports/1/hw_counters/{counter}");
        self.guest_shell(host, &format!("cat {path}")).trim().parse().expect("a number")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.command("down", &[]);
    }
}

/// A capture of all links.
pub(crate) struct Capturing(Child);

impl Lab {
    /// Captures all links from now on.
    pub(crate) fn starts_capture(&self) -> Capturing {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        srdma.args(["lab", "capture"]).arg(&self.file).arg(self.captures()).args(["--instance", &self.suffix]);
        let mut child = srdma.stderr(Stdio::piped()).spawn().expect("the program runs");
        // It prints that it has begun.
        let mut begun = [0; 9];
        child.stderr.as_mut().expect("a pipe").read_exact(&mut begun).expect("it says something");
        assert_eq!(&begun, b"capturing");
        Capturing(child)
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Capturing {
    pub(crate) fn ends(mut self) {
        signals::send(Signal::SIGINT, self.0.id());
        assert!(self.0.wait().expect("it ends").success());
    }
}

/// A process that does not outlive the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a program whose output is wanted.
    pub(crate) fn piped(mut command: Command) -> Self {
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// The next line of its error output, without what follows it.
    pub(crate) fn error_line(&mut self) -> String {
        let mut line = String::new();
        let mut errors = BufReader::with_capacity(1, self.0.stderr.as_mut().expect("piped"));
        errors.read_line(&mut line).expect("readable");
        line
    }

    /// The last line of its output, which is JSON, once it has ended well.
    #[track_caller]
    pub(crate) fn output(mut self, who: &str, patience: Duration) -> Value {
        let begin = Instant::now();
        while self.0.try_wait().expect("a child").is_none() {
            assert!(begin.elapsed() < patience, "{who} does not end");
            sleep(Duration::from_millis(50));
        }
        let (mut text, mut errors) = (String::new(), String::new());
        self.0.stdout.as_mut().expect("piped").read_to_string(&mut text).expect("UTF-8");
        self.0.stderr.as_mut().expect("piped").read_to_string(&mut errors).expect("UTF-8");
        assert!(self.0.wait().expect("ended").success(), "{who}: {text}{errors}");
        serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

#[track_caller]
pub(crate) fn wait_until(is_so: impl Fn() -> bool, what: impl Fn() -> String) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{}", what());
        sleep(Duration::from_millis(200));
    }
}
