//! Packets of one protocol over IPv6 between neighbours, such as OSPFv3: by a link-local address, and to groups of the
//! link. The kernel has the IPv6 headers; checksums of the protocol are the caller's.

use crate::{packet_socket, socket_option};
use libc::c_int;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;

/// Traffic class CS6, which is that of routing protocols (RFC 4594 section 3.1).
const TRAFFIC_CLASS: c_int = 48 << 2;

/// A packet that has come in.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub len_octets: usize,
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
}

/// A raw socket at a link-local address of an interface.
#[derive(Debug)]
pub struct Ipv6ProtocolSocket {
    socket: AsyncFd<Socket>,
    index: u32,
}

impl Ipv6ProtocolSocket {
    /// Opens it at the interface with this index, in the calling thread's network namespace, for packets to `address`
    /// and to a group. Must be called inside a tokio runtime with I/O.
    ///
    /// # Errors
    ///
    /// If the interface is gone or does not have the address (yet), or the process lacks CAP_NET_RAW.
    pub fn open(index: u32, address: Ipv6Addr, protocol: u8, group: Ipv6Addr) -> io::Result<Self> {
        let socket = Socket(packet_socket::open_of(libc::AF_INET6, protocol.into())?);
        let set = |option: c_int, value: c_int| socket_option::set(socket.as_fd(), libc::IPPROTO_IPV6, option, &value);
        set(libc::IPV6_RECVPKTINFO, 1)?;
        set(libc::IPV6_UNICAST_HOPS, 1)?;
        set(libc::IPV6_MULTICAST_HOPS, 1)?;
        set(libc::IPV6_MULTICAST_LOOP, 0)?;
        set(libc::IPV6_MULTICAST_IF, index.cast_signed())?;
        set(libc::IPV6_TCLASS, TRAFFIC_CLASS)?;
        socket.bind(&of_interface(address, index))?;
        let group = libc::in6_addr { s6_addr: group.octets() };
        let membership = libc::ipv6_mreq { ipv6mr_multiaddr: group, ipv6mr_interface: index };
        socket_option::set(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, &membership)?;
        // SAFETY: a socket owns its descriptor, gives no other, and closes it only when it is dropped.
        let socket = unsafe { AsyncFd::register(socket) }.map_err(io::Error::from)?;
        Ok(Ipv6ProtocolSocket { socket, index })
    }

    /// Takes the next packet, from behind its IPv6 headers on.
    ///
    /// # Errors
    ///
    /// If the interface has gone down or away.
    pub fn poll_receive(&self, context: &mut Context<'_>, packet: &mut [u8]) -> Poll<io::Result<Received>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(context))?;
            if let Ok(received) = guard.try_io(|socket| socket.get_ref().receive(packet)) {
                return Poll::Ready(received);
            }
        }
    }

    /// Sends a packet, from behind its IPv6 header on. One that is longer than the link allows leaves in fragments.
    ///
    /// # Errors
    ///
    /// If the interface is down, or the kernel has no room for it.
    pub fn send(&self, destination: Ipv6Addr, packet: &[u8]) -> io::Result<()> {
        let to = of_interface(destination, self.index);
        // SAFETY: the packet and the address can be read for the lengths that are given, and outlive the call.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                0,
                (&raw const to).cast(),
                size_of::<libc::sockaddr_in6>() as libc::socklen_t,
            )
        };
        if sent >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// An address of a link.
fn of_interface(address: Ipv6Addr, index: u32) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as u16,
        sin6_port: 0,
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: address.octets() },
        sin6_scope_id: index,
    }
}

/// The one control message that is asked for: the destination of a packet.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    info: libc::in6_pktinfo,
    /// Up to a whole word.
    rest: u32,
}

// SAFETY: the function computes with its argument and nothing else.
const _: () =
    unsafe { assert!(size_of::<Control>() == libc::CMSG_SPACE(size_of::<libc::in6_pktinfo>() as u32) as usize) };

#[derive(Debug)]
struct Socket(OwnedFd);

impl Socket {
    fn bind(&self, address: &libc::sockaddr_in6) -> io::Result<()> {
        // SAFETY: the descriptor is open, and the address is a sockaddr_in6 of the length that is given.
        let result = unsafe {
            libc::bind(
                self.as_raw_fd(),
                (&raw const *address).cast(),
                size_of::<libc::sockaddr_in6>() as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn receive(&self, packet: &mut [u8]) -> io::Result<Received> {
        let mut from = of_interface(Ipv6Addr::UNSPECIFIED, 0);
        let mut part = libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() };
        let mut control = Control {
            header: libc::cmsghdr { cmsg_len: 0, cmsg_level: 0, cmsg_type: 0 },
            info: libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: [0; 16] }, ipi6_ifindex: 0 },
            rest: 0,
        };
        let mut message = libc::msghdr {
            msg_name: (&raw mut from).cast(),
            msg_namelen: size_of::<libc::sockaddr_in6>() as libc::socklen_t,
            msg_iov: &raw mut part,
            msg_iovlen: 1,
            msg_control: (&raw mut control).cast(),
            msg_controllen: size_of::<Control>(),
            msg_flags: 0,
        };
        // SAFETY: all that the message points to can be written for the lengths in it, and outlives the call.
        let result = unsafe { libc::recvmsg(self.as_raw_fd(), &raw mut message, 0) };
        let len_octets = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        if (control.header.cmsg_level, control.header.cmsg_type) != (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) {
            return Err(io::Error::other("a packet without its destination"));
        }
        let (source, destination) = (from.sin6_addr.s6_addr.into(), control.info.ipi6_addr.s6_addr.into());
        Ok(Received { len_octets, source, destination })
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::{NamespaceGuard, VethEnd, veth};
    use std::future::poll_fn;

    /// Packets of the protocol come with source and destination, to the group and to the address.
    #[test]
    #[ignore = "needs root"]
    fn packets_pass_between_neighbours() {
        const GROUP: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 5);
        let namespaces = [(); 2].map(|()| NamespaceGuard::unique("srdma-t").expect("a namespace"));
        let addresses = [1, 2].map(|last| Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, last));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let end = |namespace| VethEnd { namespace, interface: "v0", mac: None, addresses: &[] };
        veth(1500, [end(&namespaces[0]), end(&namespaces[1])]).expect("a link");
        let sockets: Vec<Ipv6ProtocolSocket> = namespaces
            .iter()
            .zip(addresses)
            .map(|(namespace, address)| {
                namespace
                    .run(&["ip", "address", "add", &format!("{address}/64"), "dev", "v0", "nodad"])
                    .expect("added");
                let index = namespace.run(&["cat", "/sys/class/net/v0/ifindex"]).expect("it is there");
                let index = index.trim().parse().expect("a number");
                let open = || {
                    let _inside = runtime.enter();
                    Ipv6ProtocolSocket::open(index, address, 89, GROUP).expect("opened")
                };
                namespace.enter(open).expect("entered")
            })
            .collect();
        let mut packet = [0; 1500];
        for destination in [GROUP, addresses[1]] {
            sockets[0].send(destination, b"12345").expect("sent");
            let received = runtime.block_on(poll_fn(|context| sockets[1].poll_receive(context, &mut packet)));
            let expected = Received { len_octets: 5, source: addresses[0], destination };
            assert_eq!((received.expect("received"), &packet[..5]), (expected, b"12345".as_slice()));
        }
    }
}
