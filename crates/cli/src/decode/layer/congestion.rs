//! What tells of congestion, and of the connections that meet it.

use super::Hex64;
use serde::Serialize;
use std::net::Ipv6Addr;

/// Priority flow control (IEEE 802.1Qbb).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Pfc {
    /// The class-enable vector: a bit for each class, class 0 the lowest.
    pub(crate) class_enable: u8,
    /// Those whose bit is set.
    pub(crate) classes: Vec<PausedClass>,
}

/// What a PFC frame says of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PausedClass {
    pub(crate) class: usize,
    /// Of 512 bit times each; 0 resumes.
    pub(crate) quanta: u16,
    /// The same as a time, where the link's rate is known.
    pub(crate) pause_ns: Option<u64>,
}

/// PAUSE (IEEE 802.3): of the whole link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Pause {
    pub(crate) quanta: u16,
    pub(crate) pause_ns: Option<u64>,
}

/// A congestion notification to an END.C SID (draft-hu-acn-rocev2, D60).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Notification {
    /// `pause` or `resume`.
    pub(crate) ask: &'static str,
    /// Of the queue.
    pub(crate) traffic_class: u8,
    /// How full it is: 0 at XON, 128 at XOFF.
    pub(crate) level: u8,
    pub(crate) sequence: u32,
    /// How long a pause lasts if nothing more is said.
    pub(crate) hold_us: u32,
    /// The node.
    pub(crate) congested: Ipv6Addr,
}

/// What an option says, where it is one that is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OptionMeaning {
    FastCnp(FastCnp),
    IoamTrace(IoamTrace),
}

/// What makes a CNP a Fast CNP (draft-xiao-rtgwg-rocev2-fast-cnp, section 4).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct FastCnp {
    /// 1: the address only. 2: the trace as well.
    pub(crate) option: u8,
    /// Destination of the packet that met congestion.
    pub(crate) original_destination: Ipv6Addr,
    /// Its trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<IoamTrace>,
}

/// IOAM pre-allocated trace (RFC 9197 section 4.4).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct IoamTrace {
    pub(crate) namespace_id: u16,
    /// 24 bits, bit 0 of the RFC being the highest.
    pub(crate) trace_type: u32,
    pub(crate) node_len_words: u8,
    pub(crate) remaining_len_words: u8,
    pub(crate) overflow: bool,
    pub(crate) loopback: bool,
    pub(crate) active: bool,
    /// The newest first.
    pub(crate) nodes: Vec<IoamNode>,
}

/// What one node has written: only what it knew of what it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct IoamNode {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hop_limit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_id_wide: Option<Hex64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ingress: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) egress: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp_seconds: Option<u32>,
    /// The namespace says in which unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp_fraction: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transit_delay_ns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace_data: Option<u32>,
    /// The namespace says in which unit: nodes of this project count octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checksum_complement: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace_data_wide: Option<Hex64>,
    /// The same, as nodes of this project mean it in traces for HPCC++.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link_load: Option<LinkLoad>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) buffer_occupancy: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) opaque_schema_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) opaque: Option<String>,
}

/// How much a link carries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LinkLoad {
    pub(crate) rate_mbit_per_s: u32,
    /// Modulo 2^40.
    pub(crate) sent_octets: u64,
}

/// Datagram Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Deth {
    pub(crate) qkey: u32,
    pub(crate) source_qpn: u32,
}

/// Message of the RDMA Communication Manager.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cm {
    pub(crate) attribute_id: u16,
    /// The message's name, where it has one.
    pub(crate) name: Option<&'static str>,
    pub(crate) transaction_id: Hex64,
    /// The sender's name for the connection.
    pub(crate) local_id: Option<u32>,
    /// The other side's.
    pub(crate) remote_id: Option<u32>,
    /// The queue pair that the sender connects.
    pub(crate) local_qpn: Option<u32>,
    /// The queue pair whose connection is over.
    pub(crate) remote_qpn: Option<u32>,
}
