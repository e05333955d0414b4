//! Directories as versions of chunks, without a network: what a source sends, and how a receiver puts it together.
//!
//! ```text
//!   FileList          paths and lengths; the files, one behind the other, are cut into chunks of equal length
//!   Rounds, Chunks    the source: which message comes next, and its octets
//!   Pull, Partial     a receiver: what is there, survives its end, and becomes a directory when all is there
//! ```
//!
//! A round is the list, all chunks, and their digests; the list comes again every few chunks. Rounds are repeated while
//! there are receivers, so that one that joined late, or was started again, has what it lacks from the next round: no
//! message back to the source is needed. `docs/applications.md` describes the messages.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod chunks;
mod digests;
mod error;
mod list;
mod message;
mod open_file;
mod partial;
mod pull;
mod rounds;

pub use chunks::Chunks;
pub use digests::ChunkDigest;
pub use error::{Error, Result};
pub use list::{FileEntry, FileList, ListError, Piece};
pub use message::{CHUNK_NAME_OCTETS, Message, MessageError};
pub use pull::{Pull, Status, Target};
pub use rounds::{Next, Rounds};
