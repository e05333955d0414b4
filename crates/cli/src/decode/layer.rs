//! The layers of a packet as values.

mod congestion;

pub(crate) use congestion::{
    Cm, Deth, FastCnp, IoamNode, IoamTrace, LinkLoad, Notification, OptionMeaning, Pause, PausedClass, Pfc,
};

use super::record::HmacVerdict;
use serde::Serialize;
use std::net::Ipv6Addr;

/// One layer. As JSON it is the object of its fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub(crate) enum Layer {
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
    pub(crate) fn name(&self) -> &'static str {
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
    pub(crate) fn repeats(&self) -> bool {
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
pub(crate) enum ChecksumVerdict {
    /// It is.
    Ok,
    /// It is not.
    Bad,
    /// None was computed (UDP's zero), or not all octets that it covers are there.
    Absent,
}

/// Ethernet II header, or that of IEEE 802.3 when `ethertype` is below 1536: then it is a length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ethernet {
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) ethertype: u16,
}

/// 802.1Q tag.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Vlan {
    pub(crate) id: u16,
    pub(crate) priority: u8,
    pub(crate) drop_eligible: bool,
    pub(crate) ethertype: u16,
}

/// IPv6 header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ipv6 {
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    pub(crate) dscp: u8,
    pub(crate) ecn: &'static str,
    pub(crate) flow_label: u32,
    pub(crate) payload_length: u16,
    pub(crate) next_header: u8,
    pub(crate) hop_limit: u8,
}

/// Hop-by-Hop or Destination Options header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Options {
    pub(crate) next_header: u8,
    pub(crate) length_octets: usize,
    /// Without padding.
    pub(crate) options: Vec<HeaderOption>,
}

/// One option of an options header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct HeaderOption {
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    /// Its data in hexadecimal.
    pub(crate) data: String,
    #[serde(flatten)]
    pub(crate) meaning: Option<OptionMeaning>,
}

/// Fragment header (RFC 8200 section 4.5).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fragment {
    pub(crate) next_header: u8,
    pub(crate) offset_octets: u16,
    pub(crate) more_fragments: bool,
    pub(crate) identification: u32,
}

/// Segment Routing Header. Its TLVs are layers of their own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Srh {
    pub(crate) next_header: u8,
    pub(crate) length_octets: usize,
    pub(crate) segments_left: u8,
    pub(crate) last_entry: u8,
    pub(crate) flags: u8,
    pub(crate) tag: u16,
    /// As it lies: the last segment first.
    pub(crate) segments: Vec<Ipv6Addr>,
}

/// End.MT TLV (multicast draft, section 7.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EndMt {
    pub(crate) edge: Ipv6Addr,
    pub(crate) receivers: Vec<Receiver>,
}

/// A receiver that an edge node copies the packet to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Receiver {
    pub(crate) address: Ipv6Addr,
    pub(crate) qpn: u32,
}

/// MR TLV: memory regions of the receivers of the End.MT TLV before it, in their order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Mr {
    pub(crate) edge: Ipv6Addr,
    pub(crate) regions: Vec<Region>,
}

/// Where a receiver's memory region begins, and its key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Region {
    pub(crate) virtual_address: Hex64,
    pub(crate) rkey: u32,
}

/// HMAC TLV (RFC 8754 section 2.1.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct HmacTlv {
    pub(crate) key_id: u32,
    /// D: the destination address is not checked against the Segment List.
    pub(crate) d_flag: bool,
    /// The HMAC field in hexadecimal.
    pub(crate) digest: String,
    pub(crate) verdict: HmacVerdict,
    /// Which octets the HMAC covers, `rfc8754` or `tlvs` (D9), when it matches.
    pub(crate) cover: Option<&'static str>,
    /// Why the verdict is bad.
    pub(crate) reason: Option<&'static str>,
}

/// A TLV of a type that this program passes over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct OtherTlv {
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    /// Its value in hexadecimal.
    pub(crate) value: String,
}

/// ICMPv6 message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Icmpv6 {
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) name: &'static str,
    pub(crate) checksum: ChecksumVerdict,
    /// MTU of a Packet Too Big, pointer of a Parameter Problem.
    pub(crate) parameter: u32,
    /// Of an error: the packet that caused it.
    pub(crate) quoted: Option<Ipv6>,
    /// What a congestion notification says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notification: Option<Notification>,
}

/// UDP header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Udp {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) length: u16,
    pub(crate) checksum: ChecksumVerdict,
}

/// Base Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Bth {
    pub(crate) opcode: u8,
    /// The opcode's name, where it is one of a Reliable Connection or a CNP.
    pub(crate) operation: Option<&'static str>,
    pub(crate) dest_qpn: u32,
    pub(crate) psn: u32,
    pub(crate) ack_request: bool,
    pub(crate) solicited_event: bool,
    pub(crate) migration_request: bool,
    pub(crate) pad_count: u8,
    pub(crate) transport_version: u8,
    pub(crate) pkey: u16,
    pub(crate) fecn: bool,
    pub(crate) becn: bool,
}

/// RDMA Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Reth {
    pub(crate) virtual_address: Hex64,
    pub(crate) rkey: u32,
    pub(crate) dma_length: u32,
}

/// Immediate data, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ImmDt {
    pub(crate) data: String,
}

/// Invalidate Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ieth {
    pub(crate) rkey: u32,
}

/// ACK Extended Transport Header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Aeth {
    pub(crate) syndrome: u8,
    pub(crate) kind: AethKind,
    /// The syndrome's five low bits: credit code, timer code or NAK code.
    pub(crate) code: u8,
    pub(crate) meaning: String,
    pub(crate) msn: u32,
}

/// What an AETH says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AethKind {
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
pub(crate) struct AtomicEth {
    pub(crate) virtual_address: Hex64,
    pub(crate) rkey: u32,
    pub(crate) swap_or_add: Hex64,
    pub(crate) compare: Hex64,
}

/// Atomic ACK Extended Transport Header: what the memory held before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AtomicAckEth {
    pub(crate) original: Hex64,
}

/// Congestion Notification Packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cnp {
    /// How many CNPs it stands for between nodes of a multicast tree; 0 from and to a host.
    pub(crate) count: u32,
}

/// What is left and is not dissected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Payload {
    pub(crate) protocol: String,
    pub(crate) octets: usize,
}

/// A 64-bit number, written in hexadecimal: many readers of JSON round numbers beyond 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hex64(pub(crate) u64);

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

/// Octets in hexadecimal.
pub(crate) fn hex(octets: &[u8]) -> String {
    use std::fmt::Write;
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}
