use super::{ADDRESS_OPTION_LEN, FastCnpError, MAX_TRACE_LEN, MIN_TRACE_LEN, OptionTypes, can_carry};
use crate::bth::Opcode;
use crate::extension::ExtensionHeader;
use crate::ioam::Trace;
use crate::ipv6::NextHeader;
use crate::options::{OptionTlv, OptionsHeader, UnknownAction};
use crate::rocev2::Packet;
use core::net::Ipv6Addr;

/// The fields of a Fast CNP beyond those of a CNP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastCnp<'a> {
    /// Destination of the packet that met congestion. With the BTH's Destination QP it names the sender's queue pair
    /// (FC-4-7).
    pub original_destination: Ipv6Addr,
    /// The IOAM pre-allocated trace of that packet as it lay in its option, from the Reserved octet on (FC-4-9).
    pub trace: Option<&'a [u8]>,
}

impl<'a> FastCnp<'a> {
    /// The contents of the Fast CNP option of `packet`; `None` when the packet has no such option. Any padding is
    /// accepted (D40).
    ///
    /// # Errors
    ///
    /// The packet has the option, or two of them, but is not as a Fast CNP must be.
    pub fn find(packet: &Packet<'a>, types: OptionTypes) -> Result<Option<Self>, FastCnpError> {
        if packet.extension_octets() == 0 {
            return Ok(None);
        }
        let mut found = None;
        // The packet's parser has walked these to their end: there are no errors among them.
        for header in packet.extension_headers().flatten() {
            let is_last = header.offset + header.octets.len() == packet.udp_offset();
            if let Some(option) = option_of(&header, types, found.is_some())? {
                let is_in_place = is_last && header.kind == NextHeader::DESTINATION_OPTIONS;
                if !is_in_place {
                    return Err(FastCnpError::WrongPlace { header_offset: header.offset });
                }
                found = Some(option);
            }
        }
        let Some(option) = found else { return Ok(None) };
        let fast_cnp = Self::from_option(option, types)?;
        match packet.bth.opcode() {
            Opcode::CNP => Ok(Some(fast_cnp)),
            other => Err(FastCnpError::NotACnp(other)),
        }
    }

    /// Whether a switch has sent this rather than the receiver, by the source address it came from (FC-4-8).
    pub fn is_from_switch(&self, source: Ipv6Addr) -> bool {
        source != self.original_destination
    }

    /// Whether it only returns the trace of a data packet to its sender, from this source address: a receiver's, and no
    /// sign of congestion (FC-4-8). Without a trace it is the receiver's CNP.
    pub fn only_returns_trace(&self, source: Ipv6Addr) -> bool {
        self.trace.is_some() && !self.is_from_switch(source)
    }

    /// The contents of an option of one of `types`, at any position. Equal types are distinguished by their length
    /// (D42).
    ///
    /// # Errors
    ///
    /// Its length is not allowed, or its trace is invalid.
    pub fn from_option(option: OptionTlv<'a>, types: OptionTypes) -> Result<Self, FastCnpError> {
        let is_address = match types.address() == types.trace() {
            true => option.data.len() <= ADDRESS_OPTION_LEN,
            false => option.kind == types.address(),
        };
        match is_address {
            true => Self::from_address(option),
            false => Self::from_trace(option),
        }
    }

    fn from_address(option: OptionTlv<'a>) -> Result<Self, FastCnpError> {
        let (offset, found) = (option.offset, option.data.len());
        match option.data.first_chunk::<ADDRESS_OPTION_LEN>() {
            None => Err(FastCnpError::TooShort { offset, needed: ADDRESS_OPTION_LEN, found }),
            Some(_) if found > ADDRESS_OPTION_LEN => {
                Err(FastCnpError::TooLong { offset, limit: ADDRESS_OPTION_LEN, found })
            }
            Some(address) => Ok(FastCnp { original_destination: (*address).into(), trace: None }),
        }
    }

    /// The trace, then the address.
    fn from_trace(option: OptionTlv<'a>) -> Result<Self, FastCnpError> {
        let (offset, found) = (option.offset, option.data.len());
        let too_short = FastCnpError::TooShort { offset, needed: MIN_TRACE_LEN + ADDRESS_OPTION_LEN, found };
        let (trace, address) = option.data.split_last_chunk::<ADDRESS_OPTION_LEN>().ok_or(too_short)?;
        if trace.len() < MIN_TRACE_LEN {
            return Err(too_short);
        }
        if !can_carry(trace.len()) {
            let whole_words = 2 + ((trace.len().min(MAX_TRACE_LEN) - 2) & !3);
            return Err(FastCnpError::TooLong { offset, limit: whole_words + ADDRESS_OPTION_LEN, found });
        }
        check_trace(trace)?;
        Ok(FastCnp { original_destination: (*address).into(), trace: Some(trace) })
    }
}

/// A trace's data have the length that its header gives (RFC 9197 section 4.4.1).
fn check_trace(trace: &[u8]) -> Result<(), FastCnpError> {
    for node in Trace::parse(trace)?.nodes() {
        node?;
    }
    Ok(())
}

/// The Fast CNP option of an options header; there may be only one, in all headers together.
fn option_of<'a>(
    header: &ExtensionHeader<'a>,
    types: OptionTypes,
    mut is_second: bool,
) -> Result<Option<OptionTlv<'a>>, FastCnpError> {
    if !matches!(header.kind, NextHeader::DESTINATION_OPTIONS | NextHeader::HOP_BY_HOP) {
        return Ok(None);
    }
    let Ok((options, _)) = OptionsHeader::split(header.octets) else { return Ok(None) };
    let mut found = None;
    let mut unknown = None;
    for option in options.iter() {
        let option = option?;
        if types.contains(option.kind) {
            if core::mem::replace(&mut is_second, true) {
                return Err(FastCnpError::Twice { offset: option.offset });
            }
            found = Some(option);
        } else if option.unknown_action() != UnknownAction::Skip {
            unknown = Some(option.kind);
        }
    }
    match (found, unknown) {
        (Some(_), Some(kind)) => Err(FastCnpError::UnknownOption(kind)),
        (found, _) => Ok(found),
    }
}
