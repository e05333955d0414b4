//! Placed paths of a sender that is its own headend: `srdma send --paths`.

use crate::units;
use anyhow::Result;
use srdma_host::{Clock, Connection, SteeredWire, Wire};
use srdma_node::PathsFile;
use srdma_node::daemon::SteeringSnapshot;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Paths of packets.
#[derive(clap::Args)]
pub(crate) struct PathArguments {
    /// The paths to the peer, the best first, in a file as docs/endpoints.md describes: each packet is encapsulated by
    /// one of them, and the flow changes to another on signals of congestion or failure. Needs --raw.
    #[arg(long, value_name = "FILE", requires = "raw")]
    paths: Option<PathBuf>,
}

impl PathArguments {
    /// The file, if there is one.
    pub(crate) fn read(&self) -> Result<Option<PathsFile>> {
        self.paths.as_deref().map(PathsFile::read).transpose().map_err(Into::into)
    }
}

/// A wire, behind a headend or without one.
pub(crate) enum Carrier {
    Plain(Box<dyn Wire>),
    Steered(Box<SteeredWire<Box<dyn Wire>>>),
}

impl Carrier {
    /// Puts the headend of a file before a wire.
    pub(crate) fn new(
        wire: Box<dyn Wire>,
        paths: Option<&PathsFile>,
        connection: &Connection,
        clock: Clock,
        max_packet_octets: usize,
    ) -> Result<Self> {
        let Some(paths) = paths else { return Ok(Carrier::Plain(wire)) };
        let Connection { address: host, qpn: host_qpn, peer_address: peer, peer_qpn, .. } = *connection;
        let mut headend = paths.headend(host, peer)?;
        headend.add_connection(srdma_dataplane::Connection { host, host_qpn, peer, peer_qpn });
        Ok(Carrier::Steered(Box::new(SteeredWire::new(wire, headend, clock, max_packet_octets))))
    }

    pub(crate) fn wire(&mut self) -> &mut dyn Wire {
        match self {
            Carrier::Plain(wire) => wire.as_mut(),
            Carrier::Steered(wire) => wire.as_mut(),
        }
    }

    /// State of the paths, if there are any.
    pub(crate) fn report(&self) -> Option<SteeringSnapshot> {
        match self {
            Carrier::Plain(_) => None,
            Carrier::Steered(wire) => Some(SteeringSnapshot::of(wire.headend(), BTreeMap::new())),
        }
    }
}

/// Octets that headers of paths add to a packet.
pub(crate) fn overhead(paths: Option<&PathsFile>, connection: &Connection) -> Result<usize> {
    let headend = paths.map(|paths| paths.headend(connection.address, connection.peer_address)).transpose()?;
    Ok(headend.map_or(0, |headend| headend.greatest_overhead()))
}

/// The path of the data at the end, and the number of changes, as text.
pub(crate) fn in_words(report: &SteeringSnapshot) -> String {
    let Some(flow) = report.flows.first() else { return String::new() };
    format!("; by {}, {} of path", flow.path, units::count(flow.moves.into(), "change"))
}
