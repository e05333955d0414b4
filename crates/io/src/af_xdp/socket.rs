//! One AF_XDP socket: a queue of an interface.

use super::ring::{Consumer, Layout, Producer};
use super::umem::Umem;
use crate::socket_option;
use libc::{c_int, socklen_t};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// Entries of each ring. Long rings carry a node over the moments when the system has other work for its processor.
pub(super) const RING_ENTRIES: u32 = 2048;

/// Time for which a queue may stay busy after its socket was closed.
const QUEUE_IS_FREED_WITHIN: Duration = Duration::from_secs(1);

/// A socket that is bound to a queue, with its four rings.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    pub(super) fill: Producer<u64>,
    pub(super) completion: Consumer<u64>,
    pub(super) receive: Consumer<libc::xdp_desc>,
    pub(super) transmit: Producer<libc::xdp_desc>,
}

/// A refusal by the kernel.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) what: &'static str,
    pub(super) source: io::Error,
}

/// Result of a call to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The kernel has processed as many as it does in a call.
    Some,
    /// One was given to the interface, which dropped it.
    Dropped,
    /// Not now: the link is down, or there is no memory.
    NotNow,
}

impl Socket {
    /// A socket for a queue of an interface; with it frames of several chunks.
    ///
    /// # Errors
    ///
    /// The kernel's error, with the name of the call.
    pub(super) fn bind(interface_index: u32, queue: u32, umem: &Umem) -> Result<Self, Refusal> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(during("socket(AF_XDP)")(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is new and not owned elsewhere.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        umem.register(fd.as_fd()).map_err(during("XDP_UMEM_REG"))?;
        for (option, name) in [
            (libc::XDP_UMEM_FILL_RING, "XDP_UMEM_FILL_RING"),
            (libc::XDP_UMEM_COMPLETION_RING, "XDP_UMEM_COMPLETION_RING"),
            (libc::XDP_RX_RING, "XDP_RX_RING"),
            (libc::XDP_TX_RING, "XDP_TX_RING"),
        ] {
            socket_option::set(fd.as_fd(), libc::SOL_XDP, option, &RING_ENTRIES).map_err(during(name))?;
        }
        let offsets = ring_offsets(fd.as_fd()).map_err(during("XDP_MMAP_OFFSETS"))?;
        let layout = |offsets, page_offset| Layout { offsets, page_offset, entries: RING_ENTRIES };
        let fill = layout(offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64);
        let completion = layout(offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64);
        let socket = Socket {
            fill: Producer::map(fd.as_fd(), &fill).map_err(during("mmap"))?,
            completion: Consumer::map(fd.as_fd(), &completion).map_err(during("mmap"))?,
            receive: Consumer::map(fd.as_fd(), &layout(offsets.rx, libc::XDP_PGOFF_RX_RING)).map_err(during("mmap"))?,
            transmit: Producer::map(fd.as_fd(), &layout(offsets.tx, libc::XDP_PGOFF_TX_RING))
                .map_err(during("mmap"))?,
            fd,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP | libc::XDP_USE_SG,
            sxdp_ifindex: interface_index,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        bind_when_free(socket.as_fd(), &address).map_err(during("bind"))?;
        Ok(socket)
    }

    /// Has the kernel send what is in the ring: some thirty entries a call.
    ///
    /// # Errors
    ///
    /// If the interface is gone.
    pub(super) fn kick_transmit(&self) -> io::Result<Sent> {
        // SAFETY: no octets are passed.
        let result = unsafe { libc::sendto(self.fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
        if result >= 0 {
            return Ok(Sent::Some);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(Sent::Some),
            Some(libc::EBUSY) => Ok(Sent::Dropped),
            Some(libc::ENETDOWN | libc::ENOBUFS | libc::ENOMEM) => Ok(Sent::NotNow),
            // The socket is bound to nothing any more.
            Some(libc::ENXIO) => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            _ => Err(error),
        }
    }

    /// Has the kernel look at the fill ring.
    pub(super) fn kick_fill(&self) {
        let none = ptr::null_mut();
        // SAFETY: no octets are wanted. Frames that come in show whether it worked, so its result does not matter.
        unsafe { libc::recvfrom(self.fd.as_raw_fd(), none, 0, libc::MSG_DONTWAIT, ptr::null_mut(), ptr::null_mut()) };
    }

    /// Asynchronous errors of the socket: the interface has vanished.
    pub(super) fn pending_error(&self) -> io::Result<()> {
        let mut code: c_int = 0;
        socket_option::get(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR, &mut code)?;
        match code {
            0 => Ok(()),
            // The error is returned if the interface is deleted, not if the link goes down.
            libc::ENETDOWN => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Whether the interface reads what is sent where it lies.
    pub(super) fn is_zero_copy(&self) -> io::Result<bool> {
        let mut options = libc::xdp_options { flags: 0 };
        socket_option::get(self.fd.as_fd(), libc::SOL_XDP, libc::XDP_OPTIONS, &mut options)?;
        Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Statistics of the kernel.
    pub(super) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        // SAFETY: all its fields are numbers.
        let mut statistics: libc::xdp_statistics = unsafe { mem::zeroed() };
        socket_option::get(self.fd.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS, &mut statistics)?;
        Ok(statistics)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Binds a socket to its queue. The kernel frees a queue some time after its socket was closed, so that one which is
/// busy may only seem so.
fn bind_when_free(socket: BorrowedFd<'_>, address: &libc::sockaddr_xdp) -> io::Result<()> {
    let end = Instant::now() + QUEUE_IS_FREED_WITHIN;
    loop {
        let len = size_of_val(address) as socklen_t;
        // SAFETY: the address lives through the call and has the given length.
        let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const *address).cast(), len) };
        if result >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EBUSY) || Instant::now() > end {
            return Err(error);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// A file descriptor that is readable when one of the sockets is.
pub(super) fn any_readable(sockets: &[BorrowedFd<'_>]) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and not owned elsewhere.
    let any = unsafe { OwnedFd::from_raw_fd(fd) };
    for socket in sockets {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the event lives through the call.
        let result = unsafe { libc::epoll_ctl(fd, libc::EPOLL_CTL_ADD, socket.as_raw_fd(), &raw mut event) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(any)
}

/// Adds to an error what was being done.
fn during(what: &'static str) -> impl Fn(io::Error) -> Refusal {
    move |source| Refusal { what, source }
}

fn ring_offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all its fields are numbers.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { mem::zeroed() };
    socket_option::get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}
