//! Hosts: who sends and who receives.

use crate::error::Result;
use crate::group::Member;
use crate::guest::{GuestHost, Image};
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::software::SoftwareHost;
use crate::topology::{GroupPlan, Kind, Transfer};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// What all hosts of a transfer are told.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The program `srdma`.
    pub(crate) program: PathBuf,
    /// The group.
    pub(crate) group: GroupPlan,
    /// What is transferred.
    pub(crate) transfer: Transfer,
    /// How long a host waits for its peers before it gives up.
    pub(crate) patience: Duration,
    /// The rate of the slowest link, when any is limited.
    pub(crate) slowest_bits_per_s: Option<u64>,
    /// What guests boot, when there are guests.
    pub image: Option<Image>,
}

/// A host's part in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The source.
    Source,
    /// The receiver of this rank, from 1.
    Receiver(usize),
}

/// A host that takes part in transfers.
pub(crate) trait Host {
    /// Begins to get ready, and does not wait until that is so.
    ///
    /// # Errors
    ///
    /// When a process cannot be started.
    fn start(&mut self, lab: &mut Lab, terms: &Terms) -> Result<()>;

    /// Waits until the host is ready, and says what nodes need to know of it.
    ///
    /// # Errors
    ///
    /// When it does not get ready.
    fn member(&mut self, interrupt: &Interrupt) -> Result<Member>;

    /// Connects to the group, whose nodes are there.
    ///
    /// # Errors
    ///
    /// When the host finds no way to the group.
    fn connect(&mut self) -> Result<()>;

    /// The source begins to send. All that the group needs is there.
    ///
    /// # Errors
    ///
    /// When a process cannot be started.
    fn send(&mut self, lab: &mut Lab, terms: &Terms) -> Result<()>;

    /// What came of the host's part; `None` while it is at it.
    ///
    /// # Errors
    ///
    /// When it ended without saying so.
    fn outcome(&mut self) -> Result<Option<HostOutcome>>;
}

/// What came of a host's part in a transfer. Counters that a host does not have are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostOutcome {
    /// Why it failed.
    pub error: Option<String>,
    /// Octets sent, or received.
    pub octets: u64,
    /// SHA-256 of the data, in hexadecimal; at a receiver of what stands in its memory.
    pub sha256: Option<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Request packets sent, retransmissions included.
    pub packets_sent: Option<u64>,
    /// Request packets sent again.
    pub retransmissions: Option<u64>,
    /// Times that the ACK timer ran out.
    pub timeouts: Option<u64>,
    /// ACKs received.
    pub acks_received: Option<u64>,
    /// NAKs received.
    pub naks_received: Option<u64>,
    /// ACKs sent.
    pub acks_sent: Option<u64>,
    /// NAKs sent.
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
