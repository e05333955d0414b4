//! The measurement.

use super::aggregation::Aggregation;
use super::cases::{Case, Until, Work, WorkingSet};
use super::check::check;
use super::fast_cnp::FastCnp;
use super::fixture::{EGRESS_PORTS, Fixture, INGRESS};
use super::machine::Machine;
use super::repair::Repair;
use super::row::Row;
use super::steering::Steering;
use super::wan::Wan;
use super::yardsticks::Yardstick;
use anyhow::ensure;
use srdma_frame::{CHUNK_ROOM, Element, Frame, HEADROOM, Pool, PortId};
use std::time::{Duration, Instant};

/// Frames that are compared with what is expected before a case is measured.
const CHECKED_FRAMES: usize = 64;

/// Passes over the working set in one repetition, inside L2.
const SHORT_PASSES: usize = 8;

/// Frames of a driver's receive ring: as many as there are inside L2, if they fit a quarter of it.
const RING_FRAMES: usize = 512;

/// Output buffers that a driver fills in turn: few enough to stay in L2.
const OUTPUT_BUFFERS: usize = 32;

/// Octets of an output buffer.
const OUTPUT_OCTETS: usize = 4608;

/// The time of all calls: it does not pass.
const NOW: srdma_wire::Instant = srdma_wire::Instant::ZERO;

/// Memory and buffers that all measurements share.
#[derive(Debug)]
pub struct Bench<'m> {
    machine: &'m Machine,
    pool: Pool,
    batch: usize,
    output: Output,
}

impl<'m> Bench<'m> {
    /// A bench whose driver hands over `batch` frames at a time.
    pub fn new(machine: &'m Machine, batch: usize) -> Self {
        Bench { machine, pool: Pool::new(usize::MAX), batch, output: Output::new() }
    }

    /// Measures a case.
    pub(super) fn packets(
        &mut self,
        case: Case,
        frame_octets: usize,
        routes: usize,
        working_set: WorkingSet,
        repetitions: u32,
    ) -> anyhow::Result<Row> {
        let shape = Fixture::new(case.work, frame_octets, 10, 1)?;
        let frames = self.frames(case, shape.frame_octets(), working_set);
        let mut fixture = Fixture::new(case.work, frame_octets, routes, frames)?;
        check(&mut fixture, CHECKED_FRAMES, &mut self.pool)?;
        let passes = if working_set == WorkingSet::InsideL2 { SHORT_PASSES } else { 1 };
        let mut samples = Vec::new();
        for _ in 0..=repetitions {
            let mut time = Duration::ZERO;
            for _ in 0..passes {
                time += self.pass(case, &mut fixture, frames)?;
            }
            samples.push(time.as_nanos() as f64 / (passes * frames) as f64);
        }
        // The first one met cold caches and grew what has to grow.
        samples.remove(0);
        Ok(Row::new(
            case.name(),
            Some(fixture.frame_octets()),
            Some(routes),
            working_set.name(),
            case.copies(),
            samples,
            self.machine,
        ))
    }

    pub(super) fn yardstick(&mut self, yardstick: Yardstick, repetitions: u32) -> anyhow::Result<Row> {
        yardstick.measure(repetitions, self.machine)
    }

    /// Measures the aggregation of responses.
    pub(super) fn aggregation(&mut self, aggregation: Aggregation, repetitions: u32) -> anyhow::Result<Row> {
        // Ten thousand groups are one long measurement, whatever the caches hold.
        aggregation.measure(if aggregation.is_long() { repetitions.div_ceil(10) } else { repetitions }, self.machine)
    }

    pub(super) fn fast_cnp(&mut self, fast_cnp: FastCnp, repetitions: u32) -> anyhow::Result<Row> {
        fast_cnp.measure(repetitions, self.machine)
    }

    pub(super) fn steering(&mut self, steering: Steering, repetitions: u32) -> anyhow::Result<Row> {
        steering.measure(repetitions, self.machine)
    }

    /// Measures END.C and END.E.
    pub(super) fn wan(&mut self, wan: Wan, repetitions: u32) -> anyhow::Result<Row> {
        wan.measure(repetitions, self.machine)
    }

    /// Measures repair.
    pub(super) fn repair(&mut self, repair: Repair, repetitions: u32) -> anyhow::Result<Row> {
        repair.measure(repetitions, self.machine)
    }

    /// Frames whose touched lines fill the working set.
    fn frames(&self, case: Case, frame_octets: usize, working_set: WorkingSet) -> usize {
        let touched = touched_octets(case, frame_octets);
        let frames = match working_set {
            WorkingSet::InsideL2 => RING_FRAMES.min(self.machine.l2_octets / 4 / touched),
            WorkingSet::Memory => (4 * self.machine.l3_octets).div_ceil(touched),
        };
        let affordable =
            self.machine.available_octets / 2 / (frame_octets.div_ceil(CHUNK_ROOM) * (CHUNK_ROOM + HEADROOM));
        frames.min(affordable).max(1)
    }

    /// All frames once: made, processed batch by batch under the clock, taken from the queues and freed.
    fn pass(&mut self, case: Case, fixture: &mut Fixture, frames: usize) -> anyhow::Result<Duration> {
        let mut made = Vec::with_capacity(frames);
        for number in 0..frames {
            made.push(fixture.frame(number, &mut self.pool)?);
        }
        let mut made = made.into_iter();
        let mut batch = Vec::with_capacity(self.batch);
        let mut time = Duration::ZERO;
        let mut left = 0;
        loop {
            batch.extend(made.by_ref().take(self.batch));
            if batch.is_empty() {
                break;
            }
            let begin = Instant::now();
            fixture.node.receive(NOW, INGRESS, &mut batch, &mut self.pool);
            if case.until == Until::Copied {
                left += self.copy_out(fixture);
            }
            time += begin.elapsed();
            left += self.empty_queues(fixture);
        }
        ensure!(left == frames * case.copies(), "{left} frames left for {frames} that came in");
        Ok(time)
    }

    fn empty_queues(&mut self, fixture: &mut Fixture) -> usize {
        let mut left = 0;
        for port in (1..=EGRESS_PORTS).map(PortId) {
            while let Some(frame) = fixture.node.dequeue(NOW, port, &mut self.pool) {
                frame.release(&mut self.pool);
                left += 1;
            }
        }
        left
    }

    /// Output of a driver that cannot gather.
    fn copy_out(&mut self, fixture: &mut Fixture) -> usize {
        let mut left = 0;
        for port in (1..=EGRESS_PORTS).map(PortId) {
            while let Some(frame) = fixture.node.dequeue(NOW, port, &mut self.pool) {
                self.output.copy(&frame, &self.pool);
                frame.release(&mut self.pool);
                left += 1;
            }
        }
        left
    }
}

/// Minimum octets of the cache lines that the processing of a packet touches.
fn touched_octets(case: Case, frame_octets: usize) -> usize {
    const LINE: usize = 64;
    let read = match (case.until, case.work) {
        (Until::Copied, _) => frame_octets,
        (Until::Queued, Work::EndMt(_)) if frame_octets > 1000 => 14 + 40 + 24 + 184 + 64,
        (Until::Queued, Work::EndMt(_) | Work::Replicate(_)) => 14 + 40 + 24 + 64,
        (Until::Queued, Work::Ipv6) => 14 + 40,
        (Until::Queued, _) => 14 + 40 + 24 + 40,
    };
    read.next_multiple_of(LINE)
}

/// Buffers that finished frames are copied into.
#[derive(Debug)]
struct Output {
    buffers: Vec<Vec<u8>>,
    next: usize,
}

impl Output {
    fn new() -> Self {
        Output { buffers: vec![vec![0; OUTPUT_OCTETS]; OUTPUT_BUFFERS], next: 0 }
    }

    fn copy(&mut self, frame: &Frame, pool: &Pool) {
        self.next = (self.next + 1) % OUTPUT_BUFFERS;
        std::hint::black_box(frame.copy_to(&mut self.buffers[self.next], pool));
    }
}
