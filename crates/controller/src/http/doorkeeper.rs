//! How many connections there may be: in all, and from one place, so that nobody alone keeps the others out.

use crate::refusal::{Kind, Refusal};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections.
#[derive(Debug)]
pub(super) struct Doorkeeper {
    most: usize,
    most_of_one: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_place: HashMap<IpAddr, usize>,
}

/// One connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Pass {
    doorkeeper: Arc<Doorkeeper>,
    place: IpAddr,
}

impl Doorkeeper {
    pub(super) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Doorkeeper { most, most_of_one, open: Mutex::default() })
    }

    /// Lets one in, if there is room.
    pub(super) fn admit(self: &Arc<Self>, from: IpAddr) -> Result<Pass, Refusal> {
        let place = place(from);
        let mut open = self.lock();
        let of_one = open.by_place.get(&place).copied().unwrap_or(0);
        let text = match (open.all >= self.most, of_one >= self.most_of_one) {
            (true, _) => format!("{} connections are open, as many as may be: come again later", self.most),
            (false, true) => format!("{of_one} connections are open from {place}, as many as may be from one place"),
            (false, false) => {
                open.all += 1;
                open.by_place.insert(place, of_one + 1);
                return Ok(Pass { doorkeeper: Arc::clone(self), place });
            }
        };
        Err(Refusal::new(Kind::TooManyConnections, text))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Two counters that are always changed together, by nothing that panics.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut open = self.doorkeeper.lock();
        open.all -= 1;
        match open.by_place.get_mut(&self.place) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(open.by_place.remove(&self.place)),
        }
    }
}

/// What counts as one place: an IPv4 address, or the /64 of an IPv6 address, since whoever has one has all of it.
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
    fn nobody_alone_keeps_the_others_out() {
        let doorkeeper = Doorkeeper::new(4, 2);
        let admit = |from: &str| doorkeeper.admit(from.parse().unwrap()).map_err(|refusal| refusal.detail);
        let greedy = [admit("2001:db8::1").unwrap(), admit("2001:db8::2").unwrap()];
        let refused = admit("2001:db8::3").unwrap_err();
        assert!(refused.contains("2 connections are open from 2001:db8::"), "{refused}");
        let others = [admit("::ffff:192.0.2.1").unwrap(), admit("2001:db8:0:1::1").unwrap()];
        let refused = admit("192.0.2.1").unwrap_err();
        assert!(refused.contains("4 connections are open, as many as may be"), "{refused}");
        drop(greedy);
        let _back = [admit("192.0.2.1").unwrap(), admit("2001:db8::3").unwrap()];
        assert!(admit("192.0.2.2").is_err());
        drop(others);
        let open = doorkeeper.lock();
        assert_eq!((open.all, open.by_place.len()), (2, 2));
    }
}
