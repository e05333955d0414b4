//! Every frame of an interface, in and out: for programs at the other end of a link to a device.

use crate::packet_socket;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A packet socket that receives every frame that arrives at an interface, and none that this host sends.
#[derive(Debug)]
pub struct RawSocket(OwnedFd);

impl RawSocket {
    /// Opens it at an interface of the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// If there is no such interface, or the process may not: it takes CAP_NET_RAW.
    pub fn open(interface: &str) -> io::Result<Self> {
        let name = CString::new(interface)?;
        // SAFETY: the name ends with a zero octet and outlives the call.
        let index = match unsafe { libc::if_nametoindex(name.as_ptr()) } {
            0 => return Err(io::Error::last_os_error()),
            index => index.cast_signed(),
        };
        let socket = RawSocket(packet_socket::open()?);
        packet_socket::bind(socket.as_fd(), index, libc::ETH_P_ALL as u16)?;
        Ok(socket)
    }

    /// Takes the next frame that has come in, and never waits; its length, or nothing.
    ///
    /// # Errors
    ///
    /// If the interface is gone or down.
    pub fn receive(&self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match packet_socket::receive(self.as_fd(), frame) {
                Ok((from, _)) if from.sll_pkttype == libc::PACKET_OUTGOING => {}
                Ok((_, len)) => return Ok(Some(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a whole frame.
    ///
    /// # Errors
    ///
    /// If the interface is gone or down, or the kernel has no room for the frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        packet_socket::send(self.as_fd(), frame)
    }
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
