//! Octets of a fuzzer as choices, one after the other.

use std::net::Ipv6Addr;

/// The rest of an input. After its end there are only zeros, so that a short input is a simple one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Choices(input)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn octet(&mut self) -> u8 {
        match self.0.split_first() {
            Some((octet, rest)) => {
                self.0 = rest;
                *octet
            }
            None => 0,
        }
    }

    /// A number below `end`.
    #[inline]
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.octet()) % end
    }

    /// True once in `one_in` times.
    #[inline]
    pub(crate) fn rarely(&mut self, one_in: u8) -> bool {
        self.octet() % one_in == one_in - 1
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    /// Any address.
    pub(crate) fn address(&mut self) -> Ipv6Addr {
        let halves = [self.u64(), self.u64()];
        Ipv6Addr::from(u128::from(halves[0]) << 64 | u128::from(halves[1]))
    }

    /// One of a few.
    #[inline]
    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// At most so many of the octets that are left.
    pub(crate) fn octets(&mut self, most: usize) -> &'a [u8] {
        let (octets, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        octets
    }
}
