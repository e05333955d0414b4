//! A packet socket for Neighbor Solicitations.

use super::message::SOLICITATION;
use crate::socket_option;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// A packet socket that takes Neighbor Solicitations at every interface, and sends frames.
#[derive(Debug)]
pub(super) struct PacketSocket(OwnedFd);

/// Where a frame came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The interface.
    pub(super) index: u32,
}

/// Lets frames pass that are IPv6 with hop limit 255, ICMPv6 right behind, and a solicitation: offset, size and value.
const FILTER: [(u32, u32, u32); 4] =
    [(12, libc::BPF_H, 0x86DD), (20, libc::BPF_B, 58), (21, libc::BPF_B, 255), (54, libc::BPF_B, SOLICITATION as u32)];

impl PacketSocket {
    /// Opens it. It hears of nothing before its filter is there.
    pub(super) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes no pointers, and the descriptor that it gives is ours alone.
        let socket = unsafe {
            match libc::socket(libc::AF_PACKET, kind, 0) {
                -1 => return Err(io::Error::last_os_error()),
                fd => PacketSocket(OwnedFd::from_raw_fd(fd)),
            }
        };
        socket.attach_filter()?;
        let address = address(0);
        // SAFETY: the descriptor is open, and the address is a sockaddr_ll of the length that is given.
        let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), ADDRESS_OCTETS) };
        if result == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes the next frame: where it came in, and its length. What this host sends itself is passed over.
    pub(super) fn receive(&self, frame: &mut [u8]) -> io::Result<(Arrival, usize)> {
        loop {
            let mut from = address(0);
            let mut length = ADDRESS_OCTETS;
            // SAFETY: `frame` and `from` can be written for the lengths that are given, and outlive the call.
            let result = unsafe {
                libc::recvfrom(
                    self.as_raw_fd(),
                    frame.as_mut_ptr().cast(),
                    frame.len(),
                    0,
                    (&raw mut from).cast(),
                    &raw mut length,
                )
            };
            let len = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
            if matches!(from.sll_pkttype, libc::PACKET_HOST | libc::PACKET_MULTICAST) {
                return Ok((Arrival { index: from.sll_ifindex as u32 }, len));
            }
        }
    }

    /// Sends a frame out of an interface.
    pub(super) fn send(&self, index: u32, frame: &[u8]) -> io::Result<()> {
        let to = address(index);
        // SAFETY: `frame` and `to` can be read for the lengths that are given, and outlive the call.
        let result = unsafe {
            libc::sendto(
                self.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const to).cast(),
                ADDRESS_OCTETS,
            )
        };
        if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn attach_filter(&self) -> io::Result<()> {
        let instruction = |code, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut program = Vec::new();
        for (at, (offset, size, value)) in FILTER.into_iter().enumerate() {
            // A comparison that fails goes to the last instruction, which takes nothing.
            let to_refusal = (2 * (FILTER.len() - at) - 1) as u8;
            program.push(instruction(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, offset));
            program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, to_refusal, value));
        }
        program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX));
        program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0));
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // The kernel copies the program before the call returns.
        socket_option::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
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

const ADDRESS_OCTETS: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

/// IPv6 at an interface; 0 stands for every one.
fn address(index: u32) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_IPV6 as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [0; 8],
    }
}
