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
    /// The host that answers a packet to a Proxy Address, if it is one of connection management. It is of the packet's
    /// IP version (D292).
    #[inline]
    pub(super) fn cm_host_of(&self, frame: &Frame, pool: &Pool) -> Option<Ipv6Addr> {
        let (of_ipv6, of_ipv4) = (self.config.cm_host, self.config.cm_host_ipv4);
        if of_ipv6.is_none() && of_ipv4.is_none() {
            return None;
        }
        let head = frame.head(pool);
        if !CmPacket::may_be(head.get(IPV6..)?) {
            return None;
        }
        if is_mapped(ipv6(head).ok()?.destination_octets()) { of_ipv4 } else { of_ipv6 }
    }

    /// Sends such a packet, unchanged but for the hop limit, to where the host's address leads; one of IPv4 is IPv4
    /// again, as an atomic datagram (D292).
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
            (Ok(()), Ok(Some(adjacency))) if host.to_ipv4_mapped().is_some() => {
                self.transmit(context, frame, pool, adjacency);
                return;
            }
            (Ok(()), Ok(Some(adjacency))) => self.rewrite(context, &mut frame, pool, adjacency),
            (Ok(()), Ok(None)) => Verdict::Report(DropReason::NoRoute, Icmpv6Error::NoRoute),
            (Ok(()), Err(reason)) => Verdict::Drop(reason),
        };
        self.dispatch(verdict, context, frame, pool);
    }
}
