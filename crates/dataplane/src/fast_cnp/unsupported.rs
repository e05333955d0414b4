//! ICMPv6 errors of hosts without Fast CNP support (D47).

use super::FastCnp;
use crate::config::NodeConfig;
use crate::headers::{Place, ipv6};
use srdma_frame::{Frame, Pool};
use srdma_wire::checksum::Sum;
use srdma_wire::fast_cnp;
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, NextHeader};
use std::net::Ipv6Addr;

impl FastCnp {
    /// A host does not recognize an option: Parameter Problem code 2 (FC-4-3), from the host that a Fast CNP of this
    /// node went to, quoting it and pointing to its option. Returns whether the packet is that.
    pub(crate) fn take_unsupported(&mut self, now: Instant, frame: &Frame, pool: &Pool, config: &NodeConfig) -> bool {
        let Some(notifier) = self.notifier.as_mut() else { return false };
        let Some(error) = UnrecognisedOption::of(frame.head(pool)) else { return false };
        let types = config.fast_cnp_types;
        let quoted = Packet::parse(error.quoted, error.quoted.len()).ok();
        let quoted = quoted.and_then(|packet| Some((packet, fast_cnp::FastCnp::find(&packet, types).ok()??)));
        let is_true = quoted.is_some_and(|(packet, fast_cnp)| {
            let points_to_it = error.quoted.get(error.pointer).is_some_and(|kind| types.contains(*kind));
            let is_own = packet.ipv6.source() == config.loopback && packet.ipv6.destination() == error.host;
            let (host, destination) = (error.host.octets(), fast_cnp.original_destination.octets());
            points_to_it && is_own && notifier.refused(now, &host, &destination, packet.bth.dest_qpn())
        });
        notifier.counters.foreign_refusals += u64::from(!is_true);
        is_true
    }
}

/// A Parameter Problem code 2.
struct UnrecognisedOption<'h> {
    host: Ipv6Addr,
    pointer: usize,
    quoted: &'h [u8],
}

impl<'h> UnrecognisedOption<'h> {
    /// The error in a packet whose first segment holds all of it, if its checksum is right.
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
        (sum.checksum() == 0).then_some(UnrecognisedOption { host: view.source(), pointer, quoted })
    }
}
