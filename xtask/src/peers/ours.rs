//! srdma itself.

use super::row::Figures;
use crate::external::{self, cargo};
use crate::tree::Tree;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The program under test, and the processor that programs are bound to.
pub(super) struct Srdma {
    program: PathBuf,
    cpu: String,
}

impl Srdma {
    pub(super) fn new(program: Option<&Path>, cpu: u32) -> Result<Self> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => {
                let root = Tree::root();
                let built = cargo().args(["build", "--release", "--package", "srdma-cli"]).current_dir(&root).status();
                ensure!(built.context("cargo does not run")?.success(), "the release build has failed");
                root.join("target/release/srdma")
            }
        };
        Ok(Srdma { program, cpu: cpu.to_string() })
    }

    /// A command that runs on the processor.
    pub(super) fn bound(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &self.cpu]).arg(program);
        command
    }

    pub(super) fn cpu(&self) -> &str {
        &self.cpu
    }

    /// The rows of a command of srdma, one JSON object a line.
    pub(super) fn rows(&self, words: &[&str], is_bound: bool) -> Result<Vec<Value>> {
        let mut command = if is_bound { self.bound(&self.program) } else { Command::new(&self.program) };
        let output = command.args(words).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("{} does not run", self.program.display()))?;
        ensure!(output.status.success(), "srdma {} has failed", words.join(" "));
        let text = String::from_utf8(output.stdout).context("the rows are text")?;
        text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))).collect()
    }

    /// Clocks a packet of a case of the dataplane: the least and the median of a few repetitions.
    pub(super) fn clocks(&self, case: &str) -> Result<Figures> {
        let words = ["bench", "dataplane", "--quick", "--json", "--repetitions", "3", "--case", case];
        let rows = self.rows(&words, true)?;
        let row = rows.iter().find(|row| row["case"] == case).with_context(|| format!("no row {case}"))?;
        let number = |key: &str| row[key].as_f64().with_context(|| format!("{case} has no {key}"));
        let (least, ns_min, ns_median) = (number("clocks_min")?, number("ns_min")?, number("ns_median")?);
        Ok(Figures { least, median: least * ns_median / ns_min })
    }

    /// Wall time of a command of srdma, on the processor.
    pub(super) fn wall_time(&self, words: &[&str]) -> Result<Duration> {
        wall_time(self.bound(&self.program).args(words).current_dir(Tree::root()))
    }
}

/// Wall time of a command, whose output is not looked at.
pub(super) fn wall_time(command: &mut Command) -> Result<Duration> {
    let begin = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let duration = begin.elapsed();
    if !status.success() {
        bail!("{command:?} has failed: {status}");
    }
    Ok(duration)
}

/// The path of a program, which holds in any working directory; or why there is none.
pub(super) fn find(program: &Path) -> Result<PathBuf, String> {
    external::find(program).ok_or_else(|| format!("not installed, there is no program {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_path_and_in_path() {
        let by_name = find(Path::new("sh")).unwrap();
        assert!(by_name.is_absolute() && by_name.is_file(), "{}", by_name.display());
        assert_eq!(find(&by_name).unwrap(), by_name);
        // Tests run in the directory of their package.
        assert_eq!(find(Path::new("src/main.rs")).unwrap(), std::path::absolute("src/main.rs").unwrap());
        for missing in ["main.rs", "src/sh", "/nowhere/sh"] {
            assert!(find(Path::new(missing)).unwrap_err().ends_with(missing));
        }
    }
}
