//! Exclusive use of an interface by one process, and the error for a second one.

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// Exclusive claim on an interface for the lifetime of the value.
///
/// It is a socket with an abstract name: the kernel keeps one set of names for each network namespace, as it does for
/// interfaces, removes the name with the process, however that ends, and reports the owner to others.
#[derive(Debug)]
pub(super) struct Claim {
    listener: UnixListener,
}

/// Reasons for which an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimError {
    /// Another process has it.
    #[error("interface {interface} is already used by {owner}")]
    InUse { interface: String, owner: String },
    /// The kernel does not report the owner.
    #[error("interface {interface}: cannot find out whether another process uses it: {error}")]
    Unknown { interface: String, error: io::Error },
}

impl Claim {
    /// Makes this process the first of the network namespace; `None` when there is one.
    pub(super) fn of_namespace() -> Option<Self> {
        let name = SocketAddr::from_abstract_name("srdma/namespace").ok()?;
        Some(Claim { listener: UnixListener::bind_addr(&name).ok()? })
    }

    /// Claims an interface of the network namespace that the thread is in.
    pub(super) fn of(interface: &str) -> Result<Self, ClaimError> {
        let unknown = |error| ClaimError::Unknown { interface: interface.to_owned(), error };
        let name = SocketAddr::from_abstract_name(format!("srdma/interface/{interface}")).map_err(unknown)?;
        match UnixListener::bind_addr(&name) {
            Ok(listener) => {
                listener.set_nonblocking(true).map_err(unknown)?;
                Ok(Claim { listener })
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                Err(ClaimError::InUse { interface: interface.to_owned(), owner: owner(&name) })
            }
            Err(error) => Err(unknown(error)),
        }
    }

    /// Closes the connections of processes that requested the owner, so that there is always room for the next one.
    pub(super) fn dismiss_callers(&self) {
        while self.listener.accept().is_ok() {}
    }
}

/// The process behind a name, and how it was started.
fn owner(name: &SocketAddr) -> String {
    let peer = UnixStream::connect_addr(name).and_then(|stream| Ok(getsockopt(&stream, PeerCredentials)?));
    let Ok(pid) = peer.map(|credentials| credentials.pid()) else {
        return "another process".to_owned();
    };
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
    if command.is_empty() { format!("process {pid}") } else { format!("process {pid} ({command})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_claim_names_the_first() {
        let interface = format!("t{}", std::process::id());
        let claim = Claim::of(&interface).expect("free");
        let refused = Claim::of(&interface).expect_err("taken").to_string();
        let expected = format!("interface {interface} is already used by process {} (", std::process::id());
        assert!(refused.starts_with(&expected), "{refused}");
        drop(claim);
        Claim::of(&interface).expect("free again");
    }
}
