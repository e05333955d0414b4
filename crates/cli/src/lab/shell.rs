//! `srdma lab shell`.

use super::arguments::Shell;
use super::instance;
use crate::output;
use anyhow::{Context, Result};
use srdma_lab::guest::{Guest, Port};
use srdma_lab::topology::Kind;
use srdma_lab::{ControllerAccess, Lab, check_root};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Time without output after which a command in a guest fails.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs a command in a guest, or else in the namespace of a node, and ends as it does.
pub(super) fn run(shell: &Shell) -> Result<ExitCode> {
    check_root()?;
    let lab = Lab::open(instance(&shell.name)?)?;
    let node = lab.node(&shell.node)?;
    if lab.topology().nodes[node].kind == Kind::Guest {
        return in_guest(&Guest::at(&lab, node)?, &shell.words);
    }
    let default = [std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())];
    let words = if shell.words.is_empty() { &default[..] } else { &shell.words };
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.instance().namespace(&shell.node)]).args(words);
    // Environment of `srdma group` and others for the lab's controller.
    let access = ControllerAccess::of(lab.topology(), lab.instance());
    command.envs(access.iter().flat_map(ControllerAccess::environment));
    let status = command.status().context("cannot start ip")?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(code as u8))
}

/// Runs a command in a guest; each line of the standard input when none is given.
fn in_guest(guest: &Guest, words: &[String]) -> Result<ExitCode> {
    let mut shell = guest.shell(Port::Shell)?;
    if !words.is_empty() {
        output::print(&format!("{}\n", shell.run(&words.join(" "), PATIENCE)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in std::io::stdin().lines() {
        match shell.run(&line?, PATIENCE) {
            Ok(output) => output::print_line(&output)?,
            Err(error) => eprintln!("srdma: {error}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
