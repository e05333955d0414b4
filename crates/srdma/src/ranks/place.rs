//! Where the ranks of a host meet: a lock and a Unix socket in a directory of the user (D201).
//!
//! The rank that has the lock is the owner, and listens. The kernel releases the lock of a process that dies, so that
//! there is never more than one owner, and none is missing for long. The socket has a path, in a directory that no
//! other user can enter: the name of an abstract socket could be taken by any user.

use crate::device::GroupAddress;
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt};
use nix::unistd::geteuid;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::net::Ipv6Addr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The directory without another in the options.
fn default_directory() -> PathBuf {
    let user = geteuid();
    let of_user = PathBuf::from(format!("/run/user/{user}"));
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    match runtime.or_else(|| of_user.is_dir().then_some(of_user)) {
        Some(runtime) => runtime.join("srdma"),
        None => PathBuf::from(format!("/tmp/srdma-{user}")),
    }
}

/// Creates the directory if it is missing. Refused unless it is one of this user alone.
fn check_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(io::Error::other("it is no directory"));
    }
    if found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Err(io::Error::other("it is to be the user's, with mode 0700"));
    }
    Ok(())
}

/// The meeting place of the ranks of a host, for a group and an address.
#[derive(Clone, Debug)]
pub(super) struct Place {
    directory: PathBuf,
    name: String,
}

/// The lock of the owner.
#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code, reason = "the lock is released when the file is closed")] File);

impl Place {
    /// # Errors
    ///
    /// If the directory is not one of this user alone, or cannot be created.
    pub(super) fn of(directory: Option<&Path>, group: &GroupAddress, address: Ipv6Addr) -> Result<Self> {
        let directory = directory.map_or_else(default_directory, Path::to_owned);
        if let Err(error) = check_directory(&directory) {
            return Err(Error::RuntimeDirectory { path: directory, error });
        }
        // Groups of several controllers may have one number, and hosts in several network namespaces one address.
        let network = fs::metadata("/proc/self/ns/net").map_or(0, |metadata| metadata.ino());
        let mut hash = Sha256::new();
        hash.update(group.proxy.octets());
        hash.update(group.designated_qpn.get().to_be_bytes());
        hash.update(group.initial_psn.get().to_be_bytes());
        hash.update(network.to_be_bytes());
        let hash = hash.finalize();
        let others = hex::encode(hash.get(..8).unwrap_or_default());
        Ok(Place { directory, name: format!("{}-{address}-{others}", group.id) })
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.name))
    }

    fn error(&self, error: io::Error) -> Error {
        Error::RuntimeDirectory { path: self.directory.clone(), error }
    }

    /// Locks the place; `None` if another rank has.
    pub(super) fn try_lock(&self) -> Result<Option<Lock>> {
        // It stays: a file that is removed could be locked by one rank while another creates it.
        let file = File::options().create(true).truncate(false).write(true).open(self.path("lock"));
        let file = file.map_err(|error| self.error(error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.error(error)),
        }
    }

    /// Listens for other ranks.
    pub(super) fn listen(&self, lock: Lock) -> Result<Listener> {
        let path = self.path("sock");
        // One that a former owner has left.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(self.error(error)),
            Ok(()) | Err(_) => {}
        }
        let socket = UnixListener::bind(&path).and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        Ok(Listener { socket: socket.map_err(|error| self.error(error))?, path, _lock: lock })
    }

    /// Connects to the owner; `None` if none listens.
    pub(super) fn connect(&self) -> Result<Option<UnixStream>> {
        match connect_at_once(&self.path("sock")) {
            Ok(socket) => Ok(is_of_user(&socket).then_some(socket)),
            // The last: an owner that has stopped does not accept, and too many wait for it.
            Err(Errno::ENOENT | Errno::ECONNREFUSED | Errno::EAGAIN) => Ok(None),
            Err(error) => Err(self.error(error.into())),
        }
    }
}

/// Connects a socket that does not block.
fn connect_at_once(path: &Path) -> nix::Result<UnixStream> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket.into())
}

/// Whether the peer is a process of this user.
fn is_of_user(socket: &UnixStream) -> bool {
    getsockopt(socket, sockopt::PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw())
}

/// The socket of the owner.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: UnixListener,
    path: PathBuf,
    /// Released after the socket is removed.
    _lock: Lock,
}

impl Listener {
    /// The next rank that connects, with its process.
    ///
    /// # Errors
    ///
    /// As if there is no descriptor for it: it is still there.
    pub(super) fn accept(&self) -> io::Result<Option<(UnixStream, i32)>> {
        loop {
            match self.socket.accept() {
                Ok((socket, _)) if is_of_user(&socket) => {
                    let process = getsockopt(&socket, sockopt::PeerCredentials).map_or(0, |peer| peer.pid());
                    // A socket that blocks would stop the owner.
                    socket.set_nonblocking(true)?;
                    return Ok(Some((socket, process)));
                }
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // A rank that connects meanwhile is refused, or finds the next owner.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use srdma_wire::{PathMtu, Psn, Qpn};
    use std::os::unix::fs::{PermissionsExt, symlink};

    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

    fn group(initial_psn: u32) -> GroupAddress {
        GroupAddress {
            id: 7,
            proxy: ADDRESS,
            designated_qpn: Qpn::new(0x100).expect("24 bits"),
            initial_psn: Psn::new(initial_psn),
            path_mtu: PathMtu::Octets4096,
            window: 16,
        }
    }

    /// A place in a directory of a test.
    pub(in crate::ranks) fn place(directory: &Path) -> Place {
        Place::of(Some(&directory.join("srdma")), &group(1), ADDRESS).expect("a place")
    }

    #[test]
    fn there_is_one_owner_and_the_next_one_follows() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        assert!(place.connect().expect("no error").is_none(), "it has no listener");
        let lock = place.try_lock().expect("no error").expect("free");
        assert!(place.try_lock().expect("no error").is_none());
        let listener = place.listen(lock).expect("a socket");
        assert!(listener.accept().expect("no error").is_none());
        let rank = place.connect().expect("no error").expect("it listens");
        let (owner, process) = listener.accept().expect("no error").expect("a rank");
        assert_eq!(process, std::process::id() as i32);
        drop((rank, owner, listener));
        assert!(place.connect().expect("no error").is_none());
        // A process that dies leaves its socket.
        drop(UnixListener::bind(place.path("sock")).expect("a socket"));
        assert!(place.connect().expect("no error").is_none());
        let lock = place.try_lock().expect("no error").expect("free again");
        let _listener = place.listen(lock).expect("a socket");
        assert!(place.connect().expect("no error").is_some());
        // It does not accept: nothing blocks.
        let waiting: Vec<UnixStream> = std::iter::from_fn(|| place.connect().expect("no error")).collect();
        assert!(!waiting.is_empty());
    }

    #[test]
    fn places_differ_by_group_and_address() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("srdma");
        let name = |psn, address| Place::of(Some(&path), &group(psn), address).expect("a place").name;
        assert_eq!(name(1, ADDRESS), name(1, ADDRESS));
        assert!(name(1, ADDRESS).starts_with("7-2001:db8::1-"));
        assert_ne!(name(1, ADDRESS), name(2, ADDRESS));
        assert_ne!(name(1, ADDRESS), name(1, Ipv6Addr::LOCALHOST));
    }

    #[test]
    fn a_directory_that_others_may_use_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let refused = |path: &Path| {
            let error = Place::of(Some(path), &group(1), ADDRESS).expect_err("refused").to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
            error
        };
        let open = directory.path().join("open");
        fs::create_dir(&open).expect("a directory");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("permissions");
        assert!(refused(&open).ends_with("it is to be the user's, with mode 0700"));
        let link = directory.path().join("link");
        place(directory.path());
        symlink(directory.path().join("srdma"), &link).expect("a link");
        assert!(refused(&link).ends_with("it is no directory"));
        refused(&directory.path().join("missing/srdma"));
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x".repeat(100));
        let place = Place::of(Some(&path), &group(1), ADDRESS).expect("a place");
        let lock = place.try_lock().expect("no error").expect("free");
        let error = place.listen(lock).expect_err("too long").to_string();
        assert!(error.contains("SUN_LEN"), "{error}");
    }
}
