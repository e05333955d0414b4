//! Admission of frames at a port: which are accepted as packets.

use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6, ipv6};
use crate::scope;
use srdma_wire::{EtherType, MacAddress, Pfc};

/// A MAC address as a word, to be compared at once.
#[inline]
pub(crate) fn mac_word(mac: &MacAddress) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// Whether a frame of `len` octets is an IPv6 packet for the port with this MAC address; returns where the packet ends,
/// which padding may follow.
#[inline(always)]
pub(crate) fn admit(mac: u64, head: &[u8], len: usize) -> Result<usize, DropReason> {
    let headers = head.first_chunk::<AFTER_IPV6>().ok_or_else(|| short_frame(head))?;
    let word: [u8; 8] = std::array::from_fn(|index| headers[index]);
    if u64::from_le_bytes(word) << 16 != mac << 16 && !is_multicast_frame(headers) {
        return Err(other_mac(headers));
    }
    if headers[12..14] != EtherType::IPV6.0.to_be_bytes() || headers[IPV6] >> 4 != 6 {
        return Err(short_frame(head));
    }
    if scope::may_be_special(headers[IPV6 + 8])
        && let Some(reason) = refused_source(headers)
    {
        return Err(reason);
    }
    let end = AFTER_IPV6 + usize::from(u16::from_be_bytes([headers[IPV6 + 4], headers[IPV6 + 5]]));
    if end > len { Err(DropReason::Truncated) } else { Ok(end) }
}

/// A multicast frame with a multicast destination, and no other, is for every port (RFC 2464 section 7).
#[inline]
fn is_multicast_frame(headers: &[u8; AFTER_IPV6]) -> bool {
    headers[0] & 1 != 0 && headers[IPV6 + 24] == 0xFF
}

/// Why a packet is not accepted for its source. One to a multicast group may come from a neighbour's link-local
/// address.
#[cold]
fn refused_source(headers: &[u8; AFTER_IPV6]) -> Option<DropReason> {
    let reason = scope::refused_source(headers[IPV6 + 8..].first_chunk()?)?;
    (reason != DropReason::Scope || headers[IPV6 + 24] != 0xFF).then_some(reason)
}

/// Whether a frame is an IPv6 packet, for any MAC address.
pub(crate) fn is_ipv6(head: &[u8]) -> bool {
    head.get(12..14) == Some(&EtherType::IPV6.0.to_be_bytes()) && ipv6(head).is_ok_and(|view| view.version() == 6)
}

/// Whether a frame is MAC control, such as a pause, which no bridge forwards.
pub(crate) fn is_mac_control(head: &[u8]) -> bool {
    head.starts_with(&Pfc::DESTINATION.0) && head.get(12..14) == Some(&EtherType::MAC_CONTROL.0.to_be_bytes())
}

/// The drop reason of a frame to another MAC address.
#[cold]
fn other_mac(headers: &[u8]) -> DropReason {
    if is_mac_control(headers) { DropReason::MacControl } else { DropReason::NotForThisPort }
}

/// The drop reason of a frame that is not an IPv6 packet.
#[cold]
fn short_frame(head: &[u8]) -> DropReason {
    match head.get(12..14).map(|ethertype| EtherType(u16::from_be_bytes([ethertype[0], ethertype[1]]))) {
        None => DropReason::Truncated,
        Some(EtherType::VLAN) => DropReason::VlanTagged,
        Some(EtherType::MAC_CONTROL) => other_mac(head),
        Some(EtherType::IPV6) => match ipv6(head) {
            Ok(view) if view.version() != 6 => DropReason::BadVersion,
            _ => DropReason::Truncated,
        },
        Some(_) => DropReason::NotIpv6,
    }
}
