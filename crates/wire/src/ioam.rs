//! The IOAM pre-allocated trace in an IPv6 Hop-by-Hop option (RFC 9197 section 4.4, RFC 9486 section 3).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Option Type  |  Opt Data Len |    Reserved   | IOAM Opt-Type |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        Namespace-ID           | NodeLen | Flags | RemainingLen|
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |               IOAM-Trace-Type                 |    Reserved   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                  free: RemainingLen words                     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                 node data of the newest node                  |
//! :                              ...                              :
//! |                 node data of the first node                   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The source of a packet allocates the space, and every node of the namespace writes in front of those before it. When
//! the next node's data would not fit, it only raises the flag O. Lengths count in words of four octets.

mod fill;
mod node_data;
mod trace_type;

pub use fill::{Filled, Snapshot, fill, fill_trace};
pub use node_data::{LinkLoad, NodeData, NodeDataIter};
pub use trace_type::TraceType;

use crate::codepoints::{ioam, option};
use crate::ipv6::NextHeader;
use crate::options::{Alignment, OptionsHeader, OptionsWriter};
use crate::view::{Truncated, View};
use core::fmt;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Octets of a word, in which lengths count.
const WORD: usize = 4;

/// Octets of node data that an option can hold: 255 − 2 − 8, in whole words.
pub const MAX_SPACE: usize = 244;

/// The octets before node data: the option's Reserved and IOAM Opt-Type octets and the trace's header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TraceView {
    option_reserved: u8,
    opt_type: u8,
    namespace_id: U16,
    lengths: U16,
    trace_type: [u8; 3],
    reserved: u8,
}

impl View for TraceView {
    const NAME: &'static str = "IOAM trace";
    const LEN: usize = 1 + 1 + 2 + 2 + 3 + 1;
}

impl TraceView {
    const OVERFLOW: u16 = 0x0400;
    const LOOPBACK: u16 = 0x0200;
    const ACTIVE: u16 = 0x0100;

    /// Namespace-ID.
    pub fn namespace_id(&self) -> u16 {
        self.namespace_id.get()
    }

    /// NodeLen: words that each node adds, without an opaque state snapshot.
    pub fn node_len_words(&self) -> usize {
        usize::from(self.lengths.get() >> 11)
    }

    /// RemainingLen: words still free.
    pub fn remaining_len_words(&self) -> usize {
        usize::from(self.lengths.get() & 0x7F)
    }

    fn set_remaining_len_words(&mut self, words: usize) {
        self.lengths.set(self.lengths.get() & !0x7F | words as u16 & 0x7F);
    }

    /// Flag O: a node had no room.
    pub fn is_overflown(&self) -> bool {
        self.lengths.get() & Self::OVERFLOW != 0
    }

    fn set_overflown(&mut self) {
        self.lengths.set(self.lengths.get() | Self::OVERFLOW);
    }

    /// IOAM-Trace-Type.
    pub fn trace_type(&self) -> TraceType {
        let [a, b, c] = self.trace_type;
        TraceType(u32::from_be_bytes([0, a, b, c]))
    }

    /// The fields.
    pub fn value(&self) -> TraceHeader {
        let flags = self.lengths.get();
        TraceHeader {
            namespace_id: self.namespace_id(),
            node_len_words: self.node_len_words() as u8,
            overflow: self.is_overflown(),
            loopback: flags & Self::LOOPBACK != 0,
            active: flags & Self::ACTIVE != 0,
            remaining_len_words: self.remaining_len_words() as u8,
            trace_type: self.trace_type(),
        }
    }
}

/// The octets before node data, as a value.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    pub namespace_id: u16,
    /// NodeLen: words that each node adds, without an opaque state snapshot; 5 bits.
    pub node_len_words: u8,
    /// Flag O: a node had no room.
    pub overflow: bool,
    /// Flag L (RFC 9322): copies are returned.
    pub loopback: bool,
    /// Flag A (RFC 9322): the packet is a probe.
    pub active: bool,
    /// RemainingLen: words still free; 7 bits.
    pub remaining_len_words: u8,
    /// Fields that each node adds.
    pub trace_type: TraceType,
}

impl TraceHeader {
    /// Length in octets.
    pub const LEN: usize = TraceView::LEN;

    /// An empty trace with room for so many nodes that write no opaque state snapshot; `None` when that is more than
    /// [`MAX_SPACE`].
    pub fn for_nodes(namespace_id: u16, trace_type: TraceType, nodes: usize) -> Option<Self> {
        let node_len = trace_type.node_len_words();
        let space = node_len.checked_mul(nodes).filter(|words| *words <= MAX_SPACE / WORD)?;
        Some(TraceHeader {
            namespace_id,
            node_len_words: node_len as u8,
            overflow: false,
            loopback: false,
            active: false,
            remaining_len_words: space as u8,
            trace_type,
        })
    }

    /// The header's octets; fields are cut to their widths.
    pub fn emit(&self) -> TraceView {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let lengths = u16::from(self.node_len_words) << 11
            | flag(self.overflow, TraceView::OVERFLOW)
            | flag(self.loopback, TraceView::LOOPBACK)
            | flag(self.active, TraceView::ACTIVE)
            | u16::from(self.remaining_len_words & 0x7F);
        let [_, a, b, c] = self.trace_type.0.to_be_bytes();
        TraceView {
            option_reserved: 0,
            opt_type: ioam::PREALLOCATED_TRACE,
            namespace_id: U16::new(self.namespace_id),
            lengths: U16::new(lengths),
            trace_type: [a, b, c],
            reserved: 0,
        }
    }

    /// Writes a Hop-by-Hop Options header that has an empty trace as its only option, at 4n (RFC 9486 section 3), to
    /// the front of `into`; returns its length in octets. `None` when it does not fit.
    pub fn emit_hop_by_hop(&self, next_header: NextHeader, into: &mut [u8]) -> Option<usize> {
        let mut data = [0; TraceView::LEN + MAX_SPACE];
        *TraceView::split_mut(&mut data).ok()?.0 = self.emit();
        let data = data.get(..TraceView::LEN + WORD * usize::from(self.remaining_len_words))?;
        let mut writer = OptionsWriter::new(into);
        writer.option(option::IOAM, data, Alignment::FOUR_N)?;
        writer.finish(next_header)
    }
}

/// A trace, borrowed. It holds what it claims to hold.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// The octets before node data.
    pub header: &'a TraceView,
    /// The populated part: the node data that [`Trace::nodes`] walks.
    populated: &'a [u8],
    octets: &'a [u8],
}

impl<'a> Trace<'a> {
    /// The trace in the data of an IOAM option: `option_data` begins with the Reserved octet.
    pub fn parse(option_data: &'a [u8]) -> Result<Self, TraceError> {
        let (header, space) = TraceView::split(option_data)?;
        if header.opt_type != ioam::PREALLOCATED_TRACE {
            return Err(TraceError::OptType(header.opt_type));
        }
        let free = check_lengths(header, space.len())?;
        let populated = space.get(free..).unwrap_or(&[]);
        Ok(Trace { header, populated, octets: option_data })
    }

    /// The first trace in the octets of a Hop-by-Hop Options header, in any namespace; `None` without a trace.
    pub fn find(hop_by_hop_header: &'a [u8]) -> Option<Result<Self, TraceError>> {
        let (header, _) = OptionsHeader::split(hop_by_hop_header).ok()?;
        let option = header.iter().map_while(Result::ok).find(|option| is_trace(option.kind, option.data))?;
        Some(Trace::parse(option.data))
    }

    /// The data that nodes have written, the newest first.
    pub fn nodes(&self) -> NodeDataIter<'a> {
        NodeDataIter::new(self.header.trace_type(), self.populated)
    }

    /// The octets of the trace, from the option's Reserved octet on, as a Fast CNP returns them (FC-4-2).
    pub fn octets(&self) -> &'a [u8] {
        self.octets
    }
}

/// Whether an option is a pre-allocated trace, be it well formed or not.
fn is_trace(kind: u8, data: &[u8]) -> bool {
    kind == option::IOAM && data.get(1) == Some(&ioam::PREALLOCATED_TRACE)
}

/// Checks the lengths in a trace's header against its data space, and returns how many of these are free.
fn check_lengths(header: &TraceView, space: usize) -> Result<usize, TraceError> {
    if !space.is_multiple_of(WORD) {
        return Err(TraceError::PartialWord { octets: space });
    }
    let (node_len, of_type) = (header.node_len_words(), header.trace_type().node_len_words());
    if node_len != of_type {
        return Err(TraceError::NodeLen { words: node_len, of_type });
    }
    let free = header.remaining_len_words() * WORD;
    if free > space {
        return Err(TraceError::RemainingLen { words: header.remaining_len_words(), space: space / WORD });
    }
    Ok(free)
}

/// Error of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// It is too short for its header.
    Truncated(Truncated),
    /// The option is another one of IOAM's.
    OptType(u8),
    /// The data space is no whole number of words.
    PartialWord {
        /// Octets of the data space.
        octets: usize,
    },
    /// NodeLen is not what the fields of the trace type need.
    NodeLen {
        /// NodeLen.
        words: usize,
        /// Octets that the trace type needs.
        of_type: usize,
    },
    /// RemainingLen exceeds the data space.
    RemainingLen {
        /// RemainingLen.
        words: usize,
        /// Words of the data space.
        space: usize,
    },
    /// The populated part ends inside the data of a node: the trace claims more than it holds.
    PartialNode {
        /// Words that the node's data needed.
        needed: usize,
        /// Words that were left.
        found: usize,
    },
}

impl From<Truncated> for TraceError {
    fn from(truncated: Truncated) -> Self {
        TraceError::Truncated(truncated)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Truncated(truncated) => truncated.fmt(f),
            TraceError::OptType(found) => write!(f, "IOAM Opt-Type {found} is no pre-allocated trace"),
            TraceError::PartialWord { octets } => write!(f, "data space of {octets} octets is no multiple of four"),
            TraceError::NodeLen { words, of_type } => {
                write!(f, "NodeLen {words}, the fields of the trace type need {of_type} words")
            }
            TraceError::RemainingLen { words, space } => {
                write!(f, "RemainingLen {words} in a data space of {space} words")
            }
            TraceError::PartialNode { needed, found } => {
                write!(f, "a node's data needs {needed} words, {found} left")
            }
        }
    }
}

impl core::error::Error for TraceError {}

#[cfg(test)]
mod tests;
