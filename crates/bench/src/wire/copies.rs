//! Replication compared with the same driver that only sends.

use super::burst;
use super::device::{Action, Device};
use super::drivers::{check, with_drivers};
use super::row::{Nanoseconds, WireRow, ratio};
use super::work::Work;
use super::{Bench, DRIVERS, FRAME_OCTETS};
use anyhow::Context;
use srdma_frame::{Frame, Pool};
use srdma_io::Driver;
use std::time::Instant;

/// Receivers.
const COPIES: u16 = 8;

/// Frames of a burst, for each of which there are [`COPIES`].
const FRAMES: usize = 24;

/// The required share of the rate of sending alone.
const TARGET: f64 = 0.9;

/// Measures every driver.
pub(super) fn measure(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    DRIVERS.into_iter().try_for_each(|choice| with_drivers(bench, choice, measure_driver))
}

fn measure_driver(bench: &mut Bench<'_>, drivers: &mut [Box<dyn Driver>; 2]) -> anyhow::Result<()> {
    FRAME_OCTETS.into_iter().try_for_each(|octets| measure_length(bench, drivers, octets))
}

fn measure_length(
    bench: &mut Bench<'_>,
    drivers: &mut [Box<dyn Driver>; 2],
    frame_octets: usize,
) -> anyhow::Result<()> {
    let work = Work::EndMt(COPIES);
    let frame_octets = work.frame_octets(frame_octets);
    let frames = work.frames(frame_octets, FRAMES)?;
    let mut node = work.node()?.context("this work is a node's")?;
    bench.generator.load(&frames)?;
    check(bench, drivers, work, Some(&mut node), &frames[0])?;
    let ready_made = ready_made(&frames, frame_octets - work.copy_octets(frame_octets), &mut bench.pool)?;
    let all = FRAMES * usize::from(COPIES);
    let (mut sending, mut copying) = (Vec::new(), Vec::new());
    for _ in 0..bench.extent.repetitions {
        let only_send = Action::Sending { ready_made: &ready_made, times: COPIES.into(), next: 0 };
        let mut device = Device::new(drivers, &mut bench.pool, only_send);
        sending.push(burst::bursts(&mut bench.generator, &mut device, (0, all), bench.extent.bursts)?.device_ns);
        let forwarding = Action::Forwarding { node: &mut node, clock: Instant::now() };
        let mut device = Device::new(drivers, &mut bench.pool, forwarding);
        copying.push(burst::bursts(&mut bench.generator, &mut device, (FRAMES, all), bench.extent.bursts)?.device_ns);
    }
    ready_made.into_iter().for_each(|frame| frame.release(&mut bench.pool));
    bench.sink.row(&WireRow {
        driver: drivers[0].kind().to_string(),
        case: work.to_string(),
        frame_octets,
        measured: Nanoseconds::of(&copying),
        yardstick: "sending alone".to_owned(),
        yardstick_ns: Nanoseconds::of(&sending),
        ratio: ratio(&sending, &copying),
        target: Some(TARGET),
        repetitions: copying.len(),
    })?;
    Ok(())
}

/// Frames as long as copies are, laid out as an application would: in one piece, or as few as chunks allow.
fn ready_made(frames: &[Vec<u8>], removed: usize, pool: &mut Pool) -> anyhow::Result<Vec<Frame>> {
    let shorter = |frame: &Vec<u8>| {
        let mut octets = frame.clone();
        octets.drain(crate::packets::ETHERNET..crate::packets::ETHERNET + removed);
        octets[..6].copy_from_slice(&super::link::GENERATOR.0);
        Frame::from_octets(&octets, pool).context("the pool is exhausted")
    };
    frames.iter().map(shorter).collect()
}
