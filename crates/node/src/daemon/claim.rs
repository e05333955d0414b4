//! Exclusive use of an interface by one process, and the error for a second one.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// The directory of locks, unless the service manager names one.
const DIRECTORY: &str = "/run/srdma";

/// Exclusive claim on an interface for the lifetime of the value (D108).
///
/// It is a lock on a file that its user alone can open. The file's name has the network namespace, since each has its
/// own interfaces. The kernel releases the lock with the process, however that ends.
#[derive(Debug)]
pub(super) struct Claim {
    /// Keeps the lock.
    _file: File,
    path: PathBuf,
}

/// Reasons for which an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimError {
    /// Another process has it.
    #[error("interface {interface} is already used by {owner}")]
    InUse { interface: String, owner: String },
    /// The lock cannot be tried.
    #[error("interface {interface}: cannot find out whether another process uses it: {}: {error}", path.display())]
    Unknown { interface: String, path: PathBuf, error: io::Error },
}

/// Reason for which a lock is not had.
#[derive(Debug)]
enum Refusal {
    InUse { owner: String },
    Failed(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Failed(error)
    }
}

impl Claim {
    /// Makes this process the first of the network namespace; `None` when there is one.
    pub(super) fn of_namespace() -> Option<Self> {
        Claim::in_directory(&directory(), "namespace").ok()
    }

    /// Claims an interface of the network namespace that the thread is in.
    pub(super) fn of(interface: &str) -> Result<Self, ClaimError> {
        Claim::of_in(&directory(), interface)
    }

    fn of_in(directory: &Path, interface: &str) -> Result<Self, ClaimError> {
        Claim::in_directory(directory, &format!("interface.{interface}")).map_err(|refusal| {
            let interface = interface.to_owned();
            match refusal {
                Refusal::InUse { owner } => ClaimError::InUse { interface, owner },
                Refusal::Failed(error) => ClaimError::Unknown { interface, path: directory.to_owned(), error },
            }
        })
    }

    fn in_directory(directory: &Path, what: &str) -> Result<Self, Refusal> {
        DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        let owner = fs::metadata(directory)?;
        if owner.mode() & 0o022 != 0 {
            return Err(io::Error::other("others than its owner can write to it: chmod go-w").into());
        }
        // As of the thread: a thread of a test may have entered another namespace.
        let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
        let path = directory.join(format!("{namespace}.{what}.lock"));
        loop {
            let file = open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Refusal::InUse { owner: holder(&file) }),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            // The former holder may have removed the file that was opened before.
            match fs::symlink_metadata(&path) {
                Ok(found) if found.ino() == file.metadata()?.ino() => {}
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            }
            // A node that root runs must not keep out the next one, of the directory's user.
            if file.metadata()?.uid() != owner.uid() {
                let _ = fchown(&file, Some(owner.uid()), Some(owner.gid()));
            }
            file.set_len(0)?;
            writeln!(&file, "{}", std::process::id())?;
            return Ok(Claim { _file: file, path });
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // While the lock is held: a process that has opened the file sees that it is gone.
        let _ = fs::remove_file(&self.path);
    }
}

/// The service manager's, shared by all nodes of the machine.
fn directory() -> PathBuf {
    let named = std::env::var("RUNTIME_DIRECTORY").unwrap_or_default();
    match named.split(':').next() {
        Some(first) if first.starts_with('/') => PathBuf::from(first),
        Some(_) | None => PathBuf::from(DIRECTORY),
    }
}

/// Opens a lock file. Any process that can open it can lock it, so that this is its user's right alone.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_CLOEXEC).open(path)
}

/// The process that has a lock, and how it was started.
fn holder(mut file: &File) -> String {
    let mut text = String::new();
    let Some(pid) = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse::<u32>().ok()) else {
        return "another process".to_owned();
    };
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
    if command.is_empty() { format!("process {pid}") } else { format!("process {pid} ({})", printable(&command)) }
}

/// A command line, which its process has chosen, without control characters.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for c in text.chars().take(256) {
        // Writing to a string does not fail.
        let _ = if c.is_control() { write!(printable, "{}", c.escape_default()) } else { write!(printable, "{c}") };
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
        folder
    }

    #[test]
    fn the_second_claim_names_the_first() {
        let folder = folder();
        let claim = Claim::of_in(folder.path(), "eth0").expect("free");
        let refused = Claim::of_in(folder.path(), "eth0").expect_err("taken").to_string();
        let expected = format!("interface eth0 is already used by process {} (", std::process::id());
        assert!(refused.starts_with(&expected), "{refused}");
        let other = Claim::of_in(folder.path(), "eth1").expect("another one");
        drop(claim);
        Claim::of_in(folder.path(), "eth0").expect("free again");
        drop(other);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
    }

    /// Another user can neither open the file nor add one.
    #[test]
    fn a_claim_is_its_users_alone() {
        let folder = folder();
        let claim = Claim::of_in(folder.path(), "eth0").expect("free");
        assert_eq!(fs::metadata(&claim.path).expect("there").mode() & 0o777, 0o600);
        drop(claim);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("its mode");
        let refused = Claim::of_in(folder.path(), "eth0").expect_err("writable by all").to_string();
        assert!(refused.contains("others than its owner can write to it"), "{refused}");
    }

    #[test]
    fn what_a_killed_process_has_left_is_taken_over_and_a_link_is_not_followed() {
        let folder = folder();
        let path = Claim::of_in(folder.path(), "eth0").expect("free").path.clone();
        fs::write(&path, "4242\n").expect("written");
        drop(Claim::of_in(folder.path(), "eth0").expect("no lock"));
        let target = folder.path().join("target");
        std::os::unix::fs::symlink(&target, &path).expect("a link");
        Claim::of_in(folder.path(), "eth0").expect_err("a link");
        assert!(!target.exists());
    }

    #[test]
    fn command_lines_are_printable() {
        assert_eq!(printable("srdma\n\x1b[2J node"), "srdma\\n\\u{1b}[2J node");
    }
}
