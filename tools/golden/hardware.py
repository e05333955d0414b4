#!/usr/bin/python3
"""Writes hw_cx4lx_cnp_ipv4 and hw_uts_uc_send_ipv4 of testdata/golden, or checks that they are there.

    tools/golden/hardware.py --check          compare with testdata/golden, frame by frame
    tools/golden/hardware.py --out DIRECTORY  write them

Both frames are published in scapy's test/contrib/roce.uts, here at commit 05c24f8f699f of secdev/scapy. The CNP stands
there octet by octet, as captured on a ConnectX-4 Lx. The UC SEND is called an example; its fields stand there, with the
checksums and the ICRC that are expected. No NIC is asked again: what is checked is that the files have the published
octets, and that their ICRC is that of icrc.py, which knows nothing of scapy's.

Needs scapy 2.5 or later: Debian's python3-scapy.
"""

import logging
import struct
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

import stored
from icrc import with_icrc

ETHERNET_OCTETS = 14
#: Ethernet, IPv4, UDP, BTH, sixteen zeros and the ICRC.
CNP = bytes.fromhex(
    "e41d2dab2bc2 7cfe90643b32 0800"
    "45c2 003c 718c 4000 40 11 9161 0a001101 0a001201"
    "0000 12b7 0028 0000"
    "81 00 ffff 40000118 00000000"
    "00000000 00000000 00000000 00000000"
    "82fd002a"
)
UC_SEND_ONLY = 0x24


def checked(frame):
    """The frame, whose ICRC is that of icrc.py."""
    packet = frame[ETHERNET_OCTETS:]
    if packet != with_icrc(packet):
        raise ValueError(f"the ICRC of {frame.hex()} is not that of icrc.py")
    return [frame]


def uc_send():
    """Layers of scapy with the published values; the checksums are scapy's, the ICRC is the published one."""
    adapter, host = "24:8a:07:a8:fa:22", "192.168.0.7"
    migration, pad_count = 1 << 6, 2 << 4
    bth = struct.pack("!BBHII", UC_SEND_ONLY, migration | pad_count, 0xFFFF, 211, 13571856)
    payload = bytes.fromhex("4630818be28935d90e9a95505401be885e500000")
    ip = IP(src=host, dst=host, tos=1, id=1144, flags="DF", ttl=64)
    udp = UDP(sport=49152, dport=4791) / Raw(bth + payload + struct.pack("!I", 0x78F353F3))
    return bytes(Ether(src=adapter, dst=adapter) / ip / udp)


CAPTURES = {
    "hw_cx4lx_cnp_ipv4.pcap": lambda: checked(CNP),
    "hw_uts_uc_send_ipv4.pcap": lambda: checked(uc_send()),
}


if __name__ == "__main__":
    sys.exit(stored.run(__doc__, CAPTURES))
