//! Rules for every text file.

use super::Finding;
use crate::regions::Regions;
use crate::tree::{File, Tree};

const MAX_COLUMNS: usize = 120;

/// Files written by hand: neither test data nor output of cargo, npm and the page's build.
fn written(tree: &Tree) -> impl Iterator<Item = &File> {
    let is_made = |path: &str| {
        ["testdata/", "page/dist/"].iter().any(|place| path.starts_with(place))
            || [".lock", "package-lock.json"].iter().any(|suffix| path.ends_with(suffix))
    };
    tree.files.iter().filter(move |file| !is_made(&file.path))
}

/// Lines of code and configuration fit 120 columns. (Prose and tables may be longer, and what a test expects.)
pub(super) fn line_length(tree: &Tree) -> Vec<Finding> {
    const CODE: [&str; 6] = [".rs", ".toml", ".sh", ".py", ".ts", ".ci/run"];
    let is_code = |path: &str| CODE.iter().any(|suffix| path.ends_with(suffix));
    let mut findings = Vec::new();
    for file in written(tree).filter(|file| is_code(&file.path)) {
        let regions = Regions::of(&file.path, &file.text);
        for (index, line) in file.text.lines().enumerate().filter(|(index, _)| !regions.is_test(*index)) {
            let columns = line.chars().count();
            if columns > MAX_COLUMNS {
                let message = format!("{columns} columns, at most {MAX_COLUMNS}");
                findings.push(Finding::in_line(&file.path, index, message));
            }
        }
    }
    findings
}

/// No line ends in white space, and none holds a tab or a carriage return.
pub(super) fn trailing_space_and_tabs(tree: &Tree) -> Vec<Finding> {
    lines(written(tree), |line| {
        if line.contains(['\t', '\r']) {
            Some("a tab or a carriage return".to_owned())
        } else {
            line.ends_with(' ').then(|| "a space at the end of the line".to_owned())
        }
    })
}

/// Every file ends with exactly one line feed.
pub(super) fn end_of_file(tree: &Tree) -> Vec<Finding> {
    written(tree)
        .filter(|file| !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")))
        .map(|file| Finding::in_file(&file.path, "does not end with exactly one line feed"))
        .collect()
}

/// No path of one person's machine.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    const ROOTS: [&str; 4] =
        [concat!("/", "root/"), concat!("/", "home/"), concat!("/", "work/"), concat!("/", "Users/")];
    lines(tree.files.iter(), |line| {
        let starts_path = |(at, _): (usize, &str)| {
            !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '}'))
        };
        let root = ROOTS.iter().find(|root| line.match_indices(**root).any(starts_path))?;
        Some(format!("a path of one machine: {root}…"))
    })
}

/// A finding for every line that `check` objects to.
fn lines<'a>(files: impl Iterator<Item = &'a File>, check: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let in_file = |file: &'a File| {
        let findings = file.text.split('\n').enumerate().filter_map(|(index, line)| Some((index, check(line)?)));
        findings.map(|(index, message)| Finding::in_line(&file.path, index, message)).collect::<Vec<_>>()
    };
    files.flat_map(in_file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_found(rule: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
        rule(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn long_lines_of_code_are_found() {
        let text = format!("{}\n{}\n", "é".repeat(120), "x".repeat(121));
        assert_eq!(lines_found(line_length, "a.rs", &text), [2]);
        assert_eq!(lines_found(line_length, "page/src/a.ts", &text), [2]);
        assert_eq!(lines_found(line_length, "page/dist/a.ts", &text), [0; 0]);
        assert_eq!(lines_found(line_length, "a.md", &text), [0; 0]);
        assert_eq!(lines_found(line_length, "crates/rc/tests/a.rs", &text), [0; 0]);
    }

    #[test]
    fn white_space_is_found() {
        assert_eq!(lines_found(trailing_space_and_tabs, "a.md", "good\nbad \n\tbad\nbad\r\n"), [2, 3, 4]);
        assert_eq!(lines_found(trailing_space_and_tabs, "testdata/a.txt", "recorded \n"), [0; 0]);
    }

    #[test]
    fn a_missing_or_second_line_feed_at_the_end_is_found() {
        assert_eq!(lines_found(end_of_file, "a.md", "good\n"), [0; 0]);
        assert_eq!(lines_found(end_of_file, "a.md", "bad"), [0]);
        assert_eq!(lines_found(end_of_file, "a.md", "bad\n\n"), [0]);
    }

    #[test]
    fn machine_paths_are_found() {
        let path = concat!("see ", "/", "home/me/file");
        assert_eq!(lines_found(machine_paths, "a.md", path), [1]);
        assert_eq!(
            lines_found(machine_paths, "a.md", concat!("docs/", "home/index.md https://host/", "home/")),
            [0; 0]
        );
    }
}
