//! One run: a variant of a scenario with a seed.

use super::build::{ADDRESSES, Fabric};
use super::engine::NEVER_NS;
use super::failure_schedule::FailureSchedule;
use super::flow_level;
use super::flows::{FlowSize, PlannedFlow, plan};
use super::groups::{self, PlannedGroup, SetupError};
use super::iterations::Jobs;
use super::nic::Outer;
use super::observe::Observation;
use super::path::{ACK_OCTETS, Path, full_packet_octets};
use super::programs;
use super::queues::TRACE_NAMESPACE;
use super::results::{FlowKind, VariantResult};
use super::sample::{SampledFlow, Sampler};
use super::scenario::{Control, FabricScenario, HpccKeys, Level, Variant};
use super::server::{DATA_DSCP, Ended, Notice, Server};
use super::steady::{CHECKS_PER_STEP, Skipped};
use super::teardown::Teardown;
use srdma_fabric::{HostId, NextHops, NodeId, SidPlan};
use srdma_random::Stream;
use srdma_rc::rate::RateAlgorithm;
use srdma_rc::{Habits, QueuePairConfig, TraceRequest};
use srdma_sim::observer::PeriodicObserver;
use srdma_wire::units::NS_PER_US;
use srdma_wire::{Instant, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Elapsed virtual time, in nanoseconds.
    pub now_ns: u64,
    /// Latest end of the run.
    pub end_ns: u64,
    /// Completed flows and iterations.
    pub ended: usize,
    /// Finite flows and iterations.
    pub flows: usize,
    /// Frames received by any element.
    pub packet_hops: u64,
    /// Queue pairs of all hosts.
    pub queue_pairs: usize,
}

impl Progress {
    /// The share of the run that is done, from 0 to 1: in virtual time or in flows, whichever is further.
    pub fn share(&self) -> f64 {
        let share = |done: u64, all: u64| if all == 0 { 0.0 } else { done.min(all) as f64 / all as f64 };
        share(self.now_ns, self.end_ns).max(share(self.ended as u64, self.flows as u64))
    }
}

/// Error of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A switch rejected its configuration.
    #[error("a switch rejected its configuration: {0}")]
    Switch(#[from] srdma_dataplane::ConfigError),
    /// A host rejected a queue pair.
    #[error("a host rejected a queue pair: {0}")]
    QueuePair(#[from] srdma_rc::ConfigError),
    /// A group is invalid.
    #[error("the group of a multicast flow is invalid: {0}")]
    Group(#[from] SetupError),
    /// A host rejected a flow.
    #[error("a host rejected a flow: {0}")]
    Flow(#[from] srdma_rc::PostError),
    /// The fabric has no SIDs.
    #[error("the fabric has no SIDs: {0}")]
    Sids(#[from] srdma_fabric::TopologyError),
    /// Flows of jobs cannot be placed.
    #[error("flows of jobs cannot be placed: {0}")]
    Placement(#[from] srdma_placement::PlacementError),
    /// A path has no program.
    #[error("a path has no program: {0}")]
    Program(#[from] srdma_fabric::ProgramError),
    /// A program does not fit in front of a packet.
    #[error("a program does not fit in front of a packet: {0}")]
    Encaps(#[from] srdma_dataplane::EncapsError),
    /// A NIC rejected its paths.
    #[error("a NIC rejected its paths: {0}")]
    Headend(#[from] srdma_dataplane::headend::HeadendError),
    /// Too many queue pairs.
    #[error("the jobs need {found} queue pairs: expected {most} at most; take fewer `queue_pairs`, or smaller groups")]
    QueuePairs {
        /// Queue pairs of the jobs.
        found: usize,
        /// Maximum.
        most: usize,
    },
    /// The observer failed.
    #[error("a recording cannot be written: {0}")]
    PeriodicObserver(#[from] std::io::Error),
    /// A run at flow level cannot be observed.
    #[error("a run at flow level has no packets to record: use packet level")]
    NoPackets,
    /// There is no such variant.
    #[error("the scenario has {variants} variants, counted from 0: there is no variant {found}")]
    Variant {
        /// Number of variants.
        variants: usize,
        /// The requested position.
        found: usize,
    },
}

/// Runs a variant, by its position, with a seed, on one thread. `progress` is called periodically.
///
/// The result depends on the arguments only: not on a clock, threads or the order of a hash table.
///
/// # Errors
///
/// Those of [`RunError`]: of a checked scenario only a variant that it does not have.
pub fn run(
    scenario: &FabricScenario,
    variant: usize,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<VariantResult, RunError> {
    run_observed(scenario, variant, seed, 1, progress, None)
}

/// [`run`] on at most `threads` threads, at packet level, and with an observer. Neither changes the results.
///
/// # Errors
///
/// Those of [`RunError`], including failures of the observer.
pub fn run_observed(
    scenario: &FabricScenario,
    variant: usize,
    seed: u64,
    threads: usize,
    progress: &mut dyn FnMut(Progress),
    observer: Option<&mut PeriodicObserver<'_>>,
) -> Result<VariantResult, RunError> {
    let variants = scenario.variants.len();
    let variant = scenario.variants.get(variant).ok_or(RunError::Variant { variants, found: variant })?;
    if scenario.level == Level::Flow {
        return match observer {
            None => flow_level::run(scenario, variant, seed, progress),
            Some(_) => Err(RunError::NoPackets),
        };
    }
    let measures = &scenario.measures;
    let duration_ns = measures.duration_us.get() * NS_PER_US;
    let end_ns = duration_ns + measures.drain_us.get() * NS_PER_US;
    let mut run = Run::new(scenario, variant, seed, threads)?;
    if measures.control_run && !scenario.workloads.incast.is_empty() && scenario.workloads.has_endless() {
        let mut control = Run::new(scenario, variant, seed, threads)?;
        control.without_incasts = true;
        let whole_ns = duration_ns + end_ns;
        let control_progress = &mut |how_far| progress(Progress { end_ns: whole_ns, ..how_far });
        control.proceed(duration_ns, control_progress, None)?;
        (run.control_delivered, run.control_hops) = (Some(control.delivered), control.fabric.network.hops());
        let before = run.control_hops;
        let run_progress = &mut |how_far: Progress| {
            let (now_ns, packet_hops) = (how_far.now_ns + duration_ns, how_far.packet_hops + before);
            progress(Progress { now_ns, end_ns: whole_ns, packet_hops, ..how_far });
        };
        run.proceed(end_ns, run_progress, observer)?;
    } else {
        run.proceed(end_ns, progress, observer)?;
    }
    Ok(run.result())
}

/// ECT(0), in the low bits of the traffic class (RFC 3168).
pub(super) const ECT_0: u8 = 2;

pub(super) struct Run<'a> {
    pub(super) scenario: &'a FabricScenario,
    pub(super) variant: &'a Variant,
    pub(super) seed: u64,
    pub(super) next_hops: NextHops,
    pub(super) fabric: Fabric,
    pub(super) flows: Vec<PlannedFlow>,
    pub(super) finished: Vec<Option<Instant>>,
    /// The first notification of each sender, by queue pair and origin.
    pub(super) notices: BTreeMap<(Qpn, Ipv6Addr), Notice>,
    /// Delivered octets of each flow at the end of the measurement.
    pub(super) delivered: Vec<u64>,
    /// The same in the control run without incasts, and its received frames.
    pub(super) control_delivered: Option<Vec<u64>>,
    pub(super) control_hops: u64,
    /// Groups, by the numbers of their flows.
    pub(super) groups: BTreeMap<usize, PlannedGroup>,
    /// Whether this is the control run, without incasts.
    without_incasts: bool,
    pub(super) sampler: Sampler,
    pub(super) sampled: Vec<SampledFlow>,
    pub(super) teardown: Teardown,
    pub(super) jobs: Jobs,
    /// The fabric's SIDs, if hosts choose paths.
    pub(super) sids: Option<SidPlan>,
    /// Failures and repairs.
    pub(super) failure_schedule: FailureSchedule,
    /// The longest round trip with empty queues.
    base_rtt_ns: u64,
    /// Started flows.
    pub(super) begun: usize,
    /// Completed flows.
    ended: usize,
    /// The queue pair of the first flow, at both ends; that of the next is one more.
    first_qpn: u32,
    pub(super) last_end: Instant,
    /// Steady states that were skipped.
    pub(super) skipped: Skipped,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        scenario: &'a FabricScenario,
        variant: &'a Variant,
        seed: u64,
        threads: usize,
    ) -> Result<Self, RunError> {
        Self::of_flows(scenario, variant, seed, threads, plan(scenario, seed))
    }

    /// The same with these flows, in the order of their beginnings.
    pub(super) fn of_flows(
        scenario: &'a FabricScenario,
        variant: &'a Variant,
        seed: u64,
        threads: usize,
        flows: Vec<PlannedFlow>,
    ) -> Result<Self, RunError> {
        let next_hops = NextHops::new(&scenario.topology);
        let sids = programs::sid_plan(scenario, variant)?;
        let fabric = Fabric::new(scenario, variant, &next_hops, sids.as_ref(), seed, threads)?;
        let base_rtt_ns = base_rtt_ns(scenario, &next_hops);
        let first_qpn = first_qpn(seed);
        let mut rate_names: Vec<String> = flows.iter().filter_map(series_name).collect();
        rate_names.sort();
        rate_names.dedup();
        let mut run = Run {
            scenario,
            variant,
            seed,
            next_hops,
            fabric,
            finished: vec![None; flows.len()],
            teardown: Teardown::new(flows.len()),
            flows,
            notices: BTreeMap::new(),
            delivered: Vec::new(),
            control_delivered: None,
            control_hops: 0,
            groups: BTreeMap::new(),
            without_incasts: false,
            sampler: Sampler::new(scenario, rate_names),
            sampled: Vec::new(),
            failure_schedule: FailureSchedule::new(scenario, variant, seed),
            sids,
            jobs: Jobs::new(scenario, variant.queue_pairs.get() as usize)?,
            base_rtt_ns,
            begun: 0,
            ended: 0,
            first_qpn,
            last_end: Instant::ZERO,
            skipped: Skipped::default(),
        };
        run.set_up_jobs()?;
        Ok(run)
    }

    /// Runs until all flows have ended, or until `end_ns`.
    pub(super) fn proceed(
        &mut self,
        end_ns: u64,
        progress: &mut dyn FnMut(Progress),
        observer: Option<&mut PeriodicObserver<'_>>,
    ) -> Result<(), RunError> {
        let measures = &self.scenario.measures;
        let duration_ns = measures.duration_us.get() * NS_PER_US;
        let step_ns = measures.sample_ns.get();
        let flows = self.flows.iter().filter(|flow| flow.size.ends()).count();
        let mut observe = Observation::new(observer, self, step_ns)?;
        let mut now_ns = 0;
        let has_jobs = !self.scenario.jobs.is_empty();
        while now_ns < end_ns && (!has_jobs && now_ns < duration_ns || self.ended < flows || !self.jobs.are_done()) {
            let before_ns = now_ns;
            now_ns = self.proceed_step(now_ns, step_ns, end_ns)?;
            if before_ns < duration_ns && now_ns >= duration_ns {
                self.finish_endless();
            }
            self.collect(Instant::from_ns(now_ns));
            self.collect_iterations(now_ns)?;
            self.sampler.sample(&self.fabric, &self.sampled);
            self.close(Instant::from_ns(now_ns));
            observe.observe(self, now_ns)?;
            let packet_hops = self.fabric.network.hops();
            let queue_pairs = self.fabric.all_servers().map(|server| server.endpoint().queue_pairs()).sum();
            let (iterations, of) = self.jobs.progress();
            let (ended, flows) = (self.ended + iterations, flows + of);
            progress(Progress { now_ns, end_ns, ended, flows, packet_hops, queue_pairs });
        }
        if self.delivered.is_empty() {
            self.finish_endless();
        }
        observe.end(self, now_ns)
    }

    /// Processes a step, in which steady states are skipped if that is chosen. Returns its end.
    fn proceed_step(&mut self, now_ns: u64, step_ns: u64, end_ns: u64) -> Result<u64, RunError> {
        if !self.scenario.skip_steady {
            self.proceed_until(now_ns + step_ns)?;
            return Ok(now_ns + step_ns);
        }
        // Collectives begin at ends of steps, so these are where they would be without a skip.
        let (check_ns, step_end_ns) = ((step_ns / CHECKS_PER_STEP).max(1), (now_ns / step_ns + 1) * step_ns);
        let mut until_ns = now_ns;
        while until_ns < step_end_ns {
            until_ns = ((until_ns / check_ns + 1) * check_ns).min(step_end_ns);
            self.proceed_until(until_ns)?;
            until_ns += self.skip_steady(until_ns, end_ns);
        }
        Ok(until_ns)
    }

    /// The time in the fabric, where skipped time has not passed.
    pub(super) fn fabric_time(&self, now_ns: u64) -> Instant {
        Instant::from_ns(now_ns - self.skipped.ns)
    }

    /// Starts flows and processes all events before a time.
    pub(super) fn proceed_until(&mut self, until_ns: u64) -> Result<(), RunError> {
        loop {
            let flow_ns = self.flows.get(self.begun).map_or(NEVER_NS, |flow| flow.start_ns);
            let (job_ns, job) = self.jobs.next_start().unwrap_or((NEVER_NS, 0));
            let failure_ns = self.failure_schedule.next_ns();
            let next_ns = flow_ns.min(job_ns).min(failure_ns);
            if next_ns >= until_ns {
                break;
            }
            self.fabric.network.proceed_until(self.fabric_time(next_ns));
            if failure_ns == next_ns {
                self.apply_failure()?;
            } else if flow_ns == next_ns {
                self.begin(self.begun)?;
                self.begun += 1;
            } else {
                self.begin_iteration(job, next_ns)?;
            }
        }
        self.fabric.network.proceed_until(self.fabric_time(until_ns));
        Ok(())
    }

    fn begin(&mut self, number: usize) -> Result<(), RunError> {
        let flow = &self.flows[number];
        if self.without_incasts && flow.kind == FlowKind::Incast {
            return Ok(());
        }
        let (from, to, size) = (flow.from, flow.to, flow.size);
        let qpn = self.qpn(number);
        if let Some(name) = series_name(flow) {
            self.sampled.push(SampledFlow { name, to, qpn });
        }
        if !flow.receivers.is_empty() {
            self.set_up_group(number)?;
        } else {
            let [near, far] = [self.queue_pair(qpn, from, to), self.queue_pair(qpn, to, from)];
            let outer = self.stream_outer(number)?;
            self.connect(to, far, None)?;
            self.connect(from, near, outer)?;
        }
        let begin = |server: &mut Server| match size {
            FlowSize::Octets(octets) => server.begin(number, qpn, octets),
            FlowSize::Endless(message_octets) => server.begin_endless(number, qpn, message_octets),
            FlowSize::Messages { octets, message_octets } => server.begin_messages(number, qpn, octets, message_octets),
        };
        self.fabric.with_server(from, begin).transpose()?;
        Ok(())
    }

    /// Adds a queue pair to a host, with the outer headers of its packets.
    pub(super) fn connect(
        &mut self,
        own: HostId,
        config: QueuePairConfig,
        outer: Option<Outer>,
    ) -> Result<(), RunError> {
        if let Some(outer) = outer {
            let (peer, qpn) = (config.remote_address, config.remote_qpn);
            self.fabric.with_server(own, |server| server.encapsulate(peer, qpn, outer)).transpose()?;
        }
        self.fabric.with_server(own, |server| server.connect(config)).transpose()?;
        Ok(())
    }

    /// The outer headers of a stream through a given switch.
    fn stream_outer(&self, number: usize) -> Result<Option<Outer>, RunError> {
        let flow = &self.flows[number];
        let (Some(via), Some(plan)) = (flow.via, &self.sids) else { return Ok(None) };
        let ends = [NodeId::Host(flow.from), via, NodeId::Host(flow.to)];
        programs::stream_header(self.scenario, plan, &self.next_hops, ends)
    }

    /// Applies the group entries of a multicast flow at the switches, and connects its hosts to the Proxy Address.
    /// Queue pairs of groups request no trace: the nodes of the group send the source that of the most loaded path.
    fn set_up_group(&mut self, number: usize) -> Result<(), RunError> {
        let (flow, qpn, group_number) = (&self.flows[number], self.qpn(number), self.groups.len());
        let Some(region) = self.fabric.server(flow.from).map(Server::region) else { return Ok(()) };
        let group = PlannedGroup::new(self.scenario, group_number, flow, qpn, region)?;
        for (switch, command) in group.commands() {
            self.fabric.with_switch(switch, |node| node.apply(command)).transpose()?;
        }
        for host in flow.receivers.iter().copied().chain([flow.from]) {
            let member = QueuePairConfig {
                rate: self.rate(host, self.variant.hpcc.of_group()),
                remote_address: groups::proxy(group_number),
                trace: None,
                trace_return_interval_ns: None,
                // The nodes of a group merge ACKs, and no marks in them.
                cnp_interval_ns: self.variant.signal.has_marks().then(|| self.cnp_interval_ns()),
                echoes_marks: false,
                ..self.queue_pair(qpn, host, flow.from)
            };
            self.fabric.with_server(host, |server| server.connect(member)).transpose()?;
        }
        self.groups.insert(number, group);
        Ok(())
    }

    pub(super) fn qpn(&self, number: usize) -> Qpn {
        Qpn::new(self.first_qpn + number as u32).expect("there are far fewer than 2^23 flows")
    }

    pub(super) fn queue_pair(&self, qpn: Qpn, own: HostId, peer: HostId) -> QueuePairConfig {
        let (hosts, topology) = (&self.scenario.hosts, &self.scenario.topology);
        let steered = self.variant.control == Control::Hpcc;
        let ecn = if self.variant.signal.has_marks() { ECT_0 } else { 0 };
        QueuePairConfig {
            path_mtu: hosts.path_mtu(),
            traffic_class: DATA_DSCP << 2 | ecn,
            ack_timeout: hosts.ack_timeout.get() as u8,
            cnp_interval_ns: self.variant.signal.has_cnps().then(|| self.cnp_interval_ns()),
            echoes_marks: self.variant.signal.has_echoes(),
            rate: self.rate(own, self.variant.hpcc),
            trace: steered
                .then(|| TraceRequest::hpcc(TRACE_NAMESPACE, self.next_hops.diameter().saturating_sub(1) as u8)),
            trace_return_interval_ns: steered.then(|| self.variant.hpcc.feedback_interval_ns()),
            habits: Habits {
                max_outstanding_psns: hosts.outstanding_packets.get() as u32,
                ack_request_interval: hosts.ack_every.get() as u32,
                ..Habits::soft_roce()
            },
            ..QueuePairConfig::new(qpn, ADDRESSES.host(topology, peer), qpn)
        }
    }

    fn cnp_interval_ns(&self) -> u64 {
        self.variant.cnp_interval_ns.unwrap_or(self.scenario.hosts.cnp_interval_ns).get()
    }

    /// The rate control of a sender.
    fn rate(&self, own: HostId, hpcc: HpccKeys) -> Option<RateAlgorithm> {
        let topology = &self.scenario.topology;
        let link = topology.ports(NodeId::Host(own)).first().map(|port| &topology.links()[port.link.index()]);
        let line_rate_bits_per_s = link.map_or(1, |link| link.rate_bits_per_s);
        Some(match self.variant.control {
            Control::None => return None,
            Control::Dcqcn => RateAlgorithm::Dcqcn(self.variant.dcqcn.parameters(line_rate_bits_per_s)),
            Control::DcqcnPlus => {
                RateAlgorithm::Dcqcn(self.variant.dcqcn.plus(line_rate_bits_per_s, self.cnp_interval_ns()))
            }
            Control::Hpcc => {
                RateAlgorithm::Hpcc(hpcc.parameters(line_rate_bits_per_s, self.base_rtt_ns, TRACE_NAMESPACE))
            }
            Control::Nscc => {
                let packet_octets = full_packet_octets(self.scenario.hosts.path_mtu().octets().into());
                RateAlgorithm::Nscc(self.variant.nscc.parameters(line_rate_bits_per_s, self.base_rtt_ns, packet_octets))
            }
        })
    }

    /// Records the delivered octets of all flows and ends streams.
    pub(super) fn finish_endless(&mut self) {
        self.delivered = (0..self.begun).map(|number| self.totals_of(number).delivered_octets).collect();
        for host in self.scenario.topology.host_ids() {
            self.fabric.with_server(host, Server::finish_endless);
        }
    }

    /// Collects completed flows and congestion notifications.
    pub(super) fn collect(&mut self, now: Instant) {
        for host in self.scenario.topology.host_ids() {
            let collected = self.fabric.with_server(host, |server| {
                let ended: Vec<Ended> = server.take_ended().collect();
                let notices: Vec<Notice> = server.take_notices().collect();
                (ended, notices)
            });
            let Some((ended, notices)) = collected else { continue };
            for Ended { flow, at, failed } in ended {
                if self.flows[flow].size.ends() {
                    self.ended += 1;
                    if self.flows[flow].receivers.is_empty() {
                        self.teardown.schedule(flow, now);
                    }
                    self.finished[flow] = Some(at).filter(|_| !failed);
                    self.last_end = self.last_end.max(at);
                }
            }
            for notice in notices {
                self.notices.entry((notice.qpn, notice.by)).or_insert(notice);
            }
        }
    }
}

/// The queue pair of the first flow, at both ends; that of the next is one more.
pub(super) fn first_qpn(seed: u64) -> u32 {
    0x100 + Stream::new(seed, "queue pairs").below(1 << 22) as u32
}

/// The series of a flow's rate.
fn series_name(flow: &PlannedFlow) -> Option<String> {
    match flow.kind {
        FlowKind::Incast => Some("incast".to_owned()),
        FlowKind::Stream | FlowKind::Multicast | FlowKind::Broadcast => flow.name.clone(),
        FlowKind::Background | FlowKind::Permutation => None,
    }
}

/// Maximum octets of a full packet's headers and trace.
const LONGEST_HEADERS_OCTETS: u64 = 350;

/// The longest round trip of a full packet and its ACK while nothing waits: between the first host and the one farthest
/// from it, in a fabric where all such paths are alike.
fn base_rtt_ns(scenario: &FabricScenario, next_hops: &NextHops) -> u64 {
    let topology = &scenario.topology;
    let first = HostId(0);
    let full = u64::from(scenario.hosts.path_mtu().octets()) + LONGEST_HEADERS_OCTETS;
    let round_trip_ns = |host| {
        let path = Path::between(topology, next_hops, first, host);
        path.frame_ns(full) + path.frame_ns(ACK_OCTETS)
    };
    topology.host_ids().filter(|host| *host != first).map(round_trip_ns).max().unwrap_or(1)
}
