//! A file that is received.

use super::FileError;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file that is written while data come in, beside the place where it will be: it takes the name when the data are
/// complete, and is removed otherwise. A pipe or a device is written at once, in order.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// `None` for a pipe or a device.
    partial: Option<Partial>,
    /// The octet after the last one written in order.
    end: u64,
}

/// The name of a file that is not complete; it is removed with this value.
#[derive(Debug)]
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // After a renaming there is none.
        let _ = fs::remove_file(&self.0);
    }
}

impl OutputFile {
    /// Begins a file at `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let failed = |error: &std::io::Error| FileError::create(path, error);
        // A link stays a link: the file that it leads to is replaced.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let existing = fs::metadata(path).ok();
        if existing.as_ref().is_some_and(|metadata| metadata.is_dir()) {
            return Err(failed(&std::io::ErrorKind::IsADirectory.into()));
        }
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(|error| failed(&error))?;
            return Ok(OutputFile { file, path: path.clone(), partial: None, end: 0 });
        }
        let mut name = path.file_name().ok_or_else(|| failed(&std::io::ErrorKind::InvalidFilename.into()))?.to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let partial = path.with_file_name(name);
        // Read again where it has to be digested afterwards.
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&partial);
        let file = file.map_err(|error| failed(&error))?;
        let partial = Some(Partial(partial));
        if let Some(metadata) = existing {
            file.set_permissions(metadata.permissions()).map_err(|error| failed(&error))?;
        }
        Ok(OutputFile { file, path: path.clone(), partial, end: 0 })
    }

    /// Whether it can be written in any order, and read.
    pub(crate) fn is_regular(&self) -> bool {
        self.partial.is_some()
    }

    pub(crate) fn write(&mut self, offset: u64, octets: &[u8]) -> Result<(), FileError> {
        let written = if self.is_regular() {
            self.file.write_all_at(octets, offset)
        } else if offset == self.end {
            self.file.write_all(octets)
        } else {
            return Err(FileError::OutOfOrder { path: self.path.display().to_string(), offset, end: self.end });
        };
        self.end = offset + octets.len() as u64;
        written.map_err(|error| FileError::write(&self.path, offset, &error))
    }

    /// Copies what is at `offset` to `into`; zeros behind the end.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), FileError> {
        let mut filled = 0;
        while filled < into.len() {
            match self.file.read_at(&mut into[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::read(&self.path, offset + filled as u64, &error)),
            }
        }
        into[filled..].fill(0);
        Ok(())
    }

    /// The file is complete, with so many octets: it gets its name.
    ///
    /// # Errors
    ///
    /// If it does not get it.
    pub fn keep(self, octets: u64) -> Result<(), FileError> {
        let OutputFile { file, path, partial, .. } = self;
        let Some(partial) = partial else { return Ok(()) };
        let renamed = file.set_len(octets).and_then(|()| fs::rename(&partial.0, &path));
        renamed.map_err(|error| FileError::create(&path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_has_its_name_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let mut output = OutputFile::create(&path).unwrap();
        output.write(4, b"later").unwrap();
        output.write(0, b"soon").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before", "not complete yet");
        output.keep(9).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"soonlater");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(directory.path()), ["copy"]);
    }

    #[test]
    fn a_file_that_is_not_complete_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let mut output = OutputFile::create(&directory.path().join("copy")).unwrap();
        output.write(0, b"half").unwrap();
        assert_eq!(names(directory.path()).len(), 1);
        drop(output);
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn a_device_is_written_in_order_only() {
        let mut output = OutputFile::create(Path::new("/dev/null")).unwrap();
        output.write(0, b"some").unwrap();
        output.write(4, b"more").unwrap();
        let error = output.write(9, b"a gap").expect_err("out of order").to_string();
        assert!(error.starts_with("cannot write octet 9 to /dev/null after octet 8"), "{error}");
        output.keep(8).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let error = OutputFile::create(Path::new("/nowhere/copy")).expect_err("no directory").to_string();
        assert!(error.starts_with("cannot write /nowhere/copy: "), "{error}");
        let full = OutputFile::create(Path::new("/dev/full")).unwrap().write(0, b"octets");
        let error = full.expect_err("always full").to_string();
        assert!(error.contains("/dev/full at octet 0") && error.contains("make room there"), "{error}");
        assert!(OutputFile::create(Path::new("/tmp")).is_err());
    }
}
