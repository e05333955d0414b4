//! One repetition: threads, their processors and the clock.

use super::packets::Traffic;
use crate::fixture::{EGRESS_PORTS, INGRESS};
use anyhow::{Context, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use srdma_dataplane::Node;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_wire::Instant;
use srdma_workers::{Exchange, exchange};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant as Clock};

/// Frames that a driver hands over at a time, and packets taken over at a time.
const BATCH: usize = 64;

/// The time of all calls: it does not pass.
const NOW: Instant = Instant::ZERO;

/// Packets that may be dropped, in a million: none but those on their way when the time is over.
const DROPPED_PER_MILLION: u64 = 100;

/// Lets all workers process traffic for so long; returns the packets that they have received, a second.
pub(super) fn run(traffic: &Traffic, duration: Duration) -> anyhow::Result<f64> {
    let count = traffic.workers();
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect();
    ensure!(count <= cpus.len(), "{count} workers need as many processors, and there are {}", cpus.len());
    let start = Barrier::new(count);
    let done = thread::scope(|scope| {
        let sides = exchange(count).into_iter().enumerate();
        let threads: Vec<_> = sides
            .map(|(index, exchange)| {
                let (start, cpu) = (&start, cpus[index]);
                scope.spawn(move || {
                    let prepared = Thread::new(traffic, index, exchange, cpu);
                    // Every thread comes here, or the others would wait for ever.
                    start.wait();
                    prepared?.work(traffic, index, duration)
                })
            })
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, anyhow::Result<f64>>| {
            thread.join().map_err(|_| anyhow::anyhow!("a worker panicked"))?
        };
        threads.into_iter().map(join).collect::<anyhow::Result<Vec<f64>>>()
    })?;
    Ok(done.iter().sum())
}

struct Thread {
    node: Node,
    pool: Pool,
    exchange: Exchange,
}

impl Thread {
    fn new(traffic: &Traffic, index: usize, exchange: Exchange, cpu: usize) -> anyhow::Result<Self> {
        let mut own = CpuSet::new();
        own.set(cpu)?;
        sched_setaffinity(Pid::from_raw(0), &own).with_context(|| format!("cannot stay on processor {cpu}"))?;
        Ok(Thread { node: traffic.node(index)?, pool: Pool::new(usize::MAX), exchange })
    }

    /// Packets that this worker has received, a second.
    fn work(mut self, traffic: &Traffic, index: usize, duration: Duration) -> anyhow::Result<f64> {
        let mut flows = traffic.flows(index);
        let mut batch: Vec<Frame> = Vec::with_capacity(BATCH);
        let mut received = 0_u64;
        let mut wake = Vec::new();
        let mut flow = 0;
        let begin = Clock::now();
        let elapsed = loop {
            // What comes faster than the workers together process it is not received.
            let mut looked_at = if self.exchange.is_backlogged() { flows.len() } else { 0 };
            while batch.len() < BATCH && looked_at < flows.len() {
                looked_at += 1;
                flow = if flow + 1 < flows.len() { flow + 1 } else { 0 };
                if let Some(octets) = traffic.next(&mut flows[flow])? {
                    batch.push(Frame::from_octets(octets, &mut self.pool).context("the pool is exhausted")?);
                }
            }
            received += batch.len() as u64;
            self.exchange.receive(NOW, &mut self.node, &mut self.pool, BATCH);
            self.node.receive(NOW, INGRESS, &mut batch, &mut self.pool);
            self.exchange.send(&mut self.node, &mut self.pool, &mut wake);
            self.empty_queues();
            let elapsed = begin.elapsed();
            if elapsed >= duration {
                break elapsed;
            }
        };
        self.check(traffic, received)?;
        Ok(received as f64 / elapsed.as_secs_f64())
    }

    fn empty_queues(&mut self) {
        for port in (0..=EGRESS_PORTS).map(PortId) {
            while let Some(frame) = self.node.dequeue(NOW, port, &mut self.pool) {
                frame.release(&mut self.pool);
            }
        }
    }

    /// A benchmark of dropped packets would be fast.
    fn check(&self, traffic: &Traffic, received: u64) -> anyhow::Result<()> {
        let counters = self.node.port_counters(INGRESS).context("the ingress port")?;
        let dropped: u64 = counters.drops.iter().map(|(_, count)| count).sum();
        let reasons: Vec<String> =
            counters.drops.iter().map(|(reason, count)| format!("{count} {}", reason.name())).collect();
        ensure!(
            dropped * 1_000_000 <= received * DROPPED_PER_MILLION,
            "of {received} packets {dropped} were dropped: {}",
            reasons.join(", ")
        );
        if traffic.has_groups() {
            for group in self.node.owned_groups() {
                let counters = self.node.group_counters(group).context("a group")?;
                ensure!(counters.copies > 0 && counters.acks_received > 0, "group {} has had no packets", group.0);
            }
        }
        Ok(())
    }
}
