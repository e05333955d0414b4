//! Bursts: the generator sends some frames on one processor and waits; then the other processor receives and sends them
//! all, and is timed.
//!
//! So no more frames are in flight than every queue holds, none is lost to overload, and the measured part always has
//! full batches to process, as with an infinitely fast generator.

use super::device::{Device, again};
use anyhow::{Context, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use srdma_frame::{Frame, Pool};
use srdma_io::{AfPacket, Driver, XdpSource};
use std::hint;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Frames in a burst: fewer than any queue of the kernel on the way holds.
pub(super) const BURST: usize = 192;

/// Frames of a repetition of redirected ones. They are processed sixty-four at a time.
pub(super) const REDIRECTED: usize = 1 << 16;

/// Bursts before those that count.
pub(super) const WARM_UP: usize = 8;

/// Without a frame for so long, the rest of a burst is lost.
const PATIENCE: Duration = Duration::from_millis(20);

/// The processors of generator and of what is measured.
const PROCESSORS: [usize; 2] = [1, 0];

/// The load generator.
pub(super) struct Generator {
    driver: AfPacket,
    pool: Pool,
    frames: Vec<Frame>,
}

/// Times of some bursts, in nanoseconds for each frame of the generator: medians.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// On the generator's processor: sending, and the kernel's delivery up to the driver's rings.
    pub(super) generator_ns: f64,
    /// On the other: from the rings to the end of the wire.
    pub(super) device_ns: f64,
}

impl Generator {
    pub(super) fn new(driver: AfPacket) -> Self {
        Generator { driver, pool: Pool::new(4 * BURST), frames: Vec::new() }
    }

    /// Changes the frames that are sent.
    pub(super) fn load(&mut self, frames: &[Vec<u8>]) -> anyhow::Result<()> {
        for frame in self.frames.drain(..) {
            frame.release(&mut self.pool);
        }
        for octets in frames {
            self.frames.push(Frame::from_octets(octets, &mut self.pool).context("the generator's pool is exhausted")?);
        }
        Ok(())
    }

    /// Sends `count` frames.
    pub(super) fn send(&mut self, count: usize) -> io::Result<()> {
        let Generator { driver, pool, frames } = self;
        for frame in frames.iter().cycle().take(count) {
            if driver.room(pool) == 0 {
                driver.flush(pool)?;
            }
            let frame = again(frame, pool);
            driver.push(frame, pool);
        }
        while !driver.is_flushed() {
            driver.flush(pool)?;
        }
        Ok(())
    }

    /// Bursts that the kernel forwards or drops, on the generator's processor.
    pub(super) fn alone(&mut self, bursts: usize) -> anyhow::Result<f64> {
        pinned(PROCESSORS[0], || {
            let mut times = Vec::new();
            for _ in 0..WARM_UP + bursts {
                times.push(timed(|| Ok(self.send(BURST)?))?);
            }
            Ok(median_ns(&mut times[WARM_UP..], BURST))
        })
    }

    /// The same of frames that are redirected to the other end of the link: see [`XdpSource`].
    pub(super) fn redirected(source: &XdpSource) -> anyhow::Result<f64> {
        pinned(PROCESSORS[0], || Ok(source.send(REDIRECTED as u32)?.as_nanos() as f64))
    }
}

/// Bursts of `frames_in` frames by the generator, for which the device sends `frames_out`.
pub(super) fn bursts(
    generator: &mut Generator,
    device: &mut Device<'_>,
    (frames_in, frames_out): (usize, usize),
    bursts: usize,
) -> anyhow::Result<Sample> {
    let all = WARM_UP + bursts;
    let (released, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let (sending, forwarding) = thread::scope(|scope| {
        let generator = scope.spawn(|| {
            let turn = Turn { mine: &released, other: &done };
            pinned(PROCESSORS[0], || turn.take(all, Order::First, || timed(|| Ok(generator.send(frames_in)?))))
        });
        let device = scope.spawn(|| {
            let turn = Turn { mine: &done, other: &released };
            pinned(PROCESSORS[1], || turn.take(all, Order::Second, || timed(|| drain(device, frames_out))))
        });
        (joined(generator), joined(device))
    });
    let (mut sending, mut forwarding) = (sending?, forwarding?);
    Ok(Sample {
        generator_ns: median_ns(&mut sending[WARM_UP..], frames_in.max(1)),
        device_ns: median_ns(&mut forwarding[WARM_UP..], frames_out),
    })
}

/// Works until the device has sent so many frames.
fn drain(device: &mut Device<'_>, frames: usize) -> anyhow::Result<()> {
    let (mut sent, mut progress) = (0, Instant::now());
    while sent < frames {
        match device.round(frames - sent)? {
            0 => ensure!(progress.elapsed() < PATIENCE, "{} of {frames} frames of a burst are lost", frames - sent),
            some => {
                sent += some;
                progress = Instant::now();
            }
        }
    }
    Ok(device.finish()?)
}

/// Two threads that work in turns. Each counts its turns; one that ends, also by an error, leaves the other free.
struct Turn<'t> {
    mine: &'t AtomicU64,
    other: &'t AtomicU64,
}

impl Turn<'_> {
    /// Works `turns` times; the thread that begins passes its turn on and waits for the other's, the other waits first.
    fn take(
        &self,
        turns: usize,
        order: Order,
        mut work: impl FnMut() -> anyhow::Result<Duration>,
    ) -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(turns);
        for turn in 1..=turns as u64 {
            if order == Order::Second {
                self.wait_for(turn);
            }
            times.push(work()?);
            self.mine.store(turn, Ordering::Release);
            if order == Order::First {
                self.wait_for(turn);
            }
        }
        Ok(times)
    }

    fn wait_for(&self, turn: u64) {
        while self.other.load(Ordering::Acquire) < turn {
            hint::spin_loop();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.mine.store(u64::MAX, Ordering::Release);
    }
}

/// The thread that begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    First,
    Second,
}

fn timed(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

/// Calls `action` on a thread that is pinned to one processor, if the machine has it.
fn pinned<T: Send>(processor: usize, action: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    thread::scope(|scope| {
        joined(scope.spawn(|| {
            let mut processors = CpuSet::new();
            processors.set(processor)?;
            sched_setaffinity(Pid::from_raw(0), &processors)
                .with_context(|| format!("this needs processor {processor}, and two in all"))?;
            action()
        }))
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn median_ns(times: &mut [Duration], frames: usize) -> f64 {
    times.sort();
    times[times.len() / 2].as_nanos() as f64 / frames as f64
}
