//! Hosts: senders and receivers of transfers.

use crate::controller::ControllerAccess;
use crate::error::Result;
use crate::group::Member;
use crate::guest::{GuestHost, Image};
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::software::{SOURCE_QPN, SoftwareHost};
use crate::topology::{ControlledGroup, GroupPlan, Kind, Pair, Topology, Transfer};
use serde::Serialize;
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

/// Parameters of all hosts of a transfer.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The program `srdma`.
    pub(crate) program: PathBuf,
    /// Position of the source among the nodes.
    pub(crate) source: usize,
    /// The sender that the receivers are connected to.
    pub(crate) sender: Sender,
    /// The one receiver, when the source sends to it and not to a group.
    pub(crate) destination: Option<Destination>,
    /// The group, once the lab's controller has created it.
    pub(crate) at_controller: Option<GroupAtController>,
    pub(crate) transfer: Transfer,
    /// Time that a host waits for its peers before it gives up.
    pub(crate) patience: Duration,
    /// The rate of the slowest link, when any is limited.
    pub(crate) slowest_bits_per_s: Option<u64>,
    /// The image that guests boot, if there are guests.
    pub image: Option<Image>,
}

/// The sender, as seen by receivers, and the receiver, as seen by the source of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) address: Ipv6Addr,
    /// The queue pair.
    pub(crate) qpn: Qpn,
    pub(crate) first_psn: Psn,
}

impl Sender {
    /// A group: the source to its receivers, and the receiver to its source (MT-5.1-1).
    pub(crate) fn of_group(plan: &GroupPlan) -> Self {
        Sender { address: plan.proxy, qpn: plan.designated_qpn, first_psn: plan.initial_psn }
    }

    /// A group of the lab's controller.
    pub(crate) fn of_controlled(group: &ControlledGroup) -> Self {
        Sender { address: group.proxy, qpn: group.designated_qpn, first_psn: group.initial_psn }
    }

    /// The source itself. `None` when it has no address.
    pub(crate) fn of_pair(topology: &Topology, pair: Pair) -> Option<Self> {
        let address = *topology.nodes[pair.source].addresses.first()?;
        Some(Sender { address, qpn: Qpn::new(SOURCE_QPN)?, first_psn: Psn::new(0) })
    }
}

/// Parameters of the group for hosts that use the API of the lab's controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupAtController {
    /// The URL of the controller, and the group's number behind it.
    pub(crate) url: String,
    /// Access to the controller's API.
    pub(crate) access: ControllerAccess,
    /// Number of receivers that the source waits for.
    pub(crate) receivers: usize,
}

/// A receiver that a source sends to by unicast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    /// The name of its process.
    pub(crate) process: String,
    /// The address that it receives at.
    pub(crate) address: Ipv6Addr,
    /// Seed of the source's data, which differ between pairs.
    pub(crate) seed: usize,
}

impl Destination {
    /// Of several that receive at one node, each process after the first has a name of its own.
    pub(crate) fn of_pair(topology: &Topology, position: usize) -> Option<Self> {
        let pair = topology.pairs.get(position)?;
        let before = topology.pairs[..position].iter().filter(|other| other.destination == pair.destination).count();
        let node = &topology.nodes[pair.destination].name;
        let process = if before == 0 { node.clone() } else { format!("{node}.{}", before + 1) };
        Some(Destination { process, address: pair.address, seed: position + 1 })
    }
}

/// A host's part in the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Source,
    /// The receiver of this rank, from 1.
    Receiver(usize),
}

/// A host in transfers.
pub(crate) trait Host {
    /// Begins to get ready, and does not wait until that is so.
    ///
    /// # Errors
    ///
    /// If a process cannot be started.
    fn start(&mut self, lab: &mut Lab, terms: &Terms) -> Result<()>;

    /// Waits until the host is ready, and returns the properties that nodes need.
    ///
    /// # Errors
    ///
    /// If it does not get ready.
    fn member(&mut self, interrupt: &Interrupt) -> Result<Member>;

    /// Connects to the group, whose nodes are there.
    ///
    /// # Errors
    ///
    /// If the host finds no way to the group.
    fn connect(&mut self) -> Result<()>;

    /// The source begins to send. All that the group needs is there.
    ///
    /// # Errors
    ///
    /// If a process cannot be started.
    fn send(&mut self, lab: &mut Lab, terms: &Terms) -> Result<()>;

    /// The result of the host; `None` while it runs.
    ///
    /// # Errors
    ///
    /// If it ended without saying so.
    fn outcome(&mut self) -> Result<Option<HostOutcome>>;
}

/// The result of a host in a transfer. Counters that a host does not have are absent.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostOutcome {
    /// The reason of the failure.
    pub error: Option<String>,
    /// Octets sent, or received.
    pub octets: u64,
    /// SHA-256 of the data, in hexadecimal; at a receiver of its memory.
    pub sha256: Option<String>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Request packets sent, retransmissions included.
    pub packets_sent: Option<u64>,
    /// Request packets sent again.
    pub retransmissions: Option<u64>,
    /// Times that the ACK timer ran out.
    pub timeouts: Option<u64>,
    pub acks_received: Option<u64>,
    pub naks_received: Option<u64>,
    pub acks_sent: Option<u64>,
    pub naks_sent: Option<u64>,
    /// The share of all processors that the emulation of the lab's guests took while the source sent.
    pub emulation_share: Option<f64>,
}

/// The host at a node. Nodes that are no hosts have none.
pub(crate) fn at(lab: &Lab, node: usize, role: Role) -> Option<Box<dyn Host>> {
    let topology = lab.topology();
    let name = &topology.nodes[node].name;
    match topology.nodes[node].kind {
        Kind::Endpoint => Some(Box::new(SoftwareHost::new(lab.instance(), name, role))),
        Kind::Guest => Some(Box::new(GuestHost::new(topology, node, role)?)),
        Kind::Srdma { .. } | Kind::Router => None,
    }
}
