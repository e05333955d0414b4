//! Time per frame on veth links, from interface to interface. `docs/performance.md` describes the measurement and its
//! reasons.
//!
//! Each part of the measurement is a module: `drivers`, the node compared with a bare reflector on the same driver;
//! `copies`, replication compared with sending alone; `kernel`, the node compared with the kernel's own SRv6.

mod burst;
mod copies;
mod device;
mod drivers;
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

/// Measures every driver and the kernel, in network namespaces that it makes and removes.
///
/// # Errors
///
/// If this process is not root, a link cannot be made, a frame comes back wrong, or the sink fails.
pub fn run(extent: Extent, sink: &mut dyn Sink) -> anyhow::Result<()> {
    ensure!(geteuid().is_root(), "this makes network namespaces: run it as root");
    let links = Links::new()?;
    let generator = Generator::new(links.generator()?);
    let (umem, pool) = Umem::new(PAGES)?;
    let mut bench = Bench { links, generator, umem, pool, extent, sink };
    let forwarded = drivers::measure(&mut bench)?;
    copies::measure(&mut bench)?;
    kernel::measure(&mut bench, &forwarded)
}
