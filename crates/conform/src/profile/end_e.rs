//! END.E: Fast CNPs from a congested WAN, decapsulated at the ingress PE.

use super::{NodeToml, Profile, left, sent};
use crate::Case;
use crate::octets::{EXPERIMENTAL, IPV6, icmpv6_error, ipv6, srh, tunnelled, with_hop_limit};
use crate::parameters::{Port, address, parameters};
use srdma_testkit::packets::{cnp, fast_cnp};
use std::net::Ipv6Addr;

pub(super) const ABOUT: &str = "END.E: Fast CNPs of a congested WAN, passed on by the ingress PE";

parameters! {
    /// Parameters of the profile.
    EndE {
        /// MAC addresses on the link `wan`.
        wan: Port = Port::numbered(1),
        /// MAC addresses on the link `dc`, toward the data centre.
        dc: Port = Port::numbered(2),
        /// The device's loopback.
        device: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 1]),
        /// The tester's address on each link: the next hop of every route.
        tester: Ipv6Addr = address([0xfe80, 0, 0, 0, 0, 0, 0, 9]),
        /// The device's END.E, of the main table.
        end_e: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 0xd]),
        /// The loopback of the congested router, behind `wan`.
        router: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 3, 0, 0, 0, 1]),
        /// The sender of the data, behind `dc`.
        sender: Ipv6Addr = address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1]),
        /// Destination of the data.
        receiver: Ipv6Addr = address([0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 1]),
        /// The receiver's queue pair.
        qpn: u32 = 0xabcd,
    }
}

/// The profile with these parameters.
pub(super) fn profile(pe: &EndE) -> Profile {
    let [wan, dc] = [("wan", pe.wan), ("dc", pe.dc)];
    let tester = pe.tester;
    let notice = fast_cnp(pe.router, pe.sender, pe.receiver, pe.qpn);
    let passed = |packet: &[u8]| left(dc, &with_hop_limit(packet.to_vec(), packet[7] - 1));
    let list = srh(IPV6, 0, &[pe.end_e], &[]);
    let standard = cnp(pe.receiver, pe.sender, pe.qpn);
    let other = ipv6(pe.router, pe.end_e, EXPERIMENTAL, &[1; 8]);
    let refused = icmpv6_error(pe.device, 4, 4, 40, &other);
    let cases = vec![
        Case::new(
            "fast-cnp",
            "The outer header is removed, and the Fast CNP forwarded to the sender.",
            &["CN-4.2-1", "CN-4.2-2"],
        )
        .send(sent(wan, &tunnelled(pe.router, pe.end_e, &[], &notice)))
        .expect(passed(&notice)),
        Case::new("with-srh", "An SRH without segments left is removed with the outer header.", &["CN-4.2-1"])
            .send(sent(wan, &tunnelled(pe.router, pe.end_e, &list, &notice)))
            .expect(passed(&notice)),
        Case::new("standard-cnp", "A standard CNP is routed as any inner packet.", &["CN-4.2-1"])
            .send(sent(wan, &tunnelled(pe.router, pe.end_e, &[], &standard)))
            .expect(passed(&standard)),
        Case::new(
            "not-ipv6",
            "A payload other than IPv6 causes a Parameter Problem, code 4.",
            &["RFC 8986 4.1.1", "CN-4.2-1"],
        )
        .send(sent(wan, &other))
        .expect(left(wan, &refused).icmpv6_error(14)),
    ];
    let configuration = NodeToml::new(pe.device, "")
        .port(wan, tester)
        .port(dc, tester)
        .route(&pe.router.to_string(), tester, "wan")
        .route(&pe.sender.to_string(), tester, "dc")
        .add(&format!("[[sid]]\nsid = \"{}\"\nbehavior = \"END.E\"", pe.end_e));
    Profile {
        name: "end-e",
        about: ABOUT,
        ports: vec![wan, dc],
        words: vec![
            format!("The device's loopback is {}, and {} is END.E of the main table.", pe.device, pe.end_e),
            format!("{} is reached by {tester} on wan, {} by {tester} on dc.", pe.router, pe.sender),
        ],
        configuration: configuration.0,
        parameters: pe.list(),
        cases,
        untested: vec![
            ("CN-3-1", "the scenario is a network, not a device"),
            ("CN-4.1-1", "END.C is tested by the profile end-c"),
            ("CN-4.1-2", "the congested router is not the PE"),
            ("CN-4.1-3", "the gateway is not the PE"),
            ("CN-5.1-1", "announcements of IS-IS are not sent by data packets"),
            ("CN-5.1-2", "announcements of IS-IS are not sent by data packets"),
            ("CN-5.2-1", "announcements of OSPFv3 are not sent by data packets"),
            ("CN-7-1", "the profile has one configuration, with the code points by default"),
        ],
    }
}
