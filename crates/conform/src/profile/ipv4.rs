//! IPv4 over SRv6: End.DX4, End.DT4, End.DT46, and H.Encaps and H.Encaps.Red of IPv4 packets.

mod cases;

use super::router::Router;
use super::{NodeToml, Profile};
use crate::Case;
use crate::parameters::{Port, address, parameters};
use srdma_testkit::forwarding::{Action, Outer, Route};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const ABOUT: &str = "End.DX4, End.DT4, End.DT46, H.Encaps(.Red) of IPv4 packets: RFC 8986";

const UP: &str = "up";
const DOWN: &str = "down";

parameters! {
    /// Parameters of the profile.
    Ipv4 {
        /// MAC addresses on the link `up`.
        up: Port = Port::numbered(1),
        /// MAC addresses on the link `down`.
        down: Port = Port::numbered(2),
        /// The device's loopback, the source of its tunnels.
        device: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 1]),
        /// The tester's IPv6 address on either link: the next hop of every route of IPv6.
        tester: Ipv6Addr = address([0xfe80, 0, 0, 0, 0, 0, 0, 9]),
        /// The tester's IPv4 address on `down`: the next hop of every route of IPv4.
        tester_ipv4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9),
        /// The device's End.DX4 toward `down`.
        end_dx4: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xd4]),
        /// The device's End.DT4 of its main table.
        end_dt4: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xd5]),
        /// The device's End.DT46 of its main tables.
        end_dt46: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xd6]),
        /// The SID of a node behind `down`.
        sid_down: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 2, 0, 0, 0, 0xe]),
        /// A tunnel's other end, behind `up`.
        peer: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 1]),
        /// A host behind `up`, from which packets come. No route leads there.
        host_up: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1),
        /// A host behind `down`.
        host_down: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1),
        /// An IPv6 host behind `down`.
        ipv6_host_down: Ipv6Addr = address([0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 1]),
        /// A host that packets are given H.Encaps for, with one segment: `sid_down`.
        host_one_segment: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1),
        /// A host that packets are given H.Encaps for, with three segments: `sid_down`, `nowhere`, `far`.
        host_three_segments: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 1),
        /// A host that packets are given H.Encaps.Red for, with one segment: `sid_down`.
        host_reduced: Ipv4Addr = Ipv4Addr::new(10, 5, 0, 1),
        /// A last segment, which the device has no need to reach.
        far: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 4, 0, 0, 0, 0xd4]),
        /// An address that no route leads to.
        nowhere: Ipv6Addr = address([0x2001, 0xdb8, 0xdead, 0, 0, 0, 0, 1]),
    }
}

/// The profile with these parameters.
pub(super) fn profile(ipv4: &Ipv4) -> Profile {
    Profile {
        name: "ipv4",
        about: ABOUT,
        ports: vec![ipv4.up(), ipv4.down()],
        words: ipv4.words(),
        configuration: ipv4.configuration(),
        parameters: ipv4.list(),
        cases: cases::all(ipv4),
        untested: Vec::new(),
    }
}

impl Ipv4 {
    fn up(&self) -> (&'static str, Port) {
        (UP, self.up)
    }

    fn down(&self) -> (&'static str, Port) {
        (DOWN, self.down)
    }

    fn three_segments(&self) -> [Ipv6Addr; 3] {
        [self.sid_down, self.nowhere, self.far]
    }

    fn words(&self) -> Vec<String> {
        let (tester, tester_ipv4) = (self.tester, self.tester_ipv4);
        let [first, second, third] = self.three_segments();
        vec![
            format!("The device's loopback is {}; tunnels begin there.", self.device),
            format!("The tester is {tester} on both links and {tester_ipv4} on down, where it answers no ARP:"),
            "its MAC address on a link is that of every neighbour there, also of IPv4.".to_owned(),
            format!("Routes to {} and {} lead to {tester} on down.", self.sid_down, self.ipv6_host_down),
            format!("The route to {} leads to {tester} on up.", self.peer),
            format!("The route to {} leads to {tester_ipv4} on down.", self.host_down),
            format!("No route leads to {}, {} and {}, by default neither.", self.far, self.nowhere, self.host_up),
            format!("{} is End.DX4, to {tester_ipv4} on down.", self.end_dx4),
            format!("{} is End.DT4, and {} End.DT46, of the main table.", self.end_dt4, self.end_dt46),
            format!("Packets to {} are given H.Encaps with {}.", self.host_one_segment, self.sid_down),
            format!("Packets to {} are given H.Encaps with {first}, {second}, {third}.", self.host_three_segments),
            format!("Packets to {} are given H.Encaps.Red with {}.", self.host_reduced, self.sid_down),
        ]
    }

    fn configuration(&self) -> String {
        let (tester, tester_ipv4) = (self.tester, self.tester_ipv4);
        let sid = |sid: Ipv6Addr, behavior: &str, keys: &str| {
            format!("[[sid]]\nsid = \"{sid}\"\nbehavior = \"{behavior}\"\n{keys}")
        };
        let encaps = |host: Ipv4Addr, mode: &str, segments: &[Ipv6Addr]| {
            let segments: Vec<String> = segments.iter().map(|segment| format!("\"{segment}\"")).collect();
            let list = segments.join(", ");
            format!("[[route]]\nprefix = \"{host}/32\"\nencaps = {{ mode = \"{mode}\", segments = [{list}] }}")
        };
        let (mac, next_hop) = (self.down.tester_mac, format!("{tester_ipv4}%{DOWN}"));
        NodeToml::new(self.device, "")
            .port(self.up(), tester)
            .port(self.down(), tester)
            .add(&format!("[[neighbour]]\naddress = \"{next_hop}\"\nmac = \"{mac}\""))
            .route(&self.sid_down.to_string(), tester, DOWN)
            .route(&self.ipv6_host_down.to_string(), tester, DOWN)
            .route(&self.peer.to_string(), tester, UP)
            .add(&format!("[[route]]\nprefix = \"{}/32\"\nvia = [\"{next_hop}\"]", self.host_down))
            .add(&encaps(self.host_one_segment, "H.Encaps", &[self.sid_down]))
            .add(&encaps(self.host_three_segments, "H.Encaps", &self.three_segments()))
            .add(&encaps(self.host_reduced, "H.Encaps.Red", &[self.sid_down]))
            .add(&sid(self.end_dx4, "End.DX4", &format!("next_hop = \"{next_hop}\"")))
            .add(&sid(self.end_dt4, "End.DT4", ""))
            .add(&sid(self.end_dt46, "End.DT46", ""))
            .0
    }

    fn router(&self) -> Router {
        let route = |address, action| Route { address, len: 128, action };
        let host = |address: Ipv4Addr, action| route(address.to_ipv6_mapped(), action);
        let outer =
            |segments: &[Ipv6Addr], reduced| Outer { source: self.device, segments: segments.to_vec(), reduced };
        let main = vec![
            route(self.sid_down, Action::Via(1)),
            route(self.ipv6_host_down, Action::Via(1)),
            route(self.peer, Action::Via(0)),
            route(self.end_dx4, Action::EndDx4(1)),
            route(self.end_dt4, Action::EndDt4(0)),
            route(self.end_dt46, Action::EndDt46(0)),
            host(self.host_down, Action::Via(1)),
            host(self.host_one_segment, Action::Encaps(outer(&[self.sid_down], false))),
            host(self.host_three_segments, Action::Encaps(outer(&self.three_segments(), false))),
            host(self.host_reduced, Action::Encaps(outer(&[self.sid_down], true))),
        ];
        let (up, down) = (self.up(), self.down());
        Router { up, down, frames: None, device: self.device, tables: vec![main] }
    }

    /// Sends a packet at `up`, and expects what the RFCs' pseudocode makes of it.
    fn by_the_rfcs(&self, case: Case, packet: &[u8]) -> Case {
        self.router().by_the_rfcs(case, packet)
    }
}
