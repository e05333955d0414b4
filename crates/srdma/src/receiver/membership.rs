//! Membership of a group: joining, and learning of its end.

use crate::device::GroupAddress;
use crate::error::{Error, Over, Result};
use srdma_api::{Client, ClientError, GroupState, MemoryRegion, NewReceiver, ProblemType, ReceiverState};
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// Interval for asking whether the receiver is a member.
const JOIN_INTERVAL: Duration = Duration::from_millis(50);
/// Interval for asking whether it still is.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Time for the leave of a former process.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(30);

/// A receiver at the controller.
pub(super) struct Membership {
    pub(super) client: Client,
    pub(super) group: GroupAddress,
    pub(super) address: Ipv6Addr,
    pub(super) qpn: Qpn,
}

/// What the controller has said about the receiver.
#[derive(Debug)]
pub(super) enum Progress {
    /// It is a member, and gets packets from this PSN on.
    Joined(Psn),
    Over(Over),
}

/// The receiver in the group's record.
enum Found {
    Member(Psn),
    Joining,
    /// It is not in the record; with the reason of the group's last change that was aborted.
    Absent(Option<String>),
    Closed,
}

impl Membership {
    /// Requests to join.
    pub(super) fn join(&self, region: MemoryRegion) -> Result<()> {
        let receiver = NewReceiver { qpn: self.qpn.get(), path_mtu: self.group.path_mtu.into(), region: Some(region) };
        let begin = Instant::now();
        let mut has_left = false;
        loop {
            match self.client.join(self.group.id, self.address, &receiver) {
                Ok(_) => return Ok(()),
                // A process that has died was a member, by another queue pair.
                Err(error) if error.is(ProblemType::AlreadyJoined) => {
                    if begin.elapsed() >= LEAVE_TIMEOUT {
                        return Err(Error::StillMember { group: self.group.id, address: self.address });
                    }
                    if !has_left {
                        match self.client.leave(self.group.id, self.address) {
                            Ok(_) => has_left = true,
                            Err(error) if error.is(ProblemType::UnknownReceiver) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                    thread::sleep(JOIN_INTERVAL);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Leaves the group, and waits until its nodes have no copy for the receiver any more, or a time is up.
    pub(super) fn leave(&self) -> Result<()> {
        match self.client.leave(self.group.id, self.address) {
            Ok(_) => {}
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let begin = Instant::now();
        while begin.elapsed() < LEAVE_TIMEOUT {
            match self.client.receiver(self.group.id, self.address) {
                Ok(receiver) if receiver.qpn == self.qpn.get() => thread::sleep(JOIN_INTERVAL),
                Ok(_) => return Ok(()),
                Err(error) if is_gone(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Timeout)
    }

    /// Follows the receiver at the controller, while it is needed.
    pub(super) fn watch(&self, progress: &Sender<Progress>, is_needed: impl Fn() -> bool) {
        let mut is_member = false;
        while is_needed() {
            match self.find() {
                Ok(Found::Member(psn)) if !is_member => {
                    is_member = true;
                    if progress.send(Progress::Joined(psn)).is_err() {
                        return;
                    }
                }
                Ok(Found::Member(_) | Found::Joining) => {}
                Ok(absent @ (Found::Absent(_) | Found::Closed)) => {
                    let over = match absent {
                        Found::Absent(Some(reason)) if !is_member => Over::Refused(reason),
                        Found::Absent(_) => Over::Evicted,
                        Found::Closed | Found::Member(_) | Found::Joining => Over::GroupClosed,
                    };
                    // A receiver that is closed does not want to know.
                    let _ = progress.send(Progress::Over(over));
                    return;
                }
                // The receiver works without a controller.
                Err(_) => {}
            }
            thread::sleep(if is_member { WATCH_INTERVAL } else { JOIN_INTERVAL });
        }
    }

    fn find(&self) -> std::result::Result<Found, ClientError> {
        let group = match self.client.group(self.group.id) {
            Ok(group) => group,
            Err(error) if error.is(ProblemType::UnknownGroup) => return Ok(Found::Closed),
            Err(error) => return Err(error),
        };
        if matches!(group.summary.state, GroupState::Closing | GroupState::Closed) {
            return Ok(Found::Closed);
        }
        let own = group.members.iter().find(|member| member.address == self.address && member.qpn == self.qpn.get());
        Ok(match own.map(|member| (member.state, member.joined_psn)) {
            Some((ReceiverState::Member, joined_psn)) => {
                Found::Member(joined_psn.map_or(self.group.initial_psn, Psn::new))
            }
            Some((ReceiverState::Joining | ReceiverState::Unverified | ReceiverState::Leaving, _)) => Found::Joining,
            None => Found::Absent(group.failure),
        })
    }
}

/// Whether there is no such receiver.
fn is_gone(error: &ClientError) -> bool {
    error.is(ProblemType::UnknownReceiver) || error.is(ProblemType::UnknownGroup) || error.is(ProblemType::GroupClosing)
}
