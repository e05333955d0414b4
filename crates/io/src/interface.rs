//! Properties of an interface that sockets need.

use libc::{c_char, c_int};
use srdma_wire::MacAddress;
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

/// The MAC address of an interface, in the namespace of the calling thread; `None` where addresses are of another kind.
///
/// # Errors
///
/// There is no such interface.
pub fn mac(interface: &str) -> io::Result<Option<MacAddress>> {
    let mut request = request(interface);
    // SAFETY: the command writes an address to the request.
    unsafe { control(libc::SIOCGIFHWADDR, &mut request) }?;
    // SAFETY: that member was written.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    let octets = std::array::from_fn(|at| address.sa_data[at] as u8);
    Ok((address.sa_family == libc::ARPHRD_ETHER).then_some(MacAddress(octets)))
}

/// The MTU of an interface, in the namespace of the calling thread.
///
/// # Errors
///
/// There is no such interface.
pub fn mtu(interface: &str) -> io::Result<usize> {
    let mut request = request(interface);
    // SAFETY: the command writes a number to the request.
    unsafe { control(libc::SIOCGIFMTU, &mut request) }?;
    // SAFETY: that member was written.
    Ok(usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}

/// Runs a command of ethtool.
///
/// # Safety
///
/// `data` points to the structure that the command in its first field reads and writes.
unsafe fn ethtool(interface: &str, data: *mut c_char) -> io::Result<()> {
    let mut request = request(interface);
    request.ifr_ifru.ifru_data = data;
    // SAFETY: the caller vouches for what the request points to.
    unsafe { control(libc::SIOCETHTOOL, &mut request) }
}

/// A request about an interface. A name that is too long is that of none.
fn request(interface: &str) -> libc::ifreq {
    // SAFETY: any octets are a request; zero is an empty name and no pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() < libc::IFNAMSIZ {
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as c_char;
        }
    }
    request
}

/// Runs a command on a request.
///
/// # Safety
///
/// What the command takes from the request is valid.
unsafe fn control(command: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and not owned elsewhere.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the caller vouches for the request.
    let result: c_int = unsafe { libc::ioctl(socket.as_raw_fd(), command as _, &raw mut *request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_an_mtu() {
        assert_eq!(mac("lo").unwrap(), None);
        assert_eq!(mtu("lo").unwrap().to_string(), std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim());
    }

    #[test]
    fn names_of_no_interface_are_errors() {
        for name in ["", "srdma-none", "srdma-a-name-that-is-too-long"] {
            assert!(mac(name).is_err() && mtu(name).is_err() && index(name).is_err(), "{name}");
        }
    }
}
