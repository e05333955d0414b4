//! The layers of a packet as values.

mod congestion;

pub use congestion::{
    Cm, Deth, FastCnp, IoamNode, IoamTrace, LinkLoad, Notification, OptionMeaning, Pause, PausedClass, Pfc,
};

use super::record::HmacVerdict;
use serde::Serialize;
use std::net::Ipv6Addr;

/// One layer. As JSON it is the object of its fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Layer {
    Ethernet(Ethernet),
    Vlan(Vlan),
    Pfc(Pfc),
    Pause(Pause),
    Ipv6(Ipv6),
    HopByHop(Options),
    DestinationOptions(Options),
    Fragment(Fragment),
    Srh(Srh),
    EndMt(EndMt),
    Mr(Mr),
    HmacTlv(HmacTlv),
    Tlv(OtherTlv),
    Icmpv6(Icmpv6),
    Udp(Udp),
    Bth(Bth),
    Reth(Reth),
    ImmDt(ImmDt),
    Ieth(Ieth),
    Aeth(Aeth),
    AtomicEth(AtomicEth),
    AtomicAckEth(AtomicAckEth),
    Cnp(Cnp),
    Deth(Deth),
    Cm(Cm),
    Payload(Payload),
}

impl Layer {
    /// The layer's name in the output.
    pub fn name(&self) -> &'static str {
        match self {
            Layer::Ethernet(_) => "ethernet",
            Layer::Vlan(_) => "vlan",
            Layer::Pfc(_) => "pfc",
            Layer::Pause(_) => "pause",
            Layer::Ipv6(_) => "ipv6",
            Layer::HopByHop(_) => "hop_by_hop",
            Layer::DestinationOptions(_) => "destination_options",
            Layer::Fragment(_) => "fragment",
            Layer::Srh(_) => "srh",
            Layer::EndMt(_) => "end_mt",
            Layer::Mr(_) => "mr",
            Layer::HmacTlv(_) => "hmac_tlv",
            Layer::Tlv(_) => "tlv",
            Layer::Icmpv6(_) => "icmpv6",
            Layer::Udp(_) => "udp",
            Layer::Bth(_) => "bth",
            Layer::Reth(_) => "reth",
            Layer::ImmDt(_) => "immdt",
            Layer::Ieth(_) => "ieth",
            Layer::Aeth(_) => "aeth",
            Layer::AtomicEth(_) => "atomiceth",
            Layer::AtomicAckEth(_) => "atomicacketh",
            Layer::Cnp(_) => "cnp",
            Layer::Deth(_) => "deth",
            Layer::Cm(_) => "cm",
            Layer::Payload(_) => "payload",
        }
    }

    /// Whether a packet can have more than one of it.
    pub fn repeats(&self) -> bool {
        match self {
            Layer::Vlan(_)
            | Layer::Ipv6(_)
            | Layer::HopByHop(_)
            | Layer::DestinationOptions(_)
            | Layer::Fragment(_)
            | Layer::Srh(_)
            | Layer::EndMt(_)
            | Layer::Mr(_)
            | Layer::HmacTlv(_)
            | Layer::Tlv(_) => true,
            Layer::Ethernet(_)
            | Layer::Pfc(_)
            | Layer::Pause(_)
            | Layer::Icmpv6(_)
            | Layer::Udp(_)
            | Layer::Bth(_)
            | Layer::Reth(_)
            | Layer::ImmDt(_)
            | Layer::Ieth(_)
            | Layer::Aeth(_)
            | Layer::AtomicEth(_)
            | Layer::AtomicAckEth(_)
            | Layer::Cnp(_)
            | Layer::Deth(_)
            | Layer::Cm(_)
            | Layer::Payload(_) => false,
        }
    }
}

/// Whether a checksum is that of the octets it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksumVerdict {
    Ok,
    /// It is not.
    Bad,
    /// None was computed (UDP's zero), or not all octets that it covers are there.
    Absent,
}

/// Ethernet II header, or that of IEEE 802.3 when `ethertype` is below 1536: then it is a length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ethernet {
    pub source: String,
    pub destination: String,
    pub ethertype: u16,
}

/// 802.1Q tag.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Vlan {
    pub id: u16,
    pub priority: u8,
    pub drop_eligible: bool,
    pub ethertype: u16,
}

/// IPv6 header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ipv6 {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub dscp: u8,
    pub ecn: &'static str,
    pub flow_label: u32,
    pub payload_length: u16,
    pub next_header: u8,
    pub hop_limit: u8,
}

/// Hop-by-Hop or Destination Options header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Options {
    pub next_header: u8,
    pub length_octets: usize,
    /// Without padding.
    pub options: Vec<HeaderOption>,
}

/// One option of an options header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeaderOption {
    #[serde(rename = "type")]
    pub kind: u8,
    /// Its data in hexadecimal.
    pub data: String,
    #[serde(flatten)]
    pub meaning: Option<OptionMeaning>,
}

/// Fragment header (RFC 8200 section 4.5).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fragment {
    pub next_header: u8,
    pub offset_octets: u16,
    pub more_fragments: bool,
    pub identification: u32,
}

/// Segment Routing Header. Its TLVs are layers of their own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Srh {
    pub next_header: u8,
    pub length_octets: usize,
    pub segments_left: u8,
    pub last_entry: u8,
    pub flags: u8,
    pub tag: u16,
    /// As it lies: the last segment first.
    pub segments: Vec<Ipv6Addr>,
}

/// End.MT TLV (multicast draft, section 7.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndMt {
    pub edge: Ipv6Addr,
    pub receivers: Vec<Receiver>,
}

/// A receiver that an edge node copies the packet to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Receiver {
    pub address: Ipv6Addr,
    pub qpn: u32,
}

/// MR TLV: memory regions of the receivers of the End.MT TLV before it, in their order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mr {
    pub edge: Ipv6Addr,
    pub regions: Vec<Region>,
}

/// Address and key of a receiver's memory region.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Region {
    pub virtual_address: Hex64,
    pub rkey: u32,
}

/// HMAC TLV (RFC 8754 section 2.1.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HmacTlv {
    pub key_id: u32,
    /// D: the destination address is not checked against the Segment List.
    pub d_flag: bool,
    /// The HMAC field in hexadecimal.
    pub digest: String,
    pub verdict: HmacVerdict,
    /// Cover of the HMAC, `rfc8754` or `tlvs` (D9), when it matches.
    pub cover: Option<&'static str>,
    /// Reason for which the verdict is bad.
    pub reason: Option<&'static str>,
}

/// A TLV of a type that this program passes over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherTlv {
    #[serde(rename = "type")]
    pub kind: u8,
    /// Its value in hexadecimal.
    pub value: String,
}

/// ICMPv6 message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Icmpv6 {
    #[serde(rename = "type")]
    pub kind: u8,
    pub code: u8,
    pub name: &'static str,
    pub checksum: ChecksumVerdict,
    /// MTU of a Packet Too Big, pointer of a Parameter Problem.
    pub parameter: u32,
    /// Of an error: the packet that caused it.
    pub quoted: Option<Ipv6>,
    /// Content of a congestion notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notification: Option<Notification>,
}

/// UDP header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Udp {
    pub source_port: u16,
    pub destination_port: u16,
    pub length: u16,
    pub checksum: ChecksumVerdict,
    /// Of RoCEv2: the path as a value, in source port and flow label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<Entropy>,
}

/// An entropy value (D254).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entropy {
    pub value: u32,
    /// The segments of its path, none if the route has no such path; `None` if no route is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<Ipv6Addr>>,
    /// The uSIDs of the segments, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usids: Option<Vec<String>>,
}

/// Base Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bth {
    pub opcode: u8,
    /// The opcode's name, where it is one of a Reliable Connection or a CNP.
    pub operation: Option<&'static str>,
    pub dest_qpn: u32,
    pub psn: u32,
    pub ack_request: bool,
    pub solicited_event: bool,
    pub migration_request: bool,
    pub pad_count: u8,
    pub transport_version: u8,
    pub pkey: u16,
    pub fecn: bool,
    pub becn: bool,
}

/// RDMA Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reth {
    pub virtual_address: Hex64,
    pub rkey: u32,
    pub dma_length: u32,
}

/// Immediate data, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImmDt {
    pub data: String,
}

/// Invalidate Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ieth {
    pub rkey: u32,
}

/// ACK Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aeth {
    pub syndrome: u8,
    pub kind: AethKind,
    /// The syndrome's five low bits: credit code, timer code or NAK code.
    pub code: u8,
    pub meaning: String,
    pub msn: u32,
}

/// Fields of an AETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AethKind {
    /// Acknowledgement.
    Ack,
    /// Receiver not ready.
    RnrNak,
    /// Negative acknowledgement.
    Nak,
    /// A syndrome without a meaning.
    Reserved,
}

/// Atomic Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtomicEth {
    pub virtual_address: Hex64,
    pub rkey: u32,
    pub swap_or_add: Hex64,
    pub compare: Hex64,
}

/// Atomic ACK Extended Transport Header: the contents of the memory before the operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtomicAckEth {
    pub original: Hex64,
}

/// Congestion Notification Packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cnp {
    /// Number of CNPs that it represents between nodes of a multicast tree; 0 from and to a host.
    pub count: u32,
    /// Load of the path whose trace it carries between nodes of a tree (D242).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<u32>,
    /// The rate that a Fast CNP notifies (D240).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_mbit_per_s: Option<u32>,
    /// The extent of the receiver's congestion (D284).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incast: Option<Incast>,
}

/// What a receiver with DCQCN+ says of its congestion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Incast {
    /// Its congested flows.
    pub flows: u16,
    /// Each of them gets a CNP in so many microseconds.
    pub period_us: u16,
}

/// The rest of a packet, not dissected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Payload {
    pub protocol: String,
    pub octets: usize,
}

/// A 64-bit number, written in hexadecimal: many readers of JSON round numbers beyond 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex64(pub u64);

impl std::fmt::Display for Hex64 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Hex64 {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
