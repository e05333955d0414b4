//! `srdma bench wire`: what a frame costs on veth links, from interface to interface. What is timed and why is told in
//! `docs/performance.md`.
//!
//! Each part of the measurement is a module: [`drivers`], the node beside a bare reflector on the same driver;
//! [`copies`], replication beside sending alone; [`kernel`], the node beside the kernel's own SRv6.

mod burst;
mod copies;
mod device;
mod drivers;
mod kernel;
mod link;
mod report;
mod work;

use super::machine::Machine;
use anyhow::ensure;
use burst::Generator;
use link::Links;
use nix::unistd::geteuid;
use report::Report;
use srdma_dataplane::Pool;
use srdma_io::{Choice, Umem};

/// Time per frame on veth links, from interface to interface, with each packet driver.
///
/// Makes network namespaces of its own, and needs root and two processors. Beside each figure stands its yardstick from
/// the same run: a reflector that only swaps MAC addresses, frames sent ready-made, or the kernel's own SRv6.
#[derive(clap::Args)]
pub(crate) struct WireArguments {
    /// One JSON object per row and line.
    #[arg(long)]
    json: bool,
    /// A few repetitions only; the figures are rougher.
    #[arg(long)]
    quick: bool,
}

/// How much is measured.
#[derive(Clone, Copy)]
struct Extent {
    repetitions: usize,
    /// Bursts in a repetition.
    bursts: usize,
}

/// Lengths of the frames that come in; where headers need more, their least.
const FRAME_OCTETS: [usize; 3] = [64, 1024, 4200];

const DRIVERS: [Choice; 3] = [Choice::Xdp, Choice::XdpGeneric, Choice::Packet];

/// Pages of memory for what is measured: 64 MiB.
const PAGES: usize = 1 << 14;

/// What every part uses.
struct Bench {
    links: Links,
    generator: Generator,
    umem: Umem,
    pool: Pool,
    extent: Extent,
    report: Report,
}

/// Runs the command.
///
/// # Errors
///
/// When this process is not root, a link cannot be made, a frame comes back wrong, or the output cannot be written.
pub(super) fn run(arguments: &WireArguments) -> anyhow::Result<()> {
    ensure!(geteuid().is_root(), "this makes network namespaces: run it as root");
    let links = Links::new()?;
    let generator = Generator::new(links.generator()?);
    let (umem, pool) = Umem::new(PAGES)?;
    let extent =
        if arguments.quick { Extent { repetitions: 5, bursts: 15 } } else { Extent { repetitions: 15, bursts: 30 } };
    let report = Report::new(arguments.json, &Machine::detect())?;
    let mut bench = Bench { links, generator, umem, pool, extent, report };
    let forwarded = drivers::measure(&mut bench)?;
    copies::measure(&mut bench)?;
    kernel::measure(&mut bench, &forwarded)
}
