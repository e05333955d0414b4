#!/usr/bin/python3
"""Writes scapy_01 to 07, scapy_10 to 13 and neg_icrc_mutations of testdata/golden, or checks that they are there.

    tools/golden/captures.py --check          compare with testdata/golden, frame by frame
    tools/golden/captures.py --out DIRECTORY  write them

Layers, lengths, checksums and option encodings are scapy's (2.5 or later: Debian's python3-scapy), the ICRC is that of
icrc.py. What the drafts leave open follows docs/spec/decisions.md: D4 to D9 for End.MT, D40 to D43 for Fast CNP, D60
for END.C and END.E, D272 for IPv4 in groups. That is this project's own reading, written apart from its code, and no
other implementation.
"""

import hashlib
import hmac
import logging
import socket
import struct
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import ICMP, IP, UDP, IPOption_RR, IPOption_Security, fragment
from scapy.layers.inet6 import (
    HBHOptUnknown,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrSegmentRouting,
    PadN,
)
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

import stored
from icrc import AS_IF_ABSENT, INCLUDED, with_icrc

SOURCE, PROXY = "2001:db8:1::1", "2001:db8:ff::100"
HEADEND = "2001:db8:6::1"
DESIGNATED_QPN = 0xABCD
#: Edge nodes and their End.MT SIDs.
EDGE_1, EDGE_3 = "2001:db8:a::1", "2001:db8:a::3"
SID_1 = "5f00:0:1:e000::"
#: Receivers, address and queue pair.
R1, R2 = ("2001:db8:2::1", 0x111), ("2001:db8:2::2", 0x222)
R4, R5 = ("2001:db8:4::4", 0x444), ("2001:db8:4::5", 0x555)

#: Code points for experiments (D7, D40).
END_MT_TLV = 124
FAST_CNP, FAST_CNP_WITH_TRACE = 0x9E, 0x9D

HMAC_KEY_ID, HMAC_KEY = 42, b"secret-key-for-tests-0123456789ab"


def ethernet(packet):
    ethertype = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=ethertype)) + bytes(packet)


def octets(address):
    return socket.inet_pton(socket.AF_INET6, address)


def rocev2(ipv6, source_port, bth, rest, extension=None, checksum=False, icrc_of=INCLUDED):
    """A RoCEv2 packet. scapy writes no ICRC behind extension headers, so that none of these is scapy's."""
    layers = ipv6 if extension is None else ipv6 / extension
    udp = UDP(sport=source_port, dport=4791, chksum=0)
    packet = with_icrc(bytes(layers / udp / Raw(bth + rest + bytes(4))), icrc_of)
    if checksum:
        # The ICRC does not cover it, but it covers the ICRC.
        packet = bytes(layers / UDP(sport=source_port, dport=4791) / Raw(bth + rest + packet[-4:]))
    return packet


def bth(opcode, qpn, psn, pad=0, ack_request=0, becn=0):
    return bytes(BTH(opcode=opcode, dqpn=qpn, psn=psn, padcount=pad, ackreq=ack_request, becn=becn, icrc=0))[:12]


def data(destination=PROXY, qpn=DESIGNATED_QPN, source=SOURCE, traffic_class=2, hop_limit=64, extension=None):
    """A WRITE ONLY of the source, PSN 100, of 33 octets."""
    payload = b"RDMA-MULTICAST-PAYLOAD-0123456789"
    pad = -len(payload) % 4
    reth = struct.pack("!QII", 0x7F0011223344, 0x1234, len(payload))
    ipv6 = IPv6(src=source, dst=destination, tc=traffic_class, fl=0x12345, hlim=hop_limit)
    header = bth(0x0A, qpn, 100, pad, ack_request=1)
    return rocev2(ipv6, 0xD001, header, reth + payload + bytes(pad), extension)


def acknowledge(source, qpn, psn, syndrome, msn):
    aeth = bytes(AETH(syndrome=syndrome, msn=msn))[:4]
    return rocev2(IPv6(src=source, dst=SOURCE), 0xD002, bth(0x11, qpn, psn), aeth)


def base():
    """Requests and responses as hosts send them."""
    cnp = rocev2(IPv6(src=PROXY, dst=SOURCE, tc=0xC0), 0xD002, bth(0x81, 0x77, 0, becn=1), bytes(16))
    send = IPv6(src=SOURCE, dst=R1[0], tc=2, hlim=63)
    return [
        data(),
        acknowledge(PROXY, 0x77, 100, 0x1F, 1),
        acknowledge(PROXY, 0x77, 98, 0x60, 0),
        acknowledge(PROXY, 0x77, 98, 0x2E, 0),
        cnp,
        rocev2(send, 0xD001, bth(0x04, R1[1], 7), b"sendonly", checksum=True),
    ]


def receiver_list(edge, receivers):
    """End.MT TLV (multicast draft, section 7.2)."""
    entries = b"".join(octets(address) + struct.pack("!I", qpn << 8) for address, qpn in receivers)
    value = bytes(2) + octets(edge) + bytes([len(receivers)]) + bytes(3) + entries
    return bytes([END_MT_TLV, len(value)]) + value


def signature(source, segments, tlvs, covers_lists):
    """HMAC TLV of RFC 8754 section 2.1.2, D bit set, over the text of its section 2.1.2.1; with `covers_lists` also
    over the lists (D9)."""
    d_bit = struct.pack("!H", 0x8000)
    key_id = struct.pack("!I", HMAC_KEY_ID)
    text = octets(source) + bytes([len(segments) - 1, 0]) + d_bit + key_id + b"".join(map(octets, segments))
    digest = hmac.new(HMAC_KEY, text + (tlvs if covers_lists else b""), hashlib.sha256).digest()
    return bytes([5, 2 + 4 + len(digest)]) + d_bit + key_id + digest


def tunnelled(destination, segments, tlvs, inner):
    """An outer header of the headend, and an SRH with the first segment active and its TLVs padded to eight octets."""
    pad = -len(tlvs) % 8
    tlvs += bytes([4, pad - 2]) + bytes(pad - 2) if pad else b""
    eights = 2 * len(segments) + len(tlvs) // 8
    srh = IPv6ExtHdrSegmentRouting(nh=41, len=eights, segleft=1, lastentry=len(segments) - 1, addresses=segments)
    outer = IPv6(src=HEADEND, dst=destination, tc=2, fl=0x54321, nh=43)
    return bytes(outer / Raw(bytes(srh) + tlvs + inner))


def end_mt():
    """Data packets for the edge: its list; two lists; signed as in RFC 8754, and with the lists; lists of one and of
    eleven; the End.MT SID in the Segment List; a multicast group as SID."""
    one = receiver_list(EDGE_1, [R1, R2])
    both = one + receiver_list(EDGE_3, [R4, R5])
    eleven = [(f"2001:db8:2::{number:x}", 0x100 + number) for number in range(11)]

    def packet(tlvs, segments=(PROXY,), destination=SID_1):
        return tunnelled(destination, list(segments), tlvs, data())

    return [
        packet(one),
        packet(both),
        packet(both + signature(HEADEND, [PROXY], both, covers_lists=False)),
        packet(both + signature(HEADEND, [PROXY], both, covers_lists=True)),
        packet(receiver_list(EDGE_1, [R1])),
        packet(receiver_list(EDGE_1, eleven)),
        packet(one, [PROXY, SID_1]),
        packet(both, destination="ff3e::100"),
    ]


def copies():
    """What the receivers of the first packet get: the source is the Proxy Address, the hop limit one less (D5, D11)."""
    return [data(address, qpn, hop_limit=63, source=PROXY) for address, qpn in (R1, R2)]


#: A pre-allocated IOAM trace: namespace 1, 3 words a node, room for one node more, node 0x010101 has written.
TRACE = struct.pack("!HHI", 1, 3 << 11 | 3, 0xC2000000) + bytes(12) + struct.pack("!BBHHHI", 62, 0, 0x0101, 1, 2, 0x400)
SWITCH = "2001:db8:53::1"


def fast_cnp(options, icrc_of=INCLUDED, values=bytes(16)):
    header = IPv6ExtHdrDestOpt(nh=17, options=options, autopad=0)
    ipv6 = IPv6(src=SWITCH, dst=SOURCE, tc=0xC0)
    return rocev2(ipv6, 0xD001, bth(0x81, DESIGNATED_QPN, 0, becn=1), values, header, icrc_of=icrc_of)


def fast_cnps():
    """Data that met congestion, without and with a trace; the Fast CNPs of a switch, whose ICRC covers the options or
    is that of the packet without them (D43)."""
    plain = HBHOptUnknown(otype=FAST_CNP, optlen=16, optdata=octets(R1[0]))
    with_trace = bytes(2) + TRACE + octets(R1[0])
    with_trace = HBHOptUnknown(otype=FAST_CNP_WITH_TRACE, optlen=len(with_trace), optdata=with_trace)
    two, none = PadN(optlen=2, optdata=bytes(2)), PadN(optlen=0, optdata=b"")
    ioam = HBHOptUnknown(otype=0x31, optlen=2 + len(TRACE), optdata=bytes(2) + TRACE)
    traced = IPv6ExtHdrHopByHop(nh=17, options=[none, ioam], autopad=0)
    packets = [data(*R1, traffic_class=3), data(*R1, extension=traced)]
    for icrc_of in (INCLUDED, AS_IF_ABSENT):
        packets += [fast_cnp(options, icrc_of) for options in ([plain, two], [two, plain], [none, with_trace])]
    return packets


def cnp_values():
    """The values of CNPs: a count (D29), a path's load (D242), the rate of a Fast CNP (D240), none, 12 flows (D284)."""
    cnp = lambda *values: rocev2(
        IPv6(src=PROXY, dst=SOURCE, tc=0xC0), 0xD002, bth(0x81, 0x77, 0, becn=1), struct.pack("!4I", *values)
    )
    plain = HBHOptUnknown(otype=FAST_CNP, optlen=16, optdata=octets(R1[0]))
    with_rate = fast_cnp([plain, PadN(optlen=2, optdata=bytes(2))], AS_IF_ABSENT, struct.pack("!4I", 0, 0, 2500, 0))
    return [cnp(7, 0, 0, 0), cnp(0, 90210, 0, 0), with_rate, cnp(0, 0, 0, 0), cnp(0, 0, 0, 12 << 16 | 48)]


def wan():
    """A Fast CNP in a tunnel to END.E, the same to END.C, where it is malformed (D60), and what END.E hands on."""
    notice = fast_cnps()[2]
    outer = lambda sid: bytes(IPv6(src="2001:db8:53::2", dst=sid, nh=41) / Raw(notice))
    return [outer("5f00:0:9:d000::"), outer("5f00:0:9:c000::"), notice]


def pauses():
    """Priority flow control: class 3 paused and resumed, three classes, and the older PAUSE."""

    def pause(classes, quanta):
        enabled = {f"c{number}_enabled": 1 for number in classes}
        times = {f"c{number}_pause_time": quanta for number in classes}
        return MACControlClassBasedFlowControl(**enabled, **times)

    ethernet = Ether(src="02:00:00:00:00:01", dst="01:80:c2:00:00:01", type=0x8808)
    layers = [pause([3], 0xFFFF), pause([3], 0), pause([0, 3, 7], 0x1234), MACControlPause(pause_time=5)]
    return [bytes(ethernet / layer) for layer in layers]


def micro_sids():
    """The path of section 5.2 of the placement draft, hop by hop; six ids in an address, and nine with an SRH."""
    nic, inner = "2001:db8:f::1", data("2001:db8:3::1", 0x333)
    hops = ["5f00:0:100:500:300::", "5f00:0:500:300::", "5f00:0:300::"]
    packets = [
        bytes(IPv6(src=nic, dst=address, nh=41, hlim=64 - hop, tc=2, fl=0xABCDE) / Raw(inner))
        for hop, address in enumerate(hops)
    ]
    six = "5f00:0:100:500:700:600:200:300"
    srh = IPv6ExtHdrSegmentRouting(nh=41, len=2, segleft=1, lastentry=0, addresses=["5f00:0:400:500::"])
    with_srh = IPv6(src=nic, dst=six, nh=43) / Raw(bytes(srh) + inner)
    return packets + [inner, bytes(IPv6(src=nic, dst=six, nh=41) / Raw(inner)), bytes(with_srh)]


def vlans():
    """Tagged frames of a router whose port 0 has VLANs 100 and 200: what comes by VLAN 100, a priority tag, two tags
    and a tag that ends early; then, with the priorities 0, 3, 5 and 6, what leaves by VLAN 200; and the packet as it
    comes and leaves."""
    node, host, next_hop = "02:00:00:00:00:00", "02:00:00:00:01:01", "02:00:00:00:01:02"
    packet = lambda hop_limit: IPv6(
        src="2001:db8:1::1", dst="2001:db8:2::1", tc=26 << 2, hlim=hop_limit
    ) / UDP(sport=50000, dport=9) / Raw(b"tagged")
    to_node = Ether(src=host, dst=node)
    received = [
        to_node / Dot1Q(vlan=100, prio=5) / packet(64),
        to_node / Dot1Q(vlan=0, prio=6) / packet(64),
        to_node / Dot1Q(vlan=100, prio=5) / Dot1Q(vlan=100) / packet(64),
        to_node / Dot1Q(vlan=100, prio=5, type=0x86DD) / Raw(b"`"),
    ]
    from_node = Ether(src=node, dst=next_hop)
    sent = [from_node / Dot1Q(vlan=200, prio=priority) / packet(63) for priority in (0, 3, 5, 6)]
    return [bytes(frame) for frame in received + sent + [packet(64), packet(63)]]


def ipv4():
    """IPv4 over SRv6 between two nodes, whose SIDs are of End.DT4, End.DX4 and End.DT46; every outer flow label is 0.
    By number: 1 a packet of a host, 2 as it is forwarded; 3 to 5 in the headers of H.Encaps.Red with one segment, of
    H.Encaps with one and of H.Encaps.Red with two; 6 and 7 in tunnels, marked CE, without an SRH and with one; 8 as it
    leaves them; 9 and 10 to 12 errors of the node about packet 1: time exceeded, fragmentation needed for MTUs of 1280
    octets without a tunnel and with one, network and host unreachable; then a datagram with options that may be
    fragmented, and its fragments for an MTU of 1280 octets."""
    host, far, node = "10.1.0.2", "10.2.0.2", "10.1.0.1"
    headend, sid = "2001:db8:ffff::1", "2001:db8:2::d4"
    # DSCP 26, ECT(0).
    packet = lambda ttl, tos=0x6A: IP(src=host, dst=far, tos=tos, ttl=ttl, id=7, flags="DF") / UDP(
        sport=50000, dport=9
    ) / Raw(b"IPv4 over SRv6")
    outer = lambda destination, next_header, tc=0x6A, hlim=64: IPv6(
        src=headend, dst=destination, tc=tc, hlim=hlim, nh=next_header
    )
    srh = lambda left, *segments: IPv6ExtHdrSegmentRouting(
        nh=4, len=2 * len(segments), segleft=left, lastentry=len(segments) - 1, addresses=list(segments)
    )
    first = "2001:db8:9::e"
    tunnelled = [
        outer(sid, 4) / packet(63),
        outer(sid, 43) / srh(0, sid) / packet(63),
        outer(first, 43) / srh(1, sid) / packet(63),
    ]
    received = [outer(sid, 4, tc=0x6B) / packet(64), outer(sid, 43, tc=0x6B) / srh(0, sid, first) / packet(64)]

    def error(message, about):
        header = IP(src=node, dst=host, tos=0xC0, ttl=64, id=0)
        return header / message / Raw(bytes(about)[: 576 - 28])

    long = IP(src=host, dst=far, tos=0x6A, ttl=63, id=7, flags="DF") / UDP(sport=50000, dport=9) / Raw(bytes(1400))
    errors = [
        error(ICMP(type=11, code=0), packet(1)),
        error(ICMP(type=3, code=4, nexthopmtu=1280), long),
        error(ICMP(type=3, code=4, nexthopmtu=1280 - 40), long),
        error(ICMP(type=3, code=0), packet(64)),
        error(ICMP(type=3, code=1), packet(63)),
    ]
    options = [IPOption_Security(), IPOption_RR(pointer=4, routers=["0.0.0.0"])]
    datagram = lambda ttl: IP(src=host, dst=far, tos=0x6A, ttl=ttl, id=8, options=options) / UDP(
        sport=50000, dport=9
    ) / Raw(bytes(octet % 251 for octet in range(2500)))
    # scapy copies all options; those without the Copied flag stand in the first fragment alone (RFC 791).
    pieces = fragment(datagram(63), fragsize=1280 - len(datagram(63)) + 2508)
    first_piece, later = pieces[0], []
    data = bytes(datagram(63).payload)
    shorter = IP(src=host, dst=far, tos=0x6A, ttl=63, id=8, options=options[:1])
    room = (1280 - len(shorter)) // 8 * 8
    at = len(first_piece.payload)
    while at < len(data):
        piece = data[at : at + room]
        header = shorter.copy()
        header.frag, header.flags, header.proto = at // 8, "MF" if at + len(piece) < len(data) else 0, 17
        later.append(header / Raw(piece))
        at += len(piece)
    packets = [packet(64), packet(63)] + tunnelled + received + [packet(63, tos=0x6B)] + errors
    return [bytes(packet) for packet in packets + [datagram(64), first_piece] + later]


def ipv4_groups():
    """A group of IPv4 (D272). By number: 1 a WRITE ONLY of the source, 2 its translation, 3 that in the headend's outer
    headers, 4 and 5 the copies for R1 and R2; 6 a SEND ONLY with a UDP checksum, 7 its translation, 8 the copy for R1;
    9 and 10 ACKs of R1 and R2, 11 the ACK that the source gets; 12 and 13 a WRITE ONLY and its copy for R1, where the
    source's region begins at 0x7F0011220000 with key 0x1234, that of R1 at 0x7E0000000000 with key 0x9001."""
    source, proxy = "10.1.0.1", "10.255.0.100"
    receivers = [("10.2.0.1", 0x111), ("10.2.0.2", 0x222)]
    mapped = lambda address: "::ffff:" + address
    payload = b"RDMA-MULTICAST-PAYLOAD-0123456789"
    pad = -len(payload) % 4

    def write(network, qpn, address=0x7F0011223344, key=0x1234):
        reth = struct.pack("!QII", address, key, len(payload))
        header = bth(0x0A, qpn, 100, pad, ack_request=1)
        return rocev2(network, 0xD001, header, reth + payload + bytes(pad))

    def send(network, qpn):
        return rocev2(network, 0xD001, bth(0x04, qpn, 101), b"sendonly", checksum=True)

    def response(sender, receiver, qpn, source_port, msn):
        # Atomic datagrams, as copies and translations are.
        network = IP(src=sender, dst=receiver, ttl=64, id=0, flags="DF")
        return rocev2(network, source_port, bth(0x11, qpn, 100), bytes(AETH(syndrome=0x1F, msn=msn))[:4])

    of_source = IP(src=source, dst=proxy, tos=2, ttl=64, id=7, flags="DF")
    translated = lambda hop_limit: IPv6(src=mapped(source), dst=mapped(proxy), tc=2, fl=0, hlim=hop_limit)
    copied = lambda address: IP(src=proxy, dst=address, tos=2, ttl=62, id=0, flags="DF")
    tlv = receiver_list(EDGE_1, [(mapped(address), qpn) for address, qpn in receivers])
    (r1, qpn_1), (r2, qpn_2) = receivers
    return [
        write(of_source, DESIGNATED_QPN),
        write(translated(64), DESIGNATED_QPN),
        tunnelled(SID_1, [mapped(proxy)], tlv, write(translated(63), DESIGNATED_QPN)),
        write(copied(r1), qpn_1),
        write(copied(r2), qpn_2),
        send(of_source, DESIGNATED_QPN),
        send(translated(64), DESIGNATED_QPN),
        send(copied(r1), qpn_1),
        response(r1, proxy, DESIGNATED_QPN, 0xD002, 1),
        response(r2, proxy, DESIGNATED_QPN, 0xD002, 1),
        response(proxy, source, 0x77, 0xC077, 1),
        write(of_source, DESIGNATED_QPN),
        write(copied(r1), qpn_1, 0x7E0000003344, 0x9001),
    ]


def mutations():
    """One bit of a packet changed, its ICRC not: the first five are in fields that the ICRC leaves out."""
    masked = [(7, 1), (1, 1), (3, 1), (46, 1), (52, 1)]
    covered = [(8, 1), (39, 1), (40, 1), (55, 1), (59, 1), (86, 1), (5, 1)]
    packets = []
    for at, bit in masked + covered:
        packet = bytearray(data())
        packet[at] ^= bit
        packets.append(bytes(packet))
    return packets


CAPTURES = {
    "scapy_01_rocev2_base.pcap": base,
    "scapy_02_endmt_in.pcap": end_mt,
    "scapy_03_endmt_out.pcap": copies,
    "scapy_04_fastcnp.pcap": fast_cnps,
    "scapy_05_endc_ende.pcap": wan,
    "scapy_06_pfc.pcap": pauses,
    "scapy_07_usid.pcap": micro_sids,
    "scapy_10_vlan.pcap": vlans,
    "scapy_11_cnp_values.pcap": cnp_values,
    "scapy_12_ipv4.pcap": ipv4,
    "scapy_13_ipv4_groups.pcap": ipv4_groups,
    "neg_icrc_mutations.pcap": mutations,
}


def frames(packets):
    """Frames as they lie in the files: pauses and tagged frames have their Ethernet header already."""
    return [packet if packet[12:14] in (b"\x88\x08", b"\x81\x00") else ethernet(packet) for packet in packets]


if __name__ == "__main__":
    sys.exit(stored.run(__doc__, {name: lambda make=make: frames(make()) for name, make in CAPTURES.items()}))
