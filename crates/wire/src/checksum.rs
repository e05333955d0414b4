//! The Internet checksum (RFC 1071) over the IPv6 pseudo-header, and its incremental update (RFC 1624).
//!
//! ```text
//! | Source Address 16 | Destination Address 16 | Upper-Layer Packet Length 4 | zero 3 | Next Header 1 | upper layer …
//! ```

use crate::ipv6::NextHeader;

/// A running one's complement sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    total: u64,
    /// Whether an odd number of octets has been added so far.
    odd: bool,
}

impl Sum {
    /// The sum of the pseudo-header (RFC 8200 section 8.1).
    pub fn pseudo_header(source: &[u8; 16], destination: &[u8; 16], length: u32, next_header: NextHeader) -> Self {
        let mut sum = Sum::default();
        sum.add(source);
        sum.add(destination);
        sum.total += u64::from(length >> 16) + u64::from(length & 0xFFFF) + u64::from(next_header.0);
        sum
    }

    /// Adds octets; pieces may have odd lengths.
    pub fn add(&mut self, octets: &[u8]) {
        let mut octets = octets;
        if self.odd
            && let [first, rest @ ..] = octets
        {
            self.total += u64::from(*first);
            self.odd = false;
            octets = rest;
        }
        // Sums in either octet order are each other's swap (RFC 1071 section 2 (B)); this one runs four times faster.
        let (words, rest) = octets.as_chunks::<4>();
        let swapped: u64 = words.iter().map(|word| u64::from(u32::from_le_bytes(*word))).sum();
        self.total += u64::from(fold(swapped).swap_bytes());
        let (pairs, last) = rest.as_chunks::<2>();
        for pair in pairs {
            self.total += u64::from(u16::from_be_bytes(*pair));
        }
        if let [last] = last {
            self.total += u64::from(*last) << 8;
            self.odd = true;
        }
    }

    /// The checksum: complement of the folded sum. Zero when what was added has its right checksum in it.
    pub fn checksum(self) -> u16 {
        !fold(self.total)
    }

    /// The checksum as UDP writes it: zero, which would mean "none", is sent as 0xFFFF.
    pub fn udp_checksum(self) -> u16 {
        never_zero(self.checksum())
    }
}

/// Effect of a change of octets on a checksum over them (RFC 1624, equation 3).
#[derive(Clone, Copy, Debug, Default)]
pub struct Update(u64);

impl Update {
    /// Records that `old` became `new`. The octets must begin at an even offset from the start of what the checksum
    /// is over, and their number must be even, which the compiler sees to.
    #[inline]
    pub fn replace<const N: usize>(&mut self, old: &[u8; N], new: &[u8; N]) {
        const { assert!(N.is_multiple_of(2), "a checksum is updated in whole 16-bit words") };
        let (old, _) = old.as_chunks::<2>();
        let (new, _) = new.as_chunks::<2>();
        for (old, new) in old.iter().zip(new) {
            self.0 += u64::from(!u16::from_be_bytes(*old)) + u64::from(u16::from_be_bytes(*new));
        }
    }

    /// The checksum after the change.
    #[inline]
    pub fn apply(self, checksum: u16) -> u16 {
        !fold(self.0 + u64::from(!checksum))
    }

    /// The UDP checksum after the change. Zero, which means that there is none, stays zero; any other does not become
    /// zero: UDP sends 0xFFFF instead (D10).
    #[inline]
    pub fn apply_udp(self, checksum: u16) -> u16 {
        match checksum {
            0 => 0,
            checksum => never_zero(self.apply(checksum)),
        }
    }
}

fn never_zero(checksum: u16) -> u16 {
    if checksum == 0 { 0xFFFF } else { checksum }
}

#[inline]
fn fold(mut total: u64) -> u16 {
    while total > 0xFFFF {
        total = (total & 0xFFFF) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// The example of RFC 1071 section 3.
    #[test]
    fn the_example_of_rfc_1071() {
        let mut sum = Sum::default();
        sum.add(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]);
        assert_eq!(sum.checksum(), !0xDDF2);
    }

    /// The example of RFC 1624 section 4, whose right answer is 0x0000: UDP writes it as 0xFFFF.
    #[test]
    fn the_example_of_rfc_1624() {
        let mut update = Update::default();
        update.replace(&[0x55, 0x55], &[0x32, 0x85]);
        assert_eq!(update.apply_udp(0xDD2F), 0xFFFF);
    }

    #[test]
    fn no_checksum_stays_none() {
        let mut update = Update::default();
        update.replace(&[1, 2], &[3, 4]);
        assert_eq!(update.apply_udp(0), 0);
    }

    fn checksum(octets: &[u8]) -> u16 {
        let mut sum = Sum::default();
        sum.add(octets);
        sum.udp_checksum()
    }

    proptest! {
        #[test]
        fn pieces_add_up(octets: Vec<u8>, cuts: [prop::sample::Index; 3]) {
            let mut places = cuts.map(|cut| cut.index(octets.len() + 1));
            places.sort_unstable();
            let [first, second, third] = places;
            let mut sum = Sum::default();
            for piece in [&octets[..first], &octets[first..second], &octets[second..third], &octets[third..]] {
                sum.add(piece);
            }
            prop_assert_eq!(sum.udp_checksum(), checksum(&octets));
        }

        /// D10. Small octets make sums of zero and of all ones frequent.
        #[test]
        fn an_update_equals_a_recomputation(
            octets in prop::collection::vec(prop_oneof![Just(0), Just(0xFF), any::<u8>()], 40),
            new in prop::array::uniform16(prop_oneof![Just(0), Just(0xFF), any::<u8>()]),
            word in 0..12_usize,
        ) {
            // Something that is never zero, as a pseudo-header is.
            let octets: Vec<u8> = [0x12, 0xB7].into_iter().chain(octets).collect();
            let old: [u8; 16] = *octets[2 + 2 * word..].first_chunk().unwrap();
            let mut changed = octets.clone();
            changed[2 + 2 * word..][..16].copy_from_slice(&new);
            let mut update = Update::default();
            update.replace(&old, &new);
            prop_assert_eq!(update.apply_udp(checksum(&octets)), checksum(&changed));
        }
    }

    #[test]
    fn a_sum_of_all_ones_is_sent_as_ffff() {
        // 0xFFFE and 0x0001 add up to 0xFFFF, whose complement is 0.
        assert_eq!(checksum(&[0xFF, 0xFE, 0x00, 0x01]), 0xFFFF);
        let mut update = Update::default();
        update.replace(&[0, 0], &[0, 1]);
        assert_eq!(update.apply_udp(checksum(&[0xFF, 0xFE, 0, 0])), 0xFFFF);
    }
}
