//! Versions that are prepared before they are published, as those that several sources publish together.

use super::Source;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::publisher::{Publisher, Waiting};
use std::sync::MutexGuard;

/// A version that nothing but [`Self::commit`] is missing for. Until then its source does nothing else.
pub(crate) struct Publication<'a> {
    source: &'a Source,
    publisher: MutexGuard<'a, Publisher>,
    version: u64,
    waiting: Waiting,
}

impl Source {
    /// A version that is published by [`Publication::commit`], unless that is dropped.
    pub(crate) fn prepare(&self, version: u64, buffers: Vec<Buffer>) -> Result<Publication<'_>> {
        let buffers = buffers.into_iter().map(|buffer| self.registrar.buffer(buffer));
        let buffers = buffers.collect::<Result<Vec<_>>>()?;
        let publisher = self.core.publisher();
        let waiting = publisher.prepare(version, buffers)?;
        Ok(Publication { source: self, publisher, version, waiting })
    }
}

impl Publication<'_> {
    /// Publishes it.
    pub(crate) fn commit(mut self) {
        self.publisher.enqueue(self.waiting);
        // Before the thread can report its end.
        self.source.shared.lock().own.begin(self.version);
        drop(self.publisher);
        self.source.core.wake.wake();
    }
}
