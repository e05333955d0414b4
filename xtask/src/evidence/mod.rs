//! `cargo xtask evidence`: runs the commands behind tables and plots of the documents, keeps their results with commit,
//! tree and machine in docs/results, and writes the tables and plots from them.
//!
//! A result that exists for the present tree of crates/ is kept. What a run that was stopped had finished is kept in
//! target/evidence, so that it goes on where it was. But commands of fuzzing, chaos tests and model checking name the
//! crates that they reach: each has a tree of its own, is stored when it ends, and holds until one of these changes.

mod figures;
mod fuzz;
mod instructions;
mod job;
mod jobs;
mod methods;
mod networks;
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
use job::{Job, Program, Step};
use programs::Programs;
use reach::Crates;
use result::Trees;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

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
        let (crates, present) = (Crates::of_workspace()?, Trees::of_repository()?);
        for job in &jobs {
            let states = states(job, &crates, &present)?;
            match arguments.only.as_slice() {
                [] => println!("{}", summary(job, &states)),
                _ => print(job, &states),
            }
        }
        return Ok(true);
    }
    let mut failed = Vec::new();
    if !arguments.tables {
        let present = result::Present::of_repository()?;
        let programs = Programs::build(&jobs)?;
        for job in &jobs {
            let stored = Stored::read(job.name)?;
            let is_present =
                |stored: &Stored| stored.tree == present.trees.crates && stored.steps.len() == job.steps.len();
            if !arguments.again && stored.as_ref().is_some_and(is_present) {
                println!("{}: there is a result of this tree", job.name);
                continue;
            }
            println!("{}: {}", job.name, job.about);
            let earlier = stored.as_ref().filter(|_| !arguments.again);
            match execute(job, &programs, &present, earlier) {
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
fn states(job: &Job, crates: &Crates, present: &Trees) -> Result<Vec<State>> {
    let stored = Stored::read(job.name)?;
    let state = |step: &Step| {
        let Some(tree) = stored.as_ref().and_then(|stored| stored.tree_of(&step.command())) else {
            return Ok(State::Missing);
        };
        let holds = if step.is_part() { holds(step, tree, present, crates)? } else { tree == present.crates };
        Ok(if holds { State::Holds(tree.to_owned()) } else { State::OfOtherCode(tree.to_owned()) })
    };
    job.steps.iter().map(state).collect()
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

/// A job's commands, the trees on which they ran, and whether their results hold.
fn print(job: &Job, states: &[State]) {
    println!("{}", summary(job, states));
    for (step, state) in job.steps.iter().zip(states) {
        let state = match state {
            State::Missing => "no result".to_owned(),
            State::Holds(tree) => format!("tree {tree}"),
            State::OfOtherCode(tree) => format!("tree {tree}, of other code"),
        };
        println!("    {}\n        {state}", step.command());
    }
}

/// Whether what a part reaches has not changed since the tree of its run.
fn holds(step: &Step, tree: &str, present: &Trees, crates: &Crates) -> Result<bool> {
    match step.program {
        Program::Page => Ok(tree == present.tree_of(step)),
        _ => reach::is_same(tree, present.tree_of(step), &crates.reached(step.reaches)?),
    }
}

/// Runs the steps of a job, but for those that an earlier run with the same code has finished. A job of parts is stored
/// after each of them.
fn execute(job: &Job, programs: &Programs, present: &result::Present, earlier: Option<&Stored>) -> Result<Stored> {
    let of_parts = job.is_of_parts();
    let mut partial = match of_parts {
        true => Partial::of_what_holds(job, present, earlier)?,
        false => Partial::read(job.name, &present.trees.crates)?,
    };
    for (number, step) in job.steps.iter().enumerate() {
        let command = step.command();
        if partial.done.contains_key(&command) {
            continue;
        }
        let begin = Instant::now();
        let value = programs.run(step).with_context(|| command.clone())?;
        println!("  {}/{} {command}: {:.1} s", number + 1, job.steps.len(), begin.elapsed().as_secs_f64());
        partial.insert(&command, if of_parts { with_tree(value, present.trees.tree_of(step)) } else { value })?;
        if of_parts {
            partial.stored(job, present)?.write(job.name)?;
        }
    }
    let stored = partial.stored(job, present)?;
    partial.remove()?;
    Ok(stored)
}

/// A part's result, an object, with the tree of its run.
fn with_tree(value: Value, tree: &str) -> Value {
    let mut value = if value.is_object() { value } else { serde_json::json!({ "rows": value }) };
    value["tree"] = Value::from(tree);
    value
}

/// The finished steps of a job, by their commands.
struct Partial {
    /// Where they are kept until all are finished; `None`: each is stored in the result.
    file: Option<PathBuf>,
    done: BTreeMap<String, Value>,
}

impl Partial {
    fn read(name: &str, tree: &str) -> Result<Self> {
        let folder = Tree::root().join("target/evidence");
        fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{name}-{tree}.json"));
        let done = match fs::read(&file) {
            Ok(octets) => serde_json::from_slice(&octets).with_context(|| format!("{}", file.display()))?,
            Err(_) => BTreeMap::new(),
        };
        Ok(Partial { file: Some(file), done })
    }

    /// Of a job of parts: those of an earlier result whose code has not changed since.
    fn of_what_holds(job: &Job, present: &result::Present, earlier: Option<&Stored>) -> Result<Self> {
        let (crates, mut done) = (Crates::of_workspace()?, BTreeMap::new());
        for step in &job.steps {
            let command = step.command();
            let Some(value) = earlier.and_then(|earlier| earlier.result_of(&command)) else { continue };
            let Some(tree) = value["tree"].as_str() else { continue };
            if holds(step, tree, &present.trees, &crates)? {
                done.insert(command, value.clone());
            }
        }
        Ok(Partial { file: None, done })
    }

    /// What is finished, as a result. A table that cannot be made of it shows that it lacks something.
    fn stored(&self, job: &Job, present: &result::Present) -> Result<Stored> {
        let of_step = |command: String| self.done.get(&command).map(|value| (command.clone(), value.clone()));
        let stored = Stored::new(present, job.steps.iter().map(Step::command).filter_map(of_step).collect());
        table(job, &stored)?;
        Ok(stored)
    }

    fn insert(&mut self, command: &str, value: Value) -> Result<()> {
        self.done.insert(command.to_owned(), value);
        let Some(file) = &self.file else { return Ok(()) };
        let partial = file.with_extension("partial");
        fs::write(&partial, serde_json::to_vec(&self.done)?)?;
        fs::rename(partial, file).context("cannot keep a result")
    }

    fn remove(&self) -> Result<()> {
        match &self.file {
            Some(file) if file.exists() => fs::remove_file(file).context("cannot remove results"),
            _ => Ok(()),
        }
    }
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
    use std::collections::BTreeSet;

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
        let result = |step: &Step, tree: &str| {
            let value = serde_json::json!({ "target": "requests", "executions": 7, "per_second": 2 });
            (step.command(), with_tree(value, tree))
        };
        let last = job.steps.len() - 1;
        let mut stored = Stored::new(&result::Present::of("0123456789"), vec![result(&job.steps[last], "fedcba9876")]);
        let text = table_of(job.name, &stored).unwrap();
        assert!(text.contains("\n| `requests` | 7 | 2 | fedcba98 |\n"), "{text}");
        assert!(
            text.ends_with(&format!(" {last} of {} commands have not run since their code changed.\n", last + 1)),
            "{text}"
        );
        stored.steps.splice(0..0, job.steps[..last].iter().map(|step| result(step, "fedcba9876")));
        assert!(!table_of(job.name, &stored).unwrap().contains("have not run"));
        stored.steps.reverse();
        assert!(table_of(job.name, &stored).is_err(), "not in their order");
    }

    #[test]
    fn a_stopped_job_keeps_what_it_has_finished() {
        let mut partial = Partial::read("test-of-partial-results", "0").unwrap();
        partial.insert("one", Value::from(1)).unwrap();
        let again = Partial::read("test-of-partial-results", "0").unwrap();
        assert_eq!(again.done["one"], 1);
        again.remove().unwrap();
        assert!(Partial::read("test-of-partial-results", "0").unwrap().done.is_empty());
    }
}
