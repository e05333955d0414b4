//! `[domain]`, `[[inside]]` and `[[border]]`: the boundary of the SR domain (RFC 8754 section 5.1), and of its hosts
//! (BCP 38).

use super::{AnyPrefix, Located, PortName, Ports, all};
use serde::{Deserialize, Serialize};
use srdma_dataplane::Domain;
use srdma_frame::PortId;
use srdma_wire::Prefix;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainSection {
    pub sids: Vec<Located<Prefix>>,
    pub infrastructure: Vec<Located<Prefix>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<Located<AnyPrefix>>,
}

impl DomainSection {
    /// The section of a domain.
    pub fn of(Domain { sids, infrastructure, proxies }: &Domain) -> Self {
        let proxies = proxies.iter().map(|prefix| AnyPrefix(*prefix).into()).collect();
        DomainSection { sids: all(sids), infrastructure: all(infrastructure), proxies }
    }
}

/// A port that is no border, in a file with a domain.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InsideSection {
    pub port: Located<PortName>,
}

impl InsideSection {
    /// A section for the port of this name.
    pub fn new(port: &str) -> Self {
        InsideSection { port: PortName(port.to_owned()).into() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BorderSection {
    pub port: Located<PortName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Located<AnyPrefix>>,
}

impl BorderSection {
    pub(super) fn of(ports: Ports<'_>, port: PortId, sources: &[Prefix]) -> Self {
        BorderSection {
            port: ports.name(port).into(),
            sources: sources.iter().map(|prefix| AnyPrefix(*prefix).into()).collect(),
        }
    }
}
