//! The program of `srdma send`: a stream as messages, and a trailer.

use crate::congestion::Met;
use crate::event_loop::Program;
use crate::failure::Failure;
use crate::landing::Landing;
use crate::trailer::Trailer;
use srdma_rc::{Access, Completion, Endpoint, LocalRange, MemoryKey, Operation, RemoteAddress, Status, WorkRequest};
use srdma_wire::{Instant, Qpn};
use std::ops::ControlFlow;
use std::time::Duration;

/// How messages are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// SEND.
    Send,
    /// RDMA WRITE, from this place in the peer's memory on.
    Write(RemoteAddress),
}

/// What to send and how.
#[derive(Clone, Copy, Debug)]
pub struct SendingConfig {
    /// The queue pair.
    pub qpn: Qpn,
    /// How messages are carried; the trailer is always a SEND.
    pub carriage: Carriage,
    /// Length of each message but the last.
    pub message_octets: u32,
    /// What the trailer says of the data.
    pub trailer: Trailer,
    /// Give up when nothing is acknowledged for so long.
    pub timeout: Duration,
}

/// What is left to be posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Messages from this offset on, and the trailer.
    Data(u64),
    Trailer,
    Nothing,
}

/// A stream on its way.
pub struct Sending<'p> {
    config: SendingConfig,
    data: MemoryKey,
    trailer: MemoryKey,
    stage: Stage,
    completions: u64,
    packets_acknowledged: u64,
    last_progress: Instant,
    met: Met,
    outcome: Option<Result<Instant, Failure>>,
    report: &'p mut dyn FnMut(u64),
}

/// `wr_id` of the trailer; those of messages are their offsets.
const TRAILER: u64 = u64::MAX;

impl<'p> Sending<'p> {
    /// Sends `data`, from `now` on. `report` is told how many packets are acknowledged.
    pub fn new(
        now: Instant,
        config: SendingConfig,
        data: Vec<u8>,
        endpoint: &mut Endpoint<Landing>,
        report: &'p mut dyn FnMut(u64),
    ) -> Self {
        let mut region = |octets| endpoint.register_memory(Landing::Source(octets), 0, Access::LOCAL, 0);
        Sending {
            stage: if data.is_empty() { Stage::Trailer } else { Stage::Data(0) },
            data: region(data),
            trailer: region(config.trailer.emit().to_vec()),
            config,
            completions: 0,
            packets_acknowledged: 0,
            last_progress: now,
            met: Met::default(),
            outcome: None,
            report,
        }
    }

    /// Messages that were acknowledged, the trailer among them.
    pub fn completions(&self) -> u64 {
        self.completions
    }

    /// The congestion that it has met.
    pub fn met(&self) -> &Met {
        &self.met
    }

    /// When everything was acknowledged, or why it was not; `None` while the program runs.
    pub fn outcome(&self) -> Option<Result<Instant, Failure>> {
        self.outcome
    }

    fn complete(&mut self, now: Instant, completion: &Completion) {
        match completion.status {
            Status::Success => self.completions += 1,
            status => {
                self.outcome.get_or_insert(Err(Failure::Request(status)));
            }
        }
        if completion.wr_id == TRAILER {
            self.outcome.get_or_insert(Ok(now));
        }
    }

    fn post(&mut self, endpoint: &mut Endpoint<Landing>) {
        while let Some((request, next)) = self.next_request() {
            // A full queue takes it later; a failed queue pair has completed what was posted with an error.
            if endpoint.post_send(self.config.qpn, request).is_err() {
                return;
            }
            self.stage = next;
        }
    }

    fn next_request(&self) -> Option<(WorkRequest, Stage)> {
        let total = self.config.trailer.octets;
        match self.stage {
            Stage::Data(offset) => {
                let length_octets = u64::from(self.config.message_octets).min(total - offset) as u32;
                let end = offset + u64::from(length_octets);
                let operation = match self.config.carriage {
                    Carriage::Send => Operation::Send { immediate: None },
                    Carriage::Write(base) => {
                        let virtual_address = base.virtual_address.wrapping_add(offset);
                        Operation::Write { remote: RemoteAddress { virtual_address, ..base }, immediate: None }
                    }
                };
                let local = LocalRange { key: self.data, offset, length_octets };
                let next = if end == total { Stage::Trailer } else { Stage::Data(end) };
                Some((WorkRequest { wr_id: offset, operation, local, signalled: true }, next))
            }
            Stage::Trailer => {
                let operation = Operation::Send { immediate: Some(Trailer::MAGIC) };
                let local = LocalRange { key: self.trailer, offset: 0, length_octets: Trailer::LEN as u32 };
                Some((WorkRequest { wr_id: TRAILER, operation, local, signalled: true }, Stage::Nothing))
            }
            Stage::Nothing => None,
        }
    }

    fn watch(&mut self, now: Instant, packets_acknowledged: u64) {
        if packets_acknowledged != self.packets_acknowledged {
            self.packets_acknowledged = packets_acknowledged;
            self.last_progress = now;
            (self.report)(packets_acknowledged);
        } else if now >= self.last_progress + self.config.timeout {
            let after = self.config.timeout;
            let failure = match packets_acknowledged {
                0 => Failure::NoAnswer { after },
                _ => Failure::NoProgress { after },
            };
            self.outcome.get_or_insert(Err(failure));
        }
    }
}

impl Program for Sending<'_> {
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint<Landing>) -> ControlFlow<()> {
        while let Some(completion) = endpoint.poll_completion() {
            self.complete(now, &completion);
        }
        self.met.look(now, endpoint, self.config.qpn);
        self.post(endpoint);
        let packets_acknowledged =
            endpoint.counters(self.config.qpn).map_or(0, |counters| counters.packets_acknowledged);
        self.watch(now, packets_acknowledged);
        if self.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.last_progress + self.config.timeout)
    }
}
