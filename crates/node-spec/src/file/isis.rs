//! `[isis]`: the node's announcements, and its circuits (`docs/isis.md`).

use super::{Integer, Located, Notation, PortName, Secret, Written, is_default};
use serde::{Deserialize, Serialize};
use srdma_wire::Prefix;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IsisSection {
    pub net: Located<Net>,
    pub level: Option<Located<IsisLevels>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leak_down: Vec<Located<Prefix>>,
    pub hostname: Option<Located<PortName>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub multi_topology: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub ti_lfa: bool,
    pub node_protection: Option<Spanned<bool>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub overload: bool,
    pub overload_on_start: Option<Located<Duration>>,
    pub key: Option<Spanned<KeySection>>,
    pub hello: Option<Located<Duration>>,
    pub hold_multiplier: Option<Located<Integer<2, 100>>>,
    pub lifetime: Option<Located<Duration>>,
    pub refresh: Option<Located<Duration>>,
    pub complete: Option<Located<Duration>>,
    pub max_lsps: Option<Located<Integer<16, { 1 << 20 }>>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub congestion_notification: bool,
    pub end_c_behavior: Option<Located<Integer<1, 0xFFFE>>>,
    pub end_e_behavior: Option<Located<Integer<1, 0xFFFE>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<Located<Prefix>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locator: Vec<LocatorSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circuit: Vec<CircuitSection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySection {
    #[serde(default)]
    pub algorithm: Algorithm,
    pub id: Option<Located<Integer<0, 0xFFFF>>>,
    pub secret: Option<Located<Secret>>,
    pub secret_file: Option<Spanned<PathBuf>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    #[serde(rename = "hmac-md5")]
    Md5,
    #[default]
    #[serde(rename = "hmac-sha256")]
    Sha256,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocatorSection {
    pub prefix: Located<Prefix>,
    pub block_bits: Option<Located<Integer<1, 127>>>,
    pub metric: Option<Located<Integer<0, 0xFE00_0000>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitSection {
    pub port: Located<PortName>,
    #[serde(default, rename = "type", skip_serializing_if = "is_default")]
    pub kind: CircuitKind,
    pub priority: Option<Located<Integer<0, 127>>>,
    pub metric: Option<Located<Integer<1, 0xFF_FFFE>>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub bfd: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitKind {
    #[default]
    PointToPoint,
    Broadcast,
}

/// The levels at which a node works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsisLevels {
    One,
    Two,
    Both,
}

impl Notation for IsisLevels {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("1, 2 or \"1-2\"")
    }

    fn written(&self) -> Written {
        match self {
            IsisLevels::One => Written::Integer(1),
            IsisLevels::Two => Written::Integer(2),
            IsisLevels::Both => Written::Text("1-2".to_owned()),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        (text == "1-2").then_some(IsisLevels::Both)
    }

    fn from_integer(integer: u64) -> Option<Self> {
        match integer {
            1 => Some(IsisLevels::One),
            2 => Some(IsisLevels::Two),
            _ => None,
        }
    }
}

/// The network entity title: area of 1 to 13 octets, system id, and a selector of zero.
pub struct Net {
    pub area: Vec<u8>,
    pub system: [u8; Net::SYSTEM_LEN],
}

impl Net {
    const SYSTEM_LEN: usize = 6;
}

impl Notation for Net {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a network entity title such as \"49.0001.0000.0000.0009.00\": area, system id, and 00")
    }

    fn written(&self) -> Written {
        let digits = hex::encode(&self.area) + &hex::encode(self.system);
        let (first, rest) = digits.split_at(2);
        let groups = rest.as_bytes().chunks(4).map(|group| String::from_utf8_lossy(group));
        Written::Text(format!("{first}.{}.00", groups.collect::<Vec<_>>().join(".")))
    }

    fn from_text(text: &str) -> Option<Self> {
        let (area, rest) = text.split_once('.').filter(|(first, _)| first.len() == 2)?;
        let digits = format!("{area}{rest}").replace('.', "");
        let groups = rest.split('.').collect::<Vec<_>>();
        let (selector, groups) = groups.split_last()?;
        if *selector != "00" || groups.iter().any(|group| group.len() != 4) {
            return None;
        }
        let octets = hex::decode(digits).ok()?;
        let (_selector, octets) = octets.split_last()?;
        let (area, system) = octets.split_last_chunk::<{ Net::SYSTEM_LEN }>()?;
        let fits = (1..=13).contains(&area.len()) && *system != [0; Net::SYSTEM_LEN];
        fits.then(|| Net { area: area.to_vec(), system: *system })
    }
}
