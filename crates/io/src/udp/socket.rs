//! The socket and its options.

use crate::socket_option;
use socket2::{Domain, Socket, Type};
use std::ffi::c_int;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// Segmentation of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// Each packet is passed to the kernel by itself, and has no checksum.
    Software,
    /// The kernel, or the interface, cuts packets of equal length from one long one, and gives each a checksum. Where a
    /// packet does not leave the machine neither may happen; only sockets understand that, packet drivers may not.
    Offload,
}

/// A UDP socket that never blocks, never fragments and reads and writes in batches.
#[derive(Debug)]
pub struct UdpSocket {
    socket: std::net::UdpSocket,
    local: SocketAddrV6,
    segmentation: Segmentation,
    /// Keeps a second socket from the same pair of addresses.
    _claim: Option<UnixDatagram>,
}

impl UdpSocket {
    /// A socket at an address of this host, of IPv4 if it is IPv4-mapped. Port 0 means any free one.
    ///
    /// # Errors
    ///
    /// Those of `bind`: `AddrInUse`, `AddrNotAvailable`, `PermissionDenied`; and an option that the kernel does not
    /// have.
    pub fn bind(address: Ipv6Addr, port: u16, segmentation: Segmentation) -> io::Result<Self> {
        Self::with_options(std::net::UdpSocket::bind((address, port))?, None, segmentation)
    }

    /// A socket at an address and port of this host that receives from the address `peer` alone, from any port of it.
    /// Sockets toward other peers, also those of other processes of the user, may have the same address and port, but
    /// for a port that the kernel chose, for port 0.
    ///
    /// Several sockets toward different peers may share the address (D200). One at an IPv4-mapped address receives from
    /// all peers, does not share it, and segments in software.
    ///
    /// # Errors
    ///
    /// Those of [`UdpSocket::bind`], `AddrInUse` also for a socket toward the same peer; and those of `connect`, such
    /// as that there is no route to the peer.
    pub fn bind_toward(address: Ipv6Addr, port: u16, peer: Ipv6Addr, segmentation: Segmentation) -> io::Result<Self> {
        if is_ipv4(address) {
            // The kernel numbers the datagrams of a connected socket, and the ICRC covers the numbers (D275).
            return Self::bind(address, port, Segmentation::Software);
        }
        let socket = Socket::new(Domain::IPV6, Type::DGRAM, None)?;
        // A port that several sockets may have is named: the kernel would choose one among those in use.
        socket.set_reuse_port(port != 0)?;
        socket.bind(&SocketAddr::from((address, port)).into())?;
        let local = socket.local_addr()?.as_socket_ipv6().ok_or(io::ErrorKind::Unsupported)?;
        // The kernel would take a second one, and give it all that comes. Such names are those of a network namespace.
        let name = format!("srdma udp {local} {peer}");
        let claim = UnixDatagram::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)?;
        // Port 0 is any port: the kernel then compares the address alone.
        socket.connect(&SocketAddr::from((peer, 0)).into())?;
        Self::with_options(socket.into(), Some(claim), segmentation)
    }

    fn with_options(
        socket: std::net::UdpSocket,
        claim: Option<UnixDatagram>,
        segmentation: Segmentation,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let local = match socket.local_addr()? {
            SocketAddr::V6(local) => local,
            SocketAddr::V4(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let socket = UdpSocket { socket, local, segmentation, _claim: claim };
        if is_ipv4(*local.ip()) {
            for (level, name, value) in [
                (libc::SOL_SOCKET, libc::SO_NO_CHECK, 1),
                (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
            ] {
                socket.set_option(level, name, value)?;
            }
        }
        for (level, name, value) in [
            (libc::SOL_UDP, libc::UDP_NO_CHECK6_RX, 1),
            (libc::SOL_UDP, libc::UDP_NO_CHECK6_TX, c_int::from(segmentation == Segmentation::Software)),
            (libc::SOL_UDP, libc::UDP_GRO, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
            (libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1),
        ] {
            socket.set_option(level, name, value)?;
        }
        Ok(socket)
    }

    /// Address of the socket.
    pub fn local(&self) -> SocketAddrV6 {
        self.local
    }

    /// Segmentation of packets.
    pub fn segmentation(&self) -> Segmentation {
        self.segmentation
    }

    /// Requests buffers of so many octets in either direction, beyond the limits that the system sets where the process
    /// may, and returns what the kernel grants for receiving, its own bookkeeping included.
    ///
    /// # Errors
    ///
    /// If the kernel does not report their length.
    pub fn grow_buffers(&self, octets: u32) -> io::Result<u32> {
        let wanted = c_int::try_from(octets).unwrap_or(c_int::MAX);
        for (forced, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
            if self.set_option(libc::SOL_SOCKET, forced, wanted).is_err() {
                self.set_option(libc::SOL_SOCKET, plain, wanted)?;
            }
        }
        let mut granted: c_int = 0;
        socket_option::get(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &mut granted)?;
        Ok(granted.unsigned_abs())
    }

    /// Waits until there is something to read, here or at `other`, or, on request, room to write.
    ///
    /// # Errors
    ///
    /// Those of `ppoll`; an interruption is no error.
    pub fn wait(&self, is_writing: bool, other: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> io::Result<()> {
        wait(self.socket.as_fd(), is_writing, other, timeout)
    }

    fn set_option(&self, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
        socket_option::set(self.socket.as_fd(), level, name, &value)
    }

    pub(super) fn fd(&self) -> c_int {
        self.socket.as_raw_fd()
    }
}

/// Whether datagrams of a socket at an address are IPv4.
pub(super) fn is_ipv4(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some()
}

/// Waits until there is something to read at a descriptor or at `other`, or, on request, room to write at the first.
///
/// # Errors
///
/// Those of `ppoll`; an interruption is no error.
pub fn wait(
    fd: BorrowedFd<'_>,
    is_writing: bool,
    other: Option<BorrowedFd<'_>>,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let events = libc::POLLIN | if is_writing { libc::POLLOUT } else { 0 };
    // The kernel ignores negative descriptors.
    let other = other.map_or(-1, |other| other.as_raw_fd());
    let mut polls = [
        libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 },
        libc::pollfd { fd: other, events: libc::POLLIN, revents: 0 },
    ];
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: two of `pollfd` and the timeout, all of which outlive the call; no signal mask.
    let result = unsafe { libc::ppoll(polls.as_mut_ptr(), 2, timeout, std::ptr::null()) };
    if result >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}
