//! The repository's files as the chores see them: paths from the root with forward slashes, and their text.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file of the repository.
pub(crate) struct File {
    /// From the repository's root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every file that git tracks or would track.
pub(crate) struct Tree {
    /// The files that are text, ordered by path.
    pub(crate) files: Vec<File>,
    /// Every file, binary ones included, and every directory that holds one.
    pub(crate) paths: BTreeSet<String>,
}

impl Tree {
    /// The directory that holds the workspace.
    pub(crate) fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
    }

    /// Reads the files of this repository.
    ///
    /// # Errors
    /// When git cannot list them or one cannot be read.
    pub(crate) fn of_repository() -> Result<Tree> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(Self::root())
            .output()
            .context("cannot start git to list the repository's files")?;
        ensure!(listing.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listing.stderr));
        let listing = String::from_utf8(listing.stdout).context("a path is not UTF-8")?;
        let mut contents = Vec::new();
        for path in listing.split('\0').filter(|path| !path.is_empty()).collect::<BTreeSet<_>>() {
            let place = Self::root().join(path);
            if place.is_file() {
                contents.push((path.to_owned(), std::fs::read(&place).with_context(|| format!("cannot read {path}"))?));
            }
        }
        Ok(Self::from_contents(contents))
    }

    /// The file at `path`, if it is text.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The text files whose name ends in `suffix`.
    pub(crate) fn with_suffix<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(suffix))
    }

    fn from_contents(contents: Vec<(String, Vec<u8>)>) -> Tree {
        let mut tree = Tree { files: Vec::new(), paths: BTreeSet::new() };
        for (path, octets) in contents {
            let mut directory = Path::new(&path).parent();
            while let Some(parent) = directory {
                tree.paths.insert(parent.to_string_lossy().into_owned());
                directory = parent.parent();
            }
            tree.paths.insert(path.clone());
            if let Ok(text) = String::from_utf8(octets)
                && !text.contains('\0')
            {
                tree.files.push(File { path, text });
            }
        }
        tree
    }

    /// A tree made of literal files.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        Self::from_contents(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_files_are_paths_but_not_text() {
        let tree =
            Tree::from_contents(vec![("a/b/c.pcap".to_owned(), vec![0xD4, 0xC3]), ("d".to_owned(), b"x".to_vec())]);
        assert_eq!(tree.files.len(), 1);
        assert!(tree.file("d").is_some() && tree.file("a/b/c.pcap").is_none());
        let paths: Vec<&str> = tree.paths.iter().map(String::as_str).collect();
        assert_eq!(paths, ["", "a", "a/b", "a/b/c.pcap", "d"]);
    }

    #[test]
    fn this_repository_is_read() {
        let tree = Tree::of_repository().unwrap();
        assert!(tree.file("xtask/src/tree.rs").is_some());
        assert!(!tree.paths.iter().any(|path| path.starts_with("target/")));
    }
}
