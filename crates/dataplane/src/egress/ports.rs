//! The node's ports: their counters and queues, and the rewrite of a frame that leaves.

use super::{ClassMap, Departing, Egress, EgressConfig, Place, trim};
use crate::config::{ConfigError, NodeConfig, PortConfig};
use crate::context::PacketContext;
use crate::counters::{PortCounters, Traffic};
use crate::drop::{DropCounters, DropReason};
use crate::headers::{IPV6, ipv6, ipv6_mut};
use crate::tables::Adjacency;
use crate::vlan::{self, Vlans};
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::ethernet::Vlan;
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Instant, MacAddress, Pfc};

/// Ports, by [`PortId`].
#[derive(Debug)]
pub(crate) struct Ports {
    /// MAC addresses, close together.
    macs: Vec<MacAddress>,
    counters: Vec<PortCounters>,
    /// Drops of packets of this node.
    own_drops: DropCounters,
    pub(crate) egress: Egress,
    /// The traffic class of each DSCP, at ports with classes.
    pub(crate) classes: ClassMap,
    pub(crate) vlans: Vlans,
}

/// The queue that an egress check has found for a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// The plain queue of a port has room.
    Plain,
    /// The port has classes, or is that of a VLAN.
    Classes,
    /// The plain queue is full.
    Full,
}

/// Room for one frame in a plain queue, and the counter for it.
#[derive(Debug)]
pub(crate) struct CountedPlace<'p> {
    place: Place<'p>,
    enqueued: &'p mut Traffic,
}

impl CountedPlace<'_> {
    /// Queues and counts the frame.
    #[inline(always)]
    pub(crate) fn fill(self, frame: Frame) {
        self.enqueued.count(self.place.len);
        self.place.fill(frame);
    }
}

impl Ports {
    pub(crate) fn new(config: &NodeConfig) -> Self {
        let mut ports = Ports {
            macs: Vec::new(),
            counters: Vec::new(),
            own_drops: DropCounters::default(),
            egress: Egress::new(config.marking_seed),
            classes: ClassMap::default(),
            vlans: Vlans::default(),
        };
        config.ports.iter().for_each(|port| ports.add(port));
        ports
    }

    pub(crate) fn add(&mut self, port: &PortConfig) {
        // The frames of a VLAN port wait at its parent.
        self.egress.add_port(if port.vlan.is_some() { 0 } else { port.queue_limit_octets });
        self.vlans.add(port);
        self.counters.push(PortCounters::default());
        self.macs.push(port.mac);
    }

    pub(crate) fn set_mac(&mut self, port: PortId, mac: MacAddress) {
        self.macs[port.index()] = mac;
    }

    pub(crate) fn set_classes(&mut self, port: PortId, egress: EgressConfig) -> Result<(), ConfigError> {
        egress.check().map_err(|error| ConfigError::Egress { port: port.0, error })?;
        self.egress.set_classes(port, egress);
        Ok(())
    }

    #[inline]
    pub(crate) fn mac(&self, port: PortId) -> Option<&MacAddress> {
        self.macs.get(port.index())
    }
}

/// Counters.
impl Ports {
    pub(crate) fn counters(&self, port: PortId) -> Option<&PortCounters> {
        self.counters.get(port.index())
    }

    pub(crate) fn own_drops(&self) -> &DropCounters {
        &self.own_drops
    }

    /// Frames that have left the queues of a port toward the wire.
    pub(crate) fn sent(&self, port: PortId) -> Option<Traffic> {
        let PortCounters { enqueued, discarded, .. } = self.counters.get(port.index())?;
        let waiting = self.egress.waiting(port);
        Some(Traffic {
            frames: enqueued.frames - discarded.frames - waiting.frames,
            octets: enqueued.octets - discarded.octets - waiting.octets,
        })
    }

    #[inline]
    pub(crate) fn count_received(&mut self, port: PortId, octets: usize) {
        if let Some(counters) = self.counters.get_mut(port.index()) {
            counters.received.count(octets);
        }
    }

    /// Counts frames that were received.
    pub(crate) fn add_received(&mut self, port: PortId, received: Traffic) {
        if let Some(counters) = self.counters.get_mut(port.index()) {
            counters.received.frames += received.frames;
            counters.received.octets += received.octets;
        }
    }

    /// Counts a drop at the ingress port; `None` for packets of this node.
    pub(crate) fn count_drop(&mut self, port: Option<PortId>, reason: DropReason) {
        match port.and_then(|port| self.counters.get_mut(port.index())) {
            Some(counters) => counters.drops.count(reason),
            None => self.own_drops.count(reason),
        }
    }

    #[cold]
    pub(crate) fn drop_frame(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, reason: DropReason) {
        frame.release(pool);
        self.count_drop(context.port, reason);
    }

    fn count_discarded(&mut self, port: PortId, octets: usize, reason: DropReason) {
        if let Some(counters) = self.counters.get_mut(port.index()) {
            counters.discarded.count(octets);
            counters.drops.count(reason);
        }
    }

    /// Reads what frames that come and go change, so that it is in the caches. The number means nothing.
    pub(crate) fn prefetch(&self) -> usize {
        let enqueued: u64 = self.counters.iter().map(|counters| counters.enqueued.frames).sum();
        enqueued as usize + self.egress.prefetch()
    }
}

/// Frames that leave.
impl Ports {
    /// Writes the Ethernet header of a frame of `len` octets if a queue may take it.
    #[inline(always)]
    pub(crate) fn rewrite(&self, adjacency: &Adjacency, frame: &mut Frame, pool: &mut Pool, len: usize) -> Room {
        let room = match self.egress.has_room(adjacency.port, len) {
            true => Room::Plain,
            false => return self.rewrite_for_class(adjacency, frame, pool, len),
        };
        if let Some(place) = frame.head_mut(pool).first_chunk_mut() {
            *place = adjacency.ethernet;
        }
        room
    }

    /// The same where the plain queue has no room: that of a port with classes, or of a VLAN, never has.
    #[inline(never)]
    fn rewrite_for_class(&self, adjacency: &Adjacency, frame: &mut Frame, pool: &mut Pool, len: usize) -> Room {
        let (carrier, vlan) = self.vlans.carrier(adjacency.port);
        let has_plain_room = vlan.is_some() && self.egress.has_room(carrier, len + Vlan::LEN);
        if !self.egress.has_classes(carrier) && !has_plain_room {
            return Room::Full;
        }
        if let Some(place) = frame.head_mut(pool).first_chunk_mut() {
            *place = adjacency.ethernet;
        }
        Room::Classes
    }

    /// Finds room for a frame of `len` octets in a class of a port.
    #[cold]
    pub(crate) fn admit(
        &mut self,
        context: &PacketContext,
        port: PortId,
        class: usize,
        len: usize,
    ) -> Result<(), DropReason> {
        let ingress = self.ingress_link(context);
        self.egress.admit(port, ingress, class, len)
    }

    /// Puts a rewritten frame into a port's plain queue, which has room.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, port: PortId, frame: Frame, len: usize) {
        self.egress.push(port, frame, len);
        self.counters[port.index()].enqueued.count(len);
    }

    /// The same ahead of the frames that wait.
    pub(crate) fn enqueue_ahead(&mut self, port: PortId, frame: Frame, len: usize) {
        self.egress.push_ahead(port, frame, len);
        self.counters[port.index()].enqueued.count(len);
    }

    /// A place in a port's plain queue for a frame of `len` octets, if it has room; what fills the place is counted.
    #[inline(always)]
    pub(crate) fn place_for(&mut self, port: PortId, len: usize) -> Option<CountedPlace<'_>> {
        let counters = self.counters.get_mut(port.index())?;
        Some(CountedPlace { place: self.egress.place(port, len)?, enqueued: &mut counters.enqueued })
    }

    /// Puts the frame that `make` returns into a port's plain queue, if that has room and the adjacency allows it.
    /// Returns whether it did.
    #[inline(always)]
    pub(crate) fn place(&mut self, port: PortId, is_allowed: bool, len: usize, make: impl FnOnce() -> Frame) -> bool {
        match self.egress.place(port, len) {
            Some(place) if is_allowed => {
                place.fill(make());
                self.counters[port.index()].enqueued.count(len);
                true
            }
            _ => false,
        }
    }

    /// Finds room for a rewritten frame in its class, trimmed if need be; returns it with its class and octets.
    pub(crate) fn admit_to_class(
        &mut self,
        context: &PacketContext,
        port: PortId,
        mut frame: Frame,
        mut len: usize,
        pool: &mut Pool,
    ) -> Option<(Frame, usize, usize)> {
        let mut class = self.class_in(context, &frame, pool);
        let ingress = self.ingress_link(context);
        if let Err(reason) = self.egress.admit(port, ingress, class, len) {
            frame = match self.trim(port, class, reason, frame, pool) {
                Ok(trimmed) => trimmed,
                Err(frame) => {
                    self.drop_frame(context, frame, pool, reason);
                    return None;
                }
            };
            (class, len) = (self.class_of(&frame, pool), frame.len());
            if let Err(reason) = self.egress.admit(port, ingress, class, len) {
                self.drop_frame(context, frame, pool, reason);
                return None;
            }
        }
        Some((frame, class, len))
    }

    /// Puts a frame into a class that has admitted it.
    pub(crate) fn enter_class(
        &mut self,
        context: &PacketContext,
        port: PortId,
        class: usize,
        frame: Frame,
        len: usize,
    ) {
        self.egress.enter(context.now, port, self.ingress_link(context), class, frame, len);
        self.counters[port.index()].enqueued.count(len);
    }

    /// The port whose link a packet came by.
    fn ingress_link(&self, context: &PacketContext) -> Option<PortId> {
        context.port.map(|port| self.vlans.carrier(port).0)
    }

    /// Puts the tag of its VLAN, with this class, into a frame that is about to wait at the parent, and counts it at
    /// its own port; a frame without headroom is dropped.
    pub(crate) fn tag(
        &mut self,
        context: &PacketContext,
        (port, id): (PortId, u16),
        class: usize,
        mut frame: Frame,
        pool: &mut Pool,
    ) -> Option<Frame> {
        let len = frame.len();
        if !vlan::put_tag(&mut frame, id, class, pool) {
            self.drop_frame(context, frame, pool, DropReason::NoHeadroom);
            return None;
        }
        self.counters[port.index()].enqueued.count(len);
        Some(frame)
    }

    /// The class of a packet: that of its tag, if the port that it came by trusts that, or that of its DSCP.
    pub(crate) fn class_in(&self, context: &PacketContext, frame: &Frame, pool: &Pool) -> usize {
        context.class.map_or_else(|| self.class_of(frame, pool), usize::from)
    }

    fn class_of(&self, frame: &Frame, pool: &Pool) -> usize {
        self.classes.class_of(ipv6(frame.head(pool)).map_or(0, |view| view.traffic_class()))
    }

    /// Trims a frame for which its class has no room, if the port trims and it is a data packet. The trimmed frame
    /// belongs to the class of the port's DSCP for trimmed packets.
    #[cold]
    fn trim(
        &mut self,
        port: PortId,
        class: usize,
        reason: DropReason,
        frame: Frame,
        pool: &mut Pool,
    ) -> Result<Frame, Frame> {
        let dscp = self.egress.config(port).and_then(|config| config.trim_dscp);
        let Some(dscp) = dscp.filter(|_| reason == DropReason::QueueFull) else {
            return Err(frame);
        };
        let trimmed = trim::trim(frame, dscp, pool);
        if trimmed.is_ok() {
            self.egress.count_trim(port, class);
        }
        trimmed
    }

    /// Marks a packet CE, if it is ECN-capable (RFC 3168).
    pub(crate) fn mark(&mut self, port: PortId, class: usize, frame: &mut Frame, pool: &mut Pool) {
        let Ok(view) = ipv6_mut(frame.head_mut(pool)) else {
            return;
        };
        match view.ecn() {
            Ecn::NotEct | Ecn::Ce => {}
            Ecn::Ect0 | Ecn::Ect1 => {
                view.set_ecn(Ecn::Ce);
                self.egress.count_mark(port, class);
            }
        }
    }

    /// A MAC control frame: a pause of the neighbour, for the port's classes. It is never forwarded.
    #[cold]
    pub(crate) fn mac_control(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool) {
        let pfc = frame.head(pool).get(IPV6..).and_then(|octets| Pfc::parse(octets).ok());
        match pfc.zip(context.port) {
            Some((pfc, port)) if self.egress.receive_pfc(context.now, port, &pfc) => frame.release(pool),
            Some(_) | None => self.drop_frame(context, frame, pool, DropReason::MacControl),
        }
    }

    /// The PFC frame that a port is to send before all that waits, if there is one.
    pub(crate) fn dequeue_pfc(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        let pfc = self.egress.take_pfc(now, port)?;
        match Frame::small(&pfc.frame(*self.macs.get(port.index())?), pool) {
            Some(frame) => {
                self.counters[port.index()].enqueued.count(frame.len());
                Some(frame)
            }
            None => {
                self.egress.return_pfc(now, port, &pfc);
                None
            }
        }
    }

    /// The next frame of a port's classes; those that a pause storm makes the port drop are dropped.
    pub(crate) fn dequeue_class(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Departing> {
        while let Some(frame) = self.egress.take_for_storm(now, port) {
            let len = frame.len();
            frame.release(pool);
            self.count_discarded(port, len, DropReason::PauseStorm);
        }
        self.egress.depart(now, port)
    }

    /// Drops the frames that wait at a port without a link; returns how many.
    pub(crate) fn drop_queue(&mut self, port: PortId, pool: &mut Pool) -> usize {
        let mut dropped = 0;
        while let Some(frame) = self.egress.dequeue(port).or_else(|| self.egress.take_any(port)) {
            let len = frame.len();
            frame.release(pool);
            dropped += 1;
            self.count_discarded(port, len, DropReason::PortDown);
        }
        dropped
    }
}
