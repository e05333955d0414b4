"""The ICRC of RoCEv2 packets, bit by bit from the rules: IBTA volume 1 section 7.8.1 and annex A17.3.3.

Independent of scapy, of zlib and of srdma. Neither document says what the ICRC covers of IPv6 extension headers between
the IPv6 header and UDP, so that is an argument: `INCLUDED` covers them as they stand, `AS_IF_ABSENT` computes over the
packet as it would be without them (D43, the reading of srdma).
"""

import struct

INCLUDED = "included"
AS_IF_ABSENT = "as if absent"

IPV6_OCTETS = 40
UDP_OCTETS = 8
BTH_OCTETS = 12
UDP = 17
EXTENSION_HEADERS = (0, 43, 60)


def crc32(octets):
    """The CRC of Ethernet: polynomial 0x04C11DB7, bits reversed, all ones before and after."""
    remainder = 0xFFFFFFFF
    for octet in octets:
        remainder ^= octet
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xEDB88320 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def icrc(packet, extension_headers=INCLUDED):
    """The four octets behind `packet`, which begins with its IPv4 or IPv6 header and ends before them."""
    if packet[0] >> 4 == 4:
        udp_at = packet[0] % 16 * 4
        header, between = bytearray(packet[:udp_at]), b""
        # Type of service, time to live, header checksum.
        for masked in (1, 8, 10, 11):
            header[masked] = 0xFF
    else:
        next_header, udp_at = packet[6], IPV6_OCTETS
        while next_header in EXTENSION_HEADERS:
            next_header, udp_at = packet[udp_at], udp_at + 8 * (packet[udp_at + 1] + 1)
        if next_header != UDP:
            raise ValueError("no UDP")
        header, between = bytearray(packet[:IPV6_OCTETS]), packet[IPV6_OCTETS:udp_at]
        # Traffic class, flow label, hop limit.
        header[0] |= 0x0F
        header[1:4] = b"\xff\xff\xff"
        header[7] = 0xFF
        if extension_headers == AS_IF_ABSENT:
            (length,) = struct.unpack("!H", header[4:6])
            header[4:6] = struct.pack("!H", length - len(between))
            header[6], between = UDP, b""
    udp = bytearray(packet[udp_at : udp_at + UDP_OCTETS])
    udp[6:8] = b"\xff\xff"
    bth_at = udp_at + UDP_OCTETS
    bth = bytearray(packet[bth_at : bth_at + BTH_OCTETS])
    bth[4] = 0xFF
    covered = b"\xff" * 8 + bytes(header) + between + bytes(udp) + bytes(bth) + packet[bth_at + BTH_OCTETS :]
    return struct.pack("<I", crc32(covered))


def with_icrc(packet, extension_headers=INCLUDED):
    """`packet`, whose last four octets are any, with its ICRC there."""
    return packet[:-4] + icrc(packet[:-4], extension_headers)
