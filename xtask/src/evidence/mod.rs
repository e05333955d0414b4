//! `cargo xtask evidence`: runs the commands behind tables and plots of the documents, keeps their results with commit,
//! tree and machine in docs/results, and writes the tables and plots from them.
//!
//! A result of the present tree of crates/, the present commands and the files that they name is kept. What a run that
//! was stopped had finished is kept in target/evidence, so that it goes on where it was. But commands of fuzzing, chaos
//! tests and model checking name the crates that they reach: each has commit, tree and machine of its own, is stored
//! when it ends, and holds until one of these crates changes.

mod figures;
mod files;
mod fuzz;
mod instructions;
mod job;
mod jobs;
mod methods;
mod networks;
mod partial;
mod paths;
mod plots;
mod programs;
mod reach;
mod repair_sweep;
mod result;
mod table;
mod times;
mod transfers;

pub(crate) use plots::plots_of;
pub(crate) use result::{RESULTS, Stored};
pub(crate) use table::{Marked, marked, write_into};

use crate::tree::Tree;
use anyhow::{Context, Result, ensure};
use files::Files;
use job::{Job, Step};
use partial::Partial;
use programs::Programs;
use reach::Crates;
use result::{Present, Run, Trees};
use serde_json::Value;
use std::io::{self, ErrorKind, Write};
use std::{fs, time::Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only what takes less than half an hour together. This is the default.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Everything: takes days.
    #[arg(long)]
    full: bool,
    /// Only this result; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Run again what exists for this tree of crates/.
    #[arg(long)]
    again: bool,
    /// Run nothing: write the tables and plots from the results that exist.
    #[arg(long, conflicts_with_all = ["quick", "full", "again"])]
    tables: bool,
    /// Run nothing: print how many commands of each result have run on the present code; with --only, which.
    #[arg(long, conflicts_with_all = ["quick", "full", "again", "tables"])]
    list: bool,
}

/// Runs the jobs, and writes their results and all tables; `false` if a command has failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let jobs = selected(arguments)?;
    if arguments.list {
        list(&jobs, !arguments.only.is_empty())?;
        return Ok(true);
    }
    let mut failed = Vec::new();
    if !arguments.tables {
        let (crates, present) = (Crates::of_workspace()?, Present::of_repository()?);
        let programs = Programs::build(&jobs)?;
        for job in &jobs {
            let stored = Stored::read(job.name)?.filter(|_| !arguments.again);
            if is_present(job, stored.as_ref(), &crates, &present.trees)? {
                println!("{}: there is a result of the present code", job.name);
                continue;
            }
            println!("{}: {}", job.name, job.about);
            match execute(job, &programs, &present, &crates, stored.as_ref()) {
                Ok(stored) => stored.write(job.name)?,
                Err(error) => {
                    eprintln!("error: {}: {error:#}", job.name);
                    failed.push(job.name);
                }
            }
        }
    }
    write_documents(&Tree::of_repository()?)?;
    if !failed.is_empty() {
        eprintln!("failed: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

/// Prints what has run on the present code, also to a reader that ends before, as `head` does.
fn list(jobs: &[Job], with_commands: bool) -> Result<()> {
    let (crates, present) = (Crates::of_workspace()?, Trees::of_repository()?);
    let mut out = io::stdout().lock();
    for job in jobs {
        let states = states(job, Stored::read(job.name)?.as_ref(), &crates, &present)?;
        let details = if with_commands { details(job, &states) } else { String::new() };
        match writeln!(out, "{}{details}", summary(job, &states)) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            written => written?,
        }
    }
    Ok(())
}

fn selected(arguments: &Arguments) -> Result<Vec<Job>> {
    let all = jobs::all();
    for name in &arguments.only {
        let names: Vec<&str> = all.iter().map(|job| job.name).collect();
        ensure!(names.contains(&name.as_str()), "there is no result {name}: expected one of {}", names.join(", "));
    }
    let is_wanted = |job: &Job| match arguments.only.as_slice() {
        [] => arguments.full || arguments.list || job.is_quick,
        only => only.iter().any(|name| name == job.name),
    };
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// Whether a command has a result.
enum State {
    Missing,
    /// Of the present code, as far as the command reaches it: the tree of its run.
    Holds(String),
    OfOtherCode(String),
}

/// The states of a job's commands.
fn states(job: &Job, stored: Option<&Stored>, crates: &Crates, present: &Trees) -> Result<Vec<State>> {
    let state = |step: &Step| {
        let Some(run) = stored.and_then(|stored| stored.run_of(&step.command())) else {
            return Ok(State::Missing);
        };
        let tree = run.tree.to_owned();
        Ok(if holds(step, &run, present, crates)? { State::Holds(tree) } else { State::OfOtherCode(tree) })
    };
    job.steps.iter().map(state).collect()
}

/// Whether a result has the job's commands, and no others, all of the present code.
fn is_present(job: &Job, stored: Option<&Stored>, crates: &Crates, present: &Trees) -> Result<bool> {
    let Some(Stored { steps, .. }) = stored else { return Ok(false) };
    let has_commands = job.steps.iter().map(Step::command).eq(steps.iter().map(|(command, _)| command.as_str()));
    let states = states(job, stored, crates, present)?;
    Ok(has_commands && states.iter().all(|state| matches!(state, State::Holds(_))))
}

/// A job, and how many of its commands are in each state.
fn summary(job: &Job, states: &[State]) -> String {
    let count = |is: fn(&State) -> bool| states.iter().filter(|state| is(state)).count();
    let counts = [
        (count(|state| matches!(state, State::Holds(_))), "of the present code"),
        (count(|state| matches!(state, State::OfOtherCode(_))), "of other code"),
        (count(|state| matches!(state, State::Missing)), "not run"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    format!("{:<27} {:<5}  {counts}: {}", job.name, if job.is_quick { "quick" } else { "full" }, job.about)
}

/// A job's commands, each in a line of its own after the first, the trees on which they ran, and whether their results
/// hold.
fn details(job: &Job, states: &[State]) -> String {
    let lines = job.steps.iter().zip(states).map(|(step, state)| {
        let state = match state {
            State::Missing => "no result".to_owned(),
            State::Holds(tree) => format!("tree {tree}"),
            State::OfOtherCode(tree) => format!("tree {tree}, of other code or files"),
        };
        format!("\n    {}\n        {state}", step.command())
    });
    lines.collect()
}

/// Whether what a command depends on has not changed since its run.
fn holds(step: &Step, run: &Run<'_>, present: &Trees, crates: &Crates) -> Result<bool> {
    let is_same = match step.reaches {
        [] => run.tree == present.tree_of(step),
        reaches => reach::is_same(run.tree, present.tree_of(step), &crates.reached(reaches)?)?,
    };
    Ok(is_same && run.has_files(&present.files_of(step)))
}

/// Runs the steps of a job, but for those that an earlier run with the same code has finished. A job of parts is stored
/// after each of them.
fn execute(
    job: &Job,
    programs: &Programs,
    present: &Present,
    crates: &Crates,
    earlier: Option<&Stored>,
) -> Result<Stored> {
    let of_parts = job.is_of_parts();
    let mut partial = match of_parts {
        true => Partial::of_what_holds(job, &present.trees, crates, earlier)?,
        false => Partial::read(job.name, &present.trees.crates, files_of(job, &present.trees))?,
    };
    for (number, step) in job.steps.iter().enumerate() {
        let command = step.command();
        if partial.done.contains_key(&command) {
            continue;
        }
        let begin = Instant::now();
        let value = programs.run(step).with_context(|| command.clone())?;
        println!("  {}/{} {command}: {:.1} s", number + 1, job.steps.len(), begin.elapsed().as_secs_f64());
        partial.insert(&command, if of_parts { present.stamp(step, value) } else { value })?;
        if of_parts {
            partial.stored(job, present)?.write(job.name)?;
        }
    }
    let stored = partial.stored(job, present)?;
    partial.remove()?;
    Ok(stored)
}

/// The files outside crates/ on which the result of a job depends.
fn files_of(job: &Job, present: &Trees) -> Files {
    job.steps.iter().flat_map(|step| present.files_of(step)).collect()
}

/// Writes the table of each result into the documents that have its markers, and its plots.
fn write_documents(tree: &Tree) -> Result<()> {
    for file in tree.with_suffix(".md") {
        let mut text = file.text.clone();
        for Marked { name, .. } in marked(&file.text) {
            if let Some(stored) = Stored::of_tree(tree, name)? {
                text = write_into(&text, name, &table_of(name, &stored)?);
                for plot in plots_of(name, &stored)? {
                    write_changed(tree, &plot.path(), &plot.svg)?;
                }
            }
        }
        write_changed(tree, &file.path, &text)?;
    }
    Ok(())
}

/// Writes a file of the repository whose text is another one now.
fn write_changed(tree: &Tree, path: &str, text: &str) -> Result<()> {
    if tree.file(path).is_none_or(|file| file.text != text) {
        fs::write(Tree::root().join(path), text).with_context(|| path.to_owned())?;
        println!("{path}: written");
    }
    Ok(())
}

/// The table of a result, with its origin below.
pub(crate) fn table_of(name: &str, stored: &Stored) -> Result<String> {
    let job = jobs::all().into_iter().find(|job| job.name == name);
    let job = job.with_context(|| format!("there is no result {name}"))?;
    Ok(format!("{}\n{}\n", table(&job, stored)?, stored.origin(name, job.steps.len())))
}

/// The results of the commands.
fn values(stored: &Stored) -> Vec<Value> {
    stored.steps.iter().map(|(_, value)| value.clone()).collect()
}

const CHANGED: &str = "the commands have changed since the result";

/// The table of what a job's result has: of all commands, or, of parts, of those that have run.
fn table(job: &Job, stored: &Stored) -> Result<String> {
    let (mut kept, mut values) = (stored.steps.iter().peekable(), Vec::new());
    for command in job.steps.iter().map(Step::command) {
        match kept.next_if(|(kept, _)| *kept == command) {
            Some((_, value)) => values.push(value.clone()),
            None => {
                ensure!(job.is_of_parts(), "{}: {CHANGED}", job.name);
                values.push(Value::Null);
            }
        }
    }
    ensure!(kept.next().is_none(), "{}: {CHANGED}", job.name);
    (job.table)(&values).with_context(|| job.name.to_owned())
}

/// Whether a result has this name.
pub(crate) fn is_known(name: &str) -> bool {
    jobs::all().iter().any(|job| job.name == name)
}

/// The commands of a result.
#[cfg(test)]
pub(crate) fn commands(name: &str) -> Vec<String> {
    jobs::all().iter().filter(|job| job.name == name).flat_map(|job| &job.steps).map(Step::command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use job::Program;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn jobs_have_names_of_their_own_and_steps() {
        let jobs = jobs::all();
        let names: BTreeSet<&str> = jobs.iter().map(|job| job.name).collect();
        assert_eq!(names.len(), jobs.len());
        for job in &jobs {
            let commands: BTreeSet<String> = job.steps.iter().map(Step::command).collect();
            assert!(!commands.is_empty() && commands.len() == job.steps.len(), "{}", job.name);
        }
        assert!(jobs.iter().any(|job| job.is_quick) && jobs.iter().any(|job| !job.is_quick));
    }

    #[test]
    fn a_summary_counts_the_commands_by_state() {
        let job = jobs::all().into_iter().find(|job| job.name == "end-to-end").unwrap();
        let tree = || "0123456789".to_owned();
        let text = summary(&job, &[State::Holds(tree()), State::Missing, State::Missing]);
        let begin = format!("{:<27} quick  1 of the present code, 2 not run: ", "end-to-end");
        assert_eq!(text, format!("{begin}{}", job.about));
        assert!(summary(&job, &[State::OfOtherCode(tree())]).contains("quick  1 of other code: "));
    }

    /// Results of a job whose values are missing make no table.
    #[test]
    fn no_table_is_made_of_nothing() {
        for job in jobs::all() {
            let nothing: Vec<Value> = job.steps.iter().map(|_| Value::Null).collect();
            assert!((job.table)(&nothing).is_err(), "{}", job.name);
        }
    }

    /// A job of parts has a table of those that have run, and says how many have not.
    #[test]
    fn a_table_of_parts_lacks_what_has_not_run() {
        let job = jobs::all().into_iter().find(|job| job.name == "fuzz-controller").unwrap();
        let earlier = Present::of("fedcba9876");
        let result = |step: &Step| {
            let value = serde_json::json!({ "target": "requests", "executions": 7, "per_second": 2 });
            (step.command(), earlier.stamp(step, value))
        };
        let last = job.steps.len() - 1;
        let mut stored = Stored::new(&Present::of("0123456789"), Files::new(), vec![result(&job.steps[last])]);
        let text = table_of(job.name, &stored).unwrap();
        assert!(text.contains("\n| `requests` | 7 | 2 | fedcba98 |\n"), "{text}");
        assert!(
            text.ends_with(&format!(" {last} of {} commands have not run since their code changed.\n", last + 1)),
            "{text}"
        );
        stored.steps.splice(0..0, job.steps[..last].iter().map(result));
        assert!(!table_of(job.name, &stored).unwrap().contains("have not run"));
        stored.steps.reverse();
        assert!(table_of(job.name, &stored).is_err(), "not in their order");
    }

    /// A job of two simulations.
    fn simulations() -> Job {
        let step = |name: &str| Step::srdma(format!("sim scenarios/{name}.toml --json"), &[]);
        let steps = ["a", "b"].map(step).to_vec();
        Job { name: "simulations", about: "", is_quick: true, steps, table: |_| Ok(String::new()) }
    }

    /// A result of the job's commands on this code.
    fn result_of(job: &Job, trees: &Trees, files: Files) -> Stored {
        let steps = job.steps.iter().map(|step| (step.command(), Value::Null)).collect();
        Stored::new(&Present::of(&trees.crates), files, steps)
    }

    #[test]
    fn a_result_of_other_commands_is_not_present() {
        let (job, crates, trees) = (simulations(), Crates::of_workspace().unwrap(), Trees::of("0", "1"));
        let mut stored = result_of(&job, &trees, Files::new());
        let is_present = |stored: &Stored| is_present(&job, Some(stored), &crates, &trees).unwrap();
        assert!(is_present(&stored));
        stored.steps[1].0 = "srdma sim scenarios/b.toml --seeds 2 --json".to_owned();
        assert!(!is_present(&stored), "as many, but another one");
        stored.steps[1].0 = job.steps[1].command();
        stored.steps.reverse();
        assert!(!is_present(&stored), "no table is made in this order");
    }

    #[test]
    fn a_result_of_another_scenario_is_not_present() {
        let (job, crates) = (simulations(), Crates::of_workspace().unwrap());
        let of = |b: &str, measured: &str| {
            let a = ("scenarios/a.toml", "file = \"measured/m.toml\"");
            Trees::of("0", "1").with(&[a, ("scenarios/b.toml", b), ("scenarios/measured/m.toml", measured)])
        };
        let earlier = of("n = 1", "m = 1");
        let stored = result_of(&job, &earlier, files_of(&job, &earlier));
        let count = |stored: &Stored, present: &Trees| {
            let states = states(&job, Some(stored), &crates, present).unwrap();
            let holding = states.iter().filter(|state| matches!(state, State::Holds(_))).count();
            assert_eq!(is_present(&job, Some(stored), &crates, present).unwrap(), holding == 2);
            holding
        };
        assert_eq!(count(&stored, &earlier), 2);
        assert_eq!(count(&stored, &of("n = 2", "m = 1")), 1);
        assert_eq!(count(&stored, &of("n = 1", "m = 2")), 1);
        // Without files, a result is of the present code by the tree alone.
        let unrecorded = result_of(&job, &earlier, Files::new());
        assert_eq!(count(&unrecorded, &of("n = 2", "m = 2")), 2);
    }

    /// What holds is kept with the origin of its run, and is not stamped again.
    #[test]
    fn parts_that_hold_keep_their_origin() {
        let part = |seed: u32| Step { program: Program::Page, ..Step::srdma(format!("fuzz -- {seed}"), &[]) };
        let job = Job { steps: vec![part(1), part(2)], ..simulations() };
        let crates = Crates::of_workspace().unwrap();
        let earlier = Present::of("0");
        let results = job.steps.iter().map(|step| (step.command(), earlier.stamp(step, Value::from(7))));
        let mut stored = Stored::new(&earlier, Files::new(), results.collect());
        let present = Trees::of("other crates", "0123456789");
        assert!(is_present(&job, Some(&stored), &crates, &present).unwrap());
        stored.steps[1].1["tree"] = Value::from("another page");
        assert!(!is_present(&job, Some(&stored), &crates, &present).unwrap());
        let kept = Partial::of_what_holds(&job, &present, &crates, Some(&stored)).unwrap().done;
        assert_eq!(kept, BTreeMap::from([(job.steps[0].command(), stored.steps[0].1.clone())]));
        assert_eq!(kept[&job.steps[0].command()]["machine"], "a machine");
    }

    /// What is shipped is run at its full size.
    #[test]
    fn every_scenario_is_in_a_command() {
        let tree = Tree::of_repository().unwrap();
        let is_scenario = |path: &&str| {
            path.starts_with("scenarios/") && path.ends_with(".toml") && !path.starts_with("scenarios/measured/")
        };
        let scenarios: BTreeSet<&str> = tree.files.iter().map(|file| file.path.as_str()).filter(is_scenario).collect();
        let jobs = jobs::all();
        let words = jobs.iter().flat_map(|job| &job.steps).flat_map(Step::arguments);
        let run: BTreeSet<&str> = words.filter(|word| scenarios.contains(word)).collect();
        assert!(
            scenarios.contains("scenarios/wan.toml") && scenarios.contains("scenarios/sweeps/incast-dc-rates.toml")
        );
        assert_eq!(run, scenarios);
    }
}
