//! The file that was used last, which most often is the one that is used next.

use crate::error::{Error, Result};
use crate::list::FileList;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One open file of a list.
#[derive(Debug, Default)]
pub(crate) struct OpenFile(Option<(usize, File)>);

impl OpenFile {
    /// A file of a list below a directory, with its path.
    pub(crate) fn get(
        &mut self,
        list: &FileList,
        directory: &Path,
        index: usize,
        open: impl FnOnce(usize, &Path) -> Result<File>,
    ) -> Result<(&File, PathBuf)> {
        let path = list.place(directory, index).unwrap_or_default();
        let file = match self.0.take().filter(|(open, _)| *open == index) {
            Some((_, file)) => file,
            None => open(index, &path)?,
        };
        Ok((&self.0.insert((index, file)).1, path))
    }

    /// The octets of a chunk.
    pub(crate) fn read_chunk(
        &mut self,
        list: &FileList,
        directory: &Path,
        chunk: u32,
        open: impl Fn(usize, &Path) -> Result<File>,
    ) -> Result<Vec<u8>> {
        let mut octets = vec![0; list.octets_of(chunk) as usize];
        for piece in list.pieces(chunk) {
            let into = &mut octets[piece.chunk_offset..][..piece.octets];
            let (file, path) = self.get(list, directory, piece.file, &open)?;
            file.read_exact_at(into, piece.file_offset).map_err(Error::file(&path))?;
        }
        Ok(octets)
    }
}
