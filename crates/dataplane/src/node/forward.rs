//! From a port to the FIB and out again: one way for all packets, whether received or made here.
//!
//! ```text
//! ingress ─▶ route ─▶ verdict ─▶ dispatch ─▶ enqueue, enter a class, drop, ICMPv6 error, replicate, …
//!              │                    ▲
//!              └─ rewrite: egress check, Ethernet header, queue
//! ```
//!
//! What most packets need is done at [ingress](super::ingress) already.

use super::Node;
use super::verdict::{HopLimit, Progress, Step, Verdict};
use crate::backpressure;
use crate::behavior::{Outcome, end, end_dt6, end_x, inner_packet};
use crate::config::{SidBehavior, TableId};
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::egress::{CongestionPoint, Room};
use crate::fast_cnp::{Decision, FirstHop, Message, NoticeSources, Notified, Prepared};
use crate::headers::{AFTER_IPV6, IPV6, ipv6};
use crate::icmp;
use crate::scope;
use crate::tables::{Adjacency, Target};
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::Instant;
use srdma_wire::icmpv6::Icmpv6Error;

/// The least MTU of a link for IPv6.
const MINIMUM_LINK_MTU: u32 = 1280;

impl Node {
    /// Carries out a verdict. Returns whether the frame was enqueued as it is.
    #[inline(never)]
    pub(super) fn dispatch(
        &mut self,
        verdict: Verdict,
        context: &PacketContext,
        frame: Frame,
        pool: &mut Pool,
    ) -> bool {
        if !self.config.worker.is_alone()
            && let Some(owner) = self.owner_elsewhere(&verdict, &frame, pool)
        {
            self.hand_over(owner, &verdict, context, frame);
            return false;
        }
        match verdict {
            Verdict::Enqueue(port, len) => {
                self.ports.enqueue(port, frame, len);
                return true;
            }
            Verdict::EnterClass(port, len) => return self.enter_class(context, port, frame, len, pool),
            Verdict::Drop(DropReason::MacControl) => self.ports.mac_control(context, frame, pool),
            Verdict::Drop(reason) => self.ports.drop_frame(context, frame, pool, reason),
            Verdict::Report(reason, error) => self.report(context, frame, pool, reason, error),
            Verdict::Multicast => self.multicast(context, frame, pool),
            Verdict::Replicate(group) => self.end_replicate(context, frame, pool, group),
            Verdict::EndMt { require_hmac } => self.end_mt(context, frame, pool, require_hmac),
            Verdict::EndC => self.end_c(context, frame, pool),
            Verdict::Proxied(group) => self.proxied(context, frame, pool, group),
            Verdict::Local => self.local(context, frame, pool),
            Verdict::Echo(at) => self.echo(context, frame, pool, at),
        }
        false
    }

    /// Processes a packet whose destination leads to `target`, and its further destinations, until the verdict is
    /// known. The frame stays where it is: a frame that was edited a moment ago is slow to move.
    #[inline(never)]
    pub(super) fn route(
        &mut self,
        context: &mut PacketContext,
        mut progress: Progress,
        mut target: Option<Target>,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Verdict {
        while progress.left > 0 {
            progress.left -= 1;
            let adjacency = match self.process(target, &mut progress, context, frame, pool) {
                Step::Neighbour(adjacency) => adjacency,
                Step::Done(verdict) => return verdict,
                Step::Next => {
                    let Some(headers) = frame.head(pool).first_chunk::<AFTER_IPV6>() else {
                        return Verdict::Drop(DropReason::Truncated);
                    };
                    let destination = headers.last_chunk().expect("an IPv6 header ends with its destination");
                    if scope::may_be_special(destination[0])
                        && let Some(verdict) = self.special(destination)
                    {
                        context.encapsulated_octets = 0;
                        return verdict;
                    }
                    target = self.tables.lookup(progress.table, destination);
                    continue;
                }
            };
            if let Err(verdict) = progress.decrement(frame, pool) {
                return verdict;
            }
            return self.rewrite(context, frame, pool, adjacency);
        }
        Verdict::Drop(DropReason::SegmentLoop)
    }

    /// What becomes of a packet to an address that is not looked up as others are.
    #[cold]
    pub(super) fn special(&self, destination: &[u8; 16]) -> Option<Verdict> {
        if destination[0] == 0xFF {
            return Some(Verdict::Multicast);
        }
        let is_own = || matches!(self.tables.lookup_main(destination), Some(Target::Local));
        (scope::is_bound(destination) && !is_own()).then_some(Verdict::Drop(DropReason::Scope))
    }

    /// Processes a packet by a target.
    #[inline]
    fn process(
        &mut self,
        target: Option<Target>,
        progress: &mut Progress,
        context: &mut PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Step {
        let verdict = match target {
            Some(Target::Adjacency(adjacency)) => return Step::Neighbour(adjacency),
            Some(Target::Ecmp(set)) => return Step::Neighbour(self.tables.choose(set, frame.head(pool))),
            Some(Target::Sid(sid)) => return self.process_sid(sid, progress, context, frame, pool),
            Some(Target::Encaps(policy)) => return self.encapsulate(policy, progress, context, frame, pool),
            Some(Target::Placed(place)) => return self.encapsulate_placed(place, progress, context, frame, pool),
            Some(Target::Group(group)) => Verdict::Proxied(group),
            Some(Target::Local) => Verdict::Local,
            Some(Target::Blackhole) => Verdict::Drop(DropReason::Blackhole),
            None => Verdict::Report(DropReason::NoRoute, Icmpv6Error::NoRoute),
        };
        Step::Done(verdict)
    }

    /// Encapsulates a packet by a policy (H.Encaps and its variants).
    fn encapsulate(
        &mut self,
        policy: u32,
        progress: &mut Progress,
        context: &mut PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Step {
        if let Err(verdict) = progress.decrement(frame, pool) {
            return Step::Done(verdict);
        }
        let policy = self.tables.encaps(policy);
        let octets = policy.push(frame, pool).map(|()| policy.octets());
        progress.encapsulated(context, octets)
    }

    /// Encapsulates a packet of a placed flow.
    fn encapsulate_placed(
        &mut self,
        place: u32,
        progress: &mut Progress,
        context: &mut PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Step {
        if let Err(verdict) = progress.decrement(frame, pool) {
            return Step::Done(verdict);
        }
        let octets = self.headend.encapsulate(context.now, place, frame, pool);
        progress.encapsulated(context, octets)
    }

    /// Processes a packet by the behaviour of a SID.
    fn process_sid(
        &mut self,
        sid: u32,
        progress: &mut Progress,
        context: &mut PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Step {
        let head = frame.head(pool);
        let source = head.get(IPV6 + 8..).and_then(<[u8]>::first_chunk);
        let outer_source = *source.expect("an IPv6 header has 40 octets");
        if self.security.guards_sids(&self.config)
            && let Err(refused) = self.security.guard_sid(self.tables.sid(sid), &outer_source, head, &self.config)
        {
            return Step::Done(match refused {
                Outcome::Report(reason, error) => Verdict::Report(reason, error),
                refused => Verdict::Drop(refused.reason()),
            });
        }
        let sid = self.tables.enter_sid(sid, frame.len());
        context.encapsulated_octets = 0;
        let (outcome, by) = match sid.behavior {
            SidBehavior::End(flavors) => (end(frame, pool, flavors), None),
            SidBehavior::EndX(flavors, _) => (end_x(frame, pool, flavors), sid.adjacency),
            SidBehavior::EndDt6(next) => {
                progress.table = next;
                (end_dt6(frame, pool), None)
            }
            SidBehavior::EndE(next) => {
                progress.table = next;
                context.by_end_e = true;
                (self.end_e(context.now, &outer_source, frame, pool), None)
            }
            SidBehavior::EndReplicate(_) => {
                let unknown = Verdict::Drop(DropReason::UnknownGroup);
                return Step::Done(sid.group.map_or(unknown, Verdict::Replicate));
            }
            SidBehavior::EndMt { require_hmac } => return Step::Done(Verdict::EndMt { require_hmac }),
            SidBehavior::EndC => return Step::Done(Verdict::EndC),
        };
        match outcome {
            Outcome::Forward => progress.hop_limit = HopLimit::Done,
            Outcome::Inner => {
                progress.hop_limit = HopLimit::ToDecrement;
                context.outer_source = Some(outer_source);
                context.table = progress.table;
            }
            Outcome::Echo(at) => return Step::Done(Verdict::Echo(at)),
            Outcome::Drop(reason) => return Step::Done(Verdict::Drop(reason)),
            Outcome::Report(reason, error) => return Step::Done(Verdict::Report(reason, error)),
        }
        by.map_or(Step::Next, Step::Neighbour)
    }

    /// Makes a packet ready for a neighbour: egress check, room in the queue, Ethernet header.
    #[inline(always)]
    pub(super) fn rewrite(
        &self,
        context: &PacketContext,
        frame: &mut Frame,
        pool: &mut Pool,
        adjacency: u32,
    ) -> Verdict {
        let adjacency = self.tables.adjacency(adjacency);
        let len = frame.len();
        if !adjacency.carries_any(len)
            && let Some(verdict) = self.egress_check(context, adjacency, frame, pool)
        {
            return verdict;
        }
        match self.ports.rewrite(adjacency, frame, pool, len) {
            Room::Plain => Verdict::Enqueue(adjacency.port, len),
            Room::Classes => Verdict::EnterClass(adjacency.port, len),
            Room::Full => Verdict::Drop(DropReason::QueueFull),
        }
    }

    /// Why a packet does not leave by an adjacency, unless it does.
    #[cold]
    fn egress_check(
        &self,
        context: &PacketContext,
        adjacency: &Adjacency,
        frame: &Frame,
        pool: &Pool,
    ) -> Option<Verdict> {
        if !adjacency.resolved {
            return Some(Verdict::Report(DropReason::NoNeighbour, Icmpv6Error::AddressUnreachable));
        }
        if !adjacency.carries(frame.len()) {
            let link_mtu = adjacency.link_mtu.into();
            return Some(Verdict::Report(DropReason::PacketTooBig, Icmpv6Error::PacketTooBig(link_mtu)));
        }
        let check = self.security.egress_check(frame.head(pool), context.by_end_e, &self.fast_cnp, &self.config);
        check.err().map(Verdict::Drop)
    }

    /// Sends a packet to a neighbour. Returns whether it was enqueued.
    pub(super) fn transmit(
        &mut self,
        context: &PacketContext,
        mut frame: Frame,
        pool: &mut Pool,
        adjacency: u32,
    ) -> bool {
        let verdict = self.rewrite(context, &mut frame, pool, adjacency);
        self.dispatch(verdict, context, frame, pool)
    }

    /// Sends a packet of this node by the main table. Returns whether it was enqueued.
    pub(super) fn send_own(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool) -> bool {
        match self.tables.route_own(&mut frame, pool, &self.headend) {
            Ok(adjacency) => self.transmit(context, frame, pool, adjacency),
            Err(reason) => {
                self.ports.drop_frame(context, frame, pool, reason);
                false
            }
        }
    }

    /// Drops a packet, and sends an ICMPv6 error to its source where the RFCs require it.
    #[cold]
    pub(super) fn report(
        &mut self,
        context: &PacketContext,
        mut frame: Frame,
        pool: &mut Pool,
        reason: DropReason,
        mut error: Icmpv6Error,
    ) {
        self.ports.count_drop(context.port, reason);
        if let Icmpv6Error::PacketTooBig(link_mtu) = error {
            // The source of what was encapsulated here can send less, but not less than any link carries (RFC 2473
            // section 7.1, RFC 8200 section 5).
            let left = link_mtu.saturating_sub(context.encapsulated_octets as u32);
            error = Icmpv6Error::PacketTooBig(left.max(MINIMUM_LINK_MTU.min(link_mtu)));
            frame.pull(context.encapsulated_octets);
        }
        let may_answer = context.port.is_some() && icmp::may_be_reported(frame.head(pool), context.replicated, error);
        let is_too_big = matches!(error, Icmpv6Error::PacketTooBig(_));
        let limit = if is_too_big { &mut self.too_big_errors } else { &mut self.icmp_errors };
        if may_answer
            && limit.take(context.now)
            && let Some(answer) = icmp::build(self.config.loopback, &frame, pool, error)
        {
            self.send_in_table(&PacketContext { port: None, ..*context }, answer, pool);
        }
        frame.release(pool);
    }

    /// Sends a packet of this node about one that it received, by the table of that one: a tenant's errors do not reach
    /// a host of another one.
    pub(super) fn send_in_table(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool) {
        if context.table == TableId(0) {
            self.send_own(context, frame, pool);
            return;
        }
        match self.tables.resolve_in(context.table, &frame, pool) {
            Ok(adjacency) => {
                self.transmit(context, frame, pool, adjacency);
            }
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }

    /// A packet to the node itself: BFD and ICMPv6 errors about Fast CNPs are processed, everything else is dropped.
    fn local(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool) {
        if self.bfd.is_for(frame.head(pool)) {
            return match self.bfd.receive(context, frame.head(pool), &mut self.tables) {
                Ok(()) => frame.release(pool),
                Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
            };
        }
        if self.fast_cnp.take_unsupported(context.now, &frame, pool, &self.config) {
            return frame.release(pool);
        }
        self.ports.drop_frame(context, frame, pool, DropReason::LocalDelivery);
    }

    /// Sends the probes of the headend that are due.
    pub(super) fn send_probes(&mut self, now: Instant, pool: &mut Pool) {
        let context = PacketContext::own(now);
        self.headend.tick(now);
        while let Some(frame) = self.headend.poll_probe(now, pool) {
            self.send_own(&context, frame, pool);
        }
    }

    /// Sends the BFD packets that are due.
    pub(super) fn send_bfd(&mut self, now: Instant, pool: &mut Pool) {
        let context = PacketContext::own(now);
        while let Some((octets, adjacency)) = self.bfd.poll(now, &mut self.tables) {
            let Some(frame) = Frame::small(&octets, pool) else { return };
            match adjacency {
                Some(adjacency) => self.transmit(&context, frame, pool, adjacency),
                None => self.send_own(&context, frame, pool),
            };
        }
    }
}

/// Ports with classes, and packets that meet congestion there.
impl Node {
    /// Puts a rewritten frame into its class, marked or its sender notified if it meets congestion there. Returns
    /// whether it was enqueued.
    #[inline(never)]
    fn enter_class(
        &mut self,
        context: &PacketContext,
        port: PortId,
        frame: Frame,
        len: usize,
        pool: &mut Pool,
    ) -> bool {
        let Some((mut frame, class, len)) = self.ports.admit_to_class(context, port, frame, len, pool) else {
            return false;
        };
        if let Some(congestion) = self.ports.egress.congestion(port, class) {
            let at = CongestionPoint { now: context.now, ingress: context.port, port, class, congestion };
            if self.handle_congestion(&at, &frame, pool) {
                self.ports.mark(port, class, &mut frame, pool);
            }
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
        self.ioam.fill(now, port, &mut departing, &self.ports.egress, pool);
        Some(departing.frame)
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
    fn end_e(&mut self, now: Instant, outer_source: &[u8; 16], frame: &mut Frame, pool: &mut Pool) -> Outcome {
        if let Err(reason) = self.backpressure.admit_to_end_e(now, outer_source) {
            return Outcome::Drop(reason);
        }
        match end_dt6(frame, pool) {
            Outcome::Inner => self.translate(frame, pool).map_or_else(Outcome::Drop, |()| Outcome::Inner),
            outcome @ (Outcome::Forward | Outcome::Echo(_) | Outcome::Drop(_) | Outcome::Report(..)) => outcome,
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
    fn end_c(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool) {
        let head = frame.head(pool);
        let taken = match inner_packet(head) {
            Ok(inner) => self.backpressure.receive(context.now, head, inner, &mut self.ports.egress),
            Err(Outcome::Report(reason, error)) => return self.report(context, frame, pool, reason, error),
            Err(Outcome::Drop(reason)) => Err(reason),
            Err(Outcome::Echo(at)) => return self.echo(context, frame, pool, at),
            Err(Outcome::Forward | Outcome::Inner) => Err(DropReason::BackpressureMalformed),
        };
        match taken {
            Ok(()) => frame.release(pool),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }
}

/// For callers with more nodes than stay in the caches.
impl Node {
    /// Reads what it will take to forward frames, so that it is in the caches: headers, routes, neighbours, all ports.
    /// It is worth it where forwarding would wait for one piece after the other, and changes nothing.
    pub fn prefetch<'f>(&self, frames: impl Iterator<Item = &'f Frame>, pool: &Pool) {
        let read = frames.fold(self.ports.prefetch(), |sum, frame| {
            let head = frame.head(pool);
            let destination = ipv6(head).map(|view| view.destination_octets());
            let adjacency = destination.ok().and_then(|destination| self.tables.plain_route(destination, head));
            sum + adjacency.map_or(0, |adjacency| adjacency.port.index())
        });
        std::hint::black_box(read);
    }
}
