//! Rate limit of each origin that sends to a SID (D66). A table of fixed size: an origin is replaced only when its
//! bucket is full, so that the limit holds whatever source addresses a flood uses.

use crate::token_bucket::TokenBucket;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;

/// The origins that have sent something lately.
#[derive(Debug)]
pub(crate) struct Origins {
    per_second: u32,
    at_once: u32,
    most: usize,
    /// Time in which an empty bucket refills to that of a new origin.
    refill_ns: u64,
    addresses: Vec<u128>,
    /// From when on nothing would be lost with an origin.
    quiet_at: Vec<Instant>,
    buckets: Vec<TokenBucket>,
}

/// Why a packet of an origin is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It has sent as much as it may.
    TooFast,
    /// As many others as can be known have sent something lately.
    TooMany,
}

impl Origins {
    /// So many at a time, each with such a bucket.
    pub(crate) fn new(most: usize, per_second: u32, at_once: u32) -> Self {
        Origins {
            per_second,
            at_once,
            most,
            refill_ns: u64::from(at_once) * NS_PER_S / u64::from(per_second.max(1)),
            addresses: Vec::with_capacity(most),
            quiet_at: Vec::with_capacity(most),
            buckets: Vec::with_capacity(most),
        }
    }

    /// An origin sends something: its place, if it may.
    pub(crate) fn take(&mut self, now: Instant, origin: &[u8; 16]) -> Result<usize, Refusal> {
        let address = u128::from_be_bytes(*origin);
        let place = match self.addresses.iter().position(|known| *known == address) {
            Some(place) => place,
            None => self.vacancy(now, address).ok_or(Refusal::TooMany)?,
        };
        if !self.buckets[place].take(now) {
            return Err(Refusal::TooFast);
        }
        self.keep(place, now.after_ns(self.refill_ns));
        Ok(place)
    }

    /// Something would be lost with the origin at a place until then.
    pub(crate) fn keep(&mut self, place: usize, until: Instant) {
        if let Some(quiet_at) = self.quiet_at.get_mut(place) {
            *quiet_at = (*quiet_at).max(until);
        }
    }

    /// The address of the origin at a place.
    pub(crate) fn address(&self, place: usize) -> Option<std::net::Ipv6Addr> {
        self.addresses.get(place).map(|address| (*address).into())
    }

    fn vacancy(&mut self, now: Instant, address: u128) -> Option<usize> {
        let bucket = TokenBucket::new(self.per_second, self.at_once);
        if self.addresses.len() < self.most {
            self.addresses.push(address);
            self.quiet_at.push(now);
            self.buckets.push(bucket);
            return Some(self.addresses.len() - 1);
        }
        let place = self.quiet_at.iter().position(|quiet_at| *quiet_at <= now)?;
        (self.addresses[place], self.quiet_at[place], self.buckets[place]) = (address, now, bucket);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(number: u32) -> [u8; 16] {
        u128::from(number).to_be_bytes()
    }

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    #[test]
    fn each_origin_has_its_own_limit() {
        let mut origins = Origins::new(8, 1000, 3);
        let taken = |origins: &mut Origins, us, number| {
            (0..10).filter(|_| origins.take(at(us), &origin(number)).is_ok()).count()
        };
        assert_eq!([taken(&mut origins, 5, 1), taken(&mut origins, 5, 2), taken(&mut origins, 5, 1)], [3, 3, 0]);
        assert_eq!(taken(&mut origins, 1005, 1), 1);
    }

    /// D66: a million origins in a second exceed no limit of the table, the table keeps its size, and origins with a
    /// pause keep their places.
    #[test]
    fn a_flood_of_origins_is_bounded() {
        let mut origins = Origins::new(16, 1000, 4);
        let place = origins.take(at(0), &origin(7)).unwrap();
        origins.keep(place, at(2_000_000));
        let mut taken = 0;
        for number in 0..1_000_000_u32 {
            taken += usize::from(origins.take(at(number.into()), &origin(1000 + number)).is_ok());
        }
        assert!(taken <= 15 * 251, "{taken}");
        assert_eq!((origins.addresses.len(), origins.addresses.capacity()), (16, 16));
        assert_eq!(origins.take(at(1_000_000), &origin(7)), Ok(place));
        assert_eq!(origins.address(place), Some(std::net::Ipv6Addr::from(origin(7))));
    }
}
