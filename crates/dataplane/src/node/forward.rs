//! From a port to the FIB and out again.

use super::state::{Adjacency, Target};
use super::{Arrival, Node};
use crate::behavior::{Verdict, end, end_dt6, end_x};
use crate::config::{SidBehavior, TableId};
use crate::drop::DropReason;
use crate::entropy;
use crate::headers::{AFTER_IPV6, IPV6, ipv6, ipv6_mut};
use srdma_fib::Fib;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::{EtherType, Pfc};

/// How often one packet may meet SIDs of this node before it is taken for a loop.
const MAX_LOCAL_SEGMENTS: usize = 16;

/// Whether forwarding still has to decrement the hop limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HopLimit {
    ToDecrement,
    Done,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It is finished, and waits at a port that has room for its octets.
    Enqueue(PortId, usize),
    /// It is finished, and is to wait in its class at a port with classes.
    Classify(PortId, usize),
    /// It is dropped.
    Drop(DropReason),
    /// It is dropped, and its source told.
    Report(DropReason, Icmpv6Error),
    /// Its destination is a multicast group.
    Multicast,
    /// Its destination is the End.Replicate SID of a group.
    Replicate(u32),
    /// Its destination is an End.MT SID.
    EndMt { require_hmac: bool },
    /// Its destination is an END.C SID.
    EndC,
    /// Its destination is a group's Proxy Address.
    Proxied(u32),
    /// Its destination is the node itself.
    Local,
}

const HOP_LIMIT_EXCEEDED: Fate = Fate::Report(DropReason::HopLimitExceeded, Icmpv6Error::HopLimitExceeded);

impl Node {
    /// Takes a frame as it comes from the wire.
    #[inline]
    pub(super) fn ingress(&mut self, mut arrival: Arrival, port: PortId, mut frame: Frame, pool: &mut Pool) {
        let fate = match self.admit(port, &mut frame, pool) {
            Ok(()) => self.route(&mut arrival, &mut frame, pool),
            Err(reason) => Fate::Drop(reason),
        };
        match fate {
            Fate::Enqueue(port, len) => self.enqueue(port, frame, len),
            fate => self.meet(fate, arrival, frame, pool),
        }
    }

    /// Carries out what becomes of a frame.
    #[inline(never)]
    fn meet(&mut self, fate: Fate, arrival: Arrival, frame: Frame, pool: &mut Pool) {
        match fate {
            Fate::Enqueue(port, len) => self.enqueue(port, frame, len),
            Fate::Classify(port, len) => self.enter_class(arrival, port, frame, len, pool),
            Fate::Drop(DropReason::MacControl) => self.mac_control(arrival, frame, pool),
            Fate::Drop(reason) => self.drop_frame(arrival, frame, pool, reason),
            Fate::Report(reason, error) => self.report(arrival, frame, pool, reason, error),
            Fate::Multicast => self.multicast(arrival, frame, pool),
            Fate::Replicate(group) => self.end_replicate(arrival, frame, pool, group),
            Fate::EndMt { require_hmac } => self.end_mt(arrival, frame, pool, require_hmac),
            Fate::EndC => self.end_c(arrival, frame, pool),
            Fate::Proxied(group) => self.proxied(arrival, frame, pool, group),
            Fate::Local => self.local(arrival, frame, pool),
        }
    }

    /// Checks that a frame is an IPv6 packet for this port, and cuts its padding.
    #[inline]
    fn admit(&mut self, port: PortId, frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
        let len = frame.len();
        let counters = self.port_counters.get_mut(port.index()).ok_or(DropReason::NotForThisPort)?;
        let mac = self.macs.get(port.index()).ok_or(DropReason::NotForThisPort)?;
        counters.received.count(len);
        let head = frame.head(pool);
        let headers = head.first_chunk::<AFTER_IPV6>().ok_or_else(|| short_frame(head))?;
        if headers[..6] != mac.0 && !is_multicast_frame(headers) {
            return Err(stranger(headers));
        }
        if headers[12..14] != EtherType::IPV6.0.to_be_bytes() || headers[IPV6] >> 4 != 6 {
            return Err(short_frame(head));
        }
        if headers[IPV6 + 8] == 0xFF || headers[IPV6 + 8..IPV6 + 24] == [0; 16] {
            return Err(DropReason::BadSource);
        }
        let end = AFTER_IPV6 + usize::from(u16::from_be_bytes([headers[IPV6 + 4], headers[IPV6 + 5]]));
        if end > len {
            return Err(DropReason::Truncated);
        }
        if end < len {
            frame.truncate(end, pool);
        }
        Ok(())
    }

    /// Looks the destination up and carries out what the route or SID says, until it is clear what becomes of the
    /// packet. The frame stays where it is: a frame that was edited a moment ago is slow to move.
    #[inline]
    fn route(&mut self, arrival: &mut Arrival, frame: &mut Frame, pool: &mut Pool) -> Fate {
        let mut hop_limit = HopLimit::ToDecrement;
        let mut table = TableId(0);
        for _ in 0..MAX_LOCAL_SEGMENTS {
            let head = frame.head(pool);
            let Some(headers) = head.first_chunk::<AFTER_IPV6>() else {
                return Fate::Drop(DropReason::Truncated);
            };
            let destination: &[u8; 16] = headers[IPV6 + 24..].first_chunk().expect("an IPv6 header has 40 octets");
            if destination[0] == 0xFF {
                arrival.encapsulated = 0;
                return Fate::Multicast;
            }
            let target = if table == TableId(0) {
                self.main.lookup(destination)
            } else {
                self.tables.get(&table).and_then(|table: &Fib<Target>| table.lookup(destination))
            };
            let adjacency = match target {
                Some(Target::Adjacency(adjacency)) => adjacency,
                Some(Target::Ecmp(set)) => self.ecmp[set as usize].choose(entropy::of_packet(head), self.ecmp_salt),
                Some(Target::Sid(sid)) => {
                    let outer_source = *headers[IPV6 + 8..].first_chunk().expect("an IPv6 header has 40 octets");
                    if self.guards_sids
                        && let Err(reason) = self.guard_sid(sid, &outer_source, head)
                    {
                        return Fate::Drop(reason);
                    }
                    let sid = &mut self.sids[sid as usize];
                    sid.traffic.count(frame.len());
                    arrival.encapsulated = 0;
                    let (verdict, by) = match sid.behavior {
                        SidBehavior::End(flavors) => (end(frame, pool, flavors), None),
                        SidBehavior::EndX(flavors, _) => (end_x(frame, pool, flavors), sid.adjacency),
                        SidBehavior::EndDt6(next) => {
                            table = next;
                            (end_dt6(frame, pool), None)
                        }
                        SidBehavior::EndE(next) => {
                            table = next;
                            arrival.by_end_e = true;
                            (self.end_e(arrival.now, &outer_source, frame, pool), None)
                        }
                        SidBehavior::EndReplicate(_) => {
                            return sid.group.map_or(Fate::Drop(DropReason::UnknownGroup), Fate::Replicate);
                        }
                        SidBehavior::EndMt { require_hmac } => return Fate::EndMt { require_hmac },
                        SidBehavior::EndC => return Fate::EndC,
                    };
                    match verdict {
                        Verdict::Forward => hop_limit = HopLimit::Done,
                        Verdict::Inner => {
                            hop_limit = HopLimit::ToDecrement;
                            arrival.decapsulated = true;
                            self.outer_source = outer_source;
                        }
                        Verdict::Drop(reason) => return Fate::Drop(reason),
                        Verdict::Report(reason, error) => return Fate::Report(reason, error),
                    }
                    match by {
                        Some(adjacency) => adjacency,
                        None => continue,
                    }
                }
                Some(Target::Encaps(policy)) => {
                    // The inner hop limit counts this node once, whatever SID of it the packet met before (RFC 2473
                    // section 3.1).
                    if hop_limit == HopLimit::ToDecrement && decrement(frame, pool).is_err() {
                        return HOP_LIMIT_EXCEEDED;
                    }
                    let policy = &self.encaps[policy as usize];
                    if let Err(reason) = policy.push(frame, pool) {
                        return Fate::Drop(reason);
                    }
                    arrival.encapsulated += policy.octets();
                    hop_limit = HopLimit::Done;
                    table = TableId(0);
                    continue;
                }
                Some(Target::Placed(place)) => {
                    if hop_limit == HopLimit::ToDecrement && decrement(frame, pool).is_err() {
                        return HOP_LIMIT_EXCEEDED;
                    }
                    let set = self.placed[place as usize].set;
                    let Some(headend) = self.headend.as_mut() else { return Fate::Drop(DropReason::NoPath) };
                    match headend.encapsulate(arrival.now, set, frame, pool) {
                        Ok(octets) => arrival.encapsulated += octets,
                        Err(reason) => return Fate::Drop(reason),
                    }
                    hop_limit = HopLimit::Done;
                    table = TableId(0);
                    continue;
                }
                Some(Target::Group(group)) => return Fate::Proxied(group),
                Some(Target::Local) => return Fate::Local,
                Some(Target::Blackhole) => return Fate::Drop(DropReason::Blackhole),
                None => return Fate::Report(DropReason::NoRoute, Icmpv6Error::NoRoute),
            };
            if hop_limit == HopLimit::ToDecrement && decrement(frame, pool).is_err() {
                return HOP_LIMIT_EXCEEDED;
            }
            return self.finish(*arrival, frame, pool, adjacency);
        }
        Fate::Drop(DropReason::SegmentLoop)
    }

    /// Sends a packet to a neighbour.
    pub(super) fn transmit(&mut self, arrival: Arrival, mut frame: Frame, pool: &mut Pool, adjacency: u32) {
        let fate = self.finish(arrival, &mut frame, pool, adjacency);
        self.meet(fate, arrival, frame, pool);
    }

    /// Sends a packet of the node's own to a neighbour; whether it waits in a queue now, or was dropped.
    pub(super) fn transmitted(&mut self, arrival: Arrival, frame: Frame, pool: &mut Pool, adjacency: u32) -> bool {
        let port = self.adjacencies[adjacency as usize].port;
        let sent = |node: &Node| node.port_counters(port).map(|counters| counters.sent.frames);
        let before = sent(self);
        self.transmit(arrival, frame, pool, adjacency);
        sent(self) != before
    }

    /// Makes a packet ready for a neighbour: link MTU, room in the queue, Ethernet header.
    #[inline(always)]
    fn finish(&self, arrival: Arrival, frame: &mut Frame, pool: &mut Pool, adjacency: u32) -> Fate {
        let adjacency = &self.adjacencies[adjacency as usize];
        let len = frame.len();
        if !adjacency.carries_any(len)
            && let Some(fate) = self.hinder(arrival, adjacency, frame, pool)
        {
            return fate;
        }
        if !self.egress.has_room(adjacency.port, len) {
            return self.classify(adjacency, frame, pool, len);
        }
        if let Some(place) = frame.head_mut(pool).first_chunk_mut() {
            *place = adjacency.ethernet;
        }
        Fate::Enqueue(adjacency.port, len)
    }

    /// What becomes of a packet for which the port's plain queue has no room: a port with classes has none there.
    #[inline(never)]
    fn classify(&self, adjacency: &Adjacency, frame: &mut Frame, pool: &mut Pool, len: usize) -> Fate {
        if !self.egress.has_classes(adjacency.port) {
            return Fate::Drop(DropReason::QueueFull);
        }
        if let Some(place) = frame.head_mut(pool).first_chunk_mut() {
            *place = adjacency.ethernet;
        }
        Fate::Classify(adjacency.port, len)
    }

    /// Why a packet does not leave by an adjacency, unless it does.
    #[cold]
    fn hinder(&self, arrival: Arrival, adjacency: &Adjacency, frame: &Frame, pool: &Pool) -> Option<Fate> {
        if !adjacency.resolved {
            return Some(Fate::Drop(DropReason::NoNeighbour));
        }
        if !adjacency.carries(frame.len()) {
            let link_mtu = adjacency.link_mtu.into();
            return Some(Fate::Report(DropReason::PacketTooBig, Icmpv6Error::PacketTooBig(link_mtu)));
        }
        let head = frame.head(pool);
        let leaves = self.boundary.leave(head);
        match arrival.by_end_e {
            true => leaves.err().map(Fate::Drop),
            false => leaves.and_then(|()| self.fast_cnp_leaves(head)).err().map(Fate::Drop),
        }
    }

    /// Puts a finished frame into a port's queue, which has room.
    #[inline(always)]
    fn enqueue(&mut self, port: PortId, frame: Frame, len: usize) {
        self.egress.push(port, frame, len);
        self.port_counters[port.index()].sent.count(len);
    }

    /// The adjacency that packets of this node's own making leave by to an address, when it is another node's. Another
    /// address, that of a group's flow, decides with it among equals.
    pub(super) fn resolve(&self, destination: &[u8; 16], flow: &[u8; 16]) -> Option<u32> {
        self.toward(self.main.lookup(destination)?, destination, flow)
    }

    /// The same for what an address leads to in any table.
    pub(super) fn toward(&self, target: Target, destination: &[u8; 16], flow: &[u8; 16]) -> Option<u32> {
        match target {
            Target::Adjacency(adjacency) => Some(adjacency),
            Target::Ecmp(set) => {
                let hash = entropy::of_addresses(flow, destination);
                Some(self.ecmp[set as usize].choose(hash, self.ecmp_salt))
            }
            Target::Sid(_)
            | Target::Group(_)
            | Target::Encaps(_)
            | Target::Placed(_)
            | Target::Local
            | Target::Blackhole => None,
        }
    }
}

/// One hop less; an exhausted hop limit is left as it is.
#[inline(always)]
pub(super) fn decrement(frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
    let view = ipv6_mut(frame.head_mut(pool))?;
    if view.hop_limit <= 1 {
        return Err(DropReason::HopLimitExceeded);
    }
    view.hop_limit -= 1;
    Ok(())
}

/// A multicast frame with a multicast destination, and no other, is for every port (RFC 2464 section 7).
#[inline]
fn is_multicast_frame(headers: &[u8; AFTER_IPV6]) -> bool {
    headers[0] & 1 != 0 && headers[IPV6 + 24] == 0xFF
}

/// Why a frame to another MAC address is not taken as a packet.
#[cold]
fn stranger(headers: &[u8]) -> DropReason {
    let is_mac_control = headers.starts_with(&Pfc::DESTINATION.0)
        && headers.get(12..14) == Some(&EtherType::MAC_CONTROL.0.to_be_bytes());
    if is_mac_control { DropReason::MacControl } else { DropReason::NotForThisPort }
}

/// Why a frame is no IPv6 packet.
#[cold]
fn short_frame(head: &[u8]) -> DropReason {
    match head.get(12..14).map(|ethertype| EtherType(u16::from_be_bytes([ethertype[0], ethertype[1]]))) {
        None => DropReason::Truncated,
        Some(EtherType::VLAN) => DropReason::VlanTagged,
        Some(EtherType::MAC_CONTROL) => stranger(head),
        Some(EtherType::IPV6) => match ipv6(head) {
            Ok(view) if view.version() != 6 => DropReason::BadVersion,
            _ => DropReason::Truncated,
        },
        Some(_) => DropReason::NotIpv6,
    }
}
