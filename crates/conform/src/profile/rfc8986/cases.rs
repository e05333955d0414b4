//! The cases.

use super::Rfc8986;
use crate::octets::{
    CE, ECT0, ETHERNET, EXPERIMENTAL, FRAGMENT, IPV6, SEND_ONLY, UDP, ipv6, srh, tunnelled, with_dscp, with_ecn,
    with_flow_label, with_hop_limit, with_octets, with_udp_checksum,
};
use crate::profile::left;
use crate::{Case, Frame};
use srdma_testkit::packets::rocev2;
use std::net::Ipv6Addr;

type Ids = &'static [&'static str];

/// Offset of the SRH in a packet with no headers before it but IPv6.
const SRH: usize = 40;

/// A MAC address that is neither the device's nor the tester's.
const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 0xAA, 1];

pub(super) fn all(rfc8986: &Rfc8986) -> Vec<Case> {
    let cases = Cases(rfc8986);
    [cases.end_dx6(), cases.end_dx2(), cases.end_b6(), cases.end_b6_reduced(), cases.headend(), cases.frames()].concat()
}

struct Cases<'r>(&'r Rfc8986);

impl Cases<'_> {
    /// A RoCEv2 packet to a host: ECN-capable, with a DSCP, a flow label and a UDP checksum, so that it is seen whether
    /// they stay.
    fn data(&self, destination: Ipv6Addr) -> Vec<u8> {
        let packet = rocev2(self.0.host_up, destination, SEND_ONLY, 0x333, 100, b"sixteen octets..");
        with_flow_label(with_dscp(with_ecn(with_udp_checksum(packet), ECT0), 26), 0x5_4321)
    }

    /// A packet that no table of the device leads anywhere.
    fn inner(&self) -> Vec<u8> {
        self.data(self.0.nowhere)
    }

    /// A case of one packet.
    fn case(&self, name: &'static str, about: &'static str, ids: Ids, packet: Vec<u8>) -> Case {
        self.0.by_the_rfcs(Case::new(name, about, ids), &packet)
    }

    fn tunnel(&self, destination: Ipv6Addr, srh: &[u8]) -> Vec<u8> {
        self.0.tunnel(destination, srh, &self.inner())
    }

    fn end_dx6(&self) -> Vec<Case> {
        let r = self.0;
        let list = |left| srh(IPV6, left, &[r.end_dx6, r.sid_down], &[]);
        vec![
            self.case(
                "end-dx6",
                "End.DX6 takes the outer header off and forwards the inner packet by its adjacency, without a route.",
                &["RFC 8986 4.4"],
                self.tunnel(r.end_dx6, &[]),
            ),
            self.case(
                "end-dx6-with-srh",
                "An SRH with no segments left is removed with the outer header.",
                &["RFC 8986 4.4"],
                self.tunnel(r.end_dx6, &list(0)),
            ),
            self.case(
                "end-dx6-route-ignored",
                "The adjacency decides also where a route of the device leads elsewhere.",
                &["RFC 8986 4.4"],
                r.tunnel(r.end_dx6, &[], &self.data(r.host_up)),
            ),
            self.case(
                "end-dx6-segments-left",
                "Segments that are left at End.DX6: Parameter Problem, pointing at Segments Left.",
                &["RFC 8986 4.4"],
                self.tunnel(r.end_dx6, &list(1)),
            ),
            self.case(
                "end-dx6-upper-layer",
                "A payload other than IPv6 at End.DX6 causes a Parameter Problem, code 4.",
                &["RFC 8986 4.4", "RFC 8986 4.1.1"],
                ipv6(r.peer, r.end_dx6, UDP, &[0x12, 0xB7, 0x12, 0xB7, 0, 8, 0, 0]),
            ),
            self.case(
                "end-dx6-congested-tunnel",
                "A congestion mark of the outer header reaches the inner packet.",
                &["RFC 6040 4.2"],
                with_ecn(self.tunnel(r.end_dx6, &[]), CE),
            ),
            self.case(
                "end-dx6-congested-not-capable",
                "A congestion mark that the inner packet cannot carry is answered by dropping it.",
                &["RFC 6040 4.2"],
                with_ecn(r.tunnel(r.end_dx6, &[], &with_ecn(self.inner(), 0)), CE),
            ),
            self.case(
                "end-dx6-inner-hop-limit",
                "An inner packet whose hop limit is used up is discarded, with an ICMPv6 error.",
                &["RFC 8986 4.4", "RFC 8200 3"],
                r.tunnel(r.end_dx6, &[], &with_hop_limit(self.inner(), 1)),
            ),
            self.end_dx6_fragments(),
        ]
    }

    /// A tunnel packet in two fragments, the last one first.
    fn end_dx6_fragments(&self) -> Case {
        let (r, inner) = (self.0, self.inner());
        let (first, last) = inner.split_at(48);
        let fragment = |offset: u16, more: u16, data: &[u8]| {
            let header = [&[IPV6, 0][..], &(offset | more).to_be_bytes(), &[1, 2, 3, 4]].concat();
            let packet = ipv6(r.peer, r.end_dx6, FRAGMENT, &[&header[..], data].concat());
            Frame { port: super::UP, octets: r.up.to_device(&packet) }
        };
        Case::new(
            "end-dx6-fragments",
            "A tunnel packet that comes in fragments, in any order, is put together before it is decapsulated.",
            &["RFC 2473 7.2", "RFC 8200 4.5"],
        )
        .send(fragment(48, 0, last))
        .send(fragment(0, 1, first))
        .expect(left(r.down(), &with_hop_limit(inner.clone(), 63)))
    }

    /// A frame of the tester at `circuit`, as a host there would send it to this MAC address.
    fn frame(&self, destination: [u8; 6], ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
        [&destination[..], &self.0.circuit.tester_mac.0, &ethertype, payload].concat()
    }

    /// A frame with an IPv6 packet.
    fn frame_of_ipv6(&self, destination: [u8; 6]) -> Vec<u8> {
        let packet = rocev2(self.0.host_up, self.0.host_circuit, SEND_ONLY, 0x333, 100, b"sixteen octets..");
        self.frame(destination, [0x86, 0xDD], &with_hop_limit(with_udp_checksum(packet), 9))
    }

    fn end_dx2(&self) -> Vec<Case> {
        let r = self.0;
        let frame = self.frame_of_ipv6(OTHER_MAC);
        let list = |left| srh(ETHERNET, left, &[r.end_dx2, r.sid_down], &[]);
        let marked = with_ecn(ipv6(r.peer, r.end_dx2, ETHERNET, &frame), CE);
        vec![
            self.case(
                "end-dx2",
                "End.DX2 takes the outer header off, and the frame in it leaves by the SID's port as it is.",
                &["RFC 8986 4.9"],
                ipv6(r.peer, r.end_dx2, ETHERNET, &frame),
            ),
            self.case(
                "end-dx2-with-srh",
                "An SRH with no segments left is removed with the outer header.",
                &["RFC 8986 4.9"],
                r.tunnel(r.end_dx2, &list(0), &frame),
            ),
            self.case(
                "end-dx2-congested-tunnel",
                "A frame is the same whatever the ECN field of the outer header.",
                &["RFC 8986 4.9"],
                marked,
            ),
            self.case(
                "end-dx2-segments-left",
                "Segments that are left at End.DX2: Parameter Problem, pointing at Segments Left.",
                &["RFC 8986 4.9"],
                r.tunnel(r.end_dx2, &list(1), &frame),
            ),
            self.case(
                "end-dx2-upper-layer",
                "A payload other than Ethernet at End.DX2 causes a Parameter Problem, code 4.",
                &["RFC 8986 4.9", "RFC 8986 4.1.1"],
                self.tunnel(r.end_dx2, &[]),
            ),
        ]
    }

    fn frames(&self) -> Vec<Case> {
        let r = self.0;
        let case = |name, about, frame: Vec<u8>| {
            let packet = tunnelled(r.device, r.sid_down, &srh(ETHERNET, 1, &[r.far], &[]), &frame);
            let expected = left(r.down(), &packet).free_dscp_and_label(14).free_hop_limit(14);
            Case::new(name, about, &["RFC 8986 5.4"])
                .send(Frame { port: super::CIRCUIT, octets: frame })
                .expect(expected)
        };
        let own = r.circuit.device_mac.0;
        let tagged = self.frame_of_ipv6(OTHER_MAC);
        let tagged = [&tagged[..12], &[0x81, 0, 0, 5], &tagged[12..]].concat();
        vec![
            case(
                "h-encaps-l2-red",
                "A frame with an IPv6 packet leaves whole, its MAC addresses and hop limit as they are.",
                self.frame_of_ipv6(own),
            ),
            case(
                "h-encaps-l2-red-other-mac",
                "So does a frame to another MAC address than the device's.",
                self.frame_of_ipv6(OTHER_MAC),
            ),
            case("h-encaps-l2-red-arp", "So does a frame that is not IPv6.", self.frame([0xFF; 6], [8, 6], &[1; 28])),
            case("h-encaps-l2-red-tagged", "So does a frame with a VLAN tag.", tagged),
        ]
    }

    fn end_b6(&self) -> Vec<Case> {
        let r = self.0;
        let two = |left| srh(IPV6, left, &[r.far, r.nowhere], &[]);
        vec![
            self.case(
                "end-b6-encaps",
                "End.B6.Encaps makes the next segment the destination, decrements the hop limit, pushes the policy.",
                &["RFC 8986 4.13", "RFC 8754 4.3.1.1"],
                self.tunnel(r.end_b6, &two(2)),
            ),
            self.case(
                "end-b6-encaps-last-segment",
                "The received SRH stays when its Segments Left becomes zero.",
                &["RFC 8986 4.13"],
                self.tunnel(r.end_b6, &two(1)),
            ),
            self.case(
                "end-b6-encaps-tag-and-tlvs",
                "Tag and TLVs of the received SRH stay; the new SRH has none of them.",
                &["RFC 8986 4.13"],
                self.tunnel(
                    r.end_b6,
                    &with_octets(srh(IPV6, 2, &[r.far, r.nowhere], &[127, 4, 1, 2, 3, 4, 4, 0]), 5, &[0, 0xAB, 0xCD]),
                ),
            ),
            self.case(
                "end-b6-encaps-congested",
                "A congestion mark of the packet is copied to the new outer header.",
                &["RFC 8986 4.13", "RFC 6040 4.2"],
                with_ecn(self.tunnel(r.end_b6, &two(2)), CE),
            ),
            self.case(
                "end-b6-encaps-hop-limit",
                "A packet whose hop limit is used up is discarded at End.B6.Encaps, with an ICMPv6 error.",
                &["RFC 8986 4.13", "RFC 8200 3"],
                with_hop_limit(self.tunnel(r.end_b6, &two(2)), 1),
            ),
            self.case(
                "end-b6-encaps-segments-left-too-large",
                "Segments Left beyond Last Entry + 1 is answered with Parameter Problem, pointing at Segments Left.",
                &["RFC 8986 4.13", "RFC 8754 4.3.1.1"],
                with_octets(self.tunnel(r.end_b6, &two(2)), SRH + 3, &[4]),
            ),
            self.case(
                "end-b6-encaps-no-segment",
                "Without segments left, IPv6 at End.B6.Encaps is an upper-layer header: Parameter Problem, code 4.",
                &["RFC 8986 4.13", "RFC 8986 4.1.1"],
                self.tunnel(r.end_b6, &two(0)),
            ),
            self.case(
                "end-b6-encaps-upper-layer",
                "An upper-layer header at End.B6.Encaps is answered with Parameter Problem code 4.",
                &["RFC 8986 4.13", "RFC 8986 4.1.1"],
                ipv6(r.peer, r.end_b6, EXPERIMENTAL, &[1; 8]),
            ),
        ]
    }

    fn end_b6_reduced(&self) -> Vec<Case> {
        let r = self.0;
        let two = |left| srh(IPV6, left, &[r.far, r.nowhere], &[]);
        vec![
            self.case(
                "end-b6-encaps-red",
                "End.B6.Encaps.Red leaves the policy's first segment out of the new SRH.",
                &["RFC 8986 4.14"],
                self.tunnel(r.end_b6_red, &two(2)),
            ),
            self.case(
                "end-b6-encaps-red-one-segment",
                "A policy of one segment: a new outer header without SRH.",
                &["RFC 8986 4.14"],
                self.tunnel(r.end_b6_one, &two(1)),
            ),
            self.case(
                "end-b6-encaps-red-no-segment",
                "Without segments left, IPv6 at End.B6.Encaps.Red is an upper-layer header.",
                &["RFC 8986 4.14", "RFC 8986 4.1.1"],
                self.tunnel(r.end_b6_red, &two(0)),
            ),
        ]
    }

    fn headend(&self) -> Vec<Case> {
        let r = self.0;
        vec![
            self.case(
                "h-encaps-one-segment",
                "One segment: it stands in the destination address and in the SRH; the inner hop limit is decremented.",
                &["RFC 8986 5.1"],
                self.data(r.host_one_segment),
            ),
            self.case(
                "h-encaps-three-segments",
                "Three segments: all in the SRH, the first in the destination address as well.",
                &["RFC 8986 5.1"],
                self.data(r.host_three_segments),
            ),
            self.case(
                "h-encaps-packet-with-srh",
                "A packet that has an SRH already is encapsulated like any other, and its SRH stays as it is.",
                &["RFC 8986 5.1"],
                tunnelled(
                    r.host_up,
                    r.host_three_segments,
                    &srh(UDP, 1, &[r.far, r.host_three_segments], &[]),
                    &self.data(r.far)[40..],
                ),
            ),
            self.case(
                "h-encaps-congested",
                "A congestion mark of the packet is copied to the outer header.",
                &["RFC 8986 5.1", "RFC 6040 4.2"],
                with_ecn(self.data(r.host_one_segment), CE),
            ),
            self.case(
                "h-encaps-hop-limit",
                "A packet whose hop limit is used up is discarded before encapsulation, with an ICMPv6 error.",
                &["RFC 8986 5.1", "RFC 8200 3"],
                with_hop_limit(self.data(r.host_one_segment), 1),
            ),
        ]
    }
}
