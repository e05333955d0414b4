"""Fragments of a tunnel packet, as scapy makes them, for crates/dataplane/tests/dataplane/reassembly.rs.

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
