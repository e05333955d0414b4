//! Replication: many heads around one body. End.Replicate (RFC 9524) and the headend's first copies (D1, D3).

use super::forward::decrement;
use super::proxy::Data;
use super::state::{ResolvedCopy, Target};
use super::{Arrival, Node};
use crate::drop::DropReason;
use crate::encaps::finish_outer;
use crate::entropy;
use crate::headers::{AFTER_IPV6, IPV6, Place, ipv6, ipv6_mut};
use crate::multicast::{data_packet, is_carried};
use srdma_frame::{Body, Frame, HEADROOM, Pool, Segment};
use srdma_group::{Downstream, NodeRole};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::{Instant, NextHeader};

/// Octets of a small chunk behind its headroom.
const SMALL_ROOM: usize = 384;

impl Node {
    /// End.Replicate (RFC 9524 section 2.2): a copy to each downstream node of the Replication SID, SRH unchanged.
    pub(super) fn end_replicate(&mut self, mut arrival: Arrival, mut frame: Frame, pool: &mut Pool, group: u32) {
        arrival.replicated = true;
        let threshold = self.config.replication_hop_limit;
        let enough = match ipv6(frame.head(pool)) {
            Ok(view) if view.hop_limit < threshold => Err(DropReason::HopLimitExceeded),
            _ => decrement(&mut frame, pool),
        };
        match enough {
            Ok(()) => {
                self.observe_tunnelled(arrival.now, &frame, pool);
                self.replicate(arrival, frame, pool, group);
            }
            Err(reason) => self.drop_frame(arrival, frame, pool, reason),
        }
    }

    /// A copy of an encapsulated packet for each downstream node of a group. The packet's own outer header serves all;
    /// a single copy leaves as the buffer it came in.
    fn replicate(&mut self, arrival: Arrival, frame: Frame, pool: &mut Pool, group: u32) {
        let copies = self.take_copies(group);
        self.count_copies(group, copies.len());
        if let [copy] = copies.as_slice() {
            self.redirect(arrival, frame, pool, copy);
        } else if copies.is_empty() {
            self.drop_frame(arrival, frame, pool, DropReason::NoRoute);
        } else if let (Some(head), Some(body)) = (frame.head(pool).first_chunk(), Body::behind(&frame, AFTER_IPV6)) {
            let mut head: [u8; AFTER_IPV6] = *head;
            body.share(copies.len(), pool);
            for copy in &copies {
                head[IPV6 + 24..].copy_from_slice(&copy.destination);
                self.send_copy(&arrival, &head, body, copy.adjacency, pool);
            }
            frame.release(pool);
        } else {
            self.drop_frame(arrival, frame, pool, DropReason::NoBuffer);
        }
        self.give_back_copies(group, copies);
    }

    /// A single copy leaves as the buffer it came in.
    fn redirect(&mut self, arrival: Arrival, mut frame: Frame, pool: &mut Pool, copy: &ResolvedCopy) {
        let Some(adjacency) = copy.adjacency else {
            return self.drop_frame(arrival, frame, pool, DropReason::NoRoute);
        };
        if let Ok(view) = ipv6_mut(frame.head_mut(pool)) {
            view.set_destination(copy.destination.into());
        }
        self.transmit(arrival, frame, pool, adjacency);
    }

    /// The headend: outer headers around the source's packet, once for each downstream node (MT-5.2-1).
    pub(super) fn encapsulate_copies(
        &mut self,
        arrival: Arrival,
        mut frame: Frame,
        pool: &mut Pool,
        group: u32,
        data: Data,
    ) {
        let Some(state) = self.groups[group as usize].as_ref() else {
            return self.drop_frame(arrival, frame, pool, DropReason::UnknownGroup);
        };
        let link_mtu = state.entry.headend.as_ref().map_or(0, |headend| usize::from(headend.link_mtu));
        let outer_len = state.headers.len() - IPV6 + frame.len() - IPV6;
        if outer_len > link_mtu {
            let room = (link_mtu + IPV6).saturating_sub(state.headers.len()) as u32;
            return self.report(arrival, frame, pool, DropReason::PacketTooBig, Icmpv6Error::PacketTooBig(room));
        }
        if let Err(reason) = decrement(&mut frame, pool) {
            return self.report(arrival, frame, pool, reason, Icmpv6Error::HopLimitExceeded);
        }
        self.data_goes_down(arrival.now, group, data, pool);
        let Some(state) = self.groups[group as usize].as_mut() else {
            return self.drop_frame(arrival, frame, pool, DropReason::UnknownGroup);
        };
        let flow = entropy::of_packet(frame.head(pool));
        let traffic_class = ipv6(frame.head(pool)).map_or(0, |view| view.traffic_class());
        let finished = finish_outer(&mut state.headers, traffic_class, flow, outer_len - 40);
        match finished.and_then(|()| Body::behind(&frame, IPV6).ok_or(DropReason::NoBuffer)) {
            Ok(body) => {
                let mut headers = std::mem::take(&mut state.headers);
                let copies = self.take_copies(group);
                self.count_copies(group, copies.len());
                body.share(copies.len(), pool);
                for copy in &copies {
                    headers[IPV6 + 24..AFTER_IPV6].copy_from_slice(&copy.destination);
                    self.send_copy(&arrival, &headers, body, copy.adjacency, pool);
                }
                self.give_back_copies(group, copies);
                if let Some(state) = self.groups[group as usize].as_mut() {
                    state.headers = headers;
                }
            }
            Err(reason) => self.count_drop(arrival, reason),
        }
        frame.release(pool);
    }

    /// One copy: its head, Ethernet header still open, and its share of the body, which the caller has counted.
    #[inline]
    pub(super) fn send_copy(
        &mut self,
        arrival: &Arrival,
        head: &[u8],
        body: Body,
        adjacency: Option<u32>,
        pool: &mut Pool,
    ) {
        let Some(index) = adjacency else {
            body.release(pool);
            return self.count_drop(*arrival, DropReason::NoRoute);
        };
        let chunk = if head.len() <= SMALL_ROOM { pool.allocate_small() } else { pool.allocate_large() };
        let Some(chunk) = chunk else {
            body.release(pool);
            return self.count_drop(*arrival, DropReason::NoBuffer);
        };
        let adjacency = &self.adjacencies[index as usize];
        let octets = &mut pool.octets_mut(chunk)[HEADROOM..][..head.len()];
        octets.copy_from_slice(head);
        octets[..IPV6].copy_from_slice(&adjacency.ethernet);
        let segment = Segment::new(chunk, HEADROOM, head.len());
        let len = head.len() + body.len();
        match self.egress.place(adjacency.port, len) {
            Some(place) if adjacency.carries_any(len) => {
                place.fill(Frame::copy_of(segment, body, None));
                self.port_counters[adjacency.port.index()].sent.count(len);
            }
            _ => self.transmit(*arrival, Frame::copy_of(segment, body, None), pool, index),
        }
    }

    /// Tells the reverse path which PSN goes down in an encapsulated packet (rule R2). Packets that are no group's data
    /// pass unseen: replication asks nothing of what it copies.
    pub(super) fn observe_tunnelled(&mut self, now: Instant, frame: &Frame, pool: &mut Pool) {
        if let Some((group, data)) = self.tunnelled_data(frame, pool) {
            self.data_goes_down(now, group, data, pool);
        }
    }

    /// The group in which this node replicates, and whose data packet a frame carries.
    fn tunnelled_data(&self, frame: &Frame, pool: &Pool) -> Option<(u32, Data)> {
        let head = frame.head(pool);
        let mut at = Place::first(ipv6(head).ok()?).behind_options(head).ok()?;
        if at.header == NextHeader::ROUTING {
            at = at.behind_routing_header(head).and_then(|at| at.behind_options(head)).ok()?;
        }
        if at.header != NextHeader::IPV6 {
            return None;
        }
        let packet = data_packet(head.get(at.offset..)?, frame.len() - at.offset).ok()?;
        let Some(Target::Group(group)) = self.main.lookup(packet.ipv6.destination_octets()) else {
            return None;
        };
        let entry = &self.groups[group as usize].as_ref()?.entry;
        let is_data = entry.role == NodeRole::Transit && packet.bth.dest_qpn() == entry.designated_qpn;
        (is_data && is_carried(packet.bth.opcode())).then(|| (group, Data::of(packet.bth)))
    }

    /// A group's copies, resolved against the tables as they are. They are to be [given back](Self::give_back_copies).
    #[inline]
    fn take_copies(&mut self, group: u32) -> Vec<ResolvedCopy> {
        match self.groups[group as usize].as_mut() {
            Some(state) if state.resolved_for == Some(self.generation) => std::mem::take(&mut state.copies),
            _ => self.resolve_copies(group),
        }
    }

    fn give_back_copies(&mut self, group: u32, copies: Vec<ResolvedCopy>) {
        if let Some(state) = self.groups[group as usize].as_mut() {
            state.copies = copies;
            state.resolved_for = Some(self.generation);
        }
    }

    #[cold]
    fn resolve_copies(&self, group: u32) -> Vec<ResolvedCopy> {
        let Some(state) = self.groups[group as usize].as_ref() else {
            return Vec::new();
        };
        let (source, proxy) = (self.config.loopback.octets(), state.entry.proxy.octets());
        let mut copies = Vec::new();
        for downstream in &state.entry.downstream {
            match downstream {
                Downstream::Sid(sid) => {
                    let destination = sid.octets();
                    copies.push(ResolvedCopy { destination, adjacency: self.resolve(&destination, &proxy) });
                }
                Downstream::Multicast(multicast) => {
                    let destination = multicast.octets();
                    let entry = self.multicast_routes.get(&(source, destination));
                    let adjacencies = entry.map_or(&[][..], |entry| &entry.adjacencies);
                    let of_adjacency = |adjacency: &u32| ResolvedCopy { destination, adjacency: Some(*adjacency) };
                    copies.extend(adjacencies.iter().map(of_adjacency));
                    if adjacencies.is_empty() {
                        copies.push(ResolvedCopy { destination, adjacency: None });
                    }
                }
            }
        }
        copies
    }

    fn count_copies(&mut self, group: u32, copies: usize) {
        if let Some(state) = self.groups[group as usize].as_mut() {
            state.counters.copies += copies as u64;
        }
    }
}
