//! The thread that writes: what has come in while a batch was made durable goes into the next one, so that many
//! answered writes share one flush.
//!
//! Writes are numbered. Whatever the controller says to anybody waits until all that was written before is durable.

use super::{Store, StoreError, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use tokio::sync::watch;

/// The most writes of a batch: what one client sends must not keep the others waiting for long.
const MOST_OF_A_BATCH: usize = 4096;

/// Hands writes to the thread.
#[derive(Debug)]
pub(crate) struct Writer {
    sender: Sender<(u64, Vec<Write>)>,
    last: u64,
    durability: Durability,
}

/// Tells what is durable.
#[derive(Clone, Debug)]
pub(crate) struct Durability(watch::Receiver<Progress>);

#[derive(Debug, Default)]
struct Progress {
    /// All up to this number are durable, or lost.
    done: u64,
    /// From this number on they are lost: nothing is written after a failure.
    lost: Option<(u64, StoreError)>,
}

impl Writer {
    /// Starts the thread. `failed` is told when a batch cannot be written, before those who wait for it are; the thread
    /// ends then.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        failed: impl FnOnce(StoreError) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = channel();
        let (progress, watched) = watch::channel(Progress::default());
        let thread = Builder::new().name("store".to_owned());
        let spawned = thread.spawn(move || {
            if let Err((first, error)) = write(store.as_ref(), &receiver, &progress) {
                failed(error.clone());
                progress.send_modify(|progress| progress.lost = Some((first, error)));
            }
        });
        spawned.map_err(|error| StoreError::System(error.to_string()))?;
        Ok(Writer { sender, last: 0, durability: Durability(watched) })
    }

    /// Hands over writes that belong together; returns their number. No writes: the number of the last that were.
    pub(crate) fn submit(&mut self, writes: Vec<Write>) -> u64 {
        if !writes.is_empty() {
            self.last += 1;
            // The thread has ended only after a failure, which whoever waits for the number is told.
            let _ = self.sender.send((self.last, writes));
        }
        self.last
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability.clone()
    }
}

impl Durability {
    /// The number up to which all is durable.
    pub(crate) fn done(&self) -> u64 {
        let progress = self.0.borrow();
        match &progress.lost {
            Some((lost, _)) => progress.done.min(lost - 1),
            None => progress.done,
        }
    }

    /// Waits until all up to this number is durable.
    pub(crate) async fn reached(&mut self, number: u64) -> Result<(), StoreError> {
        let waited = self.0.wait_for(|progress| progress.done >= number || progress.lost.is_some()).await;
        let progress = waited.map_err(|_| StoreError::System("the writing thread has ended".to_owned()))?;
        match &progress.lost {
            Some((lost, error)) if *lost <= number => Err(error.clone()),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until more is durable than now.
    pub(crate) async fn changed(&mut self) {
        // When the thread has ended nothing changes any more, and whoever waits is ended by the failure.
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Writes until there is nothing more to come, or a batch is lost: from which number on, and why.
fn write(
    store: &dyn Store,
    receiver: &Receiver<(u64, Vec<Write>)>,
    progress: &watch::Sender<Progress>,
) -> Result<(), (u64, StoreError)> {
    while let Ok(first) = receiver.recv() {
        let mut batch = vec![first];
        let mut writes = batch[0].1.len();
        while writes < MOST_OF_A_BATCH
            && let Ok(next) = receiver.try_recv()
        {
            writes += next.1.len();
            batch.push(next);
        }
        let (first, last) = (batch[0].0, batch[batch.len() - 1].0);
        let all: Vec<&Write> = batch.iter().flat_map(|(_, writes)| writes).collect();
        store.commit(&all).map_err(|error| (first, error))?;
        progress.send_modify(|progress| progress.done = last);
    }
    Ok(())
}
