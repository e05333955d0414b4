"""Makes the captures of this directory: classic pcap by scapy, pcapng octet by octet from its specification."""
import struct
from scapy.utils import RawPcapReader, RawPcapWriter

frames = [octets for octets, _ in RawPcapReader("../golden/scapy_01_rocev2_base.pcap")]

for name, endianness, nano in [("be_us", ">", False), ("be_ns", ">", True), ("le_ns", "<", True)]:
    writer = RawPcapWriter(f"{name}.pcap", linktype=1, endianness=endianness, nano=nano)
    writer.write_header(None)
    for index, frame in enumerate(frames):
        writer.write_packet(frame, sec=1700000000 + index, usec=123456789 if nano else 123456)
    writer.close()


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


with open("two_sections.pcapng", "wb") as file:
    second = 1700000000
    for order in ">", "<":
        file.write(section(order))
        file.write(interface(order, 1, 60, b"S1-N6"))
        file.write(interface(order, 1, 0, b"N6-N4", resolution=9))
        file.write(block(order, 0x0BAD, b"a private block"))
        file.write(enhanced(order, 0, second * 10**6 + 5, frames[0][:60], len(frames[0])))
        file.write(enhanced(order, 1, second * 10**9 + 7, frames[1]))
        file.write(interface(order, 101, 0, b"tun0", resolution=0x80 | 20, offset=1000))
        file.write(enhanced(order, 2, (second - 1000) << 20 | 1 << 19, frames[2][14:]))
        file.write(obsolete(order, 1, second * 10**9 + 9, frames[3]))
        file.write(simple(order, frames[4], 60))
        second += 100
