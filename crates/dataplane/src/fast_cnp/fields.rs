//! Fields of a Fast CNP that are taken from the packet that met congestion, at any depth of tunnels (D46).
//!
//! ```text
//! | Ethernet | IPv6 [options] [SRH] | IPv6 [options] [SRH] | … | IPv6 [options] [SRH] | UDP 4791 | BTH | …
//!             \________ outer headers: uSID carriers, SIDs _____/ \__ source, destination, trace __/ QPN
//! ```

use super::data::is_data;
use crate::headers::IPV6;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::extension::{ExtensionHeader, ExtensionHeaders};
use srdma_wire::ioam::Trace;
use srdma_wire::{BthView, Ipv6View, NextHeader, Qpn, Srh, UdpView, View};

/// Outer headers that are looked behind.
const MAX_TUNNELS: usize = 4;

/// The fields of a data packet of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'h> {
    /// Its sender.
    pub source: &'h [u8; 16],
    /// Its final destination.
    pub destination: &'h [u8; 16],
    /// UDP source port.
    pub source_port: u16,
    /// Destination QP.
    pub dest_qpn: Qpn,
    /// Its IOAM trace, from the option's Reserved octet on.
    pub trace: Option<&'h [u8]>,
    /// The source address of the outermost header, if the packet is in a tunnel: its ingress PE (D63).
    pub outer_source: Option<&'h [u8; 16]>,
}

impl<'h> Fields<'h> {
    /// The fields of the innermost packet of a frame whose first segment is `head`; `None` when it is no data packet of
    /// a connection (D45), a fragment among them, or not to be reached.
    #[inline]
    pub fn of(head: &'h [u8]) -> Option<Self> {
        let (ipv6, after) = Ipv6View::split(head.get(IPV6..)?).ok()?;
        match ipv6.next_header() {
            NextHeader::UDP => of_udp(ipv6, after, ipv6.destination_octets(), None),
            next_header => of_chain(ipv6, next_header, after),
        }
    }
}

#[inline]
fn of_udp<'h>(
    ipv6: &'h Ipv6View,
    octets: &'h [u8],
    destination: &'h [u8; 16],
    trace: Option<&'h [u8]>,
) -> Option<Fields<'h>> {
    let (udp, rest) = UdpView::split(octets).ok()?;
    let (bth, _) = BthView::split(rest).ok()?;
    let is_ours = udp.destination_port() == ROCEV2_PORT && bth.transport_version() == 0 && is_data(bth.opcode());
    let source = ipv6.source_octets();
    (is_ours && source[0] != 0xFF).then(|| Fields {
        source,
        destination,
        source_port: udp.source_port(),
        dest_qpn: bth.dest_qpn(),
        trace,
        outer_source: None,
    })
}

/// Behind extension headers and tunnels.
fn of_chain<'h>(mut ipv6: &'h Ipv6View, mut next_header: NextHeader, mut after: &'h [u8]) -> Option<Fields<'h>> {
    let outermost = ipv6.source_octets();
    for depth in 0..MAX_TUNNELS {
        let mut headers = ExtensionHeaders::new(next_header, after);
        let (mut destination, mut trace) = (ipv6.destination_octets(), None);
        for header in headers.by_ref() {
            let header = header.ok()?;
            match header.kind {
                NextHeader::HOP_BY_HOP => {
                    trace = Trace::find(header.octets).and_then(Result::ok).map(|trace| trace.octets());
                }
                NextHeader::ROUTING => destination = final_destination(&header).unwrap_or(destination),
                _ => {}
            }
        }
        match headers.next_header() {
            NextHeader::UDP => {
                let fields = of_udp(ipv6, headers.rest(), destination, trace)?;
                return Some(Fields { outer_source: (depth > 0).then_some(outermost), ..fields });
            }
            NextHeader::IPV6 => {
                (ipv6, after) = Ipv6View::split(headers.rest()).ok()?;
                next_header = ipv6.next_header();
                if ipv6.version() != 6 {
                    return None;
                }
            }
            _ => return None,
        }
    }
    None
}

/// The last segment of an SRH with segments left.
fn final_destination<'h>(header: &ExtensionHeader<'h>) -> Option<&'h [u8; 16]> {
    let (srh, _) = Srh::split(header.octets).ok()?;
    (srh.header.segments_left > 0).then(|| srh.segments.first()).flatten()
}

#[cfg(test)]
mod tests;
