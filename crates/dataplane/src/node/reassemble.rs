//! Fragments to SIDs: reassembly, and the way on for whole packets (D245).

use super::Node;
use super::verdict::Progress;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::headers::{IPV6, Place};
use crate::reassembly::{Refused, Taken};
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;

impl Node {
    /// Takes a fragment to a SID, whose Fragment header is at `at`. A packet that is whole with it goes to the SID
    /// anew.
    #[cold]
    pub(super) fn reassemble(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, at: Place) {
        let octets = frame.to_vec(pool);
        let packet = octets.get(IPV6..).unwrap_or_default();
        match self.reassembly.take(context.now, packet, at.offset - IPV6, at.announced_at - IPV6) {
            Ok(Taken::Waits { evicted }) => {
                self.count_fragments(context, DropReason::FragmentLimit, evicted);
                frame.release(pool);
            }
            Ok(Taken::Whole(packet)) => {
                frame.release(pool);
                self.take_whole(context, &packet, pool);
            }
            Err(Refused { reason, error, others }) => {
                self.count_fragments(context, reason, others);
                match error {
                    Some(error) => self.report(context, frame, pool, reason, error),
                    None => self.ports.drop_frame(context, frame, pool, reason),
                }
            }
        }
    }

    /// Discards fragments that have waited too long.
    pub(super) fn expire_fragments(&mut self, now: Instant) {
        let expired = self.reassembly.expire(now);
        self.count_fragments(&PacketContext::own(now), DropReason::FragmentTimeout, expired);
    }

    fn take_whole(&mut self, context: &PacketContext, packet: &[u8], pool: &mut Pool) {
        let mut octets = vec![0; IPV6];
        octets.extend(packet);
        let Some(mut frame) = Frame::from_octets(&octets, pool) else {
            return self.ports.count_drop(context.port, DropReason::NoBuffer);
        };
        let mut context = PacketContext { is_reassembled: true, ..*context };
        let verdict = self.route_anew(&mut context, Progress::new(), &mut frame, pool);
        self.dispatch(verdict, &context, frame, pool);
    }

    fn count_fragments(&mut self, context: &PacketContext, reason: DropReason, fragments: usize) {
        (0..fragments).for_each(|_| self.ports.count_drop(context.port, reason));
    }
}
