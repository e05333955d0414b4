//! The format of a topology file: one type a section, one field a key. `docs/labs.md` describes the keys.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use srdma_node_spec::file::PolicySection;
use srdma_wire::{Psn, Qpn, host_address};
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use toml::{Spanned, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) description: String,
    #[serde(default = "yes")]
    pub(super) shortest_path_routes: bool,
    #[serde(default)]
    pub(super) node: Vec<NodeSection>,
    #[serde(default)]
    pub(super) link: Vec<Spanned<LinkSection>>,
    pub(super) group: Option<Spanned<GroupSection>>,
    #[serde(default, deserialize_with = "one_controller")]
    pub(super) controller: Option<ControllerSection>,
    #[serde(default)]
    pub(super) run: RunSection,
}

/// A table; an array of tables would be several controllers.
fn one_controller<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ControllerSection>, D::Error> {
    struct One;
    impl<'de> Visitor<'de> for One {
        type Value = ControllerSection;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("one [controller]")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            ControllerSection::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(One).map(Some)
}

/// The address of a host; one of IPv4 becomes IPv4-mapped.
fn host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ipv6Addr, D::Error> {
    let text = String::deserialize(deserializer)?;
    host_address(&text).ok_or_else(|| D::Error::custom(format!("{text:?}: expected an IPv6 or IPv4 address")))
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeSection {
    pub(super) name: Spanned<String>,
    pub(super) kind: KindName,
    #[serde(default)]
    pub(super) addresses: Vec<Spanned<Ipv6Addr>>,
    #[serde(default)]
    pub(super) prefixes: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) sysctls: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) commands: Vec<String>,
    pub(super) options: Option<Spanned<Vec<String>>>,
    pub(super) config: Option<Spanned<toml::Table>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KindName {
    Srdma,
    Router,
    Endpoint,
    Guest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkSection {
    pub(super) ends: [Spanned<String>; 2],
    pub(super) interfaces: Option<[Spanned<String>; 2]>,
    pub(super) mtu: Option<Spanned<u32>>,
    pub(super) rate_bits_per_s: Option<Spanned<u64>>,
    pub(super) loss: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) addresses: [Vec<Spanned<String>>; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupSection {
    #[serde(deserialize_with = "host")]
    pub(super) proxy: Ipv6Addr,
    pub(super) designated_qpn: Spanned<u32>,
    pub(super) initial_psn: Spanned<u32>,
    pub(super) source: Spanned<String>,
    pub(super) link_mtu: Option<Spanned<u32>>,
    pub(super) node: Vec<TreeSection>,
    pub(super) receiver: Vec<ReceiverSection>,
    #[serde(default)]
    pub(super) policy: PolicySection,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeSection {
    pub(super) node: Spanned<String>,
    pub(super) parent: Option<Spanned<String>>,
    pub(super) loopback: Ipv6Addr,
    pub(super) sid: Ipv6Addr,
    pub(super) parent_sid: Option<Ipv6Addr>,
    pub(super) multicast: Option<Ipv6Addr>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiverSection {
    pub(super) node: Spanned<String>,
    pub(super) edge: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControllerSection {
    pub(super) node: Spanned<String>,
    pub(super) port: Option<Spanned<u16>>,
    pub(super) proxies: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) shared_hosts: Vec<Spanned<String>>,
    pub(super) group: Option<ControlledSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlledSection {
    #[serde(deserialize_with = "host")]
    pub(super) proxy: Ipv6Addr,
    pub(super) designated_qpn: Spanned<u32>,
    pub(super) initial_psn: Spanned<u32>,
    pub(super) source: Spanned<String>,
    pub(super) receivers: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunSection {
    pub(super) source: Option<Spanned<String>>,
    pub(super) destination: Option<Spanned<String>>,
    pub(super) pairs: Option<Vec<[Spanned<String>; 2]>>,
    pub(super) size_octets: Option<Spanned<u64>>,
    pub(super) path_mtu: Option<Spanned<u16>>,
    pub(super) operation: Option<super::Operation>,
    pub(super) lists: Option<super::Lists>,
    pub(super) timeout_s: Option<Spanned<u64>>,
}

pub(super) fn qpn(value: u32) -> Option<Qpn> {
    Qpn::new(value).filter(|qpn| qpn.is_connected())
}

pub(super) fn psn(value: u32) -> Option<Psn> {
    (value < 1 << 24).then(|| Psn::new(value))
}
