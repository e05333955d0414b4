//! The boot image of guests: built on demand from packages of the distribution, then cached.

use crate::error::{LabError, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The script and the files that it needs.
const SOURCES: [(&str, &str); 3] = [
    ("build.sh", include_str!("../../../../labs/rxe/build.sh")),
    ("init", include_str!("../../../../labs/rxe/init")),
    ("peer.c", include_str!("../../../../labs/rxe/peer.c")),
];

/// Commands that building an image needs, and their packages.
pub const BUILD_COMMANDS: [(&str, &str); 7] = [
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("objdump", "binutils"),
    ("xz", "xz-utils"),
    ("cpio", "cpio"),
];

/// The kernel and the initial RAM disk of every guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// An uncompressed kernel.
    pub kernel: PathBuf,
    /// The guest's file system.
    pub initrd: PathBuf,
    /// Memory that a guest needs for it and its programs, in MiB.
    pub memory_mib: u64,
}

/// Memory of a guest without further files, in MiB.
const MEMORY_MIB: u64 = 192;
/// More for programs that are put into it, in MiB.
const FILES_MEMORY_MIB: u64 = 96;

impl Image {
    /// The image, from the cache or else built, which takes a quarter of a minute and on the first time a download of
    /// 80 MB. The lines of `progress` describe the current step.
    ///
    /// The cache is `$SRDMA_CACHE/rxe`, or `~/.cache/srdma/rxe` without that variable. An image in it is named after
    /// the script's hash and that of the packages' versions; when those cannot be determined, because apt has no lists,
    /// any image of the script will do.
    ///
    /// # Errors
    ///
    /// If a command is missing, with the `apt-get` line that installs it; the script's error when it fails.
    pub fn provide(progress: &mut dyn FnMut(&str)) -> Result<Self> {
        Self::provide_in(&cache(), progress)
    }

    fn provide_in(cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Self> {
        fs::create_dir_all(cache).map_err(LabError::file("make", cache))?;
        // Of two labs that start at once, one builds and the other waits for it.
        let lock_path = cache.join("lock");
        let lock = File::create(&lock_path).map_err(LabError::file("make", &lock_path))?;
        lock.lock().map_err(LabError::file("lock", &lock_path))?;

        let sources = hash(SOURCES.iter().map(|(_, text)| *text));
        let scripts = cache.join(format!("{sources}-scripts"));
        let packages = match write_scripts(&scripts).and_then(|()| run_script(&scripts, &["list"], &mut |_| {})) {
            Ok(packages) => packages,
            Err(error) => match newest(cache, &sources) {
                Some(image) => return Ok(image),
                None => return check_commands().and(Err(error)),
            },
        };
        let directory = cache.join(format!("{sources}-{}", hash([packages.as_str()])));
        if !directory.exists() {
            check_commands()?;
            let unfinished = cache.join("unfinished");
            let (out, packages) = (unfinished.display().to_string(), cache.join("packages").display().to_string());
            run_script(&scripts, &["build", &out, &packages], progress)?;
            fs::rename(&unfinished, &directory).map_err(LabError::file("rename", &unfinished))?;
        }
        Ok(Self::at(&directory))
    }

    fn at(directory: &Path) -> Self {
        let (kernel, initrd) = (directory.join("vmlinux"), directory.join("initramfs.cpio"));
        Image { kernel, initrd, memory_mib: MEMORY_MIB }
    }

    /// The image with the files of a directory in its root directory; its RAM disk is written to `initrd`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or written, or cpio is missing.
    pub(crate) fn with_files(&self, files: &Path, initrd: PathBuf) -> Result<Self> {
        require("files of guests", &[("cpio", "cpio")])?;
        let line = "find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0";
        let output = Command::new("sh").args(["-ec", line]).current_dir(files).stdin(Stdio::null()).output();
        let output = output.map_err(LabError::file("read", files))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(LabError::Command { line: line.to_owned(), status: output.status, output: text });
        }
        // The kernel unpacks both archives, one after the other.
        let mut octets = fs::read(&self.initrd).map_err(LabError::file("read", &self.initrd))?;
        octets.extend_from_slice(&output.stdout);
        fs::write(&initrd, &octets).map_err(LabError::file("write", &initrd))?;
        // While the guest boots, it has the archive and what was unpacked.
        let memory_mib = self.memory_mib + (output.stdout.len() as u64 >> 20) * 2 + FILES_MEMORY_MIB;
        Ok(Image { kernel: self.kernel.clone(), initrd, memory_mib })
    }
}

/// Those of `commands` that are in no directory of `PATH`.
pub fn missing<'a>(commands: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_missing = |command: &str| !directories.iter().any(|directory| directory.join(command).exists());
    commands.iter().copied().filter(|(command, _)| is_missing(command)).collect()
}

/// That every command is there; `purpose` names what needs them.
pub(super) fn require(purpose: &str, commands: &[(&str, &str)]) -> Result<()> {
    let missing = missing(commands);
    if missing.is_empty() {
        return Ok(());
    }
    let (names, mut packages): (Vec<&str>, Vec<&str>) = missing.into_iter().unzip();
    packages.dedup();
    let problem = format!(
        "{} not found; install with: apt-get install --no-install-recommends {}",
        names.join(", "),
        packages.join(" ")
    );
    Err(LabError::Unexpected { who: purpose.to_owned(), problem })
}

fn check_commands() -> Result<()> {
    const PURPOSE: &str = "building the soft-RoCE guest";
    require(PURPOSE, &BUILD_COMMANDS)?;
    if Path::new("/usr/include/stdio.h").exists() {
        return Ok(());
    }
    let problem = "no C headers; install with: apt-get install --no-install-recommends libc6-dev".to_owned();
    Err(LabError::Unexpected { who: PURPOSE.to_owned(), problem })
}

fn cache() -> PathBuf {
    if let Some(cache) = std::env::var_os("SRDMA_CACHE") {
        return PathBuf::from(cache).join("rxe");
    }
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/var"), PathBuf::from);
    home.join(".cache/srdma/rxe")
}

/// The first 64 bits of a hash over texts, in hexadecimal.
fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    hex::encode(&hash.finalize()[..8])
}

fn write_scripts(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(LabError::file("make", directory))?;
    for (name, text) in SOURCES {
        let path = directory.join(name);
        fs::write(&path, text).map_err(LabError::file("write", &path))?;
    }
    Ok(())
}

/// Runs the script, hands on each line that it prints, and gives them all.
fn run_script(scripts: &Path, arguments: &[&str], progress: &mut dyn FnMut(&str)) -> Result<String> {
    let line = format!("sh build.sh {}", arguments.join(" "));
    let start = |error| LabError::Start { line: line.clone(), error };
    let errors_path = scripts.join("errors");
    let errors = File::create(&errors_path).map_err(LabError::file("make", &errors_path))?;
    let mut command = Command::new("sh");
    command.arg(scripts.join("build.sh")).args(arguments).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().map_err(start)?;
    let mut printed = String::new();
    for text in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        let text = text.map_err(start)?;
        progress(&text);
        printed = printed + &text + "\n";
    }
    let status = child.wait().map_err(start)?;
    if status.success() {
        return Ok(printed);
    }
    let output = fs::read_to_string(&errors_path).unwrap_or_default().trim().to_owned();
    Err(LabError::Command { line, status, output })
}

/// The youngest image in the cache that the script has made.
fn newest(cache: &Path, sources: &str) -> Option<Image> {
    let directories = fs::read_dir(cache).ok()?.flatten().map(|entry| entry.path());
    let is_image = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(sources) && path.join("initramfs.cpio").exists()
    };
    let made = |path: &PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    directories.filter(is_image).max_by_key(made).map(|directory| Image::at(&directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_command_is_named_with_its_package() {
        let error = require("the test", &[("sh", "dash"), ("no-such-command", "no-such-package")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the test: no-such-command not found; install with: \
             apt-get install --no-install-recommends no-such-package"
        );
    }

    #[test]
    fn files_are_a_second_archive() {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("files");
        fs::create_dir_all(files.join("bin")).unwrap();
        fs::write(files.join("bin/program"), "octets of a program").unwrap();
        let first = directory.path().join("first");
        fs::write(&first, "first archive").unwrap();
        let image = Image { kernel: first.clone(), initrd: first.clone(), memory_mib: 192 };
        let more = image.with_files(&files, directory.path().join("more")).unwrap();
        let octets = fs::read(&more.initrd).unwrap();
        let archive = octets.strip_prefix(b"first archive").unwrap();
        let text = String::from_utf8_lossy(archive);
        assert!(text.starts_with("070701") && text.contains("bin/program") && text.contains("octets of a program"));
        assert!(more.memory_mib > image.memory_mib);
        assert!(image.with_files(&directory.path().join("none"), directory.path().join("none.cpio")).is_err());
    }

    #[test]
    fn without_package_lists_the_youngest_image_of_the_script_serves() {
        let cache = tempfile::tempdir().unwrap();
        assert_eq!(newest(cache.path(), "0123"), None);
        for name in ["0123-old", "0123-scripts", "4567-other"] {
            fs::create_dir(cache.path().join(name)).unwrap();
        }
        for name in ["0123-old", "4567-other"] {
            fs::write(cache.path().join(name).join("initramfs.cpio"), "").unwrap();
        }
        assert_eq!(newest(cache.path(), "0123"), Some(Image::at(&cache.path().join("0123-old"))));
    }

    #[test]
    fn hashes_depend_on_the_boundaries_of_texts() {
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
        assert_eq!(hash(["ab"]).len(), 16);
    }
}
