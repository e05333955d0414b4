//! The fast path compared with the least that an XDP program can do, and with the kernel, on the same links
//! (D224).
//!
//! Program and kernel forward on the processor that the frame comes from: sending and forwarding are one time. The time
//! of sending alone, to where the kernel drops frames at once, is subtracted from all of them.

use super::burst::{BURST, Generator, REDIRECTED, WARM_UP};
use super::kernel;
use super::row::{Nanoseconds, WireRow, ratio};
use super::work::Work;
use super::{Bench, FRAME_OCTETS};
use anyhow::{Context, ensure};
use srdma_dataplane::{FastPath as Plan, TableId};
use srdma_frame::PortId;
use srdma_io::fast_path::Maps;
use srdma_io::{Choice, Driver, Interest, Match, XdpSource, XdpYardstick};
use srdma_node::daemon::{fast_path_entries, fast_path_port};
use std::collections::BTreeSet;

const WORKS: [Work; 5] = [Work::Ipv6, Work::End, Work::MicroN, Work::EndDt6, Work::EncapsReduced];

/// The share of the bare program's rate that the fast path is to reach.
const TARGET: f64 = 0.85;

/// The same of the kernel's rate with a SID, for frames up to so many octets.
const KERNEL_TARGET: f64 = 1.5;
const KERNEL_TARGET_OCTETS: usize = 1024;

const BARE: &str = "bare XDP";

/// Times of one work, in the order of the repetitions.
#[derive(Debug, Default)]
struct Times {
    sinking: Vec<f64>,
    kernel: Vec<f64>,
    reflecting: Vec<f64>,
    forwarding: Vec<f64>,
}

/// Measures every work, if the kernel has native XDP here. It forwards by its own means already.
pub(super) fn measure(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let [input, output] = bench.links.interfaces()?;
    if let Err(error) = bench.links.at_node(|| XdpYardstick::reflector(input, output))? {
        bench.sink.skipped("the fast path", &error.into());
        return Ok(());
    }
    for arrival in [Arrival::Sent, Arrival::Redirected] {
        for work in WORKS {
            for octets in FRAME_OCTETS.into_iter().filter(|octets| arrival.has_frames_of(*octets)) {
                measure_work(bench, arrival, work, work.frame_octets(octets))?;
            }
        }
    }
    Ok(())
}

/// How frames come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// From a socket at the other end of the link, in socket buffers, which a veth copies for an XDP program.
    Sent,
    /// As an XDP program at the other end redirects them, without socket buffers.
    Redirected,
}

impl Arrival {
    fn has_frames_of(self, octets: usize) -> bool {
        self == Arrival::Sent || octets <= XdpSource::MAX_OCTETS
    }
}

fn measure_work(bench: &mut Bench<'_>, arrival: Arrival, work: Work, octets: usize) -> anyhow::Result<()> {
    let frames = work.frames(octets, 64)?;
    let for_nobody = kernel::for_nobody(&frames);
    let fast = FastPath::new(bench, work)?;
    let source = match arrival {
        Arrival::Sent => None,
        Arrival::Redirected => Some(bench.links.source(&frames[0])?),
    };
    bench.generator.load(&frames)?;
    kernel::check(bench, work, "the kernel", &frames[0])?;
    under(bench, Processing::Bare, |bench| kernel::check(bench, Work::Reflect, BARE, &frames[0]))?;
    under(bench, Processing::Fast(&fast), |bench| kernel::check(bench, work, "the fast path", &frames[0]))?;
    let (before, forwarded_before) = (bench.links.returned()?, fast.maps.received(0)?.frames);
    let mut times = Times::default();
    for _ in 0..bench.extent.repetitions {
        if let Some(source) = &source {
            let run = |_: &mut Bench<'_>| Generator::redirected(source);
            times.sinking.push(under(bench, Processing::Drop, run)?);
            times.kernel.push(under(bench, Processing::Kernel, run)?);
            times.reflecting.push(under(bench, Processing::Bare, run)?);
            times.forwarding.push(under(bench, Processing::Fast(&fast), run)?);
        } else {
            let run = |bench: &mut Bench<'_>| bench.generator.alone(bench.extent.bursts);
            bench.generator.load(&for_nobody)?;
            times.sinking.push(run(bench)?);
            bench.generator.load(&frames)?;
            times.kernel.push(run(bench)?);
            times.reflecting.push(under(bench, Processing::Bare, run)?);
            times.forwarding.push(under(bench, Processing::Fast(&fast), run)?);
        }
    }
    let of_repetition = match arrival {
        Arrival::Sent => (WARM_UP + bench.extent.bursts) * BURST,
        Arrival::Redirected => REDIRECTED,
    };
    let expected = (bench.extent.repetitions * of_repetition) as u64;
    let returned = bench.links.returned()? - before;
    ensure!(returned >= 3 * expected, "{work}: {returned} frames came back, not {}", 3 * expected);
    let forwarded = fast.maps.received(0)?.frames - forwarded_before;
    ensure!(forwarded == expected, "{work}: the fast path forwarded {forwarded} frames, not {expected}");
    report(bench, (arrival, work), octets, &times)
}

fn report(
    bench: &mut Bench<'_>,
    (arrival, work): (Arrival, Work),
    frame_octets: usize,
    times: &Times,
) -> anyhow::Result<()> {
    let less_sending = |all: &[f64]| all.iter().zip(&times.sinking).map(|(time, sink)| time - sink).collect::<Vec<_>>();
    let measured = less_sending(&times.forwarding);
    let has_sid = matches!(work, Work::End | Work::MicroN | Work::EndDt6);
    let kernel_target = (has_sid && frame_octets <= KERNEL_TARGET_OCTETS).then_some(KERNEL_TARGET);
    let yardsticks = [(BARE, &times.reflecting, Some(TARGET)), ("kernel", &times.kernel, kernel_target)];
    let how = match arrival {
        Arrival::Sent => "in all",
        Arrival::Redirected => "by XDP",
    };
    for (name, yardstick, target) in yardsticks {
        let yardstick = less_sending(yardstick);
        bench.sink.row(&WireRow {
            driver: "XDP fast path".to_owned(),
            case: format!("{work} {how}"),
            frame_octets,
            measured: Nanoseconds::of(&measured),
            yardstick: name.to_owned(),
            yardstick_ns: Nanoseconds::of(&yardstick),
            ratio: ratio(&yardstick, &measured),
            target,
            repetitions: measured.len(),
        })?;
    }
    Ok(())
}

/// What happens to redirected frames where they come in, and to all frames there by XDP.
#[derive(Clone, Copy)]
enum Processing<'f> {
    /// They are dropped.
    Drop,
    /// They become socket buffers, which the kernel forwards.
    Kernel,
    /// The smallest program that forwards.
    Bare,
    /// The fast path.
    Fast(&'f FastPath),
}

/// Calls `action` while frames are processed so. What XDP forwards arrives by NAPI.
fn under<T>(
    bench: &mut Bench<'_>,
    processing: Processing<'_>,
    action: impl FnOnce(&mut Bench<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let [input, output] = bench.links.interfaces()?;
    match processing {
        Processing::Drop => {
            let _program = bench.links.at_node(|| XdpYardstick::drop_all(input))??;
            action(bench)
        }
        Processing::Kernel => {
            let _program = bench.links.at_node(|| XdpYardstick::pass(input))??;
            action(bench)
        }
        Processing::Bare => {
            let _napi = bench.links.napi_at_the_far_end()?;
            let _program = bench.links.at_node(|| XdpYardstick::reflector(input, output))??;
            action(bench)
        }
        Processing::Fast(fast) => {
            let _napi = bench.links.napi_at_the_far_end()?;
            let mut driver = fast.open(bench)?;
            let result = action(bench);
            driver.detach(&mut bench.pool);
            result
        }
    }
}

/// The fast path of a node.
struct FastPath {
    plan: Plan,
    maps: Maps,
    interest: Interest,
}

impl FastPath {
    fn new(bench: &Bench<'_>, work: Work) -> anyhow::Result<Self> {
        let node = work.node()?.context("this work is a node's")?;
        let plan = node.fast_path(|_| true);
        let mut maps = Maps::new()?;
        let interfaces = bench.links.interfaces()?;
        // The kernel finds an interface in the namespace of the thread.
        let ports =
            || interfaces.into_iter().zip(0..).try_for_each(|(index, port)| maps.set_interface(port, Some(index)));
        bench.links.at_node(ports)??;
        let sids: BTreeSet<_> = node.sid_counters().map(|(sid, _)| sid).collect();
        let of_main_table = plan.entries.keys().filter(|(table, _)| *table == TableId(0));
        let prefixes: Vec<_> = of_main_table.map(|(_, prefix)| (*prefix, Match::All)).collect();
        maps.set_entries(&fast_path_entries(&plan), &sids, &prefixes)?;
        Ok(FastPath { plan, maps, interest: Interest { prefixes, ..Interest::default() } })
    }

    /// A driver as a port of the node has it.
    fn open(&self, bench: &Bench<'_>) -> anyhow::Result<Box<dyn Driver>> {
        let (interest, umem) = (&self.interest, &bench.umem);
        let mut driver = bench.links.at_node(|| srdma_io::open("in", Choice::Xdp, interest, Some(umem)))??.driver;
        let port = fast_path_port(&self.plan, PortId(0), super::link::IN);
        driver.set_fast_path(Some((&self.maps, &port)))?;
        Ok(driver)
    }
}
