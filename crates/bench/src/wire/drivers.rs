//! The node compared with a bare reflector on the same driver.

use super::burst::{self, BURST, Sample};
use super::device::{Action, Device};
use super::row::{Nanoseconds, WireRow, ratio};
use super::work::Work;
use super::{Bench, DRIVERS, FRAME_OCTETS};
use anyhow::{Context, ensure};
use srdma_dataplane::Node;
use srdma_frame::Frame;
use srdma_io::{Choice, Driver};
use std::time::{Duration, Instant};

/// Times of [`Work`] with a driver, for the comparison with the kernel.
pub(super) struct Forwarded {
    pub(super) driver: String,
    pub(super) work: Work,
    pub(super) frame_octets: usize,
    pub(super) samples: Vec<Sample>,
}

/// The share of the reflector's rate that the node is to reach.
const TARGET: f64 = 0.95;

/// Different frames in a burst.
const FRAMES: usize = 64;

/// Measures every driver; one that cannot be opened here is left out.
pub(super) fn measure(bench: &mut Bench<'_>) -> anyhow::Result<Vec<Forwarded>> {
    let mut forwarded = Vec::new();
    for choice in DRIVERS {
        with_drivers(bench, choice, |bench, drivers| {
            for work in [Work::MicroN, Work::End, Work::EndMt(1)] {
                for octets in FRAME_OCTETS {
                    forwarded.push(measure_work(bench, drivers, work, work.frame_octets(octets))?);
                }
            }
            Ok(())
        })?;
    }
    Ok(forwarded)
}

/// Calls `action` with the drivers of a kind, and gives their chunks back.
pub(super) fn with_drivers(
    bench: &mut Bench<'_>,
    choice: Choice,
    action: impl FnOnce(&mut Bench<'_>, &mut [Box<dyn Driver>; 2]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut drivers = match bench.links.drivers(choice, &bench.umem) {
        Ok(drivers) => drivers,
        Err(error) => {
            bench.sink.skipped(&format!("{choice:?}"), &error);
            return Ok(());
        }
    };
    let result = action(bench, &mut drivers);
    for driver in &mut drivers {
        driver.detach(&mut bench.pool);
    }
    result
}

fn measure_work(
    bench: &mut Bench<'_>,
    drivers: &mut [Box<dyn Driver>; 2],
    work: Work,
    frame_octets: usize,
) -> anyhow::Result<Forwarded> {
    let frames = work.frames(frame_octets, FRAMES)?;
    let mut node = work.node()?.context("this work is a node's")?;
    bench.generator.load(&frames)?;
    check(bench, drivers, Work::Reflect, None, &frames[0])?;
    check(bench, drivers, work, Some(&mut node), &frames[0])?;
    let before = bench.links.returned()?;
    let (mut reflected, mut samples) = (Vec::new(), Vec::new());
    for _ in 0..bench.extent.repetitions {
        reflected.push(repetition(bench, drivers, None)?);
        samples.push(repetition(bench, drivers, Some(&mut node))?);
    }
    let expected = 2 * bench.extent.repetitions * bench.extent.bursts * BURST;
    let returned = bench.links.returned()? - before;
    ensure!(returned >= expected as u64, "{work}: {returned} frames came back, not {expected}");
    let driver = drivers[0].kind().to_string();
    let on_device = |samples: &[Sample]| samples.iter().map(|sample| sample.device_ns).collect::<Vec<_>>();
    let (measured, yardstick) = (on_device(&samples), on_device(&reflected));
    bench.sink.row(&WireRow {
        driver: driver.clone(),
        case: work.to_string(),
        frame_octets,
        measured: Nanoseconds::of(&measured),
        yardstick: Work::Reflect.to_string(),
        yardstick_ns: Nanoseconds::of(&yardstick),
        ratio: ratio(&yardstick, &measured),
        target: Some(TARGET),
        repetitions: samples.len(),
    })?;
    Ok(Forwarded { driver, work, frame_octets, samples })
}

fn action(node: Option<&mut Node>) -> Action<'_> {
    match node {
        None => Action::Reflecting,
        Some(node) => Action::Forwarding { node, clock: Instant::now() },
    }
}

fn repetition(
    bench: &mut Bench<'_>,
    drivers: &mut [Box<dyn Driver>; 2],
    node: Option<&mut Node>,
) -> anyhow::Result<Sample> {
    let mut device = Device::new(drivers, &mut bench.pool, action(node));
    burst::bursts(&mut bench.generator, &mut device, (BURST, BURST), bench.extent.bursts)
}

/// Sends one frame and checks the frames that come back.
pub(super) fn check(
    bench: &mut Bench<'_>,
    drivers: &mut [Box<dyn Driver>; 2],
    work: Work,
    node: Option<&mut Node>,
    sent: &[u8],
) -> anyhow::Result<()> {
    let mut witness = bench.links.witness()?;
    let mut device = Device::new(drivers, &mut bench.pool, action(node));
    // A driver may have no chunk in its rings before the first request for frames.
    device.round(0)?;
    bench.generator.send(1)?;
    let begin = Instant::now();
    let mut copies = 0;
    while copies < work.copies() {
        copies += device.round(usize::MAX)?;
        ensure!(begin.elapsed() < Duration::from_secs(1), "{work}: nothing came out");
    }
    device.finish()?;
    let mut frames = Vec::new();
    while frames.len() < work.copies() {
        witness.receive(&mut bench.pool, &mut frames, usize::from(u16::MAX))?;
        ensure!(begin.elapsed() < Duration::from_secs(1), "{work}: {} frames came back", frames.len());
    }
    let returned: Vec<Vec<u8>> = frames.iter().map(|frame| frame.to_vec(&bench.pool)).collect();
    frames.into_iter().for_each(|frame: Frame| frame.release(&mut bench.pool));
    work.check(sent, &returned)
}
