//! A stream that a device sends.

use super::{DeviceError, DeviceName, Opened};
use crate::connection::Connection;
use crate::sending::{SendingConfig, TransferMode};
use crate::source_control::{SessionState, SourceControl, StreamProgress};
use crate::trailer::Trailer;
use crate::transfer_error::TransferError;
use srdma_verbs::{
    Access, Buffer, MemoryRegion, Operation, QueuePairOptions, ReadyToSend, RemoteMemory, SendRequest, VerbsError,
};
use srdma_wire::{Psn, Qpn};
use std::collections::VecDeque;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

/// Messages that are posted at a time, at most.
const MESSAGES: u32 = 64;
/// Interval for consulting the source's control.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The queue pair of a sender.
pub struct DeviceSender {
    opened: Opened,
}

/// A stream that was acknowledged.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub duration: Duration,
    /// Messages, the trailer among them.
    pub completions: u64,
}

/// A message to be posted.
#[derive(Clone, Copy)]
struct Message {
    operation: Operation,
    offset: usize,
    length_octets: u32,
    next: Stage,
}

/// The next message.
#[derive(Clone, Copy)]
enum Stage {
    /// Data from this offset on.
    Data(usize),
    Trailer,
    Nothing,
}

impl DeviceSender {
    /// Retransmissions without progress, at most.
    pub const MOST_RETRIES: u8 = ReadyToSend::MOST_RETRIES;

    /// Opens the device that has an address.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be used.
    pub fn open(name: &DeviceName, address: Ipv6Addr) -> Result<Self, VerbsError> {
        let options = QueuePairOptions { send_requests: MESSAGES, receive_requests: 1, elements: 1 };
        Ok(DeviceSender { opened: Opened::open(name, address, options)? })
    }

    /// The number of its queue pair, which the device has chosen.
    pub fn qpn(&self) -> Qpn {
        self.opened.pair.qpn()
    }

    /// Connects the queue pair, and sends the data with their trailer. `report` gets the number of acknowledged octets.
    ///
    /// # Errors
    ///
    /// If the device or a request fails, nothing is acknowledged for the timeout, or the group is closed.
    pub fn send(
        &self,
        connection: &Connection,
        data: &[u8],
        trailer: &Trailer,
        config: &SendingConfig,
        mut control: Option<&mut dyn SourceControl>,
        report: &mut dyn FnMut(u64),
    ) -> Result<Sent, DeviceError> {
        let opened = &self.opened;
        opened.pair.to_init(&opened.local, Access::LocalRead)?;
        // The peer sends no requests.
        opened.connect(connection, connection.psn, Psn::new(0))?;
        let octets = data.len() + Trailer::LEN;
        let mut memory = Buffer::try_new(octets).ok_or(DeviceError::NoMemory(octets as u64))?;
        memory.write(0, data);
        memory.write(data.len(), &trailer.emit());
        let memory = opened.domain.register(memory, Access::LocalRead).map_err(VerbsError::from)?;
        let mut stream = Stream::new(connection, config, data.len());
        let begin = Instant::now();
        let mut last_progress = begin;
        loop {
            let state = control.as_mut().map_or(SessionState::Sending, |control| control.update(stream.progress()));
            match state {
                SessionState::Sending => stream.post(opened, &memory)?,
                // Time while it is paused does not count towards the timeout.
                SessionState::Paused => last_progress = Instant::now(),
                SessionState::Draining => {}
                SessionState::Ended => return Err(TransferError::GroupClosed.into()),
            }
            let left = config.timeout.saturating_sub(last_progress.elapsed());
            let timeout = if control.is_some() { left.min(LOOK_INTERVAL) } else { left };
            for completion in opened.completions(timeout)? {
                completion.result.map_err(DeviceError::Work)?;
                stream.complete();
                last_progress = Instant::now();
                report(stream.acknowledged_octets);
            }
            if stream.is_over() {
                return Ok(Sent { duration: begin.elapsed(), completions: stream.completions });
            }
            if last_progress.elapsed() >= config.timeout {
                let after = config.timeout;
                return Err(match stream.completions {
                    0 => TransferError::NoResponse { after }.into(),
                    _ => TransferError::NoProgress { after }.into(),
                });
            }
        }
    }
}

/// Messages, in order.
struct Stream<'a> {
    connection: &'a Connection,
    mode: TransferMode,
    message_octets: usize,
    data_octets: usize,
    stage: Stage,
    /// Packets and octets of messages that are posted.
    posted: VecDeque<(u32, u32)>,
    begun_packets: u64,
    acknowledged_packets: u64,
    acknowledged_octets: u64,
    completions: u64,
}

impl<'a> Stream<'a> {
    fn new(connection: &'a Connection, config: &SendingConfig, data_octets: usize) -> Self {
        // Half of the window, so that it does not run empty.
        let most = (connection.window / 2).max(1).saturating_mul(connection.path_mtu.octets());
        Stream {
            connection,
            mode: config.mode,
            message_octets: config.message_octets.min(most).max(1) as usize,
            data_octets,
            stage: if data_octets == 0 { Stage::Trailer } else { Stage::Data(0) },
            posted: VecDeque::new(),
            begun_packets: 0,
            acknowledged_packets: 0,
            acknowledged_octets: 0,
            completions: 0,
        }
    }

    fn progress(&self) -> StreamProgress {
        let is_drained = self.posted.is_empty();
        StreamProgress {
            begun_packets: self.begun_packets,
            acknowledged_packets: self.acknowledged_packets,
            completed_messages: self.completions,
            is_drained,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Nothing) && self.posted.is_empty()
    }

    fn next(&self) -> Option<Message> {
        match self.stage {
            Stage::Data(offset) => {
                let length = self.message_octets.min(self.data_octets - offset);
                let end = offset + length;
                let operation = match self.mode {
                    TransferMode::Send => Operation::Send,
                    TransferMode::Write(base) => Operation::Write(RemoteMemory {
                        virtual_address: base.virtual_address.wrapping_add(offset as u64),
                        rkey: base.rkey.0,
                    }),
                };
                let next = if end == self.data_octets { Stage::Trailer } else { Stage::Data(end) };
                Some(Message { operation, offset, length_octets: length as u32, next })
            }
            Stage::Trailer => {
                let operation = Operation::SendWithImmediate(u32::from_be_bytes(Trailer::MAGIC));
                let (offset, length_octets) = (self.data_octets, Trailer::LEN as u32);
                Some(Message { operation, offset, length_octets, next: Stage::Nothing })
            }
            Stage::Nothing => None,
        }
    }

    /// Posts messages while their packets fit the window.
    fn post(&mut self, opened: &Opened, memory: &MemoryRegion<Buffer>) -> Result<(), VerbsError> {
        while let Some(message) = self.next() {
            let packets = self.connection.path_mtu.packets(message.length_octets);
            let outstanding = self.begun_packets - self.acknowledged_packets;
            let has_room = outstanding + u64::from(packets) <= u64::from(self.connection.window);
            if self.posted.len() >= MESSAGES as usize || !(has_room || self.posted.is_empty()) {
                return Ok(());
            }
            let element = memory.element(message.offset..message.offset + message.length_octets as usize)?;
            let request = SendRequest { id: self.begun_packets, operation: message.operation, is_signalled: true };
            opened.pair.post_send(&request, &[element])?;
            self.posted.push_back((packets, message.length_octets));
            self.begun_packets += u64::from(packets);
            self.stage = message.next;
        }
        Ok(())
    }

    fn complete(&mut self) {
        let (packets, octets) = self.posted.pop_front().unwrap_or_default();
        self.completions += 1;
        self.acknowledged_packets += u64::from(packets);
        self.acknowledged_octets = (self.acknowledged_octets + u64::from(octets)).min(self.data_octets as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_wire::PathMtu;

    /// The messages as a receiver expects them: one behind the other, whole packets but for the last.
    #[test]
    fn the_stream_is_cut_into_messages_of_half_a_window() {
        let connection = Connection {
            address: Ipv6Addr::LOCALHOST,
            qpn: Qpn::new(0x11).expect("a number"),
            peer_address: Ipv6Addr::LOCALHOST,
            peer_qpn: Qpn::new(0x22).expect("a number"),
            psn: Psn::new(0),
            path_mtu: PathMtu::Octets1024,
            window: 8,
            ack_timeout: 14,
            retries: 7,
        };
        let timeout = Duration::from_secs(1);
        let config = SendingConfig { qpn: connection.qpn, mode: TransferMode::Send, message_octets: 1 << 20, timeout };
        let mut stream = Stream::new(&connection, &config, 10_000);
        let mut lengths = Vec::new();
        while let Some(message) = stream.next() {
            lengths.push((message.offset, message.length_octets));
            stream.stage = message.next;
        }
        assert_eq!(lengths, [(0, 4096), (4096, 4096), (8192, 1808), (10_000, 48)]);
        assert!(stream.is_over());
        let empty = Stream::new(&connection, &config, 0);
        assert!(matches!(empty.stage, Stage::Trailer));
    }
}
