//! A rank that is attached to the owner of the host's receiver.

use super::link::{Lease, Link};
use super::message::{Frames, ToOwner, ToRank};
use super::table::ANSWER_TIMEOUT;
use super::{Context, Outcome};
use crate::error::{Error, Over, Result};
use crate::event::Event;
use crate::manifest::{MAX_SLOTS, Manifest};
use crate::memory::{ReadRegion, receive_descriptor};
use crate::receiver::{Slot, Version};
use crate::subscriber::{Rejection, SharedSlot};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

/// Octets that are read at once.
const READ_OCTETS: usize = 64 << 10;

/// A rank that is not the owner.
pub(super) struct Attached {
    link: Arc<Link>,
    region: ReadRegion,
    frames: Frames,
    buffer: Vec<u8>,
    /// Versions of which the owner does not know yet that this rank has them.
    untold: VecDeque<Version>,
    /// The owner receives nothing any more.
    is_cut: bool,
}

impl Attached {
    /// Attaches to an owner; `None` if it ends before it has answered.
    pub(super) fn attach(socket: UnixStream) -> Result<Option<Self>> {
        let failed = |error| Error::System { what: "the receiver of another process of this host", error };
        let link = Link::new(socket);
        // An owner that does not take it may have said why.
        let _ = link.send(ToOwner::Attach);
        let (mut frames, mut buffer) = (Frames::of_owner(), vec![0; READ_OCTETS]);
        let begin = Instant::now();
        let mut file = None;
        loop {
            let message = frames.next_to_rank().map_err(|error| failed(io::Error::other(error)))?;
            match message {
                None => {}
                Some(ToRank::Region { octets }) => {
                    let file = file.ok_or_else(|| failed(io::Error::other("it has passed no descriptor")))?;
                    let region = ReadRegion::map(file, octets).map_err(failed)?;
                    let (untold, is_cut) = (VecDeque::new(), false);
                    return Ok(Some(Attached { link, region, frames, buffer, untold, is_cut }));
                }
                Some(ToRank::Detached(why)) => return Err(Error::Over(Over::Detached(why))),
                Some(
                    ToRank::Joined
                    | ToRank::Version(_)
                    | ToRank::Rejected { .. }
                    | ToRank::SourceSilent
                    | ToRank::Over(_)
                    | ToRank::Ended,
                ) => return Err(failed(io::Error::other("it has not begun with its region"))),
            }
            let left = ANSWER_TIMEOUT.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let mut waits = [PollFd::new(link.as_fd(), PollFlags::POLLIN)];
            // An interrupted wait is repeated.
            let _ = poll(&mut waits, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
            match receive(&link, &mut buffer, &mut frames) {
                Ok(Received::Octets(descriptor)) => file = file.or(descriptor),
                Ok(Received::Nothing) => {}
                Ok(Received::End) | Err(_) => return Ok(None),
            }
        }
    }

    /// Passes on what the owner sends.
    pub(super) fn run(&mut self, context: &Context, newest: &mut Option<u64>) -> Outcome {
        loop {
            if context.wake.is_closing() {
                self.untold.clear();
                let _ = self.link.send(ToOwner::Leave);
                return Outcome::Closed(Ok(()));
            }
            let is_flushed = match self.link.flush() {
                Ok(is_flushed) => is_flushed,
                // The owner has ended, or has detached this rank: it says so, or its end follows.
                Err(_) => {
                    self.is_cut = true;
                    true
                }
            };
            if is_flushed && !self.is_cut {
                self.deliver(context);
            }
            let sends = if is_flushed { PollFlags::empty() } else { PollFlags::POLLOUT };
            let mut waits = [
                PollFd::new(self.link.as_fd(), PollFlags::POLLIN | sends),
                PollFd::new(context.wake.as_fd(), PollFlags::POLLIN),
            ];
            // An interrupted wait is repeated.
            let _ = poll(&mut waits, PollTimeout::NONE);
            context.wake.take();
            if let Some(outcome) = self.read(context, newest) {
                self.reject_untold(context);
                return outcome;
            }
        }
    }

    fn read(&mut self, context: &Context, newest: &mut Option<u64>) -> Option<Outcome> {
        match receive(&self.link, &mut self.buffer, &mut self.frames) {
            Ok(Received::Octets(_) | Received::Nothing) => {}
            Ok(Received::End) | Err(_) => return Some(Outcome::OwnerLost),
        }
        loop {
            match self.frames.next_to_rank() {
                Ok(None) => return None,
                Ok(Some(message)) => {
                    if let Some(outcome) = self.handle(message, context, newest) {
                        return Some(outcome);
                    }
                }
                Err(error) => return Some(Outcome::Over(Over::NoOwner(error.to_string()))),
            }
        }
    }

    fn handle(&mut self, message: ToRank, context: &Context, newest: &mut Option<u64>) -> Option<Outcome> {
        match message {
            ToRank::Joined => context.shared.push([Event::Joined], |_| {}),
            ToRank::Version(manifest) => return self.take(manifest, newest),
            ToRank::Rejected { version, why } => {
                context.counts().attached.failed += 1;
                context.shared.push([Event::Rejected { version, why: Rejection::Owner(why) }], |_| {});
            }
            ToRank::SourceSilent => context.shared.push([Event::SourceSilent], |_| {}),
            ToRank::Over(end) => return Some(Outcome::Over(end.into())),
            ToRank::Detached(why) => return Some(Outcome::Over(Over::Detached(why))),
            ToRank::Ended => {
                // Nothing writes to them any more.
                self.deliver(context);
                return Some(Outcome::OwnerLost);
            }
            ToRank::Region { .. } => return Some(Outcome::Over(Over::NoOwner("a second region".to_owned()))),
        }
        None
    }

    /// Takes a version that the owner offers.
    fn take(&mut self, manifest: Arc<Manifest>, newest: &mut Option<u64>) -> Option<Outcome> {
        let version = manifest.version();
        let slots = manifest.slots();
        let place = slots.offset_of(manifest.slot());
        let octets = match (usize::try_from(place), usize::try_from(slots.octets)) {
            (Ok(start), Ok(length)) if self.link.versions() < MAX_SLOTS.into() => {
                start.checked_add(length).and_then(|end| self.region.range(start..end))
            }
            (Ok(_) | Err(_), Ok(_) | Err(_)) => None,
        };
        let Some(octets) = octets else {
            return Some(Outcome::Over(Over::NoOwner(format!("version {version} has no place in the region"))));
        };
        // Dropping it releases it.
        let taken =
            Version::new(manifest, SharedSlot::new(vec![octets]), Slot::OfOwner(Lease::new(&self.link, version)));
        // The next owner of the host may have it as its first one.
        if newest.is_some_and(|newest| version <= newest) {
            return None;
        }
        *newest = Some(version);
        match self.link.send(ToOwner::Taken(version)) {
            Ok(_) => {}
            Err(_) => self.is_cut = true,
        }
        self.untold.push_back(taken);
        None
    }

    fn deliver(&mut self, context: &Context) {
        let versions = std::mem::take(&mut self.untold);
        if !versions.is_empty() {
            let octets = versions.iter().map(|version| version.manifest().buffer_octets()).sum::<u64>();
            let mut counts = context.counts();
            counts.attached.versions += versions.len() as u64;
            counts.attached.octets += octets;
            drop(counts);
            let events: Vec<Event> = versions.iter().map(|it| Event::Version { version: it.number() }).collect();
            context.shared.push(events, |to| to.extend(versions));
        }
    }

    /// The owner did not know that this rank has them: it may have written to their slots.
    fn reject_untold(&mut self, context: &Context) {
        let why = Rejection::Owner("the owner of the host's receiver has ended".to_owned());
        let rejected = self.untold.drain(..);
        let events: Vec<Event> =
            rejected.map(|it| Event::Rejected { version: Some(it.number()), why: why.clone() }).collect();
        context.shared.push(events, |_| {});
    }
}

/// What has come from the owner.
enum Received {
    Octets(Option<OwnedFd>),
    Nothing,
    End,
}

fn receive(link: &Link, buffer: &mut [u8], frames: &mut Frames) -> io::Result<Received> {
    match receive_descriptor(link.socket(), buffer) {
        Ok((0, _)) => Ok(Received::End),
        Ok((octets, descriptor)) => {
            frames.push(buffer.get(..octets).unwrap_or_default());
            Ok(Received::Octets(descriptor))
        }
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Received::Nothing),
            _ => Err(error),
        },
    }
}
