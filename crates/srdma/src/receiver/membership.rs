//! Membership of a group: joining, and learning of its end.

use super::follow::has_none;
use crate::device::GroupAddress;
use crate::error::{Error, Over, Result};
use srdma_api::{
    Client, ClientError, Group, GroupState, MemoryRegion, NewReceiver, ProblemType, ReceiverOrder, ReceiverReport,
    ReceiverState,
};
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Interval for asking whether the receiver is a member.
const JOIN_INTERVAL: Duration = Duration::from_millis(50);
/// Longest wait of the controller for another order, milliseconds; it may wait less.
const REPORT_WAIT_MS: u32 = 5000;
/// Reservations of a receiver that is not a member yet.
const MAX_RESERVATIONS: u32 = 5;
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
    /// The number of the host, if it receives several groups together.
    pub(super) host: Option<u64>,
    /// It follows to a group that resumes this one.
    pub(super) follows: bool,
}

/// What the controller has said about the receiver.
#[derive(Debug)]
pub(super) enum Progress {
    /// It is to be ready for packets from this PSN on, and to say so (D187).
    Reserved(Psn, Sender<()>),
    /// It is a member, and gets packets from this PSN on.
    Joined(Psn),
    /// The controller does not hear of the source any more.
    SourceSilent,
    Over(Over),
    /// The group is closed, and this one resumes it (D193).
    Resumed(Box<Group>),
}

/// How a receiver has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Steps {
    /// By one request.
    One,
    /// By a reservation, which may have to be repeated (D189).
    Two(NewReceiver),
}

/// The receiver in the group's record.
enum Found {
    /// From this PSN on, and whether the source is silent.
    Member(Psn, bool),
    Joining,
    /// It is not in the record; with the reason of the group's last change that was aborted.
    Absent(Option<String>),
    Closed,
}

impl Membership {
    /// Requests to join, with a region for each of the group's.
    pub(super) fn join(&self, regions: &[MemoryRegion]) -> Result<Steps> {
        let receiver = NewReceiver {
            qpn: self.qpn.get(),
            path_mtu: self.group.path_mtu.into(),
            region: regions.first().copied(),
            more_regions: regions.get(1..).unwrap_or_default().to_vec(),
            host: self.host,
            psn_offset: 0,
        };
        let mut in_two_steps = true;
        let begin = Instant::now();
        let mut has_left = false;
        loop {
            let joined = match in_two_steps {
                true => self.client.reserve(self.group.id, self.address, &receiver),
                false => self.client.join(self.group.id, self.address, &receiver),
            };
            match joined {
                Ok(_) if in_two_steps => return Ok(Steps::Two(receiver)),
                Ok(_) => return Ok(Steps::One),
                // A controller of an earlier version.
                Err(error) if in_two_steps && error.is(ProblemType::UnknownPath) => in_two_steps = false,
                // A process that has died was a member, by another queue pair.
                Err(error) if error.is(ProblemType::AlreadyJoined) => {
                    if begin.elapsed() >= LEAVE_TIMEOUT {
                        return Err(Error::StillMember { group: self.group.id, address: self.address });
                    }
                    if !has_left {
                        match self.client.leave(self.group.id, self.address) {
                            Ok(_) => has_left = true,
                            Err(error) if error.is(ProblemType::UnknownReceiver) => {}
                            Err(error) => return Err(self.refused(error)),
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
            Err(error) => return Err(self.refused(error)),
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

    /// Why a leave is refused.
    fn refused(&self, error: ClientError) -> Error {
        match error.is(ProblemType::TooFewReceivers) {
            true => Error::LastReceiver { group: self.group.id, address: self.address },
            false => error.into(),
        }
    }

    /// Follows the receiver at the controller, while it is needed.
    pub(super) fn watch(&self, steps: Steps, progress: &Sender<Progress>, is_needed: impl Fn() -> bool) {
        let mut is_member = false;
        if let Steps::Two(receiver) = steps {
            match self.follow(&receiver, progress, &is_needed) {
                Ok(()) => is_member = true,
                Err(None) => return,
                Err(Some(end)) => {
                    // A receiver that is closed does not want to know.
                    let _ = progress.send(end);
                    return;
                }
            }
        }
        let mut was_silent = false;
        let mut is_reached = true;
        while is_needed() {
            let found = self.find();
            match (&found, is_reached) {
                (Err(error), true) => tracing::warn!("receiver of group {}: the controller: {error}", self.group.id),
                (Ok(_), false) => tracing::info!("receiver of group {}: the controller responds", self.group.id),
                (Err(_), false) | (Ok(_), true) => {}
            }
            is_reached = found.is_ok();
            match found {
                Ok(Found::Member(psn, _)) if !is_member => {
                    is_member = true;
                    if progress.send(Progress::Joined(psn)).is_err() {
                        return;
                    }
                }
                Ok(Found::Member(_, is_silent)) => {
                    let was_silent = std::mem::replace(&mut was_silent, is_silent);
                    let begins = is_silent && !was_silent;
                    if begins && progress.send(Progress::SourceSilent).is_err() {
                        return;
                    }
                }
                Ok(Found::Joining) => {}
                Ok(Found::Absent(reason)) => {
                    let over = reason.filter(|_| !is_member).map_or(Over::Evicted, Over::Refused);
                    // A receiver that is closed does not want to know.
                    let _ = progress.send(Progress::Over(over));
                    return;
                }
                Ok(Found::Closed) => {
                    if let Some(end) = self.end_of_group() {
                        let _ = progress.send(end);
                        return;
                    }
                }
                // The receiver works without a controller.
                Err(_) => {}
            }
            thread::sleep(if is_member { WATCH_INTERVAL } else { JOIN_INTERVAL });
        }
    }

    /// A group is closed: a successor is stored together with that, or there is none. `None`: what was read was lost
    /// with the controller, or that is away.
    fn end_of_group(&self) -> Option<Progress> {
        let over = Progress::Over(Over::GroupClosed);
        if !self.follows {
            return Some(over);
        }
        match self.client.successor(self.group.id) {
            Ok(successor) => Some(Progress::Resumed(Box::new(successor))),
            Err(error) if has_none(&error) => matches!(self.find(), Ok(Found::Closed)).then_some(over),
            Err(_) => None,
        }
    }

    /// Follows the orders to a receiver that has a reservation, until it is a member. An error without a reason: it is
    /// not needed any more.
    fn follow(
        &self,
        receiver: &NewReceiver,
        progress: &Sender<Progress>,
        is_needed: &impl Fn() -> bool,
    ) -> std::result::Result<(), Option<Progress>> {
        let mut report = ReceiverReport { qpn: self.qpn.get(), ready_at_psn: None, wait_ms: REPORT_WAIT_MS };
        let mut reservations = 1;
        while is_needed() {
            match self.client.report_receiver(self.group.id, self.address, &report) {
                Ok(ReceiverOrder::Wait) => {}
                Ok(ReceiverOrder::Reserved { psn }) if report.ready_at_psn == Some(psn) => {}
                Ok(ReceiverOrder::Reserved { psn }) => {
                    let (ready, is_ready) = mpsc::channel();
                    progress.send(Progress::Reserved(Psn::new(psn), ready)).map_err(|_| None)?;
                    is_ready.recv().map_err(|_| None)?;
                    report.ready_at_psn = Some(psn);
                }
                Ok(ReceiverOrder::Member { psn }) => {
                    return progress.send(Progress::Joined(Psn::new(psn))).map_err(|_| None);
                }
                // A process that is slow, or a controller that was away, costs another reservation.
                Ok(ReceiverOrder::End) => self.reserve_again(receiver, &mut reservations)?,
                Err(error) if is_gone(&error) => self.reserve_again(receiver, &mut reservations)?,
                Err(_) => thread::sleep(JOIN_INTERVAL),
            }
        }
        Err(None)
    }

    fn reserve_again(
        &self,
        receiver: &NewReceiver,
        reservations: &mut u32,
    ) -> std::result::Result<(), Option<Progress>> {
        let over = match self.find() {
            Ok(Found::Absent(reason)) => reason.map_or(Over::Evicted, Over::Refused),
            Ok(Found::Member(..) | Found::Joining) => return Ok(()),
            Ok(Found::Closed) => match self.end_of_group() {
                Some(end) => return Err(Some(end)),
                None => {
                    thread::sleep(JOIN_INTERVAL);
                    return Ok(());
                }
            },
            Err(_) => {
                thread::sleep(JOIN_INTERVAL);
                return Ok(());
            }
        };
        *reservations += 1;
        if *reservations > MAX_RESERVATIONS {
            return Err(Some(Progress::Over(over)));
        }
        match self.client.reserve(self.group.id, self.address, receiver) {
            Ok(_) => Ok(()),
            // Another process has joined for this address.
            Err(error) if error.problem().is_some() => Err(Some(Progress::Over(over))),
            Err(_) => Ok(()),
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
                let psn = joined_psn.map_or(self.group.initial_psn, Psn::new);
                Found::Member(psn, group.source_is_silent)
            }
            Some((ReceiverState::Joining | ReceiverState::Unverified | ReceiverState::Leaving, _)) => Found::Joining,
            None => Found::Absent(group.failure),
        })
    }
}

/// Whether there is no such receiver.
pub(super) fn is_gone(error: &ClientError) -> bool {
    error.is(ProblemType::UnknownReceiver) || error.is(ProblemType::UnknownGroup) || error.is(ProblemType::GroupClosing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_wire::PathMtu;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

    /// A controller that answers so many requests, and returns what they were.
    fn controller(requests: usize, answer: fn(&str) -> (u16, String)) -> (Membership, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("[::1]:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let served = thread::spawn(move || {
            let serve = |stream: std::net::TcpStream| {
                let mut reader = BufReader::new(&stream);
                let mut request = String::new();
                reader.read_line(&mut request).expect("a request");
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).expect("a header");
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a number");
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                reader.read_exact(&mut vec![0; length]).expect("a body");
                let request = request.trim_end_matches(" HTTP/1.1\r\n").to_owned();
                let (status, body) = answer(&request);
                let head =
                    format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
                (&stream).write_all(format!("{head}{body}").as_bytes()).expect("an answer");
                request
            };
            listener.incoming().take(requests).map(|stream| serve(stream.expect("a connection"))).collect()
        });
        let group = GroupAddress {
            id: 7,
            proxy: ADDRESS,
            designated_qpn: Qpn::new(0x100).expect("24 bits"),
            initial_psn: Psn::new(0),
            path_mtu: PathMtu::Octets4096,
            window: 16,
        };
        let client = Client::new(&url, None, None).expect("a URL");
        let qpn = Qpn::new(0x200).expect("24 bits");
        (Membership { client, group, address: ADDRESS, qpn, host: None, follows: true }, served)
    }

    fn problem(kind: ProblemType) -> (u16, String) {
        let (name, status) = (kind.name(), kind.status());
        let body = format!(r#"{{"type":"/problems/{name}","title":"x","status":{status},"detail":"x"}}"#);
        (status, body)
    }

    fn receiver() -> (u16, String) {
        (200, format!(r#"{{"address":"{ADDRESS}","qpn":512,"state":"joining"}}"#))
    }

    /// D189: a controller of an earlier version does not know the first step.
    #[test]
    fn an_earlier_controller_is_asked_to_join_in_one_step() {
        let answer = |request: &str| match request.ends_with("/reservation") {
            true => problem(ProblemType::UnknownPath),
            false => receiver(),
        };
        let (membership, served) = controller(2, answer);
        let region = MemoryRegion { virtual_address: 0, rkey: 1 };
        assert_eq!(membership.join(&[region]).expect("joined"), Steps::One);
        let path = format!("PUT /v1/groups/7/receivers/{ADDRESS}");
        assert_eq!(served.join().expect("served"), [format!("{path}/reservation"), path]);
    }

    fn group(id: u32, state: &str) -> (u16, String) {
        let body = format!(
            r#"{{"id":{id},"name":"x","tenant":"default","state":"{state}","proxy":"{ADDRESS}","receivers":0,"epoch":0,
            "version":1,"source":{{"address":"{ADDRESS}","qpn":256}},"designated_qpn":256,"initial_psn":0,
            "path_mtu":4096,"policy":{{}},"members":[],"awaited":[]}}"#
        );
        (200, body)
    }

    /// D193: a group that is closed is resumed by another one, has been closed on purpose, or is not closed after all.
    #[test]
    fn the_end_of_a_group_is_one_of_three() {
        let end = |requests, answer| {
            let (membership, served) = controller(requests, answer);
            let end = membership.end_of_group();
            assert!(served.join().expect("served")[0].ends_with("/v1/groups/7/successor"));
            end
        };
        let resumed = end(1, |_| group(9, "open"));
        assert!(matches!(resumed, Some(Progress::Resumed(group)) if group.summary.id == 9));
        for answer in [
            |request: &str| match request.ends_with("/successor") {
                true => problem(ProblemType::UnknownGroup),
                false => group(7, "closing"),
            },
            |_: &str| problem(ProblemType::UnknownGroup),
        ] {
            assert!(matches!(end(2, answer), Some(Progress::Over(Over::GroupClosed))));
        }
        // The controller has lost the write that had closed it, and has none to tell.
        let open = end(2, |request| match request.ends_with("/successor") {
            true => problem(ProblemType::UnknownGroup),
            false => group(7, "ready"),
        });
        assert!(open.is_none());
        assert!(end(1, |_| problem(ProblemType::Recovering)).is_none(), "it asks again");
    }

    /// A former process of the host was the group's last receiver: the error says what to do.
    #[test]
    fn the_last_receiver_is_named() {
        let answer = |request: &str| match request.starts_with("DELETE") {
            true => problem(ProblemType::TooFewReceivers),
            false => problem(ProblemType::AlreadyJoined),
        };
        let (membership, served) = controller(2, answer);
        let error = membership.join(&[MemoryRegion { virtual_address: 0, rkey: 1 }]).expect_err("refused").to_string();
        assert!(
            error.starts_with("2001:db8::1 is the last receiver of group 7, which cannot be without one"),
            "{error}"
        );
        assert!(error.contains("let another receiver join before, or its source close the group"), "{error}");
        served.join().expect("served");
    }
}
