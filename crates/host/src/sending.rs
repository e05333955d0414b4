//! The program of `srdma send`: a stream as messages, and a trailer.

use crate::congestion::Met;
use crate::event_loop::Program;
use crate::failure::Failure;
use crate::gate::{Gate, Passage, SourceState};
use crate::landing::Landing;
use crate::trailer::Trailer;
use srdma_rc::{
    Access, Completion, Endpoint, LocalRange, MemoryKey, Operation, PathMtu, RemoteAddress, Status, WorkRequest,
};
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
    gate: Option<Gated<'p>>,
}

/// A stream that may be paused: few messages are begun at once, so that a pause comes soon.
struct Gated<'p> {
    gate: &'p mut dyn Gate,
    path_mtu: PathMtu,
    most_begun: u64,
    begun_messages: u64,
    begun_packets: u64,
    /// When it is asked again.
    shut_until: Option<Instant>,
}

/// How often a stream that may not begin anything asks again.
const SHUT_PERIOD: Duration = Duration::from_millis(5);

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
            gate: None,
        }
    }

    /// Asks before it begins a message. `window`: packets that may be outstanding, which begun messages are to fill.
    #[must_use]
    pub fn behind(mut self, gate: &'p mut dyn Gate, path_mtu: PathMtu, window: u32) -> Self {
        let window_octets = u64::from(window) * u64::from(path_mtu.octets());
        let most_begun = 2 + 2 * window_octets / u64::from(self.config.message_octets.max(1));
        self.gate = Some(Gated { gate, path_mtu, most_begun, begun_messages: 0, begun_packets: 0, shut_until: None });
        self
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
            let has_enough = |gated: &Gated<'_>| gated.begun_messages >= self.completions + gated.most_begun;
            if self.gate.as_ref().is_some_and(has_enough) {
                return;
            }
            let length_octets = request.local.length_octets;
            // A full queue takes it later; a failed queue pair has completed what was posted with an error.
            if endpoint.post_send(self.config.qpn, request).is_err() {
                return;
            }
            self.stage = next;
            if let Some(gated) = &mut self.gate {
                gated.begun_messages += 1;
                gated.begun_packets += u64::from(length_octets.div_ceil(gated.path_mtu.octets()).max(1));
            }
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

    /// Whether a message may be begun. Time that passes while none may is not held against the peer.
    fn pass(&mut self, now: Instant, acknowledged_packets: u64) -> Passage {
        let Some(gated) = &mut self.gate else { return Passage::Open };
        let is_quiet = gated.begun_messages == self.completions;
        let passage = gated.gate.pass(SourceState {
            begun_packets: gated.begun_packets,
            acknowledged_packets: if is_quiet { gated.begun_packets } else { acknowledged_packets },
            completed_messages: self.completions,
            is_quiet,
        });
        gated.shut_until = None;
        if passage == Passage::Shut {
            gated.shut_until = Some(now + SHUT_PERIOD);
            if is_quiet {
                self.last_progress = now;
            }
        }
        passage
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
        let packets_acknowledged =
            endpoint.counters(self.config.qpn).map_or(0, |counters| counters.packets_acknowledged);
        match self.pass(now, packets_acknowledged) {
            Passage::Open => self.post(endpoint),
            Passage::Shut => {}
            Passage::Closed => drop(self.outcome.get_or_insert(Err(Failure::GroupClosed))),
        }
        self.watch(now, packets_acknowledged);
        if self.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let patience = self.last_progress + self.config.timeout;
        let shut_until = self.gate.as_ref().and_then(|gated| gated.shut_until);
        Some(shut_until.map_or(patience, |until| until.min(patience)))
    }
}
