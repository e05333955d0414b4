//! The cases.

use super::Ipv4;
use crate::Case;
use crate::octets::{CE, ECT0, IPV4, IPV6, UDP, ipv4, ipv6, srh, tunnelled, with_ecn, with_ipv4_tos};
use std::net::{Ipv4Addr, Ipv6Addr};

type Ids = &'static [&'static str];

/// DSCP 26.
const DSCP: u8 = 26 << 2;

pub(super) fn all(profile: &Ipv4) -> Vec<Case> {
    let cases = Cases(profile);
    [cases.end_dx4(), cases.end_dt4(), cases.end_dt46(), cases.headend()].concat()
}

struct Cases<'p>(&'p Ipv4);

impl Cases<'_> {
    /// A UDP packet of the host behind `up`: ECN-capable, with a DSCP.
    fn data(&self, destination: Ipv4Addr) -> Vec<u8> {
        const DATAGRAM: [u8; 16] = [0xC3, 0x50, 0, 9, 0, 16, 0, 0, b'I', b'P', b'v', b'4', b'o', b'v', b'e', b'r'];
        with_ipv4_tos(ipv4(self.0.host_up, destination, UDP, &DATAGRAM), DSCP | ECT0)
    }

    /// A case of one packet.
    fn case(&self, name: &'static str, about: &'static str, ids: Ids, packet: Vec<u8>) -> Case {
        self.0.by_the_rfcs(Case::new(name, about, ids), &packet)
    }

    /// An IPv4 packet in a tunnel of the peer.
    fn tunnel(&self, sid: Ipv6Addr, inner: &[u8]) -> Vec<u8> {
        ipv6(self.0.peer, sid, IPV4, inner)
    }

    /// The same behind an SRH of two segments.
    fn with_srh(&self, sid: Ipv6Addr, left: u8) -> Vec<u8> {
        let list = srh(IPV4, left, &[sid, self.0.sid_down], &[]);
        tunnelled(self.0.peer, sid, &list, &self.data(self.0.host_down))
    }

    fn end_dx4(&self) -> Vec<Case> {
        let p = self.0;
        let data = self.data(p.host_down);
        vec![
            self.case(
                "end-dx4",
                "End.DX4 takes the outer header off and forwards the inner packet by its adjacency, without a route.",
                &["RFC 8986 4.5"],
                self.tunnel(p.end_dx4, &self.data(Ipv4Addr::new(10, 99, 0, 1))),
            ),
            self.case(
                "end-dx4-with-srh",
                "An SRH with no segments left is removed with the outer header.",
                &["RFC 8986 4.5"],
                self.with_srh(p.end_dx4, 0),
            ),
            self.case(
                "end-dx4-segments-left",
                "Segments that are left at End.DX4: Parameter Problem, pointing at Segments Left.",
                &["RFC 8986 4.5"],
                self.with_srh(p.end_dx4, 1),
            ),
            self.case(
                "end-dx4-upper-layer",
                "A payload other than IPv4 at End.DX4 causes a Parameter Problem, code 4.",
                &["RFC 8986 4.5", "RFC 8986 4.1.1"],
                ipv6(p.peer, p.end_dx4, UDP, &[0x12, 0xB7, 0x12, 0xB7, 0, 8, 0, 0]),
            ),
            self.case(
                "end-dx4-congested-tunnel",
                "A congestion mark of the outer header reaches the inner packet.",
                &["RFC 6040 4.2"],
                with_ecn(self.tunnel(p.end_dx4, &data), CE),
            ),
            self.case(
                "end-dx4-congested-not-capable",
                "A congestion mark that the inner packet cannot carry is answered by dropping it.",
                &["RFC 6040 4.2"],
                with_ecn(self.tunnel(p.end_dx4, &with_ipv4_tos(data, DSCP)), CE),
            ),
        ]
    }

    fn end_dt4(&self) -> Vec<Case> {
        let p = self.0;
        let data = self.data(p.host_down);
        let inner = ipv6(p.peer, p.ipv6_host_down, UDP, &[0x12, 0xB7, 0x12, 0xB7, 0, 8, 0, 0]);
        let mut wrong = data.clone();
        wrong[10] ^= 1;
        vec![
            self.case(
                "end-dt4",
                "End.DT4 takes the outer header off and forwards the inner packet by its table.",
                &["RFC 8986 4.7"],
                self.tunnel(p.end_dt4, &data),
            ),
            self.case(
                "end-dt4-with-srh",
                "An SRH with no segments left is removed with the outer header.",
                &["RFC 8986 4.7"],
                self.with_srh(p.end_dt4, 0),
            ),
            self.case(
                "end-dt4-segments-left",
                "Segments that are left at End.DT4: Parameter Problem, pointing at Segments Left.",
                &["RFC 8986 4.7"],
                self.with_srh(p.end_dt4, 1),
            ),
            self.case(
                "end-dt4-upper-layer",
                "IPv6 at End.DT4 causes a Parameter Problem, code 4.",
                &["RFC 8986 4.7", "RFC 8986 4.1.1"],
                tunnelled(p.peer, p.end_dt4, &[], &inner),
            ),
            self.case(
                "end-dt4-header-checksum",
                "An inner packet whose header checksum is wrong is discarded.",
                &["RFC 8986 4.7", "RFC 1812 5.2.2"],
                self.tunnel(p.end_dt4, &wrong),
            ),
        ]
    }

    fn end_dt46(&self) -> Vec<Case> {
        let p = self.0;
        let inner = ipv6(p.peer, p.ipv6_host_down, UDP, &[0x12, 0xB7, 0x12, 0xB7, 0, 8, 0, 0]);
        let list = srh(IPV6, 0, &[p.end_dt46], &[]);
        vec![
            self.case(
                "end-dt46-ipv4",
                "End.DT46 forwards an inner IPv4 packet by its table of IPv4.",
                &["RFC 8986 4.8"],
                self.with_srh(p.end_dt46, 0),
            ),
            self.case(
                "end-dt46-ipv6",
                "End.DT46 forwards an inner IPv6 packet by its table of IPv6.",
                &["RFC 8986 4.8"],
                tunnelled(p.peer, p.end_dt46, &list, &inner),
            ),
            self.case(
                "end-dt46-upper-layer",
                "A payload other than IPv4 and IPv6 at End.DT46 causes a Parameter Problem, code 4.",
                &["RFC 8986 4.8", "RFC 8986 4.1.1"],
                ipv6(p.peer, p.end_dt46, UDP, &[0x12, 0xB7, 0x12, 0xB7, 0, 8, 0, 0]),
            ),
        ]
    }

    fn headend(&self) -> Vec<Case> {
        let p = self.0;
        vec![
            self.case(
                "h-encaps-ipv4-one-segment",
                "H.Encaps of an IPv4 packet: next header 4 in the SRH; the time to live is decremented.",
                &["RFC 8986 5.1"],
                self.data(p.host_one_segment),
            ),
            self.case(
                "h-encaps-ipv4-three-segments",
                "Three segments: all in the SRH, the first in the destination address as well.",
                &["RFC 8986 5.1"],
                self.data(p.host_three_segments),
            ),
            self.case(
                "h-encaps-red-ipv4",
                "H.Encaps.Red of an IPv4 packet with one segment: an outer header with next header 4.",
                &["RFC 8986 5.2"],
                self.data(p.host_reduced),
            ),
            self.case(
                "h-encaps-ipv4-congested",
                "A congestion mark of the packet is copied to the outer header.",
                &["RFC 8986 5.1", "RFC 6040 4.2"],
                with_ipv4_tos(self.data(p.host_one_segment), DSCP | CE),
            ),
        ]
    }
}
