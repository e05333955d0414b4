//! Fast CNP at a switch: sent to senders at once, translated at a first hop, kept inside the domain.
//!
//! A pause causes the congestion: frames for a paused port are queued, and a packet that arrives behind them meets
//! congestion.

use super::multicast::{IPV6_AT, marked};
use super::{NodeToml, Profile, left, sent};
use crate::octets::{ACKNOWLEDGE, SEND_ONLY, pfc, with_hop_limit};
use crate::parameters::{Port, address, parameters};
use crate::{Case, Expected, Frame, Remade};
use srdma_testkit::packets::{cnp, fast_cnp, rocev2, with_options};
use std::net::Ipv6Addr;

pub(super) const ABOUT: &str = "Fast CNP at a switch: notified senders, CNPs for hosts without support, borders";

/// The class of the data, and its DSCP (that of [`marked`]).
const CLASS: u8 = 3;
const DSCP: u8 = 26;
/// The first queue pair of the data's receiver; each case has its own.
const QPN: u32 = 0xA0;
/// The queue pair of the host without Fast CNP, at the host itself.
const HOST_QPN: u32 = 0x11;

parameters! {
    /// Parameters of the profile.
    FastCnp {
        /// MAC addresses on the link `hosts`, where senders are.
        hosts: Port = Port::numbered(1),
        /// MAC addresses on the link `core`, which is congested.
        core: Port = Port::numbered(2),
        /// MAC addresses on the link `outside`, a border of the domain.
        outside: Port = Port::numbered(3),
        /// The device's loopback, the source of its Fast CNPs.
        device: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 1]),
        /// The tester's address on each link: the next hop of every route.
        tester: Ipv6Addr = address([0xfe80, 0, 0, 0, 0, 0, 0, 9]),
        /// A sender that is known to process Fast CNPs, behind `hosts`.
        capable: Ipv6Addr = address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1]),
        /// A sender of which that is not known, behind `hosts`.
        unknown: Ipv6Addr = address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 2]),
        /// A host without support of Fast CNPs, behind `hosts`.
        translated: Ipv6Addr = address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 3]),
        /// Destination of data, behind `core`.
        receiver: Ipv6Addr = address([0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 1]),
        /// Another switch of the domain, behind `core`.
        switch: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 2, 0, 0, 0, 1]),
        /// A node that is no switch of the domain, behind `core`.
        stranger: Ipv6Addr = address([0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 0x66]),
        /// A host outside the domain, behind `outside`.
        foreigner: Ipv6Addr = address([0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1]),
        /// A block that no SID of the domain lies outside of; the device has none.
        sids: Ipv6Addr = address([0x5f00, 0, 0, 0, 0, 0, 0, 0]),
    }
}

/// The profile with these parameters.
pub(super) fn profile(switch: &FastCnp) -> Profile {
    Profile {
        name: "fast-cnp",
        about: ABOUT,
        ports: vec![switch.hosts(), switch.core(), switch.outside()],
        words: switch.words(),
        configuration: switch.configuration(),
        parameters: switch.list(),
        cases: [switch.notified(), switch.first_hop(), switch.borders()].concat(),
        untested: vec![
            ("FC-3-2", "the behaviour of a receiver is not a switch's"),
            ("FC-4-7", "the behaviour of a sender is not a switch's"),
            ("FC-4-8", "the behaviour of a sender is not a switch's"),
            ("FC-4-9", "the behaviour of a sender is not a switch's"),
            ("FC-5-4", "the profile has one configuration, in which Fast CNP is on"),
            ("FC-6-1", "the profile has one configuration, with the option types by default"),
        ],
    }
}

impl FastCnp {
    fn hosts(&self) -> (&'static str, Port) {
        ("hosts", self.hosts)
    }

    fn core(&self) -> (&'static str, Port) {
        ("core", self.core)
    }

    fn outside(&self) -> (&'static str, Port) {
        ("outside", self.outside)
    }

    /// Data of a sender.
    fn data(&self, sender: Ipv6Addr, qpn: u32, psn: u32) -> Vec<u8> {
        marked(rocev2(sender, self.receiver, SEND_ONLY, qpn, psn, b"sixteen octets.."))
    }

    /// The port `core` is paused, these packets come, and it is resumed.
    fn congested(&self, case: Case, packets: &[Vec<u8>]) -> Case {
        let pause = |quanta| Frame { port: "core", octets: pfc(self.core.tester_mac.0, CLASS, quanta) };
        let case = case.send(pause(0xFFFF));
        packets.iter().fold(case, |case, packet| case.send(sent(self.hosts(), packet))).send(pause(0)).takes_ms(400)
    }

    /// A packet that leaves by `core`, one hop on.
    fn passed(&self, packet: &[u8]) -> Expected {
        left(self.core(), &with_hop_limit(packet.to_vec(), packet[7] - 1))
    }

    /// A packet that may have been marked on the way.
    fn passed_or_marked(&self, packet: &[u8]) -> Expected {
        self.passed(packet).free(IPV6_AT + 1, &[0x30])
    }

    /// A Fast CNP of the device, with extension headers of so many octets. UDP source port and checksum are its choice.
    fn fast_cnp_sent(&self, packet: &[u8], extension_octets: usize) -> Expected {
        let udp_at = IPV6_AT + 40 + extension_octets;
        left(self.hosts(), packet)
            .free_header(IPV6_AT)
            .free(udp_at, &[0xFF; 2])
            .remade(Remade::IcrcWithout(IPV6_AT, extension_octets))
    }

    fn notified(&self) -> Vec<Case> {
        let of = |sender, qpn| [0, 1, 2].map(|psn| self.data(sender, qpn, psn));
        let fast = |sender, qpn| self.fast_cnp_sent(&fast_cnp(self.device, sender, self.receiver, qpn), 24);
        let [first, second, _] = of(self.capable, QPN);
        let known = Case::new(
            "sender-is-notified",
            "A packet that meets congestion has its sender notified by option 1, and is not marked.",
            &["FC-3-1", "FC-4-1", "FC-4-2", "FC-4-3", "FC-4-4", "FC-4-6"],
        );
        let known = self.congested(known, &[first.clone(), second.clone()]);
        let known = known.expect(fast(self.capable, QPN)).expect_all([self.passed(&first), self.passed(&second)]);

        let limited =
            Case::new("once-an-interval", "A flow is notified once, for any number of further packets.", &["FC-5-2"]);
        let [first, second, third] = of(self.capable, QPN + 1);
        let limited = self.congested(limited, &[first.clone(), second.clone(), third.clone()]);
        let limited = limited.expect(fast(self.capable, QPN + 1));
        let limited = limited.expect_all([self.passed(&first), self.passed(&second), self.passed_or_marked(&third)]);

        let [first, second, _] = of(self.unknown, QPN + 2);
        let unknown = Case::new(
            "sender-of-unknown-capability",
            "A sender of unknown capability gets a Fast CNP, and the packet may be marked as well.",
            &["FC-4-1", "FC-4-5"],
        );
        let unknown = self.congested(unknown, &[first.clone(), second.clone()]);
        let unknown = unknown.expect(fast(self.unknown, QPN + 2));
        let unknown = unknown.expect_all([self.passed(&first), self.passed_or_marked(&second)]);

        let waiting = self.data(self.foreigner, QPN + 3, 0);
        let ack = marked(rocev2(self.capable, self.receiver, ACKNOWLEDGE, QPN + 3, 0, &[0x1F, 0, 0, 1]));
        let acks = Case::new(
            "acks-cause-no-fast-cnp",
            "ACKs cause no Fast CNP: their sender has no rate to reduce.",
            &["FC-4-1"],
        );
        let acks = self.congested(acks, &[waiting.clone(), ack.clone()]);
        let acks = acks.expect_all([self.passed(&waiting), self.passed_or_marked(&ack)]);
        vec![known, limited, unknown, acks, self.traced()]
    }

    /// A packet with an IOAM trace (RFC 9197): two nodes have written their hop limit and id.
    fn traced(&self) -> Case {
        let trace = [&[0, 0, 0x08, 0, 0x80, 0, 0, 0][..], &[62, 0, 0, 2], &[63, 0, 0, 1]].concat();
        let option = [&[0x31, 2 + trace.len() as u8, 0, 0][..], &trace].concat();
        let header = |data: Vec<u8>| {
            let hop_by_hop = [&[17, 2, 1, 0][..], &option].concat();
            let mut packet = data;
            let length = u16::from_be_bytes([packet[4], packet[5]]) + hop_by_hop.len() as u16;
            packet[4..6].copy_from_slice(&length.to_be_bytes());
            packet[6] = 0;
            packet.splice(40..40, hop_by_hop);
            packet
        };
        let qpn = QPN + 4;
        let [first, second] = [0, 1].map(|psn| header(self.data(self.capable, qpn, psn)));
        let address = self.receiver.octets();
        let reflected = [&[1, 0, 0x9E, (2 + trace.len() + 16) as u8, 0, 0][..], &trace, &address].concat();
        let expected = with_options(cnp(self.device, self.capable, qpn), &reflected);
        let case = Case::new(
            "trace-is-returned",
            "The IOAM trace of a packet is returned in option 2.",
            &["FC-4-1", "FC-4-2", "FC-4-3"],
        );
        let case = self.congested(case, &[first.clone(), second.clone()]);
        case.expect(self.fast_cnp_sent(&expected, 40)).expect_all([self.passed(&first), self.passed(&second)])
    }

    fn first_hop(&self) -> Vec<Case> {
        let peer_qpn = QPN + 8;
        let from = |switch| sent(self.core(), &fast_cnp(switch, self.translated, self.receiver, peer_qpn));
        let standard = cnp(self.receiver, self.translated, HOST_QPN);
        let translated = Case::new(
            "translated",
            "For a host without support of the option a Fast CNP becomes a standard CNP to its own queue pair.",
            &["FC-O-1"],
        );
        let stranger =
            Case::new("not-of-a-switch", "A Fast CNP of an address that is no switch's is dropped.", &["FC-5-3"]);
        vec![
            translated.send(from(self.switch)).expect(
                left(self.hosts(), &standard)
                    .free_header(IPV6_AT)
                    .free(IPV6_AT + 40, &[0xFF; 2])
                    .remade(Remade::Icrc(IPV6_AT)),
            ),
            stranger.send(from(self.stranger)),
        ]
    }

    fn borders(&self) -> Vec<Case> {
        let inward = fast_cnp(self.foreigner, self.capable, self.receiver, QPN + 5);
        let outward = fast_cnp(self.switch, self.foreigner, self.receiver, QPN + 6);
        let plain = cnp(self.foreigner, self.capable, QPN + 7);
        let passed = left(self.hosts(), &with_hop_limit(plain.clone(), 63));
        vec![
            Case::new("border-inward", "A Fast CNP from outside a border is dropped.", &["FC-5-1"])
                .send(sent(self.outside(), &inward)),
            Case::new("border-outward", "A Fast CNP does not go out by a border.", &["FC-5-1"])
                .send(sent(self.core(), &outward)),
            Case::new("border-cnp", "A standard CNP passes a border.", &["FC-5-1", "FC-3-1"])
                .send(sent(self.outside(), &plain))
                .expect(passed),
        ]
    }

    fn words(&self) -> Vec<String> {
        let tester = self.tester;
        vec![
            format!("The device's loopback is {}; its Fast CNPs have it as source.", self.device),
            format!("{}, {} and {} are reached by {tester} on hosts.", self.capable, self.unknown, self.translated),
            format!("{}, {} and {} are reached by {tester} on core.", self.receiver, self.switch, self.stranger),
            format!("{} is reached by {tester} on outside, which is a border of the domain.", self.foreigner),
            format!("DSCP {DSCP} is class {CLASS} of core, with priority flow control; rate 100 Mbit/s."),
            format!(
                "A packet behind any queued octet of that class causes a notification, if its sender is {} or {}.",
                self.capable, self.unknown
            ),
            format!("{} is known to process Fast CNPs. A flow is notified once in 10 ms.", self.capable),
            format!(
                "{} does not support Fast CNPs; its queue pair {HOST_QPN:#x} has the peer {}, queue pair {:#x}.",
                self.translated,
                self.receiver,
                QPN + 8
            ),
            format!("Fast CNPs of other switches are accepted from {}.", self.switch),
        ]
    }

    fn configuration(&self) -> String {
        let tester = self.tester;
        let quoted = |addresses: &[Ipv6Addr]| {
            addresses.iter().map(|address| format!("\"{address}\"")).collect::<Vec<_>>().join(", ")
        };
        let [hosts, core, outside] = [
            vec![self.capable, self.unknown, self.translated],
            vec![self.receiver, self.switch, self.stranger],
            vec![self.foreigner],
        ];
        let all = quoted(&[&hosts[..2], &core, &outside].concat());
        let mut toml = NodeToml::in_domain(self.device, &format!("forwards = [{all}]\n"));
        for (port, addresses) in [(self.hosts(), &hosts), (self.core(), &core), (self.outside(), &outside)] {
            toml = toml.port(port, tester);
            for address in addresses {
                toml = toml.route(&address.to_string(), tester, port.0);
            }
        }
        toml.add(&format!(
            "[domain]\nsids = [\"{}/16\"]\ninfrastructure = [{}]",
            self.sids,
            quoted(&[self.device, self.switch])
        ))
        .add("[[inside]]\nport = \"hosts\"\n\n[[inside]]\nport = \"core\"")
        .add(&format!("[[traffic_class]]\nclass = {CLASS}\ndscps = [{DSCP}]"))
        .add(&format!(
            "[[egress]]\nport = \"core\"\nrate_bits_per_s = 100_000_000\n\n[[egress.class]]\nclass = {CLASS}\n\
             notify_octets = 0\n\
             pfc = {{ xoff_octets = 300_000, xon_octets = 200_000, headroom_octets = 100_000 }}"
        ))
        .add(&format!(
            "[fast_cnp]\nsenders = [{}]\ncapable = [{}]\nswitches = [{}]\ntranslated = [{}]\ninterval = \"10ms\"",
            quoted(&[self.capable, self.unknown]),
            quoted(&[self.capable]),
            quoted(&[self.switch]),
            quoted(&[self.translated])
        ))
        .add(&format!(
            "[[connection]]\nhost = \"{}\"\nhost_qpn = {HOST_QPN:#x}\npeer = \"{}\"\npeer_qpn = {:#x}",
            self.translated,
            self.receiver,
            QPN + 8
        ))
        .0
    }
}
