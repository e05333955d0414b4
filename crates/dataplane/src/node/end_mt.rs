//! End.MT: the inner packet for each receiver of this edge, rewritten for its connection.

use super::Node;
use super::replicate::chunks_of;
use crate::behavior::{decapsulate, uncover};
use crate::config::IcrcMode;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::groups::{Data, EdgeCopy, ReceiverList, Surroundings};
use crate::headers::IPV6;
use crate::multicast::{HEADERS, Rewrite, check_data, data_packet, plain_data, recompute_icrc};
use srdma_frame::{Body, Frame, HEADROOM, Pool, Segment};
use srdma_group::ReceiverRegion;
use srdma_repair::Arrival;
use srdma_wire::{BthView, Icrc, View};

/// What is left to do with a packet. Small, so that it is returned in registers.
#[derive(Clone, Copy)]
enum Rest {
    /// Nothing: all copies are made.
    Release,
    /// The group repairs: it is kept.
    Keep,
    /// It has become the copy for its only receiver, and leaves by this adjacency.
    Send(u32),
}

/// How a packet is kept: its group, what it is to its repair, its ICRC.
type Kept = Option<(u32, Arrival, Icrc)>;

/// End.MT (multicast draft section 6.2): one copy of the inner packet for each receiver of this edge.
impl Node {
    /// The behaviour; steps are those of the draft's section 6.2.
    pub(super) fn end_mt(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool, require_hmac: bool) {
        let mut kept = None;
        let result = match self.copy_plain(context, &mut frame, pool, require_hmac, &mut kept) {
            Some(result) => result,
            None => self.copy_step_by_step(context, &mut frame, pool, require_hmac, &mut kept),
        };
        match result {
            Ok(Rest::Send(adjacency)) => {
                match self.ports.place_for(self.tables.adjacency(adjacency).port, frame.len()) {
                    Some(place) => place.fill(frame),
                    None => {
                        self.transmit(&context.of_copies(), frame, pool, adjacency);
                    }
                }
            }
            Ok(Rest::Release) => frame.release(pool),
            Ok(Rest::Keep) => self.keep_copied(context, frame, kept, pool),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    #[inline(never)]
    fn keep_copied(&mut self, context: &PacketContext, frame: Frame, kept: Kept, pool: &mut Pool) {
        match kept {
            Some((group, arrival, icrc)) => self.keep(context, group, arrival, frame.with_tail(icrc.0), pool),
            None => frame.release(pool),
        }
    }

    /// The steps in the common case: the list is known, the packet plain. `None`, and nothing done, in others.
    #[inline(always)]
    fn copy_plain(
        &mut self,
        context: &PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
        require_hmac: bool,
        kept: &mut Kept,
    ) -> Option<Result<Rest, DropReason>> {
        if self.config.verify_icrc {
            return None;
        }
        let len = frame.len();
        let head = frame.first().octets_mut(pool);
        let (slot, inner) = self.groups.known_list(head, require_hmac, self.tables.generation())?;
        let headers = head.get(inner..)?.first_chunk::<HEADERS>()?;
        plain_data(headers, len - inner).filter(|octets| *octets == len - inner)?;
        uncover(head, len, inner).ok()?;
        let headers = head.get(inner..)?.first_chunk::<HEADERS>()?;
        let data = Data::of(bth_of(headers)?);
        let icrc = match (frame.body(), frame.tail()) {
            ([], []) => *head.last_chunk()?,
            _ => frame.last_four(pool)?,
        };
        let headers = frame.first().octets(pool).get(inner..)?.first_chunk::<HEADERS>()?;
        let rewrite = Rewrite::new(headers, len - inner, Icrc(icrc), None);
        let mut list = self.groups.lend_list(slot)?;
        frame.pull(inner - IPV6);
        let result = self.copy_to_receivers(context, frame, pool, &mut list, data, &rewrite, kept);
        self.groups.return_list(slot, list);
        Some(result)
    }

    /// The steps as they stand.
    #[inline(never)]
    fn copy_step_by_step(
        &mut self,
        context: &PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
        require_hmac: bool,
        kept: &mut Kept,
    ) -> Result<Rest, DropReason> {
        let Node { config, tables, security, groups, .. } = self;
        let around = Surroundings { config, tables, security };
        let (slot, inner) = groups.receiver_list(frame, pool, require_hmac, &around)?;
        decapsulate(frame, pool, inner)?;
        let mut list = self.groups.lend_list(slot).ok_or(DropReason::NoReceiverList)?;
        let result = self.copy_any(context, frame, pool, &mut list, kept);
        self.groups.return_list(slot, list);
        result
    }

    /// S06–S12 for a packet that is not known to be plain.
    fn copy_any(
        &mut self,
        context: &PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
        list: &mut ReceiverList,
        kept: &mut Kept,
    ) -> Result<Rest, DropReason> {
        let head = frame.head(pool).get(IPV6..).ok_or(DropReason::Truncated)?;
        let packet = data_packet(head, frame.len() - IPV6)?;
        check_data(&packet, frame, pool, self.config.verify_icrc)?;
        let headers = head.first_chunk().ok_or(DropReason::HeaderTooLong)?;
        let icrc = Icrc(frame.last_four(pool).ok_or(DropReason::Truncated)?);
        let reth = list.reth_of(&packet)?;
        let rewrite = Rewrite::new(headers, packet.total_len(), icrc, reth.as_ref());
        let data = Data::of(packet.bth);
        self.copy_to_receivers(context, frame, pool, list, data, &rewrite, kept)
    }

    /// S06–S12: a copy to each receiver (MT-5.2-3).
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "the facts of one packet")]
    fn copy_to_receivers(
        &mut self,
        context: &PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
        list: &mut ReceiverList,
        data: Data,
        rewrite: &Rewrite<'_>,
        kept: &mut Kept,
    ) -> Result<Rest, DropReason> {
        if let Some(group) = list.group {
            self.groups.check_lease(context.now, group)?;
        }
        if list.to_learn.is_some() {
            self.groups.learn(context.now, list, &mut self.tables)?;
        }
        frame.cut(Icrc::LEN, pool);
        let body = Body::behind(frame, rewrite.head_len()).ok_or(DropReason::NoBuffer)?;
        let arrival =
            list.group.and_then(|group| self.data_goes_down(context.now, group, data, chunks_of(frame), pool));
        list.prepare_for(rewrite);
        for _ in 0..list.omitted {
            self.ports.count_drop(context.port, DropReason::ReceiverNotInRecord);
        }
        let differing = list.group.filter(|group| self.groups.differs_by_branch(*group));
        if let ([copy], None, None) = (list.copies.as_slice(), arrival, differing)
            && let Some(adjacency) = copy.adjacency.filter(|_| rewrite.len() <= copy.most_octets as usize)
            && self.config.icrc != IcrcMode::Recompute
            && rewrite_in_place(frame, pool, rewrite, copy, list.copy_regions.first().unwrap_or(&None))
        {
            if let Some(group) = list.group {
                self.groups.count_copies(group, 1);
            }
            return Ok(Rest::Send(adjacency));
        }
        self.copy_to_all(context, pool, rewrite, list, body, (data, arrival, differing));
        match arrival.zip(list.group) {
            Some((arrival, group)) => {
                *kept = Some((group, arrival, rewrite.icrc()));
                Ok(Rest::Keep)
            }
            None => Ok(Rest::Release),
        }
    }

    /// S06–S12: a copy to each receiver that is to be sent one.
    #[inline(always)]
    pub(super) fn copy_to_all(
        &mut self,
        context: &PacketContext,
        pool: &mut Pool,
        rewrite: &Rewrite<'_>,
        list: &ReceiverList,
        body: Body,
        (data, arrival, differing): (Data, Option<Arrival>, Option<u32>),
    ) {
        body.share(list.copies.len(), pool);
        let selecting = list.group.zip(arrival).filter(|(_, arrival)| !arrival.is_for_all);
        if differing.is_none() && selecting.is_none() {
            for (copy, region) in list.copies.iter().zip(&list.copy_regions) {
                self.copy_in_line(context, pool, rewrite, copy, region, body);
            }
            if let Some(group) = list.group {
                self.groups.count_copies(group, list.copies.len());
            }
        } else {
            self.copy_to_some(context, pool, rewrite, list, body, Selection { differing, selecting, data });
        }
    }

    /// S06–S12 where not every receiver is sent a copy, or not all have the same PSN.
    #[cold]
    fn copy_to_some(
        &mut self,
        context: &PacketContext,
        pool: &mut Pool,
        rewrite: &Rewrite<'_>,
        list: &ReceiverList,
        body: Body,
        selection: Selection,
    ) {
        let Selection { differing, selecting, data } = selection;
        let mut made = 0;
        for (copy, region) in list.copies.iter().zip(&list.copy_regions) {
            let is_wanted = match (selecting, copy.branch) {
                (Some((group, arrival)), Some(branch)) => self.groups.wants(group, &arrival, branch),
                (None, _) | (_, None) => true,
            };
            if !is_wanted {
                body.release(pool);
                continue;
            }
            match differing.and_then(|group| self.groups.withholds(group, copy.branch, data.psn())) {
                None => {
                    made += 1;
                    let shifted =
                        differing.and_then(|group| rewrite.shifted(self.groups.psn_offset(group, copy.branch)));
                    self.copy_to(context, pool, shifted.as_ref().unwrap_or(rewrite), copy, region, body);
                }
                Some(reason) => {
                    body.release(pool);
                    self.ports.count_drop(context.port, reason);
                }
            }
        }
        if let Some(group) = list.group {
            self.groups.count_copies(group, made);
        }
    }

    /// S07–S11: one copy, whose share of the body has been counted.
    #[inline(never)]
    pub(super) fn copy_to(
        &mut self,
        context: &PacketContext,
        pool: &mut Pool,
        rewrite: &Rewrite<'_>,
        copy: &EdgeCopy,
        region: &Option<ReceiverRegion>,
        body: Body,
    ) {
        self.copy_in_line(context, pool, rewrite, copy, region, body);
    }

    #[inline(always)]
    fn copy_in_line(
        &mut self,
        context: &PacketContext,
        pool: &mut Pool,
        rewrite: &Rewrite<'_>,
        copy: &EdgeCopy,
        region: &Option<ReceiverRegion>,
        body: Body,
    ) {
        let Some(index) = copy.adjacency else { return self.leave_out(context, pool, body, DropReason::NoRoute) };
        let Some(chunk) = pool.allocate_small() else {
            return self.leave_out(context, pool, body, DropReason::NoBuffer);
        };
        let octets = &mut pool.octets_mut(chunk)[HEADROOM..];
        let written = rewrite.write(&copy.rewritten, region, &copy.ethernet, octets);
        let mut icrc = written.expect("a small chunk holds a head");
        let head = Segment::new(chunk, HEADROOM, rewrite.head_len());
        if self.config.icrc == IcrcMode::Recompute {
            icrc = recompute_icrc(head, body, pool).unwrap_or(icrc);
        }
        let len = rewrite.len();
        match self.ports.place_for(copy.port, len) {
            Some(place) if len <= copy.most_octets as usize => place.fill(Frame::copy_of(head, body, Some(icrc.0))),
            _ => {
                self.transmit(&context.of_copies(), Frame::copy_of(head, body, Some(icrc.0)), pool, index);
            }
        }
    }

    /// A copy is not made.
    #[cold]
    fn leave_out(&mut self, context: &PacketContext, pool: &mut Pool, body: Body, reason: DropReason) {
        body.release(pool);
        self.ports.count_drop(context.port, reason);
    }
}

/// The BTH at the end of the headers of a data packet.
#[inline]
fn bth_of(headers: &[u8; HEADERS]) -> Option<&BthView> {
    BthView::split(&headers[HEADERS - BthView::LEN..]).ok().map(|(bth, _)| bth)
}

/// Turns a packet without its ICRC into the copy for its only receiver, in its own chunks. `false` where others hold
/// them, or the last one has no room for the ICRC: the octets behind the head are unchanged then.
#[inline(always)]
fn rewrite_in_place(
    frame: &mut Frame,
    pool: &mut Pool,
    rewrite: &Rewrite<'_>,
    copy: &EdgeCopy,
    region: &Option<ReceiverRegion>,
) -> bool {
    if !pool.is_exclusive(frame.first().chunk()) {
        return false;
    }
    match rewrite.write(&copy.rewritten, region, &copy.ethernet, frame.head_mut(pool)) {
        Some(icrc) => frame.put_last_four(icrc.0, pool),
        None => false,
    }
}

/// Why the copies of a list's receivers are considered one by one.
#[derive(Clone, Copy)]
struct Selection {
    /// The group withholds copies from some branches, or some have PSNs of their own.
    differing: Option<u32>,
    /// The group repairs, and what the packet is to it.
    selecting: Option<(u32, Arrival)>,
    data: Data,
}
