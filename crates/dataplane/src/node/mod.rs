//! The node: its parts behind one [`Element`].
//!
//! ```text
//! port → ingress → is DA a local SID? ─── yes → behaviour ─────────┐
//!                  a packet to a Proxy Address? → replication, aggregation
//!                  a policy? → encapsulate ────────────────────────┤
//!                  else → FIB ─────────────────────────────────────┴→ egress queue
//! any refusal → one counter per reason and port
//! ```
//!
//! Each part owns its state and the methods on it, and takes the other parts that it needs as arguments. A part sends
//! nothing: it returns packets, and the node transmits them, all in the same way.

mod apply;
mod bud;
mod cm_host;
mod congestion;
mod end_mt;
mod ethernet;
mod forward;
mod hand_over;
mod ingress;
mod ipv4;
mod oam;
mod path_traces;
mod reassemble;
mod replicate;
mod resend;
mod shared_hosts;
mod verdict;

use crate::backpressure::{Backpressure, BackpressureConfig, BackpressureCounters, ReceivedPause};
use crate::bfd::{Bfd, BfdPeer, BfdReport};
use crate::config::{NextHop, NodeConfig, SidBehavior, TableId};
use crate::context::PacketContext;
use crate::counters::{BranchRepair, GroupCounters, PortCounters, RepairFill, Traffic};
use crate::cross_connect::CrossConnects;
use crate::drop::DropCounters;
use crate::egress::{ClassCounters, EgressConfig, Ports};
use crate::event::Event;
use crate::fast_cnp::{FastCnp, FastCnpConfig, FastCnpCounters, FirstHop};
use crate::fast_path::FastPathObstacle;
use crate::fragmentation::Identifications;
use crate::groups::{Groups, JournalEntry, Lease};
use crate::headend::{Headend, PlacedRoutes};
use crate::headers::ipv6;
use crate::ioam::{IoamCounters, IoamTraces};
use crate::reassembly::Reassembly;
use crate::security::Security;
use crate::tables::Tables;
use crate::token_bucket::TokenBucket;
use crate::worker::Handover;
use srdma_aggregation::{Acknowledgements, BranchIndex};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_group::{GroupEntry, GroupId, Safeguard};
use srdma_repair::Counters as RepairCounters;
use srdma_steering::SetId;
use srdma_wire::{Instant, Prefix};
use std::net::Ipv6Addr;

/// A node as a value.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    ports: Ports,
    tables: Tables,
    groups: Groups,
    security: Security,
    fast_cnp: FastCnp,
    backpressure: Backpressure,
    ioam: IoamTraces,
    headend: PlacedRoutes,
    cross_connects: CrossConnects,
    bfd: Bfd,
    /// Fragments to SIDs.
    reassembly: Reassembly,
    /// Of tunnel packets that leave in fragments.
    identifications: Identifications,
    /// Packets for other workers.
    handovers: Vec<Handover>,
    /// Limits ICMPv6 errors (RFC 4443 section 2.4 f).
    icmp_errors: TokenBucket,
    /// Apart from other errors: a source that is not told the MTU sends what does not arrive.
    too_big_errors: TokenBucket,
}

impl Node {
    /// A node without routes.
    pub fn new(config: NodeConfig) -> Self {
        // Each worker has its share of the node's limit.
        let icmp_errors = config.icmp_errors_per_second.div_ceil(config.worker.count() as u32);
        Node {
            ports: Ports::new(&config),
            tables: Tables::new(&config),
            groups: Groups::default(),
            security: Security::default(),
            fast_cnp: FastCnp::default(),
            backpressure: Backpressure::default(),
            ioam: IoamTraces::default(),
            headend: PlacedRoutes::default(),
            cross_connects: CrossConnects::default(),
            bfd: Bfd::new(config.secret_seed, config.worker),
            reassembly: Reassembly::default(),
            identifications: Identifications::new(config.secret_seed, config.worker),
            handovers: Vec::new(),
            icmp_errors: TokenBucket::new(icmp_errors, icmp_errors),
            too_big_errors: TokenBucket::new(icmp_errors, icmp_errors),
            config,
        }
    }

    /// The same without a safeguard, for tests that show what it prevents.
    pub fn without(mut self, safeguard: Option<Safeguard>) -> Self {
        self.config.without = safeguard;
        self
    }
}

impl Node {
    /// Sets the lease for the groups of a controller.
    pub fn set_lease(&mut self, lease: Lease) {
        self.groups.set_lease(lease);
    }
}

impl Element for Node {
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        if let Some(policy) = self.cross_connects.policy(port) {
            return self.ingress_ethernet(now, port, policy, frames, pool);
        }
        let context = PacketContext::received(now, port);
        let Node { config, ports, tables, groups, security, fast_cnp, headend, .. } = self;
        if security.is_border(port) {
            security.filter(port, frames, pool, ports, fast_cnp, config);
        }
        if headend.is_on() {
            headend.snoop(now, port, frames, pool, ports);
        }
        if fast_cnp.snoops(groups) {
            fast_cnp.snoop(&context, port, frames, pool, ports, FirstHop { config, tables, groups, security });
        }
        self.ingress(now, port, frames, pool);
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        self.release_kept(pool);
        while let Some(group) = self.groups.take_due(now) {
            self.group_tick(now, group, pool);
        }
        self.ports.egress.tick(now);
        self.groups.forget_idle(now, &mut self.tables);
        self.backpressure_tick(now, pool);
        self.send_probes(now, pool);
        self.send_bfd(now, pool);
        self.expire_fragments(now);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let of_parts = [
            self.groups.next_deadline(),
            self.ports.egress.next_deadline(),
            self.headend.next_deadline(),
            self.backpressure.next_deadline(),
            self.bfd.next_deadline(),
            self.reassembly.next_deadline(),
        ];
        of_parts.into_iter().flatten().min()
    }

    /// In line, as are those of other elements: a frame that is passed on is moved once less.
    #[inline]
    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        let frame = match self.ports.egress.dequeue(port) {
            Some(frame) => Some(frame),
            None => self.dequeue_class(now, port, pool),
        };
        if frame.is_some() && self.groups.is_awaited(port) {
            self.feed_after(now, port, pool);
        }
        frame
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        self.ports.egress.take_ready(wake);
    }
}

/// Ports.
impl Node {
    /// The node's settings.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The counters of a port.
    pub fn port_counters(&self, port: PortId) -> Option<&PortCounters> {
        self.ports.counters(port)
    }

    /// Frames that a port has sent: they have left its queues.
    pub fn sent(&self, port: PortId) -> Option<Traffic> {
        self.ports.sent(port)
    }

    /// Drops of packets of this node itself.
    pub fn own_drops(&self) -> &DropCounters {
        self.ports.own_drops()
    }

    /// Drops the frames that wait at a port without a link; returns how many.
    pub fn drop_queue(&mut self, port: PortId, pool: &mut Pool) -> usize {
        self.ports.drop_queue(port, pool)
    }

    /// Releases the packets of all retransmission buffers: the node ends.
    pub fn drop_kept(&mut self, pool: &mut Pool) {
        self.groups.drain_kept();
        self.release_kept(pool);
    }

    /// Releases the frames that wait at ports or are kept for repair: the node ends.
    pub fn release_frames(&mut self, pool: &mut Pool) {
        for port in 0..self.config.ports.len() {
            self.drop_queue(PortId(port as u16), pool);
        }
        self.drop_kept(pool);
    }

    /// The configuration of a port's classes; `None` when it has none.
    pub fn egress_config(&self, port: PortId) -> Option<&EgressConfig> {
        self.ports.egress.config(port)
    }

    /// The counters of a class of a port with classes.
    pub fn class_counters(&self, port: PortId, class: usize) -> Option<ClassCounters> {
        self.ports.egress.counters(port, class)
    }

    /// Octets that wait in a class of a port with classes.
    pub fn class_octets(&self, port: PortId, class: usize) -> Option<usize> {
        self.ports.egress.class_octets(port, class)
    }

    /// Octets received by a port in a class that wait at ports with classes.
    pub fn ingress_octets(&self, port: PortId, class: usize) -> Option<usize> {
        self.ports.egress.ingress_octets(port, class)
    }

    /// Octets that wait at all ports with classes.
    pub fn buffered_octets(&self) -> usize {
        self.ports.egress.buffered_octets()
    }

    /// Fragments to SIDs of the node that wait for others (D245).
    pub fn waiting_fragments(&self) -> usize {
        self.reassembly.fragments()
    }

    /// The classes of a port that its neighbour has paused, bit n being class n.
    pub fn paused_classes(&self, port: PortId) -> u8 {
        self.ports.egress.paused_classes(port)
    }

    /// The classes in which a port pauses its neighbour, bit n being class n.
    pub fn pausing_classes(&self, port: PortId) -> u8 {
        self.ports.egress.closed_classes(port)
    }
}

/// Tables.
impl Node {
    /// The SIDs, their behaviours, and the packets that each has processed.
    pub fn sids(&self) -> impl Iterator<Item = (Prefix, SidBehavior, Traffic)> {
        self.tables.sid_reports()
    }

    /// Packets that each SID has processed.
    pub fn sid_counters(&self) -> impl Iterator<Item = (Prefix, Traffic)> {
        self.sids().map(|(prefix, _, traffic)| (prefix, traffic))
    }

    /// Whether any source address may send to the node's SIDs: it has some, and no domain.
    pub fn has_open_sids(&self) -> bool {
        !self.tables.sids().is_empty() && !self.security.has_domain()
    }

    /// How many prefixes the tables hold: routes, and what is looked up like one: SIDs, Proxy Addresses, neighbours and
    /// the node's own addresses.
    pub fn prefix_count(&self) -> usize {
        self.tables.prefix_count()
    }

    /// How many neighbours' MAC addresses are known.
    pub fn neighbour_count(&self) -> usize {
        self.tables.neighbour_count()
    }

    /// The port by which a packet with these headers, the Ethernet header first, leaves by the main table: of equal
    /// paths the one of its flow. `None` for packets that are not plainly forwarded.
    pub fn port_toward(&self, head: &[u8]) -> Option<PortId> {
        Some(self.tables.plain_route(ipv6(head).ok()?.destination_octets(), head)?.port)
    }
}

/// Fast path.
impl Node {
    /// Changes whenever what [`Node::fast_path`] returns may have changed.
    pub fn generation(&self) -> u64 {
        self.tables.generation()
    }

    pub(crate) fn fast_path_parts(&self) -> (&NodeConfig, &Tables, &Security, &Ports) {
        (&self.config, &self.tables, &self.security, &self.ports)
    }

    pub(crate) fn fast_path_obstacle(&self) -> Option<FastPathObstacle> {
        let obstacles = [
            (self.fast_cnp.is_on(), FastPathObstacle::FastCnp),
            (self.headend.is_on(), FastPathObstacle::Steering),
            (self.ioam.is_on(), FastPathObstacle::Ioam),
        ];
        obstacles.into_iter().find_map(|(is_on, obstacle)| is_on.then_some(obstacle))
    }
}

/// Groups.
impl Node {
    /// The groups that the node takes part in.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.entries().map(|entry| entry.id)
    }

    /// The groups whose state this worker of the node has: all of them at a node of one worker.
    pub fn owned_groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.entries().filter(|entry| self.config.worker.owns(entry.proxy)).map(|entry| entry.id)
    }

    /// Whether the node takes part in any group.
    pub fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The node's entry of a group.
    pub fn group_entry(&self, id: GroupId) -> Option<&GroupEntry> {
        self.groups.find(id).map(|group| &group.entry)
    }

    /// Whether the node is the headend of a new group whose first PSN has not come (D137).
    pub fn awaits_first_psn(&self, id: GroupId) -> bool {
        self.groups.find(id).is_some_and(|group| group.awaits_first_psn)
    }

    /// The counters of a group.
    pub fn group_counters(&self, id: GroupId) -> Option<GroupCounters> {
        self.groups.counters(id)
    }

    /// The counters of a group's repair; `None` where the node does not repair it.
    pub fn repair_counters(&self, id: GroupId) -> Option<RepairCounters> {
        Some(self.groups.find(id)?.repair.as_ref()?.counters())
    }

    /// Packets in a group's retransmission buffer, and for how many it has room; `None` where the node does not repair
    /// it.
    pub fn repair_fill(&self, id: GroupId) -> Option<RepairFill> {
        let repair = self.groups.find(id)?.repair.as_ref()?;
        let (packets, capacity_packets) = (repair.kept() as u64, repair.rules().capacity);
        Some(RepairFill { packets, capacity_packets, is_off: repair.is_off() })
    }

    /// The repair of a branch of a group.
    pub fn branch_repair(&self, id: GroupId, branch: BranchIndex) -> Option<BranchRepair> {
        let repair = self.groups.find(id)?.repair.as_ref()?;
        Some(BranchRepair { counters: repair.branch_counters(branch)?, is_behind: repair.is_behind(branch) })
    }

    /// Whether the node would repair a group by its entry, and has no memory for it (D162).
    pub fn lacks_repair_memory(&self, id: GroupId) -> bool {
        self.groups.find(id).is_some_and(|group| group.lacks_memory())
    }

    /// Octets of the pool that are reserved for retransmission buffers.
    pub fn repair_octets(&self) -> u64 {
        self.groups.buffer_octets()
    }

    /// PSNs that a group's branches have acknowledged.
    pub fn acknowledgements(&self, id: GroupId) -> Option<&Acknowledgements> {
        self.groups.acknowledgements(id)
    }

    /// The CNPs received from a branch of a group.
    pub fn branch_cnps(&self, id: GroupId, branch: BranchIndex) -> Option<u64> {
        self.groups.branch_cnps(id, branch)
    }

    /// The events for the control plane since the last call.
    pub fn take_events(&mut self) -> impl Iterator<Item = Event> {
        self.groups.take_events()
    }

    /// Begins or ends the journal. Entries that were not taken are lost when it ends.
    pub fn observe(&mut self, on: bool) {
        self.groups.observe(on);
    }

    /// The journal's entries since the last call, and how many were lost because they were not taken. Empty for a node
    /// that is not observed.
    pub fn take_journal(&mut self) -> (Vec<JournalEntry>, u64) {
        self.groups.take_journal()
    }
}

/// BFD.
impl Node {
    /// Whether the node has BFD sessions.
    pub fn has_bfd(&self) -> bool {
        self.bfd.is_on()
    }

    /// The BFD sessions.
    pub fn bfd_reports(&self) -> impl Iterator<Item = BfdReport<'_>> {
        self.bfd.reports()
    }

    /// The neighbours that have backups, with the number of their prefixes and the packets that have taken them.
    pub fn backup_reports(&self) -> impl Iterator<Item = (NextHop, usize, Traffic)> {
        self.tables.backup_reports()
    }

    /// The sessions that have come up, or were up and have gone down, since the last call; of each the last change.
    pub fn take_bfd_events(&mut self) -> impl Iterator<Item = (BfdPeer, srdma_bfd::Event)> {
        self.bfd.take_events()
    }

    /// Follows an event of a session that another worker of the node runs.
    pub fn follow_bfd(&mut self, peer: BfdPeer, event: srdma_bfd::Event) {
        self.bfd.follow(peer, event, &mut self.tables);
    }

    /// Frames that arrived before this time have been received. Sessions time out by it, so that the delay of a driver
    /// is not taken for the silence of a peer (D90). Without a call frames are received as soon as they arrive.
    pub fn set_received_until(&mut self, at: Instant) {
        self.bfd.set_received_until(at);
    }
}

/// Fast CNP, backpressure, IOAM and headend.
impl Node {
    /// The settings of Fast CNP; `None` when it is off.
    pub fn fast_cnp(&self) -> Option<&FastCnpConfig> {
        self.fast_cnp.config()
    }

    /// Whether Fast CNP is on (FC-5-4).
    pub fn uses_fast_cnp(&self) -> bool {
        self.fast_cnp.is_on()
    }

    /// The counters of Fast CNP; zeros when it is off.
    pub fn fast_cnp_counters(&self) -> FastCnpCounters {
        self.fast_cnp.counters()
    }

    /// The settings of backpressure; `None` when it is off.
    pub fn backpressure(&self) -> Option<&BackpressureConfig> {
        self.backpressure.config()
    }

    /// The counters of backpressure; zeros when it is off.
    pub fn backpressure_counters(&self) -> BackpressureCounters {
        self.backpressure.counters()
    }

    /// The pauses in effect that END.C has received.
    pub fn received_pauses(&self) -> impl Iterator<Item = ReceivedPause> {
        self.backpressure.received_pauses()
    }

    /// The pauses in effect that the node has sent: the END.C of each ingress PE, and the class.
    pub fn sent_pauses(&self) -> impl Iterator<Item = (Ipv6Addr, u8)> {
        self.backpressure.sent_pauses()
    }

    /// The counters of IOAM traces.
    pub fn ioam_counters(&self) -> IoamCounters {
        self.ioam.counters()
    }

    /// The headend, when the node steers.
    pub fn headend(&self) -> Option<&Headend> {
        self.headend.headend()
    }

    /// The prefixes that lead to placed paths, with the headend's set of them.
    pub fn placed(&self) -> impl Iterator<Item = (TableId, Prefix, SetId)> {
        self.tables.placed().map(|(table, prefix, place)| (table, prefix, self.headend.set_at(place)))
    }
}
