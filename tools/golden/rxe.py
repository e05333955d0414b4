#!/usr/bin/python3
"""Takes captures as those of testdata/golden/rxe again, or compares this kernel's `rdma_rxe` with them.

    tools/golden/rxe.py --check          compare what two guests say with the captures
    tools/golden/rxe.py --out DIRECTORY  write captures

Two guests of QEMU, g1 and g2, with the image of labs/rxe, whose program `peer` drives a queue pair of each. The link
between them is this program: it carries frames, records those at g1's end, loses the one that a case names, sets CE and
sends a CNP. Root is not needed. Needs QEMU 7.2, scapy, and what labs/rxe/README.md lists for the image, which takes a
quarter of a minute and, the first time, a download of 80 MB. Nothing of srdma's own code takes part but that image.

Compared are the packets of each direction in their order, without queue pair numbers, R_Keys, addresses of memory,
source ports, payloads and ICRCs; these last are checked apart, by icrc.py, as is the content of memory at the end.
Where two processors would race, this program decides: a packet of g2 waits until g1 has sent the message that it is
at, so in send_t1 ACKs pass packets otherwise than in the capture. The local ACK timeout is 0.5 s, not 67 ms: an
emulated processor that has to wait for others would let that one expire without cause.
"""

import os
import pathlib
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import PcapWriter, RawPcapReader

from captures import bth, rocev2
from icrc import icrc
from stored import GOLDEN, asked, reported

IMAGE = pathlib.Path(__file__).parents[2] / "labs" / "rxe"
HOSTS = {"g1": ("fd00:99::1", "52:54:00:39:d8:a3"), "g2": ("fd00:99::2", "52:54:00:50:2d:2a")}
FIRST_PSN = {"g1": 0x1000, "g2": 0x2000}
#: A serial port of each guest has a program with this path MTU.
PATH_MTUS = (1024, 4096)
ACK_TIMEOUT = 17
MTU = 4500
BUFFER = 64 << 10
BOOT_SECONDS = RUN_SECONDS = 120
MAX_FRAME = 65535
ECT_0, CE = 2, 3
ACKNOWLEDGE, CNP = 17, 129
#: Opcodes of packets that end a message.
LAST = (2, 3, 4, 5, 8, 10)


class Frame:
    """A RoCEv2 packet over IPv6 in Ethernet."""

    def __init__(self, octets):
        self.octets = octets
        self.bth = octets[62:74]
        self.opcode, self.psn = self.bth[0], int.from_bytes(self.bth[9:12], "big")

    @classmethod
    def of(cls, octets):
        """`None` for another frame."""
        is_rocev2 = octets[12:14] == b"\x86\xdd" and octets[20] == socket.IPPROTO_UDP and octets[56:58] == b"\x12\xb7"
        return cls(octets) if is_rocev2 else None

    @property
    def source(self):
        return socket.inet_ntop(socket.AF_INET6, self.octets[22:38])

    @property
    def extended_header(self):
        """AETH, immediate data, or the length of RETH: the parts that do not depend on memory."""
        if self.opcode in (6, 10):
            return self.octets[86:90]
        return self.octets[74:78] if self.opcode in (3, 5, ACKNOWLEDGE) else b""

    def compared(self):
        """All headers, without what each run draws."""
        ip, udp, bth = self.octets[14:54], self.octets[56:62], self.bth[:5] + self.bth[8:]
        return b" ".join(part.hex().encode() for part in (ip, udp, bth, self.extended_header)).decode()

    def is_right(self):
        return icrc(self.octets[14:-4]) == self.octets[-4:]


class Link:
    """What carries frames from each guest to the other one: Unix datagrams, one a frame."""

    def __init__(self, folder):
        self.ends, self.far = {}, {}
        for name in HOSTS:
            self.ends[name] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.ends[name].bind(str(folder / f"{name}-link"))
            self.far[name] = str(folder / f"{name}-guest")
        self.case, self.seen, self.waiting, self.is_amid_message = None, [], [], False
        self.lock = threading.Lock()
        threading.Thread(target=self.carry, daemon=True).start()

    def netdev(self, name):
        """The option of QEMU."""
        local, remote = self.far[name], self.ends[name].getsockname()
        return f"dgram,id=network,local.type=unix,local.path={local},remote.type=unix,remote.path={remote}"

    def start(self, case):
        """From now on frames are carried as a case says."""
        with self.lock:
            self.case, self.seen, self.waiting, self.is_amid_message = case, [], [], False

    def end(self):
        """The frames at g1's end with their times, until now."""
        with self.lock:
            self.case = None
            return self.seen

    def carry(self):
        while True:
            for end in select.select(self.ends.values(), (), ())[0]:
                octets = end.recv(MAX_FRAME)
                frame = Frame.of(octets)
                from_g1 = end is self.ends["g1"]
                with self.lock:
                    if self.case and frame:
                        self.carry_for_case(frame, from_g1)
                    else:
                        self.send("g2" if from_g1 else "g1", octets)

    def carry_for_case(self, frame, from_g1):
        case = self.case
        if from_g1:
            self.seen.append((time.time(), frame))
            if not case.loses(frame):
                self.send("g2", case.marked(frame))
            for cnp in case.cnps(frame):
                self.seen.append((time.time(), cnp))
                self.send("g1", cnp.octets)
            self.is_amid_message = frame.opcode not in LAST
        elif not case.loses(frame):
            self.waiting.append(frame)
        while self.waiting and not self.is_amid_message:
            frame = self.waiting.pop(0)
            self.seen.append((time.time(), frame))
            self.send("g1", frame.octets)

    def send(self, name, octets):
        try:
            self.ends[name].sendto(octets, self.far[name])
        except (ConnectionRefusedError, FileNotFoundError):
            # That guest has not started yet.
            pass


class Guest:
    def __init__(self, name, image, folder, link):
        self.name, self.folder, self.ports = name, folder, {}
        address, mac = HOSTS[name]
        line = "console=ttyS0 quiet panic=-1 mitigations=off cryptomgr.notests nokaslr tsc=unstable noapictimer "
        # Neighbour discovery needs a link-local address.
        line += f"no_timer_check host={name} addresses={address}/64,fe80::{name[1:]}/64 mtu={MTU}"
        words = "qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -machine pc,usb=off -accel tcg -cpu max"
        words = words.split() + ["-smp", "1", "-m", "192", "-display", "none", "-netdev", link.netdev(name)]
        words += ["-device", f"virtio-net-pci,netdev=network,mac={mac},romfile=", "-device", "virtio-serial-pci"]
        words += ["-serial", f"file:{self.console}", "-kernel", image / "vmlinux", "-initrd", image / "initramfs.cpio"]
        for mtu in PATH_MTUS:
            words += ["-chardev", f"socket,id=port{mtu},path={self.port(mtu)},server=on,wait=off"]
            words += ["-device", f"virtserialport,chardev=port{mtu}"]
        self.process = subprocess.Popen([*words, "-append", line], stdin=subprocess.DEVNULL)

    @property
    def console(self):
        return self.folder / f"{self.name}-console"

    def port(self, mtu):
        return self.folder / f"{self.name}-{mtu}"

    def wait(self):
        """Waits until it has booted, and starts its programs."""
        deadline = time.monotonic() + BOOT_SECONDS
        while not (self.console.exists() and "READY " in self.console.read_text(errors="replace")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{self.name} does not boot: {self.console.read_text(errors='replace')[-500:]}")
            time.sleep(0.1)
        for mtu in PATH_MTUS:
            self.ports[mtu] = Program(self, mtu)

    def end(self):
        self.process.kill()
        self.process.wait()


class Program:
    """`peer` in a guest."""

    def __init__(self, guest, mtu):
        self.guest = guest
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(RUN_SECONDS)
        connection.connect(str(guest.port(mtu)))
        self.file = connection.makefile("rw")
        self.say(f"exec peer {BUFFER} {mtu} {ACK_TIMEOUT} 2>&1")
        _, self.rkey, self.base = self.values()

    def say(self, line):
        self.file.write(line + "\n")
        self.file.flush()

    def values(self):
        """What the values of a response are; ends this program for an error."""
        line = self.file.readline().strip()
        verdict, *words = line.split()
        if verdict != "OK":
            sys.exit(f"{self.guest.name}: {line}")
        return [word.partition("=")[2] for word in words]

    def do(self, line):
        self.say(line)
        return self.values()


class Case:
    """A transfer from g1 to g2 over a link without faults."""

    octets, message, mtu, traffic_class = 4096, None, 1024, 0
    verb = "write"

    def __init__(self, **values):
        vars(self).update(values)

    def loses(self, frame):
        return False

    def marked(self, frame):
        return frame.octets

    def cnps(self, frame):
        return []

    def run(self, guests):
        g1, g2 = programs = [guest.ports[self.mtu] for guest in guests]
        (pair, number), (far_pair, far_number) = (
            program.do(f"open {FIRST_PSN[program.guest.name]}") for program in programs
        )
        self.number = int(number, 0)
        ends = (g1, pair, "g2", far_number), (g2, far_pair, "g1", number)
        for program, own, far, qpn in ends:
            address = HOSTS[far][0]
            program.do(f"connect {own} {address} {qpn} {FIRST_PSN[far]} {self.traffic_class}")
        g1.do("fill 7")
        g2.do("fill 0")
        message = self.message or self.octets
        extent = f"0 {self.octets} {message}"
        if self.verb == "write":
            g1.do(f"write {pair} {extent} {g2.rkey} {g2.base}")
        else:
            g2.do(f"receive {far_pair} {extent}")
            g1.do(f"send {pair} {extent} {self.verb.partition(' ')[2]}")
        g1.do(f"run {RUN_SECONDS * 1000}")
        if self.verb != "write":
            g2.do(f"wait {-(-self.octets // message)} {RUN_SECONDS * 1000}")
        sums = {tuple(program.do(f"sha256 0 {self.octets}")) for program in programs}
        if len(sums) != 1:
            sys.exit("g2 has not what g1 has sent")


class Loss(Case):
    """The first packet of an opcode or with a PSN is lost: behind g1's end one of g1, before it one of g2."""

    psn, opcode, is_done = None, None, False

    def loses(self, frame):
        is_it = not self.is_done and (frame.opcode == self.opcode or frame.psn == self.psn)
        self.is_done |= is_it
        return is_it


class Congestion(Case):
    """Behind g1's end all packets of g1 get CE; g1 receives a CNP after its second one."""

    traffic_class = ECT_0

    def marked(self, frame):
        octets = bytearray(frame.octets)
        octets[15] |= CE << 4
        return bytes(octets)

    def cnps(self, frame):
        if frame.psn != FIRST_PSN["g1"] + 1:
            return []
        (destination, to), (source, by) = HOSTS["g1"], HOSTS["g2"]
        packet = rocev2(IPv6(src=source, dst=destination), 49443, bth(CNP, self.number, 0), bytes(16))
        return [Frame(bytes(Ether(dst=to, src=by, type=0x86DD)) + packet)]


CASES = {
    "write_1024_t1": lambda: Case(octets=20_000),
    "write_4096_t1": lambda: Case(octets=40_000, mtu=4096),
    "send_t1": lambda: Case(verb="send", octets=15_000, message=5_000),
    "send_imm_t1": lambda: Case(verb="send 0x55667788", octets=777),
    "nak_seq_t1": lambda: Loss(psn=FIRST_PSN["g1"] + 2, octets=10_240),
    "timeout_last_lost_t1": lambda: Loss(psn=FIRST_PSN["g1"] + 3),
    "ack_lost_t1": lambda: Loss(opcode=ACKNOWLEDGE),
    "ecn_ce_and_injected_cnp_t1": lambda: Congestion(octets=10_240),
}


def take(case, link, guests):
    """The frames of a case at g1's end, with their times."""
    link.start(case)
    case.run(guests)
    return link.end()


def by_source(frames):
    """What is compared."""
    return [[frame.compared() for frame in frames if frame.source == address] for address, _ in HOSTS.values()]


def differences(name, made):
    """Texts for what is not as in the capture."""
    stored = [Frame(octets) for octets, _ in RawPcapReader(str(GOLDEN / "rxe" / f"{name}.pcap"))]
    for kind, frames in (("made", made), ("stored", stored)):
        if not all(frame.is_right() for frame in frames):
            yield f"{name}: an ICRC of a frame {kind} is wrong"
    for host, own, other in zip(HOSTS, by_source(made), by_source(stored)):
        if own != other:
            lines = (f"\n  {kind}\n    " + "\n    ".join(lines) for kind, lines in (("made", own), ("stored", other)))
            yield f"{name}: packets of {host} differ:" + "".join(lines)


def build_image(folder):
    """The image of the guests; packages that were downloaded stay where `srdma lab` has them."""
    cache = pathlib.Path(os.environ.get("SRDMA_CACHE") or pathlib.Path.home() / ".cache" / "srdma")
    subprocess.run([IMAGE / "build.sh", "build", folder, cache / "rxe" / "packages"], check=True, stdout=sys.stderr)


def main():
    arguments = asked(__doc__)
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        image = folder / "image"
        build_image(image)
        link = Link(folder)
        guests = []
        try:
            guests += [Guest(name, image, folder, link) for name in HOSTS]
            for guest in guests:
                guest.wait()
            for name, make in CASES.items():
                frames = take(make(), link, guests)
                if arguments.check:
                    found += differences(name, [frame for _, frame in frames])
                    continue
                with PcapWriter(str(arguments.out / f"{name}.pcap"), linktype=1) as writer:
                    writer.write_header(None)
                    for at, frame in frames:
                        writer.write_packet(frame.octets, sec=int(at), usec=int(at % 1 * 1e6))
        finally:
            for guest in guests:
                guest.end()
    return reported(found, len(CASES), "capture", arguments.check)


if __name__ == "__main__":
    sys.exit(main())
