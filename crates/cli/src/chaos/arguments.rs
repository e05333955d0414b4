//! The command line of `srdma chaos`.

use crate::source_name::SourceName;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum, value_parser};
use srdma_chaos::runner::{DrawSchedule, RunConfig};
use srdma_chaos::schedule::Schedule;
use srdma_chaos::token::{ReplayToken, TokenError};
use srdma_cluster::schedule::Schedule as ClusterSchedule;
use srdma_cluster::token::ReplayToken as ClusterToken;
use srdma_dataplane::MAX_WORKERS;
use std::thread;
use std::time::Duration;

/// Default number of schedules.
const DEFAULT_SEEDS: u64 = 1000;

const EXAMPLES: &str = "Examples:
  srdma chaos                                      1,000 schedules on all cores
  srdma chaos --seeds 1000000 --json               1,000,000 schedules, the report as JSON
  srdma chaos --minutes 10 --first-seed 5000000    for ten minutes, from seed 5,000,000 on
  srdma chaos --seed 4711 --verbose                one seed, with its timeline
  srdma chaos --seed 4711 --shrink                 a small schedule that fails in the same way
  srdma chaos --attack --seeds 10000               each schedule without and with forged packets
  srdma chaos --insiders --seeds 10000             with receivers and links that send untrue responses
  srdma chaos --workers 3 --seeds 10000            nodes of three workers each
  srdma chaos --source selective --seeds 10000     hosts with selective repeat
  srdma chaos --cluster --seeds 10000              whole clusters: controller, agents, nodes, sources
  srdma chaos --cluster --seed 4711 --verbose      one of them, with its timeline
  srdma chaos --replay 'v6:{\"seed\":4711, …}'       a schedule printed by --shrink

Exit codes: 0 no violations, 1 a schedule failed, 2 invalid arguments.";

/// Run random small simulated networks under loss, crashes, failures, forged packets and membership changes, and check
/// that no ACK reaches a source for a PSN that a member has not acknowledged.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Number of seeds [default: 1000, unlimited with --minutes].
    #[arg(long, value_name = "N", conflicts_with = "single")]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    seeds: Option<u64>,

    /// First seed.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = parse_seed, conflicts_with = "single")]
    first_seed: u64,

    /// Start no further schedule after M minutes.
    #[arg(long, value_name = "M", value_parser = parse_minutes, allow_negative_numbers = true)]
    #[arg(conflicts_with = "single")]
    minutes: Option<Duration>,

    /// Start no further schedule after N failures.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u64).range(1..))]
    #[arg(conflicts_with = "single")]
    max_failures: u64,

    /// Number of threads [default: number of cores].
    #[arg(long, value_name = "T", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Run a single seed: 4711, or with its version, v7:4711 or cluster-v12:4711, as in reports.
    #[arg(long, value_name = "SEED", value_parser = parse_seed, group = "single")]
    seed: Option<u64>,

    /// Run the schedule of a replay token. Lines that begin with # are ignored, as in the files of
    /// crates/chaos/tests/failing_seeds.
    #[arg(long, value_name = "TOKEN", group = "single")]
    replay: Option<String>,

    /// Run each schedule without and with an attacker that forges and replays packets, and compare; with --seed, run
    /// only that schedule under attack.
    #[arg(long, conflicts_with = "replay")]
    pub(super) attack: bool,

    /// Run each schedule with insiders: receivers, and attackers on the path to a node, that send untrue responses in
    /// the right name. Members that are not behind them must not be harmed.
    #[arg(long, conflicts_with_all = ["attack", "cluster", "replay"])]
    pub(super) insiders: bool,

    /// Run whole clusters in virtual time: the controller's core over a store, agents and nodes, sources and receivers.
    #[arg(long, conflicts_with = "attack")]
    pub(super) cluster: bool,

    /// Workers of each node: packets of a group that another worker owns are handed over.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["attack", "replay"])]
    #[arg(value_parser = value_parser!(u16).range(1..=i64::from(MAX_WORKERS)))]
    workers: u16,

    /// Retransmission by sources and receivers.
    #[arg(long, value_enum, default_value_t = SourceName::GoBackN)]
    #[arg(conflicts_with_all = ["attack", "cluster", "replay"])]
    source: SourceName,

    /// Search for a smaller schedule that fails in the same way, for each failure.
    #[arg(long)]
    pub(super) shrink: bool,

    /// Print the timeline; with --seed or --replay.
    #[arg(long, requires = "single")]
    pub(super) verbose: bool,

    /// Print the report as a JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

impl Arguments {
    /// The single schedule to run, if any. Fails if the token of `--replay` is invalid.
    pub(super) fn single(&self) -> Result<Option<ReplayToken>> {
        let token = |seed: u64| match (self.attack, self.draws_another()) {
            (true, _) => ReplayToken::Schedule(Box::new(Schedule::under_attack(seed))),
            (false, true) => ReplayToken::Schedule(Box::new(self.schedule(seed))),
            (false, false) => ReplayToken::Seed(seed),
        };
        // Not a parser of clap's: its error would repeat the whole token, which is long.
        match &self.replay {
            Some(text) => parse_token(text).context("--replay").map(Some),
            None => Ok(self.seed.map(token)),
        }
    }

    /// Whether a schedule is not that of its seed alone.
    fn draws_another(&self) -> bool {
        self.insiders || self.workers > 1 || self.source != SourceName::GoBackN
    }

    /// The single schedule of a cluster to run, if any. Fails if the token of `--replay` is invalid.
    pub(super) fn single_cluster(&self) -> Result<Option<ClusterToken>> {
        match &self.replay {
            Some(text) => without_comments(text).parse().context("--replay").map(Some),
            None => Ok(self.seed.map(|seed| ClusterToken::Schedule(Box::new(self.cluster_schedule(seed))))),
        }
    }

    /// The schedule of a cluster of a seed.
    pub(super) fn cluster_schedule(&self, seed: u64) -> ClusterSchedule {
        ClusterSchedule::from_seed(seed).with_workers(self.workers)
    }

    /// What draws the schedule of a seed.
    pub(super) fn draw(&self) -> DrawSchedule {
        if self.insiders { Schedule::with_insiders } else { Schedule::from_seed }
    }

    /// The schedule of a seed.
    pub(super) fn schedule(&self, seed: u64) -> Schedule {
        self.adapted(self.draw()(seed))
    }

    /// The same schedule with the workers that the nodes are to have, and the hosts' retransmission.
    pub(super) fn adapted(&self, schedule: Schedule) -> Schedule {
        schedule.with_workers(self.workers).with_retransmission(self.source.into())
    }

    /// The option for nodes of several workers.
    pub(super) fn workers_option(&self) -> String {
        if self.workers > 1 { format!(" --workers {}", self.workers) } else { String::new() }
    }

    /// The options that a single seed needs to have the same schedule.
    pub(super) fn mode_option(&self) -> String {
        let insiders = if self.insiders { " --insiders" } else { "" };
        let workers = self.workers_option();
        let source = match self.source.to_possible_value() {
            Some(name) if self.source != SourceName::GoBackN => format!(" --source {}", name.get_name()),
            _ => String::new(),
        };
        format!("{insiders}{workers}{source}")
    }

    /// The parameters of a run of several seeds.
    pub(super) fn config(&self) -> RunConfig {
        let default_seeds = if self.minutes.is_some() { u64::MAX } else { DEFAULT_SEEDS };
        RunConfig {
            first_seed: self.first_seed,
            seeds: self.seeds.unwrap_or(default_seeds),
            threads: self.threads.map_or_else(cores, usize::from),
            max_failures: self.max_failures,
        }
    }

    /// No further schedule starts after this time.
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
        Ok(ReplayToken::Seed(seed)) => Ok(seed),
        Ok(ReplayToken::Schedule(_)) => Err("this token is a whole schedule: use --replay".to_owned()),
        Err(error) => match text.parse() {
            Ok(ClusterToken::Seed(seed)) => Ok(seed),
            Ok(ClusterToken::Schedule(_)) => Err("this token is a schedule of its own: use --replay".to_owned()),
            Err(_) => Err(error.to_string()),
        },
    }
}

fn parse_token(text: &str) -> Result<ReplayToken, TokenError> {
    without_comments(text).parse()
}

fn without_comments(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.join("\n")
}

fn parse_minutes(text: &str) -> Result<Duration, String> {
    const MOST: f64 = 1e6;
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes <= MOST => Ok(Duration::from_secs_f64(minutes * 60.0)),
        Ok(_) | Err(_) => Err("expected a number of minutes such as 10 or 0.5, at most 1000000".to_owned()),
    }
}
