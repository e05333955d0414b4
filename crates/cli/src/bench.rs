//! `srdma bench`: what a packet costs on this machine. The figures and what is timed are explained in
//! `docs/performance.md`.

mod cases;
mod check;
mod fast_cnp;
mod machine;
mod measure;
mod packets;
mod report;
mod reverse;
mod routes;
mod scenario;
mod steering;
mod wan;
mod wire;
mod yardsticks;

use anyhow::ensure;
use cases::{Case, WorkingSet};
use indicatif::{ProgressBar, ProgressStyle};
use machine::Machine;
use measure::Bench;
use report::{MemoryRow, Report, Row};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Measure what a packet costs on this machine.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Dataplane(DataplaneArguments),
    Wire(wire::WireArguments),
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
    /// Only the case of this name or, when there is none, those whose name contains it; upper and lower case are the
    /// same.
    /// Repeat it for several.
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// Repetitions of the long measurements, at least 11. Those inside L2 are repeated ten times as often.
    #[arg(long, default_value_t = 11, value_name = "N", value_parser = clap::value_parser!(u32).range(11..=10_000))]
    repetitions: u32,
    /// Frames that the driver hands over in one call.
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// Only the smallest frames, 10 routes and the working set inside L2.
    #[arg(long)]
    quick: bool,
}

const EXAMPLES: &str = "\
Examples:
  srdma bench dataplane --quick
      Seconds: every case at its smallest frame, 10 routes, inside L2.

  srdma bench dataplane --case End.MT --case yardstick
      End.MT beside what memory and CRC instructions allow.

  srdma bench dataplane --json > rows.ndjson
      The whole matrix; minutes, and up to half of the free memory.";

/// Repetitions inside L2 for each one outside.
const SHORT_REPETITIONS: u32 = 10;

/// Runs the command.
///
/// # Errors
///
/// When no case has the name asked for, a case forwards wrongly, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Dataplane(arguments) => dataplane(arguments).map(|()| ExitCode::SUCCESS),
        What::Wire(arguments) => wire::run(arguments).map(|()| ExitCode::SUCCESS),
    }
}

fn dataplane(arguments: &DataplaneArguments) -> anyhow::Result<()> {
    let machine = Machine::detect();
    let points = chosen(points(arguments.quick), &arguments.cases)?;
    let mut report = Report::new(arguments.json, &machine)?;
    let progress = ProgressBar::new(points.len() as u64)
        .with_style(ProgressStyle::with_template("{spinner} {pos}/{len} {wide_bar} {msg} {elapsed}")?);
    let mut bench = Bench::new(&machine, arguments.batch as usize);
    for point in points {
        progress.set_message(point.name());
        let repetitions = match point.working_set() {
            WorkingSet::InsideL2 => arguments.repetitions * SHORT_REPETITIONS,
            WorkingSet::Memory => arguments.repetitions,
        };
        match point.measure(&mut bench, repetitions)? {
            Measured::Time(row) => progress.suspend(|| report.row(&row))?,
            Measured::Memory(rows) => progress.suspend(|| rows.iter().try_for_each(|row| report.memory(row)))?,
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(())
}

/// The points of the cases that are asked for; all when none is. An error names the cases that there are.
fn chosen(points: Vec<Point>, asked: &[String]) -> anyhow::Result<Vec<Point>> {
    let names: BTreeSet<String> = points.iter().map(|point| point.name().to_lowercase()).collect();
    for text in asked {
        ensure!(
            names.iter().any(|name| name.contains(&text.to_lowercase())),
            "--case {text}: no case has this in its name; there are:\n  {}",
            points.iter().map(Point::name).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("\n  ")
        );
    }
    let is_asked = |name: &str, text: &str| if names.contains(text) { name == text } else { name.contains(text) };
    let asked: Vec<String> = asked.iter().map(|text| text.to_lowercase()).collect();
    let keeps = |point: &Point| {
        let name = point.name().to_lowercase();
        asked.is_empty() || asked.iter().any(|text| is_asked(&name, text))
    };
    Ok(points.into_iter().filter(keeps).collect())
}

/// One row to be measured.
enum Point {
    Packet {
        case: Case,
        frame_octets: usize,
        routes: usize,
        working_set: WorkingSet,
    },
    Yardstick(yardsticks::Yardstick),
    Reverse(reverse::Reverse),
    FastCnp(fast_cnp::FastCnp),
    Steering(steering::Steering),
    Wan(wan::Wan),
    /// What groups take in memory; measured before anything else.
    GroupMemory,
}

/// What was measured.
enum Measured {
    Time(Row),
    Memory(Vec<MemoryRow>),
}

/// Every row, or the quick ones.
fn points(quick: bool) -> Vec<Point> {
    let all_sizes = [cases::SMALL, 1500, 4200];
    let all_routes = [10, 100_000];
    let all_sets = [WorkingSet::InsideL2, WorkingSet::Memory];
    let (sizes, routes, sets) = if quick {
        (&all_sizes[..1], &all_routes[..1], &all_sets[..1])
    } else {
        (&all_sizes[..], &all_routes[..], &all_sets[..])
    };
    let mut points = vec![Point::GroupMemory];
    for &working_set in sets {
        for &routes in routes {
            for case in Case::all() {
                points.extend(sizes.iter().map(|&size| Point::Packet {
                    case,
                    frame_octets: size,
                    routes,
                    working_set,
                }));
            }
        }
    }
    points.extend(reverse::Reverse::ALL.into_iter().map(Point::Reverse));
    points.extend(fast_cnp::FastCnp::ALL.into_iter().map(Point::FastCnp));
    points.extend(steering::Steering::ALL.into_iter().map(Point::Steering));
    points.extend(wan::Wan::ALL.into_iter().map(Point::Wan));
    points.extend(yardsticks::Yardstick::ALL.into_iter().map(Point::Yardstick));
    points
}

impl Point {
    fn name(&self) -> String {
        match self {
            Point::Packet { case, .. } => case.name(),
            Point::Yardstick(yardstick) => yardstick.name(),
            Point::Reverse(reverse) => reverse.name(),
            Point::FastCnp(fast_cnp) => fast_cnp.name(),
            Point::Steering(steering) => steering.name(),
            Point::Wan(wan) => wan.name(),
            Point::GroupMemory => "memory of a group".to_owned(),
        }
    }

    fn working_set(&self) -> WorkingSet {
        match self {
            Point::Packet { working_set, .. } => *working_set,
            Point::Yardstick(_) | Point::Reverse(_) | Point::FastCnp(_) | Point::Steering(_) | Point::Wan(_) => {
                WorkingSet::InsideL2
            }
            Point::GroupMemory => WorkingSet::Memory,
        }
    }

    fn measure(&self, bench: &mut Bench<'_>, repetitions: u32) -> anyhow::Result<Measured> {
        let row = match *self {
            Point::Packet { case, frame_octets, routes, working_set } => {
                bench.packets(case, frame_octets, routes, working_set, repetitions)?
            }
            Point::Yardstick(yardstick) => bench.yardstick(yardstick, repetitions)?,
            Point::Reverse(reverse) => bench.reverse(reverse, repetitions)?,
            Point::FastCnp(fast_cnp) => bench.fast_cnp(fast_cnp, repetitions)?,
            Point::Steering(steering) => bench.steering(steering, repetitions)?,
            Point::Wan(wan) => bench.wan(wan, repetitions)?,
            Point::GroupMemory => return Ok(Measured::Memory(reverse::memory()?)),
        };
        Ok(Measured::Time(row))
    }
}
