//! The command line of `srdma sim`.

use crate::units::parse_delay;
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use clap::{Args, value_parser};
use srdma_fabric_sim::wan::Study;
use srdma_fabric_sim::{Level, Scenario};
use srdma_recording::Recorder;
use srdma_sim::Pace;
use std::fs::File;
use std::path::PathBuf;
use std::thread;

const EXAMPLES: &str = "Examples:
  srdma sim scenarios/incast-dc.toml                          every arm with the seeds of the file, a table
  srdma sim scenarios/incast-dc.toml --report incast.html     and a report to look at in a browser
  srdma sim scenarios/incast-dc.toml --seeds 20 --json        twenty seeds, everything measured as JSON
  srdma sim scenarios/incast-dc.toml --arm fast-dcqcn --first 7 --seeds 1
                                                              one arm with seed 7 alone
  srdma sim scenarios/incast-dc.toml --record run.jsonl       and a recording of the first run, for the page to replay
  srdma sim scenarios/allreduce-512.toml --level flow         jobs as fluids that share links fairly: seconds
  srdma sim scenarios/wan.toml --report wan.html              a WAN that tells senders and gateways of congestion
  srdma sim scenarios/end-to-end.toml                         one stream through everything, to sixteen receivers

The same file, arms and seeds give the same results on any number of threads. docs/scenarios.md describes the files, the
JSON and the report.

Exit codes: 0 everything was run, 1 a run failed, 2 the file or the arguments make no sense.";

/// Run a scenario: a fabric, what is sent through it, and several ways to handle congestion, side by side.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The scenario, a TOML file.
    pub(super) file: PathBuf,

    /// Run each arm with so many seeds; as many as the file says when not given.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,

    /// The first seed; the others follow it.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u64).range(..=u64::MAX - 1000))]
    first: u64,

    /// Run this arm alone; may be given several times.
    #[arg(long, value_name = "NAME")]
    arm: Vec<String>,

    /// How what is sent is simulated, in place of what the file says: packet by packet, or, of jobs, as flows that
    /// share links fairly.
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<LevelName>,

    /// Run on so many threads; as many as there are cores when not given.
    #[arg(long, value_name = "T", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Print everything that was measured as one JSON object.
    #[arg(long)]
    pub(super) json: bool,

    /// Write a report, one HTML file that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,

    /// Record one run into FILE, for the controller's page to replay (docs/page.md): that of the first arm with the
    /// first seed; of a study of a WAN at its first length with the queue that is looked at closely. --arm and --first
    /// choose another one. Runs at flow level have no packets to record.
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// How much simulated time lies between two samples of the recording, in whole steps of the run. When not given, a
    /// step, and more the longer the run and the larger the network is.
    #[arg(long, value_name = "TIME", value_parser = parse_delay, requires = "record")]
    record_every: Option<u64>,
}

/// What `--level` may be.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LevelName {
    Packet,
    Flow,
}

impl Arguments {
    /// Chooses the level that is asked for.
    pub(super) fn choose_level(&self, scenario: &mut Scenario) -> Result<()> {
        let level = match self.level {
            None => return Ok(()),
            Some(LevelName::Packet) => Level::Packet,
            Some(LevelName::Flow) => Level::Flow,
        };
        scenario.set_level(level).map_err(|problem| anyhow!("{}: {problem}", self.file.display()))
    }

    /// Refuses to record what has no packets.
    pub(super) fn refuse_recording_of_flows(&self, level: Level) -> Result<()> {
        if self.record.is_some() && level == Level::Flow {
            bail!(
                "--record: {} is simulated at flow level, which has no packets and nothing to record: take --level \
                 packet",
                self.file.display()
            );
        }
        Ok(())
    }

    /// Leaves only the arms that are asked for in a scenario.
    pub(super) fn choose_arms(&self, scenario: &mut Scenario) -> Result<()> {
        self.choose(&mut scenario.arms, |arm| &arm.name)
    }

    fn choose<T>(&self, arms: &mut Vec<T>, name: impl Fn(&T) -> &String) -> Result<()> {
        let names: Vec<&str> = arms.iter().map(|arm| name(arm).as_str()).collect();
        if let Some(unknown) = self.arm.iter().find(|asked| !names.contains(&asked.as_str())) {
            bail!("--arm {unknown}: {} has the arms {}", self.file.display(), names.join(", "));
        }
        if !self.arm.is_empty() {
            arms.retain(|arm| self.arm.contains(name(arm)));
        }
        Ok(())
    }

    /// The seeds, in their order.
    pub(super) fn seeds(&self, of_file: u64) -> Vec<u64> {
        (self.first..).take(self.seeds.unwrap_or(of_file) as usize).collect()
    }

    /// Leaves only the arms that are asked for in a study of a WAN, whose packets are always simulated.
    pub(super) fn choose_of_study(&self, study: &mut Study) -> Result<()> {
        if self.level.is_some() {
            bail!("--level: {} is a study of a WAN, which knows packets alone", self.file.display());
        }
        self.choose(&mut study.arms, |arm| &arm.name)
    }

    /// Refuses a choice of arms or level in a file that has none.
    pub(super) fn refuse_arms_and_level(&self, what: &str) -> Result<()> {
        let asked = match (self.level, self.arm.is_empty()) {
            (Some(_), _) => "--level",
            (None, false) => "--arm",
            (None, true) => return Ok(()),
        };
        bail!("{asked}: {} is {what}", self.file.display())
    }

    /// The file for the report, before anything is run: nobody wants to hear at the end that there is no place for it.
    pub(super) fn open_report(&self) -> Result<Option<File>> {
        let open =
            |path: &PathBuf| File::create(path).with_context(|| format!("cannot write the report {}", path.display()));
        self.report.as_ref().map(open).transpose()
    }

    /// The recording, if one is asked for, before anything is run; `what` names the run.
    pub(super) fn open_recording(&self, what: impl FnOnce() -> String) -> Result<Option<Recorder>> {
        let create = |path: &PathBuf| {
            Recorder::create(path, what()).with_context(|| format!("cannot create {}", path.display()))
        };
        self.record.as_ref().map(create).transpose()
    }

    /// How much time lies between two samples.
    pub(super) fn pace(&self) -> Pace {
        self.record_every.map_or(Pace::Sparing, Pace::Every)
    }

    /// The first seed.
    pub(super) fn first_seed(&self) -> u64 {
        self.first
    }

    /// How many runs are made at once.
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    /// The command line that gives the same results.
    pub(super) fn command(&self, seeds: usize) -> String {
        let mut command = format!("srdma sim {} --first {} --seeds {seeds}", self.file.display(), self.first);
        if let Some(level) = self.level.and_then(|level| level.to_possible_value()) {
            command.push_str(&format!(" --level {}", level.get_name()));
        }
        for arm in &self.arm {
            command.push_str(&format!(" --arm {arm}"));
        }
        command
    }
}
