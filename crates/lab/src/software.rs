//! Hosts with the software endpoint: `srdma recv` and `srdma send`.

use crate::error::{LabError, Result};
use crate::group::{self, Member, REGION_BASE, REGION_RKEY};
use crate::host::{Destination, GroupAtController, Host, HostOutcome, Role, Terms};
use crate::instance::Instance;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::process::Process;
use crate::topology::{Operation, Topology};
use serde::Deserialize;
use srdma_group::{ReceiverRegion, SourceRegion};
use srdma_host::{GroupFile, GroupSource, PeerInfo};
use srdma_wire::Qpn;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Time for a process to print its first line.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// The source's queue pair.
pub(crate) const SOURCE_QPN: u32 = 0x100;

/// The queue pair of receiver 0, if there were one.
const RECEIVER_QPN: u32 = 0x1000;

/// A host with the software endpoint.
pub(crate) struct SoftwareHost {
    node: String,
    role: Role,
    group_file: PathBuf,
    process: Option<Process>,
}

impl SoftwareHost {
    pub(crate) fn new(instance: &Instance, node: &str, role: Role) -> Self {
        let group_file = instance.directory().join("group.toml");
        SoftwareHost { node: node.to_owned(), role, group_file, process: None }
    }

    fn process(&self) -> Result<&Process> {
        self.process.as_ref().ok_or_else(|| self.unexpected("it has not been started"))
    }

    /// Options that the topology file adds to the command line.
    fn options(&self, lab: &Lab) -> Vec<String> {
        let topology = lab.topology();
        topology.node(&self.node).map(|node| topology.nodes[node].options.clone()).unwrap_or_default()
    }

    fn unexpected(&self, problem: impl ToString) -> LabError {
        LabError::Unexpected { who: self.node.clone(), problem: problem.to_string() }
    }
}

/// The last line of `srdma send` and `srdma recv`.
#[derive(Deserialize)]
struct Report {
    error: Option<String>,
    octets: u64,
    seconds: f64,
    sha256: Option<String>,
    packets_sent: u64,
    retransmissions: u64,
    timeouts: u64,
    acks_received: u64,
    naks_received: u64,
    acks_sent: u64,
    naks_sent: u64,
}

impl Host for SoftwareHost {
    fn start(&mut self, lab: &mut Lab, terms: &Terms) -> Result<()> {
        let Role::Receiver(rank) = self.role else {
            let has_file = terms.destination.is_none() && terms.at_controller.is_none();
            return if has_file { self.write_group_file(lab, terms) } else { Ok(()) };
        };
        let name = terms.destination.as_ref().map_or(&self.node, |destination| &destination.process);
        let mut command = recv_command(terms, rank);
        command.extend(self.options(lab));
        self.process = Some(lab.start(&self.node, name, &command)?);
        Ok(())
    }

    fn member(&mut self, interrupt: &Interrupt) -> Result<Member> {
        if self.role == Role::Source {
            let qpn = Qpn::new(SOURCE_QPN).ok_or_else(|| self.unexpected("no queue pair"))?;
            return Ok(Member { qpn, region: None });
        }
        let first_line = |output: &str, _: &str| output.split_once('\n').map(|(line, _)| line.to_owned());
        let line = self.process()?.wait_for("print its peer information", START_PATIENCE, interrupt, first_line)?;
        let info: PeerInfo = serde_json::from_str(&line).map_err(|error| self.unexpected(error))?;
        let region = ReceiverRegion { base: info.virtual_address, rkey: info.rkey };
        Ok(Member { qpn: info.qpn, region: Some(region) })
    }

    fn connect(&mut self) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, lab: &mut Lab, terms: &Terms) -> Result<()> {
        let peer = match (&terms.destination, &terms.at_controller) {
            (Some(Destination { process, .. }), _) => Peer::Receiver(lab.instance().output(process)),
            (None, Some(group)) => Peer::AtController(group.clone()),
            (None, None) => Peer::Group(self.group_file.clone()),
        };
        let mut command = send_command(terms, &peer);
        command.extend(self.options(lab));
        self.process = Some(lab.start(&self.node, &self.node, &command)?);
        Ok(())
    }

    fn outcome(&mut self) -> Result<Option<HostOutcome>> {
        let process = self.process()?;
        let is_running = process.is_running();
        let text = fs::read_to_string(&process.output).map_err(LabError::file("read", &process.output))?;
        // A receiver prints two lines: the address of its memory, and the result.
        let skipped = usize::from(self.role != Role::Source);
        match text.split_inclusive('\n').nth(skipped).filter(|line| line.ends_with('\n')) {
            Some(line) => {
                let report: Report = serde_json::from_str(line).map_err(|error| self.unexpected(error))?;
                Ok(Some(report.into()))
            }
            None if is_running => Ok(None),
            None => Err(process.ended("print the result of the transfer")),
        }
    }
}

/// Packets outstanding: those that the slowest link carries in a third of the source's ACK timeout of 67 ms, so that
/// packets that are merely queued are not retransmitted; at most the limit of soft-RoCE.
fn window(terms: &Terms) -> u64 {
    const MOST: u64 = 128;
    let packet_bits = u64::from(terms.transfer.path_mtu.octets()) * 8;
    terms.slowest_bits_per_s.map_or(MOST, |rate| (rate / 45 / packet_bits).clamp(4, MOST))
}

impl SoftwareHost {
    fn write_group_file(&self, lab: &Lab, terms: &Terms) -> Result<()> {
        let text = group_file(lab.topology(), terms)?;
        fs::write(&self.group_file, text).map_err(LabError::file("write", &self.group_file))
    }
}

/// The command line of the receiver of this rank; the topology file may have more options.
pub(crate) fn recv_command(terms: &Terms, rank: usize) -> Vec<String> {
    let Terms { program, sender, transfer, patience, destination, at_controller, .. } = terms;
    let mut command = vec![program.display().to_string(), "recv".to_owned()];
    command.extend(match at_controller {
        // The rest comes from the controller.
        Some(group) => at(group),
        None => vec![
            format!("--peer={}", sender.address.to_canonical()),
            format!("--peer-qpn={:#x}", sender.qpn.get()),
            format!("--psn={:#x}", sender.first_psn.get()),
            format!("--path-mtu={}", transfer.path_mtu),
        ],
    });
    command.extend([
        format!("--qpn={:#x}", receiver_qpn(rank)),
        format!("--seed={rank}"),
        format!("--size={}", transfer.size_octets),
        format!("--timeout={}s", patience.as_secs()),
        "--json".to_owned(),
    ]);
    command.extend(destination.as_ref().map(|destination| format!("--address={}", destination.address)));
    command
}

/// The options that name a group of a controller.
fn at(group: &GroupAtController) -> Vec<String> {
    let GroupAtController { url, access, .. } = group;
    let (token, ca) = (access.token_file.display(), access.ca_file.display());
    vec![format!("--group={url}"), format!("--token-file={token}"), format!("--ca={ca}")]
}

/// The queue pair of the receiver of this rank, from 1.
pub(crate) fn receiver_qpn(rank: usize) -> usize {
    RECEIVER_QPN as usize + rank
}

/// Source of the peer information.
pub(crate) enum Peer {
    /// In a file with a receiver's peer information.
    Receiver(PathBuf),
    /// In a file with a group.
    Group(PathBuf),
    /// At the lab's controller.
    AtController(GroupAtController),
}

/// The command line of the source; the topology file may have more options.
pub(crate) fn send_command(terms: &Terms, peer: &Peer) -> Vec<String> {
    let operation = match terms.transfer.operation {
        Operation::Write => "write",
        Operation::Send => "send",
    };
    let mut command = vec![
        terms.program.display().to_string(),
        "send".to_owned(),
        format!("--random={}", terms.transfer.size_octets),
        format!("--op={operation}"),
        format!("--window={}", window(terms)),
        format!("--timeout={}s", terms.patience.as_secs()),
        "--json".to_owned(),
    ];
    match peer {
        Peer::Receiver(file) => command.push(format!("--peer-info={}", file.display())),
        Peer::Group(file) => command.push(format!("--group={}", file.display())),
        Peer::AtController(group) => {
            command.extend(at(group));
            command.push(format!("--receivers={}", group.receivers));
        }
    }
    command.extend(terms.destination.as_ref().map(|destination| format!("--seed={}", destination.seed)));
    command
}

/// The group as its source reads it.
pub(crate) fn group_file(topology: &Topology, terms: &Terms) -> Result<String> {
    let Terms { sender, transfer, .. } = terms;
    let source = &topology.nodes[terms.source];
    let wrong = |problem: &str| LabError::Unexpected { who: source.name.clone(), problem: problem.to_owned() };
    let file = GroupFile {
        proxy: sender.address,
        designated_qpn: sender.qpn,
        initial_psn: sender.first_psn,
        path_mtu: transfer.path_mtu,
        region: match transfer.operation {
            Operation::Write => {
                Some(SourceRegion { base: REGION_BASE, length: transfer.size_octets, rkey: REGION_RKEY })
            }
            Operation::Send => None,
        },
        source: GroupSource {
            address: group::address(topology, terms.source)?,
            qpn: Qpn::new(SOURCE_QPN).ok_or_else(|| wrong("no queue pair"))?,
        },
    };
    toml::to_string(&file).map_err(|error| wrong(&error.to_string()))
}

impl From<Report> for HostOutcome {
    fn from(report: Report) -> Self {
        HostOutcome {
            error: report.error,
            octets: report.octets,
            sha256: report.sha256,
            seconds: report.seconds,
            packets_sent: Some(report.packets_sent),
            retransmissions: Some(report.retransmissions),
            timeouts: Some(report.timeouts),
            acks_received: Some(report.acks_received),
            naks_received: Some(report.naks_received),
            acks_sent: Some(report.acks_sent),
            naks_sent: Some(report.naks_sent),
            emulation_share: None,
        }
    }
}
