//! Idle paths: completion time of a flow, delay of a notification.

use super::route::Leg;
use srdma_fabric::{HostId, LinkId, NextHops, Topology};
use srdma_sim::link::{FRAMING_OCTETS, LinkModel};
use srdma_wire::units::PS_PER_NS;

/// Octets of a full frame's headers: Ethernet, IPv6, UDP, BTH, and the ICRC.
pub(super) const HEADERS_OCTETS: u64 = 14 + 40 + 8 + 12 + 4;

/// Octets of the RETH in the first packet of a WRITE.
pub(super) const RETH_OCTETS: u64 = 16;

/// Octets of an ACK's frame, Ethernet included, without FCS.
pub(super) const ACK_OCTETS: u64 = HEADERS_OCTETS + 4;

/// Octets of a full packet on a link, framing included.
pub(super) fn full_packet_octets(mtu_octets: u64) -> u64 {
    mtu_octets + HEADERS_OCTETS + FRAMING_OCTETS
}

/// The links of a shortest path, in order.
#[derive(Clone, Debug)]
pub(super) struct Path(Vec<LinkModel>);

impl Path {
    /// A shortest path between two hosts, in a fabric where all of them are equivalent.
    pub(super) fn between(topology: &Topology, next_hops: &NextHops, from: HostId, to: HostId) -> Self {
        Self::of_links(topology, next_hops.path(topology, from, to))
    }

    /// The path over these legs.
    pub(super) fn along(topology: &Topology, legs: &[Leg]) -> Self {
        Self::of_links(topology, legs.iter().map(|leg| leg.link))
    }

    fn of_links(topology: &Topology, links: impl IntoIterator<Item = LinkId>) -> Self {
        let models = links.into_iter().map(|link| {
            let link = &topology.links()[link.index()];
            LinkModel::perfect(link.rate_bits_per_s, link.delay_ns)
        });
        Path(models.collect())
    }

    /// Nanoseconds from a frame's first bit sent to its last bit received: propagation, and serialisation on each link.
    pub(super) fn frame_ns(&self, octets: u64) -> u64 {
        let serialisation_ps: u64 = self.0.iter().map(|link| link.transmission_ps(octets as usize)).sum();
        self.propagation_ns() + serialisation_ps.div_ceil(PS_PER_NS)
    }

    fn propagation_ns(&self) -> u64 {
        self.0.iter().map(|link| link.delay_ns).sum()
    }

    /// Completion time in nanoseconds of a single flow of this size, in packets with up to `mtu_octets` of payload: the
    /// first packet over every link, the others over the slowest link, and an ACK back.
    pub(super) fn flow_ns(&self, size_octets: u64, mtu_octets: u64) -> u64 {
        let packets = size_octets.div_ceil(mtu_octets).max(1);
        let first = size_octets.min(mtu_octets) + HEADERS_OCTETS + RETH_OCTETS;
        let slowest = |octets: u64| self.0.iter().map(|link| link.transmission_ps(octets as usize)).max().unwrap_or(0);
        let full = slowest(mtu_octets + HEADERS_OCTETS);
        let last = slowest(size_octets - (packets - 1) * mtu_octets + HEADERS_OCTETS);
        let behind_ps = if packets > 1 { (packets - 2) * full + last } else { 0 };
        self.frame_ns(first) + behind_ps.div_ceil(PS_PER_NS) + self.frame_ns(ACK_OCTETS)
    }
}
