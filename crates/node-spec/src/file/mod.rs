//! `node.toml` as types: one type a section, one field a key. `docs/configuration.md` defines the keys.
//!
//! A [`NodeFile`] is parsed from TOML or made of a desired state ([`NodeFile::of`]), and written as TOML. Values know
//! their place in the file ([`Located`]), so that an error can name the line. That the sections of a file do not
//! contradict each other is checked by their reader, `srdma_node::Configuration`.

#![allow(missing_docs, reason = "docs/configuration.md describes sections and keys")]

mod backpressure;
mod bfd;
mod border;
mod controller;
mod cross_connect;
mod egress;
mod fast_cnp;
mod group;
mod ioam;
mod isis;
mod located;
mod member;
mod node;
mod ospf;
mod policy;
mod repair;
mod route;
mod shared_hosts;
mod sid;
mod sr_policy;
mod steering;
mod value;

pub use backpressure::{BackpressureSection, PrioritySection, SidsSection};
pub use bfd::BfdSection;
pub use border::{BorderSection, DomainSection, InsideSection};
pub use controller::{ControllerSection, LinkSection};
pub use cross_connect::CrossConnectSection;
pub use egress::{
    ClassSection, EcnSection, EgressSection, PfcSection, ThresholdsSection, TrafficClassSection, WatchdogSection,
};
pub use fast_cnp::{ConnectionSection, FastCnpSection};
pub use group::{GroupSection, HeadendSection, ListSection, ParentSection, RegionSection, SourceSection};
pub use ioam::{InterfaceSection, IoamSection, NamespaceSection, OpaqueSection, WideValue};
pub use isis::{Algorithm, CircuitKind, CircuitSection, IsisLevels, IsisSection, KeySection, LocatorSection, Net};
pub use located::{Located, Notation, Written};
pub use member::{BranchSection, Epoch, JoinSection, ReceiverSection};
pub use node::{
    DaemonSection, DriverName, FastCnpType, HmacKeySection, NeighbourSection, NodeSection, PortSection, TlvType,
};
pub use ospf::{OspfCircuitSection, OspfSection, RouterIdText};
pub use policy::{LearningSection, PolicySection};
pub use repair::{Levels, RepairSection, WindowPackets};
pub use route::{ChoiceSection, EncapsSection, MulticastRouteSection, PathSection, RouteSection, TemplateSection};
pub use shared_hosts::SharedHostsSection;
pub use sid::{BehaviorName, CsidBits, FlavorName, SidSection};
pub use sr_policy::{SegmentListSection, SrPolicySection};
pub use steering::{DenyListSection, SteeringSection};
pub use value::{
    AnyAddress, AnyPrefix, HostAddress, Integer, InterfaceName, Ipv4HostAddress, MulticastAddress, Octets, PortName,
    PositiveU32, Probability, Secret, ZonedAddress, parse_duration,
};

use crate::NodeSpec;
use serde::{Deserialize, Serialize};
use srdma_dataplane::PortConfig;
use srdma_frame::PortId;
use toml::Spanned;

pub type U16 = Integer<0, 0xFFFF>;
pub type Dscp = Integer<0, 63>;
pub type U32 = Integer<0, 0xFFFF_FFFF>;
pub type U64 = Integer<0, { u64::MAX }>;
/// A link MTU: IPv6 requires 1,280 octets at least (RFC 8200 section 5).
pub type LinkMtu = Integer<1280, 0xFFFF>;

/// The ports of a node with a domain that are no borders.
fn inside(spec: &NodeSpec) -> Vec<InsideSection> {
    let is_inside =
        |(position, _): &(usize, &PortConfig)| !spec.entries.borders.contains_key(&PortId(*position as u16));
    let ports = spec.node.ports.iter().enumerate().filter(is_inside);
    let ports = ports.filter(|_| spec.entries.domain.is_some());
    ports.map(|(_, port)| InsideSection::new(&port.name)).collect()
}

/// The content of a `node.toml`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFile {
    pub node: NodeSection,
    #[serde(default, skip_serializing_if = "is_default")]
    pub daemon: DaemonSection,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortSection>,
    pub domain: Option<Spanned<DomainSection>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<InsideSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub border: Vec<BorderSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbour: Vec<NeighbourSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sr_policy: Vec<SrPolicySection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross_connect: Vec<CrossConnectSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<Spanned<RouteSection>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub multicast_route: Vec<Spanned<MulticastRouteSection>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_hosts: Vec<SharedHostsSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sid: Vec<SidSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hmac_key: Vec<HmacKeySection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<Spanned<GroupSection>>,
    pub learning: Option<Spanned<LearningSection>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic_class: Vec<TrafficClassSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<EgressSection>,
    pub ioam: Option<Spanned<IoamSection>>,
    pub fast_cnp: Option<Spanned<FastCnpSection>>,
    pub backpressure: Option<Spanned<BackpressureSection>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backpressure_sids: Vec<SidsSection>,
    pub steering: Option<Spanned<SteeringSection>>,
    pub isis: Option<Spanned<IsisSection>>,
    pub ospf: Option<Spanned<OspfSection>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bfd: Vec<Spanned<BfdSection>>,
    pub controller: Option<Spanned<ControllerSection>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connection: Vec<ConnectionSection>,
}

impl NodeFile {
    /// A file with this section, and no other.
    pub fn new(node: NodeSection) -> Self {
        NodeFile {
            node,
            daemon: DaemonSection::default(),
            port: Vec::new(),
            domain: None,
            inside: Vec::new(),
            border: Vec::new(),
            neighbour: Vec::new(),
            sr_policy: Vec::new(),
            cross_connect: Vec::new(),
            route: Vec::new(),
            multicast_route: Vec::new(),
            shared_hosts: Vec::new(),
            sid: Vec::new(),
            hmac_key: Vec::new(),
            group: Vec::new(),
            learning: None,
            traffic_class: Vec::new(),
            egress: Vec::new(),
            ioam: None,
            fast_cnp: None,
            backpressure: None,
            backpressure_sids: Vec::new(),
            steering: None,
            isis: None,
            ospf: None,
            bfd: Vec::new(),
            controller: None,
            connection: Vec::new(),
        }
    }

    /// The file of a node in this state. Links are the kernel's and not part of it.
    pub fn of(spec: &NodeSpec) -> Self {
        let (ports, entries) = (Ports(&spec.node.ports), &spec.entries);
        NodeFile {
            port: spec.node.ports.iter().map(|port| PortSection::of(ports, port)).collect(),
            domain: entries.domain.as_ref().map(|domain| spanned(DomainSection::of(domain))),
            inside: inside(spec),
            border: entries.borders.iter().map(|(port, sources)| BorderSection::of(ports, *port, sources)).collect(),
            neighbour: entries
                .neighbours
                .iter()
                .map(|((port, address), mac)| NeighbourSection::of(ports, *port, *address, *mac))
                .collect(),
            sr_policy: entries.policies.iter().map(|(id, policy)| SrPolicySection::of(*id, policy)).collect(),
            cross_connect: entries
                .cross_connects
                .iter()
                .map(|(port, cross_connect)| CrossConnectSection::of(ports, *port, *cross_connect))
                .collect(),
            route: entries
                .routes
                .iter()
                .filter_map(|((table, prefix), action)| RouteSection::of(ports, *table, *prefix, action))
                .map(spanned)
                .collect(),
            multicast_route: entries
                .multicast_routes
                .values()
                .map(|route| spanned(MulticastRouteSection::of(ports, route)))
                .collect(),
            shared_hosts: entries.shared_hosts.values().map(SharedHostsSection::of).collect(),
            sid: entries.sids.iter().map(|(prefix, behavior)| SidSection::of(ports, *prefix, *behavior)).collect(),
            hmac_key: entries.keys.iter().map(|(id, key)| HmacKeySection::of(*id, key)).collect(),
            group: entries.groups.values().map(|entry| spanned(GroupSection::of(entry))).collect(),
            learning: entries.learning.as_ref().map(|learning| spanned(LearningSection::of(learning))),
            traffic_class: entries.classes.iter().flat_map(TrafficClassSection::all_of).collect(),
            egress: entries.egress.iter().map(|(port, egress)| EgressSection::of(ports, *port, egress)).collect(),
            ioam: entries.ioam.as_ref().map(|ioam| spanned(IoamSection::of(ports, ioam))),
            fast_cnp: entries.fast_cnp.as_ref().map(|config| spanned(FastCnpSection::of(config))),
            backpressure: entries.backpressure.as_ref().map(|config| spanned(BackpressureSection::of(ports, config))),
            backpressure_sids: entries.backpressure_sids.values().map(SidsSection::of).collect(),
            steering: entries.steering.as_ref().map(|config| spanned(SteeringSection::of(config))),
            bfd: entries.bfd.values().map(|session| spanned(BfdSection::of(ports, session))).collect(),
            connection: entries.connections.values().map(ConnectionSection::of).collect(),
            ..NodeFile::new(NodeSection {
                open: entries.domain.is_none() && !entries.sids.is_empty(),
                ..NodeSection::of(&spec.node)
            })
        }
    }

    /// The file as TOML.
    ///
    /// # Errors
    ///
    /// When the name of a file is not UTF-8.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

/// The names of a node's ports.
#[derive(Clone, Copy)]
struct Ports<'s>(&'s [PortConfig]);

impl Ports<'_> {
    /// The name of a port; of one that the node lacks, a name that no reader accepts.
    fn name(self, port: PortId) -> PortName {
        let name = self.0.get(port.index()).map(|port| port.name.clone());
        PortName(name.unwrap_or_else(|| format!("{port:?}")))
    }

    fn next_hop(self, next_hop: srdma_dataplane::NextHop) -> Located<ZonedAddress> {
        ZonedAddress { address: next_hop.address, port: self.name(next_hop.port).0 }.into()
    }
}

/// A value of a file that was not parsed.
pub fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn all<T: Clone>(values: &[T]) -> Vec<Located<T>> {
    values.iter().cloned().map(Located::from).collect()
}

fn addresses(addresses: &[std::net::Ipv6Addr]) -> Vec<Located<HostAddress>> {
    addresses.iter().map(|address| HostAddress(*address).into()).collect()
}

/// A key whose value is not the default.
fn unless<T: PartialEq, L>(value: T, default: T, located: impl FnOnce(T) -> L) -> Option<L> {
    (value != default).then(|| located(value))
}

/// An integer of any size as a key's value.
fn integer<const MIN: u64, const MAX: u64>(value: impl TryInto<u64>) -> Located<Integer<MIN, MAX>> {
    Integer::clamped(value.try_into().unwrap_or(MAX)).into()
}

fn ns(ns: u64) -> std::time::Duration {
    std::time::Duration::from_nanos(ns)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
