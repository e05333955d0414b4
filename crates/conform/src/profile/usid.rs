//! End, End.X, End.DT6, uN, uA and H.Encaps.Red: the hops of a placed path (RFC 8754, RFC 8986, RFC 9800).

mod cases;

use super::router::Router;
use super::{NodeToml, Profile};
use crate::Case;
use crate::octets::tunnelled;
use crate::parameters::{Port, address, parameters};
use srdma_testkit::forwarding::{Action, Flavors, Outer, Route};
use std::net::Ipv6Addr;

pub(super) const ABOUT: &str = "End, End.X, End.DT6, uN, uA and H.Encaps.Red of RFC 8986 and RFC 9800";

const UP: &str = "up";
const DOWN: &str = "down";

const VPN_TABLE: usize = 1;

parameters! {
    /// Parameters of the profile.
    Usid {
        /// MAC addresses on the link `up`.
        up: Port = Port::numbered(1),
        /// MAC addresses on the link `down`.
        down: Port = Port::numbered(2),
        /// The device's loopback, the source of its tunnels.
        device: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 1]),
        /// The tester's address on either link: the next hop of every route.
        tester: Ipv6Addr = address([0xfe80, 0, 0, 0, 0, 0, 0, 9]),
        /// The device's uN, a /48 in a /32 block.
        un: Ipv6Addr = address([0x5f00, 0, 0x100, 0, 0, 0, 0, 0]),
        /// The device's uA toward `down`, a /48 of the same block.
        ua: Ipv6Addr = address([0x5f00, 0, 0xe001, 0, 0, 0, 0, 0]),
        /// The uN of a node behind `down`, a /48 of the same block.
        un_down: Ipv6Addr = address([0x5f00, 0, 0x200, 0, 0, 0, 0, 0]),
        /// The uN of a node behind `up`, a /48 of the same block.
        un_up: Ipv6Addr = address([0x5f00, 0, 0x300, 0, 0, 0, 0, 0]),
        /// The device's End without flavors.
        end: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xe]),
        /// The device's End with PSP.
        end_psp: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xf]),
        /// The device's End.X toward `down`.
        end_x: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xa]),
        /// The device's End.X with PSP toward `down`.
        end_x_psp: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0x1a]),
        /// The device's End.DT6 of the main table.
        end_dt6: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xd6]),
        /// The device's End.DT6 of the VPN's table.
        end_dt6_vpn: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xd7]),
        /// The SID of a node behind `down`.
        sid_down: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 2, 0, 0, 0, 0xe]),
        /// The SID of a node behind `up`.
        sid_up: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 3, 0, 0, 0, 0xe]),
        /// A tunnel's other end, behind `up`.
        peer: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 1]),
        /// A host behind `up`, from which packets come.
        host_up: Ipv6Addr = address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1]),
        /// A host behind `down`, to which packets go.
        host_down: Ipv6Addr = address([0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 1]),
        /// Host of the VPN, behind `down`, with a route in the VPN's table only.
        host_vpn: Ipv6Addr = address([0x2001, 0xdb8, 0xc, 0, 0, 0, 0, 1]),
        /// A host that packets are encapsulated for, with one segment: `un_down`, then `un_up` in one address.
        host_one_segment: Ipv6Addr = address([0x2001, 0xdb8, 0xe1, 0, 0, 0, 0, 1]),
        /// A host that packets are encapsulated for, with three segments: `sid_down`, `sid_up`, `far`.
        host_three_segments: Ipv6Addr = address([0x2001, 0xdb8, 0xe3, 0, 0, 0, 0, 1]),
        /// A last segment, which the device has no need to reach.
        far: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 4, 0, 0, 0, 0xd6]),
        /// An address that no route leads to.
        nowhere: Ipv6Addr = address([0x2001, 0xdb8, 0xdead, 0, 0, 0, 0, 1]),
    }
}

/// The profile with these parameters.
pub(super) fn profile(usid: &Usid) -> Profile {
    Profile {
        name: "usid",
        about: ABOUT,
        ports: vec![usid.up(), usid.down()],
        words: usid.words(),
        configuration: usid.configuration(),
        parameters: usid.list(),
        cases: cases::all(usid),
        untested: vec![
            ("PP-4-1", "the computation of a scheduler is not done by a device on the path"),
            ("PP-4-2", "that nothing was exchanged to build a path cannot be seen in its packets"),
            ("PP-4-5", "the absence of state for flows does not show in a device's packets"),
            ("PP-4-6", "a NIC's changes of paths depend on time and on its measurements"),
            ("PP-5.2-1", "how evenly paths are used is the scheduler's"),
            ("PP-7-1", "the distance between nodes is not a device's"),
        ],
    }
}

impl Usid {
    fn up(&self) -> (&'static str, Port) {
        (UP, self.up)
    }

    fn down(&self) -> (&'static str, Port) {
        (DOWN, self.down)
    }

    /// A destination address that holds these compressed SIDs of 16 bits, each given as the /48 that it is at the head
    /// of.
    fn carrier(&self, sids: &[Ipv6Addr]) -> Ipv6Addr {
        let mut segments = self.un.segments();
        segments[2..].fill(0);
        for (place, sid) in segments[2..].iter_mut().zip(sids) {
            *place = sid.segments()[2];
        }
        segments.into()
    }

    /// The outer destination of packets to `host_one_segment`.
    fn one_segment(&self) -> Ipv6Addr {
        self.carrier(&[self.un_down, self.un_up])
    }

    fn to_down(&self) -> [String; 3] {
        [format!("{}/48", self.un_down), self.sid_down.to_string(), self.host_down.to_string()]
    }

    fn to_up(&self) -> [String; 4] {
        [format!("{}/48", self.un_up), self.sid_up.to_string(), self.host_up.to_string(), self.peer.to_string()]
    }

    fn words(&self) -> Vec<String> {
        let tester = self.tester;
        vec![
            format!("The device's loopback is {}; tunnels begin there.", self.device),
            format!("The tester is {tester} on both links, and every neighbour there has its MAC address."),
            format!("Routes to {} lead to {tester} on down.", self.to_down().join(", ")),
            format!("Routes to {} lead to {tester} on up.", self.to_up().join(", ")),
            format!("In the VPN's table, {} leads to {tester} on down.", self.host_vpn),
            format!("No route leads to {} and {}, and there is no default route.", self.far, self.nowhere),
            format!("{}/48 is uN: End with NEXT-CSID, PSP and USD, block 32 bits, CSID 16.", self.un),
            format!("{}/48 is uA: End.X with NEXT-CSID, PSP and USD, to {tester} on down.", self.ua),
            format!("{} is End without flavors, {} is End with PSP.", self.end, self.end_psp),
            format!("{} is End.X without flavors, to {tester} on down.", self.end_x),
            format!("{} is End.X with PSP, to {tester} on down.", self.end_x_psp),
            format!("{} is End.DT6 of the main table, {} of the VPN's.", self.end_dt6, self.end_dt6_vpn),
            format!("Packets to {} are given H.Encaps.Red with {}.", self.host_one_segment, self.one_segment()),
            format!(
                "Packets to {} are given H.Encaps.Red with {}, {}, {}.",
                self.host_three_segments, self.sid_down, self.sid_up, self.far
            ),
        ]
    }

    fn configuration(&self) -> String {
        let tester = self.tester;
        let forwards: Vec<String> = [self.host_one_segment, self.host_three_segments, self.sid_down, self.nowhere]
            .map(|address| format!("\"{address}\""))
            .to_vec();
        let mut toml = NodeToml::new(self.device, &format!("forwards = [{}]\n", forwards.join(", ")))
            .port(self.up(), tester)
            .port(self.down(), tester);
        for prefix in self.to_down() {
            toml = toml.route(&prefix, tester, DOWN);
        }
        for prefix in self.to_up() {
            toml = toml.route(&prefix, tester, UP);
        }
        let vpn = format!("[[route]]\ntable = 100\nprefix = \"{}\"\nvia = [\"{tester}%{DOWN}\"]", self.host_vpn);
        let encaps = |host: Ipv6Addr, segments: &[Ipv6Addr]| {
            let segments: Vec<String> = segments.iter().map(|segment| format!("\"{segment}\"")).collect();
            format!("[[route]]\nprefix = \"{host}\"\nencaps = {{ segments = [{}] }}", segments.join(", "))
        };
        let adjacency = format!("next_hop = \"{tester}%{DOWN}\"");
        let sid = |sid: &str, behavior: &str, keys: &str| {
            format!("[[sid]]\nsid = \"{sid}\"\nbehavior = \"{behavior}\"\n{keys}")
        };
        toml.add(&vpn)
            .add(&encaps(self.host_one_segment, &[self.one_segment()]))
            .add(&encaps(self.host_three_segments, &[self.sid_down, self.sid_up, self.far]))
            .add(&sid(&format!("{}/48", self.un), "uN", ""))
            .add(&sid(&format!("{}/48", self.ua), "uA", &adjacency))
            .add(&sid(&self.end.to_string(), "End", ""))
            .add(&sid(&self.end_psp.to_string(), "End", "flavors = [\"PSP\"]"))
            .add(&sid(&self.end_x.to_string(), "End.X", &adjacency))
            .add(&sid(&self.end_x_psp.to_string(), "End.X", &format!("{adjacency}\nflavors = [\"PSP\"]")))
            .add(&sid(&self.end_dt6.to_string(), "End.DT6", ""))
            .add(&sid(&self.end_dt6_vpn.to_string(), "End.DT6", "table = 100"))
            .0
    }

    /// The same for the reference model: the main table, and the VPN's. Its next hops are 0 for `up` and 1 for `down`.
    fn tables(&self) -> Vec<Vec<Route>> {
        let route = |address, len, action| Route { address, len, action };
        let un = Flavors { psp: true, usd: true, next_csid: Some((4, 2)), ..Flavors::default() };
        let psp = Flavors { psp: true, ..Flavors::default() };
        let encaps = |segments: &[Ipv6Addr]| {
            Action::Encaps(Outer { source: self.device, segments: segments.to_vec(), reduced: true })
        };
        let main = vec![
            route(self.un_down, 48, Action::Via(1)),
            route(self.sid_down, 128, Action::Via(1)),
            route(self.host_down, 128, Action::Via(1)),
            route(self.un_up, 48, Action::Via(0)),
            route(self.sid_up, 128, Action::Via(0)),
            route(self.host_up, 128, Action::Via(0)),
            route(self.peer, 128, Action::Via(0)),
            route(self.un, 48, Action::End(un)),
            route(self.ua, 48, Action::EndX(un, 1)),
            route(self.end, 128, Action::End(Flavors::default())),
            route(self.end_psp, 128, Action::End(psp)),
            route(self.end_x, 128, Action::EndX(Flavors::default(), 1)),
            route(self.end_x_psp, 128, Action::EndX(psp, 1)),
            route(self.end_dt6, 128, Action::EndDt6(0)),
            route(self.end_dt6_vpn, 128, Action::EndDt6(VPN_TABLE)),
            route(self.host_one_segment, 128, encaps(&[self.one_segment()])),
            route(self.host_three_segments, 128, encaps(&[self.sid_down, self.sid_up, self.far])),
        ];
        vec![main, vec![route(self.host_vpn, 128, Action::Via(1))]]
    }

    /// Sends a packet at `up`, and expects what the RFCs' pseudocode makes of it.
    fn by_the_rfcs(&self, case: Case, packet: &[u8]) -> Case {
        let (up, down) = (self.up(), self.down());
        let router = Router { up, down, frames: None, device: self.device, tables: self.tables() };
        router.by_the_rfcs(case, packet)
    }

    /// A tunnel from the peer.
    fn tunnel(&self, destination: Ipv6Addr, srh: &[u8], inner: &[u8]) -> Vec<u8> {
        tunnelled(self.peer, destination, srh, inner)
    }
}
