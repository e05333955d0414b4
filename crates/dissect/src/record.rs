//! One packet's dissection: its layers from the outermost to the innermost, the verdicts, and the first damage.

use super::Settings;
use super::dissector::dissect;
use super::layer::Layer;
use serde::ser::{Serialize, SerializeMap, Serializer};
use srdma_capture::{Packet, ReadError};

/// One packet of a capture, or the damage in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Position in the file, from 1.
    pub frame: u64,
    /// Nanoseconds since 1970; `None` when the packet could not be read from the file.
    pub time_ns: Option<u64>,
    /// Length of the packet on the wire.
    pub length_octets: Option<u32>,
    /// Captured octets of it.
    pub captured_octets: Option<usize>,
    /// Name of the interface, where the file gives one.
    pub interface: Option<String>,
    /// The packet's content.
    pub dissection: Dissection,
}

/// Layers and verdicts of a packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dissection {
    /// Outermost first.
    pub layers: Vec<Layer>,
    /// Of the RoCEv2 packet, the innermost.
    pub icrc: IcrcVerdict,
    /// Of all HMAC TLVs together: the worst.
    pub hmac: HmacVerdict,
    /// The first thing that is wrong; layers before it, and those behind it that could still be found, are listed.
    pub error: Option<Damage>,
}

/// Whether the Invariant CRC is that of the packet.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IcrcVerdict {
    Ok,
    /// It is not.
    Bad,
    /// The packet has none, or not all octets that it covers were captured.
    #[default]
    Absent,
}

/// Whether an HMAC is that of its SRH. In the order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HmacVerdict {
    /// No HMAC TLV.
    #[default]
    Absent,
    /// It is, with the key that was given.
    Ok,
    /// No key was given for its HMAC Key ID.
    UnknownKey,
    /// It is not.
    Bad,
}

/// A defect of the packet or file, and its place.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// Origin of the offset.
    pub within: Within,
    /// Octets from the start.
    pub offset: u64,
    /// The expected and the found value.
    pub reason: String,
}

/// Origin of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// The first octet of the capture file.
    File,
    /// The first octet of the packet.
    Packet,
}

impl Record {
    /// Dissects one item of a capture.
    pub(crate) fn of(packet: Result<Packet, ReadError>, settings: &Settings) -> Self {
        match packet {
            Ok(packet) => Record {
                frame: packet.frame,
                time_ns: Some(packet.time_ns),
                length_octets: Some(packet.original_len),
                captured_octets: Some(packet.octets.len()),
                interface: packet.interface.name.clone(),
                dissection: dissect(&packet, settings),
            },
            Err(ReadError { frame, offset, reason }) => {
                let error = Some(Damage { within: Within::File, offset, reason: reason.to_string() });
                let dissection = Dissection { error, ..Dissection::default() };
                Record { frame, time_ns: None, length_octets: None, captured_octets: None, interface: None, dissection }
            }
        }
    }
}

/// One object: the fields that every packet has, then one field for each layer under the layer's name. Layers that can
/// occur more than once are arrays, outermost first.
impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Dissection { layers, icrc, hmac, error } = &self.dissection;
        let names = Vec::from_iter(layers.iter().map(Layer::name));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("frame", &self.frame)?;
        map.serialize_entry("time_ns", &self.time_ns)?;
        map.serialize_entry("interface", &self.interface)?;
        map.serialize_entry("length_octets", &self.length_octets)?;
        map.serialize_entry("captured_octets", &self.captured_octets)?;
        map.serialize_entry("layers", &names)?;
        map.serialize_entry("icrc", icrc)?;
        map.serialize_entry("hmac", hmac)?;
        map.serialize_entry("error", error)?;
        for (position, layer) in layers.iter().enumerate() {
            let name = layer.name();
            let first = !names[..position].contains(&name);
            if first && layer.repeats() {
                let alike = layers.iter().filter(|other| other.name() == name);
                map.serialize_entry(name, &Vec::from_iter(alike))?;
            } else if first {
                map.serialize_entry(name, layer)?;
            }
        }
        map.end()
    }
}
