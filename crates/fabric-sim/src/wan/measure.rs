//! One run of a study: a variant at a length of the path and a size of the congested queue, with a seed.

use super::figure::{self, BOTTLENECK_RATE, Distances, HOSTS_PER_LEAF, LEAVES};
use super::nodes::{PE_XOFF_OCTETS, Wan, WanSignal, port_toward};
use super::results::WanRun;
use super::scenario::{WanScenario, WanVariant};
use crate::build::ADDRESSES;
use crate::flows::{FlowSize, PlannedFlow};
use crate::max_min::MIN_INTERVAL;
use crate::observe::Observation;
use crate::results::{FlowKind, percentile};
use crate::run::{Run, RunError};
use crate::scenario::{
    Control, FIRST_SEED, FabricScenario, Hosts, Level, Measures, Signal, Switches, Variant, Whole, Workloads,
};
use crate::server::DATA_CLASS;
use srdma_dataplane::headroom::{PausedLink, WanNode, octets_in};
use srdma_dataplane::{BackpressureConfig, BackpressureThresholds, Node};
use srdma_fabric::{SwitchId, TopologyError};
use srdma_frame::PortId;
use srdma_random::Stream;
use srdma_sim::link::FRAMING_OCTETS;
use srdma_sim::observer::PeriodicObserver;
use srdma_wire::units::NS_PER_US;
use srdma_wire::{Instant, PathMtu};

/// Sampling interval of the congested queue, in nanoseconds.
const STEP_NS: u64 = 1_000;

/// Interval of the collection of notifications, in steps.
const LOOKS: u64 = 100;

/// Points of the time series of a run.
const POINTS: u64 = 400;

/// Start of the senders, and its spread, in nanoseconds.
const BEGIN_NS: u64 = 50_000;
const APART_NS: u64 = 20_000;

/// Local flows start at least this long before the end, in nanoseconds.
const LAST_NS: u64 = 2_000_000;

/// Overhead of a full packet in its tunnel, Ethernet included, in octets.
const AROUND_OCTETS: u64 = 14 + 40 + 40 + 8 + 12 + 16 + 4 + FRAMING_OCTETS;

/// Frames between XON and XOFF of END.C.
const APART_FRAMES: u64 = 4;

/// Octets of a message to the other data centre.
const MESSAGE_OCTETS: u32 = 64 << 20;

/// Parameters of a run of a study, except the seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point<'a> {
    pub(super) variant: &'a WanVariant,
    pub(super) total_km: f64,
    /// Buffer, relative to rate times round trip.
    pub(super) buffer: f64,
}

/// Runs a study at a point.
///
/// # Errors
///
/// Those of the run and of its observer.
pub(super) fn measure(
    study: &WanScenario,
    point: Point<'_>,
    seed: u64,
    observer: Option<&mut PeriodicObserver<'_>>,
) -> Result<WanRun, RunError> {
    let distances = study.distances(point.total_km);
    let congested = study.wan.congested;
    let round_trip_ns = 2 * distances.path_ns();
    let path_octets = octets_in(round_trip_ns, BOTTLENECK_RATE);
    let buffer_octets = (path_octets as f64 * point.buffer) as usize;
    let in_bits_per_s = study.wan.senders.get() * figure::HOST_RATE;
    let load = Load { in_bits_per_s, path_mtu: study.hosts.path_mtu() };
    let propagation_ns = distances.node_ns(congested);
    let backpressure =
        point.variant.end_c.then(|| backpressure(load, propagation_ns, buffer_octets, point.variant.early_resume));
    let wan = Wan {
        congested,
        buffer_octets,
        signal: point.variant.signal,
        // Senders are notified where the gateway is paused: below, the queue holds what keeps the bottleneck busy then.
        threshold_octets: backpressure.map_or(study.wan.threshold_octets.get() as usize, |known| known.xoff_octets),
        backpressure,
        hold: BackpressureConfig::new().hold,
        knows_senders: true,
    };
    let end_ns = (study.wan.round_trips.get() * round_trip_ns).max(study.wan.min_duration_us.get() * NS_PER_US);
    let scenario = scenario(study, point, wan.clone(), end_ns)?;
    let Some(variant) = scenario.variants.first() else { return Err(RunError::Variant { variants: 0, found: 0 }) };
    let mut run = Run::of_flows(&scenario, variant, seed, 1, flows(study, end_ns, seed))?;
    let mut queue_monitor = Watching::new(&wan, &scenario, end_ns);
    let mut observe = Observation::new(observer, &run, queue_monitor.step_ns)?;
    let mut now_ns = 0;
    while now_ns < end_ns {
        now_ns += STEP_NS;
        run.proceed_until(now_ns)?;
        queue_monitor.look(&run, now_ns);
        observe.observe(&run, now_ns)?;
        if now_ns.is_multiple_of(LOOKS * STEP_NS) {
            run.collect(Instant::from_ns(now_ns));
            run.close(Instant::from_ns(now_ns));
        }
    }
    run.collect(Instant::from_ns(now_ns));
    observe.end(&run, now_ns)?;
    Ok(queue_monitor.result(&mut run, point, seed, distances.share(congested), path_octets))
}

/// Input of the congested node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Maximum input rate.
    pub(crate) in_bits_per_s: u64,
    pub(crate) path_mtu: PathMtu,
}

/// XOFF as high as the octets that arrive until the gateway stops permit, XON right below; or, with an early resume, as
/// high as the octets that leave until the gateway's frames arrive.
pub(crate) fn backpressure(
    load: Load,
    propagation_ns: u64,
    buffer_octets: usize,
    early_resume: bool,
) -> BackpressureThresholds {
    let frame_octets = u64::from(load.path_mtu.octets()) + AROUND_OCTETS;
    let gateway = PausedLink {
        rate_bits_per_s: figure::GATEWAY_RATE,
        propagation_ns: figure::NEAR_NS,
        frame_octets,
        response_ns: 0,
    };
    let headroom =
        WanNode { in_bits_per_s: load.in_bits_per_s, out_bits_per_s: BOTTLENECK_RATE, propagation_ns, gateway }
            .headroom();
    let apart = (APART_FRAMES * frame_octets) as usize;
    // The queue of the PE arrives as well.
    let stop_octets = headroom.stop_octets + PE_XOFF_OCTETS + gateway.headroom_octets();
    let xoff_octets = buffer_octets.saturating_sub(stop_octets as usize).max(2 * apart);
    let early = Some(headroom.restart_octets as usize).filter(|early| early_resume && *early > xoff_octets);
    BackpressureThresholds { xoff_octets, xon_octets: early.unwrap_or(xoff_octets - apart) }
}

fn scenario(study: &WanScenario, point: Point<'_>, wan: Wan, end_ns: u64) -> Result<FabricScenario, RunError> {
    let (signal, control) = match point.variant.signal {
        WanSignal::None => (Signal::None, Control::None),
        WanSignal::ReceiverCnp => (Signal::ReceiverCnp, Control::Dcqcn),
        WanSignal::EndE => (Signal::FastCnp, Control::Dcqcn),
    };
    let variant = Variant { dcqcn: point.variant.dcqcn.clone(), ..Variant::new(&point.variant.name, signal, control) };
    let distances = study.distances(point.total_km);
    Ok(around(wan, &distances, variant, study.hosts.clone(), study.switches.clone(), end_ns)?)
}

/// Scenario of a WAN, its two data centres and one variant, without workloads.
///
/// # Errors
/// Only a defect can cause them.
pub(crate) fn around(
    wan: Wan,
    distances: &Distances,
    variant: Variant,
    hosts: Hosts,
    switches: Switches,
    end_ns: u64,
) -> Result<FabricScenario, TopologyError> {
    Ok(FabricScenario {
        skip_steady: false,
        rate_interval: MIN_INTERVAL,
        title: String::new(),
        description: String::new(),
        level: Level::Packet,
        first_seed: FIRST_SEED,
        seeds: 1,
        is_sweep: false,
        topology: figure::topology(distances, wan.congested)?,
        hosts,
        switches,
        workloads: Workloads::default(),
        jobs: Vec::new(),
        failures: Vec::new(),
        measures: Measures::with_duration(Whole(end_ns / NS_PER_US)),
        variants: vec![variant],
        wan: Some(wan),
    })
}

/// One sender below each leaf, each to a host below another leaf of the other data centre; and flows that stay where
/// they are, between hosts that do nothing else.
fn flows(study: &WanScenario, end_ns: u64, seed: u64) -> Vec<PlannedFlow> {
    let mut rng = Stream::new(seed, "wan");
    let mut number = || rng.below(u64::from(HOSTS_PER_LEAF - 1)) as u16;
    let places: Vec<(u16, u16, u16)> = (0..LEAVES).map(|leaf| (leaf, number(), number())).collect();
    let turn = rng.below(u64::from(LEAVES)) as u16;
    let mut flows: Vec<PlannedFlow> = places
        .iter()
        .take(study.wan.senders.get() as usize)
        .map(|(leaf, from, to)| {
            let (from, to) = (figure::host(0, *leaf, *from), figure::host(1, (leaf + turn) % LEAVES, *to));
            let start_ns = BEGIN_NS + rng.below(APART_NS);
            PlannedFlow::new(FlowKind::Stream, from, to, start_ns, FlowSize::Endless(MESSAGE_OCTETS))
        })
        .collect();
    let size = FlowSize::Octets(study.wan.local_octets.get() as u32);
    if let Some(every_us) = study.wan.local_every_us.map(Whole::get) {
        let mut start_ns = BEGIN_NS;
        while start_ns + LAST_NS < end_ns {
            let from = rng.below(u64::from(LEAVES)) as u16;
            let to = (from + 1 + rng.below(u64::from(LEAVES - 1)) as u16) % LEAVES;
            // The last host of each leaf never sends to the other data centre.
            let ends = [from, to].map(|leaf| figure::host(0, leaf, HOSTS_PER_LEAF - 1));
            flows.push(PlannedFlow::new(FlowKind::Background, ends[0], ends[1], start_ns, size));
            start_ns += (every_us * NS_PER_US) / 2 + rng.below(every_us * NS_PER_US);
        }
    }
    flows.sort_by_key(|flow| flow.start_ns);
    flows
}

/// Observations of the congested queue.
struct Watching {
    switch: SwitchId,
    bottleneck: PortId,
    gateway_port: PortId,
    threshold_octets: usize,
    backpressure: Option<BackpressureThresholds>,
    /// Time at which the queue first exceeded the threshold, and the octets sent by then.
    begun: Option<(u64, u64)>,
    /// Time at which the gateway was first paused, and the octets sent by then.
    paused: Option<(u64, u64)>,
    /// Minimum queue length since then.
    min_octets: Option<usize>,
    now_ns: u64,
    /// Octets sent so far.
    left_octets: u64,
    step_ns: u64,
    /// Maximum queue length within each interval of the run.
    queue: Vec<f64>,
    most: usize,
}

impl Watching {
    fn new(wan: &Wan, scenario: &FabricScenario, end_ns: u64) -> Self {
        let (topology, none) = (&scenario.topology, PortId(0));
        Watching {
            switch: wan.congested.switch(),
            bottleneck: wan.bottleneck(topology).unwrap_or(none),
            gateway_port: port_toward(topology, figure::gateway(0), figure::pe(0)).unwrap_or(none),
            threshold_octets: wan.threshold_octets,
            backpressure: wan.backpressure,
            begun: None,
            paused: None,
            min_octets: None,
            now_ns: 0,
            left_octets: 0,
            step_ns: end_ns.div_ceil(POINTS).next_multiple_of(STEP_NS),
            queue: Vec::new(),
            most: 0,
        }
    }

    fn look(&mut self, run: &Run<'_>, now_ns: u64) {
        let Some(node) = run.fabric.switch(self.switch) else { return };
        let waiting = node.class_octets(self.bottleneck, DATA_CLASS).unwrap_or(0);
        let sent = node.class_counters(self.bottleneck, DATA_CLASS).unwrap_or_default().sent;
        (self.now_ns, self.left_octets) = (now_ns, sent.octets + FRAMING_OCTETS * sent.frames);
        let state = (now_ns, self.left_octets);
        if waiting > self.threshold_octets {
            self.begun.get_or_insert(state);
        }
        let (gateway, pe) = (run.fabric.switch(figure::gateway(0)), run.fabric.switch(figure::pe(0)));
        let is_paused = |gateway: &Node| gateway.paused_classes(self.gateway_port) >> DATA_CLASS & 1 == 1;
        if gateway.is_some_and(is_paused) && pe.is_some_and(|pe| pe.received_pauses().next().is_some()) {
            self.paused.get_or_insert(state);
        }
        if self.begun.is_some() {
            self.min_octets = Some(self.min_octets.map_or(waiting, |least| least.min(waiting)));
        }
        self.most = self.most.max(waiting);
        if now_ns.is_multiple_of(self.step_ns) {
            self.queue.push(std::mem::take(&mut self.most) as f64);
        }
    }

    /// Utilisation of the bottleneck since then.
    fn utilisation(&self, since: Option<(u64, u64)>) -> Option<f64> {
        let (since_ns, left_octets) = since?;
        let could = octets_in(self.now_ns.checked_sub(since_ns).filter(|ns| *ns > 0)?, BOTTLENECK_RATE);
        Some((self.left_octets - left_octets) as f64 / could as f64)
    }

    fn result(self, run: &mut Run<'_>, point: Point<'_>, seed: u64, share: f64, path_octets: u64) -> WanRun {
        run.finish_endless();
        let run: &Run<'_> = run;
        let counters = run.fabric.switch(self.switch).and_then(|node| node.class_counters(self.bottleneck, DATA_CLASS));
        let counters = counters.unwrap_or_default();
        let sent = run.fabric.switch(self.switch).map(Node::backpressure_counters).unwrap_or_default();
        let mut delays: Vec<f64> =
            (0..run.begun).filter_map(|number| self.notified_ns(run, point.variant.signal, number)).collect();
        let of_kind = |kind| (0..run.begun).filter(move |number| run.flows[*number].kind == kind);
        let streams = || of_kind(FlowKind::Stream);
        let local_flows: Vec<_> = of_kind(FlowKind::Background).map(|number| run.flow_result(number)).collect();
        let mut slowdowns: Vec<f64> = local_flows.iter().filter_map(|flow| flow.slowdown).collect();
        let onset_ns = self.begun.map(|(at, _)| at);
        WanRun {
            variant: point.variant.name.clone(),
            seed,
            total_km: point.total_km,
            share,
            path_octets,
            buffer: point.buffer,
            notified_ns: percentile(&mut delays, 0.5),
            notified_last_ns: percentile(&mut delays, 1.0),
            paused_ns: self.paused.zip(onset_ns).map(|((at, _), onset)| at.saturating_sub(onset) as f64),
            dropped: counters.full_drops + counters.headroom_drops + counters.storm_drops,
            peak_octets: counters.peak_octets as u64,
            min_octets: self.min_octets.map(|least| least as u64),
            xoff_octets: self.backpressure.map(|known| known.xoff_octets as u64),
            xon_octets: self.backpressure.map(|known| known.xon_octets as u64),
            notifications: sent.pauses_sent + sent.refreshes_sent + sent.resumes_sent,
            utilisation: self.utilisation(self.paused.or(self.begun)),
            delivered_octets: streams().map(|number| run.totals_of(number).delivered_octets).sum(),
            retransmitted: streams().map(|number| run.totals_of(number).retransmitted).sum(),
            local_slowdown_p50: percentile(&mut slowdowns, 0.5),
            local_slowdown_p99: percentile(&mut slowdowns, 0.99),
            local_unfinished: local_flows.iter().filter(|flow| flow.finished_ns.is_none()).count() as u64,
            packet_hops: run.fabric.network.hops(),
            lost_by_simulator: run.fabric.network.dropped_for_memory(),
            step_ns: self.step_ns,
            queue: self.queue,
        }
    }

    /// Time from the first packet of a flow in the queue above the threshold to the first CNP at its sender.
    fn notified_ns(&self, run: &Run<'_>, signal: WanSignal, number: usize) -> Option<f64> {
        let qpn = run.qpn(number);
        let point = run.fabric.queue_monitor(self.switch)?.congestion_points().get(&qpn)?;
        let receiver = ADDRESSES.host(&run.scenario.topology, run.flows[number].to);
        let notices = run.notices.iter().filter(|((of, by), _)| {
            *of == qpn
                && match signal {
                    WanSignal::None => false,
                    WanSignal::ReceiverCnp => *by == receiver,
                    WanSignal::EndE => *by != receiver,
                }
        });
        let first = notices.map(|(_, notice)| notice.at.as_ns()).min()?;
        Some(first.checked_sub(point.at.as_ns())? as f64)
    }
}
