//! The command line of `srdma storm`.

use anyhow::{Context, Result};
use clap::{Args, value_parser};
use srdma_chaos::line::{Line, LineError};
use srdma_chaos::runner::Order;
use srdma_chaos::schedule::Schedule;
use std::thread;
use std::time::Duration;

/// Schedules that are run when nothing says how many.
const DEFAULT_SEEDS: u64 = 1000;

const EXAMPLES: &str = "Examples:
  srdma storm                                 a thousand schedules on all cores
  srdma storm --seeds 1000000 --json          a million, the result as JSON
  srdma storm --minutes 10 --first 5000000    for ten minutes, from seed 5,000,000 on
  srdma storm --seed 4711 --verbose           one seed, told as a timeline
  srdma storm --seed 4711 --shrink            a small schedule that fails as this seed does
  srdma storm --attack --seeds 10000          ten thousand, each without and with forged packets
  srdma storm --replay 'v1:{\"seed\":4711, …}'  a schedule as --shrink printed it

Exit codes: 0 all is well, 1 a schedule failed, 2 the arguments make no sense.";

/// Run very many small simulated networks under loss, crashes, failures, forged packets and changes of membership, and
/// check in each that the source is never told of more than every receiver has.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Run so many seeds; 1000 when neither this nor --minutes is given.
    #[arg(long, value_name = "N", conflicts_with = "one")]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    seeds: Option<u64>,

    /// The first seed.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = parse_seed, conflicts_with = "one")]
    first: u64,

    /// Begin no further schedule after so many minutes.
    #[arg(long, value_name = "M", value_parser = parse_minutes, allow_negative_numbers = true)]
    #[arg(conflicts_with = "one")]
    minutes: Option<Duration>,

    /// Begin no further schedule after so many failures.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u64).range(1..))]
    #[arg(conflicts_with = "one")]
    max_failures: u64,

    /// Run on so many threads; as many as there are cores when not given.
    #[arg(long, value_name = "T", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Run this seed alone: 4711, or v1:4711 as reports write it.
    #[arg(long, value_name = "SEED", value_parser = parse_seed, group = "one")]
    seed: Option<u64>,

    /// Run the schedule of this line alone. Lines before it that begin with # are left out, so that a whole file of
    /// crates/chaos/tests/failing_seeds will do.
    #[arg(long, value_name = "LINE", group = "one")]
    replay: Option<String>,

    /// Run each schedule without and with an attacker who forges and repeats packets, and compare; with --seed: that
    /// schedule under attack alone.
    #[arg(long, conflicts_with = "replay")]
    pub(super) attack: bool,

    /// Look for a smaller schedule that fails in the same way, for each failure.
    #[arg(long)]
    pub(super) shrink: bool,

    /// Tell what happens, line by line; with --seed or --replay.
    #[arg(long, requires = "one")]
    pub(super) verbose: bool,

    /// Print the result as one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

impl Arguments {
    /// The one schedule that is to be run, when it is one. An error says why the line of `--replay` is none.
    pub(super) fn one(&self) -> Result<Option<Line>> {
        let line = |seed: u64| {
            if self.attack { Line::Schedule(Box::new(Schedule::attacked(seed))) } else { Line::Seed(seed) }
        };
        // Not a parser of clap's: that would repeat the whole line, which is long, before it says what is wrong.
        match &self.replay {
            Some(text) => parse_line(text).context("--replay").map(Some),
            None => Ok(self.seed.map(line)),
        }
    }

    /// Which seeds are to be run, when it is more than one.
    pub(super) fn order(&self) -> Order {
        let until_time_is_up = if self.minutes.is_some() { u64::MAX } else { DEFAULT_SEEDS };
        Order {
            first: self.first,
            seeds: self.seeds.unwrap_or(until_time_is_up),
            threads: self.threads.map_or_else(cores, usize::from),
            most_failures: self.max_failures,
        }
    }

    /// After which time no further schedule is to begin.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.minutes
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn parse_seed(text: &str) -> Result<u64, String> {
    if let Ok(seed) = text.parse() {
        return Ok(seed);
    }
    match text.parse() {
        Ok(Line::Seed(seed)) => Ok(seed),
        Ok(Line::Schedule(_)) => Err("this is a whole schedule: give it to --replay".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_line(text: &str) -> Result<Line, LineError> {
    let said: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    said.join("\n").parse()
}

fn parse_minutes(text: &str) -> Result<Duration, String> {
    const MOST: f64 = 1e6;
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes <= MOST => Ok(Duration::from_secs_f64(minutes * 60.0)),
        Ok(_) | Err(_) => Err("expected a number of minutes such as 10 or 0.5, at most a million".to_owned()),
    }
}
