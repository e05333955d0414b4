//! END.C: notifications of a congested WAN, passed to the gateway by priority flow control at the ingress PE.

use super::{NodeToml, Profile, left, sent};
use crate::octets::{EXPERIMENTAL, ICMPV6, icmpv6_error, ipv6, pfc, srh, tunnelled, with_octets};
use crate::parameters::{Port, address, parameters};
use crate::{Case, Expected, Frame};
use srdma_testkit::checksums;
use std::net::Ipv6Addr;

pub(super) const ABOUT: &str =
    "END.C: notifications of a congested WAN, passed to the gateway by priority flow control";

/// The class of the congested queue, and the priority that it is mapped to.
const CLASS: u8 = 5;
const PRIORITY: u8 = 3;
/// A class that is mapped to nothing.
const UNMAPPED: u8 = 2;
/// Hold time of a notification, in microseconds. At the link's rate a pause of 65535 quanta lasts 335 ms, so that none
/// has to be refreshed in this time.
const HOLD_US: u32 = 50_000;
const RATE_BITS_PER_S: u64 = 100_000_000;
/// Hold time in which a pause has to be refreshed: only a resume prevents that.
const LONG_HOLD_US: u32 = 400_000;
const QUANTA: u16 = 0xFFFF;

/// Codes of notifications.
const PAUSE: u8 = 0;
const RESUME: u8 = 1;

parameters! {
    /// Parameters of the profile.
    EndC {
        /// MAC addresses on the link `wan`.
        wan: Port = Port::numbered(1),
        /// MAC addresses on the link `gateway`.
        gateway: Port = Port::numbered(2),
        /// The device's loopback.
        device: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 1]),
        /// The tester's address on each link: the next hop of every route.
        tester: Ipv6Addr = address([0xfe80, 0, 0, 0, 0, 0, 0, 9]),
        /// The device's END.C.
        end_c: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 9, 0, 0, 0, 0xc]),
        /// The loopback of a congested router, behind `wan`: the first of a range, one address for each case.
        router: Ipv6Addr = address([0x2001, 0xdb8, 0xff, 3, 0, 0, 0, 1]),
    }
}

/// Content of a notification.
struct Say {
    code: u8,
    class: u8,
    sequence: u32,
    hold_us: u32,
}

impl EndC {
    fn wan(&self) -> (&'static str, Port) {
        ("wan", self.wan)
    }

    fn router(&self, number: u16) -> Ipv6Addr {
        super::multicast::numbered(self.router, number)
    }

    /// The notification of D60 in its packet.
    fn message(&self, router: Ipv6Addr, say: &Say) -> Vec<u8> {
        let level = if say.code == PAUSE { 128 } else { 0 };
        let mut message = vec![200, say.code, 0, 0, 1, say.class, level, 0];
        message.extend(say.sequence.to_be_bytes());
        message.extend(say.hold_us.to_be_bytes());
        message.extend(router.octets());
        let packet = ipv6(router, self.end_c, ICMPV6, &message);
        let checksum = checksums::icmpv6(&packet).to_be_bytes();
        with_octets(packet, 42, &checksum)
    }

    /// The notification as it travels.
    fn notification(&self, number: u16, say: &Say) -> Frame {
        let router = self.router(number);
        sent(self.wan(), &tunnelled(router, self.end_c, &[], &self.message(router, say)))
    }

    fn pfc(&self, quanta: u16) -> Expected {
        Expected::exactly("gateway", pfc(self.gateway.device_mac.0, PRIORITY, quanta))
    }

    fn cases(&self) -> Vec<Case> {
        let pause = |class, hold_us| Say { code: PAUSE, class, sequence: 10, hold_us };
        let resume = Say { code: RESUME, class: CLASS, sequence: 11, hold_us: 0 };
        let router = self.router(4);
        let foreign = self.message(self.router(5), &pause(CLASS, HOLD_US));
        let good = self.message(self.router(6), &pause(CLASS, HOLD_US));
        let damaged = with_octets(good, 40 + 5, &[CLASS ^ 1]);
        let other = ipv6(router, self.end_c, EXPERIMENTAL, &[1; 8]);
        let refused = icmpv6_error(self.device, 4, 4, 40, &other);
        let list = srh(crate::octets::IPV6, 0, &[self.end_c], &[]);
        let with_srh = self.message(self.router(3), &pause(CLASS, HOLD_US));
        vec![
            Case::new(
                "pause-until-the-hold-time",
                "A notification pauses the priority that its class is mapped to, until the hold time is over.",
                &["CN-4.1-1", "CN-4.1-2"],
            )
            .send(self.notification(0, &pause(CLASS, HOLD_US)))
            .takes_ms(200)
            .expect_all([self.pfc(QUANTA), self.pfc(0)]),
            Case::new("pause-and-resume", "A resume ends the pause before its hold time does.", &["CN-4.1-1"])
                .send(self.notification(1, &pause(CLASS, LONG_HOLD_US)))
                .send(self.notification(1, &resume))
                .gap_ms(20)
                .takes_ms(600)
                .expect_all([self.pfc(QUANTA), self.pfc(0)]),
            Case::new("with-srh", "An SRH without segments left is no obstacle.", &["CN-4.1-1"])
                .send(sent(self.wan(), &tunnelled(self.router(3), self.end_c, &list, &with_srh)))
                .takes_ms(200)
                .expect_all([self.pfc(QUANTA), self.pfc(0)]),
            Case::new("unmapped-class", "A class that is mapped to no priority pauses nothing.", &["CN-4.1-1"])
                .send(self.notification(2, &pause(UNMAPPED, HOLD_US))),
            Case::new("damaged", "A notification with a bad checksum pauses nothing.", &["CN-4.1-1"])
                .send(sent(self.wan(), &tunnelled(self.router(6), self.end_c, &[], &damaged))),
            Case::new("in-another-name", "A notification in another node's name pauses nothing.", &["CN-4.1-1"])
                .send(sent(self.wan(), &tunnelled(router, self.end_c, &[], &foreign))),
            Case::new(
                "not-ipv6",
                "A payload other than IPv6 causes a Parameter Problem, code 4.",
                &["RFC 8986 4.1.1", "CN-4.1-2"],
            )
            .send(sent(self.wan(), &other))
            .expect(left(self.wan(), &refused).icmpv6_error(14)),
        ]
    }
}

/// The profile with these parameters.
pub(super) fn profile(pe: &EndC) -> Profile {
    let gateway = ("gateway", pe.gateway);
    let tester = pe.tester;
    let mut configuration = NodeToml::new(pe.device, "").port(pe.wan(), tester).port(gateway, tester);
    for number in 0..8 {
        configuration = configuration.route(&pe.router(number).to_string(), tester, "wan");
    }
    let configuration = configuration
        .add(&format!("[[sid]]\nsid = \"{}\"\nbehavior = \"END.C\"", pe.end_c))
        .add(&format!("[[traffic_class]]\nclass = {PRIORITY}\ndscps = [26]"))
        .add(&format!("[[egress]]\nport = \"gateway\"\nrate_bits_per_s = {RATE_BITS_PER_S}"))
        .add(&format!(
            "[[egress.class]]\nclass = {PRIORITY}\npfc = {{ xoff_octets = 300_000, xon_octets = 200_000, \
             headroom_octets = 100_000, quanta = {QUANTA} }}"
        ))
        .add("[backpressure]\ngreatest_hold = \"500ms\"")
        .add(&format!(
            "[[backpressure.priority]]\ntraffic_class = {CLASS}\nports = [\"gateway\"]\npriority = {PRIORITY}"
        ));
    let last = pe.router(7);
    Profile {
        name: "end-c",
        about: ABOUT,
        ports: vec![pe.wan(), gateway],
        words: vec![
            format!("The device's loopback is {}, and {} is END.C.", pe.device, pe.end_c),
            format!("{} to {last} are reached by {tester} on wan; they may request pauses.", pe.router),
            format!(
                "Notifications are those of D60; class {CLASS} is mapped to priority {PRIORITY} of gateway, none else."
            ),
            format!(
                "Pauses are of {QUANTA} quanta, at {RATE_BITS_PER_S} bit/s; hold times of up to 500 ms are accepted."
            ),
        ],
        configuration: configuration.0,
        parameters: pe.list(),
        cases: pe.cases(),
        untested: vec![
            ("CN-3-1", "the scenario is a network, not a device"),
            ("CN-4.1-3", "the reaction of a gateway to a pause is not the PE's"),
            ("CN-4.2-1", "END.E is tested by the profile end-e"),
            ("CN-4.2-2", "END.E is tested by the profile end-e"),
            ("CN-5.1-1", "announcements of IS-IS are not sent by data packets"),
            ("CN-5.1-2", "announcements of IS-IS are not sent by data packets"),
            ("CN-5.2-1", "announcements of OSPFv3 are not sent by data packets"),
            ("CN-7-1", "the profile has one configuration, with the code points by default"),
        ],
    }
}
