//! Ethernet frames in SRv6, port to port (H.Encaps.L2, End.DX2; D243).

use super::Node;
use super::verdict::{HopLimit, Progress, Verdict};
use crate::admission;
use crate::context::PacketContext;
use crate::cross_connect;
use crate::drop::DropReason;
use crate::headers::IPV6;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::Instant;

impl Node {
    /// Whether the frames that a port receives leave whole in SRv6.
    pub(crate) fn is_cross_connected(&self, port: PortId) -> bool {
        self.cross_connects.policy(port).is_some()
    }

    /// Frames of a port that leave by an SR policy.
    pub(super) fn ingress_ethernet(
        &mut self,
        now: Instant,
        port: PortId,
        policy: u32,
        frames: &mut Vec<Frame>,
        pool: &mut Pool,
    ) {
        for mut frame in frames.drain(..) {
            self.ports.count_received(port, frame.len());
            let mut context = PacketContext::received(now, port);
            let verdict = self.encapsulate_frame(policy, &mut context, &mut frame, pool);
            self.dispatch(verdict, &context, frame, pool);
        }
    }

    fn encapsulate_frame(
        &mut self,
        policy: u32,
        context: &mut PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Verdict {
        let head = frame.head(pool);
        if head.len() < IPV6 {
            return Verdict::Drop(DropReason::Truncated);
        }
        // A pause concerns this link alone.
        if admission::is_mac_control(head) {
            return Verdict::Drop(DropReason::MacControl);
        }
        if let Err(reason) = self.tables.push_policy_onto_frame(policy, frame, pool) {
            return Verdict::Drop(reason);
        }
        let progress = Progress { hop_limit: HopLimit::Done, ..Progress::new() };
        self.route_anew(context, progress, frame, pool)
    }

    /// What becomes of a frame that End.DX2 gives to a port.
    pub(super) fn forward_frame(&self, port: PortId, frame: &Frame, pool: &Pool) -> Verdict {
        match self.config.ports.get(port.index()) {
            None => Verdict::Drop(DropReason::PortDown),
            Some(config) if frame.len() > cross_connect::most_octets(frame.head(pool), config.link_mtu) => {
                Verdict::Drop(DropReason::PacketTooBig)
            }
            Some(_) => Verdict::Frame(port),
        }
    }

    /// Queues a frame that is sent as it is: at a port with classes in that of DSCP 0, whatever is in it, and without
    /// marks. Returns whether it was enqueued.
    pub(super) fn enqueue_frame(
        &mut self,
        context: &PacketContext,
        port: PortId,
        frame: Frame,
        pool: &mut Pool,
    ) -> bool {
        let len = frame.len();
        let class = self.ports.classes.class_of(0);
        if self.ports.egress.has_room(port, len) {
            self.ports.enqueue(port, frame, len);
        } else if !self.ports.egress.has_classes(port) {
            self.ports.drop_frame(context, frame, pool, DropReason::QueueFull);
            return false;
        } else if let Err(reason) = self.ports.egress.admit(port, context.port, class, len) {
            self.ports.drop_frame(context, frame, pool, reason);
            return false;
        } else {
            self.ports.enter_class(context, port, class, frame, len);
        }
        true
    }
}
