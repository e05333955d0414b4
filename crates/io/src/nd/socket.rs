//! Packet sockets for Neighbor Solicitations and ARP requests.

use super::arp::ARP;
use super::message::SOLICITATION;
use crate::{packet_socket, socket_option};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A packet socket that takes frames of one kind at every interface, and sends such.
#[derive(Debug)]
pub(super) struct PacketSocket(OwnedFd, &'static Kind);

/// A kind of frames.
#[derive(Debug)]
pub(super) struct Kind {
    ethertype: u16,
    /// What the frames have: offset, size and value.
    filter: &'static [(u32, u32, u32)],
}

impl Kind {
    /// IPv6 with hop limit 255, ICMPv6 right behind, and a solicitation.
    pub(super) const SOLICITATIONS: Kind = Kind {
        ethertype: libc::ETH_P_IPV6 as u16,
        filter: &[
            (12, libc::BPF_H, libc::ETH_P_IPV6 as u32),
            (20, libc::BPF_B, 58),
            (21, libc::BPF_B, 255),
            (54, libc::BPF_B, SOLICITATION as u32),
        ],
    };

    /// ARP requests.
    pub(super) const ARP_REQUESTS: Kind =
        Kind { ethertype: ARP, filter: &[(12, libc::BPF_H, ARP as u32), (20, libc::BPF_H, 1)] };
}

/// Ingress of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The interface.
    pub(super) index: u32,
}

impl PacketSocket {
    /// Opens it. It receives nothing before its filter is set.
    pub(super) fn open(kind: &'static Kind) -> io::Result<Self> {
        let socket = PacketSocket(packet_socket::open()?, kind);
        socket.attach_filter()?;
        packet_socket::bind(socket.as_fd(), 0, kind.ethertype)?;
        Ok(socket)
    }

    /// Receives the next frame: its ingress interface and its length. Frames that this host sent are skipped.
    pub(super) fn receive(&self, frame: &mut [u8]) -> io::Result<(Arrival, usize)> {
        loop {
            let (from, len) = packet_socket::receive(self.as_fd(), frame)?;
            if matches!(from.sll_pkttype, libc::PACKET_HOST | libc::PACKET_MULTICAST | libc::PACKET_BROADCAST) {
                return Ok((Arrival { index: from.sll_ifindex as u32 }, len));
            }
        }
    }

    /// Sends a frame out of an interface.
    pub(super) fn send(&self, index: u32, frame: &[u8]) -> io::Result<()> {
        let to = packet_socket::address(index as i32, self.1.ethertype);
        // SAFETY: `frame` and `to` can be read for the lengths that are given, and outlive the call.
        let result = unsafe {
            libc::sendto(
                self.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const to).cast(),
                packet_socket::ADDRESS_OCTETS,
            )
        };
        if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn attach_filter(&self) -> io::Result<()> {
        let instruction = |code, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut program = Vec::new();
        let filter = self.1.filter;
        for (at, (offset, size, value)) in filter.iter().enumerate() {
            // A failed comparison jumps to the last instruction, which rejects the frame.
            let to_refusal = (2 * (filter.len() - at) - 1) as u8;
            program.push(instruction(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, *offset));
            program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, to_refusal, *value));
        }
        program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX));
        program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0));
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: the kernel copies the program before the call returns.
        unsafe { socket_option::set_with_pointers(self.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter) }
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
