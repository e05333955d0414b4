#!/usr/bin/python3
"""Takes the captures kernel_t1 to t20 of testdata/golden again, or compares this kernel with them.

    sudo tools/golden/kernel.py --check          compare this kernel's RoCEv2 packets with those of the captures
    sudo tools/golden/kernel.py --out DIRECTORY  write captures of all links

Five network namespaces in a row, h1 - r1 - r2 - r3 - h2. h1 sends a RoCEv2 packet from a UDP socket; its route
encapsulates, the routers have SIDs. In t9 and t10 SRHs are signed, and routers require that; in t17 h1 sends the frames
of scapy that lie in the capture, and routers write to their IOAM traces; in t20 r1 encapsulates what it forwards. Needs
root, Linux 6.18 (earlier ones sign and trace otherwise), iproute2 6.1 or later, dumpcap and scapy. Nothing of srdma
takes part. The packets to port 4791 are compared, without the flow labels that each kernel draws, and without times and
queue depths in traces.

t16 has a network of its own: ms sends frames of the capture, and mr forwards a multicast group to m1 and m2.
"""

import argparse
import ctypes
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from scapy.utils import RawPcapReader

from icrc import with_icrc

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata" / "golden"
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
PREFIX = f"golden{os.getpid()}-"
HOSTS = ("h1", "r1", "r2", "r3", "h2")
#: Links by the letter of their subnet: left node, right node, and the name of their captures.
LINKS = {
    "a": ("h1", "r1", "1h1-r1"),
    "b": ("r1", "r2", "2r1-r2"),
    "c": ("r2", "r3", "3r2-r3"),
    "d": ("r3", "h2", "4r3-h2"),
}
#: The multicast network: a node, its interface, and that of mr at the other end, the first one towards the source.
MULTICAST = "t16_mcast"
LEAVES = {"ms": ("s0", "i0", "1src"), "m1": ("e1", "o1", "2leaf1"), "m2": ("e2", "o2", "3leaf2")}
GROUP = "ff3e::100"
SOURCE, DESTINATION = "fd00:a::1", "fd00:d::2"

#: Case, the route of h1 toward h2, and how many RoCEv2 packets with a zero UDP checksum follow the first one.
CASES = {
    "t1_usid_red": ("encap.red segs 5f00:0:100:200:300::", 1),
    "t2_usid_encap": ("encap segs 5f00:0:100:200:300::", 0),
    "t3_red3": ("encap.red segs fd00:11::e,fd00:22::e,fd00:33::d6", 0),
    "t4_encap3": ("encap segs fd00:11::e,fd00:22::a,fd00:33::d6", 0),
    "t5_psp": ("encap segs fd00:11::f,fd00:22::f,fd00:33::d6", 0),
    "t6_b6": ("encap segs fd00:11::b6,fd00:33::d6", 0),
    "t7_usid2": ("encap.red segs 5f00:0:100:200::,5f00:0:300::", 0),
    "t8_inline": ("inline segs fd00:11::e,fd00:22::e", 0),
}

#: The same with signatures, which the routers require.
SIGNED = {
    "t9_hmac": "encap segs fd00:11::e,fd00:22::e,fd00:33::d6 hmac 42",
    "t10_hmac_red": "encap.red segs fd00:11::e,fd00:22::e,fd00:33::d6 hmac 42",
}
TRACED, FORWARDED = "t17_ioam", "t20_transit_encap"

#: Source port, traffic class and hop limit of the datagrams that r1 encapsulates.
DATAGRAMS = ((45656, 0x00, 64), (34233, 0x02, 64), (47277, 0xB9, 33))

#: Routers with the interfaces that packets come and leave by.
ROUTERS = (("r1", "a2", "b1"), ("r2", "b2", "c1"), ("r3", "c2", "d1"))

#: SIDs and other routes of the routers, as iproute2 writes them.
ROUTES = {
    "h1": ["default via fd00:a::2"],
    "h2": ["default via fd00:d::1"],
    "r1": [
        "fd00:c::/64 via fd00:b::2",
        "fd00:d::/64 via fd00:b::2",
        "5f00:0:200::/48 via fd00:b::2",
        "5f00:0:300::/48 via fd00:b::2",
        "fd00:22::/32 via fd00:b::2",
        "fd00:33::/32 via fd00:b::2",
        "5f00:0:100::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 dev b1",
        "fd00:11::e/128 encap seg6local action End dev b1",
        "fd00:11::f/128 encap seg6local action End flavors psp dev b1",
        "fd00:11::b6/128 encap seg6local action End.B6.Encaps srh segs fd00:22::e,fd00:33::d6 dev b1",
    ],
    "r2": [
        "fd00:d::/64 via fd00:c::2",
        "fd00:a::/64 via fd00:b::1",
        "5f00:0:300::/48 via fd00:c::2",
        "fd00:33::/32 via fd00:c::2",
        "5f00:0:200::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 dev c1",
        "fd00:22::e/128 encap seg6local action End dev c1",
        "fd00:22::f/128 encap seg6local action End flavors psp dev c1",
        "fd00:22::a/128 encap seg6local action End.X nh6 fd00:c::2 dev c1",
    ],
    "r3": [
        "fd00:a::/64 via fd00:c::1",
        "fd00:b::/64 via fd00:c::1",
        "5f00:0:300::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 dev d1",
        "5f00:0:300::/128 encap seg6local action End.DT6 table 254 dev d1",
        "fd00:33::d6/128 encap seg6local action End.DT6 table 254 dev d1",
    ],
}

SYSCTLS = (
    "net.ipv6.conf.all.forwarding=1",
    "net.ipv6.conf.all.seg6_enabled=1",
    "net.ipv6.conf.default.seg6_enabled=1",
    "net.ipv6.conf.all.accept_dad=0",
    "net.ipv6.conf.default.accept_dad=0",
    "net.ipv6.conf.default.router_solicitations=0",
)


def run(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, **options)


def inside(node, *words, **options):
    return run("ip", "netns", "exec", PREFIX + node, *words, **options)


def lay_out():
    for node in HOSTS:
        run("ip", "netns", "add", PREFIX + node)
        inside(node, "sysctl", "-qw", *SYSCTLS)
        inside(node, "ip", "link", "set", "lo", "up")
    for letter, (left, right, _) in LINKS.items():
        ends = [f"{letter}1", f"{letter}2"]
        macs = [f"02:00:00:00:0{letter}:0{side}" for side in (1, 2)]
        first = ["ip", "link", "add", ends[0], "address", macs[0], "netns", PREFIX + left, "type", "veth"]
        run(*first, "peer", "name", ends[1], "address", macs[1], "netns", PREFIX + right)
        for side, node in enumerate((left, right)):
            inside(node, "ip", "link", "set", ends[side], "up")
            inside(node, "sysctl", "-qw", f"net.ipv6.conf.{ends[side]}.seg6_enabled=1")
            # Checksums are computed by the kernel, not left to a device that there is not.
            inside(node, "ethtool", "-K", ends[side], "tx", "off", "rx", "off")
            inside(node, "ip", "addr", "add", f"fd00:{letter}::{side + 1}/64", "dev", ends[side], "nodad")
    for node, routes in ROUTES.items():
        for route in routes:
            inside(node, "ip", "-6", "route", "add", *route.split())
    inside("h1", "ip", "sr", "tunsrc", "set", SOURCE)
    # Neighbours are known before anything is captured.
    for node, address in (("h1", DESTINATION), ("r1", "fd00:b::2"), ("r2", "fd00:c::2"), ("r3", "fd00:d::2")):
        inside(node, "ping", "-6", "-c1", "-W2", address)


def lay_out_multicast():
    for node in ("mr", *LEAVES):
        run("ip", "netns", "add", PREFIX + node)
    inside("mr", "sysctl", "-qw", *SYSCTLS)
    for leaf, (end, at_router, _) in LEAVES.items():
        first = ["ip", "link", "add", at_router, "netns", PREFIX + "mr", "type", "veth"]
        run(*first, "peer", "name", end, "netns", PREFIX + leaf)
        inside("mr", "ip", "link", "set", at_router, "up")
        inside(leaf, "ip", "link", "set", end, "up")
    inside("mr", "ip", "addr", "add", "fd00:a::2/64", "dev", "i0", "nodad")


def forward_multicast():
    """A socket that has mr forward the group from i0 to o1 and o2, as long as it is open (RFC 3493's ip6mr)."""
    enter("mr")
    router = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    init, add_interface, add_route = 200, 202, 204
    router.setsockopt(socket.IPPROTO_IPV6, init, 1)
    for number, name in enumerate(("i0", "o1", "o2")):
        interface = struct.pack("@HBBHI", number, 0, 1, socket.if_nametoindex(name), 0)
        router.setsockopt(socket.IPPROTO_IPV6, add_interface, interface)
    address = lambda text: struct.pack("@HHI16sI", socket.AF_INET6, 0, 0, octets(text), 0)
    outgoing = struct.pack("@8I", 0b110, *[0] * 7)
    flow = address(SOURCE) + address(GROUP) + struct.pack("@HH", 0, 0)
    router.setsockopt(socket.IPPROTO_IPV6, add_route, flow + outgoing)
    return router


def remove():
    for node in (*HOSTS, "mr", *LEAVES):
        subprocess.run(["ip", "netns", "del", PREFIX + node], capture_output=True, check=False)


def send(without_checksum):
    """The packet of the captures, from a socket in h1."""
    bth = struct.pack("!BBHII", 0x0A, 0, 0xFFFF, 0x333, 0x80000064)
    payload = b"KERNEL-SENT-ROCE-PAYLOAD"
    body = bth + struct.pack("!QII", 0x7F0000000000, 0x1234, len(payload)) + payload
    length = 8 + len(body) + 4
    ipv6 = struct.pack("!IHBB", 0x60000000, length, 17, 64) + octets(SOURCE) + octets(DESTINATION)
    packet = with_icrc(ipv6 + struct.pack("!HHHH", 0xD001, 4791, length, 0) + body + bytes(4))
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
        if without_checksum:
            udp.setsockopt(socket.IPPROTO_UDP, 101, 1)  # UDP_NO_CHECK6_TX
        udp.bind((SOURCE, 0xD001))
        udp.sendto(packet[48:], (DESTINATION, 4791))


def octets(address):
    return socket.inet_pton(socket.AF_INET6, address)


def enter(node):
    """Moves this process into a node's network."""
    with open(f"/var/run/netns/{PREFIX}{node}", encoding="ascii") as namespace:
        if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {node}")


def send_plain():
    """Datagrams that are no RoCEv2 packets, with other traffic classes and hop limits."""
    for port, traffic_class, hop_limit in DATAGRAMS:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
            udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, traffic_class)
            udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hop_limit)
            udp.bind((SOURCE, port))
            udp.sendto(b"x" * 32, (DESTINATION, 4791))


def replay(file, interface="a1"):
    """Frames as they were captured."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as link:
        link.bind((interface, 0))
        for frame, _ in RawPcapReader(str(file)):
            link.send(frame)
            time.sleep(0.02)


def sign():
    """Gives the key to all, and has the routers require signatures."""
    for node in HOSTS[:4]:
        inside(node, "ip", "sr", "hmac", "set", "42", "sha256", input="secretkey\n")
    for node, ingress, _ in ROUTERS:
        inside(node, "sysctl", "-qw", f"net.ipv6.conf.{ingress}.seg6_require_hmac=1")


def trace():
    """Has the routers write to traces of namespace 123."""
    for number, (node, ingress, egress) in enumerate(ROUTERS, 1):
        settings = {
            "ioam6_id": number,
            f"conf.{ingress}.ioam6_enabled": 1,
            f"conf.{ingress}.ioam6_id": number * 10 + 1,
            f"conf.{egress}.ioam6_id": number * 10 + 2,
            f"conf.{ingress}.ioam6_id_wide": number * 1000 + 1,
            f"conf.{egress}.ioam6_id_wide": number * 1000 + 2,
        }
        inside(node, "sysctl", "-qw", *(f"net.ipv6.{key}={value}" for key, value in settings.items()))
        data = ("data", "0xcafe0000", "wide", "0xcafe000011112222")
        inside(node, "ip", "ioam", "namespace", "add", "123", *data)


def encapsulates(node, route, device, next_hop):
    """The node's route to h2 becomes one that encapsulates."""
    via = f"encap seg6 mode {route} dev {device} via {next_hop}".split()
    inside(node, "ip", "-6", "route", "replace", f"{DESTINATION}/128", *via)


def packets_of(route, further):
    """A way to send RoCEv2 packets by a route of h1."""

    def emit():
        send(False)
        for _ in range(further):
            send(True)

    encapsulates("h1", route, "a1", "fd00:a::2")
    return emit


def steps():
    """Cases, each with what sends its packets once the links are captured. Later ones change the routers."""
    for case, (route, further) in CASES.items():
        yield case, packets_of(route, further)
    sign()
    for case, route in SIGNED.items():
        yield case, packets_of(route, 0)
    inside("h1", "ip", "-6", "route", "del", f"{DESTINATION}/128")
    trace()
    yield TRACED, lambda: replay(GOLDEN / f"kernel_{TRACED}_1h1-r1.pcap")
    encapsulates("r1", "encap.red segs 5f00:0:200:300::", "b1", "fd00:b::2")
    yield FORWARDED, send_plain


def captures(emit, folder, places):
    """Files with the frames at interfaces, each with its node and a name, while packets are sent.

    dumpcap copies a frame when it passes. A plain packet socket shares its octets with the next router, whose SID has
    changed them when the socket is read.
    """
    files, running = [], []
    for node, interface, name in places:
        files.append(folder / f"{name}.pcap")
        dumpcap = ["dumpcap", "-q", "-P", "-i", interface, "-w", str(files[-1])]
        command = ["ip", "netns", "exec", PREFIX + node, *dumpcap]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    for process in running:
        # It says where it captures to as soon as it does.
        while not process.stderr.readline().startswith("File:"):
            pass
    emit()
    time.sleep(1)
    for process in running:
        process.terminate()
        process.communicate()
    return files


#: Bits of an IOAM trace type whose four octets depend on time: seconds, fraction, queue depth (RFC 9197 section 4.4.1).
TIMES = (2, 3, 6)


def without_times(options):
    """Hop-by-Hop Options with the data of the trace that depend on time set to zero."""
    octets, at = bytearray(options), 2
    while at < len(octets):
        if octets[at] == 0:
            at += 1
            continue
        if octets[at] == 0x31:
            header = at + 4
            kind = int.from_bytes(octets[header + 4 : header + 7], "big")
            words = octets[header + 2] >> 3
            bits = [bit for bit in range(8) if kind >> (23 - bit) & 1]
            for node in range(header + 8, at + 2 + octets[at + 1], 4 * words or 4):
                for place, bit in enumerate(bits):
                    if bit in TIMES:
                        octets[node + 4 * place : node + 4 * place + 4] = bytes(4)
        at += 2 + octets[at + 1]
    return octets[: len(options)]


def compared(frame):
    """A packet to port 4791 without the flow labels, which kernels draw, and times; `None` for other frames."""
    octets = bytearray(frame)
    at, next_header = 14, 41
    while True:
        if next_header == 41:
            if len(octets) < at + 40:
                return None
            octets[at + 1] &= 0xF0
            octets[at + 2 : at + 4] = bytes(2)
            next_header, at = octets[at + 6], at + 40
        elif next_header in (0, 43):
            end = at + 8 + 8 * octets[at + 1]
            if next_header == 0:
                octets[at:end] = without_times(octets[at:end])
            next_header, at = octets[at], end
        else:
            is_rocev2 = next_header == socket.IPPROTO_UDP and octets[at + 2 : at + 4] == b"\x12\xb7"
            return bytes(octets) if is_rocev2 else None


def rocev2(file):
    return list(filter(None, (compared(frame) for frame, _ in RawPcapReader(str(file)))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--check", action="store_true")
    which.add_argument("--out", type=pathlib.Path, metavar="DIRECTORY")
    arguments = parser.parse_args()
    differing = 0

    def take(case, emit, places, first_octet=0):
        """Compares a case, or writes its captures; the number of captures that differ."""
        others = 0
        with tempfile.TemporaryDirectory() as folder:
            for taken in captures(emit, pathlib.Path(folder), places):
                name = f"kernel_{case}_{taken.name}"
                if arguments.out:
                    shutil.copy(taken, arguments.out / name)
                    continue
                made, stored = (
                    [packet[first_octet:] for packet in rocev2(file)] for file in (taken, GOLDEN / name)
                )
                print(f"{name}: {len(stored)} packets, {'the same' if made == stored else 'OTHERS'}")
                others += made != stored
        return others

    try:
        lay_out()
        enter("h1")
        links = [(left, f"{letter}1", name) for letter, (left, _, name) in LINKS.items()]
        for case, emit in steps():
            differing += take(case, emit, links)
        lay_out_multicast()
        with forward_multicast():
            enter("ms")
            file = GOLDEN / f"kernel_{MULTICAST}_1src.pcap"
            places = [(leaf, end, name) for leaf, (end, _, name) in LEAVES.items()]
            # The MAC addresses are the kernel's choice.
            differing += take(MULTICAST, lambda: replay(file, "s0"), places, first_octet=14)
    finally:
        remove()
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
