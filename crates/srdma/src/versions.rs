//! Versions that the methods of a handle wait for: those that a source has published, and those that a receiver can
//! take.

use crate::error::{Error, Over, Result};
use crate::event::{HandleEvent, Shared};
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Published versions whose numbers are kept.
const KEPT_NUMBERS: usize = 4096;

/// Versions of a source, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    outstanding: BTreeSet<u64>,
    published: BTreeSet<u64>,
}

impl Sent {
    /// A version that waits or is being sent.
    pub(crate) fn begin(&mut self, version: u64) {
        self.outstanding.insert(version);
    }

    pub(crate) fn end(&mut self, version: u64, is_published: bool) {
        self.outstanding.remove(&version);
        if is_published {
            self.published.insert(version);
        }
        while self.published.len() > KEPT_NUMBERS {
            self.published.pop_first();
        }
    }

    /// Number of versions that wait or are being sent.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// The result of a version of a handle that may be over; `None` while it is not known.
    pub(crate) fn result(&self, version: u64, over: Option<&Over>) -> Option<Result<()>> {
        if self.published.contains(&version) {
            return Some(Ok(()));
        }
        if self.outstanding.contains(&version) {
            return None;
        }
        Some(Err(over.cloned().map_or(Error::UnknownVersion(version), Error::Over)))
    }
}

/// A version that has a number.
pub(crate) trait Numbered {
    fn number(&self) -> u64;
}

/// A handle with versions that are whole, in order, and not taken.
impl<V: Numbered, E: HandleEvent> Shared<VecDeque<V>, E> {
    /// Takes the oldest version, when there is one.
    pub(crate) fn next_version(&self, timeout: Duration) -> Result<V> {
        self.wait(timeout, |state| {
            if let Some(version) = state.own.pop_front() {
                return Some(Ok(version));
            }
            state.over().cloned().map(|over| Err(Error::Over(over)))
        })
    }

    /// Takes this version when it is there. Versions before it are dropped.
    pub(crate) fn take_version(&self, version: u64, timeout: Duration) -> Result<V> {
        let begin = Instant::now();
        loop {
            let newest = self.wait(timeout.saturating_sub(begin.elapsed()), |state| {
                let Some(front) = state.own.front() else {
                    return state.over().cloned().map(|over| Err(Error::Over(over)));
                };
                if front.number() > version {
                    return Some(Err(Error::UnknownVersion(version)));
                }
                Some(state.own.pop_front().ok_or(Error::UnknownVersion(version)))
            })?;
            if newest.number() == version {
                return Ok(newest);
            }
            // Dropped here, not while the state is locked.
        }
    }
}
