//! Bud nodes (D246): what they replicate to the nodes below them they also copy to receivers of their own.
//!
//! ```text
//!   encapsulated packet ──┬──▶ nodes below: SID by SID, the packet's own headers
//!   (at the headend the   │
//!    source's packet)     └──▶ receivers: the inner packet, rewritten for each as End.MT does
//! ```
//!
//! The nodes' copies share the packet's octets, so that nothing is edited in place: a receiver's head is written from a
//! copy of the inner headers.

use super::Node;
use crate::behavior::merge_ecn;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::groups::{Data, Flow, ReceiverList};
use crate::headers::{IPV6, ipv6};
use crate::multicast::{HEADERS, Rewrite, check_data, data_packet};
use srdma_frame::{Body, Frame, Pool};
use srdma_group::NodeRole;
use srdma_repair::Arrival;
use srdma_wire::{Icrc, Ipv6View, View};

/// A data packet of a group at a bud node.
pub(super) struct BudPacket {
    pub(super) group: u32,
    /// Where the source's packet begins in the frame.
    pub(super) inner: usize,
    pub(super) data: Data,
    /// What it is to the repair of the group, if the node repairs.
    pub(super) arrival: Option<Arrival>,
}

impl Node {
    /// Whether the node has receivers beside the nodes to which it replicates a group.
    #[inline]
    pub(super) fn is_bud(&self, group: u32) -> bool {
        self.groups.get(group).is_some_and(|state| state.entry.role == NodeRole::Bud)
    }

    /// Copies a packet, which the nodes below have been sent, to the receivers, and keeps it if the group is repaired.
    pub(super) fn finish_at_bud(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool, of: &BudPacket) {
        let icrc = frame.last_four(pool);
        if let Err(reason) = self.copy_to_own_receivers(context, &mut frame, pool, of) {
            frame.cut(Icrc::LEN, pool);
            self.ports.count_drop(context.port, reason);
        }
        match of.arrival.zip(icrc) {
            Some((arrival, icrc)) => self.keep(context, of.group, arrival, frame.with_tail(icrc), pool),
            None => frame.release(pool),
        }
    }

    /// Cuts the ICRC off, since the copies have their own; not where it fails.
    fn copy_to_own_receivers(
        &mut self,
        context: &PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
        of: &BudPacket,
    ) -> Result<(), DropReason> {
        let headers = inner_headers(frame.head(pool), of.inner)?;
        let loopback = self.config.loopback.octets();
        let flow = Flow::of_inner(&loopback, &headers).ok_or(DropReason::HeaderTooLong)?;
        let slot = self.groups.own_list(of.group, &flow, &self.tables)?;
        let mut list = self.groups.lend_list(slot).ok_or(DropReason::NoReceiverList)?;
        let result = self.copy_by_list(context, frame, pool, &headers, &mut list, of);
        self.groups.return_list(slot, list);
        result
    }

    fn copy_by_list(
        &mut self,
        context: &PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
        headers: &[u8; HEADERS],
        list: &mut ReceiverList,
        of: &BudPacket,
    ) -> Result<(), DropReason> {
        let head = frame.head(pool).get(of.inner..).ok_or(DropReason::Truncated)?;
        let octets = frame.len() - of.inner;
        let packet = data_packet(head, octets)?;
        if packet.total_len() != octets {
            return Err(DropReason::Truncated);
        }
        check_data(&packet, frame, pool, self.config.verify_icrc)?;
        let icrc = Icrc(frame.last_four(pool).ok_or(DropReason::Truncated)?);
        let reth = list.reth_of(&packet)?;
        let rewrite = Rewrite::new(headers, octets, icrc, reth.as_ref());
        frame.cut(Icrc::LEN, pool);
        let Some(body) = Body::behind(frame, of.inner - IPV6 + rewrite.head_len()) else {
            self.ports.count_drop(context.port, DropReason::NoBuffer);
            return Ok(());
        };
        list.prepare_for(&rewrite);
        let differing = Some(of.group).filter(|group| self.groups.differs_by_branch(*group));
        self.copy_to_all(context, pool, &rewrite, list, body, (of.data, of.arrival, differing));
        Ok(())
    }
}

/// The headers of the packet at `inner`, with the congestion that its outer header is marked with.
pub(super) fn inner_headers(head: &[u8], inner: usize) -> Result<[u8; HEADERS], DropReason> {
    let octets = head.get(inner..).and_then(|octets| octets.first_chunk());
    let mut headers: [u8; HEADERS] = *octets.ok_or(DropReason::HeaderTooLong)?;
    if inner > IPV6 {
        let outer_ecn = ipv6(head)?.ecn();
        let (view, _) = Ipv6View::split_mut(&mut headers).map_err(|_| DropReason::HeaderTooLong)?;
        view.set_ecn(merge_ecn(outer_ecn, view.ecn()).ok_or(DropReason::CongestionExperienced)?);
    }
    Ok(headers)
}
