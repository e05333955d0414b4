//! Messages of connection management as values (IBTA volume 1, sections 12.6.5 to 12.6.12).
//!
//! ```text
//!  octet  Request                    Reply                     Receipt (MRA)      Reject
//!    0    Local Comm. ID 4           Local Comm. ID 4          Local Comm. ID 4   Local Comm. ID 4
//!    4    reserved 4                 Remote Comm. ID 4         Remote Comm. ID 4  Remote Comm. ID 4
//!    8    Service ID 8               Q_Key 4                   message, 2 bits    message, 2 bits
//!    9                                                         timeout, 5 bits    length, 7 bits
//!   10                                                         private data 222   reason 2
//!   12                               Local QPN 3, reserved                        information 72
//!   16    CA GUID 8                  EECN 3, reserved                             84: private data 148
//!   20                               Starting PSN 3, reserved
//!   24    reserved 4                 Responder Resources       ReadyToUse, DisconnectReply
//!   25                               Initiator Depth             0  Local, Remote Comm. ID 4 each
//!   26                               ACK Delay 5, failover 2,    8  private data 224
//!                                    flow control 1
//!   27                               RNR Retry 3, SRQ 1        DisconnectRequest
//!   28    Q_Key 4                    CA GUID 8                   0  Local, Remote Comm. ID 4 each
//!   32    Local QPN 3                36: private data 196        8  Remote QPN 3, reserved
//!   35    Responder Resources                                   12  private data 220
//!   36    EECN 3, Initiator Depth
//!   40    EECN 3
//!   43    Remote Response Timeout 5, transport service 2, flow control 1
//!   44    Starting PSN 3
//!   47    Local Response Timeout 5, Retry Count 3
//!   48    P_Key 2
//!   50    path MTU 4, RDC 1, RNR Retry 3
//!   51    Max. CM Retries 4, SRQ 1, extended transport 3
//!   52    Local LID, Remote LID 2 each
//!   56    Local GID, Remote GID 16 each
//!   88    Flow Label 20 bits, reserved 6, rate 6
//!   92    Traffic Class, Hop Limit, SL 4 and subnet local 1, ACK Timeout 5
//!   96    the same of an alternate path, 44
//!  140    private data 92
//! ```

use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;

/// Octets of a message behind the MAD header.
pub(crate) const MESSAGE_LEN: usize = 232;

/// Octets of a message.
pub(crate) type Octets = [u8; MESSAGE_LEN];

/// Comm. IDs: the names of a connection at the sender of a message, and at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ids {
    /// The sender's.
    pub local: u32,
    /// The receiver's.
    pub remote: u32,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// REQ.
    Request(Box<Request>),
    /// MRA.
    Receipt(Receipt),
    /// REJ.
    Reject(Reject),
    /// REP.
    Reply(Reply),
    /// RTU.
    ReadyToUse(Ids),
    /// DREQ.
    DisconnectRequest(DisconnectRequest),
    /// DREP.
    DisconnectReply(Ids),
}

/// REQ: a queue pair of the sender's is to be connected. An alternate path is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the specification")]
pub struct Request {
    /// The sender's Comm. ID.
    pub local_id: u32,
    /// Who is to answer: a port of an IP address has [`crate::ip::service_id`].
    pub service_id: u64,
    pub ca_guid: u64,
    pub local_qpn: Qpn,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    /// Time for the receiver to answer: 4.096 µs times two to the power of this, 5 bits.
    pub remote_response_timeout: u8,
    /// 0: Reliable Connection.
    pub transport_service: u8,
    pub end_to_end_flow_control: bool,
    /// PSN of the receiver's first packet: what the sender's queue pair expects.
    pub starting_psn: Psn,
    /// Time in which the sender answers, 5 bits.
    pub local_response_timeout: u8,
    pub retry_count: u8,
    pub pkey: u16,
    /// 1 to 5 for 256 to 4096 octets.
    pub path_mtu_code: u8,
    pub rnr_retry: u8,
    /// Times that a message is sent again.
    pub max_retries: u8,
    pub has_srq: bool,
    pub extended_transport: u8,
    /// 0xFFFF on RoCE.
    pub local_lid: u16,
    pub remote_lid: u16,
    pub local_gid: Ipv6Addr,
    pub remote_gid: Ipv6Addr,
    /// 20 bits.
    pub flow_label: u32,
    /// Packet rate, 6 bits.
    pub rate: u8,
    pub traffic_class: u8,
    pub hop_limit: u8,
    pub service_level: u8,
    pub subnet_local: bool,
    /// ACK timeout of the sender's queue pair: 4.096 µs times two to the power of this, 5 bits.
    pub ack_timeout: u8,
    pub private_data: [u8; Request::PRIVATE],
}

/// REP: a queue pair of the sender's is connected to that of the REQ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the specification")]
pub struct Reply {
    pub ids: Ids,
    pub local_qpn: Qpn,
    /// PSN of the receiver's first packet: what the sender's queue pair expects.
    pub starting_psn: Psn,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    /// Time for an ACK, 5 bits.
    pub target_ack_delay: u8,
    pub failover: u8,
    pub end_to_end_flow_control: bool,
    pub rnr_retry: u8,
    pub has_srq: bool,
    pub ca_guid: u64,
    pub private_data: [u8; Reply::PRIVATE],
}

/// The message that a receipt or a rejection answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answered(pub u8);

impl Answered {
    /// A REQ.
    pub const REQUEST: Answered = Answered(0);
    /// A REP.
    pub const REPLY: Answered = Answered(1);
    /// Of a rejection: none.
    pub const NONE: Answered = Answered(2);
}

/// MRA: the sender has got the message, and needs time to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Comm. IDs.
    pub ids: Ids,
    /// The message that it has got.
    pub message: Answered,
    /// Time that it needs: 4.096 µs times two to the power of this, 5 bits.
    pub service_timeout: u8,
}

/// REJ: there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the specification")]
pub struct Reject {
    pub ids: Ids,
    pub message: Answered,
    pub reason: crate::Reason,
    pub information_length: u8,
    pub information: [u8; 72],
    pub private_data: [u8; Reject::PRIVATE],
}

/// DREQ: the connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisconnectRequest {
    /// Comm. IDs.
    pub ids: Ids,
    /// The receiver's queue pair.
    pub remote_qpn: Qpn,
}

/// Why octets of a message are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReservedQpn(pub(crate) u32);

impl Request {
    /// Octets of private data.
    pub const PRIVATE: usize = 92;

    /// Path MTU of the queue pair.
    pub fn path_mtu(&self) -> Option<PathMtu> {
        PathMtu::ALL.get(usize::from(self.path_mtu_code).checked_sub(1)?).copied()
    }

    pub(crate) fn parse(octets: &Octets) -> Result<Self, ReservedQpn> {
        let path = u32_at(octets, 88);
        Ok(Request {
            local_id: u32_at(octets, 0),
            service_id: u64_at(octets, 8),
            ca_guid: u64_at(octets, 16),
            local_qpn: qpn_at(octets, 32)?,
            responder_resources: octets[35],
            initiator_depth: octets[39],
            remote_response_timeout: octets[43] >> 3,
            transport_service: octets[43] >> 1 & 3,
            end_to_end_flow_control: octets[43] & 1 != 0,
            starting_psn: psn_at(octets, 44),
            local_response_timeout: octets[47] >> 3,
            retry_count: octets[47] & 7,
            pkey: u16_at(octets, 48),
            path_mtu_code: octets[50] >> 4,
            rnr_retry: octets[50] & 7,
            max_retries: octets[51] >> 4,
            has_srq: octets[51] & 8 != 0,
            extended_transport: octets[51] & 7,
            local_lid: u16_at(octets, 52),
            remote_lid: u16_at(octets, 54),
            local_gid: Ipv6Addr::from(array_at::<16>(octets, 56)),
            remote_gid: Ipv6Addr::from(array_at::<16>(octets, 72)),
            flow_label: path >> 12,
            rate: (path & 0x3F) as u8,
            traffic_class: octets[92],
            hop_limit: octets[93],
            service_level: octets[94] >> 4,
            subnet_local: octets[94] & 8 != 0,
            ack_timeout: octets[95] >> 3,
            private_data: array_at(octets, 140),
        })
    }

    pub(crate) fn emit(&self, octets: &mut Octets) {
        put(octets, 0, self.local_id.to_be_bytes());
        put(octets, 8, self.service_id.to_be_bytes());
        put(octets, 16, self.ca_guid.to_be_bytes());
        put(octets, 32, self.local_qpn.to_octets());
        octets[35] = self.responder_resources;
        octets[39] = self.initiator_depth;
        octets[43] = self.remote_response_timeout << 3
            | (self.transport_service & 3) << 1
            | u8::from(self.end_to_end_flow_control);
        put(octets, 44, self.starting_psn.to_octets());
        octets[47] = self.local_response_timeout << 3 | self.retry_count & 7;
        put(octets, 48, self.pkey.to_be_bytes());
        octets[50] = self.path_mtu_code << 4 | self.rnr_retry & 7;
        octets[51] = self.max_retries << 4 | u8::from(self.has_srq) << 3 | self.extended_transport & 7;
        put(octets, 52, self.local_lid.to_be_bytes());
        put(octets, 54, self.remote_lid.to_be_bytes());
        put(octets, 56, self.local_gid.octets());
        put(octets, 72, self.remote_gid.octets());
        put(octets, 88, (self.flow_label << 12 | u32::from(self.rate & 0x3F)).to_be_bytes());
        octets[92] = self.traffic_class;
        octets[93] = self.hop_limit;
        octets[94] = self.service_level << 4 | u8::from(self.subnet_local) << 3;
        octets[95] = self.ack_timeout << 3;
        put(octets, 140, self.private_data);
    }
}

impl Reply {
    /// Octets of private data.
    pub const PRIVATE: usize = 196;

    pub(crate) fn parse(octets: &Octets) -> Result<Self, ReservedQpn> {
        Ok(Reply {
            ids: Ids::parse(octets),
            local_qpn: qpn_at(octets, 12)?,
            starting_psn: psn_at(octets, 20),
            responder_resources: octets[24],
            initiator_depth: octets[25],
            target_ack_delay: octets[26] >> 3,
            failover: octets[26] >> 1 & 3,
            end_to_end_flow_control: octets[26] & 1 != 0,
            rnr_retry: octets[27] >> 5,
            has_srq: octets[27] & 16 != 0,
            ca_guid: u64_at(octets, 28),
            private_data: array_at(octets, 36),
        })
    }

    pub(crate) fn emit(&self, octets: &mut Octets) {
        self.ids.emit(octets);
        put(octets, 12, self.local_qpn.to_octets());
        put(octets, 20, self.starting_psn.to_octets());
        octets[24] = self.responder_resources;
        octets[25] = self.initiator_depth;
        octets[26] = self.target_ack_delay << 3 | (self.failover & 3) << 1 | u8::from(self.end_to_end_flow_control);
        octets[27] = self.rnr_retry << 5 | u8::from(self.has_srq) << 4;
        put(octets, 28, self.ca_guid.to_be_bytes());
        put(octets, 36, self.private_data);
    }
}

impl Receipt {
    pub(crate) fn parse(octets: &Octets) -> Self {
        Receipt { ids: Ids::parse(octets), message: Answered(octets[8] >> 6), service_timeout: octets[9] >> 3 }
    }

    pub(crate) fn emit(&self, octets: &mut Octets) {
        self.ids.emit(octets);
        octets[8] = self.message.0 << 6;
        octets[9] = self.service_timeout << 3;
    }
}

impl Reject {
    /// Octets of private data.
    pub const PRIVATE: usize = 148;

    pub(crate) fn parse(octets: &Octets) -> Self {
        Reject {
            ids: Ids::parse(octets),
            message: Answered(octets[8] >> 6),
            information_length: octets[9] >> 1,
            reason: crate::Reason(u16_at(octets, 10)),
            information: array_at(octets, 12),
            private_data: array_at(octets, 84),
        }
    }

    pub(crate) fn emit(&self, octets: &mut Octets) {
        self.ids.emit(octets);
        octets[8] = self.message.0 << 6;
        octets[9] = self.information_length << 1;
        put(octets, 10, self.reason.0.to_be_bytes());
        put(octets, 12, self.information);
        put(octets, 84, self.private_data);
    }
}

impl DisconnectRequest {
    pub(crate) fn parse(octets: &Octets) -> Result<Self, ReservedQpn> {
        Ok(DisconnectRequest { ids: Ids::parse(octets), remote_qpn: qpn_at(octets, 8)? })
    }

    pub(crate) fn emit(&self, octets: &mut Octets) {
        self.ids.emit(octets);
        put(octets, 8, self.remote_qpn.to_octets());
    }
}

impl Ids {
    pub(crate) fn parse(octets: &Octets) -> Self {
        Ids { local: u32_at(octets, 0), remote: u32_at(octets, 4) }
    }

    pub(crate) fn emit(self, octets: &mut Octets) {
        put(octets, 0, self.local.to_be_bytes());
        put(octets, 4, self.remote.to_be_bytes());
    }

    /// Those of an answer.
    pub fn swapped(self) -> Self {
        Ids { local: self.remote, remote: self.local }
    }
}

// Every place is a constant that leaves room for the field.

pub(crate) fn array_at<const N: usize>(octets: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| octets[at + index])
}

fn u16_at(octets: &Octets, at: usize) -> u16 {
    u16::from_be_bytes(array_at(octets, at))
}

fn u32_at(octets: &Octets, at: usize) -> u32 {
    u32::from_be_bytes(array_at(octets, at))
}

fn u64_at(octets: &Octets, at: usize) -> u64 {
    u64::from_be_bytes(array_at(octets, at))
}

fn psn_at(octets: &Octets, at: usize) -> Psn {
    Psn::from_octets(array_at(octets, at))
}

fn qpn_at(octets: &Octets, at: usize) -> Result<Qpn, ReservedQpn> {
    let qpn = Qpn::from_octets(array_at(octets, at));
    if qpn.is_connected() { Ok(qpn) } else { Err(ReservedQpn(qpn.get())) }
}

pub(crate) fn put<const N: usize>(octets: &mut [u8], at: usize, field: [u8; N]) {
    octets[at..at + N].copy_from_slice(&field);
}
