//! IOAM-Trace-Type: which fields each node adds (RFC 9197 section 4.4.1).

/// A trace type: 24 bits, bit 0 of the RFC being the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceType(pub u32);

impl TraceType {
    /// Bit 0: hop limit and a node id of 24 bits.
    pub const NODE: TraceType = TraceType::bit(0);
    /// Bit 1: ingress and egress interface ids of 16 bits.
    pub const INTERFACES: TraceType = TraceType::bit(1);
    /// Bit 2: timestamp, seconds.
    pub const TIMESTAMP_SECONDS: TraceType = TraceType::bit(2);
    /// Bit 3: timestamp, fraction.
    pub const TIMESTAMP_FRACTION: TraceType = TraceType::bit(3);
    /// Bit 4: transit delay in nanoseconds.
    pub const TRANSIT_DELAY: TraceType = TraceType::bit(4);
    /// Bit 5: data that the namespace defines.
    pub const NAMESPACE_DATA: TraceType = TraceType::bit(5);
    /// Bit 6: queue depth.
    pub const QUEUE_DEPTH: TraceType = TraceType::bit(6);
    /// Bit 7: checksum complement.
    pub const CHECKSUM_COMPLEMENT: TraceType = TraceType::bit(7);
    /// Bit 8: hop limit and a node id of 56 bits.
    pub const NODE_WIDE: TraceType = TraceType::bit(8);
    /// Bit 9: ingress and egress interface ids of 32 bits.
    pub const INTERFACES_WIDE: TraceType = TraceType::bit(9);
    /// Bit 10: data that the namespace defines, 64 bits.
    pub const NAMESPACE_DATA_WIDE: TraceType = TraceType::bit(10);
    /// Bit 11: buffer occupancy.
    pub const BUFFER_OCCUPANCY: TraceType = TraceType::bit(11);
    /// Bit 22: opaque state snapshot, of variable length.
    pub const OPAQUE: TraceType = TraceType::bit(22);

    /// What HPCC++ needs of a link, 24 octets: node id and interfaces identify it; the fraction of the timestamp counts
    /// nanoseconds (PTP, RFC 9197 section 5.1); queue depth counts octets; and the wide namespace data is a
    /// [`LinkLoad`](super::LinkLoad): its rate and the octets that it has sent.
    pub const LINK_LOAD: TraceType = TraceType::NODE
        .and(TraceType::INTERFACES)
        .and(TraceType::TIMESTAMP_FRACTION)
        .and(TraceType::QUEUE_DEPTH)
        .and(TraceType::NAMESPACE_DATA_WIDE);

    /// Bits whose fields are two words; those of the others up to bit 21 are one.
    const WIDE: u32 = Self::NODE_WIDE.0 | Self::INTERFACES_WIDE.0 | Self::NAMESPACE_DATA_WIDE.0;
    const FIELDS: u32 = 0xFF_FFFC;
    /// Bits 12–21, to which no field is assigned yet. A node counts one word for each.
    pub(super) const UNASSIGNED: u32 = 0x00_0FFC;

    const fn bit(number: u32) -> Self {
        TraceType(1 << (23 - number))
    }

    /// Both sets of fields.
    pub const fn and(self, other: Self) -> Self {
        TraceType(self.0 | other.0)
    }

    /// Whether all fields of `other` are among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// NodeLen: words that each node adds, without an opaque state snapshot; at most 25. Bit 23 is ignored.
    pub const fn node_len_words(self) -> usize {
        ((self.0 & Self::FIELDS).count_ones() + (self.0 & Self::WIDE).count_ones()) as usize
    }
}
