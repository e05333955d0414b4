//! Scenario files: their kinds and their keys. `docs/scenarios.md` describes them.
//!
//! A wrong key, type or value ends the parsing, and the error names the line. A value of these types can be run.

mod error;
mod fabric;
mod failure;
mod jobs;
mod kind;
mod number;
mod reconvergence;
mod settings;
mod sweep;
mod variant;
mod workload;

pub use error::SelectionError;
pub use fabric::{FabricScenario, Level};
pub use failure::{Failure, FailureSection};
pub use kind::Kind;
pub(crate) use number::{FIRST_SEED, default_seeds};
pub use number::{Fraction, Whole};
pub use reconvergence::{Bfd, Reconvergence};
pub use settings::{Ecn, Hosts, Measures, Notification, Pfc, Switches};
pub use variant::{Control, DcqcnKeys, DcqcnPreset, HpccKeys, Paths, Signal, Variant};
pub use workload::{Background, Broadcast, FlowSizes, Incast, Multicast, Permutation, Stream, Workloads};

use crate::end_to_end::EndToEndScenario;
use crate::wan::WanScenario;
use srdma_toml_error::{FileError, Problem};
use std::path::Path;

/// A scenario file of any kind.
#[derive(Clone, Debug)]
pub enum Scenario {
    /// Of kind `fabric`, `flow-level` or `sweep`.
    Fabric(Box<FabricScenario>),
    /// Of kind `wan`.
    Wan(Box<WanScenario>),
    /// Of kind `end-to-end`.
    EndToEnd(Box<EndToEndScenario>),
}

impl Scenario {
    /// Reads and parses a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and those of [`Scenario::parse`].
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = srdma_toml_error::read(file)?;
        Self::parse(file, &text)
    }

    /// Parses the content of a file by its key `kind`; `file` is for errors.
    ///
    /// # Errors
    ///
    /// [`FileError::Wrong`] names the first line that is wrong, what was expected there and what was found.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        Self::resolve(file, text).map_err(|problem| problem.in_file(file, text))
    }

    fn resolve(file: &Path, text: &str) -> Result<Self, Problem> {
        Ok(match Kind::of_file(text)? {
            Kind::Fabric | Kind::FlowLevel => Scenario::Fabric(Box::new(FabricScenario::resolve(file, text)?)),
            Kind::Sweep => Scenario::Fabric(Box::new(FabricScenario::resolve_sweep(file, text)?)),
            Kind::Wan => Scenario::Wan(Box::new(WanScenario::resolve(text)?)),
            Kind::EndToEnd => Scenario::EndToEnd(Box::new(EndToEndScenario::resolve(text)?)),
        })
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Scenario::Fabric(scenario) => match scenario.level {
                Level::Packet if scenario.is_sweep => Kind::Sweep,
                Level::Packet => Kind::Fabric,
                Level::Flow => Kind::FlowLevel,
            },
            Scenario::Wan(_) => Kind::Wan,
            Scenario::EndToEnd(_) => Kind::EndToEnd,
        }
    }

    /// The first seed by default; the others follow it.
    pub fn first_seed(&self) -> u64 {
        match self {
            Scenario::Fabric(scenario) => scenario.first_seed,
            Scenario::Wan(_) | Scenario::EndToEnd(_) => FIRST_SEED,
        }
    }

    /// Number of seeds that each variant is run with by default.
    pub fn seeds(&self) -> u64 {
        match self {
            Scenario::Fabric(scenario) => scenario.seeds,
            Scenario::Wan(scenario) => scenario.seeds,
            Scenario::EndToEnd(scenario) => scenario.seeds,
        }
    }

    /// Keeps only the variants with these names; an empty list keeps all.
    ///
    /// # Errors
    ///
    /// A name that is not a variant's, and names where the kind has no variants.
    pub fn select_variants(&mut self, names: &[String]) -> Result<(), SelectionError> {
        match self {
            _ if names.is_empty() => Ok(()),
            Scenario::Fabric(scenario) => select(&mut scenario.variants, names, |variant| &variant.name),
            Scenario::Wan(scenario) => select(&mut scenario.variants, names, |variant| &variant.name),
            Scenario::EndToEnd(_) => Err(SelectionError::NoVariants(self.kind())),
        }
    }

    /// Chooses the level of simulation in place of that of the file.
    ///
    /// # Errors
    ///
    /// Something else than jobs is sent, and the level is that of flows; a kind that has no levels.
    pub fn set_level(&mut self, level: Level) -> Result<(), SelectionError> {
        match self {
            Scenario::Fabric(scenario) => scenario.set_level(level).map_err(SelectionError::Level),
            Scenario::Wan(_) | Scenario::EndToEnd(_) => Err(SelectionError::NoLevels(self.kind())),
        }
    }

    /// Sets whether steady states are skipped (D219).
    ///
    /// # Errors
    ///
    /// Something else than jobs at packet level, and failures; a kind without collectives.
    pub fn set_skip_steady(&mut self, skip_steady: bool) -> Result<(), SelectionError> {
        match self {
            Scenario::Fabric(scenario) => scenario.set_skip_steady(skip_steady).map_err(SelectionError::Steady),
            Scenario::Wan(_) | Scenario::EndToEnd(_) if !skip_steady => Ok(()),
            Scenario::Wan(_) | Scenario::EndToEnd(_) => {
                Err(SelectionError::Steady(format!("a scenario of kind {} has no collectives", self.kind())))
            }
        }
    }

    /// Sets how often rates are computed at flow level (D295): not before this share of the mean duration of transfers.
    ///
    /// # Errors
    ///
    /// Packet level, a share that is not from 0 to 1; a kind that has no levels.
    pub fn set_rate_interval(&mut self, share: f64) -> Result<(), SelectionError> {
        match self {
            Scenario::Fabric(scenario) => scenario.set_rate_interval(share).map_err(SelectionError::Rates),
            Scenario::Wan(_) | Scenario::EndToEnd(_) => Err(SelectionError::NoLevels(self.kind())),
        }
    }

    /// The error for a file that should be of another kind.
    pub(crate) fn unexpected(&self, file: &Path, text: &str, expected: &str) -> FileError {
        Problem::new(0, format!("kind {}: expected {expected}", self.kind())).in_file(file, text)
    }
}

fn select<T>(variants: &mut Vec<T>, names: &[String], name: impl Fn(&T) -> &String) -> Result<(), SelectionError> {
    let known: Vec<String> = variants.iter().map(|variant| name(variant).clone()).collect();
    if let Some(unknown) = names.iter().find(|asked| !known.contains(asked)) {
        return Err(SelectionError::UnknownVariant { name: unknown.clone(), known });
    }
    variants.retain(|variant| names.contains(name(variant)));
    Ok(())
}
