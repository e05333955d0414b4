//! `[node]`, `[daemon]`, `[[port]]`, `[[neighbour]]` and `[[hmac_key]]`.

use super::{
    AnyAddress, AnyPrefix, HostAddress, Integer, InterfaceName, Ipv4HostAddress, LinkMtu, Located, PortName, Ports,
    Secret, U32, U64, ZonedAddress, integer, is_default, unless,
};
use crate::KeySpec;
use serde::{Deserialize, Serialize};
use srdma_dataplane::{Cover, HmacPolicy, IcrcMode, MAX_VLAN_ID, NextHop, NodeConfig, PortConfig, Trust};
use srdma_frame::PortId;
use srdma_wire::MacAddress;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use toml::Spanned;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSection {
    pub loopback: Located<HostAddress>,
    /// Every sender may use its SIDs: required by a node with SIDs and without a domain (D129).
    #[serde(default, skip_serializing_if = "is_default")]
    pub open: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarted: bool,
    #[serde(default, with = "IcrcName", skip_serializing_if = "is_default")]
    pub icrc: IcrcMode,
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify_icrc: bool,
    pub icmp_errors_per_second: Option<Located<U32>>,
    pub replication_hop_limit: Option<Located<Integer<0, 255>>>,
    pub cm_host: Option<Located<HostAddress>>,
    pub cm_host_ipv4: Option<Located<Ipv4HostAddress>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub require_hmac: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify_hmac: bool,
    #[serde(default, with = "CoverName", skip_serializing_if = "is_default")]
    pub end_mt_cover: Cover,
    pub end_mt_tlv_type: Option<Located<TlvType>>,
    pub mr_tlv_type: Option<Located<TlvType>>,
    pub fast_cnp_address_type: Option<Located<FastCnpType>>,
    pub fast_cnp_trace_type: Option<Located<FastCnpType>>,
    pub marking_seed: Option<Located<U64>>,
    pub repair_memory_octets: Option<Located<U64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<Located<AnyPrefix>>,
}

/// Types of options whose three high bits are 100: discard and report, no change on the way (FC-4-3).
pub type FastCnpType = Integer<0x80, 0x9F>;

/// Types of TLVs that do not change en route and are not reserved (RFC 8754 section 8.2).
pub type TlvType = Integer<7, 126>;

#[derive(Serialize, Deserialize)]
#[serde(remote = "IcrcMode", rename_all = "lowercase")]
enum IcrcName {
    Incremental,
    Recompute,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Cover", rename_all = "lowercase")]
enum CoverName {
    Rfc8754,
    Tlvs,
    Linux,
}

impl NodeSection {
    /// The defaults for a node with this loopback.
    pub fn new(loopback: Ipv6Addr) -> Self {
        Self::of(&NodeConfig::new(loopback, Vec::new()))
    }

    pub(super) fn of(config: &NodeConfig) -> Self {
        let default = NodeConfig::new(config.loopback, Vec::new());
        let (types, default_types) = (config.fast_cnp_types, default.fast_cnp_types);
        NodeSection {
            loopback: HostAddress(config.loopback).into(),
            open: false,
            restarted: config.restarted,
            icrc: config.icrc,
            verify_icrc: config.verify_icrc,
            icmp_errors_per_second: unless(config.icmp_errors_per_second, default.icmp_errors_per_second, integer),
            replication_hop_limit: unless(config.replication_hop_limit, default.replication_hop_limit, integer),
            cm_host: config.cm_host.map(|host| HostAddress(host).into()),
            cm_host_ipv4: config.cm_host_ipv4.map(|host| Ipv4HostAddress(host).into()),
            require_hmac: config.hmac == HmacPolicy::Required,
            verify_hmac: config.hmac == HmacPolicy::IfPresent,
            end_mt_cover: config.end_mt_cover,
            end_mt_tlv_type: unless(config.tlv_types.end_mt, default.tlv_types.end_mt, integer),
            mr_tlv_type: unless(config.tlv_types.mr, default.tlv_types.mr, integer),
            fast_cnp_address_type: unless(types.address(), default_types.address(), integer),
            fast_cnp_trace_type: unless(types.trace(), default_types.trace(), integer),
            marking_seed: unless(config.marking_seed, default.marking_seed, integer),
            repair_memory_octets: unless(config.repair_memory_octets, default.repair_memory_octets, integer),
            forwards: Vec::new(),
        }
    }
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonSection {
    pub name: Option<Located<PortName>>,
    pub metrics: Option<Located<SocketAddr>>,
    pub status: Option<Spanned<PathBuf>>,
    pub cpu: Option<Located<Integer<0, 1023>>>,
    pub workers: Option<Located<Integer<1, 64>>>,
    pub fast_path: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortSection {
    pub name: Located<PortName>,
    pub interface: Option<Located<InterfaceName>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub driver: DriverName,
    pub mac: Option<Located<MacAddress>>,
    pub addresses: Option<Vec<Located<AnyAddress>>>,
    pub link_mtu: Option<Located<LinkMtu>>,
    pub queue_limit_octets: Option<Located<U32>>,
    pub fast_path: Option<bool>,
    pub parent: Option<Located<PortName>>,
    pub vlan: Option<Located<Integer<0, { MAX_VLAN_ID as u64 }>>>,
    #[serde(default, with = "TrustName", skip_serializing_if = "is_default")]
    pub trust: Trust,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Trust", rename_all = "lowercase")]
enum TrustName {
    Dscp,
    Pcp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverName {
    #[default]
    Auto,
    AfXdp,
    AfXdpGeneric,
    AfPacket,
}

impl PortSection {
    /// A port on the interface of its name, with the facts that the kernel reports of it.
    pub fn new(name: &str) -> Self {
        PortSection {
            name: PortName(name.to_owned()).into(),
            interface: None,
            driver: DriverName::default(),
            mac: None,
            addresses: None,
            link_mtu: None,
            queue_limit_octets: None,
            fast_path: None,
            parent: None,
            vlan: None,
            trust: Trust::default(),
        }
    }

    pub(super) fn of(ports: Ports<'_>, port: &PortConfig) -> Self {
        PortSection {
            parent: port.vlan.map(|vlan| ports.name(vlan.parent).into()),
            vlan: port.vlan.map(|vlan| integer(vlan.id)),
            trust: port.trust,
            mac: Some(port.mac.into()),
            addresses: Some(port.addresses.iter().map(|address| AnyAddress(*address).into()).collect()),
            link_mtu: Some(integer(port.link_mtu)),
            queue_limit_octets: port.vlan.is_none().then(|| integer(port.queue_limit_octets)),
            ..PortSection::new(&port.name)
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighbourSection {
    pub address: Located<ZonedAddress>,
    pub mac: Located<MacAddress>,
}

impl NeighbourSection {
    pub(super) fn of(ports: Ports<'_>, port: PortId, address: Ipv6Addr, mac: MacAddress) -> Self {
        NeighbourSection { address: ports.next_hop(NextHop { port, address }), mac: mac.into() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HmacKeySection {
    pub id: Located<U32>,
    pub key: Located<Secret>,
    #[serde(default, with = "CoverName", skip_serializing_if = "is_default")]
    pub cover: Cover,
}

impl HmacKeySection {
    pub(super) fn of(id: u32, key: &KeySpec) -> Self {
        HmacKeySection { id: integer(id), key: Secret(key.secret().to_vec()).into(), cover: key.cover() }
    }
}
