//! Packets of shared hosts to Proxy Addresses: those of receivers and sources that this node does not serve go to the
//! peer of their hosts, once (D281, D290).

use super::Node;
use super::verdict::{HopLimit, Progress, Verdict};
use crate::context::PacketContext;
use crate::counters::Traffic;
use crate::drop::DropReason;
use crate::headers::ipv6;
use crate::shared_hosts::{Arrival, SharedHosts};
use srdma_frame::{Frame, Pool};
use srdma_wire::icmpv6::Icmpv6Error;

impl Node {
    /// Where a packet to the Proxy Address of a group has come from, if its sender is a shared host that this node does
    /// not serve, as the edge of a receiver or the headend of the source. `has_lease`: the node may act for the group.
    #[inline]
    pub(super) fn unserved(
        &mut self,
        context: &PacketContext,
        frame: &Frame,
        pool: &Pool,
        group: u32,
        has_lease: bool,
    ) -> Option<Arrival> {
        let arrival = self.security.arrival(context, frame.head(pool), &self.tables)?;
        let sender = ipv6(frame.head(pool)).ok()?.source();
        let state = self.groups.get(group);
        if !has_lease {
            return matches!(arrival, Arrival::FromHost(_)).then_some(arrival);
        }
        let headend = state.and_then(|state| state.entry.headend.as_ref());
        let is_source = headend.is_some_and(|headend| headend.source.address == sender);
        if !is_source && state.is_none_or(|state| state.branch_of(&sender.octets()).is_none()) {
            return Some(arrival);
        }
        if let Arrival::FromPeer(place) = arrival {
            self.security.shared_hosts.taken(place, frame.len());
        }
        None
    }

    /// Passes a packet of a host that this node does not serve on to the peer, unless that has passed it on.
    #[cold]
    pub(super) fn pass_on(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, arrival: Arrival) {
        match arrival {
            Arrival::FromHost(place) => self.send_to_peer(context, frame, pool, place),
            Arrival::FromPeer(_) => self.ports.drop_frame(context, frame, pool, DropReason::NotServedHere),
        }
    }

    /// A packet to a Proxy Address of no group here. Nothing but those of shared hosts has a route.
    #[cold]
    pub(super) fn without_group(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool) {
        if let Some(host) = self.cm_host_of(&frame, pool) {
            return self.send_to_cm_host(context, frame, pool, host);
        }
        match self.security.arrival(context, frame.head(pool), &self.tables) {
            Some(arrival) => self.pass_on(context, frame, pool, arrival),
            None => self.report(context, frame, pool, DropReason::NoRoute, Icmpv6Error::NoRoute),
        }
    }

    /// Encapsulates a packet to the peer of its sender.
    fn send_to_peer(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool, place: usize) {
        let mut context = *context;
        let mut progress = Progress::new();
        let verdict = match progress.decrement(&mut frame, pool) {
            Err(verdict) => verdict,
            Ok(()) => {
                let to_peer = self.security.shared_hosts.pass_on(place, frame.len());
                match to_peer.push(&mut frame, pool) {
                    Err(reason) => Verdict::Drop(reason),
                    Ok(()) => {
                        context.encapsulated_octets += to_peer.octets();
                        progress.hop_limit = HopLimit::Done;
                        self.route_anew(&mut context, progress, &mut frame, pool)
                    }
                }
            }
        };
        self.dispatch(verdict, &context, frame, pool);
    }

    /// The hosts that are attached to another node as well, with what this node has passed on to that and what has been
    /// passed on to receivers of this node.
    pub fn shared_hosts(&self) -> impl Iterator<Item = (SharedHosts, Traffic, Traffic)> {
        self.security.shared_hosts.reports()
    }
}
