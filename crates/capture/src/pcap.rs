//! Classic pcap: either byte order, microseconds or nanoseconds.

use crate::error::{ReadError, Reason};
use crate::packet::{Interface, LinkType, Packet};
use crate::source::{MAX_BLOCK_LEN, Source, u32_of};
use pcap_file::pcap::PcapHeader;
use pcap_file::{Endianness, TsResolution};
use std::io::Read;
use std::sync::Arc;

/// The contents of the file header.
pub(crate) struct Pcap {
    order: Endianness,
    nanoseconds_per_unit: u32,
    pub(crate) interface: Arc<Interface>,
}

const HEADER_LEN: usize = 24;

impl Pcap {
    /// Reads the rest of the file header, whose first four octets are `magic`.
    pub(crate) fn open<R: Read>(source: &mut Source<R>, magic: [u8; 4]) -> Result<Self, ReadError> {
        let mut octets = magic.to_vec();
        let found = octets.len() + source.append(HEADER_LEN - octets.len(), &mut octets)?;
        let truncated = Reason::Truncated { what: "pcap file header", needed: HEADER_LEN, found };
        let (_, header) = PcapHeader::from_slice(&octets).map_err(|_| source.error(truncated))?;
        // The high half of the field may hold the length of a frame check sequence.
        let link_type = LinkType(u32::from(header.datalink) & 0xFFFF);
        Ok(Pcap {
            order: header.endianness,
            nanoseconds_per_unit: match header.ts_resolution {
                TsResolution::MicroSecond => 1000,
                TsResolution::NanoSecond => 1,
            },
            interface: Arc::new(Interface { index: 0, name: None, link_type }),
        })
    }

    /// The next packet, `None` at the end of the file. The inner error is of one packet, the outer one makes the rest
    /// unreadable.
    ///
    /// ```text
    /// | seconds (32) | fraction (32) | captured length (32) | original length (32) | octets …
    /// ```
    pub(crate) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<Result<Packet, ReadError>>, ReadError> {
        source.begin_record();
        let what = "packet record";
        let Some(header) = source.array::<16>(what)? else { return Ok(None) };
        let (fields, _) = header.as_chunks::<4>();
        let [seconds, fraction, captured_len, original_len] = [0, 1, 2, 3].map(|at| u32_of(self.order, fields[at]));
        let needed = captured_len as usize;
        if needed > MAX_BLOCK_LEN {
            return Err(source.error(Reason::TooLong { what, length: captured_len, limit: MAX_BLOCK_LEN }));
        }
        let mut octets = Vec::new();
        let found = source.append(needed, &mut octets)?;
        if found < needed {
            return Err(source.error(Reason::Truncated { what: "packet", needed, found }));
        }
        let limit = 1_000_000_000 / self.nanoseconds_per_unit;
        let error = (fraction >= limit).then(|| source.error(Reason::TimeFraction { found: fraction, limit }));
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * u64::from(self.nanoseconds_per_unit);
        let packet = Packet {
            frame: source.count_frame(),
            offset: source.record_offset(),
            time_ns,
            interface: self.interface.clone(),
            octets,
            original_len,
        };
        Ok(Some(error.map_or(Ok(packet), Err)))
    }
}
