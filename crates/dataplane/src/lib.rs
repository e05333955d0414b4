//! The SRv6 node as a value: octets and time in, octets and a deadline out.
//!
//! [`Node`] is an [`Element`](srdma_frame::Element): frames come in at ports, behaviours edit or copy them, and they
//! wait in egress queues until the driver of a port fetches them. [`Command`]s configure its routes, SIDs and groups.
//! Nothing in here does I/O, reads a clock or allocates for a packet.

mod admission;
mod backpressure;
mod behavior;
mod bfd;
mod config;
mod config_error;
mod context;
mod counters;
mod cross_connect;
mod drop;
mod egress;
mod encaps;
mod entropy;
mod event;
pub mod fast_cnp;
mod fast_path;
mod fragmentation;
mod groups;
pub mod headend;
mod headers;
pub mod headroom;
mod icmp;
mod icmpv4;
mod ioam;
mod ipv4;
mod learning;
mod multicast;
mod node;
mod policy;
mod reassembly;
mod scope;
mod security;
mod shared_hosts;
mod tables;
mod timers;
mod token_bucket;
mod translation;
mod vlan;
mod worker;

pub use backpressure::{
    BackpressureConfig, BackpressureConfigError, BackpressureCounters, BackpressureSids, PriorityMapping, ReceivedPause,
};
pub use behavior::{Flavors, NextCsid};
pub use bfd::{BfdPeer, BfdReport, BfdSession, MAX_BFD_SESSIONS};
pub use config::{
    BackupRoute, Command, ConfigError, HmacPolicy, IcrcMode, MulticastRoute, NextHop, NodeConfig, PortConfig,
    RouteAction, SidBehavior, TableId,
};
pub use counters::{BranchRepair, GroupCounters, PortCounters, RepairFill, Traffic};
pub use cross_connect::CrossConnect;
pub use drop::{DropCounters, DropReason};
pub use egress::{
    BackpressureThresholds, CLASSES, ClassConfig, ClassCounters, ClassMap, EgressConfig, EgressError, Marking,
    PauseCounters, Pauses, PfcConfig, Scheduling, StormAction, Watchdog,
};
pub use encaps::{Encaps, EncapsError, EncapsMode};
pub use entropy::equal_path;
pub use event::Event;
pub use fast_cnp::{Connection, FastCnpConfig, FastCnpCounters, Notified};
pub use fast_path::{FastPath, FastPathEntry, FastPathHop, FastPathObstacle};
pub use groups::{GroupEvent, HoldEnd, JournalEntry, Lease};
pub use ioam::{IoamConfig, IoamCounters, IoamError, IoamInterface, IoamNamespace, TimestampFormat, WideData};
pub use learning::{FIRST_LEARNT_GROUP, Learning, LearningError};
pub use node::Node;
pub use policy::{MAX_SEGMENT_LISTS, PolicyError, PolicyId, SegmentList, SrPolicy};
pub use security::{Cover, Domain, HmacKey};
pub use shared_hosts::{SharedHosts, SharedHostsError};
pub use srdma_repair::{BranchCounters as RepairBranchCounters, Counters as RepairCounters};
pub use vlan::{MAX_VLAN_ID, PortVlan, Trust, VlanError};
pub use worker::{Handover, HandoverNote, MAX_WORKERS, Worker};
