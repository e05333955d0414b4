//! A packet driver as a wire: whole frames, extension headers and all.

use crate::wire::{Wire, WireStatistics};
use srdma_frame::{Frame, Pool};
use srdma_io::udp::{self, Segmentation, UdpSocket};
use srdma_io::{Choice, Driver, Interest, Match};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::{EtherType, Ethernet, EthernetView, MacAddress, Prefix, View};
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
        let ethernet = Ethernet { destination: config.next_hop, source: config.mac, ethertype: EtherType::IPV6 }.emit();
        let mut packet = vec![0; EthernetView::LEN + config.max_packet_octets];
        packet[..EthernetView::LEN].copy_from_slice(ethernet.as_bytes());
        Ok(RawWire {
            driver: opened.driver,
            pool: Pool::new(CHUNKS),
            frames: Vec::with_capacity(BATCH),
            packet,
            _port: port,
        })
    }
}

impl Wire for RawWire {
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize> {
        self.driver.receive(&mut self.pool, &mut self.frames, BATCH)?;
        let count = self.frames.len();
        for frame in self.frames.drain(..) {
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
            // An exhausted pool loses a packet, as a full queue does.
            if let Some(frame) = Frame::from_octets(&self.packet[..EthernetView::LEN + len], &mut self.pool) {
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
            send_errors: statistics.send_errors,
        }
    }
}

impl Drop for RawWire {
    fn drop(&mut self) {
        self.driver.detach(&mut self.pool);
    }
}
