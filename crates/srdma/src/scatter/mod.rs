//! Scatter: each receiver gets its own slices, such as the shard of its rank. A shard is a group of its own, so that no
//! node sends a receiver the octets of another shard.

mod whole;

pub use whole::ScatterEvent;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::Shared;
use crate::source::{GroupOptions, Source};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use whole::Whole;

/// Shards to create.
#[derive(Clone, Debug, Default)]
pub struct ScatterOptions {
    /// For each shard, counted from 0, the group of the receivers that get it: one by unicast, or several.
    pub shards: Vec<GroupOptions>,
}

/// The most shards.
const MAX_SHARDS: usize = 4096;

/// A source whose versions are one list of buffers for each shard. Dropping it is [`Scatter::close`].
pub struct Scatter {
    shards: Vec<Source>,
    shared: Arc<Shared<Whole, ScatterEvent>>,
    /// Held by `publish`: every shard has the versions in the same order.
    publishing: Mutex<()>,
}

impl Device {
    /// Creates a group for each shard. A receiver joins that of its shard by [`Device::join`].
    ///
    /// # Errors
    ///
    /// If there is no shard, or a group cannot be created, with its shard: then no group stays.
    pub fn create_scatter(&self, options: &ScatterOptions) -> Result<Scatter> {
        let count = options.shards.len();
        if !(1..=MAX_SHARDS).contains(&count) {
            return Err(Error::OutOfRange { name: "shards", value: count as u64, range: "1 to 4096" });
        }
        let shared = Arc::new(Shared::new("scatter".to_owned(), Whole::new(count))?);
        let create = |(shard, options): (usize, &GroupOptions)| {
            self.create_group(options).map_err(|error| of_shard(shard, error))
        };
        let shards = options.shards.iter().enumerate().map(create).collect::<Result<Vec<Source>>>()?;
        for (shard, source) in shards.iter().enumerate() {
            let shared = Arc::clone(&shared);
            source.observe(move |event| {
                let (event, over) = shared.lock().own.take(shard, event);
                shared.push(event, |_| {});
                if let Some(over) = over {
                    shared.end(over);
                }
            });
        }
        Ok(Scatter { shards, shared, publishing: Mutex::new(()) })
    }
}

fn of_shard(shard: usize, error: Error) -> Error {
    Error::Shard { shard, error: Box::new(error) }
}

impl Scatter {
    /// The number of each shard's group at the controller.
    pub fn groups(&self) -> Vec<u32> {
        self.shards.iter().map(Source::group).collect()
    }

    /// Waits for so many receivers of each shard, and commits the groups.
    ///
    /// # Errors
    ///
    /// If the count of numbers is not that of shards; and, with the shard, if its receivers or the nodes are not ready
    /// in time, or the controller refuses.
    pub fn commit(&self, receivers: &[u32], timeout: Duration) -> Result<()> {
        self.check_count(receivers.len())?;
        let begin = Instant::now();
        for (shard, (source, receivers)) in self.shards.iter().zip(receivers).enumerate() {
            source
                .commit(*receivers, timeout.saturating_sub(begin.elapsed()))
                .map_err(|error| of_shard(shard, error))?;
        }
        Ok(())
    }

    /// Publishes a version: to each shard its own buffers, whose number is that of the shards. Returns at once, as
    /// [`Source::publish`]. Either all shards take it or none.
    ///
    /// # Errors
    ///
    /// If a shard is over; and those of [`Source::publish`], with the shard.
    pub fn publish(&self, version: u64, buffers: Vec<Vec<Buffer>>) -> Result<()> {
        self.shared.check_process()?;
        self.check_count(buffers.len())?;
        let _one_at_a_time = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((shard, over)) = self.shared.lock().own.first_end() {
            return Err(of_shard(*shard, Error::Over(over.clone())));
        }
        let parts = self.shards.iter().zip(buffers).enumerate();
        let parts = parts
            .map(|(shard, (source, buffers))| source.prepare(version, buffers).map_err(|error| of_shard(shard, error)));
        // All are prepared before one is sent: what is refused here has no effect.
        let parts = parts.collect::<Result<Vec<_>>>()?;
        self.shared.lock().own.publish(version);
        parts.into_iter().for_each(|part| part.commit());
        Ok(())
    }

    /// Waits until a version is published: all members of all shards have their octets.
    ///
    /// # Errors
    ///
    /// If it is not published in time, there is no such version, or it has failed, with the shard.
    pub fn wait(&self, version: u64, timeout: Duration) -> Result<()> {
        self.shared.wait(timeout, |state| state.own.result(version))
    }

    /// The oldest event not yet fetched.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn next_event(&self) -> Result<Option<ScatterEvent>> {
        self.shared.next_event()
    }

    /// Ends the source and closes the groups. Versions that are not published fail; wait for the last one before.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn close(self) -> Result<()> {
        self.shared.check_process()?;
        self.shards.into_iter().try_for_each(Source::close)
    }

    fn check_count(&self, found: usize) -> Result<()> {
        let expected = self.shards.len();
        if found == expected { Ok(()) } else { Err(Error::Count { expected, found }) }
    }
}

impl AsFd for Scatter {
    /// Readable while there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd()
    }
}

impl AsRawFd for Scatter {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.raw_fd()
    }
}
