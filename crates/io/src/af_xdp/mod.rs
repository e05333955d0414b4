//! Frames by AF_XDP: chunks of the pool are exchanged with the kernel through rings, by their offsets.
//!
//! ```text
//!            fill ring ─→ kernel ─→ receive ring           chunks that are free → received frames
//!        transmit ring ─→ kernel ─→ completion ring        frames that are sent → chunks to release
//! ```
//!
//! A frame longer than a chunk takes several entries in a row, all but the last with `XDP_PKT_CONTD`.

mod gather;
mod holds;
mod queues;
mod receive;
mod retired;
mod ring;
mod socket;
mod umem;

pub use queues::QueueGroup;
pub use umem::Umem;

use crate::af_packet::Memberships;
use crate::bpf::Redirect;
use crate::fast_path;
use crate::interface;
use crate::{Driver, DriverKind, DriverStatistics, Interest, OpenError, XdpMode};
use gather::{Gathered, Sending};
use holds::Holds;
use receive::Receiver;
use retired::Retired;
use socket::{Refusal, Sent, Socket};
use srdma_frame::{Frame, MAX_PIECES, Pool};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// An interface's frames, by AF_XDP.
///
/// Its [`Pool`] is the one that came with the [`Umem`]: with another one nothing is received or sent.
///
/// The other end of a veth must have its offloads off: `ethtool -K IF tx off txvlan off`. Else what a local socket
/// sends there comes without its checksum, which no interface follows to compute, in generic mode many segments in one
/// frame, and a VLAN tag is not in the frame at all. Frames that sockets send for others, raw or by AF_XDP, are as they
/// are.
///
/// Sent frames bypass the queueing disciplines of the interface, such as `tbf`.
#[derive(Debug)]
pub struct AfXdp {
    /// Dropped first: frames of this driver's queues are the kernel's then. Drivers of an interface share it.
    program: Option<Arc<Mutex<Redirect>>>,
    memberships: Memberships,
    /// One for each receive queue of this driver. The first one sends, too. None after [`Driver::detach`].
    queues: Vec<Queue>,
    /// Receive queues of the interface.
    all_queues: u32,
    /// Becomes readable when one of several queues does.
    any_readable: Option<OwnedFd>,
    sending: Sending,
    holds: Holds,
    retired: Retired,
    kind: DriverKind,
    statistics: DriverStatistics,
    /// The queue that [`Driver::receive`] begins with.
    turn: usize,
    /// Entries that were passed to the kernel for sending and are not completed.
    in_flight: u32,
    /// Entries written since the kernel was last called.
    unsent: u32,
    idle_calls: u32,
    is_drained: bool,
}

#[derive(Debug)]
struct Queue {
    socket: Socket,
    receiver: Receiver,
}

/// Entries that may be in flight, so that each has a place in the completion ring.
const MAX_IN_FLIGHT: u32 = socket::RING_ENTRIES;

/// Chunks that the queues of an interface have together to receive into. An interface with a queue for each processor
/// would else take all that the pool has, and leave none to other interfaces.
const RECEIVE_CHUNKS: u32 = socket::RING_ENTRIES;

/// Minimum number of chunks for each queue.
const LEAST_SHARE: u32 = 32;

/// Entries after which the kernel is called where it copies. It sends as many in a call, so that there are no more
/// calls, and the chunks of frames that are gone are still in the cache when the next frames are gathered in them.
const SENT_AT_ONCE: u32 = 32;

/// Calls without a frame after which the driver checks that the interface still exists.
const IDLE_CALLS: u32 = 1024;

impl AfXdp {
    /// Opens every receive queue of an interface, and puts the program there that takes what is wanted.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; whatever was done is undone.
    pub fn open(interface: &str, mode: XdpMode, interest: &Interest, umem: &Umem) -> Result<Self, OpenError> {
        Ok(AfXdp::open_first(interface, mode, 1, interest, umem)?.0)
    }

    /// The same for the first of so many drivers that divide the queues among them.
    pub(crate) fn open_first(
        interface: &str,
        mode: XdpMode,
        drivers: u16,
        interest: &Interest,
        umem: &Umem,
    ) -> Result<(Self, QueueGroup), OpenError> {
        let index = interface::index(interface).map_err(|source| OpenError::no_interface(interface, source))?;
        let queues = interface::queues(interface);
        // The program is first: it fails at once if another process has the interface.
        let program = Redirect::attach(index, mode, queues.receive, interest)
            .map_err(|source| OpenError::of(interface, kind_of(mode), "attaching the XDP program", source))?;
        let program = Arc::new(Mutex::new(program));
        let group = QueueGroup::new(&program, mode, queues, drivers);
        let driver = AfXdp::of_queues(interface, (&group, program), &group.queues_of(0), interest, umem)?;
        Ok((driver, group))
    }

    /// A further driver, of these queues.
    pub(crate) fn join(
        interface: &str,
        group: &QueueGroup,
        queues: &[u32],
        interest: &Interest,
        umem: &Umem,
    ) -> Result<Self, OpenError> {
        // The first one has lost the interface.
        let is_lost = || OpenError::no_interface(interface, io::Error::from_raw_os_error(libc::ENODEV));
        let program = group.program.upgrade().ok_or_else(is_lost)?;
        AfXdp::of_queues(interface, (group, program), queues, interest, umem)
    }

    fn of_queues(
        interface: &str,
        (group, program): (&QueueGroup, Arc<Mutex<Redirect>>),
        queues: &[u32],
        interest: &Interest,
        umem: &Umem,
    ) -> Result<Self, OpenError> {
        let kind = kind_of(group.mode);
        let refused = |what, source| OpenError::of(interface, kind, what, source);
        let index = interface::index(interface).map_err(|source| OpenError::no_interface(interface, source))?;
        let memberships =
            Memberships::new(index as i32, interest).map_err(|source| refused("its memberships", source))?;
        let mut sockets = Vec::new();
        for queue in queues {
            let socket = Socket::bind(index, *queue, umem).map_err(|Refusal { what, source }| refused(what, source))?;
            let redirected = locked(&program).set_socket(*queue, socket.as_fd());
            redirected.map_err(|source| refused("redirecting to a socket", source))?;
            sockets.push(socket);
        }
        let fds: Vec<BorrowedFd<'_>> = sockets.iter().map(Socket::as_fd).collect();
        let any_readable = if fds.len() == 1 { Ok(None) } else { socket::any_readable(&fds).map(Some) };
        let any_readable = any_readable.map_err(|source| refused("epoll", source))?;
        let is_zero_copy = sockets.iter().all(|socket| socket.is_zero_copy().unwrap_or(false));
        Ok(AfXdp {
            program: Some(program),
            memberships,
            queues: sockets.into_iter().map(|socket| Queue { socket, receiver: Receiver::default() }).collect(),
            all_queues: group.queues.receive,
            any_readable,
            sending: if is_zero_copy { Sending::InPlace } else { Sending::Copying },
            holds: Holds::new(umem),
            retired: umem.retired().clone(),
            kind,
            statistics: DriverStatistics::default(),
            turn: 0,
            in_flight: 0,
            unsent: 0,
            idle_calls: 0,
            is_drained: false,
        })
    }

    /// Releases the chunks of what has been sent.
    fn complete(&mut self, pool: &mut Pool) {
        let Some(Queue { socket, .. }) = self.queues.first_mut() else {
            return;
        };
        while let Some(address) = socket.completion.take() {
            if let Some(chunk) = self.holds.take_back(address, pool) {
                self.in_flight -= 1;
                pool.release(chunk);
            }
        }
        socket.completion.release();
    }
}

fn kind_of(mode: XdpMode) -> DriverKind {
    match mode {
        XdpMode::Native => DriverKind::XdpNative,
        XdpMode::Generic => DriverKind::XdpGeneric,
    }
}

/// The program: a driver that panics in the middle of a change has changed some of its maps' entries.
fn locked(program: &Mutex<Redirect>) -> MutexGuard<'_, Redirect> {
    program.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Driver for AfXdp {
    fn receive(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>, limit: usize) -> io::Result<()> {
        let before = frames.len();
        let share = (RECEIVE_CHUNKS / self.all_queues.max(1)).max(LEAST_SHARE);
        for _ in 0..self.queues.len() {
            self.turn = (self.turn + 1) % self.queues.len();
            let Queue { socket, receiver } = &mut self.queues[self.turn];
            let room = limit - (frames.len() - before);
            self.statistics.too_long += receiver.receive(socket, &mut self.holds, pool, frames, room);
            receiver.fill(socket, &mut self.holds, pool, share);
        }
        self.statistics.received += (frames.len() - before) as u64;
        self.is_drained = frames.len() - before < limit;
        self.idle_calls = if frames.len() == before { self.idle_calls + 1 } else { 0 };
        if self.idle_calls < IDLE_CALLS {
            return Ok(());
        }
        self.idle_calls = 0;
        self.queues.iter().try_for_each(|queue| queue.socket.pending_error())
    }

    fn is_drained(&self) -> bool {
        self.is_drained
    }

    fn room(&mut self, pool: &mut Pool) -> usize {
        self.complete(pool);
        let free = self.queues.first_mut().map_or(0, |queue| queue.socket.transmit.free());
        free.min(MAX_IN_FLIGHT - self.in_flight) as usize / MAX_PIECES
    }

    fn push(&mut self, frame: Frame, pool: &mut Pool) {
        if self.room(pool) == 0 {
            frame.release(pool);
            self.statistics.send_errors += 1;
            return;
        }
        let (Some(gathered), Some(Queue { socket, .. })) =
            (Gathered::of(frame, self.sending, pool), self.queues.first_mut())
        else {
            self.statistics.send_errors += 1;
            return;
        };
        let mut left = gathered.pieces().len();
        self.unsent += left as u32;
        for piece in gathered.pieces() {
            left -= 1;
            let Some(offset) = self.holds.give(piece.chunk(), pool) else {
                continue;
            };
            self.in_flight += 1;
            socket.transmit.write(libc::xdp_desc {
                addr: offset + piece.start() as u64,
                len: piece.len() as u32,
                options: if left == 0 { 0 } else { libc::XDP_PKT_CONTD },
            });
        }
        self.statistics.sent += 1;
        if self.sending == Sending::Copying && self.unsent >= SENT_AT_ONCE {
            // If the interface is gone, the caller's flush finds it too.
            self.flush(pool).ok();
        }
    }

    fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        self.unsent = 0;
        while let Some(Queue { socket, .. }) = self.queues.first_mut() {
            socket.transmit.publish();
            let waiting = socket.transmit.waiting();
            if waiting == 0 || !socket.transmit.needs_wakeup() {
                break;
            }
            let sent = socket.kick_transmit()?;
            let is_stuck = socket.transmit.waiting() == waiting;
            match sent {
                Sent::Some => {}
                Sent::Dropped => {
                    self.statistics.sent -= 1;
                    self.statistics.send_errors += 1;
                }
                Sent::NotNow => break,
            }
            self.complete(pool);
            if is_stuck {
                break;
            }
        }
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        self.queues.first().is_none_or(|queue| queue.socket.transmit.waiting() == 0)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        let only = self.queues.first().map(|queue| queue.socket.as_fd());
        self.any_readable.as_ref().map(AsFd::as_fd).or(only)
    }

    fn set_interest(&mut self, interest: &Interest) -> io::Result<()> {
        self.program.as_ref().map_or(Ok(()), |program| locked(program).set_interest(interest))?;
        self.memberships.set(interest)
    }

    fn set_fast_path(&mut self, fast: Option<(&fast_path::Maps, &fast_path::Port)>) -> io::Result<()> {
        self.program.as_ref().map_or(Ok(()), |program| locked(program).set_fast_path(fast))
    }

    fn kind(&self) -> DriverKind {
        self.kind
    }

    fn statistics(&self) -> DriverStatistics {
        let mut statistics = self.statistics;
        for counted in self.queues.iter().filter_map(|queue| queue.socket.statistics().ok()) {
            statistics.receive_overruns += counted.rx_dropped + counted.rx_ring_full;
        }
        statistics
    }

    fn detach(&mut self, pool: &mut Pool) {
        self.statistics = self.statistics();
        self.program = None;
        self.any_readable = None;
        self.in_flight = 0;
        for queue in self.queues.drain(..) {
            queue.receiver.release(pool);
        }
        if self.sending == Sending::InPlace {
            // The kernel stops a zero-copy interface some time after its socket is closed. Until then the hardware may
            // write to these chunks, and its end is not reported: see `Umem::reclaim`.
            self.retired.retire(Instant::now(), self.holds.take_all());
        } else {
            self.holds.release_all(pool);
        }
    }
}
