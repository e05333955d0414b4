//! A directory that is being received: files of their final lengths, and a record of the chunks that are there
//! (D182).

use crate::digests::ChunkDigest;
use crate::error::{Error, Result};
use crate::list::FileList;
use crate::open_file::OpenFile;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the files are, below the partial directory.
const FILES: &str = "files";
const LIST: &str = "list.json";
/// The chunks that are there: number and digest of each, in the order of arrival.
const RECORD: &str = "chunks";
const LOCK: &str = "lock";
const ENTRY: usize = 4 + ChunkDigest::LEN;

/// The directory `TARGET.partial`, which becomes the target.
#[derive(Debug)]
pub(crate) struct Partial {
    target: PathBuf,
    replaces: bool,
    root: PathBuf,
    /// Held as long as this value lives.
    _lock: File,
    record: Option<File>,
    open: OpenFile,
}

impl Partial {
    /// Takes the target's partial directory for this process, and makes it if there is none.
    pub(crate) fn open(target: &Path, replaces: bool) -> Result<Self> {
        match fs::symlink_metadata(target) {
            Ok(found) if !replaces || !found.is_dir() => return Err(Error::Exists(target.to_owned())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::File { path: target.to_owned(), error }),
        }
        let mut name = target.file_name().ok_or_else(|| Error::NoDirectory(target.to_owned()))?.to_owned();
        name.push(".partial");
        let root = target.with_file_name(name);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&root).map_err(Error::file(&root))?;
        let path = root.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(Error::file(&path))?;
        if lock.try_lock().is_err() {
            return Err(Error::Locked(root));
        }
        Ok(Partial { target: target.to_owned(), replaces, root, _lock: lock, record: None, open: OpenFile::default() })
    }

    /// The list of the files that are there in part.
    pub(crate) fn stored_list(&self) -> Option<FileList> {
        FileList::parse(&fs::read(self.root.join(LIST)).ok()?).ok()
    }

    /// Makes the files of a list, in place of those of another one.
    pub(crate) fn begin(&mut self, list: &FileList) -> Result<()> {
        (self.record, self.open) = (None, OpenFile::default());
        let files = self.root.join(FILES);
        for path in [self.root.join(LIST), self.root.join(RECORD)] {
            remove(&path, |path| fs::remove_file(path))?;
        }
        remove(&files, |path| fs::remove_dir_all(path))?;
        let make = |path: &Path| fs::create_dir_all(path).map_err(Error::file(path));
        make(&files)?;
        for directory in list.empty_directories() {
            make(&files.join(directory))?;
        }
        for entry in list.files() {
            let path = files.join(&entry.path);
            if let Some(parent) = path.parent() {
                make(parent)?;
            }
            let mode = if entry.is_executable { 0o755 } else { 0o644 };
            let file = OpenOptions::new().create_new(true).write(true).mode(mode).open(&path);
            file.and_then(|file| file.set_len(entry.octets)).map_err(Error::file(&path))?;
        }
        let path = self.root.join(LIST);
        fs::write(&path, list.octets()).map_err(Error::file(&path))
    }

    /// The chunks that were recorded and have the recorded digests; what follows is recorded anew.
    pub(crate) fn resume(
        &mut self,
        list: &FileList,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<Option<ChunkDigest>>> {
        let mut found = vec![None; list.chunks() as usize];
        let path = self.root.join(RECORD);
        let recorded = match fs::read(&path) {
            Ok(recorded) => recorded,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::File { path, error }),
        };
        let mut octets_verified = 0;
        // An entry that was not written whole is the last one.
        for entry in recorded.chunks_exact(ENTRY) {
            let (index, digest) = entry.split_at(4);
            let index = u32::from_le_bytes(index.try_into().unwrap_or_default());
            let (Some(place), Some(digest)) = (found.get_mut(index as usize), ChunkDigest::from_slice(digest)) else {
                continue;
            };
            let is_there = self.read(list, index).is_ok_and(|octets| ChunkDigest::of(&octets) == digest);
            *place = is_there.then_some(digest);
            octets_verified += list.octets_of(index);
            progress(octets_verified);
        }
        let kept = (0..).zip(&found).filter_map(|(index, digest): (u32, _)| digest.map(|digest| (index, digest)));
        let kept: Vec<u8> = kept.flat_map(|(index, digest)| entry_of(index, digest)).collect();
        fs::write(&path, kept).map_err(Error::file(&path))?;
        Ok(found)
    }

    /// Writes a chunk, and then its record.
    pub(crate) fn write(&mut self, list: &FileList, chunk: u32, octets: &[u8], digest: ChunkDigest) -> Result<()> {
        for piece in list.pieces(chunk) {
            let part = &octets[piece.chunk_offset..][..piece.octets];
            let (file, path) = self.file(list, piece.file)?;
            file.write_all_at(part, piece.file_offset).map_err(Error::file(&path))?;
        }
        let path = self.root.join(RECORD);
        let record = match self.record.take() {
            Some(record) => record,
            None => OpenOptions::new().create(true).append(true).open(&path).map_err(Error::file(&path))?,
        };
        self.record.insert(record).write_all(&entry_of(chunk, digest).collect::<Vec<u8>>()).map_err(Error::file(&path))
    }

    /// All is there: the files become the target, at once.
    pub(crate) fn finish(mut self, list: &FileList) -> Result<()> {
        for index in 0..list.files().len() {
            let (file, path) = self.file(list, index)?;
            file.sync_all().map_err(Error::file(&path))?;
        }
        let files = self.root.join(FILES);
        let is_there = fs::symlink_metadata(&self.target).is_ok();
        if is_there && !self.replaces {
            return Err(Error::Exists(self.target.clone()));
        }
        let flags = if is_there { RenameFlags::RENAME_EXCHANGE } else { RenameFlags::RENAME_NOREPLACE };
        renameat2(AT_FDCWD, &files, AT_FDCWD, &self.target, flags)
            .map_err(|error| Error::File { path: self.target.clone(), error: error.into() })?;
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(Error::file(parent))?;
        // What was replaced, and the record.
        fs::remove_dir_all(&self.root).map_err(Error::file(&self.root))
    }

    fn read(&mut self, list: &FileList, chunk: u32) -> Result<Vec<u8>> {
        self.open.read_chunk(list, &self.root.join(FILES), chunk, reopen)
    }

    fn file(&mut self, list: &FileList, index: usize) -> Result<(&File, PathBuf)> {
        self.open.get(list, &self.root.join(FILES), index, reopen)
    }
}

/// Opens a file that was made before, and not a link that stands in its place.
fn reopen(_: usize, path: &Path) -> Result<File> {
    let no_link = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    OpenOptions::new().read(true).write(true).custom_flags(no_link).open(path).map_err(Error::file(path))
}

fn entry_of(index: u32, digest: ChunkDigest) -> impl Iterator<Item = u8> + use<> + Clone {
    index.to_le_bytes().into_iter().chain(digest.0)
}

fn remove(path: &Path, by: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    match by(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::File { path: path.to_owned(), error }),
        Ok(()) | Err(_) => Ok(()),
    }
}
