//! A job: commands, and the table of their results.

use anyhow::Result;
use serde_json::Value;

/// What a step starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// `srdma`, in the profile `release`.
    Srdma,
    /// `srdma-model-check`, in the same.
    ModelCheck,
    /// `cargo fuzz`; its result is the count of executions that libFuzzer prints.
    CargoFuzz,
}

/// A command whose result is kept.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) program: Program,
    pub(super) arguments: String,
    /// JSON pointers of the members that are kept; all, if there is none.
    pub(super) keep: &'static [&'static str],
}

impl Step {
    pub(super) fn srdma(arguments: impl Into<String>, keep: &'static [&'static str]) -> Self {
        Step { program: Program::Srdma, arguments: arguments.into(), keep }
    }

    /// The command line as a reader types it.
    pub(super) fn command(&self) -> String {
        let program = match self.program {
            Program::Srdma => "srdma",
            Program::ModelCheck => "srdma-model-check",
            Program::CargoFuzz => "cargo fuzz",
        };
        format!("{program} {}", self.arguments)
    }
}

/// One result of docs/results.
pub(super) struct Job {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) is_quick: bool,
    pub(super) steps: Vec<Step>,
    /// The table, from the results of the steps in order.
    pub(super) table: fn(&[Value]) -> Result<String>,
}
