//! A guest as a host of a lab's transfer.

use super::load::Load;
use super::peer::{Peer, PeerOptions, QueuePair, Work};
use super::{Guest, GuestPlan, Port};
use crate::error::{LabError, Result};
use crate::group::{self, Member, REGION_BASE, REGION_RKEY};
use crate::host::{Host, HostOutcome, Role, Terms};
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::topology::{Operation, Topology, Transfer};
use srdma_group::ReceiverRegion;
use srdma_wire::Psn;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Six guests boot in a quarter of a minute on two processors that have nothing else to do.
const BOOT_PATIENCE: Duration = Duration::from_secs(180);

/// Memory of a guest beside its system.
const MOST_OCTETS: u64 = 128 << 20;

/// The length of the messages: whole packets of every path MTU, and no more of them than a guest can expect.
pub(super) const MESSAGE_OCTETS: u64 = 64 << 10;

/// 0.54 s: shorter timeouts expire under emulation without a loss.
const ACK_TIMEOUT: u8 = 17;

/// The first PSN of queue pairs whose PSN is not exchanged.
pub(super) const ANY_PSN: Psn = Psn::new(0x1000);

/// A host that is a guest.
pub(crate) struct GuestHost {
    plan: GuestPlan,
    /// Its address in the transfer.
    address: Ipv6Addr,
    role: Role,
    terms: Option<Terms>,
    guest: Option<Guest>,
    peer: Option<(Peer, QueuePair)>,
    load: Option<Load>,
    /// The command to wait for the data was sent to the receiver.
    is_waiting: bool,
}

impl GuestHost {
    /// The guest at a node, which has an address and a link.
    pub(crate) fn new(topology: &Topology, node: usize, role: Role) -> Option<Self> {
        let (plan, address) = (GuestPlan::of(topology, node)?, group::address(topology, node).ok()?);
        Some(GuestHost { plan, address, role, terms: None, guest: None, peer: None, load: None, is_waiting: false })
    }

    fn parts(&mut self) -> Result<(&Terms, &mut Peer, QueuePair)> {
        match (&self.terms, &mut self.peer) {
            (Some(terms), Some((peer, pair))) => Ok((terms, peer, *pair)),
            _ => Err(problem(&self.plan.node, "it has not been started".to_owned())),
        }
    }

    /// Result of the source.
    fn sent(&mut self) -> Result<Option<HostOutcome>> {
        let Some(time) = self.parts()?.1.done()? else { return Ok(None) };
        let emulation_share = self.load.as_ref().map(|load| load.share(time));
        let (terms, peer, _) = self.parts()?;
        let octets = terms.transfer.size_octets;
        let packets = octets.div_ceil(u64::from(terms.transfer.path_mtu.octets()));
        let packets_sent = peer.counter("sent_pkts")?;
        let naks = peer.counter("rcvd_seq_err")?;
        let answers = peer.counter("rcvd_pkts")?;
        Ok(Some(HostOutcome {
            octets,
            sha256: Some(peer.sha256(octets)?),
            seconds: time.as_secs_f64(),
            packets_sent: Some(packets_sent),
            retransmissions: Some(packets_sent.saturating_sub(packets)),
            acks_received: Some(answers.saturating_sub(naks)),
            naks_received: Some(naks),
            emulation_share,
            ..HostOutcome::default()
        }))
    }

    /// Result of a receiver, when the source is done.
    fn received(&mut self) -> Result<Option<HostOutcome>> {
        let is_waiting = std::mem::replace(&mut self.is_waiting, true);
        let (terms, peer, _) = self.parts()?;
        let Transfer { size_octets, operation, timeout_s, .. } = terms.transfer;
        let octets = match operation {
            Operation::Write => size_octets,
            Operation::Send => {
                if !is_waiting {
                    peer.wait(size_octets.div_ceil(MESSAGE_OCTETS), Duration::from_secs(timeout_s))?;
                }
                let Some(octets) = peer.waited()? else { return Ok(None) };
                octets
            }
        };
        let naks = peer.counter("out_of_seq_request")?;
        let answers = peer.counter("sent_pkts")?;
        Ok(Some(HostOutcome {
            octets,
            sha256: Some(peer.sha256(size_octets)?),
            acks_sent: Some(answers.saturating_sub(naks)),
            naks_sent: Some(naks),
            ..HostOutcome::default()
        }))
    }
}

impl Host for GuestHost {
    fn start(&mut self, lab: &mut Lab, terms: &Terms) -> Result<()> {
        let octets = terms.transfer.size_octets;
        if octets > MOST_OCTETS {
            let text = format!("it has no memory for {octets} octets: {MOST_OCTETS} are the most");
            return Err(problem(&self.plan.node, text));
        }
        let no_image = || problem(&self.plan.node, "there is no image to boot".to_owned());
        let image = terms.image.as_ref().ok_or_else(no_image)?;
        self.guest = Some(Guest::start(lab, image, &self.plan)?);
        self.terms = Some(terms.clone());
        Ok(())
    }

    fn member(&mut self, interrupt: &Interrupt) -> Result<Member> {
        let (Some(guest), Some(terms)) = (&self.guest, &self.terms) else {
            return Err(problem(&self.plan.node, "it has not been started".to_owned()));
        };
        guest.wait(BOOT_PATIENCE, interrupt)?;
        let mut peer = guest.shell(Port::Lab)?.into_peer(options(&terms.transfer, self.address))?;
        let pair = peer.open(match self.role {
            Role::Source => terms.sender.first_psn,
            Role::Receiver(_) => ANY_PSN,
        })?;
        let region = ReceiverRegion { base: peer.base, rkey: peer.rkey };
        self.peer = Some((peer, pair));
        Ok(Member { qpn: pair.qpn, region: Some(region) })
    }

    fn connect(&mut self) -> Result<()> {
        let role = self.role;
        let (terms, peer, pair) = self.parts()?;
        let first_psn = match role {
            Role::Source => ANY_PSN,
            Role::Receiver(_) => terms.sender.first_psn,
        };
        peer.connect(pair, terms.sender.address, terms.sender.qpn, first_psn)?;
        match (role, terms.transfer.operation) {
            (Role::Source, _) => peer.fill(1),
            (Role::Receiver(_), Operation::Send) => peer.receive(pair, terms.transfer.size_octets, MESSAGE_OCTETS),
            (Role::Receiver(_), Operation::Write) => Ok(()),
        }
    }

    fn send(&mut self, lab: &mut Lab, _: &Terms) -> Result<()> {
        self.load = Some(Load::begin(lab));
        let (terms, peer, pair) = self.parts()?;
        let work = match terms.transfer.operation {
            Operation::Write => Work::Write { rkey: REGION_RKEY, address: REGION_BASE },
            Operation::Send => Work::Send,
        };
        peer.assign(pair, work, terms.transfer.size_octets, MESSAGE_OCTETS)?;
        peer.run(Duration::from_secs(terms.transfer.timeout_s))
    }

    fn outcome(&mut self) -> Result<Option<HostOutcome>> {
        let outcome = match self.role {
            Role::Source => self.sent(),
            Role::Receiver(_) => self.received(),
        };
        match outcome {
            Err(LabError::Unexpected { problem, .. }) => {
                Ok(Some(HostOutcome { error: Some(problem), ..HostOutcome::default() }))
            }
            outcome => outcome,
        }
    }
}

/// Options of a guest's RDMA program for a transfer.
pub(super) fn options(transfer: &Transfer, address: Ipv6Addr) -> PeerOptions {
    let (octets, path_mtu) = (transfer.size_octets, transfer.path_mtu);
    PeerOptions { octets, path_mtu, ack_timeout: ACK_TIMEOUT, address: Some(address) }
}

fn problem(node: &str, problem: String) -> LabError {
    LabError::Unexpected { who: format!("guest {node}"), problem }
}
