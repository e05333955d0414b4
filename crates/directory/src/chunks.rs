//! The source's side: chunks read from files.

use crate::digests::ChunkDigest;
use crate::error::{Error, Result};
use crate::list::FileList;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The chunks of a directory. The same chunk has the same octets in every round, or the files have changed.
pub struct Chunks {
    directory: PathBuf,
    list: FileList,
    open: Option<(usize, File)>,
    digests: Vec<Option<ChunkDigest>>,
}

impl Chunks {
    /// The chunks of the files below a directory.
    pub fn new(directory: &Path, list: FileList) -> Self {
        let digests = vec![None; list.chunks() as usize];
        Chunks { directory: directory.to_owned(), list, open: None, digests }
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
        let mut octets = vec![0; self.list.octets_of(chunk) as usize];
        for piece in self.list.pieces(chunk) {
            let path = self.list.place(&self.directory, piece.file).unwrap_or_default();
            let into = &mut octets[piece.chunk_offset..][..piece.octets];
            self.file(piece.file, &path)?.read_exact_at(into, piece.file_offset).map_err(|error| {
                match error.kind() {
                    std::io::ErrorKind::UnexpectedEof => Error::Changed(path.clone()),
                    _ => Error::File { path: path.clone(), error },
                }
            })?;
        }
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

    fn file(&mut self, index: usize, path: &Path) -> Result<&File> {
        let file = match self.open.take().filter(|(open, _)| *open == index) {
            Some((_, file)) => file,
            None => {
                let file = File::open(path).map_err(Error::file(path))?;
                let found = file.metadata().map_err(Error::file(path))?.len();
                if self.list.files().get(index).is_none_or(|entry| entry.octets != found) {
                    return Err(Error::Changed(path.to_owned()));
                }
                file
            }
        };
        Ok(&self.open.insert((index, file)).1)
    }
}
