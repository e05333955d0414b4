#!/usr/bin/python3
"""Writes scapy.txt of testdata/fragments, fragments of tunnel packets as scapy makes them, or checks that it is there.

    tools/fragments.py --check          compare with testdata/fragments, octet by octet
    tools/fragments.py --out DIRECTORY  write it

Needs scapy 2.5 or later: Debian's python3-scapy. A line is a name and the octets of a packet from its IPv6 header on.
For reassembly.rs and fragmentation.rs of crates/dataplane/tests/dataplane.
"""

import pathlib
import sys

from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrSegmentRouting, fragment6
from scapy.packet import Raw

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "golden"))

import stored

SID = "fd00:1::d6"
HEADEND, VIA = "2001:db8:ffff::1", "fd00:2::1"
FRAGMENT = IPv6ExtHdrFragment(id=0x01020304)


def datagram(octets):
    """A packet with a payload of so many octets."""
    payload = Raw(bytes(octet % 251 for octet in range(octets)))
    return IPv6(src="2001:db8:5::9", dst="2001:db8:1::1", hlim=64) / UDP(sport=4000, dport=5000) / payload


def packets():
    """Names and packets."""
    inner = datagram(2000)
    outer = IPv6(src="2001:db8:5::5", dst=SID, hlim=64, tc=2)
    srh = IPv6ExtHdrSegmentRouting(segleft=0, lastentry=0, addresses=[SID])
    yield "inner", inner
    for name, headers in (("plain", outer), ("srh", outer / srh)):
        for packet in fragment6(headers / FRAGMENT / inner, 1000):
            yield name, packet

    # A packet of 1280 octets, which a headend fragments for links of 1280: by one SID, and by a list of two.
    least = datagram(1232)
    forwarded = least.copy()
    forwarded.hlim = 63
    srh = IPv6ExtHdrSegmentRouting(segleft=1, lastentry=1, addresses=[SID, VIA])
    one, two = IPv6(src=HEADEND, dst=SID, hlim=64), IPv6(src=HEADEND, dst=VIA, hlim=64) / srh
    yield "least", least
    for name, headers in (("one", one), ("two", two)):
        for packet in fragment6(headers / FRAGMENT / forwarded, 1280):
            yield name, packet


def write(path):
    lines = [f"{name} {bytes(packet).hex()}\n" for name, packet in packets()]
    path.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    sys.exit(stored.run_files(__doc__, {"scapy.txt": write}, stored.TESTDATA / "fragments"))
