//! What hosts that do not know Fast CNP answer (D47).

use crate::drop::DropReason;
use crate::headers::{Place, ipv6};
use crate::node::{Arrival, Node};
use srdma_frame::{Frame, Pool};
use srdma_wire::checksum::Sum;
use srdma_wire::fast_cnp::FastCnp;
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, NextHeader};
use std::net::Ipv6Addr;

impl Node {
    /// A packet to the node itself: an ICMPv6 error about a Fast CNP is taken, all else is dropped.
    pub(in crate::node) fn local(&mut self, arrival: Arrival, frame: Frame, pool: &mut Pool) {
        if self.fast_cnp.is_some() && self.take_refusal(arrival.now, &frame, pool) {
            return frame.release(pool);
        }
        self.drop_frame(arrival, frame, pool, DropReason::LocalDelivery);
    }

    /// A host says that it does not know an option: Parameter Problem code 2 (FC-4-3), from the host that a Fast CNP of
    /// this node went to, quoting it and pointing to its option.
    fn take_refusal(&mut self, now: Instant, frame: &Frame, pool: &Pool) -> bool {
        let Some(refusal) = Refusal::of(frame.head(pool)) else { return false };
        let Some(notifier) = self.fast_cnp.as_mut() else { return false };
        let types = self.config.fast_cnp_types;
        let quoted = Packet::parse(refusal.quoted, refusal.quoted.len()).ok();
        let fast_cnp = quoted.and_then(|packet| Some((packet, FastCnp::find(&packet, types).ok()??)));
        let is_true = fast_cnp.is_some_and(|(packet, fast_cnp)| {
            let points_to_it = refusal.quoted.get(refusal.pointer).is_some_and(|kind| types.contains(*kind));
            let is_own = packet.ipv6.source() == self.config.loopback && packet.ipv6.destination() == refusal.host;
            let (host, destination) = (refusal.host.octets(), fast_cnp.original_destination.octets());
            points_to_it && is_own && notifier.refused(now, &host, &destination, packet.bth.dest_qpn())
        });
        notifier.counters.foreign_refusals += u64::from(!is_true);
        is_true
    }
}

/// A Parameter Problem code 2.
struct Refusal<'h> {
    host: Ipv6Addr,
    pointer: usize,
    quoted: &'h [u8],
}

impl<'h> Refusal<'h> {
    /// The error in a packet whose first segment holds all of it, when its checksum is right.
    fn of(head: &'h [u8]) -> Option<Self> {
        let view = ipv6(head).ok()?;
        let place = Place::first(view).behind_options(head).ok().filter(|at| at.header == NextHeader::ICMPV6)?;
        let message = head.get(place.offset..)?;
        let (Some(Icmpv6Error::UnrecognisedOption(pointer)), quoted) = Icmpv6Error::parse(message).ok()? else {
            return None;
        };
        let (source, destination) = (view.source_octets(), view.destination_octets());
        let mut sum = Sum::pseudo_header(source, destination, message.len() as u32, NextHeader::ICMPV6);
        sum.add(message);
        let pointer = usize::try_from(pointer).ok()?;
        (sum.checksum() == 0).then_some(Refusal { host: view.source(), pointer, quoted })
    }
}
