//! Configuration as ordered maps, keyed by subject.

use crate::{KeySpec, diff};
use srdma_dataplane::{
    BackpressureConfig, BackpressureSids, BackupRoute, BfdPeer, BfdSession, ClassMap, Command, Connection,
    CrossConnect, Domain, EgressConfig, FastCnpConfig, IoamConfig, Learning, MulticastRoute, NextHop, PolicyId,
    RouteAction, SharedHosts, SidBehavior, SrPolicy, TableId, headend::HeadendConfig,
};
use srdma_frame::PortId;
use srdma_group::GroupEntry;
use srdma_wire::{MacAddress, Prefix, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Properties of a port that its link determines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// MAC address of the port.
    pub mac: MacAddress,
    /// Its addresses.
    pub addresses: Vec<Ipv6Addr>,
    /// Largest IPv6 packet that the link carries, in octets.
    pub link_mtu: u16,
}

/// Everything that a node can be configured with while it runs.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Entries {
    /// Links whose facts differ from the port's settings.
    pub links: BTreeMap<PortId, LinkFacts>,
    /// HMAC keys by id.
    pub keys: BTreeMap<u32, KeySpec>,
    /// The addresses of the SR domain.
    pub domain: Option<Domain>,
    /// Border ports, and the prefixes that each may send from.
    pub borders: BTreeMap<PortId, Vec<Prefix>>,
    /// DSCPs of the traffic classes.
    pub classes: Option<ClassMap>,
    /// Traffic classes of ports.
    pub egress: BTreeMap<PortId, EgressConfig>,
    /// IOAM traces.
    pub ioam: Option<IoamConfig>,
    /// Steering over placed paths.
    pub steering: Option<HeadendConfig>,
    pub fast_cnp: Option<FastCnpConfig>,
    /// Connections by host, peer and the peer's queue pair.
    pub connections: BTreeMap<(Ipv6Addr, Ipv6Addr, Qpn), Connection>,
    /// Notifications to and from END.C SIDs, if backpressure is on.
    pub backpressure: Option<BackpressureConfig>,
    /// END.C and END.E SIDs by outer source (D63).
    pub backpressure_sids: BTreeMap<Prefix, BackpressureSids>,
    pub neighbours: BTreeMap<(PortId, Ipv6Addr), MacAddress>,
    /// SR policies of routes and SIDs.
    pub policies: BTreeMap<PolicyId, SrPolicy>,
    /// Ports whose frames leave whole in SRv6.
    pub cross_connects: BTreeMap<PortId, CrossConnect>,
    pub routes: BTreeMap<(TableId, Prefix), RouteAction>,
    /// Hosts that are attached to another node as well (D281).
    pub shared_hosts: BTreeMap<Prefix, SharedHosts>,
    /// Static multicast routes by outer source and group.
    pub multicast_routes: BTreeMap<(Ipv6Addr, Ipv6Addr), MulticastRoute>,
    pub sids: BTreeMap<Prefix, SidBehavior>,
    /// Multicast groups by number.
    pub groups: BTreeMap<u32, GroupEntry>,
    /// BFD sessions by peer.
    pub bfd: BTreeMap<BfdPeer, BfdSession>,
    /// Backups by the neighbour that they go around (D266).
    pub backups: BTreeMap<NextHop, Vec<BackupRoute>>,
    /// Learning of groups.
    pub learning: Option<Learning>,
}

impl Entries {
    /// Adds the entries of `other`, which replace those of the same subject.
    pub fn extend(&mut self, other: Entries) {
        let Entries {
            links,
            keys,
            domain,
            borders,
            classes,
            egress,
            ioam,
            steering,
            fast_cnp,
            connections,
            backpressure,
            backpressure_sids,
            neighbours,
            policies,
            cross_connects,
            routes,
            shared_hosts,
            multicast_routes,
            sids,
            groups,
            bfd,
            backups,
            learning,
        } = other;
        self.links.extend(links);
        self.keys.extend(keys);
        self.domain = domain.or(self.domain.take());
        self.borders.extend(borders);
        self.classes = classes.or(self.classes.take());
        self.egress.extend(egress);
        self.ioam = ioam.or(self.ioam.take());
        self.steering = steering.or(self.steering.take());
        self.fast_cnp = fast_cnp.or(self.fast_cnp.take());
        self.connections.extend(connections);
        self.backpressure = backpressure.or(self.backpressure.take());
        self.backpressure_sids.extend(backpressure_sids);
        self.neighbours.extend(neighbours);
        self.policies.extend(policies);
        self.cross_connects.extend(cross_connects);
        self.routes.extend(routes);
        self.shared_hosts.extend(shared_hosts);
        self.multicast_routes.extend(multicast_routes);
        self.sids.extend(sids);
        self.groups.extend(groups);
        self.bfd.extend(bfd);
        self.backups.extend(backups);
        self.learning = learning.or(self.learning.take());
    }

    /// A feature whose state spans flows, so that one worker of the node has to see every packet (D209); `None` without
    /// any.
    pub fn feature_of_one_worker(&self) -> Option<&'static str> {
        let is_placed = |action: &RouteAction| matches!(action, RouteAction::Placed(_));
        let features = [
            (!self.egress.is_empty(), "traffic classes"),
            (self.ioam.is_some(), "IOAM traces"),
            (self.steering.is_some() || self.routes.values().any(is_placed), "placed paths"),
            (self.fast_cnp.is_some(), "Fast CNPs"),
            (self.backpressure.is_some() || !self.backpressure_sids.is_empty(), "END.C and END.E"),
            (self.learning.is_some(), "learnt groups"),
        ];
        features.into_iter().find(|(is_used, _)| *is_used).map(|(_, name)| name)
    }

    /// The commands that add all entries to a node that has none, in an order that the node accepts.
    pub fn commands(&self) -> Vec<Command> {
        let links = self.links.iter().map(|(port, facts)| diff::set_port(*port, facts.clone()));
        links.chain(diff::additions(&Entries::default(), self)).collect()
    }

    /// The addresses that hosts send the groups' data to.
    pub fn proxies(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.groups.values().map(|group| group.proxy)
    }

    /// Adds a group, with the Replication SID that the node has for it alone.
    pub fn add_group(&mut self, entry: &GroupEntry) {
        if let Some(sid) = replication_sid(entry) {
            self.sids.insert(sid, SidBehavior::EndReplicate(entry.id));
        }
        self.groups.insert(entry.id.0, entry.clone());
    }
}

/// The SID of a group at a node that replicates. An edge has one SID for all groups.
fn replication_sid(entry: &GroupEntry) -> Option<Prefix> {
    let has_own = entry.role.replicates() && !entry.sid.is_unspecified();
    has_own.then(|| Prefix::host(entry.sid))
}
