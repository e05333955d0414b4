//! The order of messages (D180).

/// Chunks from one list to the next.
const LIST_INTERVAL: u32 = 16;

/// What is sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The list.
    List,
    /// A chunk.
    Chunk(u32),
    /// The digests of all chunks, which end a round.
    Digests,
}

/// The messages of a round: the list before each 16 chunks, so that one that joins late soon knows where chunks
/// belong; and the digests.
#[derive(Clone, Debug)]
pub struct Rounds {
    chunks: u32,
    chunk: u32,
    is_listed: bool,
    is_over: bool,
}

impl Rounds {
    /// A round of so many chunks.
    pub fn new(chunks: u32) -> Self {
        Rounds { chunks, chunk: 0, is_listed: false, is_over: false }
    }
}

impl Iterator for Rounds {
    type Item = Next;

    fn next(&mut self) -> Option<Next> {
        if self.is_over {
            return None;
        }
        if !self.is_listed && self.chunk.is_multiple_of(LIST_INTERVAL) {
            self.is_listed = true;
            return Some(Next::List);
        }
        if self.chunk == self.chunks {
            self.is_over = true;
            return Some(Next::Digests);
        }
        let chunk = self.chunk;
        (self.chunk, self.is_listed) = (chunk + 1, false);
        Some(Next::Chunk(chunk))
    }
}
