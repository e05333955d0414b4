//! Three-way adjacency of a point-to-point circuit (RFC 5303 section 3.1).
//!
//! ```text
//! | State 1 | own circuit 4 | neighbour 6 | neighbour's circuit 4 |     the latter two once it is known
//! ```

use super::{kind, put};
use crate::id::SystemId;
use crate::reader::{Malformed, Reader};

/// Adjacency three-way state (RFC 5303).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdjacencyState {
    /// No hello received.
    Down,
    /// Hellos received, but not yet one that names this system.
    Initializing,
    /// Both receive each other's hellos.
    Up,
}

/// The TLV's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreeWay {
    /// The sender's state.
    pub state: AdjacencyState,
    /// The sender's own number for the circuit; `None` in the TLV of one octet.
    pub circuit: Option<u32>,
    /// The neighbour that the sender receives hellos from, and its circuit.
    pub neighbour: Option<(SystemId, u32)>,
}

impl ThreeWay {
    /// Reads the TLV's value.
    ///
    /// # Errors
    ///
    /// A length in the middle of a field, or an unknown state.
    pub fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("the three-way adjacency TLV", value);
        let state = match reader.u8()? {
            0 => AdjacencyState::Up,
            1 => AdjacencyState::Initializing,
            2 => AdjacencyState::Down,
            other => {
                let field = "the adjacency's three-way state";
                return Err(Malformed::Value { field, found: other.into(), expected: "0, 1 or 2" });
            }
        };
        let circuit = if reader.is_empty() { None } else { Some(reader.u32()?) };
        let neighbour = if reader.is_empty() { None } else { Some((reader.system()?, reader.u32()?)) };
        Ok(ThreeWay { state, circuit, neighbour })
    }

    /// Appends the TLV.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut value = vec![match self.state {
            AdjacencyState::Up => 0,
            AdjacencyState::Initializing => 1,
            AdjacencyState::Down => 2,
        }];
        if let Some(circuit) = self.circuit {
            value.extend(circuit.to_be_bytes());
            if let Some((system, theirs)) = self.neighbour {
                value.extend(system.0);
                value.extend(theirs.to_be_bytes());
            }
        }
        put(out, kind::THREE_WAY_ADJACENCY, &value);
    }
}
