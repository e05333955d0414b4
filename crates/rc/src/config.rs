//! Configuration of an endpoint and of a queue pair.

use crate::fast_cnp::FastCnpConfig;
use crate::rate::{RateAlgorithm, RateError};
use crate::trace::TraceRequest;
use core::net::Ipv6Addr;
use srdma_wire::{PathMtu, Psn, Qpn, codepoints};

/// The usual value of [`QueuePairConfig::cnp_interval_ns`], in nanoseconds: at most one CNP per flow and interval
/// (FC-3-2), as at the receiver in the DCQCN paper (SIGCOMM 2015, section 3.1).
pub const CNP_INTERVAL_NS: u64 = 50_000;

/// The usual value of [`QueuePairConfig::detour_interval_ns`], in nanoseconds: two CNP intervals, so that notifications
/// about the previous path have arrived.
pub const DETOUR_INTERVAL_NS: u64 = 100_000;

/// The most octets a message may have (IBTA volume 1, section 9.7.8).
pub const MAX_MESSAGE_OCTETS: u32 = 1 << 31;

/// Configuration of all queue pairs of an endpoint.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The host's address: source of what is sent, destination of what is accepted.
    pub address: Ipv6Addr,
    /// Partition key. A packet's key must agree in its low 15 bits, and one of the two must be a full member.
    pub pkey: u16,
    /// Hop limit of packets sent.
    pub hop_limit: u8,
    pub cnp_traffic_class: u8,
    /// Whether the ICRC of received packets is verified. Off only where links are known not to damage packets.
    pub verify_icrc: bool,
    /// Octets that a packet takes on the link beside its own: rates count octets on the link. 38 for Ethernet:
    /// preamble, header, FCS and gap.
    pub link_overhead_octets: u16,
    /// CNPs tell how many queue pairs have marked packets, and how often each gets one: all together have one in so
    /// many nanoseconds, each not more often than its `cnp_interval_ns` (D284). `None`: CNPs tell nothing.
    pub cnp_pace_ns: Option<u64>,
    /// Accepted Fast CNPs; `None`: none (FC-5-4).
    pub fast_cnp: Option<FastCnpConfig>,
    /// A trimmed packet causes a NAK at once (D88); otherwise it counts as damaged.
    pub answers_trimmed: bool,
}

impl EndpointConfig {
    /// The usual settings for a host at `address`.
    pub fn new(address: Ipv6Addr) -> Self {
        EndpointConfig {
            address,
            pkey: codepoints::DEFAULT_PKEY,
            hop_limit: 64,
            cnp_traffic_class: 48 << 2,
            verify_icrc: true,
            link_overhead_octets: 38,
            cnp_pace_ns: None,
            fast_cnp: None,
            answers_trimmed: false,
        }
    }
}

/// Differences between implementations, and from the text of the IBTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// PSNs that may be outstanding, at most 2^22.
    pub max_outstanding_psns: u32,
    /// An acknowledgement is requested by the last packet of a message and by every so many-th packet, counted across
    /// messages. At most `max_outstanding_psns`.
    pub ack_request_interval: u32,
    /// Positive ACKs that wait to be sent are merged into the newest one; otherwise each AckReq gets its own.
    pub coalesces_acks: bool,
    /// An ACK of PSNs that were never sent counts as an ACK of all that was sent; otherwise it is dropped.
    pub believes_unsent_acks: bool,
    /// After going back once, further NAKs are not acted upon until a real ACK comes, but each spends a retry.
    pub one_go_back_until_ack: bool,
    /// Any response restarts the ACK timer; otherwise only one that acknowledges something new.
    pub any_response_rearms_timer: bool,
    /// A retry count of 7 means unlimited; otherwise it means seven.
    pub retry_count_7_is_unlimited: bool,
    /// A packet behind the one that was answered "receiver not ready" gets a sequence NAK.
    pub sequence_nak_after_not_ready: bool,
    /// A duplicate that comes before the first request is answered with PSN 0xFFFFFF; otherwise with the PSN before the
    /// first.
    pub acks_all_ones_before_first_request: bool,
    /// After an RNR NAK the message that the peer is not ready for is sent alone, until it is acknowledged; otherwise
    /// all that is outstanding is sent again each time.
    pub sends_one_message_until_ready: bool,
    /// A sequence NAK has the packet that it names sent again alone, unless that is a READ; otherwise everything from
    /// there on is.
    pub repeats_selectively: bool,
    /// Packets that come before the expected one are kept until it comes, as many as `max_outstanding_psns`; otherwise
    /// they are dropped.
    pub receives_out_of_order: bool,
    /// Adaptive retransmission: the first timeout is 1/16 of the ACK timeout, and each further one twice the one
    /// before, up to the ACK timeout. Those below it spend no retry.
    pub adapts_timeouts: bool,
}

impl Habits {
    /// An endpoint with all checks on.
    pub const fn strict() -> Self {
        Habits {
            max_outstanding_psns: 128,
            ack_request_interval: 66,
            coalesces_acks: true,
            believes_unsent_acks: false,
            one_go_back_until_ack: false,
            any_response_rearms_timer: false,
            retry_count_7_is_unlimited: false,
            sequence_nak_after_not_ready: false,
            acks_all_ones_before_first_request: false,
            sends_one_message_until_ready: false,
            repeats_selectively: false,
            receives_out_of_order: false,
            adapts_timeouts: false,
        }
    }

    /// The same as a NIC with selective repeat, out-of-order reception and adaptive retransmission, from published
    /// descriptions of ConnectX; never compared with one (D228).
    pub const fn with_selective_repeat(self) -> Self {
        Habits { repeats_selectively: true, receives_out_of_order: true, adapts_timeouts: true, ..self }
    }

    /// The observed behaviour of the soft-RoCE driver of Linux 6.1.
    pub const fn soft_roce() -> Self {
        Habits {
            max_outstanding_psns: 128,
            ack_request_interval: 66,
            coalesces_acks: false,
            believes_unsent_acks: true,
            one_go_back_until_ack: true,
            any_response_rearms_timer: true,
            retry_count_7_is_unlimited: true,
            sequence_nak_after_not_ready: true,
            acks_all_ones_before_first_request: true,
            sends_one_message_until_ready: false,
            repeats_selectively: false,
            receives_out_of_order: false,
            adapts_timeouts: false,
        }
    }
}

impl Default for Habits {
    fn default() -> Self {
        Habits::strict()
    }
}

/// A queue pair, connected from the start.
#[derive(Clone, Debug)]
pub struct QueuePairConfig {
    /// Its own number.
    pub qpn: Qpn,
    /// The peer's address; a group's Proxy Address for multicast (MT-5.1-1). Packets from elsewhere are dropped.
    pub remote_address: Ipv6Addr,
    /// The peer's queue pair; the Designated QPN for multicast (MT-5.1-1).
    pub remote_qpn: Qpn,
    /// PSN of the first packet sent.
    pub sq_psn: Psn,
    /// PSN of the first packet expected: the peer's `sq_psn` (D28).
    pub rq_psn: Psn,
    /// Payload of a full packet; the same at the peer.
    pub path_mtu: PathMtu,
    /// Traffic class of packets sent: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label of packets sent; `None` derives one from the two QPNs.
    pub flow_label: Option<u32>,
    /// UDP source port of packets sent; `None` folds the flow label into one.
    pub udp_source_port: Option<u16>,
    /// Local ACK timeout t: 4.096 µs · 2^t, at most 31; 0 means none.
    pub ack_timeout: u8,
    /// Number of retries, 0–7, after a timeout or a sequence NAK without progress in between.
    pub retry_count: u8,
    /// Number of retries, 0–7, after a receiver-not-ready NAK; 7 means unlimited.
    pub rnr_retry: u8,
    /// Timer code, 0–31, of the receiver-not-ready NAKs sent.
    pub min_rnr_timer: u8,
    /// READs that may be outstanding, in either direction. The same at the peer.
    pub max_outstanding_reads: u16,
    /// Work requests that may be posted and not completed.
    pub send_queue_depth: usize,
    /// Receives that may be posted and not completed.
    pub receive_queue_depth: usize,
    /// A packet marked CE is answered with a CNP, at most one in so many nanoseconds (FC-3-2); `None`: never. Usually
    /// [`CNP_INTERVAL_NS`].
    pub cnp_interval_ns: Option<u64>,
    /// An ACK has BECN set if the packet that requested it was marked CE (D283).
    pub echoes_marks: bool,
    /// Rate control; `None`: the port is the only limit. For switches to mark packets rather than drop them,
    /// `traffic_class` has to announce support by the sender: ECT(0), its low bits 2.
    pub rate: Option<RateAlgorithm>,
    /// The IOAM trace that data packets carry; `None`: none. A packet is longer by it, whatever the path MTU.
    pub trace: Option<TraceRequest>,
    /// Traces of data packets are returned to the sender by Fast CNPs, at most one in so many nanoseconds; `None`:
    /// never. The peer has to have this host on its access list.
    pub trace_return_interval_ns: Option<u64>,
    /// After a CNP or a switch's Fast CNP, the queue pair continues with another UDP source port and
    /// flow label, so that switches which choose by hash may choose otherwise; at most once in so many nanoseconds
    /// (D89).
    /// `None`: never. Usually [`DETOUR_INTERVAL_NS`].
    pub detour_interval_ns: Option<u64>,
    /// Behaviour where implementations differ.
    pub habits: Habits,
}

impl QueuePairConfig {
    /// The usual settings; both PSNs start at zero.
    pub fn new(qpn: Qpn, remote_address: Ipv6Addr, remote_qpn: Qpn) -> Self {
        QueuePairConfig {
            qpn,
            remote_address,
            remote_qpn,
            sq_psn: Psn::new(0),
            rq_psn: Psn::new(0),
            path_mtu: PathMtu::Octets4096,
            traffic_class: 0,
            flow_label: None,
            udp_source_port: None,
            ack_timeout: 14,
            retry_count: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
            max_outstanding_reads: 16,
            send_queue_depth: 1024,
            receive_queue_depth: 1024,
            cnp_interval_ns: None,
            echoes_marks: false,
            rate: None,
            trace: None,
            trace_return_interval_ns: None,
            detour_interval_ns: None,
            habits: Habits::strict(),
        }
    }

    /// The ACK timeout in nanoseconds; `None` if it is infinite.
    pub fn ack_timeout_ns(&self) -> Option<u64> {
        (self.ack_timeout != 0).then(|| 4096 << self.ack_timeout.min(31))
    }

    /// The flow label of packets sent, 20 bits.
    pub fn effective_flow_label(&self) -> u32 {
        self.flow_label.unwrap_or_else(|| {
            let mut value = u64::from(self.qpn.get()) * u64::from(self.remote_qpn.get());
            value ^= value >> 20;
            value ^= value >> 40;
            value as u32 & 0xF_FFFF
        })
    }

    /// The UDP source port of packets sent. Unless one is chosen, it lies in 49152–65535: the flow label folded to 14
    /// bits.
    pub fn source_port(&self) -> u16 {
        self.udp_source_port.unwrap_or_else(|| {
            let label = self.effective_flow_label();
            0xC000 | ((label & 0x3FFF) ^ (label >> 14 & 0x3F)) as u16
        })
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let limit = |field, found: u32, least, most| {
            if found < least || found > most {
                Err(ConfigError::OutOfRange { qpn: self.qpn, field, found, least, most })
            } else {
                Ok(())
            }
        };
        limit("qpn", self.qpn.get(), 2, 0xFF_FFFF)?;
        limit("remote_qpn", self.remote_qpn.get(), 2, 0xFF_FFFF)?;
        limit("flow_label", self.flow_label.unwrap_or(0), 0, 0xF_FFFF)?;
        limit("ack_timeout", self.ack_timeout.into(), 0, 31)?;
        limit("retry_count", self.retry_count.into(), 0, 7)?;
        limit("rnr_retry", self.rnr_retry.into(), 0, 7)?;
        limit("min_rnr_timer", self.min_rnr_timer.into(), 0, 31)?;
        limit("max_outstanding_psns", self.habits.max_outstanding_psns, 1, 1 << 22)?;
        limit("ack_request_interval", self.habits.ack_request_interval, 1, u32::MAX)
    }
}

/// The reason why a queue pair was not made.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A setting is outside its range.
    #[error("queue pair {qpn}: {field} must be {least} to {most}, found {found}")]
    OutOfRange {
        /// The queue pair.
        qpn: Qpn,
        /// Name of the setting.
        field: &'static str,
        found: u32,
        /// The least value allowed.
        least: u32,
        /// The greatest value allowed.
        most: u32,
    },
    /// A parameter of the rate control is outside its range.
    #[error("queue pair {qpn}: rate control: {error}")]
    Rate {
        /// The queue pair.
        qpn: Qpn,
        /// Which, and why.
        error: RateError,
    },
    /// The trace that packets are to carry is empty, or does not fit into an option.
    #[error("queue pair {qpn}: a trace of {hops} hops of {words} words must have 1 to 61 words")]
    Trace {
        /// The queue pair.
        qpn: Qpn,
        hops: u8,
        /// Words of four octets that each hop writes.
        words: usize,
    },
    /// The endpoint has no queue pair of this number.
    #[error("there is no queue pair {0}")]
    Unknown(Qpn),
    /// The endpoint has a queue pair of this number.
    #[error("queue pair {0} exists already")]
    Exists(Qpn),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> QueuePairConfig {
        let qpn = |number| Qpn::new(number).expect("24 bits");
        QueuePairConfig::new(qpn(0x11), Ipv6Addr::LOCALHOST, qpn(0x22))
    }

    #[test]
    fn the_flow_label_is_folded_into_the_source_port() {
        for (flow_label, port) in
            [(Some(0), 0xC000), (Some(0xF_FFFF), 0xFFC0), (Some(0x4000), 0xC001), (Some(0x3FFF), 0xFFFF)]
        {
            assert_eq!(QueuePairConfig { flow_label, ..config() }.source_port(), port);
        }
        assert_eq!(config().source_port(), 0xC242, "0x11 times 0x22 is 0x242");
        assert_eq!(QueuePairConfig { udp_source_port: Some(4791), ..config() }.source_port(), 4791);
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        assert_eq!(config().validate(), Ok(()));
        let error = QueuePairConfig { ack_timeout: 32, ..config() }.validate().expect_err("too much");
        assert_eq!(error.to_string(), "queue pair 0x11: ack_timeout must be 0 to 31, found 32");
        let habits = Habits { max_outstanding_psns: 0, ..Habits::strict() };
        let error = QueuePairConfig { habits, ..config() }.validate().expect_err("nothing could be sent");
        assert_eq!(error.to_string(), "queue pair 0x11: max_outstanding_psns must be 1 to 4194304, found 0");
        let remote_qpn = Qpn::new(1).expect("24 bits");
        assert!(QueuePairConfig { remote_qpn, ..config() }.validate().is_err(), "0 and 1 are reserved");
    }
}
