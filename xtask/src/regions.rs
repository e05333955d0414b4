//! Regions of a Rust file: lines of tests, and the function of a line.
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

    /// Does the line with this index belong to a test?
    pub(crate) fn is_test(&self, index: usize) -> bool {
        self.test[index]
    }

    /// The function that the line with this index is in, or that it documents.
    pub(crate) fn function(&self, index: usize) -> Option<&'a str> {
        self.documented_function(index).or_else(|| self.enclosing_function(index))
    }

    fn documented_function(&self, index: usize) -> Option<&'a str> {
        let is_prelude = |line: &str| {
            let line = line.trim_start();
            (line.starts_with("//") && !line.starts_with("//!")) || line.starts_with("#[")
        };
        let first_code = (index..self.lines.len()).find(|&at| !is_prelude(self.lines[at]))?;
        (first_code > index).then(|| function_name(self.lines[first_code]))?
    }

    fn enclosing_function(&self, index: usize) -> Option<&'a str> {
        let mut indent = indent_of(self.lines[index]) + usize::from(function_name(self.lines[index]).is_some());
        for line in self.lines[..=index].iter().rev().filter(|line| !line.trim().is_empty()) {
            if indent_of(line) < indent {
                if let Some(name) = function_name(line) {
                    return Some(name);
                }
                indent = indent_of(line);
            }
        }
        None
    }
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
    }
}
pub const fn after() {}
";

    #[test]
    fn test_modules_are_cut_out() {
        let regions = Regions::of("crates/wire/src/bth.rs", TEXT);
        let tests: Vec<usize> = (0..TEXT.lines().count()).filter(|&line| regions.is_test(line)).collect();
        assert_eq!(tests, (6..=15).collect::<Vec<_>>());
    }

    #[test]
    fn files_of_tests_are_recognized_by_their_path() {
        for path in ["crates/sim/tests/sim/seeds.rs", "crates/testkit/src/lib.rs", "crates/rc/src/requester/tests.rs"] {
            assert!(Regions::of(path, TEXT).is_test(0), "{path}");
        }
        assert!(!Regions::of("crates/rc/src/latest.rs", TEXT).is_test(0));
    }

    #[test]
    fn a_line_belongs_to_the_function_around_or_below_it() {
        let regions = Regions::of("crates/wire/src/bth.rs", TEXT);
        assert_eq!(regions.function(0), None);
        assert_eq!(regions.function(2), Some("product"));
        assert_eq!(regions.function(8), Some("shows"));
        assert_eq!(regions.function(12), Some("shows"));
        assert_eq!(regions.function(16), Some("after"));
    }
}
