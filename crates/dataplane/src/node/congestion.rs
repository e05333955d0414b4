//! Congestion: ports with classes, Fast CNPs to senders, backpressure to other data centres.

use super::Node;
use crate::backpressure;
use crate::behavior::{Outcome, end_dt6, inner_packet};
use crate::config::SidBehavior;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::egress::{CongestionPoint, Departing};
use crate::fast_cnp::{Decision, FirstHop, Message, NoticeSources, Notified, Prepared};
use crate::headers::IPV6;
use crate::tables::Target;
use crate::vlan;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::Instant;

/// Ports with classes, and packets that meet congestion there.
impl Node {
    /// Puts a rewritten frame into its class, marked or its sender notified if it meets congestion there. Returns
    /// whether it was enqueued.
    #[inline(never)]
    pub(super) fn enter_class(
        &mut self,
        context: &PacketContext,
        port: PortId,
        frame: Frame,
        len: usize,
        pool: &mut Pool,
    ) -> bool {
        let member = port;
        let (port, vlan) = self.ports.vlans.carrier(member);
        if let Some(id) = vlan.filter(|_| !self.ports.egress.has_classes(port)) {
            let class = self.ports.class_in(context, &frame, pool);
            let Some(frame) = self.ports.tag(context, (member, id), class, frame, pool) else { return false };
            let len = frame.len();
            self.ports.enqueue(port, frame, len);
            return true;
        }
        let Some((mut frame, class, mut len)) = self.ports.admit_to_class(context, port, frame, len, pool) else {
            return false;
        };
        if self.fast_cnp.counts_flows() && self.ports.egress.notify_octets(port, class).is_some() {
            self.fast_cnp.count_flow(context.now, port, frame.head(pool));
        }
        if let Some(congestion) = self.ports.egress.congestion(port, class) {
            let at = CongestionPoint { now: context.now, ingress: context.port, port, class, congestion };
            if self.handle_congestion(&at, &frame, pool) {
                self.ports.mark(port, class, &mut frame, pool);
            }
        }
        if let Some(id) = vlan {
            let Some(tagged) = self.ports.tag(context, (member, id), class, frame, pool) else { return false };
            (len, frame) = (tagged.len(), tagged);
        }
        self.ports.enter_class(context, port, class, frame, len);
        true
    }

    /// Sends the notifications that the congestion of a queue requires for a packet that is about to enter it. Returns
    /// whether to mark the packet, if it is ECN-capable (FC-4-5).
    ///
    /// A Fast CNP or notification may itself meet congestion; as it carries no data, no Fast CNP is sent about it.
    fn handle_congestion(&mut self, at: &CongestionPoint, frame: &Frame, pool: &mut Pool) -> bool {
        if at.congestion.xoff {
            let head = frame.head(pool);
            if let Some(message) = self.backpressure.xoff(at, head, &self.tables, &self.ports.egress) {
                self.send_backpressure(at.now, message, pool);
            }
        }
        if !at.congestion.notify {
            return at.congestion.mark;
        }
        match self.notify_sender(at.now, frame, Some(at), pool) {
            Notified::None => at.congestion.mark,
            Notified::Marking => true,
            Notified::Sender => false,
        }
    }

    /// The next frame of a port with classes.
    #[inline(never)]
    pub(super) fn dequeue_class(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        if let Some(frame) = self.ports.dequeue_pfc(now, port, pool) {
            return Some(frame);
        }
        let mut departing = self.ports.dequeue_class(now, port, pool)?;
        if self.backpressure.is_watched(port, departing.class) {
            self.send_resumes(now, port, departing.class, pool);
        }
        self.fill_traces(now, port, &mut departing, pool);
        Some(departing.frame)
    }

    /// Writes to the traces of a packet that leaves; the tag of a VLAN port is aside meanwhile.
    #[inline]
    fn fill_traces(&mut self, now: Instant, port: PortId, departing: &mut Departing, pool: &mut Pool) {
        if !self.ioam.is_on() {
            return;
        }
        let is_tagged = self.ports.vlans.is_parent(port) && vlan::is_tagged(departing.frame.head(pool));
        let tag = is_tagged.then(|| vlan::take_tag(&mut departing.frame, pool).ok()).flatten();
        self.ioam.fill(now, port, departing, &self.ports.egress, pool);
        if let Some(tag) = tag {
            // The room of the tag is still there.
            vlan::put_tag(&mut departing.frame, tag.id, tag.priority.into(), pool);
        }
    }
}

/// Fast CNP.
impl Node {
    /// Notifies the sender of a packet that meets congestion, if it is one to notify. A packet for which a Fast CNP is
    /// sent is not marked if the sender is known to process Fast CNPs (FC-4-6); it is marked if the sender may not, or
    /// if a limit prevents the Fast CNP (FC-4-5, D45).
    #[inline]
    pub fn notify(&mut self, now: Instant, frame: &Frame, pool: &mut Pool) -> Notified {
        self.notify_sender(now, frame, None, pool)
    }

    /// The same; where the queue is known, the packet's trace is sent with this node's own data in it.
    #[inline]
    fn notify_sender(
        &mut self,
        now: Instant,
        frame: &Frame,
        at: Option<&CongestionPoint>,
        pool: &mut Pool,
    ) -> Notified {
        let head = frame.head(pool);
        let prepared = match self.fast_cnp.decide(now, head, &self.backpressure) {
            Decision::None => return Notified::None,
            Decision::Refused => return Notified::Marking,
            Decision::NotifiedBefore => return Notified::Sender,
            Decision::Notify(notice) => {
                let Node { config, tables, groups, backpressure, ports, ioam, fast_cnp, .. } = self;
                let egress = &ports.egress;
                let from = NoticeSources { config, tables, groups, backpressure, egress, ioam };
                fast_cnp.prepare(notice, head, at, from)
            }
        };
        self.send_notice(now, &prepared, pool)
    }

    fn send_notice(&mut self, now: Instant, prepared: &Prepared, pool: &mut Pool) -> Notified {
        let is_sent = match prepared.message {
            Message::Packet(len) => self.send_fast_cnp(now, &prepared.octets[..IPV6 + len], prepared.end_e, pool),
            Message::Count(group, branch) => {
                let (outbox, taken) = self.groups.cnp(now, group, branch, 1);
                self.send_upstream(now, group, outbox, pool);
                self.fast_cnp.count(|counters| counters.counted_here += u64::from(taken.is_ok()));
                taken.is_ok()
            }
            Message::None => false,
        };
        if !is_sent {
            self.fast_cnp.count(|counters| counters.not_sent += 1);
        }
        if prepared.and_mark || !is_sent { Notified::Marking } else { Notified::Sender }
    }

    /// Sends a Fast CNP of this node by its FIB, or by the END.E of the packet's ingress PE. Returns whether it was
    /// enqueued. A host without Fast CNP support is sent a standard CNP.
    fn send_fast_cnp(&mut self, now: Instant, octets: &[u8], end_e: Option<u32>, pool: &mut Pool) -> bool {
        let Some(mut frame) = Frame::small(octets, pool) else { return false };
        let context = PacketContext { by_end_e: end_e.is_some(), ..PacketContext::own(now) };
        let adjacency = match end_e {
            Some(end_e) => self.route_by_end_e(end_e, &mut frame, pool),
            None => {
                self.translate(&mut frame, pool).and_then(|()| self.tables.route_own(&mut frame, pool, &self.headend))
            }
        };
        match adjacency {
            Ok(adjacency) => {
                let is_sent = self.transmit(&context, frame, pool, adjacency);
                self.fast_cnp.count(|counters| {
                    counters.sent += u64::from(is_sent);
                    counters.sent_by_end_e += u64::from(is_sent && end_e.is_some());
                });
                is_sent
            }
            Err(reason) => {
                self.ports.drop_frame(&context, frame, pool, reason);
                false
            }
        }
    }

    fn translate(&mut self, frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
        let Node { config, tables, groups, security, fast_cnp, .. } = self;
        fast_cnp.translate(frame, pool, FirstHop { config, tables, groups, security })
    }

    /// The adjacency by which a Fast CNP of this node leaves to an END.E, in an outer header. If the END.E is the
    /// node's own, the packet is processed as if it came out of it.
    fn route_by_end_e(&mut self, place: u32, frame: &mut Frame, pool: &mut Pool) -> Result<u32, DropReason> {
        let outer = self.backpressure.end_e(place).ok_or(DropReason::NoRoute)?;
        let own = match self.tables.lookup_main(&outer.sid) {
            Some(Target::Sid(sid)) => Some(self.tables.sid(sid).behavior),
            _ => None,
        };
        match own {
            None => {
                outer.around.push(frame, pool)?;
                self.tables.route_own(frame, pool, &self.headend)
            }
            Some(SidBehavior::EndE(table)) => {
                self.translate(frame, pool)?;
                self.tables.resolve_in(table, frame, pool)
            }
            Some(_) => Err(DropReason::NoRoute),
        }
    }

    /// END.E: a Fast CNP for a sender before the WAN (CN-4.2-1). The packet is taken out of its outer headers, with or
    /// without an SRH; the caller looks it up in the SID's table. A host that does not know Fast CNP is sent a standard
    /// CNP (D64).
    #[inline(never)]
    pub(super) fn end_e(
        &mut self,
        now: Instant,
        outer_source: &[u8; 16],
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Outcome {
        if let Err(reason) = self.backpressure.admit_to_end_e(now, outer_source) {
            return Outcome::Drop(reason);
        }
        match end_dt6(frame, pool) {
            Outcome::Inner => self.translate(frame, pool).map_or_else(Outcome::Drop, |()| Outcome::Inner),
            outcome @ (Outcome::Forward
            | Outcome::Ipv4
            | Outcome::Echo(_)
            | Outcome::Fragment(_)
            | Outcome::Drop(_)
            | Outcome::Report(..)) => outcome,
        }
    }
}

/// Backpressure.
impl Node {
    /// Sends a message to the END.C of an ingress PE.
    fn send_backpressure(&mut self, now: Instant, message: backpressure::Message, pool: &mut Pool) {
        let context = PacketContext::own(now);
        let is_sent = match self.backpressure.packet(now, message, self.config.loopback, pool) {
            Some((frame, Ok(()))) => self.send_own(&context, frame, pool),
            Some((frame, Err(reason))) => {
                self.ports.drop_frame(&context, frame, pool, reason);
                false
            }
            None => false,
        };
        self.backpressure.count_sent(message, is_sent);
    }

    /// A frame has left a watched class: resumes the PEs that were paused for it, if it is down at XON.
    fn send_resumes(&mut self, now: Instant, port: PortId, class: usize, pool: &mut Pool) {
        let mut resumed = self.backpressure.dequeued(port, class, &self.ports.egress);
        for pe in resumed.drain(..) {
            self.send_backpressure(now, backpressure::Message::resume(pe, class), pool);
        }
        self.backpressure.return_resumed(resumed);
    }

    /// Ends received pauses whose time is over, and sends those again that are due.
    pub(super) fn backpressure_tick(&mut self, now: Instant, pool: &mut Pool) {
        self.backpressure.tick(now, &mut self.ports.egress);
        while let Some(message) = self.backpressure.take_due(now, &self.ports.egress) {
            self.send_backpressure(now, message, pool);
        }
    }

    /// END.C: a notification, which is not forwarded (CN-4.1-1).
    #[inline(never)]
    pub(super) fn end_c(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool) {
        let head = frame.head(pool);
        let taken = match inner_packet(head) {
            Ok(inner) => self.backpressure.receive(context.now, head, inner, &mut self.ports.egress),
            Err(Outcome::Report(reason, error)) => return self.report(context, frame, pool, reason, error),
            Err(Outcome::Drop(reason)) => Err(reason),
            Err(Outcome::Echo(at)) => return self.echo(context, frame, pool, at),
            Err(Outcome::Fragment(at)) if !context.is_reassembled => return self.reassemble(context, frame, pool, at),
            Err(Outcome::Forward | Outcome::Inner | Outcome::Ipv4 | Outcome::Fragment(_)) => {
                Err(DropReason::BackpressureMalformed)
            }
        };
        match taken {
            Ok(()) => frame.release(pool),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }
}
