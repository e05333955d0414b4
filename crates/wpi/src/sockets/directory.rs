//! The directory of the sockets (D212): a program that can write to it could put a socket of its own in place of the
//! driver's, and be taken for the driver.

use crate::core::{GRPC, MAX_BUFFER_OCTETS};
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Gid, Group, chown, geteuid};
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Octets of the path of a socket at most (`sun_path`, with its NUL 108).
const MAX_PATH_OCTETS: usize = 107;
/// The longest name of a socket: that of a buffer, and `_notify.sock`.
const MAX_NAME_OCTETS: usize = MAX_BUFFER_OCTETS + 12;
/// Where sockets are made before they have their mode.
const PRIVATE: &str = ".new";
/// Bits of a mode that let the group, and others, write.
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Why there are no sockets in a directory.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DirectoryError {
    #[error("{}: {error}", .path.display())]
    System { path: PathBuf, error: io::Error },
    #[error("{}: not an absolute path of a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error(
        "{}: others may write there (mode {mode:o}), and so could put sockets in place of the driver's: chmod go-w",
        .path.display()
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error("{}: is of user {owner}, who could put sockets in place of the driver's", .path.display())]
    OtherOwner { path: PathBuf, owner: u32 },
    #[error("{}: {octets} octets are too long for the sockets of buffers: 30 at most", .path.display())]
    TooLong { path: PathBuf, octets: usize },
    #[error("{}: another driver has its sockets there", .0.display())]
    InUse(PathBuf),
    #[error("there is no group {0}")]
    NoGroup(String),
}

/// The directory, which is this driver's alone.
pub(crate) struct Directory {
    path: PathBuf,
    group: Option<Gid>,
    /// Held while a socket is made, which has one name at first.
    making: Mutex<()>,
    /// On the directory itself; the kernel releases it when the process ends.
    _lock: Flock<File>,
}

impl Directory {
    /// Takes a directory, which is created with mode 0755, and removes sockets of a driver that was killed. `group`: a
    /// group, by number or name, whose members may use the sockets; without it the driver's user alone may.
    pub(crate) fn take(path: &Path, group: Option<&str>) -> Result<Self, DirectoryError> {
        let system = |error| DirectoryError::System { path: path.to_owned(), error };
        let group = group.map(group_of).transpose()?;
        let octets = path.as_os_str().len();
        if octets + 1 + MAX_NAME_OCTETS > MAX_PATH_OCTETS {
            return Err(DirectoryError::TooLong { path: path.to_owned(), octets });
        }
        if !path.is_absolute() {
            return Err(DirectoryError::NotADirectory(path.to_owned()));
        }
        DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(system)?;
        check(path)?;
        let lock = Flock::lock(File::open(path).map_err(system)?, FlockArg::LockExclusiveNonblock)
            .map_err(|_| DirectoryError::InUse(path.to_owned()))?;
        let directory = Directory { path: path.to_owned(), group, making: Mutex::new(()), _lock: lock };
        directory.clean().map_err(system)?;
        Ok(directory)
    }

    /// Removes sockets of an earlier driver: the lock shows that it lives no more.
    fn clean(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_socket() {
                fs::remove_file(entry.path())?;
            }
        }
        let private = self.path.join(PRIVATE);
        match fs::remove_dir_all(&private) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        DirBuilder::new().mode(0o700).create(private)
    }

    /// Listens on a socket, which no other user can connect to before it has its mode.
    pub(crate) fn listen(&self, name: &str) -> io::Result<tokio::net::UnixListener> {
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let made = self.path.join(PRIVATE).join("s");
        let listener = UnixListener::bind(&made)?;
        listener.set_nonblocking(true)?;
        let mode = if self.group.is_some() { 0o660 } else { 0o600 };
        let ready = chown(&made, None, self.group).map_err(io::Error::from);
        let ready = ready.and_then(|()| fs::set_permissions(&made, Permissions::from_mode(mode)));
        let ready = ready.and_then(|()| fs::rename(&made, self.path_of(name)));
        if let Err(error) = ready {
            let _ = fs::remove_file(&made);
            return Err(error);
        }
        tokio::net::UnixListener::from_std(listener)
    }

    /// The path of a socket.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path of the socket that speaks gRPC.
    pub(crate) fn grpc(&self) -> String {
        format!("{GRPC}.sock")
    }

    /// Removes a socket.
    pub(crate) fn remove(&self, name: &str) {
        if let Err(error) = fs::remove_file(self.path_of(name)) {
            tracing::warn!("{}: {error}", self.path_of(name).display());
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What stays is removed by the next driver.
        let _ = fs::remove_file(self.path_of(&self.grpc()));
        let _ = fs::remove_dir_all(self.path.join(PRIVATE));
    }
}

/// Checks that this user and root alone can change the directory, or exchange it for another one.
fn check(path: &Path) -> Result<(), DirectoryError> {
    let own = geteuid().as_raw();
    for (distance, place) in path.ancestors().enumerate() {
        let found =
            fs::symlink_metadata(place).map_err(|error| DirectoryError::System { path: place.to_owned(), error })?;
        if !found.is_dir() {
            return Err(DirectoryError::NotADirectory(place.to_owned()));
        }
        check_owner(place, &found, own, distance == 0)?;
    }
    Ok(())
}

fn check_owner(path: &Path, found: &Metadata, own: u32, is_last: bool) -> Result<(), DirectoryError> {
    let (owner, mode) = (found.uid(), found.mode());
    if owner != own && (is_last || owner != 0) {
        return Err(DirectoryError::OtherOwner { path: path.to_owned(), owner });
    }
    // In a sticky directory, such as /tmp, others cannot rename what is not theirs.
    let is_safe = mode & WRITABLE == 0 || (!is_last && mode & STICKY != 0);
    if is_safe { Ok(()) } else { Err(DirectoryError::Writable { path: path.to_owned(), mode: mode & 0o7777 }) }
}

fn group_of(name: &str) -> Result<Gid, DirectoryError> {
    let by_number = name.parse().ok().map(Gid::from_raw);
    let by_name = || Group::from_name(name).ok().flatten().map(|group| group.gid);
    by_number.or_else(by_name).ok_or_else(|| DirectoryError::NoGroup(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
    }

    fn refused(path: &Path) -> String {
        Directory::take(path, None).err().expect("refused").to_string()
    }

    /// D212.
    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let above = tempfile::tempdir_in("/tmp").expect("a directory");
        let path = above.path().join("s");
        drop(Directory::take(&path, None).expect("it is made"));
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o7777, 0o755);
        for mode in [0o775, 0o757, 0o777, 0o1777] {
            set_mode(&path, mode);
            assert!(refused(&path).contains(&format!("others may write there (mode {mode:o})")), "{mode:o}");
        }
        set_mode(&path, 0o750);
        drop(Directory::take(&path, None).expect("the group may read"));
        // A user that can rename it can exchange it.
        set_mode(above.path(), 0o770);
        assert!(refused(&path).contains("others may write there (mode 770)"));
        set_mode(above.path(), 0o700);
        let link = above.path().join("l");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(refused(&link).contains("not an absolute path of a directory"));
        assert!(refused(Path::new("relative")).contains("not an absolute path"));
        let file = above.path().join("f");
        fs::write(&file, "").expect("a file");
        refused(&file);
        let long = Path::new("/run").join("x".repeat(26));
        assert!(refused(&long).contains("31 octets are too long"), "{}", refused(&long));
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let found = fs::metadata("/").expect("there");
        let error = check_owner(Path::new("/"), &found, found.uid() + 1, true).expect_err("another user's");
        assert!(error.to_string().contains("is of user 0"), "{error}");
        check_owner(Path::new("/"), &found, found.uid() + 1, false).expect("root's is above");
    }

    #[tokio::test]
    async fn sockets_are_the_users_and_those_of_a_killed_driver_are_removed() {
        let above = tempfile::tempdir_in("/tmp").expect("a directory");
        let path = above.path().join("s");
        let directory = Directory::take(&path, None).expect("made");
        assert!(matches!(Directory::take(&path, None), Err(DirectoryError::InUse(_))), "one driver");
        let listener = directory.listen("m.sock").expect("a socket");
        assert_eq!(fs::metadata(path.join("m.sock")).expect("there").mode() & 0o777, 0o600);
        UnixStream::connect(path.join("m.sock")).expect("it listens");
        listener.accept().await.expect("a connection");
        drop(directory);
        fs::write(path.join("note"), "stays").expect("a file");
        let own = geteuid().as_raw();
        let directory = Directory::take(&path, Some(&nix::unistd::getegid().to_string())).expect("taken again");
        assert!(!path.join("m.sock").exists() && path.join("note").exists());
        let _listener = directory.listen("m.sock").expect("a socket");
        let found = fs::metadata(path.join("m.sock")).expect("there");
        assert_eq!((found.mode() & 0o777, found.uid()), (0o660, own));
        assert!(matches!(Directory::take(&path, Some("no such group")), Err(DirectoryError::NoGroup(_))));
    }
}
