use crate::bth::{Bth, BthView};
use crate::codepoints::ROCEV2_PORT;
use crate::icrc::{Computation, Icrc};
use crate::ipv6::{Ipv6, Ipv6View, NextHeader};
use crate::rocev2::{Extended, Packet};
use crate::udp::{Udp, UdpView};
use crate::view::View;
use zerocopy::IntoBytes;

/// A RoCEv2 packet without extension headers, as a value.
///
/// Fields that follow from others are not given: lengths, Next Header, destination port, pad count and ICRC are
/// [`PacketValue::emit`]'s to fill in.
#[derive(Clone, Copy, Debug)]
pub struct PacketValue<'a> {
    /// IPv6 header; its payload length and next header are ignored.
    pub ipv6: Ipv6,
    /// UDP source port: the flow's entropy.
    pub source_port: u16,
    /// Base Transport Header; its pad count is ignored.
    pub bth: Bth,
    /// Extended transport headers.
    pub extended: Extended<'a>,
    /// Payload without padding.
    pub payload: &'a [u8],
}

impl PacketValue<'_> {
    /// Octets from the IPv6 header to the ICRC.
    pub fn len_octets(&self) -> usize {
        Ipv6View::LEN + self.ipv6_payload_len()
    }

    /// Writes the packet to the front of `into`, its UDP checksum zero (RFC 6936), and returns its length. `None`,
    /// and nothing written, when the packet does not fit into `into` or into an IPv6 Payload Length, or when the
    /// extended headers are not those of the opcode.
    pub fn emit(&self, into: &mut [u8]) -> Option<usize> {
        if self.bth.opcode.extension_len() != Some(self.extended.len_octets()) {
            return None;
        }
        let length = u16::try_from(self.ipv6_payload_len()).ok()?;
        let whole = into.get_mut(..self.len_octets())?;
        let ipv6 = Ipv6 { payload_length: length, next_header: NextHeader::UDP, ..self.ipv6 }.emit();
        let udp = Udp { source_port: self.source_port, destination_port: ROCEV2_PORT, length, checksum: 0 }.emit();
        let bth = Bth { pad_count: self.pad_len() as u8, ..self.bth }.emit();
        let padding = [0u8; 3];
        let padding = padding.get(..self.pad_len())?;

        let mut icrc = Computation::begin(&ipv6, 0, &udp, &bth);
        let mut writer = Writer(whole);
        for headers in [ipv6.as_bytes(), udp.as_bytes(), bth.as_bytes()] {
            writer.put(headers)?;
        }
        let [first, second] = self.extended.octets();
        for covered in [first, second, self.payload, padding] {
            icrc.update(covered);
            writer.put(covered)?;
        }
        writer.put(&icrc.finish().0)?;
        Some(self.len_octets())
    }

    fn pad_len(&self) -> usize {
        self.payload.len().wrapping_neg() % 4
    }

    fn ipv6_payload_len(&self) -> usize {
        let headers = UdpView::LEN + BthView::LEN + self.extended.len_octets();
        headers + self.payload.len() + self.pad_len() + Icrc::LEN
    }
}

impl<'a> Packet<'a> {
    /// The packet as a value; `None` when it has extension headers, or a payload that is not all in the first segment.
    pub fn value(&self) -> Option<PacketValue<'a>> {
        if self.extension_octets() != 0 {
            return None;
        }
        Some(PacketValue {
            ipv6: self.ipv6.value(),
            source_port: self.udp.source_port(),
            bth: self.bth.into(),
            extended: self.extended,
            payload: self.payload()?,
        })
    }
}

/// Puts octets one behind the other.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) -> Option<()> {
        let (place, rest) = core::mem::take(&mut self.0).split_at_mut_checked(octets.len())?;
        place.copy_from_slice(octets);
        self.0 = rest;
        Some(())
    }
}
