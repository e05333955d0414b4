//! The node: ports, tables, behaviours and groups behind one [`Element`].
//!
//! ```text
//! port → ingress → is DA a local SID? ─── yes → behaviour ─────────┐
//!                  a packet to a Proxy Address? → headend, reverse ┤
//!                  a policy? → encapsulate ────────────────────────┤
//!                  else → FIB ─────────────────────────────────────┴→ egress queue
//! any refusal → one counter per reason and port
//! ```

mod border;
mod congestion;
mod control;
mod egress;
mod end_mt;
mod fast_cnp;
mod fetch;
mod forward;
mod groups;
mod icmp;
mod inspect;
mod ioam;
mod journal;
mod learn;
mod multicast;
mod notification;
mod placed;
mod proxy;
mod replicate;
mod shared;
mod state;
mod targets;
mod trim;
mod upstream;

use crate::border::Boundary;
use crate::config::{ConfigError, NodeConfig, TableId};
use crate::counters::{GroupCounters, PortCounters, Traffic};
use crate::drop::{DropCounters, DropReason};
use crate::egress::{ClassMap, Egress};
use crate::encaps::Encaps;
use crate::entropy;
use crate::event::Event;
use crate::fast_cnp::{FastCnpConfig, FastCnpCounters, Notifier};
use crate::headend::Headend;
use crate::headers::AFTER_IPV6;
use crate::hmac::HmacKeys;
use crate::ioam::Ioam;
use crate::notification::{NotificationCounters, Origins, SidTable};
use crate::timers::Timers;
use crate::token_bucket::TokenBucket;
pub use fast_cnp::Notified;
use journal::Journal;
pub use journal::{Entry, HoldEnd, What};
use learn::Learner;
pub use notification::Hold;
use notification::Notifications;
use placed::Placed;
use shared::Shared;
use srdma_aggregation::{Acknowledgements, BranchIndex, CnpUp, UpstreamResponse};
use srdma_fib::Fib;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_group::{GroupEntry, GroupId};
use srdma_wire::{Instant, MacAddress, Prefix};
use state::{Adjacency, EcmpSet, GroupState, ListCache, MulticastEntry, Sid, Target};
use std::collections::BTreeMap;

/// A node as a value.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    /// The MAC addresses of the ports: those of [`Self::config`], close together.
    macs: Vec<MacAddress>,
    port_counters: Vec<PortCounters>,
    /// Drops of packets that the node made itself.
    own_drops: DropCounters,
    egress: Egress,
    /// The traffic class of each DSCP, at ports with classes.
    classes: ClassMap,
    /// What is written to traces, if anything is.
    ioam: Option<Box<Ioam>>,
    tables: BTreeMap<TableId, Fib<Target>>,
    /// The main table, apart because nearly every look-up is in it.
    main: Fib<Target>,
    adjacencies: Shared<Adjacency>,
    ecmp: Shared<EcmpSet>,
    /// What makes this node choose otherwise among equals than its neighbours do.
    ecmp_salt: u32,
    encaps: Shared<Encaps>,
    placed: Shared<Placed>,
    /// What steers flows over placed paths, when the node does.
    headend: Option<Box<Headend>>,
    sids: Vec<Sid>,
    multicast_routes: BTreeMap<([u8; 16], [u8; 16]), MulticastEntry>,
    groups: Vec<Option<GroupState>>,
    /// The node is the root of a group.
    is_root: bool,
    /// Parts of groups that were prepared and not yet committed (D31).
    prepared: BTreeMap<GroupId, GroupEntry>,
    /// What the control plane has to be told.
    events: Vec<Event>,
    /// What happened to the groups, while somebody observes the node.
    journal: Option<Box<Journal>>,
    lists: ListCache,
    /// How groups without a record are learnt (D17).
    learner: Option<Box<Learner>>,
    hmac_keys: HmacKeys,
    boundary: Boundary,
    /// Fast CNP, when it is on (FC-5-4).
    fast_cnp: Option<Box<Notifier>>,
    /// Notifications that were sent and taken, when the node does so.
    notifications: Option<Box<Notifications>>,
    /// Who sends to the node's END.E SIDs, when it has any (D66).
    end_e_origins: Option<Box<Origins>>,
    /// The SIDs by which notifications go back to ingress PEs (D63).
    notification_sids: SidTable,
    /// Packets to SIDs of the node are looked at before the SID takes them.
    guards_sids: bool,
    /// Raised with every change that resolved forwarding data may depend on.
    generation: u64,
    /// The outer source address of the packet that came out of a tunnel last. Apart from its [`Arrival`], which every
    /// packet carries along.
    outer_source: [u8; 16],
    timers: Timers,
    /// ICMPv6 errors that may still be sent (RFC 4443 section 2.4 f).
    icmp: TokenBucket,
    /// What the reverse path has to say; kept for its memory.
    upstream: Vec<UpstreamResponse>,
    /// CNPs that it has to send; kept for its memory.
    cnps: Vec<CnpUp>,
}

/// Where a packet came from, for counters, errors and checks.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    now: Instant,
    /// The port; `None` for packets that the node made itself.
    port: Option<PortId>,
    /// Copies of it were or will be made: hardly any ICMPv6 error may answer it (RFC 9524 section 2.2.3).
    replicated: bool,
    /// Octets of outer headers that this node has put in front of it, and that no SID of its own has met since.
    encapsulated: usize,
    /// It came out of a tunnel: the port says nothing about who sent it, but [`Node::outer_source`] does.
    decapsulated: bool,
    /// It came out of a tunnel at an END.E: it may be a Fast CNP for a host outside (D64).
    by_end_e: bool,
}

impl Arrival {
    /// Of a packet at a port.
    #[inline]
    fn at(now: Instant, port: PortId) -> Self {
        Arrival { port: Some(port), ..Arrival::own(now) }
    }

    /// Of a packet that the node makes.
    #[inline]
    fn own(now: Instant) -> Self {
        Arrival { now, port: None, replicated: false, encapsulated: 0, decapsulated: false, by_end_e: false }
    }
}

impl Node {
    /// A node without routes.
    pub fn new(config: NodeConfig) -> Self {
        let mut egress = Egress::new(config.marking_seed);
        for port in &config.ports {
            egress.add_port(port.queue_limit_octets);
        }
        let mut main = Fib::default();
        let own = config.ports.iter().flat_map(|port| port.addresses.iter().copied());
        for address in own.chain([config.loopback]) {
            main.insert(Prefix::host(address), Target::Local);
        }
        let ecmp_salt = entropy::salt(config.loopback);
        Node {
            macs: config.ports.iter().map(|port| port.mac).collect(),
            port_counters: vec![PortCounters::default(); config.ports.len()],
            own_drops: DropCounters::default(),
            icmp: TokenBucket::new(config.icmp_errors_per_second, config.icmp_errors_per_second),
            guards_sids: config.require_hmac,
            config,
            egress,
            classes: ClassMap::default(),
            ioam: None,
            tables: BTreeMap::new(),
            main,
            adjacencies: Shared::default(),
            ecmp: Shared::default(),
            ecmp_salt,
            encaps: Shared::default(),
            placed: Shared::default(),
            headend: None,
            sids: Vec::new(),
            multicast_routes: BTreeMap::new(),
            groups: Vec::new(),
            is_root: false,
            prepared: BTreeMap::new(),
            events: Vec::new(),
            journal: None,
            lists: ListCache::default(),
            learner: None,
            hmac_keys: HmacKeys::default(),
            boundary: Boundary::default(),
            fast_cnp: None,
            notifications: None,
            end_e_origins: None,
            notification_sids: SidTable::default(),
            generation: 0,
            outer_source: [0; 16],
            timers: Timers::default(),
            upstream: Vec::new(),
            cnps: Vec::new(),
        }
    }

    /// The node's settings.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The counters of a port.
    pub fn port_counters(&self, port: PortId) -> Option<&PortCounters> {
        self.port_counters.get(port.index())
    }

    /// Drops of packets that the node made itself.
    pub fn own_drops(&self) -> &DropCounters {
        &self.own_drops
    }

    /// Packets that each SID took.
    pub fn sid_counters(&self) -> impl Iterator<Item = (Prefix, Traffic)> {
        self.sids.iter().map(|sid| (sid.prefix, sid.traffic))
    }

    /// The counters of a group.
    pub fn group_counters(&self, id: GroupId) -> Option<GroupCounters> {
        self.group(id).map(|group| group.counters)
    }

    /// What a group's branches have acknowledged.
    pub fn acknowledgements(&self, id: GroupId) -> Option<&Acknowledgements> {
        self.group(id).map(|group| &group.acks)
    }

    /// The CNPs that came from a branch of a group.
    pub fn branch_cnps(&self, id: GroupId, branch: BranchIndex) -> Option<u64> {
        self.group(id)?.branch_cnps.get(branch.index()).copied()
    }

    /// The groups that the node takes part in.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().flatten().map(|group| group.entry.id)
    }

    /// How the node uses Fast CNP; `None` when it does not.
    pub fn fast_cnp(&self) -> Option<&FastCnpConfig> {
        self.fast_cnp.as_ref().map(|notifier| notifier.config())
    }

    /// What it counts of Fast CNP; zeros when it does not use it.
    pub fn fast_cnp_counters(&self) -> FastCnpCounters {
        self.fast_cnp.as_ref().map_or_else(FastCnpCounters::default, |notifier| notifier.counters)
    }

    /// What it counts of notifications; zeros when it neither sends nor takes any.
    pub fn notification_counters(&self) -> NotificationCounters {
        self.notifications.as_ref().map_or_else(NotificationCounters::default, |notifications| notifications.counters())
    }

    /// What the control plane has to be told since the last call.
    pub fn take_events(&mut self) -> impl Iterator<Item = Event> {
        self.events.drain(..)
    }

    fn group(&self, id: GroupId) -> Option<&GroupState> {
        self.groups.iter().flatten().find(|group| group.entry.id == id)
    }

    /// Drops what waits to be sent at a port that has no link; returns how many frames that were.
    pub fn drop_queue(&mut self, port: PortId, pool: &mut Pool) -> usize {
        let mut dropped = 0;
        while let Some(frame) = self.egress.dequeue(port).or_else(|| self.egress.take_any(port)) {
            frame.release(pool);
            dropped += 1;
            if let Some(counters) = self.port_counters.get_mut(port.index()) {
                counters.drops.count(DropReason::PortDown);
            }
        }
        dropped
    }

    fn check_port(&self, port: PortId) -> Result<(), ConfigError> {
        let ports = self.config.ports.len();
        if port.index() < ports { Ok(()) } else { Err(ConfigError::UnknownPort(port.0, ports)) }
    }

    fn count_drop(&mut self, arrival: Arrival, reason: DropReason) {
        match arrival.port.and_then(|port| self.port_counters.get_mut(port.index())) {
            Some(counters) => counters.drops.count(reason),
            None => self.own_drops.count(reason),
        }
    }

    #[cold]
    fn drop_frame(&mut self, arrival: Arrival, frame: Frame, pool: &mut Pool, reason: DropReason) {
        frame.release(pool);
        self.count_drop(arrival, reason);
    }
}

/// Frames whose headers are fetched into the first-level cache together: they have to fit.
const FETCHED_TOGETHER: usize = 32;

/// Reads from the cache lines that Ethernet and IPv6 headers lie in. Left alone, packet after packet would wait for its
/// own.
#[inline]
fn fetch_headers(frames: &[Frame], pool: &Pool) {
    let mut sum = 0;
    for frame in frames {
        let head = frame.head(pool);
        if let Some(octets) = head.first_chunk::<AFTER_IPV6>() {
            sum ^= octets[0] ^ octets[AFTER_IPV6 - 1] ^ head.get(AFTER_IPV6 + 64).copied().unwrap_or_default();
        }
    }
    std::hint::black_box(sum);
}

impl Element for Node {
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        let arrival = Arrival::at(now, port);
        if self.boundary.is_border(port) {
            self.keep_out(port, frames, pool);
        }
        if self.headend.is_some() {
            self.listen(now, port, frames, pool);
        }
        if self.fast_cnp.as_ref().is_some_and(|notifier| self.is_root || notifier.translates_any()) {
            self.translate_and_learn(arrival, port, frames, pool);
        }
        let mut coming = frames.drain(..);
        while coming.len() > 0 {
            fetch_headers(&coming.as_slice()[..coming.len().min(FETCHED_TOGETHER)], pool);
            for frame in coming.by_ref().take(FETCHED_TOGETHER) {
                self.ingress(arrival, port, frame, pool);
            }
        }
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        while let Some(group) = self.timers.take_due(now) {
            self.group_tick(now, group, pool);
        }
        self.egress.tick(now);
        self.forget_idle(now);
        self.notification_tick(now, pool);
        if self.headend.is_some() {
            self.probe(now, pool);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let probes = self.headend.as_ref().and_then(|headend| headend.next_deadline());
        let notifications = self.notifications.as_ref().and_then(|notifications| notifications.next_deadline());
        let others = [self.timers.next(), self.egress.next_deadline(), self.next_look(), probes];
        others.into_iter().chain([notifications]).flatten().min()
    }

    /// In line, as are those of other elements: a frame that is passed on is moved once less.
    #[inline]
    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        match self.egress.dequeue(port) {
            Some(frame) => Some(frame),
            None => self.dequeue_class(now, port, pool),
        }
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        self.egress.take_ready(wake);
    }
}
