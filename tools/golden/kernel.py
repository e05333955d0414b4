#!/usr/bin/python3
"""Takes the captures kernel_t1 to kernel_t8 of testdata/golden again, or compares this kernel with them.

    sudo tools/golden/kernel.py --check          compare this kernel's RoCEv2 packets with those of the captures
    sudo tools/golden/kernel.py --out DIRECTORY  write captures of all links

Five network namespaces in a row, h1 - r1 - r2 - r3 - h2. h1 sends a RoCEv2 packet from a UDP socket; its route
encapsulates, the routers have SIDs. Needs root, Linux 6.6 or later, iproute2 6.1 or later, dumpcap
and scapy. Nothing of srdma
takes part. The packets to port 4791 are compared, without the flow labels that each kernel draws.
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


def inside(node, *words):
    return run("ip", "netns", "exec", PREFIX + node, *words)


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


def remove():
    for node in HOSTS:
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


def captures(route, further, folder):
    """Files with the frames on each link while h1 sends by this route, in the order of the links.

    dumpcap copies a frame when it passes. A plain packet socket shares its octets with the next router, whose SID has
    changed them when the socket is read.
    """
    via = f"encap seg6 mode {route} dev a1 via fd00:a::2".split()
    inside("h1", "ip", "-6", "route", "replace", f"{DESTINATION}/128", *via)
    files, running = [], []
    for letter, (left, _, name) in LINKS.items():
        files.append(folder / f"{name}.pcap")
        dumpcap = ["dumpcap", "-q", "-P", "-i", f"{letter}1", "-w", str(files[-1])]
        command = ["ip", "netns", "exec", PREFIX + left, *dumpcap]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    for process in running:
        # It says where it captures to as soon as it does.
        while not process.stderr.readline().startswith("File:"):
            pass
    send(False)
    for _ in range(further):
        send(True)
    time.sleep(1)
    for process in running:
        process.terminate()
        process.communicate()
    return files


def compared(frame):
    """A RoCEv2 packet of h1, without the flow labels, which kernels draw; `None` for other frames."""
    octets = bytearray(frame)
    at, next_header = 14, 41
    while True:
        if next_header == 41:
            if len(octets) < at + 40:
                return None
            octets[at + 1] &= 0xF0
            octets[at + 2 : at + 4] = bytes(2)
            next_header, at = octets[at + 6], at + 40
        elif next_header == 43:
            next_header, at = octets[at], at + 8 + 8 * octets[at + 1]
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
    try:
        lay_out()
        enter("h1")
        for case, (route, further) in CASES.items():
            with tempfile.TemporaryDirectory() as folder:
                for taken in captures(route, further, pathlib.Path(folder)):
                    name = f"kernel_{case}_{taken.name}"
                    if arguments.out:
                        shutil.copy(taken, arguments.out / name)
                        continue
                    made, stored = rocev2(taken), rocev2(GOLDEN / name)
                    print(f"{name}: {len(stored)} packets, {'the same' if made == stored else 'OTHERS'}")
                    differing += made != stored
    finally:
        remove()
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
