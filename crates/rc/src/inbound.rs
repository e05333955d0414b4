//! A received packet with parsed headers and checked lengths.

use crate::counters::DropReason;
use crate::fast_cnp;
use srdma_wire::NextHeader;
use srdma_wire::fast_cnp::{FastCnp, OptionTypes};
use srdma_wire::ioam::{Trace, TraceError};
use srdma_wire::options::{OptionsHeader, UnknownAction};
use srdma_wire::rocev2::{NotRocev2, Packet, UdpChecksum};

/// A packet whose headers lie in the first slice and whose lengths agree.
pub(crate) struct Inbound<'a> {
    pub(crate) headers: Packet<'a>,
    slices: &'a [&'a [u8]],
}

impl<'a> Inbound<'a> {
    pub(crate) fn parse(slices: &'a [&'a [u8]]) -> Result<Self, DropReason> {
        let first = *slices.first().ok_or(DropReason::Truncated)?;
        let total_len = slices.iter().map(|slice| slice.len()).sum();
        let headers = Packet::parse(first, total_len).map_err(|error| reason(error, first.len() < total_len))?;
        let padded_len = headers.icrc_offset() - headers.payload_range().start;
        if !padded_len.is_multiple_of(4) {
            return Err(DropReason::PadCount);
        }
        Ok(Inbound { headers, slices })
    }

    /// The contents of its extension headers; an error for headers that a host does not accept.
    pub(crate) fn extensions(&self, types: OptionTypes) -> Result<Extensions<'a>, DropReason> {
        let mut extensions = Extensions { fast_cnp: None, trace: None };
        if self.headers.extension_octets() == 0 {
            return Ok(extensions);
        }
        extensions.fast_cnp = FastCnp::find(&self.headers, types).map_err(fast_cnp::reason)?;
        // The packet's parser has walked these to their end: there are no errors among them.
        for header in self.headers.extension_headers().flatten() {
            match header.kind {
                NextHeader::HOP_BY_HOP => {
                    check_options(header.octets)?;
                    extensions.trace = Trace::find(header.octets);
                }
                // Its options have been checked.
                NextHeader::DESTINATION_OPTIONS if extensions.fast_cnp.is_some() => {}
                _ => return Err(DropReason::NotUdp),
            }
        }
        Ok(extensions)
    }

    /// The whole packet.
    pub(crate) fn octets(&self) -> Vec<u8> {
        self.slices.concat()
    }

    /// Octets of payload, padding not counted.
    pub(crate) fn payload_len(&self) -> u32 {
        self.headers.payload_range().len() as u32
    }

    /// The payload, in the pieces it came in.
    pub(crate) fn payload(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let range = self.headers.payload_range();
        let (mut skip, mut left) = (range.start, range.len());
        self.slices.iter().filter_map(move |slice| {
            let start = skip.min(slice.len());
            let end = (start + left).min(slice.len());
            skip -= start;
            left -= end - start;
            slice.get(start..end).filter(|piece| !piece.is_empty())
        })
    }

    /// Whether the ICRC is right. It may straddle slices.
    pub(crate) fn icrc_is_good(&self) -> bool {
        self.headers.icrc(self.further()).is_ok_and(|check| check.is_good())
    }

    /// Whether its payload was cut off on the way (D88).
    pub(crate) fn is_trimmed(&self) -> bool {
        let opcode = self.headers.bth.opcode();
        self.payload_len() == 0
            && (opcode.is_send() || opcode.is_write())
            && self.headers.icrc(self.further()).is_ok_and(|check| check.is_trimmed())
    }

    /// Whether the UDP checksum is zero or right (RFC 6936 section 4).
    pub(crate) fn udp_checksum_is_good(&self) -> bool {
        self.headers.udp_checksum(self.further()).is_ok_and(|checksum| checksum != UdpChecksum::Bad)
    }

    fn further(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.slices.iter().skip(1).copied()
    }
}

/// Contents of extension headers.
pub(crate) struct Extensions<'a> {
    pub(crate) fast_cnp: Option<FastCnp<'a>>,
    pub(crate) trace: Option<Result<Trace<'a>, TraceError>>,
}

/// A host skips unknown options, where their type allows it (RFC 8200 section 4.2).
fn check_options(header: &[u8]) -> Result<(), DropReason> {
    let (header, _) = OptionsHeader::split(header).map_err(|_| DropReason::OptionOverrun)?;
    for option in header.iter() {
        let option = option.map_err(|_| DropReason::OptionOverrun)?;
        match option.unknown_action() {
            UnknownAction::Skip => {}
            UnknownAction::Discard
            | UnknownAction::DiscardAndReport
            | UnknownAction::DiscardAndReportUnlessMulticast => return Err(DropReason::UnknownOption),
        }
    }
    Ok(())
}

fn reason(error: NotRocev2, has_more_slices: bool) -> DropReason {
    match error {
        // Octets missing in the first slice may be in later ones, unless the packet as a whole is too short.
        NotRocev2::Truncated(truncated) if has_more_slices && truncated.header != "IPv6 packet" => {
            DropReason::HeadersNotContiguous
        }
        NotRocev2::Truncated(_) | NotRocev2::TooShort { .. } => DropReason::Truncated,
        NotRocev2::Version(_) => DropReason::NotIpv6,
        NotRocev2::Extension(_) | NotRocev2::UpperLayer(_) => DropReason::NotUdp,
        NotRocev2::DestinationPort(_) => DropReason::NotRoce,
        NotRocev2::UdpLength { .. } => DropReason::UdpLength,
        NotRocev2::TransportVersion(_) => DropReason::TransportVersion,
        NotRocev2::Opcode(_) => DropReason::UnknownOpcode,
    }
}
