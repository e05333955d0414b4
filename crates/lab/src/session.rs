//! A lab with everything in it running, and transfers through it.
//!
//! ```text
//!   namespaces, links ─→ receivers ─→ their reported properties ─→ the group ─→ nodes ─→ the source
//! ```
//!
//! A group that the lab's controller creates is made when data are transferred: see `controlled`.
//!
//! A lab without a group has pairs that transfer by unicast, all at once. Each has one receiver, and its source gets
//! the receiver's reported properties.

mod controlled;

use crate::controller::{self, ControllerAccess, CreatedGroup};
use crate::error::{LabError, Result};
use crate::group::{self, Member};
use crate::guest::{self, Image, Unicast};
use crate::host::{self, Host, HostOutcome, Role, Terms};
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::node_file::{self, NodeChoices};
use crate::outcome::{ControlledOutcome, LinkOutcome, NodeOutcome, Outcome, PairOutcome, ReceiverOutcome};
use crate::plan::Plan;
use crate::process::Process;
use crate::topology::{Kind, Transfer};
use srdma_group::Group;
use srdma_node::daemon::{Snapshot, StatusError, read_status};
use srdma_node_spec::file::DriverName;
use srdma_toml_error::write_private;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time for a node to become ready.
const NODE_PATIENCE: Duration = Duration::from_secs(60);

/// Interval of checks for the end of the transfer.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Interval of checks for the progress, which cost more.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Time limit of receivers after the source: when it has finished they have the data, but they have to hash them.
const RECEIVER_PATIENCE: Duration = Duration::from_secs(60);

/// Time to wait for a new state of a node.
const STATUS_PATIENCE: Duration = Duration::from_secs(15);

/// Fraction of the data that has been sent when a node is restarted.
const RESTART_AT: f64 = 0.3;

/// Choices for a session.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The program `srdma`.
    pub program: PathBuf,
    /// The transfer; by default that of the topology.
    pub transfer: Option<Transfer>,
    /// The driver of all ports of all nodes.
    pub driver: DriverName,
    /// Data threads of each node; their own number if not given.
    pub workers: Option<u16>,
    /// Time that hosts wait for each other.
    pub patience: Duration,
    /// A directory whose files guests have in their root directory.
    pub guest_files: Option<PathBuf>,
}

/// A lab that is up, with its nodes and hosts.
pub struct Session {
    lab: Lab,
    choices: Choices,
    transfer: Transfer,
    /// The hosts of each transfer.
    parts: Vec<Parts>,
    /// The group that the lab's controller has created.
    created: Option<CreatedGroup>,
}

/// The hosts of a transfer.
struct Parts {
    /// `None` when the source sends to its one receiver by unicast.
    group: Option<Group>,
    terms: Terms,
    /// Reported properties of the source.
    own: Option<Member>,
    source: Box<dyn Host>,
    receivers: Vec<Receiver>,
}

struct Receiver {
    /// Position among the lab's nodes.
    node: usize,
    host: Box<dyn Host>,
    /// Its reported properties.
    member: Option<Member>,
}

impl Session {
    /// Starts everything in a lab whose namespaces exist, in order, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If something does not become ready in time; the error has the last lines of its log.
    pub fn start(lab: Lab, choices: Choices, interrupt: &Interrupt, say: &mut dyn FnMut(&str)) -> Result<Self> {
        let transfer = choices.transfer.clone().unwrap_or_else(|| lab.topology().transfer.clone());
        let mut session = Session { lab, choices, transfer, parts: Vec::new(), created: None };
        controller::start(&mut session.lab, &session.choices.program, interrupt)?;
        session.start_hosts(interrupt, say)?;
        session.start_nodes(interrupt)?;
        Ok(session)
    }

    /// The lab.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    fn start_hosts(&mut self, interrupt: &Interrupt, say: &mut dyn FnMut(&str)) -> Result<()> {
        let topology = self.lab.topology();
        let plans = Plan::all(topology)?;
        if plans.is_empty() {
            return Ok(());
        }
        let has_guests = topology.nodes.iter().any(|node| node.kind == Kind::Guest);
        let mut image = has_guests.then(|| Image::provide(say)).transpose()?;
        if let (Some(own), Some(files)) = (&image, &self.choices.guest_files) {
            image = Some(own.with_files(files, self.lab.instance().directory().join("initrd"))?);
        }
        let mut parts =
            plans.into_iter().map(|plan| self.start_parts(plan, image.clone())).collect::<Result<Vec<_>>>()?;
        say("waiting for the hosts");
        parts.iter_mut().try_for_each(|parts| self.wait_for(parts, interrupt))?;
        self.parts = parts;
        Ok(())
    }

    /// Starts the hosts of a transfer.
    fn start_parts(&mut self, plan: Plan, image: Option<Image>) -> Result<Parts> {
        let (program, patience) = (self.choices.program.clone(), self.choices.patience);
        let terms = Terms { image, ..plan.terms(self.lab.topology(), program, self.transfer.clone(), patience) };
        let host = |node: usize, role| {
            let name = &self.lab.topology().nodes[node].name;
            host::at(&self.lab, node, role).ok_or_else(|| LabError::Group(format!("{name} cannot take part in it")))
        };
        let mut source = host(plan.source, Role::Source)?;
        let receivers = plan
            .receivers
            .into_iter()
            .map(|(rank, node)| Ok(Receiver { node, host: host(node, Role::Receiver(rank))?, member: None }));
        let mut receivers = receivers.collect::<Result<Vec<_>>>()?;
        if self.is_early(plan.source) {
            source.start(&mut self.lab, &terms)?;
        }
        for receiver in &mut receivers {
            if self.is_early(receiver.node) {
                receiver.host.start(&mut self.lab, &terms)?;
            }
        }
        Ok(Parts { group: None, terms, own: None, source, receivers })
    }

    /// Waits until the hosts of a transfer are there, and builds the group from the properties that they report.
    fn wait_for(&self, parts: &mut Parts, interrupt: &Interrupt) -> Result<()> {
        if self.is_early(parts.terms.source) {
            parts.own = Some(parts.source.member(interrupt)?);
        }
        for receiver in &mut parts.receivers {
            if self.is_early(receiver.node) {
                receiver.member = Some(receiver.host.member(interrupt)?);
            }
        }
        let topology = self.lab.topology();
        if let (Some(plan), Some(own)) = (&topology.group, parts.own) {
            let members: Vec<Member> = parts.receivers.iter().filter_map(|receiver| receiver.member).collect();
            parts.group = Some(group::group(topology, plan, &parts.terms.transfer, own.qpn, &members)?);
        }
        Ok(())
    }

    fn start_nodes(&mut self, interrupt: &Interrupt) -> Result<()> {
        let nodes: Vec<usize> = self.nodes().collect();
        let processes = nodes.iter().map(|node| self.start_node(*node, false)).collect::<Result<Vec<_>>>()?;
        processes.iter().try_for_each(|process| wait_until_ready(process, 1, interrupt))?;
        controller::wait_for_registrations(&self.lab, &nodes, interrupt)
    }

    /// The positions of the nodes that run `srdma node`.
    fn nodes(&self) -> impl Iterator<Item = usize> {
        let nodes = self.lab.topology().nodes.iter().enumerate();
        nodes.filter(|(_, node)| matches!(node.kind, Kind::Srdma { .. })).map(|(position, _)| position)
    }

    fn start_node(&mut self, node: usize, restarted: bool) -> Result<Process> {
        let topology = self.lab.topology();
        let name = topology.nodes[node].name.clone();
        let group = self.parts.first().and_then(|parts| parts.group.as_ref());
        let controller = ControllerAccess::of(topology, self.lab.instance());
        let Choices { driver, workers, .. } = self.choices;
        let choices = NodeChoices { driver, shaped_driver: None, workers, restarted, controller };
        let text = node_file::text(topology, group, node, &self.lab.instance().socket(&name), &choices)?;
        let path = self.lab.instance().configuration(&name);
        write_private(&path, &text).map_err(LabError::file("write", &path))?;
        let words = [self.choices.program.as_path(), "node".as_ref(), "--config".as_ref(), path.as_path()];
        let command = words.map(|word| word.display().to_string());
        self.lab.start(&name, &name, &command)
    }

    /// Transfers, and returns the result. A node that is named is killed and restarted during the transfer.
    ///
    /// # Errors
    ///
    /// If the lab has no hosts for a transfer, and when a host ends without reporting its result.
    pub fn transfer(
        &mut self,
        restart: Option<&str>,
        interrupt: &Interrupt,
        say: &mut dyn FnMut(&str),
    ) -> Result<Outcome> {
        let mut restart = restart.map(|name| self.restartable(name)).transpose()?;
        if self.parts.is_empty() {
            return Err(LabError::NoGroup(self.lab.instance().name().to_owned()));
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.iter_mut().try_for_each(|parts| self.gather(parts, interrupt, say))?;
        let begin = Instant::now();
        for parts in &mut parts {
            let receivers = parts.receivers.iter_mut().map(|receiver| &mut receiver.host);
            receivers.chain([&mut parts.source]).try_for_each(|host| host.connect())?;
        }
        for parts in &mut parts {
            parts.source.send(&mut self.lab, &parts.terms)?;
        }
        let mut reports = Reports::new(self.transfer.size_octets);
        let mut next_look = LOOK_INTERVAL;
        let limit = Duration::from_secs(self.transfer.timeout_s);
        let mut sent: Vec<Option<HostOutcome>> = vec![None; parts.len()];
        while sent.contains(&None) {
            for (parts, sent) in parts.iter_mut().zip(&mut sent).filter(|(_, sent)| sent.is_none()) {
                *sent = parts.source.outcome()?.or_else(|| (begin.elapsed() > limit).then(|| late(limit)));
            }
            if begin.elapsed() < next_look {
                interrupt.sleep(POLL_INTERVAL)?;
                continue;
            }
            next_look = begin.elapsed() + LOOK_INTERVAL;
            let progress = self.progress(&parts)?;
            reports.report(progress, begin.elapsed(), say);
            if let Some(node) = restart.take_if(|_| progress >= RESTART_AT) {
                say(&format!("killing and restarting {}", self.lab.topology().nodes[node].name));
                // The nodes' configurations need the group.
                self.parts = parts;
                self.restart(node, interrupt)?;
                parts = std::mem::take(&mut self.parts);
            }
        }
        if let Some(node) = restart {
            let name = &self.lab.topology().nodes[node].name;
            let problem = format!("the transfer was over before {name} could be restarted: make it longer, or slower");
            return Err(LabError::Unexpected { who: "restart".to_owned(), problem });
        }
        let mut pairs = Vec::new();
        for (parts, sent) in parts.iter_mut().zip(sent.into_iter().flatten()) {
            let received = self.receive(parts, sent.error.is_some(), interrupt)?;
            pairs.push((sent, received));
        }
        let outcome = self.outcome(&parts, pairs, interrupt)?;
        self.release(interrupt)?;
        self.parts = parts;
        Ok(outcome)
    }

    /// Sends other data of the same length to the same receivers, by a connection to each and all at the same time. The
    /// session's hosts, which must be guests, take no part in the group any more.
    ///
    /// # Errors
    ///
    /// If a host is no guest, or does not get everything.
    pub fn unicast(&mut self, interrupt: &Interrupt) -> Result<Unicast> {
        let no_group = || LabError::NoGroup(self.lab.instance().name().to_owned());
        // They give their ends of the guests' ports back.
        let parts = std::mem::take(&mut self.parts).into_iter().next().ok_or_else(no_group)?;
        let receivers: Vec<usize> = parts.receivers.iter().map(|receiver| receiver.node).collect();
        let source = parts.terms.source;
        drop(parts);
        guest::unicast(&self.lab, source, &receivers, &self.transfer, interrupt)
    }

    fn restartable(&self, name: &str) -> Result<usize> {
        let node = self.lab.node(name)?;
        match self.lab.topology().nodes[node].kind {
            Kind::Srdma { .. } => Ok(node),
            _ => Err(LabError::Group(format!("{name} cannot be restarted: it is not of kind srdma"))),
        }
    }

    /// Kills a node without warning, and restarts it, without its state (D17).
    fn restart(&mut self, node: usize, interrupt: &Interrupt) -> Result<()> {
        let name = self.lab.topology().nodes[node].name.clone();
        if let Some(process) = self.lab.processes().iter().find(|process| process.name == name) {
            process.kill();
        }
        let process = self.start_node(node, true)?;
        wait_until_ready(&process, 2, interrupt)
    }

    /// Fraction of the data that has left the sources, from 0; retransmissions count.
    fn progress(&self, parts: &[Parts]) -> Result<f64> {
        let counters = self.lab.link_counters()?;
        let links = &self.lab.topology().links;
        let octets = parts.iter().map(|parts| {
            let is_own = |link: &crate::topology::Link| link.ends.iter().any(|end| end.node == parts.terms.source);
            let position = links.iter().position(is_own);
            position.and_then(|position| counters.get(position)).map_or(0, |counters| counters.down_octets)
        });
        Ok(octets.sum::<u64>() as f64 / (self.transfer.size_octets * parts.len() as u64) as f64)
    }

    /// Results of the receivers; those of a failed transfer are not waited for.
    fn receive(&self, parts: &mut Parts, has_failed: bool, interrupt: &Interrupt) -> Result<Vec<HostOutcome>> {
        let begin = Instant::now();
        let mut outcomes = Vec::new();
        for receiver in &mut parts.receivers {
            let outcome = loop {
                if let Some(outcome) = receiver.host.outcome()? {
                    break outcome;
                }
                if has_failed || begin.elapsed() > RECEIVER_PATIENCE {
                    break HostOutcome { error: Some("the data did not arrive".to_owned()), ..Default::default() };
                }
                interrupt.sleep(POLL_INTERVAL)?;
            };
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    /// The nodes' states by name, all of them from now on: a node sends one that it takes at intervals.
    fn statuses(&self, interrupt: &Interrupt) -> Result<Vec<(String, Snapshot)>> {
        let read = || {
            let nodes = self.nodes().map(|node| {
                let name = self.lab.topology().nodes[node].name.clone();
                let status = read_status(&self.lab.instance().socket(&name));
                let problem =
                    |error: StatusError| LabError::Unexpected { who: name.clone(), problem: error.to_string() };
                Ok((name.clone(), status.map_err(problem)?))
            });
            nodes.collect::<Result<Vec<_>>>()
        };
        let (old, begin) = (read()?, Instant::now());
        loop {
            let new = read()?;
            let is_new = old.iter().zip(&new).all(|((_, old), (_, new))| old.uptime_ns != new.uptime_ns);
            if is_new || begin.elapsed() > STATUS_PATIENCE {
                return Ok(new);
            }
            interrupt.sleep(POLL_INTERVAL)?;
        }
    }

    fn outcome(
        &self,
        parts: &[Parts],
        pairs: Vec<(HostOutcome, Vec<HostOutcome>)>,
        interrupt: &Interrupt,
    ) -> Result<Outcome> {
        let topology = self.lab.topology();
        let name = |node: usize| topology.nodes[node].name.clone();
        let mut pairs = parts.iter().zip(pairs).map(|(parts, (source, received))| {
            let receivers = parts.receivers.iter().zip(received).map(|(receiver, outcome)| ReceiverOutcome {
                name: name(receiver.node),
                is_identical: outcome.error.is_none()
                    && outcome.octets == source.octets
                    && outcome.sha256 == source.sha256,
                outcome,
            });
            (name(parts.terms.source), receivers.collect::<Vec<_>>(), source)
        });
        let no_group = || LabError::NoGroup(self.lab.instance().name().to_owned());
        let (source_name, receivers, source) = pairs.next().ok_or_else(no_group)?;
        let other_pairs = pairs.flat_map(|(source_name, receivers, source)| {
            let pair =
                move |receiver| PairOutcome { source_name: source_name.clone(), source: source.clone(), receiver };
            receivers.into_iter().map(pair)
        });
        let group = parts.first().and_then(|parts| parts.group.as_ref());
        let controlled = self.created.as_ref().map(CreatedGroup::view).transpose()?;
        let overhead = controlled.as_ref().and_then(|group| Some(&group.tree.as_ref()?.overhead));
        let links = topology.links.iter().zip(self.lab.idle_link_counters()?);
        let nodes = self.statuses(interrupt)?;
        Ok(Outcome {
            lab: topology.name.clone(),
            source_name,
            transfer: self.transfer.clone(),
            link_mtu: topology.group.as_ref().map(|plan| plan.link_mtu).or(overhead.map(|overhead| overhead.link_mtu)),
            overhead_octets: group
                .map(|group| group.overhead().octets())
                .or(overhead.map(|overhead| overhead.octets as usize)),
            controlled: self
                .created
                .as_ref()
                .zip(controlled.as_ref())
                .map(|(created, group)| ControlledOutcome::of(created.url(), group)),
            receivers,
            source,
            other_pairs: other_pairs.collect(),
            links: links.map(|(link, counters)| LinkOutcome::of(link, counters)).collect(),
            nodes: nodes.iter().map(|(name, snapshot)| NodeOutcome::of(name, snapshot)).collect(),
            unicast: None,
        })
    }
}

fn late(limit: Duration) -> HostOutcome {
    HostOutcome { error: Some(format!("not done within {} s", limit.as_secs())), ..Default::default() }
}

/// Waits until a node has logged `ready` so many times, which its log keeps over restarts.
fn wait_until_ready(process: &Process, times: usize, interrupt: &Interrupt) -> Result<()> {
    let is_ready =
        |_: &str, log: &str| (log.lines().filter(|line| line.ends_with(" node: ready")).count() >= times).then_some(());
    process.wait_for("become ready", NODE_PATIENCE, interrupt, is_ready)
}

/// Progress reports of a transfer: at each quarter, but not more than once a second.
struct Reports {
    size_octets: u64,
    next_quarter: u32,
    last: Duration,
}

impl Reports {
    fn new(size_octets: u64) -> Self {
        Reports { size_octets, next_quarter: 1, last: Duration::ZERO }
    }

    fn report(&mut self, progress: f64, elapsed: Duration, say: &mut dyn FnMut(&str)) {
        let quarter = (progress * 4.0) as u32;
        if quarter >= self.next_quarter && quarter < 4 && elapsed >= self.last + Duration::from_secs(1) {
            let octets = (progress * self.size_octets as f64) as u64;
            say(&format!("{octets} of {} octets have left the source", self.size_octets));
            (self.next_quarter, self.last) = (quarter + 1, elapsed);
        }
    }
}
