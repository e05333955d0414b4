//! Starts the commands of jobs, and reads their results.

use super::fuzz;
use super::instructions;
use super::job::{Job, Program, Step};
use crate::external::cargo;
use crate::page;
use crate::tree::Tree;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use srdma_figures::Figure;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where cargo has built them.
pub(super) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Builds what the jobs need, in the profile `release`, and installs the packages of the page's scripts.
    pub(super) fn build(jobs: &[Job]) -> Result<Self> {
        let mut built: BTreeSet<Vec<&str>> = BTreeSet::new();
        for step in jobs.iter().flat_map(|job| &job.steps) {
            built.extend(match step.program {
                Program::Srdma | Program::Callgrind | Program::Python => Some(vec!["srdma-cli"]),
                Program::ModelCheck => Some(vec!["srdma-model-check"]),
                Program::Example(package, example) => Some(vec![package, "--example", example]),
                Program::CargoFuzz(_) | Program::Cargo | Program::Page | Program::Xtask => None,
            });
        }
        for package in built {
            let mut build = cargo();
            build.args(["build", "--release", "--locked", "-p"]).args(&package).current_dir(Tree::root());
            let is_built = build.status().context("cannot start cargo")?.success();
            ensure!(is_built, "{} cannot be built", package.join(" "));
        }
        if jobs.iter().flat_map(|job| &job.steps).any(|step| step.program == Program::Page) {
            page::install()?;
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| Tree::root().join("target"), PathBuf::from);
        Ok(Programs { folder: target.join("release") })
    }

    /// The result of a step, reduced to what it keeps.
    pub(super) fn run(&self, step: &Step) -> Result<Value> {
        match step.runs {
            1 => self.run_once(step),
            runs => {
                let results = (0..runs).map(|_| self.run_once(step)).collect::<Result<Vec<_>>>()?;
                merged(&results).and_then(|figures| Ok(serde_json::to_value(figures)?))
            }
        }
    }

    fn run_once(&self, step: &Step) -> Result<Value> {
        let counted = self.folder.join("srdma.callgrind");
        let figures = self.folder.join("srdma.figures");
        let mut command = match step.program {
            Program::Srdma => Command::new(self.folder.join("srdma")),
            Program::Callgrind => {
                let mut valgrind = Command::new("valgrind");
                valgrind.args(["--quiet", "--tool=callgrind"]);
                valgrind.arg(format!("--callgrind-out-file={}", counted.display())).arg(self.folder.join("srdma"));
                valgrind
            }
            Program::ModelCheck => Command::new(self.folder.join("srdma-model-check")),
            Program::Example(_, example) => Command::new(self.folder.join("examples").join(example)),
            Program::CargoFuzz(target) => {
                unpack_corpus(target)?;
                let mut cargo = cargo();
                cargo.arg("fuzz");
                cargo
            }
            Program::Cargo => {
                let _ = fs::remove_file(&figures);
                let mut cargo = cargo();
                cargo.env(srdma_figures::FILE, &figures);
                cargo
            }
            Program::Page => {
                let mut npm = Command::new("npm");
                npm.args(["--prefix", "page", "run"]);
                npm
            }
            Program::Xtask => Command::new(std::env::current_exe()?),
            Program::Python => {
                let mut python = Command::new("python3");
                let path = std::env::var_os("PATH").unwrap_or_default();
                let all = [self.folder.clone()].into_iter().chain(std::env::split_paths(&path));
                python.env("PATH", std::env::join_paths(all)?);
                python
            }
        };
        command.args(step.arguments()).current_dir(Tree::root()).stdin(Stdio::null());
        let output = command.output().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        let printed = end_of(&output.stdout);
        ensure!(output.status.success(), "{}: {}\n{printed}", output.status, without_progress(&stderr));
        match step.program {
            Program::CargoFuzz(target) => fuzz::executions(target, &stderr),
            Program::Page => fuzz::executions("recordings", &stderr),
            Program::Callgrind => instructions::counts(&counted),
            Program::Cargo => documents(&fs::read(&figures).context("no figures were reported")?),
            Program::Srdma | Program::ModelCheck | Program::Example(..) | Program::Xtask | Program::Python => {
                kept(&documents(&output.stdout)?, step.keep)
            }
        }
    }
}

/// The figures of several runs of a command, each of one value a run.
fn merged(results: &[Value]) -> Result<Vec<Figure>> {
    let runs = results.iter().map(|result| serde_json::from_value::<Vec<Figure>>(result.clone()));
    let runs = runs.collect::<Result<Vec<_>, _>>().context("a run has reported one figure, or none")?;
    let first = runs.first().context("there is no run")?;
    let of_all = first.iter().enumerate().map(|(at, figure)| {
        let values = runs.iter().map(|run| {
            let same =
                run.get(at).filter(|other| (&other.what, &other.unit, other.count) == (&figure.what, &figure.unit, 1));
            same.map(|other| other.median).with_context(|| format!("{}: no single value in each run", figure.what))
        });
        Ok(Figure::of(figure.what.clone(), &figure.unit, values.collect::<Result<Vec<_>>>()?))
    });
    of_all.collect()
}

/// The last octets of an output, which say what has failed where a command reports failures in its result.
fn end_of(output: &[u8]) -> String {
    const OCTETS: usize = 4_000;
    String::from_utf8_lossy(&output[output.len().saturating_sub(OCTETS)..]).into_owned()
}

/// The lines of an error output that are not about the progress of libFuzzer.
fn without_progress(stderr: &str) -> String {
    let is_progress = |line: &str| line.starts_with('#') || line.trim_start().starts_with("NEW_FUNC[");
    stderr.lines().filter(|line| !is_progress(line)).collect::<Vec<_>>().join("\n")
}

/// Puts the inputs of a target's corpus where the fuzzer begins with them.
fn unpack_corpus(target: &str) -> Result<()> {
    let folder = format!("fuzz/corpus/{target}");
    let mut unpack = cargo();
    unpack.args(["run", "--quiet", "--locked", "-p", "srdma-fuzz-targets", "--example", "corpus", "--", "unpack"]);
    unpack.args([format!("{folder}.bin"), folder]).current_dir(Tree::root());
    ensure!(unpack.status().context("cannot start cargo")?.success(), "the corpus of {target} cannot be unpacked");
    Ok(())
}

/// One JSON document, or several, one after the other, as an array.
fn documents(octets: &[u8]) -> Result<Value> {
    let all: Vec<Value> =
        serde_json::Deserializer::from_slice(octets).into_iter().collect::<Result<_, _>>().context("no JSON")?;
    match <[Value; 1]>::try_from(all) {
        Ok([one]) => Ok(one),
        Err(all) if all.is_empty() => bail!("nothing was printed"),
        Err(all) => Ok(Value::Array(all)),
    }
}

/// The members at these pointers, by their last name. Behind `/*` are members of the elements of an array, which stays
/// an array of objects with these members.
fn kept(value: &Value, pointers: &[&str]) -> Result<Value> {
    if pointers.is_empty() {
        return Ok(value.clone());
    }
    let mut members = Map::new();
    let mut of_elements: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pointer in pointers {
        match pointer.split_once("/*") {
            Some((array, member)) => of_elements.entry(array).or_default().push(member),
            None => {
                members.insert(name_of(pointer), found(value, pointer)?.clone());
            }
        }
    }
    for (array, of_element) in of_elements {
        let elements = found(value, array)?.as_array().with_context(|| format!("{array} is no array"))?;
        let kept = elements.iter().map(|element| kept(element, &of_element)).collect::<Result<_>>()?;
        members.insert(name_of(array), kept);
    }
    Ok(Value::Object(members))
}

fn found<'v>(value: &'v Value, pointer: &str) -> Result<&'v Value> {
    value.pointer(pointer).with_context(|| format!("the result has no {pointer}"))
}

fn name_of(pointer: &str) -> String {
    pointer.rsplit('/').next().unwrap_or(pointer).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_document_is_itself_and_several_are_an_array() {
        assert_eq!(documents(b"{\"a\": 1}\n").unwrap(), json!({ "a": 1 }));
        assert_eq!(documents(b"{\"a\": 1}\n{\"a\": 2}\n").unwrap(), json!([{ "a": 1 }, { "a": 2 }]));
        assert!(documents(b"").is_err() && documents(b"table\n").is_err());
    }

    #[test]
    fn figures_of_runs_are_merged() {
        let run = |values: [f64; 2]| {
            let figures = values.map(|value| Figure::of(format!("of {}", value > 9.0), "s", [value]));
            serde_json::to_value(figures).unwrap()
        };
        let figures = merged(&[run([2.0, 20.0]), run([1.0, 30.0]), run([3.0, 10.0])]).unwrap();
        assert_eq!(
            figures,
            [Figure::of("of false", "s", [1.0, 2.0, 3.0]), Figure::of("of true", "s", [10.0, 20.0, 30.0])]
        );
        let of_two = serde_json::to_value([Figure::of("of false", "s", [1.0, 2.0])]).unwrap();
        for other in [run([20.0, 2.0]), of_two, json!([]), json!({ "what": "of false" })] {
            assert!(merged(&[run([2.0, 20.0]), other]).is_err());
        }
    }

    #[test]
    fn the_end_of_an_output_is_shown() {
        let output = [vec![b'a'; 5_000], b"\"failures\": [1]".to_vec()].concat();
        assert!(end_of(&output).ends_with("a\"failures\": [1]") && end_of(&output).len() == 4_000);
        assert_eq!(end_of(b"short"), "short");
    }

    #[test]
    fn progress_of_fuzzing_is_no_error() {
        let stderr = "#2\tINITED cov: 3\n\tNEW_FUNC[1/2]: 0x1\n#3\tNEW    cov: 4\nthread panicked at etcd.rs:74\n";
        assert_eq!(without_progress(stderr), "thread panicked at etcd.rs:74");
    }

    #[test]
    fn members_are_kept_by_their_last_name() {
        let value = json!({ "source": { "egress_ratio": 1.5, "other": 1 }, "loss": 0 });
        assert_eq!(kept(&value, &["/source/egress_ratio"]).unwrap(), json!({ "egress_ratio": 1.5 }));
        let error = kept(&value, &["/source/egress"]).unwrap_err();
        assert_eq!(error.to_string(), "the result has no /source/egress");
    }

    #[test]
    fn elements_of_arrays_keep_their_members() {
        let run = |seed: u8| json!({ "seed": seed, "queue": [1, 2, 3], "hosts": [{ "name": "h", "octets": seed }] });
        let value = json!({ "runs": [run(1), run(2)], "title": "t" });
        let reduced = kept(&value, &["/title", "/runs/*/seed", "/runs/*/hosts/*/octets"]).unwrap();
        let run = |seed: u8| json!({ "seed": seed, "hosts": [{ "octets": seed }] });
        assert_eq!(reduced, json!({ "title": "t", "runs": [run(1), run(2)] }));
        assert!(kept(&value, &["/title/*/seed"]).is_err() && kept(&value, &["/runs/*/size"]).is_err());
    }
}
