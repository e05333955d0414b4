//! `srdma lab shell`.

use super::arguments::Shell;
use super::instance;
use anyhow::{Context, Result};
use srdma_lab::{Lab, check_root};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

/// Runs a command in the namespace of a node, and ends as it does.
pub(super) fn run(shell: &Shell) -> Result<ExitCode> {
    check_root()?;
    let lab = Lab::open(instance(&shell.name)?)?;
    lab.node(&shell.node)?;
    let default = [std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())];
    let words = if shell.words.is_empty() { &default[..] } else { &shell.words };
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.instance().namespace(&shell.node)]).args(words);
    let status = command.status().context("cannot start ip")?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(code as u8))
}
