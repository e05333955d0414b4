//! Sides of the domain that ports are at (D36, D129).

use super::Configuration;
use srdma_frame::PortId;
use srdma_wire::Prefix;
use std::fmt;

/// The side of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side<'c> {
    /// Named in `[[inside]]`.
    Inside,
    /// Towards hosts or foreign networks.
    Border {
        /// The source addresses that it admits.
        sources: &'c [Prefix],
    },
}

impl Side<'_> {
    /// The side without the sources.
    pub fn name(self) -> &'static str {
        match self {
            Side::Inside => "inside",
            Side::Border { .. } => "border",
        }
    }
}

impl fmt::Display for Side<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Side::Inside => Ok(()),
            Side::Border { sources: [] } => f.write_str(", no sources"),
            Side::Border { sources } => {
                let sources: Vec<String> = sources.iter().map(Prefix::to_string).collect();
                write!(f, ", sources {}", sources.join(", "))
            }
        }
    }
}

impl Configuration {
    /// The ports with their sides; empty without `[domain]`.
    pub fn sides(&self) -> Vec<(&str, Side<'_>)> {
        let entries = &self.spec.entries;
        let ports = (0..).map(PortId).zip(&self.spec.node.ports).filter(|_| entries.domain.is_some());
        let side = |port| entries.borders.get(&port).map_or(Side::Inside, |sources| Side::Border { sources });
        ports.map(|(port, section)| (section.name.as_str(), side(port))).collect()
    }

    /// Whether any source address may send to the node's SIDs.
    pub fn has_open_sids(&self) -> bool {
        self.node().is_ok_and(|node| node.has_open_sids())
    }
}
