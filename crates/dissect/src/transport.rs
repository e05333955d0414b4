//! UDP, and RoCEv2 in it.

use super::dissector::{Carrier, Dissector, Next};
use super::layer::{self, ChecksumVerdict, Layer};
use super::record::{Damage, IcrcVerdict};
use super::{operation, options};
use srdma_wire::View;
use srdma_wire::bth::BthView;
use srdma_wire::checksum::Sum;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::icrc::{Computation, Icrc};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::udp::UdpView;

/// UDP header.
pub(super) fn udp(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    let (header, _) = UdpView::split(dissector.octets).map_err(|error| dissector.damage(error))?;
    let length = usize::from(header.length());
    if length < UdpView::LEN {
        return Err(dissector.damage(format!("UDP length must be at least {}, found {length}", UdpView::LEN)));
    }
    dissector.limit("UDP header", length);
    let datagram = dissector.octets;
    let (header, rest) = UdpView::split(datagram).map_err(|error| dissector.damage(error))?;
    let checksum = match header.checksum() {
        0 => ChecksumVerdict::Absent,
        _ if !dissector.complete => ChecksumVerdict::Absent,
        _ => checksum_of(dissector.carrier.as_ref(), datagram, NextHeader::UDP),
    };
    let is_rocev2 = header.destination_port() == ROCEV2_PORT;
    let carrier = dissector.carrier.as_ref().filter(|_| is_rocev2);
    let entropy = carrier.and_then(|Carrier { ipv6, .. }| {
        dissector.settings.entropy_paths.read(ipv6.destination(), header.source_port(), ipv6.flow_label())
    });
    dissector.push(Layer::Udp(layer::Udp {
        source_port: header.source_port(),
        destination_port: header.destination_port(),
        length: header.length(),
        checksum,
        entropy,
    }));
    if !is_rocev2 {
        dissector.advance_to(rest);
        return Ok(dissector.payload(format!("UDP port {}", header.destination_port())));
    }
    dissector.dissection.icrc = icrc(dissector, header, rest);
    dissector.advance_to(rest);
    Ok(Next::Roce)
}

/// RoCEv2: BTH, extended transport headers, payload, pad octets and ICRC.
pub(super) fn roce(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    let (header, rest) = BthView::split(dissector.octets).map_err(|error| dissector.damage(error))?;
    let opcode = header.opcode();
    dissector.push(Layer::Bth(layer::Bth {
        opcode: opcode.0,
        operation: opcode.name(),
        dest_qpn: header.dest_qpn().get(),
        psn: header.psn().get(),
        ack_request: header.ack_request(),
        solicited_event: header.solicited_event(),
        migration_request: header.migration_request(),
        pad_count: header.pad_count(),
        transport_version: header.transport_version(),
        pkey: header.pkey(),
        fecn: header.fecn(),
        becn: header.becn(),
    }));
    dissector.advance_to(rest);
    options::check_fast_cnp(dissector);
    operation::extension_headers(dissector, opcode)?;
    let end = usize::from(header.pad_count()) + Icrc::LEN;
    let found = dissector.octets.len();
    if dissector.complete {
        let length = found.checked_sub(end);
        let too_short = || dissector.damage(format!("pad octets and ICRC need {end} octets, {found} left"));
        dissector.limit("BTH", length.ok_or_else(too_short)?);
    }
    let goes_to_services = (opcode.0, header.dest_qpn().get()) == (UD_SEND_ONLY, GENERAL_SERVICES);
    Ok(if goes_to_services { Next::GeneralServices } else { dissector.payload("RDMA") })
}

/// Opcode of UD SEND Only, and the queue pair of general services.
const UD_SEND_ONLY: u8 = 0x64;
const GENERAL_SERVICES: u32 = 1;

/// Whether the checksum over the pseudo-header and `octets`, including the checksum field, is valid.
pub(super) fn checksum_of(carrier: Option<&Carrier>, octets: &[u8], next: NextHeader) -> ChecksumVerdict {
    let Some(Carrier { ipv6, .. }) = carrier else { return ChecksumVerdict::Absent };
    let length = octets.len() as u32;
    let mut sum = Sum::pseudo_header(ipv6.source_octets(), ipv6.destination_octets(), length, next);
    sum.add(octets);
    if sum.checksum() == 0 { ChecksumVerdict::Ok } else { ChecksumVerdict::Bad }
}

/// Whether the last four octets of a UDP payload are its ICRC. Extension headers count as absent (D43).
fn icrc(dissector: &Dissector<'_>, udp: &UdpView, payload: &[u8]) -> IcrcVerdict {
    let parts = payload.split_last_chunk::<{ Icrc::LEN }>().and_then(|(covered, found)| {
        let (bth, covered) = BthView::split(covered).ok()?;
        Some((dissector.carrier.as_ref()?, bth, covered, found))
    });
    let Some((carrier, bth, covered, found)) = parts.filter(|_| dissector.complete) else {
        return IcrcVerdict::Absent;
    };
    let mut computation = Computation::begin(&carrier.ipv6, carrier.extension_octets, udp, bth);
    computation.update(covered);
    if computation.finish() == Icrc(*found) { IcrcVerdict::Ok } else { IcrcVerdict::Bad }
}
