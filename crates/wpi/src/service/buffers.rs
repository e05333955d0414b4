//! Buffers that are staged: their memory and their sockets.

use super::{State, source_file, to_its_end};
use crate::core::{BufferId, Refusal, Stage, Staged, Unstaged};
use crate::grpc::server::status;
use crate::memory::Memory;
use crate::network::blocking;
use crate::sockets::{Notifier, pass};
use std::fs::File;
use std::io;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tonic::Status;

/// What is there for a buffer.
pub(super) struct Served {
    pub(super) memory: Arc<Memory>,
    pub(super) notifier: Arc<Notifier>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Served {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl State {
    /// Stages a buffer for a claim, filled from a file if one is given.
    pub(super) async fn stage(self: Arc<Self>, request: Stage, source_path: String) -> Result<(), Status> {
        to_its_end(async move {
            let file = self.open_source(source_path).await?;
            let file_octets = file.as_ref().map(|(_, octets)| *octets);
            let Staged::New { buffer, octets } = self.ask(|driver| driver.stage(&request, file_octets))? else {
                return Ok(());
            };
            let made = self.make(&buffer, octets, file.map(|(file, _)| file)).await;
            let mut inner = self.inner();
            match made {
                Ok(served) => {
                    inner.served.insert(buffer.clone(), Arc::new(served));
                    inner.driver.staged(&buffer);
                    tracing::info!(octets, claim = request.claim, "buffer {buffer} is staged");
                    Ok(())
                }
                Err(error) => {
                    inner.driver.not_staged(&buffer);
                    Err(Status::internal(format!("buffer {buffer}: {error}")))
                }
            }
        })
        .await
    }

    async fn open_source(&self, path: String) -> Result<Option<(File, u64)>, Status> {
        if path.is_empty() {
            return Ok(None);
        }
        let Some(directory) = self.source_directory.clone() else {
            return Err(status(&Refusal::NoSourceDirectory));
        };
        let opened = blocking(move || source_file::open(&directory, &path)).await?;
        opened.map(Some).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Status::not_found(error.to_string()),
            _ => Status::permission_denied(error.to_string()),
        })
    }

    async fn make(&self, buffer: &BufferId, octets: u64, file: Option<File>) -> io::Result<Served> {
        let is_ready = file.is_some();
        let made = blocking(move || {
            let memory = Memory::new(octets)?;
            file.map_or(Ok(()), |file| memory.fill(&file))?;
            Ok::<_, io::Error>(Arc::new(memory))
        });
        let memory = made.await.map_err(io::Error::other)??;
        let descriptors = self.directory.listen(&buffer.socket())?;
        let notices = self.directory.listen(&buffer.notify_socket()).inspect_err(|_| {
            self.directory.remove(&buffer.socket());
        })?;
        let notifier = Notifier::new(buffer.notify_socket(), is_ready);
        let passing = tokio::spawn(pass(descriptors, Arc::clone(&memory), buffer.socket()));
        let notifying = tokio::spawn(Arc::clone(&notifier).serve(notices));
        Ok(Served { memory, notifier, tasks: [passing, notifying] })
    }

    /// Unstages a claim; its buffer goes with the last one. Consumers keep what they have mapped.
    pub(super) fn unstage(&self, claim: &str) -> Result<(), Status> {
        let mut inner = self.inner();
        let unstaged = inner.driver.unstage(claim).map_err(|refusal| status(&refusal))?;
        if let Unstaged::Last(buffer) = unstaged {
            drop(inner.served.remove(&buffer));
            self.directory.remove(&buffer.socket());
            self.directory.remove(&buffer.notify_socket());
            tracing::info!("buffer {buffer} is removed");
        }
        Ok(())
    }
}
