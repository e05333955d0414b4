//! `srdma lab`: networks in namespaces of this machine.

mod arguments;
mod export;
mod run;
mod set_up;
mod shell;
mod status;
mod text;

pub(crate) use arguments::Arguments;

use anyhow::{Context, Result};
use arguments::{Command, Name};
use srdma_lab::rootless::{self, Missing};
use srdma_lab::{Capture, ControllerAccess, Instance, Interrupt, Lab, Source, check_root};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs a command of the lab. Exit code 1: the operation failed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match carry_out(&arguments.command) {
        Err(error) if is_failure(&error) => {
            eprintln!("srdma: {error:#}");
            Ok(ExitCode::FAILURE)
        }
        result => result,
    }
}

/// Without root the commands that need a lab are carried out in namespaces of the user.
fn carry_out(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Up(up) => in_namespaces(Missing::Start, || bring_up(up)),
        Command::Run(arguments) => in_namespaces(Missing::Start, || run::run(arguments)),
        Command::Down(name) => in_namespaces(Missing::GoOn, || take_down(name)),
        Command::Capture(arguments) => in_namespaces(Missing::GoOn, || capture(arguments)),
        Command::Status(status) => in_namespaces(Missing::GoOn, || status::run(status)),
        Command::Shell(shell) => in_namespaces(Missing::GoOn, || shell::run(shell)),
        Command::Export(arguments) => export::run(arguments),
        Command::Keep => Ok(rootless::keep().map(|()| ExitCode::SUCCESS)?),
    }
}

fn in_namespaces(missing: Missing, action: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program itself")?;
    let keeper = rootless::enter(&program, missing)?;
    let result = action();
    if let Some(keeper) = keeper {
        keeper.end_if_idle()?;
    }
    result
}

/// Whether something went wrong while the lab was built or ran, rather than with what was asked for.
fn is_failure(error: &anyhow::Error) -> bool {
    use srdma_lab::LabError as E;
    match error.downcast_ref::<E>() {
        Some(
            E::NotRoot
            | E::Rootless(_)
            | E::Unknown { .. }
            | E::Topology(_)
            | E::Instance(_)
            | E::IsUp(_)
            | E::IsDown(_),
        ) => false,
        Some(E::UnknownNode { .. } | E::NoGroup(_) | E::Group(_) | E::Export(_)) => false,
        Some(
            E::Start { .. }
            | E::Command { .. }
            | E::Late { .. }
            | E::Ended { .. }
            | E::File { .. }
            | E::System { .. }
            | E::Unexpected { .. }
            | E::Controller(_)
            | E::Interrupted,
        ) => true,
        None => false,
    }
}

fn bring_up(up: &arguments::Up) -> Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let session = set_up::start(&up.name, &up.set_up, DAY, &interrupt)?;
    let lab = session.lab();
    eprintln!("lab {} is up; logs are in {}", lab.instance().name(), lab.instance().directory().join("log").display());
    if let (Some(plan), Some(access)) =
        (&lab.topology().controller, ControllerAccess::of(lab.topology(), lab.instance()))
    {
        let node = &lab.topology().nodes[plan.node].name;
        eprintln!("{}", status::controller(node, &access));
        let name = &up.name.name;
        let instance = up.name.instance.iter().map(|suffix| format!(" --instance {suffix}")).collect::<String>();
        eprintln!("to ask it: srdma lab shell {name}{instance} {node} -- srdma group list");
    }
    Ok(ExitCode::SUCCESS)
}

/// Time that hosts of a running lab wait for a transfer.
const DAY: Duration = Duration::from_secs(24 * 3600);

fn capture(arguments: &arguments::Capture) -> Result<ExitCode> {
    check_root()?;
    let lab = Lab::open(instance(&arguments.name)?)?;
    let interrupt = Interrupt::listen()?;
    let capture = Capture::start(lab.instance(), lab.topology(), &arguments.directory)?;
    eprintln!("capturing {} links to {} until Ctrl-C", lab.topology().links.len(), arguments.directory.display());
    // An interrupt is how this ends.
    while interrupt.sleep(Duration::from_secs(3600)).is_ok() {}
    let captured = capture.finish()?;
    eprintln!("{}", set_up::in_words(captured));
    Ok(ExitCode::SUCCESS)
}

fn take_down(name: &Name) -> Result<ExitCode> {
    let topology = Source::find(&name.name).ok().map(|source| source.topology()).transpose()?;
    let instance = instance(name)?;
    let was_there = Lab::down(&instance, topology.as_ref())?;
    eprintln!("lab {} is {}", instance.name(), if was_there { "down" } else { "not up" });
    Ok(ExitCode::SUCCESS)
}

/// The instance that is meant: that of a lab by its name or by its file.
fn instance(name: &Name) -> Result<Instance> {
    let path = Path::new(&name.name);
    let lab = path.file_stem().map_or(name.name.as_str().into(), |stem| stem.to_string_lossy());
    Ok(Instance::new(&lab, name.instance.as_deref())?)
}
