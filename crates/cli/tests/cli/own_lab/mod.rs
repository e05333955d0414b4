//! A lab that is one test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A shipped lab, or what a test has made of it; down at the end whatever happens.
pub(crate) struct Lab {
    pub(crate) file: PathBuf,
    pub(crate) suffix: String,
    directory: tempfile::TempDir,
}

impl Lab {
    /// The lab of this name, with these replacements in its file.
    pub(crate) fn new(name: &str, replacements: &[(&str, &str)]) -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs").join(name).with_extension("toml");
        let mut text = fs::read_to_string(shipped).expect("the lab is there");
        for (from, to) in replacements {
            assert!(text.contains(from), "{name} has no {from:?}");
            text = text.replace(from, to);
        }
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(name).with_extension("toml");
        fs::write(&file, text).expect("the lab is written");
        let suffix = format!("o{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        Lab { file, suffix, directory }
    }

    /// Runs `srdma lab COMMAND` for it.
    pub(crate) fn command(&self, command: &str, arguments: &[&str]) -> Output {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        srdma.args(["lab", command]).arg(&self.file).args(["--instance", &self.suffix]).args(arguments);
        srdma.output().expect("the program runs")
    }

    /// Directory of the captures of its links.
    pub(crate) fn captures(&self) -> PathBuf {
        self.directory.path().join("captures")
    }

    /// The capture of a link.
    pub(crate) fn capture(&self, link: &str) -> PathBuf {
        self.captures().join(link).with_extension("pcapng")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.command("down", &[]);
    }
}
