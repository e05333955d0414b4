//! One run: an arm of a scenario with a seed.

use super::build::{ADDRESSES, Fabric};
use super::flows::{FlowSize, PlannedFlow, plan};
use super::path::Path;
use super::results::{ArmResult, FlowResult, Totals};
use super::scenario::{Arm, Scenario};
use super::server::Ended;
use crate::random::Stream;
use srdma_fabric::{HostId, NextHops};
use srdma_rc::{Habits, QueuePairConfig};
use srdma_wire::{Instant, Qpn};

const NS_PER_US: u64 = 1000;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time that has passed, in nanoseconds.
    pub now_ns: u64,
    /// When the run ends at the latest.
    pub end_ns: u64,
    /// Flows that have ended.
    pub ended: usize,
    /// Flows that will end.
    pub flows: usize,
    /// Frames that have arrived anywhere.
    pub packet_hops: u64,
}

/// Why a run was not possible.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A switch refused its configuration.
    #[error("a switch refused its configuration: {0}")]
    Switch(#[from] srdma_dataplane::ConfigError),
    /// A host refused a queue pair.
    #[error("a host refused a queue pair: {0}")]
    QueuePair(#[from] srdma_rc::ConfigError),
    /// A host refused a flow.
    #[error("a host refused a flow: {0}")]
    Flow(#[from] srdma_rc::PostError),
    /// There is no such arm.
    #[error("the scenario has {arms} arms, counted from 0: there is no arm {found}")]
    Arm {
        /// How many there are.
        arms: usize,
        /// What was asked for.
        found: usize,
    },
}

/// Runs an arm, by its position, with a seed. `progress` is called now and then.
///
/// Everything that comes out follows from the arguments: no clock, no thread, no order of a hash table has a say.
///
/// # Errors
///
/// Those of [`RunError`]: of a checked scenario only an arm that it does not have.
pub fn run(
    scenario: &Scenario,
    arm: usize,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<ArmResult, RunError> {
    let arms = scenario.arms.len();
    let arm = scenario.arms.get(arm).ok_or(RunError::Arm { arms, found: arm })?;
    let mut run = Run::new(scenario, arm, seed)?;
    run.proceed(progress)?;
    Ok(run.result())
}

struct Run<'a> {
    scenario: &'a Scenario,
    arm: &'a Arm,
    seed: u64,
    next_hops: NextHops,
    fabric: Fabric,
    flows: Vec<PlannedFlow>,
    finished: Vec<Option<Instant>>,
    /// Flows that have begun.
    begun: usize,
    /// Flows that have ended.
    ended: usize,
    /// The queue pair of the first flow, at both ends; that of the next is one more.
    first_qpn: u32,
    last_end: Instant,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, arm: &'a Arm, seed: u64) -> Result<Self, RunError> {
        let next_hops = NextHops::new(&scenario.topology);
        let fabric = Fabric::new(scenario, &next_hops, seed)?;
        let flows = plan(scenario, seed);
        let first_qpn = 0x100 + Stream::new(seed, "queue pairs").below(1 << 22) as u32;
        Ok(Run {
            scenario,
            arm,
            seed,
            next_hops,
            fabric,
            finished: vec![None; flows.len()],
            flows,
            begun: 0,
            ended: 0,
            first_qpn,
            last_end: Instant::ZERO,
        })
    }

    fn proceed(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<(), RunError> {
        let measures = &self.scenario.measures;
        let duration_ns = measures.duration_us.get() * NS_PER_US;
        let end_ns = duration_ns + measures.drain_us.get() * NS_PER_US;
        let step_ns = measures.sample_ns.get();
        let flows = self.flows.iter().filter(|flow| matches!(flow.size, FlowSize::Octets(_))).count();
        let mut now_ns = 0;
        while now_ns < end_ns && (now_ns < duration_ns || self.ended < flows) {
            let until_ns = now_ns + step_ns;
            self.proceed_until(until_ns)?;
            now_ns = until_ns;
            if now_ns - step_ns < duration_ns && now_ns >= duration_ns {
                self.finish_endless();
            }
            self.collect();
            let packet_hops = self.fabric.network.hops();
            progress(Progress { now_ns, end_ns, ended: self.ended, flows, packet_hops });
        }
        Ok(())
    }

    /// Begins the flows that begin before a time, and lets everything happen that happens before it.
    fn proceed_until(&mut self, until_ns: u64) -> Result<(), RunError> {
        while let Some(flow) = self.flows.get(self.begun).filter(|flow| flow.start_ns < until_ns) {
            let start = Instant::from_ns(flow.start_ns);
            self.step_until(start);
            self.begin(self.begun)?;
            self.begun += 1;
        }
        self.step_until(Instant::from_ns(until_ns));
        Ok(())
    }

    /// Lets everything happen before a time.
    fn step_until(&mut self, time: Instant) {
        let Some(limit) = time.as_ns().checked_sub(1).map(Instant::from_ns) else {
            return;
        };
        while self.fabric.network.step(limit).is_some() {}
        self.fabric.network.wait_until(time);
    }

    fn begin(&mut self, number: usize) -> Result<(), RunError> {
        let flow = &self.flows[number];
        let (from, to, size) = (flow.from, flow.to, flow.size);
        let qpn = self.qpn(number);
        let [near, far] = [self.queue_pair(qpn, to), self.queue_pair(qpn, from)];
        self.fabric.with_server(to, |server| server.connect(far)).transpose()?;
        self.fabric.with_server(from, |server| server.connect(near)).transpose()?;
        match size {
            FlowSize::Octets(octets) => {
                self.fabric.with_server(from, |server| server.begin(number, qpn, octets)).transpose()?;
            }
            FlowSize::Endless(message_octets) => {
                let begin = |server: &mut super::server::Server| server.begin_endless(number, qpn, message_octets);
                self.fabric.with_server(from, begin).transpose()?;
            }
        }
        Ok(())
    }

    fn qpn(&self, number: usize) -> Qpn {
        Qpn::new(self.first_qpn + number as u32).expect("there are far fewer than 2^23 flows")
    }

    fn queue_pair(&self, qpn: Qpn, peer: HostId) -> QueuePairConfig {
        let hosts = &self.scenario.hosts;
        QueuePairConfig {
            path_mtu: hosts.path_mtu(),
            ack_timeout: hosts.ack_timeout.get() as u8,
            habits: Habits {
                max_outstanding_psns: hosts.outstanding_packets.get() as u32,
                ack_request_interval: hosts.ack_every.get() as u32,
                ..Habits::soft_roce()
            },
            ..QueuePairConfig::new(qpn, ADDRESSES.host(&self.scenario.topology, peer), qpn)
        }
    }

    fn finish_endless(&mut self) {
        for host in self.scenario.topology.host_ids() {
            self.fabric.with_server(host, |server| server.finish_endless());
        }
    }

    /// Takes in which flows have ended.
    fn collect(&mut self) {
        for host in self.scenario.topology.host_ids() {
            let ended: Vec<Ended> =
                self.fabric.with_server(host, |server| server.take_ended().collect()).unwrap_or_default();
            for Ended { flow, at, failed } in ended {
                if matches!(self.flows[flow].size, FlowSize::Octets(_)) {
                    self.ended += 1;
                    self.finished[flow] = Some(at).filter(|_| !failed);
                    self.last_end = self.last_end.max(at);
                }
            }
        }
    }

    fn result(self) -> ArmResult {
        let flows: Vec<FlowResult> = (0..self.begun).map(|number| self.flow_result(number)).collect();
        let mut totals = Totals::default();
        for (number, flow) in self.flows[..self.begun].iter().enumerate() {
            let counters =
                self.fabric.server(flow.from).and_then(|server| server.endpoint().counters(self.qpn(number)));
            if let Some(counters) = counters {
                totals.data_packets += counters.packets_sent;
                totals.retransmitted += counters.packets_retransmitted;
                totals.octets_sent += counters.payload_octets_sent;
            }
        }
        for host in self.scenario.topology.host_ids() {
            let Some(server) = self.fabric.server(host) else { continue };
            totals.lost_by_simulator += server.misdelivered() + server.starved();
            if let Some(memory) = server.memory() {
                totals.octets_delivered += memory.written_octets();
                totals.octets_differing += memory.differing_octets();
            }
        }
        totals.lost_by_simulator += self.fabric.network.starved();
        ArmResult {
            arm: self.arm.name.clone(),
            title: self.arm.title().to_owned(),
            seed: self.seed,
            simulated_ns: self.last_end.as_ns(),
            packet_hops: self.fabric.network.hops(),
            verified_icrc: self.scenario.hosts.verify_icrc,
            flows,
            ports: Vec::new(),
            series: Vec::new(),
            notifications: Vec::new(),
            totals,
            summary: super::results::Summary::default(),
        }
    }

    fn flow_result(&self, number: usize) -> FlowResult {
        let flow = &self.flows[number];
        let topology = &self.scenario.topology;
        let [source, destination] = [flow.from, flow.to].map(|host| topology.hosts()[host.index()].name.clone());
        let counters = self.fabric.server(flow.from).and_then(|server| server.endpoint().counters(self.qpn(number)));
        let mtu_octets = u64::from(self.scenario.hosts.path_mtu().octets());
        let size_octets = match flow.size {
            FlowSize::Octets(octets) => u64::from(octets),
            FlowSize::Endless(_) => counters.map_or(0, |counters| counters.packets_acknowledged * mtu_octets),
        };
        let path = Path::between(topology, &self.next_hops, flow.from, flow.to);
        let ideal_ns = path.flow_ns(size_octets, mtu_octets);
        let finished_ns = self.finished[number].map(Instant::as_ns);
        FlowResult {
            kind: flow.kind,
            name: flow.name.clone(),
            source,
            destination,
            size_octets,
            started_ns: flow.start_ns,
            finished_ns,
            ideal_ns,
            slowdown: finished_ns.map(|finished| ((finished - flow.start_ns) as f64 / ideal_ns as f64).max(1.0)),
            retransmitted: counters.map_or(0, |counters| counters.packets_retransmitted),
        }
    }
}
