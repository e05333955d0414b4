//! Tables between markers of documents.

/// A place in a document for the table of a result:
///
/// ```text
/// <!-- evidence: NAME -->
/// the table
/// <!-- end of evidence -->
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked<'t> {
    pub(crate) name: &'t str,
    /// Index of the line of the first marker.
    pub(crate) line: usize,
    /// Offset of what is between the markers.
    begin: usize,
    /// What is between the markers; `None` if the second one is missing.
    pub(crate) table: Option<&'t str>,
}

const BEGIN: &str = "<!-- evidence: ";
const END: &str = "<!-- end of evidence -->\n";

/// The marked places of a text.
pub(crate) fn marked(text: &str) -> Vec<Marked<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    for (line, content) in text.split_inclusive('\n').enumerate() {
        at += content.len();
        if let Some(name) = content.trim_end().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) {
            let rest = &text[at..];
            let until = [rest.find(END), rest.find(BEGIN)];
            let table = match until {
                [Some(end), None] => Some(&rest[..end]),
                [Some(end), Some(next)] if end < next => Some(&rest[..end]),
                _ => None,
            };
            found.push(Marked { name, line, begin: at, table });
        }
    }
    found
}

/// The text with another table of this result.
pub(crate) fn write_into(text: &str, name: &str, table: &str) -> String {
    let mut written = text.to_owned();
    let place = marked(text).into_iter().find(|marked| marked.name == name);
    if let Some(Marked { begin, table: Some(old), .. }) = place {
        written.replace_range(begin..begin + old.len(), table);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A\n<!-- evidence: one -->\nold\n<!-- end of evidence -->\ntext\n\
                        <!-- evidence: two -->\n<!-- end of evidence -->\n";

    #[test]
    fn tables_are_found_and_replaced() {
        let found: Vec<_> = marked(TEXT).iter().map(|marked| (marked.name, marked.line, marked.table)).collect();
        assert_eq!(found, [("one", 1, Some("old\n")), ("two", 5, Some(""))]);
        let written = write_into(&write_into(TEXT, "one", "1\n"), "two", "2\n");
        assert_eq!(marked(&written).iter().map(|marked| marked.table).collect::<Vec<_>>(), [Some("1\n"), Some("2\n")]);
        assert_eq!(write_into(TEXT, "three", "3\n"), TEXT);
    }

    #[test]
    fn a_place_without_an_end_has_no_table() {
        let unended = "<!-- evidence: one -->\n<!-- evidence: two -->\n<!-- end of evidence -->\n";
        assert_eq!(marked(unended).iter().map(|marked| marked.table).collect::<Vec<_>>(), [None, Some("")]);
    }
}
