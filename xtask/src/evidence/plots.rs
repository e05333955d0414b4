//! Plots of results, in docs/images.

use super::result::Stored;
use super::{methods, repair_sweep, values};
use anyhow::Result;

/// The folder of plots, and other pictures.
const IMAGES: &str = "docs/images";

/// A plot of a document.
pub(crate) struct Plot {
    /// Its file in the folder of images.
    pub(super) file: String,
    pub(crate) svg: String,
}

impl Plot {
    /// Its file in the repository.
    pub(crate) fn path(&self) -> String {
        format!("{IMAGES}/{}", self.file)
    }
}

/// The plots of a result; none if it has tables alone.
pub(crate) fn plots_of(name: &str, stored: &Stored) -> Result<Vec<Plot>> {
    match name {
        repair_sweep::NAME => repair_sweep::plots(&values(stored)),
        name if methods::SWEEPS.contains(&name) => methods::plots(name, &values(stored)),
        _ => Ok(Vec::new()),
    }
}
