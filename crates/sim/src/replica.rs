//! Memory that is compared with the source's data octet by octet.

use sha2::{Digest, Sha256};
use srdma_rc::Memory;
use std::sync::Arc;

/// A SHA-256.
pub type Sha256Digest = [u8; 32];

/// A memory region of the length of the source's data.
///
/// Each octet written is compared with the source's at its place. As long as all agree and none is left out, the two
/// need only one memory and one SHA-256 between them. From the first that differs, or comes out of place, the region
/// has memory of its own, and a SHA-256 of its own.
#[derive(Clone, Debug)]
pub struct Replica {
    original: Arc<Vec<u8>>,
    /// Octets that were written without a gap, from the start.
    complete_octets: usize,
    own: Option<Vec<u8>>,
    /// Number of writes with an octet that differs from the source's at its place.
    wrong_writes: u64,
    /// The part of the data that is for this region; `None`: all.
    stripe: Option<Stripe>,
}

/// Every `of`-th piece of the source's data, from the one at `position` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// More than 0.
    pub piece_octets: usize,
    /// Below `of`.
    pub position: usize,
    /// More than 0.
    pub of: usize,
}

impl Stripe {
    /// Where from `offset` on the first octet of the stripe is.
    fn next_from(self, offset: usize) -> usize {
        let piece = offset / self.piece_octets;
        let behind = (self.position + self.of - piece % self.of) % self.of;
        if behind == 0 { offset } else { (piece + behind) * self.piece_octets }
    }

    /// Whether all octets from `start` to `end` are of one piece of the stripe.
    fn has(self, start: usize, end: usize) -> bool {
        let piece = start / self.piece_octets;
        piece % self.of == self.position && end <= (piece + 1) * self.piece_octets
    }
}

impl Replica {
    /// The source's own region.
    pub fn of_source(original: Arc<Vec<u8>>) -> Self {
        Replica { complete_octets: original.len(), original, own: None, wrong_writes: 0, stripe: None }
    }

    /// A region that nothing was written to, filled with zeros.
    pub fn empty(original: Arc<Vec<u8>>) -> Self {
        Replica { original, complete_octets: 0, own: None, wrong_writes: 0, stripe: None }
    }

    /// A region of which nothing before `offset` will be written: the data of a receiver that joins there.
    pub fn beginning_at(original: Arc<Vec<u8>>, offset: u64) -> Self {
        Replica { original, complete_octets: offset as usize, own: None, wrong_writes: 0, stripe: None }
    }

    /// The same for a region of several, which gets a stripe of the data; in [`Replica::complete_octets`] the octets of
    /// the other regions before its next one count as written.
    pub fn striped(self, stripe: Stripe) -> Self {
        let complete_octets = stripe.next_from(self.complete_octets).min(self.original.len());
        Replica { complete_octets, stripe: Some(stripe), ..self }
    }

    /// Octets from the start that were written without a gap; what lies before a late beginning counts as written.
    pub fn complete_octets(&self) -> u64 {
        self.complete_octets as u64
    }

    /// Whether the region holds the source's data, all of it and nothing else.
    pub fn is_identical(&self) -> bool {
        let len = self.original.len();
        self.complete_octets == len && self.own.as_deref().is_none_or(|own| *own == **self.original)
    }

    /// Whether each octet that was written, from `offset` on, is the source's at its place.
    pub fn agrees_from(&self, offset: u64) -> bool {
        let range = (offset as usize).min(self.complete_octets)..self.complete_octets;
        self.own.as_deref().is_none_or(|own| {
            let is_right = match self.stripe {
                None => own[range.clone()] == self.original[range.clone()],
                Some(stripe) => range.clone().all(|at| {
                    let wanted = if stripe.has(at, at + 1) { self.original[at] } else { 0 };
                    own[at] == wanted
                }),
            };
            is_right && own[range.end..].iter().all(|octet| *octet == 0)
        })
    }

    /// Number of writes with an octet that differed from the source's at its place, whether it was overwritten since or
    /// not.
    pub fn wrong_writes(&self) -> u64 {
        self.wrong_writes
    }

    /// SHA-256 of the [`Replica::complete_octets`]. An identical replica's is the source's, which the caller has
    /// computed already: `of_source` must be the SHA-256 of all of the source's data.
    pub fn sha256(&self, of_source: Sha256Digest) -> Sha256Digest {
        if self.is_identical() {
            return of_source;
        }
        let octets = self.own.as_deref().unwrap_or(&self.original);
        Sha256::digest(&octets[..self.complete_octets]).into()
    }

    /// Goes on with memory of its own.
    fn diverge(&mut self) -> &mut Vec<u8> {
        let (original, complete, stripe) = (&self.original, self.complete_octets, self.stripe);
        self.own.get_or_insert_with(|| {
            let mut own = vec![0; original.len()];
            own[..complete].copy_from_slice(&original[..complete]);
            if let Some(stripe) = stripe {
                (0..complete).filter(|at| !stripe.has(*at, *at + 1)).for_each(|at| own[at] = 0);
            }
            own
        })
    }
}

impl Memory for Replica {
    fn len(&self) -> u64 {
        self.original.len() as u64
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        let start = offset as usize;
        let end = start + octets.len();
        let is_own = self.stripe.is_none_or(|stripe| stripe.has(start, end));
        let is_right = is_own && self.original[start..end] == *octets;
        self.wrong_writes += u64::from(!is_right);
        if !is_right || start != self.complete_octets || self.own.is_some() {
            self.diverge()[start..end].copy_from_slice(octets);
        }
        if start <= self.complete_octets {
            self.complete_octets = self.complete_octets.max(end);
            if let Some(stripe) = self.stripe {
                self.complete_octets = stripe.next_from(self.complete_octets).min(self.original.len());
            }
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let start = offset as usize;
        let end = start + into.len();
        match &self.own {
            Some(own) => into.copy_from_slice(&own[start..end]),
            None => {
                let written = self.complete_octets.clamp(start, end) - start;
                into[..written].copy_from_slice(&self.original[start..start + written]);
                into[written..].fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original() -> Arc<Vec<u8>> {
        Arc::new((1..=100).collect())
    }

    fn digest(octets: &[u8]) -> Sha256Digest {
        Sha256::digest(octets).into()
    }

    fn octets(replica: &Replica) -> Vec<u8> {
        let mut octets = vec![0xEE; replica.len() as usize];
        replica.read(0, &mut octets);
        octets
    }

    #[test]
    fn an_identical_replica_shares_the_source_s_digest() {
        let (original, mut replica) = (original(), Replica::empty(original()));
        for start in [0, 30, 60] {
            assert!(!replica.is_identical());
            let end = (start + 30).min(100) + if start == 60 { 10 } else { 0 };
            replica.write(start as u64, &original[start..end]);
        }
        assert!(replica.is_identical() && replica.own.is_none());
        assert_eq!(replica.sha256(digest(&original)), digest(&original));
        assert_eq!(octets(&replica), *original);
    }

    #[test]
    fn an_incomplete_replica_has_the_digest_of_its_octets() {
        let (original, mut replica) = (original(), Replica::empty(original()));
        replica.write(0, &original[..40]);
        assert_eq!(replica.complete_octets(), 40);
        assert_eq!(replica.sha256(digest(&original)), digest(&original[..40]));
        assert_eq!(octets(&replica), [&original[..40], &[0; 60]].concat());
    }

    #[test]
    fn one_wrong_octet_gives_a_digest_of_its_own() {
        let (original, mut replica) = (original(), Replica::empty(original()));
        let mut wrong = original.to_vec();
        wrong[55] ^= 1;
        for start in [0, 20, 40, 60, 80] {
            replica.write(start as u64, &wrong[start..start + 20]);
        }
        assert_eq!(replica.complete_octets(), 100);
        assert!(!replica.is_identical());
        assert_eq!(replica.sha256(digest(&original)), digest(&wrong));
        assert_eq!(octets(&replica), wrong);
        replica.write(40, &original[40..60]);
        assert!(replica.agrees_from(0));
        assert_eq!(replica.wrong_writes(), 1, "the overwritten octet counts");
    }

    /// Each octet of the stripe counts, and one of another's is wrong, whatever it is.
    #[test]
    fn a_stripe_is_for_its_pieces_alone() {
        let original = original();
        let stripe = Stripe { piece_octets: 10, position: 1, of: 3 };
        let mut replica = Replica::empty(Arc::clone(&original)).striped(stripe);
        assert_eq!(replica.complete_octets(), 10);
        for (start, end, complete) in [(10, 16, 16), (16, 20, 40), (40, 50, 70), (70, 80, 100)] {
            replica.write(start as u64, &original[start..end]);
            assert_eq!(replica.complete_octets(), complete);
        }
        assert!(replica.own.is_none() && replica.agrees_from(0));
        assert_eq!(Replica::beginning_at(Arc::clone(&original), 50).striped(stripe).complete_octets(), 70);
        for wrong in [0..10, 20..30, 35..45, 15..25] {
            let mut replica = replica.clone();
            replica.write(wrong.start as u64, &original[wrong]);
            assert_eq!(replica.wrong_writes(), 1);
            assert!(!replica.agrees_from(0));
        }
    }

    #[test]
    fn octets_out_of_place_are_kept_where_they_were_put() {
        let (original, mut replica) = (original(), Replica::empty(original()));
        replica.write(0, &original[..10]);
        replica.write(50, &original[50..60]);
        assert_eq!(replica.complete_octets(), 10);
        assert_eq!(replica.sha256(digest(&original)), digest(&original[..10]));
        replica.write(10, &original[10..100]);
        assert!(replica.is_identical());
        replica.write(5, &[0]);
        assert!(!replica.is_identical());
        assert_eq!(replica.complete_octets(), 100);
        let mut changed = original.to_vec();
        changed[5] = 0;
        assert_eq!(replica.sha256(digest(&original)), digest(&changed));
    }
}
