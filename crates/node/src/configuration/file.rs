//! Sections and keys of `node.toml` as types: one type a section, one field a key. `docs/configuration.md` defines the
//! keys.

use super::border::{BorderSection, DomainSection};
use super::controller::ControllerSection;
use super::egress::{EgressSection, TrafficClassSection};
use super::fast_cnp::{ConnectionSection, FastCnpSection};
use super::ioam::IoamSection;
use super::isis::IsisSection;
use super::learning::LearningSection;
use super::member::{BranchSection, ReceiverSection};
use super::notification::{NotificationsSection, SidsSection};
use super::steering::{PathSection, SteeringSection};
use super::value::{
    HostAddress, Integer, InterfaceName, Located, MulticastAddress, PortName, PositiveU32, Secret, ZonedAddress,
};
use serde::Deserialize;
use srdma_dataplane::{Cover, EncapsMode, IcrcMode};
use srdma_group::{CnpMode, NodeRole, OnFailure, Rules};
use srdma_wire::{MacAddress, Prefix, Psn, Qpn};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

pub(super) type U16 = Integer<0, 0xFFFF>;
pub(super) type U32 = Integer<0, 0xFFFF_FFFF>;
pub(super) type U64 = Integer<0, { u64::MAX }>;
/// A link MTU: IPv6 requires 1,280 octets at least (RFC 8200 section 5).
pub(super) type LinkMtu = Integer<1280, 0xFFFF>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) node: NodeSection,
    #[serde(default)]
    pub(super) daemon: DaemonSection,
    #[serde(default)]
    pub(super) port: Vec<PortSection>,
    pub(super) domain: Option<Spanned<DomainSection>>,
    #[serde(default)]
    pub(super) border: Vec<BorderSection>,
    #[serde(default)]
    pub(super) neighbour: Vec<NeighbourSection>,
    #[serde(default)]
    pub(super) route: Vec<Spanned<RouteSection>>,
    #[serde(default)]
    pub(super) multicast_route: Vec<Spanned<MulticastRouteSection>>,
    #[serde(default)]
    pub(super) sid: Vec<SidSection>,
    #[serde(default)]
    pub(super) hmac_key: Vec<HmacKeySection>,
    #[serde(default)]
    pub(super) group: Vec<Spanned<GroupSection>>,
    pub(super) learning: Option<Spanned<LearningSection>>,
    #[serde(default)]
    pub(super) traffic_class: Vec<TrafficClassSection>,
    #[serde(default)]
    pub(super) egress: Vec<EgressSection>,
    pub(super) ioam: Option<Spanned<IoamSection>>,
    pub(super) fast_cnp: Option<Spanned<FastCnpSection>>,
    pub(super) notifications: Option<Spanned<NotificationsSection>>,
    #[serde(default)]
    pub(super) notification_sids: Vec<SidsSection>,
    pub(super) steering: Option<Spanned<SteeringSection>>,
    pub(super) isis: Option<Spanned<IsisSection>>,
    pub(super) controller: Option<Spanned<ControllerSection>>,
    #[serde(default)]
    pub(super) connection: Vec<ConnectionSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeSection {
    pub(super) loopback: Located<HostAddress>,
    #[serde(default)]
    pub(super) restarted: bool,
    #[serde(default, with = "IcrcName")]
    pub(super) icrc: IcrcMode,
    #[serde(default)]
    pub(super) verify_icrc: bool,
    pub(super) icmp_errors_per_second: Option<Located<U32>>,
    pub(super) replication_hop_limit: Option<Located<Integer<0, 255>>>,
    #[serde(default)]
    pub(super) require_hmac: bool,
    #[serde(default, with = "CoverName")]
    pub(super) end_mt_cover: Cover,
    pub(super) end_mt_tlv_type: Option<Located<TlvType>>,
    pub(super) mr_tlv_type: Option<Located<TlvType>>,
    pub(super) fast_cnp_address_type: Option<Located<FastCnpType>>,
    pub(super) fast_cnp_trace_type: Option<Located<FastCnpType>>,
    pub(super) marking_seed: Option<Located<U64>>,
    #[serde(default)]
    pub(super) forwards: Vec<Located<Prefix>>,
}

/// Types of options whose three high bits are 100: discard and report, no change on the way (FC-4-3).
pub(super) type FastCnpType = Integer<0x80, 0x9F>;

/// Types of TLVs that do not change en route and are not reserved (RFC 8754 section 8.2).
pub(super) type TlvType = Integer<7, 126>;

#[derive(Deserialize)]
#[serde(remote = "IcrcMode", rename_all = "lowercase")]
enum IcrcName {
    Incremental,
    Recompute,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DaemonSection {
    pub(super) name: Option<Located<PortName>>,
    pub(super) metrics: Option<Located<SocketAddr>>,
    pub(super) status: Option<Spanned<PathBuf>>,
    pub(super) cpu: Option<Located<Integer<0, 1023>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortSection {
    pub(super) name: Located<PortName>,
    pub(super) interface: Option<Located<InterfaceName>>,
    #[serde(default)]
    pub(super) driver: DriverName,
    pub(super) mac: Option<Located<MacAddress>>,
    pub(super) addresses: Option<Vec<Located<HostAddress>>>,
    pub(super) link_mtu: Option<Located<LinkMtu>>,
    pub(super) queue_limit_octets: Option<Located<U32>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DriverName {
    #[default]
    Auto,
    AfXdp,
    AfXdpGeneric,
    AfPacket,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NeighbourSection {
    pub(super) address: Located<ZonedAddress>,
    pub(super) mac: Located<MacAddress>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteSection {
    pub(super) prefix: Located<Prefix>,
    pub(super) table: Option<Located<U16>>,
    pub(super) via: Option<Spanned<Vec<Located<ZonedAddress>>>>,
    pub(super) encaps: Option<Spanned<EncapsSection>>,
    pub(super) blackhole: Option<Spanned<bool>>,
    pub(super) path: Option<Spanned<Vec<Spanned<PathSection>>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EncapsSection {
    pub(super) segments: Vec<Located<HostAddress>>,
    #[serde(default = "reduced", with = "EncapsName")]
    pub(super) mode: EncapsMode,
    pub(super) hmac_key_id: Option<Located<U32>>,
}

#[derive(Deserialize)]
#[serde(remote = "EncapsMode")]
enum EncapsName {
    #[serde(rename = "H.Encaps")]
    Encaps,
    #[serde(rename = "H.Encaps.Red")]
    Reduced,
}

fn reduced() -> EncapsMode {
    EncapsMode::Reduced
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MulticastRouteSection {
    pub(super) source: Located<HostAddress>,
    pub(super) group: Located<MulticastAddress>,
    pub(super) incoming: Option<Located<PortName>>,
    #[serde(default)]
    pub(super) outgoing: Vec<Located<PortName>>,
    #[serde(default)]
    pub(super) end_mt: bool,
    #[serde(default)]
    pub(super) require_hmac: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SidSection {
    pub(super) sid: Located<Prefix>,
    pub(super) behavior: Spanned<BehaviorName>,
    pub(super) flavors: Option<Spanned<Vec<FlavorName>>>,
    pub(super) block_bits: Option<Located<CsidBits>>,
    pub(super) csid_bits: Option<Located<CsidBits>>,
    pub(super) next_hop: Option<Located<ZonedAddress>>,
    pub(super) table: Option<Located<U16>>,
    pub(super) group: Option<Located<U32>>,
    pub(super) require_hmac: Option<Spanned<bool>>,
}

pub(super) type CsidBits = Integer<1, 127>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum BehaviorName {
    End,
    #[serde(rename = "End.X")]
    EndX,
    #[serde(rename = "uN")]
    MicroN,
    #[serde(rename = "uA")]
    MicroA,
    #[serde(rename = "End.DT6")]
    EndDt6,
    #[serde(rename = "End.Replicate")]
    EndReplicate,
    #[serde(rename = "End.MT")]
    EndMt,
    #[serde(rename = "END.C")]
    EndC,
    #[serde(rename = "END.E")]
    EndE,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum FlavorName {
    #[serde(rename = "PSP")]
    Psp,
    #[serde(rename = "USP")]
    Usp,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "NEXT-CSID")]
    NextCsid,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HmacKeySection {
    pub(super) id: Located<U32>,
    pub(super) key: Located<Secret>,
    #[serde(default, with = "CoverName")]
    pub(super) cover: Cover,
}

#[derive(Deserialize)]
#[serde(remote = "Cover", rename_all = "lowercase")]
enum CoverName {
    Rfc8754,
    Tlvs,
    Linux,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupSection {
    pub(super) id: Located<U32>,
    pub(super) epoch: Option<Located<U32>>,
    pub(super) renewed: Option<Located<U32>>,
    pub(super) proxy: Located<HostAddress>,
    pub(super) designated_qpn: Located<Qpn>,
    pub(super) initial_psn: Located<Psn>,
    #[serde(with = "RoleName")]
    pub(super) role: NodeRole,
    pub(super) sid: Option<Located<Ipv6Addr>>,
    pub(super) source: Option<Spanned<SourceSection>>,
    pub(super) parent: Option<Spanned<ParentSection>>,
    pub(super) branches: Option<Spanned<Vec<Spanned<BranchSection>>>>,
    pub(super) downstream: Option<Spanned<Vec<Located<Ipv6Addr>>>>,
    #[serde(default)]
    pub(super) receiver: Vec<Spanned<ReceiverSection>>,
    pub(super) region: Option<RegionSection>,
    pub(super) headend: Option<Spanned<HeadendSection>>,
    #[serde(default)]
    pub(super) policy: PolicySection,
}

#[derive(Deserialize)]
#[serde(remote = "NodeRole", rename_all = "lowercase")]
enum RoleName {
    Edge,
    Transit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceSection {
    pub(super) address: Located<HostAddress>,
    pub(super) qpn: Located<Qpn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParentSection {
    pub(super) loopback: Located<HostAddress>,
    pub(super) sid: Option<Located<HostAddress>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RegionSection {
    pub(super) base: Located<U64>,
    pub(super) length: Located<U64>,
    pub(super) rkey: Located<U32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeadendSection {
    pub(super) link_mtu: Option<Located<LinkMtu>>,
    #[serde(default)]
    pub(super) list: Vec<Spanned<ListSection>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListSection {
    pub(super) edge: Located<HostAddress>,
    pub(super) receiver: Vec<Spanned<ReceiverSection>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicySection {
    #[serde(default, with = "RulesName")]
    pub(super) rules: Rules,
    #[serde(default)]
    pub(super) prune_retransmit: bool,
    pub(super) t_hold: Option<Located<Duration>>,
    #[serde(default, with = "CnpName")]
    pub(super) cnp_mode: CnpMode,
    pub(super) cnp_window: Option<Located<Duration>>,
    pub(super) cnp_window_most: Option<Located<Duration>>,
    pub(super) cnp_limit: Option<Located<Integer<1, 0xFFFF>>>,
    #[serde(default, with = "FailureName")]
    pub(super) on_failure: OnFailure,
    pub(super) t_stall: Option<Located<Duration>>,
    pub(super) stall_sends: Option<Located<Integer<2, 15>>>,
    pub(super) min_receivers: Option<Located<PositiveU32>>,
    pub(super) hmac_key_id: Option<Located<U32>>,
}

#[derive(Deserialize)]
#[serde(remote = "Rules", rename_all = "lowercase")]
enum RulesName {
    Default,
    Literal,
}

#[derive(Deserialize)]
#[serde(remote = "CnpMode", rename_all = "lowercase")]
enum CnpName {
    Leading,
    Trailing,
}

#[derive(Deserialize)]
#[serde(remote = "OnFailure", rename_all = "lowercase")]
enum FailureName {
    Strict,
    Evict,
}
