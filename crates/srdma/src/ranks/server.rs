//! The sockets of the owner: what ranks send is passed to the table, and what the table has for them is sent.

use super::link::send_some;
use super::message::{Detach, Frames, ToRank};
use super::place::Listener;
use super::table::{Effect, RankId, Table};
use crate::event::Event;
use crate::memory::send_descriptor;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_host::Clock;
use srdma_wire::Instant;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Octets that are read from a rank at once.
const READ_OCTETS: usize = 4096;
/// Time until a rank that could not be accepted is looked for again.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(200);

/// The owner toward the other ranks. Tokens of versions are of type `T`.
pub(super) struct Server<T> {
    /// The region, which ranks map.
    file: OwnedFd,
    table: Table<T>,
    connections: BTreeMap<RankId, Connection>,
    next_id: RankId,
    clock: Clock,
    accepts_at: Instant,
    listener: Listener,
}

/// The connection of a rank.
struct Connection {
    socket: UnixStream,
    process: i32,
    frames: Frames,
    /// The message that is sent, and its octets that the socket has taken.
    message: Vec<u8>,
    sent: usize,
    has_descriptor: bool,
    is_reading: bool,
}

impl<T> Server<T> {
    pub(super) fn new(region_octets: u64, file: OwnedFd, listener: Listener) -> Self {
        Server {
            file,
            table: Table::new(region_octets),
            connections: BTreeMap::new(),
            next_id: 0,
            clock: Clock::start(),
            accepts_at: Instant::ZERO,
            listener,
        }
    }

    /// What is to be told to the ranks.
    pub(super) fn table(&mut self) -> &mut Table<T> {
        &mut self.table
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Waits until something happens at these descriptors, or at the ranks: those that have sent something, or have
    /// ended.
    pub(super) fn wait(&self, others: &[BorrowedFd<'_>]) -> Vec<RankId> {
        let now = self.clock.now();
        let accepts = if self.accepts_at <= now { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut waits: Vec<PollFd<'_>> = others.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        waits.push(PollFd::new(self.listener.socket.as_fd(), accepts));
        let common = waits.len();
        for (id, connection) in &self.connections {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::POLLIN, connection.is_reading);
            flags.set(PollFlags::POLLOUT, !connection.is_sent() || self.table.has_message(*id));
            waits.push(PollFd::new(connection.socket.as_fd(), flags));
        }
        let accepts_at = Some(self.accepts_at).filter(|at| *at > now);
        let timeout = match self.table.next_deadline().into_iter().chain(accepts_at).min() {
            None => PollTimeout::NONE,
            // Not before the deadline.
            Some(deadline) => {
                let left = deadline.since(now) + Duration::from_millis(1);
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            }
        };
        // An interrupted wait is repeated.
        let _ = poll(&mut waits, timeout);
        let ends = PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR;
        let ranks = self.connections.keys().zip(waits.iter().skip(common));
        let readable = ranks.filter(|(_, wait)| wait.revents().is_some_and(|found| found.intersects(ends)));
        readable.map(|(id, _)| *id).collect()
    }

    /// Handles what the ranks have sent, and what is due; returns what has become of them.
    pub(super) fn work(&mut self, readable: Vec<RankId>) -> Vec<Event> {
        self.accept();
        for id in readable {
            self.read(id);
        }
        self.table.tick(self.clock.now());
        let mut events = self.handle_effects();
        self.flush();
        // Of ranks that have ended meanwhile.
        events.extend(self.handle_effects());
        events
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok(Some((socket, process))) => self.add(socket, process),
                Ok(None) => return,
                // There is no descriptor for it now.
                Err(_) => {
                    self.accepts_at = self.clock.now() + ACCEPT_INTERVAL;
                    return;
                }
            }
        }
    }

    fn add(&mut self, socket: UnixStream, process: i32) {
        let mut connection = Connection {
            socket,
            process,
            frames: Frames::of_ranks(),
            message: Vec::new(),
            sent: 0,
            has_descriptor: false,
            is_reading: true,
        };
        let id = self.next_id;
        self.next_id += 1;
        if self.table.connect(self.clock.now(), id) {
            self.connections.insert(id, connection);
        } else {
            connection.message = ToRank::Detached(Detach::TooMany).emit();
            // It is closed, whether it has got that or not.
            let _ = connection.send_message(self.file.as_fd());
        }
    }

    /// Reads what a rank has sent.
    fn read(&mut self, id: RankId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.is_reading {
            // Only its end was waited for.
            self.remove(id);
            return;
        }
        match connection.read() {
            Ok(0) => {
                self.table.disconnect(id);
                // Kept until its end is reported.
            }
            Ok(_) => self.handle_messages(id),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.table.disconnect(id),
        }
    }

    fn handle_messages(&mut self, id: RankId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        loop {
            match connection.frames.next_to_owner() {
                Ok(Some(message)) => self.table.receive(self.clock.now(), id, message),
                Ok(None) => return,
                Err(_) => return self.table.refuse(id),
            }
        }
    }

    fn remove(&mut self, id: RankId) {
        self.table.disconnect(id);
        self.connections.remove(&id);
    }

    fn handle_effects(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(effect) = self.table.poll_effect() {
            let event = match effect {
                Effect::Attached(id) => {
                    if let Some(connection) = self.connections.get_mut(&id) {
                        connection.has_descriptor = true;
                    }
                    Event::RankAttached { process: self.process(id) }
                }
                Effect::Ended(id, why) => Event::RankDetached { process: self.process(id), why },
                Effect::Holds(id, version) => Event::RankHolds { process: self.process(id), version },
                Effect::StopReading(id) => {
                    self.stop_reading(id);
                    continue;
                }
            };
            events.push(event);
        }
        self.connections.retain(|id, _| self.table.contains(*id));
        events
    }

    fn process(&self, id: RankId) -> i32 {
        self.connections.get(&id).map_or(0, |connection| connection.process)
    }

    /// Cuts what a rank sends. A message of it either is there now, or its sending has failed, which the rank knows.
    fn stop_reading(&mut self, id: RankId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        // An error would be that of a peer that has ended.
        let _ = connection.socket.shutdown(Shutdown::Read);
        connection.is_reading = false;
        while connection.read().is_ok_and(|octets| octets > 0) {
            while let Ok(Some(message)) = connection.frames.next_to_owner() {
                self.table.receive(self.clock.now(), id, message);
            }
        }
        self.table.drained(id);
    }

    /// Sends what the sockets take.
    pub(super) fn flush(&mut self) {
        let mut ended = Vec::new();
        for (id, connection) in &mut self.connections {
            loop {
                if connection.is_sent() {
                    let Some(message) = self.table.next_message(*id) else { break };
                    (connection.message, connection.sent) = (message.emit(), 0);
                }
                match connection.send_message(self.file.as_fd()) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        ended.push(*id);
                        break;
                    }
                }
            }
            if connection.is_sent() && self.table.is_done(*id) {
                ended.push(*id);
            }
        }
        for id in ended {
            self.table.disconnect(id);
        }
    }
}

impl Connection {
    fn is_sent(&self) -> bool {
        self.sent == self.message.len()
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut octets = [0; READ_OCTETS];
        let length = self.socket.read(&mut octets)?;
        self.frames.push(octets.get(..length).unwrap_or_default());
        Ok(length)
    }

    /// Sends what the socket takes of the message. True if all is sent.
    fn send_message(&mut self, file: BorrowedFd<'_>) -> io::Result<bool> {
        while let Some(rest) = self.message.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let sent = match self.has_descriptor {
                true => send_descriptor(&self.socket, rest, file)?,
                false => send_some(&self.socket, rest)?,
            };
            if sent == 0 {
                return Ok(false);
            }
            self.has_descriptor = false;
            self.sent += sent;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
