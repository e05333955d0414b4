//! What is known of one packet: its layers from the outermost to the innermost, the verdicts, and the first damage.

use super::layer::Layer;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// What a line of the output says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// Position in the file, from 1.
    pub(crate) frame: u64,
    /// Nanoseconds since 1970; `None` when the packet could not be read from the file.
    pub(crate) time_ns: Option<u64>,
    /// Length of the packet on the wire.
    pub(crate) length_octets: Option<u32>,
    /// How much of it was captured.
    pub(crate) captured_octets: Option<usize>,
    /// Name of the interface, where the file gives one.
    pub(crate) interface: Option<String>,
    /// The packet's content.
    pub(crate) dissection: Dissection,
}

/// What the octets of a packet say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Dissection {
    /// Outermost first.
    pub(crate) layers: Vec<Layer>,
    /// Of the RoCEv2 packet, the innermost.
    pub(crate) icrc: IcrcVerdict,
    /// Of all HMAC TLVs together: the worst.
    pub(crate) hmac: HmacVerdict,
    /// The first thing that is wrong; layers before it, and those behind it that could still be found, are listed.
    pub(crate) error: Option<Damage>,
}

/// Whether the Invariant CRC is that of the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IcrcVerdict {
    /// It is.
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
pub(crate) enum HmacVerdict {
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

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Damage {
    /// What the offset counts from.
    pub(crate) within: Within,
    /// Octets from the start.
    pub(crate) offset: u64,
    /// What was expected and what was found.
    pub(crate) reason: String,
}

/// What an offset counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Within {
    /// The first octet of the capture file.
    File,
    /// The first octet of the packet.
    Packet,
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
