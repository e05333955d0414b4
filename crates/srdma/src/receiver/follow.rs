//! Following to the group that resumes the receiver's own, whose source has died (D193): by a fresh queue pair over the
//! same memory, in which the application may have versions.

use super::membership::{Membership, Steps, is_gone};
use super::program::{LOOK_INTERVAL, Program};
use super::regions;
use crate::device::{Device, GroupAddress};
use crate::error::{Error, Over, Result};
use crate::memory::SlotMemory;
use crate::provider::ReceiverPair;
use srdma_api::{Client, ClientError, Group, GroupState, MemoryRegion, ProblemType};
use std::sync::Arc;
use std::thread;

impl Device {
    /// A group, or the one that resumes it.
    pub(crate) fn group_or_successor(&self, id: u32) -> Result<Group> {
        let found = self.client.group(id);
        let has_ended = match &found {
            Ok(group) => matches!(group.summary.state, GroupState::Closing | GroupState::Closed),
            Err(error) => error.is(ProblemType::UnknownGroup),
        };
        match has_ended.then(|| self.client.successor(id)) {
            Some(Ok(successor)) => Ok(successor),
            Some(Err(error)) if error.problem().is_none() => Err(error.into()),
            Some(Err(_)) | None => Ok(found?),
        }
    }
}

impl Program {
    /// Joins a group that resumes the present one; if that has ended before, the one that resumes it.
    pub(super) fn follow(
        &mut self,
        pair: Box<dyn ReceiverPair>,
        mut successor: Group,
    ) -> std::result::Result<Box<dyn ReceiverPair>, Over> {
        let mut slots = taken(pair)?;
        let keeps_slots = {
            let core = Arc::clone(&self.core);
            let mut subscriber = core.subscriber();
            let keeps_slots = subscriber.resume(slots.iter().map(SlotMemory::strays).sum());
            self.report(&mut subscriber);
            keeps_slots
        };
        slots.iter_mut().for_each(|slots| slots.renew(keeps_slots));
        loop {
            let group = GroupAddress::of(&successor).map_err(refused)?;
            check_regions(&successor, &slots)?;
            let (client, address) = {
                let place = self.core.place();
                (place.membership.client.clone(), place.membership.address)
            };
            let wake = Arc::clone(&self.core.wake);
            let made = self.provider.receiver_pair(address, &group, slots, wake);
            let mut pair = made.map_err(|error| Over::QueuePair(error.to_string()))?;
            // It has not begun: it is ready for the first packet.
            let is_first = successor.summary.state == GroupState::Open;
            if is_first {
                pair.prepare(group.initial_psn).map_err(|error| Over::QueuePair(error.to_string()))?;
            }
            let membership = Membership { client, group, address, qpn: pair.qpn(), host: None, follows: true };
            let (id, qpn) = (group.id, pair.qpn().get());
            tracing::info!(%address, qpn, "receiver of group {id}: joins in place of the one that it resumes");
            if let Some(steps) = self.join(Arc::new(membership), &pair.regions())? {
                self.begin(steps, is_first).map_err(|error| Over::QueuePair(error.to_string()))?;
                return Ok(pair);
            }
            slots = taken(pair)?;
            successor = self.successor_of(group.id)?;
        }
    }

    /// Requests to join; `None` if the group has ended.
    fn join(&self, membership: Arc<Membership>, regions: &[MemoryRegion]) -> std::result::Result<Option<Steps>, Over> {
        {
            let mut place = self.core.place();
            if place.is_leaving {
                return Err(Over::Evicted);
            }
            place.membership = Arc::clone(&membership);
        }
        loop {
            let joined = match membership.join(regions) {
                Ok(steps) => Some(steps),
                Err(Error::Controller(error)) if is_gone(&error) => None,
                Err(Error::Controller(error)) if error.problem().is_none() => {
                    self.wait()?;
                    continue;
                }
                Err(error) => return Err(refused(error)),
            };
            // A leave may have come before the join.
            if joined.is_some() && self.core.place().is_leaving {
                let _ = membership.leave();
                return Err(Over::Evicted);
            }
            return Ok(joined);
        }
    }

    fn successor_of(&self, id: u32) -> std::result::Result<Group, Over> {
        loop {
            let client: Client = self.core.place().membership.client.clone();
            match client.successor(id) {
                Ok(group) => return Ok(group),
                Err(error) if has_none(&error) => return Err(Over::GroupClosed),
                Err(_) => self.wait()?,
            }
        }
    }

    /// The controller is away.
    fn wait(&self) -> std::result::Result<(), Over> {
        if self.core.wake.is_closing() {
            return Err(Over::Closed);
        }
        if self.core.place().is_leaving {
            return Err(Over::Evicted);
        }
        thread::sleep(LOOK_INTERVAL);
        Ok(())
    }
}

/// Whether no group resumes another: its source has closed it.
pub(super) fn has_none(error: &ClientError) -> bool {
    error.is(ProblemType::UnknownGroup) || error.is(ProblemType::UnknownPath)
}

fn refused(error: Error) -> Over {
    Over::Refused(error.to_string())
}

fn taken(pair: Box<dyn ReceiverPair>) -> std::result::Result<Vec<SlotMemory>, Over> {
    pair.into_slots().ok_or_else(|| Over::QueuePair("its memory is in use".to_owned()))
}

fn check_regions(group: &Group, slots: &[SlotMemory]) -> std::result::Result<(), Over> {
    let check =
        |needed: Vec<u64>| regions::check(group.summary.id, slots.iter().map(SlotMemory::length_octets), &needed);
    regions::needed(group).and_then(check).map_err(refused)
}
