//! Network namespaces, as `ip netns` keeps them: for tests, measurements and labs. All of it needs root.

use srdma_wire::MacAddress;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// A network namespace by its name. Dropping this value does not delete it; see [`Namespace::guarded`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: String,
}

/// A command that was not started or did not succeed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum CommandError {
    /// It could not be started.
    #[error("cannot start `{line}`: {error}; is the program installed?")]
    Start {
        /// The whole command line.
        line: String,
        error: io::Error,
    },
    /// It ended with another status than 0.
    #[error("`{line}` failed ({status}): {stderr}")]
    Failed {
        /// The whole command line.
        line: String,
        status: ExitStatus,
        /// Text of its standard error.
        stderr: String,
    },
    /// A namespace could not be entered, or a setting in it not be written.
    #[error("cannot {what}: {error}; this needs root")]
    System { what: String, error: io::Error },
}

impl Namespace {
    /// Makes a namespace with its loopback up, whose IPv6 addresses can be used at once, without duplicate address
    /// detection.
    ///
    /// # Errors
    ///
    /// If the name is taken, or this process is not root.
    pub fn create(name: &str) -> Result<Self, CommandError> {
        run(&mut Command::new("ip"), &["netns", "add", name])?;
        let namespace = Namespace { name: name.to_owned() };
        namespace.set_up().inspect_err(|_| {
            // The error that matters is the first one.
            let _ = namespace.clone().delete();
        })?;
        Ok(namespace)
    }

    /// A namespace that is there; `None` when it is not.
    pub fn existing(name: &str) -> Option<Self> {
        let namespace = Namespace { name: name.to_owned() };
        namespace.path().exists().then_some(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file of the namespace.
    pub fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    /// Runs a command inside to its end, and gives its output.
    ///
    /// # Errors
    ///
    /// If it cannot be started or fails.
    pub fn run(&self, words: &[&str]) -> Result<String, CommandError> {
        run(Command::new("ip").args(["netns", "exec", &self.name]), words)
    }

    /// A command that will run inside. Its process is the program itself, so that signals reach it.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Calls `action` inside the namespace, on a separate thread, and waits for it. Sockets opened there stay in the
    /// namespace, wherever they are used afterwards. A panic of `action` is resumed in the caller.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    pub fn enter<T: Send>(&self, action: impl FnOnce() -> T + Send) -> Result<T, CommandError> {
        let inside = || self.join().map(|()| action());
        match thread::scope(|scope| scope.spawn(inside).join()) {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Moves the calling thread into the namespace permanently: its sockets and child processes are created there.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    pub fn join(&self) -> Result<(), CommandError> {
        let error = |error| CommandError::System { what: format!("enter namespace {}", self.name), error };
        let file = File::open(self.path()).map_err(error)?;
        // SAFETY: setns takes an open descriptor and touches no memory of ours.
        match unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } {
            0 => Ok(()),
            _ => Err(error(io::Error::last_os_error())),
        }
    }

    /// Writes a setting below /proc/sys/net, such as `ipv6/conf/all/forwarding`.
    ///
    /// # Errors
    ///
    /// If there is no such setting, or the kernel refuses the value.
    pub fn set(&self, setting: &str, value: &str) -> Result<(), CommandError> {
        let path = Path::new("/proc/sys/net").join(setting);
        let error = |error| CommandError::System {
            what: format!("write {value} to {} in namespace {}", path.display(), self.name),
            error,
        };
        self.enter(|| fs::write(&path, value))?.map_err(error)
    }

    /// Deletes it, and with it the interfaces inside.
    ///
    /// # Errors
    ///
    /// If it does not exist any more.
    pub fn delete(self) -> Result<(), CommandError> {
        run(&mut Command::new("ip"), &["netns", "del", &self.name]).map(drop)
    }

    /// A value that deletes it when it is dropped, also after a panic.
    pub fn guarded(self) -> NamespaceGuard {
        NamespaceGuard { namespace: self }
    }

    fn set_up(&self) -> Result<(), CommandError> {
        self.set("ipv6/conf/all/accept_dad", "0")?;
        self.set("ipv6/conf/default/accept_dad", "0")?;
        self.run(&["ip", "link", "set", "lo", "up"]).map(drop)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A namespace that is deleted when this value is dropped.
#[derive(Debug)]
pub struct NamespaceGuard {
    namespace: Namespace,
}

impl NamespaceGuard {
    /// A new namespace with a [`unique_name`].
    ///
    /// # Errors
    ///
    /// As [`Namespace::create`].
    pub fn unique(prefix: &str) -> Result<Self, CommandError> {
        Namespace::create(&unique_name(prefix)).map(Namespace::guarded)
    }
}

impl Deref for NamespaceGuard {
    type Target = Namespace;

    fn deref(&self) -> &Namespace {
        &self.namespace
    }
}

impl Drop for NamespaceGuard {
    fn drop(&mut self) {
        // It may be gone already, and a drop cannot return an error.
        let _ = self.namespace.clone().delete();
    }
}

/// A name that no other process, and no other call in this one, uses: PREFIX-PID-NUMBER.
pub fn unique_name(prefix: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// One end of a [`veth`] link.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// The interface's namespace.
    pub namespace: &'a Namespace,
    /// The interface's name, at most 15 octets.
    pub interface: &'a str,
    /// Its address on the link; `None`: the kernel draws one.
    pub mac: Option<MacAddress>,
    /// IPv6 addresses with the length of their prefix, such as `2001:db8::1/64`.
    pub addresses: &'a [&'a str],
}

/// Makes a link between two namespaces, both ends up. Checksums are computed by the sender, as on a real wire, and no
/// segments are merged: a driver that sees the frames needs whole ones.
///
/// # Errors
///
/// If a command fails; interfaces that were created before it exist until their namespaces are deleted.
pub fn veth(mtu: u32, ends: [VethEnd<'_>; 2]) -> Result<(), CommandError> {
    let [a, b] = ends;
    let mtu = mtu.to_string();
    #[rustfmt::skip]
    let words = [
        "link", "add", a.interface, "netns", &a.namespace.name, "mtu", &mtu, "type", "veth",
        "peer", "name", b.interface, "netns", &b.namespace.name, "mtu", &mtu,
    ];
    run(&mut Command::new("ip"), &words)?;
    for end in ends {
        if let Some(mac) = end.mac {
            end.namespace.run(&["ip", "link", "set", end.interface, "address", &mac.to_string()])?;
        }
        end.namespace.run(&["ethtool", "-K", end.interface, "tx", "off", "tso", "off", "gso", "off", "gro", "off"])?;
        for address in end.addresses {
            end.namespace.run(&["ip", "-6", "address", "add", address, "dev", end.interface, "nodad"])?;
        }
        end.namespace.run(&["ip", "link", "set", end.interface, "up"])?;
    }
    Ok(())
}

/// Runs a command with more words to its end, and gives its output.
fn run(command: &mut Command, words: &[&str]) -> Result<String, CommandError> {
    let command = command.args(words).stdin(Stdio::null());
    let output = command.output().map_err(|error| CommandError::Start { line: line(command), error })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(CommandError::Failed { line: line(command), status: output.status, stderr })
}

/// The whole command line.
fn line(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn names_are_unique() {
        assert_ne!(unique_name("srdma-t"), unique_name("srdma-t"));
    }

    #[test]
    #[ignore = "needs root"]
    fn a_link_between_namespaces_carries_packets() {
        let [a, b] = [0, 1].map(|_| NamespaceGuard::unique("srdma-t").unwrap());
        let mac = Some(MacAddress([2, 0, 0, 0, 0, 0xA]));
        let ends = [
            VethEnd { namespace: &a, interface: "left", mac, addresses: &["2001:db8::1/64"] },
            VethEnd { namespace: &b, interface: "right", mac: None, addresses: &["2001:db8::2/64"] },
        ];
        veth(9000, ends).unwrap();
        let receiver = b.enter(|| UdpSocket::bind("[2001:db8::2]:9999")).unwrap().unwrap();
        let sender = a.enter(|| UdpSocket::bind("[2001:db8::1]:0")).unwrap().unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        sender.send_to(b"hello", "[2001:db8::2]:9999").unwrap();
        assert_eq!(receiver.recv(&mut [0; 9]).unwrap(), 5);
        let link = a.run(&["ip", "link", "show", "left"]).unwrap();
        assert!(link.contains("mtu 9000") && link.contains("02:00:00:00:00:0a"), "{link}");
    }

    #[test]
    #[ignore = "needs root"]
    fn failures_are_reported_and_a_guard_deletes() {
        let guard = NamespaceGuard::unique("srdma-t").unwrap();
        let name = guard.name().to_owned();
        let error = guard.run(&["ip", "link", "show", "nowhere"]).unwrap_err().to_string();
        assert!(error.contains("ip link show nowhere") && error.contains("does not exist"), "{error}");
        let inside = guard.enter(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
        assert_ne!(inside, fs::read_link("/proc/thread-self/ns/net").unwrap());
        drop(guard);
        assert_eq!(Namespace::existing(&name), None);
    }
}
