//! Borders of the controlled domain: no Fast CNP comes in or goes out (FC-5-1). As with the other rules of a border,
//! nothing is refused before the node was told its domain.

use crate::drop::DropReason;
use crate::fast_cnp::has_option;
use crate::headers::{IPV6, ipv6};
use crate::node::Node;
use srdma_wire::fast_cnp::FastCnp;
use srdma_wire::rocev2::Packet;

impl Node {
    /// Whether a packet may come in by a border port: no Fast CNP, but those of hosts inside in their own name.
    pub(in crate::node) fn fast_cnp_enters(&self, head: &[u8]) -> Result<(), DropReason> {
        if !self.is_border_crosser(head) {
            return Ok(());
        }
        let octets = head.get(IPV6..).unwrap_or(&[]);
        let Ok(packet) = Packet::parse(octets, octets.len()) else { return Err(DropReason::FastCnpAtBorder) };
        let source = packet.ipv6.source();
        let of_receiver = FastCnp::find(&packet, self.config.fast_cnp_types)
            .is_ok_and(|found| found.is_some_and(|fast_cnp| !fast_cnp.is_from_switch(source)));
        let is_inside = self.fast_cnp.as_ref().is_some_and(|notifier| notifier.is_inside(&source.octets()));
        if of_receiver && is_inside { Ok(()) } else { Err(DropReason::FastCnpAtBorder) }
    }

    /// Whether a packet may go out by a border port: no Fast CNP, but to hosts inside.
    pub(in crate::node) fn fast_cnp_leaves(&self, head: &[u8]) -> Result<(), DropReason> {
        if !self.is_border_crosser(head) {
            return Ok(());
        }
        let destination = ipv6(head)?.destination_octets();
        let is_inside = self.fast_cnp.as_ref().is_some_and(|notifier| notifier.is_inside(destination));
        if is_inside { Ok(()) } else { Err(DropReason::FastCnpAtBorder) }
    }

    /// Whether a domain has a border for a packet to be kept at.
    fn is_border_crosser(&self, head: &[u8]) -> bool {
        self.boundary.domain().is_some() && has_option(head, self.config.fast_cnp_types)
    }
}
