//! A UDP socket as a wire.
//!
//! The endpoint takes whole packets, since its ICRC covers addresses and ports; the socket has payloads. So headers are
//! added to received payloads, and removed from sent packets. The ICRC does not cover the fields that the socket does
//! not report, hop limit and flow label.
//!
//! At an IPv4-mapped address the datagrams are IPv4, while the endpoint has packets in IPv6 (D275).

use crate::wire::{Wire, WireStatistics};
use srdma_io::udp::{Datagram, MAX_BATCH, Message, ReceiveBatch, Segmentation, UdpSocket};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::translation::icrc_in_other_version;
use srdma_wire::{Icrc, Ipv6, NextHeader, Udp};
use std::io::{self, IoSlice};
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use zerocopy::IntoBytes;

const HEADERS: usize = Ipv6::LEN + Udp::LEN;

const _: () = assert!(HEADERS <= ReceiveBatch::HEADROOM);

/// Packets that the kernel takes as one, and their octets (the limits of UDP_SEGMENT).
const MAX_SEGMENTS: usize = 64;
const MAX_MESSAGE_OCTETS: usize = 65_000;

/// Address of a socket, and of its peer.
#[derive(Clone, Copy, Debug)]
pub struct UdpWireConfig {
    /// Address of this host.
    pub address: Ipv6Addr,
    /// Address that packets go to.
    pub peer: Ipv6Addr,
    /// Port of the socket: 4791, unless two tests share an address. 0 means any free one.
    pub port: u16,
    /// Port of the peer: 4791.
    pub peer_port: u16,
    /// Segmentation of packets.
    pub segmentation: Segmentation,
    /// Octets that the socket may buffer, as far as the system allows.
    pub buffer_octets: u32,
    /// Octets of the longest packet, from the IPv6 header on.
    pub max_packet_octets: usize,
}

/// A UDP socket as a wire. To its endpoint both ports are 4791, whatever they are.
#[derive(Debug)]
pub struct UdpWire {
    socket: UdpSocket,
    address: Ipv6Addr,
    peer: SocketAddrV6,
    buffer_octets: u32,
    batch: ReceiveBatch,
    outgoing: Outgoing,
    statistics: WireStatistics,
    wake: Option<OwnedFd>,
}

/// Packets that have been fetched, and how far they are sent.
#[derive(Debug)]
struct Outgoing {
    octets: Vec<u8>,
    stride: usize,
    packets: Vec<Packet>,
    sent: usize,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    len: usize,
    traffic_class: u8,
}

impl UdpWire {
    /// A wire on a new socket.
    ///
    /// # Errors
    ///
    /// Those of [`UdpSocket::bind_toward`].
    pub fn new(config: &UdpWireConfig) -> io::Result<Self> {
        let socket = UdpSocket::bind_toward(config.address, config.port, config.peer, config.segmentation)?;
        let buffer_octets = socket.grow_buffers(config.buffer_octets)?;
        let stride = config.max_packet_octets.next_multiple_of(64);
        Ok(UdpWire {
            socket,
            address: config.address,
            peer: SocketAddrV6::new(config.peer, config.peer_port, 0, 0),
            buffer_octets,
            batch: ReceiveBatch::new(),
            outgoing: Outgoing {
                octets: vec![0; stride * MAX_BATCH],
                stride,
                packets: Vec::with_capacity(MAX_BATCH),
                sent: 0,
            },
            statistics: WireStatistics::default(),
            wake: None,
        })
    }

    /// [`Wire::wait`] also ends while this descriptor is readable, such as an eventfd by which another thread wakes the
    /// one that waits.
    pub fn set_wake(&mut self, wake: OwnedFd) {
        self.wake = Some(wake);
    }

    /// The socket's port.
    pub fn port(&self) -> u16 {
        self.socket.local().port()
    }

    /// Sends to another port of the peer from now on.
    pub fn set_peer_port(&mut self, port: u16) {
        self.peer.set_port(port);
    }

    /// Number of packets with so many octets of payload that fit the socket's buffer by the kernel's accounting: a
    /// packet takes a power of two, plus its descriptor.
    pub fn receive_window(&self, payload_octets: u32) -> u32 {
        const HEADERS_AND_TRAILERS: u32 = 600;
        const DESCRIPTION: u32 = 512;
        let packet_octets = (payload_octets + HEADERS_AND_TRAILERS).next_power_of_two() + DESCRIPTION;
        (self.buffer_octets / packet_octets).max(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outgoing = &mut self.outgoing;
        while outgoing.sent < outgoing.packets.len() {
            let (sent, refused) = outgoing.send(&self.socket, self.peer)?;
            outgoing.sent += sent + refused;
            self.statistics.sent += sent as u64;
            self.statistics.send_errors += refused as u64;
            if sent + refused == 0 {
                return Ok(());
            }
        }
        outgoing.packets.clear();
        outgoing.sent = 0;
        Ok(())
    }
}

impl Wire for UdpWire {
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize> {
        match self.socket.receive(&mut self.batch) {
            // An ICMPv6 error about a packet that was sent.
            Err(error) if is_passing(&error) => return Ok(0),
            outcome => outcome?,
        }
        let mut count = 0;
        for datagram in self.batch.datagrams() {
            count += hand_over(datagram, self.address, &self.peer, take);
        }
        self.statistics.received += count as u64;
        self.statistics.receive_overruns = self.batch.overruns().into();
        Ok(count)
    }

    fn transmit(&mut self, next: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        if !self.outgoing.packets.is_empty() {
            self.flush()?;
        }
        let mut count = 0;
        if self.outgoing.packets.is_empty() {
            count = self.outgoing.fill(next);
            self.flush()?;
        }
        Ok(count)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let wake = self.wake.as_ref().map(OwnedFd::as_fd);
        self.socket.wait(!self.outgoing.packets.is_empty(), wake, timeout)
    }

    fn statistics(&self) -> WireStatistics {
        self.statistics
    }
}

impl Outgoing {
    fn fill(&mut self, next: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> usize {
        for slot in self.octets.chunks_exact_mut(self.stride) {
            let Some(len) = next(slot) else { break };
            let Ok((ipv6, _)) = Ipv6::parse(&slot[..len]) else { break };
            if ipv6.destination.to_ipv4_mapped().is_some() {
                change_version(&ipv6, &mut slot[HEADERS..len]);
            }
            self.packets.push(Packet { len: len - HEADERS, traffic_class: ipv6.traffic_class });
        }
        self.packets.len()
    }

    /// Sends what follows `sent` and returns how many packets the kernel took, and how many it will not take.
    fn send(&self, socket: &UdpSocket, destination: SocketAddrV6) -> io::Result<(usize, usize)> {
        let mut slices = [IoSlice::new(&[]); MAX_BATCH];
        let slots = self.octets.chunks_exact(self.stride);
        for ((slice, slot), packet) in slices.iter_mut().zip(slots).zip(&self.packets) {
            *slice = IoSlice::new(&slot[HEADERS..][..packet.len]);
        }
        let segments = match socket.segmentation() {
            Segmentation::Software => 1,
            Segmentation::Offload => MAX_SEGMENTS,
        };
        let mut messages = [Message { destination, traffic_class: 0, packets: &[] }; MAX_BATCH];
        let mut count = 0;
        let mut first = self.sent;
        while first < self.packets.len() {
            let len = alike(&self.packets[first..], segments);
            let traffic_class = self.packets[first].traffic_class;
            messages[count] = Message { destination, traffic_class, packets: &slices[first..first + len] };
            first += len;
            count += 1;
        }
        let packets = |messages: &[Message<'_>]| messages.iter().map(|message| message.packets.len()).sum();
        match socket.send(&messages[..count]) {
            Ok(sent) => Ok((packets(&messages[..sent]), 0)),
            Err(error) if is_passing(&error) => Ok((0, packets(&messages[..1]))),
            Err(error) => Err(error),
        }
    }
}

/// Number of packets from the first on that can be sent as one.
fn alike(packets: &[Packet], most: usize) -> usize {
    let Some(first) = packets.first() else { return 0 };
    let (mut count, mut octets) = (1, first.len);
    for packet in packets.iter().take(most).skip(1) {
        octets += packet.len;
        let fits = octets <= MAX_MESSAGE_OCTETS && packet.len <= first.len;
        if !fits || packet.traffic_class != first.traffic_class {
            break;
        }
        count += 1;
        if packet.len < first.len {
            break;
        }
    }
    count
}

/// Whether the error lost a packet, rather than the socket: links go down and up, routes vanish and return.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable, OutOfMemory, PermissionDenied,
    };
    const NO_BUFFERS: i32 = 105;
    let kind = error.kind();
    matches!(
        kind,
        ConnectionRefused | HostUnreachable | NetworkDown | NetworkUnreachable | OutOfMemory | PermissionDenied
    ) || error.raw_os_error() == Some(NO_BUFFERS)
}

/// Puts headers in front of each packet of a datagram, over the end of the one before, which has been taken.
fn hand_over(datagram: Datagram<'_>, address: Ipv6Addr, peer: &SocketAddrV6, take: &mut dyn FnMut(&[&[u8]])) -> usize {
    let source_port = match datagram.source.port() {
        port if port == peer.port() => ROCEV2_PORT,
        port => port,
    };
    let mut ipv6 = Ipv6 {
        traffic_class: datagram.traffic_class,
        flow_label: 0,
        payload_length: 0,
        next_header: NextHeader::UDP,
        hop_limit: 0,
        source: *datagram.source.ip(),
        destination: address,
    };
    let mut start = ReceiveBatch::HEADROOM;
    let mut count = 0;
    loop {
        let len = datagram.segment_len.min(datagram.octets.len() - start);
        let length = (Udp::LEN + len) as u16;
        ipv6.payload_length = length;
        let udp = Udp { source_port, destination_port: ROCEV2_PORT, length, checksum: 0 };
        let packet = &mut datagram.octets[start - HEADERS..start + len];
        packet[..Ipv6::LEN].copy_from_slice(ipv6.emit().as_bytes());
        packet[Ipv6::LEN..HEADERS].copy_from_slice(udp.emit().as_bytes());
        if address.to_ipv4_mapped().is_some() {
            change_version(&ipv6, &mut packet[HEADERS..]);
        }
        take(&[packet]);
        count += 1;
        start += len;
        if len == 0 || start == datagram.octets.len() {
            return count;
        }
    }
}

/// Gives a payload the ICRC that it has in IPv4, or, if it has that, the one in IPv6 (D275). What is too short for one,
/// or from an address that is not IPv4-mapped, stays, and is refused by the endpoint.
fn change_version(ipv6: &Ipv6, payload: &mut [u8]) {
    let udp_length = (Udp::LEN + payload.len()) as u16;
    if let Some(place) = payload.last_chunk_mut()
        && let Ok(Icrc(icrc)) = icrc_in_other_version(&ipv6.emit(), udp_length, Icrc(*place))
    {
        *place = icrc;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_one_length_are_segmented_together_up_to_a_shorter_one() {
        let packets =
            |lens: &[usize]| -> Vec<Packet> { lens.iter().map(|len| Packet { len: *len, traffic_class: 0 }).collect() };
        assert_eq!(alike(&packets(&[100, 100, 60, 100]), 64), 3);
        assert_eq!(alike(&packets(&[60, 100]), 64), 1);
        assert_eq!(alike(&packets(&[4112; 20]), 64), 15);
        assert_eq!(alike(&packets(&[20; 80]), 64), 64);
        assert_eq!(alike(&packets(&[4112; 20]), 1), 1);
        let mut marked = packets(&[100, 100, 100]);
        marked[1].traffic_class = 1;
        assert_eq!(alike(&marked, 64), 1);
    }

    #[test]
    fn headers_are_put_before_each_segment() {
        let mut octets = vec![0xEE; ReceiveBatch::HEADROOM];
        octets.extend(0..250u8);
        let peer = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 5000, 0, 0);
        let datagram = Datagram { source: peer, traffic_class: 3, segment_len: 100, octets: &mut octets };
        let mut seen = Vec::new();
        let count = hand_over(datagram, Ipv6Addr::LOCALHOST, &peer, &mut |packet| {
            let (ipv6, rest) = Ipv6::parse(packet[0]).unwrap();
            let (udp, payload) = Udp::parse(rest).unwrap();
            assert_eq!((ipv6.traffic_class, ipv6.payload_length, udp.length), (3, udp.length, udp.length));
            assert_eq!((udp.source_port, udp.destination_port), (4791, 4791));
            assert_eq!(usize::from(udp.length), Udp::LEN + payload.len());
            seen.push(payload.to_vec());
        });
        assert_eq!(count, 3);
        assert_eq!(seen.concat(), (0..250u8).collect::<Vec<_>>());
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
    }
}
