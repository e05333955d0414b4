//! Messages: each is a version with two buffers, the digest of the list and the message itself.

use crate::digests::ChunkDigest;

/// Name of the buffer with the digest of the list.
const OF_LIST: &str = "of list";
const LIST: &str = "list";
const DIGESTS: &str = "digests";
const CHUNK: &str = "chunk ";
/// The longest name of a chunk's buffer.
pub const CHUNK_NAME_OCTETS: usize = CHUNK.len() + 10;

/// A message about a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The list, as [`crate::FileList::parse`] takes it.
    List(&'a [u8]),
    /// A chunk of the list with this digest.
    Chunk {
        /// The list that it belongs to.
        of: ChunkDigest,
        /// Its number.
        index: u32,
        /// Its octets.
        octets: &'a [u8],
    },
    /// The digests of all chunks, one behind the other.
    Digests {
        /// The list that they belong to.
        of: ChunkDigest,
        /// The digests.
        octets: &'a [u8],
    },
}

/// Why a version is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum MessageError {
    #[error("it has no buffer with the digest of a list: its source does not send a directory")]
    NoList,
    #[error("it has no list, chunk or digests")]
    NoContent,
    #[error("the list does not have the digest that is sent with it")]
    WrongList,
}

impl<'a> Message<'a> {
    /// Names of the two buffers of a message.
    pub fn names(&self) -> [String; 2] {
        let content = match self {
            Message::List(_) => LIST.to_owned(),
            Message::Chunk { index, .. } => format!("{CHUNK}{index}"),
            Message::Digests { .. } => DIGESTS.to_owned(),
        };
        [OF_LIST.to_owned(), content]
    }

    /// The message in the buffers of a version, each a name and its octets.
    ///
    /// # Errors
    ///
    /// If they are no message.
    pub fn of_buffers(buffers: &[(&str, &'a [u8])]) -> Result<Self, MessageError> {
        let of =
            buffers.iter().find(|(name, _)| *name == OF_LIST).and_then(|(_, octets)| ChunkDigest::from_slice(octets));
        let of = of.ok_or(MessageError::NoList)?;
        for (name, octets) in buffers.iter().copied() {
            match name {
                LIST if ChunkDigest::of(octets) == of => return Ok(Message::List(octets)),
                LIST => return Err(MessageError::WrongList),
                DIGESTS => return Ok(Message::Digests { of, octets }),
                _ => {}
            }
            if let Some(index) = name.strip_prefix(CHUNK).and_then(|index| index.parse().ok()) {
                return Ok(Message::Chunk { of, index, octets });
            }
        }
        Err(MessageError::NoContent)
    }
}
