//! Why commands to a node are refused.

use crate::backpressure::BackpressureConfigError;
use crate::egress::EgressError;
use crate::encaps::EncapsError;
use crate::headend::HeadendError;
use crate::ioam::IoamError;
use crate::learning::LearningError;
use crate::policy::PolicyError;
use crate::shared_hosts::SharedHostsError;
use crate::vlan::VlanError;
use srdma_wire::{Prefix, Qpn};
use std::net::Ipv6Addr;

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ConfigError {
    /// A port's classes cannot be so.
    #[error("egress of port {port}: {error}")]
    Egress {
        port: u16,
        /// Why.
        error: EgressError,
    },
    /// A port cannot have its VLAN.
    #[error("port {name}: {error}")]
    Vlan {
        name: String,
        /// Why.
        error: VlanError,
    },
    /// A VLAN port, or one with VLANs on its link, is part of neither classes of its own nor a cross-connect.
    #[error("port {0} has a VLAN or carries one: {1}")]
    OnVlanLink(u16, &'static str),
    /// The frames of a port are not cross-connected.
    #[error("the frames of port {0} are not cross-connected")]
    UnknownCrossConnect(u16),
    /// Traces cannot be written to so.
    #[error("IOAM: {0}")]
    Ioam(IoamError),
    /// There is no such port.
    #[error("port {0} does not exist, the node has {1}")]
    UnknownPort(u16, usize),
    /// A route without a next hop.
    #[error("route {0} has no next hop")]
    NoNextHop(Prefix),
    /// A policy that cannot be.
    #[error("route {prefix}: {error}")]
    Encaps {
        /// The route.
        prefix: Prefix,
        /// Why.
        error: EncapsError,
    },
    /// The segment lists of an SR policy cannot be.
    #[error("SR policy {policy}: {error}")]
    Policy {
        policy: u32,
        /// Why.
        error: PolicyError,
    },
    /// No such SR policy.
    #[error("there is no SR policy {0}")]
    UnknownPolicy(u32),
    /// Routes or SIDs use the policy.
    #[error("SR policy {0} cannot be removed: routes or SIDs use it")]
    PolicyInUse(u32),
    /// An SR policy's HMAC key is unknown.
    #[error("SR policy {policy}: HMAC key {key_id} is not known to this node")]
    UnknownPolicyKey { policy: u32, key_id: u32 },
    /// The next hop of a route or SID is not of the IP version of its packets.
    #[error("{0} is not of the IP version of the packets that it is to be sent")]
    OtherVersion(Ipv6Addr),
    /// IPv4 packets have no placed paths.
    #[error("route {0}: IPv4 packets have no placed paths")]
    PlacedIpv4(Prefix),
    /// A SID is an IPv6 address.
    #[error("SID {0} is no IPv6 prefix")]
    Ipv4Sid(Prefix),
    /// No route to remove.
    #[error("there is no route {0}")]
    UnknownRoute(Prefix),
    /// No neighbour to remove.
    #[error("there is no neighbour {address} at port {port}")]
    UnknownNeighbour { address: Ipv6Addr, port: u16 },
    /// No SID to remove.
    #[error("there is no SID {0}")]
    UnknownSid(Prefix),
    /// No multicast route to remove.
    #[error("there is no multicast route ({source_address}, {group})")]
    UnknownMulticastRoute {
        /// The outer source address.
        source_address: Ipv6Addr,
        group: Ipv6Addr,
    },
    /// No such group.
    #[error("group {0} is not known to this node")]
    UnknownGroup(u32),
    /// Nothing was prepared for this epoch.
    #[error("group {group}: epoch {epoch} was not prepared at this node")]
    NotPrepared { group: u32, epoch: u32 },
    /// A later epoch has taken effect.
    #[error("group {group}: epoch {epoch} is older than {in_effect}, which is in effect at this node")]
    OldEpoch {
        group: u32,
        /// The epoch that was to take effect.
        epoch: u32,
        /// The epoch that is in effect.
        in_effect: u32,
    },
    /// One Proxy Address, one group (D2).
    #[error("Proxy Address {proxy} of group {group} already belongs to group {owner}")]
    ProxyInUse {
        proxy: Ipv6Addr,
        /// The group to be added.
        group: u32,
        /// The group that has it.
        owner: u32,
    },
    /// A Proxy Address is not an address of a node (D2).
    #[error("Proxy Address {proxy} of group {group} is an address of this node")]
    ProxyIsOwn {
        proxy: Ipv6Addr,
        /// The group to be added.
        group: u32,
    },
    /// A member of another IP version than the Proxy Address (D273).
    #[error(
        "group {group}: mixed address families: {} and Proxy Address {} are not both IPv4 or both IPv6",
        address.to_canonical(), proxy.to_canonical()
    )]
    MixedFamilies {
        /// The member's.
        address: Ipv6Addr,
        proxy: Ipv6Addr,
        group: u32,
    },
    /// The policy names a key that the node does not have.
    #[error("group {group}: HMAC key {key_id} is not known to this node")]
    UnknownKey { group: u32, key_id: u32 },
    /// No key to remove.
    #[error("there is no HMAC key {0}")]
    UnknownHmacKey(u32),
    /// A group signs with the key.
    #[error("HMAC key {key_id} cannot be removed: group {group} signs with it")]
    KeyInUse { key_id: u32, group: u32 },
    /// A key that signs the packets of a route or an SR policy.
    #[error("HMAC key {0} signs the packets of a route or an SR policy")]
    KeySignsRoutes(u32),
    /// A route's HMAC key is unknown.
    #[error("route {prefix}: HMAC key {key_id} is not known to this node")]
    UnknownEncapsKey {
        /// The route.
        prefix: Prefix,
        key_id: u32,
    },
    /// A SID outside the domain's blocks.
    #[error("SID {0} is in none of the domain's blocks of SIDs")]
    SidOutsideDomain(Prefix),
    /// A node outside its own domain.
    #[error("the node's loopback {0} is in none of the domain's infrastructure prefixes")]
    LoopbackOutsideDomain(Ipv6Addr),
    /// A Proxy Address that hosts could not reach, or could send from.
    #[error("Proxy Address {proxy} of group {group} is in none of the domain's prefixes of Proxy Addresses")]
    ProxyOutsideDomain { proxy: Ipv6Addr, group: u32 },
    /// Hosts behind a border have addresses of their own.
    #[error("sources {sources} of the border at port {port} meet {of_domain} of the domain")]
    SourcesOfDomain { port: u16, sources: Prefix, of_domain: Prefix },
    /// Connections are of use only to Fast CNP and to steering.
    #[error("connections need Fast CNP or steering, which are off")]
    FastCnpIsOff,
    /// A route leads to placed paths, but steering is off.
    #[error("route {0}: steering is off")]
    SteeringIsOff(Prefix),
    /// Routes lead to placed paths.
    #[error("steering is in use: {0} lists of paths have routes")]
    SteeringInUse(usize),
    /// The paths of a route cannot be.
    #[error("route {prefix}: {error}")]
    Headend {
        /// The route.
        prefix: Prefix,
        /// Why.
        error: HeadendError,
    },
    /// Packets between nodes of a tree have their epoch where an entropy value would stand (D244).
    #[error(
        "route to {node}, a node of the tree of group {group}: its paths have entropy values, and responses between \
         nodes of a tree have their epoch in the UDP source port"
    )]
    EntropyInTree { node: Ipv6Addr, group: u32 },
    /// The same of groups that a node learns.
    #[error(
        "route to {0}, the parent of learnt groups: its paths have entropy values, and responses between nodes of a \
         tree have their epoch in the UDP source port"
    )]
    EntropyToParent(Ipv6Addr),
    /// The paths of a route cannot be with these settings.
    #[error("steering: {0}")]
    Steering(HeadendError),
    /// As many BFD sessions as there may be.
    #[error("there are {0} BFD sessions already, the most that a node has")]
    TooManyBfdSessions(usize),
    /// Another session is with this peer.
    #[error("there is a BFD session with {0} already")]
    BfdPeerTaken(Ipv6Addr),
    /// No session to remove.
    #[error("there is no BFD session with {0}")]
    UnknownBfdPeer(Ipv6Addr),
    /// Settings of backpressure are invalid.
    #[error("backpressure: {0}")]
    Backpressure(#[from] BackpressureConfigError),
    /// Hosts cannot be shared so.
    #[error("shared hosts: {0}")]
    SharedHosts(SharedHostsError),
    /// Only IPv6 packets of the main table are passed on to a peer.
    #[error("route {0}: only the main table of IPv6 leads to the peers of shared hosts")]
    ToPeer(Prefix),
    /// No connection to remove.
    #[error("no connection of {host} with {peer}, queue pair {peer_qpn}, was added")]
    UnknownConnection {
        host: Ipv6Addr,
        /// The other side's address.
        peer: Ipv6Addr,
        /// The other side's queue pair.
        peer_qpn: Qpn,
    },
    /// The receiver lists do not fit the SRH.
    #[error("group {0}: receiver lists exceed an SRH of 2048 octets")]
    ListsTooLong(u32),
    /// A prefix length that leaves no room for the compressed SID.
    #[error("NEXT-CSID with a block of {block_bits} bits and compressed SIDs of {csid_bits} bits is not possible")]
    BadCsid {
        block_bits: u8,
        /// Bits of the compressed SID.
        csid_bits: u8,
    },
    /// A number that only groups have which a node has learnt.
    #[error("group {0}: numbers from 4294901760 on are those of groups that a node learns")]
    ReservedGroup(u32),
    /// Groups cannot be learnt so.
    #[error("learning groups: {0}")]
    Learning(#[from] LearningError),
    /// An address that is no multicast group.
    #[error("{0} is not an IPv6 multicast address")]
    NotMulticast(Ipv6Addr),
}
