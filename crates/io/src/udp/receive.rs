//! Reception of datagrams, many per system call.

use super::control::ControlMessage;
use super::socket::UdpSocket;
use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};

/// Datagrams that one call takes.
const SLOTS: usize = 32;

/// Maximum length of a datagram: the kernel does not coalesce beyond it.
const MAX_DATAGRAM: usize = 0xFFFF;

const STRIDE: usize = ReceiveBatch::HEADROOM + MAX_DATAGRAM.next_multiple_of(64);

/// Control messages of one datagram: traffic class, length of its segments, drops of the socket.
const CONTROLS: usize = 3;

/// Room for the datagrams of one call, and what was received there.
#[derive(Debug)]
pub struct ReceiveBatch {
    octets: Vec<u8>,
    received: Vec<Received>,
    overruns: u32,
}

#[derive(Clone, Copy, Debug)]
struct Received {
    source: SocketAddrV6,
    len: usize,
    segment_len: usize,
    traffic_class: u8,
}

/// A datagram, or several of equal length that the kernel has put together; the last may be shorter.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Source address.
    pub source: SocketAddrV6,
    /// Its traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Length of each of the datagrams that it was put together from.
    pub segment_len: usize,
    /// [`ReceiveBatch::HEADROOM`] octets of no meaning, and the payload.
    pub octets: &'a mut [u8],
}

impl ReceiveBatch {
    /// Octets in front of each payload where the caller may put headers.
    pub const HEADROOM: usize = 64;

    /// Room without datagrams.
    pub fn new() -> Self {
        ReceiveBatch { octets: vec![0; SLOTS * STRIDE], received: Vec::with_capacity(SLOTS), overruns: 0 }
    }

    /// Number of datagrams.
    pub fn len(&self) -> usize {
        self.received.len()
    }

    /// Whether the batch has no datagram.
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }

    /// Whether the call may have left some behind.
    pub fn is_full(&self) -> bool {
        self.received.len() == SLOTS
    }

    /// The datagrams in the order in which they came.
    pub fn datagrams(&mut self) -> impl Iterator<Item = Datagram<'_>> {
        self.received.iter().zip(self.octets.chunks_exact_mut(STRIDE)).map(|(received, slot)| Datagram {
            source: received.source,
            traffic_class: received.traffic_class,
            segment_len: received.segment_len,
            octets: &mut slot[..Self::HEADROOM + received.len],
        })
    }

    /// Datagrams that found the socket's buffer full, since it was opened, as far as the kernel has reported.
    pub fn overruns(&self) -> u32 {
        self.overruns
    }
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl UdpSocket {
    /// Replaces what is in `batch` by the datagrams that wait, as many as it holds. Never waits.
    ///
    /// # Errors
    ///
    /// Those of `recvmmsg`; that none waits is no error.
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<()> {
        batch.received.clear();
        let mut names = [UNKNOWN; SLOTS];
        let mut controls = [[ControlMessage::default(); CONTROLS]; SLOTS];
        let mut pieces = [EMPTY; SLOTS];
        let mut headers = [NO_MESSAGE; SLOTS];
        for (slot, octets) in batch.octets.chunks_exact_mut(STRIDE).enumerate() {
            let room = &mut octets[ReceiveBatch::HEADROOM..];
            pieces[slot] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            let header = &mut headers[slot].msg_hdr;
            header.msg_name = (&raw mut names[slot]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            header.msg_iov = &raw mut pieces[slot];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut controls[slot]).cast();
            header.msg_controllen = size_of_val(&controls[slot]);
        }
        let (flags, forever) = (libc::MSG_DONTWAIT, std::ptr::null_mut());
        // SAFETY: each of the `SLOTS` headers points to one name, one vector and one array of controls, whose lengths
        // it holds; the vector points into `batch.octets`. All outlive the call and nothing else refers to them.
        let count = unsafe { libc::recvmmsg(self.fd(), headers.as_mut_ptr(), SLOTS as u32, flags, forever) };
        let Ok(count) = usize::try_from(count) else {
            return match io::Error::last_os_error() {
                error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
                error => Err(error),
            };
        };
        for ((header, name), controls) in headers.iter().zip(&names).zip(&controls).take(count) {
            let len = header.msg_len as usize;
            let mut received = Received { source: address_of(name), len, segment_len: len, traffic_class: 0 };
            for control in &controls[..header.msg_hdr.msg_controllen / size_of::<ControlMessage>()] {
                if control.is(libc::IPPROTO_IPV6, libc::IPV6_TCLASS) {
                    received.traffic_class = control.integer() as u8;
                } else if control.is(libc::IPPROTO_IP, libc::IP_TOS) {
                    received.traffic_class = control.first();
                } else if control.is(libc::SOL_UDP, libc::UDP_GRO) {
                    received.segment_len = control.integer() as usize;
                } else if control.is(libc::SOL_SOCKET, libc::SO_RXQ_OVFL) {
                    batch.overruns = control.integer();
                }
            }
            batch.received.push(received);
        }
        Ok(())
    }
}

const UNKNOWN: libc::sockaddr_in6 = libc::sockaddr_in6 {
    sin6_family: 0,
    sin6_port: 0,
    sin6_flowinfo: 0,
    sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
    sin6_scope_id: 0,
};

const EMPTY: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

// SAFETY: null pointers and lengths of zero are a message without name, octets and controls.
pub(super) const NO_MESSAGE: libc::mmsghdr = unsafe { std::mem::zeroed() };

fn address_of(name: &libc::sockaddr_in6) -> SocketAddrV6 {
    let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
    SocketAddrV6::new(address, u16::from_be(name.sin6_port), 0, name.sin6_scope_id)
}
