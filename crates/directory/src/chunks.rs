//! The source's side: chunks read from files.

use crate::digests::ChunkDigest;
use crate::error::{Error, Result};
use crate::list::FileList;
use crate::open_file::OpenFile;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The chunks of a directory. The same chunk has the same octets in every round, or the files have changed.
pub struct Chunks {
    directory: PathBuf,
    list: FileList,
    open: OpenFile,
    digests: Vec<Option<ChunkDigest>>,
}

impl Chunks {
    /// The chunks of the files below a directory.
    pub fn new(directory: &Path, list: FileList) -> Self {
        let digests = vec![None; list.chunks() as usize];
        Chunks { directory: directory.to_owned(), list, open: OpenFile::default(), digests }
    }

    /// The list.
    pub fn list(&self) -> &FileList {
        &self.list
    }

    /// Reads a chunk.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, is shorter than it was, or has other octets than in a former round.
    pub fn read(&mut self, chunk: u32) -> Result<Vec<u8>> {
        let (list, directory) = (&self.list, &self.directory);
        let octets = self.open.read_chunk(list, directory, chunk, |index, path| {
            let file = File::open(path).map_err(Error::file(path))?;
            let found = file.metadata().map_err(Error::file(path))?.len();
            let is_as_listed = list.files().get(index).is_some_and(|entry| entry.octets == found);
            if is_as_listed { Ok(file) } else { Err(Error::Changed(path.to_owned())) }
        });
        let octets = octets.map_err(|error| match error {
            Error::File { path, error } if error.kind() == io::ErrorKind::UnexpectedEof => Error::Changed(path),
            other => other,
        })?;
        let digest = ChunkDigest::of(&octets);
        let known = self.digests.get_mut(chunk as usize);
        if let Some(known) = known
            && *known.get_or_insert(digest) != digest
        {
            let file = self.list.pieces(chunk).first().and_then(|piece| self.list.place(&self.directory, piece.file));
            return Err(Error::Changed(file.unwrap_or_default()));
        }
        Ok(octets)
    }

    /// The digests of all chunks, once each has been read.
    pub fn digests(&self) -> Option<Vec<u8>> {
        let all: Option<Vec<ChunkDigest>> = self.digests.iter().copied().collect();
        Some(all?.iter().flat_map(|digest| digest.0).collect())
    }
}
