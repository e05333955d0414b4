//! A run with a seed: time passes, a switch restarts, observers and checkers look at everything.

use super::results::{EndToEndRun, ReceiverRun};
use super::scenario::EndToEndScenario;
use super::setup::Site;
use super::totals::{HoldTracker, NodeTotals, PauseTracker};
use crate::device::Device;
use crate::run::RunError;
use crate::server::{DATA_CLASS, Server};
use crate::wan::Wan;
use crate::wan::figure;
use crate::wan::nodes::port_toward;
use sha2::{Digest, Sha256};
use srdma_dataplane::Node;
use srdma_fabric::{NodeId, SwitchId};
use srdma_frame::PortId;
use srdma_sim::invariants::Checker;
use srdma_sim::observer::PeriodicObserver;
use srdma_sim::program::SendStream;
use srdma_sim::replica::{Replica, Sha256Digest};
use srdma_sim::snapshot::ElementSnapshot;
use srdma_wire::units::{NS_PER_MS, NS_PER_S, NS_PER_US};
use srdma_wire::{Instant, Syndrome};
use std::collections::BTreeMap;

/// From point to point of the time series.
const EVERY_NS: u64 = 100_000;

/// Interval of observations, in nanoseconds.
const SNAPSHOT_INTERVAL_NS: u64 = 20_000;

/// Maximum time after the end of the stream: other flows end, timers expire.
const DRAIN_NS: u64 = NS_PER_S;

/// An event at a planned time.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// A host begins to send: its place among those that do.
    Begins(usize),
    /// The switch that restarts goes down.
    Down(SwitchId),
    /// It comes back.
    Back(SwitchId),
}

/// A run.
pub(super) struct World<'a> {
    plan: &'a EndToEndScenario,
    seed: u64,
    site: Site,
    /// Planned events, the next one last.
    turns: Vec<(Instant, Turn)>,
    checker: Checker,
    counted: NodeTotals,
    holds: HoldTracker,
    paused: PauseTracker,
    restarts: u64,
    /// Octets that were acknowledged when the switch went down.
    acknowledged_at_restart: Option<u64>,
    acks_at_source: u64,
    naks_at_source: u64,
    acknowledged: Vec<f64>,
    queue: Vec<f64>,
    most: usize,
    /// When something happened last.
    last_event: Instant,
    /// Drops of switches before their restarts.
    forgotten: BTreeMap<SwitchId, ElementSnapshot>,
}

impl<'a> World<'a> {
    /// Sets everything up.
    ///
    /// # Errors
    /// Only a defect can cause them.
    pub(super) fn new(plan: &'a EndToEndScenario, seed: u64) -> Result<Self, RunError> {
        let site = Site::new(plan, seed)?;
        let mut turns: Vec<(Instant, Turn)> =
            site.others.iter().enumerate().map(|(place, other)| (other.start, Turn::Begins(place))).collect();
        if let (Some(restart), Some(switch)) = (&plan.section.restart, plan.restarting(seed)) {
            let down = Instant::from_ns(restart.at_us.get() * NS_PER_US);
            turns.push((down, Turn::Down(switch)));
            turns.push((down.after_ns(restart.down_us.get() * NS_PER_US), Turn::Back(switch)));
        }
        turns.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let checker = Checker::new(site.layout);
        Ok(World {
            plan,
            seed,
            site,
            turns,
            checker,
            counted: NodeTotals::default(),
            holds: HoldTracker::default(),
            paused: PauseTracker::default(),
            restarts: 0,
            acknowledged_at_restart: None,
            acks_at_source: 0,
            naks_at_source: 0,
            acknowledged: Vec::new(),
            queue: Vec::new(),
            most: 0,
            last_event: Instant::ZERO,
            forgotten: BTreeMap::new(),
        })
    }

    /// Runs until everything is acknowledged or the source has failed, and then until no frame is in flight.
    ///
    /// # Errors
    ///
    /// Those of a switch that is configured again, and of the observer.
    pub(super) fn run(mut self, mut observer: Option<&mut PeriodicObserver<'_>>) -> Result<EndToEndRun, RunError> {
        if let Some(observer) = &mut observer {
            observer.begin(&self.site.description(), SNAPSHOT_INTERVAL_NS)?;
        }
        let limit_ns = self.plan.section.limit_ms.get() * NS_PER_MS;
        for host in self.site.receivers.iter().map(|(host, _)| *host).chain([self.site.source]).collect::<Vec<_>>() {
            self.site.with_member(host, |member| member.host.start());
        }
        let mut now_ns = 0;
        while now_ns < limit_ns && !self.is_over() {
            now_ns += EVERY_NS;
            self.proceed_until(Instant::from_ns(now_ns), &mut observer)?;
            self.acknowledged.push(self.acknowledged_octets() as f64);
            self.queue.push(std::mem::take(&mut self.most) as f64);
        }
        for other in self.site.others.clone() {
            self.site.with_server(other.from, Server::finish_endless);
        }
        self.proceed_until(Instant::from_ns(now_ns + DRAIN_NS), &mut observer)?;
        if let Some(observer) = observer {
            observer.end(&self.site.snapshot(self.last_event, &self.forgotten))?;
        }
        Ok(self.result())
    }

    fn is_over(&self) -> bool {
        let source = self.site.member(self.site.source).map(|member| &member.host);
        source.is_none_or(|host| {
            host.failure().is_some() || host.send_streams().iter().all(|outgoing| outgoing.completed_at().is_some())
        })
    }

    fn acknowledged_octets(&self) -> u64 {
        let source = self.site.member(self.site.source);
        source.map_or(0, |member| member.host.send_streams().iter().map(SendStream::acknowledged_octets).sum())
    }

    /// Processes all events until a time.
    fn proceed_until(
        &mut self,
        until: Instant,
        observer: &mut Option<&mut PeriodicObserver<'_>>,
    ) -> Result<(), RunError> {
        loop {
            let turn = self.turns.last().copied().filter(|(at, _)| *at <= until);
            let stop = turn.map_or(until, |(at, _)| at);
            while let Some(element) = self.site.network.step(stop) {
                self.look(element);
                self.last_event = self.site.network.now();
                if let Some(observer) = observer {
                    observer.observe_if_due(self.last_event.as_ns(), || {
                        self.site.snapshot(self.last_event, &self.forgotten)
                    })?;
                }
            }
            self.site.network.advance_to(stop);
            match turn {
                None => return Ok(()),
                Some((_, turn)) => {
                    self.turns.pop();
                    self.take(turn)?;
                }
            }
        }
    }

    fn take(&mut self, turn: Turn) -> Result<(), RunError> {
        match turn {
            Turn::Begins(place) => self.site.begin(self.site.others[place])?,
            Turn::Down(switch) => {
                self.acknowledged_at_restart = Some(self.acknowledged_octets());
                let ports = self.ports(switch);
                let id = self.site.switches[switch.index()];
                let before = self.site.network.with(id, |device, _, pool| {
                    if let Some(node) = device.switch_mut() {
                        (0..ports).for_each(|port| _ = node.drop_queue(PortId(port as u16), pool));
                    }
                    std::mem::replace(device, Device::Absent)
                });
                if let Some(node) = before.switch() {
                    self.count(switch, node);
                    self.forgotten.entry(switch).or_default().add(&ElementSnapshot::of(node));
                }
                if switch == figure::pe(0) {
                    self.holds.forget();
                }
            }
            Turn::Back(switch) => {
                let node = self.site.switch(switch, true)?;
                self.site.set_device(switch, Device::Switch(Box::new(node)));
                self.restarts += 1;
            }
        }
        Ok(())
    }

    /// Number of ports that a switch has.
    fn ports(&self, switch: SwitchId) -> usize {
        self.site.scenario.topology.ports(NodeId::Switch(switch)).last().map_or(0, |port| usize::from(port.port) + 1)
    }

    fn count(&mut self, switch: SwitchId, node: &Node) {
        let group = (switch == self.site.root()).then(|| self.site.group_id());
        let (name, ports) = (self.site.scenario.topology.name(NodeId::Switch(switch)), self.ports(switch));
        self.counted.add(name, node, ports, group);
    }

    /// Looks at what something has just happened to.
    fn look(&mut self, element: srdma_sim::network::ElementId) {
        let now = self.site.network.now();
        let is = |switch: SwitchId| self.site.switches[switch.index()] == element;
        if element == self.site.hosts[self.site.source.index()] {
            self.check_responses(now);
        } else if is(figure::pe(0)) {
            if let Some(pe) = self.site.node(figure::pe(0)) {
                self.holds.look(pe, now);
            }
        } else if is(figure::gateway(0)) {
            let topology = &self.site.scenario.topology;
            if let Some(port) = port_toward(topology, figure::gateway(0), figure::pe(0)) {
                self.paused.look(self.site.node(figure::gateway(0)), port, now);
            }
        } else if is(self.plan.section.congested.switch()) {
            self.most = self.most.max(self.waiting());
        }
    }

    /// The node and port of the congested queue.
    fn bottleneck(&self) -> Option<(&Node, PortId)> {
        let topology = &self.site.scenario.topology;
        let port = self.site.scenario.wan.as_ref().and_then(|wan: &Wan| wan.bottleneck(topology))?;
        Some((self.site.node(self.plan.section.congested.switch())?, port))
    }

    fn waiting(&self) -> usize {
        self.bottleneck().and_then(|(node, port)| node.class_octets(port, DATA_CLASS)).unwrap_or(0)
    }

    /// Compares the responses at the source with the memory of the receivers.
    fn check_responses(&mut self, now: Instant) {
        if !self.site.member(self.site.source).is_some_and(|source| source.host.has_responses_or_completions()) {
            return;
        }
        let responses = self.site.with_member(self.site.source, |source| source.host.take_responses().collect());
        let responses: Vec<srdma_sim::invariants::Response> = responses.unwrap_or_default();
        for response in responses {
            match response.syndrome {
                Syndrome::Ack(_) => self.acks_at_source += 1,
                Syndrome::RnrNak(_) | Syndrome::Nak(_) | Syndrome::Reserved(_) => self.naks_at_source += 1,
            }
            let site = &self.site;
            let there = site.receivers.iter().map(|(host, region)| {
                let replica = site.member(*host).and_then(|member| member.host.region(*region));
                replica.map_or(0, Replica::complete_octets)
            });
            self.checker.check(now.as_ns(), response, there);
        }
    }

    /// Ports and hosts whose data are paused.
    fn still_paused(&mut self) -> Vec<String> {
        let mut paused = Vec::new();
        let (now, site) = (self.site.network.now(), &self.site);
        let topology = &site.scenario.topology;
        for switch in topology.switch_ids() {
            let Some(node) = site.node(switch) else { continue };
            let name = topology.name(NodeId::Switch(switch));
            if node.received_pauses().next().is_some() {
                paused.push(format!("END.C at {name}"));
            }
            for port in topology.ports(NodeId::Switch(switch)) {
                if node.paused_classes(PortId(port.port)) != 0 {
                    paused.push(format!("{name}, toward {}", topology.name(port.peer.node)));
                }
            }
        }
        let source = self.site.source;
        if self.site.with_member(source, |member| member.is_paused(now)) == Some(true) {
            paused.push("the source".to_owned());
        }
        paused
    }

    fn result(mut self) -> EndToEndRun {
        let still_paused = self.still_paused();
        for switch in self.site.scenario.topology.switch_ids() {
            let node = self.site.network.element(self.site.switches[switch.index()]).switch();
            let group = (switch == self.site.root()).then(|| self.site.group_id());
            if let Some(node) = node {
                let name = self.site.scenario.topology.name(NodeId::Switch(switch));
                self.counted.add(name, node, self.ports(switch), group);
            }
        }
        let (site, counted) = (&self.site, &self.counted);
        let sha256: Sha256Digest = Sha256::digest(site.data.as_slice()).into();
        let source = site.member(site.source);
        let of_source = source.and_then(|source| source.host.counters(site.source_qpn())).copied().unwrap_or_default();
        let receivers: Vec<ReceiverRun> =
            (1..).zip(&site.receivers).filter_map(|(rank, _)| self.receiver(rank, sha256)).collect();
        let on_link = site.link_of(site.source).map(|link| site.network.counters(link)[1]).unwrap_or_default();
        let frames = site.links.iter().flat_map(|link| site.network.counters(*link));
        let fast_cnps = |other: &super::setup::BackgroundSender| {
            let server = site.network.element(site.hosts[other.from.index()]).server()?;
            Some(server.endpoint().counters(other.qpn)?.fast_cnps_received)
        };
        let restarting = self.plan.restarting(self.seed).filter(|_| self.restarts > 0);
        let sum = |of: fn(&ReceiverRun) -> u64| receivers.iter().map(of).sum::<u64>();
        EndToEndRun {
            seed: self.seed,
            restarted: restarting.map(|switch| site.scenario.topology.name(NodeId::Switch(switch)).to_owned()),
            acknowledged_at_restart: self.acknowledged_at_restart,
            octets: site.layout.size_octets,
            completion_ns: source
                .and_then(|source| source.host.send_streams().first()?.completed_at())
                .map(Instant::as_ns),
            failure: source.and_then(|source| source.host.failure()).map(|(_, status)| format!("{status:?}")),
            sha256: hex::encode(sha256),
            packets: site.layout.packets(),
            packets_sent: of_source.packets_sent,
            retransmitted: of_source.packets_retransmitted,
            timeouts: of_source.timeouts,
            source_frames: on_link.frames,
            headend_packets: counted.headend.data_packets,
            headend_copies: counted.headend.copies,
            responses_checked: self.acks_at_source + self.naks_at_source,
            acks_at_source: self.acks_at_source,
            naks_at_source: self.naks_at_source,
            cnps_at_source: of_source.cnps_received,
            acks_of_receivers: sum(|receiver| receiver.acks_sent),
            naks_of_receivers: sum(|receiver| receiver.naks_sent),
            cnps_of_receivers: sum(|receiver| receiver.cnps_sent),
            receivers,
            invariant_violations: self.checker.violations(),
            first_violation: self.checker.first().map(ToString::to_string),
            lost_on_links: frames.map(|frames| frames.lost).sum(),
            dropped: counted.dropped.clone(),
            end_c_sent: counted.notifications.pauses_sent + counted.notifications.refreshes_sent,
            end_c_resumes: counted.notifications.resumes_sent,
            end_c_taken: counted.notifications.pauses_received,
            end_c_expired: counted.notifications.expired,
            end_c_barred: counted.notifications.watchdog_releases,
            end_e_sent: counted.fast_cnps_by_end_e,
            fast_cnps_at_source: of_source.fast_cnps_received,
            fast_cnps_at_others: site.others.iter().filter_map(fast_cnps).sum(),
            hold_ns: self.plan.section.hold_us.get() * NS_PER_US,
            longest_hold_ns: self.holds.longest_ns,
            gateway_paused_ns: self.paused.total_ns,
            still_paused,
            packet_hops: site.network.hops(),
            lost_by_simulator: site.network.dropped_for_memory(),
            step_ns: EVERY_NS,
            acknowledged: self.acknowledged,
            queue: self.queue,
        }
    }

    fn receiver(&self, rank: usize, of_source: Sha256Digest) -> Option<ReceiverRun> {
        let (host, region) = self.site.receivers.get(rank.checked_sub(1)?)?;
        let member = &self.site.member(*host)?.host;
        let (counters, replica) =
            (member.counters(srdma_sim::addressing::receiving_qpn(rank))?, member.region(*region)?);
        Some(ReceiverRun {
            name: self.site.scenario.topology.name(NodeId::Host(*host)).to_owned(),
            octets: replica.complete_octets(),
            sha256: hex::encode(replica.sha256(of_source)),
            is_identical: replica.is_identical(),
            acks_sent: counters.acks_sent,
            naks_sent: counters.naks_sent + counters.rnr_naks_sent,
            cnps_sent: counters.cnps_sent,
        })
    }
}
