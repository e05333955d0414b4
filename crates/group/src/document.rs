//! Serialisation of a group's values, for documents that a control plane stores and sends to nodes.
//!
//! Numbers of 24 bits are checked as they are read, times are nanoseconds.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// A queue pair number.
pub(crate) mod qpn {
    use super::*;
    use srdma_wire::Qpn;

    pub(crate) fn serialize<S: Serializer>(qpn: &Qpn, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(qpn.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Qpn, D::Error> {
        let number = u32::deserialize(deserializer)?;
        Qpn::new(number).ok_or_else(|| D::Error::custom(format!("queue pair number {number} exceeds 24 bits")))
    }
}

/// A packet sequence number.
pub(crate) mod psn {
    use super::*;
    use srdma_wire::Psn;

    pub(crate) fn serialize<S: Serializer>(psn: &Psn, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(psn.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Psn, D::Error> {
        let number = u32::deserialize(deserializer)?;
        if number < 1 << 24 {
            Ok(Psn::new(number))
        } else {
            Err(D::Error::custom(format!("packet sequence number {number} exceeds 24 bits")))
        }
    }
}

/// An RDMA path MTU, in octets.
pub(crate) mod path_mtu {
    use super::*;
    use srdma_wire::PathMtu;

    pub(crate) fn serialize<S: Serializer>(path_mtu: &PathMtu, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16((*path_mtu).into())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathMtu, D::Error> {
        let octets = u16::deserialize(deserializer)?;
        PathMtu::from_octets(octets.into())
            .ok_or_else(|| D::Error::custom(format!("path MTU {octets} is none of 256, 512, 1024, 2048 and 4096")))
    }
}

/// A time, in nanoseconds.
pub(crate) mod nanoseconds {
    use super::*;
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

/// A time that a document may lack.
pub(crate) mod optional_nanoseconds {
    use super::*;
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => nanoseconds::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_nanos))
    }
}
