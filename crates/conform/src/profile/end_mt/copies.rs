//! Data in the direction of the receivers: copies.

use super::{EndMt, Group, KEY, REGION, region};
use crate::octets::multicast::{WRITE_ONLY, end_mt_tlv, mr_tlv, signed_srh};
use crate::octets::{
    CE, IPV6, UDP, icmpv6_error, ipv6, srh, tunnelled, with_ecn, with_hop_limit, with_octets, with_udp_checksum,
};
use crate::profile::multicast::{IPV6_AT, marked};
use crate::profile::{left, sent};
use crate::{Case, Expected};
use srdma_testkit::multicast::{Receiver, copy_for};
use srdma_testkit::packets::rocev2;
use std::net::Ipv6Addr;

type Ids = &'static [&'static str];

/// Offset of the SRH in a packet, and of its first TLV behind one segment.
const SRH: usize = 40;
const TLV: usize = SRH + 8 + 16;

pub(super) fn all(edge: &EndMt) -> Vec<Case> {
    let copies = Copies(edge);
    [copies.lists(), copies.packets(), copies.writes(), copies.refusals(), copies.signed()].concat()
}

struct Copies<'e>(&'e EndMt);

impl Copies<'_> {
    /// The data packet that the cases of lists send.
    fn inner(&self) -> Vec<u8> {
        self.0.data(Group::Data, 0x100)
    }

    /// A case of one packet, and the copies of the inner one.
    fn copied(&self, name: &'static str, about: &'static str, ids: Ids, packet: Vec<u8>, copies: &[Vec<u8>]) -> Case {
        let case = Case::new(name, about, ids).send(sent(self.0.up(), &packet));
        case.expect_all(copies.iter().map(|copy| left(self.0.down(), copy)))
    }

    fn lists(&self) -> Vec<Case> {
        let edge = self.0;
        let inner = self.inner();
        let with = |tlvs: &[u8]| edge.tunnel(Group::Data, tlvs, &inner);
        let others = end_mt_tlv(edge.other_edge, &[(edge.stranger, 0x99)]);
        let second = end_mt_tlv(edge.device, &edge.listed(Group::Unrecorded, 3)[2..]);
        let unrecorded = edge.data(Group::Unrecorded, 0x100);
        let reserved = {
            let mut tlv = edge.tlv(Group::Data, 2);
            for at in [2, 3, 21, 22, 23, 24 + 19, 24 + 39] {
                tlv[at] = 0xA5;
            }
            tlv
        };
        vec![
            self.copied(
                "copies",
                "A copy for each receiver of the list: addresses, queue pair, hop limit, ICRC change, nothing else.",
                &["MT-4-1", "MT-5.1-3", "MT-5.1-4", "MT-5.2-3", "MT-5.2-4", "MT-6.2-2", "MT-6.2-3", "MT-7.2-1"],
                with(&edge.tlv(Group::Data, 2)),
                &edge.copies(Group::Data, &inner, 2),
            ),
            self.copied(
                "one-receiver",
                "A list of one, and the padding behind it.",
                &["MT-6.2-3", "MT-7.2-1"],
                with(&edge.tlv(Group::Data, 1)),
                &edge.copies(Group::Data, &inner, 1),
            ),
            self.copied(
                "eleven-receivers",
                "The longest list that a TLV can hold.",
                &["MT-6.2-3", "MT-7.2-1"],
                edge.tunnel(Group::Unrecorded, &edge.tlv(Group::Unrecorded, 11), &unrecorded),
                &edge.copies(Group::Unrecorded, &unrecorded, 11),
            ),
            self.copied(
                "lists-of-others",
                "Lists of other edges are passed over.",
                &["MT-6.2-3", "MT-7.2-3"],
                with(&[others.clone(), edge.tlv(Group::Data, 2)].concat()),
                &edge.copies(Group::Data, &inner, 2),
            ),
            self.copied(
                "several-lists",
                "Several lists of this edge count together.",
                &["MT-6.2-3", "MT-7.2-3"],
                edge.tunnel(Group::Unrecorded, &[edge.tlv(Group::Unrecorded, 2), others, second].concat(), &unrecorded),
                &edge.copies(Group::Unrecorded, &unrecorded, 3),
            ),
            self.copied(
                "reserved-fields",
                "Reserved fields of the TLV are ignored.",
                &["MT-7.2-2"],
                with(&reserved),
                &edge.copies(Group::Data, &inner, 2),
            ),
            self.copied(
                "provisioned-list",
                "Without a list in the packet the provisioned one is served.",
                &["MT-8-2", "MT-5.2-3"],
                with(&[]),
                &edge.copies(Group::Data, &inner, 2),
            ),
        ]
    }

    fn packets(&self) -> Vec<Case> {
        let edge = self.0;
        let inner = self.inner();
        let with = |inner: &[u8]| edge.tunnel(Group::Data, &edge.tlv(Group::Data, 2), inner);
        let full = srh(IPV6, 1, &[edge.proxy(Group::Data), edge.end_mt], &edge.tlv(Group::Data, 2));
        let checked = with_udp_checksum(inner.clone());
        let congested =
            edge.copies(Group::Data, &inner, 2).into_iter().map(|copy| with_ecn(copy, CE)).collect::<Vec<_>>();
        let damage = |packet: Vec<u8>| {
            let at = 40 + 8 + 12 + 3;
            let octet = packet[at] ^ 0x10;
            with_octets(packet, at, &[octet])
        };
        let damaged =
            edge.copies(Group::Data, &inner, 2).into_iter().map(|copy| left(edge.down(), &damage(copy)).or_nothing());
        vec![
            self.copied(
                "full-segment-list",
                "The Segment List may name the active SID, too.",
                &["MT-6.2-2"],
                tunnelled(edge.headend, edge.end_mt, &full, &inner),
                &edge.copies(Group::Data, &inner, 2),
            ),
            self.copied(
                "udp-checksum",
                "A UDP checksum that is not zero is right in each copy.",
                &["MT-5.2-3", "MT-5.2-4"],
                with(&checked),
                &edge.copies(Group::Data, &checked, 2),
            ),
            self.copied(
                "congested-tunnel",
                "A congestion mark of the outer header reaches the copies.",
                &["RFC 6040 4.2"],
                with_ecn(with(&inner), CE),
                &congested,
            ),
            Case::new(
                "damaged-packet",
                "A packet with a bad ICRC is dropped, or its copies have bad ones: damage is not made to look right.",
                &["MT-5.2-3"],
            )
            .send(sent(edge.up(), &with(&damage(inner.clone()))))
            .expect_all(damaged),
        ]
    }

    fn writes(&self) -> Vec<Case> {
        let edge = self.0;
        let (base, _, rkey) = REGION;
        let reth = [(base + 0x40).to_be_bytes().to_vec(), rkey.to_be_bytes().to_vec(), 8_u32.to_be_bytes().to_vec()];
        let rest = [reth.concat(), b"8 octets".to_vec()].concat();
        let proxy = edge.proxy(Group::Write);
        let inner = marked(rocev2(edge.source, proxy, WRITE_ONLY, edge.designated_qpn, 0x100, &rest));
        let copies = |region: &dyn Fn(u16) -> (u64, u32)| {
            let receiver = |number| Receiver { region: Some(region(number)), ..edge.receiver(Group::Write, number) };
            (0..2).map(|number| copy_for(&inner, &receiver(number), base)).collect::<Vec<_>>()
        };
        let listed = |number: u16| (0x7E00_0000_0000 + (u64::from(number) << 20), 0x55 + u32::from(number));
        let lists = [edge.tlv(Group::Write, 2), mr_tlv(edge.device, &[listed(0), listed(1)])].concat();
        vec![
            self.copied(
                "write",
                "Virtual address and R_Key of a WRITE become those of each receiver's provisioned memory.",
                &["MT-5.2-3", "MT-5.2-4", "MT-8-2"],
                edge.tunnel(Group::Write, &[], &inner),
                &copies(&region),
            ),
            self.copied(
                "write-with-regions",
                "Memory that the packet names in an MR TLV is taken in place of the provisioned.",
                &["MT-5.2-3", "MT-5.2-4"],
                edge.tunnel(Group::Write, &lists, &inner),
                &copies(&listed),
            ),
        ]
    }

    fn refusals(&self) -> Vec<Case> {
        let edge = self.0;
        let inner = self.inner();
        let listed = edge.tunnel(Group::Data, &edge.tlv(Group::Data, 2), &inner);
        let no_segment = tunnelled(
            edge.headend,
            edge.end_mt,
            &srh(IPV6, 0, &[edge.proxy(Group::Data)], &edge.tlv(Group::Data, 2)),
            &inner,
        );
        let twice = [edge.listed(Group::Data, 1), edge.listed(Group::Data, 1)].concat();
        let group = (Ipv6Addr::new(0xFF3E, 0, 0, 0, 0, 0, 0, 1), 0x1001);
        let to = |receivers: &[(Ipv6Addr, u32)]| edge.tunnel(Group::Data, &end_mt_tlv(edge.device, receivers), &inner);
        let dropped = |name, about, ids: Ids, packet: &[u8]| Case::new(name, about, ids).send(sent(edge.up(), packet));
        let hopless = with_hop_limit(listed.clone(), 1);
        let too_many = with_octets(listed.clone(), SRH + 3, &[3]);
        vec![
            dropped(
                "no-srh",
                "A packet to End.MT without an SRH is dropped.",
                &["MT-6.2-1"],
                &tunnelled(edge.headend, edge.end_mt, &[], &inner),
            ),
            dropped("no-segments-left", "Without a segment left it is dropped.", &["MT-6.2-1"], &no_segment),
            dropped(
                "not-ipv6",
                "A payload other than IPv6 is dropped at End.MT.",
                &["MT-5.2-3"],
                &ipv6(
                    edge.headend,
                    edge.end_mt,
                    crate::octets::ROUTING,
                    &[srh(UDP, 1, &[edge.proxy(Group::Data)], &edge.tlv(Group::Data, 2)), vec![0, 1, 0, 1, 0, 8, 0, 0]]
                        .concat(),
                ),
            ),
            dropped(
                "segments-left-too-large",
                "Segments Left beyond Last Entry + 1 is refused.",
                &["MT-6.2-2", "RFC 8754 4.3.1.1"],
                &too_many,
            )
            .expect(self.error(4, (SRH + 3) as u32, &too_many)),
            dropped(
                "hop-limit",
                "A packet without a hop left is not replicated.",
                &["MT-6.2-2", "RFC 8754 4.3.1.1"],
                &hopless,
            )
            .expect(self.error(3, 0, &hopless)),
            dropped(
                "list-overruns",
                "A TLV that is longer than the SRH makes the packet worthless.",
                &["MT-6.2-2", "MT-7.2-1"],
                &with_octets(listed.clone(), TLV + 1, &[82]),
            )
            .expect(self.error(4, (SRH + 1) as u32, &with_octets(listed.clone(), TLV + 1, &[82]))),
            dropped(
                "list-contradicts-itself",
                "Num Receivers and Length that disagree make the packet worthless.",
                &["MT-7.2-1"],
                &with_octets(listed, TLV + 20, &[1]),
            ),
            dropped("receiver-twice", "A list that names a receiver twice is refused.", &["MT-6.2-3"], &to(&twice)),
            dropped(
                "receiver-multicast",
                "A list that names a multicast address is refused.",
                &["MT-6.2-3"],
                &to(&[group]),
            ),
        ]
    }

    /// An ICMPv6 error, which a node may send or not: RFC 9524 forbids errors about replicated packets.
    fn error(&self, kind: u8, parameter: u32, invoking: &[u8]) -> Expected {
        let error = icmpv6_error(self.0.device, kind, 0, parameter, invoking);
        left(self.0.up(), &error).icmpv6_error(IPV6_AT).or_nothing()
    }

    fn signed(&self) -> Vec<Case> {
        let edge = self.0;
        let inner = edge.data(Group::Signed, 0x100);
        let list = [edge.proxy(Group::Signed)];
        let header = signed_srh(edge.headend, &list, &edge.tlv(Group::Signed, 2), (KEY.0, KEY.1));
        let packet = |srh: &[u8]| tunnelled(edge.headend, edge.end_mt_signed, srh, &inner);
        let qpn_at = 8 + 16 + 24 + 18;
        let altered = with_octets(header.clone(), qpn_at, &[0x77]);
        let dropped = |name, about, srh: &[u8]| Case::new(name, about, &["MT-9-1"]).send(sent(edge.up(), &packet(srh)));
        vec![
            self.copied(
                "signed-list",
                "A list with a good HMAC is served.",
                &["MT-9-1"],
                packet(&header),
                &edge.copies(Group::Signed, &inner, 2),
            ),
            dropped(
                "unsigned-list",
                "Where an HMAC is demanded, a packet without one is dropped.",
                &srh(IPV6, 1, &list, &edge.tlv(Group::Signed, 2)),
            ),
            dropped("altered-list", "A list that was altered on the way is dropped.", &altered),
        ]
    }
}
