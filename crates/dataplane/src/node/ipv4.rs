//! IPv4 packets: forwarded by tables of their own, encapsulated by policies (H.Encaps and H.Encaps.Red, RFC 8986
//! sections 5.1 and 5.2), and what comes out of End.DT4, End.DT46 and End.DX4 (D258).
//!
//! Nothing of it is on the way of an IPv6 packet: a received packet comes here by its EtherType, an inner one by the
//! behaviour of its SID.

use super::Node;
use super::verdict::{HopLimit, Progress, Step, Verdict};
use crate::config::TableId;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::encaps::InnerFields;
use crate::headers::{IPV6, ipv6};
use crate::icmpv4;
use crate::ipv4::{self, Fragments};
use crate::tables::Target;
use crate::translation;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::Ipv6View;
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::translation::LONGER;
use std::net::Ipv4Addr;

/// The source of errors of a node without an IPv4 address (RFC 7600 section 4.8).
const DUMMY_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// The least MTU of a link for IPv4 (RFC 791 section 3.2).
const MINIMUM_LINK_MTU: u32 = 68;

/// Of a packet whose time to live is still to be decremented.
fn arrived(table: TableId, left: u8) -> Progress {
    Progress { hop_limit: HopLimit::ToDecrement, table, left }
}

impl Node {
    /// A frame that was refused because it is no IPv6 packet, if it is an IPv4 packet for a node with IPv4 routes.
    #[cold]
    pub(super) fn ingress_ipv4(&mut self, context: &mut PacketContext, frame: &mut Frame, pool: &mut Pool) -> Verdict {
        let head = frame.head(pool);
        if !ipv4::is_ipv4_frame(head) || !self.tables.has_ipv4() {
            return Verdict::Drop(DropReason::NotIpv6);
        }
        let mac = context.port.and_then(|port| self.ports.mac(port));
        if mac.is_none_or(|mac| !head.starts_with(&mac.0)) {
            return Verdict::Drop(DropReason::NotForThisPort);
        }
        let checked = ipv4::check(head, frame.len(), IPV6).and_then(|end| {
            let source = ipv4::header(head, IPV6)?.source().to_ipv6_mapped().octets();
            context.port.map_or(Ok(()), |port| self.security.admit_ipv4(port, &source)).map(|()| end)
        });
        match checked {
            Ok(end) => {
                frame.truncate(end, pool);
                let progress = Progress::new();
                self.route_ipv4(context, progress, frame, pool)
            }
            Err(reason) => Verdict::Drop(reason),
        }
    }

    /// An IPv4 packet that was taken out of its tunnel: by the SID's adjacency, or else by a table.
    #[cold]
    pub(super) fn forward_inner_ipv4(
        &mut self,
        context: &mut PacketContext,
        table: TableId,
        left: u8,
        adjacency: Option<u32>,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Verdict {
        context.table = table;
        let progress = arrived(table, left);
        match adjacency {
            None => self.route_ipv4(context, progress, frame, pool),
            Some(adjacency) => match destination(frame, pool) {
                Ok(_) => self.leave_ipv4(context, &progress, adjacency, frame, pool),
                Err(reason) => Verdict::Drop(reason),
            },
        }
    }

    /// Processes a checked IPv4 packet by its destination.
    #[inline(never)]
    pub(super) fn route_ipv4(
        &mut self,
        context: &mut PacketContext,
        mut progress: Progress,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Verdict {
        let Some(left) = progress.left.checked_sub(1) else { return Verdict::Drop(DropReason::SegmentLoop) };
        progress.left = left;
        let destination = match destination(frame, pool) {
            Ok(destination) => destination.to_ipv6_mapped().octets(),
            Err(reason) => return Verdict::Drop(reason),
        };
        let octets = match self.tables.lookup_ipv4(progress.table, &destination) {
            Some(Target::Adjacency(adjacency)) => return self.leave_ipv4(context, &progress, adjacency, frame, pool),
            Some(Target::Ecmp(set)) => {
                let adjacency = self.tables.choose_ipv4(set, frame.head(pool));
                return self.leave_ipv4(context, &progress, adjacency, frame, pool);
            }
            Some(target @ (Target::Encaps(_) | Target::Policy(_))) => {
                if let Err(verdict) = decrement(&progress, frame, pool) {
                    return verdict;
                }
                self.push_around_ipv4(target, frame, pool)
            }
            Some(Target::Local) => return Verdict::Drop(DropReason::LocalDelivery),
            Some(Target::Blackhole) => return Verdict::Drop(DropReason::Blackhole),
            // In IPv6 from here on, as all packets of groups (D272).
            Some(Target::Group(group)) => {
                let translated = translation::to_ipv6(frame, pool);
                return translated.map_or_else(Verdict::Drop, |()| Verdict::Proxied(group));
            }
            // None of these is in a table of IPv4.
            Some(Target::Sid(_) | Target::Placed(_) | Target::ToPeer) | None => {
                return Verdict::Report(DropReason::NoRoute, Icmpv6Error::NoRoute);
            }
        };
        match progress.encapsulated(context, octets) {
            Step::Done(verdict) => verdict,
            Step::Next | Step::Neighbour(_) => self.route_anew(context, progress, frame, pool),
        }
    }

    /// Pushes the outer headers of a policy onto an IPv4 packet; returns how many octets. Type of Service becomes the
    /// Traffic Class, and the flow label stands for the flow.
    fn push_around_ipv4(&mut self, target: Target, frame: &mut Frame, pool: &mut Pool) -> Result<usize, DropReason> {
        let inner = InnerFields::of_ipv4(frame.head(pool)).ok_or(DropReason::Truncated)?;
        if let Target::Policy(policy) = target {
            return self.tables.push_policy_around(policy, inner, frame, pool);
        }
        let Target::Encaps(policy) = target else { return Err(DropReason::NoRoute) };
        let policy = self.tables.encaps(policy);
        policy.push_around(inner, frame.len(), frame, pool).map(|()| policy.octets())
    }

    /// Sends a packet of a group to a host of IPv4 (D272).
    #[cold]
    pub(super) fn transmit_in_ipv4(
        &mut self,
        context: &PacketContext,
        mut frame: Frame,
        pool: &mut Pool,
        adjacency: u32,
    ) -> bool {
        if let Err(reason) = translation::to_ipv4(&mut frame, pool) {
            self.ports.drop_frame(context, frame, pool, reason);
            return false;
        }
        let (mut context, progress) = (*context, sent(context.table));
        let verdict = self.leave_ipv4(&mut context, &progress, adjacency, &mut frame, pool);
        self.dispatch(verdict, &context, frame, pool)
    }

    /// A packet of an IPv4 host to its group that causes an error is IPv4 again, as its source knows it.
    pub(super) fn restore_ipv4(&self, frame: &mut Frame, error: &mut Icmpv6Error, pool: &mut Pool) {
        let is_to_group = |view: &Ipv6View| self.tables.group_of(view.destination_octets()).is_some();
        let head = frame.head(pool);
        if ipv4::is_from_mapped(head)
            && ipv6(head).is_ok_and(is_to_group)
            && translation::to_ipv4(frame, pool).is_ok()
            && let Icmpv6Error::PacketTooBig(left) = error
        {
            *left = left.saturating_sub(LONGER as u32);
        }
    }

    /// Makes a packet ready for a neighbour, in fragments if it is too long and may be fragmented.
    fn leave_ipv4(
        &mut self,
        context: &mut PacketContext,
        progress: &Progress,
        adjacency: u32,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Verdict {
        if let Err(verdict) = decrement(progress, frame, pool) {
            return verdict;
        }
        let neighbour = self.tables.adjacency(adjacency);
        let mtu = usize::from(neighbour.link_mtu);
        if neighbour.resolved && frame.len() > IPV6 + mtu && may_be_fragmented(frame, pool) {
            return self.fragment(context, mtu, frame, pool, |node, context, fragment, pool| {
                node.classify_ipv4(context, fragment, pool);
                node.rewrite(context, fragment, pool, adjacency)
            });
        }
        self.classify_ipv4(context, frame, pool);
        match self.rewrite(context, frame, pool, adjacency) {
            Verdict::EnterClass(port, len) => Verdict::EnterClassIpv4(port, len),
            verdict => verdict,
        }
    }

    /// Notes the traffic class of a packet by its DSCP, unless the tag of its frame decided on it.
    fn classify_ipv4(&self, context: &mut PacketContext, frame: &Frame, pool: &Pool) {
        if context.class.is_none() {
            let tos = ipv4::header(frame.head(pool), IPV6).map_or(0, |view| view.traffic_class());
            context.class = Some(self.ports.classes.class_of(tos) as u8);
        }
    }

    /// Sends the fragments of a packet as `send` says.
    fn fragment(
        &mut self,
        context: &PacketContext,
        mtu: usize,
        packet: &Frame,
        pool: &mut Pool,
        send: impl Fn(&mut Node, &mut PacketContext, &mut Frame, &mut Pool) -> Verdict,
    ) -> Verdict {
        let Some(mut fragments) = Fragments::of(packet, pool, mtu) else {
            return Verdict::Drop(DropReason::PacketTooBig);
        };
        let next = |packet: &Frame, pool: &mut Pool| fragments.next(packet, pool);
        self.send_fragments(context, packet, pool, next, |node, context, fragment, pool| {
            match send(node, context, fragment, pool) {
                Verdict::EnterClass(port, len) => Verdict::EnterClassIpv4(port, len),
                verdict => verdict,
            }
        });
        Verdict::Fragmented
    }

    /// Sends the fragments of a packet that `next` makes, one after the other, each as `send` says.
    pub(super) fn send_fragments(
        &mut self,
        context: &PacketContext,
        packet: &Frame,
        pool: &mut Pool,
        mut next: impl FnMut(&Frame, &mut Pool) -> Option<Result<Frame, DropReason>>,
        send: impl Fn(&mut Node, &mut PacketContext, &mut Frame, &mut Pool) -> Verdict,
    ) {
        while let Some(fragment) = next(packet, pool) {
            match fragment {
                Ok(mut fragment) => {
                    let mut context = *context;
                    let verdict = send(self, &mut context, &mut fragment, pool);
                    self.dispatch(verdict, &context, fragment, pool);
                }
                Err(reason) => self.ports.count_drop(context.port, reason),
            }
        }
    }

    /// Puts a rewritten packet into its class, marked if it meets congestion there. Returns whether it was enqueued.
    #[cold]
    pub(super) fn enter_class_ipv4(
        &mut self,
        context: &PacketContext,
        member: PortId,
        frame: Frame,
        len: usize,
        pool: &mut Pool,
    ) -> bool {
        let (port, vlan) = self.ports.vlans.carrier(member);
        let class = context.class.map_or(0, usize::from);
        let has_classes = self.ports.egress.has_classes(port);
        let mut frame = frame;
        if has_classes {
            if let Err(reason) = self.ports.admit(context, port, class, len) {
                self.ports.drop_frame(context, frame, pool, reason);
                return false;
            }
            let is_marked = self.ports.egress.congestion(port, class).is_some_and(|congestion| congestion.mark);
            if is_marked && ipv4::mark(&mut frame, pool) {
                self.ports.egress.count_mark(port, class);
            }
        }
        if let Some(id) = vlan {
            let Some(tagged) = self.ports.tag(context, (member, id), class, frame, pool) else { return false };
            frame = tagged;
        }
        let len = frame.len();
        match has_classes {
            true => self.ports.enter_class(context, port, class, frame, len),
            false => self.ports.enqueue(port, frame, len),
        }
        true
    }

    /// Drops an IPv4 packet, and sends an ICMPv4 error to its source where RFC 1812 wants it. One that is too long for
    /// the link behind its tunnel, and may be fragmented, is.
    #[cold]
    pub(super) fn report_ipv4(
        &mut self,
        context: &PacketContext,
        frame: Frame,
        pool: &mut Pool,
        reason: DropReason,
        mut error: Icmpv6Error,
    ) {
        if let Icmpv6Error::PacketTooBig(left) = error {
            let mtu = left.max(MINIMUM_LINK_MTU);
            error = Icmpv6Error::PacketTooBig(mtu);
            if may_be_fragmented(&frame, pool) {
                return self.fragment_before_tunnel(context, mtu as usize, frame, pool);
            }
        }
        self.ports.count_drop(context.port, reason);
        let limit = if matches!(error, Icmpv6Error::PacketTooBig(_)) {
            &mut self.too_big_errors
        } else {
            &mut self.icmp_errors
        };
        if context.port.is_some()
            && icmpv4::may_be_reported(frame.head(pool))
            && let Some(error) = icmpv4::equivalent(error)
            && limit.take(context.now)
            && let Some(mut answer) = icmpv4::build(self.own_ipv4(context.port), &frame, pool, error)
        {
            let table = context.table;
            let mut context = PacketContext { table, ..PacketContext::own(context.now) };
            let verdict = self.route_ipv4(&mut context, sent(table), &mut answer, pool);
            self.dispatch(verdict, &context, answer, pool);
        }
        frame.release(pool);
    }

    /// Sends a packet in fragments that leave room for the outer headers which it has just lost again.
    fn fragment_before_tunnel(&mut self, context: &PacketContext, mtu: usize, frame: Frame, pool: &mut Pool) {
        let context = PacketContext { encapsulated_octets: 0, ..*context };
        let verdict = self.fragment(&context, mtu, &frame, pool, |node, context, fragment, pool| {
            node.route_ipv4(context, sent(context.table), fragment, pool)
        });
        self.dispatch(verdict, &context, frame, pool);
    }

    /// The source of errors about packets that a port received: an address of the port, or of another one (RFC 1812
    /// section 4.3.2.4).
    fn own_ipv4(&self, port: Option<PortId>) -> Ipv4Addr {
        let ports = &self.config.ports;
        let at = port.and_then(|port| ports.get(port.index()));
        let addresses = at.into_iter().chain(ports).flat_map(|port| &port.addresses);
        let mut mapped = addresses.filter_map(|address| address.to_ipv4_mapped());
        mapped.next().unwrap_or(DUMMY_ADDRESS)
    }
}

/// Of a packet whose time to live is as it is to be sent.
fn sent(table: TableId) -> Progress {
    Progress { hop_limit: HopLimit::Done, table, ..Progress::new() }
}

/// The destination of a packet, if packets to it are forwarded.
fn destination(frame: &Frame, pool: &Pool) -> Result<Ipv4Addr, DropReason> {
    let destination = ipv4::header(frame.head(pool), IPV6)?.destination();
    ipv4::refused_destination(destination).map_or(Ok(destination), Err)
}

fn decrement(progress: &Progress, frame: &mut Frame, pool: &mut Pool) -> Result<(), Verdict> {
    if progress.hop_limit == HopLimit::ToDecrement && ipv4::decrement(frame, pool).is_err() {
        return Err(Verdict::Report(DropReason::HopLimitExceeded, Icmpv6Error::HopLimitExceeded));
    }
    Ok(())
}

fn may_be_fragmented(frame: &Frame, pool: &Pool) -> bool {
    ipv4::header(frame.head(pool), IPV6).is_ok_and(|view| !view.dont_fragment())
}
