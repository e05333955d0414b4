//! An expected frame, with the fields that the device may choose.

use srdma_testkit::checksums;

/// Octets of the Ethernet header: where IPv6 begins.
pub(crate) const ETHERNET: usize = 14;

/// An expected frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Expected {
    pub port: &'static str,
    pub octets: Vec<u8>,
    /// A bit for each of `octets`: 1 where it is compared, 0 where the device may choose.
    pub compared: Vec<u8>,
    /// Checksums that follow from what the device has chosen, the innermost first.
    pub remade: Vec<Remade>,
    /// The device may as well send nothing.
    pub may_be_missing: bool,
}

/// A checksum over octets that a device may choose. The number is the offset of the IPv6 header in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remade {
    /// The ICRC of a RoCEv2 packet right behind the IPv6 header.
    Icrc(usize),
    /// The ICRC of a RoCEv2 packet, as if there were no extension headers of so many octets (D43).
    IcrcWithout(usize, usize),
    /// The UDP checksum of a packet right behind the IPv6 header, unless the device has chosen none.
    UdpUnlessZero(usize),
    /// ICMPv6's checksum.
    Icmpv6(usize),
}

impl Expected {
    /// A frame of which every octet counts.
    pub(crate) fn exactly(port: &'static str, octets: Vec<u8>) -> Self {
        let compared = vec![0xFF; octets.len()];
        Expected { port, octets, compared, remade: Vec::new(), may_be_missing: false }
    }

    /// The device may choose these bits.
    pub(crate) fn free(mut self, offset: usize, bits: &[u8]) -> Self {
        for (compared, free) in self.compared.iter_mut().skip(offset).zip(bits) {
            *compared &= !free;
        }
        self
    }

    /// The device may choose DSCP and flow label of the IPv6 header there. Its ECN counts.
    pub(crate) fn free_dscp_and_label(self, ipv6: usize) -> Self {
        self.free(ipv6, &[0x0F, 0xCF, 0xFF, 0xFF])
    }

    /// The device may choose the hop limit of the IPv6 header there.
    pub(crate) fn free_hop_limit(self, ipv6: usize) -> Self {
        self.free(ipv6 + 7, &[0xFF])
    }

    /// The device may choose which of its addresses is the source.
    pub(crate) fn free_source(self, ipv6: usize) -> Self {
        self.free(ipv6 + 8, &[0xFF; 16])
    }

    /// The device may choose traffic class, flow label and hop limit.
    pub(crate) fn free_header(self, ipv6: usize) -> Self {
        self.free_dscp_and_label(ipv6).free(ipv6 + 1, &[0x30]).free_hop_limit(ipv6)
    }

    /// An ICMPv6 error: the device may choose the header, and quote the packet's hop limit as it came or as it was when
    /// the error was found.
    pub(crate) fn icmpv6_error(self, ipv6: usize) -> Self {
        const QUOTED: usize = 40 + 8;
        self.free_header(ipv6).free_source(ipv6).free_hop_limit(ipv6 + QUOTED).remade(Remade::Icmpv6(ipv6))
    }

    /// A checksum follows from what is chosen.
    pub(crate) fn remade(mut self, remade: Remade) -> Self {
        self.remade.push(remade);
        self
    }

    /// The device may as well send nothing.
    pub fn or_nothing(mut self) -> Self {
        self.may_be_missing = true;
        self
    }

    /// The exact frame expected of a device that has chosen as in this frame.
    pub fn completed(&self, observed: &[u8]) -> Vec<u8> {
        let mut completed = self.octets.clone();
        for ((octet, compared), chosen) in completed.iter_mut().zip(&self.compared).zip(observed) {
            *octet = *octet & compared | chosen & !compared;
        }
        for remade in &self.remade {
            remake(&mut completed, *remade);
        }
        completed
    }
}

fn remake(frame: &mut [u8], remade: Remade) {
    match remade {
        Remade::Icrc(ipv6) => remake_icrc(&mut frame[ipv6..], 0),
        Remade::IcrcWithout(ipv6, extension_octets) => remake_icrc(&mut frame[ipv6..], extension_octets),
        Remade::UdpUnlessZero(ipv6) => {
            let packet = &mut frame[ipv6..];
            if packet[46..48] != [0, 0] {
                let checksum = checksums::udp(packet);
                packet[46..48].copy_from_slice(&checksum.to_be_bytes());
            }
        }
        Remade::Icmpv6(ipv6) => {
            let checksum = checksums::icmpv6(&frame[ipv6..]);
            frame[ipv6 + 42..ipv6 + 44].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// The ICRC at the end of a packet, over what is left without its extension headers.
fn remake_icrc(packet: &mut [u8], extension_octets: usize) {
    let end = packet.len() - 4;
    let mut plain = [&packet[..40], &packet[40 + extension_octets..end]].concat();
    let payload_length = (plain.len() + 4 - 40) as u16;
    plain[4..6].copy_from_slice(&payload_length.to_be_bytes());
    plain[6] = 17;
    let icrc = checksums::icrc(&plain);
    packet[end..].copy_from_slice(&icrc);
}
