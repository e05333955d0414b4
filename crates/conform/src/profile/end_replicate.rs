//! Replication in the tree, and the root next to the source: headend and transit node (multicast draft, RFC 9524).

mod cases;

use super::multicast::{data, numbered, response};
use super::{NodeToml, Profile, left, sent};
use crate::octets::multicast::end_mt_tlv;
use crate::octets::{IPV6, srh, tunnelled, with_hop_limit, with_octets};
use crate::parameters::{Port, address, parameters};
use crate::{Case, Expected};
use std::net::Ipv6Addr;

pub(super) const ABOUT: &str = "replication by End.Replicate, the headend, and the root next to the source";

const UP: &str = "up";
const LEFT: &str = "left";
const RIGHT: &str = "right";

/// The window of CNPs, in milliseconds.
const CNP_WINDOW_MS: u64 = 100;
/// Queue pairs that a receiver may have for one group and the next.
const QPNS_OF_A_GROUP: u16 = 16;
/// The first PSN of each group.
const FIRST: u32 = 0x100;

/// The groups: each case that leaves state behind has its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Headend,
    RootAcks,
    RootNaks,
    RootCnps,
    Replicate,
    Acks,
    Cnps,
    Strangers,
}

const GROUPS: [Group; 8] = [
    Group::Headend,
    Group::RootAcks,
    Group::RootNaks,
    Group::RootCnps,
    Group::Replicate,
    Group::Acks,
    Group::Cnps,
    Group::Strangers,
];

impl Group {
    fn number(self) -> u16 {
        self as u16 + 1
    }

    /// Whether the device is the root of the group, and its headend.
    fn is_root(self) -> bool {
        matches!(self, Group::Headend | Group::RootAcks | Group::RootNaks | Group::RootCnps)
    }
}

parameters! {
    /// Parameters of the profile.
    EndReplicate {
        /// MAC addresses on the link `up`, toward the source.
        up: Port = Port::numbered(1),
        /// MAC addresses on the link `left`, toward one branch.
        left: Port = Port::numbered(2),
        /// MAC addresses on the link `right`, toward the other.
        right: Port = Port::numbered(3),
        /// Loopback of the device, the source of its tunnels and of its responses upstream.
        device: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 6, 0, 0, 0, 1]),
        /// The tester's address on each link: the next hop of every route.
        tester: Ipv6Addr = address([0xfe80, 0, 0, 0, 0, 0, 0, 9]),
        /// The device's first Replication SID; those of further groups follow it.
        replicate: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 6, 0, 0, 0, 0xf00]),
        /// The loopback of the parent, a neighbour on `up`.
        parent: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 1]),
        /// The loopback of the node behind `left`.
        node_left: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 4, 0, 0, 0, 1]),
        /// The loopback of the node behind `right`.
        node_right: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 5, 0, 0, 0, 1]),
        /// The SID of the branch behind `left`.
        sid_left: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 4, 0, 0, 0, 0xf]),
        /// The SID of the branch behind `right`.
        sid_right: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 5, 0, 0, 0, 0xf]),
        /// The source's address, behind `up`.
        source: Ipv6Addr = address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1]),
        /// The source's queue pair in the first group; those of the others follow it.
        source_qpn: u32 = 0x777,
        /// The first receiver's address, as lists name it; others follow it.
        receiver: Ipv6Addr = address([0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 1]),
        /// The first receiver's queue pair in the first group; those of the others follow it, 16 for each group.
        receiver_qpn: u32 = 0x1001,
        /// The first group's Proxy Address; those of the others follow it.
        proxy: Ipv6Addr = address([0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, 1]),
        /// The Designated QPN of all groups.
        designated_qpn: u32 = 0xd0_0000,
        /// A node that is no branch, behind `left`.
        stranger: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 7, 0, 0, 0, 1]),
    }
}

/// The profile with these parameters.
pub(super) fn profile(node: &EndReplicate) -> Profile {
    Profile {
        name: "end-replicate",
        about: ABOUT,
        ports: vec![node.up(), node.left(), node.right()],
        words: node.words(),
        configuration: node.configuration(),
        parameters: node.list(),
        cases: cases::all(node),
        untested: vec![
            ("MT-3-1", "that hosts need not change is seen with hosts, not with a node"),
            ("MT-5.1-1", "queue pairs are the hosts'"),
            ("MT-5.1-2", "the control plane is not between these ports"),
            ("MT-5.1-3", "edges are tested by the profile end-mt"),
            ("MT-5.2-3", "edges are tested by the profile end-mt"),
            ("MT-5.2-4", "edges are tested by the profile end-mt"),
            ("MT-5.3.3-3", "a window that adapts may do so in any way"),
            ("MT-6.2-1", "edges are tested by the profile end-mt"),
            ("MT-6.2-2", "edges are tested by the profile end-mt"),
            ("MT-6.2-3", "edges are tested by the profile end-mt"),
            ("MT-8-1", "the amount of state of a device does not show in its packets"),
            ("MT-8-2", "edges are tested by the profile end-mt"),
            ("MT-9-1", "edges are tested by the profile end-mt"),
            ("MT-9-3", "how many CNPs a branch may send is the device's policy"),
            ("MT-10-1", "the profile has one configuration, with the code points by default"),
        ],
    }
}

impl EndReplicate {
    fn up(&self) -> (&'static str, Port) {
        (UP, self.up)
    }

    fn left(&self) -> (&'static str, Port) {
        (LEFT, self.left)
    }

    fn right(&self) -> (&'static str, Port) {
        (RIGHT, self.right)
    }

    /// The branches: port, loopback and SID.
    fn branches(&self) -> [((&'static str, Port), Ipv6Addr, Ipv6Addr); 2] {
        [(self.left(), self.node_left, self.sid_left), (self.right(), self.node_right, self.sid_right)]
    }

    fn proxy(&self, group: Group) -> Ipv6Addr {
        numbered(self.proxy, group.number() - 1)
    }

    fn sid(&self, group: Group) -> Ipv6Addr {
        numbered(self.replicate, group.number() - 1)
    }

    /// The source's queue pair, one for each group (D2).
    fn source_qpn(&self, group: Group) -> u32 {
        self.source_qpn + u32::from(group.number() - 1)
    }

    /// The receivers of each branch: two behind `left`, one behind `right`.
    fn receivers(&self, group: Group) -> [Vec<(Ipv6Addr, u32)>; 2] {
        let first = self.receiver_qpn + u32::from((group.number() - 1) * QPNS_OF_A_GROUP);
        let receiver = |number: u16| (numbered(self.receiver, number), first + u32::from(number));
        [vec![receiver(0), receiver(1)], vec![receiver(2)]]
    }

    /// The SRH that a headend builds: the Proxy Address, and the list of each edge (D4, D7).
    fn lists(&self, group: Group) -> Vec<u8> {
        let [left, right] = self.receivers(group);
        let tlvs = [end_mt_tlv(self.node_left, &left), end_mt_tlv(self.node_right, &right)].concat();
        srh(IPV6, 1, &[self.proxy(group)], &tlvs)
    }

    /// A data packet of a group, as the source sends it.
    fn data(&self, group: Group, psn: u32) -> Vec<u8> {
        data(self.source, self.proxy(group), self.designated_qpn, psn)
    }

    /// A step in which data with these PSNs are sent.
    fn sends(&self, case: Case, group: Group, psns: &[u32]) -> Case {
        psns.iter().fold(case, |case, psn| {
            let inner = self.data(group, *psn);
            if group.is_root() {
                return case.send(sent(self.up(), &inner)).expect_all(self.encapsulated(group, inner));
            }
            let packet = tunnelled(self.parent, self.sid(group), &self.lists(group), &inner);
            case.send(sent(self.up(), &packet)).expect_all(self.replicated(packet))
        })
    }

    /// Packets that a headend makes of a packet of the source, for each branch.
    fn encapsulated(&self, group: Group, inner: Vec<u8>) -> [Expected; 2] {
        let ecn = inner[1] & 0x30;
        let inner = with_hop_limit(inner, 63);
        self.branches().map(|(port, _, sid)| {
            let packet = tunnelled(self.device, sid, &self.lists(group), &inner);
            let packet = with_octets(packet, 1, &[ecn]);
            left(port, &packet).free_dscp_and_label(14).free_hop_limit(14)
        })
    }

    /// Packets that a transit node makes of a packet, for each branch.
    fn replicated(&self, packet: Vec<u8>) -> [Expected; 2] {
        self.branches().map(|(port, _, sid)| {
            let copy = with_octets(with_hop_limit(packet.clone(), packet[7] - 1), 24, &sid.octets());
            left(port, &copy)
        })
    }

    /// Response of a branch, 0 for `left` and 1 for `right`.
    fn branch_says(&self, group: Group, branch: usize, psn: u32, syndrome: u8) -> crate::Frame {
        let (port, node, _) = self.branches()[branch];
        sent(port, &response(node, self.proxy(group), self.designated_qpn, psn, syndrome))
    }

    /// Response upstream: at a root to the source, as from the Proxy Address, else to the parent.
    fn upstream(&self, group: Group, psn: u32, syndrome: u8) -> Vec<u8> {
        match group.is_root() {
            true => response(self.proxy(group), self.source, self.source_qpn(group), psn, syndrome),
            false => response(self.device, self.proxy(group), self.designated_qpn, psn, syndrome),
        }
    }

    fn words(&self) -> Vec<String> {
        let tester = self.tester;
        let mut words = vec![
            format!(
                "The device's loopback is {}; its tunnels and its responses upstream have it as source.",
                self.device
            ),
            format!(
                "The source {} is reached by {tester} on up; the parent {} is a neighbour there.",
                self.source, self.parent
            ),
            format!("{} and {} are reached by {tester} on left, {} too.", self.node_left, self.sid_left, self.stranger),
            format!("{} and {} are reached by {tester} on right.", self.node_right, self.sid_right),
            format!("CNPs are counted in windows of {CNP_WINDOW_MS} ms, and one is sent at the end of a window."),
            format!(
                "Each group has the Designated QPN {:#x}, the first PSN {FIRST:#x}, branches {} and {}; copies go to \
                 {} and {}.",
                self.designated_qpn, self.node_left, self.node_right, self.sid_left, self.sid_right
            ),
        ];
        for group in GROUPS {
            let role = match group.is_root() {
                true => format!(
                    "root and headend of the source {}, queue pair {:#x}, with the lists in each packet",
                    self.source,
                    self.source_qpn(group)
                ),
                false => format!("transit node by End.Replicate {}, below the parent", self.sid(group)),
            };
            words.push(format!("Group {}: Proxy Address {}; {role}.", group.number(), self.proxy(group)));
        }
        for group in GROUPS.into_iter().filter(|group| group.is_root()) {
            for ((_, edge, _), receivers) in self.branches().iter().zip(self.receivers(group)) {
                let receivers = receivers.iter().map(|(address, qpn)| format!("{address} QP {qpn:#x}"));
                let receivers = receivers.collect::<Vec<_>>().join(", ");
                words.push(format!("In group {} the list of edge {edge} is {receivers}.", group.number()));
            }
        }
        words
    }

    fn configuration(&self) -> String {
        let mut toml = NodeToml::new(self.device, "");
        for port in [self.up(), self.left(), self.right()] {
            toml = toml.port(port, self.tester);
        }
        toml = toml.neighbour(self.up(), self.parent).route(&self.source.to_string(), self.tester, UP).route(
            &self.stranger.to_string(),
            self.tester,
            LEFT,
        );
        for ((port, _), node, sid) in self.branches() {
            toml = toml.route(&node.to_string(), self.tester, port).route(&sid.to_string(), self.tester, port);
        }
        for group in GROUPS {
            if !group.is_root() {
                let (sid, id) = (self.sid(group), group.number());
                toml = toml.add(&format!("[[sid]]\nsid = \"{sid}\"\nbehavior = \"End.Replicate\"\ngroup = {id}"));
            }
            toml = toml.add(&self.group(group));
        }
        toml.0
    }

    fn group(&self, group: Group) -> String {
        let above = match group.is_root() {
            true => format!("source = {{ address = \"{}\", qpn = {:#x} }}", self.source, self.source_qpn(group)),
            false => format!("sid = \"{}\"\nparent = {{ loopback = \"{}\" }}", self.sid(group), self.parent),
        };
        let mut text = format!(
            "[[group]]\nid = {}\nproxy = \"{}\"\ndesignated_qpn = {:#x}\ninitial_psn = {FIRST:#x}\nrole = \"transit\"\n\
             {above}\nbranches = [\"{}\", \"{}\"]\ndownstream = [\"{}\", \"{}\"]\n",
            group.number(),
            self.proxy(group),
            self.designated_qpn,
            self.node_left,
            self.node_right,
            self.sid_left,
            self.sid_right
        );
        if group.is_root() {
            text += "\n[group.headend]\n";
            for ((_, edge, _), receivers) in self.branches().iter().zip(self.receivers(group)) {
                let receivers: Vec<String> = receivers
                    .iter()
                    .map(|(address, qpn)| format!("{{ address = \"{address}\", qpn = {qpn:#x} }}"))
                    .collect();
                let receivers = receivers.join(", ");
                text += &format!("\n[[group.headend.list]]\nedge = \"{edge}\"\nreceiver = [{receivers}]\n");
            }
        }
        text + &format!("\n[group.policy]\ncnp_window = \"{CNP_WINDOW_MS}ms\"\n")
    }
}
