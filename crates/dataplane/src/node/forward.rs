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
use crate::behavior::{Outcome, end, end_b6_encaps, end_dt4, end_dt6, end_dt46, end_dx2, end_dx4, end_dx6, end_x};
use crate::config::{SidBehavior, TableId};
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::egress::Room;
use crate::fragmentation::Fragments;
use crate::headers::{AFTER_IPV6, IPV6, MINIMUM_LINK_MTU, ipv6};
use crate::icmp;
use crate::ipv4;
use crate::scope;
use crate::tables::Target;
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;
use srdma_wire::icmpv6::Icmpv6Error;

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
            Verdict::EnterClassIpv4(port, len) => return self.enter_class_ipv4(context, port, frame, len, pool),
            Verdict::TooLong(adjacency) => self.too_long(context, frame, pool, adjacency),
            Verdict::Fragmented => frame.release(pool),
            Verdict::Frame(port) => return self.enqueue_frame(context, port, frame, pool),
            Verdict::Drop(DropReason::MacControl) => self.ports.mac_control(context, frame, pool),
            Verdict::Drop(reason) => self.ports.drop_frame(context, frame, pool, reason),
            Verdict::Report(reason, error) => self.report(context, frame, pool, reason, error),
            Verdict::Multicast => self.multicast(context, frame, pool),
            Verdict::Replicate(group) => self.end_replicate(context, frame, pool, group),
            Verdict::EndMt { require_hmac } => self.end_mt(context, frame, pool, require_hmac),
            Verdict::EndC => self.end_c(context, frame, pool),
            Verdict::Proxied(group) => self.proxied(context, frame, pool, group),
            Verdict::ToPeer => self.without_group(context, frame, pool),
            Verdict::Local => self.local(context, frame, pool),
            Verdict::Echo(at) => self.echo(context, frame, pool, at),
            Verdict::Fragment(at) => self.reassemble(context, frame, pool, at),
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
                Step::Next => match self.next_target(context, &progress, frame, pool) {
                    Ok(next) => {
                        target = next;
                        continue;
                    }
                    Err(verdict) => return verdict,
                },
            };
            if let Err(verdict) = progress.decrement(frame, pool) {
                return verdict;
            }
            if !self.tables.adjacency(adjacency).is_avoided {
                return self.rewrite(context, frame, pool, adjacency);
            }
            return match self.tables.detour(adjacency, frame, pool) {
                Ok(Some(detour)) => {
                    context.encapsulated_octets += detour.octets;
                    self.rewrite(context, frame, pool, detour.adjacency)
                }
                Ok(None) => self.rewrite(context, frame, pool, adjacency),
                Err(reason) => Verdict::Drop(reason),
            };
        }
        Verdict::Drop(DropReason::SegmentLoop)
    }

    /// Processes a packet by its destination, which was not looked up.
    pub(super) fn route_anew(
        &mut self,
        context: &mut PacketContext,
        progress: Progress,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Verdict {
        match self.next_target(context, &progress, frame, pool) {
            Ok(target) => self.route(context, progress, target, frame, pool),
            Err(verdict) => verdict,
        }
    }

    /// What the destination of a packet leads to, or what becomes of the packet.
    #[inline]
    fn next_target(
        &self,
        context: &mut PacketContext,
        progress: &Progress,
        frame: &Frame,
        pool: &Pool,
    ) -> Result<Option<Target>, Verdict> {
        let Some(headers) = frame.head(pool).first_chunk::<AFTER_IPV6>() else {
            return Err(Verdict::Drop(DropReason::Truncated));
        };
        let destination = headers.last_chunk().expect("an IPv6 header ends with its destination");
        if scope::may_be_special(destination[0])
            && let Some(verdict) = self.special(destination)
        {
            context.encapsulated_octets = 0;
            return Err(verdict);
        }
        Ok(self.tables.lookup(progress.table, destination))
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
            Some(Target::Policy(policy)) => return self.encapsulate_by_policy(policy, progress, context, frame, pool),
            Some(Target::Placed(place)) => return self.encapsulate_placed(place, progress, context, frame, pool),
            Some(Target::Group(group)) => Verdict::Proxied(group),
            Some(Target::Local) => Verdict::Local,
            Some(Target::Blackhole) => Verdict::Drop(DropReason::Blackhole),
            Some(Target::ToPeer) => Verdict::ToPeer,
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

    /// Encapsulates a packet by a segment list of an SR policy.
    fn encapsulate_by_policy(
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
        let octets = self.tables.push_policy(policy, frame, pool);
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
            SidBehavior::EndDx6 { table, .. } => {
                progress.table = table;
                (end_dx6(frame, pool), sid.adjacency)
            }
            SidBehavior::EndDt4(next) => {
                progress.table = next;
                (end_dt4(frame, pool), None)
            }
            SidBehavior::EndDt46(next) => {
                progress.table = next;
                (end_dt46(frame, pool), None)
            }
            SidBehavior::EndDx4 { table, .. } => {
                progress.table = table;
                (end_dx4(frame, pool), sid.adjacency)
            }
            SidBehavior::EndDx2(port) => match end_dx2(frame, pool) {
                Outcome::Inner => return Step::Done(self.forward_frame(port, frame, pool)),
                outcome => (outcome, None),
            },
            SidBehavior::EndB6Encaps { .. } => match (end_b6_encaps(frame, pool), sid.policy) {
                (Outcome::Forward, Some(policy)) => {
                    let octets = self.tables.push_policy(policy, frame, pool);
                    return progress.encapsulated(context, octets);
                }
                (outcome, _) => (outcome, None),
            },
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
            Outcome::Ipv4 => {
                context.outer_source = Some(outer_source);
                let (table, left) = (progress.table, progress.left);
                return Step::Done(self.forward_inner_ipv4(context, table, left, by, frame, pool));
            }
            Outcome::Echo(at) => return Step::Done(Verdict::Echo(at)),
            // One Fragment header, as RFC 8200 section 4.1 has it: the rest would be work without a bound.
            Outcome::Fragment(at) if context.is_reassembled => {
                let error = Icmpv6Error::SrUpperLayer((at.offset - IPV6) as u32);
                return Step::Done(Verdict::Report(DropReason::UpperLayer, error));
            }
            Outcome::Fragment(at) => return Step::Done(Verdict::Fragment(at)),
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
        let number = adjacency;
        let adjacency = self.tables.adjacency(number);
        let len = frame.len();
        if !adjacency.carries_any(len)
            && let Some(verdict) = self.egress_check(context, number, frame, pool)
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
    fn egress_check(&self, context: &PacketContext, number: u32, frame: &Frame, pool: &Pool) -> Option<Verdict> {
        let adjacency = self.tables.adjacency(number);
        if !adjacency.resolved {
            return Some(Verdict::Report(DropReason::NoNeighbour, Icmpv6Error::AddressUnreachable));
        }
        if !adjacency.carries(frame.len()) {
            return Some(Verdict::TooLong(number));
        }
        // It is to no SID.
        if ipv4::is_ipv4(frame.head(pool)) {
            return None;
        }
        let check = self.security.egress_check(frame.head(pool), context.by_end_e, &self.fast_cnp, &self.config);
        check.err().map(Verdict::Drop)
    }

    /// Sends an IPv6 packet to a neighbour, translated if that has IPv4 (D272). Returns whether it was enqueued.
    pub(super) fn transmit(
        &mut self,
        context: &PacketContext,
        mut frame: Frame,
        pool: &mut Pool,
        adjacency: u32,
    ) -> bool {
        if self.tables.adjacency(adjacency).is_ipv4() {
            return self.transmit_in_ipv4(context, frame, pool, adjacency);
        }
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

    /// A packet that is too long for the link of an adjacency leaves in fragments, if this node has encapsulated it and
    /// its source cannot be told to send less (D288); otherwise its source is told.
    #[cold]
    fn too_long(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, adjacency: u32) {
        let link_mtu = self.tables.adjacency(adjacency).link_mtu;
        let (outer, ids) = (context.encapsulated_octets, &mut self.identifications);
        let Some(mut fragments) = Fragments::of(&frame, pool, outer, link_mtu.into(), ids) else {
            let error = Icmpv6Error::PacketTooBig(link_mtu.into());
            return self.report(context, frame, pool, DropReason::PacketTooBig, error);
        };
        let next = |packet: &Frame, pool: &mut Pool| fragments.next(packet, pool);
        self.send_fragments(context, &frame, pool, next, |node, context, fragment, pool| {
            node.rewrite(context, fragment, pool, adjacency)
        });
        frame.release(pool);
    }

    /// Drops a packet, and sends an ICMPv6 or ICMPv4 error to its source where the RFCs require it.
    #[cold]
    pub(super) fn report(
        &mut self,
        context: &PacketContext,
        mut frame: Frame,
        pool: &mut Pool,
        reason: DropReason,
        mut error: Icmpv6Error,
    ) {
        self.restore_ipv4(&mut frame, &mut error, pool);
        if let Icmpv6Error::PacketTooBig(link_mtu) = error {
            // The source of what was encapsulated here can send less, but not less than any link carries (RFC 2473
            // section 7.1, RFC 8200 section 5).
            let left = link_mtu.saturating_sub(context.encapsulated_octets as u32);
            frame.pull(context.encapsulated_octets);
            let least = if ipv4::is_ipv4(frame.head(pool)) { 0 } else { MINIMUM_LINK_MTU.min(link_mtu) };
            error = Icmpv6Error::PacketTooBig(left.max(least));
        }
        if ipv4::is_ipv4(frame.head(pool)) {
            return self.report_ipv4(context, frame, pool, reason, error);
        }
        self.ports.count_drop(context.port, reason);
        // A frame that was cross-connected has this node's own header, which stays.
        let is_own = ipv6(frame.head(pool)).is_ok_and(|view| view.source() == self.config.loopback);
        let may_answer =
            context.port.is_some() && !is_own && icmp::may_be_reported(frame.head(pool), context.replicated, error);
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
