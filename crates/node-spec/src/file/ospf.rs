//! `[ospf]`: the node's announcements, and its circuits (`docs/ospf.md`).

use super::{Integer, Located, LocatorSection, Notation, PortName, Written, is_default};
use serde::{Deserialize, Serialize};
use srdma_wire::Prefix;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OspfSection {
    pub router_id: Located<RouterIdText>,
    pub hostname: Option<Located<PortName>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub overload: bool,
    pub hello: Option<Located<Duration>>,
    pub dead: Option<Located<Duration>>,
    pub retransmit: Option<Located<Duration>>,
    pub max_lsas: Option<Located<Integer<16, { 1 << 20 }>>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub congestion_notification: bool,
    pub end_c_behavior: Option<Located<Integer<1, 0xFFFE>>>,
    pub end_e_behavior: Option<Located<Integer<1, 0xFFFE>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<Located<Prefix>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locator: Vec<LocatorSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circuit: Vec<OspfCircuitSection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OspfCircuitSection {
    pub port: Located<PortName>,
    pub metric: Option<Located<Integer<1, 0xFFFF>>>,
}

/// A router's id, which is written as an IPv4 address and is not 0.
pub struct RouterIdText(pub u32);

impl Notation for RouterIdText {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a router id such as \"10.0.0.1\", other than 0.0.0.0")
    }

    fn written(&self) -> Written {
        Written::Text(Ipv4Addr::from(self.0).to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        let id = u32::from(text.parse::<Ipv4Addr>().ok()?);
        (id != 0).then_some(RouterIdText(id))
    }
}
