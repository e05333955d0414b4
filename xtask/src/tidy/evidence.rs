//! Tables of results are those of docs/results, and commits that documents name exist.

use super::Finding;
use crate::evidence::{self, Marked, RESULTS, Stored, marked, plots_of, table_of};
use crate::tree::{File, Tree};
use std::collections::BTreeSet;
use std::process::Command;

/// Every plot is the one that its result gives, and a document shows it.
pub(super) fn plots_are_those_of_results(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, name) in tree.files.iter().filter_map(|file| Some((file, result_name(file)?))) {
        // What is wrong with the result itself is found with its table.
        let Some(plots) = Stored::parse(&file.text).ok().and_then(|stored| plots_of(name, &stored).ok()) else {
            continue;
        };
        for plot in plots {
            let path = plot.path();
            let link = path.strip_prefix("docs/").unwrap_or(&path);
            if tree.file(&path).is_none_or(|file| file.text != plot.svg) {
                let message = format!("differs from {}: `cargo xtask evidence --tables` writes it", file.path);
                findings.push(Finding::in_file(&path, message));
            }
            if !tree.with_suffix(".md").any(|file| file.text.contains(link)) {
                findings.push(Finding::in_file(&path, "no document shows it"));
            }
        }
    }
    findings
}

/// Every marked table is the one that its result gives, and every result has a table.
pub(super) fn tables_are_those_of_results(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut shown = BTreeSet::new();
    for file in tree.with_suffix(".md") {
        for Marked { name, line, table, .. } in marked(&file.text) {
            shown.insert(name);
            let expected = match Stored::of_tree(tree, name) {
                Ok(Some(stored)) => table_of(name, &stored).map_err(|error| format!("{error:#}")),
                Ok(None) => Err(format!("there is no {RESULTS}/{name}.json: `cargo xtask evidence --only {name}`")),
                Err(error) => Err(format!("{error:#}")),
            };
            let problem = match (expected, table) {
                (Err(problem), _) => problem,
                (Ok(_), None) => "the marker has no end".to_owned(),
                (Ok(expected), Some(table)) if expected == table => continue,
                (Ok(_), Some(_)) => {
                    format!("differs from {RESULTS}/{name}.json: `cargo xtask evidence --tables` writes it")
                }
            };
            findings.push(Finding::in_line(&file.path, line, problem));
        }
    }
    let results = tree.files.iter().filter_map(|file| Some((file, result_name(file)?)));
    let unshown = results.filter(|(_, name)| evidence::is_known(name) && !shown.contains(name));
    findings.extend(unshown.map(|(file, _)| Finding::in_file(&file.path, "no document has its table")));
    findings
}

fn result_name(file: &File) -> Option<&str> {
    file.path.strip_prefix(RESULTS)?.strip_prefix('/')?.strip_suffix(".json")
}

/// Commits of other repositories that documents name: of llm-d's weight-propagation-interface.
const OF_OTHERS: [&str; 1] = ["aa777647"];

/// Commits that documents and results name are in the history. Not checked where that is cut off: in shallow clones.
pub(super) fn commits_exist(tree: &Tree) -> Vec<Finding> {
    match history() {
        Some(history) => unknown_commits(tree, &history),
        None => Vec::new(),
    }
}

/// All commits that lead to the present one, in full; `None` in a shallow clone, and without git.
fn history() -> Option<BTreeSet<String>> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(Tree::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).ok())?
    };
    if git(&["rev-parse", "--is-shallow-repository"])?.trim() != "false" {
        return None;
    }
    Some(git(&["rev-list", "HEAD"])?.lines().map(str::to_owned).collect())
}

fn unknown_commits(tree: &Tree, history: &BTreeSet<String>) -> Vec<Finding> {
    let exists = |id: &str| history.range(id.to_owned()..).next().is_some_and(|commit| commit.starts_with(id));
    let is_known = |id: &str| exists(id) || OF_OTHERS.contains(&id);
    let mut findings = Vec::new();
    for file in tree.with_suffix(".md") {
        let mut is_code = false;
        // Tables of results name trees as well; their commits are those of the results.
        let is_result = |index: usize| {
            marked(&file.text).iter().any(|place| {
                let lines = place.table.map_or(0, |table| table.lines().count());
                (place.line..=place.line + lines).contains(&index)
            })
        };
        for (index, line) in file.text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            if is_code || is_result(index) {
                continue;
            }
            for id in commits(line).into_iter().filter(|id| !is_known(id)) {
                let message =
                    format!("commit {id} is not in the history, nor in OF_OTHERS of xtask/src/tidy/evidence.rs");
                findings.push(Finding::in_line(&file.path, index, message));
            }
        }
    }
    for file in tree.files.iter().filter(|file| result_name(file).is_some_and(evidence::is_known)) {
        // What is wrong with the result itself is found with its table.
        let Ok(stored) = Stored::parse(&file.text) else { continue };
        let unknown = stored.commits().into_iter().filter(|commit| !exists(commit));
        findings.extend(
            unknown.map(|commit| Finding::in_file(&file.path, format!("commit {commit} is not in the history"))),
        );
    }
    findings
}

/// Abbreviated commits in a line: seven or eight hexadecimal digits, letters among them.
fn commits(line: &str) -> Vec<&str> {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, ':' | '.' | '-' | '_'));
    let is_commit = |word: &&str| {
        matches!(word.len(), 7 | 8)
            && word.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
            && word.bytes().any(|c| c.is_ascii_digit())
            && word.bytes().any(|c| c.is_ascii_lowercase())
    };
    words.map(|word| word.trim_end_matches(['.', ':', '-'])).filter(is_commit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NAME: &str = "selective-repeat";

    fn stored() -> String {
        let row =
            |command: &str| json!({ "command": command, "result": { "egress_ratio": 1.5, "completion_ns": 1e6 } });
        let job = crate::evidence::commands(NAME);
        let steps: Vec<_> = job.iter().map(|command| row(command)).collect();
        json!({ "commit": "0123abcd", "tree": "4567", "machine": "m", "steps": steps }).to_string()
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let findings = tables_are_those_of_results(&Tree::of(files));
        findings.into_iter().map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.message)).collect()
    }

    #[test]
    fn a_table_that_differs_from_its_result_is_found() {
        let (path, result) = (format!("docs/results/{NAME}.json"), stored());
        let table = table_of(NAME, &Stored::parse(&result).unwrap()).unwrap();
        let document = |table: &str| format!("text\n<!-- evidence: {NAME} -->\n{table}<!-- end of evidence -->\n");
        assert_eq!(found(&[(&path, &result), ("docs/a.md", &document(&table))]), [""; 0]);
        let differs = format!("docs/a.md:2: differs from {path}: `cargo xtask evidence --tables` writes it");
        let other = table.replace("1.500", "1.400");
        assert_eq!(found(&[(&path, &result), ("docs/a.md", &document(&other))]), [differs]);
        let missing = format!("docs/a.md:2: there is no {path}: `cargo xtask evidence --only {NAME}`");
        assert_eq!(found(&[("docs/a.md", &document(&table))]), [missing]);
        let unshown = format!("{path}:0: no document has its table");
        assert_eq!(found(&[(&path, &result), ("docs/a.md", "text\n")]), [unshown]);
        let other_commands = result.replace("--seed 1", "--seed 2");
        let changed = format!("docs/a.md:2: {NAME}: the commands have changed since the result");
        assert_eq!(found(&[(&path, &other_commands), ("docs/a.md", &document(&table))]), [changed]);
    }

    #[test]
    fn a_plot_that_differs_from_its_result_is_found() {
        let run = |loss: u32| {
            json!({
                "receivers": 5, "window_packets": 64, "variant": "tree", "buffer_packets": 64, "loss_per_million": loss,
                "source_octets": 100 + loss, "completion_ns": 1, "link_octets": 1
            })
        };
        let step = json!({ "command": "c", "result": [run(0), run(1_000)] });
        let result = json!({ "commit": "0", "tree": "0", "machine": "m", "steps": [step] }).to_string();
        let result = ("docs/results/repair-sweep.json", result.as_str());
        let plots = plots_of("repair-sweep", &Stored::parse(result.1).unwrap()).unwrap();
        let paths: Vec<String> = plots.iter().map(|plot| plot.path()).collect();
        let links: Vec<String> = paths.iter().map(|path| format!("![]({})\n", &path["docs/".len()..])).collect();
        let document = links.concat();
        let mut files: Vec<(&str, &str)> =
            paths.iter().map(String::as_str).zip(plots.iter().map(|plot| plot.svg.as_str())).collect();
        files.extend([result, ("docs/a.md", &document)]);
        let found = |files: &[(&str, &str)]| {
            let findings = plots_are_those_of_results(&Tree::of(files)).into_iter();
            findings.map(|finding| (finding.path, finding.message)).collect::<Vec<_>>()
        };
        assert_eq!(found(&files), []);
        let differs = format!("differs from {}: `cargo xtask evidence --tables` writes it", result.0);
        files[0].1 = "<svg/>";
        assert_eq!(found(&files), [(paths[0].clone(), differs.clone())]);
        let missing = files.split_off(1);
        assert_eq!(found(&missing), [(paths[0].clone(), differs)]);
        let unshown = found(&[&missing[..missing.len() - 1], &[(paths[0].as_str(), plots[0].svg.as_str())]].concat());
        assert!(unshown.contains(&(paths[0].clone(), "no document shows it".to_owned())), "{unshown:?}");
    }

    #[test]
    fn a_commit_that_does_not_exist_is_found() {
        let history = BTreeSet::from(["0123abcd4567890123abcd4567890123abcd4567".to_owned()]);
        let text = "At 0123abcd (0123abc), not at b28723c.\n```\nb28723c\n```\nAt `b28723c`, or `0123abc`.\n\
                    Others: `aa777647`, 2001:db8:ab12cd3.\n";
        let mut result: serde_json::Value = serde_json::from_str(&stored().replace("0123abcd", "9876fedc")).unwrap();
        result["steps"][1]["result"]["commit"] = json!("5432fedc");
        result["steps"][2]["result"]["commit"] = json!("0123abcd");
        let (path, result) = (format!("docs/results/{NAME}.json"), result.to_string());
        let tree = Tree::of(&[("docs/a.md", text), ("README.md", "Since b28723c.\n"), (&path, &result)]);
        let found: Vec<String> = unknown_commits(&tree, &history)
            .iter()
            .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.message))
            .collect();
        let unknown = |at: &str, commit: &str| format!("{at}: commit {commit} is not in the history");
        let of_result = ["5432fedc", "9876fedc"].map(|commit| unknown(&format!("{path}:0"), commit));
        let of_documents = ["docs/a.md:1", "docs/a.md:5", "README.md:1"]
            .map(|at| format!("{}, nor in OF_OTHERS of xtask/src/tidy/evidence.rs", unknown(at, "b28723c")));
        assert_eq!(found, [&of_documents[..], &of_result].concat());
    }
}
