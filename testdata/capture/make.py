#!/usr/bin/python3
"""Writes the files of this directory, or checks that they are here.

    testdata/capture/make.py --check          compare with the files in this directory, octet by octet
    testdata/capture/make.py --out DIRECTORY  write them

Classic pcap is scapy's (2.5 or later: Debian's python3-scapy); pcapng is written octet by octet from its specification.
expected.tsv is what tshark reads in them; it is left out, with a message, where tshark is not installed.
"""

import pathlib
import shutil
import struct
import subprocess
import sys

from scapy.utils import RawPcapReader, RawPcapWriter

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools" / "golden"))

import stored

FRAMES = [octets for octets, _ in RawPcapReader(str(stored.GOLDEN / "scapy_01_rocev2_base.pcap"))]


def classic(endianness, nano):
    """A function that writes a classic capture."""

    def write(path):
        writer = RawPcapWriter(str(path), linktype=1, endianness=endianness, nano=nano)
        writer.write_header(None)
        for index, frame in enumerate(FRAMES):
            writer.write_packet(frame, sec=1700000000 + index, usec=123456789 if nano else 123456)
        writer.close()

    return write


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(order, code, value):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order):
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order, link_type, snaplen, name, resolution=None, offset=None):
    body = struct.pack(order + "HHI", link_type, 0, snaplen) + option(order, 2, name)
    if resolution is not None:
        body += option(order, 9, bytes([resolution]))
    if offset is not None:
        body += option(order, 14, struct.pack(order + "q", offset))
    return block(order, 1, body + option(order, 0, b""))


def enhanced(order, number, units, frame, original=None):
    fields = struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, len(frame), original or len(frame))
    comment = option(order, 1, b"a comment") + option(order, 0, b"")
    return block(order, 6, fields + frame + bytes(-len(frame) % 4) + comment)


def obsolete(order, number, units, frame):
    fields = struct.pack(order + "HHIIII", number, 0, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame))
    return block(order, 2, fields + frame)


def simple(order, frame, snaplen):
    return block(order, 3, struct.pack(order + "I", len(frame)) + frame[:snaplen])


def two_sections(path):
    with path.open("wb") as file:
        second = 1700000000
        for order in ">", "<":
            file.write(section(order))
            file.write(interface(order, 1, 60, b"S1-N6"))
            file.write(interface(order, 1, 0, b"N6-N4", resolution=9))
            file.write(block(order, 0x0BAD, b"a private block"))
            file.write(enhanced(order, 0, second * 10**6 + 5, FRAMES[0][:60], len(FRAMES[0])))
            file.write(enhanced(order, 1, second * 10**9 + 7, FRAMES[1]))
            file.write(interface(order, 101, 0, b"tun0", resolution=0x80 | 20, offset=1000))
            file.write(enhanced(order, 2, (second - 1000) << 20 | 1 << 19, FRAMES[2][14:]))
            file.write(obsolete(order, 1, second * 10**9 + 9, FRAMES[3]))
            file.write(simple(order, FRAMES[4], 60))
            second += 100


CAPTURES = {
    "be_us.pcap": classic(">", nano=False),
    "be_ns.pcap": classic(">", nano=True),
    "le_ns.pcap": classic("<", nano=True),
    "two_sections.pcapng": two_sections,
}
FIELDS = ("frame.time_epoch", "frame.cap_len", "frame.len", "frame.interface_name")


def expected(path):
    """What tshark reads in the captures, which lie beside the path. A Simple Packet Block, which has an interface and
    no time, has the time of the packet before; the private block, which has neither, is left out."""
    lines = []
    for name in CAPTURES:
        command = ["tshark", "-r", str(path.parent / name), "-T", "fields"]
        command += [word for field in FIELDS for word in ("-e", field)]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            time, *others = line.split("\t")
            if time or others[-1]:
                known = time or known
                lines.append("\t".join((name, known, *others)))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def main():
    files = dict(CAPTURES)
    if shutil.which("tshark"):
        files["expected.tsv"] = expected
    else:
        print("expected.tsv: skipped, tshark is not installed")
    return stored.run_files(__doc__, files, HERE)


if __name__ == "__main__":
    sys.exit(main())
