#!/usr/bin/python3
"""Writes the captures scapy_08_isis and scapy_09_isis_purges of testdata/golden, or checks that they are there.

    tools/golden/isis.py --check          compare with testdata/golden, frame by frame
    tools/golden/isis.py --out DIRECTORY  write them

Headers, lengths, checksums and TLVs that scapy knows are scapy's (2.5 or later: Debian's python3-scapy), the digests
are those of Python's hmac. Sub-TLVs of SRv6 are written here from RFC 9352, and code points that the drafts leave open
are those of docs/spec/decisions.md: our own reading, written apart from the project's code.
"""

import hashlib
import hmac
import logging
import socket
import struct
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.contrib.isis import (
    ISIS_AreaEntry,
    ISIS_AreaTlv,
    ISIS_CommonHdr,
    ISIS_DynamicHostnameTlv,
    ISIS_GenericSubTlv,
    ISIS_GenericTlv,
    ISIS_L2_LSP,
    ISIS_P2P_Hello,
    ISIS_P2PAdjacencyStateTlv,
    ISIS_ProtocolsSupportedTlv,
    ISIS_RouterCapabilityTlv,
)
from scapy.layers.l2 import LLC, Dot3

import stored

#: Endpoint behaviours for private use (RFC 8986 section 10.2.2), and the C-flag behind the O-flag of RFC 9352.
END_C, END_E = 0x8001, 0x8002
O_FLAG, C_FLAG = 0x4000, 0x2000
U_N = 48
SECRET, KEY_ID = b"srdma-wan", 7

AREA = ISIS_AreaTlv(areas=[ISIS_AreaEntry(areaid="49.0001")])
IPV6 = ISIS_ProtocolsSupportedTlv(nlpids=["IPv6"])


def octets(address):
    return socket.inet_pton(socket.AF_INET6, address)


def tlv(kind, value):
    return ISIS_GenericTlv(type=kind, val=value)


def sub_tlv(kind, value):
    return struct.pack("BB", kind, len(value)) + value


def prefixed(sub_tlvs):
    return bytes([len(sub_tlvs)]) + sub_tlvs


def structure(block, node, function, argument):
    """SRv6 SID Structure (RFC 9352 section 9)."""
    return sub_tlv(1, bytes([block, node, function, argument]))


def end_sid(behaviour, sid, function, argument=0):
    """SRv6 End SID (RFC 9352 section 7.2)."""
    return sub_tlv(5, struct.pack("!BH", 0, behaviour) + octets(sid) + prefixed(structure(32, 16, function, argument)))


def locator(sids):
    """TLV 27 with the locator 5f00:0:9::/48, metric 0 (RFC 9352 section 7.1)."""
    entry = struct.pack("!IBBB", 0, 0, 0, 48) + octets("5f00:0:9::")[:6] + prefixed(sids)
    return tlv(27, struct.pack("!H", 0) + entry)


def reachable(metric):
    """TLV 236 with the locator's prefix (RFC 5308)."""
    return tlv(236, struct.pack("!IBB", metric, 0, 48) + octets("5f00:0:9::")[:6])


def neighbour(sub_tlvs=b""):
    """TLV 22: system 1 (RFC 5305)."""
    return tlv(22, bytes.fromhex("00000000000100") + bytes([0, 0, 10]) + prefixed(sub_tlvs))


def capability(flags, *others):
    srv6 = ISIS_GenericSubTlv(type=25, val=struct.pack("!H", flags))
    return ISIS_RouterCapabilityTlv(routerid="10.0.0.9", flags=0, subtlvs=[srv6, *others])


def frame(source, pdu, to="09:00:2b:00:00:05"):
    header = Dot3(src=f"02:00:00:00:00:{source:02x}", dst=to) / LLC(dsap=0xFE, ssap=0xFE, ctrl=3)
    return bytes(header / ISIS_CommonHdr() / pdu)


def lsp(system, number, tlvs, lifetime, **fields):
    return ISIS_L2_LSP(
        lspid=f"0000.0000.{system:04}.00-00", seqnum=number, lifetime=lifetime, typeblock=3, tlvs=tlvs, **fields
    )


def srv6():
    """LSPs of system 9: uN, END.C and END.E with the flags O and C; the O-flag alone; End.X with the C-flag; and the
    draft's Figure 3 to the letter, two SIDs in one sub-TLV, which RFC 9352 does not allow (D65)."""
    base = [AREA, IPV6, ISIS_DynamicHostnameTlv(hostname="pe9")]
    depths = ISIS_GenericSubTlv(type=23, val=bytes([41, 8, 42, 8, 44, 8, 45, 8]))
    sids = end_sid(U_N, "5f00:0:9::", 0, 80)
    sids += end_sid(END_C, "5f00:0:9:c000::", 16) + end_sid(END_E, "5f00:0:9:d000::", 16)
    end_x = struct.pack("!BBBH", 0, 0, 0, 57) + octets("5f00:0:9:e001::") + prefixed(structure(32, 16, 16, 64))
    both = struct.pack("!BH", 0, END_C) + octets("5f00:0:9:c000::") + octets("5f00:0:9:d000::") + b"\0"
    contents = [
        [capability(C_FLAG | O_FLAG, depths), locator(sids), reachable(10)],
        [capability(O_FLAG)],
        [capability(C_FLAG), neighbour(sub_tlv(43, end_x))],
        [capability(C_FLAG), locator(sub_tlv(5, both))],
    ]
    numbered = enumerate(contents, 1)
    return [frame(9, lsp(9, number, base + tlvs, 1199), "01:80:c2:00:00:15") for number, tlvs in numbered]


def md5(text):
    return hmac.new(SECRET, text, hashlib.md5).digest()


def sha256(text):
    return hmac.new(SECRET, text, hashlib.sha256).digest()


#: Octets before the digest in the TLV, the digest while it is computed, and its function (RFC 5304, RFC 5310).
MD5 = (b"\x36", bytes(16), md5)
SHA256 = (struct.pack("!BH", 3, KEY_ID), bytes.fromhex("878fe1f3") * 8, sha256)


def signed(source, pdu, kind, checksum=None):
    """The frame of a PDU whose first TLV is to be a signature. That of an LSP covers neither lifetime nor checksum,
    and the checksum covers the signature; a purge has `checksum` instead."""
    before, placeholder, digest = kind
    pdu.tlvs = [tlv(10, before + placeholder), *pdu.tlvs]
    is_lsp = isinstance(pdu, ISIS_L2_LSP)
    text = bytearray(bytes(ISIS_CommonHdr() / pdu))
    if is_lsp:
        # Behind the common header of 8 octets: length, lifetime, LSP ID, number, checksum.
        text[10:12] = text[24:26] = bytes(2)
    pdu.tlvs[0] = tlv(10, before + digest(bytes(text)))
    if checksum is not None:
        pdu.checksum = checksum
    return frame(source, pdu)


def checksum_of(octets_of_frame):
    """That of an LSP: behind the headers of 17 octets for Ethernet and LLC."""
    return int.from_bytes(octets_of_frame[17 + 24 : 17 + 26], "big")


def purges():
    """Hellos, LSPs and purges with signatures; TLV 13 names who has purged, and whose purge that was (RFC 6232)."""

    def hello(system, circuit, kind):
        state = ISIS_P2PAdjacencyStateTlv(
            # scapy decides by the length which fields there are.
            len=15,
            state="Up",
            extlocalcircuitid=system,
            neighboursystemid="0000.0000.0001",
            neighbourextlocalcircuitid=circuit,
        )
        pdu = ISIS_P2P_Hello(
            circuittype=2, sourceid=f"0000.0000.{system:04}", holdingtime=30, localcircuitid=0, tlvs=[AREA, IPV6, state]
        )
        return signed(system, pdu, kind)

    def living(name, kind):
        tlvs = [AREA, IPV6, ISIS_DynamicHostnameTlv(hostname=name), neighbour(), reachable(5)]
        return signed(9, lsp(9, 5, tlvs, 1200), kind)

    def origin(*systems):
        return tlv(13, bytes([len(systems)]) + b"".join(struct.pack("!HI", 0, system) for system in systems))

    def purge(source, system, number, tlvs, kind, checksum):
        return signed(source, lsp(system, number, tlvs, 0), kind, checksum)

    first, other, third = living("p9", MD5), living("q9", MD5), living("p9", SHA256)
    known = checksum_of(first)
    return [
        hello(9, 1, MD5),
        hello(8, 2, MD5),
        first,
        purge(9, 9, 5, [], MD5, known),
        purge(1, 9, 5, [origin(1)], MD5, known),
        purge(1, 9, 5, [origin(1, 9)], MD5, known),
        other,
        purge(1, 9, 5, [origin(1, 9)], MD5, checksum_of(other)),
        purge(9, 9, 5, [origin(9), ISIS_DynamicHostnameTlv(hostname="p9")], MD5, known),
        purge(9, 1, 0x100, [], MD5, 0x1234),
        hello(9, 1, SHA256),
        third,
        purge(1, 9, 5, [origin(1)], SHA256, checksum_of(third)),
    ]


CAPTURES = {"scapy_08_isis.pcap": srv6, "scapy_09_isis_purges.pcap": purges}


if __name__ == "__main__":
    sys.exit(stored.run(__doc__, CAPTURES))
