//! Peer information: a receiver's parameters for its sender, as one line of JSON.

use crate::fields;
use serde::{Deserialize, Serialize};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;

/// Parameters of a receiver for its sender. The first five are all that another implementation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerInfo {
    /// The receiver's address.
    #[serde(deserialize_with = "fields::address::deserialize")]
    pub address: Ipv6Addr,
    /// The receiver's queue pair.
    #[serde(with = "fields::qpn")]
    pub qpn: Qpn,
    /// Key of its memory.
    pub rkey: u32,
    /// First address of its memory.
    pub virtual_address: u64,
    /// Payload of a full packet.
    #[serde(with = "fields::path_mtu")]
    pub path_mtu: PathMtu,
    /// Octets of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// PSN that it expects first: that of the sender.
    #[serde(default, with = "optional_psn", skip_serializing_if = "Option::is_none")]
    pub psn: Option<Psn>,
    /// Address that it expects packets from: that of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_address: Option<Ipv6Addr>,
    /// Queue pair that it answers to: that of the sender.
    #[serde(default, with = "optional_qpn", skip_serializing_if = "Option::is_none")]
    pub peer_qpn: Option<Qpn>,
    /// Packets that its socket can buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
}

mod optional_psn {
    use super::{Psn, fields};
    use serde::{Deserializer, Serializer};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Psn>, D::Error> {
        fields::psn::deserialize(deserializer).map(Some)
    }

    pub(super) fn serialize<S: Serializer>(psn: &Option<Psn>, serializer: S) -> Result<S::Ok, S::Error> {
        match psn {
            Some(psn) => fields::psn::serialize(psn, serializer),
            None => serializer.serialize_none(),
        }
    }
}

mod optional_qpn {
    use super::{Qpn, fields};
    use serde::{Deserializer, Serializer};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Qpn>, D::Error> {
        fields::qpn::deserialize(deserializer).map(Some)
    }

    pub(super) fn serialize<S: Serializer>(qpn: &Option<Qpn>, serializer: S) -> Result<S::Ok, S::Error> {
        match qpn {
            Some(qpn) => fields::qpn::serialize(qpn, serializer),
            None => serializer.serialize_none(),
        }
    }
}

impl PeerInfo {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// A syntax error, with line and column.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Writes it, in one line.
    ///
    /// # Errors
    ///
    /// None that can happen: numbers and addresses can always be written.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = r#"{"address":"2001:db8::2","qpn":34,"rkey":90,"virtual_address":4096,"path_mtu":1024}"#;

    #[test]
    fn written_text_is_parsed_again() {
        let least = PeerInfo::parse(LEAST).unwrap();
        assert_eq!((least.qpn.get(), least.path_mtu, least.psn), (34, PathMtu::Octets1024, None));
        assert_eq!(least.line().unwrap(), LEAST);
        let all = PeerInfo {
            size: Some(5),
            psn: Some(Psn::new(7)),
            peer_address: Some("2001:db8::1".parse().unwrap()),
            peer_qpn: Qpn::new(17),
            window: Some(48),
            ..least
        };
        assert_eq!(PeerInfo::parse(&all.line().unwrap()).unwrap(), all);
    }

    #[test]
    fn errors_are_reported() {
        for (wrong, expected) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{}", "missing field `address` at line 1 column 2"),
            (&LEAST.replace("rkey", "key"), "unknown field `key`"),
            (&LEAST.replace("34", "1"), "expected a queue pair number from 2 to 0xffffff, found 1"),
            (&LEAST.replace("1024", "1000"), "expected a path MTU, one of 256, 512, 1024, 2048 and 4096, found 1000"),
            (&LEAST.replace("2001:db8::2", "ff02::1"), "expected a unicast IPv6 address, found \"ff02::1\""),
        ] {
            let error = PeerInfo::parse(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
