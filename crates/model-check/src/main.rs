//! `srdma-model-check`: checks trees of aggregation machines within bounds from the command line.

use clap::{Parser, ValueEnum};
use srdma_aggregation::{Repeat, Rules};
use srdma_model_check::{
    Ablation, Action, Bounds, COMMIT_ALL_FAULTS, COMMIT_LARGE, COMMIT_SMALL, CommitBounds, CommitFaults, CommitFinding,
    CommitOrder, Configuration, DuplicateHandling, Faults, Finding, LARGE, NakHandling, Order, REPAIR_LARGE,
    REPAIR_SMALL, Reception, RepairConfiguration, Repairers, Repairs, SHAPES, SMALL, Shape, check, check_commit,
    shortest,
};
use srdma_wire::Psn;
use std::io::{self, Write};
use std::process::ExitCode;

/// Model checking of response aggregation in small trees: every order of arrivals, losses, restarts and membership
/// changes within bounds, on the production state machines.
#[derive(Debug, Parser)]
#[command(name = "srdma-model-check", version, after_long_help = EXAMPLES)]
struct Options {
    /// Print one JSON object per line for each configuration.
    #[arg(long)]
    json: bool,
    /// The tree. The other options bound its faults.
    #[arg(long, required_unless_present_any = ["all", "small", "list", "commit", "repair"])]
    shape: Option<String>,
    /// Check the configurations of the documentation: minutes and some GiB of memory. Their bounds are fixed.
    #[arg(long, conflicts_with = "shape")]
    all: bool,
    /// Check the configurations of the tests: seconds. Their bounds are fixed.
    #[arg(long, conflicts_with_all = ["shape", "all"])]
    small: bool,
    /// Check the commit protocol of controller and agents: large configurations, with --small those of the tests.
    #[arg(long, conflicts_with = "shape")]
    commit: bool,
    /// Check trees of nodes that repair: large configurations, with --small those of the tests.
    #[arg(long, conflicts_with_all = ["shape", "commit"])]
    repair: bool,
    /// With --commit: this configuration alone.
    #[arg(long, requires = "commit")]
    only: Option<String>,
    /// With --commit: with these faults instead, such as 'joins 1, controller restarts 1'.
    #[arg(long, requires = "only")]
    faults: Option<CommitFaults>,
    /// With --commit: without one of the protocol's rules.
    #[arg(long, requires = "commit", value_name = "RULE")]
    without: Option<ProtocolRule>,
    /// Print the trees and stop.
    #[arg(long)]
    list: bool,
    /// Packets of the source, 1 to 6.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=6))]
    packets: u8,
    /// Packets in flight.
    #[arg(long, default_value_t = 6)]
    window: u8,
    /// Packets of a message, the last of which requests an ACK.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    message: u8,
    /// PSN of the first packet.
    #[arg(long, default_value_t = 0xFF_FFFF)]
    initial_psn: u32,
    /// Messages lost.
    #[arg(long, default_value_t = 1)]
    losses: u8,
    /// Messages that arrive twice.
    #[arg(long, default_value_t = 0)]
    duplicates: u8,
    /// Messages that overtake others; 255: all links are unordered.
    #[arg(long, default_value_t = 0)]
    overtakings: u8,
    /// Links with temporary delays; 255: any link at any time.
    #[arg(long, default_value_t = 255)]
    delays: u8,
    /// Restarts of nodes.
    #[arg(long, default_value_t = 0)]
    restarts: u8,
    /// Timeouts of the source while messages are in flight.
    #[arg(long, default_value_t = 0)]
    early_timeouts: u8,
    /// Ends of timers of repair while messages are in flight.
    #[arg(long, default_value_t = 0)]
    early_ticks: u8,
    /// Packets of buffers that prove damaged.
    #[arg(long, default_value_t = 0)]
    damages: u8,
    /// Nodes that repair.
    #[arg(long, value_name = "NODES")]
    repairers: Option<Repairing>,
    /// Packets that their buffers hold, 0 to 8.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=8))]
    buffer: u8,
    /// The source's timer never ends, and nothing is lost on its own link.
    #[arg(long)]
    alone: bool,
    /// RNR NAKs go up to the source.
    #[arg(long)]
    rnr_up: bool,
    /// RNR NAKs.
    #[arg(long, default_value_t = 0)]
    unready: u8,
    /// Receivers that fail with a fatal NAK.
    #[arg(long, default_value_t = 0)]
    failures: u8,
    /// Receivers that fail without a response.
    #[arg(long, default_value_t = 0)]
    deaths: u8,
    /// Changes of membership: evictions, or those of the shape.
    #[arg(long, default_value_t = 0)]
    changes: u8,
    /// Permitted timeouts without progress after the last fault.
    #[arg(long, default_value_t = 2)]
    patience: u8,
    /// Messages on a link in one direction.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=8))]
    depth: u8,
    /// The requester handles NAKs as soft-RoCE does: it ignores all after the first until it receives an ACK.
    #[arg(long, conflicts_with = "selective")]
    soft_roce: bool,
    /// The requester sends a lost packet again alone.
    #[arg(long)]
    selective: bool,
    /// Receivers that keep packets behind a gap.
    #[arg(long, value_enum, default_value = "none")]
    out_of_order: OutOfOrder,
    /// Receivers respond only to duplicates that request an ACK.
    #[arg(long)]
    quiet_receivers: bool,
    /// Forwarding rules of the nodes.
    #[arg(long, default_value = "default")]
    rules: RuleSet,
    /// Re-homing commits in any order.
    #[arg(long)]
    any_order: bool,
    /// Nodes ignore epochs.
    #[arg(long)]
    no_epochs: bool,
    /// Depth-first: less memory, longer counterexamples.
    #[arg(long)]
    deepest: bool,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Stop after about this many states, repeated ones included.
    #[arg(long)]
    most_states: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  srdma-model-check --small --deepest
      The configurations of the tests.

  srdma-model-check --shape three --delays 1 --losses 1 --restarts 1
      A tree of three levels and three receivers: one loss, one restart, one slow link, anywhere and at any time.

  srdma-model-check --shape star2 --losses 1 --rules never
      A violation, with the shortest counterexample.";

/// Forwarding rules of the nodes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RuleSet {
    Default,
    Prune,
    Literal,
    LiteralAck,
    LiteralNak,
    Never,
    AllRepeated,
    RepeatCount,
}

/// Nodes that repair.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Repairing {
    All,
    Edges,
    Root,
    RootAndEdges,
    BelowRoot,
}

/// Receivers that keep packets behind a gap.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OutOfOrder {
    None,
    All,
    /// Every second one.
    Some,
}

/// Rules of the commit protocol.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolRule {
    /// Nodes compare store and digest.
    Digests,
    /// Changes wait for lost nodes that gain a member.
    Waiting,
    /// A registered entry is compared with the record.
    Comparison,
    /// Orders without an answer are retransmitted.
    Retransmission,
    /// A receiver that joins in two steps is no member before it is ready.
    Readiness,
    /// Reservations expire.
    Expiry,
}

impl ProtocolRule {
    fn ablation(self) -> Ablation {
        match self {
            ProtocolRule::Digests => Ablation::EpochIsName,
            ProtocolRule::Waiting => Ablation::LostIsSettled,
            ProtocolRule::Comparison => Ablation::AnyEpoch,
            ProtocolRule::Retransmission => Ablation::NoRetransmission,
            ProtocolRule::Readiness => Ablation::ReadinessNotAwaited,
            ProtocolRule::Expiry => Ablation::NoExpiry,
        }
    }
}

impl RuleSet {
    fn rules(self) -> Rules {
        let default = Rules::default();
        match self {
            RuleSet::Default => default,
            RuleSet::Prune => Rules { prune_retransmit: true, ..default },
            RuleSet::Literal => Rules::literal(),
            RuleSet::LiteralAck => Rules { literal_ack: true, ..default },
            RuleSet::LiteralNak => Rules { literal_nak: true, ..default },
            RuleSet::Never => Rules { repeat: Repeat::Never, ..default },
            RuleSet::AllRepeated => Rules { repeat: Repeat::AllRepeated, ..default },
            RuleSet::RepeatCount => Rules { repeat: Repeat::RepeatCount, ..default },
        }
    }
}

impl Options {
    fn repairs(&self) -> Repairs {
        let by = match self.repairers {
            None => return Repairs::NONE,
            Some(Repairing::All) => Repairers::All,
            Some(Repairing::Edges) => Repairers::Edges,
            Some(Repairing::Root) => Repairers::Root,
            Some(Repairing::RootAndEdges) => Repairers::RootAndEdges,
            Some(Repairing::BelowRoot) => Repairers::BelowRoot,
        };
        Repairs { by, buffer: self.buffer, waits: !self.rnr_up, alone: self.alone }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            initial_psn: Psn::new(self.initial_psn),
            packets: self.packets,
            window: self.window,
            message: self.message,
            source: match (self.soft_roce, self.selective) {
                (true, _) => NakHandling::SoftRoce,
                (false, true) => NakHandling::Selective,
                (false, false) => NakHandling::Strict,
            },
            reception: match self.out_of_order {
                OutOfOrder::None => Reception::InOrder,
                OutOfOrder::All => Reception::OutOfOrder,
                OutOfOrder::Some => Reception::Mixed,
            },
            receivers: if self.quiet_receivers {
                DuplicateHandling::OnRequest
            } else {
                DuplicateHandling::AllDuplicates
            },
            rules: self.rules.rules(),
            repairs: self.repairs(),
            depth: usize::from(self.depth),
            faults: Faults {
                losses: self.losses,
                duplicates: self.duplicates,
                overtakings: self.overtakings,
                delays: self.delays,
                restarts: self.restarts,
                early_timeouts: self.early_timeouts,
                early_ticks: self.early_ticks,
                damages: self.damages,
                unready: self.unready,
                failures: self.failures,
                deaths: self.deaths,
                changes: self.changes,
            },
            patience: self.patience,
            order: if self.any_order { CommitOrder::Any } else { CommitOrder::OldPathLast },
            epochs_checked: !self.no_epochs,
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    match run(&Options::parse(), &mut io::stdout().lock()) {
        // The reader has ended, as `head` does. The checks have not: that is no success, nor worth a message.
        Err(error) if is_closed_pipe(&error) => Ok(ExitCode::FAILURE),
        result => result,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Checks what the options name, and writes a row for each configuration as soon as it is checked.
fn run(options: &Options, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    if options.list {
        SHAPES.iter().try_for_each(|shape| writeln!(out, "{:<8} {}", shape.name, shape.drawing))?;
        return Ok(ExitCode::SUCCESS);
    }
    let order = if options.deepest { Order::Deepest } else { Order::Shortest };
    if options.commit {
        return check_commits(options, order, out);
    }
    let checks: Vec<(&Shape, Bounds)> = match &options.shape {
        Some(name) => vec![(Shape::named(name)?, options.bounds())],
        None if options.repair => {
            let suite: &[RepairConfiguration] = if options.small { &REPAIR_SMALL } else { &REPAIR_LARGE };
            suite
                .iter()
                .map(|configuration| Ok((Shape::named(configuration.of.shape)?, configuration.bounds())))
                .collect::<anyhow::Result<_>>()?
        }
        None => {
            let suite: &[Configuration] = if options.all { &LARGE } else { &SMALL };
            suite
                .iter()
                .map(|configuration| Ok((Shape::named(configuration.shape)?, configuration.bounds())))
                .collect::<anyhow::Result<_>>()?
        }
    };
    if !options.json {
        writeln!(out, "shape   packets       states depth     seconds  result, bounds")?;
    }
    let mut failed = false;
    for (shape, bounds) in checks {
        let finding = check(shape, &bounds, order, options.threads, options.most_states);
        let path = finding.failure.clone().map(|failure| shortest(shape, &bounds, failure).path);
        report(shape, &bounds, &finding, &path.unwrap_or_default(), options.json, out)?;
        failed |= finding.failure.is_some();
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn check_commits(options: &Options, order: Order, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let suite: &[CommitBounds] = if options.small { &COMMIT_SMALL } else { &COMMIT_LARGE };
    // It does not end.
    let only_by_name = options.only.is_some().then_some(&COMMIT_ALL_FAULTS);
    let is_wanted = |bounds: &&CommitBounds| options.only.as_ref().is_none_or(|name| bounds.name == name);
    let wanted: Vec<&CommitBounds> = suite.iter().chain(only_by_name).filter(is_wanted).collect();
    if wanted.is_empty() {
        let names: Vec<&str> = suite.iter().chain(only_by_name).map(|bounds| bounds.name).collect();
        anyhow::bail!("--only: expected one of {}", names.join(", "));
    }
    if !options.json {
        writeln!(out, "configuration           states      steps depth     seconds  result, bounds")?;
    }
    let mut failed = false;
    for bounds in wanted {
        let ablation = options.without.map_or(Ablation::Nothing, ProtocolRule::ablation);
        let bounds = CommitBounds { ablation, faults: options.faults.unwrap_or(bounds.faults), ..*bounds };
        let finding = check_commit(bounds, order, options.most_states).map_err(anyhow::Error::msg)?;
        report_commit(&bounds, &finding, options.json, out)?;
        failed |= finding.failure.is_some();
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn report_commit(bounds: &CommitBounds, finding: &CommitFinding, json: bool, out: &mut impl Write) -> io::Result<()> {
    let result = match (&finding.failure, finding.complete) {
        (Some(failure), _) => format!("FAILS: {}: {}", failure.property, failure.text),
        (None, true) => "holds".to_owned(),
        (None, false) => "given up".to_owned(),
    };
    let path = finding.failure.iter().flat_map(|failure| &failure.path).map(|action| format!("{action:?}"));
    let path: Vec<String> = path.collect();
    let CommitFinding { states, steps, depth, .. } = finding;
    let (name, faults, seconds) = (bounds.name, bounds.faults, finding.took.as_secs_f64());
    if json {
        let row = serde_json::json!({
            "configuration": name, "bounds": faults.to_string(), "states": states, "steps": steps, "depth": depth,
            "seconds": seconds, "result": result, "path": path,
        });
        return writeln!(out, "{row}");
    }
    writeln!(out, "{name:<18}{states:>12}{steps:>11}{depth:>6}{seconds:>12.1}  {result}: {faults}")?;
    path.iter().enumerate().try_for_each(|(number, action)| writeln!(out, "  {number:>3} {action}"))
}

fn report(
    shape: &Shape,
    bounds: &Bounds,
    finding: &Finding,
    path: &[Action],
    json: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let result = match (&finding.failure, finding.complete, finding.completed) {
        (Some(failure), _, _) => format!("FAILS: {}", failure.property),
        (None, true, true) => "holds".to_owned(),
        (None, true, false) => "holds, but nothing was completed".to_owned(),
        (None, false, _) => "given up".to_owned(),
    };
    let (states, depth, seconds) = (finding.states, finding.depth, finding.took.as_secs_f64());
    if json {
        let path: Vec<String> = path.iter().map(|action| format!("{action:?}")).collect();
        let row = serde_json::json!({
            "shape": shape.name, "packets": bounds.packets, "bounds": format!("{}{}", bounds.repairs, bounds.faults),
            "states": states, "depth": depth, "seconds": seconds, "result": result, "path": path,
        });
        return writeln!(out, "{row}");
    }
    writeln!(
        out,
        "{:<8}{:>7}{states:>13}{depth:>6}{seconds:>12.1}  {result}: {}",
        shape.name,
        bounds.packets,
        format_args!("{}{}", bounds.repairs, bounds.faults)
    )?;
    path.iter().enumerate().try_for_each(|(number, action)| writeln!(out, "  {number:>3} {action:?}"))
}
