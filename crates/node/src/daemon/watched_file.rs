//! A file that may change.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Detects that the content of a file differs from the last one read.
#[derive(Debug)]
pub(super) struct WatchedFile {
    path: PathBuf,
    read: Option<Stamp>,
    seen: Option<Stamp>,
}

/// Parts that change with a file's content: its inode, its length, and the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    octets: u64,
    changed: (i64, i64),
}

impl WatchedFile {
    /// A file that is about to be read.
    pub(super) fn new(path: &Path) -> Self {
        let mut file = WatchedFile { path: path.to_owned(), read: None, seen: None };
        file.is_read();
        file
    }

    /// The file is about to be read again.
    pub(super) fn is_read(&mut self) {
        self.read = self.stamp();
        self.seen = self.read;
    }

    /// Whether the file has changed, and has been left alone since the last call: half of a new content is of no use.
    pub(super) fn has_changed(&mut self) -> bool {
        self.has_changed_or_gone() && self.seen.is_some()
    }

    /// The same of a file whose absence means something as well.
    pub(super) fn has_changed_or_gone(&mut self) -> bool {
        let stamp = self.stamp();
        let is_settled = stamp == self.seen;
        self.seen = stamp;
        is_settled && stamp != self.read
    }

    fn stamp(&self) -> Option<Stamp> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        let changed = (metadata.mtime(), metadata.mtime_nsec());
        Some(Stamp { inode: metadata.ino(), octets: metadata.len(), changed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_reported_once_and_when_the_file_has_settled() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("node.toml");
        let write = |text: &str| std::fs::write(&path, text).expect("written");
        write("one");
        let mut file = WatchedFile::new(&path);
        assert!(!file.has_changed());
        write("one, two");
        assert!(!file.has_changed(), "the writer may not be done");
        assert!(file.has_changed());
        file.is_read();
        assert!(!file.has_changed());
        std::fs::remove_file(&path).expect("removed");
        assert!(!file.has_changed() && !file.has_changed(), "there is nothing to read");
        assert!(file.has_changed_or_gone());
        write("three");
        assert!(!file.has_changed());
        assert!(file.has_changed());
    }
}
