//! Files outside crates/ on which a result depends: those that its command names, and those that these name.

use super::job::{Program, Step};
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

/// Files and folders of the repository, with the ids that git has for them.
pub(super) type Files = BTreeMap<String, String>;

/// The paths of a step's command, as far as the repository has them, with the files that scenarios, sweeps and labs
/// among them name.
pub(super) fn paths_of(step: &Step, tree: &Tree) -> BTreeSet<String> {
    let arguments = step.arguments();
    let own = match (step.program, arguments.as_slice()) {
        (Program::Srdma, ["lab", "run", lab, ..]) => Some(format!("labs/{lab}.toml")),
        (Program::Xtask, [chore, ..]) => Some(format!("xtask/src/{chore}")),
        _ => None,
    };
    // A word without a folder is a subcommand, or a value.
    let words = arguments.iter().filter(|word| word.contains('/')).map(|word| (*word).to_owned());
    let mut next: Vec<String> = words.chain(own).filter(|path| tree.paths.contains(path)).collect();
    let mut found = BTreeSet::new();
    while let Some(path) = next.pop() {
        let is_table = Path::new(&path).extension().is_some_and(|extension| extension == "toml");
        if let Some(file) = tree.file(&path).filter(|_| is_table && !found.contains(&path)) {
            next.extend(named_by(&path, &file.text).into_iter().filter(|named| tree.file(named).is_some()));
        }
        found.insert(path);
    }
    found
}

/// What the texts of a TOML file would be as paths from its folder.
fn named_by(path: &str, text: &str) -> Vec<String> {
    // What is no TOML is refused by the command itself.
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let (mut next, mut named) = (vec![toml::Value::Table(table)], Vec::new());
    while let Some(value) = next.pop() {
        match value {
            toml::Value::String(name) => named.push(without_dots(&folder.join(name))),
            toml::Value::Array(values) => next.extend(values),
            toml::Value::Table(values) => next.extend(values.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    named
}

/// The same path without `..`.
fn without_dots(path: &Path) -> String {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            _ => {}
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(step: &Step, tree: &Tree) -> Vec<String> {
        paths_of(step, tree).into_iter().collect()
    }

    #[test]
    fn files_are_those_of_the_command_and_those_that_they_name() {
        let tree = Tree::of(&[
            ("scenarios/a.toml", "[[variant]]\nr = { measured = \"measured/m.toml\" }\nname = \"other.toml\"\n"),
            ("scenarios/measured/m.toml", "file = \"../a.toml\"\n"),
            ("scenarios/sweeps/s.toml", "of = \"../a.toml\"\nlists = [[\"../t.goal\"]]\n"),
            ("scenarios/t.goal", "of = \"u.goal\""),
            ("scenarios/u.goal", ""),
            ("labs/l.toml", "name = \"rxe\"\n"),
            ("labs/rxe/README.md", ""),
            ("fuzz/Cargo.toml", ""),
            ("xtask/src/peers/mod.rs", ""),
        ]);
        let of = |arguments: &str| paths(&Step::srdma(arguments, &[]), &tree);
        let of_scenario = ["scenarios/a.toml", "scenarios/measured/m.toml"];
        assert_eq!(of("sim scenarios/a.toml --json"), of_scenario);
        let of_sweep = [of_scenario[0], of_scenario[1], "scenarios/sweeps/s.toml", "scenarios/t.goal"];
        assert_eq!(of("sim scenarios/sweeps/s.toml --seeds 2"), of_sweep);
        assert_eq!(of("lab run l --size 1MiB"), ["labs/l.toml"]);
        assert_eq!(of("fuzz scenarios/none.toml"), [""; 0]);
        let chore = |arguments: &str| Step { program: Program::Xtask, ..Step::srdma(arguments, &[]) };
        assert_eq!(paths(&chore("peers --json"), &tree), ["xtask/src/peers"]);
        assert_eq!(paths(&Step::example("p", "e", "scenarios/a.toml pfc"), &tree), of_scenario);
    }

    /// Those of the repository that name others.
    #[test]
    fn shipped_scenarios_have_the_files_that_they_name() {
        let tree = Tree::of_repository().unwrap();
        for (file, named) in [
            ("link-failure.toml", &["measured/bfd-transit.toml", "measured/frr.toml"][..]),
            ("goal-trace.toml", &["goal-trace.goal"]),
            ("sweeps/incast-dc-rates.toml", &["incast-dc.toml"]),
            ("wan.toml", &[]),
        ] {
            let all: BTreeSet<String> = named.iter().chain([&file]).map(|file| format!("scenarios/{file}")).collect();
            assert_eq!(paths_of(&Step::srdma(format!("sim scenarios/{file} --json"), &[]), &tree), all);
        }
    }
}
