//! Errors of files.

use crate::list::ListError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a directory cannot be sent, or put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{path}: {error}", path = .path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{path}: the name is not UTF-8", path = .0.display())]
    Name(PathBuf),
    #[error("{path}: neither a file nor a directory", path = .0.display())]
    Kind(PathBuf),
    #[error("{path}: a symbolic link to a directory; links to files are followed", path = .0.display())]
    LinkToDirectory(PathBuf),
    #[error("{path}: the file has changed while it was sent", path = .0.display())]
    Changed(PathBuf),
    #[error("the list of files: {0}")]
    List(#[from] ListError),
    #[error("{path} exists; give another directory, or replace it by --replace", path = .0.display())]
    Exists(PathBuf),
    #[error("{path} is no directory", path = .0.display())]
    NoDirectory(PathBuf),
    #[error("files are missing")]
    Incomplete,
    #[error("{path}: another process receives into it", path = .0.display())]
    Locked(PathBuf),
}

impl Error {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        |error| Error::File { path, error }
    }
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;
