//! End.MT: the inner packet for each receiver of this edge, rewritten for its connection.

use super::Node;
use super::replicate::chunks_of;
use crate::behavior::decapsulate;
use crate::config::IcrcMode;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::groups::{Data, EdgeCopy, ReceiverList, Surroundings};
use crate::headers::IPV6;
use crate::multicast::{RethRewrite, Rewrite, check_data, data_packet, recompute_icrc};
use srdma_frame::{Body, Frame, HEADROOM, Pool, Segment};
use srdma_repair::Arrival;
use srdma_wire::Icrc;

/// End.MT (multicast draft section 6.2): one copy of the inner packet for each receiver of this edge.
impl Node {
    /// The behaviour; steps are those of the draft's section 6.2.
    pub(super) fn end_mt(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool, require_hmac: bool) {
        let context = &PacketContext { replicated: true, ..*context };
        let Node { config, tables, security, groups, .. } = self;
        let around = Surroundings { config, tables, security };
        let list = groups.receiver_list(&frame, pool, require_hmac, &around);
        let result = list.and_then(|(slot, inner)| {
            decapsulate(&mut frame, pool, inner)?;
            let mut list = self.groups.lend_list(slot).ok_or(DropReason::NoReceiverList)?;
            let result = self.copy_to_receivers(context, &mut frame, pool, &mut list);
            let group = list.group;
            self.groups.return_list(slot, list);
            Ok(result?.zip(group))
        });
        match result {
            Ok(Some(((arrival, icrc), group))) => self.keep(context, group, arrival, frame.with_tail(icrc.0), pool),
            Ok(None) => frame.release(pool),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    /// S06–S12: a copy to each receiver (MT-5.2-3).
    fn copy_to_receivers(
        &mut self,
        context: &PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
        list: &mut ReceiverList,
    ) -> Result<Option<(Arrival, Icrc)>, DropReason> {
        let head = frame.head(pool).get(IPV6..).ok_or(DropReason::Truncated)?;
        let packet = data_packet(head, frame.len() - IPV6)?;
        check_data(&packet, frame, pool, self.config.verify_icrc)?;
        let headers = head.first_chunk().ok_or(DropReason::HeaderTooLong)?;
        let icrc = Icrc(frame.last_four(pool).ok_or(DropReason::Truncated)?);
        let reth = match packet.extended.reth() {
            Some(reth) => RethRewrite::new(&packet, reth.value(), &list.reth, list.regions.more())?,
            None => None,
        };
        if let Some(group) = list.group {
            self.groups.check_lease(context.now, group)?;
        }
        if list.to_learn.is_some() {
            self.groups.learn(context.now, list, &mut self.tables)?;
        }
        let rewrite = Rewrite::new(&packet, headers, icrc, reth.as_ref());
        let data = Data::of(packet.bth);
        frame.truncate(frame.len() - Icrc::LEN, pool);
        let body = Body::behind(frame, rewrite.head_len()).ok_or(DropReason::NoBuffer)?;
        let arrival =
            list.group.and_then(|group| self.data_goes_down(context.now, group, data, chunks_of(frame), pool));
        list.prepare_for(rewrite.len() - IPV6);
        if let Some(reth) = &reth {
            list.select(reth.region());
        }
        body.share(list.copies.len(), pool);
        let withholding = list.group.filter(|group| self.groups.withholds_any(*group));
        let selecting = list.group.zip(arrival).filter(|(_, arrival)| !arrival.is_for_all);
        if withholding.is_none() && selecting.is_none() {
            for copy in &list.copies {
                self.copy_to(context, pool, &rewrite, copy, body);
            }
            if let Some(group) = list.group {
                self.groups.count_copies(group, list.copies.len());
            }
        } else {
            self.copy_to_some(context, pool, &rewrite, list, body, Selection { withholding, selecting, data });
        }
        for _ in 0..list.omitted {
            self.ports.count_drop(context.port, DropReason::ReceiverNotInRecord);
        }
        Ok(arrival.map(|arrival| (arrival, icrc)))
    }

    /// S06–S12 where not every receiver is sent a copy.
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
        let Selection { withholding, selecting, data } = selection;
        let mut made = 0;
        for copy in &list.copies {
            let is_wanted = match (selecting, copy.branch) {
                (Some((group, arrival)), Some(branch)) => self.groups.wants(group, &arrival, branch),
                (None, _) | (_, None) => true,
            };
            if !is_wanted {
                body.release(pool);
                continue;
            }
            match withholding.and_then(|group| self.groups.withholds(group, copy.branch, data.psn())) {
                None => {
                    made += 1;
                    self.copy_to(context, pool, rewrite, copy, body);
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
    #[inline]
    pub(super) fn copy_to(
        &mut self,
        context: &PacketContext,
        pool: &mut Pool,
        rewrite: &Rewrite<'_>,
        copy: &EdgeCopy,
        body: Body,
    ) {
        let Some(index) = copy.adjacency else {
            body.release(pool);
            return self.ports.count_drop(context.port, DropReason::NoRoute);
        };
        let Some(chunk) = pool.allocate_small() else {
            body.release(pool);
            return self.ports.count_drop(context.port, DropReason::NoBuffer);
        };
        let adjacency = self.tables.adjacency(index);
        let octets = pool.octets_mut(chunk)[HEADROOM..].first_chunk_mut().expect("a small chunk holds a head");
        let mut icrc = rewrite.write(&copy.rewritten, &adjacency.ethernet, octets);
        let head = Segment::new(chunk, HEADROOM, rewrite.head_len());
        if self.config.icrc == IcrcMode::Recompute {
            icrc = recompute_icrc(head, body, pool).unwrap_or(icrc);
        }
        let len = rewrite.len();
        let is_allowed = adjacency.carries(len);
        if !self.ports.place(adjacency.port, is_allowed, len, || Frame::copy_of(head, body, Some(icrc.0))) {
            self.transmit(context, Frame::copy_of(head, body, Some(icrc.0)), pool, index);
        }
    }
}

/// Why some receivers of a list may be sent no copy of a packet.
#[derive(Clone, Copy)]
struct Selection {
    /// The group withholds copies from some branches.
    withholding: Option<u32>,
    /// The group repairs, and what the packet is to it.
    selecting: Option<(u32, Arrival)>,
    data: Data,
}
