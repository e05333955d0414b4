//! The project's own chores. `cargo xtask ci` is exactly what the continuous integration runs; `tidy` checks what the
//! compiler and clippy do not; `conformance` writes the table of requirements from the ids found in code and tests.

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod book;
mod ci;
mod conformance;
mod deny;
mod evidence;
mod external;
mod ids;
mod labs;
mod manual;
mod markdown;
mod package;
mod page;
mod peers;
mod regions;
mod tidy;
mod tools;
mod tree;
mod wheel;

/// Chores of the srdma repository.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run the checks in order, each with its time, also after one that fails.
    Ci {
        /// Only the checks for every commit: few seeds, no documentation build, no release demo.
        #[arg(long)]
        fast: bool,
    },
    /// Run the tests that need root, in network namespaces of their own.
    Labs {
        /// Only those whose name contains this.
        #[arg(default_value = "")]
        filter: String,
    },
    /// Build the Debian packages below target/package: srdma.deb by cargo-deb, and those of libsrdma.
    Package,
    /// Build the Python package, target/wheels, by maturin.
    Wheel,
    /// Write the manual pages of libsrdma, crates/capi/man, from its header.
    Manual {
        /// Write nothing; fail if a page is not up to date.
        #[arg(long)]
        check: bool,
    },
    /// Build the controller's page, page/dist/index.html, by npm.
    Page {
        /// Change nothing; fail if the page is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Build the documents as a book, target/book/html, by mdbook.
    Book,
    /// Check licences, duplicates, sources and advisories of the dependencies, by cargo-deny.
    Deny {
        /// Skip the database of advisories, which is fetched.
        #[arg(long)]
        offline: bool,
    },
    /// Measure VPP, the kernel and htsim beside srdma, on the same work in the same run, and print the ratios.
    ///
    /// What is not installed is named with the commands that install it; the exit code is then 1.
    Peers(peers::Arguments),
    /// Run the commands behind tables of the documents, keep their results in docs/results, and write the tables.
    ///
    /// What exists for the present tree of crates/, the commands and the files that these name is kept, and a run that
    /// was stopped goes on where it was. The exit code is 1 if a command has failed.
    Evidence(evidence::Arguments),
    /// Check the house rules that the compiler does not check.
    Tidy,
    /// Write docs/conformance.md from the ids found in code and tests.
    Conformance {
        /// Write nothing; fail if the file is not up to date.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().chore) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one chore; `false` when it found and printed errors.
fn run(chore: Chore) -> Result<bool> {
    match chore {
        Chore::Ci { fast } => ci::run(if fast { ci::Tier::Fast } else { ci::Tier::Full }),
        Chore::Labs { filter } => Ok(labs::run(&filter)?.is_good()),
        Chore::Package => package::run(),
        Chore::Wheel => wheel::run(),
        Chore::Manual { check } => manual::run(check),
        Chore::Page { check } => page::run(check),
        Chore::Book => book::run(&tree::Tree::of_repository()?),
        Chore::Deny { offline } => deny::run(offline),
        Chore::Peers(arguments) => peers::run(&arguments),
        Chore::Evidence(arguments) => evidence::run(&arguments),
        Chore::Tidy => tidy::run(&tree::Tree::of_repository()?),
        Chore::Conformance { check } => conformance::run(&tree::Tree::of_repository()?, check),
    }
}
