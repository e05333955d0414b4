//! Rules for tests.

use super::Finding;
use crate::tree::{File, Tree};
use std::collections::BTreeSet;

/// A crate has one test binary: linking is most of what building tests costs. It is `tests/NAME/main.rs`, or the only
/// file in `tests`. No test needs a process of its own: the counting allocator counts for each thread, and processes
/// that are killed are children.
pub(super) fn one_binary(tree: &Tree) -> Vec<Finding> {
    let roots = || tree.files.iter().filter_map(|file| Some((file, test_root(&file.path)?)));
    let extra = |(file, name): (&File, &str)| {
        let is_first = roots().find(|(_, other)| *other == name).is_some_and(|(first, _)| first.path == file.path);
        (!is_first).then(|| Finding::in_file(&file.path, format!("a second test binary of {name}: make it a module")))
    };
    roots().filter_map(extra).collect()
}

/// The crate whose test binary has the file `path` as its root.
fn test_root(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/tests/")?;
    let is_root = rest.ends_with(".rs") && (!rest.contains('/') || is_main_of_directory(rest));
    is_root.then_some(name)
}

/// Every Rust file of a crate belongs to it: a file that no `mod` declares is not compiled, and its tests do not run.
pub(super) fn modules_are_declared(tree: &Tree) -> Vec<Finding> {
    let sources: Vec<&File> = tree.with_suffix(".rs").filter(|file| file.path.starts_with("crates/")).collect();
    let declared: BTreeSet<String> = sources.iter().flat_map(|file| declared_files(file)).collect();
    let is_orphan = |file: &&&File| !is_root(&file.path) && !declared.contains(&file.path);
    let message = "no `mod` declares this file: it is not compiled";
    sources.iter().filter(is_orphan).map(|file| Finding::in_file(&file.path, message)).collect()
}

fn is_main_of_directory(rest: &str) -> bool {
    rest.split('/').count() == 2 && rest.ends_with("/main.rs")
}

/// True if cargo finds the file by itself.
fn is_root(path: &str) -> bool {
    let Some((_, rest)) = path.trim_start_matches("crates/").split_once('/') else {
        return false;
    };
    let in_folder = |folder: &str| {
        let rest = rest.strip_prefix(folder)?.strip_prefix('/')?;
        Some(!rest.contains('/') || is_main_of_directory(rest))
    };
    let folders = ["tests", "benches", "examples", "src/bin"];
    matches!(rest, "build.rs" | "src/lib.rs" | "src/main.rs") || folders.iter().any(|f| in_folder(f) == Some(true))
}

/// The files that the `mod NAME;` of `file` may mean.
fn declared_files(file: &File) -> Vec<String> {
    let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let own = name.trim_end_matches(".rs");
    let is_directory_root = is_root(&file.path) || own == "mod";
    let base = if is_directory_root { directory.to_owned() } else { format!("{directory}/{own}") };
    let mut files = Vec::new();
    let mut path_attribute = None;
    // Inline modules add a directory: the stack holds their indentation and name.
    let mut inline: Vec<(usize, &str)> = Vec::new();
    for line in file.text.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(path) = text.strip_prefix("#[path = \"").and_then(|rest| rest.split('"').next()) {
            path_attribute = Some(path);
        }
        if text.starts_with('}') {
            inline.retain(|(at, _)| *at < indent);
        }
        let Some(rest) = text.split("mod ").nth(1).filter(|_| is_mod_item(text)) else {
            continue;
        };
        if let Some(module) = rest.strip_suffix(" {") {
            inline.push((indent, module));
        } else if let Some(module) = rest.split(';').next() {
            let inner: String = inline.iter().map(|(_, name)| format!("{name}/")).collect();
            match path_attribute.take() {
                Some(path) => files.extend(crate::markdown::resolve(&file.path, path)),
                None => {
                    files.push(format!("{base}/{inner}{module}.rs"));
                    files.push(format!("{base}/{inner}{module}/mod.rs"));
                }
            }
        }
    }
    files
}

fn is_mod_item(text: &str) -> bool {
    ["mod ", "pub mod ", "pub(crate) mod ", "pub(super) mod "].iter().any(|start| text.starts_with(start))
        || (text.starts_with("pub(in ") && text.contains(") mod "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
        rule(&Tree::of(files)).into_iter().map(|finding| format!("{}: {}", finding.path, finding.message)).collect()
    }

    #[test]
    fn a_second_test_binary_is_found() {
        let one = ("crates/rc/tests/rc/main.rs", "");
        let other = ("crates/io/tests/io.rs", "");
        assert_eq!(found(one_binary, &[one, other, ("crates/rc/tests/rc/group.rs", "")]), [""; 0]);
        let second = "crates/rc/tests/transfer.rs: a second test binary of rc: make it a module";
        assert_eq!(found(one_binary, &[one, ("crates/rc/tests/transfer.rs", "")]), [second]);
    }

    #[test]
    fn a_file_that_no_module_declares_is_found() {
        let files = [
            ("crates/rc/src/lib.rs", "mod a;\npub(crate) mod b;\nmod inner {\n    pub mod c;\n}\n"),
            ("crates/rc/src/a.rs", "#[cfg(test)]\nmod tests;\n"),
            ("crates/rc/src/a/tests.rs", ""),
            ("crates/rc/src/b/mod.rs", "mod d;\n"),
            ("crates/rc/src/b/d.rs", ""),
            ("crates/rc/src/inner/c.rs", ""),
            ("crates/rc/tests/rc/main.rs", "#[path = \"../other.rs\"]\nmod elsewhere;\n"),
            ("crates/rc/benches/speed.rs", ""),
        ];
        assert_eq!(found(modules_are_declared, &files), [""; 0]);
        let lost = [&files[..], &[("crates/rc/tests/rc/lost.rs", ""), ("crates/rc/src/d.rs", "")]].concat();
        let expected = ["crates/rc/tests/rc/lost.rs", "crates/rc/src/d.rs"];
        assert_eq!(
            found(modules_are_declared, &lost),
            expected.map(|path| format!("{path}: no `mod` declares this file: it is not compiled"))
        );
    }
}
