//! The file with which a buffer is filled (D214): clients name it, and get its octets, so that it is below a directory
//! whose files any of them may have.

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a regular file below a directory, with its length. No part of the path leads out of it, also by a link.
pub(super) fn open(directory: &Path, path: &str) -> io::Result<(File, u64)> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("source_path: {error}"));
    let path = Path::new(path);
    // As a client sees the directory: the same path in its container.
    let below = path.strip_prefix(directory).unwrap_or(path);
    if below.is_absolute() {
        return Err(named(io::Error::other(format!("it is not below {}", directory.display()))));
    }
    let root = File::open(directory).map_err(named)?;
    // A pipe without a writer is not waited for.
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let file = match openat2(&root, below, how) {
        Ok(file) => File::from(file),
        Err(Errno::EXDEV) => return Err(named(io::Error::other("it leads out of the directory"))),
        Err(error) => return Err(named(error.into())),
    };
    let found = file.metadata().map_err(named)?;
    if !found.is_file() {
        return Err(named(io::Error::other("it is not a file")));
    }
    Ok((file, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// D214.
    #[test]
    fn no_path_leads_out_of_the_directory() {
        let above = tempfile::tempdir().expect("a directory");
        let directory = above.path().join("models");
        fs::create_dir_all(directory.join("a")).expect("a directory");
        fs::write(above.path().join("secret"), "secret").expect("a file");
        fs::write(directory.join("a/b"), "octets").expect("a file");
        symlink("a/b", directory.join("inside")).expect("a link");
        symlink("../secret", directory.join("outside")).expect("a link");
        symlink(above.path().join("secret"), directory.join("absolute")).expect("a link");
        symlink(above.path(), directory.join("up")).expect("a link");
        let length = |path: &str| open(&directory, path).map(|(_, length)| length).map_err(|error| error.to_string());
        for good in ["a/b", "inside", "a/../a/b", directory.join("a/b").to_str().expect("UTF-8")] {
            assert_eq!(length(good), Ok(6), "{good}");
        }
        for bad in ["../secret", "a/../../secret", "outside", "absolute", "up/secret", "/etc/passwd", "/", ""] {
            assert!(length(bad).expect_err("refused").starts_with("source_path: "), "{bad}");
        }
        for bad in [".", "a", "none", "/dev/null", "a\0b"] {
            assert!(length(bad).is_err(), "{bad}");
        }
        assert_eq!(open(&directory, "none").expect_err("missing").kind(), io::ErrorKind::NotFound);
    }
}
