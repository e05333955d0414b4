//! `srdma bench`: time per packet on this machine, and of the host library's versions. `docs/performance.md` and
//! `docs/applications.md` explain the figures.

mod applications;
mod table;

use indicatif::{ProgressBar, ProgressStyle};
use srdma_bench::wire::{self, Extent, Part, Sink, WireRow};
use srdma_bench::workers::{self, WorkersCase};
use srdma_bench::{Bench, Machine, Measured, points, select};
use srdma_dataplane::MAX_WORKERS;
use std::io;
use std::process::ExitCode;
use table::{DataplaneTable, WireTable, WorkersTable};

/// Measure the time per packet on this machine, and that of the host library's versions.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Dataplane(DataplaneArguments),
    Wire(WireArguments),
    Applications(applications::ApplicationsArguments),
    /// A process of `srdma bench applications`.
    #[command(hide = true)]
    ApplicationHost {
        /// What it is to do, as JSON.
        program: String,
    },
}

/// Time per packet in the dataplane: from an Ethernet frame in memory to the finished frame in an output queue.
///
/// No packet leaves the process. Building frames and emptying queues is not timed, except that the cases named "copied"
/// include copying each finished frame into an output buffer.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DataplaneArguments {
    /// One JSON object per row and line.
    #[arg(long)]
    json: bool,
    /// Only the case of this name or, without an exact match, those whose name contains it; case-insensitive. May be
    /// repeated.
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// Repetitions of the long measurements. Those inside L2 are repeated ten times as often.
    #[arg(long, default_value_t = 11, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: u32,
    /// Frames that the driver hands over in one call.
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// Only the smallest frames, 10 routes and the working set inside L2.
    #[arg(long)]
    quick: bool,
    /// Throughput of so many workers of a node, each on a processor of its own, instead of times of single calls; as
    /// many numbers as are to be compared, the first with all others.
    #[arg(long, value_name = "N,…", value_delimiter = ',', conflicts_with_all = ["quick", "batch"],
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_WORKERS)))]
    workers: Vec<u16>,
}

const EXAMPLES: &str = "\
Examples:
  srdma bench dataplane --quick
      Seconds: every case at its smallest frame, 10 routes, inside L2.

  srdma bench dataplane --case End.MT --case yardstick
      End.MT beside the yardsticks of memory and CRC instructions.

  srdma bench dataplane --workers 1,2
      How much more two workers forward and copy than one.

  srdma bench dataplane --json > rows.ndjson
      The whole matrix; minutes, and up to half of the free memory.";

/// Time per frame on veth links, from interface to interface, with each packet driver.
///
/// Makes network namespaces of its own, and needs root and two processors. Beside each figure stands its yardstick from
/// the same run: a reflector that only swaps MAC addresses, frames sent ready-made, the kernel's own SRv6, or, for the
/// fast path, an XDP program that only swaps MAC addresses and redirects.
#[derive(clap::Args)]
#[command(after_long_help = WIRE_EXAMPLES)]
pub(crate) struct WireArguments {
    /// One JSON object per row and line.
    #[arg(long)]
    json: bool,
    /// A few repetitions only; the figures are rougher.
    #[arg(long)]
    quick: bool,
    /// Only this part of the table. May be repeated.
    #[arg(long = "part", value_name = "PART", value_enum)]
    parts: Vec<WirePart>,
}

/// Part of the table of `srdma bench wire`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum WirePart {
    /// Each packet driver, beside a bare reflector.
    Drivers,
    /// Replication, beside frames sent ready-made.
    Copies,
    /// Each packet driver, beside the kernel.
    Kernel,
    /// The XDP fast path, beside a bare XDP program and the kernel.
    FastPath,
}

const WIRE_EXAMPLES: &str = "\
Examples:
  srdma bench wire --quick
      Every part, in a minute or two.

  srdma bench wire --part fast-path --json > rows.ndjson
      The XDP fast path beside a program that only redirects, and beside the kernel.";

/// Runs the command.
///
/// # Errors
///
/// If no case has the name asked for, a case forwards wrongly, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Dataplane(arguments) => dataplane(arguments).map(|()| ExitCode::SUCCESS),
        What::Wire(arguments) => on_wires(arguments).map(|()| ExitCode::SUCCESS),
        What::Applications(arguments) => applications::run(arguments),
        What::ApplicationHost { program } => srdma_bench::applications::run_host(program).map(|()| ExitCode::SUCCESS),
    }
}

fn dataplane(arguments: &DataplaneArguments) -> anyhow::Result<()> {
    let machine = Machine::detect();
    if !arguments.workers.is_empty() {
        return of_workers(arguments, &machine);
    }
    let points = select(points(arguments.quick), &arguments.cases)?;
    let mut table = DataplaneTable::new(arguments.json, &machine)?;
    let progress = ProgressBar::new(points.len() as u64)
        .with_style(ProgressStyle::with_template("{spinner} {pos}/{len} {wide_bar} {msg} {elapsed}")?);
    let mut bench = Bench::new(&machine, arguments.batch as usize);
    for point in points {
        progress.set_message(point.name());
        match point.measure(&mut bench, arguments.repetitions)? {
            Measured::Time(row) => progress.suspend(|| table.row(&row))?,
            Measured::Memory(rows) => progress.suspend(|| rows.iter().try_for_each(|row| table.memory(row)))?,
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(())
}

fn of_workers(arguments: &DataplaneArguments, machine: &Machine) -> anyhow::Result<()> {
    let is_wanted = |case: &WorkersCase| {
        let name = case.name().to_lowercase();
        arguments.cases.is_empty() || arguments.cases.iter().any(|wanted| name.contains(&wanted.to_lowercase()))
    };
    let cases: Vec<WorkersCase> = WorkersCase::ALL.into_iter().filter(is_wanted).collect();
    if cases.is_empty() {
        let names: Vec<&str> = WorkersCase::ALL.into_iter().map(WorkersCase::name).collect();
        anyhow::bail!("no case of workers has such a name; there are: {}", names.join("; "));
    }
    let mut table = WorkersTable::new(arguments.json, machine)?;
    let progress = ProgressBar::new(cases.len() as u64)
        .with_style(ProgressStyle::with_template("{spinner} {pos}/{len} {wide_bar} {msg} {elapsed}")?);
    for case in cases {
        progress.set_message(case.name());
        let rows = workers::measure(case, &arguments.workers, arguments.repetitions, machine)?;
        progress.suspend(|| rows.iter().try_for_each(|row| table.row(row)))?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(())
}

fn on_wires(arguments: &WireArguments) -> anyhow::Result<()> {
    let extent = if arguments.quick { Extent::QUICK } else { Extent::FULL };
    let parts: Vec<Part> = match arguments.parts.as_slice() {
        [] => Part::ALL.to_vec(),
        some => some.iter().map(|part| part.of_bench()).collect(),
    };
    wire::run(&parts, extent, &mut WireTable::new(arguments.json, &Machine::detect())?)
}

impl WirePart {
    fn of_bench(self) -> Part {
        match self {
            WirePart::Drivers => Part::Drivers,
            WirePart::Copies => Part::Copies,
            WirePart::Kernel => Part::Kernel,
            WirePart::FastPath => Part::FastPath,
        }
    }
}

impl Sink for WireTable {
    fn row(&mut self, row: &WireRow) -> io::Result<()> {
        self.write(row)
    }

    fn skipped(&mut self, what: &str, why: &anyhow::Error) {
        eprintln!("{what} is skipped: {why:#}");
    }
}
