//! The source's side of a part (D213).
//!
//! ```text
//!   create group ──► invite targets ──► all have joined ──► commit, publish ──► all have it ──► close group
//!                          │ one refuses, or is gone               │ one is gone: the others go on
//!                          ▼                                       ▼
//!                 close group: nothing is changed        close group: who lacks it is named
//! ```

use super::{BUFFER, Failure, LOOK_INTERVAL, Network, blocking, when_free};
use crate::core::{BufferId, Part, Target};
use crate::grpc::{client, paths};
use crate::invitation;
use crate::messages::{Invitation, Progress, Step};
use srdma::{Buffer, Device, Error, GroupOptions, Slots, Source};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tonic::{Status, Streaming};

/// The version that has the part.
const VERSION: u64 = 1;

/// Sends the octets of a part to its targets; returns when all have them in their buffers. `read` is called when this
/// node may be in one more group.
pub(crate) async fn send(
    network: &Arc<Network>,
    buffer: &BufferId,
    part: &Part,
    is_whole: bool,
    read: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static,
    deadline: Instant,
) -> Result<(), Failure> {
    if network.is_stopping() {
        return Err(Failure::Stopping);
    }
    let _permit = network.permit(deadline).await?;
    let octets = blocking(read).await??;
    let sized = GroupOptions::for_buffers([part.length]);
    let options = GroupOptions {
        name: Some(invitation::group_name(buffer, part, is_whole)),
        proxy: network.proxy,
        slots: Slots { count: 1, ..sized.slots },
        ..sized
    };
    let device: Device = network.device.clone();
    let source = Arc::new(when_free(deadline, move || device.create_group(&options)).await?);
    let is_over = Arc::new(AtomicBool::new(false));
    let distribution = Distribution { network, buffer, part, is_whole, source: &source, deadline, is_over: &is_over };
    let result = distribution.run(octets).await;
    is_over.store(true, Ordering::Relaxed);
    // It asks the controller to close the group, when nothing waits for it any more.
    blocking(move || drop(source)).await?;
    result
}

struct Distribution<'a> {
    network: &'a Arc<Network>,
    buffer: &'a BufferId,
    part: &'a Part,
    is_whole: bool,
    source: &'a Arc<Source>,
    deadline: Instant,
    is_over: &'a Arc<AtomicBool>,
}

impl Distribution<'_> {
    async fn run(self, octets: Vec<u8>) -> Result<(), Failure> {
        let joined = self.invite().await?;
        let (source, targets) = (Arc::clone(self.source), self.part.targets.len() as u32);
        let left = self.deadline.saturating_duration_since(Instant::now());
        blocking(move || source.commit(targets, left)).await??;
        self.source.publish(VERSION, vec![Buffer::new(BUFFER, octets)])?;
        let (source, network) = (Arc::clone(self.source), Arc::clone(self.network));
        let (is_over, deadline) = (Arc::clone(self.is_over), self.deadline);
        let acknowledged = blocking(move || acknowledged(&source, &network, &is_over, deadline));
        let acknowledged = tokio::spawn(acknowledged);
        let mut lacking = Vec::new();
        let mut whole = JoinSet::new();
        for (target, progress) in joined {
            whole.spawn(self.step(target, progress, Step::Whole));
        }
        while let Some(ended) = whole.join_next().await {
            let (target, result) = ended.map_err(|_| Failure::Panicked)?;
            lacking.extend(result.err().map(|status| (target, status)));
        }
        if !lacking.is_empty() {
            return Err(Failure::Targets(lacking));
        }
        // A target that has the octets has acknowledged them, so that this waits for the network alone.
        acknowledged.await.map_err(|_| Failure::Panicked)??
    }

    /// Invites all targets, and waits until they have joined. The first one that does not ends it.
    async fn invite(&self) -> Result<Vec<(Target, Streaming<Progress>)>, Failure> {
        let mut calls = JoinSet::new();
        for target in &self.part.targets {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let group = self.source.group();
            let invitation = invitation::of(group, self.buffer, self.part, self.is_whole, target, left);
            let (address, target, deadline) = (self.network.address_of(target), target.clone(), self.deadline);
            calls.spawn(async move {
                let called = timeout_at(deadline, call(&address, invitation)).await;
                (target, called.unwrap_or_else(|_| Err(late())))
            });
        }
        let mut joined = Vec::new();
        while let Some(ended) = calls.join_next().await {
            let (target, called) = ended.map_err(|_| Failure::Panicked)?;
            let progress = called.map_err(|status| Failure::Targets(vec![(target.clone(), status)]))?;
            joined.push((target, progress));
        }
        Ok(joined)
    }

    /// Waits for a step of a target.
    fn step(
        &self,
        target: Target,
        mut progress: Streaming<Progress>,
        step: Step,
    ) -> impl Future<Output = (Target, Result<(), Status>)> + Send + use<> {
        let deadline = self.deadline;
        async move {
            let result = timeout_at(deadline, next(&mut progress, step)).await;
            (target, result.unwrap_or_else(|_| Err(late())))
        }
    }
}

/// Calls the driver of a target, and waits until it has joined.
async fn call(address: &str, invitation: Invitation) -> Result<Streaming<Progress>, Status> {
    let channel = client::by_address(address).await;
    let channel = channel.map_err(|error| Status::unavailable(format!("its driver at {address}: {}", text(&error))))?;
    let called = client::streaming::<_, Progress>(channel, paths::RECEIVE, invitation).await;
    let mut progress = called.map_err(of_transport)?;
    next(&mut progress, Step::Joined).await?;
    Ok(progress)
}

/// The next message of a target has to be this step.
async fn next(progress: &mut Streaming<Progress>, step: Step) -> Result<(), Status> {
    match progress.message().await {
        Ok(Some(found)) if found.step == step as i32 => Ok(()),
        Ok(Some(found)) => Err(Status::internal(format!("its driver says step {}, not {}", found.step, step as i32))),
        Ok(None) => Err(Status::internal("its driver says nothing more")),
        Err(status) => Err(of_transport(status)),
    }
}

/// A status that the target has not sent itself: its connection has failed.
fn of_transport(status: Status) -> Status {
    match std::error::Error::source(&status) {
        Some(_) => Status::unavailable(format!("its driver is gone, or does not answer: {}", status.message())),
        None => status,
    }
}

fn late() -> Status {
    Status::deadline_exceeded("its driver does not answer in time")
}

/// An error with its causes.
fn text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Waits until all members of the group have acknowledged the part.
fn acknowledged(source: &Source, network: &Network, is_over: &AtomicBool, deadline: Instant) -> Result<(), Failure> {
    loop {
        match source.wait(VERSION, LOOK_INTERVAL) {
            Err(Error::Timeout) if is_over.load(Ordering::Relaxed) => return Ok(()),
            Err(Error::Timeout) if network.is_stopping() => return Err(Failure::Stopping),
            Err(Error::Timeout) if Instant::now() >= deadline => return Err(Failure::Timeout),
            Err(Error::Timeout) => {}
            other => return Ok(other?),
        }
    }
}
