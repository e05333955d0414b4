//! Connection management for Proxy Addresses (D251): what comes to one for the queue pair of general services goes to
//! the host that answers it.

use super::Node;
use super::verdict::{Progress, Verdict};
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::headers::{IPV6, ipv6};
use crate::scope::is_mapped;
use srdma_frame::{Frame, Pool};
use srdma_wire::cm::CmPacket;
use srdma_wire::icmpv6::Icmpv6Error;
use std::net::Ipv6Addr;

impl Node {
    /// The host that answers a packet to a Proxy Address, if it is one of connection management, which is over IPv6
    /// (D252).
    #[inline]
    pub(super) fn cm_host_of(&self, frame: &Frame, pool: &Pool) -> Option<Ipv6Addr> {
        let host = self.config.cm_host?;
        let head = frame.head(pool);
        let is_to_mapped = || ipv6(head).is_ok_and(|view| is_mapped(view.destination_octets()));
        (CmPacket::may_be(head.get(IPV6..)?) && !is_to_mapped()).then_some(host)
    }

    /// Sends such a packet, unchanged but for the hop limit, to where the host's address leads.
    #[cold]
    pub(super) fn send_to_cm_host(
        &mut self,
        context: &PacketContext,
        mut frame: Frame,
        pool: &mut Pool,
        host: Ipv6Addr,
    ) {
        let adjacency = ipv6(frame.head(pool)).map(|view| self.tables.resolve(&host.octets(), view.source_octets()));
        let verdict = match (Progress::new().decrement(&mut frame, pool), adjacency) {
            (Err(verdict), _) => verdict,
            (Ok(()), Ok(Some(adjacency))) => self.rewrite(context, &mut frame, pool, adjacency),
            (Ok(()), Ok(None)) => Verdict::Report(DropReason::NoRoute, Icmpv6Error::NoRoute),
            (Ok(()), Err(reason)) => Verdict::Drop(reason),
        };
        self.dispatch(verdict, context, frame, pool);
    }
}
