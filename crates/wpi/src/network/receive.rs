//! The target's side of a part (D213): it is received beside the buffer, and written to it when it is whole.

use super::{BUFFER, Failure, LOOK_INTERVAL, Network, blocking, when_free};
use crate::invitation::Invited;
use srdma::{Error, GroupOptions, JoinOptions, Receiver, Version};
use srdma_api::GroupState;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest time for which a receiver that has its part stays in the group: leaving would be a change of it.
const STAY: Duration = Duration::from_secs(30);

/// A part that is whole.
pub(crate) struct Received(Version);

impl Received {
    /// Its octets.
    pub(crate) fn octets(&self) -> &[u8] {
        // The manifest was checked.
        self.0.buffer(BUFFER).unwrap_or_default()
    }
}

/// Receives a part. `joined` is called when this node is in the group; false: the source has given up. `take` writes
/// the part to its buffer. Returns when the group has ended.
pub(crate) async fn receive<F: Future<Output = Result<(), Failure>>>(
    network: &Arc<Network>,
    invited: &Invited,
    joined: impl AsyncFnOnce() -> bool,
    is_awaited: impl Fn() -> bool,
    take: impl FnOnce(Received) -> F,
) -> Result<(), Failure> {
    let deadline = Instant::now() + invited.timeout;
    check_group(network, invited).await?;
    let _permit = network.permit(deadline).await?;
    let (device, group) = (network.device.clone(), invited.group);
    let join = move || device.join(group, JoinOptions { ends_with_group: true, ..JoinOptions::default() });
    let receiver = Arc::new(when_free(deadline, join).await?);
    let result = async {
        if !joined().await {
            return Err(Failure::SourceGone);
        }
        let version = whole(network, &receiver, is_awaited, deadline).await?;
        take(check_version(version, invited)?).await
    }
    .await;
    if result.is_ok() {
        stay(network, &receiver).await?;
    }
    // It leaves the group, if that is still there.
    blocking(move || drop(receiver)).await?;
    result
}

/// Checks that the controller knows the group as that of this invitation (D211).
async fn check_group(network: &Arc<Network>, invited: &Invited) -> Result<(), Failure> {
    let (shared, id) = (Arc::clone(network), invited.group);
    let group = match blocking(move || shared.client.group(id)).await? {
        Ok(group) => group,
        // Of another tenant, or of none.
        Err(error) if error.problem().is_some() => {
            tracing::debug!("group {id} of an invitation: {error}");
            return Err(Failure::Forged(id));
        }
        Err(error) => return Err(error.into()),
    };
    let octets = GroupOptions::for_buffers([invited.length]).slots.octets;
    let has_region = group.region.is_some_and(|region| region.length == octets) && group.more_regions.is_empty();
    if group.summary.name != invited.group_name || !has_region {
        return Err(Failure::Forged(id));
    }
    if group.summary.state != GroupState::Open {
        return Err(Failure::Late(id));
    }
    Ok(())
}

/// Waits for the version.
async fn whole(
    network: &Arc<Network>,
    receiver: &Arc<Receiver>,
    is_awaited: impl Fn() -> bool,
    deadline: Instant,
) -> Result<Version, Failure> {
    loop {
        let waiting = Arc::clone(receiver);
        match blocking(move || waiting.next_version(LOOK_INTERVAL)).await? {
            Ok(version) => return Ok(version),
            Err(Error::Timeout) if network.is_stopping() => return Err(Failure::Stopping),
            Err(Error::Timeout) if !is_awaited() => return Err(Failure::SourceGone),
            Err(Error::Timeout) if Instant::now() >= deadline => return Err(Failure::Timeout),
            Err(Error::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn check_version(version: Version, invited: &Invited) -> Result<Received, Failure> {
    let is_announced = match version.manifest().buffers() {
        [entry] => {
            entry.name == BUFFER && version.buffer_at(0).map(|octets| octets.len() as u64) == Some(invited.length)
        }
        _ => false,
    };
    if is_announced { Ok(Received(version)) } else { Err(Failure::OtherContent) }
}

/// Stays in the group until its source closes it.
async fn stay(network: &Arc<Network>, receiver: &Arc<Receiver>) -> Result<(), Failure> {
    let until = Instant::now() + STAY;
    while Instant::now() < until && !network.is_stopping() {
        let waiting = Arc::clone(receiver);
        match blocking(move || waiting.next_version(LOOK_INTERVAL)).await? {
            Ok(_) | Err(Error::Timeout) => {}
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
