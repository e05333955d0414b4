//! Calls of drivers of other nodes (D211).

use super::{InUse, State};
use crate::grpc::paths;
use crate::grpc::server::{Answering, Dispatch, status, streaming, unknown};
use crate::invitation::{self, Invited, Unheeded};
use crate::messages::{Invitation, Progress, Step};
use crate::network::{Failure, Received, blocking, receive};
use crate::sockets::Notice;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::body::Body;

/// Messages that a source may not have taken: there are no more.
const MAX_STEPS: usize = 3;

/// What a source learns of its target.
type Steps = mpsc::Sender<Result<Progress, Status>>;

/// The service of `proto/peer.proto`.
pub(crate) struct PeerCalls(pub(crate) Arc<State>);

impl Dispatch for PeerCalls {
    fn answer(self: Arc<Self>, request: http::Request<Body>) -> Answering<http::Response<Body>> {
        let state = Arc::clone(&self.0);
        Box::pin(async move {
            match request.uri().path() {
                paths::RECEIVE => streaming(request, |invitation| Arc::clone(&state).invited(&invitation)).await,
                other => unknown(other),
            }
        })
    }
}

impl State {
    /// Follows an invitation, in a task of its own.
    fn invited(self: Arc<Self>, invitation: &Invitation) -> Result<ReceiverStream<Result<Progress, Status>>, Status> {
        let parsed = {
            let inner = self.inner();
            invitation::parse(invitation, |host| inner.driver.is_own(host), self.timeout)
        };
        let invited = parsed.map_err(|unheeded| match unheeded {
            Unheeded::Refused(refusal) => status(&refusal),
            Unheeded::OtherNode(_) | Unheeded::NotInvited(_) => Status::permission_denied(unheeded.to_string()),
            Unheeded::Empty => Status::invalid_argument(unheeded.to_string()),
        })?;
        let permit = Arc::clone(&self.invitations).try_acquire_owned();
        let permit = permit.map_err(|_| Status::resource_exhausted("too many invitations at a time"))?;
        let Invited { buffer, shard, offset, length, is_whole, .. } = &invited;
        let place = self.ask(|driver| driver.receive(buffer, *shard, *offset, *length, *is_whole))?;
        let in_use = InUse { state: Arc::clone(&self), buffer: place.buffer };
        let (steps, answers) = mpsc::channel(MAX_STEPS);
        tokio::spawn(self.follow(invited, in_use, place.offset, steps, permit));
        Ok(ReceiverStream::new(answers))
    }

    async fn follow(
        self: Arc<Self>,
        invited: Invited,
        in_use: InUse,
        offset: u64,
        steps: Steps,
        _permit: OwnedSemaphorePermit,
    ) {
        let group = invited.group;
        let joined = async || steps.send(Ok(Progress { step: Step::Joined as i32 })).await.is_ok();
        let is_awaited = || !steps.is_closed();
        let buffer = in_use.buffer.clone();
        let take = |received| self.take(in_use, offset, received, &steps);
        match receive(&self.network, &invited, joined, is_awaited, take).await {
            Ok(()) => tracing::debug!("buffer {buffer}: group {group} has ended"),
            Err(failure) => {
                tracing::warn!("buffer {buffer}: nothing is received of group {group}: {failure}");
                // A source that is gone does not ask.
                let _ = steps.try_send(Err(failure.into()));
            }
        }
    }

    /// Writes what was received to the buffer, which is not in use any more then.
    async fn take(&self, in_use: InUse, offset: u64, received: Received, steps: &Steps) -> Result<(), Failure> {
        let parts = self.parts_of(&in_use.buffer);
        let (memory, notifier) = parts.map_err(|_| Failure::OtherContent)?;
        notifier.say(Notice::PreUpdate);
        let octets = received.octets().len();
        blocking(move || memory.write(offset, received.octets())).await??;
        notifier.say(Notice::Ready);
        tracing::info!(offset, octets, "buffer {} is received", in_use.buffer);
        // The source may propagate the next content as soon as it knows.
        drop(in_use);
        let _ = steps.send(Ok(Progress { step: Step::Whole as i32 })).await;
        Ok(())
    }
}
