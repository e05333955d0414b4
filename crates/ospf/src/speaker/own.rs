//! The router's own LSAs (RFC 2328 section 12.4): originated on changes, refreshed before they are too old, numbered
//! above older ones of this router in the network.

use super::{CircuitId, Speaker, interface};
use crate::database::Place;
use crate::lsa::{Lsa, LsaHeader, RouterLink};
use crate::origin;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::collections::{BTreeMap, BTreeSet};

/// MinLSInterval, in seconds.
const MIN_INTERVAL_S: u64 = 5;
/// LSRefreshTime, in seconds.
const REFRESH_S: u64 = 1800;

/// State of our own LSAs.
#[derive(Default)]
pub(super) struct Own {
    /// Something may have changed.
    is_stale: bool,
    originated: BTreeMap<Place, Originated>,
    /// LSAs with our id that came from neighbours.
    from_elsewhere: BTreeSet<Place>,
    /// Time at which something is originated: refreshed, or held back until then.
    next_at: Option<Instant>,
}

struct Originated {
    body: Vec<u8>,
    sequence: i32,
    at: Instant,
    /// A neighbour has an instance that is not ours.
    is_outdone: bool,
}

impl Own {
    /// Something has changed.
    pub(super) fn touch(&mut self) {
        self.is_stale = true;
    }

    /// An LSA with our id came from elsewhere.
    pub(super) fn is_outdone(&mut self, place: Place, sequence: i32) {
        self.from_elsewhere.insert(place);
        if let Some(originated) = self.originated.get_mut(&place) {
            (originated.sequence, originated.is_outdone) = (sequence, true);
        }
        self.touch();
    }

    /// An LSA is no longer in the database.
    pub(super) fn forget(&mut self, place: Place) {
        self.originated.remove(&place);
        self.from_elsewhere.remove(&place);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if self.is_stale { Some(Instant::ZERO) } else { self.next_at }
    }
}

impl Speaker {
    /// Makes what has changed, and what is about to be too old.
    pub(super) fn renew_own(&mut self, now: Instant) {
        if self.own.next_deadline().is_none_or(|at| at > now) {
            return;
        }
        (self.own.is_stale, self.own.next_at) = (false, None);
        let wanted = self.wanted();
        let from_elsewhere = std::mem::take(&mut self.own.from_elsewhere);
        let unwanted = |place: &Place| !wanted.contains_key(place);
        let unused: Vec<Place> = self.own.originated.keys().copied().chain(from_elsewhere).filter(unwanted).collect();
        for place in unused {
            self.own.originated.remove(&place);
            if self.database.get(place).is_some_and(|stored| stored.age_s(now) < crate::lsa::MAX_AGE_S) {
                self.flush(now, place);
            }
        }
        for (place, body) in wanted {
            let at = self.originate(now, place, body);
            self.own.next_at = [self.own.next_at, at].into_iter().flatten().min();
        }
        self.settle(now);
    }

    /// Originates an LSA, unless that is not needed or not allowed yet; when it is looked at again.
    fn originate(&mut self, now: Instant, place: Place, body: Vec<u8>) -> Option<Instant> {
        let stored = self.database.get(place).map(|stored| stored.header(now).sequence);
        let before = match self.own.originated.get(&place) {
            Some(current) => {
                let refresh_at = current.at.after_ns(REFRESH_S * NS_PER_S);
                if current.body == body && !current.is_outdone && refresh_at > now {
                    return Some(refresh_at);
                }
                let allowed_at = current.at.after_ns(MIN_INTERVAL_S * NS_PER_S);
                if allowed_at > now {
                    return Some(allowed_at);
                }
                Some(current.sequence.max(stored.unwrap_or(i32::MIN)))
            }
            None => stored,
        };
        let sequence = match before.map(|before| before.checked_add(1)) {
            None => LsaHeader::FIRST_SEQUENCE,
            Some(Some(next)) => next.max(LsaHeader::FIRST_SEQUENCE),
            // Numbers are exhausted: all routers remove the last one, then the first one follows.
            Some(None) => {
                self.own.originated.remove(&place);
                if !self.database.old().contains(&place) {
                    self.flush(now, place);
                }
                return None;
            }
        };
        let header = LsaHeader {
            age_s: 0,
            kind: place.key.kind,
            id: place.key.id,
            router: self.config.router,
            sequence,
            checksum: 0,
            length: 0,
        };
        let Some(lsa) = Lsa::new(header, &body) else {
            self.counters.lsa_overflows += 1;
            return None;
        };
        self.own.originated.insert(place, Originated { body, sequence, at: now, is_outdone: false });
        self.install(now, place, lsa, false);
        self.flood(now, place, None);
        Some(now.after_ns(REFRESH_S * NS_PER_S))
    }

    /// The LSAs that should be there, with their bodies.
    fn wanted(&self) -> BTreeMap<Place, Vec<u8>> {
        let links: Vec<RouterLink> = self.links();
        let of_area = origin::of_area(&self.config, self.options(), &links);
        let mut wanted: BTreeMap<Place, Vec<u8>> =
            of_area.into_iter().map(|(key, body)| (Place { circuit: None, key }, body)).collect();
        for (number, circuit) in self.circuits.iter().enumerate().filter(|(_, circuit)| circuit.is_up) {
            let id = CircuitId(number);
            let (key, body) = origin::of_link(&self.config, self.options(), interface(id), circuit.config.address);
            wanted.insert(Place { circuit: Some(id), key }, body);
        }
        wanted
    }

    /// Ends the time of all own LSAs.
    pub(super) fn flush_all(&mut self, now: Instant) {
        for place in std::mem::take(&mut self.own.originated).into_keys() {
            self.flush(now, place);
        }
    }
}
