"""Fragments of tunnel packets, as scapy makes them, for crates/dataplane/tests/dataplane/reassembly.rs and
fragmentation.rs there.

    python3 tools/fragments.py > testdata/fragments/scapy.txt

A line is a name and the octets of a packet from its IPv6 header on.
"""

from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrSegmentRouting, fragment6
from scapy.packet import Raw

SID = "fd00:1::d6"

inner = IPv6(src="2001:db8:5::9", dst="2001:db8:1::1", hlim=64) / UDP(sport=4000, dport=5000)
inner /= Raw(bytes(octet % 251 for octet in range(2000)))
outer = IPv6(src="2001:db8:5::5", dst=SID, hlim=64, tc=2)
srh = IPv6ExtHdrSegmentRouting(segleft=0, lastentry=0, addresses=[SID])
fragment = IPv6ExtHdrFragment(id=0x01020304)

print("inner", bytes(inner).hex())
for name, headers in (("plain", outer), ("srh", outer / srh)):
    for packet in fragment6(headers / fragment / inner, 1000):
        print(name, bytes(packet).hex())

# A packet of 1280 octets, which a headend fragments for links of 1280: by one SID, and by a list of two.
HEADEND, VIA = "2001:db8:ffff::1", "fd00:2::1"
least = IPv6(src="2001:db8:5::9", dst="2001:db8:1::1", hlim=64) / UDP(sport=4000, dport=5000)
least /= Raw(bytes(octet % 251 for octet in range(1232)))
forwarded = least.copy()
forwarded.hlim = 63
srh = IPv6ExtHdrSegmentRouting(segleft=1, lastentry=1, addresses=[SID, VIA])
one, two = IPv6(src=HEADEND, dst=SID, hlim=64), IPv6(src=HEADEND, dst=VIA, hlim=64) / srh

print("least", bytes(least).hex())
for name, headers in (("one", one), ("two", two)):
    for packet in fragment6(headers / fragment / forwarded, 1280):
        print(name, bytes(packet).hex())
