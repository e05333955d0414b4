//! Values of peer information and group files, checked as they are read.

use serde::{Deserialize, Deserializer, Serializer, de};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;

/// A queue pair number that packets can go to.
pub(crate) mod qpn {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Qpn, D::Error> {
        let number = u64::deserialize(deserializer)?;
        let qpn = u32::try_from(number).ok().and_then(Qpn::new).filter(|qpn| qpn.is_connected());
        qpn.ok_or_else(|| expected("a queue pair number from 2 to 0xffffff", number))
    }

    pub(crate) fn serialize<S: Serializer>(qpn: &Qpn, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(qpn.get())
    }
}

/// A packet sequence number.
pub(crate) mod psn {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Psn, D::Error> {
        let number = u64::deserialize(deserializer)?;
        if number < 1 << 24 {
            Ok(Psn::new(number as u32))
        } else {
            Err(expected("a packet sequence number from 0 to 0xffffff", number))
        }
    }

    pub(crate) fn serialize<S: Serializer>(psn: &Psn, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(psn.get())
    }
}

/// An RDMA path MTU.
pub(crate) mod path_mtu {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathMtu, D::Error> {
        let octets = u64::deserialize(deserializer)?;
        let path_mtu = u32::try_from(octets).ok().and_then(PathMtu::from_octets);
        path_mtu.ok_or_else(|| expected("a path MTU, one of 256, 512, 1024, 2048 and 4096", octets))
    }

    pub(crate) fn serialize<S: Serializer>(path_mtu: &PathMtu, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(path_mtu.octets())
    }
}

/// An address that a host can have.
pub(crate) mod address {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ipv6Addr, D::Error> {
        let text = String::deserialize(deserializer)?;
        let address: Option<Ipv6Addr> = text.parse().ok();
        let address = address.filter(|address| !address.is_multicast() && !address.is_unspecified());
        address.ok_or_else(|| expected("a unicast IPv6 address", format_args!("{text:?}")))
    }
}

fn expected<E: de::Error>(what: &str, found: impl std::fmt::Display) -> E {
    E::custom(format_args!("expected {what}, found {found}"))
}
