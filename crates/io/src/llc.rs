//! Frames with a length instead of an EtherType, followed by an LLC header: the encapsulation of ISO routing protocols
//! such as IS-IS. Frames above the largest length value have an EtherType of their own.
//!
//! ```text
//! | destination 6 | source 6 | length 2       | LLC … |     at most 1500 octets behind the length
//! | destination 6 | source 6 | EtherType 8870 | LLC … |     more
//! ```
//!
//! The kernel sorts by EtherType, so there are two packet sockets: nothing else of the interface's traffic passes them.

use crate::{Turns, packet_socket, socket_option};
use srdma_wire::MacAddress;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;

/// Linux's number for frames with a length (`ETH_P_802_2`).
const WITH_LENGTH: u16 = 0x0004;

/// The EtherType of longer ones.
const LONG: u16 = 0x8870;

/// The frames with LLC of one interface, including those to some multicast groups. Frames that this host sends are
/// skipped.
#[derive(Debug)]
pub struct LlcSocket {
    sockets: [AsyncFd<Socket>; 2],
    turns: Turns,
}

impl LlcSocket {
    /// Opens it at the interface with this index, in the calling thread's network namespace. Must be called inside a
    /// tokio runtime with I/O.
    ///
    /// # Errors
    ///
    /// If the interface is gone, or the process lacks CAP_NET_RAW.
    pub fn open(index: u32, groups: &[MacAddress]) -> io::Result<Self> {
        let open = |protocol| {
            let socket = Socket::open(index, protocol)?;
            groups.iter().try_for_each(|group| socket.join(index, *group))?;
            // SAFETY: a socket owns its descriptor, gives no other, and closes it only when it is dropped.
            unsafe { AsyncFd::register(socket) }.map_err(io::Error::from)
        };
        Ok(LlcSocket { sockets: [open(WITH_LENGTH)?, open(LONG)?], turns: Turns::default() })
    }

    /// Takes the next frame; its length, which `frame` may be too short for.
    ///
    /// # Errors
    ///
    /// If the interface has gone down, once.
    pub fn poll_receive(&mut self, context: &mut Context<'_>, frame: &mut [u8]) -> Poll<io::Result<usize>> {
        self.turns.poll(&mut self.sockets, |socket| poll(socket, context, frame)).map(|(_, received)| received)
    }

    /// The same, as a future.
    ///
    /// # Errors
    ///
    /// As [`LlcSocket::poll_receive`].
    pub async fn receive(&mut self, frame: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_receive(context, frame)).await
    }

    /// Sends a whole frame.
    ///
    /// # Errors
    ///
    /// If the interface is down, or the kernel has no room for it.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let [socket, _] = &self.sockets;
        socket.get_ref().send(frame)
    }
}

fn poll(socket: &AsyncFd<Socket>, context: &mut Context<'_>, frame: &mut [u8]) -> Poll<io::Result<usize>> {
    loop {
        let mut guard = ready!(socket.poll_read_ready(context))?;
        if let Ok(received) = guard.try_io(|socket| socket.get_ref().receive(frame)) {
            return Poll::Ready(received);
        }
    }
}

/// One of the two.
#[derive(Debug)]
struct Socket(OwnedFd);

impl Socket {
    fn open(index: u32, protocol: u16) -> io::Result<Self> {
        let socket = Socket(packet_socket::open()?);
        packet_socket::bind(socket.as_fd(), index as i32, protocol)?;
        Ok(socket)
    }

    fn join(&self, index: u32, group: MacAddress) -> io::Result<()> {
        let mut request = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: group.0.len() as u16,
            mr_address: [0; 8],
        };
        request.mr_address[..group.0.len()].copy_from_slice(&group.0);
        socket_option::set(self.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    fn receive(&self, frame: &mut [u8]) -> io::Result<usize> {
        loop {
            let (from, len) = packet_socket::receive(self.as_fd(), frame)?;
            if from.sll_pkttype != libc::PACKET_OUTGOING {
                return Ok(len);
            }
        }
    }

    fn send(&self, frame: &[u8]) -> io::Result<()> {
        packet_socket::send(self.as_fd(), frame)
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
