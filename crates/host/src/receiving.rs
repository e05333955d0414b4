//! Programs of `srdma recv`: receiving a stream, and staying a while for a sender without the last ACKs.

use crate::connection::RECEIVES;
use crate::event_loop::Program;
use crate::files::OutputFile;
use crate::sink::Sink;
use crate::trailer::{Trailer, TrailerError};
use crate::transfer_error::TransferError;
use crate::transfer_memory::TransferMemory;
use srdma_rc::{
    Access, CompletedOperation, Completion, Endpoint, LocalRange, MAX_MESSAGE_OCTETS, MemoryKey, Receive, Status,
};
use srdma_wire::{Instant, Qpn};
use std::ops::ControlFlow;
use std::time::Duration;

/// Parameters of a transfer to receive.
#[derive(Clone, Copy, Debug)]
pub struct ReceivingConfig {
    /// The queue pair.
    pub qpn: Qpn,
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
    /// The last octets that came by SEND, which may be the trailer; at most as many as it has.
    tail: Vec<u8>,
    /// Octets by SEND beyond the limit.
    excess: u64,
    by_send: bool,
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
    pub octets: u64,
    /// SHA-256 of the octets; `None` when they came in another order and were not kept in a file.
    pub sha256: Option<[u8; 32]>,
    /// The file, which has its name when it is kept.
    pub output: Option<OutputFile>,
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
    /// Receives into `sink`, from `now` on. `report` is called with the number of octets received.
    pub fn new(
        now: Instant,
        config: ReceivingConfig,
        sink: Sink,
        endpoint: &mut Endpoint<TransferMemory>,
        report: &'p mut dyn FnMut(u64),
    ) -> Self {
        let region = TransferMemory::Region(Box::new(sink));
        let stream = TransferMemory::Stream(Vec::new());
        let mut receiving = Receiving {
            region: endpoint.register_memory(region, config.virtual_address, Access::REMOTE_WRITE, config.key_tag),
            stream: endpoint.register_memory(stream, 0, Access::LOCAL, 0),
            tail: Vec::new(),
            excess: 0,
            by_send: false,
            config,
            posted: 0,
            payload_octets: 0,
            began: None,
            last_progress: now,
            outcome: None,
            report,
        };
        receiving.post(endpoint);
        receiving
    }

    /// Key of the memory.
    pub fn rkey(&self) -> MemoryKey {
        self.region
    }

    /// The sink, to receive anew by another endpoint; `None` when it was taken.
    pub fn take_sink(&self, endpoint: &mut Endpoint<TransferMemory>) -> Option<Sink> {
        match endpoint.deregister_memory(self.region) {
            Ok(TransferMemory::Region(sink)) => Some(*sink),
            Ok(_) | Err(_) => None,
        }
    }

    /// The stream, of which the rest is digested and written now; `None` while the program runs.
    ///
    /// # Errors
    ///
    /// The reason why it is incomplete.
    pub fn take(&self, endpoint: &mut Endpoint<TransferMemory>) -> Option<Result<Received, TransferError>> {
        let Arrival { began, ended, trailer } = match self.outcome.clone()? {
            Ok(arrival) => arrival,
            Err(failure) => return Some(Err(failure)),
        };
        let sink = self.take_sink(endpoint)?;
        let octets = sink.end();
        if octets != trailer.octets {
            return Some(Err(TransferError::Length { sent: trailer.octets, received: octets }));
        }
        let by_write = octets > 0 && !self.by_send;
        let received = sink.finish().map(|stored| Received {
            octets,
            sha256: stored.sha256,
            output: stored.output,
            trailer,
            by_write,
            began,
            ended,
        });
        Some(received.map_err(TransferError::from))
    }

    /// Takes out what came by SEND, but for what may be the trailer.
    fn take_messages(&mut self, endpoint: &mut Endpoint<TransferMemory>) {
        let Some(TransferMemory::Stream(stream)) = endpoint.memory_mut(self.stream) else { return };
        if stream.is_empty() {
            return;
        }
        let mut arrived = std::mem::take(stream);
        let Some(sink) = sink_of(endpoint, self.region) else { return };
        let left = (self.tail.len() + arrived.len()).saturating_sub(Trailer::LEN);
        let (from_tail, from_arrived) = (left.min(self.tail.len()), left.saturating_sub(self.tail.len()));
        let before = sink.end();
        sink.append(&self.tail[..from_tail]);
        sink.append(&arrived[..from_arrived]);
        self.excess += left as u64 - (sink.end() - before);
        self.by_send |= left > 0;
        self.tail.drain(..from_tail);
        self.tail.extend_from_slice(&arrived[from_arrived..]);
        arrived.clear();
        if let Some(TransferMemory::Stream(stream)) = endpoint.memory_mut(self.stream) {
            *stream = arrived;
        }
    }

    /// A file that has failed ends the transfer: the sender's next request is refused.
    fn watch_sink(&mut self, endpoint: &mut Endpoint<TransferMemory>) {
        let failure = sink_of(endpoint, self.region).and_then(|sink| sink.failure().cloned());
        if let Some(failure) = failure {
            endpoint.refuse(self.config.qpn);
            self.outcome.get_or_insert(Err(failure.into()));
        }
    }

    fn post(&mut self, endpoint: &mut Endpoint<TransferMemory>) {
        let local = LocalRange { key: self.stream, offset: 0, length_octets: MAX_MESSAGE_OCTETS };
        while self.posted < RECEIVES && endpoint.post_receive(self.config.qpn, Receive { wr_id: 0, local }).is_ok() {
            self.posted += 1;
        }
    }

    fn complete(&mut self, now: Instant, completion: &Completion, limit: u64) {
        self.posted -= 1;
        let outcome = match (completion.status, completion.operation, completion.immediate) {
            (Status::Success, CompletedOperation::Receive, Some(Trailer::MAGIC)) => self
                .trailer(completion.length_octets, limit)
                .map(|trailer| Arrival { began: self.began.unwrap_or(now), ended: now, trailer }),
            (Status::Success, _, _) => return,
            _ => Err(TransferError::RequestRefused),
        };
        self.outcome.get_or_insert(outcome);
    }

    /// The trailer, which the last message of the stream is.
    fn trailer(&self, length_octets: u32, limit: u64) -> Result<Trailer, TransferError> {
        if self.excess > 0 {
            return Err(TransferError::TooLong { excess: self.excess, limit });
        }
        match length_octets as usize {
            Trailer::LEN => Ok(Trailer::parse(&self.tail)?),
            other => Err(TrailerError::Length(other).into()),
        }
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
        self.take_messages(endpoint);
        let limit = sink_of(endpoint, self.region).map_or(0, |sink| sink.limit_octets());
        while let Some(completion) = endpoint.poll_completion() {
            self.complete(now, &completion, limit);
        }
        self.watch_sink(endpoint);
        self.post(endpoint);
        if self.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn work_aside(&mut self, endpoint: &mut Endpoint<TransferMemory>) -> bool {
        sink_of(endpoint, self.region).is_some_and(Sink::settle)
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.last_progress + self.config.timeout)
    }
}

fn sink_of(endpoint: &mut Endpoint<TransferMemory>, region: MemoryKey) -> Option<&mut Sink> {
    match endpoint.memory_mut(region)? {
        TransferMemory::Region(sink) => Some(sink),
        TransferMemory::Source(_) | TransferMemory::File(_) | TransferMemory::Stream(_) => None,
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
