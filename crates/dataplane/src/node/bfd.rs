//! BFD at the node: packets to its addresses, packets of its own, and next hops to avoid (D109).

use super::Node;
use crate::bfd::{BfdPeer, BfdReport, BfdSession, Due};
use crate::config::{ConfigError, NextHop};
use crate::context::PacketContext;
use crate::headers::IPV6;
use srdma_bfd::udp;
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;

impl Node {
    /// Whether the node has BFD sessions.
    pub fn has_bfd(&self) -> bool {
        self.bfd.is_on()
    }

    /// The BFD sessions.
    pub fn bfd_reports(&self) -> impl Iterator<Item = BfdReport<'_>> {
        self.bfd.reports()
    }

    /// The sessions that have come up, or were up and have gone down, since the last call; of each the last change.
    pub fn take_bfd_events(&mut self) -> impl Iterator<Item = (BfdPeer, srdma_bfd::Event)> {
        self.bfd.take_events()
    }

    /// Frames that arrived before this time have been received. Sessions time out by it, so that the delay of a driver
    /// is not taken for the silence of a peer (D90). Without a call frames are received as soon as they arrive.
    pub fn set_received_until(&mut self, at: Instant) {
        self.bfd.set_received_until(at);
    }

    pub(super) fn set_bfd_session(&mut self, session: &BfdSession) -> Result<(), ConfigError> {
        let before = self.bfd.local(session.peer);
        if before.is_some_and(|local| local != session.local) {
            self.remove_bfd_session(session.peer)?;
        }
        let is_new = self.bfd.local(session.peer).is_none();
        let next_hop = session.peer.port.map(|port| NextHop { port, address: session.peer.address });
        let adjacency = match next_hop.filter(|_| is_new) {
            Some(next_hop) => Some(self.tables.hold_neighbour(next_hop)?),
            None => None,
        };
        let set = self.bfd.set(session, adjacency);
        if set.is_err() {
            self.tables.release_neighbour(adjacency);
        } else if !session.is_enabled
            && let Some(adjacency) = self.bfd.adjacency(session.peer)
        {
            self.tables.avoid(adjacency, false);
        }
        set
    }

    pub(super) fn remove_bfd_session(&mut self, peer: BfdPeer) -> Result<(), ConfigError> {
        let adjacency = self.bfd.remove(peer)?;
        if let Some(adjacency) = adjacency {
            self.tables.avoid(adjacency, false);
        }
        self.tables.release_neighbour(adjacency);
        Ok(())
    }

    /// Takes a BFD packet to the node itself.
    #[cold]
    pub(super) fn receive_bfd(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool) {
        match self.bfd.receive(context, frame.head(pool)) {
            Ok(due) => {
                frame.release(pool);
                if let Some(due) = due {
                    self.carry_out_bfd(context.now, due, pool);
                }
            }
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    /// Times out silent peers, and sends the packets that are due.
    pub(super) fn bfd_tick(&mut self, now: Instant, pool: &mut Pool) {
        while let Some(due) = self.bfd.poll(now) {
            self.carry_out_bfd(now, due, pool);
        }
    }

    fn carry_out_bfd(&mut self, now: Instant, due: Due, pool: &mut Pool) {
        match due {
            Due::Avoid(adjacency, is_avoided) => self.tables.avoid(adjacency, is_avoided),
            Due::Packet(packet, adjacency) => {
                let mut octets = [0; IPV6 + udp::LEN];
                octets[IPV6..].copy_from_slice(&packet);
                let Some(frame) = Frame::small(&octets, pool) else { return };
                let context = PacketContext::own(now);
                match adjacency {
                    Some(adjacency) => self.transmit(&context, frame, pool, adjacency),
                    None => self.send_own(&context, frame, pool),
                };
            }
        }
    }
}
