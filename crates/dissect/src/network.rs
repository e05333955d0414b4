//! IPv6 and its fragments.

use super::dissector::{Carrier, Dissector, Next};
use super::layer::{self, Layer};
use super::record::Damage;
use srdma_wire::View;
use srdma_wire::ipv6::{Ecn, Ipv6, Ipv6Error, Ipv6View, NextHeader};
use srdma_wire::view::Truncated;

/// IPv6 header.
pub(super) fn ipv6(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    let (header, rest) = parse(dissector.octets).map_err(|error| dissector.damage(error))?;
    let (view, _) = Ipv6View::split(dissector.octets).map_err(|error| dissector.damage(error))?;
    let offset = dissector.offset;
    dissector.carrier = Some(Carrier { ipv6: *view, offset, extension_octets: 0, fast_cnp_offset: None });
    dissector.advance_to(rest);
    dissector.limit("IPv6 header", header.payload_length.into());
    let next = NextHeader(header.next_header);
    dissector.push(Layer::Ipv6(header));
    Ok(Next::Header(next))
}

/// An IPv6 header at the front of `octets`, and what follows it.
pub(super) fn parse(octets: &[u8]) -> Result<(layer::Ipv6, &[u8]), Ipv6Error> {
    let (header, rest) = Ipv6::parse(octets)?;
    let layer = layer::Ipv6 {
        source: header.source,
        destination: header.destination,
        dscp: header.traffic_class >> 2,
        ecn: match Ecn::of_traffic_class(header.traffic_class) {
            Ecn::NotEct => "Not-ECT",
            Ecn::Ect1 => "ECT(1)",
            Ecn::Ect0 => "ECT(0)",
            Ecn::Ce => "CE",
        },
        flow_label: header.flow_label,
        payload_length: header.payload_length,
        next_header: header.next_header.0,
        hop_limit: header.hop_limit,
    };
    Ok((layer, rest))
}

/// Fragment header. A packet in one fragment is dissected further; of the others only the length is reported.
///
/// ```text
/// | Next Header | Reserved | Fragment Offset (13) | Res (2) | M | Identification (32) |
/// ```
pub(super) fn fragment(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    const LEN: usize = 8;
    let found = dissector.octets.len();
    let (header, rest) = dissector
        .octets
        .split_first_chunk::<LEN>()
        .ok_or_else(|| dissector.damage(Truncated { header: "Fragment header", needed: LEN, found }))?;
    let [next_header, _, high, low, identification @ ..] = *header;
    let offset_and_flag = u16::from_be_bytes([high, low]);
    let fragment = layer::Fragment {
        next_header,
        offset_octets: offset_and_flag & !7,
        more_fragments: offset_and_flag & 1 != 0,
        identification: u32::from_be_bytes(identification),
    };
    let whole = fragment.offset_octets == 0 && !fragment.more_fragments;
    dissector.push(Layer::Fragment(fragment));
    dissector.extension(rest, LEN);
    Ok(if whole { Next::Header(NextHeader(next_header)) } else { dissector.payload("fragment") })
}

/// Name of a next header that is not dissected.
pub(super) fn protocol(next: NextHeader) -> String {
    match next {
        NextHeader::IPV4 => "IPv4".into(),
        NextHeader::ETHERNET => "Ethernet".into(),
        NextHeader(6) => "TCP".into(),
        NextHeader(50) => "ESP".into(),
        NextHeader(51) => "AH".into(),
        NextHeader(other) => format!("next header {other}"),
    }
}

impl<'a> Dissector<'a> {
    /// Goes on behind an extension header of so many octets.
    pub(super) fn extension(&mut self, rest: &'a [u8], octets: usize) {
        self.advance_to(rest);
        if let Some(carrier) = &mut self.carrier {
            // All extension headers together lie within the payload, whose length has 16 bits.
            carrier.extension_octets += octets as u16;
        }
    }
}
