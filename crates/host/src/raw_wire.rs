//! A packet driver as a wire: whole frames, extension headers and all. At an IPv4-mapped address the packets are IPv4,
//! while the endpoint has them in IPv6 (D275, D293).

use crate::wire::{Wire, WireStatistics};
use srdma_frame::{Frame, Pool};
use srdma_io::udp::{self, Segmentation, UdpSocket};
use srdma_io::{Choice, Driver, Interest, Match};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::ipv4::header_checksum;
use srdma_wire::translation::{LONGER, to_ipv4, to_ipv6};
use srdma_wire::{EtherType, Ethernet, EthernetView, Icrc, Ipv4View, Ipv6View, MacAddress, Prefix, View};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::time::Duration;
use zerocopy::IntoBytes;

/// Frames that one call takes.
const BATCH: usize = 64;

/// Chunks of either size: frames on their way in and out, and a ring of the driver's.
const CHUNKS: usize = 4096;

/// The most pieces of a frame.
const MAX_PIECES: usize = 8;

/// Place of the checksum in a UDP header.
const UDP_CHECKSUM: usize = 6;

/// Delay before frames are offered to the kernel again.
const RETRY: Duration = Duration::from_millis(1);

/// Interface of a packet driver, and its addresses.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug)]
pub struct RawWireConfig {
    pub interface: String,
    pub address: Ipv6Addr,
    /// MAC address of the interface.
    pub mac: MacAddress,
    /// MAC address of the next hop toward the peer.
    pub next_hop: MacAddress,
    /// Octets of the longest packet, from the IPv6 header on.
    pub max_packet_octets: usize,
    /// Another address, of which all packets are received: that of returned probes.
    pub probe_address: Option<Ipv6Addr>,
}

/// A packet driver as a wire. It takes the RoCEv2 packets to its address; the kernel keeps the others.
#[derive(Debug)]
pub struct RawWire {
    driver: Box<dyn Driver>,
    pool: Pool,
    frames: Vec<Frame>,
    packet: Vec<u8>,
    is_ipv4: bool,
    /// A frame that was received, and its packet in IPv6.
    received: (Vec<u8>, Vec<u8>),
    /// Packets of the endpoint that IPv4 does not carry.
    untranslated: u64,
    /// Never read: it reserves the port, and prevents ICMPv6 errors of the kernel for it.
    _port: UdpSocket,
}

impl RawWire {
    /// A wire at an interface.
    ///
    /// # Errors
    ///
    /// If the port is in use, the address not this host's, or no packet socket can be opened.
    pub fn new(config: &RawWireConfig) -> io::Result<Self> {
        let port = UdpSocket::bind(config.address, ROCEV2_PORT, Segmentation::Software)?;
        port.grow_buffers(0)?;
        let mut prefixes = vec![(Prefix::host(config.address), Match::RoceV2)];
        prefixes.extend(config.probe_address.map(|address| (Prefix::host(address), Match::All)));
        let interest = Interest { prefixes, ..Interest::default() };
        let opened = srdma_io::open(&config.interface, Choice::Packet, &interest, None).map_err(io::Error::other)?;
        let is_ipv4 = config.address.to_ipv4_mapped().is_some();
        let ethertype = if is_ipv4 { EtherType::IPV4 } else { EtherType::IPV6 };
        let ethernet = Ethernet { destination: config.next_hop, source: config.mac, ethertype }.emit();
        let mut packet = vec![0; EthernetView::LEN + config.max_packet_octets];
        packet[..EthernetView::LEN].copy_from_slice(ethernet.as_bytes());
        Ok(RawWire {
            driver: opened.driver,
            pool: Pool::new(CHUNKS),
            frames: Vec::with_capacity(BATCH),
            packet,
            is_ipv4,
            received: (Vec::new(), Vec::new()),
            untranslated: 0,
            _port: port,
        })
    }
}

impl Wire for RawWire {
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize> {
        self.driver.receive(&mut self.pool, &mut self.frames, BATCH)?;
        let mut count = self.frames.len();
        for frame in self.frames.drain(..) {
            if self.is_ipv4 {
                let (octets, packet) = &mut self.received;
                octets.clear();
                frame.pieces(&self.pool).for_each(|piece| octets.extend_from_slice(piece));
                match in_ipv6(octets, packet) {
                    Some(()) => take(&[packet]),
                    None => count -= 1,
                }
                frame.release(&mut self.pool);
                continue;
            }
            let mut pieces: [&[u8]; MAX_PIECES] = [&[]; MAX_PIECES];
            for (place, piece) in pieces.iter_mut().zip(frame.pieces(&self.pool)) {
                *place = piece;
            }
            // The interest lets nothing else pass than IPv6; should it, the endpoint refuses and counts it.
            pieces[0] = pieces[0].get(EthernetView::LEN..).unwrap_or_default();
            take(&pieces);
            frame.release(&mut self.pool);
        }
        Ok(count)
    }

    fn transmit(&mut self, next: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        let room = self.driver.room(&mut self.pool).min(BATCH);
        let mut count = 0;
        while count < room {
            let Some(len) = next(&mut self.packet[EthernetView::LEN..]) else { break };
            count += 1;
            let end = EthernetView::LEN + len;
            let start = match self.is_ipv4.then(|| in_ipv4(&mut self.packet[..end])) {
                None => 0,
                Some(Some(start)) => start,
                Some(None) => {
                    self.untranslated += 1;
                    continue;
                }
            };
            // An exhausted pool loses a packet, as a full queue does.
            if let Some(frame) = Frame::from_octets(&self.packet[start..end], &mut self.pool) {
                self.driver.push(frame, &mut self.pool);
            }
        }
        self.driver.flush(&mut self.pool)?;
        Ok(count)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = match self.driver.is_flushed() {
            true => timeout,
            false => Some(timeout.map_or(RETRY, |timeout| timeout.min(RETRY))),
        };
        match self.driver.readable() {
            Some(readable) => udp::wait(readable.as_fd(), false, None, timeout),
            None => Ok(()),
        }
    }

    fn statistics(&self) -> WireStatistics {
        let statistics = self.driver.statistics();
        WireStatistics {
            received: statistics.received,
            sent: statistics.sent,
            receive_overruns: statistics.receive_overruns + statistics.too_long,
            send_errors: statistics.send_errors + self.untranslated,
        }
    }
}

impl Drop for RawWire {
    fn drop(&mut self) {
        self.driver.detach(&mut self.pool);
    }
}

/// Writes the RoCEv2 packet of an IPv4 frame to `packet`, in IPv6. `None` for other frames, which are the kernel's, and
/// for those with a wrong header checksum.
fn in_ipv6(frame: &[u8], packet: &mut Vec<u8>) -> Option<()> {
    let (ethernet, rest) = EthernetView::split(frame).ok()?;
    let (ipv4, _) = Ipv4View::split(rest).ok()?;
    let mut unsummed = *ipv4;
    unsummed.set_checksum(0);
    // The Ethernet frame may be padded.
    let rest = rest.get(..usize::from(ipv4.total_length()))?;
    let icrc = Icrc(*rest.last_chunk()?);
    if ethernet.ethertype() != EtherType::IPV4 || header_checksum(unsummed.as_bytes()) != ipv4.checksum() {
        return None;
    }
    let translated = to_ipv6(rest, rest.len(), icrc).ok()?;
    packet.clear();
    packet.extend_from_slice(translated.header.as_bytes());
    packet.extend_from_slice(rest.get(Ipv4View::LEN..)?);
    packet
        .get_mut(Ipv6View::LEN + UDP_CHECKSUM..)?
        .first_chunk_mut()
        .map(|place| *place = translated.udp_checksum.to_be_bytes())?;
    packet.last_chunk_mut().map(|place| *place = translated.icrc.0)
}

/// Translates a frame whose packet is in IPv6, and whose Ethernet header is that of IPv4; returns where it begins then.
fn in_ipv4(frame: &mut [u8]) -> Option<usize> {
    let packet = frame.get(EthernetView::LEN..)?;
    let icrc = Icrc(*packet.last_chunk()?);
    let translated = to_ipv4(packet, packet.len(), icrc).ok()?;
    frame.copy_within(..EthernetView::LEN, LONGER);
    let udp = EthernetView::LEN + Ipv6View::LEN;
    frame.get_mut(udp - Ipv4View::LEN..udp)?.copy_from_slice(translated.header.as_bytes());
    let checksum = frame.get_mut(udp + UDP_CHECKSUM..)?.first_chunk_mut()?;
    *checksum = translated.udp_checksum.to_be_bytes();
    *frame.last_chunk_mut()? = translated.icrc.0;
    Some(LONGER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_capture::Reader;
    use std::fs::File;
    use std::io::BufReader;

    /// Frames of scapy.
    fn frames() -> Vec<Vec<u8>> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/scapy_13_ipv4_groups.pcap");
        let reader = Reader::new(BufReader::new(File::open(path).expect("a capture"))).expect("a capture");
        reader.map(|packet| packet.expect("a packet").octets.to_vec()).collect()
    }

    /// D272, D293: the packet of a host that numbers its datagrams, and the same in IPv6.
    #[test]
    fn received_packets_are_scapys_in_ipv6() {
        let frames = frames();
        for (ipv4, ipv6) in [(0, 1), (5, 6)] {
            let mut packet = Vec::new();
            // As short frames are on Ethernet.
            let padded = [&frames[ipv4][..], &[0; 9]].concat();
            in_ipv6(&padded, &mut packet).expect("RoCEv2");
            assert_eq!(packet, frames[ipv6][EthernetView::LEN..]);
        }
    }

    /// Atomic datagrams of scapy, without and with a UDP checksum.
    #[test]
    fn sent_packets_are_scapys_atomic_datagrams() {
        for frame in [3, 4, 7, 8, 10, 12].map(|at| frames().remove(at)) {
            let mut packet = Vec::new();
            in_ipv6(&frame, &mut packet).expect("RoCEv2");
            let mut sent = [&frame[..EthernetView::LEN], &packet].concat();
            let start = in_ipv4(&mut sent).expect("of IPv4");
            assert_eq!(sent[start..], frame);
        }
    }

    #[test]
    fn other_frames_are_the_kernels() {
        let good = frames().remove(0);
        let mut packet = Vec::new();
        // EtherType, version and length, Protocol, header checksum, UDP port.
        for at in [13, 14, 14 + 9, 14 + 10, 14 + 22] {
            let mut other = good.clone();
            other[at] ^= 1;
            assert_eq!(in_ipv6(&other, &mut packet), None, "octet {at}");
        }
        for len in 0..good.len() {
            assert_eq!(in_ipv6(&good[..len], &mut packet), None, "{len} octets");
        }
    }
}
