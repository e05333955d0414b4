//! pcapng: sections, interfaces, and their packets.

use crate::error::{ReadError, Reason};
use crate::interface::Description;
use crate::packet::{Interface, Packet};
use crate::source::{MAX_BLOCK_LEN, Source, u32_of};
use pcap_file::Endianness;
use pcap_file::pcapng::blocks::{
    ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, PACKET_BLOCK, SECTION_HEADER_BLOCK, SIMPLE_PACKET_BLOCK,
};
use pcap_file::pcapng::{Block, PcapNgParser};
use std::io::Read;
use std::sync::Arc;

/// The first four octets of a pcapng file: the type of a Section Header Block, alike in both byte orders.
pub(crate) const MAGIC: [u8; 4] = SECTION_HEADER_BLOCK.to_be_bytes();

/// A file as far as it has been read.
pub(crate) struct Pcapng {
    parser: PcapNgParser,
    /// Interfaces of all sections.
    pub(crate) interfaces: Vec<Arc<Interface>>,
    /// Interfaces of this section, as they were described.
    section: Vec<Description>,
    /// Time of the newest packet, which a Simple Packet Block takes over.
    time_ns: u64,
}

/// A packet block: interface, time in its units (a Simple Packet Block has none), octets and original length.
struct Captured {
    interface: u32,
    units: Option<u64>,
    octets: Vec<u8>,
    original_len: u32,
}

impl Pcapng {
    /// Reads the rest of the first block, whose type has been read.
    pub(crate) fn open<R: Read>(source: &mut Source<R>) -> Result<Self, ReadError> {
        let block = read_block(source, MAGIC, Endianness::Little)?;
        let (_, parser) = PcapNgParser::new(&block).map_err(|error| source.error(Reason::block(&error)))?;
        Ok(Pcapng { parser, interfaces: Vec::new(), section: Vec::new(), time_ns: 0 })
    }

    /// The next packet, `None` at the end of the file. The inner error is of one block, the outer one makes the rest
    /// unreadable.
    pub(crate) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<Result<Packet, ReadError>>, ReadError> {
        loop {
            source.begin_record();
            let Some(kind) = source.array::<4>("block type")? else { return Ok(None) };
            let order = self.parser.section().endianness;
            let block = read_block(source, kind, order)?;
            match u32_of(order, kind) {
                _ if kind == MAGIC => self.begin_section(source, &block)?,
                INTERFACE_DESCRIPTION_BLOCK => {
                    if let Err(error) = self.describe_interface(source, &block)? {
                        return Ok(Some(Err(error)));
                    }
                }
                ENHANCED_PACKET_BLOCK | SIMPLE_PACKET_BLOCK | PACKET_BLOCK => {
                    return Ok(Some(self.packet(source, &block)));
                }
                _ => {}
            }
        }
    }

    fn begin_section<R: Read>(&mut self, source: &Source<R>, block: &[u8]) -> Result<(), ReadError> {
        let (_, parser) = PcapNgParser::new(block).map_err(|error| source.error(Reason::block(&error)))?;
        self.parser = parser;
        self.section.clear();
        Ok(())
    }

    fn describe_interface<R: Read>(
        &mut self,
        source: &Source<R>,
        block: &[u8],
    ) -> Result<Result<(), ReadError>, ReadError> {
        let body = block.get(8..block.len().saturating_sub(4)).unwrap_or(&[]);
        let truncated = Reason::Truncated { what: "interface description", needed: 8, found: body.len() };
        let (description, damage) =
            Description::parse(body, self.parser.section().endianness).ok_or_else(|| source.error(truncated))?;
        let index = self.interfaces.len();
        let (name, link_type) = (description.name.clone(), description.link_type);
        self.interfaces.push(Arc::new(Interface { index, name, link_type }));
        self.section.push(description);
        Ok(damage.map_or(Ok(()), |reason| Err(source.error(reason))))
    }

    fn packet<R: Read>(&mut self, source: &mut Source<R>, block: &[u8]) -> Result<Packet, ReadError> {
        let offset = source.record_offset();
        let frame = source.count_frame();
        let error = |reason| ReadError { frame, offset, reason };
        let captured = self.captured(block).map_err(error)?;
        let known = self.section.len();
        let unknown = || error(Reason::UnknownInterface { interface: captured.interface, known });
        let position = captured.interface as usize;
        let description = self.section.get(position).ok_or_else(unknown)?;
        let interface = self.interfaces.get(self.interfaces.len() - known + position).ok_or_else(unknown)?;
        if let Some(units) = captured.units {
            self.time_ns = description.time_ns(units).ok_or_else(|| error(Reason::TimeRange))?;
        }
        Ok(Packet {
            frame,
            offset,
            time_ns: self.time_ns,
            interface: interface.clone(),
            octets: captured.octets,
            original_len: captured.original_len,
        })
    }

    fn captured(&mut self, block: &[u8]) -> Result<Captured, Reason> {
        let order = self.parser.section().endianness;
        let (_, block) = self.parser.next_block(block).map_err(|error| Reason::block(&error))?;
        match block {
            Block::EnhancedPacket(packet) => Ok(Captured {
                interface: packet.interface_id,
                // The parser takes the units for nanoseconds.
                units: Some(packet.timestamp.as_nanos() as u64),
                octets: packet.data.into_owned(),
                original_len: packet.original_len,
            }),
            Block::Packet(packet) => Ok(Captured {
                interface: packet.interface_id.into(),
                // The high half comes first in either byte order; the parser reads both halves as one number.
                units: Some(if order.is_big() { packet.timestamp } else { packet.timestamp.rotate_left(32) }),
                octets: packet.data.into_owned(),
                original_len: packet.original_len,
            }),
            Block::SimplePacket(packet) => {
                let snaplen = self.section.first().map_or(0, |description| description.snaplen);
                let limit = if snaplen == 0 { packet.original_len } else { snaplen.min(packet.original_len) };
                let needed = limit as usize;
                let found = packet.data.len();
                let octets = packet.data.get(..needed);
                let octets = octets.ok_or(Reason::Truncated { what: "simple packet", needed, found })?;
                Ok(Captured { interface: 0, units: None, octets: octets.to_vec(), original_len: packet.original_len })
            }
            other => Err(Reason::Block(format!("expected a packet block, found {other:?}"))),
        }
    }
}

/// The whole block whose type, `kind`, has been read, in the byte order of its section. Its two lengths agree.
///
/// ```text
/// | block type (32) | block length (32) | body | block length (32) |
/// ```
fn read_block<R: Read>(source: &mut Source<R>, kind: [u8; 4], order: Endianness) -> Result<Vec<u8>, ReadError> {
    let what = "block";
    let mut block = kind.to_vec();
    // A Section Header Block has its byte order behind its length.
    let needed = if kind == MAGIC { 12 } else { 8 };
    source.append(needed - block.len(), &mut block)?;
    let length = match block.get(4..8).and_then(|octets| octets.as_array::<4>()) {
        Some(length) if block.len() == needed => *length,
        _ => return Err(source.error(Reason::Truncated { what, needed, found: block.len() })),
    };
    let order = match block.get(8..12) {
        Some([0x1A, 0x2B, 0x3C, 0x4D]) => Endianness::Big,
        Some([0x4D, 0x3C, 0x2B, 0x1A]) => Endianness::Little,
        _ => order,
    };
    let length = u32_of(order, length);
    if !length.is_multiple_of(4) || length < 12 {
        return Err(source.error(Reason::BlockLength(length)));
    }
    let needed = length as usize;
    if needed > MAX_BLOCK_LEN {
        return Err(source.error(Reason::TooLong { what, length, limit: MAX_BLOCK_LEN }));
    }
    source.append(needed - block.len(), &mut block)?;
    let truncated = Reason::Truncated { what, needed, found: block.len() };
    let trailer = block.last_chunk::<4>().filter(|_| block.len() == needed).ok_or_else(|| source.error(truncated))?;
    match u32_of(order, *trailer) {
        trailer if trailer == length => Ok(block),
        trailer => Err(source.error(Reason::BlockTrailer { length, trailer })),
    }
}
