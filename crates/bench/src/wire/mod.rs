//! Time per frame on veth links, from interface to interface. `docs/performance.md` describes the measurement and its
//! reasons.
//!
//! Each part of the measurement is a module: `drivers`, the node compared with a bare reflector on the same driver;
//! `copies`, replication compared with sending alone; `kernel`, the node compared with the kernel's own SRv6;
//! `fast_path`, the fast path compared with a bare XDP program and the kernel.

mod burst;
mod copies;
mod device;
mod drivers;
mod fast_path;
mod kernel;
mod link;
mod row;
mod work;

pub use row::{Nanoseconds, WireRow};

use anyhow::ensure;
use burst::Generator;
use link::Links;
use nix::unistd::geteuid;
use srdma_frame::Pool;
use srdma_io::{Choice, Umem};
use std::io;

/// Number of samples.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    repetitions: usize,
    /// Bursts in a repetition.
    bursts: usize,
}

impl Extent {
    /// A few repetitions: rough figures.
    pub const QUICK: Extent = Extent { repetitions: 5, bursts: 15 };
    /// As many as docs/performance.md has.
    pub const FULL: Extent = Extent { repetitions: 15, bursts: 30 };
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The node by each packet driver, beside a bare reflector.
    Drivers,
    /// Replication by each packet driver, beside sending alone.
    Copies,
    /// What the drivers have forwarded, beside the kernel.
    Kernel,
    /// The fast path, beside a bare XDP program and the kernel.
    FastPath,
}

impl Part {
    /// All parts, in the order of the table.
    pub const ALL: [Part; 4] = [Part::Drivers, Part::Copies, Part::Kernel, Part::FastPath];
}

/// Takes results as they come.
pub trait Sink {
    /// Takes a row.
    ///
    /// # Errors
    ///
    /// If it cannot be written; the measurement ends.
    fn row(&mut self, row: &WireRow) -> io::Result<()>;
    /// Part of the measurement is skipped on this machine.
    fn skipped(&mut self, what: &str, why: &anyhow::Error);
}

/// Lengths of the frames that come in; where headers need more, their minimum.
const FRAME_OCTETS: [usize; 3] = [64, 1024, 4200];

const DRIVERS: [Choice; 3] = [Choice::Xdp, Choice::XdpGeneric, Choice::Packet];

/// Pages of memory for frames: 64 MiB.
const PAGES: usize = 1 << 14;

/// Links, memory and results that every part uses.
struct Bench<'s> {
    links: Links,
    generator: Generator,
    umem: Umem,
    pool: Pool,
    extent: Extent,
    sink: &'s mut dyn Sink,
}

/// Measures these parts, in network namespaces that it makes and removes. [`Part::Kernel`] measures the drivers, too.
///
/// # Errors
///
/// If this process is not root, a link cannot be made, a frame comes back wrong, or the sink fails.
pub fn run(parts: &[Part], extent: Extent, sink: &mut dyn Sink) -> anyhow::Result<()> {
    ensure!(geteuid().is_root(), "this makes network namespaces: run it as root");
    let links = Links::new()?;
    let generator = Generator::new(links.generator()?);
    let (umem, pool) = Umem::new(PAGES)?;
    let mut bench = Bench { links, generator, umem, pool, extent, sink };
    let wants = |part| parts.contains(&part);
    let forwarded =
        if wants(Part::Drivers) || wants(Part::Kernel) { drivers::measure(&mut bench)? } else { Vec::new() };
    if wants(Part::Copies) {
        copies::measure(&mut bench)?;
    }
    if !wants(Part::Kernel) && !wants(Part::FastPath) {
        return Ok(());
    }
    if let Err(error) = bench.links.kernel_forwards() {
        bench.sink.skipped("all beside the kernel's SRv6", &error);
        return Ok(());
    }
    if wants(Part::Kernel) {
        kernel::measure(&mut bench, &forwarded)?;
    }
    if wants(Part::FastPath) {
        fast_path::measure(&mut bench)?;
    }
    Ok(())
}
