//! Ethernet and its tags.

use super::dissect::{Dissector, Next};
use super::layer::{self, Layer};
use super::record::Damage;
use srdma_wire::ethernet::{EtherType, Ethernet, Vlan};

/// Ethernet header.
pub(super) fn ethernet(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    let (header, rest) = Ethernet::parse(dissector.octets).map_err(|error| dissector.damage(error))?;
    dissector.push(Layer::Ethernet(layer::Ethernet {
        source: header.source.to_string(),
        destination: header.destination.to_string(),
        ethertype: header.ethertype.0,
    }));
    dissector.advance_to(rest);
    Ok(Next::EtherType(header.ethertype))
}

/// 802.1Q tag.
pub(super) fn vlan(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    let (tag, rest) = Vlan::parse(dissector.octets).map_err(|error| dissector.damage(error))?;
    dissector.push(Layer::Vlan(layer::Vlan {
        id: tag.id,
        priority: tag.priority,
        drop_eligible: tag.drop_eligible,
        ethertype: tag.ethertype.0,
    }));
    dissector.advance_to(rest);
    Ok(Next::EtherType(tag.ethertype))
}

/// What an EtherType that is not dissected stands for.
pub(super) fn protocol(ethertype: EtherType) -> String {
    match ethertype {
        EtherType::IPV4 => "IPv4".into(),
        EtherType::MAC_CONTROL => "MAC control".into(),
        EtherType(length @ 0..1536) => format!("IEEE 802.3, length {length}"),
        EtherType(other) => format!("EtherType {other:#06x}"),
    }
}
