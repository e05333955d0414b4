//! `[ioam]`: the node's data in IOAM traces (RFC 9197).

use super::{Integer, Located, Notation, Octets, PortName, Ports, U16, U32, Written, integer, is_default};
use serde::{Deserialize, Serialize};
use srdma_dataplane::{IoamConfig, IoamInterface, IoamNamespace, TimestampFormat, WideData};
use std::fmt;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoamSection {
    pub node_id: Option<Located<Integer<0, 0xFF_FFFE>>>,
    pub node_id_wide: Option<Located<Integer<0, 0xFF_FFFF_FFFF_FFFE>>>,
    #[serde(default, with = "TimestampName", skip_serializing_if = "is_default")]
    pub timestamps: TimestampFormat,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tells_buffer_occupancy: bool,
    pub group_interval: Option<Located<Duration>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespace: Vec<NamespaceSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interface: Vec<InterfaceSection>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TimestampFormat", rename_all = "lowercase")]
enum TimestampName {
    Posix,
    Ptp,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamespaceSection {
    pub id: Located<U16>,
    pub data: Option<Located<U32>>,
    pub data_wide: Option<Located<WideValue>>,
    pub opaque: Option<OpaqueSection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpaqueSection {
    pub schema_id: Located<Integer<0, 0xFF_FFFF>>,
    pub data: Located<Octets>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSection {
    pub port: Located<PortName>,
    pub id: Option<Located<Integer<0, 0xFFFE>>>,
    pub id_wide: Option<Located<Integer<0, 0xFFFF_FFFE>>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub fills: bool,
}

/// The wide data of a namespace.
#[derive(Clone, Copy, Debug)]
pub struct WideValue(pub WideData);

impl Notation for WideValue {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer of 64 bits, or \"link_load\"")
    }

    fn written(&self) -> Written {
        match self.0 {
            WideData::Fixed(integer) => Written::Integer(integer),
            WideData::LinkLoad => Written::Text("link_load".to_owned()),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        (text == "link_load").then_some(WideValue(WideData::LinkLoad))
    }

    fn from_integer(integer: u64) -> Option<Self> {
        Some(WideValue(WideData::Fixed(integer)))
    }
}

impl IoamSection {
    pub(super) fn of(ports: Ports<'_>, ioam: &IoamConfig) -> Self {
        IoamSection {
            node_id: ioam.node_id.map(integer),
            node_id_wide: ioam.node_id_wide.map(integer),
            timestamps: ioam.timestamps,
            tells_buffer_occupancy: ioam.tells_buffer_occupancy,
            group_interval: ioam.group_interval.map(Located::from),
            namespace: ioam.namespaces.iter().map(NamespaceSection::of).collect(),
            interface: ioam.interfaces.iter().map(|interface| InterfaceSection::of(ports, interface)).collect(),
        }
    }
}

impl NamespaceSection {
    fn of(namespace: &IoamNamespace) -> Self {
        let opaque = namespace.opaque.as_ref().map(|(schema_id, data)| OpaqueSection {
            schema_id: integer(*schema_id),
            data: Octets(data.clone()).into(),
        });
        NamespaceSection {
            id: integer(namespace.id),
            data: namespace.data.map(integer),
            data_wide: namespace.data_wide.map(|data| WideValue(data).into()),
            opaque,
        }
    }
}

impl InterfaceSection {
    fn of(ports: Ports<'_>, interface: &IoamInterface) -> Self {
        InterfaceSection {
            port: ports.name(interface.port).into(),
            id: interface.id.map(integer),
            id_wide: interface.id_wide.map(integer),
            fills: interface.fills,
        }
    }
}
