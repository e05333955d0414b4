"""The layers over the golden captures, and the captures made again from the layers."""

import unittest
from pathlib import Path

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet6 import (IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrSegmentRouting, PadN)
from scapy.packet import Raw
from scapy.utils import rdpcap

from srdma_scapy import (CongestionNotification, EndMt, EndMtReceiver, FastCnp, Mr, MrRegion, RepairRequest,
                         has_good_icrc, icrc, with_icrc)

TESTDATA = Path(__file__).parents[3] / "testdata"


def frames(name):
    """The IPv6 packets of a capture."""
    return [frame[IPv6] for frame in rdpcap(str(TESTDATA / name))]


def innermost(packet):
    """The last IPv6 header and what follows it."""
    while IPv6 in packet.payload:
        packet = packet.payload[IPv6]
    return packet


class Lists(unittest.TestCase):
    """MT-7.2-1"""

    def test_receivers_are_found(self):
        two, four = frames("golden/scapy_02_endmt_in.pcap")[:2]
        tlv = two[EndMt]
        self.assertEqual((tlv.edge, tlv.len, tlv.count), ("2001:db8:a::1", 62, 2))
        self.assertEqual([(entry.address, entry.qpn) for entry in tlv.receivers],
                         [("2001:db8:2::1", 0x111), ("2001:db8:2::2", 0x222)])
        edges = [tlv.edge for tlv in four[IPv6ExtHdrSegmentRouting].tlv_objects if isinstance(tlv, EndMt)]
        self.assertEqual(edges, ["2001:db8:a::1", "2001:db8:a::3"])

    def test_an_srh_is_made_as_it_was_captured(self):
        for number in (0, 1, 5):
            captured = frames("golden/scapy_02_endmt_in.pcap")[number][IPv6ExtHdrSegmentRouting]
            lists = [EndMt(edge=tlv.edge, receivers=[EndMtReceiver(address=entry.address, qpn=entry.qpn)
                                                     for entry in tlv.receivers]) for tlv in captured.tlv_objects
                     if isinstance(tlv, EndMt)]
            made = IPv6ExtHdrSegmentRouting(nh=41, addresses=captured.addresses, segleft=captured.segleft,
                                            tlv_objects=lists)
            octets = bytes(captured)[:8 * (captured.len + 1)]
            self.assertEqual(bytes(made), octets, f"frame {number + 1}")

    def test_regions_are_read_as_they_were_written(self):
        tlv = Mr(edge="2001:db8:a::1", regions=[MrRegion(virtual_address=0x7F0000001000, rkey=0x1234)])
        octets = bytes(tlv)
        self.assertEqual(octets[:4] + octets[20:], bytes.fromhex("7d220000 01000000 00007f0000001000 00001234"))
        self.assertEqual(Mr(octets).regions[0].rkey, 0x1234)


class FastCnps(unittest.TestCase):
    """FC-4-4, D40, D42"""

    def test_options_are_found(self):
        for packet in frames("golden/scapy_04_fastcnp.pcap")[5:7]:
            option = packet[FastCnp]
            self.assertEqual((option.option, option.original_destination), (1, "2001:db8:2::1"))

    def test_an_options_header_is_made_as_it_was_captured(self):
        captured = frames("golden/scapy_04_fastcnp.pcap")[5][IPv6ExtHdrDestOpt]
        option = FastCnp(original_destination="2001:db8:2::1")
        made = IPv6ExtHdrDestOpt(nh=17, options=[option, PadN(optdata=b"\0\0")], autopad=0)
        self.assertEqual(bytes(made), bytes(captured)[:24])

    def test_a_trace_makes_it_option_2(self):
        option = FastCnp(trace=bytes(10), original_destination="2001:db8:2::1")
        self.assertEqual((bytes(option)[:2], option.option), (b"\x9e\x1a", 2))
        self.assertEqual(FastCnp(bytes(option)).trace, bytes(10))
        self.assertEqual([option.alignment_delta(place) for place in (2, 4)], [2, 0])


class Notifications(unittest.TestCase):
    """D60"""

    def test_notifications_are_found_and_made(self):
        for packet in frames("decode/notifications.pcap"):
            inner = innermost(packet)
            found = inner[CongestionNotification]
            self.assertEqual(found.congested, inner.src)
            self.assertIn(found.code, (0, 1))
            values = {name: found.getfieldval(name) for name in
                      ("code", "traffic_class", "level", "sequence", "hold_us", "congested")}
            header = IPv6(src=inner.src, dst=inner.dst, tc=inner.tc, hlim=inner.hlim)
            self.assertEqual(bytes(header / CongestionNotification(**values)), bytes(inner))


class Requests(unittest.TestCase):
    """D153"""

    def test_a_repair_request_is_found_and_made(self):
        # An ACKNOWLEDGE packet of PSN 7 with syndrome 0x70 and MSN 3, and room for the ICRC.
        octets = bytes.fromhex("1100ffff00d0000000000007" "70000003" "00000000")
        found = BTH(octets)
        self.assertEqual((found.psn, found[RepairRequest].msn), (7, 3))
        self.assertEqual(bytes(RepairRequest(msn=3)), octets[12:16])
        nak = BTH(octets[:12] + bytes([0x60]) + octets[13:])
        self.assertNotIn(RepairRequest, nak)
        self.assertEqual(nak[AETH].syndrome, 0x60)


class Icrcs(unittest.TestCase):
    """IBTA annex A17.3.3, D43"""

    def test_icrcs_of_others_are_good(self):
        mutations = [has_good_icrc(packet) for packet in frames("golden/neg_icrc_mutations.pcap")]
        self.assertEqual(mutations, [True] * 5 + [False] * 7)
        self.assertTrue(all(has_good_icrc(innermost(packet)) for packet in frames("golden/scapy_02_endmt_in.pcap")))
        fast_cnps = [has_good_icrc(packet) for packet in frames("golden/scapy_04_fastcnp.pcap")[5:]]
        self.assertEqual(fast_cnps, [True] * 3)
        inline = frames("golden/kernel_t8_inline_1h1-r1.pcap")[0]
        self.assertTrue(has_good_icrc(inline))

    def test_an_icrc_is_put_in(self):
        packet = frames("golden/scapy_01_rocev2_base.pcap")[0]
        octets = bytes(packet)
        self.assertEqual(bytes(with_icrc(IPv6(octets[:-4] + bytes(4)))), octets)
        self.assertIsNone(icrc(bytes(IPv6() / Raw(bytes(40)))))


if __name__ == "__main__":
    unittest.main()
