//! Ethernet, its tags, and MAC control.

use super::dissector::{Dissector, Next};
use super::layer::{self, Layer, PausedClass};
use super::record::Damage;
use srdma_wire::ethernet::{EtherType, Ethernet, Vlan};
use srdma_wire::pfc::{Pfc, PfcError, QUANTUM_BITS};
use srdma_wire::units::NS_PER_S;
use srdma_wire::view::Truncated;

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

/// MAC control: priority flow control (IEEE 802.1Qbb), or the PAUSE of IEEE 802.3, which has no classes. The octets
/// behind it are padding.
pub(super) fn mac_control(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    const PAUSE: u16 = 0x0001;
    match Pfc::parse(dissector.octets) {
        Ok(pfc) => {
            let classes = pfc.quanta.iter().enumerate().filter_map(|(class, quanta)| {
                let quanta = (*quanta)?;
                Some(PausedClass { class, quanta, pause_ns: pause_ns(dissector, quanta) })
            });
            let classes = classes.collect();
            // The parser has found more than this octet.
            let class_enable = dissector.octets.get(3).copied().unwrap_or_default();
            dissector.push(Layer::Pfc(layer::Pfc { class_enable, classes }));
            check_destination(dissector);
            Ok(Next::Nothing)
        }
        Err(PfcError::Opcode(PAUSE)) => {
            let quanta = quanta_of_pause(dissector)?;
            dissector.push(Layer::Pause(layer::Pause { quanta, pause_ns: pause_ns(dissector, quanta) }));
            check_destination(dissector);
            Ok(Next::Nothing)
        }
        Err(PfcError::Opcode(opcode)) => Ok(dissector.payload(format!("MAC control opcode {opcode:#06x}"))),
        Err(PfcError::Truncated(truncated)) => Err(dissector.damage(truncated)),
    }
}

fn quanta_of_pause(dissector: &Dissector<'_>) -> Result<u16, Damage> {
    let found = dissector.octets.len();
    let quanta = dissector.octets.get(2..).and_then(|octets| octets.first_chunk());
    let quanta = quanta.ok_or_else(|| dissector.damage(Truncated { header: "PAUSE", needed: 4, found }))?;
    Ok(u16::from_be_bytes(*quanta))
}

/// Duration of so many quanta at the link's rate, if that is known.
fn pause_ns(dissector: &Dissector<'_>, quanta: u16) -> Option<u64> {
    let bits = u64::from(quanta) * QUANTUM_BITS;
    Some(bits * NS_PER_S / dissector.settings.link_rate_bits_per_s?)
}

/// The destination address is checked, since bridges forward frames for other addresses.
fn check_destination(dissector: &mut Dissector<'_>) {
    let Ok((ethernet, _)) = Ethernet::parse(dissector.packet) else { return };
    if ethernet.destination != Pfc::DESTINATION {
        let (expected, found) = (Pfc::DESTINATION, ethernet.destination);
        dissector.report(dissector.damage_from_start(0, format!("a pause goes to {expected}, found {found}")));
    }
}

/// Name of an EtherType that is not dissected.
pub(super) fn protocol(ethertype: EtherType) -> String {
    match ethertype {
        EtherType::IPV4 => "IPv4".into(),
        EtherType(length @ 0..1536) => format!("IEEE 802.3, length {length}"),
        EtherType(other) => format!("EtherType {other:#06x}"),
    }
}
