//! Transmission of datagrams, many per system call.

use super::control::ControlMessage;
use super::receive::NO_MESSAGE;
use super::socket::{UdpSocket, is_ipv4};
use std::io::{self, IoSlice};
use std::net::SocketAddrV6;

/// Messages that one call takes.
pub const MAX_BATCH: usize = 64;

/// Packets of equal length to one destination. Several need a socket with
/// [`Segmentation::Offload`](super::Segmentation::Offload), which sends them as one; the last may be shorter.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub destination: SocketAddrV6,
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// The packets' payloads, at most 65,507 octets altogether.
    pub packets: &'a [IoSlice<'a>],
}

impl UdpSocket {
    /// Sends the first [`MAX_BATCH`] messages, or as many of them as there is room for, and returns how many were
    /// taken.
    ///
    /// # Errors
    ///
    /// Those of `sendmmsg`, about the first message; a full socket buffer is no error.
    pub fn send(&self, messages: &[Message<'_>]) -> io::Result<usize> {
        let messages = &messages[..messages.len().min(MAX_BATCH)];
        let mut names: [Option<libc::sockaddr_in6>; MAX_BATCH] = [None; MAX_BATCH];
        let mut controls = [[ControlMessage::default(); 2]; MAX_BATCH];
        let mut headers = [NO_MESSAGE; MAX_BATCH];
        for (index, message) in messages.iter().enumerate() {
            let traffic_class = i32::from(message.traffic_class).to_ne_bytes();
            let (level, kind) = match is_ipv4(*message.destination.ip()) {
                true => (libc::IPPROTO_IP, libc::IP_TOS),
                false => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            controls[index][0] = ControlMessage::new(level, kind, &traffic_class);
            let mut count = 1;
            if let [first, _, ..] = message.packets {
                let segment_len = (first.len() as u16).to_ne_bytes();
                controls[index][1] = ControlMessage::new(libc::SOL_UDP, libc::UDP_SEGMENT, &segment_len);
                count = 2;
            }
            let name = names[index].insert(name_of(&message.destination));
            let header = &mut headers[index].msg_hdr;
            header.msg_name = std::ptr::from_mut(name).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            // An `IoSlice` is an `iovec`, by its documentation. The kernel only reads it.
            header.msg_iov = message.packets.as_ptr().cast_mut().cast();
            header.msg_iovlen = message.packets.len();
            header.msg_control = (&raw mut controls[index]).cast();
            header.msg_controllen = count * size_of::<ControlMessage>();
        }
        let (count, flags) = (messages.len() as u32, libc::MSG_DONTWAIT);
        // SAFETY: each of the `count` headers points to a name, an array of controls and the vectors of a message,
        // whose lengths it holds. All outlive the call; the kernel writes to the headers only.
        let sent = unsafe { libc::sendmmsg(self.fd(), headers.as_mut_ptr(), count, flags) };
        usize::try_from(sent).or_else(|_| match io::Error::last_os_error() {
            error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            error => Err(error),
        })
    }
}

fn name_of(address: &SocketAddrV6) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: address.port().to_be(),
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
        sin6_scope_id: address.scope_id(),
    }
}
