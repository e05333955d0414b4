//! Drop reasons, and counters of queue pairs.

use core::fmt;

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The reason why a packet was refused. Each has its counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DropReason { $($(#[$doc])* $name,)* }

        impl DropReason {
            /// Every reason.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$name,)*];

            /// The reason as a name for counters.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$name => $text,)* }
            }
        }
    };
}

drop_reasons! {
    /// Fewer octets than the lengths in its headers.
    Truncated = "truncated",
    /// The first slice ends before the last extended transport header does.
    HeadersNotContiguous = "headers_not_contiguous",
    /// IP version other than 6.
    NotIpv6 = "not_ipv6",
    /// Something else than UDP follows the IPv6 header. Of extension headers only Hop-by-Hop Options may reach the
    /// host, and the Destination Options of a Fast CNP.
    NotUdp = "not_udp",
    /// UDP destination port other than 4791.
    NotRoce = "not_roce",
    /// UDP length and IPv6 payload length disagree.
    UdpLength = "udp_length",
    /// A UDP checksum that is not zero and not right.
    BadUdpChecksum = "bad_udp_checksum",
    /// For another address.
    NotOurAddress = "not_our_address",
    /// Transport header version other than 0.
    TransportVersion = "transport_version",
    /// An opcode that is no Reliable Connection's and no CNP's.
    UnknownOpcode = "unknown_opcode",
    /// The pad count does not bring the payload to a multiple of four octets.
    PadCount = "pad_count",
    /// No such queue pair.
    UnknownQueuePair = "unknown_queue_pair",
    /// From another address than the queue pair's peer.
    UnexpectedSource = "unexpected_source",
    /// The partition key does not match.
    PartitionKey = "partition_key",
    /// The ICRC is wrong.
    BadIcrc = "bad_icrc",
    /// Its payload was cut off on the way (D88).
    Trimmed = "trimmed",
    /// The queue pair has failed.
    QueuePairInError = "queue_pair_in_error",
    /// A request ahead of the one expected.
    OutOfSequence = "out_of_sequence",
    /// A request that needs a posted receive, without one.
    ReceiverNotReady = "receiver_not_ready",
    /// A request that makes no sense here; answered with NAK invalid request.
    InvalidRequest = "invalid_request",
    /// A request that key, bounds or access rights forbid; answered with NAK remote access error.
    RemoteAccess = "remote_access",
    /// A repeated READ outside the original range, or without room for it.
    InvalidDuplicate = "invalid_duplicate",
    /// A response to what has been acknowledged already.
    StaleResponse = "stale_response",
    /// A response to what was never sent.
    AcknowledgesUnsent = "acknowledges_unsent",
    /// A READ response behind one that is missing.
    MissingReadResponse = "missing_read_response",
    /// A response of another kind or length than the request calls for.
    UnexpectedResponse = "unexpected_response",
    /// A syndrome that the IBTA reserves.
    ReservedSyndrome = "reserved_syndrome",
    /// An option reaches beyond its header.
    OptionOverrun = "option_overrun",
    /// An unknown option that must not be skipped (RFC 8200 section 4.2).
    UnknownOption = "unknown_option",
    /// A Fast CNP, and the endpoint takes none (FC-5-4).
    FastCnpDisabled = "fast_cnp_disabled",
    /// A Fast CNP from outside the access list (FC-5-3).
    FastCnpSource = "fast_cnp_source",
    /// A Fast CNP option that is too short or too long.
    FastCnpLength = "fast_cnp_length",
    /// A Fast CNP option anywhere but directly before UDP.
    FastCnpPlace = "fast_cnp_place",
    /// Two Fast CNP options.
    FastCnpTwice = "fast_cnp_twice",
    /// A Fast CNP with an invalid trace, or one whose length exceeds the option.
    FastCnpTrace = "fast_cnp_trace",
    /// A Fast CNP option in something else than a CNP.
    FastCnpOpcode = "fast_cnp_opcode",
    /// A Fast CNP too soon after the one before it.
    FastCnpTooOften = "fast_cnp_too_often",
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for DropReason {}

/// A counter for each reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    pub(crate) fn new() -> Self {
        Drops([0; DropReason::ALL.len()])
    }

    pub(crate) fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Packets refused for this reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets refused.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|reason| (*reason, self.get(*reason)))
    }
}

/// Packets and octets of a queue pair.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePairCounters {
    /// Request packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Request packets whose PSN had been sent before.
    pub packets_retransmitted: u64,
    /// Payload octets of requests sent, retransmissions included.
    pub payload_octets_sent: u64,
    /// Request packets that the peer has acknowledged.
    pub packets_acknowledged: u64,
    /// READ response packets sent.
    pub read_responses_sent: u64,
    /// Positive ACKs sent.
    pub acks_sent: u64,
    /// NAKs sent, receiver-not-ready ones not counted.
    pub naks_sent: u64,
    /// Receiver-not-ready NAKs sent.
    pub rnr_naks_sent: u64,
    pub cnps_sent: u64,
    /// Positive ACKs received.
    pub acks_received: u64,
    /// NAKs received, receiver-not-ready ones not counted.
    pub naks_received: u64,
    pub rnr_naks_received: u64,
    pub cnps_received: u64,
    /// Fast CNPs taken.
    pub fast_cnps_received: u64,
    /// Data packets received with an IOAM trace that could not be returned: damaged, or too long.
    pub traces_not_returned: u64,
    /// Fast CNPs sent that return a trace.
    pub traces_returned: u64,
    /// Requests received that had been trimmed on their way (D88).
    pub trimmed_received: u64,
    /// Requests received that had been received before.
    pub duplicates_received: u64,
    /// Payload octets of requests received in sequence.
    pub payload_octets_received: u64,
    /// Times that packets got another UDP source port and flow label (D89).
    pub detours: u64,
    /// Times the ACK timer ran out.
    pub timeouts: u64,
}
