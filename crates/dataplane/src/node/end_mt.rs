//! End.MT (multicast draft section 6.2): one copy of the inner packet for each receiver of this edge.

use super::proxy::Data;
use super::state::{EdgeCopy, Flow, GroupState, ListCache, ReceiverList, Target};
use super::{Arrival, Node};
use crate::behavior::decapsulate;
use crate::config::IcrcMode;
use crate::drop::DropReason;
use crate::headers::{IPV6, Place, ipv6, srh_drop};
use crate::multicast::{
    ListedReceiver, RethRewrite, RethRule, Rewrite, Rewritten, check_icrc, data_packet, is_carried, receivers_of,
};
use srdma_aggregation::BranchIndex;
use srdma_frame::{Body, Frame, HEADROOM, Pool, Segment};
use srdma_group::NodeRole;
use srdma_wire::icrc::Computation;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::rocev2::Packet;
use srdma_wire::{BthView, Icrc, Ipv6View, Psn, Srh, UdpView, View};

impl Node {
    /// The behaviour; steps are those of the draft's section 6.2.
    pub(super) fn end_mt(&mut self, mut arrival: Arrival, mut frame: Frame, pool: &mut Pool, require_hmac: bool) {
        arrival.replicated = true;
        let result = self.receiver_list(&frame, pool, require_hmac).and_then(|(slot, inner)| {
            decapsulate(&mut frame, pool, inner)?;
            let mut list = self.lists.take(slot).ok_or(DropReason::NoReceiverList)?;
            let result = self.copy_to_receivers(&arrival, &mut frame, pool, &mut list);
            self.lists.put(slot, list);
            result
        });
        match result {
            Ok(()) => frame.release(pool),
            Err(reason) => self.drop_frame(arrival, frame, pool, reason),
        }
    }

    /// S01–S05: the slot of the packet's receiver list, parsed and resolved unless that was done before for the same
    /// octets; and where the inner packet begins.
    fn receiver_list(&mut self, frame: &Frame, pool: &Pool, require_hmac: bool) -> Result<(usize, usize), DropReason> {
        let head = frame.head(pool);
        let outer = ipv6(head)?;
        // S01, S13. No SRH, or Segments Left is zero (MT-6.2-1)
        let at = Place::first(outer).behind_options(head)?;
        if at.header != NextHeader::ROUTING {
            return Err(DropReason::EndMtNoSegment);
        }
        let srh = at.srh(head).map_err(srh_drop)?;
        if srh.header.segments_left == 0 {
            return Err(DropReason::EndMtNoSegment);
        }
        if outer.hop_limit <= 1 {
            return Err(DropReason::HopLimitExceeded);
        }
        // S02, S03. The outer header is about to go; that the next segment exists was checked with the SRH (MT-6.2-2).
        let behind = at.behind_srh(srh.header);
        let octets = &head[at.offset..behind.offset];
        let inner = behind.behind_options(head)?;
        if inner.header != NextHeader::IPV6 {
            return Err(DropReason::UpperLayer);
        }
        // The flow is read where its fields are without extension headers.
        match head.get(inner.offset + 6).map(|next_header| NextHeader(*next_header)) {
            Some(NextHeader::UDP) => {}
            Some(NextHeader::HOP_BY_HOP | NextHeader::DESTINATION_OPTIONS | NextHeader::ROUTING) => {
                return Err(DropReason::ExtensionHeaders);
            }
            _ => return Err(DropReason::NotRocev2),
        }
        let flow = flow_of(outer, head, inner.offset).ok_or(DropReason::HeaderTooLong)?;
        let slot = ListCache::slot(&flow);
        let known = self.lists.get(slot).is_some_and(|list| {
            list.generation == self.generation
                && list.is_of(&flow)
                && list.srh == octets
                && (!require_hmac || list.verified_for.as_ref() == Some(outer.destination_octets()))
        });
        if !known {
            let list = self.parse_list(outer, &srh, octets, &flow, require_hmac)?;
            self.lists.put(slot, Box::new(list));
        }
        Ok((slot, inner.offset))
    }

    /// S04, S05: HMAC first (MT-9-1), then the TLVs, or the provisioned list where there are none (D6).
    #[cold]
    fn parse_list(
        &self,
        outer: &Ipv6View,
        srh: &Srh<'_>,
        octets: &[u8],
        flow: &Flow<'_>,
        require_hmac: bool,
    ) -> Result<ReceiverList, DropReason> {
        let types = self.config.tlv_types;
        if require_hmac {
            let (source, destination) = (outer.source_octets(), outer.destination_octets());
            self.hmac_keys.verify_lists(source, destination, srh, types, self.config.end_mt_cover)?;
        }
        let (source, proxy) = flow.inner_addresses.split_at(16);
        let [source, proxy] = [source, proxy].map(|octets| *octets.first_chunk().expect("two addresses of 16 octets"));
        // The Segment List ends with the Proxy Address (D4): a list that was signed for one group serves no other.
        if srh.segments.first() != Some(&proxy) {
            return Err(DropReason::WrongProxy);
        }
        let designated_qpn = *flow.designated_qpn;
        let group = match self.main.lookup(&proxy) {
            Some(Target::Group(group)) => Some(group),
            _ => None,
        };
        let state = group.and_then(|group| self.groups[group as usize].as_ref());
        let state = state.filter(|state| state.entry.role == NodeRole::Edge);
        if state.is_some_and(|state| state.entry.designated_qpn.to_octets() != designated_qpn) {
            return Err(DropReason::WrongQpn);
        }
        let recorded = state.filter(|state| state.learnt.is_none());
        let is_own = |address: &[u8; 16]| matches!(self.main.lookup(address), Some(Target::Local | Target::Sid(_)));
        let provisioned: Vec<ListedReceiver> =
            recorded.map_or(&[][..], |state| &state.entry.receivers).iter().map(ListedReceiver::of).collect();
        let receivers = match receivers_of(srh, types, is_own)? {
            None => provisioned,
            Some(listed) => with_regions(listed, &provisioned),
        };
        if receivers.is_empty() {
            return Err(DropReason::NoReceiverList);
        }
        // What has to be learnt is learnt when all of the packet has been checked (D17).
        let is_known = |state: &GroupState| receivers.iter().all(|receiver| state.has_learnt(receiver));
        let learns = match state {
            Some(state) => state.learnt.is_some() && !is_known(state),
            None => group.is_none() && self.learns(&proxy),
        };
        let copies = receivers.iter().map(|receiver| {
            let address = receiver.address.octets();
            EdgeCopy {
                rewritten: Rewritten::new(receiver, &source, &proxy, &designated_qpn),
                adjacency: self.resolve(&address, &proxy),
                branch: state.and_then(|state| state.branch_of(&address)),
            }
        });
        Ok(ReceiverList {
            outer_source: *flow.outer_source,
            inner_addresses: *flow.inner_addresses,
            designated_qpn,
            srh: octets.to_vec(),
            generation: self.generation,
            verified_for: require_hmac.then(|| *outer.destination_octets()),
            group: group.filter(|_| state.is_some() && !learns),
            reth: RethRule::new(state.and_then(|state| state.entry.region), &receivers),
            copies: copies.collect(),
            to_learn: learns.then_some(receivers),
            packet_octets: 0,
        })
    }

    /// S06–S12: a copy to each receiver (MT-5.2-3).
    fn copy_to_receivers(
        &mut self,
        arrival: &Arrival,
        frame: &mut Frame,
        pool: &mut Pool,
        list: &mut ReceiverList,
    ) -> Result<(), DropReason> {
        let head = frame.head(pool).get(IPV6..).ok_or(DropReason::Truncated)?;
        let packet = data_packet(head, frame.len() - IPV6)?;
        self.check_data(&packet, frame, pool)?;
        let headers = head.first_chunk().ok_or(DropReason::HeaderTooLong)?;
        let icrc = Icrc(frame.last_four(pool).ok_or(DropReason::Truncated)?);
        let reth = match packet.extended.reth() {
            Some(reth) => RethRewrite::new(&packet, reth.value(), &list.reth)?,
            None => None,
        };
        if list.to_learn.is_some() {
            self.learn(arrival.now, list)?;
        }
        let rewrite = Rewrite::new(&packet, headers, icrc, reth.as_ref());
        let data = Data::of(packet.bth);
        frame.truncate(frame.len() - Icrc::LEN, pool);
        let body = Body::behind(frame, rewrite.head_len()).ok_or(DropReason::NoBuffer)?;
        if let Some(group) = list.group {
            self.data_goes_down(arrival.now, group, data, pool);
        }
        list.prepare_for(rewrite.len() - IPV6);
        body.share(list.copies.len(), pool);
        let withholding = list.group.filter(|group| self.withholds_any(*group));
        let mut made = list.copies.len();
        for copy in &list.copies {
            match withholding.and_then(|group| self.withholds(group, copy.branch, data.psn())) {
                None => self.copy_to(arrival, pool, &rewrite, copy, body),
                Some(reason) => {
                    made -= 1;
                    body.release(pool);
                    self.count_drop(*arrival, reason);
                }
            }
        }
        if let Some(state) = list.group.and_then(|group| self.groups[group as usize].as_mut()) {
            state.counters.copies += made as u64;
        }
        Ok(())
    }

    /// Whether a group carries the packet further.
    #[inline]
    fn check_data(&self, packet: &Packet<'_>, frame: &Frame, pool: &Pool) -> Result<(), DropReason> {
        if !is_carried(packet.bth.opcode()) {
            return Err(DropReason::NotMulticastable);
        }
        // The inner hop limit counts this node (D5).
        if packet.ipv6.hop_limit <= 1 {
            return Err(DropReason::HopLimitExceeded);
        }
        if self.config.verify_icrc { check_icrc(packet, frame, pool) } else { Ok(()) }
    }

    fn withholds_any(&self, group: u32) -> bool {
        self.groups[group as usize].as_ref().is_some_and(|state| state.withholds_any)
    }

    fn withholds(&self, group: u32, branch: Option<BranchIndex>, psn: Psn) -> Option<DropReason> {
        self.groups[group as usize].as_ref()?.withholds(branch?, psn)
    }

    /// S07–S11: one copy, whose share of the body has been counted.
    #[inline]
    fn copy_to(&mut self, arrival: &Arrival, pool: &mut Pool, rewrite: &Rewrite<'_>, copy: &EdgeCopy, body: Body) {
        let Some(index) = copy.adjacency else {
            body.release(pool);
            return self.count_drop(*arrival, DropReason::NoRoute);
        };
        let Some(chunk) = pool.allocate_small() else {
            body.release(pool);
            return self.count_drop(*arrival, DropReason::NoBuffer);
        };
        let adjacency = &self.adjacencies[index as usize];
        let octets = pool.octets_mut(chunk)[HEADROOM..].first_chunk_mut().expect("a small chunk holds a head");
        let mut icrc = rewrite.write(&copy.rewritten, &adjacency.ethernet, octets);
        let head = Segment::new(chunk, HEADROOM, rewrite.head_len());
        if self.config.icrc == IcrcMode::Recompute {
            icrc = recompute(head, body, pool).unwrap_or(icrc);
        }
        let len = rewrite.len();
        match self.egress.place(adjacency.port, len) {
            Some(place) if adjacency.carries(len) => {
                place.fill(Frame::copy_of(head, body, Some(icrc.0)));
                self.port_counters[adjacency.port.index()].sent.count(len);
            }
            _ => self.transmit(*arrival, Frame::copy_of(head, body, Some(icrc.0)), pool, index),
        }
    }
}

/// Gives receivers that no MR TLV speaks of the regions of the group's record (D27).
fn with_regions(mut listed: Vec<ListedReceiver>, recorded: &[ListedReceiver]) -> Vec<ListedReceiver> {
    for receiver in listed.iter_mut().filter(|receiver| receiver.region.is_none()) {
        receiver.region =
            recorded.iter().find(|known| known.address == receiver.address).and_then(|known| known.region);
    }
    listed
}

/// The flow of a packet in which `inner` is the offset of the inner IPv6 header.
#[inline]
fn flow_of<'h>(outer: &'h Ipv6View, head: &'h [u8], inner: usize) -> Option<Flow<'h>> {
    const QPN: usize = 40 + 8 + BthView::DEST_QP_OFFSET;
    let inner: &[u8; QPN + 3] = head.get(inner..)?.first_chunk()?;
    Some(Flow {
        outer_source: outer.source_octets(),
        inner_addresses: inner[8..].first_chunk()?,
        designated_qpn: inner.last_chunk()?,
    })
}

/// The ICRC of a copy, over all its octets (D10, `recompute`).
#[cold]
fn recompute(head: Segment, body: Body, pool: &Pool) -> Option<Icrc> {
    let (ipv6, rest) = Ipv6View::split(head.octets(pool).get(IPV6..)?).ok()?;
    let (udp, rest) = UdpView::split(rest).ok()?;
    let (bth, rest) = BthView::split(rest).ok()?;
    let mut computation = Computation::begin(ipv6, 0, udp, bth);
    computation.update(rest);
    for segment in body.segments() {
        computation.update(segment.octets(pool));
    }
    Some(computation.finish())
}
