//! `cargo xtask manual`: the manual pages of libsrdma, from the comments of its header.

use crate::tree::Tree;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const HEADER: &str = "crates/capi/include/srdma.h";
const DOCUMENT: &str = "docs/applications.md";
const PAGES: &str = "crates/capi/man";

/// The page about the library as a whole.
const OVERVIEW: &str = "libsrdma.7";

/// First function of the header; types are before.
const FIRST_FUNCTION: &str = "/* Version of the library:";

/// A function of the header, with its comment as one paragraph.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    prototype: String,
    comment: String,
}

/// Writes the pages, or compares them. `false`: a page is out of date.
///
/// # Errors
///
/// If a file cannot be read or written, or a function has no comment.
pub(crate) fn run(check: bool) -> Result<bool> {
    let root = Tree::root();
    let header = fs::read_to_string(root.join(HEADER)).context(HEADER)?;
    let document = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    let pages = pages(&header, &document)?;
    if check {
        return compare(&root.join(PAGES), &pages);
    }
    fs::create_dir_all(root.join(PAGES))?;
    for entry in fs::read_dir(root.join(PAGES))? {
        fs::remove_file(entry?.path())?;
    }
    for (name, text) in &pages {
        fs::write(root.join(PAGES).join(name), text)?;
    }
    println!("{PAGES}: {} pages", pages.len());
    Ok(true)
}

fn compare(directory: &Path, pages: &BTreeMap<String, String>) -> Result<bool> {
    let mut is_current = true;
    for (name, text) in pages {
        if fs::read_to_string(directory.join(name)).unwrap_or_default() != *text {
            println!("{PAGES}/{name} is out of date: cargo xtask manual");
            is_current = false;
        }
    }
    for entry in fs::read_dir(directory).context(PAGES)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !pages.contains_key(&name) {
            println!("{PAGES}/{name} describes nothing of the header");
            is_current = false;
        }
    }
    Ok(is_current)
}

/// All pages by the names of their files.
fn pages(header: &str, document: &str) -> Result<BTreeMap<String, String>> {
    let (types, code) = header.split_once(FIRST_FUNCTION).context("the header has no functions")?;
    let functions = functions(&format!("{FIRST_FUNCTION}{code}"))?;
    let mut pages: BTreeMap<String, String> =
        functions.iter().map(|function| (format!("{}.3", function.name), function.page())).collect();
    pages.insert(OVERVIEW.to_owned(), overview(types, &functions, document)?);
    Ok(pages)
}

/// The functions of a part of the header, in order.
fn functions(code: &str) -> Result<Vec<Function>> {
    let mut functions = Vec::new();
    let mut rest = code;
    while let Some((_, after)) = rest.split_once("/*") {
        let (comment, after) = after.split_once("*/").context("a comment without end")?;
        rest = after;
        let declarations = after.split("/*").next().unwrap_or(after);
        let prototypes = prototypes(declarations);
        ensure!(prototypes.len() <= 1, "{} has no comment of its own", prototypes[1..].join(", "));
        for prototype in prototypes {
            let before = prototype.split('(').next().unwrap_or(&prototype);
            let name = before.rsplit([' ', '*']).next().unwrap_or(before).to_owned();
            functions.push(Function { name, prototype, comment: paragraph(comment) });
        }
    }
    Ok(functions)
}

/// The prototypes of some lines, each as one.
fn prototypes(declarations: &str) -> Vec<String> {
    let mut whole = Vec::new();
    let mut begun = String::new();
    for line in declarations.lines() {
        let text = if begun.is_empty() { line.to_owned() } else { format!("{begun} {}", line.trim()) };
        begun.clear();
        if text.ends_with(");") {
            whole.push(text);
        } else if text.contains('(') {
            begun = text;
        }
    }
    whole
}

/// The lines of a comment as one.
fn paragraph(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches('*').trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

impl Function {
    /// The comment without the errors at its end, and these, each with what the header says of it.
    fn parts(&self) -> (String, Vec<(String, String)>) {
        let sentences: Vec<&str> = self.comment.split_inclusive(". ").collect();
        let is_error = |sentence: &&str| sentence.starts_with("-E");
        let text: String = sentences.iter().copied().filter(|sentence| !is_error(sentence)).collect();
        let mut errors = Vec::new();
        for sentence in sentences.iter().copied().filter(is_error) {
            for part in split_outside_parentheses(sentence.trim_end().trim_end_matches('.')) {
                let (name, why) = part.split_once([' ', ':']).unwrap_or((part, ""));
                let why = why.trim().trim_start_matches('(').trim_end_matches(')');
                errors.push((name.trim_start_matches('-').to_owned(), why.to_owned()));
            }
        }
        (text.trim_end().to_owned(), errors)
    }

    fn summary(&self) -> String {
        let (text, _) = self.parts();
        let text = text.strip_prefix("Source: ").or_else(|| text.strip_prefix("Receiver: ")).unwrap_or(&text);
        let first = text.split([':', ';']).next().unwrap_or(text);
        let first = first.split(". ").next().unwrap_or(first).trim_end_matches('.');
        let mut letters = first.chars();
        letters.next().map(|letter| letter.to_lowercase().chain(letters).collect()).unwrap_or_default()
    }

    fn page(&self) -> String {
        let (text, errors) = self.parts();
        let mut page = head(&self.name, 3, &self.summary());
        page += &format!(
            ".SH SYNOPSIS\n.nf\n.B #include <srdma.h>\n.PP\n.B {}\n.fi\n.SH DESCRIPTION\n{}\n",
            escaped(&self.prototype),
            escaped(&text)
        );
        if self.prototype.starts_with("int ") {
            page += ".SH RETURN VALUE\nNegative values are errors, the negative of an\n.BR errno ,\nwhose sentence is \
                     that of\n.BR srdma_last_message (3).\nOtherwise 0, or what the description says.\n";
        }
        if !errors.is_empty() {
            page += ".SH ERRORS\n";
            for (name, why) in errors {
                page += &format!(
                    ".TP\n.B {name}\n{}\n",
                    if why.is_empty() { "See\n.BR libsrdma (7).".to_owned() } else { escaped(&why) }
                );
            }
        }
        page + ".SH SEE ALSO\n.BR libsrdma (7)\n"
    }
}

/// Parts between commas that are not in parentheses.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_end = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(is_end).map(str::trim).collect()
}

fn overview(types: &str, functions: &[Function], document: &str) -> Result<String> {
    let (_, introduction) = types.split_once("/*").context("the header has no introduction")?;
    let (introduction, types) = introduction.split_once("*/").context("the introduction has no end")?;
    let introduction = paragraph(introduction);
    let (_, introduction) = introduction.split_once("srdma: ").context("the introduction does not begin")?;
    let (first, rest) = introduction.split_once(". ").context("the introduction has one sentence")?;
    let (_, types) = types.split_once("extern \"C\" {\n#endif\n").context("the header has no types")?;
    let mut page = head("libsrdma", 7, "versions of buffers to the receivers of a multicast group");
    page += ".SH SYNOPSIS\n.nf\n.B #include <srdma.h>\n.PP\n";
    page += ".B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs srdma)\n.fi\n";
    let mut letters = first.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().chain(letters).collect()).unwrap_or_default();
    page += &format!(".SH DESCRIPTION\n{}.\n.PP\n{}\n.SH FUNCTIONS\n", escaped(&first), escaped(rest));
    for function in functions {
        page += &format!(".TP\n.BR {} (3)\n{}\n", function.name, escaped(&function.summary()));
    }
    page += &format!(".SH TYPES\n.nf\n{}\n.fi\n.SH ERRORS\n", escaped(types.trim()));
    for line in document.lines().filter(|line| line.starts_with("| `E")) {
        let mut cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', ""));
        let (names, why) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        page += &format!(".TP\n.B {}\n{}\n", escaped(&names), escaped(&why));
    }
    let (_, policy) = document.split_once("\n### Compatibility\n").context("the document states no policy")?;
    let policy = without_links(policy.split("\n#").next().unwrap_or(policy).trim()).replace('`', "");
    let points = policy.split("\n* ").map(|point| escaped(&paragraph(point.trim_start_matches("* "))));
    let points: Vec<String> = points.map(|point| format!(".IP \\(bu 2\n{point}\n")).collect();
    Ok(page + ".SH COMPATIBILITY\n" + &points.concat())
}

/// Markdown with the texts of its links alone.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, after) = part.split_once(')').unwrap_or(("", part));
        plain += after;
    }
    plain.replace('[', "")
}

fn head(name: &str, section: u8, summary: &str) -> String {
    format!(
        ".\\\" Written by `cargo xtask manual` from srdma.h.\n.TH {name} {section} \"\" srdma \"Host library\"\n\
         .SH NAME\n{name} \\- {}\n",
        escaped(summary)
    )
}

/// Text in which nothing is a request or an escape of roff.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_TEXT: &str = "/* x\n * srdma: an application does. It does more.\n */\nextern \"C\" {\n#endif\n
/* A handle. */\nstruct srdma;\n
/* Version of the library: a number. */\nuint32_t srdma_library_version(void);
/* Source: waits for `it`.\n * -EAGAIN (none, or few), -EPERM. */\nint srdma_wait(struct srdma *s, int x);\n";
    const DOCUMENT_TEXT: &str =
        "| `EAGAIN` | nothing now |\n\n### Compatibility\n\n* One `thing`\n  more.\n* Two.\n\n## Next\n";

    #[test]
    fn a_page_has_prototype_text_and_errors() {
        let pages = pages(HEADER_TEXT, DOCUMENT_TEXT).unwrap();
        assert_eq!(pages.keys().collect::<Vec<_>>(), ["libsrdma.7", "srdma_library_version.3", "srdma_wait.3"]);
        let page = &pages["srdma_wait.3"];
        assert!(page.contains(".SH NAME\nsrdma_wait \\- waits for `it`\n"), "{page}");
        assert!(page.contains("\n.B int srdma_wait(struct srdma *s, int x);\n"), "{page}");
        assert!(page.contains(".TP\n.B EAGAIN\nnone, or few\n.TP\n.B EPERM\nSee\n.BR libsrdma (7).\n"), "{page}");
        assert!(!pages["srdma_library_version.3"].contains("RETURN VALUE"));
        let overview = &pages["libsrdma.7"];
        assert!(overview.contains("An application does.\n.PP\nIt does more.\n"), "{overview}");
        assert!(overview.contains("/* A handle. */\nstruct srdma;\n"), "{overview}");
        assert!(overview.contains(".B EAGAIN\nnothing now\n"), "{overview}");
        assert!(overview.contains(".IP \\(bu 2\nOne thing more.\n.IP \\(bu 2\nTwo.\n"), "{overview}");
    }

    #[test]
    fn a_prototype_may_be_on_several_lines() {
        let code = "/* Adds. */\nint srdma_add(int a,\n              int b);\n#endif\n";
        let found = functions(code).unwrap();
        assert_eq!((&*found[0].name, &*found[0].prototype), ("srdma_add", "int srdma_add(int a, int b);"));
    }

    #[test]
    fn a_function_without_a_comment_is_refused() {
        let header = format!("{HEADER_TEXT}int srdma_other(void);\n");
        let error = pages(&header, DOCUMENT_TEXT).unwrap_err().to_string();
        assert_eq!(error, "int srdma_other(void); has no comment of its own");
    }

    #[test]
    fn links_are_their_texts() {
        assert_eq!(without_links("see [the\n  list](a.md#b), or [it](c)."), "see the\n  list, or it.");
    }

    #[test]
    fn nothing_is_a_request_of_roff() {
        assert_eq!(escaped("a-b\n.so x\n'c\\d"), "a\\-b\n\\&.so x\n\\&'c\\ed");
    }

    /// The pages that are committed are those of the header, one for each function.
    #[test]
    fn the_manual_is_current() {
        assert!(run(true).unwrap());
        let abi = fs::read_to_string(Tree::root().join("crates/capi/abi.txt")).unwrap();
        for function in abi.lines().filter_map(|line| line.split('@').next()) {
            assert!(Tree::root().join(PAGES).join(format!("{function}.3")).exists(), "{function}");
        }
    }
}
