//! Packets of groups: replication down the tree, and responses upstream.
//!
//! Copies are many heads around one body. Each is put into its queue directly where that has room and nothing has to be
//! checked; otherwise it is transmitted like any other packet.

use super::Node;
use super::bud::BudPacket;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::encaps::complete_outer;
use crate::entropy;
use crate::fast_cnp::FirstHop;
use crate::groups::{Data, Outbox, Request, ResolvedCopy, behind_outer};
use crate::headers::{AFTER_IPV6, IPV6, decrement, ipv6, ipv6_mut};
use crate::multicast::{data_packet, is_carried};
use crate::tables::MulticastKey;
use srdma_aggregation::BranchIndex;
use srdma_frame::{Body, Frame, HEADROOM, Pool, Segment};
use srdma_repair::Arrival;
use srdma_wire::Instant;
use srdma_wire::icmpv6::Icmpv6Error;

/// Chunks of the pool that a frame takes.
#[inline]
pub(super) fn chunks_of(frame: &Frame) -> usize {
    1 + frame.body().len()
}

/// A data packet of a group in outer headers.
struct TunnelledData {
    data: Data,
    /// What it is to the repair of the group, if this node repairs.
    arrival: Option<Arrival>,
    /// Where the source's packet begins.
    inner: usize,
}

/// Octets of a small chunk behind its headroom.
pub(super) const SMALL_ROOM: usize = 384;

/// Down the tree.
impl Node {
    /// End.Replicate (RFC 9524 section 2.2): a copy to each downstream node of the Replication SID, SRH unchanged.
    pub(super) fn end_replicate(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool, group: u32) {
        let context = &PacketContext { replicated: true, ..*context };
        let threshold = self.config.replication_hop_limit;
        let enough = match (self.groups.check_lease(context.now, group), ipv6(frame.head(pool))) {
            (Err(reason), _) => Err(reason),
            (Ok(()), Ok(view)) if view.hop_limit < threshold => Err(DropReason::HopLimitExceeded),
            (Ok(()), _) => decrement(&mut frame, pool),
        };
        match enough {
            Ok(()) => match self.observe_tunnelled(context.now, &frame, pool, Some(group)) {
                Some(TunnelledData { data, arrival, inner }) if self.is_bud(group) => {
                    self.replicate_at_bud(context, frame, pool, &BudPacket { group, inner, data, arrival });
                }
                Some(TunnelledData { arrival: Some(arrival), .. }) => {
                    self.replicate_and_keep(context, frame, pool, group, arrival);
                }
                Some(TunnelledData { arrival: None, .. }) | None => self.replicate(context, frame, pool, group),
            },
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    /// A copy of an encapsulated packet for each downstream node of a group. The packet's own outer header serves all;
    /// a single copy leaves in the buffer of the received packet.
    fn replicate(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, group: u32) {
        let copies = self.groups.lend_copies(group, &self.tables, self.config.loopback);
        self.groups.count_copies(group, copies.len());
        if let [copy] = copies.as_slice() {
            self.redirect(context, frame, pool, copy);
        } else if copies.is_empty() {
            self.ports.drop_frame(context, frame, pool, DropReason::NoRoute);
        } else if let (Some(head), Some(body)) = (frame.head(pool).first_chunk(), Body::behind(&frame, AFTER_IPV6)) {
            let mut head: [u8; AFTER_IPV6] = *head;
            body.share(copies.len(), pool);
            for copy in &copies {
                head[IPV6 + 24..].copy_from_slice(&copy.destination);
                self.send_copy(context, &head, body, copy.adjacency, pool);
            }
            frame.release(pool);
        } else {
            self.ports.drop_frame(context, frame, pool, DropReason::NoBuffer);
        }
        self.groups.return_copies(group, copies, self.tables.generation());
    }

    /// The same at a node that repairs: a copy for each branch that wants one, and the packet is kept.
    fn replicate_and_keep(
        &mut self,
        context: &PacketContext,
        frame: Frame,
        pool: &mut Pool,
        group: u32,
        arrival: Arrival,
    ) {
        match self.copy_to_nodes(context, &frame, pool, group, Some(arrival)) {
            Ok(()) => self.keep(context, group, arrival, frame, pool),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    /// The same at a bud node: a copy for each node below, then the receivers'.
    fn replicate_at_bud(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, of: &BudPacket) {
        match self.copy_to_nodes(context, &frame, pool, of.group, of.arrival) {
            Ok(()) => self.finish_at_bud(context, frame, pool, of),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    /// A copy of an encapsulated packet for each node below that wants one.
    fn copy_to_nodes(
        &mut self,
        context: &PacketContext,
        frame: &Frame,
        pool: &mut Pool,
        group: u32,
        arrival: Option<Arrival>,
    ) -> Result<(), DropReason> {
        let parts = (frame.head(pool).first_chunk(), Body::behind(frame, AFTER_IPV6));
        let (Some(head), Some(body)) = parts else { return Err(DropReason::NoBuffer) };
        let mut head: [u8; AFTER_IPV6] = *head;
        let copies = self.groups.lend_copies(group, &self.tables, self.config.loopback);
        let mut made = copies.len();
        body.share(copies.len(), pool);
        for (branch, copy) in (0..).map(BranchIndex).zip(&copies) {
            if arrival.is_some_and(|of| !of.is_for_all && !self.groups.wants(group, &of, branch)) {
                made -= 1;
                body.release(pool);
                continue;
            }
            head[IPV6 + 24..].copy_from_slice(&copy.destination);
            self.send_copy(context, &head, body, copy.adjacency, pool);
        }
        self.groups.count_copies(group, made);
        self.groups.return_copies(group, copies, self.tables.generation());
        Ok(())
    }

    fn redirect(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool, copy: &ResolvedCopy) {
        let Some(adjacency) = copy.adjacency else {
            return self.ports.drop_frame(context, frame, pool, DropReason::NoRoute);
        };
        if let Ok(view) = ipv6_mut(frame.head_mut(pool)) {
            view.set_destination(copy.destination.into());
        }
        self.transmit(context, frame, pool, adjacency);
    }

    /// The headend: outer headers around the source's packet, once for each downstream node (MT-5.2-1).
    fn encapsulate_copies(
        &mut self,
        context: &PacketContext,
        mut frame: Frame,
        pool: &mut Pool,
        group: u32,
        data: Data,
    ) {
        let Some(state) = self.groups.get(group) else {
            return self.ports.drop_frame(context, frame, pool, DropReason::UnknownGroup);
        };
        let link_mtu = state.entry.headend.as_ref().map_or(0, |headend| usize::from(headend.link_mtu));
        let outer_len = state.headers.len() - IPV6 + frame.len() - IPV6;
        if outer_len > link_mtu {
            let room = (link_mtu + IPV6).saturating_sub(state.headers.len()) as u32;
            return self.report(context, frame, pool, DropReason::PacketTooBig, Icmpv6Error::PacketTooBig(room));
        }
        if let Err(reason) = decrement(&mut frame, pool) {
            return self.report(context, frame, pool, reason, Icmpv6Error::HopLimitExceeded);
        }
        let arrival = self.data_goes_down(context.now, group, data, chunks_of(&frame), pool);
        let Some(state) = self.groups.get_mut(group) else {
            return self.ports.drop_frame(context, frame, pool, DropReason::UnknownGroup);
        };
        state.awaits_first_psn = false;
        let flow = entropy::of_packet(frame.head(pool));
        let traffic_class = ipv6(frame.head(pool)).map_or(0, |view| view.traffic_class());
        let finished = complete_outer(&mut state.headers, traffic_class, flow, outer_len - 40);
        match finished.and_then(|()| Body::behind(&frame, IPV6).ok_or(DropReason::NoBuffer)) {
            Ok(body) => {
                let mut headers = std::mem::take(&mut state.headers);
                let copies = self.groups.lend_copies(group, &self.tables, self.config.loopback);
                self.groups.count_copies(group, copies.len());
                body.share(copies.len(), pool);
                for (branch, copy) in (0..).map(BranchIndex).zip(&copies) {
                    if arrival.is_some_and(|of| !of.is_for_all && !self.groups.wants(group, &of, branch)) {
                        body.release(pool);
                        continue;
                    }
                    headers[IPV6 + 24..AFTER_IPV6].copy_from_slice(&copy.destination);
                    self.send_copy(context, &headers, body, copy.adjacency, pool);
                }
                self.groups.return_copies(group, copies, self.tables.generation());
                if let Some(state) = self.groups.get_mut(group) {
                    state.headers = headers;
                }
            }
            Err(reason) => self.ports.count_drop(context.port, reason),
        }
        match arrival {
            _ if self.is_bud(group) => {
                self.finish_at_bud(context, frame, pool, &BudPacket { group, inner: IPV6, data, arrival });
            }
            Some(arrival) => self.keep(context, group, arrival, frame, pool),
            None => frame.release(pool),
        }
    }

    /// A packet to a multicast destination: static routes, and edges that instantiate a group as their End.MT SID
    /// (MT-3-2, MT-5.2-2, D3).
    pub(super) fn multicast(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool) {
        let context = &PacketContext { replicated: true, ..*context };
        let Some(head) = frame.head(pool).first_chunk::<AFTER_IPV6>() else {
            return self.ports.drop_frame(context, frame, pool, DropReason::Truncated);
        };
        let key = (
            *head[IPV6 + 8..].first_chunk().expect("an IPv6 header has 40 octets"),
            *head[IPV6 + 24..].first_chunk().expect("an IPv6 header has 40 octets"),
        );
        let Some(entry) = self.tables.multicast_route(&key) else {
            return self.ports.drop_frame(context, frame, pool, DropReason::NoMulticastRoute);
        };
        if entry.incoming.is_some() && entry.incoming != context.port {
            return self.ports.drop_frame(context, frame, pool, DropReason::WrongIncomingPort);
        }
        let (end_mt, require_hmac, copies) = (entry.end_mt, entry.require_hmac, entry.adjacencies.len());
        if end_mt && copies > 0 {
            // End.MT edits the inner header, which the copies below share.
            match frame.duplicate(pool) {
                Some(own) => self.end_mt(context, own, pool, require_hmac),
                None => self.ports.count_drop(context.port, DropReason::NoBuffer),
            }
        } else if end_mt {
            return self.end_mt(context, frame, pool, require_hmac);
        } else if copies == 0 {
            return self.ports.drop_frame(context, frame, pool, DropReason::Blackhole);
        }
        match decrement(&mut frame, pool) {
            Ok(()) => {
                self.observe_tunnelled(context.now, &frame, pool, None);
                self.multicast_copies(context, &frame, pool, &key);
            }
            Err(reason) => self.ports.count_drop(context.port, reason),
        }
        frame.release(pool);
    }

    fn multicast_copies(&mut self, context: &PacketContext, frame: &Frame, pool: &mut Pool, key: &MulticastKey) {
        let (Some(head), Some(body)) = (frame.head(pool).first_chunk(), Body::behind(frame, AFTER_IPV6)) else {
            return self.ports.count_drop(context.port, DropReason::NoBuffer);
        };
        let head: [u8; AFTER_IPV6] = *head;
        let adjacencies = self.tables.lend_multicast_adjacencies(key);
        body.share(adjacencies.len(), pool);
        for adjacency in &adjacencies {
            self.send_copy(context, &head, body, Some(*adjacency), pool);
        }
        self.tables.return_multicast_adjacencies(key, adjacencies);
    }

    /// One copy: its head, Ethernet header still open, and its share of the body, which the caller has counted.
    #[inline]
    fn send_copy(&mut self, context: &PacketContext, head: &[u8], body: Body, adjacency: Option<u32>, pool: &mut Pool) {
        let Some(index) = adjacency else {
            body.release(pool);
            return self.ports.count_drop(context.port, DropReason::NoRoute);
        };
        let chunk = if head.len() <= SMALL_ROOM { pool.allocate_small() } else { pool.allocate_large() };
        let Some(chunk) = chunk else {
            body.release(pool);
            return self.ports.count_drop(context.port, DropReason::NoBuffer);
        };
        let adjacency = self.tables.adjacency(index);
        let octets = &mut pool.octets_mut(chunk)[HEADROOM..][..head.len()];
        octets.copy_from_slice(head);
        octets[..IPV6].copy_from_slice(&adjacency.ethernet);
        let segment = Segment::new(chunk, HEADROOM, head.len());
        let len = head.len() + body.len();
        let is_allowed = adjacency.carries_any(len);
        if !self.ports.place(adjacency.port, is_allowed, len, || Frame::copy_of(segment, body, None)) {
            self.transmit(context, Frame::copy_of(segment, body, None), pool, index);
        }
    }

    /// Reports to the aggregation the PSN that is sent down in an encapsulated packet (rule R2). Packets that are no
    /// group's data pass unnoticed: replication requires nothing of what it copies. Where the SID is that of a group,
    /// so are data of other groups.
    fn observe_tunnelled(
        &mut self,
        now: Instant,
        frame: &Frame,
        pool: &mut Pool,
        of_sid: Option<u32>,
    ) -> Option<TunnelledData> {
        let (group, data, inner) = self.tunnelled_data(frame, pool)?;
        if of_sid.is_some_and(|of_sid| of_sid != group) {
            return None;
        }
        let arrival = self.data_goes_down(now, group, data, chunks_of(frame), pool);
        Some(TunnelledData { data, arrival, inner })
    }

    /// The group in which this node replicates, and whose data packet a frame carries; where that begins.
    fn tunnelled_data(&self, frame: &Frame, pool: &Pool) -> Option<(u32, Data, usize)> {
        let head = frame.head(pool);
        let offset = behind_outer(head)?;
        let packet = data_packet(head.get(offset..)?, frame.len() - offset).ok()?;
        let group = self.tables.group_of(packet.ipv6.destination_octets())?;
        let entry = &self.groups.get(group)?.entry;
        let is_data = entry.role.replicates() && packet.bth.dest_qpn() == entry.designated_qpn;
        (is_data && is_carried(packet.bth.opcode())).then(|| (group, Data::of(packet.bth), offset))
    }
}

/// Packets to a Proxy Address: the source's, which go downstream, and responses, which go upstream (D1, D12).
impl Node {
    pub(super) fn proxied(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, group: u32) {
        if let Some(host) = self.cm_host_of(&frame, pool) {
            return self.send_to_cm_host(context, frame, pool, host);
        }
        let lease = self.groups.check_lease(context.now, group);
        if let Some(arrival) = self.unserved(context, &frame, pool, group, lease.is_ok()) {
            return self.pass_on(context, frame, pool, arrival);
        }
        if let Err(reason) = lease {
            return self.ports.drop_frame(context, frame, pool, reason);
        }
        let result = match self.groups.get(group) {
            None => Err(DropReason::UnknownGroup),
            Some(state) => match (ipv6(frame.head(pool)), &state.entry.headend) {
                (Ok(view), Some(headend)) if view.source() == headend.source.address => {
                    return self.request(context, frame, pool, group);
                }
                (Ok(view), _) => {
                    let responder = view.source();
                    let taken = self.response(context, &frame, pool, group);
                    taken.inspect_err(|reason| self.groups.journal_drop(context.now, group, responder, *reason))
                }
                (Err(reason), _) => Err(reason),
            },
        };
        match result {
            Ok(()) => frame.release(pool),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    /// The headend policy: SEND and WRITE are sent to the branches; READ and ATOMIC are refused (D26).
    fn request(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, group: u32) {
        match self.groups.check_request(context, &frame, pool, group, &self.tables, &self.security) {
            Ok(Request::Carried(data)) => self.encapsulate_copies(context, frame, pool, group, data),
            Ok(Request::Refused(psn)) => {
                let outbox = self.groups.refuse(group, psn);
                self.send_upstream(context.now, group, outbox, pool);
                self.ports.drop_frame(context, frame, pool, DropReason::NotMulticastable);
            }
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    /// A packet from below, which may be a Fast CNP for a branch.
    fn response(
        &mut self,
        context: &PacketContext,
        frame: &Frame,
        pool: &mut Pool,
        group: u32,
    ) -> Result<(), DropReason> {
        if let Some(done) = self.send_on_trace(context, frame, pool, group) {
            return done;
        }
        let Node { config, tables, groups, security, fast_cnp, .. } = self;
        let of = FirstHop { config, tables, groups, security };
        let (outbox, taken) = match fast_cnp.branch_of(context, frame, pool, group, of) {
            Some(branch) => groups.cnp(context.now, group, branch?, 1),
            None => groups.response(context, frame, pool, group, tables, security)?,
        };
        self.send_upstream(context.now, group, outbox, pool);
        self.settle(context.now, group, pool);
        self.trace_receivers(context.now, group, pool);
        taken
    }

    /// Rule R2: a data packet is sent downstream. Returns what it is to the repair of the group, if this node repairs.
    #[inline]
    pub(super) fn data_goes_down(
        &mut self,
        now: Instant,
        group: u32,
        data: Data,
        chunks: usize,
        pool: &mut Pool,
    ) -> Option<Arrival> {
        if let Some(outbox) = self.groups.data(now, group, data) {
            self.send_upstream(now, group, outbox, pool);
        }
        self.groups.arrive(now, group, data, chunks)
    }

    /// The deadline of a group has come.
    pub(super) fn group_tick(&mut self, now: Instant, group: u32, pool: &mut Pool) {
        let outbox = self.groups.tick(now, group);
        self.send_upstream(now, group, outbox, pool);
        self.settle(now, group, pool);
    }

    /// Sends CNPs and responses to the parent or, at the root, to the source (D12, MT-5.3.1-4).
    pub(super) fn send_upstream(&mut self, now: Instant, group: u32, outbox: Outbox, pool: &mut Pool) {
        let is_over = self.groups.check_lease(now, group).is_err();
        if !outbox.is_empty()
            && !is_over
            && let Some(up) = self.groups.upward(group, &self.tables, self.config.loopback)
        {
            for cnp in &outbox.cnps {
                self.groups.count_cnp(now, group, *cnp);
                let packet = up.cnp(*cnp, pool);
                self.send_response(now, packet, pool);
            }
            for response in &outbox.responses {
                self.groups.count_response(now, group, *response);
                let packet = up.response(&response.response, pool);
                self.send_response(now, packet, pool);
            }
        }
        self.groups.sent(group, outbox);
    }

    pub(super) fn send_response(&mut self, now: Instant, packet: Result<(Frame, u32), DropReason>, pool: &mut Pool) {
        match packet {
            Ok((frame, adjacency)) => {
                self.transmit(&PacketContext::own(now), frame, pool, adjacency);
            }
            Err(reason) => self.ports.count_drop(None, reason),
        }
    }
}
