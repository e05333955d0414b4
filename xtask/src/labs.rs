//! `cargo xtask labs`: the tests that need root, in network namespaces of their own: first, alone, those that emulate
//! machines, then the others, as many at a time as there are processors, for most of their time is waiting. Where they
//! cannot run, each is named as skipped with the reason: a test that did not run must not look like one that passed.

use crate::tools;
use crate::tree::Tree;
use anyhow::{Context, Result, ensure};
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// How the names of tests begin that emulate machines, which takes all processors: they run alone.
const WITH_GUESTS: [&str; 7] = [
    "cli::lab_cm::",
    "cli::lab_perftest::",
    "cli::lab_providers::queue_pairs_",
    "cli::lab_rxe::",
    "cli::references::soft_roces_",
    "lab::guest::",
    "verbs::guest::",
];

/// Limits of a panic's message in the closing lines.
const PANIC_LINES: usize = 6;
const PANIC_CHARACTERS: usize = 1000;

/// How a line begins by which a test says that it has not run, and why.
const SKIPPED: &str = "skipped: ";

/// A test binary, and the directory in which its tests expect to run.
struct Binary {
    executable: PathBuf,
    directory: PathBuf,
    name: String,
}

/// Results of all tests that were selected.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Summary {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// Tests that passed, but not at the first attempt.
    repeated: usize,
    /// The reason why tests were skipped.
    obstacle: Option<String>,
    /// Names of failed tests, and how each failed at its last attempt.
    failures: Vec<String>,
}

impl Summary {
    fn add(&mut self, outcomes: &[(String, Outcome)]) {
        for (label, outcome) in outcomes {
            match outcome {
                Outcome::Passed { attempt } => {
                    self.passed += 1;
                    self.repeated += usize::from(*attempt > 1);
                }
                Outcome::Skipped => self.skipped += 1,
                Outcome::Failed { reason } => {
                    self.failed += 1;
                    self.failures.push(format!("{label}: {reason}"));
                }
            }
        }
    }

    /// True if every test that could run here has passed.
    pub(crate) fn is_good(&self) -> bool {
        self.failed == 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)?;
        if let Some(obstacle) = &self.obstacle {
            write!(f, " ({obstacle})")?;
        }
        write!(f, "; passed at a second attempt: {}", self.repeated)
    }
}

/// Runs every test that needs root whose name, including that of its binary, contains `filter`.
///
/// # Errors
/// When a package is missing although this is root, when a test binary does not list its tests, when no name contains
/// `filter`.
pub(crate) fn run(filter: &str) -> Result<Summary> {
    let binaries = binaries()?;
    let selected = selected(&binaries, filter, list)?;
    let mut summary = Summary { obstacle: obstacle()?, ..Summary::default() };
    if let Some(reason) = &summary.obstacle {
        for (binary, test) in &selected {
            println!("SKIPPED  {}: {reason}", label(binary, test));
        }
        summary.skipped = selected.len();
    } else {
        let (with_guests, others): (Vec<_>, Vec<_>) =
            selected.iter().partition(|(binary, test)| has_guests(&label(binary, test)));
        for (tests, at_once) in [(with_guests, 1), (others, thread::available_parallelism()?.get())] {
            let labels: Vec<String> = tests.iter().map(|(binary, test)| label(binary, test)).collect();
            summary.add(&run_with_attempts(&labels, at_once, |at| start(tests[at].0, &tests[at].1))?);
        }
    }
    // Once more, for a log of which only the end is kept.
    summary.failures.iter().for_each(|failure| println!("failed   {failure}"));
    println!("labs: {summary}");
    Ok(summary)
}

fn has_guests(label: &str) -> bool {
    WITH_GUESTS.iter().any(|module| label.starts_with(module))
}

fn label(binary: &Binary, test: &str) -> String {
    format!("{}::{test}", binary.name)
}

/// The tests that need root and whose label contains `filter`.
fn selected<'a>(
    binaries: &'a [Binary],
    filter: &str,
    list: impl Fn(&Binary) -> Result<Vec<String>>,
) -> Result<Vec<(&'a Binary, String)>> {
    let mut selected = Vec::new();
    for binary in binaries {
        let tests = list(binary)?.into_iter().filter(|test| label(binary, test).contains(filter));
        selected.extend(tests.map(|test| (binary, test)));
    }
    ensure!(!selected.is_empty(), "no test that needs root has a name that contains {filter:?}");
    Ok(selected)
}

/// The reason, if any, why no test that needs root can run here. A missing package is an error instead.
fn obstacle() -> Result<Option<String>> {
    if !tools::is_root()? {
        return Ok(Some("needs root".to_owned()));
    }
    if let Some(problem) = tools::missing_for_labs()? {
        anyhow::bail!(problem);
    }
    let name = format!("srdma-xtask-{}", std::process::id());
    let added = Command::new("ip").args(["netns", "add", &name]).output().context("cannot start ip")?;
    if !added.status.success() {
        let reason = String::from_utf8_lossy(&added.stderr).trim().to_owned();
        return Ok(Some(format!("network namespaces cannot be created: {reason}")));
    }
    Command::new("ip").args(["netns", "del", &name]).status().context("cannot start ip")?;
    Ok(None)
}

/// Builds all test binaries.
fn binaries() -> Result<Vec<Binary>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let output = cargo.current_dir(Tree::root()).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let text = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    let mut binaries = Vec::new();
    for line in text.lines() {
        let message: serde_json::Value = serde_json::from_str(line).context("cargo's messages are not JSON")?;
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        let (Some(executable), true) = (message["executable"].as_str(), is_test) else {
            continue;
        };
        let manifest = PathBuf::from(message["manifest_path"].as_str().context("an artifact without a manifest")?);
        let directory = manifest.parent().context("a manifest without a directory")?.to_owned();
        let name = message["target"]["name"].as_str().context("an artifact without a name")?.to_owned();
        binaries.push(Binary { executable: executable.into(), directory, name });
    }
    Ok(binaries)
}

/// The tests of `binary` that need root.
fn list(binary: &Binary) -> Result<Vec<String>> {
    let output = Command::new(&binary.executable)
        .args(["--ignored", "--list", "--format", "terse"])
        .current_dir(&binary.directory)
        .output()
        .with_context(|| format!("cannot start {}", binary.executable.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} --list: {}: {errors}", binary.executable.display(), output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

fn start(binary: &Binary, test: &str) -> Result<Output> {
    Command::new(&binary.executable)
        .args(["--ignored", "--exact", test, "--nocapture"])
        .current_dir(&binary.directory)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", binary.executable.display()))
}

/// How a test has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Passed {
        /// Number of the attempt that passed.
        attempt: usize,
    },
    /// It has printed that what it needs is not there.
    Skipped,
    Failed {
        /// Of the last attempt.
        reason: String,
    },
}

/// Where a test panicked, and its message.
fn panic_message(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines = errors.lines().skip_while(|line| !line.contains(" panicked at ")).filter(|line| !line.is_empty());
    let message: Vec<&str> = lines.take_while(|line| *line != "stack backtrace:").take(PANIC_LINES).collect();
    let message = if message.is_empty() { output.status.to_string() } else { message.join(" | ") };
    message.chars().take(PANIC_CHARACTERS).collect()
}

/// The reason that a test has printed for not having run.
fn skipped(output: &Output) -> Option<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    errors.lines().find_map(|line| line.strip_prefix(SKIPPED)).map(str::to_owned)
}

/// Runs tests, which are known by their positions among the labels, `at_once` at a time. Those that fail run a second
/// time, alone: one that passes then counts as passed, but is named. The output of each attempt that failed is printed.
fn run_with_attempts(
    labels: &[String],
    at_once: usize,
    run: impl Fn(usize) -> Result<Output> + Sync,
) -> Result<Vec<(String, Outcome)>> {
    let next = AtomicUsize::new(0);
    let ended = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(label) = labels.get(at) else { break };
                    let outcome = attempt(label, 1, || run(at));
                    ended.lock().expect("no thread panics with the results").push((at, outcome));
                }
            });
        }
    });
    let mut outcomes = Vec::new();
    for (at, outcome) in ended.into_inner().expect("no thread panics with the results") {
        let outcome = match outcome? {
            Outcome::Failed { .. } => attempt(&labels[at], 2, || run(at))?,
            outcome => outcome,
        };
        outcomes.push((labels[at].clone(), outcome));
    }
    Ok(outcomes)
}

/// Runs a test once.
fn attempt(label: &str, number: usize, run: impl Fn() -> Result<Output>) -> Result<Outcome> {
    let begin = Instant::now();
    let output = run()?;
    let seconds = begin.elapsed().as_secs_f64();
    if let Some(reason) = skipped(&output).filter(|_| output.status.success()) {
        println!("SKIPPED  {label}: {reason}");
        return Ok(Outcome::Skipped);
    }
    if output.status.success() {
        let note = if number == 1 { "" } else { ", at the second attempt" };
        println!("passed   {label} ({seconds:.1} s{note})");
        return Ok(Outcome::Passed { attempt: number });
    }
    let [out, err] = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets));
    println!("FAILED   {label} ({seconds:.1} s, attempt {number} of 2: {})\n{out}\n{err}", output.status);
    Ok(Outcome::Failed { reason: panic_message(&output) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(name: &str) -> Binary {
        Binary { executable: name.into(), directory: ".".into(), name: name.to_owned() }
    }

    #[test]
    fn a_name_that_matches_nothing_is_an_error() {
        let binaries = [binary("cli"), binary("io")];
        let tests = |binary: &Binary| Ok(vec![format!("of_{}", binary.name)]);
        let labels = |filter| -> Result<Vec<String>> {
            Ok(selected(&binaries, filter, tests)?.iter().map(|(binary, test)| label(binary, test)).collect())
        };
        assert_eq!(labels("").unwrap(), ["cli::of_cli", "io::of_io"]);
        assert_eq!(labels("io::").unwrap(), ["io::of_io"]);
        let error = labels("typo").unwrap_err().to_string();
        assert_eq!(error, "no test that needs root has a name that contains \"typo\"");
    }

    #[test]
    fn a_binary_that_crashes_while_it_lists_its_tests_is_an_error() {
        assert!(list(&binary("/bin/false")).unwrap_err().to_string().starts_with("/bin/false --list: exit status: 1"));
        assert_eq!(list(&binary("/bin/true")).unwrap(), [""; 0]);
    }

    fn labels(number: usize) -> Vec<String> {
        (0..number).map(|at| format!("test {at}")).collect()
    }

    fn shell(script: &str) -> Result<Output> {
        Ok(Command::new("sh").args(["-c", script]).output()?)
    }

    /// Each module of the list is one of the workspace.
    #[test]
    fn modules_with_guests_exist() {
        let tree = Tree::of_repository().unwrap();
        for module in WITH_GUESTS {
            let mut parts = module.split("::");
            let (package, module) = (parts.next().unwrap(), parts.next().unwrap());
            let file = |file: &str| file.starts_with(&format!("crates/{package}/tests/{package}/{module}"));
            assert!(tree.files.iter().any(|of| file(&of.path)), "{package}: there is no {module}");
        }
    }

    #[test]
    fn attempts_are_counted() {
        let tries = |good_from: usize| {
            let attempts = AtomicUsize::new(0);
            let run =
                |_| shell(if attempts.fetch_add(1, Ordering::Relaxed) + 1 >= good_from { "true" } else { "false" });
            let outcomes = run_with_attempts(&labels(1), 2, run).unwrap();
            (outcomes[0].1.clone(), attempts.into_inner())
        };
        assert_eq!(tries(1), (Outcome::Passed { attempt: 1 }, 1));
        assert_eq!(tries(2), (Outcome::Passed { attempt: 2 }, 2));
        assert_eq!(tries(3), (Outcome::Failed { reason: "exit status: 1".to_owned() }, 2));
    }

    /// Each waits for the other at the first attempt, so both have to run at once; at the second one none runs beside.
    #[test]
    fn tests_run_at_once_and_those_that_fail_alone() {
        let (both, running) = (std::sync::Barrier::new(2), AtomicUsize::new(0));
        let attempts = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let run = |at: usize| {
            let others = running.fetch_add(1, Ordering::Relaxed);
            let is_first = attempts[at].fetch_add(1, Ordering::Relaxed) == 0;
            if is_first {
                both.wait();
            }
            let result = shell(if is_first || others > 0 { "exit 1" } else { "true" });
            running.fetch_sub(1, Ordering::Relaxed);
            result
        };
        let mut summary = Summary::default();
        summary.add(&run_with_attempts(&labels(2), 2, run).unwrap());
        assert_eq!(summary, Summary { passed: 2, repeated: 2, ..Summary::default() });
    }

    #[test]
    fn a_test_that_cannot_start_is_an_error() {
        let run = |at| if at == 1 { anyhow::bail!("no such program") } else { shell("true") };
        assert_eq!(run_with_attempts(&labels(3), 2, run).unwrap_err().to_string(), "no such program");
    }

    /// A test that needs what is not there is no test that has passed; one that fails is not skipped.
    #[test]
    fn a_test_may_say_that_it_has_not_run() {
        let tries = |script: &str| run_with_attempts(&labels(1), 1, |_| shell(script)).unwrap().remove(0).1;
        assert_eq!(tries("echo 'skipped: no FRR' >&2"), Outcome::Skipped);
        let failed = |reason: &str| Outcome::Failed { reason: reason.to_owned() };
        assert_eq!(tries("echo 'skipped: no FRR' >&2; exit 1"), failed("exit status: 1"));
        let panics = "echo 'lab is up' >&2; echo \"thread 'a' panicked at b.rs:1:2:\" >&2; echo 2 of 3 >&2; exit 101";
        assert_eq!(tries(panics), failed("thread 'a' panicked at b.rs:1:2: | 2 of 3"));
        assert_eq!(tries("echo 'not skipped: FRR' >&2"), Outcome::Passed { attempt: 1 });
    }

    #[test]
    fn the_closing_line_counts_skipped_and_repeated_tests() {
        let good = Summary { passed: 7, repeated: 1, ..Summary::default() };
        assert!(good.is_good());
        assert_eq!(good.to_string(), "7 passed, 0 failed, 0 skipped; passed at a second attempt: 1");
        let skipped = Summary { skipped: 8, obstacle: Some("needs root".to_owned()), ..Summary::default() };
        assert!(skipped.is_good());
        assert_eq!(skipped.to_string(), "0 passed, 0 failed, 8 skipped (needs root); passed at a second attempt: 0");
        assert!(!Summary { failed: 1, ..Summary::default() }.is_good());
    }
}
