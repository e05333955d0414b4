//! Addresses that no forwarded packet has: their scope is a link or a host (RFC 4291 sections 2.5.2, 2.5.3 and 2.5.6,
//! RFC 4007).

use crate::drop::DropReason;

/// Whether an address that begins with this octet may be a multicast, link-local, loopback or unspecified one.
#[inline(always)]
pub(crate) fn may_be_special(first: u8) -> bool {
    // 0x00, 0xFE, 0xFF
    first.wrapping_sub(1) >= 0xFD
}

/// Whether an address is a link-local one.
pub(crate) fn is_link_local(address: &[u8; 16]) -> bool {
    address[0] == 0xFE && address[1] & 0xC0 == 0x80
}

/// Whether an address is IPv4-mapped: that of an IPv4 host (D258, D272).
#[inline(always)]
pub(crate) fn is_mapped(address: &[u8; 16]) -> bool {
    u128::from_be_bytes(*address) >> 32 == 0xFFFF
}

/// The unspecified address, or that of the loopback.
fn is_of_host(address: &[u8; 16]) -> bool {
    u128::from_be_bytes(*address) <= 1
}

/// Whether a unicast packet to an address may not leave the node.
#[cold]
pub(crate) fn is_bound(address: &[u8; 16]) -> bool {
    is_link_local(address) || is_of_host(address)
}

/// Why no packet from an address may be forwarded.
#[cold]
pub(crate) fn refused_source(address: &[u8; 16]) -> Option<DropReason> {
    match address {
        [0xFF, ..] => Some(DropReason::BadSource),
        _ if *address == [0; 16] => Some(DropReason::BadSource),
        _ => is_bound(address).then_some(DropReason::Scope),
    }
}
