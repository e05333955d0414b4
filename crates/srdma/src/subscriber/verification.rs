//! Verification of a version, in steps: a host that hashes gigabytes at once would acknowledge nothing meanwhile.

use crate::digest::{Digest, Hasher};
use crate::manifest::Manifest;
use crate::provider::ReceiverQueue;
use std::sync::Arc;

/// Octets that one step hashes.
const STEP_OCTETS: usize = 1 << 20;
/// Octets that are read at once.
const PIECE_OCTETS: usize = 64 << 10;

/// A version whose octets are all there.
#[derive(Debug)]
pub(super) struct Verification {
    pub(super) manifest: Arc<Manifest>,
    digests: Vec<Digest>,
    /// The buffer that is hashed, its octets so far, and their digest.
    index: usize,
    done_octets: u64,
    hasher: Hasher,
    scratch: Vec<u8>,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Pending,
    Right,
    /// The name of a buffer whose digest is wrong.
    Damaged(String),
}

impl Verification {
    /// A version with as many digests as buffers.
    pub(super) fn new(manifest: Arc<Manifest>, digests: Vec<Digest>) -> Self {
        let hasher = Hasher::new(manifest.digest());
        Verification { manifest, digests, index: 0, done_octets: 0, hasher, scratch: vec![0; PIECE_OCTETS] }
    }

    /// Hashes a bounded number of octets of the regions.
    pub(super) fn step(&mut self, queue: &mut dyn ReceiverQueue) -> Outcome {
        let manifest = Arc::clone(&self.manifest);
        let mut budget = STEP_OCTETS;
        while let Some(entry) = manifest.buffers().get(self.index) {
            if budget == 0 {
                return Outcome::Pending;
            }
            let left = entry.length_octets - self.done_octets;
            if left == 0 {
                let digest = std::mem::replace(&mut self.hasher, Hasher::new(manifest.digest())).finish();
                if self.digests.get(self.index) != Some(&digest) {
                    return Outcome::Damaged(entry.name.clone());
                }
                (self.index, self.done_octets) = (self.index + 1, 0);
                // A buffer without octets costs a digest as well.
                budget = budget.saturating_sub(64);
                continue;
            }
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_OCTETS).min(budget);
            let piece = &mut self.scratch[..length];
            let place = manifest.place(entry.region, entry.offset + self.done_octets);
            queue.take(entry.region.into(), place, piece);
            self.hasher.update(piece);
            self.done_octets += length as u64;
            budget -= length;
        }
        Outcome::Right
    }
}
