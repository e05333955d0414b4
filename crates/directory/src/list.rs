//! Which files there are, and where they are in the stream that is cut into chunks (D181).

use crate::digests::ChunkDigest;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Version of the list's form.
const FORMAT: u32 = 1;
/// Files and empty directories of a list, at most.
const MAX_ENTRIES: usize = 1_000_000;
/// Octets of a path, at most.
const MAX_PATH: usize = 4_096;
/// Octets of all files, at most.
const MAX_OCTETS: u64 = 1 << 50;
/// Octets of a chunk.
const CHUNK_OCTETS: std::ops::RangeInclusive<u32> = 4_096..=1 << 30;

/// A file.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Relative to the directory, with `/` between its parts.
    pub path: String,
    pub octets: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_executable: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A list as it is sent and stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    format: u32,
    chunk_octets: u32,
    files: Vec<FileEntry>,
    /// Directories without files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    empty_directories: Vec<String>,
}

/// The files of a directory, in the order of their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileList {
    form: Form,
    /// Where each file begins in the stream, and where the last one ends.
    starts: Vec<u64>,
    octets: Vec<u8>,
    id: ChunkDigest,
}

/// Why a list is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ListError {
    #[error("not the JSON of a list: {0}")]
    Json(String),
    #[error("its form is {0}, this version knows 1")]
    Format(u32),
    #[error("chunks of {0} octets: 4096 to 2^30")]
    ChunkOctets(u32),
    #[error("more than a million entries")]
    TooMany,
    #[error("more than 2^50 octets")]
    TooLong,
    #[error("{0:?} is no path inside a directory")]
    Path(String),
    #[error("{0:?} is not after the path before it, or is a file and a directory")]
    Order(String),
}

/// A part of a chunk that is a part of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the file.
    pub file: usize,
    /// Where it begins in the file.
    pub file_offset: u64,
    /// Where it begins in the chunk.
    pub chunk_offset: usize,
    /// Its length.
    pub octets: usize,
}

impl FileList {
    /// The files below a directory. Symbolic links to files are followed: their content is sent.
    ///
    /// # Errors
    ///
    /// If a directory cannot be read, a name is not UTF-8, or an entry is neither a file nor a directory.
    pub fn scan(directory: &Path, chunk_octets: u32) -> Result<Self> {
        if !fs::metadata(directory).map_err(Error::file(directory))?.is_dir() {
            return Err(Error::NoDirectory(directory.to_owned()));
        }
        let mut form = Form { format: FORMAT, chunk_octets, files: Vec::new(), empty_directories: Vec::new() };
        let mut directories = vec![(directory.to_owned(), String::new())];
        while let Some((directory, prefix)) = directories.pop() {
            let mut is_empty = true;
            for entry in fs::read_dir(&directory).map_err(Error::file(&directory))? {
                let entry = entry.map_err(Error::file(&directory))?;
                let place = entry.path();
                let name = entry.file_name().into_string().map_err(|_| Error::Name(place.clone()))?;
                let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
                is_empty = false;
                let is_link = entry.file_type().map_err(Error::file(&place))?.is_symlink();
                let metadata = fs::metadata(&place).map_err(Error::file(&place))?;
                match (metadata.is_dir(), metadata.is_file(), is_link) {
                    (true, _, true) => return Err(Error::LinkToDirectory(place)),
                    (true, _, false) => directories.push((place, path)),
                    (false, true, _) => form.files.push(file_entry(path, &metadata)),
                    (false, false, _) => return Err(Error::Kind(place)),
                }
            }
            if is_empty && !prefix.is_empty() {
                form.empty_directories.push(prefix);
            }
        }
        form.files.sort_by(|a, b| a.path.cmp(&b.path));
        form.empty_directories.sort();
        let octets = serde_json::to_vec(&form).map_err(|error| ListError::Json(error.to_string()))?;
        Ok(FileList::checked(form, octets)?)
    }

    /// A list that was received or stored.
    ///
    /// # Errors
    ///
    /// If it is no list, or one of its paths leaves the directory.
    pub fn parse(octets: &[u8]) -> std::result::Result<Self, ListError> {
        let form: Form = serde_json::from_slice(octets).map_err(|error| ListError::Json(error.to_string()))?;
        FileList::checked(form, octets.to_vec())
    }

    fn checked(form: Form, octets: Vec<u8>) -> std::result::Result<Self, ListError> {
        if form.format != FORMAT {
            return Err(ListError::Format(form.format));
        }
        if !CHUNK_OCTETS.contains(&form.chunk_octets) {
            return Err(ListError::ChunkOctets(form.chunk_octets));
        }
        if form.files.len() + form.empty_directories.len() > MAX_ENTRIES {
            return Err(ListError::TooMany);
        }
        check_paths(&form)?;
        let mut starts = Vec::with_capacity(form.files.len() + 1);
        let mut end = 0_u64;
        starts.push(end);
        for file in &form.files {
            end = end.checked_add(file.octets).filter(|end| *end <= MAX_OCTETS).ok_or(ListError::TooLong)?;
            starts.push(end);
        }
        let id = ChunkDigest::of(&octets);
        Ok(FileList { form, starts, octets, id })
    }

    /// The list as it is sent.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The digest of [`Self::octets`]: messages name their list by it.
    pub fn id(&self) -> ChunkDigest {
        self.id
    }

    /// The files.
    pub fn files(&self) -> &[FileEntry] {
        &self.form.files
    }

    /// Directories without files.
    pub fn empty_directories(&self) -> &[String] {
        &self.form.empty_directories
    }

    /// Octets of all files.
    pub fn total_octets(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Octets of each chunk but the last.
    pub fn chunk_octets(&self) -> u32 {
        self.form.chunk_octets
    }

    /// Number of chunks.
    pub fn chunks(&self) -> u32 {
        self.total_octets().div_ceil(u64::from(self.form.chunk_octets)) as u32
    }

    /// Octets of a chunk; 0 if there is no such chunk.
    pub fn octets_of(&self, chunk: u32) -> u64 {
        let begin = u64::from(chunk) * u64::from(self.form.chunk_octets);
        self.total_octets().saturating_sub(begin).min(self.form.chunk_octets.into())
    }

    /// The parts of files that a chunk has.
    pub fn pieces(&self, chunk: u32) -> Vec<Piece> {
        let mut at = u64::from(chunk) * u64::from(self.form.chunk_octets);
        let end = at + self.octets_of(chunk);
        let mut pieces = Vec::new();
        // The last file that begins there or before.
        let mut file = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        let begin = at;
        while at < end && file < self.form.files.len() {
            let octets = self.starts[file + 1].min(end) - at;
            if octets > 0 {
                pieces.push(Piece {
                    file,
                    file_offset: at - self.starts[file],
                    chunk_offset: (at - begin) as usize,
                    octets: octets as usize,
                });
            }
            at += octets;
            file += 1;
        }
        pieces
    }

    /// Where a file is below a directory.
    pub fn place(&self, directory: &Path, file: usize) -> Option<PathBuf> {
        Some(directory.join(&self.form.files.get(file)?.path))
    }
}

fn file_entry(path: String, metadata: &Metadata) -> FileEntry {
    FileEntry { path, octets: metadata.len(), is_executable: metadata.permissions().mode() & 0o111 != 0 }
}

/// Every path is inside the directory, they are in order, and none is below a file.
fn check_paths(form: &Form) -> std::result::Result<(), ListError> {
    let paths = form.files.iter().map(|file| file.path.as_str());
    check_order(paths.clone())?;
    check_order(form.empty_directories.iter().map(String::as_str))?;
    let files: std::collections::BTreeSet<&str> = paths.collect();
    for path in form.files.iter().map(|file| &file.path).chain(&form.empty_directories) {
        let is_inside = path.len() <= MAX_PATH
            && !path.contains('\0')
            && path.split('/').all(|part| !matches!(part, "" | "." | "..") && part.len() <= 255);
        if !is_inside {
            return Err(ListError::Path(path.clone()));
        }
        let mut parent = path.as_str();
        while let Some((before, _)) = parent.rsplit_once('/') {
            if files.contains(before) {
                return Err(ListError::Order(path.clone()));
            }
            parent = before;
        }
    }
    match form.empty_directories.iter().find(|directory| files.contains(directory.as_str())) {
        Some(directory) => Err(ListError::Order(directory.clone())),
        None => Ok(()),
    }
}

fn check_order<'a>(paths: impl Iterator<Item = &'a str>) -> std::result::Result<(), ListError> {
    let mut before: Option<&str> = None;
    for path in paths {
        if before.is_some_and(|before| path <= before) {
            return Err(ListError::Order(path.to_owned()));
        }
        before = Some(path);
    }
    Ok(())
}
