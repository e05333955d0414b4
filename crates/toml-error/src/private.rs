//! Files that hold secrets: no other user may read or change them (D108).

use crate::FileError;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Bits of a mode that let the group, and others, read or write.
const GROUP: u32 = 0o060;
const OTHERS: u32 = 0o006;

/// The users who may read or write a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exposure {
    Owner,
    /// The owner, and a group that root has chosen may read.
    RootsGroup,
    /// Other users as well.
    Others,
}

/// Checks that a file which holds a secret is its owner's alone. Root may let a group read it. What its directories
/// keep others from is private.
///
/// # Errors
///
/// If other users may read or write it.
pub fn check_private(file: &Path) -> Result<(), FileError> {
    let unreadable = |error| FileError::Unreadable { file: file.to_owned(), error };
    let found = fs::metadata(file).map_err(unreadable)?;
    // Pipes and terminals have no reader but this process.
    if !found.is_file() {
        return Ok(());
    }
    let path = file.canonicalize().map_err(unreadable)?;
    let mut exposure = of_file(&found);
    for directory in path.ancestors().skip(1) {
        exposure = behind(exposure, &fs::metadata(directory).map_err(unreadable)?);
    }
    match exposure {
        Exposure::Owner | Exposure::RootsGroup => Ok(()),
        Exposure::Others => Err(FileError::Exposed { file: file.to_owned(), mode: found.mode() & 0o7777 }),
    }
}

fn of_file(file: &Metadata) -> Exposure {
    match (file.mode() & OTHERS, file.mode() & GROUP) {
        (0, 0) => Exposure::Owner,
        (0, 0o040) if file.uid() == 0 => Exposure::RootsGroup,
        _ => Exposure::Others,
    }
}

/// The exposure of a file in a directory.
fn behind(exposure: Exposure, directory: &Metadata) -> Exposure {
    match (exposure, directory.mode() & 0o011) {
        (_, 0) => Exposure::Owner,
        // The directory's group can reach the file, and no other user.
        (Exposure::Others, 0o010) if directory.uid() == 0 => Exposure::RootsGroup,
        (exposure, _) => exposure,
    }
}

/// Reads a text that is a secret, such as a bearer token.
///
/// # Errors
///
/// If it cannot be read, and those of [`check_private`].
pub fn read_private(file: &Path) -> Result<String, FileError> {
    check_private(file)?;
    crate::read(file)
}

/// Creates a file that its owner alone can read.
///
/// # Errors
///
/// If it exists, or cannot be created.
pub fn create_private(file: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(file)
}

/// Writes a file that its owner alone can read, in place of one that there may be.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut opened = options.write(true).create(true).truncate(true).mode(0o600).open(file)?;
    // One that was there keeps its mode.
    opened.set_permissions(Permissions::from_mode(0o600))?;
    opened.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
    }

    /// The modes of a file in an open folder that are permitted to it.
    #[test]
    fn a_secret_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        set_mode(folder.path(), 0o755);
        let file = folder.path().join("token");
        create_private(&file).expect("created");
        set_mode(&file, 0o666);
        write_private(&file, "text").expect("written");
        assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, 0o600);
        let is_roots = fs::metadata(&file).expect("there").uid() == 0;
        for (mode, expected) in [
            (0o600, true),
            (0o400, true),
            (0o700, true),
            (0o640, is_roots),
            (0o660, false),
            (0o644, false),
            (0o604, false),
            (0o602, false),
            (0o666, false),
        ] {
            set_mode(&file, mode);
            assert_eq!(check_private(&file).is_ok(), expected, "{mode:o}");
        }
        let error = read_private(&file).expect_err("open to all").to_string();
        assert!(
            error.ends_with("token: holds a secret, and other users may read or write it (mode 666): chmod 600"),
            "{error}"
        );
        // Nothing in a folder that others cannot enter is exposed.
        set_mode(folder.path(), 0o700);
        assert!(check_private(&file).is_ok());
        set_mode(folder.path(), 0o750);
        assert_eq!(check_private(&file).is_ok(), is_roots);
    }
}
