//! The pcapng writer.

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::{ENHANCED_PACKET_BLOCK, PcapNgBlock};
use pcap_file::{DataLink, Endianness, PcapError};
use std::io::{self, Write};

/// An interface of the [`Writer`] that described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Writes a pcapng file: Ethernet interfaces with names, packets with nanoseconds.
///
/// Always little-endian, so that the same packets make the same file everywhere. Each packet is a few small writes:
/// hand over a [`std::io::BufWriter`].
pub struct Writer<W: Write> {
    output: PcapNgWriter<W>,
    interfaces: u32,
}

/// Octets of an Enhanced Packet Block beside the packet and its padding.
const PACKET_OVERHEAD: usize = 32;

impl<W: Write> Writer<W> {
    /// Writes the section header.
    ///
    /// # Errors
    ///
    /// Those of `output`.
    pub fn new(output: W) -> io::Result<Self> {
        let options = vec![SectionHeaderOption::UserApplication("srdma".into())];
        let section = SectionHeaderBlock { endianness: Endianness::Little, options, ..Default::default() };
        let output = PcapNgWriter::with_section_header(output, section).map_err(io_error)?;
        Ok(Writer { output, interfaces: 0 })
    }

    /// Describes an Ethernet interface: its name, nanoseconds, no limit on the length of packets.
    ///
    /// # Errors
    ///
    /// Those of the output, and `InvalidInput` for a name of more than 65,535 octets.
    pub fn add_interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        if name.len() > usize::from(u16::MAX) {
            return Err(invalid("interface name", name.len(), u16::MAX.into()));
        }
        let options =
            vec![InterfaceDescriptionOption::IfName(name.into()), InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
        let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
        self.output.write_block(&block.into_block()).map_err(io_error)?;
        let id = InterfaceId(self.interfaces);
        self.interfaces += 1;
        Ok(id)
    }

    /// Writes a packet, whose octets are those of `pieces` one after the other, seen on `interface` at `time_ns`
    /// nanoseconds since 1970.
    ///
    /// ```text
    /// | 6 (32) | block length (32) | interface (32) | time high (32), low (32) | captured (32) | original (32) |
    /// | octets, padded to 4 | block length (32) |
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the output, and `InvalidInput` for a packet longer than [`crate::MAX_BLOCK_LEN`] allows, or the
    /// interface of another writer.
    pub fn write_packet(&mut self, interface: InterfaceId, time_ns: u64, pieces: &[&[u8]]) -> io::Result<()> {
        if interface.0 >= self.interfaces {
            return Err(invalid("interface", interface.0 as usize, self.interfaces.saturating_sub(1) as usize));
        }
        let captured_len = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let limit = crate::MAX_BLOCK_LEN - PACKET_OVERHEAD;
        let padding = captured_len.wrapping_neg() % 4;
        let captured = u32::try_from(captured_len)
            .ok()
            .filter(|_| captured_len <= limit)
            .ok_or_else(|| invalid("packet length", captured_len, limit))?;
        let block = captured + (padding + PACKET_OVERHEAD) as u32;
        let time_high = (time_ns >> 32) as u32;
        let fields = [ENHANCED_PACKET_BLOCK, block, interface.0, time_high, time_ns as u32, captured, captured];
        let output = self.output.get_mut();
        output.write_all(fields.map(u32::to_le_bytes).as_flattened())?;
        for piece in pieces {
            output.write_all(piece)?;
        }
        let mut end = [0; 7];
        end[padding..padding + 4].copy_from_slice(&block.to_le_bytes());
        output.write_all(&end[..padding + 4])
    }

    /// Flushes, and gives the output back.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn finish(self) -> io::Result<W> {
        let mut output = self.output.into_inner();
        output.flush()?;
        Ok(output)
    }
}

/// `if_tsresol`: 10 to the power of minus 9.
const NANOSECONDS: u8 = 9;

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

fn invalid(what: &str, found: usize, limit: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what} must be at most {limit}, found {found}"))
}
