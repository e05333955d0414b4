//! The driver as a service: what its value decides is carried out here.

mod buffers;
mod node;
mod peer;
mod source_file;

pub(crate) use node::NodeCalls;
pub(crate) use peer::PeerCalls;

use crate::core::{BufferId, Driver, Refusal};
use crate::grpc::server::status;
use crate::memory::Memory;
use crate::network::Network;
use crate::sockets::{Directory, Notifier};
use buffers::Served;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tonic::Status;

/// Invitations that are followed, or checked, at a time.
const MAX_INVITATIONS: usize = 32;

/// The state of the driver.
pub(crate) struct State {
    inner: Mutex<Inner>,
    pub(crate) directory: Directory,
    pub(crate) network: Arc<Network>,
    source_directory: Option<PathBuf>,
    timeout: Duration,
    invitations: Arc<Semaphore>,
}

/// Decisions, and what was made for them.
struct Inner {
    driver: Driver,
    served: BTreeMap<BufferId, Arc<Served>>,
}

impl State {
    pub(crate) fn new(
        driver: Driver,
        directory: Directory,
        network: Network,
        source_directory: Option<PathBuf>,
        timeout: Duration,
    ) -> Arc<Self> {
        Arc::new(State {
            inner: Mutex::new(Inner { driver, served: BTreeMap::new() }),
            directory,
            network: Arc::new(network),
            source_directory,
            timeout,
            invitations: Arc::new(Semaphore::new(MAX_INVITATIONS)),
        })
    }

    /// Locks the state. A panic of another thread leaves it valid: the driver's methods do not panic.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the driver.
    fn ask<T>(&self, question: impl FnOnce(&mut Driver) -> Result<T, Refusal>) -> Result<T, Status> {
        question(&mut self.inner().driver).map_err(|refusal| status(&refusal))
    }

    /// Memory and consumers of a buffer that is in use.
    fn parts_of(&self, buffer: &BufferId) -> Result<(Arc<Memory>, Arc<Notifier>), Status> {
        match self.inner().served.get(buffer) {
            Some(served) => Ok((Arc::clone(&served.memory), Arc::clone(&served.notifier))),
            None => Err(status(&Refusal::UnknownBuffer(buffer.clone()))),
        }
    }
}

/// A buffer that is in use until this is dropped.
struct InUse {
    state: Arc<State>,
    buffer: BufferId,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.state.inner().driver.release(&self.buffer);
    }
}

/// Lets work go on when its caller does not wait for it any more, so that the state stays that of the sockets.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|_| Err(Status::internal("a defect of the driver, which its log shows")))
}
