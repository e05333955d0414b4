//! Errors of this crate.

use crate::gid::GidProblem;
use crate::sys::{self, LoadError};
use std::fmt;
use std::io;
use std::net::Ipv6Addr;
use thiserror::Error;

/// Result of this crate's calls.
pub type Result<T, E = VerbsError> = std::result::Result<T, E>;

/// Why a call has failed, and what can be done about it.
#[derive(Debug, Error)]
pub enum VerbsError {
    /// The shared library is not installed.
    #[error(
        "cannot load {library}: {reason}; install it (Debian and Ubuntu: apt-get install libibverbs1 \
         ibverbs-providers; Fedora and RHEL: dnf install libibverbs)"
    )]
    LibraryMissing {
        /// Name of the library.
        library: String,
        /// The dynamic linker's reason.
        reason: String,
    },
    /// The shared library lacks a function.
    #[error("{library} has no function {symbol}: rdma-core 32 or later is needed")]
    LibraryTooOld {
        /// Name of the library.
        library: String,
        /// The first function that was not found.
        symbol: &'static str,
    },
    /// The kernel has no RDMA.
    #[error("the kernel has no RDMA: load its module (modprobe ib_uverbs), or use a kernel that has it")]
    NoRdmaInKernel,
    /// There is no device.
    #[error(
        "this machine has no RDMA device (`rdma link` lists them): the NIC's driver is not loaded, the container was \
         not given /dev/infiniband, or soft-RoCE is to be added (rdma link add rxe0 type rxe netdev INTERFACE)"
    )]
    NoDevice,
    /// There is no device of this name.
    #[error("there is no RDMA device {name}; devices: {}", present.join(", "))]
    NoSuchDevice {
        /// The name.
        name: String,
        /// Names of the devices that exist.
        present: Vec<String>,
    },
    /// No port has this address.
    #[error("no RDMA device for address {}: {problem}", .address.to_canonical())]
    NoSuchAddress {
        /// The address.
        address: Ipv6Addr,
        /// The reason.
        problem: GidProblem,
    },
    /// A port is down.
    #[error("port {port} of {device} is not active: set its interface up, or connect its cable")]
    PortDown {
        /// The device.
        device: String,
        /// Its port, from 1.
        port: u8,
    },
    /// The process lacks a permission.
    #[error(
        "{device}: cannot {action}: {error}; read and write access to /dev/infiniband/uverbs* is needed (a udev rule, \
         the device in the container), and the process needs the device's network namespace"
    )]
    NotPermitted {
        /// The device, or "RDMA devices".
        device: String,
        /// What was tried.
        action: String,
        /// The kernel's reason.
        error: io::Error,
    },
    /// Memory cannot be locked.
    #[error("{device}: cannot register {octets} octets: they do not fit {}", LockedMemoryLimit(*limit_octets))]
    LockedMemory {
        /// The device.
        device: String,
        /// Length of the memory.
        octets: usize,
        /// `RLIMIT_MEMLOCK`; `None` without a limit.
        limit_octets: Option<u64>,
    },
    /// The device does not support a function.
    #[error("{device}: cannot {action}: not supported by the device, its kernel driver or libibverbs")]
    NotSupported {
        /// The device.
        device: String,
        /// What was tried.
        action: String,
    },
    /// Address resolution of a queue pair's destination had no answer.
    #[error(
        "{device}: no answer to neighbour discovery for {}: check the address, that the host with it or the next hop \
         of the route to it is up, and that ICMPv6 or ARP passes (ip neighbour)", .destination.to_canonical()
    )]
    DestinationUnresolved {
        /// The device.
        device: String,
        /// Destination of the queue pair.
        destination: Ipv6Addr,
    },
    /// There is no route to a queue pair's destination.
    #[error(
        "{device}: no route to {0} from the interface of its address (ip route get {0}): add a route by that interface",
        .destination.to_canonical()
    )]
    DestinationUnreachable {
        /// The device.
        device: String,
        /// Destination of the queue pair.
        destination: Ipv6Addr,
    },
    /// The port's MTU is too small.
    #[error(
        "{device}: path MTU {path_mtu_octets} does not fit port {port}, whose interface's MTU allows \
         {active_mtu_octets}: set a greater MTU of the interface (path MTU 4096 needs 4,200), or use a smaller path MTU"
    )]
    PathMtu {
        /// The device.
        device: String,
        /// Its port, from 1.
        port: u8,
        /// Path MTU of the queue pair.
        path_mtu_octets: u32,
        /// The port's.
        active_mtu_octets: u32,
    },
    /// A queue has no room for another request.
    #[error("{device}: the {queue} queue of queue pair {qpn:#08x} is full: poll completions before the next request")]
    QueueFull {
        /// The device.
        device: String,
        /// Number of the queue pair.
        qpn: u32,
        /// "send" or "receive".
        queue: &'static str,
    },
    /// A range is not in its region.
    #[error("octets {start} to {end} are not in the memory region, which has {octets}; an element has 1 to 2^32 - 1")]
    NotInRegion {
        /// First octet of the range.
        start: usize,
        /// End of the range.
        end: usize,
        /// Length of the region.
        octets: usize,
    },
    /// A value is out of range.
    #[error("{what} is {value}, at most {most}")]
    TooLarge {
        /// Name of the value.
        what: &'static str,
        /// The value.
        value: u32,
        /// The greatest that is valid.
        most: u32,
    },
    /// The device was opened before fork(2).
    #[error("the RDMA device was opened by the parent of this process: open it again after fork")]
    Forked,
    /// The device has vanished.
    #[error("{device} has failed or was removed: cannot {action}: {error}; open it again when `rdma link` lists it")]
    DeviceGone {
        /// The device.
        device: String,
        /// What was tried.
        action: String,
        /// The kernel's reason.
        error: io::Error,
    },
    /// Any other failure.
    #[error("{device}: cannot {action}: {error}")]
    System {
        /// The device, or "RDMA devices".
        device: String,
        /// What was tried.
        action: String,
        /// The reason of libibverbs or the kernel.
        error: io::Error,
    },
}

/// The limit of locked memory as the end of a sentence.
struct LockedMemoryLimit(Option<u64>);

impl fmt::Display for LockedMemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(octets) => write!(
                f,
                "the limit of locked memory, RLIMIT_MEMLOCK, of {octets} octets for all regions: raise it (ulimit -l \
                 in KiB, LimitMEMLOCK= of a systemd unit, --ulimit memlock= of a container), or give the process \
                 CAP_IPC_LOCK"
            ),
            None => write!(f, "this machine's free memory (the process has no limit of locked memory)"),
        }
    }
}

impl VerbsError {
    pub(crate) fn load(library: &str, error: LoadError) -> Self {
        let library = library.to_owned();
        match error {
            LoadError::Missing(reason) => VerbsError::LibraryMissing { library, reason },
            LoadError::Symbol(symbol) => VerbsError::LibraryTooOld { library, symbol },
        }
    }

    /// The error of a call for a device.
    pub(crate) fn of(device: &str, action: impl Into<String>, error: sys::Error) -> Self {
        let error = match error {
            sys::Error::Forked => return VerbsError::Forked,
            sys::Error::System(error) => error,
        };
        let (device, action) = (device.to_owned(), action.into());
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => VerbsError::NotPermitted { device, action, error },
            Some(libc::EIO | libc::ENODEV | libc::ENXIO) => VerbsError::DeviceGone { device, action, error },
            Some(libc::EOPNOTSUPP) => VerbsError::NotSupported { device, action },
            _ => VerbsError::System { device, action, error },
        }
    }

    /// The error of listing devices.
    pub(crate) fn list(error: sys::Error) -> Self {
        match error {
            sys::Error::System(error) if error.raw_os_error() == Some(libc::ENOSYS) => VerbsError::NoRdmaInKernel,
            error => VerbsError::of("RDMA devices", "list them", error),
        }
    }
}

/// The error number, if the kernel gave one.
pub(crate) fn number(error: &sys::Error) -> Option<i32> {
    match error {
        sys::Error::Forked => None,
        sys::Error::System(error) => error.raw_os_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Library;

    fn of(number: i32) -> VerbsError {
        VerbsError::of("rxe0", "create a queue pair", sys::Error::System(io::Error::from_raw_os_error(number)))
    }

    #[test]
    fn a_missing_library_is_named_with_its_package() {
        let error = Library::load("libno-verbs.so.1").expect_err("no such library");
        let text = VerbsError::load("libno-verbs.so.1", error).to_string();
        assert!(text.starts_with("cannot load libno-verbs.so.1: "), "{text}");
        assert!(text.contains("cannot open shared object file"), "{text}");
        assert!(text.contains("apt-get install libibverbs1 ibverbs-providers"), "{text}");
    }

    #[test]
    fn a_library_without_the_functions_is_too_old() {
        let error = Library::load("libc.so.6").expect_err("it is another library");
        let text = VerbsError::load("libc.so.6", error).to_string();
        assert_eq!(text, "libc.so.6 has no function ibv_get_device_list: rdma-core 32 or later is needed");
    }

    #[test]
    fn kernel_errors_are_classified() {
        assert!(matches!(of(libc::EPERM), VerbsError::NotPermitted { .. }));
        assert!(matches!(of(libc::EACCES), VerbsError::NotPermitted { .. }));
        assert!(matches!(of(libc::EIO), VerbsError::DeviceGone { .. }));
        assert!(matches!(of(libc::ENODEV), VerbsError::DeviceGone { .. }));
        assert!(matches!(of(libc::EOPNOTSUPP), VerbsError::NotSupported { .. }));
        assert_eq!(of(libc::EINVAL).to_string(), "rxe0: cannot create a queue pair: Invalid argument (os error 22)");
        assert!(matches!(VerbsError::of("rxe0", "poll", sys::Error::Forked), VerbsError::Forked));
        let enosys = sys::Error::System(io::Error::from_raw_os_error(libc::ENOSYS));
        assert!(matches!(VerbsError::list(enosys), VerbsError::NoRdmaInKernel));
    }

    #[test]
    fn the_limit_of_locked_memory_is_stated() {
        let error = |limit_octets| VerbsError::LockedMemory { device: "rxe0".to_owned(), octets: 65536, limit_octets };
        let text = error(Some(8192)).to_string();
        assert!(text.contains("RLIMIT_MEMLOCK, of 8192 octets") && text.contains("LimitMEMLOCK="), "{text}");
        assert!(error(None).to_string().contains("no limit of locked memory"));
    }
}
