//! The receiver lists in use, and the memory that packets to many groups wait for.

use super::{Groups, ReceiverList};
use crate::headers::{AFTER_IPV6, IPV6};
use srdma_group::GroupEntry;
use srdma_wire::BthView;
use srdma_wire::ipv6::NextHeader;

/// Key of a receiver list, besides its SRH, as in the packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow<'h> {
    pub(crate) outer_source: &'h [u8; 16],
    /// Inner source and Proxy Address.
    pub(crate) inner_addresses: &'h [u8; 32],
    pub(crate) designated_qpn: &'h [u8; 3],
}

/// Octets before the end of the queue pair number in a data packet.
const QPN_END: usize = 40 + 8 + BthView::DEST_QP_OFFSET + 3;

impl<'h> Flow<'h> {
    /// Of a packet with this outer header, Ethernet included, and this inner packet; `None` if that is cut off.
    #[inline(always)]
    pub(crate) fn behind(outer: &'h [u8; AFTER_IPV6], inner: &'h [u8]) -> Option<Self> {
        Self::of_inner(outer[IPV6 + 8..].first_chunk()?, inner)
    }

    /// Of an inner packet with this outer source, which is the node itself where it rewrites from its own entry.
    #[inline(always)]
    pub(crate) fn of_inner(outer_source: &'h [u8; 16], inner: &'h [u8]) -> Option<Self> {
        let inner: &[u8; QPN_END] = inner.first_chunk()?;
        Some(Flow { outer_source, inner_addresses: inner[8..].first_chunk()?, designated_qpn: inner.last_chunk()? })
    }

    /// The source of the inner packet, and its destination, the Proxy Address.
    pub(crate) fn addresses(&self) -> (&'h [u8; 16], &'h [u8; 16]) {
        let ends = (self.inner_addresses.first_chunk(), self.inner_addresses.last_chunk());
        let [source, proxy] = <[_; 2]>::from(ends).map(|address| address.expect("two addresses of 16 octets"));
        (source, proxy)
    }

    #[inline]
    fn proxy(&self) -> &[u8; 16] {
        self.inner_addresses.last_chunk().expect("two addresses of 16 octets")
    }
}

/// Receiver lists in use: each flow has two slots, so that the cache grows with the node's groups alone.
#[derive(Debug)]
pub(crate) struct ListCache {
    slots: Vec<Option<Box<ReceiverList>>>,
    /// 64 less the logarithm of the number of pairs of slots.
    shift: u32,
}

impl Default for ListCache {
    fn default() -> Self {
        ListCache::of_pairs(Self::LEAST_PAIRS)
    }
}

impl ListCache {
    const LEAST_PAIRS: usize = 128;
    const MOST_PAIRS: usize = 1 << 16;
    /// So many that two groups in a hundred share a pair with two others.
    const PAIRS_PER_GROUP: usize = 4;

    fn of_pairs(pairs: usize) -> Self {
        ListCache { slots: vec![None; 2 * pairs], shift: 64 - pairs.trailing_zeros() }
    }

    /// Grows with the number of groups; the lists are forgotten then, and made again as their packets come.
    pub(crate) fn make_room(&mut self, groups: usize) {
        let wanted = groups.saturating_mul(Self::PAIRS_PER_GROUP).clamp(Self::LEAST_PAIRS, Self::MOST_PAIRS);
        if 2 * wanted > self.slots.len() {
            *self = ListCache::of_pairs(wanted.next_power_of_two());
        }
    }

    /// The first slot of a flow: that of its group, since the source is not part of it.
    #[inline]
    fn first(&self, proxy: &[u8; 16], designated_qpn: &[u8; 3]) -> usize {
        let [.., a, b, c, d, e, f, g, h] = *proxy;
        let [x, y, z] = *designated_qpn;
        let mixed = u64::from_be_bytes([a, b, c, d, e, f, g, h]) ^ u64::from(u32::from_be_bytes([0, x, y, z])) << 40;
        2 * (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// The slot of a flow's list of which `is_it` is true.
    #[inline]
    pub(crate) fn find(&self, flow: &Flow<'_>, is_it: impl Fn(&ReceiverList) -> bool) -> Option<usize> {
        let first = self.first(flow.proxy(), flow.designated_qpn);
        [first, first + 1].into_iter().find(|slot| self.get(*slot).is_some_and(|list| list.is_of(flow) && is_it(list)))
    }

    /// The slot for a new list of a flow: its old one, or one that is empty or from before the tables' generation.
    pub(crate) fn place_for(&self, flow: &Flow<'_>, generation: u64) -> usize {
        let first = self.first(flow.proxy(), flow.designated_qpn);
        let is_its = |slot: &usize| self.get(*slot).is_some_and(|list| list.is_of(flow));
        let is_free = |slot: &usize| self.get(*slot).is_none_or(|list| list.generation != generation);
        let pair = [first, first + 1];
        pair.into_iter().find(is_its).or_else(|| pair.into_iter().find(is_free)).unwrap_or(first + 1)
    }

    /// Forgets the lists of a group: the record that they were resolved with has changed.
    pub(crate) fn forget(&mut self, entry: &GroupEntry) {
        let first = self.first(&entry.proxy.octets(), &entry.designated_qpn.to_octets());
        self.slots[first..first + 2].fill(None);
    }

    #[inline]
    fn get(&self, slot: usize) -> Option<&ReceiverList> {
        self.slots.get(slot)?.as_deref()
    }

    /// Takes the list out of a slot while it is used.
    #[inline]
    pub(crate) fn take(&mut self, slot: usize) -> Option<Box<ReceiverList>> {
        self.slots.get_mut(slot)?.take()
    }

    /// Replaces the list in a slot.
    #[inline]
    pub(crate) fn put(&mut self, slot: usize, list: Box<ReceiverList>) {
        self.slots[slot] = Some(list);
    }

    /// The list that a packet needs, most likely; `None` for one without an SRH right behind its IPv6 header.
    #[inline]
    fn first_of_packet(&self, head: &[u8]) -> Option<usize> {
        let (outer, srh) = head.split_first_chunk::<AFTER_IPV6>()?;
        if outer[IPV6 + 6] != NextHeader::ROUTING.0 {
            return None;
        }
        let flow = Flow::behind(outer, srh.get(8 + 8 * usize::from(*srh.get(1)?)..)?)?;
        Some(self.first(flow.proxy(), flow.designated_qpn))
    }
}

impl Groups {
    /// Whether there are so many receiver lists that the caches do not hold them.
    #[inline]
    pub(crate) fn has_many_lists(&self) -> bool {
        self.lists.slots.len() > 2 * ListCache::LEAST_PAIRS
    }

    /// Reads what packets for End.MT with these headers will need, in rounds, each of which reads for all packets what
    /// the one before has located. The sum has no meaning.
    pub(crate) fn fetch_lists<const N: usize>(&self, heads: &[&[u8]; N]) -> usize {
        let mut sum = 0;
        let mut slots = [usize::MAX; N];
        for (head, slot) in heads.iter().zip(&mut slots) {
            *slot = self.lists.first_of_packet(head).unwrap_or(usize::MAX);
            sum ^= usize::from(self.lists.slots.get(*slot).is_some_and(Option::is_some));
        }
        let lists = || slots.iter().filter_map(|slot| self.lists.get(*slot));
        for list in lists() {
            sum ^= list.generation as usize ^ list.copies.len() ^ usize::from(list.designated_qpn[0]);
            sum ^= list.group.and_then(|group| self.get(group)).map_or(0, |state| state.counters.copies as usize);
        }
        for list in lists() {
            sum ^= usize::from(list.srh.first().copied().unwrap_or_default());
            sum ^= list.copies.iter().map(|copy| copy.most_octets as usize).sum::<usize>();
            if let Some(state) = list.group.and_then(|group| self.get(group)) {
                sum ^= usize::from(state.differs_by_branch) ^ usize::from(state.acks.has_eviction_requests());
                sum ^= usize::from(state.acks.next_deadline().is_some()) ^ usize::from(state.learnt.is_some());
                sum ^= usize::from(state.buffer_share.is_some()) ^ usize::from(state.repair.is_some());
                sum ^= state.acks.minimum_psn().map_or(0, |psn| psn.get() as usize);
            }
        }
        sum
    }
}
