//! The policy of a group, fixed at its creation.

use crate::document;
use serde::{Deserialize, Serialize};
use srdma_wire::PathMtu;
use std::time::Duration;

/// Interpretation of the draft by a group's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// The forwarding rule R1–R7.
    #[default]
    Default,
    /// The draft's words, to be measured beside it: forward an ACK for each ACK (D19), a NAK at once (D20).
    Literal,
}

/// When a node sends CNPs upstream (D29, D238).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CnpMode {
    /// The first CNP at once, then one each time the window expires while counts come.
    Leading,
    /// One each time the window expires (MT-5.3.3-2).
    #[default]
    Trailing,
}

/// Handling of a receiver that is stalled or has failed (D24, D25).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// As in a Reliable Connection: the source's queue pair fails, so no source ever assumes a copy that does not
    /// exist.
    #[default]
    Strict,
    /// Its edge requests its eviction, and the group continues without it.
    Evict,
}

/// Source of an edge's receiver lists (D6, D7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListMode {
    /// From the End.MT TLVs of each data packet.
    Tlv,
    /// From the group's record, at set-up.
    Provisioned,
    /// TLV while a packet of full RDMA path MTU fits the link MTU, else provisioned.
    #[default]
    Auto,
}

/// Nodes of a group that repair losses (D150).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepairMode {
    /// None: the source sends again for all receivers.
    #[default]
    Off,
    /// The edges.
    Edge,
    /// All nodes that can.
    Tree,
}

/// In-network repair of a group (D150).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepairPolicy {
    /// Off, edge or tree.
    pub mode: RepairMode,
    /// Octets of payload that the source has in flight at most: what each node's buffer has room for. A source that has
    /// more is not repaired beyond.
    pub window_octets: u32,
    /// The source's ACK timeout: nodes repair within it.
    #[serde(rename = "ack_timeout_ns", with = "document::nanoseconds")]
    pub ack_timeout: Duration,
    /// Round trip between neighbours that nodes assume until they have measured it.
    #[serde(rename = "round_trip_ns", with = "document::nanoseconds")]
    pub round_trip: Duration,
}

impl RepairPolicy {
    /// The greatest window, in packets: PSNs in a buffer are compared serially.
    pub const MOST_PACKETS: u32 = 1 << 16;

    /// Whether no node repairs.
    pub fn is_off(&self) -> bool {
        self.mode == RepairMode::Off
    }

    /// The window in packets of this path MTU: what a buffer has room for.
    pub fn window_packets(&self, path_mtu: PathMtu) -> u32 {
        self.window_octets.div_ceil(path_mtu.octets()).clamp(1, Self::MOST_PACKETS)
    }
}

impl Default for RepairPolicy {
    /// Off; 512 KiB are more than the bandwidth-delay product of 100 Gbit/s and 40 us, and ACK timeout code 14, which
    /// many programs set.
    fn default() -> Self {
        RepairPolicy {
            mode: RepairMode::Off,
            window_octets: 512 << 10,
            ack_timeout: Duration::from_nanos(4_096 << 14),
            round_trip: Duration::from_micros(100),
        }
    }
}

/// A Differentiated Services codepoint (RFC 2474).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Dscp(u8);

impl Dscp {
    /// CS6, with which NICs send CNPs.
    pub const CS6: Dscp = Dscp(48);

    /// The codepoint of an IPv6 Traffic Class.
    pub fn of_traffic_class(traffic_class: u8) -> Self {
        Dscp(traffic_class >> 2)
    }

    /// A Traffic Class with this codepoint, not ECN-capable.
    pub fn traffic_class(self) -> u8 {
        self.0 << 2
    }
}

/// A number that is no codepoint: they end with 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no DSCP: they end with 63")]
pub struct NoDscp(u8);

impl TryFrom<u8> for Dscp {
    type Error = NoDscp;

    fn try_from(value: u8) -> Result<Self, NoDscp> {
        if value < 64 { Ok(Dscp(value)) } else { Err(NoDscp(value)) }
    }
}

impl From<Dscp> for u8 {
    fn from(dscp: Dscp) -> u8 {
        dscp.0
    }
}

/// A group's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Default or literal.
    pub rules: Rules,
    /// TLV, provisioned, or what fits.
    pub lists: ListMode,
    /// An edge withholds copies of what a receiver has confirmed (D22).
    pub prune_retransmit: bool,
    /// Time that a NAK above the minimum waits for the other branches (rule R5, D20).
    #[serde(rename = "t_hold_ns", with = "document::nanoseconds")]
    pub t_hold: Duration,
    /// Leading or trailing CNPs.
    pub cnp_mode: CnpMode,
    /// The window T of MT-5.3.3-1.
    #[serde(rename = "cnp_window_ns", with = "document::nanoseconds")]
    pub cnp_window: Duration,
    /// Maximum of T while congestion lasts (MT-5.3.3-3); not above `cnp_window`: T is fixed.
    #[serde(rename = "cnp_window_most_ns", with = "document::nanoseconds")]
    pub cnp_window_most: Duration,
    /// CNPs that count in one window for one branch (MT-9-3).
    pub cnp_limit: u16,
    /// DSCP of the nodes' ACKs and NAKs (D227). `None`: that of the branches' responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_dscp: Option<Dscp>,
    /// DSCP of the nodes' CNPs (D227).
    #[serde(skip_serializing_if = "is_cs6")]
    pub cnp_dscp: Dscp,
    /// Handling of a receiver that is stalled or has failed (D24, D25).
    pub on_failure: OnFailure,
    /// A receiver is stalled when what it expects next was sent down `stall_sends` times over this time without
    /// progress (D25). With the time that a grant takes, it is to stay below the source's retry budget.
    #[serde(rename = "t_stall_ns", with = "document::nanoseconds")]
    pub t_stall: Duration,
    /// See `t_stall`; from 2 to 15.
    pub stall_sends: u8,
    /// A receiver that responds that it is not ready, by RNR NAKs, is stalled after this time without progress instead
    /// of `t_stall` (D196). `None`: `t_stall` bounds it, too.
    #[serde(rename = "t_not_ready_ns", with = "document::optional_nanoseconds")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_not_ready: Option<Duration>,
    /// The fewest receivers that an eviction may leave (D25).
    pub min_receivers: u32,
    /// The headend signs the SRH with this key (MT-9-1).
    pub hmac_key_id: Option<u32>,
    /// In-network repair (D150).
    #[serde(skip_serializing_if = "RepairPolicy::is_off")]
    pub repair: RepairPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            rules: Rules::Default,
            lists: ListMode::Auto,
            prune_retransmit: false,
            t_hold: Duration::from_micros(20),
            cnp_mode: CnpMode::Trailing,
            cnp_window: Duration::from_micros(50),
            cnp_window_most: Duration::from_micros(50),
            cnp_limit: 64,
            ack_dscp: None,
            cnp_dscp: Dscp::CS6,
            on_failure: OnFailure::Strict,
            t_stall: Duration::from_secs(1),
            stall_sends: 3,
            t_not_ready: None,
            min_receivers: 1,
            hmac_key_id: None,
            repair: RepairPolicy::default(),
        }
    }
}

/// Nodes of versions without the key take groups with its default.
fn is_cs6(dscp: &Dscp) -> bool {
    *dscp == Dscp::CS6
}
