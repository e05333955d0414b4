//! Connection limiter: in all and for each address, so that one client alone cannot exhaust the connections.

use srdma_api::ProblemType;
use srdma_controller_core::Refusal;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    max: usize,
    max_per_place: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_place: HashMap<IpAddr, usize>,
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    limiter: Arc<ConnectionLimiter>,
    place: IpAddr,
}

impl ConnectionLimiter {
    pub(super) fn new(max: usize, max_per_place: usize) -> Arc<Self> {
        Arc::new(ConnectionLimiter { max, max_per_place, open: Mutex::default() })
    }

    /// A permit for a connection, if there is room.
    pub(super) fn acquire(self: &Arc<Self>, from: IpAddr) -> Result<Permit, Refusal> {
        let place = place(from);
        let mut open = self.lock();
        let of_one = open.by_place.get(&place).copied().unwrap_or(0);
        let text = match (open.all >= self.max, of_one >= self.max_per_place) {
            (true, _) => format!("{} connections are open, the limit: try again later", self.max),
            (false, true) => format!("{of_one} connections are open from {place}, the limit from one place"),
            (false, false) => {
                open.all += 1;
                open.by_place.insert(place, of_one + 1);
                return Ok(Permit { limiter: Arc::clone(self), place });
            }
        };
        Err(Refusal::new(ProblemType::TooManyConnections, text))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Two counters that are always changed together, by nothing that panics.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.limiter.lock();
        open.all -= 1;
        match open.by_place.get_mut(&self.place) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(open.by_place.remove(&self.place)),
        }
    }
}

/// Key of the limit for one place: an IPv4 address, or the /64 of an IPv6 address, since a host has all of it.
fn place(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_cannot_exhaust_the_connections() {
        let limiter = ConnectionLimiter::new(4, 2);
        let acquire = |from: &str| limiter.acquire(from.parse().unwrap()).map_err(|refusal| refusal.detail);
        let greedy = [acquire("2001:db8::1").unwrap(), acquire("2001:db8::2").unwrap()];
        let refused = acquire("2001:db8::3").unwrap_err();
        assert!(refused.contains("2 connections are open from 2001:db8::"), "{refused}");
        let others = [acquire("::ffff:192.0.2.1").unwrap(), acquire("2001:db8:0:1::1").unwrap()];
        let refused = acquire("192.0.2.1").unwrap_err();
        assert!(refused.contains("4 connections are open, the limit"), "{refused}");
        drop(greedy);
        let _back = [acquire("192.0.2.1").unwrap(), acquire("2001:db8::3").unwrap()];
        assert!(acquire("192.0.2.2").is_err());
        drop(others);
        let open = limiter.lock();
        assert_eq!((open.all, open.by_place.len()), (2, 2));
    }
}
