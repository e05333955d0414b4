//! Programs of `srdma recv`: receiving a stream, and staying a while for a sender without the last ACKs.

use crate::connection::RECEIVES;
use crate::event_loop::Program;
use crate::trailer::Trailer;
use crate::transfer_error::TransferError;
use crate::transfer_memory::TransferMemory;
use srdma_rc::{
    Access, CompletedOperation, Completion, Endpoint, LocalRange, MAX_MESSAGE_OCTETS, MemoryKey, Receive, Status,
};
use srdma_wire::{Instant, Qpn};
use std::collections::TryReserveError;
use std::ops::ControlFlow;
use std::time::Duration;

/// Parameters of a transfer to receive.
#[derive(Clone, Copy, Debug)]
pub struct ReceivingConfig {
    /// The queue pair.
    pub qpn: Qpn,
    /// The most octets that are taken.
    pub size_octets: usize,
    /// Virtual address of the memory for the sender.
    pub virtual_address: u64,
    /// Low octet of the memory's key.
    pub key_tag: u8,
    /// Give up when nothing comes for so long.
    pub timeout: Duration,
}

/// A stream that comes in.
pub struct Receiving<'p> {
    config: ReceivingConfig,
    region: MemoryKey,
    stream: MemoryKey,
    posted: usize,
    payload_octets: u64,
    began: Option<Instant>,
    last_progress: Instant,
    outcome: Option<Result<Arrival, TransferError>>,
    report: &'p mut dyn FnMut(u64),
}

/// The trailer of the stream has arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    began: Instant,
    ended: Instant,
    trailer: Trailer,
}

/// A stream that came in.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug)]
pub struct Received {
    pub data: Vec<u8>,
    /// Trailer of the sender.
    pub trailer: Trailer,
    /// Whether they came by WRITE. Without data it is false.
    pub by_write: bool,
    /// Time at which the first packet came.
    pub began: Instant,
    /// Time at which the trailer came.
    pub ended: Instant,
}

impl<'p> Receiving<'p> {
    /// Receives from `now` on. `report` is called with the number of octets received.
    ///
    /// # Errors
    ///
    /// If there is no memory of that size.
    pub fn new(
        now: Instant,
        config: ReceivingConfig,
        endpoint: &mut Endpoint<TransferMemory>,
        report: &'p mut dyn FnMut(u64),
    ) -> Result<Self, TryReserveError> {
        let memory = TransferMemory::region(config.size_octets)?;
        let stream = TransferMemory::stream(config.size_octets.saturating_add(Trailer::LEN))?;
        let region = endpoint.register_memory(memory, config.virtual_address, Access::REMOTE_WRITE, config.key_tag);
        let mut receiving = Receiving {
            region,
            stream: endpoint.register_memory(stream, 0, Access::LOCAL, 0),
            config,
            posted: 0,
            payload_octets: 0,
            began: None,
            last_progress: now,
            outcome: None,
            report,
        };
        receiving.post(endpoint);
        Ok(receiving)
    }

    /// Key of the memory.
    pub fn rkey(&self) -> MemoryKey {
        self.region
    }

    /// A received message, copied from the endpoint's memory; `None` while the program runs.
    ///
    /// # Errors
    ///
    /// The reason why it is incomplete.
    pub fn take(&self, endpoint: &mut Endpoint<TransferMemory>) -> Option<Result<Received, TransferError>> {
        let arrival = match self.outcome? {
            Ok(arrival) => arrival,
            Err(failure) => return Some(Err(failure)),
        };
        let trailer = arrival.trailer;
        let mut stream = endpoint.memory_mut(self.stream).map(TransferMemory::take).unwrap_or_default();
        stream.truncate(stream.len() - Trailer::LEN);
        let by_write = stream.is_empty() && trailer.octets > 0;
        let mut data = stream;
        if by_write {
            data = endpoint.memory_mut(self.region).map(TransferMemory::take).unwrap_or_default();
            data.truncate(usize::try_from(trailer.octets).unwrap_or(usize::MAX));
        }
        if data.len() as u64 != trailer.octets {
            return Some(Err(TransferError::Length { sent: trailer.octets, received: data.len() as u64 }));
        }
        Some(Ok(Received { data, trailer, by_write, began: arrival.began, ended: arrival.ended }))
    }

    fn post(&mut self, endpoint: &mut Endpoint<TransferMemory>) {
        let local = LocalRange { key: self.stream, offset: 0, length_octets: MAX_MESSAGE_OCTETS };
        while self.posted < RECEIVES && endpoint.post_receive(self.config.qpn, Receive { wr_id: 0, local }).is_ok() {
            self.posted += 1;
        }
    }

    fn complete(&mut self, now: Instant, completion: &Completion, endpoint: &Endpoint<TransferMemory>) {
        self.posted -= 1;
        let outcome = match (completion.status, completion.operation, completion.immediate) {
            (Status::Success, CompletedOperation::Receive, Some(Trailer::MAGIC)) => self
                .trailer(completion.length_octets, endpoint)
                .map(|trailer| Arrival { began: self.began.unwrap_or(now), ended: now, trailer }),
            (Status::Success, _, _) => return,
            _ => Err(TransferError::RequestRefused),
        };
        self.outcome.get_or_insert(outcome);
    }

    /// The trailer, which the last message of the stream is.
    fn trailer(&self, length_octets: u32, endpoint: &Endpoint<TransferMemory>) -> Result<Trailer, TransferError> {
        let Some(stream) = endpoint.memory(self.stream) else { return Err(TransferError::RequestRefused) };
        if stream.excess() > 0 {
            return Err(TransferError::TooLong { excess: stream.excess(), limit: self.config.size_octets as u64 });
        }
        let start = stream.octets().len().saturating_sub(length_octets as usize);
        Ok(Trailer::parse(&stream.octets()[start..])?)
    }

    fn watch(&mut self, now: Instant, payload_octets: u64) {
        if payload_octets != self.payload_octets {
            self.payload_octets = payload_octets;
            self.last_progress = now;
            self.began.get_or_insert(now);
            (self.report)(payload_octets);
        } else if now >= self.last_progress + self.config.timeout {
            let after = self.config.timeout;
            let failure = match self.began {
                None => TransferError::NothingReceived { after },
                Some(_) => TransferError::ReceiveTimeout { after },
            };
            self.outcome.get_or_insert(Err(failure));
        }
    }
}

impl Program for Receiving<'_> {
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint<TransferMemory>) -> ControlFlow<()> {
        let payload_octets = endpoint.counters(self.config.qpn).map_or(0, |counters| counters.payload_octets_received);
        self.watch(now, payload_octets);
        while let Some(completion) = endpoint.poll_completion() {
            self.complete(now, &completion, endpoint);
        }
        self.post(endpoint);
        if self.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.last_progress + self.config.timeout)
    }
}

/// Responds to the sender's repetitions, since it may not have received the last ACKs, until it has been silent for a
/// while.
#[derive(Debug)]
pub struct Lingering {
    qpn: Qpn,
    silence: Duration,
    duplicates: u64,
    last_heard: Instant,
}

impl Lingering {
    /// Lingers from `now` on, until the sender has been silent for so long.
    pub fn new(now: Instant, qpn: Qpn, silence: Duration) -> Self {
        Lingering { qpn, silence, duplicates: 0, last_heard: now }
    }
}

impl Program for Lingering {
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint<TransferMemory>) -> ControlFlow<()> {
        let duplicates = endpoint.counters(self.qpn).map_or(0, |counters| counters.duplicates_received);
        if duplicates != self.duplicates {
            self.duplicates = duplicates;
            self.last_heard = now;
        }
        if now >= self.last_heard + self.silence { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.last_heard + self.silence)
    }
}
