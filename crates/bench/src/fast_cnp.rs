//! Cost of notifying a sender of congestion, and of deciding that none has to be notified.

use super::fixture::{MAC, node};
use super::machine::Machine;
use super::packets::{self, ETHERNET};
use super::row::Row;
use anyhow::{Context, ensure};
use srdma_dataplane::fast_cnp::{Decision, FastCnpConfig, Notifier};
use srdma_dataplane::{Command, NextHop, Node, Notified, RouteAction, TableId};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_wire::fast_cnp::{MAX_FAST_CNP_LEN, OptionTypes};
use srdma_wire::ioam::{TraceHeader, TraceType};
use srdma_wire::{CnpView, Instant, MacAddress, NextHeader, Prefix, Psn, Qpn, Syndrome};
use std::hint::black_box;
use std::net::Ipv6Addr;
use std::time::Instant as Clock;

/// Subject of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FastCnp {
    /// The decision, and the Fast CNP written with option 1, for a flow that was not notified lately.
    Written,
    /// The same with option 2: a trace of so many nodes, eight octets each.
    WrittenWithTrace { nodes: usize },
    /// Decided, written, routed and queued by a node.
    Sent,
    /// A packet of a flow that was notified a moment ago.
    NotifiedBefore,
    /// An ACK, which is never a reason.
    Acknowledgement,
    /// A node without Fast CNP.
    Off,
}

/// Flows whose packets take turns.
const FLOWS: u32 = 512;
const NODES_OF_TRACE: usize = 5;
const PAYLOAD: usize = 64;
const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xe, 0, 0, 0, 0, 1);
const LOOPBACK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// Least time between notifications of a flow, in nanoseconds.
const INTERVAL_NS: u64 = 50_000;

impl FastCnp {
    /// All of them.
    pub(super) const ALL: [FastCnp; 6] = [
        FastCnp::Written,
        FastCnp::WrittenWithTrace { nodes: NODES_OF_TRACE },
        FastCnp::Sent,
        FastCnp::NotifiedBefore,
        FastCnp::Acknowledgement,
        FastCnp::Off,
    ];

    /// As the table and JSON write it.
    pub(super) fn name(self) -> String {
        match self {
            FastCnp::Written => "Fast CNP".to_owned(),
            FastCnp::WrittenWithTrace { nodes } => format!("Fast CNP, trace of {nodes} nodes"),
            FastCnp::Sent => "Fast CNP, routed and queued".to_owned(),
            FastCnp::NotifiedBefore => "Fast CNP, notified before".to_owned(),
            FastCnp::Acknowledgement => "Fast CNP, none for an ACK".to_owned(),
            FastCnp::Off => "Fast CNP, off".to_owned(),
        }
    }

    pub(super) fn measure(self, repetitions: u32, machine: &Machine) -> anyhow::Result<Row> {
        let frames = self.frames()?;
        let octets = frames.first().map(Vec::len);
        let mut samples = match self {
            FastCnp::Written | FastCnp::WrittenWithTrace { .. } => written(&frames, repetitions)?,
            FastCnp::Sent => AtNode::new(&frames, true)?.run(repetitions, Rounds::All)?,
            FastCnp::NotifiedBefore => AtNode::new(&frames, true)?.run(repetitions, Rounds::First)?,
            FastCnp::Acknowledgement => AtNode::new(&frames, true)?.run(repetitions, Rounds::None)?,
            FastCnp::Off => AtNode::new(&frames, false)?.run(repetitions, Rounds::None)?,
        };
        // The first one met cold caches.
        samples.remove(0);
        Ok(Row::new(self.name(), octets, None, "inside L2", 1, samples, machine))
    }

    /// Frames of as many flows.
    fn frames(self) -> anyhow::Result<Vec<Vec<u8>>> {
        let qpn = |number| Qpn::new(0x1000 + number).context("a queue pair number of 24 bits");
        (0..FLOWS)
            .map(|number| {
                Ok(match self {
                    FastCnp::Acknowledgement => {
                        let to = (RECEIVER, qpn(number)?);
                        packets::response(MAC, LOOPBACK, to, Psn::new(0), Syndrome::ACK)
                    }
                    FastCnp::WrittenWithTrace { nodes } => with_trace(data_frame(qpn(number)?), nodes)?,
                    FastCnp::Written | FastCnp::Sent | FastCnp::NotifiedBefore | FastCnp::Off => {
                        data_frame(qpn(number)?)
                    }
                })
            })
            .collect()
    }
}

fn data_frame(qpn: Qpn) -> Vec<u8> {
    let packet = packets::data_packet(RECEIVER, qpn, Psn::new(0), &[0x5A; PAYLOAD]);
    [&MAC[..], &[2, 0, 0, 0, 0, 0xFF, 0x86, 0xDD], &packet].concat()
}

/// The same with a Hop-by-Hop Options header that has room for so many nodes.
fn with_trace(mut frame: Vec<u8>, nodes: usize) -> anyhow::Result<Vec<u8>> {
    let fields = TraceType::NODE.and(TraceType::QUEUE_DEPTH);
    let trace = TraceHeader::for_nodes(1, fields, nodes).context("a trace that fits")?;
    let mut options = [0; 264];
    let len = trace.emit_hop_by_hop(NextHeader::UDP, &mut options).context("a header that fits")?;
    frame.splice(ETHERNET + 40..ETHERNET + 40, options[..len].iter().copied());
    frame[ETHERNET + 6] = NextHeader::HOP_BY_HOP.0;
    let payload_length = (frame.len() - ETHERNET - 40) as u16;
    frame[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&payload_length.to_be_bytes());
    Ok(frame)
}

/// Every sender may be notified, and handles Fast CNP; only the flow's interval limits.
fn config() -> anyhow::Result<FastCnpConfig> {
    let all = vec![Prefix::new(Ipv6Addr::UNSPECIFIED, 0).context("a prefix")?];
    Ok(FastCnpConfig {
        senders: all.clone(),
        capable: all,
        per_second: u32::MAX,
        at_once: FLOWS,
        ..FastCnpConfig::new()
    })
}

/// Nanoseconds per decision and packet written.
fn written(frames: &[Vec<u8>], repetitions: u32) -> anyhow::Result<Vec<f64>> {
    let mut notifier = Notifier::new(config()?);
    let (mut into, payload) = ([0; MAX_FAST_CNP_LEN], CnpView::with_rate(0));
    let mut samples = Vec::new();
    for round in 0..=u64::from(repetitions) {
        let now = Instant::from_ns((round + 1) * INTERVAL_NS);
        let mut octets = 0;
        let begin = Clock::now();
        for frame in frames {
            if let Decision::Notify(notice) = notifier.decide(now, black_box(frame)) {
                let len =
                    notifier.write(&notice.fields, LOOPBACK, OptionTypes::default(), &payload, black_box(&mut into));
                octets += len.unwrap_or(0);
            }
        }
        samples.push(begin.elapsed().as_nanos() as f64 / frames.len() as f64);
        ensure!(octets >= 104 * frames.len(), "only {octets} octets of Fast CNPs for {} flows", frames.len());
    }
    Ok(samples)
}

/// Rounds in which all flows are notified; in the others none is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounds {
    None,
    First,
    All,
}

/// A node whose verdict on packets that meet congestion is measured.
struct AtNode {
    node: Node,
    pool: Pool,
    frames: Vec<Frame>,
}

impl AtNode {
    fn new(octets: &[Vec<u8>], is_on: bool) -> anyhow::Result<Self> {
        let mut node = node(&[])?;
        let next_hop = NextHop { port: PortId(1), address: RECEIVER };
        node.apply(Command::AddNeighbour { next_hop, mac: MacAddress([2, 0, 0, 0, 1, 1]) })?;
        let prefix = Prefix::new(Ipv6Addr::UNSPECIFIED, 0).context("a prefix")?;
        node.apply(Command::AddRoute { table: TableId(0), prefix, action: RouteAction::Via(vec![next_hop]) })?;
        if is_on {
            node.apply(Command::SetFastCnp(Box::new(config()?)))?;
        }
        let mut pool = Pool::new(usize::MAX);
        let frames = octets.iter().map(|octets| Frame::from_octets(octets, &mut pool));
        let frames = frames.collect::<Option<Vec<_>>>().context("the pool is exhausted")?;
        Ok(AtNode { node, pool, frames })
    }

    /// Nanoseconds per packet.
    fn run(mut self, repetitions: u32, notified: Rounds) -> anyhow::Result<Vec<f64>> {
        let mut samples = Vec::new();
        for round in 0..=u64::from(repetitions) {
            let intervals = if notified == Rounds::All { round + 1 } else { 1 };
            let now = Instant::from_ns(intervals * INTERVAL_NS);
            let mut notified_now = 0;
            let begin = Clock::now();
            for frame in &self.frames {
                let whom = self.node.notify(now, black_box(frame), &mut self.pool);
                notified_now += usize::from(whom == Notified::Sender);
            }
            samples.push(begin.elapsed().as_nanos() as f64 / self.frames.len() as f64);
            let all = notified == Rounds::All || notified == Rounds::First && round == 0;
            let expected = if all { self.frames.len() } else { 0 };
            ensure!(notified_now == expected, "{notified_now} were notified in round {round}, not {expected}");
            while let Some(frame) = self.node.dequeue(now, PortId(1), &mut self.pool) {
                frame.release(&mut self.pool);
            }
        }
        self.frames.into_iter().for_each(|frame| frame.release(&mut self.pool));
        ensure!(self.pool.in_use() == 0, "a frame was lost");
        Ok(samples)
    }
}
