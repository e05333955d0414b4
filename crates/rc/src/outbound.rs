//! Construction of outgoing packets.

use crate::config::{ConfigError, EndpointConfig, QueuePairConfig};
use srdma_wire::rocev2::Extended;
use srdma_wire::{Bth, CnpView, Icrc, Ipv6, Ipv6View, NextHeader, Opcode, Psn, Qpn, Udp, codepoints, icrc};
use zerocopy::IntoBytes;

const EXTENDED_OFFSET: usize = Ipv6::LEN + Udp::LEN + Bth::LEN;

/// Octets of the longest extended transport headers sent: RETH and ImmDt.
const MAX_EXTENDED_OCTETS: usize = 20;

/// Octets of the longest packet with so much payload.
pub(crate) const fn packet_octets(payload_octets: usize) -> usize {
    EXTENDED_OFFSET + MAX_EXTENDED_OCTETS + payload_octets + Icrc::LEN
}

/// Fields of a BTH that differ from packet to packet.
pub(crate) struct Header {
    pub(crate) opcode: Opcode,
    pub(crate) psn: Psn,
    pub(crate) ack_request: bool,
    /// An ACK of a marked packet (D283).
    pub(crate) becn: bool,
}

/// The headers that all packets of a queue pair share.
#[derive(Debug)]
pub(crate) struct PacketWriter {
    ipv6: Ipv6View,
    cnp_traffic_class: u8,
    source_port: u16,
    pkey: u16,
    remote_qpn: Qpn,
    /// The Hop-by-Hop Options header of data packets, with an empty trace.
    trace: Box<[u8]>,
}

impl PacketWriter {
    pub(crate) fn new(endpoint: &EndpointConfig, queue_pair: &QueuePairConfig) -> Result<Self, ConfigError> {
        let trace = queue_pair.trace.map(|request| request.header(queue_pair.qpn)).transpose()?.unwrap_or_default();
        let ipv6 = Ipv6 {
            traffic_class: queue_pair.traffic_class,
            flow_label: queue_pair.effective_flow_label(),
            payload_length: 0,
            next_header: NextHeader::UDP,
            hop_limit: endpoint.hop_limit,
            source: endpoint.address,
            destination: queue_pair.remote_address,
        };
        Ok(PacketWriter {
            ipv6: ipv6.emit(),
            cnp_traffic_class: endpoint.cnp_traffic_class,
            source_port: queue_pair.source_port(),
            pkey: endpoint.pkey,
            remote_qpn: queue_pair.remote_qpn,
            trace,
        })
    }

    /// From now on packets have another UDP source port and flow label, the `count`-th ones: none of the 16,384 ports
    /// follows itself.
    pub(crate) fn detour(&mut self, count: u64) {
        let mut mixed = (u64::from(self.remote_qpn.get()) << 32 ^ count).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^= mixed >> 29;
        let step = 1 + (mixed % 0x3FFF) as u16;
        self.source_port = 0xC000 | (self.source_port.wrapping_add(step) & 0x3FFF);
        self.ipv6 = Ipv6 { flow_label: (mixed >> 40) as u32 & 0xF_FFFF, ..self.ipv6.value() }.emit();
    }

    /// Octets of the extension header of data packets.
    pub(crate) fn trace_octets(&self) -> usize {
        self.trace.len()
    }

    /// Writes a packet, whose payload of `payload_len` octets `fill` puts in place, and returns its length.
    /// `into` holds at least [`packet_octets`] of the payload's length.
    pub(crate) fn write(
        &self,
        into: &mut [u8],
        header: &Header,
        extended: Extended<'_>,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> usize {
        let bth = Bth {
            ack_request: header.ack_request,
            becn: header.becn,
            pkey: self.pkey,
            ..Bth::new(header.opcode, self.remote_qpn, header.psn)
        };
        let trace = if payload_len > 0 { &*self.trace } else { &[] };
        self.emit(into, self.ipv6, trace, bth, extended, payload_len, fill)
    }

    /// Writes a CNP (FC-3-1) and returns its length.
    pub(crate) fn write_cnp(&self, into: &mut [u8], payload: &CnpView) -> usize {
        let mut ipv6 = self.ipv6;
        ipv6.set_traffic_class(self.cnp_traffic_class);
        let bth = Bth { becn: true, pkey: self.pkey, ..Bth::new(Opcode::CNP, self.remote_qpn, Psn::new(0)) };
        self.emit(into, ipv6, &[], bth, Extended::Cnp(payload), 0, |_| {})
    }

    #[allow(clippy::too_many_arguments)]
    fn emit(
        &self,
        into: &mut [u8],
        mut ipv6: Ipv6View,
        extension: &[u8],
        mut bth: Bth,
        extended: Extended<'_>,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> usize {
        let pad_count = payload_len.wrapping_neg() % 4;
        let udp_offset = Ipv6::LEN + extension.len();
        let extended_offset = EXTENDED_OFFSET + extension.len();
        let payload_offset = extended_offset + extended.len_octets();
        let pad_offset = payload_offset + payload_len;
        let icrc_offset = pad_offset + pad_count;
        let total = icrc_offset + Icrc::LEN;

        let length = (total - udp_offset) as u16;
        ipv6.set_payload_length((total - Ipv6::LEN) as u16);
        if !extension.is_empty() {
            ipv6.set_next_header(NextHeader::HOP_BY_HOP);
        }
        let udp = Udp { source_port: self.source_port, destination_port: codepoints::ROCEV2_PORT, length, checksum: 0 };
        let udp = udp.emit();
        bth.pad_count = pad_count as u8;
        let bth = bth.emit();

        into[..Ipv6::LEN].copy_from_slice(ipv6.as_bytes());
        into[Ipv6::LEN..udp_offset].copy_from_slice(extension);
        into[udp_offset..udp_offset + Udp::LEN].copy_from_slice(udp.as_bytes());
        into[udp_offset + Udp::LEN..extended_offset].copy_from_slice(bth.as_bytes());
        let [first, second] = extended.octets();
        let (first_place, second_place) = into[extended_offset..payload_offset].split_at_mut(first.len());
        first_place.copy_from_slice(first);
        second_place.copy_from_slice(second);
        fill(&mut into[payload_offset..pad_offset]);
        into[pad_offset..icrc_offset].fill(0);
        let mut computation = icrc::Computation::begin(&ipv6, extension.len() as u16, &udp, &bth);
        computation.update(&into[extended_offset..icrc_offset]);
        into[icrc_offset..total].copy_from_slice(&computation.finish().0);
        total
    }
}
