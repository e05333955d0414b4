//! End.MT and the aggregation of responses at an edge, a node next to receivers (multicast draft).

mod copies;
mod responses;

use super::multicast::{data, numbered, response};
use super::{NodeToml, Profile};
use crate::Case;
use crate::octets::multicast::end_mt_tlv;
use crate::octets::{IPV6, srh, tunnelled};
use crate::parameters::{Port, address, parameters};
use srdma_testkit::multicast::{Receiver, copy_for};
use std::net::Ipv6Addr;

pub(super) const ABOUT: &str = "End.MT and the aggregation of responses at an edge, next to receivers";

const UP: &str = "up";
const DOWN: &str = "down";

/// Receivers that packets may name.
const RECEIVERS: u16 = 11;
/// Queue pairs that a receiver may have for one group and the next.
const QPNS_OF_A_GROUP: u16 = 16;
/// Receivers of each group's provisioned list.
const PROVISIONED: u16 = 2;
/// The key of `end_mt_signed`, and its id.
const KEY: (u32, &[u8; 32]) = (42, b"secret-key-for-tests-0123456789a");
/// Memory region that the source writes to: base, octets, R_Key.
const REGION: (u64, u64, u32) = (0x7F00_0000_0000, 1 << 20, 0x1234);
/// The window of CNPs, in milliseconds.
const CNP_WINDOW_MS: u64 = 100;

/// The groups: each case that leaves state behind has its own.
#[derive(Clone, Copy)]
enum Group {
    Data,
    Write,
    Signed,
    Acks,
    Wrap,
    Naks,
    NakAbove,
    Rnr,
    Cnps,
    Stranger,
    Damaged,
    Ahead,
    Requests,
    /// The device has no record of it: its receivers are those that packets list.
    Unrecorded,
}

/// The groups that the device has.
const GROUPS: [Group; 13] = [
    Group::Data,
    Group::Write,
    Group::Signed,
    Group::Acks,
    Group::Wrap,
    Group::Naks,
    Group::NakAbove,
    Group::Rnr,
    Group::Cnps,
    Group::Stranger,
    Group::Damaged,
    Group::Ahead,
    Group::Requests,
];

impl Group {
    fn number(self) -> u16 {
        self as u16 + 1
    }

    /// The first PSN of the source.
    fn initial_psn(self) -> u32 {
        match self {
            Group::Wrap => 0xFF_FFFF,
            _ => 0x100,
        }
    }
}

parameters! {
    /// Parameters of the profile.
    EndMt {
        /// MAC addresses on the link `up`.
        up: Port = Port::numbered(1),
        /// MAC addresses on the link `down`.
        down: Port = Port::numbered(2),
        /// Loopback of the device, the source of its responses upstream.
        device: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 1]),
        /// The tester's address on `down`, the next hop toward the receivers.
        tester: Ipv6Addr = address([0xfe80, 0, 0, 0, 0, 0, 0, 9]),
        /// The device's End.MT SID.
        end_mt: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xe]),
        /// The device's End.MT SID that demands an HMAC TLV.
        end_mt_signed: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xe5]),
        /// The loopback of the parent, a neighbour on `up`.
        parent: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 1]),
        /// The loopback of the headend, the outer source of data.
        headend: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 6, 0, 0, 0, 1]),
        /// The source's address.
        source: Ipv6Addr = address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1]),
        /// The first receiver's address, behind `down`; ten more follow it.
        receiver: Ipv6Addr = address([0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 1]),
        /// The first receiver's queue pair in the first group; those of the others follow it, 16 for each group.
        receiver_qpn: u32 = 0x1001,
        /// The first group's Proxy Address; those of the others follow it.
        proxy: Ipv6Addr = address([0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, 1]),
        /// The Designated QPN of all groups.
        designated_qpn: u32 = 0xd0_0000,
        /// The loopback of another edge.
        other_edge: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 2, 0, 0, 0, 1]),
        /// A host that is no receiver, behind `down`.
        stranger: Ipv6Addr = address([0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 0x99]),
    }
}

/// The profile with these parameters.
pub(super) fn profile(edge: &EndMt) -> Profile {
    Profile {
        name: "end-mt",
        about: ABOUT,
        ports: vec![edge.up(), edge.down()],
        words: edge.words(),
        configuration: edge.configuration(),
        parameters: edge.list(),
        cases: [copies::all(edge), responses::all(edge)].concat(),
        untested: vec![
            ("MT-3-1", "that hosts need not change is seen with hosts, not with a node"),
            ("MT-3-2", "replication in the tree is tested by the profile end-replicate"),
            ("MT-5.1-1", "queue pairs are the hosts'"),
            ("MT-5.1-2", "the control plane is not between these ports"),
            ("MT-5.2-1", "the headend is tested by the profile end-replicate"),
            ("MT-5.2-2", "replication in the tree is tested by the profile end-replicate"),
            ("MT-5.3.1-4", "the node next to the source is tested by the profile end-replicate"),
            ("MT-5.3.3-3", "a window that adapts may do so in any way"),
            ("MT-5.3.3-4", "the node next to the source is tested by the profile end-replicate"),
            ("MT-8-1", "the amount of state of a device does not show in its packets"),
            ("MT-9-3", "how many CNPs a branch may send is the device's policy"),
            ("MT-10-1", "the profile has one configuration, with the code points by default"),
        ],
    }
}

impl EndMt {
    fn up(&self) -> (&'static str, Port) {
        (UP, self.up)
    }

    fn down(&self) -> (&'static str, Port) {
        (DOWN, self.down)
    }

    fn proxy(&self, group: Group) -> Ipv6Addr {
        numbered(self.proxy, group.number() - 1)
    }

    /// The address of the receiver of this number, from 0.
    fn address(&self, number: u16) -> Ipv6Addr {
        numbered(self.receiver, number)
    }

    /// The receiver of this number, from 0. For each group it has a queue pair of its own (D2).
    fn receiver(&self, group: Group, number: u16) -> Receiver {
        let qpn = self.receiver_qpn + u32::from((group.number() - 1) * QPNS_OF_A_GROUP + number);
        Receiver { address: self.address(number), qpn, region: None, psn_offset: 0 }
    }

    /// The first receivers, as lists name them.
    fn listed(&self, group: Group, count: u16) -> Vec<(Ipv6Addr, u32)> {
        (0..count).map(|number| self.receiver(group, number)).map(|receiver| (receiver.address, receiver.qpn)).collect()
    }

    /// A list of this edge.
    fn tlv(&self, group: Group, count: u16) -> Vec<u8> {
        end_mt_tlv(self.device, &self.listed(group, count))
    }

    /// A data packet of a group, as the source sends it.
    fn data(&self, group: Group, psn: u32) -> Vec<u8> {
        data(self.source, self.proxy(group), self.designated_qpn, psn)
    }

    /// A data packet for the edge, with these TLVs in its SRH.
    fn tunnel(&self, group: Group, tlvs: &[u8], inner: &[u8]) -> Vec<u8> {
        tunnelled(self.headend, self.end_mt, &srh(IPV6, 1, &[self.proxy(group)], tlvs), inner)
    }

    /// Copies of a packet of the source for the first receivers.
    fn copies(&self, group: Group, inner: &[u8], count: u16) -> Vec<Vec<u8>> {
        (0..count).map(|number| copy_for(inner, &self.receiver(group, number), REGION.0)).collect()
    }

    /// A step in which the source sends these PSNs to the provisioned receivers: an edge accepts responses only to what
    /// it has sent.
    fn sends(&self, case: Case, group: Group, psns: &[u32]) -> Case {
        psns.iter().fold(case, |case, psn| {
            let inner = self.data(group, *psn);
            let copies = self.copies(group, &inner, PROVISIONED);
            let case = case.send(super::sent(self.up(), &self.tunnel(group, &[], &inner)));
            case.expect_all(copies.iter().map(|copy| super::left(self.down(), copy)))
        })
    }

    /// A response of a receiver.
    fn receiver_says(&self, group: Group, number: u16, psn: u32, syndrome: u8) -> Vec<u8> {
        response(self.address(number), self.proxy(group), self.designated_qpn, psn, syndrome)
    }

    /// Response of the edge to its parent.
    fn upstream(&self, group: Group, psn: u32, syndrome: u8) -> Vec<u8> {
        response(self.device, self.proxy(group), self.designated_qpn, psn, syndrome)
    }

    fn words(&self) -> Vec<String> {
        let last = numbered(self.receiver, RECEIVERS - 1);
        let mut words = vec![
            format!("The device's loopback is {}; its responses upstream have it as source.", self.device),
            format!("The parent {} is a neighbour on up.", self.parent),
            format!(
                "Routes to {} to {last}, and to {}, lead to {} on down.",
                self.receiver, self.stranger, self.tester
            ),
            format!("{} is End.MT.", self.end_mt),
            format!(
                "{} is End.MT and takes only packets with an HMAC TLV: key id {}, key {}, over the text of RFC 8754 \
                 and each End.MT and MR TLV after it (D9).",
                self.end_mt_signed,
                KEY.0,
                hex::encode(KEY.1)
            ),
            format!(
                "It is an edge of {} groups: Designated QPN {:#x}, parent as above, the first {PROVISIONED} \
                 receivers provisioned.",
                GROUPS.len(),
                self.designated_qpn
            ),
            format!("CNPs are counted in windows of {CNP_WINDOW_MS} ms, and one is sent at the end of a window."),
        ];
        words.push(format!(
            "It has no record of the group with Proxy Address {}, whose receivers are those that packets list.",
            self.proxy(Group::Unrecorded)
        ));
        for group in GROUPS {
            words.push(format!(
                "Group {}: Proxy Address {}, first PSN {:#x}, queue pairs of the receivers {:#x} and {:#x}.",
                group.number(),
                self.proxy(group),
                group.initial_psn(),
                self.receiver(group, 0).qpn,
                self.receiver(group, 1).qpn
            ));
        }
        words.push(format!(
            "In group {} the source writes to {:#x}, {} octets, R_Key {:#x}; at the receivers that is {}.",
            Group::Write.number(),
            REGION.0,
            REGION.1,
            REGION.2,
            (0..PROVISIONED)
                .map(region)
                .map(|(base, key)| format!("{base:#x}, {key:#x}"))
                .collect::<Vec<_>>()
                .join(" and ")
        ));
        words
    }

    fn configuration(&self) -> String {
        let mut toml = NodeToml::new(self.device, "")
            .port(self.up(), self.tester)
            .port(self.down(), self.tester)
            .neighbour(self.up(), self.parent);
        for number in 0..RECEIVERS {
            toml = toml.route(&self.address(number).to_string(), self.tester, DOWN);
        }
        toml = toml
            .route(&self.stranger.to_string(), self.tester, DOWN)
            .route(&self.headend.to_string(), self.tester, UP)
            .add(&format!("[[sid]]\nsid = \"{}\"\nbehavior = \"End.MT\"", self.end_mt))
            .add(&format!("[[sid]]\nsid = \"{}\"\nbehavior = \"End.MT\"\nrequire_hmac = true", self.end_mt_signed))
            .add(&format!("[[hmac_key]]\nid = {}\nkey = \"{}\"\ncover = \"tlvs\"", KEY.0, hex::encode(KEY.1)));
        for group in GROUPS {
            toml = toml.add(&self.group(group));
        }
        toml.0
    }

    fn group(&self, group: Group) -> String {
        let sid = if matches!(group, Group::Signed) { self.end_mt_signed } else { self.end_mt };
        let mut text = format!(
            "[[group]]\nid = {}\nproxy = \"{}\"\ndesignated_qpn = {:#x}\ninitial_psn = {:#x}\nrole = \"edge\"\n\
             sid = \"{sid}\"\nparent = {{ loopback = \"{}\" }}\n",
            group.number(),
            self.proxy(group),
            self.designated_qpn,
            group.initial_psn(),
            self.parent
        );
        let is_write = matches!(group, Group::Write);
        if is_write {
            let (base, length, rkey) = REGION;
            text += &format!("region = {{ base = {base:#x}, length = {length}, rkey = {rkey:#x} }}\n");
        }
        for number in 0..PROVISIONED {
            let receiver = self.receiver(group, number);
            text += &format!("\n[[group.receiver]]\naddress = \"{}\"\nqpn = {:#x}\n", receiver.address, receiver.qpn);
            if is_write {
                let (base, rkey) = region(number);
                text += &format!("base = {base:#x}\nrkey = {rkey:#x}\n");
            }
        }
        text + &format!("\n[group.policy]\ncnp_window = \"{CNP_WINDOW_MS}ms\"\n")
    }
}

/// Address of the region at the receiver of this number, and its key.
fn region(number: u16) -> (u64, u32) {
    (0x7F11_0000_0000 + (u64::from(number) << 32), 0xA1 + u32::from(number))
}
