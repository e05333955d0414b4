//! Messages of rails (D197): what a rail's group carries as its versions. The first buffer of each is a header, which
//! says of which version it is. A *layout* has the version's manifest; a *chunk* has a part of its octets.
//!
//! ```text
//!    0  magic "SRVS"      8  version     24  chunk: its number; layout: 0     32  octets of a chunk
//!    4  form, kind       16  sequence    28  number of chunks                36  reserved, sent as 0
//!    6  rail
//! ```

use crate::manifest::{MAX_BUFFERS, MAX_MANIFEST_OCTETS, Manifest};
use std::ops::Range;

/// Name of the buffer with the header, and of that with the manifest.
pub(crate) const HEADER: &str = "rail";
pub(crate) const LAYOUT: &str = "layout";

const MAGIC: [u8; 4] = *b"SRVS";
const FORM: u8 = 1;
const HEADER_OCTETS: usize = 40;

/// The most rails.
pub(crate) const MAX_RAILS: usize = 16;
/// The most chunks of a version.
pub(crate) const MAX_CHUNKS: u32 = 1 << 20;
/// Buffers of which a chunk has a part, at most.
const MAX_PIECES: usize = 1024;
/// Alignment of buffers in a slot of a rail's group, octets.
const ALIGNMENT_OCTETS: u64 = 64;

/// Which part of a version a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RailPart {
    /// Its manifest.
    Layout,
    /// The chunk of this number.
    Chunk(u32),
}

/// The header of a message on a rail, for programs that look at packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RailHeader {
    /// The application's number of the version.
    pub version: u64,
    /// The number of versions before it.
    pub sequence: u64,
    /// What of the version the message has.
    pub part: RailPart,
    /// Chunks of the version.
    pub chunks: u32,
    /// Octets of a chunk, at most.
    pub chunk_octets: u32,
    /// The rail by which the message was sent.
    pub rail: u16,
}

/// Why octets are no message of rails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RailMessageError {
    #[error("the message is not one of rails: the group is not that of a rail")]
    Magic,
    #[error("form {0} of the message of a rail is not known")]
    Form(u8),
    #[error("kind {0} of the message of a rail is not known")]
    Kind(u8),
    #[error("the header of a rail has {0} octets")]
    Length(usize),
    #[error("rail {0}, at most {MAX_RAILS} are")]
    Rail(u16),
    #[error("chunk {number} of {chunks} of {chunk_octets} octets")]
    Chunk { number: u32, chunks: u32, chunk_octets: u32 },
    #[error("the message has no manifest of the version that its header names")]
    Manifest,
    #[error("the message has other buffers than its chunk")]
    Pieces,
}

impl RailHeader {
    /// The octets of the header.
    pub fn emit(&self) -> Vec<u8> {
        let (kind, number) = match self.part {
            RailPart::Layout => (1, 0),
            RailPart::Chunk(number) => (2, number),
        };
        let mut octets = Vec::with_capacity(HEADER_OCTETS);
        octets.extend_from_slice(&MAGIC);
        octets.extend_from_slice(&[FORM, kind]);
        octets.extend_from_slice(&self.rail.to_be_bytes());
        octets.extend_from_slice(&self.version.to_be_bytes());
        octets.extend_from_slice(&self.sequence.to_be_bytes());
        [number, self.chunks, self.chunk_octets, 0].iter().for_each(|word| octets.extend(word.to_be_bytes()));
        octets
    }

    /// Parses a header.
    ///
    /// # Errors
    ///
    /// If the octets do not follow the form, or a value is beyond its limit.
    pub fn parse(octets: &[u8]) -> Result<Self, RailMessageError> {
        let octets: &[u8; HEADER_OCTETS] = octets.try_into().map_err(|_| RailMessageError::Length(octets.len()))?;
        let [form, kind] = [octets[4], octets[5]];
        if octets[..4] != MAGIC {
            return Err(RailMessageError::Magic);
        }
        if form != FORM {
            return Err(RailMessageError::Form(form));
        }
        let rail = u16::from_be_bytes([octets[6], octets[7]]);
        if usize::from(rail) >= MAX_RAILS {
            return Err(RailMessageError::Rail(rail));
        }
        let word = |at: usize| octets[at..at + 4].iter().fold(0_u32, |word, octet| word << 8 | u32::from(*octet));
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        let (number, chunks, chunk_octets) = (word(24), word(28), word(32));
        let part = match kind {
            1 => RailPart::Layout,
            2 => RailPart::Chunk(number),
            kind => return Err(RailMessageError::Kind(kind)),
        };
        let is_chunk = match part {
            RailPart::Layout => number == 0,
            RailPart::Chunk(number) => number < chunks,
        };
        if !is_chunk || chunks > MAX_CHUNKS || chunk_octets == 0 {
            return Err(RailMessageError::Chunk { number, chunks, chunk_octets });
        }
        Ok(RailHeader { version: long(8), sequence: long(16), part, chunks, chunk_octets, rail })
    }
}

/// A part of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The buffer's place in the manifest.
    pub(crate) buffer: usize,
    /// Octets of the buffer.
    pub(crate) range: Range<u64>,
    /// The first one's place in the slot.
    pub(crate) offset: u64,
}

impl Piece {
    pub(crate) fn length_octets(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// The chunks of a version: source and receivers compute the same ones from manifest and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunks(Vec<Vec<Piece>>);

impl Chunks {
    /// Cuts a version into chunks of at most so many octets; `None` if there are too many.
    pub(crate) fn cut(manifest: &Manifest, chunk_octets: u32) -> Option<Self> {
        let chunk_octets = u64::from(chunk_octets.max(1));
        let octets = manifest.buffers().iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.length_octets));
        if octets / chunk_octets >= u64::from(MAX_CHUNKS) - (MAX_BUFFERS / MAX_PIECES) as u64 - 2 {
            return None;
        }
        let mut chunks = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut room = chunk_octets;
        for (buffer, entry) in manifest.buffers().iter().enumerate() {
            let mut start = 0;
            while start < entry.length_octets {
                let end = entry.length_octets.min(start + room);
                pieces.push(Piece { buffer, range: start..end, offset: entry.offset + start });
                room -= end - start;
                start = end;
                if room == 0 || pieces.len() == MAX_PIECES {
                    chunks.push(std::mem::take(&mut pieces));
                    room = chunk_octets;
                }
            }
        }
        if !pieces.is_empty() {
            chunks.push(pieces);
        }
        Some(Chunks(chunks))
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// The pieces of a chunk.
    pub(crate) fn pieces(&self, number: u32) -> &[Piece] {
        self.0.get(number as usize).map_or(&[], Vec::as_slice)
    }
}

/// Octets of a slot of a rail's group: it has room for a layout, and for a chunk of so many octets.
pub(crate) fn slot_octets(chunk_octets: u32) -> u64 {
    let chunk = u64::from(chunk_octets) + MAX_PIECES as u64 * ALIGNMENT_OCTETS;
    ALIGNMENT_OCTETS + chunk.max(MAX_MANIFEST_OCTETS as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DigestKind;
    use crate::manifest::{Entry, Slots};
    use crate::publisher::slot_octets as octets_of_buffers;
    use proptest::prelude::*;

    fn manifest(lengths: &[u64]) -> Manifest {
        let entry = |(number, length): (usize, &u64)| Entry {
            name: format!("b{number}"),
            region: 0,
            offset: octets_of_buffers(lengths[..number].iter().copied()).next_multiple_of(64),
            length_octets: *length,
        };
        let entries: Vec<Entry> = lengths.iter().enumerate().map(entry).collect();
        let octets = octets_of_buffers(lengths.iter().copied()).max(1);
        Manifest::new(1, 0, Slots { count: 2, octets }, DigestKind::Crc32, entries).expect("fits")
    }

    proptest! {
        /// Each octet of each buffer is in one chunk.
        #[test]
        fn chunks_are_a_partition(lengths in proptest::collection::vec(0_u64..5000, 0..40), chunk_octets in 1_u32..4000) {
            let manifest = manifest(&lengths);
            let chunks = Chunks::cut(&manifest, chunk_octets).expect("few");
            let mut next: Vec<u64> = vec![0; lengths.len()];
            for number in 0..chunks.count() {
                let pieces = chunks.pieces(number);
                let octets: u64 = pieces.iter().map(Piece::length_octets).sum();
                prop_assert!((1..=u64::from(chunk_octets)).contains(&octets));
                for piece in pieces {
                    prop_assert_eq!(next[piece.buffer], piece.range.start);
                    prop_assert_eq!(piece.offset, manifest.buffers()[piece.buffer].offset + piece.range.start);
                    next[piece.buffer] = piece.range.end;
                }
                // With the header, each behind the other at the alignment.
                let lengths = std::iter::once(HEADER_OCTETS as u64).chain(pieces.iter().map(Piece::length_octets));
                prop_assert!(octets_of_buffers(lengths) <= slot_octets(chunk_octets));
            }
            prop_assert_eq!(next, lengths);
        }

        /// No octets make the parser panic, and what it takes it writes again.
        #[test]
        fn headers_are_parsed(octets in proptest::collection::vec(any::<u8>(), 0..50)) {
            let _ = RailHeader::parse(&octets);
            let mut near = RailHeader { version: 1, sequence: 2, part: RailPart::Chunk(3), chunks: 9, chunk_octets: 7, rail: 1 }.emit();
            near.iter_mut().zip(&octets).skip(4).for_each(|(to, from)| *to = *from);
            if let Ok(header) = RailHeader::parse(&near) {
                near[36..].fill(0);
                prop_assert_eq!(header.emit(), near);
            }
        }
    }

    #[test]
    fn malformed_headers_are_named() {
        let good =
            RailHeader { version: 1, sequence: 2, part: RailPart::Chunk(3), chunks: 4, chunk_octets: 7, rail: 1 };
        assert_eq!(RailHeader::parse(&good.emit()), Ok(good));
        let layout = RailHeader { part: RailPart::Layout, chunks: 0, ..good };
        assert_eq!(RailHeader::parse(&layout.emit()), Ok(layout));
        let error = |at: usize, octet: u8| {
            let mut octets = good.emit();
            octets[at] = octet;
            RailHeader::parse(&octets).expect_err("refused")
        };
        assert_eq!(error(0, b'T'), RailMessageError::Magic);
        assert_eq!(error(4, 2), RailMessageError::Form(2));
        assert_eq!(error(5, 3), RailMessageError::Kind(3));
        assert_eq!(error(7, 16), RailMessageError::Rail(16));
        assert_eq!(error(5, 1), RailMessageError::Chunk { number: 3, chunks: 4, chunk_octets: 7 });
        assert_eq!(error(27, 4), RailMessageError::Chunk { number: 4, chunks: 4, chunk_octets: 7 });
        assert_eq!(error(35, 0), RailMessageError::Chunk { number: 3, chunks: 4, chunk_octets: 0 });
        assert!(matches!(error(28, 1), RailMessageError::Chunk { .. }), "too many");
        assert_eq!(RailHeader::parse(&good.emit()[1..]), Err(RailMessageError::Length(39)));
    }

    #[test]
    fn a_version_of_too_many_chunks_is_not_cut() {
        let manifest = manifest(&[1 << 40]);
        assert!(Chunks::cut(&manifest, 1 << 10).is_none());
        assert_eq!(Chunks::cut(&manifest, 1 << 24).expect("few").count(), 1 << 16);
    }

    /// Many small buffers: a slot of a rail has room for each chunk.
    #[test]
    fn a_chunk_has_parts_of_few_buffers() {
        let manifest = manifest(&[1; 3000]);
        let chunks = Chunks::cut(&manifest, 1 << 20).expect("few");
        assert_eq!(
            (0..chunks.count()).map(|number| chunks.pieces(number).len()).collect::<Vec<_>>(),
            [1024, 1024, 952]
        );
    }
}
