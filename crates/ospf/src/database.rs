//! The LSAs of all routers, and how old they are (RFC 2328 section 14).

use crate::lsa::{Lsa, LsaHeader, LsaKey, MAX_AGE_S};
use crate::speaker::CircuitId;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::collections::{BTreeMap, BTreeSet};

/// Where an LSA is: those of a link belong to their circuit.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The circuit of an LSA whose scope is the link.
    pub circuit: Option<CircuitId>,
    pub key: LsaKey,
}

/// An LSA, with the time at which it had the age that is written in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    lsa: Lsa,
    at: Instant,
    /// Whether it came from a neighbour.
    pub(crate) is_received: bool,
}

impl Stored {
    /// The LSA as it was stored.
    pub fn lsa(&self) -> &Lsa {
        &self.lsa
    }

    /// Its age, in seconds.
    pub fn age_s(&self, now: Instant) -> u16 {
        let since_s = u16::try_from(now.since(self.at).as_secs()).unwrap_or(MAX_AGE_S);
        self.lsa.header().age_s.saturating_add(since_s).min(MAX_AGE_S)
    }

    /// Its header, with its age.
    pub fn header(&self, now: Instant) -> LsaHeader {
        LsaHeader { age_s: self.age_s(now), ..self.lsa.header() }
    }

    /// The time at which it was stored.
    pub(crate) fn stored_at(&self) -> Instant {
        self.at
    }

    fn expires_at(&self) -> Instant {
        self.at.after_ns(u64::from(MAX_AGE_S.saturating_sub(self.lsa.header().age_s)) * NS_PER_S)
    }
}

/// The database.
#[derive(Clone, Debug, Default)]
pub struct Database {
    lsas: BTreeMap<Place, Stored>,
    /// LSAs at MaxAge, which are removed when all neighbours have them.
    old: BTreeSet<Place>,
    /// No other LSA is too old before.
    expires_at: Option<Instant>,
}

impl Database {
    /// An LSA.
    pub fn get(&self, place: Place) -> Option<&Stored> {
        self.lsas.get(&place)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &Stored)> {
        self.lsas.iter().map(|(place, stored)| (*place, stored))
    }

    /// Those whose time is not over.
    pub fn valid(&self) -> impl Iterator<Item = (Place, &Lsa)> {
        self.iter().filter(|(place, _)| !self.old.contains(place)).map(|(place, stored)| (place, &stored.lsa))
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.lsas.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lsas.is_empty()
    }

    pub(crate) fn put(&mut self, now: Instant, place: Place, lsa: Lsa, is_received: bool) {
        let stored = Stored { lsa, at: now, is_received };
        if stored.lsa.header().is_old() {
            self.old.insert(place);
        } else {
            self.old.remove(&place);
            let at = stored.expires_at();
            self.expires_at = Some(self.expires_at.map_or(at, |before| before.min(at)));
        }
        self.lsas.insert(place, stored);
    }

    pub(crate) fn remove(&mut self, place: Place) {
        self.lsas.remove(&place);
        self.old.remove(&place);
    }

    /// Those at MaxAge.
    pub(crate) fn old(&self) -> &BTreeSet<Place> {
        &self.old
    }

    /// The LSAs of a circuit alone.
    pub(crate) fn of_circuit(&self, circuit: CircuitId) -> Vec<Place> {
        self.lsas.keys().copied().filter(|place| place.circuit == Some(circuit)).collect()
    }

    /// LSAs that have become too old.
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<Place> {
        if self.expires_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let mut expired = Vec::new();
        self.expires_at = None;
        for (place, stored) in self.lsas.iter().filter(|(place, _)| !self.old.contains(place)) {
            let at = stored.expires_at();
            if at <= now {
                expired.push(*place);
            } else {
                self.expires_at = Some(self.expires_at.map_or(at, |before| before.min(at)));
            }
        }
        expired
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.expires_at
    }
}
