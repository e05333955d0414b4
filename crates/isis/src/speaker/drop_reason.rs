//! Reasons for which frames are dropped.

use crate::adjacency::HelloRefusal;

/// Reason for which a frame is dropped.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsisDrop {
    /// No frame of IS-IS.
    NotIsis,
    /// A header, a length or a TLV is wrong.
    Malformed,
    /// The checksum of an LSP is wrong.
    Checksum,
    /// Not signed with our key.
    NotAuthentic,
    /// A purge with TLVs that only other LSPs have, while PDUs are signed: an LSP whose lifetime was set to zero on the
    /// way, which its digest allows (RFC 5304 section 2; D93).
    PurgeTlvs,
    /// A hello that is not for us.
    Hello(HelloRefusal),
    /// Of a level at which we do not work.
    OtherLevel,
    /// Of a neighbour with which there is no adjacency.
    NoAdjacency,
    DatabaseFull,
}

impl IsisDrop {
    /// All reasons.
    pub const ALL: [IsisDrop; 16] = [
        IsisDrop::NotIsis,
        IsisDrop::Malformed,
        IsisDrop::Checksum,
        IsisDrop::NotAuthentic,
        IsisDrop::PurgeTlvs,
        IsisDrop::Hello(HelloRefusal::OwnSystemId),
        IsisDrop::Hello(HelloRefusal::OtherLevel),
        IsisDrop::Hello(HelloRefusal::NoThreeWay),
        IsisDrop::Hello(HelloRefusal::NotForUs),
        IsisDrop::Hello(HelloRefusal::OtherArea),
        IsisDrop::Hello(HelloRefusal::OtherTopology),
        IsisDrop::Hello(HelloRefusal::OtherType),
        IsisDrop::Hello(HelloRefusal::TooManyNeighbours),
        IsisDrop::OtherLevel,
        IsisDrop::NoAdjacency,
        IsisDrop::DatabaseFull,
    ];

    /// The reason's name, for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            IsisDrop::NotIsis => "not_isis",
            IsisDrop::Malformed => "malformed",
            IsisDrop::Checksum => "checksum",
            IsisDrop::NotAuthentic => "not_authentic",
            IsisDrop::PurgeTlvs => "purge_tlvs",
            IsisDrop::Hello(HelloRefusal::OwnSystemId) => "hello_own_system_id",
            IsisDrop::Hello(HelloRefusal::OtherLevel) => "hello_other_level",
            IsisDrop::Hello(HelloRefusal::NoThreeWay) => "hello_no_three_way",
            IsisDrop::Hello(HelloRefusal::NotForUs) => "hello_not_for_us",
            IsisDrop::Hello(HelloRefusal::OtherArea) => "hello_other_area",
            IsisDrop::Hello(HelloRefusal::OtherTopology) => "hello_other_topology",
            IsisDrop::Hello(HelloRefusal::OtherType) => "hello_other_type",
            IsisDrop::Hello(HelloRefusal::TooManyNeighbours) => "hello_too_many_neighbours",
            IsisDrop::OtherLevel => "other_level",
            IsisDrop::NoAdjacency => "no_adjacency",
            IsisDrop::DatabaseFull => "database_full",
        }
    }
}
