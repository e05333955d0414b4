//! IPv6 packets with headers of our own, by the kernel's routes.

use crate::packet_socket;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, OwnedFd};

/// A raw socket for whole IPv6 packets: the kernel routes them by their destination address and adds nothing but the
/// link's header.
#[derive(Debug)]
pub struct Ipv6Sender(OwnedFd);

/// Octets of an IPv6 header.
const IPV6: usize = 40;

impl Ipv6Sender {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// If the process may not: it takes CAP_NET_RAW.
    pub fn open() -> io::Result<Self> {
        // IPPROTO_RAW: packets come with their IPv6 header, and none is received (ipv6(7), raw(7)).
        packet_socket::open_of(libc::AF_INET6, libc::IPPROTO_RAW).map(Ipv6Sender)
    }

    /// Sends a whole packet, from its IPv6 header on.
    ///
    /// # Errors
    ///
    /// A packet shorter than a header; no route to its destination, an interface that is down, or no room.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        let destination: Option<[u8; 16]> = packet.get(24..IPV6).and_then(|octets| octets.try_into().ok());
        let destination = destination.ok_or(io::ErrorKind::InvalidInput)?;
        let address = libc::sockaddr_in6 {
            sin6_family: libc::AF_INET6 as u16,
            sin6_port: 0,
            sin6_flowinfo: 0,
            sin6_addr: libc::in6_addr { s6_addr: Ipv6Addr::from(destination).octets() },
            sin6_scope_id: 0,
        };
        // SAFETY: the packet and the address can be read for the lengths that are given, and outlive the call.
        let sent = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                0,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_in6>() as libc::socklen_t,
            )
        };
        if sent >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
