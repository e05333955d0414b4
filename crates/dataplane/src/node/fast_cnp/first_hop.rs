//! The first hop of hosts that do not know Fast CNP: it gives them standard CNPs (FC-O-1, D48).

use crate::drop::DropReason;
use crate::fast_cnp::Lookup;
use crate::headers::IPV6;
use crate::node::fast_cnp::drop_of;
use crate::node::state::Target;
use crate::node::{Arrival, Node};
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::Parent;
use srdma_wire::cm::CmPacket;
use srdma_wire::fast_cnp::{FastCnp, STANDARD_CNP_LEN, Translation, standard_cnp};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Ipv6View, NextHeader, Qpn, View};
use std::net::Ipv6Addr;

impl Node {
    /// Takes Fast CNPs out of a batch that hosts behind the node would not understand, and puts standard CNPs in their
    /// place; and watches connections being made. Done ahead, so that nodes without such hosts pay nothing for it.
    #[inline(never)]
    pub(in crate::node) fn translate_and_learn(
        &mut self,
        arrival: Arrival,
        port: PortId,
        frames: &mut Vec<Frame>,
        pool: &mut Pool,
    ) {
        let mac = self.config.ports.get(port.index()).map(|config| config.mac.0);
        let mut index = 0;
        while let Some(frame) = frames.get_mut(index) {
            let head = frame.head(pool);
            let is_ours = mac.is_some_and(|mac| head.starts_with(&mac));
            let done = match head.get(IPV6 + 6).map(|next_header| NextHeader(*next_header)) {
                Some(NextHeader::UDP) if is_ours => {
                    self.learn_connection(arrival, head);
                    Ok(())
                }
                Some(NextHeader::DESTINATION_OPTIONS | NextHeader::HOP_BY_HOP | NextHeader::ROUTING) if is_ours => {
                    self.translate(frame, pool)
                }
                _ => Ok(()),
            };
            match done {
                Ok(()) => index += 1,
                Err(reason) => {
                    let frame = frames.remove(index);
                    if let Some(counters) = self.port_counters.get_mut(port.index()) {
                        counters.received.count(frame.len());
                    }
                    self.drop_frame(arrival, frame, pool, reason);
                }
            }
        }
    }

    /// Turns a Fast CNP for a host that does not know them into a standard CNP; leaves everything else.
    pub(in crate::node) fn translate(&mut self, frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
        let octets = frame.head(pool).get(IPV6..).unwrap_or(&[]);
        let Some(notifier) = self.fast_cnp.as_ref() else { return Ok(()) };
        let Ok((view, _)) = Ipv6View::split(octets) else { return Ok(()) };
        let (is_host, destination) = (notifier.translates(view.destination_octets()), view.destination());
        let Ok(packet) = Packet::parse(octets, frame.len() - IPV6) else { return Ok(()) };
        let fast_cnp = match FastCnp::find(&packet, self.config.fast_cnp_types) {
            Ok(Some(fast_cnp)) => fast_cnp,
            Ok(None) => return Ok(()),
            Err(error) if is_host => return Err(drop_of(error)),
            Err(_) => return Ok(()),
        };
        let peer = fast_cnp.original_destination;
        let of_group = self.source_of_group(peer, packet.bth.dest_qpn()).filter(|(source, _)| *source == destination);
        let dest_qpn = match of_group {
            Some(_) if !is_host && notifier.is_capable(&destination.octets()) => return Ok(()),
            Some((_, qpn)) => qpn,
            None if !is_host => return Ok(()),
            None => match notifier.connections.find(destination, peer, packet.bth.dest_qpn()) {
                Lookup::Found(qpn) => qpn,
                Lookup::Ambiguous => return Err(DropReason::FastCnpAmbiguous),
                Lookup::Unknown => return Err(DropReason::FastCnpNoConnection),
            },
        };
        let source = packet.ipv6.source();
        if source != self.config.loopback && !notifier.believes(source, &fast_cnp) {
            return Err(DropReason::FastCnpForeignSource);
        }
        if fast_cnp.only_returns_trace(source) {
            return Err(DropReason::FastCnpReturnedTrace);
        }
        let to = Translation { source: peer, dest_qpn };
        let cnp = standard_cnp(&packet, octets, to).ok_or(DropReason::NotRocev2)?;
        frame.truncate(IPV6 + STANDARD_CNP_LEN, pool);
        if let Some(place) = frame.head_mut(pool).get_mut(IPV6..) {
            place.copy_from_slice(&cnp);
        }
        self.count_fast_cnp(|counters| counters.translated += 1);
        Ok(())
    }

    /// The source of a group of which this node is the root, as its members know it by Proxy Address and Designated
    /// QPN.
    fn source_of_group(&self, proxy: Ipv6Addr, designated_qpn: Qpn) -> Option<(Ipv6Addr, Qpn)> {
        let Some(Target::Group(group)) = self.main.lookup(&proxy.octets()) else { return None };
        let entry = &self.groups[group as usize].as_ref()?.entry;
        match entry.parent {
            Parent::Source(source) if entry.designated_qpn == designated_qpn => Some((source.address, source.qpn)),
            Parent::Source(_) | Parent::Node { .. } => None,
        }
    }

    /// Watches an RDMA CM message pass. One that comes from where its sender is not is not believed.
    fn learn_connection(&mut self, arrival: Arrival, head: &[u8]) {
        let octets = head.get(IPV6..).unwrap_or(&[]);
        let learns = self.fast_cnp.as_ref().is_some_and(|notifier| notifier.config().learn_connections);
        if !learns || !CmPacket::may_be(octets) {
            return;
        }
        let Some(packet) = CmPacket::parse(octets) else { return };
        if !self.may_come_from(arrival, &packet.source.octets()) {
            return;
        }
        if let Some(notifier) = self.fast_cnp.as_mut() {
            notifier.observe(arrival.now, &packet);
        }
    }
}
