//! Events of a source or a receiver of several rails.

use super::assembler::RailRejection;
use crate::error::Over;
use crate::event::HandleEvent;

/// Something that has happened to a source or a receiver of several rails, which are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RailEvent {
    /// At a source: all hosts have all octets of the version, and its buffers are the application's again.
    Published {
        /// The version.
        version: u64,
    },
    /// At a source: for `slow_after`, not every receiver has had room for the next part of the version.
    Slow {
        /// The version.
        version: u64,
    },
    /// At a source: the version will not be published, and its buffers are the application's again.
    Failed {
        /// The version.
        version: u64,
        /// Why.
        why: Over,
    },
    /// At a receiver: it is a member of the groups of all rails that are not over.
    Joined,
    /// At a receiver: the version is whole, and can be taken.
    Version {
        /// The version.
        version: u64,
    },
    /// At a receiver: the version will never be visible.
    Rejected {
        /// The version.
        version: u64,
        /// Why.
        why: RailRejection,
    },
    /// At a receiver: the controller has not heard of the source of a rail for its `source_silent_after_ms`. The
    /// source's process has ended without closing the groups, or does not reach the controller; the receiver goes on.
    SourceSilent {
        /// The rail.
        rail: usize,
    },
    /// A rail is lost; the others go on.
    RailOver {
        /// The rail.
        rail: usize,
        /// Why.
        over: Over,
    },
    /// Nothing more happens: all rails are over, the last one for this reason, or the handle is closed.
    Over(Over),
    /// The application has not fetched its events for long: so many were dropped here.
    Lost(u64),
}

impl HandleEvent for RailEvent {
    fn over(over: Over) -> Self {
        RailEvent::Over(over)
    }

    fn lost(count: u64) -> Self {
        RailEvent::Lost(count)
    }

    /// What the rails log themselves is not repeated.
    fn log(&self, handle: &str) {
        match self {
            RailEvent::Published { version } => tracing::debug!("{handle}: version {version} is published"),
            RailEvent::Version { version } => tracing::debug!("{handle}: version {version} is whole"),
            RailEvent::Joined => tracing::info!("{handle}: all groups have the receiver"),
            RailEvent::Slow { version } => {
                tracing::warn!("{handle}: not every receiver has room for more of version {version}");
            }
            RailEvent::Failed { version, why } => {
                tracing::warn!("{handle}: version {version} is not published: {why}");
            }
            RailEvent::Rejected { version, why } => {
                tracing::warn!("{handle}: version {version} is rejected: {why}");
            }
            RailEvent::SourceSilent { rail } => tracing::warn!("{handle}: the source of rail {rail} is silent"),
            RailEvent::RailOver { rail, over } => tracing::warn!("{handle}: rail {rail} is lost: {over}"),
            RailEvent::Over(over) => tracing::info!("{handle}: {over}"),
            RailEvent::Lost(count) => tracing::warn!("{handle}: {count} events were dropped"),
        }
    }
}
