//! The versions of all shards as versions of the whole, without I/O.
//!
//! ```text
//!   shard 0: Published ─┐
//!   shard 1: Published ─┼─► all have reported ──► Published, or Failed with the first shard that has failed
//!   shard 2: Failed    ─┘
//! ```

use crate::error::{Error, Over, Result};
use crate::event::{Event, HandleEvent};
use crate::publisher::Failure;
use std::collections::BTreeMap;

/// Something that has happened to the shards of a [`Scatter`](crate::Scatter), which are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScatterEvent {
    /// All members of all shards have their octets of the version, and its buffers are the application's again.
    Published {
        /// The version.
        version: u64,
    },
    /// For `slow_after`, not every receiver of a shard has had a free slot for the version.
    Slow {
        /// The version.
        version: u64,
        /// The shard.
        shard: usize,
    },
    /// The version is not published, since a shard does not have it; others may. Its buffers are the application's
    /// again.
    Failed {
        /// The version.
        version: u64,
        /// The first shard that has failed.
        shard: usize,
        /// Why.
        failure: Failure,
    },
    /// Nothing more happens to a shard, and nothing can be published any more. What the others have is sent.
    ShardOver {
        /// The shard.
        shard: usize,
        /// Why.
        over: Over,
    },
    /// Nothing more happens: all shards are over.
    Over(Over),
    /// The application has not fetched its events for long: so many were dropped here.
    Lost(u64),
}

impl HandleEvent for ScatterEvent {
    fn over(over: Over) -> Self {
        ScatterEvent::Over(over)
    }

    fn lost(count: u64) -> Self {
        ScatterEvent::Lost(count)
    }

    /// What the shards log themselves is not repeated.
    fn log(&self, handle: &str) {
        match self {
            ScatterEvent::Published { version } => tracing::debug!("{handle}: version {version} is published"),
            ScatterEvent::Slow { version, shard } => {
                tracing::warn!("{handle}: shard {shard} has no room for version {version} everywhere");
            }
            ScatterEvent::Failed { version, shard, failure } => {
                tracing::warn!("{handle}: version {version} is not published, by shard {shard}: {failure}");
            }
            ScatterEvent::ShardOver { shard, over } => tracing::warn!("{handle}: shard {shard} is over: {over}"),
            ScatterEvent::Over(over) => tracing::info!("{handle}: {over}"),
            ScatterEvent::Lost(count) => tracing::warn!("{handle}: {count} events were dropped"),
        }
    }
}

/// Versions whose results are kept.
const KEPT_VERSIONS: usize = 4096;

/// A version of the whole.
#[derive(Debug)]
struct Pending {
    /// Shards that have not reported.
    left: usize,
    failed: Option<(usize, Failure)>,
}

/// The versions of all shards.
#[derive(Debug)]
pub(super) struct Whole {
    shards: usize,
    pending: BTreeMap<u64, Pending>,
    results: BTreeMap<u64, std::result::Result<(), (usize, Failure)>>,
    /// Shards that are over, and why the first one is.
    ended: usize,
    first_end: Option<(usize, Over)>,
}

impl Whole {
    pub(super) fn new(shards: usize) -> Self {
        Whole { shards, pending: BTreeMap::new(), results: BTreeMap::new(), ended: 0, first_end: None }
    }

    /// A version that every shard has taken.
    pub(super) fn publish(&mut self, version: u64) {
        self.pending.insert(version, Pending { left: self.shards, failed: None });
    }

    /// The first shard that is over, and why.
    pub(super) fn first_end(&self) -> Option<&(usize, Over)> {
        self.first_end.as_ref()
    }

    /// The result of a version; `None` while it is not known.
    pub(super) fn result(&self, version: u64) -> Option<Result<()>> {
        if self.pending.contains_key(&version) {
            return None;
        }
        let error = |shard, over| Error::Shard { shard, error: Box::new(Error::Over(over)) };
        Some(match (self.results.get(&version), &self.first_end) {
            (Some(Ok(())), _) => Ok(()),
            (Some(Err((shard, failure))), _) => Err(error(*shard, (*failure).into())),
            (None, Some((shard, over))) => Err(error(*shard, over.clone())),
            (None, None) => Err(Error::UnknownVersion(version)),
        })
    }

    /// What an event of a shard means for the whole: an event, and the reason if all shards are over now.
    pub(super) fn take(&mut self, shard: usize, event: Event) -> (Option<ScatterEvent>, Option<Over>) {
        match event {
            Event::Published { version } => (self.report(version, None), None),
            Event::Failed { version, failure } => (self.report(version, Some((shard, failure))), None),
            Event::Slow { version } => (Some(ScatterEvent::Slow { version, shard }), None),
            Event::Over(over) => {
                self.ended += 1;
                let (_, first) = self.first_end.get_or_insert_with(|| (shard, over.clone()));
                let all = (self.ended == self.shards).then(|| first.clone());
                (Some(ScatterEvent::ShardOver { shard, over }), all)
            }
            // Events of receivers; and a shard keeps none, so that it loses none.
            Event::Joined
            | Event::Version { .. }
            | Event::Rejected { .. }
            | Event::SourceSilent
            | Event::RankAttached { .. }
            | Event::RankDetached { .. }
            | Event::RankHolds { .. }
            | Event::OwnerLost
            | Event::Lost(_) => (None, None),
        }
    }

    /// A shard has reported a version.
    fn report(&mut self, version: u64, failed: Option<(usize, Failure)>) -> Option<ScatterEvent> {
        let pending = self.pending.get_mut(&version)?;
        pending.left = pending.left.saturating_sub(1);
        pending.failed = pending.failed.or(failed);
        if pending.left > 0 {
            return None;
        }
        let result = self.pending.remove(&version).and_then(|pending| pending.failed).map_or(Ok(()), Err);
        self.results.insert(version, result);
        while self.results.len() > KEPT_VERSIONS {
            self.results.pop_first();
        }
        Some(match result {
            Ok(()) => ScatterEvent::Published { version },
            Err((shard, failure)) => ScatterEvent::Failed { version, shard, failure },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(whole: &mut Whole, shard: usize, event: Event) -> Option<ScatterEvent> {
        let (event, over) = whole.take(shard, event);
        assert_eq!(over, None);
        event
    }

    #[test]
    fn a_version_is_published_when_all_shards_have_it() {
        let mut whole = Whole::new(3);
        whole.publish(7);
        whole.publish(9);
        assert_eq!(take(&mut whole, 1, Event::Published { version: 7 }), None);
        assert_eq!(take(&mut whole, 1, Event::Published { version: 9 }), None);
        let slow = ScatterEvent::Slow { version: 7, shard: 2 };
        assert_eq!(take(&mut whole, 2, Event::Slow { version: 7 }), Some(slow));
        assert_eq!(take(&mut whole, 0, Event::Published { version: 7 }), None);
        assert!(whole.result(7).is_none());
        let published = ScatterEvent::Published { version: 7 };
        assert_eq!(take(&mut whole, 2, Event::Published { version: 7 }), Some(published));
        assert!(matches!(whole.result(7), Some(Ok(()))));
        assert!(whole.result(9).is_none());
        assert!(matches!(whole.result(8), Some(Err(Error::UnknownVersion(8)))));
    }

    #[test]
    fn a_shard_that_fails_is_named_when_the_buffers_have_returned() {
        let mut whole = Whole::new(3);
        whole.publish(1);
        let failure = Failure::Closed;
        assert_eq!(take(&mut whole, 2, Event::Failed { version: 1, failure }), None);
        let over = ScatterEvent::ShardOver { shard: 2, over: Over::GroupClosed };
        assert_eq!(take(&mut whole, 2, Event::Over(Over::GroupClosed)), Some(over));
        assert_eq!(take(&mut whole, 0, Event::Published { version: 1 }), None);
        // A later failure does not hide the first one.
        let failed = take(&mut whole, 1, Event::Failed { version: 1, failure: Failure::Abandoned });
        assert_eq!(failed, Some(ScatterEvent::Failed { version: 1, shard: 2, failure }));
        let error = whole.result(1).expect("known").expect_err("failed").to_string();
        assert_eq!(error, "shard 2: the group is closed");
        let error = whole.result(2).expect("known").expect_err("never").to_string();
        assert_eq!(error, "shard 2: the group is closed");
        take(&mut whole, 0, Event::Over(Over::Closed));
        let (_, all) = whole.take(1, Event::Over(Over::Closed));
        assert_eq!(all, Some(Over::GroupClosed), "why the first one is over");
    }
}
