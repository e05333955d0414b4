//! `srdma bench applications`: versions of the host library to eight receivers, by multicast, unicast and scatter.

use crate::units::{parse_octets, parse_rate, rate};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use nix::unistd::geteuid;
use srdma_bench::Machine;
use srdma_bench::applications::{self, ApplicationExtent, ApplicationRow, ApplicationSink};
use std::io::{self, Write};
use std::process::ExitCode;

/// Time from a version's publication to the wake-up of eight receivers, by multicast, unicast and scatter.
///
/// Makes a network in namespaces of its own, with a tree of three nodes, a controller, and a process for the source and
/// for each receiver; needs root. Unicast is the same library with a group for each receiver, all at once; scatter
/// sends an eighth of the version to each. Octets are those on the source's link, and on the link of the receiver that
/// has got most, by those of a version. Links have a limited rate, then no limit; processor seconds are of a round.
///
/// Exit code 1: multicast has not been 6 times as fast as unicast over limited links, or something has failed.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct ApplicationsArguments {
    /// Octets of a version.
    #[arg(long, value_name = "OCTETS", default_value = "256MiB", value_parser = parse_size)]
    octets: u64,
    /// Rate of the limited links, in each direction.
    #[arg(long, value_name = "RATE", default_value = "200M", value_parser = parse_link_rate)]
    rate: u64,
    /// Links to measure with.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Links::Both)]
    links: Links,
    /// Rounds of each way.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// One JSON object per row and line.
    #[arg(long)]
    json: bool,
}

/// Links to measure with.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Links {
    /// Of the rate of `--rate`.
    Limited,
    /// As fast as the machine.
    Unlimited,
    /// One after the other.
    Both,
}

const EXAMPLES: &str = "\
Examples:
  sudo srdma bench applications
      256 MiB over links of 200 Mbit/s, three rounds of either way, then without a limit; some six minutes.

  sudo srdma bench applications --octets 16MiB --rounds 1 --links limited
      Half a minute.

  sudo srdma bench applications --json > rows.ndjson
      For programs.";

/// Most octets of a version: a slot for each of eight receivers is in memory.
const MOST_OCTETS: u64 = 4 << 30;

fn parse_size(text: &str) -> Result<u64, String> {
    let octets = parse_octets(text)?;
    if (1..=MOST_OCTETS).contains(&octets) { Ok(octets) } else { Err("expected 1 octet to 4 GiB".to_owned()) }
}

/// `tc` takes 64 kbit/s as well, but a round would take days.
fn parse_link_rate(text: &str) -> Result<u64, String> {
    let rate = parse_rate(text)?;
    if rate >= 1_000_000 { Ok(rate) } else { Err("expected 1 Mbit/s at least".to_owned()) }
}

/// Runs the command.
pub(super) fn run(arguments: &ApplicationsArguments) -> anyhow::Result<ExitCode> {
    let rates_bits_per_s = match arguments.links {
        Links::Limited => vec![Some(arguments.rate)],
        Links::Unlimited => vec![None],
        Links::Both => vec![Some(arguments.rate), None],
    };
    let extent = ApplicationExtent { octets: arguments.octets, rates_bits_per_s, rounds: arguments.rounds };
    let progress = ProgressBar::new(extent.all_rounds())
        .with_style(ProgressStyle::with_template("{spinner} {pos}/{len} {wide_bar} {msg} {elapsed}")?);
    let program = std::env::current_exe().context("cannot find this program itself")?;
    let mut table = ApplicationTable { json: arguments.json, progress, has_head: false, is_missed: false };
    let measured = applications::run(&extent, program, &mut table);
    table.progress.finish_and_clear();
    match measured {
        Err(error) if geteuid().is_root() => {
            eprintln!("srdma: {error:#}");
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error),
        Ok(()) => Ok(if table.is_missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }),
    }
}

/// Writes rows as they come.
struct ApplicationTable {
    json: bool,
    progress: ProgressBar,
    has_head: bool,
    is_missed: bool,
}

impl ApplicationTable {
    fn write(&mut self, row: &ApplicationRow) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, row)?;
            return writeln!(out);
        }
        if !std::mem::replace(&mut self.has_head, true) {
            writeln!(out, "{}, {} octets to {} receivers\n", Machine::detect().model, row.octets, row.receivers)?;
            writeln!(
                out,
                "{:<10} {:>10} {:>8} {:>8} {:>7} {:>12} {:>8}   {:>8} {:>9} {:>8}",
                "way", "links", "s min", "s med", "ratio", "source link", "to one", "source s", "receivers", "nodes"
            )?;
        }
        let missed = row.target.filter(|_| row.is_missed());
        writeln!(
            out,
            "{:<10} {:>10} {:>8.3} {:>8.3} {:>7} {:>12.3} {:>8.3}   {:>8.2} {:>9.2} {:>8.2}{}",
            row.way.name(),
            row.rate_bits_per_s.map_or("no limit".to_owned(), rate),
            row.seconds_min,
            row.seconds_median,
            row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            row.source_link,
            row.receiver_link,
            row.processors.source,
            row.processors.receivers,
            row.processors.nodes,
            missed.map_or(String::new(), |target| format!(" (target {target})")),
        )
    }
}

impl ApplicationSink for ApplicationTable {
    fn begins(&mut self, what: &str) {
        self.progress.set_message(what.to_owned());
    }

    fn round(&mut self) {
        self.progress.inc(1);
    }

    fn row(&mut self, row: &ApplicationRow) -> io::Result<()> {
        self.is_missed |= row.is_missed();
        let progress = self.progress.clone();
        progress.suspend(|| self.write(row))
    }
}
