//! The receive ring: slots that the kernel fills and user space empties, in memory that both see.
//!
//! TPACKET_V2, not V3. V3 collects frames in blocks and hands a block over when it is full or its timer has run out,
//! after a millisecond at the latest; V2 hands each frame over as it comes. A lone frame over a veth took 6 µs in the
//! median with V2 and 721 µs with V3 (Linux 6.18, two cores). An RDMA requester pays that at every acknowledgement.

use super::socket::Socket;
use srdma_wire::units::NS_PER_S;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Octets of a block, the unit that the kernel allocates. Slots do not cross blocks.
const BLOCK: usize = 1 << 16;

/// Room that the kernel leaves in front of a frame, where its VLAN tag is put back.
pub(super) const RESERVE: usize = 4;

/// Octets of `struct virtio_net_hdr`, which stands right in front of the frame (linux/virtio_net.h).
const OFFLOAD: usize = 10;

/// Offset of the frame's address in a slot.
const ADDRESS: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// Octets before the frame in a slot, at most: the slot's header, alignment, [`RESERVE`] and [`OFFLOAD`].
const BEFORE_FRAME: usize = 128;

/// A mapped ring.
#[derive(Debug)]
pub(super) struct Ring {
    memory: NonNull<u8>,
    slot_octets: usize,
    slots_per_block: usize,
    blocks: usize,
    block: usize,
    slot: usize,
}

// SAFETY: the memory is owned by this value alone, and mapped for the whole process.
unsafe impl Send for Ring {}

/// A frame in its slot.
#[derive(Debug)]
pub(super) struct Received<'r> {
    /// [`RESERVE`] free octets, and the frame behind them.
    pub(super) octets: &'r mut [u8],
    /// The `VLAN` tag that the kernel took off: TPID and TCI.
    pub(super) vlan: Option<[u8; 4]>,
    /// Whether octets at the end were cut off.
    pub(super) is_cut: bool,
    /// Offloads that the sender requested.
    pub(super) offload: Offload,
    /// When the kernel took it, in nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// The number of the interface where it came in.
    pub(super) interface: i32,
}

/// Offloads that the sender left to the hardware, and that no hardware performs on a virtual link (`struct
/// virtio_net_hdr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offload {
    Nothing,
    /// A checksum over all from `start`, to be put `offset` behind it.
    Checksum {
        start: usize,
        offset: usize,
    },
    /// To cut the frame into segments.
    Segmentation,
}

impl Ring {
    /// Lays a ring for frames of `frame_octets` over a socket that is not bound yet: so many blocks of some slots each,
    /// seven for frames of 9,000 octets.
    pub(super) fn new(socket: &Socket, frame_octets: usize, blocks: usize) -> io::Result<Self> {
        let slots_per_block = BLOCK / (frame_octets + BEFORE_FRAME);
        let slot_octets = BLOCK / slots_per_block / libc::TPACKET_ALIGNMENT * libc::TPACKET_ALIGNMENT;
        socket.set_packet(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        socket.set_packet(libc::PACKET_RESERVE, &(RESERVE as libc::c_uint))?;
        socket.set_packet(libc::PACKET_VNET_HDR, &1_i32)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as libc::c_uint,
            tp_block_nr: blocks as libc::c_uint,
            tp_frame_size: slot_octets as libc::c_uint,
            tp_frame_nr: (slots_per_block * blocks) as libc::c_uint,
        };
        socket.set_packet(libc::PACKET_RX_RING, &request)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice changes no memory of ours.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), BLOCK * blocks, protection, flags, socket.raw(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { memory, slot_octets, slots_per_block, blocks, block: 0, slot: 0 })
    }

    /// The frame that has waited longest. It stays until [`Ring::release`]. A slot whose header makes no sense is
    /// skipped.
    pub(super) fn next(&mut self) -> Option<Received<'_>> {
        let slot = self.place();
        // SAFETY: the status is the first word of a slot, aligned as every slot is, and only accessed atomically.
        let status = unsafe { AtomicU32::from_ptr(slot.cast().as_ptr()) }.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot begins with this header, which the kernel wrote before it set the status.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        let Some(Range { start, end }) = frame_in_slot(header.tp_mac, header.tp_snaplen, self.slot_octets) else {
            self.release();
            return None;
        };
        // SAFETY: the kernel puts the frame's address behind the header, aligned, before it sets the status.
        let address = unsafe { slot.add(ADDRESS).cast::<libc::sockaddr_ll>().read() };
        // SAFETY: between status and release the slot is ours, and these octets lie in it: the kernel puts the offload
        // header before the frame, behind its own.
        let offload = unsafe { slot.add(start - OFFLOAD).cast::<[u8; OFFLOAD]>().read() };
        let len = end - start;
        // SAFETY: as before; the borrow of `self` keeps the slot from being released or returned again.
        let octets = unsafe { std::slice::from_raw_parts_mut(slot.add(start - RESERVE).as_ptr(), RESERVE + len) };
        let vlan = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let has_tpid = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let tpid = if has_tpid { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
            [tpid.to_be_bytes(), header.tp_vlan_tci.to_be_bytes()].as_flattened().try_into().unwrap_or_default()
        });
        Some(Received {
            octets,
            vlan,
            is_cut: len < header.tp_len as usize,
            offload: Offload::parse(offload),
            time_ns: u64::from(header.tp_sec) * NS_PER_S + u64::from(header.tp_nsec),
            interface: address.sll_ifindex,
        })
    }

    /// Gives the slot of [`Ring::next`] back to the kernel.
    pub(super) fn release(&mut self) {
        // SAFETY: as in `next`; nothing refers to the slot any more.
        unsafe { AtomicU32::from_ptr(self.place().cast().as_ptr()) }.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.slot += 1;
        if self.slot == self.slots_per_block {
            self.slot = 0;
            self.block = (self.block + 1) % self.blocks;
        }
    }

    fn place(&self) -> NonNull<u8> {
        // SAFETY: block and slot are below their numbers, so the place lies inside the mapping.
        unsafe { self.memory.add(self.block * BLOCK + self.slot * self.slot_octets) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, of this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCK * self.blocks) };
    }
}

/// Where a frame lies in its slot, [`RESERVE`] and [`OFFLOAD`] before it; `None` if it does not.
fn frame_in_slot(tp_mac: u16, tp_snaplen: u32, slot_octets: usize) -> Option<Range<usize>> {
    let start = usize::from(tp_mac);
    let end = slot_octets.min(start.checked_add(tp_snaplen as usize)?);
    (start >= RESERVE.max(OFFLOAD) && start <= end).then_some(start..end)
}

impl Offload {
    fn parse(octets: [u8; OFFLOAD]) -> Self {
        const NEEDS_CHECKSUM: u8 = 1;
        let [flags, segmentation, _, _, _, _, start_0, start_1, offset_0, offset_1] = octets;
        if segmentation != 0 {
            return Offload::Segmentation;
        }
        if flags & NEEDS_CHECKSUM == 0 {
            return Offload::Nothing;
        }
        let start = u16::from_ne_bytes([start_0, start_1]).into();
        Offload::Checksum { start, offset: u16::from_ne_bytes([offset_0, offset_1]).into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_in_their_slots() {
        assert_eq!(frame_in_slot(82, 60, 2048), Some(82..142));
        assert_eq!(frame_in_slot(82, 9000, 2048), Some(82..2048), "cut");
        assert_eq!(frame_in_slot(2048, 1, 2048), Some(2048..2048));
        for (tp_mac, tp_snaplen) in [(0, 60), (3, 60), (9, 60), (2049, 0), (u16::MAX, u32::MAX)] {
            assert_eq!(frame_in_slot(tp_mac, tp_snaplen, 2048), None);
        }
    }
}
