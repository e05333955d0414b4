"""Makes packets.pcap: BFD control packets over IPv6. All octets by scapy, the values written out here."""
from pathlib import Path

from scapy.contrib.bfd import BFD, OptionalAuth
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

A, B = "fe80::a", "fe80::b"
FAR_A, FAR_B = "2001:db8:a::1", "2001:db8:b::1"


def bfd(state, diag=0, flags="", yours=0x0B0B_0B0B, mult=3, tx=50_000, rx=50_000, echo=0, auth=None):
    return BFD(diag=diag, sta=state, flags=flags, detect_mult=mult, my_discriminator=0x0A0A_0A0A, your_discriminator=yours,
               min_tx_interval=tx, min_rx_interval=rx, echo_rx_interval=echo, optional_auth=auth)


def single(control, hops=255):
    ethernet = Ether(src="02:00:00:00:00:0a", dst="02:00:00:00:00:0b", type=0x86DD)
    return ethernet / IPv6(src=A, dst=B, hlim=hops, tc=0xC0) / UDP(sport=49152, dport=3784) / control


def multi(control, hops):
    ethernet = Ether(src="02:00:00:00:00:0a", dst="02:00:00:00:00:0b", type=0x86DD)
    return ethernet / IPv6(src=FAR_A, dst=FAR_B, hlim=hops, tc=0xC0) / UDP(sport=65535, dport=4784) / control


ADMIN_DOWN, DOWN, INIT, UP = range(4)
password = OptionalAuth(auth_type=1, auth_keyid=7, auth_key=b"secret")
sha1 = OptionalAuth(auth_type=5, auth_keyid=7, sequence_number=0x01020304)

wrpcap(str(Path(__file__).parent / "packets.pcap"), [
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
    single(bfd(UP, flags="A", auth=password)),
    single(bfd(UP, flags="A", auth=sha1)),
])
