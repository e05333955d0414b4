//! Messages that were read.

use crate::key::Key;
use crate::message::{DONE, Kind, Version, parse_path_mtu, parse_size};
use crate::refusal::Problem;
use srdma_wire::PathMtu;

/// A message that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Version(Version),
    Size(u32),
    PathMtu(PathMtu),
    Key(Key),
    Figure([u8; 8]),
    Done,
}

impl Value {
    /// Reads a message of a kind, which has as many octets as the kind.
    pub(crate) fn parse(kind: Kind, octets: &[u8]) -> Result<Self, Problem> {
        Ok(match kind {
            Kind::Version => {
                let version = Version::parse(octets)?;
                if !version.is_known() {
                    return Err(Problem::UnknownVersion(version));
                }
                Value::Version(version)
            }
            Kind::Size => Value::Size(parse_size(octets.try_into().map_err(|_| Problem::NoMessage)?)?),
            Kind::PathMtu => Value::PathMtu(parse_path_mtu(octets.try_into().map_err(|_| Problem::NoMessage)?)?),
            Kind::Key => Value::Key(Key::parse(octets)?),
            Kind::Figure => Value::Figure(octets.try_into().map_err(|_| Problem::NoMessage)?),
            Kind::Done if octets == DONE => Value::Done,
            Kind::Done => return Err(Problem::NoMessage),
        })
    }
}
