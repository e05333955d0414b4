//! From a topology file and the command line to a lab that is ready.

use super::arguments::{LinkArguments, Name, OfLink, SetUp, TransferArguments};
use crate::units::{count, grouped};
use anyhow::{Context, Result, bail};
use srdma_lab::topology::{Link, Transfer};
use srdma_lab::{Captured, Choices, Instance, Interrupt, Lab, Session, Source, Topology};
use std::time::Duration;

/// Builds a lab and starts everything in it. Hosts wait so long for a transfer.
pub(super) fn start(name: &Name, set_up: &SetUp, patience: Duration, interrupt: &Interrupt) -> Result<Session> {
    let (source, topology) = topology(&name.name, &set_up.links)?;
    let instance = Instance::new(&topology.name, name.instance.as_deref())?;
    let choices = choices(&topology, set_up, patience)?;
    let lab = Lab::create(&source, topology, instance)?;
    Ok(Session::start(lab, choices, interrupt, &mut say)?)
}

/// The topology, with the rates and losses of the command line.
pub(super) fn topology(name: &str, links: &LinkArguments) -> Result<(Source, Topology)> {
    let source = Source::find(name)?;
    let mut topology = source.topology()?;
    set(&mut topology, "--loss", &links.loss, |link, loss| link.loss = loss)?;
    set(&mut topology, "--rate", &links.rate, |link, rate| link.rate_bits_per_s = Some(rate))?;
    Ok((source, topology))
}

fn set<T: Copy>(topology: &mut Topology, option: &str, values: &[OfLink<T>], apply: fn(&mut Link, T)) -> Result<()> {
    for OfLink { link: name, value } in values {
        let is_meant = |link: &&mut Link| name.as_ref().is_none_or(|name| link.name == *name);
        let mut links = topology.links.iter_mut().filter(is_meant).peekable();
        if links.peek().is_some() {
            links.for_each(|link| apply(link, *value));
            continue;
        }
        let names: Vec<&str> = topology.links.iter().map(|link| link.name.as_str()).collect();
        bail!("{option}: there is no link {}: links are {}", name.as_deref().unwrap_or_default(), names.join(", "));
    }
    Ok(())
}

/// The transfer of the topology with the options of the command line.
pub(super) fn transfer(topology: &Topology, arguments: &TransferArguments) -> Transfer {
    let default = &topology.transfer;
    Transfer {
        size_octets: arguments.size.unwrap_or(default.size_octets),
        operation: arguments.op.map_or(default.operation, |name| name.operation()),
        lists: arguments.list.map_or(default.lists, |name| name.lists()),
        ..default.clone()
    }
}

/// The choices of the session.
pub(super) fn choices(topology: &Topology, set_up: &SetUp, patience: Duration) -> Result<Choices> {
    let transfer = transfer(topology, &set_up.transfer);
    let program = std::env::current_exe().context("cannot find this program itself")?;
    let driver = set_up.driver.in_node_toml();
    let guest_files = set_up.guest_files.clone();
    Ok(Choices { program, transfer: Some(transfer), driver, workers: set_up.workers, patience, guest_files })
}

/// Prints progress.
pub(super) fn say(text: &str) {
    eprintln!("{text}");
}

/// Number of packets in a capture.
pub(super) fn in_words(captured: Captured) -> String {
    match captured.missed {
        0 => format!("{} captured", count(captured.frames, "frame")),
        missed => {
            let frames = count(captured.frames, "frame");
            format!("{frames} captured; {} came faster than they could be written", grouped(missed))
        }
    }
}
