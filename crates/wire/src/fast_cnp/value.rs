use super::{ADDRESS_OPTION_LEN, MAX_TRACE_LEN, OptionTypes, STANDARD_CNP_LEN, can_carry};
use crate::bth::{Bth, BthView, Opcode};
use crate::codepoints::ROCEV2_PORT;
use crate::icrc::{Computation, Icrc};
use crate::ipv6::{Ipv6, Ipv6View, NextHeader};
use crate::options::{Alignment, OptionsWriter};
use crate::psn::{Psn, Qpn};
use crate::transport::CnpView;
use crate::udp::{Udp, UdpView};
use crate::view::View;
use core::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// A Fast CNP as a value (FC-4-1, FC-4-2).
///
/// D44 has the values that the draft leaves open: BECN 1, PSN 0, P_Key 0xFFFF, flow label and UDP checksum 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastCnpValue<'a> {
    /// Source: the loopback address of the switch.
    pub source: Ipv6Addr,
    /// Destination: source of the data packet.
    pub destination: Ipv6Addr,
    /// DSCP and ECN; [`FastCnpValue::TRAFFIC_CLASS`] by default (D44).
    pub traffic_class: u8,
    /// Hop limit; [`FastCnpValue::HOP_LIMIT`] by default (D44).
    pub hop_limit: u8,
    /// UDP source port: that of the data packet (D44).
    pub source_port: u16,
    /// Destination QP: that of the data packet.
    pub dest_qpn: Qpn,
    /// Destination of the data packet.
    pub original_destination: Ipv6Addr,
    /// The IOAM trace of the data packet, from its option's Reserved octet on; with it option 2 is sent, not option 1.
    pub trace: Option<&'a [u8]>,
}

impl FastCnpValue<'_> {
    /// DSCP 48 (CS6), Not-ECT.
    pub const TRAFFIC_CLASS: u8 = 48 << 2;
    /// Hop limit.
    pub const HOP_LIMIT: u8 = 64;

    /// Octets from the IPv6 header to the ICRC.
    pub fn len_octets(&self) -> usize {
        let behind_first_two = match self.trace {
            None => 2 + ADDRESS_OPTION_LEN,
            Some(trace) => 2 + 2 + trace.len() + ADDRESS_OPTION_LEN,
        };
        STANDARD_CNP_LEN + (2 + behind_first_two).next_multiple_of(8)
    }

    /// Writes the packet to the front of `into` and returns its length. `None` when it does not fit, or when
    /// [`can_carry`] refuses the length of the trace (D41).
    pub fn emit(&self, types: OptionTypes, into: &mut [u8]) -> Option<usize> {
        self.emit_with(types, &CnpView::with_count(0), into)
    }

    /// The same with a payload that nodes of a tree send each other.
    pub fn emit_with(&self, types: OptionTypes, payload: &CnpView, into: &mut [u8]) -> Option<usize> {
        let whole = into.get_mut(..self.len_octets())?;
        let standard = Ipv6 {
            traffic_class: self.traffic_class,
            flow_label: 0,
            payload_length: (STANDARD_CNP_LEN - Ipv6View::LEN) as u16,
            next_header: NextHeader::UDP,
            hop_limit: self.hop_limit,
            source: self.source,
            destination: self.destination,
        };
        let (headers, upper_layer) = whole.split_last_chunk_mut::<{ STANDARD_CNP_LEN - Ipv6View::LEN }>()?;
        let (ipv6, options) = Ipv6View::split_mut(headers).ok()?;
        self.emit_options(types, options)?;
        *ipv6 = standard.emit();
        self.emit_upper_layer(ipv6, payload, upper_layer)?;
        ipv6.set_payload_length((options.len() + upper_layer.len()) as u16);
        ipv6.set_next_header(NextHeader::DESTINATION_OPTIONS);
        Some(self.len_octets())
    }

    /// D40.
    fn emit_options(&self, types: OptionTypes, into: &mut [u8]) -> Option<usize> {
        let address = self.original_destination.octets();
        let mut writer = OptionsWriter::new(into);
        match self.trace {
            None => writer.option(types.address(), &address, Alignment::FOUR_N_PLUS_2)?,
            Some(trace) => {
                let mut data = [0; MAX_TRACE_LEN + ADDRESS_OPTION_LEN];
                let len = trace.len() + ADDRESS_OPTION_LEN;
                let data = data.get_mut(..len).filter(|_| can_carry(trace.len()))?;
                let (trace_place, address_place) = data.split_last_chunk_mut()?;
                trace_place.copy_from_slice(trace);
                *address_place = address;
                writer.option(types.trace(), data, Alignment::FOUR_N)?;
            }
        }
        writer.finish(NextHeader::UDP)
    }

    /// The ICRC covers the packet as a standard CNP would be (D43).
    fn emit_upper_layer(&self, standard: &Ipv6View, payload: &CnpView, into: &mut [u8]) -> Option<()> {
        let length = (STANDARD_CNP_LEN - Ipv6View::LEN) as u16;
        let (udp, rest) = UdpView::split_mut(into).ok()?;
        let (bth, rest) = BthView::split_mut(rest).ok()?;
        let (cnp, rest) = CnpView::split_mut(rest).ok()?;
        *udp = Udp { source_port: self.source_port, destination_port: ROCEV2_PORT, length, checksum: 0 }.emit();
        *bth = Bth { becn: true, ..Bth::new(Opcode::CNP, self.dest_qpn, Psn::new(0)) }.emit();
        *cnp = *payload;
        let mut icrc = Computation::begin(standard, 0, udp, bth);
        icrc.update(cnp.as_bytes());
        *rest.first_chunk_mut::<{ Icrc::LEN }>()? = icrc.finish().0;
        Some(())
    }
}
