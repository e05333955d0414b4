//! Options headers at a SID: this node is the packet's destination and processes them (RFC 8200 section 4.2;
//! D229).

use super::{Outcome, pointer};
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, MAX_EXTENSION_HEADERS, Place, beyond, ipv6};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::options::{OptionsHeader, UnknownAction};

/// The header behind the options headers at `at`, of whose options none makes the node discard the packet.
#[inline]
pub(crate) fn behind_options(head: &[u8], at: Place) -> Result<Place, Outcome> {
    match at.header {
        NextHeader::HOP_BY_HOP | NextHeader::DESTINATION_OPTIONS => process(head, at),
        _ => Ok(at),
    }
}

#[cold]
fn process(head: &[u8], mut at: Place) -> Result<Place, Outcome> {
    for _ in 0..MAX_EXTENSION_HEADERS {
        match at.header {
            // It is only understood right behind the IPv6 header (RFC 8200 section 4.1).
            NextHeader::HOP_BY_HOP if at.offset != AFTER_IPV6 => {
                let error = Icmpv6Error::UnrecognisedNextHeader(pointer(at.announced_at));
                return Err(Outcome::Report(DropReason::MisplacedHeader, error));
            }
            NextHeader::HOP_BY_HOP | NextHeader::DESTINATION_OPTIONS => at = behind_one(head, at)?,
            _ => return Ok(at),
        }
    }
    Err(too_many_headers(at))
}

/// More extension headers than the node processes (RFC 8883 section 2.4).
#[cold]
pub(super) fn too_many_headers(at: Place) -> Outcome {
    Outcome::Report(DropReason::HeaderTooLong, Icmpv6Error::TooManyExtensionHeaders(pointer(at.offset)))
}

fn behind_one(head: &[u8], at: Place) -> Result<Place, Outcome> {
    let octets = head.get(at.offset..).ok_or_else(|| beyond(head))?;
    let (header, _) = OptionsHeader::split(octets).map_err(|_| beyond(head))?;
    for option in header.iter() {
        let option = option.map_err(|overrun| {
            let error = Icmpv6Error::ErroneousField(pointer(at.offset + overrun.offset));
            Outcome::Report(DropReason::BadOption, error)
        })?;
        let error = Icmpv6Error::UnrecognisedOption(pointer(at.offset + option.offset));
        match option.unknown_action() {
            UnknownAction::Skip => {}
            UnknownAction::Discard => return Err(DropReason::BadOption.into()),
            UnknownAction::DiscardAndReportUnlessMulticast if ipv6(head)?.destination().is_multicast() => {
                return Err(DropReason::BadOption.into());
            }
            UnknownAction::DiscardAndReport | UnknownAction::DiscardAndReportUnlessMulticast => {
                return Err(Outcome::Report(DropReason::BadOption, error));
            }
        }
    }
    Ok(at.behind_options_header(header.header))
}
