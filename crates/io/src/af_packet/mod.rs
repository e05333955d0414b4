//! AF_PACKET: works at every interface, and copies each received frame once.

mod filter;
mod memberships;
mod ring;
mod send;
mod socket;
mod tap;

use crate::driver::{Driver, DriverKind, DriverStatistics};
use crate::interest::{BFD_PORTS, Interest, Match};
use crate::share::{FanoutGroup, Share, ShareGroup};
use crate::socket_option;
use ring::{Offload, RESERVE, Received, Ring};
use send::Sender;
use socket::Socket;
use srdma_fib::Fib;
use srdma_frame::{Frame, Pool};
use srdma_wire::checksum::Sum;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::{EtherType, EthernetView, Ipv4View, Ipv6View, NextHeader, UdpView, View};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

pub(crate) use memberships::Memberships;
pub use tap::{Tap, Tapped};

/// A [`Driver`] on a packet socket.
///
/// The kernel sees the frames, too. Blackhole routes for the node's destinations keep it from processing them.
///
/// Frames of senders on this machine, over a virtual link, may lack their checksum, which is then computed here. They
/// may also be longer than the link allows, to be cut by hardware that does not exist: those are counted as
/// [`too_long`](DriverStatistics::too_long), and the sender's interface needs `ethtool -K NAME tso off gso off`.
///
/// # Errors
///
/// [`Driver::receive`] returns two kinds. [`io::ErrorKind::NetworkDown`]: the link went down; returned once, and the
/// driver resumes when the link comes up. `ENODEV` (as [`io::Error::raw_os_error`]): the interface has vanished, and
/// the driver cannot be used any more. [`Driver::flush`] returns only the second.
#[derive(Debug)]
pub struct AfPacket {
    index: i32,
    receiver: Socket,
    ring: Ring,
    transmitter: Socket,
    sender: Sender,
    memberships: Memberships,
    /// The interest, when it is too long for a program in the kernel.
    selection: Option<Selection>,
    statistics: DriverStatistics,
    /// The link went down, and no frame has arrived since. When such an interface vanishes, the kernel reports no
    /// error.
    is_down: bool,
    is_drained: bool,
    /// Frames without a slot, as reported by the kernel, which resets its counter when read.
    overruns: Cell<u64>,
}

/// Frames of up to this length always fit a slot of the ring, whatever the interface allows now.
const USUAL_FRAME: usize = 9_000 + OVERHEAD;

/// Ethernet header and a VLAN tag.
const OVERHEAD: usize = 18;

/// The longest frame that segments of a pool can hold.
pub(crate) const LONGEST_FRAME: usize = 4 * srdma_frame::CHUNK_ROOM;

/// Blocks of the receive ring.
const RING_BLOCKS: usize = 128;

/// Octets of frames that may wait in the kernel.
const SEND_BUFFER: libc::c_int = 4 << 20;

impl AfPacket {
    /// Opens an interface of the namespace that the calling thread is in.
    ///
    /// # Errors
    ///
    /// If there is no such interface (`ENODEV`), or this process is not root (`EPERM`).
    pub fn open(interface: &str, interest: &Interest) -> io::Result<Self> {
        Ok(AfPacket::open_share(interface, &Share::All, interest)?.0)
    }

    /// The same for a share of the interface's frames; the fanout group is the one that others may join.
    ///
    /// # Errors
    ///
    /// As [`AfPacket::open`].
    pub fn open_share(interface: &str, share: &Share, interest: &Interest) -> io::Result<(Self, Option<FanoutGroup>)> {
        let index = crate::interface::index(interface)? as i32;
        let receiver = Socket::new()?;
        receiver.set_packet(socket::PACKET_IGNORE_OUTGOING, &1_i32)?;
        let longest = (receiver.mtu(interface)? + OVERHEAD).clamp(USUAL_FRAME, LONGEST_FRAME);
        let is_sending = *share == Share::Sending;
        let blocks = if is_sending { 1 } else { RING_BLOCKS };
        let ring = Ring::new(&receiver, longest, blocks)?;
        // A socket takes everything until it is in its fanout group.
        let is_shared = matches!(share, Share::First(_) | Share::Joining(ShareGroup::Fanout(_), _));
        let at_first = if is_shared { &Interest::default() } else { interest };
        let mut selection = apply(at_first, &receiver)?;
        let memberships = Memberships::new(index, interest)?;
        let transmitter = Socket::new()?;
        // Beyond the system's limit where the process may: in a user namespace it may not.
        if transmitter.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER).is_err() {
            transmitter.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER)?;
        }
        transmitter.bind(index, 0)?;
        let protocol = if is_sending { 0 } else { libc::ETH_P_ALL as u16 };
        receiver.bind(index, protocol)?;
        let group = match share {
            Share::First(_) => Some(receiver.begin_fanout()?),
            Share::Joining(ShareGroup::Fanout(group), _) => Some(receiver.join_fanout(*group)?),
            Share::All | Share::Joining(ShareGroup::Queues(_), _) | Share::Sending => None,
        };
        if is_shared {
            selection = apply(interest, &receiver)?;
        }
        let driver = AfPacket {
            index,
            receiver,
            ring,
            transmitter,
            sender: Sender::new(),
            memberships,
            selection,
            statistics: DriverStatistics::default(),
            is_down: false,
            is_drained: false,
            overruns: Cell::new(0),
        };
        Ok((driver, group))
    }

    /// Queries the state of the interface when no frame was received.
    fn check(&mut self) -> io::Result<()> {
        let result = self.receiver.take_error();
        self.is_down |= result.is_err();
        if self.is_down && !self.receiver.knows_interface(self.index) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        result
    }
}

impl Driver for AfPacket {
    fn receive(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>, limit: usize) -> io::Result<()> {
        self.is_drained = false;
        // Frames that are refused count, too, or a flood of them would keep the thread from its other ports.
        for looked_at in 0..limit {
            let Some(received) = self.ring.next() else {
                self.is_drained = true;
                return if looked_at == 0 { self.check() } else { Ok(()) };
            };
            self.is_down = false;
            match usable(received, self.selection.as_ref()) {
                Usable::Frame(octets) => {
                    let Some(frame) = Frame::from_octets(octets, pool) else {
                        // It waits in its slot for a free chunk; when all slots are full, the kernel counts.
                        return Ok(());
                    };
                    frames.push(frame);
                    self.statistics.received += 1;
                }
                Usable::TooLong => self.statistics.too_long += 1,
                Usable::NotWanted => {}
            }
            self.ring.release();
        }
        Ok(())
    }

    fn is_drained(&self) -> bool {
        self.is_drained
    }

    fn room(&mut self, _pool: &mut Pool) -> usize {
        self.sender.room()
    }

    fn push(&mut self, frame: Frame, pool: &mut Pool) {
        if self.sender.room() == 0 {
            self.statistics.send_errors += 1;
            frame.release(pool);
        } else {
            self.sender.push(frame);
        }
    }

    fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        let (flushed, result) = self.sender.flush(&self.transmitter, pool);
        self.statistics.sent += flushed.sent;
        self.statistics.send_errors += flushed.refused;
        match result {
            Err(_) if !self.receiver.knows_interface(self.index) => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            _ => Ok(()),
        }
    }

    fn is_flushed(&self) -> bool {
        self.sender.is_empty()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.receiver.as_fd())
    }

    fn set_interest(&mut self, interest: &Interest) -> io::Result<()> {
        self.selection = apply(interest, &self.receiver)?;
        self.memberships.set(interest)
    }

    fn kind(&self) -> DriverKind {
        DriverKind::Packet
    }

    fn statistics(&self) -> DriverStatistics {
        self.overruns.set(self.overruns.get() + self.receiver.take_losses().unwrap_or(0));
        DriverStatistics { receive_overruns: self.overruns.get(), ..self.statistics }
    }

    fn detach(&mut self, pool: &mut Pool) {
        self.statistics.send_errors += self.sender.len() as u64;
        self.sender.release(self.sender.len(), pool);
    }
}

/// Installs the interest in the kernel; returns the filter that is left to user space.
fn apply(interest: &Interest, socket: &Socket) -> io::Result<Option<Selection>> {
    if let Some(program) = filter::program(interest)
        && attach(&program, socket).is_ok()
    {
        return Ok(None);
    }
    attach(&filter::coarse_program(interest), socket)?;
    Ok(Some(Selection::of(interest)))
}

/// An interest as user space looks at it.
#[derive(Debug)]
struct Selection {
    ipv6: Fib<Match>,
    ipv4: Fib<Match>,
}

impl Selection {
    fn of(interest: &Interest) -> Self {
        let mut selection = Selection { ipv6: Fib::default(), ipv4: Fib::default() };
        for (prefix, wanted) in interest.ipv6() {
            selection.ipv6.insert(prefix, wanted);
        }
        for (prefix, wanted) in interest.ipv4() {
            selection.ipv4.insert(prefix, wanted);
        }
        selection
    }
}

fn attach(program: &[libc::sock_filter], socket: &Socket) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program before the call returns.
    unsafe { socket_option::set_with_pointers(socket.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program) }
}

/// Contents of a slot of the ring.
enum Usable<'r> {
    Frame(&'r [u8]),
    TooLong,
    NotWanted,
}

/// Completes a frame where it lies, if it is wanted and whole.
fn usable<'r>(received: Received<'r>, selection: Option<&Selection>) -> Usable<'r> {
    if selection.is_some_and(|selection| !is_wanted(&received.octets[RESERVE..], selection)) {
        return Usable::NotWanted;
    }
    if received.is_cut || received.offload == Offload::Segmentation {
        return Usable::TooLong;
    }
    match completed(received) {
        // It fits a slot, and never a frame.
        octets if octets.len() > LONGEST_FRAME => Usable::TooLong,
        octets => Usable::Frame(octets),
    }
}

/// A frame with the checksum and the VLAN tag that it had, or will have, on the wire.
fn completed(received: Received<'_>) -> &[u8] {
    let Received { octets, vlan, offload, .. } = received;
    if let Offload::Checksum { start, offset } = offload {
        finish_checksum(&mut octets[RESERVE..], start, offset);
    }
    match vlan {
        Some(tag) if octets.len() >= RESERVE + 12 => {
            octets.copy_within(RESERVE..RESERVE + 12, 0);
            octets[12..16].copy_from_slice(&tag);
            octets
        }
        _ => &octets[RESERVE..],
    }
}

/// The longest prefix of the destination decides; frames other than IPv6 and IPv4 pass the program only if they are
/// wanted.
fn is_wanted(octets: &[u8], selection: &Selection) -> bool {
    let Ok((ethernet, rest)) = EthernetView::split(octets) else {
        return false;
    };
    if ethernet.ethertype() == EtherType::IPV4 {
        let destination = Ipv4View::split(rest).map(|(ipv4, _)| ipv4.destination().to_ipv6_mapped().octets());
        let wanted = destination.ok().and_then(|destination| selection.ipv4.lookup(&destination));
        return matches!(wanted, Some(Match::All | Match::RoceV2));
    }
    if ethernet.ethertype() != EtherType::IPV6 {
        return true;
    }
    let Ok((ipv6, rest)) = Ipv6View::split(rest) else {
        return false;
    };
    match selection.ipv6.lookup(ipv6.destination_octets()) {
        Some(Match::All) => true,
        Some(Match::RoceV2) => match ipv6.next_header() {
            NextHeader::UDP => UdpView::split(rest).is_ok_and(|(udp, _)| udp.destination_port() == ROCEV2_PORT),
            NextHeader::HOP_BY_HOP | NextHeader::DESTINATION_OPTIONS => true,
            _ => false,
        },
        Some(Match::UnknownOption) => is_unknown_option(ipv6, rest),
        Some(Match::Own) => is_unknown_option(ipv6, rest) || is_bfd(ipv6, rest),
        Some(Match::Kernel) | None => false,
    }
}

fn is_unknown_option(ipv6: &Ipv6View, rest: &[u8]) -> bool {
    ipv6.next_header() == NextHeader::ICMPV6 && rest.starts_with(&UNKNOWN_OPTION)
}

fn is_bfd(ipv6: &Ipv6View, rest: &[u8]) -> bool {
    let is_port = |(udp, _): (&UdpView, &[u8])| BFD_PORTS.contains(&udp.destination_port());
    ipv6.next_header() == NextHeader::UDP && UdpView::split(rest).is_ok_and(is_port)
}

/// Type and code of ICMPv6 Parameter Problem, unrecognised IPv6 option (RFC 4443 section 3.4).
const UNKNOWN_OPTION: [u8; 2] = [4, 2];

/// Completes a `CHECKSUM_PARTIAL` checksum: the field holds the sum of the pseudo-header, the rest is added here.
fn finish_checksum(octets: &mut [u8], start: usize, offset: usize) {
    let mut sum = Sum::default();
    sum.add(octets.get(start..).unwrap_or(&[]));
    let checksum = sum.udp_checksum();
    if let Some(field) = octets.get_mut(start + offset..).and_then(|octets| octets.first_chunk_mut()) {
        *field = checksum.to_be_bytes();
    }
}
