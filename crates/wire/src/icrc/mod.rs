//! Invariant CRC of RoCEv2 (IBTA annex A17.3.3), in full and incrementally (D10).
//!
//! ```text
//! | ones 8 | IPv6 40 | UDP 8 | BTH 12 | extended headers, payload, pad | ICRC 4 |
//!  \______________________ covered by a CRC-32 ______________________/
//! ```
//!
//! The ones take the place of the LRH of InfiniBand; fields that routers change count as ones too. The ICRC is
//! transmitted with its least significant octet first.
//!
//! A CRC is linear: when octets change, the new CRC is the old one XOR the CRC of the difference, shifted by the octets
//! that follow. So a rewritten header costs the same whatever the payload, and a CRC that was bad stays bad.
//!
//! Extension headers between IPv6 and UDP are not defined by the IBTA. They count as absent (D43): Next Header is UDP
//! and the payload length is less by theirs.

mod polynomial;

use crate::bth::BthView;
use crate::ipv4::Ipv4View;
use crate::ipv6::{Ipv6View, NextHeader};
use crate::udp::UdpView;
use core::ops::{BitXor, BitXorAssign};
use zerocopy::{Immutable, IntoBytes, Unaligned};

/// An ICRC as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icrc(pub [u8; 4]);

impl Icrc {
    /// Length in octets.
    pub const LEN: usize = 4;

    /// The ICRC after a change of the octets it covers.
    #[inline]
    #[must_use]
    pub fn changed_by(self, delta: Delta) -> Icrc {
        Icrc((u32::from_le_bytes(self.0) ^ delta.0).to_le_bytes())
    }
}

/// An ICRC being computed over a packet from its first octet to its last.
#[derive(Clone, Debug)]
pub struct Computation(crc32fast::Hasher);

impl Computation {
    /// Begins with the headers. `extension_octets` is the length of all extension headers between IPv6 and UDP, which
    /// count as absent (D43).
    pub fn begin(ipv6: &Ipv6View, extension_octets: u16, udp: &UdpView, bth: &BthView) -> Self {
        let standard;
        let ipv6 = match extension_octets {
            0 => ipv6,
            octets => {
                standard = without_extension_headers(ipv6, octets);
                &standard
            }
        };
        let headers = Headers { ipv6: *ipv6, udp: *udp, bth: *bth };
        let mut octets: [u8; size_of::<Headers>()] = zerocopy::transmute!(headers);
        for (octet, mask) in octets.iter_mut().zip(MASK) {
            *octet |= mask;
        }
        let register = REGISTER_AFTER_ZEROS ^ polynomial::remainder_of_difference(&[0; size_of::<Headers>()], &octets);
        Computation(crc32fast::Hasher::new_with_initial(!register))
    }

    /// Continues with octets after the BTH, up to the ICRC.
    pub fn update(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// The ICRC.
    pub fn finish(self) -> Icrc {
        Icrc(self.0.finalize().to_le_bytes())
    }
}

/// The header as it would be without extension headers of so many octets.
#[cold]
fn without_extension_headers(ipv6: &Ipv6View, extension_octets: u16) -> Ipv6View {
    let mut ipv6 = *ipv6;
    ipv6.set_payload_length(ipv6.payload_length().wrapping_sub(extension_octets));
    ipv6.set_next_header(NextHeader::UDP);
    ipv6
}

/// The headers whose fields are masked, in their order.
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct Headers {
    ipv6: Ipv6View,
    udp: UdpView,
    bth: BthView,
}

/// Fields that count as ones: Traffic Class, Flow Label, Hop Limit; UDP Checksum; FECN, BECN and the reserved bits
/// beside them.
const MASK: [u8; size_of::<Headers>()] = {
    let mut mask = [0; size_of::<Headers>()];
    const UDP: usize = size_of::<Ipv6View>();
    const BTH: usize = UDP + size_of::<UdpView>();
    (mask[0], mask[1], mask[2], mask[3], mask[7]) = (0x0F, 0xFF, 0xFF, 0xFF, 0xFF);
    (mask[UDP + 6], mask[UDP + 7], mask[BTH + 4]) = (0xFF, 0xFF, 0xFF);
    mask
};

/// Fields of an IPv4 header that count as ones: Type of Service, Time to Live, Header Checksum.
const IPV4_MASK: [u8; size_of::<Ipv4View>()] = {
    let mut mask = [0; size_of::<Ipv4View>()];
    (mask[1], mask[8], mask[10], mask[11]) = (0xFF, 0xFF, 0xFF, 0xFF);
    mask
};

/// The register after the masked LRH and headers of zeros: the headers' own remainder is added to it.
const REGISTER_AFTER_ZEROS: u32 =
    polynomial::register_after(polynomial::register_after(!0, 0xFF, 8), 0, size_of::<Headers>());

/// The difference that changed octets make to a CRC, as seen right behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta(u32);

impl Delta {
    /// The difference between `old` and `new`, of the same length.
    #[inline]
    pub fn between<const N: usize>(old: &[u8; N], new: &[u8; N]) -> Self {
        Delta(polynomial::remainder_of_difference(old, new))
    }

    /// The difference as seen `shift` further on.
    #[inline]
    #[must_use]
    pub fn then(self, shift: Shift) -> Self {
        Delta(polynomial::multiply(self.0, shift.0))
    }
}

impl BitXor for Delta {
    type Output = Delta;

    #[inline]
    fn bitxor(self, other: Delta) -> Delta {
        Delta(self.0 ^ other.0)
    }
}

impl BitXorAssign for Delta {
    #[inline]
    fn bitxor_assign(&mut self, other: Delta) {
        self.0 ^= other.0;
    }
}

/// The difference between the ICRCs of a packet in IPv4 and of the same in IPv6: from the UDP header on its octets are
/// those of the other, and the headers before them have no options and no extension headers. As seen right behind them.
///
/// Over IPv4 Type of Service, Time to Live and Header Checksum count as ones (IBTA annex A17.3.3).
pub fn between_versions(ipv4: &Ipv4View, ipv6: &Ipv6View) -> Delta {
    const IPV4: usize = size_of::<Ipv4View>();
    const IPV6: usize = size_of::<Ipv6View>();
    const BEFORE: u32 = polynomial::register_after(!0, 0xFF, 8);
    let mut of_ipv4: [u8; IPV4] = zerocopy::transmute!(*ipv4);
    for (octet, mask) in of_ipv4.iter_mut().zip(IPV4_MASK) {
        *octet |= mask;
    }
    let mut of_ipv6: [u8; IPV6] = zerocopy::transmute!(*ipv6);
    for (octet, mask) in of_ipv6.iter_mut().zip(MASK) {
        *octet |= mask;
    }
    let (zeros4, zeros6) =
        const { (polynomial::register_after(BEFORE, 0, IPV4), polynomial::register_after(BEFORE, 0, IPV6)) };
    let register4 = zeros4 ^ polynomial::remainder_of_difference(&[0; IPV4], &of_ipv4);
    let register6 = zeros6 ^ polynomial::remainder_of_difference(&[0; IPV6], &of_ipv6);
    Delta(register4 ^ register6)
}

/// A distance in octets, prepared: x to the power of eight times the octets, modulo the CRC's polynomial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift(u32);

impl Shift {
    /// A distance of so many octets.
    pub fn octets(count: u16) -> Self {
        Shift(polynomial::power_of_octets(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shifts_add_up(first in 0..=0x7FFF_u16, second in 0..=0x7FFF_u16, difference: [u8; 12]) {
            let delta = Delta::between(&[0; 12], &difference);
            let apart = delta.then(Shift::octets(first)).then(Shift::octets(second));
            prop_assert_eq!(apart, delta.then(Shift::octets(first + second)));
        }

        #[test]
        fn deltas_add_up(a: [u8; 16], b: [u8; 16], c: [u8; 16]) {
            let mut both = Delta::between(&a, &b);
            both ^= Delta::between(&b, &c);
            prop_assert_eq!(both, Delta::between(&a, &c));
            prop_assert_eq!(Delta::between(&a, &b) ^ Delta::between(&b, &a), Delta::default());
        }

        /// D10, against a CRC-32 by another crate's whole computation.
        #[test]
        fn a_changed_crc_is_the_crc_of_the_change(
            octets in prop::collection::vec(any::<u8>(), 3..5000),
            new: [u8; 3],
            place: prop::sample::Index,
        ) {
            let place = place.index(octets.len() - 2);
            let mut changed = octets.clone();
            changed[place..place + 3].copy_from_slice(&new);
            let old = octets[place..].first_chunk::<3>().unwrap();
            let delta = Delta::between(old, &new).then(Shift::octets((octets.len() - place - 3) as u16));
            let crc = |octets: &[u8]| Icrc(crc32fast::hash(octets).to_le_bytes());
            prop_assert_eq!(crc(&octets).changed_by(delta), crc(&changed));
        }
    }

    #[test]
    fn no_distance_changes_nothing() {
        let delta = Delta::between(&[0; 4], &[1, 2, 3, 4]);
        assert_eq!(delta.then(Shift::octets(0)), delta);
    }

    /// Size of a prepared delta or shift, which is stored once per receiver.
    #[test]
    fn prepared_values_have_four_octets() {
        assert_eq!((size_of::<Delta>(), size_of::<Shift>()), (4, 4));
    }
}
