//! What of a job is finished while its other steps run.

use super::files::Files;
use super::job::{Job, Step};
use super::reach::Crates;
use super::result::{Present, Stored, Trees};
use super::{State, states, table};
use crate::tree::Tree;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The finished steps of a job, by their commands.
pub(super) struct Partial {
    /// Where they are kept until all are finished; `None`: each is stored in the result.
    file: Option<PathBuf>,
    /// What they depend on outside crates/; none if each has its own.
    files: Files,
    pub(super) done: BTreeMap<String, Value>,
}

impl Partial {
    /// Those of a run with these files that was stopped.
    pub(super) fn read(name: &str, tree: &str, files: Files) -> Result<Self> {
        let folder = Tree::root().join("target/evidence");
        fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{name}-{tree}.json"));
        let (of, done) = match fs::read(&file) {
            Ok(octets) => serde_json::from_slice(&octets).with_context(|| format!("{}", file.display()))?,
            Err(_) => (Files::new(), BTreeMap::new()),
        };
        let done = if of == files { done } else { BTreeMap::new() };
        Ok(Partial { file: Some(file), files, done })
    }

    /// Of a job of parts: those of an earlier result whose code has not changed since.
    pub(super) fn of_what_holds(job: &Job, present: &Trees, crates: &Crates, earlier: Option<&Stored>) -> Result<Self> {
        let mut done = BTreeMap::new();
        for (step, state) in job.steps.iter().zip(states(job, earlier, crates, present)?) {
            let command = step.command();
            let value = earlier.and_then(|earlier| earlier.result_of(&command));
            if let (State::Holds(_), Some(value)) = (state, value) {
                done.insert(command, value.clone());
            }
        }
        Ok(Partial { file: None, files: Files::new(), done })
    }

    /// What is finished, as a result. A table that cannot be made of it shows that it lacks something.
    pub(super) fn stored(&self, job: &Job, present: &Present) -> Result<Stored> {
        let of_step = |command: String| self.done.get(&command).map(|value| (command.clone(), value.clone()));
        let steps = job.steps.iter().map(Step::command).filter_map(of_step).collect();
        let stored = Stored::new(present, self.files.clone(), steps);
        table(job, &stored)?;
        Ok(stored)
    }

    pub(super) fn insert(&mut self, command: &str, value: Value) -> Result<()> {
        self.done.insert(command.to_owned(), value);
        let Some(file) = &self.file else { return Ok(()) };
        let partial = file.with_extension("partial");
        fs::write(&partial, serde_json::to_vec(&(&self.files, &self.done))?)?;
        fs::rename(partial, file).context("cannot keep a result")
    }

    pub(super) fn remove(&self) -> Result<()> {
        match &self.file {
            Some(file) if file.exists() => fs::remove_file(file).context("cannot remove results"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_job_keeps_what_it_has_finished() {
        let files = |id: &str| Files::from([("scenarios/a.toml".to_owned(), id.to_owned())]);
        let read = |id: &str| Partial::read("test-of-partial-results", "0", files(id)).unwrap();
        read("1").insert("one", Value::from(1)).unwrap();
        let again = read("1");
        assert_eq!(again.done["one"], 1);
        assert!(read("2").done.is_empty(), "of another scenario");
        again.remove().unwrap();
        assert!(read("1").done.is_empty());
    }
}
