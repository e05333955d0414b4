//! Regions of a Rust file: lines of tests, and the test function of a comment.
//!
//! Reads the layout that rustfmt gives, not the grammar: an item ends at the `}` below its first letter.

/// A Rust file cut into product code and tests.
pub(crate) struct Regions<'a> {
    lines: Vec<&'a str>,
    /// For each line: does it belong to a test?
    test: Vec<bool>,
}

impl<'a> Regions<'a> {
    /// Cuts the file `path`.
    pub(crate) fn of(path: &str, text: &'a str) -> Regions<'a> {
        let lines: Vec<&str> = text.lines().collect();
        let mut test = vec![is_test_file(path); lines.len()];
        for (start, line) in lines.iter().enumerate() {
            if line.trim_start().starts_with("#[cfg(test)]") {
                let end = end_of_item(&lines, start + 1);
                test[start..=end].fill(true);
            }
        }
        Regions { lines, test }
    }

    /// Does any line belong to a test?
    pub(crate) fn has_tests(&self) -> bool {
        self.test.contains(&true)
    }

    /// Does the line with this index belong to a test?
    pub(crate) fn is_test(&self, index: usize) -> bool {
        self.test[index]
    }

    /// The test function that the comment in the line with this index documents or stands in. Comments of helpers,
    /// constants and files belong to none, and code is no comment.
    pub(crate) fn test_of_comment(&self, index: usize) -> Option<&'a str> {
        let is_comment = self.lines[index].trim_start().starts_with("//") && is_prelude(self.lines[index]);
        let at = is_comment.then(|| self.documented_function(index).or_else(|| self.enclosing_function(index)))??;
        self.is_test_function(at).then(|| function_name(self.lines[at]))?
    }

    /// The line of the function below the comments and attributes that this line is one of.
    fn documented_function(&self, index: usize) -> Option<usize> {
        let first_code = (index..self.lines.len()).find(|&at| !is_prelude(self.lines[at]))?;
        (first_code > index && function_name(self.lines[first_code]).is_some()).then_some(first_code)
    }

    /// The line of the function around this line.
    fn enclosing_function(&self, index: usize) -> Option<usize> {
        let mut indent = indent_of(self.lines[index]);
        for (at, line) in self.lines[..index].iter().enumerate().rev().filter(|(_, line)| !line.trim().is_empty()) {
            if indent_of(line) < indent {
                if function_name(line).is_some() {
                    return Some(at);
                }
                indent = indent_of(line);
            }
        }
        None
    }

    /// Does `#[test]`, or that of an asynchronous runtime, stand above the function in this line?
    fn is_test_function(&self, at: usize) -> bool {
        let is_test = |line: &str| line == "#[test]" || (line.starts_with("#[") && line.contains("::test"));
        self.lines[..at].iter().rev().take_while(|line| is_prelude(line)).any(|line| is_test(line.trim_start()))
    }
}

/// Comments and attributes, as they stand above an item.
fn is_prelude(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("//") && !line.starts_with("//!")) || line.starts_with("#[")
}

/// Is the whole file made for tests? Files under `tests/` and `benches/`, `tests.rs` modules, and the test kit.
pub(crate) fn is_test_file(path: &str) -> bool {
    let inside = |directory: &str| path.split('/').rev().skip(1).any(|part| part == directory);
    inside("tests") || inside("benches") || inside("testkit") || path.ends_with("/tests.rs")
}

/// The last line of the item whose attributes or first line is at `start`.
fn end_of_item(lines: &[&str], start: usize) -> usize {
    let Some(first) = (start..lines.len()).find(|&at| !lines[at].trim_start().starts_with("#[")) else {
        return lines.len() - 1;
    };
    if lines[first].trim_end().ends_with([';', '}', ',']) {
        return first;
    }
    let indent = indent_of(lines[first]);
    let closes = |line: &str| indent_of(line) == indent && line.trim_start().starts_with('}');
    (first + 1..lines.len()).find(|&at| closes(lines[at])).unwrap_or(lines.len() - 1)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The name in `pub(crate) const fn name(`, if the line begins a function.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let is_modifier = |word: &str| matches!(word, "pub" | "const" | "async" | "extern") || word.contains("pub(");
    if !before.split_whitespace().all(is_modifier) {
        return None;
    }
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some(&after[..end]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
//! About the file.
pub(crate) fn product() -> u8 {
    // inside
    1
}

#[cfg(test)]
mod tests {
    /// Documents.
    #[test]
    fn shows() {
        if true {
            // deep
        }
        /// A helper.
        fn helper() {
            // in a helper
        }
    }
    /// Named.
    const NAME: u8 = 1;
}
pub const fn after() {}
";

    #[test]
    fn test_modules_are_cut_out() {
        let regions = Regions::of("crates/wire/src/bth.rs", TEXT);
        let tests: Vec<usize> = (0..TEXT.lines().count()).filter(|&line| regions.is_test(line)).collect();
        assert_eq!(tests, (6..=21).collect::<Vec<_>>());
    }

    #[test]
    fn files_of_tests_are_recognized_by_their_path() {
        for path in ["crates/sim/tests/sim/seeds.rs", "crates/testkit/src/lib.rs", "crates/rc/src/requester/tests.rs"] {
            assert!(Regions::of(path, TEXT).is_test(0), "{path}");
        }
        assert!(!Regions::of("crates/rc/src/latest.rs", TEXT).is_test(0));
    }

    #[test]
    fn a_comment_belongs_to_the_test_around_or_below_it() {
        let regions = Regions::of("crates/wire/src/bth.rs", TEXT);
        let found = |text: &str| {
            let index = TEXT.lines().position(|line| line.trim() == text).expect("a line of the file");
            regions.test_of_comment(index)
        };
        assert_eq!(found("/// Documents."), Some("shows"));
        assert_eq!(found("// deep"), Some("shows"));
        for other in ["//! About the file.", "// inside", "if true {", "/// A helper.", "// in a helper", "/// Named."]
        {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
