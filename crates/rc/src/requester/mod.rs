//! The requesting half of a queue pair: work requests in, request packets out, responses in, completions out.
//!
//! ```text
//!                 a packet is sent                timeout, sequence NAK: go back
//!            ┌────────────────────────┐             ┌──────────┐
//!            │                        ▼             │          │
//!          Idle ◄──────────── AwaitingResponse ─────┘◄─────────┘
//!            ▲  all acknowledged   │      │  retries exceeded, fatal NAK
//!            │                RNR NAK     └────────────────────────────► failed
//!   time is up                     ▼      RNR retries exceeded             ▲
//!            └──────────────── NotReady ───────────────────────────────────┘
//! ```
//!
//! Packets are numbered without wrapping inside (`u64`); a PSN is such a number's low 24 bits. Four numbers are the
//! state:
//! `unacknowledged` ≤ `next` ≤ `sent` ≤ `end`. Below the first everything is acknowledged, from the second on it is to
//! be sent, from the third on it was never sent, from the fourth on nothing is posted. Going back sets `next` to
//! `unacknowledged`, nothing else. With selective repeat a NAK makes `repeats` of `unacknowledged`: it is sent again
//! before `next`, which stays.

mod response;
mod transmit;

use crate::completion::{CompletedOperation, Completion, Operation, Status, WorkRequest};
use crate::config::QueuePairConfig;
use crate::counters::DropReason;
use crate::memory::{Memory, MemoryKey};
use crate::queue_pair::Context;
use crate::rate::Event;
use crate::rate::pacing::{Pacer, Permit};
use srdma_wire::{Instant, Psn};
use std::collections::VecDeque;

/// Timeouts below the ACK timeout with adaptive retransmission.
const EARLY_TIMEOUTS: u32 = 4;

/// A work request and the packets it takes.
#[derive(Clone, Copy, Debug)]
struct Posted {
    request: WorkRequest,
    first: u64,
    end: u64,
    /// Payload octets of all requests posted before it, READs not counted.
    octets_before: u64,
}

impl Posted {
    fn is_read(&self) -> bool {
        matches!(self.request.operation, Operation::Read { .. })
    }

    /// Payload octets that its requests carry.
    fn octets(&self) -> u64 {
        if self.is_read() { 0 } else { self.request.local.length_octets.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Nothing is outstanding, or there is no timeout.
    Idle,
    /// Go back when this time comes.
    AwaitingResponse(Instant),
    /// The peer is not ready: send nothing before this time.
    NotReady(Instant),
}

#[derive(Debug)]
pub(crate) struct Requester {
    config: QueuePairConfig,
    ack_timeout_ns: Option<u64>,
    ack_request_interval: u32,
    /// Octets of a packet without its payload, at most.
    header_octets: u32,
    queue: VecDeque<Posted>,
    /// The entry of `queue` that `next` belongs to.
    cursor: usize,
    unacknowledged: u64,
    next: u64,
    sent: u64,
    end: u64,
    packets_since_ack_request: u32,
    /// Payload octets of all requests posted, READs not counted.
    octets_posted: u64,
    /// Octets on the link since the last request for an acknowledgement.
    octets_since_ack_request: u64,
    reads_outstanding: u16,
    retries_left: u8,
    /// Timeouts below the ACK timeout since the last progress, with adaptive retransmission.
    early_timeouts: u32,
    rnr_retries_left: u8,
    /// Packet that a NAK has sent us back to, until an ACK or a timeout.
    went_back_to: Option<u64>,
    /// Packet that is to be sent again alone, as long as it is `unacknowledged`.
    repeats: Option<u64>,
    timer: Timer,
    /// The peer was not ready for the oldest message, and has not acknowledged it since.
    awaits_ready: bool,
    failed: bool,
}

impl Requester {
    /// `header_octets`: of a packet without its payload, at most.
    pub(crate) fn new(config: &QueuePairConfig, header_octets: usize) -> Self {
        // Far enough from zero that a PSN before the first has a number too; a multiple of 2^24 away from the PSN.
        let first = (1 << 24) + u64::from(config.sq_psn.get());
        Requester {
            ack_timeout_ns: config.ack_timeout_ns(),
            ack_request_interval: config.habits.ack_request_interval.min(config.habits.max_outstanding_psns),
            header_octets: header_octets as u32,
            queue: VecDeque::new(),
            cursor: 0,
            unacknowledged: first,
            next: first,
            sent: first,
            end: first,
            packets_since_ack_request: 0,
            octets_posted: 0,
            octets_since_ack_request: 0,
            reads_outstanding: 0,
            retries_left: config.retry_count,
            early_timeouts: 0,
            rnr_retries_left: config.rnr_retry,
            went_back_to: None,
            repeats: None,
            timer: Timer::Idle,
            awaits_ready: false,
            failed: false,
            config: config.clone(),
        }
    }

    /// Work requests that are not completed.
    pub(crate) fn posted(&self) -> usize {
        self.queue.len()
    }

    /// Whether a work request that is not completed uses a region.
    pub(crate) fn uses(&self, key: MemoryKey) -> bool {
        self.queue.iter().any(|posted| posted.request.local.key == key)
    }

    pub(crate) fn post(&mut self, request: WorkRequest) {
        let first = self.end;
        self.end += u64::from(self.config.path_mtu.packets(request.local.length_octets));
        let posted = Posted { request, first, end: self.end, octets_before: self.octets_posted };
        self.octets_posted += posted.octets();
        self.queue.push_back(posted);
    }

    /// Whether the queue pair has to enter the error state.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.timer {
            Timer::Idle => None,
            Timer::AwaitingResponse(at) | Timer::NotReady(at) => Some(at),
        }
    }

    pub(crate) fn can_transmit(&self) -> bool {
        if self.repeats_oldest() {
            return !matches!(self.timer, Timer::NotReady(_));
        }
        let Some(posted) = self.queue.get(self.cursor) else { return false };
        let is_new_read = posted.is_read() && self.next >= self.sent;
        // Only the oldest message, to a peer that is not ready for it.
        if self.awaits_ready && self.cursor > 0 {
            return false;
        }
        !matches!(self.timer, Timer::NotReady(_))
            && self.next - self.unacknowledged < u64::from(self.config.habits.max_outstanding_psns)
            && !(is_new_read && self.reads_outstanding >= self.config.max_outstanding_reads)
    }

    /// Whether the rate and the window permit the next packet.
    pub(crate) fn permit(&self, now: Instant, pacer: &Pacer) -> Permit {
        // What is sent again takes the place of what was lost.
        let in_flight = if self.repeats_oldest() { 0 } else { self.in_flight_octets(pacer) };
        pacer.request_permit(now, in_flight, self.packets_since_ack_request == 0)
    }

    /// Whether the oldest packet is to be sent again alone.
    fn repeats_oldest(&self) -> bool {
        self.repeats == Some(self.unacknowledged)
    }

    /// Octets on the link of what is sent, or sent again, and not acknowledged.
    fn in_flight_octets(&self, pacer: &Pacer) -> u64 {
        let packets = self.next - self.unacknowledged;
        let headers = u64::from(pacer.link_octets(self.header_octets));
        let from = self.acknowledged_octets();
        let to = self.queue.get(self.cursor).map_or(self.octets_posted, |posted| self.position(posted, self.next));
        to - from + packets * headers
    }

    /// Payload octets of all requests before `unacknowledged`.
    fn acknowledged_octets(&self) -> u64 {
        self.queue.front().map_or(self.octets_posted, |posted| self.position(posted, self.unacknowledged))
    }

    /// Payload octets of all requests before packet `number`, which is one of `posted`'s.
    fn position(&self, posted: &Posted, number: u64) -> u64 {
        let offset = (number - posted.first) * u64::from(self.config.path_mtu.octets());
        posted.octets_before + offset.min(posted.octets())
    }

    /// Checks the timer.
    pub(crate) fn tick<M: Memory>(&mut self, context: &mut Context<'_, M>) {
        match self.timer {
            Timer::Idle => {}
            Timer::NotReady(at) => {
                if at <= context.now {
                    self.timer = Timer::Idle;
                }
            }
            Timer::AwaitingResponse(at) => {
                if at <= context.now {
                    self.on_timeout(context);
                }
            }
        }
    }

    fn on_timeout<M: Memory>(&mut self, context: &mut Context<'_, M>) {
        context.counters.timeouts += 1;
        if self.config.habits.adapts_timeouts && self.early_timeouts < EARLY_TIMEOUTS {
            self.early_timeouts += 1;
        } else if !self.spend_retry() {
            self.fail(context, Status::RetryExceeded);
            return;
        }
        self.went_back_to = self.config.habits.one_go_back_until_ack.then_some(self.unacknowledged);
        self.go_back_after_loss(context);
        self.restart_timer(context.now);
    }

    /// Completes the oldest work request with `status`; the queue pair flushes the others.
    fn fail<M: Memory>(&mut self, context: &mut Context<'_, M>, status: Status) {
        if let Some(posted) = self.queue.pop_front() {
            complete(context, &posted.request, status);
        }
        self.failed = true;
    }

    /// Completes everything as not done.
    pub(crate) fn flush<M: Memory>(&mut self, context: &mut Context<'_, M>) {
        for posted in self.queue.drain(..) {
            complete(context, &posted.request, Status::Flushed);
        }
        self.cursor = 0;
        self.timer = Timer::Idle;
        self.failed = true;
    }

    /// The number of a PSN: the one nearest to `unacknowledged`.
    fn number(&self, psn: Psn) -> u64 {
        self.unacknowledged.wrapping_add_signed(psn.distance_from(psn_of(self.unacknowledged)).into())
    }

    /// The number that a response is about, when it was sent and is not yet acknowledged.
    fn outstanding(&self, psn: Psn) -> Result<u64, DropReason> {
        let number = self.number(psn);
        if number < self.unacknowledged {
            Err(DropReason::StaleResponse)
        } else if number < self.sent {
            Ok(number)
        } else if self.config.habits.believes_unsent_acks && self.sent > self.unacknowledged {
            Ok(self.sent - 1)
        } else {
            Err(DropReason::AcknowledgesUnsent)
        }
    }

    /// Acknowledges all before `number`, except a READ whose responses are missing; returns whether there was one.
    fn acknowledge<M: Memory>(&mut self, context: &mut Context<'_, M>, number: u64) -> bool {
        let mut reached = number;
        let mut is_blocked = false;
        let before = context.pacer.is_some().then(|| (self.unacknowledged, self.acknowledged_octets()));
        while let Some(front) = self.queue.front() {
            if front.is_read() {
                is_blocked = number > front.first.max(self.unacknowledged);
                reached = number.min(front.first.max(self.unacknowledged));
                break;
            }
            if front.end > number {
                break;
            }
            complete(context, &front.request, Status::Success);
            self.queue.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        reached = reached.max(self.unacknowledged);
        self.awaits_ready &= reached == self.unacknowledged;
        context.counters.packets_acknowledged += reached - self.unacknowledged;
        self.unacknowledged = reached;
        self.never_send_acknowledged();
        if let (Some((packets_before, octets_before)), Some(pacer)) = (before, &mut context.pacer) {
            let headers = u64::from(pacer.link_octets(self.header_octets));
            let octets = self.acknowledged_octets() - octets_before + (reached - packets_before) * headers;
            if octets > 0 {
                pacer.on(context.now, Event::Acknowledged { octets });
            }
        }
        is_blocked
    }

    /// An ACK that comes late, after going back, spares what it acknowledges from being sent again.
    fn never_send_acknowledged(&mut self) {
        self.next = self.next.max(self.unacknowledged);
        while self.queue.get(self.cursor).is_some_and(|posted| posted.end <= self.next) {
            self.cursor += 1;
        }
    }

    fn go_back(&mut self) {
        self.repeats = None;
        self.next = self.unacknowledged;
        self.cursor = 0;
    }

    /// Goes back to the oldest packet not acknowledged, which has been lost.
    fn go_back_after_loss<M: Memory>(&mut self, context: &mut Context<'_, M>) {
        self.go_back();
        context.notify(Event::Lost);
    }

    fn made_progress(&mut self) {
        self.retries_left = self.config.retry_count;
        self.early_timeouts = 0;
        self.rnr_retries_left = self.config.rnr_retry;
        self.went_back_to = None;
    }

    /// The peer was ready after all, if it has acknowledged more than `before`.
    fn leave_not_ready_after(&mut self, before: u64) {
        if matches!(self.timer, Timer::NotReady(_)) && self.unacknowledged != before {
            self.timer = Timer::Idle;
        }
    }

    fn restart_timer(&mut self, now: Instant) {
        if matches!(self.timer, Timer::NotReady(_)) {
            return;
        }
        self.timer = match self.timeout_ns() {
            Some(timeout_ns) if self.unacknowledged < self.sent => Timer::AwaitingResponse(now.after_ns(timeout_ns)),
            Some(_) | None => Timer::Idle,
        };
    }

    fn timeout_ns(&self) -> Option<u64> {
        let timeout_ns = self.ack_timeout_ns?;
        if !self.config.habits.adapts_timeouts {
            return Some(timeout_ns);
        }
        Some(timeout_ns >> (EARLY_TIMEOUTS - self.early_timeouts))
    }

    fn spend_retry(&mut self) -> bool {
        if self.config.habits.retry_count_7_is_unlimited && self.config.retry_count == 7 {
            return true;
        }
        let has_one = self.retries_left > 0;
        self.retries_left = self.retries_left.saturating_sub(1);
        has_one
    }

    /// Octets of the message before packet `number`.
    fn offset_of(&self, posted: &Posted, number: u64) -> u32 {
        // A message has at most 2^31 octets.
        (number - posted.first) as u32 * self.config.path_mtu.octets()
    }
}

fn psn_of(number: u64) -> Psn {
    Psn::new(number as u32)
}

fn complete<M: Memory>(context: &mut Context<'_, M>, request: &WorkRequest, status: Status) {
    if !request.signalled && status == Status::Success {
        return;
    }
    let operation = match request.operation {
        Operation::Send { .. } => CompletedOperation::Send,
        Operation::Write { .. } => CompletedOperation::Write,
        Operation::Read { .. } => CompletedOperation::Read,
    };
    let length_octets = if status == Status::Success { request.local.length_octets } else { 0 };
    context.completions.push_back(Completion {
        qpn: context.qpn,
        wr_id: request.wr_id,
        operation,
        status,
        length_octets,
        immediate: None,
    });
}
