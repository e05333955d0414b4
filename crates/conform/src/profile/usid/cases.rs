//! The cases.

use super::Usid;
use crate::Case;
use crate::octets::{
    CE, ECT0, IPV6, SEND_ONLY, UDP, ipv6, srh, with_dscp, with_ecn, with_flow_label, with_hop_limit, with_octets,
    with_udp_checksum,
};
use crate::profile::sent;
use srdma_testkit::packets::rocev2;
use std::net::Ipv6Addr;

type Ids = &'static [&'static str];

/// Offset of the SRH in a packet with no headers before it but IPv6.
const SRH: usize = 40;

pub(super) fn all(usid: &Usid) -> Vec<Case> {
    let cases = Cases(usid);
    [cases.micro_node(), cases.micro_adjacency(), cases.end(), cases.end_x(), cases.end_dt6(), cases.headend()].concat()
}

struct Cases<'u>(&'u Usid);

impl Cases<'_> {
    /// A RoCEv2 packet to a host: ECN-capable, with a DSCP, a flow label and a UDP checksum, so that it is seen whether
    /// they stay.
    fn data(&self, destination: Ipv6Addr) -> Vec<u8> {
        let packet = rocev2(self.0.host_up, destination, SEND_ONLY, 0x333, 100, b"sixteen octets..");
        with_flow_label(with_dscp(with_ecn(with_udp_checksum(packet), ECT0), 26), 0x5_4321)
    }

    fn inner(&self) -> Vec<u8> {
        self.data(self.0.host_down)
    }

    /// A case of one packet.
    fn case(&self, name: &'static str, about: &'static str, ids: Ids, packet: Vec<u8>) -> Case {
        self.0.by_the_rfcs(Case::new(name, about, ids), &packet)
    }

    fn tunnel(&self, destination: Ipv6Addr, srh: &[u8]) -> Vec<u8> {
        self.0.tunnel(destination, srh, &self.inner())
    }

    fn micro_node(&self) -> Vec<Case> {
        let u = self.0;
        let rest = [u.un_down, u.un_up, u.un_down, u.un_up, u.un_down];
        let six = u.carrier(&[&[u.un][..], &rest].concat());
        let next = u.carrier(&[u.un_down, u.un_up]);
        let one_left = srh(IPV6, 1, &[next], &[]);
        let two_left = srh(IPV6, 2, &[u.far, next], &[]);
        vec![
            self.case(
                "un-shift",
                "uN takes itself out of the destination address, decrements the hop limit, forwards by the next uSID.",
                &["RFC 9800 4.1", "PP-5.1-1", "PP-5.2-2"],
                self.tunnel(u.carrier(&[u.un, u.un_down, u.un_up]), &[]),
            ),
            self.case(
                "un-shift-of-six",
                "Six uSIDs fill a destination address; zeros are shifted in at its end.",
                &["RFC 9800 4.1", "PP-4-3"],
                self.tunnel(six, &[]),
            ),
            self.case(
                "un-shift-beside-srh",
                "While arguments remain the SRH stays as it is, Segments Left with it.",
                &["RFC 9800 4.1", "PP-4-4"],
                self.tunnel(u.carrier(&[u.un, u.un_down]), &two_left),
            ),
            self.case(
                "un-argument-behind-zeros",
                "An argument that begins with zeros is one: the address shifts, and no route leads to the result.",
                &["RFC 9800 4.1"],
                self.tunnel(u.carrier(&[u.un, Ipv6Addr::UNSPECIFIED, u.un_up]), &[]),
            ),
            self.case(
                "un-next-container",
                "At the end of a carrier the next one is taken from the SRH.",
                &["RFC 9800 4.1", "RFC 8754 4.3.1.1", "PP-4-4"],
                self.tunnel(u.un, &two_left),
            ),
            self.case(
                "un-last-container",
                "At the end of a carrier the last one is taken from the SRH, and PSP removes the SRH.",
                &["RFC 9800 4.1", "RFC 8986 4.16.1", "PP-4-4", "PP-5.1-1"],
                self.tunnel(u.un, &one_left),
            ),
            self.case(
                "un-decapsulates",
                "The last node of a program takes the outer header off and forwards the inner packet.",
                &["RFC 9800 4.1", "PP-5.1-1", "PP-5.2-2"],
                self.tunnel(u.un, &[]),
            ),
            self.case(
                "un-congested-tunnel",
                "A congestion mark of the outer header reaches the inner packet.",
                &["RFC 6040 4.2"],
                with_ecn(self.tunnel(u.un, &[]), CE),
            ),
            self.case(
                "un-hop-limit",
                "A packet whose hop limit is used up is discarded at a uN, with an ICMPv6 error.",
                &["RFC 9800 4.1", "RFC 8200 3"],
                with_hop_limit(self.tunnel(u.carrier(&[u.un, u.un_down]), &[]), 1),
            ),
        ]
    }

    fn micro_adjacency(&self) -> Vec<Case> {
        let u = self.0;
        vec![
            self.case(
                "ua-shift",
                "uA takes itself out of the destination address and forwards by its adjacency, not by the route.",
                &["RFC 9800 4.1", "RFC 8986 4.2", "PP-5.2-3"],
                self.tunnel(u.carrier(&[u.ua, u.un_up]), &[]),
            ),
            self.case(
                "un-then-ua",
                "A uA behind the uN of the same node: both shift, and the adjacency decides.",
                &["RFC 9800 4.1", "PP-5.2-3"],
                self.tunnel(u.carrier(&[u.un, u.ua, u.un_up]), &[]),
            ),
            self.case(
                "ua-last-container",
                "At the end of a carrier the next one is taken from the SRH, and the adjacency decides.",
                &["RFC 9800 4.1", "RFC 8986 4.2", "PP-4-4", "PP-5.2-3"],
                self.tunnel(u.ua, &srh(IPV6, 1, &[u.un_up], &[])),
            ),
        ]
    }

    fn end(&self) -> Vec<Case> {
        let u = self.0;
        let two = |left| srh(IPV6, left, &[u.sid_up, u.sid_down], &[]);
        let unknown_tlv = [127, 4, 1, 2, 3, 4, 4, 0];
        let marked = with_octets(srh(IPV6, 2, &[u.sid_up, u.sid_down], &unknown_tlv), 5, &[0, 0xAB, 0xCD]);
        vec![
            self.case(
                "end",
                "End decrements Segments Left and the hop limit, and forwards to the next segment.",
                &["RFC 8986 4.1", "RFC 8754 4.3.1.1"],
                self.tunnel(u.end, &two(2)),
            ),
            self.case(
                "end-last-segment",
                "Without PSP the SRH stays when Segments Left becomes zero.",
                &["RFC 8986 4.1"],
                self.tunnel(u.end, &two(1)),
            ),
            self.case(
                "end-keeps-tag-and-tlvs",
                "Tag, and TLVs of types that are not known, pass as they are.",
                &["RFC 8754 4.3.1.1"],
                self.tunnel(u.end, &marked),
            ),
            self.case(
                "end-pad1",
                "A Pad1 TLV is padding, also as the last octet of the SRH.",
                &["RFC 8754 4.3.1.1"],
                self.tunnel(u.end, &srh(IPV6, 2, &[u.sid_up, u.sid_down], &[4, 5, 0, 0, 0, 0, 0, 0])),
            ),
            self.case(
                "end-psp",
                "With PSP the SRH is removed when Segments Left becomes zero; the lengths are adjusted.",
                &["RFC 8986 4.16.1"],
                self.tunnel(u.end_psp, &two(1)),
            ),
            self.case(
                "end-psp-too-early",
                "With PSP the SRH stays while segments are left.",
                &["RFC 8986 4.16.1"],
                self.tunnel(u.end_psp, &two(2)),
            ),
            self.end_psp_truncated(),
            self.case(
                "end-hop-limit",
                "A packet whose hop limit is used up is discarded at End, with an ICMPv6 error.",
                &["RFC 8986 4.1", "RFC 8200 3"],
                with_hop_limit(self.tunnel(u.end, &two(2)), 1),
            ),
            self.case(
                "end-segments-left-too-large",
                "Segments Left beyond Last Entry + 1 is answered with Parameter Problem, pointing at Segments Left.",
                &["RFC 8986 4.1", "RFC 8754 4.3.1.1"],
                self.tunnel(u.end, &two(4)),
            ),
            self.case(
                "end-last-entry-too-large",
                "A Last Entry beyond the header is answered with Parameter Problem, pointing at Segments Left.",
                &["RFC 8986 4.1", "RFC 8754 4.3.1.1"],
                with_octets(self.tunnel(u.end, &two(2)), SRH + 4, &[5]),
            ),
            self.case(
                "end-upper-layer",
                "An upper-layer header at an End SID is answered with Parameter Problem code 4, pointing at it.",
                &["RFC 8986 4.1.1"],
                ipv6(u.peer, u.end, crate::octets::EXPERIMENTAL, &[1; 8]),
            ),
            self.case(
                "end-does-not-decapsulate",
                "IPv6 in IPv6 at an End SID without USD is an upper-layer header.",
                &["RFC 8986 4.1.1"],
                self.tunnel(u.end, &two(0)),
            ),
            self.case(
                "transit",
                "The SRH of a packet to another node is not looked at.",
                &["RFC 8754 4.3.2", "RFC 8200 3"],
                self.tunnel(u.sid_down, &two(1)),
            ),
            self.case(
                "no-route",
                "A next segment that no route leads to: No Route to Destination.",
                &["RFC 8986 4.1"],
                self.tunnel(u.end, &srh(IPV6, 1, &[u.nowhere], &[])),
            ),
        ]
    }

    /// A payload of fewer octets than the SRH has, in a frame that has them all.
    fn end_psp_truncated(&self) -> Case {
        let u = self.0;
        let list = srh(IPV6, 1, &[u.sid_up, u.sid_down], &[]);
        let payload_length = list.len() as u16 - 10;
        let packet = with_octets(self.tunnel(u.end_psp, &list), 4, &payload_length.to_be_bytes());
        Case::new(
            "end-psp-truncated",
            "A packet whose payload ends within its SRH is discarded, also where the SRH would be removed.",
            &["RFC 8754 4.3.1.1"],
        )
        .send(sent(u.up(), &packet))
    }

    fn end_x(&self) -> Vec<Case> {
        let u = self.0;
        let list = |left| srh(IPV6, left, &[u.far, u.sid_up], &[]);
        let last_is_up = srh(IPV6, 1, &[u.sid_up, u.end_x_psp], &[]);
        vec![
            self.case(
                "end-x",
                "End.X steps to the next segment as End does, and forwards by its adjacency, not by the route.",
                &["RFC 8986 4.2", "RFC 8754 4.3.1.1"],
                self.tunnel(u.end_x, &list(2)),
            ),
            self.case(
                "end-x-last-segment",
                "Without PSP the SRH stays when Segments Left becomes zero, also at End.X.",
                &["RFC 8986 4.2"],
                self.tunnel(u.end_x, &list(1)),
            ),
            self.case(
                "end-x-psp",
                "With PSP the SRH is removed when Segments Left becomes zero, and the adjacency decides.",
                &["RFC 8986 4.2", "RFC 8986 4.16.1"],
                self.tunnel(u.end_x_psp, &last_is_up),
            ),
            self.case(
                "end-x-psp-too-early",
                "With PSP the SRH stays while segments are left, also at End.X.",
                &["RFC 8986 4.2", "RFC 8986 4.16.1"],
                self.tunnel(u.end_x_psp, &list(2)),
            ),
            self.case(
                "end-x-upper-layer",
                "An upper-layer header at an End.X SID is answered with Parameter Problem code 4.",
                &["RFC 8986 4.2", "RFC 8986 4.1.1"],
                self.tunnel(u.end_x, &[]),
            ),
        ]
    }

    fn end_dt6(&self) -> Vec<Case> {
        let u = self.0;
        let list = |left| srh(IPV6, left, &[u.end_dt6, u.sid_up], &[]);
        let not_capable = with_ecn(self.inner(), 0);
        vec![
            self.case(
                "end-dt6",
                "End.DT6 takes the outer header off and forwards the inner packet by its table.",
                &["RFC 8986 4.6"],
                self.tunnel(u.end_dt6, &[]),
            ),
            self.case(
                "end-dt6-with-srh",
                "An SRH with no segments left is removed with the outer header.",
                &["RFC 8986 4.6"],
                self.tunnel(u.end_dt6, &list(0)),
            ),
            self.case(
                "end-dt6-segments-left",
                "Segments that are left at End.DT6: Parameter Problem, pointing at Segments Left.",
                &["RFC 8986 4.6"],
                self.tunnel(u.end_dt6, &list(1)),
            ),
            self.case(
                "end-dt6-upper-layer",
                "A payload other than IPv6 at End.DT6 causes a Parameter Problem, code 4.",
                &["RFC 8986 4.6", "RFC 8986 4.1.1"],
                ipv6(u.peer, u.end_dt6, UDP, &[0x12, 0xB7, 0x12, 0xB7, 0, 8, 0, 0]),
            ),
            self.case(
                "end-dt6-congested-tunnel",
                "A congestion mark of the outer header reaches the inner packet.",
                &["RFC 6040 4.2"],
                with_ecn(self.tunnel(u.end_dt6, &[]), CE),
            ),
            self.case(
                "end-dt6-congested-not-capable",
                "A congestion mark that the inner packet cannot carry is answered by dropping it.",
                &["RFC 6040 4.2"],
                with_ecn(u.tunnel(u.end_dt6, &[], &not_capable), CE),
            ),
            self.case(
                "end-dt6-inner-hop-limit",
                "An inner packet whose hop limit is used up is discarded, with an ICMPv6 error.",
                &["RFC 8986 4.6", "RFC 8200 3"],
                u.tunnel(u.end_dt6, &[], &with_hop_limit(self.inner(), 1)),
            ),
            self.case(
                "end-dt6-vpn",
                "The VPN's SID forwards by the VPN's table.",
                &["RFC 8986 4.6", "PP-7-2"],
                u.tunnel(u.end_dt6_vpn, &[], &self.data(u.host_vpn)),
            ),
            self.case(
                "end-dt6-other-vpn",
                "A host of the VPN is not reached by the main table's SID.",
                &["RFC 8986 4.6", "PP-7-2"],
                u.tunnel(u.end_dt6, &[], &self.data(u.host_vpn)),
            ),
        ]
    }

    fn headend(&self) -> Vec<Case> {
        let u = self.0;
        vec![
            self.case(
                "h-encaps-red-one-segment",
                "One segment: an outer header without SRH; the inner hop limit is decremented.",
                &["RFC 8986 5.2", "PP-4-3"],
                self.data(u.host_one_segment),
            ),
            self.case(
                "h-encaps-red-three-segments",
                "Three segments: the first in the destination address alone, the others in the SRH.",
                &["RFC 8986 5.2", "PP-4-3", "PP-4-4"],
                self.data(u.host_three_segments),
            ),
            self.case(
                "h-encaps-red-congested",
                "A congestion mark of the packet is copied to the outer header.",
                &["RFC 8986 5.2", "RFC 6040 4.2"],
                with_ecn(self.data(u.host_one_segment), CE),
            ),
            self.case(
                "h-encaps-red-hop-limit",
                "A packet whose hop limit is used up is discarded before encapsulation, with an ICMPv6 error.",
                &["RFC 8986 5.2", "RFC 8200 3"],
                with_hop_limit(self.data(u.host_one_segment), 1),
            ),
        ]
    }
}
