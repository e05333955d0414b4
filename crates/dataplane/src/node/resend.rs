//! Packets of retransmission buffers (D150): kept as they come, sent again to one branch, and requested from the
//! parent.

use super::Node;
use super::bud::inner_headers;
use super::replicate::SMALL_ROOM;
use super::verdict::Verdict;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::encaps::complete_outer;
use crate::entropy;
use crate::groups::{EdgeCopy, behind_outer, stored_packet};
use crate::headers::{AFTER_IPV6, IPV6, ipv6};
use crate::multicast::{
    ListedReceiver, RethRewrite, RethRule, Rewrite, Rewritten, behind_qpn, check_data, replace_icrc,
};
use srdma_aggregation::BranchIndex;
use srdma_frame::{Body, Frame, HEADROOM, Pool, PortId, Segment};
use srdma_group::Downstream;
use srdma_repair::{Arrival, Sending};
use srdma_wire::checksum::Update;
use srdma_wire::icrc::{Delta, Shift};
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Icrc, Instant};

/// Octets of IPv6, UDP and BTH.
const HEADERS: usize = 40 + 8 + 12;
/// Where the AckReq bit is in these.
const ACK_REQUEST: usize = 40 + 8 + 8;
const UDP_CHECKSUM: usize = 40 + 6;

impl Node {
    /// Keeps a packet that was sent to the branches that want it, and acts on what follows.
    #[inline]
    pub(super) fn keep(
        &mut self,
        context: &PacketContext,
        group: u32,
        arrival: Arrival,
        frame: Frame,
        pool: &mut Pool,
    ) {
        if self.groups.keep(context.now, group, arrival, frame) {
            self.ports.count_drop(context.port, DropReason::RepairBufferFull);
        }
        self.settle(context.now, group, pool);
    }

    /// Acts on the effects of an event on a group's repair: releases packets, sends requests, and sends branches what
    /// they are to be sent as far as their ports have room.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant, group: u32, pool: &mut Pool) {
        if self.groups.pending().has_effects() {
            self.act(now, group, pool);
        }
    }

    fn act(&mut self, now: Instant, group: u32, pool: &mut Pool) {
        let mut effects = std::mem::take(&mut self.groups.pending().effects);
        for packet in effects.released.drain(..) {
            packet.frame.release(pool);
        }
        if !effects.requests.is_empty()
            && self.groups.check_lease(now, group).is_ok()
            && let Some(up) = self.groups.upward(group, &self.tables, self.config.loopback)
        {
            for request in &effects.requests {
                self.groups.journal_request(now, group, *request);
                let packet = up.request(request, pool);
                self.send_response(now, packet, pool);
            }
        }
        effects.requests.clear();
        let mut ready = std::mem::take(&mut effects.ready);
        self.groups.pending().effects = effects;
        for branch in ready.drain(..) {
            if let Some(adjacency) = self.branch_adjacency(group, branch) {
                let (port, _) = self.ports.vlans.carrier(self.tables.adjacency(adjacency).port);
                self.groups.pending().wait(port, group, branch);
                self.feed(now, port, pool);
            }
        }
        let pending = self.groups.pending();
        if pending.effects.ready.is_empty() {
            pending.effects.ready = ready;
        }
    }

    /// Releases packets of groups that have changed or gone.
    pub(super) fn release_kept(&mut self, pool: &mut Pool) {
        for packet in self.groups.pending().effects.released.drain(..) {
            packet.frame.release(pool);
        }
    }

    /// A frame has left a port for which branches wait.
    #[inline(never)]
    pub(super) fn feed_after(&mut self, now: Instant, port: PortId, pool: &mut Pool) {
        self.groups.pending().departed(port);
        self.feed(now, port, pool);
    }

    /// Sends packets of buffers while a port has room for them.
    fn feed(&mut self, now: Instant, port: PortId, pool: &mut Pool) {
        loop {
            let waiting = self.ports.egress.waiting(port).frames;
            let Some((group, branch)) = self.groups.pending().take_turn(port, waiting) else { return };
            if self.groups.check_lease(now, group).is_err() {
                continue;
            }
            if let Some(sending) = self.groups.poll(now, group, branch) {
                self.groups.pending().wait(port, group, branch);
                self.send_stored(now, group, branch, sending, pool);
            }
        }
    }

    /// The adjacency by which a branch is sent its data.
    pub(super) fn branch_adjacency(&self, group: u32, branch: BranchIndex) -> Option<u32> {
        let entry = &self.groups.get(group)?.entry;
        let destination = match (entry.receiver_at(branch.index()), entry.downstream.get(branch.index())) {
            (Some(receiver), _) => receiver.address,
            (None, Some(Downstream::Sid(sid))) => *sid,
            (None, Some(Downstream::Multicast(_)) | None) => return None,
        };
        self.tables.resolve(&destination.octets(), &entry.proxy.octets())
    }

    /// Sends a packet of the buffer to one branch.
    fn send_stored(&mut self, now: Instant, group: u32, branch: BranchIndex, sending: Sending, pool: &mut Pool) {
        let context = &PacketContext { replicated: true, ..PacketContext::own(now) };
        if let Some(reason) = self.groups.withholds(group, Some(branch), sending.psn) {
            return self.ports.count_drop(None, reason);
        }
        let Some(adjacency) = self.branch_adjacency(group, branch) else {
            return self.ports.count_drop(None, DropReason::NoRoute);
        };
        if self.groups.verified(now, group, sending, pool).is_none() {
            return self.ports.count_drop(None, DropReason::BadIcrc);
        }
        let Some(entry) = self.groups.get(group).map(|state| &state.entry) else { return };
        let sent = if entry.receiver_at(branch.index()).is_some() {
            self.send_to_receiver(context, group, branch, sending, adjacency, pool)
        } else {
            let is_headend = entry.headend.is_some();
            self.send_to_child(context, group, branch, sending, adjacency, is_headend, pool)
        };
        if let Err(reason) = sent {
            self.ports.count_drop(None, reason);
        }
    }

    /// A copy for one receiver, rewritten as the first one was.
    fn send_to_receiver(
        &mut self,
        context: &PacketContext,
        group: u32,
        branch: BranchIndex,
        sending: Sending,
        adjacency: u32,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let state = self.groups.get(group).ok_or(DropReason::UnknownGroup)?;
        let repair = state.repair.as_ref().ok_or(DropReason::UnknownGroup)?;
        let stored = repair.packet(sending.psn).ok_or(DropReason::NoBuffer)?;
        let receiver = state.entry.receiver_at(branch.index()).ok_or(DropReason::ReceiverNotInRecord)?;
        let mut listed = ListedReceiver::of(receiver);
        let stored_as = state.stored_as();
        let (inner, packet) = stored_packet(&stored.frame, stored_as, pool).ok_or(DropReason::NotRocev2)?;
        // What a bud node keeps for the nodes below it may be none that its receivers were sent.
        if packet.total_len() != stored.frame.len() - inner {
            return Err(DropReason::Truncated);
        }
        check_data(&packet, &stored.frame, pool, false)?;
        let mut headers = inner_headers(stored.frame.head(pool), inner)?;
        let mut icrc = Icrc(stored.frame.last_four(pool).ok_or(DropReason::Truncated)?);
        if sending.ack_request {
            icrc = request_ack(&mut headers, packet.total_len(), icrc);
        }
        if sending.is_again {
            clear_mark(&mut headers);
        }
        let reth = match packet.extended.reth() {
            Some(reth) => RethRewrite::new(
                packet.total_len(),
                reth.value(),
                &RethRule::new(state.entry.region, std::slice::from_ref(&listed)),
                &state.entry.more_regions,
            )?,
            None => None,
        };
        if let Some(reth) = &reth {
            let region = receiver.region_at(reth.region().into());
            listed.region = Some(region.ok_or(DropReason::OutsideRegion)?);
        }
        let (source, proxy) = (packet.ipv6.source_octets(), packet.ipv6.destination_octets());
        let mut rewritten = Rewritten::new(&listed, source, proxy, packet.bth.dest_qpn_octets());
        let rewrite = Rewrite::new(&headers, packet.total_len(), icrc, reth.as_ref());
        let rewrite = rewrite.shifted(receiver.psn_offset).unwrap_or(rewrite);
        rewritten.prepare_for(behind_qpn(rewrite.len() - IPV6));
        let body = Body::behind(&stored.frame, inner - IPV6 + rewrite.head_len()).ok_or(DropReason::NoBuffer)?;
        // A packet of the time when this node had no receivers has its ICRC in its last segment still.
        let with_icrc = stored.frame.tail().is_empty();
        let body = if with_icrc { body.without_last(4).ok_or(DropReason::Truncated)? } else { body };
        let copy = EdgeCopy::new(rewritten, Some(adjacency), Some(branch), &self.tables);
        body.share(1, pool);
        self.copy_to(context, pool, &rewrite, &copy, &listed.region, body);
        Ok(())
    }

    /// A copy for one child, in the outer headers of the stored packet, or of the headend.
    #[allow(clippy::too_many_arguments, reason = "the facts of one packet")]
    fn send_to_child(
        &mut self,
        context: &PacketContext,
        group: u32,
        branch: BranchIndex,
        sending: Sending,
        adjacency: u32,
        is_headend: bool,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let state = self.groups.get_mut(group).ok_or(DropReason::UnknownGroup)?;
        let Some(Downstream::Sid(sid)) = state.entry.downstream.get(branch.index()) else {
            return Err(DropReason::NoRoute);
        };
        let destination = sid.octets();
        let repair = state.repair.as_ref().ok_or(DropReason::UnknownGroup)?;
        let stored = repair.packet(sending.psn).ok_or(DropReason::NoBuffer)?;
        let is_marked = sending.is_again && has_mark(stored.frame.head(pool), is_headend);
        let changed = if sending.ack_request || is_marked {
            let mut copy = stored.frame.duplicate(pool).ok_or(DropReason::NoBuffer)?;
            match change_inner(&mut copy, is_headend, sending.ack_request, pool) {
                Ok(icrc) => {
                    copy.truncate(copy.len() - Icrc::LEN, pool);
                    Some(copy.with_tail(icrc.0))
                }
                Err(reason) => {
                    copy.release(pool);
                    return Err(reason);
                }
            }
        } else {
            None
        };
        let frame = changed.as_ref().unwrap_or(&stored.frame);
        let (head, skip) = if is_headend {
            let view = ipv6(frame.head(pool)).map(|view| view.traffic_class());
            let (flow, outer_len) =
                (entropy::of_packet(frame.head(pool)), state.headers.len() - IPV6 + frame.len() - IPV6);
            complete_outer(&mut state.headers, view.unwrap_or(0), flow, outer_len - 40)?;
            state.headers[IPV6 + 24..AFTER_IPV6].copy_from_slice(&destination);
            (state.headers.as_slice(), IPV6)
        } else {
            (frame.head(pool).get(..AFTER_IPV6).ok_or(DropReason::Truncated)?, AFTER_IPV6)
        };
        let mut octets = [0; MAX_OUTER];
        let head_len = head.len();
        octets.get_mut(..head_len).ok_or(DropReason::HeaderTooLong)?.copy_from_slice(head);
        octets[IPV6 + 24..AFTER_IPV6].copy_from_slice(&destination);
        let body = Body::behind(frame, skip).ok_or(DropReason::NoBuffer)?;
        let tail = frame.tail().first_chunk::<4>().copied();
        let chunk = if head_len <= SMALL_ROOM { pool.allocate_small() } else { pool.allocate_large() };
        let result = match chunk {
            Some(chunk) => {
                pool.octets_mut(chunk)[HEADROOM..][..head_len].copy_from_slice(&octets[..head_len]);
                body.share(1, pool);
                Ok(Frame::copy_of(Segment::new(chunk, HEADROOM, head_len), body, tail))
            }
            None => Err(DropReason::NoBuffer),
        };
        if let Some(copy) = changed {
            copy.release(pool);
        }
        let copy = result?;
        if sending.goes_ahead {
            self.transmit_ahead(context, copy, pool, adjacency);
        } else {
            self.transmit(context, copy, pool, adjacency);
        }
        Ok(())
    }

    /// Sends a packet ahead of those that wait at a port without classes; at one with classes it waits in its class.
    fn transmit_ahead(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool, adjacency: u32) {
        match self.rewrite(context, &mut frame, pool, adjacency) {
            Verdict::Enqueue(port, len) => self.ports.enqueue_ahead(port, frame, len),
            verdict => {
                self.dispatch(verdict, context, frame, pool);
            }
        }
    }
}

/// Octets of the longest outer headers, Ethernet included: the SRH has at most 2,048 (D7).
const MAX_OUTER: usize = IPV6 + 40 + 2_048;

/// Requests an acknowledgement in the headers of a packet of so many octets; returns its new ICRC (D10, D156).
fn request_ack(headers: &mut [u8; HEADERS], packet_octets: usize, icrc: Icrc) -> Icrc {
    let old = headers[ACK_REQUEST];
    let new = old | 0x80;
    if new == old {
        return icrc;
    }
    headers[ACK_REQUEST] = new;
    let behind = Shift::octets((packet_octets - ACK_REQUEST - 1 - Icrc::LEN) as u16);
    let changed = icrc.changed_by(Delta::between(&[old], &[new]).then(behind));
    let checksum = u16::from_be_bytes([headers[UDP_CHECKSUM], headers[UDP_CHECKSUM + 1]]);
    if checksum != 0 {
        let mut update = Update::default();
        // The octet begins a word of the checksum.
        update.replace(&[old, 0], &[new, 0]);
        replace_icrc(&mut update, packet_octets, icrc, changed);
        headers[UDP_CHECKSUM..UDP_CHECKSUM + 2].copy_from_slice(&update.apply_udp(checksum).to_be_bytes());
    }
    changed
}

/// Removes a congestion mark: it has been sent before (D159).
fn clear_mark(ipv6: &mut [u8]) {
    // ECN is in bits 4 and 5 of the second octet.
    if let Some(octet) = ipv6.get_mut(1).filter(|octet| Ecn::of_traffic_class(**octet >> 4) == Ecn::Ce) {
        *octet &= !0x10;
    }
}

/// Whether a stored packet, or its outer header, is marked.
fn has_mark(head: &[u8], is_headend: bool) -> bool {
    let is_marked = |octets: Option<&[u8]>| {
        octets.and_then(|octets| octets.get(1)).is_some_and(|octet| Ecn::of_traffic_class(octet >> 4) == Ecn::Ce)
    };
    is_marked(head.get(IPV6..)) || (!is_headend && is_marked(behind_outer(head).and_then(|inner| head.get(inner..))))
}

/// Removes the marks of a packet, and requests an acknowledgement; returns its ICRC.
fn change_inner(frame: &mut Frame, is_headend: bool, ack_request: bool, pool: &mut Pool) -> Result<Icrc, DropReason> {
    let icrc = Icrc(frame.last_four(pool).ok_or(DropReason::Truncated)?);
    let len = frame.len();
    let head = frame.head_mut(pool);
    let inner = if is_headend { IPV6 } else { behind_outer(head).ok_or(DropReason::NotRocev2)? };
    clear_mark(head.get_mut(IPV6..).ok_or(DropReason::Truncated)?);
    let headers: &mut [u8; HEADERS] =
        head.get_mut(inner..).and_then(|octets| octets.first_chunk_mut()).ok_or(DropReason::HeaderTooLong)?;
    clear_mark(headers);
    Ok(if ack_request { request_ack(headers, len - inner, icrc) } else { icrc })
}
