//! Writing a node's data into the traces of a packet, where they lie (RFC 9197 section 4.4.1).

use super::{NodeData, TraceError, TraceType, TraceView, WORD, check_lengths, is_trace};
use crate::options::{OptionOverrun, OptionTlv, OptionsHeader};
use crate::view::View;

/// Result of filling a trace at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The node's data were written.
    Written,
    /// It had no room: flag O is set, or was.
    Overflow,
}

/// An opaque state snapshot, which a node adds when the trace type requests one.
pub type Snapshot<'a> = (u32, &'a [u8]);

/// A trace's header and data space in the octets of a Hop-by-Hop Options header, from offset `from` on; and the offset
/// at which the walk continues. Options that overrun end the walk: their destination reports the error.
fn next_trace(header: &mut [u8], from: usize) -> Option<(&mut [u8], usize)> {
    let (options, _) = OptionsHeader::split(header).ok()?;
    let found = |option: &Result<OptionTlv<'_>, OptionOverrun>| match option {
        Ok(option) => option.offset >= from && is_trace(option.kind, option.data),
        Err(_) => false,
    };
    let option = options.iter().find(found)?.ok()?;
    let (start, end) = (option.offset + 2, option.offset + 2 + option.data.len());
    Some((header.get_mut(start..end)?, end))
}

/// Fills every pre-allocated trace in the octets of a Hop-by-Hop Options header for which `of_namespace` has data;
/// traces of other namespaces stay unchanged. Calls `count` with each result. A field that is `None` is written as all
/// ones. A damaged trace is left unchanged, and does not keep the next from being filled.
pub fn fill<'d>(
    hop_by_hop_header: &mut [u8],
    mut of_namespace: impl FnMut(u16) -> Option<NodeData<'d>>,
    mut count: impl FnMut(Result<Filled, TraceError>),
) {
    let mut from = 0;
    while let Some((octets, end)) = next_trace(hop_by_hop_header, from) {
        from = end;
        match TraceView::split_mut(octets) {
            Ok((header, space)) => {
                if let Some(node) = of_namespace(header.namespace_id()) {
                    count(fill_one(header, space, &node));
                }
            }
            Err(truncated) => count(Err(truncated.into())),
        }
    }
}

/// Fills the trace in the data of an IOAM option, which begin with the Reserved octet; one of a namespace for which
/// there are no data stays unchanged.
///
/// # Errors
///
/// A damaged trace, which is left unchanged.
pub fn fill_trace<'d>(
    option_data: &mut [u8],
    of_namespace: impl FnOnce(u16) -> Option<NodeData<'d>>,
) -> Result<Option<Filled>, TraceError> {
    let (header, space) = TraceView::split_mut(option_data)?;
    of_namespace(header.namespace_id()).map(|node| fill_one(header, space, &node)).transpose()
}

fn fill_one(header: &mut TraceView, space: &mut [u8], node: &NodeData<'_>) -> Result<Filled, TraceError> {
    if header.is_overflown() {
        return Ok(Filled::Overflow);
    }
    let free = check_lengths(header, space.len())?;
    let trace_type = header.trace_type();
    let opaque_len = node.opaque.map_or(0, |(_, octets)| octets.len().next_multiple_of(WORD).min(255 * WORD));
    let opaque_words = if trace_type.has(TraceType::OPAQUE) { 1 + opaque_len / WORD } else { 0 };
    let needed = (trace_type.node_len_words() + opaque_words) * WORD;
    if free == 0 || needed > free {
        header.set_overflown();
        return Ok(Filled::Overflow);
    }
    if let Some(place) = space.get_mut(free - needed..free) {
        write(trace_type, node, opaque_len, &mut Places(place));
    }
    header.set_remaining_len_words((free - needed) / WORD);
    Ok(Filled::Written)
}

/// Places for words, off the front of octets that are known to have them.
struct Places<'a>(&'a mut [u8]);

impl Places<'_> {
    fn put(&mut self, word: u32) {
        if let Some((place, rest)) = core::mem::take(&mut self.0).split_first_chunk_mut() {
            *place = word.to_be_bytes();
            self.0 = rest;
        }
    }

    fn put_two(&mut self, words: u64) {
        self.put((words >> 32) as u32);
        self.put(words as u32);
    }
}

fn write(trace_type: TraceType, node: &NodeData<'_>, opaque_len: usize, places: &mut Places<'_>) {
    let hop_limit = node.hop_limit.unwrap_or(u8::MAX);
    if trace_type.has(TraceType::NODE) {
        places.put(u32::from(hop_limit) << 24 | node.node_id.unwrap_or(u32::MAX) & 0xFF_FFFF);
    }
    if trace_type.has(TraceType::INTERFACES) {
        let (ingress, egress) = (node.ingress.unwrap_or(u16::MAX), node.egress.unwrap_or(u16::MAX));
        places.put(u32::from(ingress) << 16 | u32::from(egress));
    }
    let one_word = [
        (TraceType::TIMESTAMP_SECONDS, node.timestamp_seconds),
        (TraceType::TIMESTAMP_FRACTION, node.timestamp_fraction),
        (TraceType::TRANSIT_DELAY, node.transit_delay),
        (TraceType::NAMESPACE_DATA, node.namespace_data),
        (TraceType::QUEUE_DEPTH, node.queue_depth),
        (TraceType::CHECKSUM_COMPLEMENT, node.checksum_complement),
    ];
    for (field, value) in one_word {
        if trace_type.has(field) {
            places.put(value.unwrap_or(u32::MAX));
        }
    }
    if trace_type.has(TraceType::NODE_WIDE) {
        places.put_two(u64::from(hop_limit) << 56 | node.node_id_wide.unwrap_or(u64::MAX) << 8 >> 8);
    }
    if trace_type.has(TraceType::INTERFACES_WIDE) {
        places.put(node.ingress_wide.unwrap_or(u32::MAX));
        places.put(node.egress_wide.unwrap_or(u32::MAX));
    }
    if trace_type.has(TraceType::NAMESPACE_DATA_WIDE) {
        places.put_two(node.namespace_data_wide.unwrap_or(u64::MAX));
    }
    if trace_type.has(TraceType::BUFFER_OCCUPANCY) {
        places.put(node.buffer_occupancy.unwrap_or(u32::MAX));
    }
    for _ in 0..(trace_type.0 & TraceType::UNASSIGNED).count_ones() {
        places.put(u32::MAX);
    }
    if trace_type.has(TraceType::OPAQUE) {
        let (schema_id, octets) = node.opaque.unwrap_or((u32::MAX, &[]));
        places.put((opaque_len as u32 / WORD as u32) << 24 | schema_id & 0xFF_FFFF);
        let (octets, padding) = places.0.split_at_mut(octets.len().min(places.0.len()));
        octets.copy_from_slice(node.opaque.map_or(&[][..], |(_, octets)| octets).get(..octets.len()).unwrap_or(&[]));
        padding.fill(0);
    }
}
