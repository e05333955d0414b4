//! Outer headers that a server's NIC adds: one program for each queue pair or, with steering, the path that the headend
//! of the dataplane selects (PP-4-3, PP-4-6).

use super::build::ADDRESSES;
use super::queue_monitor::dest_qpn;
use srdma_dataplane::Encaps;
use srdma_dataplane::fast_cnp::Connection;
use srdma_dataplane::headend::{Headend, HeadendConfig, HeadendError, HeadendPath, Incoming, ProbeConfig};
use srdma_fabric::{Path, Topology};
use srdma_frame::{Frame, Pool};
use srdma_steering::{Config, SetId};
use srdma_wire::{EthernetView, Instant, Qpn, View};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Size of the headend's flow table: enough for two flows for each queue pair of most NICs.
const FLOWS: usize = 256;

/// Outer headers for a queue pair of a peer.
#[derive(Clone)]
pub(super) enum Outer {
    /// A fixed header.
    Fixed(Encaps),
    /// One of several, in order of rank.
    Steered(Vec<HeadendPath>),
}

/// The NIC of a server.
pub(super) struct Nic {
    address: Ipv6Addr,
    fixed: BTreeMap<Qpn, Encaps>,
    steered: BTreeMap<Qpn, SetId>,
    /// Only with steering.
    headend: Option<Box<Headend>>,
    /// The headend may have a probe to send.
    has_probe: bool,
}

impl Nic {
    /// A NIC without encapsulation.
    pub(super) fn new(address: Ipv6Addr) -> Self {
        Nic { address, fixed: BTreeMap::new(), steered: BTreeMap::new(), headend: None, has_probe: false }
    }

    /// Enables steering with this probe interval and this seed.
    pub(super) fn steer(&mut self, probe_interval_ns: u64, seed: u64) {
        let mut config = HeadendConfig::new(self.address);
        config.steering = Config { flows: FLOWS, seed, ..Config::default() };
        config.probes = Some(ProbeConfig { interval_ns: probe_interval_ns, ..ProbeConfig::default() });
        self.headend = Some(Box::new(Headend::new(config)));
    }

    /// Adds these headers to all packets to a queue pair of a peer; the local queue pair has the same number.
    ///
    /// # Errors
    ///
    /// Those of the headend.
    pub(super) fn encapsulate(&mut self, peer: Ipv6Addr, qpn: Qpn, outer: Outer) -> Result<(), HeadendError> {
        match (outer, &mut self.headend) {
            (Outer::Fixed(encaps), _) => _ = self.fixed.insert(qpn, encaps),
            (Outer::Steered(paths), Some(headend)) => {
                let set = headend.set_paths(Instant::ZERO, None, &paths)?;
                headend.add_connection(Connection { host: self.address, host_qpn: qpn, peer, peer_qpn: qpn });
                self.steered.insert(qpn, set);
            }
            (Outer::Steered(_), None) => {}
        }
        Ok(())
    }

    /// Adds the outer headers of an outgoing frame, if it has any.
    pub(super) fn outgoing(&mut self, now: Instant, frame: &mut Frame, ethernet: &EthernetView, pool: &mut Pool) {
        if self.fixed.is_empty() && self.steered.is_empty() {
            return;
        }
        let Some(qpn) = dest_qpn(frame.head(pool)) else { return };
        // A frame of a server is complete and has headroom for any accepted program.
        if let Some(program) = self.fixed.get(&qpn) {
            let pushed = program.push(frame, pool);
            debug_assert_eq!(pushed, Ok(()));
        } else if let (Some(set), Some(headend)) = (self.steered.get(&qpn), &mut self.headend) {
            let pushed = headend.encapsulate(now, *set, frame, pool);
            debug_assert!(pushed.is_ok(), "{pushed:?}");
            self.has_probe = true;
        } else {
            return;
        }
        frame.head_mut(pool)[..EthernetView::LEN].copy_from_slice(ethernet.as_bytes());
    }

    /// True if a received frame is one of the NIC's own probes.
    pub(super) fn takes(&mut self, now: Instant, frame: &Frame, pool: &Pool) -> bool {
        let headend = self.headend.as_mut();
        headend.is_some_and(|headend| headend.incoming(now, frame, pool) == Incoming::Probe)
    }

    /// Handles deadlines.
    pub(super) fn tick(&mut self, now: Instant) {
        if let Some(headend) = &mut self.headend {
            headend.tick(now);
            self.has_probe = true;
        }
    }

    /// Whether there may be a probe to send.
    pub(super) fn has_probe(&self) -> bool {
        self.has_probe
    }

    /// The next probe.
    pub(super) fn poll_probe(&mut self, now: Instant, ethernet: &EthernetView, pool: &mut Pool) -> Option<Frame> {
        if !std::mem::take(&mut self.has_probe) {
            return None;
        }
        let mut frame = self.headend.as_mut()?.poll_probe(now, pool)?;
        self.has_probe = true;
        frame.head_mut(pool)[..EthernetView::LEN].copy_from_slice(ethernet.as_bytes());
        Some(frame)
    }

    /// Deadline for [`Nic::tick`]; none while a probe is to be sent.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.headend.as_ref().filter(|_| !self.has_probe)?.next_deadline()
    }

    /// Number of path changes of flows.
    pub(super) fn moves(&self) -> u64 {
        self.headend.as_ref().map_or(0, |headend| headend.steering().counters().all_moves())
    }
}

/// A path for a headend.
pub(super) fn headend_path(topology: &Topology, path: &Path, segments: Vec<Ipv6Addr>, rank: u16) -> HeadendPath {
    let nodes = path.hops(topology).map(|(switch, _)| ADDRESSES.loopback(topology, switch));
    let path = srdma_steering::Path { segments, nodes: nodes.collect(), rank, is_denied: false };
    HeadendPath { path, ..HeadendPath::default() }
}
