//! The first hop of hosts without Fast CNP support: translates Fast CNPs to standard CNPs for them (FC-O-1, D48).

use super::{FastCnp, Lookup, drop_of};
use crate::config::NodeConfig;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::egress::Ports;
use crate::groups::Groups;
use crate::headers::IPV6;
use crate::security::Security;
use crate::tables::Tables;
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::Parent;
use srdma_wire::cm::CmPacket;
use srdma_wire::fast_cnp::{self, STANDARD_CNP_LEN, Translation, standard_cnp};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Ipv6View, NextHeader, Qpn, View};
use std::net::Ipv6Addr;

/// The parts from which the first hop looks up hosts, groups and ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstHop<'n> {
    pub(crate) config: &'n NodeConfig,
    pub(crate) tables: &'n Tables,
    pub(crate) groups: &'n Groups,
    pub(crate) security: &'n Security,
}

impl FastCnp {
    /// Whether batches have to be [examined](Self::snoop).
    #[inline]
    pub(crate) fn snoops(&self, groups: &Groups) -> bool {
        self.notifier.as_ref().is_some_and(|notifier| groups.is_root() || notifier.translates_any())
    }

    /// Replaces the Fast CNPs of a batch that hosts behind the node would not understand by standard CNPs, and learns
    /// connections. Done ahead of forwarding, so that nodes without such hosts pay nothing for it.
    #[inline(never)]
    pub(crate) fn snoop(
        &mut self,
        context: &PacketContext,
        port: PortId,
        frames: &mut Vec<Frame>,
        pool: &mut Pool,
        ports: &mut Ports,
        of: FirstHop<'_>,
    ) {
        let mac = of.config.ports.get(port.index()).map(|config| config.mac.0);
        let mut index = 0;
        while let Some(frame) = frames.get_mut(index) {
            let head = frame.head(pool);
            let is_for_port = mac.is_some_and(|mac| head.starts_with(&mac));
            let done = match head.get(IPV6 + 6).map(|next_header| NextHeader(*next_header)) {
                Some(NextHeader::UDP) if is_for_port => {
                    self.learn_connection(context, head, of);
                    Ok(())
                }
                Some(NextHeader::DESTINATION_OPTIONS | NextHeader::HOP_BY_HOP | NextHeader::ROUTING) if is_for_port => {
                    self.translate(frame, pool, of)
                }
                _ => Ok(()),
            };
            match done {
                Ok(()) => index += 1,
                Err(reason) => {
                    let frame = frames.remove(index);
                    ports.count_received(port, frame.len());
                    ports.drop_frame(context, frame, pool, reason);
                }
            }
        }
    }

    /// Translates a Fast CNP for a host without support to a standard CNP; leaves all other packets.
    pub(crate) fn translate(&mut self, frame: &mut Frame, pool: &mut Pool, of: FirstHop<'_>) -> Result<(), DropReason> {
        let octets = frame.head(pool).get(IPV6..).unwrap_or(&[]);
        let Some(notifier) = self.notifier.as_mut() else { return Ok(()) };
        let Ok((view, _)) = Ipv6View::split(octets) else { return Ok(()) };
        let (is_host, destination) = (notifier.translates(view.destination_octets()), view.destination());
        let Ok(packet) = Packet::parse(octets, frame.len() - IPV6) else { return Ok(()) };
        let fast_cnp = match fast_cnp::FastCnp::find(&packet, of.config.fast_cnp_types) {
            Ok(Some(fast_cnp)) => fast_cnp,
            Ok(None) => return Ok(()),
            Err(error) if is_host => return Err(drop_of(error)),
            Err(_) => return Ok(()),
        };
        let peer = fast_cnp.original_destination;
        let of_group = of.source_of_group(peer, packet.bth.dest_qpn()).filter(|(source, _)| *source == destination);
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
        if source != of.config.loopback && !notifier.accepts(source, &fast_cnp) {
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
        notifier.counters.translated += 1;
        Ok(())
    }

    /// Learns from an RDMA CM message that passes, if its ingress port leads to its sender.
    fn learn_connection(&mut self, context: &PacketContext, head: &[u8], of: FirstHop<'_>) {
        let octets = head.get(IPV6..).unwrap_or(&[]);
        let Some(notifier) = self.notifier.as_mut() else { return };
        if !notifier.config().learn_connections || !CmPacket::may_be(octets) {
            return;
        }
        let Some(packet) = CmPacket::parse(octets) else { return };
        if of.security.may_come_from(context, &packet.source.octets(), of.tables) {
            notifier.observe(context.now, &packet);
        }
    }
}

impl FirstHop<'_> {
    /// The source of a group of which this node is the root, as its members address it: by Proxy Address and Designated
    /// QPN.
    fn source_of_group(&self, proxy: Ipv6Addr, designated_qpn: Qpn) -> Option<(Ipv6Addr, Qpn)> {
        let entry = &self.groups.get(self.tables.group_of(&proxy.octets())?)?.entry;
        match entry.parent {
            Parent::Source(source) if entry.designated_qpn == designated_qpn => Some((source.address, source.qpn)),
            Parent::Source(_) | Parent::Node { .. } => None,
        }
    }
}
