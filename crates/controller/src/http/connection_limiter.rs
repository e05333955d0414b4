//! Connection limiter: in all, for each address, and for what the connection has shown (D101).
//!
//! ```text
//!   unproven ──► client: a valid token; at most half of all connections
//!      │    └──► node: a valid token of a node; a quarter is theirs alone, and what clients leave of their half
//!      └──────► closed, when another unproven connection arrives and their quarter is full
//! ```
//!
//! Of the unproven connections the oldest one of the address with the most is closed, so that a client that proves
//! itself at once is not kept out by clients that do not. A controller without tokens has the limits in all and for
//! each address only.

use srdma_api::ProblemType;
use srdma_controller_core::{Principal, Refusal, Role};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;

/// Counts connections.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    max: usize,
    max_per_place: usize,
    /// `None` without tokens.
    shares: Option<Shares>,
    open: Mutex<Open>,
}

/// Limits of a controller with tokens.
#[derive(Clone, Copy, Debug)]
struct Shares {
    unproven: usize,
    unproven_per_place: usize,
    clients: usize,
    /// Of clients and nodes.
    proven: usize,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_place: HashMap<IpAddr, usize>,
    clients: usize,
    nodes: usize,
    /// The number of the last connection.
    last: u64,
    /// By place and number, which is the order of their arrival.
    unproven: HashMap<IpAddr, BTreeMap<u64, Arc<Notify>>>,
    count_unproven: usize,
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    limiter: Arc<ConnectionLimiter>,
    from: IpAddr,
    number: u64,
    close: Arc<Notify>,
    proof: OnceLock<Proof>,
}

/// What a connection has shown first.
#[derive(Debug)]
struct Proof {
    token: String,
    is_node: bool,
}

/// A connection that is accepted.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) permit: Permit,
    /// The place whose connection is closed for it.
    pub(super) closed: Option<IpAddr>,
}

impl ConnectionLimiter {
    pub(super) fn new(max: usize, max_per_place: usize, has_tokens: bool) -> Arc<Self> {
        let unproven = (max / 4).max(1);
        let proven = max.saturating_sub(unproven).max(1);
        let shares = Shares {
            unproven,
            unproven_per_place: (max_per_place / 4).max(1),
            clients: proven.saturating_sub(max / 4).max(1),
            proven,
        };
        let shares = has_tokens.then_some(shares);
        Arc::new(ConnectionLimiter { max, max_per_place, shares, open: Mutex::default() })
    }

    /// Admits a connection, if there is room.
    pub(super) fn acquire(self: &Arc<Self>, from: IpAddr) -> Result<Admission, Refusal> {
        let place = place(from);
        let mut open = self.lock();
        let of_one = open.by_place.get(&place).copied().unwrap_or(0);
        if open.all >= self.max {
            let text = format!("{} connections are open, the limit: try again later", self.max);
            return Err(Refusal::new(ProblemType::TooManyConnections, text));
        }
        if of_one >= self.max_per_place {
            let text = format!("{of_one} connections are open from {place}, the limit from one place");
            return Err(Refusal::new(ProblemType::TooManyConnections, text));
        }
        let closed = self.shares.and_then(|shares| open.make_room(shares, place));
        open.all += 1;
        open.by_place.insert(place, of_one + 1);
        open.last += 1;
        let (number, close) = (open.last, Arc::new(Notify::new()));
        if self.shares.is_some() {
            open.unproven.entry(place).or_default().insert(number, Arc::clone(&close));
            open.count_unproven += 1;
        }
        let permit = Permit { limiter: Arc::clone(self), from, number, close, proof: OnceLock::new() };
        Ok(Admission { permit, closed })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Counters that are always changed together, by nothing that panics.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes an unproven connection if there is no room for another one from this place; returns that one's place.
    fn make_room(&mut self, shares: Shares, place: IpAddr) -> Option<IpAddr> {
        let of_one = self.unproven.get(&place).map_or(0, BTreeMap::len);
        let place = if of_one >= shares.unproven_per_place {
            place
        } else if self.count_unproven >= shares.unproven {
            // Of two with as many, the one whose oldest is older.
            let most = |(_, numbers): &(&IpAddr, &BTreeMap<u64, _>)| {
                (numbers.len(), Reverse(numbers.keys().next().copied().unwrap_or(0)))
            };
            *self.unproven.iter().max_by_key(most)?.0
        } else {
            return None;
        };
        let number = *self.unproven.get(&place)?.keys().next()?;
        self.remove_unproven(place, number)?.notify_one();
        Some(place)
    }

    fn remove_unproven(&mut self, place: IpAddr, number: u64) -> Option<Arc<Notify>> {
        let numbers = self.unproven.get_mut(&place)?;
        let close = numbers.remove(&number)?;
        self.count_unproven -= 1;
        if numbers.is_empty() {
            self.unproven.remove(&place);
        }
        Some(close)
    }
}

impl Permit {
    /// Address of the client.
    pub(crate) fn from(&self) -> IpAddr {
        self.from
    }

    /// The name of the token that the connection has shown first.
    pub(crate) fn token(&self) -> Option<&str> {
        self.proof.get().map(|proof| proof.token.as_str())
    }

    /// Whether that is the token of a node.
    pub(super) fn is_node(&self) -> bool {
        self.proof.get().is_some_and(|proof| proof.is_node)
    }

    /// Notes that the connection has shown a valid token, if there is room for clients or nodes.
    pub(super) fn prove(&self, principal: &Principal) -> Result<(), Refusal> {
        if self.proof.get().is_some() {
            return Ok(());
        }
        let is_node = principal.role == Role::Node;
        if let Some(shares) = self.limiter.shares {
            let mut open = self.limiter.lock();
            let has_room = (is_node || open.clients < shares.clients) && open.clients + open.nodes < shares.proven;
            if !has_room {
                let text = if is_node { "nodes" } else { "clients" };
                let text = format!("the limit of connections of {text} is reached: try again later");
                return Err(Refusal::new(ProblemType::TooManyConnections, text));
            }
            if open.remove_unproven(place(self.from), self.number).is_none() {
                return Err(Refusal::new(ProblemType::TooManyConnections, "the connection is being closed"));
            }
            match is_node {
                true => open.nodes += 1,
                false => open.clients += 1,
            }
        }
        // Requests of a connection are served one after the other.
        let _ = self.proof.set(Proof { token: principal.name.clone(), is_node });
        Ok(())
    }

    /// Waits until the connection is to be closed for another one.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let place = place(self.from);
        let mut open = self.limiter.lock();
        open.all -= 1;
        match open.by_place.get_mut(&place) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(open.by_place.remove(&place)),
        }
        let _ = open.remove_unproven(place, self.number);
        match (self.limiter.shares, self.proof.get()) {
            (Some(_), Some(Proof { is_node: true, .. })) => open.nodes -= 1,
            (Some(_), Some(Proof { is_node: false, .. })) => open.clients -= 1,
            (_, None) | (None, _) => {}
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

    fn principal(role: Role) -> Principal {
        Principal { name: "x".to_owned(), role, tenant: None, node: None }
    }

    #[test]
    fn one_client_cannot_exhaust_the_connections() {
        let limiter = ConnectionLimiter::new(4, 2, false);
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

    /// D101: the oldest one of the place with the most makes room; what is proven stays.
    #[test]
    fn unproven_connections_replace_each_other() {
        let limiter = ConnectionLimiter::new(16, 16, true);
        let acquire = |from: &str| limiter.acquire(from.parse().unwrap()).unwrap();
        let is_closed = |admission: &Admission| {
            limiter.lock().unproven.values().all(|numbers| !numbers.contains_key(&admission.permit.number))
        };
        let proven = acquire("192.0.2.1");
        proven.permit.prove(&principal(Role::Admin)).unwrap();
        let greedy = [acquire("192.0.2.1"), acquire("192.0.2.1")];
        let others = [acquire("192.0.2.2"), acquire("192.0.2.3")];
        assert!(greedy.iter().chain(&others).all(|admission| admission.closed.is_none()));
        let fifth = acquire("192.0.2.4");
        assert_eq!(fifth.closed, Some("192.0.2.1".parse().unwrap()));
        assert!(is_closed(&greedy[0]) && !is_closed(&greedy[1]));
        let refused = greedy[0].permit.prove(&principal(Role::Admin)).unwrap_err();
        assert_eq!(refused.kind, ProblemType::TooManyConnections);
        let next = [acquire("192.0.2.5"), acquire("192.0.2.6")];
        assert_eq!(
            next.map(|admission| admission.closed),
            [greedy[1].permit.from(), others[0].permit.from()].map(Some)
        );
        drop((proven, greedy, others, fifth));
        let open = limiter.lock();
        assert_eq!((open.all, open.count_unproven, open.clients, open.nodes), (0, 0, 0, 0));
    }

    /// D101: a place has a quarter of its connections for unproven ones.
    #[test]
    fn unproven_connections_of_one_place_replace_each_other() {
        let limiter = ConnectionLimiter::new(1000, 8, true);
        let admissions: Vec<_> = (0..8).map(|_| limiter.acquire("192.0.2.1".parse().unwrap()).unwrap()).collect();
        assert_eq!(admissions.iter().filter(|admission| admission.closed.is_some()).count(), 6);
        assert_eq!(limiter.lock().count_unproven, 2);
    }

    /// D101
    #[test]
    fn nodes_have_a_share_of_their_own() {
        let limiter = ConnectionLimiter::new(12, 12, true);
        let prove = |role| {
            let admission = limiter.acquire("192.0.2.1".parse().unwrap()).unwrap();
            admission.permit.prove(&principal(role)).map(|()| admission)
        };
        let clients: Vec<_> = (0..6).map(|_| prove(Role::Tenant).unwrap()).collect();
        assert_eq!(prove(Role::Tenant).unwrap_err().kind, ProblemType::TooManyConnections);
        let nodes: Vec<_> = (0..3).map(|_| prove(Role::Node).unwrap()).collect();
        assert!(prove(Role::Node).is_err(), "a quarter is for unproven connections");
        drop(clients);
        let _more: Vec<_> = (0..6).map(|_| prove(Role::Node).unwrap()).collect();
        assert!(prove(Role::Node).is_err() && prove(Role::Admin).is_err());
        drop(nodes);
        assert!(prove(Role::Admin).is_ok());
    }
}
