//! The thread that writes: writes that arrive while a batch is made durable form the next batch, so that many
//! transactions share one flush.

use super::{Store, StoreError};
use srdma_controller_core::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use tokio::sync::watch;

/// Limit of writes of a batch: those of one client must not delay the others for long.
const MAX_BATCH: usize = 4096;

/// Hands writes to the thread.
#[derive(Debug)]
pub(crate) struct Writer {
    sender: Sender<(u64, Vec<Write>)>,
    durability: Durability,
}

/// Progress of the thread.
#[derive(Clone, Debug)]
pub(crate) struct Durability(watch::Receiver<Progress>);

#[derive(Debug, Default)]
struct Progress {
    /// Writes up to this number are durable.
    done: u64,
    /// Writes from this number on are lost: nothing is written after a failure.
    lost: Option<(u64, StoreError)>,
}

impl Writer {
    /// Starts the thread. `durable` is called with the number of each batch, and `failed` when one cannot be written,
    /// both before tasks that wait for it are woken. The thread ends after a failure.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        durable: impl Fn(u64) + Send + 'static,
        failed: impl FnOnce(StoreError) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = channel();
        let (progress, watched) = watch::channel(Progress::default());
        let thread = Builder::new().name("store".to_owned());
        let spawned = thread.spawn(move || {
            let done = |number| {
                durable(number);
                progress.send_modify(|progress| progress.done = number);
            };
            if let Err((first, error)) = write(store.as_ref(), &receiver, done) {
                failed(error.clone());
                progress.send_modify(|progress| progress.lost = Some((first, error)));
            }
        });
        spawned.map_err(|error| StoreError::System(error.to_string()))?;
        Ok(Writer { sender, durability: Durability(watched) })
    }

    /// Submits the writes of a transaction, in the order of the numbers.
    pub(crate) fn submit(&self, number: u64, writes: Vec<Write>) {
        // The thread has ended only after a failure, which is reported to tasks that wait for the number.
        let _ = self.sender.send((number, writes));
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability.clone()
    }
}

impl Durability {
    /// Waits until the writes up to this number are durable; returns the last durable number.
    pub(crate) async fn reached(&mut self, number: u64) -> Result<u64, StoreError> {
        let waited = self.0.wait_for(|progress| progress.done >= number || progress.lost.is_some()).await;
        let progress = waited.map_err(|_| StoreError::System("the store thread has ended".to_owned()))?;
        match &progress.lost {
            Some((lost, error)) if *lost <= number => Err(error.clone()),
            Some(_) | None => Ok(progress.done),
        }
    }
}

/// Writes batches until the sender is dropped. Error: the first lost number, and the reason.
fn write(
    store: &dyn Store,
    receiver: &Receiver<(u64, Vec<Write>)>,
    done: impl Fn(u64),
) -> Result<(), (u64, StoreError)> {
    while let Ok(first) = receiver.recv() {
        let mut batch = vec![first];
        let mut writes = batch[0].1.len();
        while writes < MAX_BATCH
            && let Ok(next) = receiver.try_recv()
        {
            writes += next.1.len();
            batch.push(next);
        }
        let (first, last) = (batch[0].0, batch[batch.len() - 1].0);
        let all: Vec<&Write> = batch.iter().flat_map(|(_, writes)| writes).collect();
        store.commit(&all).map_err(|error| (first, error))?;
        done(last);
    }
    Ok(())
}
