//! Packet sequence numbers and queue pair numbers: 24 bits each.

use core::cmp::Ordering;
use core::fmt;

const MASK: u32 = 0xFF_FFFF;

/// A packet sequence number: 24 bits, ordered serially (half window 2^23), so that 0 follows 0xFFFFFF (D16).
///
/// There is no `Ord`: serial order is not transitive. Compare two that are known to be near each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// The number modulo 2^24.
    pub const fn new(number: u32) -> Self {
        Psn(number & MASK)
    }

    /// From the octets of a BTH.
    pub const fn from_octets(octets: [u8; 3]) -> Self {
        Psn(u32::from_be_bytes([0, octets[0], octets[1], octets[2]]))
    }

    /// The octets of a BTH.
    pub const fn to_octets(self) -> [u8; 3] {
        let [_, a, b, c] = self.0.to_be_bytes();
        [a, b, c]
    }

    /// The number, below 2^24.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `n` after this one.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Psn::new(self.0.wrapping_add(n))
    }

    /// The number `n` before this one.
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Psn::new(self.0.wrapping_sub(n))
    }

    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number before this one.
    #[must_use]
    pub const fn previous(self) -> Self {
        self.minus(1)
    }

    /// Distance of this number from `other`: −2^23 … 2^23 − 1, negative when it is behind.
    pub const fn distance_from(self, other: Psn) -> i32 {
        ((self.0.wrapping_sub(other.0) << 8) as i32) >> 8
    }

    /// Serial comparison.
    pub const fn serial_cmp(self, other: Psn) -> Ordering {
        let distance = self.distance_from(other);
        if distance < 0 {
            Ordering::Less
        } else if distance == 0 {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }

    /// Whether this number comes before `other`.
    pub const fn is_before(self, other: Psn) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether this number is after `other`.
    pub const fn is_after(self, other: Psn) -> bool {
        self.distance_from(other) > 0
    }

    /// The earlier of two.
    #[must_use]
    pub const fn serial_min(self, other: Psn) -> Psn {
        if other.is_before(self) { other } else { self }
    }

    /// The later of two.
    #[must_use]
    pub const fn serial_max(self, other: Psn) -> Psn {
        if other.is_after(self) { other } else { self }
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A queue pair number: 24 bits. 0 and 1 are reserved for management.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qpn(u32);

impl Qpn {
    /// The number, when it fits 24 bits.
    pub const fn new(number: u32) -> Option<Self> {
        if number <= MASK { Some(Qpn(number)) } else { None }
    }

    /// From the octets of a BTH.
    pub const fn from_octets(octets: [u8; 3]) -> Self {
        Qpn(u32::from_be_bytes([0, octets[0], octets[1], octets[2]]))
    }

    /// The octets of a BTH.
    pub const fn to_octets(self) -> [u8; 3] {
        let [_, a, b, c] = self.0.to_be_bytes();
        [a, b, c]
    }

    /// The number, below 2^24.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether the number can belong to a Reliable Connection queue pair (not 0, not 1).
    pub const fn is_connected(self) -> bool {
        self.0 > 1
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAST: Psn = Psn::new(0xFF_FFFF);

    /// D16: serial order, half window 2^23.
    #[test]
    fn order_is_serial() {
        assert_eq!(LAST.next(), Psn::new(0));
        assert_eq!(Psn::new(0).previous(), LAST);
        assert!(LAST.is_before(Psn::new(0)) && Psn::new(0).is_after(LAST));
        assert_eq!(LAST.serial_min(Psn::new(3)), LAST, "a numeric minimum would be 3");
        assert_eq!(LAST.serial_max(Psn::new(3)), Psn::new(3));
        assert_eq!(Psn::new(3).distance_from(LAST), 4);
        assert_eq!(LAST.distance_from(Psn::new(3)), -4);
        assert_eq!(Psn::new(0x7F_FFFF).serial_cmp(Psn::new(0)), Ordering::Greater);
        assert_eq!(Psn::new(0x80_0000).serial_cmp(Psn::new(0)), Ordering::Less);
        assert_eq!(LAST.serial_cmp(LAST), Ordering::Equal);
    }

    #[test]
    fn octets_are_big_endian() {
        assert_eq!(Psn::from_octets([1, 2, 3]).get(), 0x01_0203);
        assert_eq!(Qpn::new(0x01_0203).unwrap().to_octets(), [1, 2, 3]);
    }

    #[test]
    fn queue_pairs_0_and_1_are_not_connected() {
        let connected = |number| Qpn::new(number).map(Qpn::is_connected);
        assert_eq!([0, 1, 2, 0xFF_FFFF].map(connected), [Some(false), Some(false), Some(true), Some(true)]);
        assert_eq!(Qpn::new(0x100_0000), None);
    }

    proptest! {
        #[test]
        fn a_distance_leads_back(start: u32, distance in -0x80_0000..0x80_0000_i32) {
            let start = Psn::new(start);
            let end = start.plus(distance as u32);
            prop_assert_eq!(end.distance_from(start), distance);
            prop_assert_eq!(end.minus(distance as u32), start);
            prop_assert_eq!(Psn::from_octets(end.to_octets()), end);
        }
    }
}
