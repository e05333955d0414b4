//! A job: commands, and the table of their results.

use anyhow::Result;
use serde_json::Value;

/// What a step starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// `srdma`, in the profile `release`.
    Srdma,
    /// `srdma` of the same profile in valgrind; its result is the number of instructions per frame.
    Callgrind,
    /// `srdma-model-check`, in the same.
    ModelCheck,
    /// An example of a package, in the same: the package, and the example.
    Example(&'static str, &'static str),
    /// `cargo fuzz` with a target; its result is the count of executions that libFuzzer prints.
    CargoFuzz(&'static str),
    /// `cargo` with a benchmark, an example or a test; its result are the figures that it reports.
    Cargo,
    /// `cargo xtask` with another chore.
    Xtask,
    /// `npm` with a script of the controller's page; its result is the count of executions that it prints.
    Page,
    /// `python3`, with `srdma` of the profile `release` in its path.
    Python,
}

/// A command whose result is kept.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) program: Program,
    /// Separated by spaces; those in quotation marks are one argument.
    pub(super) arguments: String,
    /// JSON pointers of the members that are kept; all, if there is none.
    pub(super) keep: &'static [&'static str],
    /// Paths below crates/ on which the result depends, with the crates that these use; all, if there is none. A result
    /// of these has the tree of its own run, and holds until one of them changes.
    pub(super) reaches: &'static [&'static str],
    /// How often it is run: a figure that a run reports with one value has one of each run.
    pub(super) runs: u32,
}

impl Step {
    pub(super) fn srdma(arguments: impl Into<String>, keep: &'static [&'static str]) -> Self {
        Step { program: Program::Srdma, arguments: arguments.into(), keep, reaches: &[], runs: 1 }
    }

    pub(super) fn example(package: &'static str, example: &'static str, arguments: impl Into<String>) -> Self {
        Step { program: Program::Example(package, example), ..Step::srdma(arguments, &[]) }
    }

    /// A benchmark, example or test that reports figures.
    pub(super) fn measured(arguments: impl Into<String>) -> Self {
        Step { program: Program::Cargo, ..Step::srdma(arguments, &[]) }
    }

    /// Whether its result has the tree of its own run.
    pub(super) fn is_part(&self) -> bool {
        !self.reaches.is_empty() || self.program == Program::Page
    }

    /// The arguments, each by itself.
    pub(super) fn arguments(&self) -> Vec<&str> {
        let parts = self.arguments.split('"').enumerate();
        parts
            .flat_map(|(at, part)| match at % 2 {
                0 => part.split(' ').filter(|argument| !argument.is_empty()).collect(),
                _ => vec![part],
            })
            .collect()
    }

    /// The command line as a reader types it.
    pub(super) fn command(&self) -> String {
        let program = match self.program {
            Program::Srdma => "srdma",
            Program::Callgrind => "valgrind --tool=callgrind srdma",
            Program::ModelCheck => "srdma-model-check",
            Program::Example(package, example) => &format!("cargo run --release -p {package} --example {example} --"),
            Program::CargoFuzz(_) => "cargo fuzz",
            Program::Cargo => "cargo",
            Program::Xtask => "cargo xtask",
            Program::Page => "npm --prefix page run",
            Program::Python => "python3",
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
    /// The table, from the results of the steps in order; of a job of parts, those that have not run are null.
    pub(super) table: fn(&[Value]) -> Result<String>,
}

impl Job {
    /// Whether each of its commands has a result by itself, with its own tree.
    pub(super) fn is_of_parts(&self) -> bool {
        self.steps.iter().any(Step::is_part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_in_quotation_marks_are_one() {
        let step = Step::srdma("bench dataplane --case \"End.MT x8 gathered\" --json", &[]);
        assert_eq!(step.arguments(), ["bench", "dataplane", "--case", "End.MT x8 gathered", "--json"]);
    }
}
