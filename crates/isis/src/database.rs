//! The LSPs of all systems and how old they are (ISO 10589 sections 7.3.15, 7.3.16).

use crate::id::LspId;
use crate::pdu::Lsp;
use crate::tlv::LspEntry;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Time that the header of an expired LSP is kept, in seconds (ISO 10589: ZeroAgeLifetime).
pub const ZERO_AGE_LIFETIME_S: u64 = 60;

/// An LSP and when it came.
#[derive(Clone, Debug)]
pub struct Stored {
    lsp: Lsp,
    /// Reference time of its lifetime.
    at: Instant,
}

impl Stored {
    /// Seconds that it is still valid.
    pub fn lifetime_s(&self, now: Instant) -> u16 {
        let age_s = now.since(self.at).as_secs();
        self.lsp.entry.lifetime_s.saturating_sub(u16::try_from(age_s).unwrap_or(u16::MAX))
    }

    /// The LSP, with the lifetime that it came with.
    pub fn lsp(&self) -> &Lsp {
        &self.lsp
    }

    /// Its entry in sequence numbers PDUs.
    pub fn entry(&self, now: Instant) -> LspEntry {
        LspEntry { lifetime_s: self.lifetime_s(now), ..self.lsp.entry }
    }

    /// As it is sent now.
    pub(crate) fn octets(&self, now: Instant) -> Vec<u8> {
        let mut lsp = self.lsp.clone();
        lsp.set_lifetime(self.lifetime_s(now));
        lsp.octets().to_vec()
    }

    /// When its lifetime is over.
    fn over(&self) -> Instant {
        self.at.after_ns(u64::from(self.lsp.entry.lifetime_s) * NS_PER_S)
    }

    fn is_purge(&self) -> bool {
        self.lsp.is_purge()
    }
}

/// Comparison of an LSP or an entry with the stored version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Newer, or of an LSP that is not stored.
    Newer,
    /// The same version.
    Same,
    Older,
    /// The same number with other octets: two systems with one id, or damage (ISO 10589 section 7.3.16.2).
    Confused,
}

/// The database.
#[derive(Clone, Debug, Default)]
pub struct Database {
    stored: BTreeMap<LspId, Stored>,
    /// Time at which the next LSP is over or can be forgotten: by time, then by id.
    deadlines: BTreeSet<(Instant, LspId)>,
    octets: usize,
}

impl Database {
    /// Without LSPs.
    pub(crate) const EMPTY: Database = Database { stored: BTreeMap::new(), deadlines: BTreeSet::new(), octets: 0 };

    /// All LSPs, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&LspId, &Stored)> {
        self.stored.iter()
    }

    /// The LSPs that count: valid, and of nodes whose first fragment is there and valid (ISO 10589 section 7.3.15.1).
    pub fn valid(&self, now: Instant) -> impl Iterator<Item = (&LspId, &Lsp)> {
        let is_valid = move |stored: &Stored| stored.lifetime_s(now) > 0;
        let has_first = move |id: &LspId| self.get(LspId { fragment: 0, ..*id }).is_some_and(is_valid);
        self.iter().filter(move |(id, stored)| is_valid(stored) && has_first(id)).map(|(id, stored)| (id, &stored.lsp))
    }

    /// Those of a range, both ends included.
    pub fn range(&self, first: LspId, last: LspId) -> impl Iterator<Item = (&LspId, &Stored)> {
        // An empty range of a tree panics.
        let last = last.max(first);
        self.stored.range(first..=last)
    }

    /// One of them.
    pub fn get(&self, id: LspId) -> Option<&Stored> {
        self.stored.get(&id)
    }

    /// Number of LSPs.
    pub fn len(&self) -> usize {
        self.stored.len()
    }

    /// Whether the database is empty.
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Octets of all LSPs.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Compares a version with what is stored of its LSP.
    pub(crate) fn compare(&self, now: Instant, entry: &LspEntry) -> Compared {
        let Some(stored) = self.stored.get(&entry.id) else { return Compared::Newer };
        let ours = stored.entry(now);
        match entry.sequence.cmp(&ours.sequence) {
            Ordering::Greater => Compared::Newer,
            Ordering::Less => Compared::Older,
            Ordering::Equal => match (entry.lifetime_s == 0, ours.lifetime_s == 0) {
                (true, false) => Compared::Newer,
                (false, true) => Compared::Older,
                (true, true) => Compared::Same,
                (false, false) if entry.checksum == ours.checksum => Compared::Same,
                (false, false) => Compared::Confused,
            },
        }
    }

    /// Takes an LSP in place of what is stored of it.
    pub(crate) fn put(&mut self, now: Instant, lsp: Lsp) {
        let id = lsp.entry.id;
        self.take(id);
        self.octets += lsp.octets().len();
        let stored = Stored { lsp, at: now };
        self.deadlines.insert((deadline(&stored), id));
        self.stored.insert(id, stored);
    }

    /// Forgets an LSP.
    pub(crate) fn take(&mut self, id: LspId) {
        if let Some(stored) = self.stored.remove(&id) {
            self.octets -= stored.lsp.octets().len();
            self.deadlines.remove(&(deadline(&stored), id));
        }
    }

    /// When something here is over.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Handles expired LSPs: purges are removed; the last versions of the others are returned, to be purged.
    pub(crate) fn age(&mut self, now: Instant) -> Vec<Lsp> {
        let mut over = Vec::new();
        while let Some(&(at, id)) = self.deadlines.first()
            && at <= now
        {
            let lsp = self.stored.get(&id).filter(|stored| !stored.is_purge()).map(|stored| stored.lsp.clone());
            over.extend(lsp);
            self.take(id);
        }
        over
    }
}

fn deadline(stored: &Stored) -> Instant {
    if stored.is_purge() { stored.at.after_ns(ZERO_AGE_LIFETIME_S * NS_PER_S) } else { stored.over() }
}
