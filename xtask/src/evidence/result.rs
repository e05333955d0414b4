//! A result in docs/results: what was run, on which code and machine, and what came out.

use super::job::{Program, Step};
use crate::tree::Tree;
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::fs;
use std::process::Command;

/// The folder of results.
pub(crate) const RESULTS: &str = "docs/results";

/// What is present: the code, and the machine.
pub(super) struct Present {
    commit: String,
    pub(super) trees: Trees,
    machine: String,
}

/// The code that is present, by the ids that git has for the folders.
pub(super) struct Trees {
    pub(super) crates: String,
    page: String,
}

impl Trees {
    /// Those of the last commit.
    pub(super) fn of_repository() -> Result<Self> {
        let [crates, page] = ["HEAD:crates", "HEAD:page/src"].map(|folder| git(&["rev-parse", folder]));
        Ok(Trees { crates: crates?, page: page? })
    }

    #[cfg(test)]
    pub(super) fn of(crates: &str, page: &str) -> Self {
        Trees { crates: crates.to_owned(), page: page.to_owned() }
    }

    /// That to which a step belongs.
    pub(super) fn tree_of(&self, step: &Step) -> &str {
        if step.program == Program::Page { &self.page } else { &self.crates }
    }
}

impl Present {
    #[cfg(test)]
    pub(super) fn of(tree: &str) -> Self {
        let trees = Trees::of(tree, "0123456789");
        Present { commit: "0123456789".to_owned(), trees, machine: "a machine".to_owned() }
    }

    /// # Errors
    /// When the code differs from the last commit: a result belongs to code that others can read.
    pub(super) fn of_repository() -> Result<Self> {
        let changed = git(&["status", "--porcelain", "--", "crates", "page", "scenarios", "Cargo.lock"])?;
        ensure!(changed.is_empty(), "commit these changes first, so that results belong to a commit:\n{changed}");
        Ok(Present { commit: git(&["rev-parse", "HEAD"])?, trees: Trees::of_repository()?, machine: machine() })
    }
}

/// A result with its origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) commit: String,
    /// The tree of crates/ in that commit.
    pub(crate) tree: String,
    machine: String,
    /// Each command with its result.
    pub(super) steps: Vec<(String, Value)>,
}

impl Stored {
    pub(super) fn new(present: &Present, steps: Vec<(String, Value)>) -> Self {
        let Present { commit, trees, machine } = present;
        Stored { commit: commit.clone(), tree: trees.crates.clone(), machine: machine.clone(), steps }
    }

    fn path(name: &str) -> String {
        format!("{RESULTS}/{name}.json")
    }

    /// The result of this name, if there is one.
    pub(super) fn read(name: &str) -> Result<Option<Stored>> {
        let path = Tree::root().join(Self::path(name));
        if !path.is_file() {
            return Ok(None);
        }
        Self::parse(&fs::read_to_string(path)?).with_context(|| Self::path(name)).map(Some)
    }

    /// The same from the files of a tree.
    pub(crate) fn of_tree(tree: &Tree, name: &str) -> Result<Option<Stored>> {
        let file = tree.file(&Self::path(name));
        file.map(|file| Self::parse(&file.text)).transpose().with_context(|| Self::path(name))
    }

    /// Reads a result.
    ///
    /// # Errors
    /// The member that is missing.
    pub(crate) fn parse(text: &str) -> Result<Stored> {
        let value: Value = serde_json::from_str(text)?;
        let member = |name: &str| {
            value[name].as_str().map(str::to_owned).with_context(|| format!("a result has a text {name:?}"))
        };
        let steps = value["steps"].as_array().context("a result has \"steps\"")?;
        let step = |step: &Value| {
            let command = step["command"].as_str().context("a step has a text \"command\"")?;
            Ok((command.to_owned(), step.get("result").context("a step has a \"result\"")?.clone()))
        };
        Ok(Stored {
            commit: member("commit")?,
            tree: member("tree")?,
            machine: member("machine")?,
            steps: steps.iter().map(step).collect::<Result<_>>()?,
        })
    }

    pub(super) fn write(&self, name: &str) -> Result<()> {
        let folder = Tree::root().join(RESULTS);
        fs::create_dir_all(&folder)?;
        fs::write(Tree::root().join(Self::path(name)), self.text()?).context("cannot write a result")
    }

    /// One line for each step, so that a comparison of two results is readable.
    fn text(&self) -> Result<String> {
        let Stored { commit, tree, machine, steps } = self;
        let head: Map<String, Value> = [("commit", commit), ("tree", tree), ("machine", machine)]
            .into_iter()
            .map(|(name, text)| (name.to_owned(), Value::from(text.as_str())))
            .collect();
        let head: Vec<String> = head.iter().map(|(name, text)| format!("  {}: {text}", json!(name))).collect();
        let lines: Vec<String> = steps
            .iter()
            .map(|(command, result)| format!("    {}", json!({ "command": command, "result": result })))
            .collect();
        Ok(format!("{{\n{},\n  \"steps\": [\n{}\n  ]\n}}\n", head.join(",\n"), lines.join(",\n")))
    }

    pub(super) fn result_of(&self, command: &str) -> Option<&Value> {
        self.steps.iter().find(|(of, _)| of == command).map(|(_, value)| value)
    }

    /// The tree on which a command ran.
    pub(super) fn tree_of(&self, command: &str) -> Option<&str> {
        Some(self.result_of(command)?["tree"].as_str().unwrap_or(&self.tree))
    }

    /// A line for below the table of a job that has so many commands.
    pub(super) fn origin(&self, name: &str, commands: usize) -> String {
        let Stored { commit, tree, machine, steps } = self;
        let short = |id: &str| id.chars().take(8).collect::<String>();
        let (commit, tree) = (short(commit), short(tree));
        let missing = match commands.saturating_sub(steps.len()) {
            0 => String::new(),
            missing => format!(" {missing} of {commands} commands have not run since their code changed."),
        };
        format!("`cargo xtask evidence --only {name}`: commit {commit}, tree {tree} of crates/, {machine}.{missing}")
    }
}

/// What git prints.
pub(super) fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(Tree::root()).output().context("cannot start git")?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

/// Processor, their number and the kernel.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let kernel = kernel.trim().split('-').next().unwrap_or_default();
    format!("{} with {processors} processors, Linux {kernel}", model.unwrap_or("a processor without a name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let steps = vec![("srdma demo".to_owned(), json!({ "a": [1, 2] })), ("srdma chaos".to_owned(), Value::Null)];
        let stored = Stored {
            commit: "0123456789abcdef".to_owned(),
            tree: "fedcba9876543210".to_owned(),
            machine: "a machine".to_owned(),
            steps,
        };
        assert_eq!(Stored::parse(&stored.text().unwrap()).unwrap(), stored);
        let origin = "`cargo xtask evidence --only x`: commit 01234567, tree fedcba98 of crates/, a machine.";
        assert_eq!(stored.origin("x", 2), origin);
        let missing = format!("{origin} 1 of 3 commands have not run since their code changed.");
        assert_eq!(stored.origin("x", 3), missing);
        assert!(Stored::parse("{\"commit\": \"1\"}").is_err());
    }

    /// By the parser's faster way the first is read as 14.940143099429877.
    #[test]
    fn numbers_keep_their_last_digit() {
        for number in ["14.940143099429875", "113.32167661156217", "225.80728314238954", "1e-7"] {
            assert_eq!(serde_json::from_str::<Value>(number).unwrap().to_string(), number);
        }
    }
}
