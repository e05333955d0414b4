//! Receiver lists of End.MT, parsed and resolved.

use super::list_cache::Flow;
use super::{GroupState, Groups, Surroundings};
use crate::behavior::{Outcome, behind_options};
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6, Place, ipv6, srh_drop};
use crate::multicast::{
    Listed, ListedReceiver, Naming, RegionTable, RethRewrite, RethRule, Rewrite, Rewritten, behind_qpn, receivers_of,
};
use crate::scope::is_mapped;
use crate::tables::{Tables, Target};
use srdma_aggregation::BranchIndex;
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::{NodeRole, ReceiverRegion, Safeguard};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::rocev2::Packet;
use srdma_wire::srh::ROUTING_TYPE;
use srdma_wire::{Ipv6View, Srh};
use std::net::Ipv6Addr;

/// A copy for a receiver: one cache line, in the order of use, with what is needed of its adjacency.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct EdgeCopy {
    pub(crate) ethernet: [u8; IPV6],
    pub(crate) port: PortId,
    pub(crate) rewritten: Rewritten,
    /// Octets of the longest frame that the adjacency carries as it is; none without one.
    pub(crate) most_octets: u32,
    pub(crate) branch: Option<BranchIndex>,
    pub(crate) adjacency: Option<u32>,
}

const _: () = assert!(size_of::<EdgeCopy>() == 64);

impl EdgeCopy {
    /// A copy that leaves by an adjacency of the tables as they are.
    pub(crate) fn new(
        rewritten: Rewritten,
        adjacency: Option<u32>,
        branch: Option<BranchIndex>,
        tables: &Tables,
    ) -> Self {
        let known = adjacency.map(|index| tables.adjacency(index));
        EdgeCopy {
            ethernet: known.map_or([0; IPV6], |known| known.ethernet),
            port: known.map_or(PortId(0), |known| known.port),
            rewritten,
            // Copies in IPv4 are translated first (D272).
            most_octets: known.filter(|_| !rewritten.is_to_ipv4()).map_or(0, |known| known.most_octets()),
            branch,
            adjacency,
        }
    }
}

/// A receiver list, learnt from TLVs or provisioned (MT-8-2), parsed and resolved, under the octets that it was made
/// from.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverList {
    pub(crate) outer_source: [u8; 16],
    pub(crate) inner_addresses: [u8; 32],
    pub(crate) designated_qpn: [u8; 3],
    /// The SRH, whole; empty for receivers that the node has from its entry alone (D246).
    pub(crate) srh: Vec<u8>,
    pub(crate) generation: u64,
    /// The outer destination that the HMAC was verified with; `None` when it was not verified.
    pub(crate) verified_for: Option<[u8; 16]>,
    pub(crate) group: Option<u32>,
    /// Receivers that the group has to learn before a packet goes to them, in the order of the copies (D17).
    pub(crate) to_learn: Option<Vec<ListedReceiver>>,
    pub(crate) reth: RethRule,
    pub(crate) regions: RegionTable,
    pub(crate) copies: Vec<EdgeCopy>,
    /// Where WRITEs of the copies go.
    pub(crate) copy_regions: Vec<Option<ReceiverRegion>>,
    /// Listed receivers that get no copy: they are not in the record, but in the prepared or the preceding one (D96).
    pub(crate) omitted: u16,
    /// Octets of the packets, from IPv6 to ICRC, that the copies are prepared for.
    pub(crate) packet_octets: usize,
}

impl ReceiverList {
    /// The list of these receivers for packets of a flow, resolved.
    fn of(
        flow: &Flow<'_>,
        state: Option<&GroupState>,
        receivers: &[ListedReceiver],
        naming: Naming,
        tables: &Tables,
    ) -> Self {
        let (source, proxy) = flow.addresses();
        let copies = receivers.iter().map(|receiver| {
            let address = receiver.address.octets();
            EdgeCopy::new(
                Rewritten::new(receiver, source, proxy, flow.designated_qpn),
                tables.resolve(&address, proxy),
                state.and_then(|state| state.branch_of(&address)),
                tables,
            )
        });
        let (reth, regions) = regions_for(state, receivers, naming);
        ReceiverList {
            outer_source: *flow.outer_source,
            inner_addresses: *flow.inner_addresses,
            designated_qpn: *flow.designated_qpn,
            srh: Vec::new(),
            generation: tables.generation(),
            verified_for: None,
            group: None,
            to_learn: None,
            reth,
            regions,
            copies: copies.collect(),
            copy_regions: receivers.iter().map(|receiver| receiver.region).collect(),
            omitted: 0,
            packet_octets: 0,
        }
    }

    /// How the RETH of a packet moves, if it does.
    pub(crate) fn reth_of(&self, packet: &Packet<'_>) -> Result<Option<RethRewrite>, DropReason> {
        match packet.extended.reth() {
            Some(reth) => RethRewrite::new(packet.total_len(), reth.value(), &self.reth, self.regions.more()),
            None => Ok(None),
        }
    }

    /// Prepares the copies of a packet: for its length, which those of one message have in common, but the last; and
    /// for the region of the group that it names (D191).
    #[inline(always)]
    pub(crate) fn prepare_for(&mut self, rewrite: &Rewrite<'_>) {
        self.prepare_for_len(rewrite.len() - IPV6);
        if let Some(region) = rewrite.region() {
            self.regions.select(region, &mut self.copy_regions);
        }
    }

    #[inline]
    fn prepare_for_len(&mut self, packet_octets: usize) {
        if self.packet_octets != packet_octets {
            self.packet_octets = packet_octets;
            let behind_qpn = behind_qpn(packet_octets);
            self.copies.iter_mut().for_each(|copy| copy.rewritten.prepare_for(behind_qpn));
        }
    }

    /// Whether the list was made from an SRH with these octets and from the present tables, and its HMAC was verified
    /// if packets to the SID `signed_to` need one.
    #[inline(always)]
    fn is_made_from(&self, srh: &[u8], signed_to: Option<&[u8]>, generation: u64) -> bool {
        self.generation == generation
            && self.srh == srh
            && signed_to.is_none_or(|sid| self.verified_for.as_ref().is_some_and(|verified| verified == sid))
    }

    pub(crate) fn proxy(&self) -> Ipv6Addr {
        let [.., a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.inner_addresses;
        Ipv6Addr::from([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }

    /// Whether the list is that of a flow.
    #[inline]
    pub(crate) fn is_of(&self, flow: &Flow<'_>) -> bool {
        self.outer_source == *flow.outer_source
            && self.inner_addresses == *flow.inner_addresses
            && self.designated_qpn == *flow.designated_qpn
    }
}

impl Groups {
    /// S01–S05 in the common case: the SRH is right behind the IPv6 header, and its list is known. A list is only known
    /// for an SRH that was found to be sound.
    #[inline(always)]
    pub(crate) fn known_list(&self, head: &[u8], require_hmac: bool, generation: u64) -> Option<(usize, usize)> {
        let (outer, srh) = head.split_first_chunk::<AFTER_IPV6>()?;
        let [next_header, hdr_ext_len, routing_type, segments_left, ..]: &[u8; 8] = srh.first_chunk()?;
        let (octets, inner) = srh.split_at_checked(8 + 8 * usize::from(*hdr_ext_len))?;
        let flow = Flow::behind(outer, inner)?;
        let is_common = outer[IPV6 + 6] == NextHeader::ROUTING.0
            && outer[IPV6 + 7] > 1
            && *routing_type == ROUTING_TYPE
            && *segments_left > 0
            && *next_header == NextHeader::IPV6.0
            && inner.get(6) == Some(&NextHeader::UDP.0);
        let signed_to = require_hmac.then_some(&outer[IPV6 + 24..]);
        let slot = self.lists.find(&flow, |list| list.is_made_from(octets, signed_to, generation));
        slot.filter(|_| is_common).map(|slot| (slot, AFTER_IPV6 + octets.len()))
    }

    /// S01–S05: the slot of the packet's receiver list, parsed and resolved unless that was done before for the same
    /// octets; and where the inner packet begins.
    pub(crate) fn receiver_list(
        &mut self,
        frame: &Frame,
        pool: &Pool,
        require_hmac: bool,
        around: &Surroundings<'_>,
    ) -> Result<(usize, usize), DropReason> {
        let head = frame.head(pool);
        let outer = ipv6(head)?;
        // S01, S13. No SRH, or Segments Left is zero (MT-6.2-1)
        let at = behind_options(head, Place::first(outer)).map_err(Outcome::reason)?;
        if at.header != NextHeader::ROUTING {
            return Err(DropReason::EndMtNoSegment);
        }
        let srh = at.srh(head).map_err(|error| srh_drop(error, head))?;
        if srh.header.segments_left == 0 {
            return Err(DropReason::EndMtNoSegment);
        }
        if outer.hop_limit <= 1 {
            return Err(DropReason::HopLimitExceeded);
        }
        // S02, S03. The outer header is about to go; that the next segment exists was checked with the SRH (MT-6.2-2).
        let behind = at.behind_srh(srh.header);
        let octets = &head[at.offset..behind.offset];
        let inner = behind_options(head, behind).map_err(Outcome::reason)?;
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
        let outer_octets = head.first_chunk().ok_or(DropReason::Truncated)?;
        let flow = Flow::behind(outer_octets, &head[inner.offset..]).ok_or(DropReason::HeaderTooLong)?;
        let generation = around.tables.generation();
        let signed_to = require_hmac.then_some(&outer_octets[IPV6 + 24..]);
        let known = self.lists.find(&flow, |list| list.is_made_from(octets, signed_to, generation));
        if let Some(slot) = known {
            return Ok((slot, inner.offset));
        }
        let list = self.parse_list(outer, &srh, octets, &flow, require_hmac, around)?;
        self.lists.make_room(self.slots.len());
        let slot = self.lists.place_for(&flow, generation);
        self.lists.put(slot, Box::new(list));
        Ok((slot, inner.offset))
    }

    /// S04, S05: HMAC first (MT-9-1), then the TLVs, or without any the provisioned list (D6).
    #[cold]
    fn parse_list(
        &self,
        outer: &Ipv6View,
        srh: &Srh<'_>,
        octets: &[u8],
        flow: &Flow<'_>,
        require_hmac: bool,
        around: &Surroundings<'_>,
    ) -> Result<ReceiverList, DropReason> {
        let Surroundings { config, tables, security } = around;
        let types = config.tlv_types;
        if require_hmac {
            let (source, destination) = (outer.source_octets(), outer.destination_octets());
            security.keys().verify_lists(source, destination, srh, types, config.end_mt_cover)?;
        }
        let (_, proxy) = flow.addresses();
        // The Segment List ends with the Proxy Address (D4): a list that was signed for one group serves no other.
        if srh.segments.first() != Some(proxy) {
            return Err(DropReason::WrongProxy);
        }
        let designated_qpn = *flow.designated_qpn;
        let group = tables.group_of(proxy);
        let state = group.and_then(|group| self.get(group));
        if state.is_some_and(|state| state.entry.role == NodeRole::Bud) {
            return Err(DropReason::BudAsEdge);
        }
        let state = state.filter(|state| state.entry.role == NodeRole::Edge);
        if state.is_some_and(|state| state.entry.designated_qpn.to_octets() != designated_qpn) {
            return Err(DropReason::WrongQpn);
        }
        let recorded = state.filter(|state| state.learnt.is_none());
        let is_own = |address: &[u8; 16]| matches!(tables.lookup_main(address), Some(Target::Local | Target::Sid(_)));
        let provisioned: Vec<ListedReceiver> =
            recorded.map_or(&[][..], |state| &state.entry.receivers).iter().map(ListedReceiver::of).collect();
        let (receivers, naming) = match receivers_of(srh, types, is_own)? {
            None => (provisioned, Naming::None),
            Some(Listed { receivers, naming }) => (with_regions(receivers, &provisioned), naming),
        };
        if receivers.is_empty() {
            return Err(DropReason::NoReceiverList);
        }
        let listed = receivers.len();
        let receivers = match recorded {
            Some(state) if config.without != Some(Safeguard::ListsInRecord) => self.in_record(state, receivers)?,
            Some(_) | None => receivers,
        };
        // A record of both versions is refused as such (D273).
        let is_mixed = |receiver: &ListedReceiver| is_mapped(&receiver.address.octets()) != is_mapped(proxy);
        if recorded.is_none() && receivers.iter().any(is_mixed) {
            return Err(DropReason::BadReceiver);
        }
        let omitted = (listed - receivers.len()) as u16;
        // Learning happens after all checks of the packet (D17).
        let is_known = |state: &GroupState| receivers.iter().all(|receiver| state.has_receiver(receiver));
        let learns = match state {
            Some(state) => state.learnt.is_some() && !is_known(state),
            None => group.is_none() && self.learns(proxy),
        };
        let list = ReceiverList::of(flow, state, &receivers, naming, tables);
        Ok(ReceiverList {
            srh: octets.to_vec(),
            verified_for: require_hmac.then(|| *outer.destination_octets()),
            group: group.filter(|_| state.is_some() && !learns),
            omitted,
            to_learn: learns.then_some(receivers),
            ..list
        })
    }

    /// The slot of the list of a bud node's own receivers, which are those of its entry (D246).
    pub(crate) fn own_list(&mut self, group: u32, flow: &Flow<'_>, tables: &Tables) -> Result<usize, DropReason> {
        let generation = tables.generation();
        if let Some(slot) = self.lists.find(flow, |list| list.is_made_from(&[], None, generation)) {
            return Ok(slot);
        }
        let state = self.get(group).ok_or(DropReason::UnknownGroup)?;
        let receivers: Vec<ListedReceiver> = state.entry.receivers.iter().map(ListedReceiver::of).collect();
        let list = ReceiverList::of(flow, Some(state), &receivers, Naming::None, tables);
        let list = ReceiverList { group: Some(group), ..list };
        self.lists.make_room(self.slots.len());
        let slot = self.lists.place_for(flow, generation);
        self.lists.put(slot, Box::new(list));
        Ok(slot)
    }
}

impl Groups {
    /// The listed receivers of the edge's record, which waits for the acknowledgements of these alone (D96). A receiver
    /// of neither this record nor the one before or after it drops the packet; one with another queue pair than the
    /// record's, which was or will be a member, loses its copy: responses do not tell two queue pairs of a host apart.
    fn in_record(
        &self,
        state: &GroupState,
        mut listed: Vec<ListedReceiver>,
    ) -> Result<Vec<ListedReceiver>, DropReason> {
        let prepared = self.prepared.get(&state.entry.id);
        let is_recorded = |address: &[u8; 16]| state.branch_of(address).is_some();
        let is_known = |receiver: &ListedReceiver| {
            let address = receiver.address;
            is_recorded(&address.octets())
                || state.preceding.contains(&address)
                || prepared.is_some_and(|entry| entry.branches.iter().any(|branch| branch.responder == address))
        };
        if !listed.iter().all(is_known) {
            return Err(DropReason::ReceiverNotInRecord);
        }
        listed.retain(|receiver| state.has_receiver(receiver));
        if listed.is_empty() { Err(DropReason::ReceiverNotInRecord) } else { Ok(listed) }
    }
}

/// How WRITEs to these receivers are rewritten. An MR TLV has one region for each receiver, and does not say which of a
/// group of several it is (D191). Without the regions that it says the entry has, WRITEs would go to the source's own
/// (D231).
fn regions_for(state: Option<&GroupState>, receivers: &[ListedReceiver], naming: Naming) -> (RethRule, RegionTable) {
    let region = state.and_then(|state| state.entry.region);
    if naming == Naming::Record && region.is_none() {
        return (RethRule::Refuse, RegionTable::default());
    }
    let rule = RethRule::new(region, receivers);
    let Some(state) = state.filter(|state| !state.entry.more_regions.is_empty()) else {
        return (rule, RegionTable::default());
    };
    let recorded = receivers.iter().map(|receiver| {
        let branch = state.branch_of(&receiver.address.octets())?;
        state.entry.receiver_at(branch.index())
    });
    match RegionTable::new(&state.entry.more_regions, recorded).filter(|_| naming != Naming::Regions) {
        Some(regions) => (rule, regions),
        None => (RethRule::Refuse, RegionTable::default()),
    }
}

/// Gives receivers without an MR TLV the regions of the group's record (D27).
fn with_regions(mut listed: Vec<ListedReceiver>, recorded: &[ListedReceiver]) -> Vec<ListedReceiver> {
    for receiver in listed.iter_mut().filter(|receiver| receiver.region.is_none()) {
        receiver.region =
            recorded.iter().find(|known| known.address == receiver.address).and_then(|known| known.region);
    }
    listed
}
