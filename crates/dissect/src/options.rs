//! Hop-by-Hop and Destination Options, with those that concern congestion: traces (RFC 9197) and Fast CNPs
//! (draft-xiao-rtgwg-rocev2-fast-cnp).

use super::dissector::{Dissector, Next};
use super::layer::{self, HeaderOption, Layer, OptionMeaning};
use super::record::Damage;
use super::trace;
use srdma_wire::codepoints::{ioam, option};
use srdma_wire::fast_cnp::FastCnp;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::options::{OptionTlv, OptionsHeader};
use srdma_wire::rocev2::Packet;

/// Hop-by-Hop or Destination Options header.
pub(super) fn header(dissector: &mut Dissector<'_>, kind: NextHeader) -> Result<Next, Damage> {
    let (header, rest) = OptionsHeader::split(dissector.octets).map_err(|error| dissector.damage(error))?;
    let mut options = Vec::new();
    for option in header.iter() {
        match option {
            Ok(OptionTlv { kind: OptionTlv::PAD1 | OptionTlv::PADN, .. }) => {}
            Ok(option) => {
                let meaning = meaning(dissector, option);
                options.push(HeaderOption { kind: option.kind, data: hex::encode(option.data), meaning });
            }
            Err(overrun) => dissector.report(dissector.damage_at(overrun.offset, "option reaches beyond its header")),
        }
    }
    let length_octets = header.header.total_len();
    let next = header.header.next_header();
    let layer = layer::Options { next_header: next.0, length_octets, options };
    dissector.push(if kind == NextHeader::HOP_BY_HOP {
        Layer::HopByHop(layer)
    } else {
        Layer::DestinationOptions(layer)
    });
    dissector.extension(rest, length_octets);
    Ok(Next::Header(next))
}

/// Meaning of a known option; reports an invalid one.
fn meaning(dissector: &mut Dissector<'_>, option: OptionTlv<'_>) -> Option<OptionMeaning> {
    if dissector.settings.option_types.contains(option.kind) {
        return fast_cnp(dissector, option);
    }
    let is_trace = option.kind == option::IOAM && option.data.get(1) == Some(&ioam::PREALLOCATED_TRACE);
    if !is_trace {
        return None;
    }
    match trace::explain(option.data) {
        (trace, None) => trace.map(OptionMeaning::IoamTrace),
        (trace, Some(error)) => {
            dissector.report(dissector.damage_at(option.offset, format!("IOAM trace: {error}")));
            trace.map(OptionMeaning::IoamTrace)
        }
    }
}

/// Option 1 or 2 (FC-4-2).
fn fast_cnp(dissector: &mut Dissector<'_>, option: OptionTlv<'_>) -> Option<OptionMeaning> {
    let offset = dissector.offset + option.offset;
    if let Some(carrier) = &mut dissector.carrier {
        carrier.fast_cnp_offset.get_or_insert(offset);
    }
    match FastCnp::from_option(option, dissector.settings.option_types) {
        Ok(FastCnp { original_destination, trace }) => Some(OptionMeaning::FastCnp(layer::FastCnp {
            option: if trace.is_some() { 2 } else { 1 },
            original_destination,
            trace: trace.and_then(|trace| trace::explain(trace).0),
        })),
        Err(error) => {
            dissector.report(dissector.damage_at(option.offset, error));
            None
        }
    }
}

/// Reports errors of a packet that has a Fast CNP option, beyond those of the option itself: its place, a second one,
/// another opcode (FC-4-2, D40). They can be detected when the BTH has been read.
pub(super) fn check_fast_cnp(dissector: &mut Dissector<'_>) {
    let Some((carrier, offset)) = dissector.carrier.and_then(|it| Some((it, it.fast_cnp_offset?))) else { return };
    let octets = dissector.packet.get(carrier.offset..).unwrap_or_default();
    // The error that prevents reading was reported at its offset.
    let Ok(packet) = Packet::parse(octets, octets.len()) else { return };
    if let Err(error) = FastCnp::find(&packet, dissector.settings.option_types) {
        dissector.report(dissector.damage_from_start(offset, error));
    }
}
