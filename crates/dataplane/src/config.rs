//! Commands to a node: its ports and addresses, routes, SIDs, keys and groups.

use crate::backpressure::{BackpressureConfig, BackpressureSids};
use crate::behavior::Flavors;
use crate::bfd::{BfdPeer, BfdSession};
pub use crate::config_error::ConfigError;
use crate::cross_connect::CrossConnect;
use crate::egress::{ClassMap, EgressConfig};
use crate::encaps::EncapsMode;
use crate::fast_cnp::{Connection, FastCnpConfig};
use crate::headend::{HeadendConfig, HeadendPath};
use crate::ioam::IoamConfig;
use crate::learning::Learning;
use crate::policy::{PolicyId, SrPolicy};
use crate::security::{Cover, Domain, HmacKey};
use crate::shared_hosts::SharedHosts;
use crate::vlan::{PortVlan, Trust};
use crate::worker::Worker;
use srdma_frame::PortId;
use srdma_group::{GroupEntry, GroupId, Safeguard};
use srdma_wire::Prefix;
use srdma_wire::fast_cnp::OptionTypes;
use srdma_wire::tlv::TlvTypes;
use srdma_wire::{MacAddress, Qpn};
use std::net::Ipv6Addr;

/// A table of routes, by its number. The main table is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u16);

#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PortConfig {
    /// Its name, for people.
    pub name: String,
    pub mac: MacAddress,
    pub addresses: Vec<Ipv6Addr>,
    /// Largest IPv6 packet that the link carries, in octets.
    pub link_mtu: u16,
    /// Octets that may wait in its egress queue.
    pub queue_limit_octets: usize,
    /// The VLAN of its frames, on the link of another port; `None`: they have a link of their own, and no tag.
    pub vlan: Option<PortVlan>,
    /// What the traffic class of received frames follows from.
    pub trust: Trust,
}

impl Default for PortConfig {
    fn default() -> Self {
        PortConfig {
            name: String::new(),
            mac: MacAddress([0; 6]),
            addresses: Vec::new(),
            link_mtu: 1500,
            queue_limit_octets: 1 << 20,
            vlan: None,
            trust: Trust::Dscp,
        }
    }
}

/// Verification of the HMACs of SRHs (RFC 8754 section 2.1.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HmacPolicy {
    /// HMAC TLVs are not read.
    #[default]
    Ignored,
    /// An HMAC TLV that is there is verified (D232).
    IfPresent,
    /// There must be one (D130).
    Required,
}

/// How the ICRC of a copy is made (D10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IcrcMode {
    /// From the old one and what was changed: a bad ICRC stays bad.
    #[default]
    Incremental,
    /// From the whole packet.
    Recompute,
}

/// A node's own settings.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Its loopback address: source of what it sends itself.
    pub loopback: Ipv6Addr,
    /// Its ports, in the order of their [`PortId`]s.
    pub ports: Vec<PortConfig>,
    /// TLV types that the draft leaves open.
    pub tlv_types: TlvTypes,
    /// Types of the two options of Fast CNPs, which the draft leaves open (FC-6-1).
    pub fast_cnp_types: OptionTypes,
    /// How ICRCs of copies are made.
    pub icrc: IcrcMode,
    /// Whether an edge verifies the ICRC of a data packet before it copies it (D10).
    pub verify_icrc: bool,
    /// ICMPv6 errors a second, and as many at once (RFC 4443 section 2.4 f); Packet Too Big apart from the others.
    pub icmp_errors_per_second: u32,
    /// Packets with a lower hop limit are not replicated (RFC 9524 section 2.2).
    pub replication_hop_limit: u8,
    /// The host that answers connection management for Proxy Addresses (D251).
    pub cm_host: Option<Ipv6Addr>,
    /// The same for Proxy Addresses of IPv4, as an IPv4-mapped address (D292).
    pub cm_host_ipv4: Option<Ipv6Addr>,
    /// Which packets with an SRH End, End.X and End.DT6 take, by its HMAC.
    pub hmac: HmacPolicy,
    /// Minimum cover of an HMAC that End.MT requires (D9): `Tlvs`, or that of keys which sign less.
    pub end_mt_cover: Cover,
    /// After a restart: groups begin with unknown branches (D17).
    pub restarted: bool,
    /// Seed of the chance that decides on ECN marks between Kmin and Kmax.
    pub marking_seed: u64,
    /// Octets that retransmission buffers of all groups may take (D162).
    pub repair_memory_octets: u64,
    /// Seed of what attackers must not be able to guess: discriminators and UDP source ports of BFD (D92), and
    /// Identifications of fragments (D288).
    pub secret_seed: u64,
    /// The worker of the node that this is.
    pub worker: Worker,
    /// Disabled by a test; `None` in the product.
    pub without: Option<Safeguard>,
}

impl NodeConfig {
    /// The defaults for a node with this loopback address and these ports.
    pub fn new(loopback: Ipv6Addr, ports: Vec<PortConfig>) -> Self {
        NodeConfig {
            loopback,
            ports,
            tlv_types: TlvTypes::default(),
            fast_cnp_types: OptionTypes::default(),
            icrc: IcrcMode::Incremental,
            verify_icrc: false,
            icmp_errors_per_second: 100,
            replication_hop_limit: 0,
            cm_host: None,
            cm_host_ipv4: None,
            hmac: HmacPolicy::Ignored,
            end_mt_cover: Cover::Tlvs,
            restarted: false,
            marking_seed: 0,
            repair_memory_octets: 1 << 30,
            secret_seed: 0,
            worker: Worker::ALONE,
            without: None,
        }
    }
}

/// A next hop: a neighbour at a port. That of an IPv4 packet has an IPv4-mapped address (D258).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NextHop {
    pub port: PortId,
    pub address: Ipv6Addr,
}

/// A way to a prefix around a neighbour that is lost (D266).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupRoute {
    /// The destination, among those whose route leads to the neighbour.
    pub prefix: Prefix,
    /// The neighbour to which packets are sent instead.
    pub next_hop: NextHop,
    /// The segments of their outer headers (H.Encaps.Red); none: they stay as they are.
    pub segments: Vec<Ipv6Addr>,
}

/// Action of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteAction {
    /// Forward to one of these neighbours, chosen by the flow.
    Via(Vec<NextHop>),
    /// Encapsulate (RFC 8986 section 5), then forward by the first segment.
    Encaps {
        /// The path.
        segments: Vec<Ipv6Addr>,
        /// H.Encaps or H.Encaps.Red.
        mode: EncapsMode,
        /// The key that signs the SRH, where there is one.
        hmac_key_id: Option<u32>,
    },
    /// Encapsulate by a segment list of an SR policy (RFC 9256), chosen by the flow.
    Policy {
        /// The policy.
        policy: PolicyId,
        /// H.Encaps or H.Encaps.Red.
        mode: EncapsMode,
    },
    /// Encapsulate by one of these paths, of which the headend chooses for each flow (PP-4-3).
    Placed(Vec<HeadendPath>),
    /// Drop.
    Blackhole,
    /// Pass on what shared hosts send to Proxy Addresses of no group here; nothing else has a route (D281).
    ToPeer,
}

/// Behaviour of a SID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidBehavior {
    /// End, with flavors; uN is `Flavors::MICRO`.
    End(Flavors),
    /// End.X, with flavors, by this adjacency; uA is `Flavors::MICRO`.
    EndX(Flavors, NextHop),
    /// End.DT6 with this table.
    EndDt6(TableId),
    /// End.DT4 with this table.
    EndDt4(TableId),
    /// End.DT46 with this table of IPv4 and this one of IPv6: both have one number.
    EndDt46(TableId),
    /// End.DX4: the inner packet leaves by an adjacency.
    EndDx4 {
        /// The adjacency, whose address is one of IPv4.
        next_hop: NextHop,
        /// The table by which ICMPv4 errors about inner packets are sent (D233).
        table: TableId,
    },
    /// End.DX6: the inner packet leaves by an adjacency.
    EndDx6 {
        /// The adjacency.
        next_hop: NextHop,
        /// The table by which ICMPv6 errors about inner packets are sent (D233).
        table: TableId,
    },
    /// End.DX2: the Ethernet frame in the packet leaves by this port.
    EndDx2(PortId),
    /// End.B6.Encaps, or End.B6.Encaps.Red in the reduced mode: an SR policy is applied.
    EndB6Encaps {
        /// The policy.
        policy: PolicyId,
        /// Whether the first segment is left out of the SRH.
        mode: EncapsMode,
    },
    /// END.C: a notification is taken, and a gateway paused for it or not any more (CN-4.1-1).
    EndC,
    /// END.E with this table: as End.DT6, and what comes out may be a Fast CNP for a host outside (CN-4.2-1, D64).
    EndE(TableId),
    /// End.Replicate for the group of this number.
    EndReplicate(GroupId),
    /// End.MT; `require_hmac`: only packets whose SRH verifies (MT-9-1).
    EndMt {
        /// Whether the SRH must carry a valid HMAC.
        require_hmac: bool,
    },
}

/// A static multicast route (MT-5.2-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastRoute {
    /// The outer source address: the headend's loopback. A transit node that hands its branches over to the group finds
    /// the route by its own loopback, although its copies keep the headend's (D3).
    pub source: Ipv6Addr,
    /// The IPv6 multicast group.
    pub group: Ipv6Addr,
    /// The only port that packets are taken from, when given.
    pub incoming: Option<PortId>,
    /// The ports that copies leave by.
    pub outgoing: Vec<PortId>,
    /// The packet is given End.MT here as well (MT-5.1-3).
    pub end_mt: bool,
    /// With End.MT: only packets whose SRH verifies (MT-9-1).
    pub require_hmac: bool,
}

/// A change of configuration.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Command {
    /// Adds a port behind those that are there. Ports never go: one whose interface is gone has no driver.
    AddPort(PortConfig),
    /// Changes the link properties of a port.
    SetPort {
        port: PortId,
        mac: MacAddress,
        addresses: Vec<Ipv6Addr>,
        /// Largest IPv6 packet that the link carries, in octets.
        link_mtu: u16,
    },
    /// The link of a port has lost its carrier or was taken down, or is up again: while it is down, the neighbours
    /// there are avoided as those whose BFD session is down (D285). Links are up at first.
    SetLink {
        port: PortId,
        is_up: bool,
    },
    /// Adds or replaces a neighbour. Packets to its address go to it, unless the address has a route, is a SID, a
    /// group's or the node's own.
    AddNeighbour {
        /// Where it is.
        next_hop: NextHop,
        mac: MacAddress,
    },
    /// Forgets a neighbour's MAC address. Routes by way of it stay, and drop.
    RemoveNeighbour(NextHop),
    /// Adds or replaces a route.
    AddRoute {
        table: TableId,
        /// The destination.
        prefix: Prefix,
        action: RouteAction,
    },
    RemoveRoute {
        table: TableId,
        /// The destination.
        prefix: Prefix,
    },
    /// Adds an SR policy, or gives routes and SIDs that use it other segment lists.
    AddPolicy {
        id: PolicyId,
        /// Its segment lists.
        policy: Box<SrPolicy>,
    },
    /// Removes an SR policy that neither route nor SID uses.
    RemovePolicy(PolicyId),
    /// Replaces the backups of a neighbour: they take the packets to it while its BFD session or the
    /// link of its port is down.
    SetBackups {
        /// The neighbour.
        next_hop: NextHop,
        routes: Vec<BackupRoute>,
    },
    RemoveBackups(NextHop),
    /// Adds or replaces a SID in the main table.
    AddSid {
        /// The SID: 128 bits, or its locator and function where an argument follows.
        prefix: Prefix,
        /// Behaviour of the SID.
        behavior: SidBehavior,
    },
    RemoveSid(Prefix),
    /// Adds or replaces a static multicast route.
    AddMulticastRoute(MulticastRoute),
    /// Removes a static multicast route.
    RemoveMulticastRoute {
        /// Its outer source address.
        source: Ipv6Addr,
        /// Its IPv6 multicast group.
        group: Ipv6Addr,
    },
    /// Adds or replaces an HMAC key.
    AddHmacKey {
        key_id: u32,
        key: HmacKey,
    },
    /// Removes an HMAC key that no group of this headend signs with.
    RemoveHmacKey(u32),
    /// Sets the prefixes of the SR domain. Without it no packet is dropped as one from outside.
    SetDomain(Domain),
    /// There is no domain any more.
    RemoveDomain,
    /// Makes a port a border port: hosts or foreign networks are behind it (RFC 8754 section 5.1, BCP 38).
    SetBorder {
        port: PortId,
        /// The prefixes that are accepted as sources; without any, all except the domain's.
        sources: Vec<Prefix>,
    },
    /// Makes a port an inside one again, as it began.
    RemoveBorder(PortId),
    /// Sets the hosts that are attached to another node as well, in place of the previous ones (D281). What they send
    /// to Proxy Addresses of no group here is passed on where a route says so, [`RouteAction::ToPeer`].
    SetSharedHosts(Vec<SharedHosts>),
    /// Has the frames that a port receives leave whole, by an SR policy.
    SetCrossConnect {
        port: PortId,
        /// The policy.
        cross_connect: CrossConnect,
    },
    /// Takes the packets that a port receives again, as it began.
    RemoveCrossConnect(PortId),
    /// Gives a port traffic classes, with their limits, marks and pauses, or others than it had. Without it a port has
    /// one queue.
    SetEgress {
        port: PortId,
        /// Its classes.
        egress: Box<EgressConfig>,
    },
    /// Gives a port its initial single queue again. A pause that was sent to its neighbour times out.
    RemoveEgress(PortId),
    /// Maps DSCPs to classes, at all ports with classes. Without it all belong to class 0.
    SetClasses(ClassMap),
    /// Writes to IOAM traces (RFC 9197); replaces the previous configuration.
    SetIoam(Box<IoamConfig>),
    /// Leaves IOAM traces as they are, as it began.
    RemoveIoam,
    /// Turns Fast CNP on, or changes its configuration (FC-5-4). Learnt state stays.
    SetFastCnp(Box<FastCnpConfig>),
    /// Disables Fast CNP, the initial state, and discards its connections.
    RemoveFastCnp,
    /// Sends notifications to END.C SIDs, and accepts them; replaces the previous configuration. Pauses that were
    /// received end.
    SetBackpressure(Box<BackpressureConfig>),
    /// Neither sends nor takes notifications, as it began.
    RemoveBackpressure,
    /// Sets the SIDs by which notifications reach the ingress PEs of the SR domain, in place of the previous ones
    /// (D63). With none, the initial state, notifications go to senders by the main table, tunnel or not.
    SetBackpressureSids(Vec<BackpressureSids>),
    /// Steers flows over placed paths; replaces the previous configuration and discards the state of its paths. Outer
    /// source address and types of Fast CNP options are the node's.
    SetSteering(Box<HeadendConfig>),
    /// Steers no more, as it began; no route leads to placed paths any more.
    RemoveSteering,
    /// Adds a BFD session, or changes the one with the same peer (D109). Another local address makes it another one.
    SetBfdSession(Box<BfdSession>),
    /// Removes a BFD session, which its peer takes for a failure unless it was disabled before.
    RemoveBfdSession(BfdPeer),
    /// Adds or replaces a connection of a host that Fast CNPs are translated for (D48), or whose flows are steered.
    AddConnection(Connection),
    /// Forgets a connection that was added.
    RemoveConnection {
        host: Ipv6Addr,
        /// The other side's address.
        peer: Ipv6Addr,
        /// The other side's queue pair.
        peer_qpn: Qpn,
    },
    /// Takes part in a group, or in a new epoch of it; its Proxy Address becomes this node's to intercept. Both phases
    /// of a commit at once.
    AddGroup(Box<GroupEntry>),
    /// Restores a group whose state was lost: its branches are unknown until they respond (R6, D17). A group that the
    /// node still has continues as by [`Command::AddGroup`].
    RestoreGroup(Box<GroupEntry>),
    /// First phase of a commit (D31): checks the group entry and keeps it, in place of one that was kept before.
    PrepareGroup(Box<GroupEntry>),
    /// Second phase: the group entry prepared for this epoch takes effect. No change if that epoch is in effect.
    CommitGroup {
        id: GroupId,
        /// The epoch that was prepared.
        epoch: u32,
        /// The group is new: its headend waits for the first PSN (D137).
        is_first: bool,
    },
    /// Forgets what was prepared for a group.
    AbortGroup(GroupId),
    /// Leaves a group.
    RemoveGroup(GroupId),
    /// Learns groups of which there is no record from the lists in their packets (D17). Other settings than before
    /// forget the groups that were learnt.
    SetLearning(Learning),
    /// Forgets the groups that were learnt, and learns no more.
    RemoveLearning,
}
