//! A stream that a device receives.

use super::{DeviceError, DeviceName, Opened};
use crate::connection::Connection;
use crate::files::{BLOCK_OCTETS, OutputFile};
use crate::receiving::Received;
use crate::sink::Sink;
use crate::trailer::Trailer;
use crate::transfer_error::TransferError;
use srdma_verbs::{Access, Buffer, Completed, MemoryRegion, QueuePairOptions, VerbsError, WorkError, WorkStatus};
use srdma_wire::{Instant, Psn, Qpn};
use std::net::Ipv6Addr;
use std::time::Duration;

/// Receives that are posted at a time.
const RECEIVES: u32 = 16;
/// The trailer's immediate data.
const MAGIC: u32 = u32::from_be_bytes(Trailer::MAGIC);

/// The queue pair of a receiver, with memory for a stream: WRITEs go to `memory`. Messages of SENDs go to buffers, from
/// which they are appended to each other, since their lengths are not known before.
pub struct DeviceReceiver {
    opened: Opened,
    memory: MemoryRegion<Buffer>,
    buffers: MemoryRegion<Buffer>,
    message_octets: u32,
    expected_psn: Option<Psn>,
}

impl DeviceReceiver {
    /// Opens the device that has an address, and registers memory for a stream of `size_octets` in messages of at most
    /// `message_octets`.
    ///
    /// # Errors
    ///
    /// If there is no such device or memory, or it cannot be locked.
    pub fn open(
        name: &DeviceName,
        address: Ipv6Addr,
        virtual_address: u64,
        size_octets: u64,
        message_octets: u32,
    ) -> Result<Self, DeviceError> {
        let message_octets = message_octets.max(Trailer::LEN as u32);
        let options = QueuePairOptions { send_requests: 1, receive_requests: RECEIVES, elements: 1 };
        let opened = Opened::open(name, address, options)?;
        let buffer = |octets: u64| {
            let memory = usize::try_from(octets).ok().and_then(Buffer::try_new);
            memory.ok_or(DeviceError::NoMemory(octets))
        };
        let memory = opened.domain.register_at(buffer(size_octets.max(1))?, virtual_address, Access::RemoteWrite);
        let memory = memory.map_err(VerbsError::from)?;
        let buffers = buffer(u64::from(RECEIVES) * u64::from(message_octets))?;
        let buffers = opened.domain.register(buffers, Access::LocalWrite).map_err(VerbsError::from)?;
        Ok(DeviceReceiver { opened, memory, buffers, message_octets, expected_psn: None })
    }

    /// The number of its queue pair, which the device has chosen.
    pub fn qpn(&self) -> Qpn {
        self.opened.pair.qpn()
    }

    /// The key of its memory, which the device has chosen.
    pub fn rkey(&self) -> u32 {
        self.memory.rkey()
    }

    /// Connects the queue pair, for packets from the connection's PSN on. Again with another PSN: what was received is
    /// lost.
    ///
    /// # Errors
    ///
    /// If the peer's address cannot be resolved, or the device fails.
    pub fn connect(&mut self, connection: &Connection) -> Result<(), DeviceError> {
        match self.expected_psn {
            Some(psn) if psn == connection.psn => return Ok(()),
            Some(_) => self.opened.pair.to_reset()?,
            None => {}
        }
        self.expected_psn = None;
        self.opened.pair.to_init(&self.opened.local, Access::RemoteWrite)?;
        (0..RECEIVES.into()).try_for_each(|buffer| self.post(buffer))?;
        // It sends no requests.
        self.opened.connect(connection, Psn::new(0), connection.psn)?;
        self.expected_psn = Some(connection.psn);
        Ok(())
    }

    /// Receives a stream, which goes to `output` if there is one, for at most the timeout between two messages that are
    /// SENDs: the device does not report WRITEs. `report` gets the number of octets that have come by SEND.
    ///
    /// # Errors
    ///
    /// If the device fails, no message comes in time, or the stream does not fit.
    pub fn receive(
        &self,
        output: Option<OutputFile>,
        timeout: Duration,
        report: &mut dyn FnMut(u64),
    ) -> Result<Received, DeviceError> {
        let begin = std::time::Instant::now();
        let mut last_progress = begin;
        let limit = self.memory.octets() as u64;
        let mut stream = Sink::new(limit, 0, output);
        loop {
            let left = timeout.saturating_sub(last_progress.elapsed());
            for completion in self.opened.completions(left)? {
                last_progress = std::time::Instant::now();
                let (octets, immediate) = match completion.result {
                    Ok(Completed::Receive { octets, immediate }) => (octets, immediate),
                    Ok(Completed::ReceiveWrite { .. } | Completed::Send | Completed::Write | Completed::Other(_)) => {
                        return Err(TransferError::RequestRefused.into());
                    }
                    Err(error) => return Err(self.work_error(error)),
                };
                let message = self.message(completion.id, octets);
                if immediate == Some(MAGIC) {
                    return self.received(stream, &message, begin.elapsed());
                }
                let length = stream.end() + u64::from(octets);
                if length > limit {
                    return Err(TransferError::TooLong { excess: length - limit, limit }.into());
                }
                stream.append(&message);
                if let Some(failure) = stream.failure() {
                    return Err(TransferError::from(failure.clone()).into());
                }
                report(stream.end());
                self.post(completion.id)?;
            }
            if last_progress.elapsed() >= timeout {
                return Err(match stream.end() == 0 {
                    true => TransferError::NothingReceived { after: timeout }.into(),
                    false => TransferError::ReceiveTimeout { after: timeout }.into(),
                });
            }
        }
    }

    /// Posts a receive into the buffer of this number.
    fn post(&self, buffer: u64) -> Result<(), VerbsError> {
        let octets = self.message_octets as usize;
        let start = buffer as usize * octets;
        self.opened.pair.post_receive(buffer, &[self.buffers.element(start..start + octets)?])
    }

    fn message(&self, buffer: u64, octets: u32) -> Vec<u8> {
        let mut message = vec![0; octets.min(self.message_octets) as usize];
        self.buffers.memory().read(buffer as usize * self.message_octets as usize, &mut message);
        message
    }

    fn work_error(&self, error: WorkError) -> DeviceError {
        match error.status {
            WorkStatus::LocalLength => DeviceError::MessageTooLong(self.message_octets),
            _ => DeviceError::Work(error),
        }
    }

    /// The stream whose trailer has come after its messages.
    fn received(&self, mut stream: Sink, trailer: &[u8], duration: Duration) -> Result<Received, DeviceError> {
        let trailer = Trailer::parse(trailer).map_err(TransferError::from)?;
        let by_write = stream.end() == 0 && trailer.octets > 0;
        if by_write {
            let limit = stream.limit_octets();
            if trailer.octets > limit {
                return Err(TransferError::TooLong { excess: trailer.octets - limit, limit }.into());
            }
            let mut block = vec![0; BLOCK_OCTETS];
            while stream.end() < trailer.octets {
                let start = stream.end() as usize;
                let block = &mut block[..(trailer.octets as usize - start).min(BLOCK_OCTETS)];
                self.memory.memory().read(start, block);
                stream.append(block);
                if let Some(failure) = stream.failure() {
                    return Err(TransferError::from(failure.clone()).into());
                }
            }
        }
        let octets = stream.end();
        if octets != trailer.octets {
            return Err(TransferError::Length { sent: trailer.octets, received: octets }.into());
        }
        let stored = stream.finish().map_err(TransferError::from)?;
        let (began, ended) = (Instant::ZERO, Instant::ZERO + duration);
        Ok(Received { octets, sha256: stored.sha256, output: stored.output, trailer, by_write, began, ended })
    }
}
