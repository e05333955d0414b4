//! A result in docs/results: what was run, on which code and machine, and what came out.

use super::files::{Files, paths_of};
use super::job::{Program, Step};
use crate::tree::Tree;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
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

/// The code that is present, by the ids that git has.
pub(super) struct Trees {
    pub(super) crates: String,
    page: String,
    /// Of all files and folders.
    ids: Files,
    tree: Tree,
}

impl Trees {
    /// Those of the last commit.
    pub(super) fn of_repository() -> Result<Self> {
        // Mode, kind and id; a tab; and the path.
        let listing = git(&["ls-tree", "-r", "-t", "-z", "HEAD"])?;
        let entry = |line: &str| {
            let (entry, path) = line.split_once('\t')?;
            Some((path.to_owned(), entry.rsplit(' ').next()?.to_owned()))
        };
        let ids: Files = listing.split('\0').filter_map(entry).collect();
        let id = |folder: &str| ids.get(folder).cloned().with_context(|| format!("the last commit has no {folder}"));
        Ok(Trees { crates: id("crates")?, page: id("page/src")?, tree: Tree::of_repository()?, ids })
    }

    #[cfg(test)]
    pub(super) fn of(crates: &str, page: &str) -> Self {
        let (crates, page) = (crates.to_owned(), page.to_owned());
        Trees { crates, page, ids: Files::new(), tree: Tree::of(&[]) }
    }

    /// The same with these files, whose texts stand for their ids.
    #[cfg(test)]
    pub(super) fn with(self, files: &[(&str, &str)]) -> Self {
        let ids = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Trees { ids, tree: Tree::of(files), ..self }
    }

    /// That to which a step belongs.
    pub(super) fn tree_of(&self, step: &Step) -> &str {
        if step.program == Program::Page { &self.page } else { &self.crates }
    }

    /// The files outside crates/ on which a step's result depends.
    pub(super) fn files_of(&self, step: &Step) -> Files {
        let id = |path: String| self.ids.get(&path).cloned().map(|id| (path, id));
        paths_of(step, &self.tree).into_iter().filter_map(id).collect()
    }
}

/// What has to be committed before a command is run.
const DEPENDED_ON: [&str; 7] = ["crates", "page", "scenarios", "labs", "examples", "xtask/src/peers", "Cargo.lock"];

impl Present {
    #[cfg(test)]
    pub(super) fn of(tree: &str) -> Self {
        let trees = Trees::of(tree, "0123456789");
        Present { commit: "0123456789".to_owned(), trees, machine: "a machine".to_owned() }
    }

    /// # Errors
    /// When the code differs from the last commit: a result belongs to code that others can read.
    pub(super) fn of_repository() -> Result<Self> {
        let changed = git(&[&["status", "--porcelain", "--"], &DEPENDED_ON[..]].concat())?;
        ensure!(changed.is_empty(), "commit these changes first, so that results belong to a commit:\n{changed}");
        Ok(Present { commit: git(&["rev-parse", "HEAD"])?, trees: Trees::of_repository()?, machine: machine() })
    }

    /// A part's result, an object, with what was present when it ran.
    pub(super) fn stamp(&self, step: &Step, result: Value) -> Value {
        let mut result = if result.is_object() { result } else { json!({ "rows": result }) };
        let tree = self.trees.tree_of(step);
        for (name, text) in [("commit", self.commit.as_str()), ("tree", tree), ("machine", self.machine.as_str())] {
            result[name] = Value::from(text);
        }
        let files = self.trees.files_of(step);
        if !files.is_empty() {
            result["files"] = json!(files);
        }
        result
    }
}

/// A result with its origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) commit: String,
    /// The tree of crates/ in that commit.
    pub(crate) tree: String,
    machine: String,
    /// What the commands depend on outside of it. None: of parts, which have their own; and of results that were made
    /// before files were recorded.
    files: Files,
    /// Each command with its result. That of a part has commit, tree, machine and files of its own run.
    pub(super) steps: Vec<(String, Value)>,
}

/// The code of a command's run.
pub(super) struct Run<'s> {
    pub(super) tree: &'s str,
    files: Files,
}

impl Run<'_> {
    /// Whether a step's files were the same, as far as they are recorded.
    pub(super) fn has_files(&self, files: &Files) -> bool {
        self.files.is_empty() || files.iter().all(|(path, id)| self.files.get(path) == Some(id))
    }
}

impl Stored {
    pub(super) fn new(present: &Present, files: Files, steps: Vec<(String, Value)>) -> Self {
        let Present { commit, trees, machine } = present;
        Stored { commit: commit.clone(), tree: trees.crates.clone(), machine: machine.clone(), files, steps }
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
            files: value
                .get("files")
                .map_or_else(|| Ok(Files::new()), |files| serde_json::from_value(files.clone()))?,
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
        let Stored { commit, tree, machine, files, steps } = self;
        let mut head = vec![("commit", json!(commit)), ("machine", json!(machine)), ("tree", json!(tree))];
        if !files.is_empty() {
            head.insert(1, ("files", json!(files)));
        }
        let head: Vec<String> = head.iter().map(|(name, value)| format!("  {}: {value}", json!(name))).collect();
        let lines: Vec<String> = steps
            .iter()
            .map(|(command, result)| format!("    {}", json!({ "command": command, "result": result })))
            .collect();
        Ok(format!("{{\n{},\n  \"steps\": [\n{}\n  ]\n}}\n", head.join(",\n"), lines.join(",\n")))
    }

    pub(super) fn result_of(&self, command: &str) -> Option<&Value> {
        self.steps.iter().find(|(of, _)| of == command).map(|(_, value)| value)
    }

    /// The code on which a command ran.
    pub(super) fn run_of(&self, command: &str) -> Option<Run<'_>> {
        let result = self.result_of(command)?;
        Some(match result["tree"].as_str() {
            Some(tree) => Run { tree, files: serde_json::from_value(result["files"].clone()).unwrap_or_default() },
            None => Run { tree: &self.tree, files: self.files.clone() },
        })
    }

    /// The commits on which its commands ran.
    pub(crate) fn commits(&self) -> BTreeSet<&str> {
        self.steps.iter().filter_map(|(_, result)| result["commit"].as_str()).chain([self.commit.as_str()]).collect()
    }

    /// A line for below the table of a job that has so many commands.
    pub(super) fn origin(&self, name: &str, commands: usize) -> String {
        let short = |id: &str| id.chars().take(8).collect::<String>();
        let mut parts = Parts::default();
        for (_, result) in &self.steps {
            match result["commit"].as_str().zip(result["machine"].as_str()) {
                Some((commit, machine)) => parts.add(short(commit), machine),
                None => parts.unrecorded += 1,
            }
        }
        let origin = match parts.machines.is_empty() {
            true => format!("commit {}, tree {} of crates/, {}.", short(&self.commit), short(&self.tree), self.machine),
            false => parts.origin(),
        };
        let missing = match commands.saturating_sub(self.steps.len()) {
            0 => String::new(),
            missing => format!(" {missing} of {commands} commands have not run since their code changed."),
        };
        format!("`cargo xtask evidence --only {name}`: {origin}{missing}")
    }
}

/// The origins of parts, each once; the rows of their table have the trees.
#[derive(Default)]
struct Parts {
    commits: Vec<String>,
    machines: Vec<String>,
    /// How many have none of their own.
    unrecorded: usize,
}

impl Parts {
    fn add(&mut self, commit: String, machine: &str) {
        if !self.commits.contains(&commit) {
            self.commits.push(commit);
        }
        if !self.machines.iter().any(|other| other == machine) {
            self.machines.push(machine.to_owned());
        }
    }

    fn origin(&self) -> String {
        let commit = if self.commits.len() == 1 { "commit" } else { "commits" };
        let unrecorded = match self.unrecorded {
            0 => String::new(),
            1 => " Commit and machine of 1 earlier command are not recorded.".to_owned(),
            many => format!(" Commit and machine of {many} earlier commands are not recorded."),
        };
        format!("{commit} {}; {}.{unrecorded}", self.commits.join(", "), self.machines.join("; "))
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
            files: Files::from([("scenarios/a.toml".to_owned(), "0246".to_owned())]),
            steps,
        };
        assert_eq!(Stored::parse(&stored.text().unwrap()).unwrap(), stored);
        let origin = "`cargo xtask evidence --only x`: commit 01234567, tree fedcba98 of crates/, a machine.";
        assert_eq!(stored.origin("x", 2), origin);
        let missing = format!("{origin} 1 of 3 commands have not run since their code changed.");
        assert_eq!(stored.origin("x", 3), missing);
        assert!(Stored::parse("{\"commit\": \"1\"}").is_err());
    }

    #[test]
    fn ids_are_those_of_the_last_commit() {
        let (trees, id) = (Trees::of_repository().unwrap(), |path: &str| git(&["rev-parse", path]).unwrap());
        assert_eq!([&trees.crates, &trees.page], [&id("HEAD:crates"), &id("HEAD:page/src")]);
        let files = trees.files_of(&Step::srdma("sim scenarios/wan.toml --json", &[]));
        assert_eq!(files, Files::from([("scenarios/wan.toml".to_owned(), id("HEAD:scenarios/wan.toml"))]));
    }

    /// Results that were made before files were recorded.
    #[test]
    fn a_result_without_files_is_read_and_written_without_them() {
        let text = "{\n  \"commit\": \"0\",\n  \"machine\": \"m\",\n  \"tree\": \"1\",\n  \"steps\": [\n    \
                    {\"command\":\"srdma demo\",\"result\":7}\n  ]\n}\n";
        let stored = Stored::parse(text).unwrap();
        assert_eq!((stored.files.len(), stored.text().unwrap().as_str()), (0, text));
    }

    /// A part belongs to the machine and the commit that have run it, not to those of the last run.
    #[test]
    fn the_origin_of_parts_names_the_machines_that_have_run_them() {
        let [first, second] = [("0123456789", "machine a"), ("abcdef0123", "machine b")].map(|(commit, machine)| {
            let present = Present::of("0");
            Present { commit: commit.to_owned(), machine: machine.to_owned(), ..present }
        });
        let step = |seed: u32| Step { reaches: &["chaos"], ..Step::srdma(format!("chaos --seed {seed}"), &[]) };
        let part = |present: &Present, seed| (step(seed).command(), present.stamp(&step(seed), json!({ "hops": 1 })));
        let earlier = (step(1).command(), json!({ "hops": 1, "tree": "0" }));
        let origin =
            |steps: Vec<(String, Value)>, commands| Stored::new(&second, Files::new(), steps).origin("x", commands);
        let begin = "`cargo xtask evidence --only x`: ";
        let unknown = format!("{begin}commit abcdef01, tree 0 of crates/, machine b.");
        assert_eq!(origin(vec![earlier.clone()], 1), unknown, "as it was before parts had an origin");
        let all = format!("{begin}commits 01234567, abcdef01; machine a; machine b.");
        assert_eq!(origin(vec![part(&first, 1), part(&second, 2)], 2), all);
        let missing = " Commit and machine of 1 earlier command are not recorded. \
                       1 of 4 commands have not run since their code changed.";
        let of_two = vec![earlier, part(&first, 2), part(&first, 3)];
        assert_eq!(origin(of_two.clone(), 4), format!("{begin}commit 01234567; machine a.{missing}"));
        let stored = Stored::new(&second, Files::new(), of_two);
        assert_eq!(stored.commits(), BTreeSet::from(["0123456789", "abcdef0123"]));
        assert_eq!(stored.steps[1].1["tree"], "0");
    }

    /// By the parser's faster way the first is read as 14.940143099429877.
    #[test]
    fn numbers_keep_their_last_digit() {
        for number in ["14.940143099429875", "113.32167661156217", "225.80728314238954", "1e-7"] {
            assert_eq!(serde_json::from_str::<Value>(number).unwrap().to_string(), number);
        }
    }
}
