#!/usr/bin/python3
"""Writes connection.pcap, two RDMA CM exchanges, or checks that it is here.

    testdata/cm/make.py --check          compare with the capture in this directory, octet by octet
    testdata/cm/make.py --out DIRECTORY  write it

Octets are written out here after IBTA volume 1, sections 9.6, 12.6 and 13.4.3; the ICRC is computed with Python's zlib.
"""

import pathlib
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools" / "golden"))

import stored

A = bytes.fromhex("20010db8000100000000000000000001")
B = bytes.fromhex("20010db8000200000000000000000001")


def icrc(ip, udp, bth, rest):
    ip = bytes([ip[0] | 0x0F]) + b"\xff" * 3 + ip[4:7] + b"\xff" + ip[8:]
    udp = udp[:6] + b"\xff\xff"
    bth = bth[:4] + b"\xff" + bth[5:]
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + bth + rest) & 0xFFFFFFFF)


def frame(source, destination, attribute, psn, message):
    mad = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 0x1122334400000001, attribute, 0, 0)
    rest = struct.pack(">II", 0x80010000, 1) + mad + message.ljust(232, b"\0")
    bth = struct.pack(">BBHII", 0x64, 0, 0xFFFF, 1, psn)
    length = 8 + len(bth) + len(rest) + 4
    udp = struct.pack(">HHHH", 0xC123, 4791, length, 0)
    ip = struct.pack(">IHBB", 0x60000000, length, 17, 64) + source + destination
    ether = bytes.fromhex("020000000002020000000001" "86dd")
    return ether + ip + udp + bth + rest + icrc(ip, udp, bth, rest)


def request(local_id, qpn, service):
    """REQ: Local QPN at 32, Responder Resources at 35, transport service type in octet 43."""
    message = bytearray(232)
    struct.pack_into(">I", message, 0, local_id)
    struct.pack_into(">Q", message, 8, 0x0000000001064869)
    struct.pack_into(">Q", message, 16, 0x0200000000000001)
    struct.pack_into(">I", message, 32, qpn << 8 | 4)
    message[43] = 20 << 3 | service << 1 | 1
    struct.pack_into(">I", message, 44, 0x123456 << 8 | 20 << 3 | 7)
    struct.pack_into(">HB", message, 48, 0xFFFF, 5 << 4 | 7)
    message[56:72], message[72:88] = A, B
    return bytes(message)


def reply(local_id, remote_id, qpn):
    """REP: Remote Communication ID at 4, Local QPN at 12."""
    return struct.pack(">IIIIII", local_id, remote_id, 0, qpn << 8, 0, 0x654321 << 8)


def disconnect(local_id, remote_id, remote_qpn):
    """DREQ: Remote QPN at 8."""
    return struct.pack(">III", local_id, remote_id, remote_qpn << 8)


FRAMES = [
    frame(A, B, 0x0010, 1, request(0xA0A0A0A0, 0x000123, 0)),
    frame(B, A, 0x0013, 1, reply(0xB0B0B0B0, 0xA0A0A0A0, 0x00ABCD)),
    frame(A, B, 0x0014, 2, struct.pack(">II", 0xA0A0A0A0, 0xB0B0B0B0)),
    frame(A, B, 0x0015, 3, disconnect(0xA0A0A0A0, 0xB0B0B0B0, 0x00ABCD)),
    frame(B, A, 0x0016, 2, struct.pack(">II", 0xB0B0B0B0, 0xA0A0A0A0)),
    frame(A, B, 0x0010, 4, request(0xA0A0A0A1, 0x000124, 3)),
]


def write(path):
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, octets in enumerate(FRAMES):
            out.write(struct.pack("<IIII", 1_700_000_000, number * 100, len(octets), len(octets)) + octets)


if __name__ == "__main__":
    sys.exit(stored.run_files(__doc__, {"connection.pcap": write}, HERE))
