//! Dissection of a packet, from the outermost layer to the innermost.

use super::Settings;
use super::layer::{Layer, Payload};
use super::record::{Damage, Dissection, Within};
use super::{cm, icmpv6, link, network, options, segment_routing, transport};
use srdma_capture::{LinkType, Packet};
use srdma_wire::ethernet::EtherType;
use srdma_wire::ipv6::{Ipv6View, NextHeader};
use std::fmt::Display;

/// More layers than any packet needs: a packet built to have thousands of nested headers ends here.
const MAX_LAYERS: usize = 256;

/// Layers of the octets of `packet`. Damaged octets are reported, whatever they are.
pub fn dissect(packet: &Packet, settings: &Settings) -> Dissection {
    let mut dissector = Dissector {
        octets: &packet.octets,
        offset: 0,
        packet: &packet.octets,
        settings,
        carrier: None,
        complete: true,
        dissection: Dissection::default(),
    };
    let link_type = packet.interface.link_type;
    let next = match link_type {
        LinkType::ETHERNET => Ok(Next::Ethernet),
        _ => Err(dissector.damage(format!("expected Ethernet, found {link_type}"))),
    };
    if let Err(damage) = next.and_then(|next| dissector.run(next)) {
        dissector.report(damage);
    }
    let mut dissection = dissector.dissection;
    let captured = packet.octets.len();
    if let Some(error) = &mut dissection.error
        && captured < packet.original_len as usize
    {
        error.reason += &format!(" (the capture has {captured} octets of {})", packet.original_len);
    }
    dissection
}

/// Type of the octets that follow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    Ethernet,
    EtherType(EtherType),
    Header(NextHeader),
    Roce,
    /// MAC control, behind its EtherType.
    MacControl,
    /// Payload of a UD packet to the queue pair of general services, from its DETH on.
    GeneralServices,
    /// The dissection is complete.
    Nothing,
}

/// The innermost IPv6 header so far, and the fields of it that the layers above need.
#[derive(Clone, Copy)]
pub(super) struct Carrier {
    pub(super) ipv6: Ipv6View,
    /// Its offset in the packet.
    pub(super) offset: usize,
    /// Octets of all extension headers behind it so far.
    pub(super) extension_octets: u16,
    /// Offset of its first Fast CNP option in the packet.
    pub(super) fast_cnp_offset: Option<usize>,
}

/// A packet on the way through its layers.
pub(super) struct Dissector<'a> {
    /// Octets that are not dissected yet.
    pub(super) octets: &'a [u8],
    /// Its offset in the packet.
    pub(super) offset: usize,
    /// The whole packet.
    pub(super) packet: &'a [u8],
    pub(super) settings: &'a Settings,
    pub(super) carrier: Option<Carrier>,
    /// Whether all octets are there that the innermost length so far promises.
    pub(super) complete: bool,
    pub(super) dissection: Dissection,
}

impl<'a> Dissector<'a> {
    fn run(&mut self, mut next: Next) -> Result<(), Damage> {
        loop {
            if self.dissection.layers.len() >= MAX_LAYERS {
                return Err(self.damage(format!("expected at most {MAX_LAYERS} layers")));
            }
            next = match next {
                Next::Ethernet => link::ethernet(self)?,
                Next::EtherType(EtherType::VLAN) => link::vlan(self)?,
                Next::EtherType(EtherType::IPV6) | Next::Header(NextHeader::IPV6) => network::ipv6(self)?,
                Next::EtherType(EtherType::MAC_CONTROL) => Next::MacControl,
                Next::MacControl => link::mac_control(self)?,
                Next::EtherType(other) => self.payload(link::protocol(other)),
                Next::Header(header @ (NextHeader::HOP_BY_HOP | NextHeader::DESTINATION_OPTIONS)) => {
                    options::header(self, header)?
                }
                Next::Header(NextHeader::FRAGMENT) => network::fragment(self)?,
                Next::Header(NextHeader::ROUTING) => segment_routing::srh(self)?,
                Next::Header(NextHeader::ICMPV6) => icmpv6::message(self)?,
                Next::Header(NextHeader::UDP) => transport::udp(self)?,
                Next::Header(NextHeader::NONE) => Next::Nothing,
                Next::Header(other) => self.payload(network::protocol(other)),
                Next::Roce => transport::roce(self)?,
                Next::GeneralServices => cm::general_services(self)?,
                Next::Nothing => return Ok(()),
            }
        }
    }

    /// Adds a layer.
    pub(super) fn push(&mut self, layer: Layer) {
        self.dissection.layers.push(layer);
    }

    /// Goes on behind a header: `rest` is the end of what was to be read.
    pub(super) fn advance_to(&mut self, rest: &'a [u8]) {
        self.offset += self.octets.len() - rest.len();
        self.octets = rest;
    }

    /// The remaining octets are not dissected.
    pub(super) fn payload(&mut self, protocol: impl Into<String>) -> Next {
        if !self.octets.is_empty() {
            self.push(Layer::Payload(Payload { protocol: protocol.into(), octets: self.octets.len() }));
        }
        Next::Nothing
    }

    /// Cuts what is left to the length that a header promises; when there is less, that is damage.
    pub(super) fn limit(&mut self, header: &str, length: usize) {
        let promised = self.octets.get(..length);
        self.complete = promised.is_some();
        match promised {
            Some(octets) => self.octets = octets,
            None => {
                let found = self.octets.len();
                self.report(self.damage(format!("{header} promises {length} octets, {found} left")));
            }
        }
    }

    /// The damage that begins with the next octet to be read.
    pub(super) fn damage(&self, reason: impl Display) -> Damage {
        self.damage_at(0, reason)
    }

    /// The damage that begins `further` octets behind the next to be read.
    pub(super) fn damage_at(&self, further: usize, reason: impl Display) -> Damage {
        self.damage_from_start(self.offset + further, reason)
    }

    /// The damage that begins so many octets behind the start of the packet.
    pub(super) fn damage_from_start(&self, offset: usize, reason: impl Display) -> Damage {
        Damage { within: Within::Packet, offset: offset as u64, reason: reason.to_string() }
    }

    /// Keeps the first damage; dissection continues.
    pub(super) fn report(&mut self, damage: Damage) {
        self.dissection.error.get_or_insert(damage);
    }
}
