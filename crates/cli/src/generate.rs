//! `srdma generate`: man pages and shell completions, for packages and for installations by cargo.

use crate::output;
use anyhow::{Context, Result};
use clap::Subcommand;
use clap_complete::Shell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write man pages or shell completions.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Write a man page for each command into a directory, which is created if it does not exist.
    Man {
        /// The directory.
        directory: PathBuf,
    },
    /// Print a shell's completions.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

const EXAMPLES: &str = "Examples:
  srdma generate man ~/.local/share/man/man1
  srdma generate completions bash > ~/.local/share/bash-completion/completions/srdma
  srdma generate completions zsh > ~/.zfunc/_srdma";

/// Runs the command, for the command line as a whole.
///
/// # Errors
///
/// If something cannot be written.
pub(crate) fn run(arguments: &Arguments, mut whole: clap::Command) -> Result<ExitCode> {
    match &arguments.what {
        What::Man { directory } => {
            fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
            whole.build();
            write_pages(&whole, directory)?;
        }
        What::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut whole, "srdma", &mut script);
            output::print(&String::from_utf8(script)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of a command, then those of the commands below it.
fn write_pages(command: &clap::Command, directory: &Path) -> Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let path = directory.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    command
        .get_subcommands()
        .filter(|below| below.get_name() != "help")
        .try_for_each(|below| write_pages(below, directory))
}
