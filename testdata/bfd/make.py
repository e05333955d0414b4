#!/usr/bin/python3
"""Writes packets.pcap, BFD control packets over IPv6, or checks that it is here.

    testdata/bfd/make.py --check          compare with the capture in this directory, frame by frame
    testdata/bfd/make.py --out DIRECTORY  write it

Octets, lengths and checksums are scapy's (2.5 or later: Debian's python3-scapy), the values are written out here.
scapy 2.5 has no authentication sections, so these are written out too, from RFC 5880 sections 4.2 and 4.4.
"""

import hashlib
import pathlib
import struct
import sys

from scapy.contrib.bfd import BFD
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools" / "golden"))

import stored

A, B = "fe80::a", "fe80::b"
FAR_A, FAR_B = "2001:db8:a::1", "2001:db8:b::1"


def bfd(state, diag=0, flags="", yours=0x0B0B_0B0B, mult=3, tx=50_000, rx=50_000, echo=0, section=b""):
    """A control packet, and the authentication section behind it."""
    control = BFD(
        diag=diag,
        sta=state,
        flags=flags,
        detect_mult=mult,
        len=24 + len(section),
        my_discriminator=0x0A0A_0A0A,
        your_discriminator=yours,
        min_tx_interval=tx,
        min_rx_interval=rx,
        echo_rx_interval=echo,
    )
    return control / Raw(section)


def single(control, hops=255):
    ethernet = Ether(src="02:00:00:00:00:0a", dst="02:00:00:00:00:0b", type=0x86DD)
    return ethernet / IPv6(src=A, dst=B, hlim=hops, tc=0xC0) / UDP(sport=49152, dport=3784) / control


def multi(control, hops):
    ethernet = Ether(src="02:00:00:00:00:0a", dst="02:00:00:00:00:0b", type=0x86DD)
    return ethernet / IPv6(src=FAR_A, dst=FAR_B, hlim=hops, tc=0xC0) / UDP(sport=65535, dport=4784) / control


ADMIN_DOWN, DOWN, INIT, UP = range(4)
#: Type, length, key id and password.
PASSWORD = bytes([1, 9, 7]) + b"secret"
#: Meticulous keyed SHA-1: type, length, key id, a reserved octet, sequence number, and a digest, which is not that of
#: the packet.
SHA_1 = bytes([5, 28, 7, 0]) + struct.pack("!I", 0x01020304) + hashlib.sha1(b"password").digest()


def packets():
    frames = [
        single(bfd(DOWN, yours=0, tx=1_000_000)),
        single(bfd(INIT, tx=1_000_000)),
        single(bfd(UP, flags="P")),
        single(bfd(UP, flags="F")),
        single(bfd(ADMIN_DOWN, diag=7, tx=1_000_000)),
        single(bfd(DOWN, diag=1, yours=0, tx=1_000_000, flags="P")),
        single(bfd(UP, flags="D", mult=255, tx=0xFFFF_FFFF, rx=0)),
        multi(bfd(UP, diag=8, flags="C", mult=1, tx=10_000, rx=20_000, echo=30_000), 255),
        multi(bfd(UP), 61),
        single(bfd(UP), hops=254),
        single(bfd(UP, flags="A", section=PASSWORD)),
        single(bfd(UP, flags="A", section=SHA_1)),
    ]
    return [bytes(frame) for frame in frames]


if __name__ == "__main__":
    sys.exit(stored.run(__doc__, {"packets.pcap": packets}, HERE))
