//! Fast CNPs at borders of the controlled domain: none enters or leaves (FC-5-1). Called only if the node has a domain.

use super::{FastCnp, has_option};
use crate::drop::DropReason;
use crate::headers::{IPV6, ipv6};
use srdma_wire::fast_cnp::{self, OptionTypes};
use srdma_wire::rocev2::Packet;

impl FastCnp {
    /// Whether a packet may come in by a border port: no Fast CNP, except those of hosts inside in their own name.
    pub(crate) fn ingress_check(&self, head: &[u8], types: OptionTypes) -> Result<(), DropReason> {
        if !has_option(head, types) {
            return Ok(());
        }
        let octets = head.get(IPV6..).unwrap_or(&[]);
        let Ok(packet) = Packet::parse(octets, octets.len()) else { return Err(DropReason::FastCnpAtBorder) };
        let source = packet.ipv6.source();
        let of_receiver = fast_cnp::FastCnp::find(&packet, types)
            .is_ok_and(|found| found.is_some_and(|fast_cnp| !fast_cnp.is_from_switch(source)));
        if of_receiver && self.is_inside(&source.octets()) { Ok(()) } else { Err(DropReason::FastCnpAtBorder) }
    }

    /// Whether a packet may go out by a border port: no Fast CNP, except to hosts inside.
    pub(crate) fn egress_check(&self, head: &[u8], types: OptionTypes) -> Result<(), DropReason> {
        if !has_option(head, types) || self.is_inside(ipv6(head)?.destination_octets()) {
            return Ok(());
        }
        Err(DropReason::FastCnpAtBorder)
    }

    fn is_inside(&self, host: &[u8; 16]) -> bool {
        self.notifier.as_ref().is_some_and(|notifier| notifier.is_inside(host))
    }
}
