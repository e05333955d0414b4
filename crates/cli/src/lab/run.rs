//! `srdma lab run`.

use super::arguments::{ComparisonName, Run};
use super::set_up::{choices, in_words, say, topology};
use crate::output;
use anyhow::{Result, bail};
use srdma_lab::topology::Kind;
use srdma_lab::{Capture, Instance, Interrupt, Lab, LabError, Outcome, Session, Topology};
use std::process::ExitCode;
use std::time::Duration;

/// Builds a lab, transfers through it, prints the result and takes the lab down. Exit code 1: not all is right.
pub(super) fn run(arguments: &Run) -> Result<ExitCode> {
    let (source, topology) = topology(&arguments.name.name, &arguments.set_up.links)?;
    let instance = Instance::new(&topology.name, arguments.name.instance.as_deref())?;
    if !topology.has_transfer() {
        return Err(LabError::NoGroup(topology.name).into());
    }
    if arguments.compare.is_some()
        && let Some(host) = topology.nodes.iter().find(|node| node.kind == Kind::Endpoint)
    {
        bail!(
            "--compare needs RDMA guests, and {} of lab {} has the software endpoint: take a lab of guests, such as \
             figure1-rxe",
            host.name,
            topology.name
        );
    }
    let interrupt = Interrupt::listen()?;
    let lab = match Lab::create(&source, topology.clone(), instance.clone()) {
        // The lab of another process, which takes it down itself.
        Err(error @ (LabError::IsUp(_) | LabError::NotRoot)) => return Err(error.into()),
        other => other,
    };
    let result = lab.map_err(anyhow::Error::from).and_then(|lab| transfer(arguments, lab, &topology, &interrupt));
    if arguments.keep {
        eprintln!("lab {0} stays up; `srdma lab down {0}` takes it down", instance.name());
    } else {
        let taken_down = Lab::down(&instance, Some(&topology));
        if result.is_ok() {
            taken_down?;
        } else if let Err(error) = taken_down {
            // The error of the run is reported.
            eprintln!("srdma: {error}");
        }
    }
    let outcome = result?;
    if arguments.json {
        output::print_json(&outcome)?;
    } else {
        output::print(&super::text::Text(&outcome).to_string())?;
    }
    Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn transfer(arguments: &Run, lab: Lab, topology: &Topology, interrupt: &Interrupt) -> Result<Outcome> {
    let patience = Duration::from_secs(topology.transfer.timeout_s);
    let choices = choices(topology, &arguments.set_up, patience)?;
    let mut session = Session::start(lab, choices, interrupt, &mut say)?;
    let capture = match &arguments.pcap {
        Some(directory) => Some(Capture::start(session.lab().instance(), topology, directory)?),
        None => None,
    };
    let outcome = session.transfer(arguments.restart.as_deref(), interrupt, &mut say);
    let captured = capture.map(Capture::finish).transpose()?;
    let mut outcome = outcome?;
    if let Some(captured) = captured {
        say(&in_words(captured));
    }
    if let (Some(ComparisonName::Unicast), true) = (arguments.compare, outcome.is_good()) {
        say("the same by unicast");
        outcome.unicast = Some(session.unicast(interrupt)?);
    }
    Ok(outcome)
}
