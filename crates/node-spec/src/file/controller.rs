//! `[controller]`: the controller that orders groups beside those of the file.

use super::{AnyPrefix, HostAddress, LinkMtu, Located, PortName, PositiveU32, spanned};
use serde::{Deserialize, Serialize};
use srdma_wire::Prefix;
use std::path::PathBuf;
use toml::Spanned;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSection {
    pub url: Spanned<String>,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    pub name: Option<Located<PortName>>,
    pub end_mt: Option<Located<HostAddress>>,
    pub replication: Option<Located<Prefix>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Located<AnyPrefix>>,
}

impl ControllerSection {
    /// The controller of this address, without credentials.
    pub fn new(url: String) -> Self {
        ControllerSection {
            url: spanned(url),
            token_file: None,
            ca_file: None,
            name: None,
            end_mt: None,
            replication: None,
            link: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSection {
    pub to: Located<HostAddress>,
    pub port: Option<Located<PortName>>,
    pub mtu: Option<Located<LinkMtu>>,
    pub cost: Option<Located<PositiveU32>>,
}
