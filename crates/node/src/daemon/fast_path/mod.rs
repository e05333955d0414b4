//! The fast path of a node's ports: maps and programs follow the node's tables and drivers (D235).
//!
//! ```text
//! tables, ports ─→ plan of the element ─→ entries ─→ maps          shared by all ports
//!       drivers ─→ which ports are open ──────────→ programs       one at each open port
//! ```
//!
//! Entries change one by one, so that packets are forwarded by the entries before or those after a change, and never
//! dropped for it.

mod entries;

pub use entries::{fast_path_entries, fast_path_port};

use super::interest::Wanted;
use super::port::Port;
use super::snapshot::{FastPathSnapshot, Snapshot};
use crate::process::TrafficReport;
use entries::MAX_PLANNED;
use srdma_dataplane::{FastPath as Plan, Node};
use srdma_frame::PortId;
use srdma_io::fast_path::{Counted, MAX_PORTS, Maps, Port as Program};
use srdma_io::{DriverKind, interface_index, takes_redirected_frames};
use srdma_wire::Prefix;
use std::collections::BTreeSet;
use std::io;

/// The fast path of a node.
#[derive(Debug, Default)]
pub(super) struct FastPath {
    ports: Vec<FastPort>,
    /// Made when the first port is open.
    maps: Option<Maps>,
    /// The generation of the node's tables that the maps hold; `None`: a port has changed as well.
    generation: Option<u64>,
    /// Whether there is any port that may be open.
    is_wanted: bool,
    /// The kernel has refused a change: the element does everything from then on.
    failure: Option<String>,
}

/// A port, seen from the fast path.
#[derive(Debug, Default)]
struct FastPort {
    /// The interface of its driver, if frames are to be forwarded there.
    interface: Option<u32>,
    /// Whether the interface takes frames that are redirected to it, as it was asked last.
    target: Option<Result<bool, String>>,
    /// What runs there.
    program: Option<Program>,
    /// Why nothing does.
    reason: Option<String>,
}

impl FastPath {
    /// A port has got a driver of this interface. `None`: the configuration does not want the fast path there.
    pub(super) fn attached(&mut self, id: PortId, interface: Option<&str>) {
        // An interface that is gone again has no index, and its driver will be lost.
        let interface_index = interface.and_then(|interface| interface_index(interface).ok());
        if self.ports.len() <= id.index() {
            self.ports.resize_with(id.index() + 1, FastPort::default);
        }
        let target = interface_index.map(ask);
        self.ports[id.index()] = FastPort { interface: interface_index, target, ..FastPort::default() };
        self.is_wanted |= interface.is_some();
        self.generation = None;
    }

    /// A port has lost its driver, and its program with it.
    pub(super) fn detached(&mut self, id: PortId) {
        if let Some(port) = self.ports.get_mut(id.index()) {
            *port = FastPort::default();
            self.generation = None;
        }
    }

    /// Asks again which interfaces take redirected frames: the other end of a veth may have changed.
    pub(super) fn check_targets(&mut self) {
        for port in &mut self.ports {
            let target = port.interface.map(ask);
            if target != port.target {
                port.target = target;
                self.generation = None;
            }
        }
    }

    /// The node takes other packets off its interfaces.
    pub(super) fn interest_changed(&mut self) {
        self.generation = None;
    }

    /// Brings maps and programs up to date, if anything has changed.
    pub(super) fn follow(&mut self, node: &Node, ports: &mut [Port], interest: &Wanted) {
        if !self.is_wanted || self.generation == Some(node.generation()) {
            return;
        }
        self.generation = Some(node.generation());
        if self.failure.is_none()
            && let Err(error) = self.bring_up_to_date(node, ports, interest)
        {
            self.failure = Some(format!("the kernel refuses it: {error}"));
        }
        if let Some(failure) = &self.failure {
            for (fast, port) in self.ports.iter_mut().zip(ports) {
                stop(fast, port, failure.clone());
            }
        }
    }

    fn bring_up_to_date(&mut self, node: &Node, ports: &mut [Port], interest: &Wanted) -> io::Result<()> {
        let obstacles: Vec<Option<String>> = self
            .ports
            .iter()
            .zip(&*ports)
            .enumerate()
            .map(|(index, (fast, port))| obstacle(index, fast, port))
            .collect();
        // Packets wait while the plan is made.
        let too_many = node.prefix_count() > MAX_PLANNED;
        let plan = match too_many {
            true => Plan::default(),
            false => node.fast_path(|id| obstacles.get(id.index()).is_some_and(Option::is_none)),
        };
        let reason = |index: usize| {
            let of_plan = || plan.obstacle.or(plan.ports.get(index).copied().flatten()).map(|text| text.to_string());
            let of_tables = || too_many.then(|| format!("more than {MAX_PLANNED} prefixes"));
            obstacles[index].clone().or_else(of_tables).or_else(of_plan)
        };
        let reasons: Vec<Option<String>> = (0..self.ports.len().min(ports.len())).map(reason).collect();
        // Ports that are no longer open first: their checks are in effect when this returns.
        for ((fast, port), reason) in self.ports.iter_mut().zip(&mut *ports).zip(&reasons) {
            if let Some(reason) = reason {
                stop(fast, port, reason.clone());
            }
        }
        if self.maps.is_none() && reasons.iter().all(Option::is_some) {
            return Ok(());
        }
        let maps = match &mut self.maps {
            Some(maps) => maps,
            none => none.insert(Maps::new()?),
        };
        fill(maps, node, &plan, (&self.ports, interest))?;
        let maps = &*maps;
        for (index, ((fast, port), reason)) in self.ports.iter_mut().zip(&mut *ports).zip(&reasons).enumerate() {
            let (None, Some(config), Some(driver)) = (reason, node.config().ports.get(index), &mut port.driver) else {
                continue;
            };
            let program = entries::fast_path_port(&plan, PortId(index as u16), config.mac);
            if fast.program.as_ref() != Some(&program) {
                driver.set_fast_path(Some((maps, &program)))?;
                fast.program = Some(program);
            }
            fast.reason = None;
        }
        Ok(())
    }

    /// Adds what was forwarded without the element to a snapshot of the node.
    pub(super) fn show(&self, snapshot: &mut Snapshot) {
        if !self.is_wanted {
            return;
        }
        let Some(maps) = &self.maps else {
            let of_ports = snapshot.ports.iter_mut().zip(&self.ports);
            of_ports.for_each(|(shown, port)| shown.fast_path = shown_of(port, Counted::default(), Counted::default()));
            return;
        };
        for ((number, shown), port) in (0..MAX_PORTS).zip(&mut snapshot.ports).zip(&self.ports) {
            // A counter that cannot be read is shown as if nothing had been forwarded.
            let (received, sent) = (maps.received(number).unwrap_or_default(), maps.sent(number).unwrap_or_default());
            shown.fast_path = shown_of(port, received, sent);
            add(&mut shown.received, received);
            add(&mut shown.enqueued, sent);
            add(&mut shown.sent, sent);
        }
        for sid in &mut snapshot.sids {
            if let Ok(prefix) = sid.sid.parse::<Prefix>() {
                add(&mut sid.processed, maps.processed(prefix).unwrap_or_default());
            }
        }
    }
}

/// Whether an interface takes frames that are redirected to it.
fn ask(interface_index: u32) -> Result<bool, String> {
    takes_redirected_frames(interface_index).map_err(|error| error.to_string())
}

/// Why a port takes no part, whatever the tables are.
fn obstacle(index: usize, fast: &FastPort, port: &Port) -> Option<String> {
    let Some(driver) = port.driver.as_ref().map(|driver| driver.kind()) else {
        return Some("no driver".to_owned());
    };
    let target = match (fast.interface, &fast.target) {
        (Some(_), Some(target)) => target,
        _ => return Some("off in the configuration".to_owned()),
    };
    if driver != DriverKind::XdpNative {
        return Some(format!("driver {driver}"));
    }
    if index >= MAX_PORTS.into() {
        return Some(format!("more than {MAX_PORTS} ports"));
    }
    match target {
        Ok(true) => None,
        Ok(false) => Some("the interface takes no redirected frames; the peer of a veth needs GRO or XDP".to_owned()),
        Err(error) => Some(format!("whether the interface takes redirected frames is not known: {error}")),
    }
}

/// Ends the program of a port.
fn stop(fast: &mut FastPort, port: &mut Port, reason: String) {
    fast.reason = Some(reason);
    if fast.program.take().is_some()
        && let Some(driver) = &mut port.driver
    {
        // The program without it is there already. The kernel refuses that only for an interface that is gone.
        let _ = driver.set_fast_path(None);
    }
}

/// Makes the maps hold the plan.
fn fill(maps: &mut Maps, node: &Node, plan: &Plan, (ports, interest): (&[FastPort], &Wanted)) -> io::Result<()> {
    let sids: BTreeSet<Prefix> = node.sid_counters().map(|(sid, _)| sid).collect();
    for (number, port) in (0..MAX_PORTS).zip(ports) {
        if port.interface.is_some() {
            maps.set_interface(number, port.interface)?;
        }
    }
    maps.set_entries(&fast_path_entries(plan), &sids, interest.prefixes())?;
    for (number, port) in (0..MAX_PORTS).zip(ports) {
        if port.interface.is_none() {
            maps.set_interface(number, None)?;
        }
    }
    Ok(())
}

fn shown_of(port: &FastPort, received: Counted, sent: Counted) -> Option<FastPathSnapshot> {
    let traffic = |counted: Counted| TrafficReport { frames: counted.frames, octets: counted.octets };
    let reason = port.program.is_none().then(|| port.reason.clone().unwrap_or_default());
    Some(FastPathSnapshot { is_on: port.program.is_some(), reason, received: traffic(received), sent: traffic(sent) })
}

fn add(to: &mut TrafficReport, counted: Counted) {
    to.frames += counted.frames;
    to.octets += counted.octets;
}

#[cfg(test)]
mod tests;
