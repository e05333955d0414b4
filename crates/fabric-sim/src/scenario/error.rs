//! What is wrong with a scenario, and where.

use srdma_fabric::{FileError, Problem};
use std::io;
use std::path::{Path, PathBuf};

/// Why a scenario was refused.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A key or value is wrong.
    #[error("{}:{line}: {problem}", file.display())]
    Wrong {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was expected and what was found.
        problem: String,
    },
}

impl ScenarioError {
    /// The error for the file `text`, which was read from `file`.
    pub(crate) fn wrong(problem: Problem, file: &Path, text: &str) -> Self {
        let FileError { line, problem } = problem.in_text(text);
        ScenarioError::Wrong { file: file.to_owned(), line, problem }
    }
}
