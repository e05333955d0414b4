//! Properties of an interface that sockets need.

use libc::{c_char, c_int};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The kernel's number of an interface in the namespace of the calling thread.
///
/// # Errors
///
/// If no interface has this name.
pub fn index(interface: &str) -> io::Result<u32> {
    let name = CString::new(interface).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: the name ends in a zero octet.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Numbers of queues of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queues {
    pub(crate) receive: u32,
    pub(crate) transmit: u32,
}

/// Queues of an interface; one each when its driver does not report it.
pub(crate) fn queues(interface: &str) -> Queues {
    channels(interface).map_or(Queues { receive: 1, transmit: 1 }, |channels| Queues {
        receive: (channels.rx_count + channels.combined_count).max(1),
        transmit: (channels.tx_count + channels.combined_count).max(1),
    })
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max_rx: u32,
    max_tx: u32,
    max_other: u32,
    max_combined: u32,
    rx_count: u32,
    tx_count: u32,
    other_count: u32,
    combined_count: u32,
}

fn channels(interface: &str) -> io::Result<Channels> {
    const ETHTOOL_GCHANNELS: u32 = 0x3c;
    let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
    // SAFETY: the command writes a `struct ethtool_channels`.
    unsafe { ethtool(interface, (&raw mut channels).cast()) }?;
    Ok(channels)
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Whether an interface takes the VLAN tag off a received frame, and passes it beside the frame (`rxvlan` of `ethtool
/// -k`). AF_XDP then does not see it.
///
/// # Errors
///
/// There is no such interface, or its driver does not say.
pub fn takes_vlan_tags_off(interface: &str) -> io::Result<bool> {
    const ETHTOOL_GFLAGS: u32 = 0x25;
    const ETH_FLAG_RXVLAN: u32 = 1 << 8;
    let mut flags = EthtoolValue { command: ETHTOOL_GFLAGS, data: 0 };
    // SAFETY: the command writes a `struct ethtool_value`.
    unsafe { ethtool(interface, (&raw mut flags).cast()) }?;
    Ok(flags.data & ETH_FLAG_RXVLAN != 0)
}

/// Runs a command of ethtool.
///
/// # Safety
///
/// `data` points to the structure that the command in its first field reads and writes.
unsafe fn ethtool(interface: &str, data: *mut c_char) -> io::Result<()> {
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and not owned elsewhere.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: any octets are a request; zero is an empty name and no pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        *to = from as c_char;
    }
    request.ifr_ifru.ifru_data = data;
    // SAFETY: the caller vouches for what the request points to.
    let result: c_int = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
