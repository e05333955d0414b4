//! A tap: receives all frames of every interface of a namespace, for captures.

use super::ring::Ring;
use super::socket::{PACKET_IGNORE_OUTGOING, Socket};
use super::{LONGEST_FRAME, completed};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Blocks of the ring: 128 MiB, some tenths of a second of a busy machine.
const RING_BLOCKS: usize = 2048;

/// Sees a copy of every frame that comes in, as it is at that moment.
///
/// A packet socket without a ring does not: it shares the frame with the kernel until it is read, and the kernel's SRv6
/// behaviours change destination address and Segments Left in place.
#[derive(Debug)]
pub struct Tap {
    socket: Socket,
    ring: Ring,
    /// The first slot of the ring is in use.
    is_held: bool,
    missed: u64,
}

/// A frame that came in.
#[derive(Clone, Copy, Debug)]
pub struct Tapped<'t> {
    /// The number of the interface.
    pub interface: u32,
    /// When, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The frame, from its destination address on, without FCS.
    pub octets: &'t [u8],
}

impl Tap {
    /// Opens it in the namespace that the calling thread is in.
    ///
    /// # Errors
    ///
    /// If this process is not root (`EPERM`), or memory is short.
    pub fn open() -> io::Result<Self> {
        let socket = Socket::new()?;
        socket.set_packet(PACKET_IGNORE_OUTGOING, &1_i32)?;
        let ring = Ring::new(&socket, LONGEST_FRAME, RING_BLOCKS)?;
        const EVERY_INTERFACE: i32 = 0;
        socket.bind(EVERY_INTERFACE, libc::ETH_P_ALL as u16)?;
        Ok(Tap { socket, ring, is_held: false, missed: 0 })
    }

    /// The frame that has waited longest. One that is cut off has as many octets as there was room for.
    pub fn next_frame(&mut self) -> Option<Tapped<'_>> {
        if std::mem::take(&mut self.is_held) {
            self.ring.release();
        }
        let received = self.ring.next()?;
        self.is_held = true;
        let (time_ns, interface) = (received.time_ns, received.interface as u32);
        Some(Tapped { interface, time_ns, octets: completed(received) })
    }

    /// Frames until now that came faster than they were taken.
    pub fn missed(&mut self) -> u64 {
        self.missed += self.socket.take_losses().unwrap_or(0);
        self.missed
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
