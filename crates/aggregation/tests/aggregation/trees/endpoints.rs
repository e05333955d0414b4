//! The two ends of the tree, as seen from the reverse path: retransmitted PSNs, and responses.

use srdma_aggregation::{Response, Syndrome};
use srdma_testkit::random::Random;
use srdma_wire::Psn;
use srdma_wire::transport::rnr_timer;

/// How a requester takes responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceHabit {
    /// Goes back for every NAK at or above what it has completed.
    Strict,
    /// As soft-RoCE: once it has gone back it ignores NAKs until an ACK comes, and accepts an ACK of any PSN.
    SoftRoce,
}

/// A go-back-N requester. Packets are numbered from 0; the PSN of packet 0 is `initial`.
pub(crate) struct Source {
    pub(crate) habit: SourceHabit,
    pub(crate) initial: Psn,
    /// Packets to deliver.
    pub(crate) total: u64,
    /// Everything before is completed.
    pub(crate) completed: u64,
    /// The next packet to send.
    pub(crate) next: u64,
    /// No packet from here on has ever been sent.
    pub(crate) fresh: u64,
    window: u64,
    message: u64,
    gone_back: bool,
    /// Waiting for a receiver that was not ready, until then.
    pub(crate) waits_until_ns: Option<u64>,
    /// The retransmission timer fires then.
    pub(crate) timeout_at_ns: u64,
    pub(crate) failed: bool,
    pub(crate) acks: u64,
    pub(crate) naks: u64,
    pub(crate) sent: u64,
    /// Packets sent that requested an ACK.
    pub(crate) requests: u64,
    /// Retries spent since the last ACK, and the most of it.
    pub(crate) retries: u64,
    pub(crate) most_retries: u64,
    /// It begins no new message.
    pub(crate) paused: bool,
}

/// The ACK timeout.
pub(crate) const TIMEOUT_NS: u64 = 4_000_000;

impl Source {
    pub(crate) fn new(random: &mut Random, habit: SourceHabit, initial: Psn) -> Self {
        // Within each window some packet requests an ACK, or no response would ever be sent.
        let window = random.between(1, 40);
        Source {
            habit,
            initial,
            total: random.between(1, 90),
            completed: 0,
            next: 0,
            fresh: 0,
            window,
            message: random.between(1, window),
            gone_back: false,
            waits_until_ns: None,
            timeout_at_ns: TIMEOUT_NS,
            failed: false,
            acks: 0,
            naks: 0,
            sent: 0,
            requests: 0,
            retries: 0,
            most_retries: 0,
            paused: false,
        }
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.failed || self.completed >= self.total
    }

    /// The PSN of a packet.
    pub(crate) fn psn(&self, packet: u64) -> Psn {
        self.initial.plus((packet & 0xFF_FFFF) as u32)
    }

    /// The next packet, and whether it requests an ACK: the last of a message, the last of all.
    pub(crate) fn send(&mut self) -> Option<(u64, bool)> {
        let packet = self.next;
        if self.waits_until_ns.is_some() || packet >= self.total || packet >= self.completed + self.window {
            return None;
        }
        if self.paused && packet >= self.fresh && self.is_between_messages() {
            return None;
        }
        self.next += 1;
        self.fresh = self.fresh.max(self.next);
        self.sent += 1;
        let ack_request = packet + 1 == self.total || (packet + 1).is_multiple_of(self.message);
        self.requests += u64::from(ack_request);
        Some((packet, ack_request))
    }

    fn is_between_messages(&self) -> bool {
        self.fresh.is_multiple_of(self.message)
    }

    /// Whether it is paused, and nothing that it sent is outstanding (D30).
    pub(crate) fn is_quiescent(&self) -> bool {
        self.paused && self.completed == self.fresh && self.next == self.fresh && self.is_between_messages()
    }

    /// Receives a response; returns the packet up to which the source then takes all for delivered.
    pub(crate) fn receive(&mut self, now_ns: u64, response: Response) -> u64 {
        let distance = i64::from(response.expected_psn().distance_from(self.psn(self.completed)));
        let restart = self.completed.saturating_add_signed(distance);
        self.timeout_at_ns = now_ns + TIMEOUT_NS;
        if distance < 0 {
            self.acks += u64::from(response.syndrome == Syndrome::Ack);
            return self.completed;
        }
        self.completed = restart;
        self.next = self.next.max(restart);
        self.fresh = self.fresh.max(restart);
        match response.syndrome {
            Syndrome::Ack => {
                self.acks += 1;
                self.retries = 0;
                self.gone_back = false;
            }
            Syndrome::SequenceNak => {
                self.naks += 1;
                self.spend_retry();
                if !(self.habit == SourceHabit::SoftRoce && self.gone_back) {
                    self.gone_back = true;
                    self.next = self.completed;
                }
            }
            Syndrome::RnrNak(timer) => {
                self.next = self.completed;
                self.waits_until_ns = Some(now_ns + rnr_timer(timer).as_nanos() as u64);
            }
            Syndrome::Fatal(_) => self.failed = true,
        }
        restart
    }

    /// No response arrived within the timeout: retransmits everything.
    pub(crate) fn time_out(&mut self, now_ns: u64) {
        self.spend_retry();
        self.gone_back = true;
        self.next = self.completed;
        self.timeout_at_ns = now_ns + TIMEOUT_NS;
    }

    fn spend_retry(&mut self) {
        self.retries += 1;
        self.most_retries = self.most_retries.max(self.retries);
    }
}

/// How a responder responds what it has got already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiverHabit {
    /// As soft-RoCE: every duplicate is answered with an ACK of the newest.
    AcksDuplicates,
    /// Only a duplicate that requests an ACK is answered.
    AcksRequests,
}

/// A responder.
pub(crate) struct Receiver {
    pub(crate) habit: ReceiverHabit,
    /// Every packet before was received.
    pub(crate) expected: u64,
    nak_sent: bool,
    /// How often, in thousandths, it is not ready.
    pub(crate) unready_per_mille: u64,
    /// The packet at which it fails for good.
    pub(crate) fails_at: Option<u64>,
    /// It responds nothing any more.
    pub(crate) dead: bool,
    pub(crate) acks: u64,
    /// How long its link takes.
    pub(crate) latency_ns: u64,
    /// The packet at which it joined.
    pub(crate) joined_at: Option<u64>,
    /// Which node has sent it which packet, and when; and when its restart last moved there.
    pub(crate) sendings: Vec<(usize, u64, u64)>,
    pub(crate) progress_at_ns: u64,
}

impl Receiver {
    pub(crate) fn new(habit: ReceiverHabit, unready_per_mille: u64) -> Self {
        Receiver {
            habit,
            expected: 0,
            nak_sent: false,
            unready_per_mille,
            fails_at: None,
            dead: false,
            acks: 0,
            latency_ns: 1_000,
            joined_at: None,
            sendings: Vec::new(),
            progress_at_ns: 0,
        }
    }

    /// Takes a packet; gives the syndrome with the packet that its PSN names (one below 0 for an ACK of nothing).
    pub(crate) fn receive(&mut self, random: &mut Random, packet: u64, ack_request: bool) -> Option<(i64, Syndrome)> {
        if self.dead {
            return None;
        }
        let expected = self.expected as i64;
        if packet < self.expected {
            let responds = self.habit == ReceiverHabit::AcksDuplicates || ack_request;
            self.acks += u64::from(responds);
            return responds.then_some((expected - 1, Syndrome::Ack));
        }
        if packet > self.expected {
            let first = !std::mem::replace(&mut self.nak_sent, true);
            return first.then_some((expected, Syndrome::SequenceNak));
        }
        if self.fails_at == Some(packet) {
            self.dead = true;
            return Some((expected, Syndrome::Fatal(random.between(1, 3) as u8)));
        }
        if random.happens(self.unready_per_mille) {
            // It may send a sequence NAK for the same PSN afterwards.
            return Some((expected, Syndrome::RnrNak(random.one_of(&[1, 2, 5, 8, 12, 14]))));
        }
        self.expected += 1;
        self.nak_sent = false;
        self.acks += u64::from(ack_request);
        ack_request.then_some((expected, Syndrome::Ack))
    }
}
