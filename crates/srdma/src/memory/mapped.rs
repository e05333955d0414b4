//! Regions in files without a name, which other processes of the user map to read them (D199).
//!
//! The file is sealed: its length stays, so that no access to a map can fail, and no map but the first one can be
//! written, by any process that has the descriptor.
#![allow(unsafe_code, reason = "memory that several processes map")]

use super::slots::{Backing, Region, RegionMemory, SharedRange};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Seals without which a rank does not map a file: it could fault, or be changed by others.
const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_FUTURE_WRITE);

impl Region {
    /// Memory in a file that other processes can map, but not write.
    pub(crate) fn in_file(length_octets: usize) -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create(c"srdma region", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        let file = File::from(file);
        file.set_len(length_octets as u64)?;
        let memory = map(&file, length_octets, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE)?;
        fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS | SealFlag::F_SEAL_SEAL))?;
        Ok((Region::of(memory), file.into()))
    }
}

/// A region of another process, as this one reads it.
#[derive(Clone)]
pub(crate) struct ReadRegion(Arc<RegionMemory>);

impl ReadRegion {
    /// Maps a file that another process has passed on. Refused unless it is sealed, and has the length that it is said
    /// to have: else reading it could fault.
    pub(crate) fn map(file: OwnedFd, length_octets: u64) -> io::Result<Self> {
        let seals = SealFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GET_SEALS)?);
        if !seals.contains(SEALS) {
            return Err(io::Error::other("the region is not sealed"));
        }
        let file = File::from(file);
        let length = usize::try_from(length_octets).map_err(io::Error::other)?;
        if file.metadata()?.len() != length_octets {
            return Err(io::Error::other("the region does not have the length that its owner has stated"));
        }
        Ok(ReadRegion(Arc::new(map(&file, length, ProtFlags::PROT_READ)?)))
    }

    /// A range that this process has been offered, and that the owner does not write until it is released; `None`
    /// beyond the region.
    pub(crate) fn range(&self, range: Range<usize>) -> Option<SharedRange> {
        SharedRange::new(&self.0, range)
    }
}

fn map(file: &File, length: usize, protection: ProtFlags) -> io::Result<RegionMemory> {
    let Some(octets) = NonZeroUsize::new(length) else {
        return Err(io::Error::other("the region has no octets"));
    };
    // SAFETY: a new map, at a place that the kernel chooses; the file has this length, and keeps it.
    let base = unsafe { mmap(None, octets, protection, MapFlags::MAP_SHARED, file, 0) }?;
    Ok(RegionMemory::new(base.cast(), length, Backing::Mapped))
}

/// Sends octets and a descriptor; returns the number of octets that the socket has taken.
pub(crate) fn send_descriptor(socket: &UnixStream, octets: &[u8], file: BorrowedFd<'_>) -> io::Result<usize> {
    let descriptors = [file.as_raw_fd()];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let rights = [ControlMessage::ScmRights(&descriptors)];
    match sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(octets)], &rights, flags, None) {
        Ok(sent) => Ok(sent),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Receives octets, and the first descriptor that comes with them; further ones are closed.
pub(crate) fn receive_descriptor(socket: &UnixStream, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = cmsg_space!([RawFd; 2]);
    let mut slices = [IoSliceMut::new(into)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut slices, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has opened them for this call, and nothing else knows their numbers.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    Ok((message.bytes, descriptors.into_iter().next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn written(length: usize, at: Range<usize>, value: u8) -> (super::super::SlotMemory, OwnedFd) {
        let (region, file) = Region::in_file(length).expect("memory");
        let mut slots = region.into_slots();
        slots.deliver(at.start as u64, &vec![value; at.len()]);
        (slots, file)
    }

    #[test]
    fn what_the_owner_writes_is_read_by_others() {
        let (mut slots, file) = written(8192, 100..200, 7);
        let read = ReadRegion::map(file, 8192).expect("sealed");
        let range = read.range(100..200).expect("inside");
        assert_eq!(range.octets(0, 100), Some(&[7; 100][..]));
        slots.deliver(5000, &[8]);
        assert_eq!(read.range(5000..5001).expect("inside").octets(0, 1), Some(&[8][..]));
        assert!(read.range(8000..8193).is_none() && read.range(Range { start: 2, end: 1 }).is_none());
        // The memory lives as long as a range of it.
        drop((slots, read));
        assert_eq!(range.octets(99, 1), Some(&[7][..]));
    }

    #[test]
    fn nothing_else_can_write_or_cut_the_region() {
        let (_slots, file) = written(4096, 0..1, 1);
        let mut file = File::from(file);
        assert!(file.set_len(0).is_err() && file.set_len(8192).is_err());
        file.rewind().expect("a file");
        assert!(file.write(&[9]).is_err());
        assert!(map(&file, 4096, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE).is_err());
        assert!(fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_WRITE)).is_err());
    }

    #[test]
    fn a_file_that_is_not_sealed_or_has_another_length_is_not_mapped() {
        let file = memfd_create(c"open", MFdFlags::MFD_ALLOW_SEALING).expect("memory");
        let file = File::from(file);
        file.set_len(4096).expect("memory");
        let error = ReadRegion::map(file.into(), 4096).err().expect("refused").to_string();
        assert_eq!(error, "the region is not sealed");
        for length in [4095, 4097, u64::MAX] {
            let (_, file) = Region::in_file(4096).expect("memory");
            assert!(ReadRegion::map(file, length).is_err(), "{length}");
        }
        let pipe = std::io::pipe().expect("a pipe").0;
        assert!(ReadRegion::map(pipe.into(), 4096).is_err());
        assert!(Region::in_file(0).is_err());
    }

    #[test]
    fn a_descriptor_is_passed_with_the_octets() {
        let (_slots, file) = written(4096, 0..1, 3);
        let (owner, rank) = UnixStream::pair().expect("sockets");
        assert_eq!(send_descriptor(&owner, b"abc", file.as_fd()).expect("sent"), 3);
        let mut octets = [0; 8];
        let (length, received) = receive_descriptor(&rank, &mut octets).expect("there");
        assert_eq!(&octets[..length], b"abc");
        let read = ReadRegion::map(received.expect("a descriptor"), 4096).expect("sealed");
        assert_eq!(read.range(0..1).expect("inside").octets(0, 1), Some(&[3][..]));
        drop(owner);
        assert!(matches!(receive_descriptor(&rank, &mut octets), Ok((0, None))));
    }
}
