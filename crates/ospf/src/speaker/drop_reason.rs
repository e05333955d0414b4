//! Reasons for which packets and LSAs are dropped.

/// Reason for which a packet, or an LSA in one, is dropped.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OspfDrop {
    /// By a circuit whose link is down.
    CircuitDown,
    /// The source is no link-local address: a virtual link, which there is not.
    NotLinkLocal,
    /// For other routers than all of the link, or than this one.
    OtherDestination,
    /// Another version than 3.
    Version,
    /// Another type than 1 to 5.
    Type,
    /// The checksum of the packet is wrong.
    Checksum,
    /// A length is wrong.
    Malformed,
    /// Another area than 0.0.0.0 (D276).
    OtherArea,
    /// Another instance than 0 (D276).
    OtherInstance,
    /// Our own id: a loop, or two routers with one id.
    OwnRouterId,
    /// An authentication trailer is announced, which this router cannot verify (D276).
    Authenticated,
    /// HelloInterval is not ours.
    HelloInterval,
    /// RouterDeadInterval is not ours.
    DeadInterval,
    /// The E-bit is clear or the N-bit set: the neighbour takes the area for a stub.
    AreaType,
    /// A second router on a point-to-point circuit.
    OtherNeighbour,
    /// No hello came from there.
    NoNeighbour,
    /// A packet that the state of the neighbour does not allow.
    NeighbourState,
    /// The neighbour sends longer packets than this link has here.
    Mtu,
    /// A description out of order: the exchange begins anew.
    DescriptionSequence,
    /// A request for an LSA that is not here, or an instance that was to be a newer one: the exchange begins anew.
    BadRequest,
    /// The checksum of an LSA is wrong.
    LsaChecksum,
    /// The scope of an LSA is reserved.
    LsaScope,
    /// An LSA less than a second after the last one.
    LsaTooSoon,
    DatabaseFull,
}

impl OspfDrop {
    /// All reasons.
    pub const ALL: [OspfDrop; 24] = [
        OspfDrop::CircuitDown,
        OspfDrop::NotLinkLocal,
        OspfDrop::OtherDestination,
        OspfDrop::Version,
        OspfDrop::Type,
        OspfDrop::Checksum,
        OspfDrop::Malformed,
        OspfDrop::OtherArea,
        OspfDrop::OtherInstance,
        OspfDrop::OwnRouterId,
        OspfDrop::Authenticated,
        OspfDrop::HelloInterval,
        OspfDrop::DeadInterval,
        OspfDrop::AreaType,
        OspfDrop::OtherNeighbour,
        OspfDrop::NoNeighbour,
        OspfDrop::NeighbourState,
        OspfDrop::Mtu,
        OspfDrop::DescriptionSequence,
        OspfDrop::BadRequest,
        OspfDrop::LsaChecksum,
        OspfDrop::LsaScope,
        OspfDrop::LsaTooSoon,
        OspfDrop::DatabaseFull,
    ];

    /// The reason's name, for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            OspfDrop::CircuitDown => "circuit_down",
            OspfDrop::NotLinkLocal => "not_link_local",
            OspfDrop::OtherDestination => "other_destination",
            OspfDrop::Version => "version",
            OspfDrop::Type => "type",
            OspfDrop::Checksum => "checksum",
            OspfDrop::Malformed => "malformed",
            OspfDrop::OtherArea => "other_area",
            OspfDrop::OtherInstance => "other_instance",
            OspfDrop::OwnRouterId => "own_router_id",
            OspfDrop::Authenticated => "authenticated",
            OspfDrop::HelloInterval => "hello_interval",
            OspfDrop::DeadInterval => "dead_interval",
            OspfDrop::AreaType => "area_type",
            OspfDrop::OtherNeighbour => "other_neighbour",
            OspfDrop::NoNeighbour => "no_neighbour",
            OspfDrop::NeighbourState => "neighbour_state",
            OspfDrop::Mtu => "mtu",
            OspfDrop::DescriptionSequence => "description_sequence",
            OspfDrop::BadRequest => "bad_request",
            OspfDrop::LsaChecksum => "lsa_checksum",
            OspfDrop::LsaScope => "lsa_scope",
            OspfDrop::LsaTooSoon => "lsa_too_soon",
            OspfDrop::DatabaseFull => "database_full",
        }
    }
}
