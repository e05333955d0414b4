"""Layers of RoCEv2 over SRv6 that scapy lacks.

>>> from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
>>> from srdma_scapy import EndMt, EndMtReceiver
>>> srh = IPv6ExtHdrSegmentRouting(addresses=["2001:db8:ff::100"], segleft=1, tlv_objects=[
...     EndMt(edge="2001:db8:a::1", receivers=[EndMtReceiver(address="2001:db8:2::1", qpn=0x111)])])

Importing it is enough for packets to be dissected: TLVs of SRHs, options of Fast CNPs, notifications to END.C,
repair requests between nodes. `icrc`
has the ICRC of RoCEv2 in IPv6, which scapy computes for IPv4 only.
"""

from zlib import crc32

from scapy.contrib.roce import AETH
from scapy.fields import (ByteEnumField, ByteField, FieldLenField, IntField, PacketListField, ShortField, StrLenField,
                          X3BytesField, XByteField, XIntField, XLongField, XShortField)
from scapy.layers.inet6 import (IP6Field, IPv6, IPv6ExtHdrSegmentRoutingTLV, _hbhoptcls, _ICMPv6, icmp6typescls,
                                 icmp6typesminhdrlen)
from scapy.packet import Packet

#: Numbers that the drafts leave open.
END_MT, MR, FAST_CNP, NOTIFICATION = 124, 125, 0x9E, 200

#: Syndrome of an AETH: NAK, code 16, which IBTA reserves.
REPAIR_REQUEST = 0x70

_ROCEV2_PORT = 4791
_UDP, _ROUTING, _EXTENSION_HEADERS = 17, 43, (0, 43, 60)


class _Entry(Packet):
    def extract_padding(self, s):
        return b"", s


def _of_edge(kind, entries, entry, octets):
    """The fields of a TLV with so many entries of an edge, of so many octets each."""
    return [
        ByteField("type", kind),
        FieldLenField("len", None, fmt="B", count_of=entries, adjust=lambda _, count: 22 + octets * count),
        XShortField("reserved", 0),
        IP6Field("edge", "::"),
        FieldLenField("count", None, fmt="B", count_of=entries),
        X3BytesField("reserved2", 0),
        PacketListField(entries, [], entry, length_from=lambda tlv: tlv.len - 22),
    ]


class EndMtReceiver(_Entry):
    """A receiver of an End.MT TLV."""

    name = "Receiver"
    fields_desc = [IP6Field("address", "::"), X3BytesField("qpn", 0), ByteField("reserved", 0)]


class EndMt(IPv6ExtHdrSegmentRoutingTLV):
    """End.MT TLV: the receivers of an edge node, eleven at most (multicast draft, section 7.2)."""

    name = "End.MT TLV"
    fields_desc = _of_edge(END_MT, "receivers", EndMtReceiver, 20)


class MrRegion(_Entry):
    """A receiver's memory region."""

    name = "Region"
    fields_desc = [XLongField("virtual_address", 0), XIntField("rkey", 0)]


class Mr(IPv6ExtHdrSegmentRoutingTLV):
    """MR TLV: the memory regions of the receivers of the End.MT TLV before it, in the same order."""

    name = "MR TLV"
    fields_desc = _of_edge(MR, "regions", MrRegion, 12)


class FastCnp(_Entry):
    """The option of a Fast CNP: with an IOAM trace it is option 2, without one option 1 (Fast CNP draft, section 4)."""

    name = "Fast CNP"
    fields_desc = [
        XByteField("otype", FAST_CNP),
        FieldLenField("optlen", None, fmt="B", length_of="trace", adjust=lambda _, length: length + 16),
        StrLenField("trace", b"", length_from=lambda option: max(option.optlen - 16, 0)),
        IP6Field("original_destination", "::"),
    ]

    @property
    def option(self):
        """1 or 2."""
        return 2 if self.trace else 1

    def alignment_delta(self, curpos):
        """Padding before it: option 1 is at 4n + 2, option 2 at 4n."""
        return ((0 if self.trace else 2) - curpos) % 4


class CongestionNotification(_ICMPv6):
    """A notification to END.C, code 0 for a pause, 1 for a resume."""

    name = "Congestion notification"
    fields_desc = [
        ByteField("type", NOTIFICATION),
        ByteEnumField("code", 0, {0: "pause", 1: "resume"}),
        XShortField("cksum", None),
        ByteField("version", 1),
        ByteField("traffic_class", 0),
        ByteField("level", 0),
        ByteField("reserved", 0),
        IntField("sequence", 0),
        IntField("hold_us", 0),
        IP6Field("congested", "::"),
    ]


class RepairRequest(AETH):
    """A request for data between nodes that repair: `msn` packets from the BTH's PSN on, in an ACKNOWLEDGE packet."""

    name = "Repair request"
    fields_desc = [XByteField("syndrome", REPAIR_REQUEST), X3BytesField("msn", 1)]


def _aeth(_cls, octets=None, *_args, **_fields):
    return RepairRequest if octets and octets[0] == REPAIR_REQUEST else AETH


AETH.dispatch_hook = classmethod(_aeth)
IPv6ExtHdrSegmentRoutingTLV.registered_sr_tlv.update({END_MT: EndMt, MR: Mr})
_hbhoptcls[FAST_CNP] = FastCnp
icmp6typescls[NOTIFICATION] = CongestionNotification
icmp6typesminhdrlen[NOTIFICATION] = 32


def icrc(packet):
    """The ICRC of the octets of an IPv6 packet with RoCEv2 but the last four, as a number; None for other packets.
    Extension headers count as absent, and an SRH's last segment is the destination."""
    header, rest = bytearray(packet[:40]), packet[40:]
    kind = header[6]
    while kind in _EXTENSION_HEADERS and len(rest) >= 8:
        length = 8 * (rest[1] + 1)
        if kind == _ROUTING and rest[2] == 4 and rest[3] > 0:
            header[24:40] = rest[8:24]
        kind, rest = rest[0], rest[length:]
    if kind != _UDP or len(rest) < 24 or int.from_bytes(rest[2:4], "big") != _ROCEV2_PORT:
        return None
    header[0] |= 0x0F
    header[1:4] = b"\xff" * 3
    header[4:6] = len(rest).to_bytes(2, "big")
    header[6:8] = bytes([_UDP, 0xFF])
    rest = bytearray(rest[:-4])
    rest[6:8] = b"\xff\xff"
    rest[12] = 0xFF
    return crc32(b"\xff" * 8 + bytes(header) + bytes(rest))


def has_good_icrc(packet):
    """Whether an IPv6 layer's last four octets are its ICRC."""
    whole = 40 + packet.plen
    octets = bytes(packet)[:whole]
    found = icrc(octets) if len(octets) == whole else None
    return found is not None and found == int.from_bytes(octets[-4:], "little")


def with_icrc(packet):
    """A finished IPv6 layer with the right ICRC in its last four octets."""
    octets = bytes(packet)
    found = icrc(octets)
    return packet if found is None else IPv6(octets[:-4] + found.to_bytes(4, "little"))
