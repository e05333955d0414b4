//! Packets whose payload was cut off on the way, because there was no room for it (D88).
//!
//! ```text
//! before   | IPv6 | extension headers | UDP | BTH | extended | payload, pad | ICRC |
//! after    | IPv6 | extension headers | UDP | BTH | extended | !ICRC |
//! ```
//!
//! The lengths of IPv6 and UDP cover the remaining octets, the pad count is 0 and there is no UDP checksum, so that it
//! is a valid packet for forwarding. The ICRC's field holds the complement of the ICRC of the trimmed packet: a host
//! without support for trimming drops it as damaged; one with support can distinguish it from a damaged packet.

use super::{IcrcCheck, NotRocev2, Packet};
use crate::bth::BthView;
use crate::icrc::Icrc;
use crate::ipv6::Ipv6View;
use crate::udp::UdpView;
use crate::view::View;

impl Packet<'_> {
    /// Octets that are left of a request when it is trimmed; `None` when it has no payload, and for anything else.
    pub fn trimmed_len(&self) -> Option<usize> {
        let opcode = self.bth.opcode();
        let is_data = (opcode.is_send() || opcode.is_write()) && !self.payload_range().is_empty();
        is_data.then_some(self.payload_offset + Icrc::LEN)
    }
}

impl IcrcCheck {
    /// Whether the packet was trimmed, and not damaged.
    pub fn is_trimmed(&self) -> bool {
        self.carried == self.computed.complement()
    }
}

impl Icrc {
    fn complement(self) -> Icrc {
        Icrc(self.0.map(|octet| !octet))
    }
}

/// Trims a packet that was cut to its [trimmed length](Packet::trimmed_len), whose UDP header is at `udp_offset`, and
/// sets its DSCP.
///
/// # Errors
///
/// If it is no RoCEv2 packet of that length.
pub fn trim(octets: &mut [u8], udp_offset: usize, dscp: u8) -> Result<(), NotRocev2> {
    let len = octets.len();
    let (ipv6, _) = Ipv6View::split_mut(octets)?;
    ipv6.set_payload_length(len.saturating_sub(Ipv6View::LEN) as u16);
    ipv6.set_traffic_class(dscp << 2 | ipv6.traffic_class() & 3);
    let (udp, after) = UdpView::split_mut(octets.get_mut(udp_offset..).unwrap_or_default())?;
    udp.set_length(len.saturating_sub(udp_offset) as u16);
    udp.set_checksum(0);
    let (bth, _) = BthView::split_mut(after)?;
    bth.set_pad_count(0);
    let icrc = Packet::parse(octets, len)?.icrc([])?.computed.complement();
    if let Some(place) = octets.last_chunk_mut() {
        *place = icrc.0;
    }
    Ok(())
}
