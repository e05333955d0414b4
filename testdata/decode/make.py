#!/usr/bin/python3
"""Writes layers.pcap and notifications.pcap, what the captures of testdata/golden lack, or checks that they are here.

    testdata/decode/make.py --check          compare with the captures in this directory, octet by octet
    testdata/decode/make.py --out DIRECTORY  write them

Headers, lengths and checksums are scapy's (2.5 or later: Debian's python3-scapy), the ICRC is that of
tools/golden/icrc.py, since scapy 2.5 has none over IPv6; the content is written out here. The End.MT TLV is this
project's own reading of the multicast draft's section 7.2. The MR TLV (D27), the type codes of both (D32), a CNP that
stands for several (D29) and the message to END.C (D60) stand in no draft: they are decisions of this project, in
docs/spec/decisions.md. None of these has been compared with another implementation.
"""

import pathlib
import socket
import struct
import sys

from scapy.contrib.roce import BTH
from scapy.layers.inet import TCP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, ICMPv6ParamProblem, ICMPv6Unknown, IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import RawPcapWriter

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools" / "golden"))

import stored
from icrc import with_icrc

A, B = "2001:db8:1::1", "2001:db8:2::1"
LINK = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
ethernet = Ether(**LINK)
#: In front of packets that are octets already.
ethernet_ipv6 = Ether(**LINK, type=0x86DD)
tagged_ipv6 = Ether(**LINK) / Dot1Q(vlan=5, prio=3, type=0x86DD)


def address(text):
    return socket.inet_pton(socket.AF_INET6, text)


def roce(opcode, extension=b"", payload=b"", **fields):
    """The octets of a RoCEv2 packet."""
    fields = {"dqpn": 0x111, "psn": 7, **fields}
    # scapy leaves room for the ICRC.
    datagram = UDP(sport=49153, dport=4791, chksum=0) / BTH(opcode=opcode, icrc=0, **fields) / Raw(extension + payload)
    return with_icrc(bytes(IPv6(src=A, dst=B, hlim=64) / datagram))


reth = struct.pack("!QII", 0x7F00_0000_1000, 0x1234, 8192)
read = roce(0x0C, reth, ackreq=1)

edge = address("2001:db8:a::1")
receivers = address("2001:db8:3::1") + bytes([0, 1, 0x11, 0]) + address("2001:db8:3::2") + bytes([0, 2, 0x22, 0])
end_mt = struct.pack("!BBH", 124, 62, 0) + edge + struct.pack("!B3x", 2) + receivers
regions = struct.pack("!QIQI", 0x1000, 0xAA, 0xFFFF_FFFF_FFFF_0000, 0xBB)
mr = struct.pack("!BBH", 125, 46, 0) + edge + struct.pack("!B3x", 2) + regions
experiment = bytes([126, 6, 1, 2, 3, 4, 5, 6])


def multicast(tlvs):
    srh = struct.pack("!BBBBBBH", 41, (16 + len(tlvs)) // 8, 4, 1, 0, 0, 9) + address("2001:db8:ff::100") + tlvs
    inner = roce(0x0A, reth, b"data", ackreq=1)
    return IPv6(src="2001:db8:6::1", dst="5f00:0:1:e000::", nh=43) / Raw(srh + inner)


def fragment(offset, more):
    return IPv6(src=A, dst=B) / IPv6ExtHdrFragment(nh=17, offset=offset // 8, m=more, id=0xABCD) / Raw(bytes(24))


packets = [
    tagged_ipv6 / roce(0x04, b"", b"message!", solicited=1),
    ethernet_ipv6 / read,
    ethernet_ipv6 / roce(0x0D, struct.pack("!I", 0x1F << 24 | 3), bytes(1024)),
    ethernet_ipv6 / roce(0x0E, b"", bytes(1024)),
    ethernet_ipv6 / roce(0x13, struct.pack("!QIQQ", 0x2000, 0x1234, 2**63, 1)),
    ethernet_ipv6 / roce(0x12, struct.pack("!IQ", 0x05 << 24 | 4, 2**53 + 1)),
    ethernet_ipv6 / roce(0x16, struct.pack("!I", 0x4321), b"last"),
    ethernet_ipv6 / roce(0x0B, reth + bytes.fromhex("00c0ffee"), b"abc\0", padcount=1),
    ethernet_ipv6 / roce(0x64, bytes(8), b"datagram"),
    ethernet_ipv6 / roce(0x81, struct.pack("!I12x", 3), psn=0, becn=1),
    ethernet_ipv6 / roce(0x11, struct.pack("!I", 0x62 << 24 | 5)),
    ethernet_ipv6 / roce(0x11, struct.pack("!I", 0x20 << 24 | 5)),
    ethernet / multicast(end_mt + mr + experiment),
    ethernet / multicast(bytes([124, 200]) + bytes(30)),
    ethernet / fragment(0, 1),
    ethernet / fragment(24, 0),
    ethernet / IPv6(src=B, dst=A) / ICMPv6PacketTooBig(mtu=1280) / read[:80],
    ethernet / IPv6(src=B, dst=A) / ICMPv6ParamProblem(code=4, ptr=40) / read[:60],
    ethernet / IPv6(src=A, dst=B) / UDP(sport=5, dport=53) / Raw(b"question"),
    ethernet / IPv6(src=A, dst=B) / TCP(),
]


def notification(code, level, sequence, hold_us):
    router, end_c = "2001:db8:53::2", "5f00:0:9:c000::"
    body = struct.pack("!BBBBII", 1, 3, level, 0, sequence, hold_us) + address(router)
    inner = IPv6(src=router, dst=end_c, tc=48 << 2, nh=58) / ICMPv6Unknown(type=200, code=code, msgbody=body)
    return ethernet / IPv6(src=router, dst=end_c, tc=48 << 2, nh=41) / inner


notifications = [notification(0, 192, 7, 10000), notification(1, 0, 5008, 0)]


def capture(packets):
    """A function that writes packets to a capture."""

    def write(path):
        writer = RawPcapWriter(str(path), linktype=1, endianness="<", nano=True)
        writer.write_header(None)
        for index, packet in enumerate(packets):
            writer.write_packet(bytes(packet), sec=1700000000, usec=1000 * index)
        writer.close()

    return write


if __name__ == "__main__":
    captures = {"layers.pcap": capture(packets), "notifications.pcap": capture(notifications)}
    sys.exit(stored.run_files(__doc__, captures, HERE))
