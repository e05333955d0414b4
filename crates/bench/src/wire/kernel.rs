//! The node compared with the kernel's own SRv6 on the same links.
//!
//! The kernel forwards on the processor that the frame comes from: sending and forwarding are one time. The time of
//! sending alone, to where the kernel drops frames at once, is subtracted. It is subtracted from the node's time as
//! well: that leaves the kernel's work for bringing frames to the driver, which belongs to the comparison.

use super::Bench;
use super::burst::{BURST, Generator};
use super::drivers::Forwarded;
use super::link::{GENERATOR, UNASSIGNED};
use super::row::{Nanoseconds, WireRow, ratio};
use super::work::Work;
use anyhow::{Context, ensure};
use srdma_io::Driver;
use std::time::{Duration, Instant};

/// Measures what the kernel can do of what the node has done.
pub(super) fn measure(bench: &mut Bench<'_>, forwarded: &[Forwarded]) -> anyhow::Result<()> {
    let mut compared = forwarded.iter().filter(|forwarded| matches!(forwarded.work, Work::End | Work::MicroN));
    let mut kernel: Vec<(Work, usize, Vec<f64>, Vec<f64>)> = Vec::new();
    compared.try_for_each(|forwarded| {
        let (work, octets) = (forwarded.work, forwarded.frame_octets);
        if !kernel.iter().any(|(known, len, ..)| (*known, *len) == (work, octets)) {
            let (sinking, forwarding) = measure_work(bench, work, octets)?;
            kernel.push((work, octets, sinking, forwarding));
        }
        let Some((.., sinking, forwarding)) = kernel.iter().find(|(known, len, ..)| (*known, *len) == (work, octets))
        else {
            return Ok(());
        };
        let less_sending =
            |times: &[f64]| times.iter().zip(sinking).map(|(time, sink)| time - sink).collect::<Vec<_>>();
        let whole = |sample: &super::burst::Sample| sample.generator_ns + sample.device_ns;
        let measured = less_sending(&forwarded.samples.iter().map(whole).collect::<Vec<_>>());
        let yardstick = less_sending(forwarding);
        bench.sink.row(&WireRow {
            driver: forwarded.driver.clone(),
            case: format!("{work} in all"),
            frame_octets: octets,
            measured: Nanoseconds::of(&measured),
            yardstick: "kernel".to_owned(),
            yardstick_ns: Nanoseconds::of(&yardstick),
            ratio: ratio(&yardstick, &measured),
            target: None,
            repetitions: measured.len(),
        })?;
        Ok(())
    })
}

/// Times of frames that no receiver takes, and of frames that are forwarded.
fn measure_work(bench: &mut Bench<'_>, work: Work, octets: usize) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let frames = work.frames(octets, 64)?;
    bench.generator.load(&frames)?;
    check(bench, work, "the kernel", &frames[0])?;
    let for_nobody = for_nobody(&frames);
    let before = bench.links.returned()?;
    let (mut sinking, mut forwarding) = (Vec::new(), Vec::new());
    for _ in 0..bench.extent.repetitions {
        let run = |generator: &mut Generator, frames: &[Vec<u8>]| {
            generator.load(frames)?;
            generator.alone(bench.extent.bursts)
        };
        sinking.push(run(&mut bench.generator, &for_nobody)?);
        forwarding.push(run(&mut bench.generator, &frames)?);
    }
    let expected = (bench.extent.repetitions * bench.extent.bursts * BURST) as u64;
    let returned = bench.links.returned()? - before;
    ensure!(returned >= expected, "the kernel's {work}: {returned} frames came back, not {expected}");
    Ok((sinking, forwarding))
}

/// The same frames, for an address that no interface has.
pub(super) fn for_nobody(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut frames = frames.to_vec();
    frames.iter_mut().for_each(|frame| frame[..6].copy_from_slice(&UNASSIGNED.0));
    frames
}

/// Sends one frame that the kernel, or a program in it, forwards, and checks what comes back.
pub(super) fn check(bench: &mut Bench<'_>, work: Work, by: &str, sent: &[u8]) -> anyhow::Result<()> {
    let mut witness = bench.links.witness()?;
    bench.generator.send(1)?;
    let begin = Instant::now();
    let mut returned: Vec<Vec<u8>> = Vec::new();
    let mut frames = Vec::new();
    while returned.is_empty() {
        witness.receive(&mut bench.pool, &mut frames, 1)?;
        ensure!(begin.elapsed() < Duration::from_secs(1), "{work} by {by}: nothing came back");
        for frame in frames.drain(..) {
            let octets = frame.to_vec(&bench.pool);
            frame.release(&mut bench.pool);
            // The kernel's own multicast is none of it.
            if octets.starts_with(&GENERATOR.0) {
                returned.push(octets);
            }
        }
    }
    work.check(sent, &returned).with_context(|| format!("{work} by {by}"))
}
