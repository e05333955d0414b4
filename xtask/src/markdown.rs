//! Markdown as the chores parse it: links, and which text is code.

use std::collections::BTreeSet;
use std::path::{Component, Path};

/// The path from the repository's root of `link`, seen from the file `from`.
pub(crate) fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let joined = Path::new(from).parent()?.join(link);
    for component in joined.components() {
        match component {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(parts.join("/"))
}

/// The lines outside fenced code.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// The line with its `code spans` blanked.
pub(crate) fn without_code(line: &str) -> String {
    line.split('`').enumerate().map(|(part, text)| if part % 2 == 0 { text } else { "" }).collect()
}

/// The `code spans` of a line.
pub(crate) fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The text between `](` and `)`.
pub(crate) fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

/// The text with each link's target replaced by what `target` makes of it; code stays as it is.
pub(crate) fn with_links(text: &str, target: impl Fn(&str) -> String) -> String {
    let prose: BTreeSet<usize> = prose(text).map(|(index, _)| index).collect();
    let line = |(index, line): (usize, &str)| {
        let parts = line.split('`').enumerate().map(|(part, text)| {
            if part % 2 == 0 && prose.contains(&index) { links_replaced(text, &target) } else { text.to_owned() }
        });
        parts.collect::<Vec<_>>().join("`")
    };
    text.split('\n').enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn links_replaced(text: &str, target: impl Fn(&str) -> String) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, rest| match rest.split_once(')') {
        Some((link, rest)) => format!("{before}]({}){rest}", target(link)),
        None => format!("{before}]({rest}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_replaced_where_they_are_links() {
        let text = "[`a`](b.md#c) and [d](e), `[f](g)`\n```\n[h](i)\n```\n[j](k) ](\n";
        let expected = "[`a`](<b.md#c>) and [d](<e>), `[f](g)`\n```\n[h](i)\n```\n[j](<k>) ](\n";
        assert_eq!(with_links(text, |link| format!("<{link}>")), expected);
    }

    #[test]
    fn paths_are_relative_to_the_file_of_the_link() {
        assert_eq!(resolve("docs/a.md", "../crates/b.rs").as_deref(), Some("crates/b.rs"));
        assert_eq!(resolve("docs/spec/a.md", "./b.md").as_deref(), Some("docs/spec/b.md"));
        assert_eq!(resolve("a.md", "docs/").as_deref(), Some("docs"));
    }
}
