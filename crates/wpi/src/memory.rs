//! Buffers: files in memory without a name, whose descriptors consumers get and map (D210).

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};

/// Octets of a piece that is copied at a time.
const PIECE_OCTETS: usize = 1 << 20;

/// The memory of a buffer. Consumers write it as well; the driver maps nothing, so that no access can fault.
pub(crate) struct Memory {
    file: File,
}

impl Memory {
    /// Zeros; pages are taken when they are written. Its length stays: a consumer that cut it would end the others.
    pub(crate) fn new(octets: u64) -> io::Result<Self> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(c"srdma weights", flags)?);
        file.set_len(octets)?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        Ok(Memory { file })
    }

    /// What names it among the files of this machine.
    pub(crate) fn handle(&self) -> io::Result<String> {
        Ok(format!("memfd:{}", self.file.metadata()?.ino()))
    }

    /// A copy of a range.
    pub(crate) fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let mut octets = Vec::new();
        octets.try_reserve_exact(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        octets.resize(length, 0);
        self.file.read_exact_at(&mut octets, offset)?;
        Ok(octets)
    }

    /// Writes octets, all inside the buffer.
    pub(crate) fn write(&self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.file.write_all_at(octets, offset)
    }

    /// Writes the first octets of a file to the beginning, as many as it has; a longer one is an error.
    pub(crate) fn fill(&self, from: &File) -> io::Result<()> {
        let mut piece = vec![0; PIECE_OCTETS];
        let mut offset = 0;
        loop {
            match from.read_at(&mut piece, offset)? {
                0 => return Ok(()),
                read => {
                    self.write(offset, &piece[..read])?;
                    offset += read as u64;
                }
            }
        }
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn octets_are_written_and_read_inside_the_buffer_only() {
        let memory = Memory::new(5000).expect("memory");
        memory.write(4000, &[7; 1000]).expect("inside");
        assert_eq!(memory.read(3999, 2).expect("inside"), [0, 7]);
        assert_eq!(memory.read(0, 5000).expect("inside").len(), 5000);
        assert!(memory.write(4001, &[7; 1000]).is_err() && memory.write(u64::MAX, &[7]).is_err());
        assert!(memory.read(4001, 1000).is_err() && memory.read(0, 5001).is_err());
        assert!(memory.read(0, u64::MAX).is_err(), "no such memory");
        assert!(memory.handle().expect("a file").starts_with("memfd:"));
    }

    #[test]
    fn its_length_stays() {
        let memory = Memory::new(5000).expect("memory");
        let other = File::from(memory.as_fd().try_clone_to_owned().expect("a descriptor"));
        assert!(other.set_len(1).is_err() && other.set_len(6000).is_err());
        other.write_all_at(&[3], 4999).expect("a consumer writes");
        assert_eq!(memory.read(4999, 1).expect("inside"), [3]);
    }

    #[test]
    fn a_file_fills_it_from_the_beginning() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[5; PIECE_OCTETS + 10]).expect("written");
        let memory = Memory::new(PIECE_OCTETS as u64 + 11).expect("memory");
        memory.fill(&file).expect("it fits");
        let end = memory.read(PIECE_OCTETS as u64 + 8, 3).expect("inside");
        assert_eq!(end, [5, 5, 0]);
        assert!(Memory::new(PIECE_OCTETS as u64).expect("memory").fill(&file).is_err(), "it does not fit");
    }
}
