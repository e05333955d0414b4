//! The program of `srdma send`: a stream as messages, and a trailer.

use crate::congestion::CongestionStats;
use crate::event_loop::Program;
use crate::files::FileSource;
use crate::source_control::{SessionState, SourceControl, StreamProgress};
use crate::trailer::Trailer;
use crate::transfer_error::TransferError;
use crate::transfer_memory::TransferMemory;
use sha2::{Digest, Sha256};
use srdma_rc::{Access, Completion, Endpoint, LocalRange, MemoryKey, Operation, RemoteAddress, Status, WorkRequest};
use srdma_wire::{Instant, PathMtu, Qpn};
use std::ops::ControlFlow;
use std::time::Duration;

/// RDMA operation of the messages.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferMode {
    Send,
    /// RDMA WRITE, from this address in the peer's memory on.
    Write(RemoteAddress),
}

/// Parameters of a transfer to send.
#[derive(Clone, Copy, Debug)]
pub struct SendingConfig {
    /// The queue pair.
    pub qpn: Qpn,
    /// Operation of the messages; the trailer is always a SEND.
    pub mode: TransferMode,
    /// Length of each message but the last.
    pub message_octets: u32,
    /// The transfer fails when nothing is acknowledged for this time.
    pub timeout: Duration,
}

/// The data of a transfer.
#[derive(Debug)]
pub enum SendData {
    /// Octets in memory.
    Memory {
        /// The octets.
        octets: Vec<u8>,
        /// Their length and digest.
        trailer: Trailer,
    },
    /// A file, read and digested while it is sent.
    File(FileSource),
}

impl SendData {
    /// Octets in memory, which are digested now.
    pub fn in_memory(octets: Vec<u8>) -> Self {
        let trailer = Trailer { octets: octets.len() as u64, sha256: Sha256::digest(&octets).into() };
        SendData::Memory { octets, trailer }
    }

    /// Their number.
    pub fn octets(&self) -> u64 {
        match self {
            SendData::Memory { trailer, .. } => trailer.octets,
            SendData::File(file) => file.octets(),
        }
    }
}

/// Work requests still to be posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Messages from this offset on, and the trailer.
    Data(u64),
    Trailer,
    Nothing,
}

/// The program that sends a stream.
pub struct Sending<'p> {
    config: SendingConfig,
    data: MemoryKey,
    octets: u64,
    /// `None` while the data are not digested.
    trailer: Option<(Trailer, MemoryKey)>,
    stage: Stage,
    completions: u64,
    packets_acknowledged: u64,
    last_progress: Instant,
    congestion: CongestionStats,
    outcome: Option<Result<Instant, TransferError>>,
    report: &'p mut dyn FnMut(u64),
    control: Option<Controlled<'p>>,
}

/// A stream that may be paused: the number of outstanding messages is limited, so that it drains soon.
struct Controlled<'p> {
    control: &'p mut dyn SourceControl,
    path_mtu: PathMtu,
    most_begun: u64,
    begun_messages: u64,
    begun_packets: u64,
    /// The time of the next attempt, while no message may begin.
    poll_at: Option<Instant>,
}

/// Interval for asking again while no message may begin.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// `wr_id` of the trailer; those of messages are their offsets.
const TRAILER: u64 = u64::MAX;

impl<'p> Sending<'p> {
    /// Sends `data`, from `now` on. `report` gets the number of acknowledged packets.
    pub fn new(
        now: Instant,
        config: SendingConfig,
        data: SendData,
        endpoint: &mut Endpoint<TransferMemory>,
        report: &'p mut dyn FnMut(u64),
    ) -> Self {
        let octets = data.octets();
        let (memory, trailer) = match data {
            SendData::Memory { octets, trailer } => (TransferMemory::Source(octets), Some(trailer)),
            SendData::File(file) => (TransferMemory::File(Box::new(file)), None),
        };
        Sending {
            stage: if octets == 0 { Stage::Trailer } else { Stage::Data(0) },
            data: endpoint.register_memory(memory, 0, Access::LOCAL, 0),
            octets,
            trailer: trailer.map(|trailer| registered(trailer, endpoint)),
            config,
            completions: 0,
            packets_acknowledged: 0,
            last_progress: now,
            congestion: CongestionStats::default(),
            outcome: None,
            report,
            control: None,
        }
    }

    /// Consults `control` before each message. Messages that have begun fill `window`, the packets that may be
    /// outstanding.
    #[must_use]
    pub fn controlled_by(mut self, control: &'p mut dyn SourceControl, path_mtu: PathMtu, window: u32) -> Self {
        let window_octets = u64::from(window) * u64::from(path_mtu.octets());
        let most_begun = 2 + 2 * window_octets / u64::from(self.config.message_octets.max(1));
        self.control =
            Some(Controlled { control, path_mtu, most_begun, begun_messages: 0, begun_packets: 0, poll_at: None });
        self
    }

    /// Messages that were acknowledged, the trailer among them.
    pub fn completions(&self) -> u64 {
        self.completions
    }

    /// Rates and Fast CNPs so far.
    pub fn congestion(&self) -> &CongestionStats {
        &self.congestion
    }

    /// Time at which everything was acknowledged, or the failure; `None` while the program runs.
    pub fn outcome(&self) -> Option<Result<Instant, TransferError>> {
        self.outcome.clone()
    }

    /// Length and digest of the data; `None` while a file is not digested.
    pub fn trailer(&self) -> Option<Trailer> {
        self.trailer.map(|(trailer, _)| trailer)
    }

    /// Looks at the file that is sent: whether it has failed, and whether it is digested.
    fn watch_file(&mut self, endpoint: &mut Endpoint<TransferMemory>) {
        let Some(TransferMemory::File(file)) = endpoint.memory(self.data) else { return };
        if let Some(error) = file.failure() {
            self.outcome.get_or_insert(Err(error.into()));
        } else if self.trailer.is_none()
            && let Some(sha256) = file.sha256()
        {
            let trailer = Trailer { octets: self.octets, sha256 };
            self.trailer = Some(registered(trailer, endpoint));
        }
    }

    fn complete(&mut self, now: Instant, completion: &Completion) {
        match completion.status {
            Status::Success => self.completions += 1,
            status => {
                self.outcome.get_or_insert(Err(TransferError::Request(status)));
            }
        }
        if completion.wr_id == TRAILER {
            self.outcome.get_or_insert(Ok(now));
        }
    }

    fn post(&mut self, endpoint: &mut Endpoint<TransferMemory>) {
        while let Some((request, next)) = self.next_request() {
            let has_enough =
                |controlled: &Controlled<'_>| controlled.begun_messages >= self.completions + controlled.most_begun;
            if self.control.as_ref().is_some_and(has_enough) {
                return;
            }
            let length_octets = request.local.length_octets;
            // A full queue takes it later; a failed queue pair has completed what was posted with an error.
            if endpoint.post_send(self.config.qpn, request).is_err() {
                return;
            }
            self.stage = next;
            if let Some(controlled) = &mut self.control {
                controlled.begun_messages += 1;
                controlled.begun_packets += u64::from(length_octets.div_ceil(controlled.path_mtu.octets()).max(1));
            }
        }
    }

    fn next_request(&self) -> Option<(WorkRequest, Stage)> {
        let total = self.octets;
        match self.stage {
            Stage::Data(offset) => {
                let length_octets = u64::from(self.config.message_octets).min(total - offset) as u32;
                let end = offset + u64::from(length_octets);
                let operation = match self.config.mode {
                    TransferMode::Send => Operation::Send { immediate: None },
                    TransferMode::Write(base) => {
                        let virtual_address = base.virtual_address.wrapping_add(offset);
                        Operation::Write { remote: RemoteAddress { virtual_address, ..base }, immediate: None }
                    }
                };
                let local = LocalRange { key: self.data, offset, length_octets };
                let next = if end == total { Stage::Trailer } else { Stage::Data(end) };
                Some((WorkRequest { wr_id: offset, operation, local, signalled: true }, next))
            }
            Stage::Trailer => {
                let (_, key) = self.trailer?;
                let operation = Operation::Send { immediate: Some(Trailer::MAGIC) };
                let local = LocalRange { key, offset: 0, length_octets: Trailer::LEN as u32 };
                Some((WorkRequest { wr_id: TRAILER, operation, local, signalled: true }, Stage::Nothing))
            }
            Stage::Nothing => None,
        }
    }

    /// The state of the source. Time while it is paused does not count towards the timeout.
    fn session_state(&mut self, now: Instant, acknowledged_packets: u64) -> SessionState {
        let Some(controlled) = &mut self.control else { return SessionState::Sending };
        let is_drained = controlled.begun_messages == self.completions;
        let state = controlled.control.update(StreamProgress {
            begun_packets: controlled.begun_packets,
            acknowledged_packets: if is_drained { controlled.begun_packets } else { acknowledged_packets },
            completed_messages: self.completions,
            is_drained,
        });
        controlled.poll_at = None;
        if let SessionState::Draining | SessionState::Paused = state {
            controlled.poll_at = Some(now + POLL_INTERVAL);
            if is_drained {
                self.last_progress = now;
            }
        }
        state
    }

    fn watch(&mut self, now: Instant, packets_acknowledged: u64) {
        if packets_acknowledged != self.packets_acknowledged {
            self.packets_acknowledged = packets_acknowledged;
            self.last_progress = now;
            (self.report)(packets_acknowledged);
        } else if now >= self.last_progress + self.config.timeout {
            let after = self.config.timeout;
            let failure = match packets_acknowledged {
                0 => TransferError::NoResponse { after },
                _ => TransferError::NoProgress { after },
            };
            self.outcome.get_or_insert(Err(failure));
        }
    }
}

fn registered(trailer: Trailer, endpoint: &mut Endpoint<TransferMemory>) -> (Trailer, MemoryKey) {
    let memory = TransferMemory::Source(trailer.emit().to_vec());
    (trailer, endpoint.register_memory(memory, 0, Access::LOCAL, 0))
}

impl Program for Sending<'_> {
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint<TransferMemory>) -> ControlFlow<()> {
        while let Some(completion) = endpoint.poll_completion() {
            self.complete(now, &completion);
        }
        self.watch_file(endpoint);
        self.congestion.update(now, endpoint, self.config.qpn);
        let packets_acknowledged =
            endpoint.counters(self.config.qpn).map_or(0, |counters| counters.packets_acknowledged);
        match self.session_state(now, packets_acknowledged) {
            SessionState::Sending => self.post(endpoint),
            SessionState::Draining | SessionState::Paused => {}
            SessionState::Ended => drop(self.outcome.get_or_insert(Err(TransferError::GroupClosed))),
        }
        self.watch(now, packets_acknowledged);
        if self.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let timeout = self.last_progress + self.config.timeout;
        let poll_at = self.control.as_ref().and_then(|controlled| controlled.poll_at);
        Some(poll_at.map_or(timeout, |poll_at| poll_at.min(timeout)))
    }
}
