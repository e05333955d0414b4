//! Cost of steering: a packet by one of several paths compared with one by a policy, and the time from a signal to the
//! first packet with another destination address (PP-4-6).

use super::fixture::{MAC, node};
use super::machine::Machine;
use super::packets::{self, ETHERNET};
use super::row::Row;
use anyhow::{Context, ensure};
use srdma_dataplane::headend::{Headend, HeadendConfig, HeadendPath};
use srdma_dataplane::{Command, EncapsMode, NextHop, Node, RouteAction, TableId};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_steering::{Config, Path};
use srdma_wire::fast_cnp::{FastCnpValue, MAX_FAST_CNP_LEN, OptionTypes};
use srdma_wire::{Instant, MacAddress, Prefix, Psn, Qpn};
use std::hint::black_box;
use std::net::Ipv6Addr;
use std::time::Instant as Clock;

/// Subject of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steering {
    /// Packets of many flows by a policy of one segment: the baseline of steering.
    Policy,
    /// The same packets by one of two paths each.
    Placed,
    /// A Fast CNP comes in, and the flow's next packet is encapsulated: by the other path.
    Signal,
}

/// Flows whose packets take turns.
const FLOWS: u32 = 512;
const PAYLOAD: usize = 64;
const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xe, 0, 0, 0, 0, 1);
/// The draft's paths from NIC 1 to NIC 3, and the loopbacks of their spines.
const PROGRAMS: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x5f00, 0, 0x100, 0x500, 0x300, 0, 0, 0), Ipv6Addr::new(0x5f00, 0, 0x100, 0x600, 0x300, 0, 0, 0)];
const SPINES: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 5), Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 6)];
const OUTER_DESTINATION: usize = ETHERNET + 24;
/// Offset of the PSN in a frame.
const PSN: usize = ETHERNET + 40 + 8 + 9;

impl Steering {
    /// All of them.
    pub(super) const ALL: [Steering; 3] = [Steering::Policy, Steering::Placed, Steering::Signal];

    /// As the table and JSON write it.
    pub(super) fn name(self) -> String {
        match self {
            Steering::Policy => "steering: none, H.Encaps.Red".to_owned(),
            Steering::Placed => "steering: one of two paths".to_owned(),
            Steering::Signal => "steering: signal to new address".to_owned(),
        }
    }

    pub(super) fn measure(self, repetitions: u32, machine: &Machine) -> anyhow::Result<Row> {
        let data: Vec<Vec<u8>> = (0..FLOWS).map(data_frame).collect::<anyhow::Result<_>>()?;
        let octets = data.first().map(Vec::len);
        let mut samples = match self {
            Steering::Policy => {
                let action =
                    RouteAction::Encaps { segments: vec![PROGRAMS[0]], mode: EncapsMode::Reduced, hmac_key_id: None };
                at_node(action, &data, repetitions)?
            }
            Steering::Placed => at_node(RouteAction::Placed(paths()), &data, repetitions)?,
            Steering::Signal => signals(&data, repetitions)?,
        };
        // The first one met cold caches.
        samples.remove(0);
        Ok(Row::new(self.name(), octets, None, "inside L2", 1, samples, machine))
    }
}

fn qpn(number: u32) -> anyhow::Result<Qpn> {
    Qpn::new(0x1000 + number).context("a queue pair number of 24 bits")
}

/// A SEND of a flow of its own.
fn data_frame(number: u32) -> anyhow::Result<Vec<u8>> {
    let packet = packets::data_packet(PEER, qpn(number)?, Psn::new(0), &[0x5A; PAYLOAD]);
    Ok([&MAC[..], &[2, 0, 0, 0, 0, 0xFF, 0x86, 0xDD], &packet].concat())
}

fn paths() -> Vec<HeadendPath> {
    let path = |rank, (program, spine)| Path { segments: vec![program], nodes: vec![spine], rank, is_denied: false };
    let both = PROGRAMS.into_iter().zip(SPINES);
    (0..).zip(both).map(|(rank, both)| HeadendPath { path: path(rank, both), ..HeadendPath::default() }).collect()
}

fn config() -> HeadendConfig {
    let steering = Config { dwell_ns: 0, hold_ns: 1_000, hold_most_ns: 1_000, ..Config::default() };
    HeadendConfig { steering, probes: None, ..HeadendConfig::new(HOST) }
}

/// Nanoseconds per packet, from a frame in memory to the encapsulated one in an output queue.
fn at_node(action: RouteAction, data: &[Vec<u8>], repetitions: u32) -> anyhow::Result<Vec<f64>> {
    let mut node: Node = node(&[])?;
    let next_hop = NextHop { port: PortId(1), address: SPINES[0] };
    node.apply(Command::AddNeighbour { next_hop, mac: MacAddress([2, 0, 0, 0, 1, 1]) })?;
    node.apply(Command::SetSteering(Box::new(config())))?;
    for (address, len, action) in [(PEER, 64, action), (PROGRAMS[0], 32, RouteAction::Via(vec![next_hop]))] {
        let prefix = Prefix::new(address, len).context("a prefix")?;
        node.apply(Command::AddRoute { table: TableId(0), prefix, action })?;
    }
    let mut pool = Pool::new(usize::MAX);
    let mut samples = Vec::new();
    for round in 0..=u64::from(repetitions) {
        let mut frames = frames(&with_psn(data, round), &mut pool)?;
        let now = Instant::from_ns((round + 1) * 1_000);
        let begin = Clock::now();
        node.receive(now, PortId(0), black_box(&mut frames), &mut pool);
        samples.push(begin.elapsed().as_nanos() as f64 / data.len() as f64);
        let mut sent = 0;
        while let Some(frame) = node.dequeue(now, PortId(1), &mut pool) {
            let outer = frame.head(&pool).get(OUTER_DESTINATION..).unwrap_or(&[]);
            sent += usize::from(PROGRAMS.iter().any(|program| outer.starts_with(&program.octets())));
            frame.release(&mut pool);
        }
        ensure!(sent == data.len(), "{sent} of {} packets took a path", data.len());
    }
    Ok(samples)
}

/// Nanoseconds from a Fast CNP in memory to the flow's next packet with another destination address.
fn signals(data: &[Vec<u8>], repetitions: u32) -> anyhow::Result<Vec<f64>> {
    let (mut headend, mut pool) = headend()?;
    let notices: Vec<Vec<Vec<u8>>> = SPINES
        .into_iter()
        .map(|spine| (0..FLOWS).map(|number| notice(spine, number)).collect::<anyhow::Result<_>>())
        .collect::<anyhow::Result<_>>()?;
    let notices: Vec<Vec<Frame>> =
        notices.iter().map(|notices| frames(notices, &mut pool)).collect::<anyhow::Result<_>>()?;
    // The path of each flow, by its last packet.
    let mut takes = vec![0; data.len()];
    let mut samples = Vec::new();
    for round in 0..=u64::from(repetitions) + 1 {
        let now = Instant::from_ns((round + 1) * 1_000_000);
        let mut frames = frames(&with_psn(data, round), &mut pool)?;
        let notified: Vec<&Frame> = takes.iter().enumerate().map(|(flow, path)| &notices[*path][flow]).collect();
        let begin = Clock::now();
        for (frame, notice) in frames.iter_mut().zip(notified) {
            headend.incoming(now, black_box(notice), &pool);
            let _ = black_box(headend.outgoing(now, frame, &mut pool));
        }
        let ns = begin.elapsed().as_nanos() as f64 / data.len() as f64;
        let mut moved = 0;
        for (frame, takes) in frames.into_iter().zip(&mut takes) {
            let outer = frame.head(&pool).get(OUTER_DESTINATION..).unwrap_or(&[]);
            let path = PROGRAMS.iter().position(|program| outer.starts_with(&program.octets()));
            let path = path.context("a packet took none of the paths")?;
            moved += usize::from(std::mem::replace(takes, path) != path);
            frame.release(&mut pool);
        }
        // In the first round flows begin.
        if round > 0 {
            ensure!(moved == data.len(), "{moved} of {} flows have moved", data.len());
            samples.push(ns);
        }
    }
    Ok(samples)
}

fn headend() -> anyhow::Result<(Headend, Pool)> {
    let mut headend = Headend::new(config());
    let set = headend.set_paths(Instant::ZERO, None, &paths())?;
    headend.lead(Prefix::new(PEER, 64).context("a prefix")?, set);
    Ok((headend, Pool::new(usize::MAX)))
}

/// The same frames as the next packets of their flows. Their ICRC is not verified.
fn with_psn(octets: &[Vec<u8>], psn: u64) -> Vec<Vec<u8>> {
    let mut octets = octets.to_vec();
    for frame in &mut octets {
        if let Some(place) = frame.get_mut(PSN..PSN + 3) {
            place.copy_from_slice(&Psn::new(psn as u32).to_octets());
        }
    }
    octets
}

/// The Fast CNP of a switch for a flow.
pub(super) fn notice(spine: Ipv6Addr, number: u32) -> anyhow::Result<Vec<u8>> {
    let value = FastCnpValue {
        source: spine,
        destination: HOST,
        traffic_class: FastCnpValue::TRAFFIC_CLASS,
        hop_limit: FastCnpValue::HOP_LIMIT,
        source_port: 0xD001,
        dest_qpn: qpn(number)?,
        original_destination: PEER,
        trace: None,
    };
    let mut octets = [0; ETHERNET + MAX_FAST_CNP_LEN];
    let len = value.emit(OptionTypes::default(), &mut octets[ETHERNET..]).context("a Fast CNP that fits")?;
    Ok(octets[..ETHERNET + len].to_vec())
}

/// Frames of these octets.
pub(super) fn frames(octets: &[Vec<u8>], pool: &mut Pool) -> anyhow::Result<Vec<Frame>> {
    octets.iter().map(|octets| Frame::from_octets(octets, pool).context("the pool is exhausted")).collect()
}
