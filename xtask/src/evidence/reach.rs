//! What a result depends on: crates of the workspace and those that they use, as git has them.

use super::result::git;
use crate::external::cargo;
use crate::tree::Tree;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// A module that is in few of the programs which have its crate or folder: in those with one of these crates. Its
/// folder and its file are below crates/.
struct Module {
    path: &'static str,
    with: &'static [&'static str],
}

/// Nodes have entries of groups, and no lifecycle.
const LIFECYCLE: Module = Module { path: "group/src/lifecycle", with: &["chaos", "controller-core"] };

/// The fuzz target `node` has nodes, and none of several workers.
const WORKERS: Module = Module { path: "fuzz-targets/src/node/workers", with: &["workers"] };

/// A crate that uses no more of another one than types: their file is what it reaches.
struct Types {
    user: &'static str,
    used: &'static str,
    file: &'static str,
}

/// Agents make commands, and nodes carry them out.
const COMMANDS: Types = Types { user: "agent", used: "dataplane", file: "dataplane/src/config.rs" };

/// The folders below crates/ and, for each, those that it uses outside of its tests.
pub(super) struct Crates {
    uses: BTreeMap<String, Vec<String>>,
}

impl Crates {
    pub(super) fn of_workspace() -> Result<Self> {
        let mut metadata = cargo();
        metadata.args(["metadata", "--no-deps", "--format-version", "1", "--locked"]).current_dir(Tree::root());
        let output = metadata.output().context("cannot start cargo")?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        Self::of_metadata(&serde_json::from_slice(&output.stdout)?)
    }

    fn of_metadata(metadata: &Value) -> Result<Self> {
        let packages = metadata["packages"].as_array().context("cargo printed no packages")?;
        let mut uses = BTreeMap::new();
        for package in packages {
            let manifest = package["manifest_path"].as_str().context("a package has a manifest")?;
            let Some(folder) = Path::new(manifest).parent().and_then(folder) else { continue };
            let dependencies = package["dependencies"].as_array().context("a package has dependencies")?;
            let used = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
            let paths = used.filter_map(|dependency| folder_of(dependency["path"].as_str()?));
            uses.insert(folder, paths.collect());
        }
        Ok(Crates { uses })
    }

    /// `paths`, below crates/, and the folders of all crates that those among them use, or the files of types.
    pub(super) fn reached(&self, paths: &[&str]) -> Result<Reached> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        while let Some(path) = next.pop() {
            if !path.contains('/') {
                let used = self.uses.get(&path).with_context(|| format!("there is no crate crates/{path}"))?;
                let is_types = |used: &str| path == COMMANDS.user && used == COMMANDS.used;
                let used = used.iter().map(|used| if is_types(used) { COMMANDS.file } else { used });
                next.extend(used.filter(|used| !reached.contains(*used)).map(str::to_owned));
            }
            reached.insert(path);
        }
        Ok(Reached(reached))
    }
}

/// Files and folders below crates/, of which a program is made.
#[derive(Debug)]
pub(super) struct Reached(BTreeSet<String>);

impl Reached {
    /// Whether it has all of this crate.
    #[cfg(test)]
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Whether a file of a crate that it has is part of it. Tests, examples and benchmarks are not.
    pub(super) fn has(&self, path: &str) -> bool {
        let is_of = |module: &Module| path.strip_prefix(module.path).is_some_and(|rest| rest.starts_with(['/', '.']));
        let is_absent = |module: &Module| is_of(module) && !module.with.iter().any(|user| self.0.contains(*user));
        match path.split('/').collect::<Vec<_>>()[..] {
            [_, "tests" | "examples" | "benches", ..] => false,
            _ => ![LIFECYCLE, WORKERS].iter().any(is_absent),
        }
    }
}

fn folder_of(path: &str) -> Option<String> {
    folder(Path::new(path))
}

/// The last part of a path whose part before is crates/.
fn folder(path: &Path) -> Option<String> {
    let is_crate = path.parent()?.file_name()? == "crates";
    is_crate.then(|| path.file_name()?.to_str().map(str::to_owned)).flatten()
}

/// Whether a program is the same in two trees of crates/; not if git does not have one of them.
pub(super) fn is_same(earlier: &str, present: &str, program: &Reached) -> Result<bool> {
    let mut git = Command::new("git");
    git.args(["diff-tree", "-r", "--name-only", earlier, present, "--"]).args(&program.0).current_dir(Tree::root());
    let output = git.output().context("cannot start git")?;
    match output.status.code() {
        Some(0) => {}
        Some(128) => return Ok(false),
        other => bail!("git diff-tree ended with {other:?}"),
    }
    for path in std::str::from_utf8(&output.stdout)?.lines().filter(|path| program.has(path)) {
        let is_manifest = path.split('/').nth(1) == Some("Cargo.toml");
        if !is_manifest || manifest(earlier, path)? != manifest(present, path)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a manifest of a tree says of programs; `None` if the tree does not have it.
fn manifest(tree: &str, path: &str) -> Result<Option<toml::Table>> {
    let Ok(text) = git(&["show", &format!("{tree}:{path}")]) else { return Ok(None) };
    of_programs(&text).with_context(|| path.to_owned()).map(Some)
}

fn of_programs(manifest: &str) -> Result<toml::Table> {
    let mut manifest: toml::Table = manifest.parse()?;
    for of_tests in ["dev-dependencies", "test", "example", "bench"] {
        manifest.remove(of_tests);
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn crates_reach_what_they_use_but_not_what_their_tests_use() {
        let dependency = |name: &str, kind: Value| json!({ "path": format!("/x/crates/{name}"), "kind": kind });
        let package = |name: &str, dependencies: &[Value]| json!({ "manifest_path": format!("/x/crates/{name}/Cargo.toml"), "dependencies": dependencies });
        let other = json!({ "path": Value::Null, "kind": Value::Null });
        let node = [dependency("wire", Value::Null), dependency("rc", json!("dev")), other];
        let xtask = json!({ "manifest_path": "/x/xtask/Cargo.toml", "dependencies": [] });
        let packages = [package("node", &node), package("wire", &[]), package("rc", &[]), xtask];
        let crates = Crates::of_metadata(&json!({ "packages": packages })).unwrap();
        let reached = crates.reached(&["node", "fuzz-targets/src/node"]).unwrap();
        assert_eq!(reached.0.into_iter().collect::<Vec<_>>(), ["fuzz-targets/src/node", "node", "wire"]);
        assert!(crates.reached(&["nodes"]).unwrap_err().to_string().contains("crates/nodes"));
    }

    /// The tests of the workspace's own trees need its history.
    #[test]
    fn trees_differ_where_files_do() {
        let tree = |revision: &str| {
            let output = Command::new("git").args(["rev-parse", revision]).current_dir(Tree::root()).output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let (crates, xtask) = (tree("HEAD:crates"), tree("HEAD:xtask"));
        let of = |path: &str| Reached(BTreeSet::from([path.to_owned()]));
        assert!(is_same(&crates, &crates, &of("wire")).unwrap());
        assert!(!is_same(&crates, &xtask, &of("src")).unwrap());
        assert!(is_same(&crates, &xtask, &of("neither-has-it")).unwrap());
        assert!(!is_same("0123456789012345678901234567890123456789", &crates, &of("wire")).unwrap());
    }

    #[test]
    fn programs_that_do_not_name_a_module_do_not_have_it() {
        let of = |names: &[&str]| Reached(names.iter().map(|name| (*name).to_owned()).collect());
        let [node, controller] = [of(&["node", "group"]), of(&["controller-core", "group"])];
        for path in ["group/src/lifecycle.rs", "group/src/lifecycle/draft.rs"] {
            assert!(!node.has(path) && controller.has(path), "{path}");
        }
        assert!(node.has("group/src/group.rs") && node.has("group/src/lifecycles.rs"));
        assert!(!controller.has("group/tests/group/main.rs"));
        let [node, workers] = [of(&["dataplane"]), of(&["dataplane", "workers"])];
        assert!(!node.has("fuzz-targets/src/node/workers.rs") && workers.has("fuzz-targets/src/node/workers.rs"));
    }

    /// Other modules of the folder export what is in this one, and do not name it.
    #[test]
    fn nodes_of_the_fuzz_target_do_not_name_those_of_several_workers() {
        let (tree, module) = (Tree::of_repository().unwrap(), Path::new("crates").join(WORKERS.path));
        let folder = module.parent().unwrap();
        let files = tree.files.iter().filter(|file| Path::new(&file.path).parent() == Some(folder));
        let named_by =
            files.filter(|file| ["WorkersTarget", "workers"].iter().any(|name| words(&file.text).contains(*name)));
        let named_by: Vec<_> = named_by.map(|file| Path::new(&file.path).strip_prefix(folder).unwrap()).collect();
        assert_eq!(named_by, [Path::new("mod.rs"), Path::new("workers.rs")]);
        let parent = tree.files.iter().find(|file| Path::new(&file.path) == folder.join("mod.rs")).unwrap();
        let lines = parent.text.lines().filter(|line| words(line).contains("workers"));
        assert_eq!(lines.collect::<Vec<_>>(), ["mod workers;", "pub use workers::WorkersTarget;"]);
    }

    fn words(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    }

    /// What a file names of a crate: up to the end of the line, or of the list in braces; `*` is all that the file
    /// names.
    fn names_of(library: &str, text: &str) -> BTreeSet<String> {
        let prefix = format!("{library}::");
        let uses = text.split(&prefix).skip(1).map(|rest| match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or(list),
            None if rest.starts_with('*') => text,
            None => rest.lines().next().unwrap_or(rest),
        });
        uses.flat_map(words).collect()
    }

    #[test]
    fn agents_reach_the_types_of_commands() {
        let crates = Crates::of_workspace().unwrap();
        let reached = crates.reached(&["agent"]).unwrap().0;
        assert!(reached.contains(COMMANDS.file) && !reached.contains("dataplane") && !reached.contains("repair"));
        assert!(crates.reached(&["agent", "dataplane"]).unwrap().contains("repair"));
        let tree = Tree::of_repository().unwrap();
        let file = tree.files.iter().find(|file| file.path.ends_with(COMMANDS.file)).unwrap();
        let names = ["Command", "SidBehavior"];
        for name in names {
            assert!(file.text.contains(&format!("pub enum {name} {{")), "{name}");
        }
        let mut named = BTreeSet::new();
        let folder = format!("crates/{}/src/", COMMANDS.user);
        for file in tree.files.iter().filter(|file| file.path.starts_with(&folder) && !file.path.contains("tests")) {
            named.extend(names_of("srdma_dataplane", &file.text));
        }
        assert_eq!(named, names.map(str::to_owned).into());
    }

    /// What lib.rs exports from a module is named by these crates, and the other modules of its own do not name it.
    #[test]
    fn modules_are_named_by_the_crates_of_the_list() {
        let (tree, module) = (Tree::of_repository().unwrap(), Path::new("crates").join(LIFECYCLE.path));
        let library = module.with_file_name("lib.rs");
        let library = tree.files.iter().find(|file| Path::new(&file.path) == library).unwrap();
        let exports = library.text.split("pub use lifecycle::").nth(1).unwrap().split(';').next().unwrap();
        let exports = words(exports);
        assert!(exports.contains("Lifecycle") && exports.contains("Order"));
        let mut named_by = BTreeSet::new();
        for file in &tree.files {
            let Some((name, path)) = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
                continue;
            };
            let uses = names_of("srdma_group", &file.text);
            if !uses.is_disjoint(&exports) && !path.contains("tests") {
                named_by.insert(name);
            }
            if name == "group" && path != "lib.rs" && !Path::new(&file.path).starts_with(&module) {
                let is_own = Path::new(&file.path) == module.with_extension("rs");
                assert!(is_own || !words(&file.text).contains("lifecycle"), "{}", file.path);
            }
        }
        assert_eq!(named_by, LIFECYCLE.with.iter().copied().collect());
    }

    #[test]
    fn manifests_differ_but_for_what_is_of_tests() {
        let common = "[package]\nname = \"n\"\n[dependencies]\nwire = \"1\"\n";
        let of_tests = "[dev-dependencies]\nrand = \"1\"\n[[bench]]\nname = \"b\"\n[[example]]\nname = \"e\"\n";
        let program = of_programs(common).unwrap();
        assert_eq!(of_programs(&format!("{common}{of_tests}")).unwrap(), program);
        assert_ne!(of_programs(&common.replace('1', "2")).unwrap(), program);
        assert_ne!(of_programs(&format!("{common}[features]\nf = []\n")).unwrap(), program);
    }
}
