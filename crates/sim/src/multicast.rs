//! A multicast transfer: one stream from a source to a group of receivers, run and checked.

use crate::addressing;
use crate::description::{ElementInfo, ElementKind, GroupInfo, LinkInfo, RunDescription};
use crate::fabric::Fabric;
use crate::host::Host;
use crate::invariants::Checker;
use crate::network::LinkId;
use crate::observer::PeriodicObserver;
use crate::program::SendStream;
use crate::replica::{Replica, Sha256Digest};
use crate::setup::{self, SOURCE_RANK, SetupError};
use crate::snapshot::{self, ElementSnapshot, Snapshot};
use crate::topology::SOURCE_NAME;
use crate::transfer::{LinkOutcome, Outcome, ReceiverOutcome, SourceOutcome, TransferConfig};
use sha2::{Digest, Sha256};
use srdma_dataplane::RepairCounters;
use srdma_dataplane::{Command, ConfigError, Node};
use srdma_group::Group;
use srdma_rc::MemoryKey;
use srdma_wire::{Instant, Syndrome};
use std::io::{self, Write};
use std::sync::Arc;

/// Number of events between two progress reports.
const EVENTS_PER_REPORT: u64 = 1 << 12;

/// Default time between snapshots, in nanoseconds.
const STEP_NS: u64 = 20_000;

/// A multicast transfer that is ready to run.
pub struct Multicast {
    fabric: Fabric,
    scenario: TransferConfig,
    data: Arc<Vec<u8>>,
    /// Each receiver's region.
    regions: Vec<MemoryKey>,
    group: Group,
    checker: Checker,
    acks_received: u64,
    naks_received: u64,
}

impl Multicast {
    /// Sets up hosts, links, nodes and group.
    ///
    /// # Errors
    ///
    /// The scenario's parameters are inconsistent.
    pub fn new(scenario: TransferConfig, data: Arc<Vec<u8>>) -> Result<Self, SetupError> {
        let layout = scenario.layout(data.len() as u64);
        let (fabric, regions, group) = setup::multicast(&scenario, &data)?;
        let checker = Checker::new(layout);
        Ok(Multicast { fabric, scenario, data, regions, group, checker, acks_received: 0, naks_received: 0 })
    }

    /// The group as it was committed.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Applies a further command to the node at a position of the topology.
    ///
    /// # Errors
    ///
    /// Those of the node.
    pub fn apply(&mut self, position: usize, command: Command) -> Result<(), ConfigError> {
        self.fabric.with_node(self.fabric.nodes[position], |node| node.apply(command))
    }

    /// Captures every link to an output of its own, which `open` makes from the link's name. The interfaces of a
    /// capture are named after the link, sender first: `N6-N4` for what goes down, `N4-N6` for what comes up.
    ///
    /// # Errors
    ///
    /// Those of the outputs.
    pub fn capture(&mut self, mut open: impl FnMut(&str) -> io::Result<Box<dyn Write>>) -> io::Result<()> {
        let network = &mut self.fabric.network;
        for link in self.fabric.links.clone() {
            let name = network.name(link).to_owned();
            let (upper, lower) = name.split_once('-').unwrap_or((&name, ""));
            network.capture(link, open(&name)?, &name, &format!("{lower}-{upper}"))?;
        }
        Ok(())
    }

    /// Runs until everything is acknowledged or the source has failed, and then until no frame is in flight. `progress`
    /// is called periodically with the number of acknowledged octets.
    ///
    /// # Errors
    ///
    /// Those of the captures.
    pub fn run(&mut self, progress: &mut dyn FnMut(u64)) -> io::Result<Outcome> {
        self.run_observed(progress, None)
    }

    /// [`Multicast::run`] with an observer.
    ///
    /// # Errors
    ///
    /// Those of the captures and of the observer.
    pub fn run_observed(
        &mut self,
        progress: &mut dyn FnMut(u64),
        mut observer: Option<&mut PeriodicObserver<'_>>,
    ) -> io::Result<Outcome> {
        if let Some(observer) = &mut observer {
            observer.begin(&self.description(), STEP_NS)?;
        }
        let source = self.fabric.source;
        for host in self.fabric.receivers.clone().into_iter().chain([source]) {
            self.fabric.with_host(host, |host, _| host.start());
        }
        let mut events: u64 = 0;
        while let Some(element) = self.fabric.network.step(self.scenario.time_limit) {
            if element == source {
                self.check_responses();
            }
            if let Some(observer) = &mut observer {
                observer.observe_if_due(self.fabric.network.now().as_ns(), || self.snapshot())?;
            }
            events += 1;
            if events.is_multiple_of(EVENTS_PER_REPORT) {
                progress(self.acknowledged_octets());
            }
        }
        progress(self.acknowledged_octets());
        if let Some(observer) = observer {
            observer.end(&self.snapshot())?;
        }
        self.fabric.network.finish_captures()?;
        Ok(self.outcome())
    }

    /// The source, the nodes in the order of the tree, the receivers; the links by name.
    fn description(&self) -> RunDescription {
        let record = self.group.record();
        let tree = record.tree.nodes();
        let mut elements = Vec::new();
        if self.has_source_element() {
            let (name, address) = (SOURCE_NAME.to_owned(), record.source.address);
            elements.push(ElementInfo { name, address, kind: ElementKind::Host });
        }
        elements.extend(tree.iter().map(|node| ElementInfo {
            name: node.name.clone(),
            address: node.loopback,
            kind: if node.role.has_receivers() { ElementKind::Edge } else { ElementKind::Transit },
        }));
        let receivers = self.scenario.topology.receivers().iter();
        elements.extend(receivers.map(|leaf| ElementInfo {
            name: leaf.name.clone(),
            address: addressing::receiver(leaf),
            kind: ElementKind::Host,
        }));
        let link = |link: &LinkId| {
            let name = self.fabric.network.name(*link);
            let (upper, lower) = name.split_once('-').unwrap_or((name, name));
            LinkInfo { ends: [upper, lower].map(str::to_owned), mtu: self.scenario.link_mtu, groups: 1 }
        };
        RunDescription {
            root: Some(SOURCE_NAME.to_owned()),
            elements,
            links: self.fabric.links.iter().map(link).collect(),
            groups: vec![GroupInfo {
                name: "demo".to_owned(),
                explanation: "the tree of the demo",
                group: self.group.clone(),
            }],
        }
    }

    /// A software switch at the source, if it is the headend, has the source's name and represents it.
    fn has_source_element(&self) -> bool {
        self.group.record().tree.nodes().first().is_some_and(|headend| headend.name != SOURCE_NAME)
    }

    fn snapshot(&self) -> Snapshot {
        let (fabric, network) = (&self.fabric, &self.fabric.network);
        let nodes: Vec<&Node> = fabric.switch.iter().chain(&fabric.nodes).map(|id| fabric.node(*id)).collect();
        let mut elements = Vec::new();
        elements.extend(self.has_source_element().then(ElementSnapshot::default));
        elements.extend(nodes.iter().map(|node| ElementSnapshot::of(node)));
        elements.extend(fabric.receivers.iter().map(|_| ElementSnapshot::default()));
        Snapshot {
            now_ns: network.now().as_ns(),
            links: fabric.links.iter().map(|link| network.counters(*link).map(|counters| counters.octets)).collect(),
            elements,
            groups: vec![snapshot::branch_snapshots(&self.group, |position| nodes.get(position).copied())],
        }
    }

    fn acknowledged_octets(&self) -> u64 {
        self.source().send_streams().iter().map(SendStream::acknowledged_octets).sum()
    }

    fn source(&self) -> &Host {
        self.fabric.host(self.fabric.source)
    }

    fn receiver(&self, rank: usize) -> &Host {
        self.fabric.host(self.fabric.receivers[rank])
    }

    /// Compares the last responses to the source with the data of the receivers.
    fn check_responses(&mut self) {
        if !self.source().has_responses_or_completions() {
            return;
        }
        let responses: Vec<_> =
            self.fabric.with_host(self.fabric.source, |source, _| source.take_responses().collect());
        let now_ns = self.fabric.network.now().as_ns();
        for response in responses {
            match response.syndrome {
                Syndrome::Ack(_) => self.acks_received += 1,
                Syndrome::RnrNak(_) | Syndrome::Nak(_) | Syndrome::Reserved(_) => self.naks_received += 1,
            }
            let (fabric, regions) = (&self.fabric, &self.regions);
            let there =
                fabric.receivers.iter().zip(regions).map(|(receiver, region)| {
                    fabric.host(*receiver).region(*region).map_or(0, Replica::complete_octets)
                });
            self.checker.check(now_ns, response, there);
        }
    }

    fn outcome(&self) -> Outcome {
        let network = &self.fabric.network;
        let sha256: Sha256Digest = Sha256::digest(self.data.as_slice()).into();
        let stream = self.source().send_streams().first();
        let receivers = (0..self.regions.len()).filter_map(|rank| self.receiver_outcome(rank, sha256));
        let links = self.fabric.links.iter().map(|link| {
            let [down, up] = network.counters(*link);
            LinkOutcome {
                name: network.name(*link).to_owned(),
                down_octets: down.octets,
                up_octets: up.octets,
                lost_packets: down.lost + up.lost,
            }
        });
        // The last links are those of the receivers.
        let to_receivers = self.fabric.links.iter().rev().take(self.regions.len());
        Outcome {
            completion_ns: stream.and_then(SendStream::completed_at).map(Instant::as_ns),
            failure: self.source().failure().map(|(_, status)| status),
            invariant_violations: self.checker.violations(),
            first_violation: self.checker.first().cloned(),
            source: self.source_outcome(sha256),
            receivers: receivers.collect(),
            links: links.collect(),
            repair: self.repair(),
            frames_to_receivers: to_receivers.map(|link| network.counters(*link)[0].frames).sum(),
            hops: network.hops(),
            dropped_for_memory: network.dropped_for_memory(),
            chunks_in_use: network.chunks_in_use(),
        }
    }

    fn repair(&self) -> RepairCounters {
        let mut sum = RepairCounters::default();
        let id = self.group.record().id;
        for node in self.fabric.switch.iter().chain(&self.fabric.nodes) {
            sum += self.fabric.node(*node).repair_counters(id).unwrap_or_default();
        }
        sum
    }

    fn source_outcome(&self, sha256: Sha256Digest) -> SourceOutcome {
        let counters = self.source().counters(addressing::qpn_toward(SOURCE_RANK)).copied().unwrap_or_default();
        SourceOutcome {
            sha256,
            egress_octets: counters.payload_octets_sent,
            packets_sent: counters.packets_sent,
            packets_retransmitted: counters.packets_retransmitted,
            acks_received: self.acks_received,
            naks_received: self.naks_received,
            cnps_received: counters.cnps_received,
            timeouts: counters.timeouts,
        }
    }

    fn receiver_outcome(&self, rank: usize, of_source: Sha256Digest) -> Option<ReceiverOutcome> {
        let host = self.receiver(rank);
        let qpn = addressing::receiving_qpn(rank + 1);
        let (counters, replica) = (host.counters(qpn)?, host.region(self.regions[rank])?);
        Some(ReceiverOutcome {
            name: self.scenario.topology.receivers()[rank].name.clone(),
            qpn,
            octets: replica.complete_octets(),
            sha256: replica.sha256(of_source),
            is_identical: replica.is_identical(),
            acks_sent: counters.acks_sent,
            naks_sent: counters.naks_sent + counters.rnr_naks_sent,
        })
    }
}
