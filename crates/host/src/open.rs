//! Opening the wire of a connection: a UDP socket, or a packet driver on an interface.

use crate::connection::Connection;
use crate::raw_wire::{RawWire, RawWireConfig};
use crate::udp_wire::{UdpWire, UdpWireConfig};
use crate::wire::Wire;
use srdma_io::udp::Segmentation;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::translation::LONGER;
use srdma_wire::{MacAddress, PathMtu};
use std::io;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};

/// Packets that a packet driver buffers, whatever their length.
const RAW_WINDOW: u32 = 128;

/// Parameters of a wire.
#[derive(Clone, Copy, Debug)]
pub struct WireOptions<'a> {
    /// The interface of a packet driver; `None` for a UDP socket.
    pub raw: Option<RawInterface<'a>>,
    /// Addresses of both ends, and the path MTU.
    pub connection: &'a Connection,
    /// Segmentation of bursts by a UDP socket.
    pub segmentation: Segmentation,
    /// Receive buffer of a UDP socket, as far as the system allows.
    pub buffer_octets: u32,
    /// Length of the longest packet, with the headers of its path.
    pub max_packet_octets: usize,
    /// Destination of returning path probes.
    pub probe_address: Option<Ipv6Addr>,
}

/// An interface, and the next hop toward the peer there.
#[derive(Clone, Copy, Debug)]
pub struct RawInterface<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// MAC address of the next hop.
    pub next_hop: MacAddress,
}

/// Reason for which a wire cannot be opened or no longer be used.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("no route to {peer}: {error}")]
    NoRoute { peer: Ipv6Addr, error: io::Error },
    /// The route to the peer is over IPv4.
    #[error("the source address toward {peer} is {address}, which is not an IPv6 address")]
    NotIpv6 {
        peer: Ipv6Addr,
        /// The source address that the kernel chooses.
        address: IpAddr,
    },
    /// What needs extension headers is for IPv6 (D274).
    #[error("an IPv4 address: {0} is for IPv6, by its extension headers")]
    NeedsIpv6(&'static str),
    /// The UDP port is in use.
    #[error("another RoCEv2 endpoint uses UDP port {ROCEV2_PORT} on {}", .0.to_canonical())]
    InUse(Ipv6Addr),
    /// The address is not usable.
    #[error("{} is not an address of this host, or is still tentative: see `ip address`", .0.to_canonical())]
    NotAvailable(Ipv6Addr),
    /// The interface does not exist.
    #[error("--raw: there is no interface {0}; `ip link` lists the interfaces")]
    NoInterface(String),
    /// The interface has no unicast MAC address.
    #[error("--raw: interface {0} has no unicast MAC address")]
    NoMac(String),
    /// The interface's MTU is too small.
    #[error(
        "--raw: packets of path MTU {path_mtu} take up to {packet_octets} octets, interface {interface} has MTU {mtu}: \
         raise it, or choose a smaller --path-mtu"
    )]
    Mtu {
        interface: String,
        mtu: usize,
        /// Payload of a full packet.
        path_mtu: u32,
        /// Length of the longest packet.
        packet_octets: usize,
    },
    /// The link's MTU is too small.
    #[error(
        "packets of path MTU {path_mtu} do not fit the link toward {peer}: raise its MTU to {needed} or more, or \
         choose a smaller --path-mtu"
    )]
    LinkMtu {
        peer: Ipv6Addr,
        /// Payload of a full packet.
        path_mtu: u32,
        /// MTU that is enough.
        needed: u32,
    },
    /// The message of a packet driver or socket.
    #[error("{0}")]
    Driver(io::Error),
    /// The port cannot be opened.
    #[error("cannot open UDP port {ROCEV2_PORT} on {address}: {error}")]
    Open { address: Ipv6Addr, error: io::Error },
    /// The socket failed during a transfer.
    #[error("the socket failed: {0}")]
    Failed(io::Error),
}

/// The address of this host that the kernel chooses for packets to `peer`.
///
/// # Errors
///
/// If there is no route, or none over IPv6.
pub fn source_address(peer: Ipv6Addr) -> Result<Ipv6Addr, WireError> {
    let route = || {
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
        socket.connect((peer, ROCEV2_PORT))?;
        socket.local_addr()
    };
    match route().map_err(|error| WireError::NoRoute { peer, error })?.ip() {
        IpAddr::V6(address) => Ok(address),
        address @ IpAddr::V4(_) => Err(WireError::NotIpv6 { peer, address }),
    }
}

/// The address of this host, if it has a single global one.
pub fn only_address() -> Option<Ipv6Addr> {
    // Of the thread's network namespace.
    let addresses = std::fs::read_to_string("/proc/thread-self/net/if_inet6").ok()?;
    let mut addresses = addresses.lines().filter_map(global_address);
    addresses.next().filter(|_| addresses.next().is_none())
}

/// The address of a line of if_inet6, if it is a global one that can be used: 32 hexadecimal digits, the interface's
/// index, the prefix length, the scope, the flags, the interface's name.
fn global_address(line: &str) -> Option<Ipv6Addr> {
    const GLOBAL: u8 = 0;
    /// IFA_F_DADFAILED, IFA_F_DEPRECATED and IFA_F_TENTATIVE.
    const UNUSABLE: u8 = 0x08 | 0x20 | 0x40;
    let mut fields = line.split_ascii_whitespace();
    let address = u128::from_str_radix(fields.next()?, 16).ok()?;
    let scope = u8::from_str_radix(fields.nth(2)?, 16).ok()?;
    let flags = u8::from_str_radix(fields.next()?, 16).ok()?;
    (scope == GLOBAL && flags & UNUSABLE == 0).then_some(Ipv6Addr::from_bits(address))
}

impl WireOptions<'_> {
    /// Opens the wire; returns it with the number of packets that it can buffer.
    ///
    /// # Errors
    ///
    /// If the interface or socket cannot be used.
    pub fn open(self) -> Result<(Box<dyn Wire>, u32), WireError> {
        let WireOptions { raw, connection, max_packet_octets, .. } = self;
        let Some(RawInterface { name, next_hop }) = raw else {
            let (wire, window) = self.open_udp()?;
            return Ok((Box::new(wire), window));
        };
        let config = RawWireConfig {
            interface: name.to_owned(),
            address: connection.address,
            mac: mac_of(name)?,
            next_hop,
            max_packet_octets,
            probe_address: self.probe_address,
        };
        let is_ipv4 = connection.address.to_ipv4_mapped().is_some();
        check_mtu(name, connection.path_mtu, max_packet_octets - if is_ipv4 { LONGER } else { 0 })?;
        let wire = RawWire::new(&config).map_err(|error| WireError::opening(connection.address, error))?;
        Ok((Box::new(wire), RAW_WINDOW))
    }

    /// Opens a UDP socket, whatever `raw`; returns it with the number of packets that it can buffer.
    ///
    /// # Errors
    ///
    /// If the socket cannot be used.
    pub fn open_udp(self) -> Result<(UdpWire, u32), WireError> {
        let connection = self.connection;
        let wire = UdpWire::new(&UdpWireConfig {
            address: connection.address,
            peer: connection.peer_address,
            port: ROCEV2_PORT,
            peer_port: ROCEV2_PORT,
            segmentation: self.segmentation,
            buffer_octets: self.buffer_octets,
            max_packet_octets: self.max_packet_octets,
        })
        .map_err(|error| match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                WireError::NoRoute { peer: connection.peer_address, error }
            }
            _ => WireError::opening(connection.address, error),
        })?;
        let window = wire.receive_window(connection.path_mtu.octets());
        Ok((wire, window))
    }
}

impl WireError {
    fn opening(address: Ipv6Addr, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => WireError::InUse(address),
            io::ErrorKind::AddrNotAvailable => WireError::NotAvailable(address),
            io::ErrorKind::Other => WireError::Driver(error),
            _ => WireError::Open { address, error },
        }
    }

    /// The error of a transfer over an open wire.
    pub fn during_transfer(error: io::Error, connection: &Connection) -> Self {
        const MESSAGE_TOO_LONG: i32 = 90;
        let path_mtu = connection.path_mtu.octets();
        match error.raw_os_error() {
            Some(MESSAGE_TOO_LONG) => {
                WireError::LinkMtu { peer: connection.peer_address, path_mtu, needed: path_mtu + 104 }
            }
            _ => WireError::Failed(error),
        }
    }
}

fn mac_of(interface: &str) -> Result<MacAddress, WireError> {
    let mac = srdma_io::interface_mac(interface).map_err(|_| WireError::NoInterface(interface.to_owned()))?;
    mac.filter(|mac| !mac.is_group()).ok_or_else(|| WireError::NoMac(interface.to_owned()))
}

/// A packet socket drops packets beyond the MTU.
fn check_mtu(interface: &str, path_mtu: PathMtu, packet_octets: usize) -> Result<(), WireError> {
    match srdma_io::interface_mtu(interface) {
        Ok(mtu) if mtu < packet_octets => {
            Err(WireError::Mtu { interface: interface.to_owned(), mtu, path_mtu: path_mtu.octets(), packet_octets })
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A unicast MAC address: six pairs of hexadecimal digits with colons between them.
pub fn parse_mac(text: &str) -> Option<MacAddress> {
    let octets = text.split(':').map(|digits| {
        let is_octet = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(digits, 16).ok().filter(|_| is_octet)
    });
    let octets = octets.collect::<Option<Vec<u8>>>().and_then(|octets| <[u8; 6]>::try_from(octets).ok());
    octets.map(MacAddress).filter(|mac| !mac.is_group())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_six_pairs_of_digits_and_unicast() {
        assert_eq!(parse_mac("02:00:00:00:0a:01"), Some(MacAddress([2, 0, 0, 0, 10, 1])));
        for wrong in ["", "02:00:00:00:00", "33:33:00:00:00:01", "2:0:0:0:0:1", "02:00:00:00:00:+1"] {
            assert_eq!(parse_mac(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn global_addresses_are_those_that_can_be_used() {
        let of = |rest: &str| global_address(&format!("20010db800aa00000000000000000001 {rest}"));
        assert_eq!(of("02 40 00 80     eth0"), Some("2001:db8:aa::1".parse().unwrap()));
        for unusable in ["02 40 20 80     eth0", "01 80 10 80       lo", "02 40 00 c0     eth0", "02 40 00 a0     eth0"]
        {
            assert_eq!(of(unusable), None, "{unusable}");
        }
        for line in ["", "2001", "20010db800aa00000000000000000001 02 40", "x 02 40 00 80 eth0"] {
            assert_eq!(global_address(line), None, "{line}");
        }
    }
}
