//! Responses and CNPs sent upstream: packets to the parent or, at the root, to the source (D12, D13, MT-5.3.1-4).

use super::{GroupState, Groups, PathTrace};
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6};
use crate::tables::Tables;
use srdma_aggregation::{CnpUp, EpochTag, Response, Syndrome, UpstreamResponse};
use srdma_frame::{Frame, Pool};
use srdma_group::{Dscp, Parent};
use srdma_repair::Request;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::fast_cnp::{FastCnpValue, MAX_FAST_CNP_LEN, OptionTypes};
use srdma_wire::icrc::Computation;
use srdma_wire::transport::CnpView;
use srdma_wire::{AethView, Bth, Icrc, Instant, Ipv6, NextHeader, Opcode, Psn, Qpn, Udp, View};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Where a group's responses go: addresses, queue pair and adjacency.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upward {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    qpn: Qpn,
    /// Outer source and destination, when the parent is not a neighbour.
    tunnel: Option<(Ipv6Addr, Ipv6Addr)>,
    adjacency: Option<u32>,
    to_host: bool,
    /// Of the UDP datagram.
    source_port: u16,
    marks: Marks,
}

/// Marks of responses (D227).
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// Traffic Classes of ACKs and NAKs, and of CNPs.
    ack_class: u8,
    cnp_class: u8,
    /// MigReq of ACKs and NAKs.
    migration_request: bool,
}

impl Groups {
    pub(crate) fn upward(&self, group: u32, tables: &Tables, loopback: Ipv6Addr) -> Option<Upward> {
        let GroupState { entry, marking, .. } = self.get(group)?;
        let proxy = entry.proxy.octets();
        let marks = Marks {
            ack_class: entry.policy.ack_dscp.map_or(marking.traffic_class, Dscp::traffic_class),
            cnp_class: entry.policy.cnp_dscp.traffic_class(),
            migration_request: marking.migration_request,
        };
        Some(match entry.parent {
            Parent::Source(source) => Upward {
                source: entry.proxy,
                destination: source.address,
                qpn: source.qpn,
                tunnel: None,
                adjacency: tables.resolve(&source.address.octets(), &proxy),
                to_host: true,
                source_port: 0xC000 | (source.qpn.get() & 0x3FFF) as u16,
                marks,
            },
            Parent::Node { loopback: parent, sid } => Upward {
                source: loopback,
                destination: entry.proxy,
                qpn: entry.designated_qpn,
                tunnel: sid.map(|sid| (loopback, sid)),
                adjacency: tables.resolve(&sid.unwrap_or(parent).octets(), &proxy),
                to_host: false,
                source_port: EpochTag::of(entry.epoch).port(),
                marks,
            },
        })
    }

    /// Counts a response that is about to be sent.
    pub(crate) fn count_response(&mut self, now: Instant, group: u32, response: UpstreamResponse) {
        self.journal_upstream(now, group, response);
        if let Some(state) = self.get_mut(group) {
            match response.response.syndrome {
                Syndrome::Ack => state.counters.acks_sent += 1,
                Syndrome::SequenceNak | Syndrome::RnrNak(_) | Syndrome::Fatal(_) => state.counters.naks_sent += 1,
            }
        }
    }

    /// Counts a CNP that is about to be sent.
    pub(crate) fn count_cnp(&mut self, now: Instant, group: u32, cnp: CnpUp) {
        self.journal_cnp_up(now, group, cnp);
        if let Some(state) = self.get_mut(group) {
            state.counters.cnps_sent += 1;
        }
    }
}

impl Upward {
    /// A response as a packet, and the adjacency that it leaves by.
    pub(crate) fn response(&self, response: &Response, pool: &mut Pool) -> Result<(Frame, u32), DropReason> {
        let aeth: AethView = response.aeth().emit();
        self.acknowledge(response.psn, &aeth, pool)
    }

    /// A request for data as a packet (D153).
    pub(crate) fn request(&self, request: &Request, pool: &mut Pool) -> Result<(Frame, u32), DropReason> {
        if self.to_host {
            return Err(DropReason::NoRoute);
        }
        let aeth: AethView = request.aeth().emit();
        self.acknowledge(request.psn, &aeth, pool)
    }

    fn acknowledge(&self, psn: Psn, aeth: &AethView, pool: &mut Pool) -> Result<(Frame, u32), DropReason> {
        let bth = Bth::new(Opcode::ACKNOWLEDGE, self.qpn, psn);
        let bth = Bth { migration_request: self.marks.migration_request, ..bth };
        self.packet(self.marks.ack_class, &bth, aeth.as_bytes(), pool)
    }

    /// A CNP as a packet. The source gets a standard one, its payload zero (MT-5.3.3-4, D29).
    pub(crate) fn cnp(&self, cnp: CnpUp, pool: &mut Pool) -> Result<(Frame, u32), DropReason> {
        let bth = Bth { becn: true, ..Bth::new(Opcode::CNP, self.qpn, Psn::new(0)) };
        let payload = CnpView::with_count(if self.to_host { 0 } else { cnp.count });
        self.packet(self.marks.cnp_class, &bth, payload.as_bytes(), pool)
    }

    /// The trace of a path as a packet: to the parent with its load, to the source as a receiver returns one (D242).
    pub(crate) fn trace(
        &self,
        trace: &PathTrace,
        (proxy, designated_qpn): (Ipv6Addr, Qpn),
        types: OptionTypes,
        pool: &mut Pool,
    ) -> Result<(Frame, u32), DropReason> {
        const OUTER: usize = IPV6 + Ipv6::LEN;
        let adjacency = self.adjacency.ok_or(DropReason::NoRoute)?;
        let value = FastCnpValue {
            source: self.source,
            destination: self.destination,
            traffic_class: self.marks.cnp_class,
            hop_limit: FastCnpValue::HOP_LIMIT,
            source_port: self.source_port,
            // The source finds its queue pair by its peer's address and number (FC-4-7).
            dest_qpn: designated_qpn,
            original_destination: proxy,
            trace: Some(trace.octets()),
        };
        let payload = if self.to_host { CnpView::with_count(0) } else { CnpView::with_load(trace.load) };
        let mut octets = [0; OUTER + MAX_FAST_CNP_LEN];
        let len = value.emit_with(types, &payload, &mut octets[OUTER..]).ok_or(DropReason::FastCnpTooLong)?;
        let start = match self.tunnel {
            Some((source, destination)) => {
                let outer = header(self.marks.cnp_class, source, destination, NextHeader::IPV6, len).emit();
                octets[IPV6..OUTER].copy_from_slice(outer.as_bytes());
                0
            }
            None => OUTER - IPV6,
        };
        let frame = Frame::from_octets(&octets[start..OUTER + len], pool).ok_or(DropReason::NoBuffer)?;
        Ok((frame, adjacency))
    }

    /// A packet with its ICRC, and the adjacency that it leaves by.
    fn packet(
        &self,
        traffic_class: u8,
        bth: &Bth,
        extended: &[u8],
        pool: &mut Pool,
    ) -> Result<(Frame, u32), DropReason> {
        const OUTER: usize = Ipv6::LEN;
        const MOST: usize = AFTER_IPV6 + OUTER + Udp::LEN + Bth::LEN + CnpView::LEN + Icrc::LEN;
        let adjacency = self.adjacency.ok_or(DropReason::NoRoute)?;
        let udp_len = Udp::LEN + Bth::LEN + extended.len() + Icrc::LEN;
        let header = |source, destination, next_header, payload_length| {
            header(traffic_class, source, destination, next_header, payload_length)
        };
        let ipv6 = header(self.source, self.destination, NextHeader::UDP, udp_len).emit();
        let udp =
            Udp { source_port: self.source_port, destination_port: ROCEV2_PORT, length: udp_len as u16, checksum: 0 }
                .emit();
        let bth = bth.emit();
        let mut computation = Computation::begin(&ipv6, 0, &udp, &bth);
        computation.update(extended);
        let icrc = computation.finish();
        let outer = self
            .tunnel
            .map(|(source, destination)| header(source, destination, NextHeader::IPV6, Ipv6::LEN + udp_len).emit());
        let pieces: [&[u8]; 7] = [
            &[0; IPV6],
            outer.as_ref().map_or(&[], |outer| outer.as_bytes()),
            ipv6.as_bytes(),
            udp.as_bytes(),
            bth.as_bytes(),
            extended,
            &icrc.0,
        ];
        let mut octets = [0; MOST];
        let mut len = 0;
        for piece in pieces {
            octets[len..len + piece.len()].copy_from_slice(piece);
            len += piece.len();
        }
        let frame = Frame::small(&octets[..len], pool).ok_or(DropReason::NoBuffer)?;
        Ok((frame, adjacency))
    }
}

fn header(
    traffic_class: u8,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    next_header: NextHeader,
    payload_length: usize,
) -> Ipv6 {
    let payload_length = payload_length as u16;
    Ipv6 { traffic_class, flow_label: 0, payload_length, next_header, hop_limit: 64, source, destination }
}
