//! Behaviours of RFC 8986 beyond those of a placed path: End.DX6, End.DX2, End.B6.Encaps, End.B6.Encaps.Red, H.Encaps,
//! H.Encaps.L2.Red.

mod cases;

use super::router::Router;
use super::{NodeToml, Profile};
use crate::Case;
use crate::octets::tunnelled;
use crate::parameters::{Port, address, parameters};
use srdma_testkit::forwarding::{Action, Outer, Route};
use std::net::Ipv6Addr;

pub(super) const ABOUT: &str = "End.DX6, End.DX2, End.B6.Encaps(.Red), H.Encaps and H.Encaps.L2.Red of RFC 8986";

const UP: &str = "up";
const DOWN: &str = "down";
const CIRCUIT: &str = "circuit";

/// Numbers of the SR policies in the `node.toml`.
const POLICY: u32 = 1;
const POLICY_OF_ONE: u32 = 2;

parameters! {
    /// Parameters of the profile.
    Rfc8986 {
        /// MAC addresses on the link `up`.
        up: Port = Port::numbered(1),
        /// MAC addresses on the link `down`.
        down: Port = Port::numbered(2),
        /// MAC addresses on the link `circuit`.
        circuit: Port = Port::numbered(3),
        /// The device's loopback, the source of its tunnels.
        device: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 1]),
        /// The tester's address on either link: the next hop of every route.
        tester: Ipv6Addr = address([0xfe80, 0, 0, 0, 0, 0, 0, 9]),
        /// The device's End.DX6 toward `down`.
        end_dx6: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xd6]),
        /// The device's End.DX2 toward `circuit`.
        end_dx2: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xd2]),
        /// The device's End.B6.Encaps, whose policy has the segments `sid_down`, `far`.
        end_b6: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xb6]),
        /// The device's End.B6.Encaps.Red of the same policy.
        end_b6_red: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xb7]),
        /// The device's End.B6.Encaps.Red of a policy with the segment `sid_down` alone.
        end_b6_one: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xb8]),
        /// The SID of a node behind `down`.
        sid_down: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 2, 0, 0, 0, 0xe]),
        /// A tunnel's other end, behind `up`.
        peer: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 1]),
        /// A host behind `up`, from which packets come.
        host_up: Ipv6Addr = address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1]),
        /// A host that packets are given H.Encaps for, with one segment: `sid_down`.
        host_one_segment: Ipv6Addr = address([0x2001, 0xdb8, 0xe1, 0, 0, 0, 0, 1]),
        /// A host that packets are given H.Encaps for, with three segments: `sid_down`, `nowhere`, `far`.
        host_three_segments: Ipv6Addr = address([0x2001, 0xdb8, 0xe3, 0, 0, 0, 0, 1]),
        /// A host that packets in frames at `circuit` go to.
        host_circuit: Ipv6Addr = address([0x2001, 0xdb8, 0xe2, 0, 0, 0, 0, 1]),
        /// A last segment, which the device has no need to reach.
        far: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 4, 0, 0, 0, 0xd6]),
        /// An address that no route leads to.
        nowhere: Ipv6Addr = address([0x2001, 0xdb8, 0xdead, 0, 0, 0, 0, 1]),
    }
}

/// The profile with these parameters.
pub(super) fn profile(rfc8986: &Rfc8986) -> Profile {
    Profile {
        name: "rfc8986",
        about: ABOUT,
        ports: vec![rfc8986.up(), rfc8986.down(), rfc8986.circuit()],
        words: rfc8986.words(),
        configuration: rfc8986.configuration(),
        parameters: rfc8986.list(),
        cases: cases::all(rfc8986),
        untested: Vec::new(),
    }
}

impl Rfc8986 {
    fn up(&self) -> (&'static str, Port) {
        (UP, self.up)
    }

    fn down(&self) -> (&'static str, Port) {
        (DOWN, self.down)
    }

    fn circuit(&self) -> (&'static str, Port) {
        (CIRCUIT, self.circuit)
    }

    /// The segments of the policy of `end_b6`, `end_b6_red` and the frames of `circuit`.
    fn policy(&self) -> [Ipv6Addr; 2] {
        [self.sid_down, self.far]
    }

    fn three_segments(&self) -> [Ipv6Addr; 3] {
        [self.sid_down, self.nowhere, self.far]
    }

    fn words(&self) -> Vec<String> {
        let tester = self.tester;
        let [first, second, third] = self.three_segments();
        vec![
            format!("The device's loopback is {}; tunnels begin there.", self.device),
            format!("The tester is {tester} on both links, and every neighbour there has its MAC address."),
            format!("The route to {} leads to {tester} on down.", self.sid_down),
            format!("Routes to {} and {} lead to {tester} on up.", self.host_up, self.peer),
            format!("No route leads to {} and {}, and there is no default route.", self.far, self.nowhere),
            format!("{} is End.DX6, to {tester} on down.", self.end_dx6),
            format!("{} is End.DX2, to circuit.", self.end_dx2),
            format!("Frames at circuit are given H.Encaps.L2.Red with {}, {}.", self.sid_down, self.far),
            format!("{} is End.B6.Encaps of the policy {}, {}.", self.end_b6, self.sid_down, self.far),
            format!("{} is End.B6.Encaps.Red of the same policy.", self.end_b6_red),
            format!("{} is End.B6.Encaps.Red of the policy {}.", self.end_b6_one, self.sid_down),
            format!("Packets to {} are given H.Encaps with {}.", self.host_one_segment, self.sid_down),
            format!("Packets to {} are given H.Encaps with {first}, {second}, {third}.", self.host_three_segments),
        ]
    }

    fn configuration(&self) -> String {
        let tester = self.tester;
        let forwards = [self.host_one_segment, self.host_three_segments].map(|address| format!("\"{address}\""));
        let toml = NodeToml::new(self.device, &format!("forwards = [{}]\n", forwards.join(", ")))
            .port(self.up(), tester)
            .port(self.down(), tester)
            .port_alone(self.circuit())
            .route(&self.sid_down.to_string(), tester, DOWN)
            .route(&self.host_up.to_string(), tester, UP)
            .route(&self.peer.to_string(), tester, UP);
        let list = |segments: &[Ipv6Addr]| {
            let segments: Vec<String> = segments.iter().map(|segment| format!("\"{segment}\"")).collect();
            segments.join(", ")
        };
        let policy = |id: u32, segments: &[Ipv6Addr]| {
            format!("[[sr_policy]]\nid = {id}\nsegment_list = [{{ segments = [{}] }}]", list(segments))
        };
        let encaps = |host: Ipv6Addr, segments: &[Ipv6Addr]| {
            let list = list(segments);
            format!("[[route]]\nprefix = \"{host}\"\nencaps = {{ mode = \"H.Encaps\", segments = [{list}] }}")
        };
        let sid = |sid: Ipv6Addr, behavior: &str, keys: String| {
            format!("[[sid]]\nsid = \"{sid}\"\nbehavior = \"{behavior}\"\n{keys}")
        };
        toml.add(&policy(POLICY, &self.policy()))
            .add(&policy(POLICY_OF_ONE, &[self.sid_down]))
            .add(&encaps(self.host_one_segment, &[self.sid_down]))
            .add(&encaps(self.host_three_segments, &self.three_segments()))
            .add(&format!("[[cross_connect]]\nport = \"{CIRCUIT}\"\npolicy = {POLICY}"))
            .add(&sid(self.end_dx2, "End.DX2", format!("port = \"{CIRCUIT}\"")))
            .add(&sid(self.end_dx6, "End.DX6", format!("next_hop = \"{tester}%{DOWN}\"")))
            .add(&sid(self.end_b6, "End.B6.Encaps", format!("policy = {POLICY}")))
            .add(&sid(self.end_b6_red, "End.B6.Encaps.Red", format!("policy = {POLICY}")))
            .add(&sid(self.end_b6_one, "End.B6.Encaps.Red", format!("policy = {POLICY_OF_ONE}")))
            .0
    }

    fn router(&self) -> Router {
        let route = |address, action| Route { address, len: 128, action };
        let outer =
            |segments: &[Ipv6Addr], reduced| Outer { source: self.device, segments: segments.to_vec(), reduced };
        let main = vec![
            route(self.sid_down, Action::Via(1)),
            route(self.host_up, Action::Via(0)),
            route(self.peer, Action::Via(0)),
            route(self.end_dx6, Action::EndDx6(1)),
            route(self.end_dx2, Action::EndDx2(2)),
            route(self.end_b6, Action::EndB6Encaps(outer(&self.policy(), false))),
            route(self.end_b6_red, Action::EndB6Encaps(outer(&self.policy(), true))),
            route(self.end_b6_one, Action::EndB6Encaps(outer(&[self.sid_down], true))),
            route(self.host_one_segment, Action::Encaps(outer(&[self.sid_down], false))),
            route(self.host_three_segments, Action::Encaps(outer(&self.three_segments(), false))),
        ];
        let (up, down) = (self.up(), self.down());
        Router { up, down, frames: Some(CIRCUIT), device: self.device, tables: vec![main] }
    }

    /// Sends a packet at `up`, and expects what the RFCs' pseudocode makes of it.
    fn by_the_rfcs(&self, case: Case, packet: &[u8]) -> Case {
        self.router().by_the_rfcs(case, packet)
    }

    /// A tunnel from the peer.
    fn tunnel(&self, destination: Ipv6Addr, srh: &[u8], inner: &[u8]) -> Vec<u8> {
        tunnelled(self.peer, destination, srh, inner)
    }
}
