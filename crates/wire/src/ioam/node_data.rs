//! The data of one node in a trace (RFC 9197 section 4.4.2).

use super::{TraceError, TraceType, WORD};

/// The data of one node. A field that the trace type does not request, or that the node could not fill (all ones), is
/// `None`.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeData<'a> {
    /// Hop limit of the packet as it left the node.
    pub hop_limit: Option<u8>,
    /// Node id, 24 bits.
    pub node_id: Option<u32>,
    /// Id of the interface that the packet came in by.
    pub ingress: Option<u16>,
    /// Id of the interface that it left by.
    pub egress: Option<u16>,
    pub timestamp_seconds: Option<u32>,
    /// Fraction of the timestamp; the namespace defines the unit (RFC 9197 section 5).
    pub timestamp_fraction: Option<u32>,
    /// Time in the node, in nanoseconds; the highest bit marks an overflow of 31 bits.
    pub transit_delay: Option<u32>,
    /// Data defined by the namespace.
    pub namespace_data: Option<u32>,
    /// Depth of the queue that the packet left by, in the namespace's unit.
    pub queue_depth: Option<u32>,
    /// The value that preserves the checksum of an upper layer.
    pub checksum_complement: Option<u32>,
    /// Node id, 56 bits.
    pub node_id_wide: Option<u64>,
    /// Id of the interface that the packet came in by, 32 bits.
    pub ingress_wide: Option<u32>,
    /// Id of the interface that it left by, 32 bits.
    pub egress_wide: Option<u32>,
    /// Data defined by the namespace, 64 bits.
    pub namespace_data_wide: Option<u64>,
    /// Occupancy of the buffer that the queue shares, in the namespace's unit.
    pub buffer_occupancy: Option<u32>,
    /// Schema ID and octets of the opaque state snapshot.
    pub opaque: Option<(u32, &'a [u8])>,
}

/// Load of a link, as this project's nodes encode it in the 64 bits that a namespace defines: the input of HPCC++
/// besides queue depth and time.
///
/// ```text
/// | rate in Mbit/s: 24 bits | octets sent so far, modulo 2^40 |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLoad {
    /// Rate of the link in Mbit/s, at most 2^24 − 1.
    pub rate_mbit_per_s: u32,
    /// Octets that the port has sent so far, frames without FCS, modulo [`LinkLoad::MODULUS`].
    pub sent_octets: u64,
}

impl LinkLoad {
    /// Octets are counted modulo this.
    pub const MODULUS: u64 = 1 << 40;

    /// As the namespace's 64 bits; a rate that is too high for its field is cut to the highest.
    pub fn to_data(self) -> u64 {
        u64::from(self.rate_mbit_per_s.min(0xFF_FFFF)) << 40 | (self.sent_octets % Self::MODULUS)
    }

    /// From the namespace's 64 bits.
    pub fn from_data(data: u64) -> Self {
        LinkLoad { rate_mbit_per_s: (data >> 40) as u32, sent_octets: data % Self::MODULUS }
    }

    /// Octets sent since an earlier statement of the same link.
    pub fn octets_since(self, earlier: LinkLoad) -> u64 {
        self.sent_octets.wrapping_sub(earlier.sent_octets) % Self::MODULUS
    }
}

/// Walks the data of nodes, the newest first. Ends after the first error.
#[derive(Clone, Debug)]
pub struct NodeDataIter<'a> {
    trace_type: TraceType,
    rest: &'a [u8],
}

impl<'a> NodeDataIter<'a> {
    pub(super) fn new(trace_type: TraceType, populated: &'a [u8]) -> Self {
        NodeDataIter { trace_type, rest: populated }
    }

    fn take(&mut self) -> Result<NodeData<'a>, TraceError> {
        let found = self.rest.len() / WORD;
        let has_opaque = self.trace_type.has(TraceType::OPAQUE);
        let fixed = self.trace_type.node_len_words();
        let mut needed = fixed + usize::from(has_opaque);
        let partial = |needed| TraceError::PartialNode { needed, found };
        let opaque_len = self.rest.get(fixed * WORD).filter(|_| has_opaque).copied().unwrap_or_default();
        needed += usize::from(opaque_len);
        // A trace without fields carries no data, whatever its length.
        let (octets, rest) = self.rest.split_at_checked(needed * WORD).filter(|_| needed > 0).ok_or(partial(needed))?;
        self.rest = rest;
        Ok(read(self.trace_type, &mut Words(octets)))
    }
}

impl<'a> Iterator for NodeDataIter<'a> {
    type Item = Result<NodeData<'a>, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let node = self.take();
        if node.is_err() {
            self.rest = &[];
        }
        Some(node)
    }
}

/// Words off the front of octets that are known to hold them.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn take(&mut self) -> u32 {
        match self.0.split_first_chunk() {
            Some((word, rest)) => {
                self.0 = rest;
                u32::from_be_bytes(*word)
            }
            None => u32::MAX,
        }
    }

    fn take_two(&mut self) -> u64 {
        u64::from(self.take()) << 32 | u64::from(self.take())
    }
}

fn known(value: u32) -> Option<u32> {
    (value != u32::MAX).then_some(value)
}

fn known_half(value: u32) -> Option<u16> {
    Some(value as u16).filter(|value| *value != u16::MAX)
}

fn read<'a>(trace_type: TraceType, words: &mut Words<'a>) -> NodeData<'a> {
    let mut node = NodeData::default();
    if trace_type.has(TraceType::NODE) {
        let word = words.take();
        node.hop_limit = Some((word >> 24) as u8);
        node.node_id = Some(word & 0xFF_FFFF).filter(|id| *id != 0xFF_FFFF);
    }
    if trace_type.has(TraceType::INTERFACES) {
        let word = words.take();
        (node.ingress, node.egress) = (known_half(word >> 16), known_half(word));
    }
    let one_word = [
        (TraceType::TIMESTAMP_SECONDS, &mut node.timestamp_seconds),
        (TraceType::TIMESTAMP_FRACTION, &mut node.timestamp_fraction),
        (TraceType::TRANSIT_DELAY, &mut node.transit_delay),
        (TraceType::NAMESPACE_DATA, &mut node.namespace_data),
        (TraceType::QUEUE_DEPTH, &mut node.queue_depth),
        (TraceType::CHECKSUM_COMPLEMENT, &mut node.checksum_complement),
    ];
    for (field, place) in one_word {
        if trace_type.has(field) {
            *place = known(words.take());
        }
    }
    if trace_type.has(TraceType::NODE_WIDE) {
        let both = words.take_two();
        node.hop_limit = Some((both >> 56) as u8);
        node.node_id_wide = Some(both << 8 >> 8).filter(|id| *id != u64::MAX >> 8);
    }
    if trace_type.has(TraceType::INTERFACES_WIDE) {
        (node.ingress_wide, node.egress_wide) = (known(words.take()), known(words.take()));
    }
    if trace_type.has(TraceType::NAMESPACE_DATA_WIDE) {
        node.namespace_data_wide = Some(words.take_two()).filter(|data| *data != u64::MAX);
    }
    if trace_type.has(TraceType::BUFFER_OCCUPANCY) {
        node.buffer_occupancy = known(words.take());
    }
    for _ in 0..(trace_type.0 & TraceType::UNASSIGNED).count_ones() {
        words.take();
    }
    if trace_type.has(TraceType::OPAQUE) {
        let schema_id = words.take() & 0xFF_FFFF;
        node.opaque = Some((schema_id, words.0)).filter(|(schema_id, _)| *schema_id != 0xFF_FFFF);
    }
    node
}
