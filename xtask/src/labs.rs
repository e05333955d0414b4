//! `cargo xtask labs`: the tests that need root, network namespaces and programs of other packages. Where they cannot
//! run, each is named as skipped, with the reason: a test that did not run must not look like one that passed.

use crate::tools;
use crate::tree::Tree;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How often a test is tried. Two busy cores are no real-time system: a test that passes only at the second attempt
/// counts, but is named.
const ATTEMPTS: usize = 2;

/// A test binary, and where its tests expect to be run.
struct Binary {
    executable: PathBuf,
    directory: PathBuf,
    name: String,
}

/// How a test ended.
enum Outcome {
    Passed { attempt: usize },
    Failed(Box<Output>),
}

/// Runs every test that needs root whose name, behind that of its binary, contains `filter`; `false` when one failed.
pub(crate) fn run(filter: &str) -> Result<bool> {
    let binaries = binaries()?;
    let obstacle = obstacle()?;
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for binary in &binaries {
        for test in &tests(binary)? {
            let label = format!("{}::{test}", binary.name);
            if !label.contains(filter) {
                continue;
            }
            if let Some(reason) = &obstacle {
                println!("SKIPPED  {label}: {reason}");
                skipped += 1;
                continue;
            }
            let begin = Instant::now();
            let outcome = try_repeatedly(binary, test)?;
            print_outcome(&label, begin.elapsed(), &outcome);
            match outcome {
                Outcome::Passed { .. } => passed += 1,
                Outcome::Failed(_) => failed += 1,
            }
        }
    }
    println!("labs: {passed} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0)
}

/// Why these tests cannot run here, if so.
fn obstacle() -> Result<Option<String>> {
    if !tools::is_root()? {
        return Ok(Some("needs root".to_owned()));
    }
    if let Some(missing) = tools::missing_for_labs()? {
        return Ok(Some(missing));
    }
    let name = format!("srdma-xtask-{}", std::process::id());
    let made = Command::new("ip").args(["netns", "add", &name]).output().context("cannot start ip")?;
    if !made.status.success() {
        let reason = String::from_utf8_lossy(&made.stderr).trim().to_owned();
        return Ok(Some(format!("network namespaces cannot be made: {reason}")));
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
    let text = String::from_utf8(output.stdout).context("cargo's messages are no UTF-8")?;
    let mut binaries = Vec::new();
    for line in text.lines() {
        let message: serde_json::Value = serde_json::from_str(line).context("cargo's messages are no JSON")?;
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

fn tests(binary: &Binary) -> Result<Vec<String>> {
    let output = Command::new(&binary.executable)
        .args(["--ignored", "--list", "--format", "terse"])
        .current_dir(&binary.directory)
        .output()
        .with_context(|| format!("cannot start {}", binary.executable.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

fn try_repeatedly(binary: &Binary, test: &str) -> Result<Outcome> {
    let mut last = None;
    for attempt in 1..=ATTEMPTS {
        let output = Command::new(&binary.executable)
            .args(["--ignored", "--exact", test, "--nocapture"])
            .current_dir(&binary.directory)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", binary.executable.display()))?;
        if output.status.success() {
            return Ok(Outcome::Passed { attempt });
        }
        last = Some(output);
    }
    Ok(Outcome::Failed(Box::new(last.context("a test is tried at least once")?)))
}

fn print_outcome(label: &str, time: Duration, outcome: &Outcome) {
    let seconds = time.as_secs_f64();
    match outcome {
        Outcome::Passed { attempt: 1 } => println!("passed   {label} ({seconds:.1} s)"),
        Outcome::Passed { attempt } => println!("passed   {label} ({seconds:.1} s, at attempt {attempt})"),
        Outcome::Failed(output) => {
            println!("FAILED   {label} ({seconds:.1} s, {ATTEMPTS} attempts)");
            println!("{}", String::from_utf8_lossy(&output.stdout));
            println!("{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
