//! The command line of `srdma sim`.

use crate::units::parse_delay;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use clap::{Args, value_parser};
use srdma_fabric_sim::{Level, Scenario};
use srdma_recording::Recorder;
use srdma_sim::SnapshotInterval;
use std::fs::File;
use std::path::PathBuf;
use std::thread;

pub(super) const EXAMPLES: &str = "Examples:
  srdma sim scenarios/incast-dc.toml                          every variant with the seeds of the file, as a table
  srdma sim scenarios/incast-dc.toml --report incast.html     also write an HTML report
  srdma sim scenarios/incast-dc.toml --seeds 20 --json        twenty seeds, all results as JSON
  srdma sim scenarios/incast-dc.toml --variant fast-cnp-dcqcn --first 7 --seeds 1
                                                              one variant with seed 7 only
  srdma sim scenarios/incast-dc.toml --record run.jsonl       also record the first run for replay on the page
  srdma sim scenarios/allreduce-512.toml --level flow         simulate jobs by max-min fair rates: takes seconds
  srdma sim scenarios/allreduce-4096-packets.toml --skip-steady
                                                              packet by packet, but for the steady state of the ring
  srdma sim scenarios/wan.toml --report wan.html              congestion notification across a WAN
  srdma sim scenarios/end-to-end.toml                         one stream through all features to sixteen receivers
  srdma sim scenarios/broadcast-1024.toml                     1 GB to 1,024 receivers at 400 Gbit/s: takes minutes

The same file, variants and seeds give the same results on any number of threads. docs/scenarios.md describes the files,
the JSON and the report.

Exit codes: 0 all runs completed and all checks hold, 1 a run failed, missed its target, lost frames by
itself or delivered other octets, or a check does not hold, 2 the file or the arguments are invalid.";

/// Run a scenario: a fabric or a WAN under load, in several variants of congestion handling and path selection
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Scenario file (TOML)
    pub(super) file: PathBuf,

    /// Number of seeds per variant [default: that of the file]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,

    /// First seed; the others follow it [default: that of the file, or 1]
    #[arg(long, value_name = "SEED", value_parser = value_parser!(u64).range(..=u64::MAX - 1000))]
    first: Option<u64>,

    /// Run only this variant; may be repeated
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,

    /// Level of simulation, overrides the kind of the file (`fabric` or `flow-level`): single packets, or max-min fair
    /// rates (jobs only)
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<LevelName>,

    /// Number of threads: as many runs at a time; where there are fewer runs, each run of a fabric, packet by packet,
    /// is divided among several threads. Results are the same with any number [default: number of cores]
    #[arg(long, value_name = "T", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Skip steady states of collectives in rings: when all channels have taken equally long for their last messages,
    /// the rest but for the last messages is computed instead of simulated. Packet level, jobs only, no failures
    #[arg(long, conflicts_with = "record")]
    skip_steady: bool,

    /// At flow level, compute rates no sooner again than after this share of the mean duration of transfers, 0 to 1
    /// [default: 0.005]
    #[arg(long, value_name = "SHARE", conflicts_with = "skip_steady")]
    rate_interval: Option<f64>,

    /// Run everything a second time without skipping, or with rates as often as by default, and print the difference of
    /// the iterations' durations
    #[arg(long, conflicts_with = "json")]
    pub(super) compare: bool,

    /// Print all results as one JSON object
    #[arg(long)]
    pub(super) json: bool,

    /// Write a self-contained HTML report
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,

    /// Record one run for replay on the controller's page (docs/page.md): that of the first variant with the first
    /// seed, of a WAN at its first length with the reference buffer; --variant and --first select another one. Runs at
    /// flow level have no packets to record
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Minimum simulated time between two samples of the recording, in whole steps of the run [default: one step, more
    /// for long runs and large networks]
    #[arg(long, value_name = "TIME", value_parser = parse_delay, requires = "record")]
    record_every: Option<u64>,
}

/// Values of `--level`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LevelName {
    Packet,
    Flow,
}

impl Arguments {
    /// Applies `--variant`, `--level`, `--skip-steady` and `--rate-interval` to a scenario.
    pub(super) fn select(&self, scenario: &mut Scenario) -> Result<()> {
        let file = self.file.display();
        scenario.select_variants(&self.variant).with_context(|| format!("--variant: {file}"))?;
        let level = self.level.map(|level| match level {
            LevelName::Packet => Level::Packet,
            LevelName::Flow => Level::Flow,
        });
        level.map_or(Ok(()), |level| scenario.set_level(level)).with_context(|| format!("--level: {file}"))?;
        if self.compare && !self.skip_steady && self.rate_interval.is_none() {
            bail!("--compare: there is nothing to compare: expected --skip-steady or --rate-interval");
        }
        if let Some(share) = self.rate_interval {
            scenario.set_rate_interval(share).with_context(|| format!("--rate-interval: {file}"))?;
        }
        scenario.set_skip_steady(self.skip_steady).with_context(|| format!("--skip-steady: {file}"))
    }

    /// The seeds, in order.
    pub(super) fn seeds(&self, of: &Scenario) -> Vec<u64> {
        (self.first(of)..).take(self.seeds.unwrap_or(of.seeds()) as usize).collect()
    }

    fn first(&self, of: &Scenario) -> u64 {
        self.first.unwrap_or(of.first_seed())
    }

    /// Creates the file of `--report`.
    pub(super) fn open_report(&self) -> Result<Option<File>> {
        let open =
            |path: &PathBuf| File::create(path).with_context(|| format!("cannot write the report {}", path.display()));
        self.report.as_ref().map(open).transpose()
    }

    /// Creates the file of `--record`.
    pub(super) fn open_recording(&self, scenario: &Scenario) -> Result<Option<Recorder>> {
        let Some(path) = &self.record else { return Ok(None) };
        let Some(title) = scenario.recording_title(self.first(scenario)) else {
            bail!(
                "--record: {} is simulated at flow level, which has no packets to record: use --level packet",
                self.file.display()
            );
        };
        let recorder = Recorder::create(path, title).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Some(recorder))
    }

    /// The simulated time between two samples of the recording.
    pub(super) fn snapshot_interval(&self) -> SnapshotInterval {
        self.record_every.map_or(SnapshotInterval::Adaptive, SnapshotInterval::Fixed)
    }

    /// The number of threads.
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    /// The command line that reproduces the results.
    pub(super) fn command(&self, of: &Scenario, seeds: usize) -> String {
        let mut command = format!("srdma sim {} --first {} --seeds {seeds}", self.file.display(), self.first(of));
        if let Some(level) = self.level.and_then(|level| level.to_possible_value()) {
            command.push_str(&format!(" --level {}", level.get_name()));
        }
        if self.skip_steady {
            command.push_str(" --skip-steady");
        }
        if let Some(share) = self.rate_interval {
            command.push_str(&format!(" --rate-interval {share}"));
        }
        for variant in &self.variant {
            command.push_str(&format!(" --variant {variant}"));
        }
        command
    }
}
