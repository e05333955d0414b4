//! Notifications of congestion, and the messages that set up connections.

use super::Hex64;
use serde::Serialize;
use std::net::Ipv6Addr;

/// Priority flow control (IEEE 802.1Qbb).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pfc {
    /// The class-enable vector: a bit for each class, class 0 the lowest.
    pub class_enable: u8,
    /// Those whose bit is set.
    pub classes: Vec<PausedClass>,
}

/// State of one class in a PFC frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PausedClass {
    pub class: usize,
    /// Of 512 bit times each; 0 resumes.
    pub quanta: u16,
    /// The same as a time, where the link's rate is known.
    pub pause_ns: Option<u64>,
}

/// PAUSE (IEEE 802.3): of the whole link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pause {
    pub quanta: u16,
    pub pause_ns: Option<u64>,
}

/// A congestion notification to an END.C SID (draft-hu-acn-rocev2, D60).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Notification {
    /// `pause` or `resume`.
    pub ask: &'static str,
    /// Of the queue.
    pub traffic_class: u8,
    /// Fill level: 0 at XON, 128 at XOFF.
    pub level: u8,
    pub sequence: u32,
    /// Duration of a pause without a further notification, in microseconds.
    pub hold_us: u32,
    /// The node.
    pub congested: Ipv6Addr,
}

/// Content of an option of a known type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionMeaning {
    FastCnp(FastCnp),
    IoamTrace(IoamTrace),
}

/// The option that makes a CNP a Fast CNP (draft-xiao-rtgwg-rocev2-fast-cnp, section 4).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FastCnp {
    /// 1: the address only. 2: the trace as well.
    pub option: u8,
    /// Destination of the packet that met congestion.
    pub original_destination: Ipv6Addr,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<IoamTrace>,
}

/// IOAM pre-allocated trace (RFC 9197 section 4.4).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoamTrace {
    pub namespace_id: u16,
    /// 24 bits, bit 0 of the RFC being the highest.
    pub trace_type: u32,
    pub node_len_words: u8,
    pub remaining_len_words: u8,
    pub overflow: bool,
    pub loopback: bool,
    pub active: bool,
    /// The newest first.
    pub nodes: Vec<IoamNode>,
}

/// Data of one node: the requested fields that it had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoamNode {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_limit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id_wide: Option<Hex64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_seconds: Option<u32>,
    /// The namespace defines the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_fraction: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transit_delay_ns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_data: Option<u32>,
    /// The namespace defines the unit: nodes of this project count octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum_complement: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_data_wide: Option<Hex64>,
    /// The same, as nodes of this project mean it in traces for HPCC++.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_load: Option<LinkLoad>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_occupancy: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque_schema_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkLoad {
    pub rate_mbit_per_s: u32,
    /// Modulo 2^40.
    pub sent_octets: u64,
}

/// Datagram Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deth {
    pub qkey: u32,
    pub source_qpn: u32,
}

/// Message of the RDMA Communication Manager.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cm {
    pub attribute_id: u16,
    /// The message's name, where it has one.
    pub name: Option<&'static str>,
    pub transaction_id: Hex64,
    /// The sender's name for the connection.
    pub local_id: Option<u32>,
    /// The other side's.
    pub remote_id: Option<u32>,
    /// The queue pair that the sender connects.
    pub local_qpn: Option<u32>,
    /// The queue pair whose connection is over.
    pub remote_qpn: Option<u32>,
}
