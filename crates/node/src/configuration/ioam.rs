//! `[ioam]`: data that the node writes to IOAM traces (RFC 9197).

use super::Draft;
use super::ports::port_named;
use srdma_dataplane::{IoamConfig, IoamInterface, IoamNamespace, NodeConfig, WideData};
use srdma_node_spec::Entries;
use srdma_node_spec::file::{InterfaceSection, NamespaceSection, NodeFile, OpaqueSection};
use srdma_toml_error::Problem;
use std::time::Duration;

/// Largest opaque state snapshot, in octets: its length field is one octet, in words of four octets.
const MOST_OPAQUE: usize = 255 * 4;

/// Shortest interval of the traces of groups: a million packets a second and group.
const LEAST_GROUP_INTERVAL: Duration = Duration::from_micros(1);

/// Adds the settings of traces.
pub(super) fn add(file: &NodeFile, config: &NodeConfig, draft: &mut Draft) -> Result<(), Problem> {
    let Some(section) = &file.ioam else {
        return Ok(());
    };
    let (at, section) = (section.span().start, section.get_ref());
    if section.namespace.is_empty() {
        return Err(Problem::new(at, "the node is in no namespace: no trace would be written to"));
    }
    if !section.interface.iter().any(|interface| interface.fills) {
        return Err(Problem::new(at, "no trace would be written to: no [[ioam.interface]] has fills = true"));
    }
    let ioam = IoamConfig {
        node_id: section.node_id.as_ref().map(|id| id.value.get() as u32),
        node_id_wide: section.node_id_wide.as_ref().map(|id| id.value.get()),
        namespaces: namespaces(&section.namespace)?,
        interfaces: interfaces(&section.interface, config)?,
        timestamps: section.timestamps,
        tells_buffer_occupancy: section.tells_buffer_occupancy,
        group_interval: section.group_interval.as_ref().map(|interval| interval.value),
    };
    if let Some(interval) = &section.group_interval {
        let namespaces = &ioam.namespaces;
        if interval.value < LEAST_GROUP_INTERVAL {
            return Err(Problem::new(interval.at, "expected a time of at least 1us"));
        }
        if !namespaces.iter().any(|namespace| namespace.data_wide == Some(WideData::LinkLoad)) {
            return Err(Problem::new(interval.at, "no [[ioam.namespace]] has data_wide = \"link_load\""));
        }
    }
    draft.add(at, Entries { ioam: Some(ioam), ..Entries::default() })
}

fn namespaces(sections: &[NamespaceSection]) -> Result<Vec<IoamNamespace>, Problem> {
    let mut namespaces: Vec<IoamNamespace> = Vec::new();
    for section in sections {
        let id = section.id.value.get() as u16;
        if namespaces.iter().any(|other| other.id == id) {
            return Err(Problem::new(section.id.at, format!("there is a namespace {id} already")));
        }
        let opaque = section.opaque.as_ref().map(opaque).transpose()?;
        namespaces.push(IoamNamespace {
            id,
            data: section.data.as_ref().map(|data| data.value.get() as u32),
            data_wide: section.data_wide.as_ref().map(|data| data.value.0),
            opaque,
        });
    }
    Ok(namespaces)
}

fn opaque(section: &OpaqueSection) -> Result<(u32, Vec<u8>), Problem> {
    let data = &section.data.value.0;
    if data.len() > MOST_OPAQUE || !data.len().is_multiple_of(4) {
        let text = format!("opaque data of {} octets, expected a multiple of 4, at most {MOST_OPAQUE}", data.len());
        return Err(Problem::new(section.data.at, text));
    }
    Ok((section.schema_id.value.get() as u32, data.clone()))
}

fn interfaces(sections: &[InterfaceSection], config: &NodeConfig) -> Result<Vec<IoamInterface>, Problem> {
    let mut interfaces: Vec<IoamInterface> = Vec::new();
    for section in sections {
        let port = port_named(config, &section.port)?;
        if interfaces.iter().any(|other| other.port == port) {
            let text = format!("there is an interface of port {} already", section.port.value.0);
            return Err(Problem::new(section.port.at, text));
        }
        interfaces.push(IoamInterface {
            port,
            id: section.id.as_ref().map(|id| id.value.get() as u16),
            id_wide: section.id_wide.as_ref().map(|id| id.value.get() as u32),
            fills: section.fills,
        });
    }
    Ok(interfaces)
}
