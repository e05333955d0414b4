//! A multicast group from its source's side, as a TOML file. `docs/endpoints.md` describes its keys.

use crate::fields;
use serde::{Deserialize, Serialize};
use srdma_group::SourceRegion;
use srdma_toml_error::{FileError, Problem};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;
use std::path::Path;

/// A multicast group as its source sees it.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupFile {
    #[serde(deserialize_with = "fields::address::deserialize")]
    pub proxy: Ipv6Addr,
    #[serde(with = "fields::qpn")]
    pub designated_qpn: Qpn,
    /// The source's first PSN, which every receiver expects first (D28).
    #[serde(with = "fields::psn")]
    pub initial_psn: Psn,
    /// Payload of a full packet.
    #[serde(with = "fields::path_mtu")]
    pub path_mtu: PathMtu,
    /// The memory region that the source writes to (D27).
    pub region: Option<SourceRegion>,
    pub source: GroupSource,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSource {
    #[serde(deserialize_with = "fields::address::deserialize")]
    pub address: Ipv6Addr,
    /// Its true queue pair.
    #[serde(with = "fields::qpn")]
    pub qpn: Qpn,
}

impl GroupFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and those of [`GroupFile::parse`].
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = srdma_toml_error::read(file)?;
        Self::parse(file, &text)
    }

    /// Reads the content of a file; `file` is for errors.
    ///
    /// # Errors
    ///
    /// [`FileError::Wrong`] names the first line that is wrong.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| Problem::of_toml(&error, text).in_file(file, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"proxy = "2001:db8:cc::1"
designated_qpn = 0xd00000
initial_psn = 0xfffff0
path_mtu = 4096

[region]
base = 0x10000
length = 0x40000000
rkey = 0x1234

[source]
address = "2001:db8:aa::1"
qpn = 0x100
"#;

    #[test]
    fn a_good_file_is_read() {
        let group = GroupFile::parse(Path::new("g.toml"), GOOD).unwrap();
        assert_eq!((group.designated_qpn.get(), group.initial_psn.get()), (0xd00000, 0xfffff0));
        assert_eq!(group.region.unwrap().rkey, 0x1234);
        assert_eq!(group.source.address, "2001:db8:aa::1".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn errors_name_the_line() {
        for (from, to, expected) in [
            ("0xd00000", "1", "g.toml:2: expected a queue pair number from 2 to 0xffffff, found 1"),
            ("4096\n", "4000\n", "g.toml:4: expected a path MTU, one of 256, 512, 1024, 2048 and 4096, found 4000"),
            ("rkey", "key", "g.toml:9: unknown key `key`, expected one of `base`, `length`, `rkey`"),
            ("0xfffff0", "0x1000000", "g.toml:3: expected a packet sequence number from 0 to 0xffffff, found 16777216"),
            ("2001:db8:aa::1", "10.0.0.1", "g.toml:12: expected a unicast IPv6 address, found \"10.0.0.1\""),
            ("proxy = \"2001:db8:cc::1\"\n", "", "g.toml:1: missing key `proxy`"),
            ("qpn = 0x100", "qpn = -1", "g.toml:13: invalid value: integer `-1`, expected u64"),
        ] {
            let error = GroupFile::parse(Path::new("g.toml"), &GOOD.replacen(from, to, 1)).expect_err(to);
            assert_eq!(error.to_string(), expected);
        }
    }
}
