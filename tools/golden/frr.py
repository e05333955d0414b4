#!/usr/bin/python3
"""Takes the captures frr84_isis_lan and frr84_ospf6 of testdata/golden again, or compares this FRR with them.

    sudo tools/golden/frr.py --check          compare what this FRR floods with the captures
    sudo tools/golden/frr.py --out DIRECTORY  write captures

IS-IS: F1, F2 and F3 on a bridge, with multi-topology; F2 and F3 have a second link. F3 starts when F1 and F2 are
neighbours, and is killed when it is the designated one. OSPFv3: A and B on a point-to-point link. Needs root, iproute2,
dumpcap, scapy, and FRR 8.4 in /usr/lib/frr, as Debian 12 has it. Nothing of srdma takes part.

When FRR sends differs from run to run. Compared is what it says: the fullest content of each system's LSP while F3 is
the designated one, the last one of each LSP, and the content of each LSA, without sequence numbers, ages and checksums;
and what hellos have once they name a neighbour.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from scapy.utils import RawPcapReader

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata" / "golden"
PREFIX = f"frr{os.getpid()}-"
DAEMONS = pathlib.Path("/usr/lib/frr")
# The pseudonode of F3, which has the highest priority.
DESIGNATED = "00000000000302"


def run(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, **options)


class Network:
    """Namespaces, and the daemons in them."""

    def __init__(self, folder):
        self.folder, self.nodes, self.running = folder, [], {}
        folder.chmod(0o755)

    def node(self, name, *addresses):
        run("ip", "netns", "add", PREFIX + name)
        self.nodes.append(name)
        self.inside(name, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1", "net.ipv6.conf.default.accept_dad=0")
        self.inside(name, "ip", "link", "set", "lo", "up")
        for address in addresses:
            self.inside(name, "ip", "addr", "add", address, "dev", "lo", "nodad")

    def inside(self, node, *words):
        return run("ip", "netns", "exec", PREFIX + node, *words)

    def link(self, *ends):
        """Two ends, each a node, an interface and a MAC address."""
        first, second = (["name", interface, "address", mac, "netns", PREFIX + node] for node, interface, mac in ends)
        run("ip", "link", "add", *first, "type", "veth", "peer", *second)
        for node, interface, _ in ends:
            self.inside(node, "ip", "link", "set", "dev", interface, "up")

    def start(self, node, configuration, *daemons):
        """Daemons with a configuration, the first one zebra."""
        folder = self.folder / node
        folder.mkdir()
        shutil.chown(folder, "frr", "frr")
        file = folder / "frr.conf"
        file.write_text(configuration)
        for daemon in daemons:
            words = ["-P", "0", "-f", file, "-i", folder / f"{daemon}.pid", "-z", folder / "zserv"]
            words += ["--vty_socket", folder]
            command = ["ip", "netns", "exec", PREFIX + node, DAEMONS / daemon, *words]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self.running[node, daemon] = subprocess.Popen(command, **quiet)
            time.sleep(0.3)

    def end(self, node, daemon, by="terminate"):
        process = self.running.pop((node, daemon))
        getattr(process, by)()
        process.wait()

    def capture(self, node, interface, file):
        command = ["ip", "netns", "exec", PREFIX + node, "dumpcap", "-q", "-P", "-i", interface, "-w", str(file)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while not process.stderr.readline().startswith("File:"):
            if process.poll() is not None:
                sys.exit(f"dumpcap does not capture at {interface}")
        return process

    def remove(self):
        for process in self.running.values():
            process.kill()
            process.wait()
        for node in self.nodes:
            subprocess.run(["ip", "netns", "del", PREFIX + node], capture_output=True, check=False)


def lan_configuration(number, priority, second):
    """What F1, F2 or F3 is configured with."""
    interface = lambda name, *lines: "\n".join([f"interface {name}", " ipv6 router isis lan", *lines, "!"])
    hello = (" isis circuit-type level-2-only", " isis hello-interval 1", " no isis hello padding")
    on_lan = (*hello, " isis csnp-interval 3", f" isis priority {priority}", " isis metric 7")
    between = (*hello, " isis network point-to-point", " isis metric 20")
    return "\n".join([
        f"hostname F{number}",
        interface("lo", " isis passive"),
        interface("lan", *on_lan),
        *([interface("second", *between)] if second else []),
        "router isis lan",
        f" net 49.0001.0000.0000.000{number}.00",
        " is-type level-2-only",
        " topology ipv6-unicast",
        " lsp-gen-interval 1",
        " spf-interval 1\n",
    ])


def isis_lan(network, file):
    network.node("lan")
    network.inside("lan", "ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    network.inside("lan", "ip", "link", "set", "br0", "up")
    for number in (1, 2, 3):
        network.node(f"F{number}", f"2001:db8:ff:{number}::1/128")
        ends = (f"F{number}", "lan", f"02:00:00:00:0f:0{number}"), ("lan", f"f{number}", f"02:00:00:00:0b:0{number}")
        network.link(*ends)
        network.inside("lan", "ip", "link", "set", f"f{number}", "master", "br0")
    network.link(("F2", "second", "02:00:00:00:02:03"), ("F3", "second", "02:00:00:00:03:02"))
    capture = network.capture("lan", "br0", file)
    for number, priority in ((1, 60), (2, 70)):
        network.start(f"F{number}", lan_configuration(number, priority, number == 2), "zebra", "isisd")
    neighbours = lambda said, lsp: sum(len(values) for kind, values in said["last"].get(lsp, ()) if kind in (22, 222))
    lsp = lambda system, pseudonode=0: f"{system:012x}{pseudonode:02x}00"
    until(file, said_by_isis, lambda said: neighbours(said, lsp(1)) == 1 and neighbours(said, lsp(2)) == 1)
    network.start("F3", lan_configuration(3, 80, True), "zebra", "isisd")
    designated = lambda said, system, by: lsp(by, 2)[:14] in str(said["last"].get(lsp(system)))
    of_three = lambda said: [neighbours(said, of) for of in (lsp(2), lsp(3), lsp(3, 2))]
    all_by_3 = lambda said: all(designated(said, system, 3) for system in (1, 2, 3))
    until(file, said_by_isis, lambda said: of_three(said) == [2, 2, 3] and all_by_3(said))
    network.end("F3", "isisd", "kill")
    is_gone = lambda said: neighbours(said, lsp(2)) == 1 and neighbours(said, lsp(2, 2)) == 2
    until(file, said_by_isis, lambda said: is_gone(said) and designated(said, 1, 2) and designated(said, 2, 2))
    network.end("F1", "isisd")
    network.end("F2", "isisd")
    return capture


def until(file, said, holds):
    """Waits until what a capture has so far says something."""
    for _ in range(120):
        time.sleep(0.5)
        if holds(said(frames(file))):
            return
    sys.exit(f"{file.stem}: FRR has not said it within a minute")


def ospf6(network, file):
    for number, name in enumerate("ab", 1):
        network.node(name, f"2001:db8:ff:{name}::1/128")
    network.link(("a", "link", "02:00:00:00:00:0a"), ("b", "link", "02:00:00:00:00:0b"))
    network.inside("a", "ip", "addr", "add", "2001:db8:0:1::1/64", "dev", "link", "nodad")
    capture = network.capture("a", "link", file)
    for number, name in enumerate("ab", 1):
        network.start(name, "\n".join([
            f"hostname {name.upper()}",
            "interface lo",
            " ipv6 ospf6 area 0.0.0.0",
            "interface link",
            " ipv6 ospf6 area 0.0.0.0",
            " ipv6 ospf6 network point-to-point",
            " ipv6 ospf6 hello-interval 1",
            " ipv6 ospf6 dead-interval 4",
            "router ospf6",
            f" ospf6 router-id 10.0.0.{number}\n",
        ]), "zebra", "ospf6d")
    # Each has acknowledged the other's LSAs: two of links, two routers, two of prefixes, and those without the link.
    until(file, said_by_ospf, lambda said: len(said["LSAs"]) >= 8)
    time.sleep(5)
    for name in "ab":
        network.end(name, "ospf6d")
    return capture


def number(octets):
    return int.from_bytes(octets, "big")


def tlvs(octets):
    """TLVs with their values, ordered; those of neighbours, which have no sub-TLVs here, with a value for each."""
    found = []
    while len(octets) >= 2:
        kind, value = octets[0], octets[2 : 2 + octets[1]]
        skipped = {22: 0, 222: 2}.get(kind)
        values = [value] if skipped is None else [value[at : at + 11] for at in range(skipped, len(value), 11)]
        found.append((kind, tuple(sorted(value.hex() for value in values))))
        octets = octets[2 + octets[1] :]
    return tuple(sorted(found))


def said_by_isis(frames):
    """The fullest content of systems' LSPs, the last of all, and priorities and kinds of TLVs of hellos."""
    fullest, last, hellos = {}, {}, set()
    for frame in frames:
        pdu = frame[17 : 14 + number(frame[12:14])]
        if frame[14:17] != b"\xfe\xfe\x03" or len(pdu) < 27:
            continue
        if pdu[4] & 0x1F == 16:
            kinds = tuple(kind for kind, _ in tlvs(pdu[27:]))
            # The first ones may come before the interface has its address, and before or after one of a neighbour.
            if {6, 232} <= set(kinds):
                hellos.add((pdu[9:15].hex(), pdu[19], kinds))
        elif pdu[4] & 0x1F == 20 and number(pdu[10:12]) > 0:
            lsp, content = pdu[12:20].hex(), tlvs(pdu[27:])
            if lsp.endswith("0000"):
                size = lambda of: (len(of), sum(len(values) for _, values in of), DESIGNATED in str(of))
                fullest[lsp] = max(content, fullest.get(lsp, ()), key=size)
            last[lsp] = content
    return {"fullest": fullest, "last": last, "hellos": hellos}


def said_by_ospf(frames):
    """The content of LSAs that are not flushed, and what hellos have but neighbours."""
    lsas, hellos = set(), set()
    for frame in frames:
        if number(frame[12:14]) != 0x86DD or frame[20] != 89:
            continue
        ospf = frame[54 : 54 + number(frame[18:20])]
        if ospf[1] == 1:
            hellos.add((ospf[4:8].hex(), ospf[20:36].hex()))
        elif ospf[1] == 4:
            at = 20
            for _ in range(number(ospf[16:20])):
                length = number(ospf[at + 18 : at + 20])
                if number(ospf[at : at + 2]) & 0x7FFF < 3600:
                    lsas.add((ospf[at + 2 : at + 12].hex(), ospf[at + 20 : at + length].hex()))
                at += length
    return {"LSAs": lsas, "hellos": hellos}


CAPTURES = {"frr84_isis_lan": (isis_lan, said_by_isis), "frr84_ospf6": (ospf6, said_by_ospf)}


def frames(file):
    return [octets for octets, _ in RawPcapReader(str(file))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--check", action="store_true")
    which.add_argument("--out", type=pathlib.Path, metavar="DIRECTORY")
    arguments = parser.parse_args()
    differing = 0
    for name, (take, said) in CAPTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            network, file = Network(pathlib.Path(folder)), pathlib.Path(folder) / f"{name}.pcap"
            try:
                capture = take(network, file)
                time.sleep(1)
                capture.terminate()
                capture.communicate()
            finally:
                network.remove()
            if arguments.out:
                shutil.copy(file, arguments.out)
                continue
            made, stored = said(frames(file)), said(frames(GOLDEN / file.name))
        for what in made:
            if made[what] != stored[what]:
                differing += 1
                print(f"{name}: {what} differ:\n  made   {made[what]}\n  stored {stored[what]}")
        if made == stored:
            print(f"{name}: the same")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
