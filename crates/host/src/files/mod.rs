//! Files that are sent and received: read and written by blocks, so that their length takes no memory (D230).

mod error;
mod output;
mod source;

pub use error::FileError;
pub use output::OutputFile;
pub use source::FileSource;

/// Octets that are read, written or digested at a time: few enough for the L2 of a processor, many enough for a system
/// call.
pub(crate) const BLOCK_OCTETS: usize = 64 << 10;
